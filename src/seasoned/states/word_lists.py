"""Word lists: English words that are rarely nouns. A change of a list needs a new version of the fields that use it."""

from __future__ import annotations

__all__ = ["NOT_NOUNS"]

_FUNCTION_WORDS = """
a about above after again all almost also although always am among an and another any anything are around as at away
be because been before behind being below beneath beside besides between beyond both but by can cannot could did do
does doing done down during each either else enough even ever every everything few for from further had has have
having he her here hers herself him himself his how however i if in inside instead into is it its itself just least
less many may me might mine more most much must my myself near neither never no none nor not nothing now of off often
on once one only onto or other our ours out outside over own perhaps quite rather really same seem seems shall she
should since so some something still such than that the their theirs them themselves then there these they this those
though through thus to together too toward towards under until up upon us very was we well were what whatever when
where which while who whom whose why will with within without would yet you your yours yourself
"""

_ADJECTIVES = """
able bad best better big black blue bright broken clean clear closed cold current dark deep different dirty dry early
easy empty first free fresh full good great green hard heavy high hot huge important large last late latest left light
little locked long low main narrow new next nice old open possible previous ready red right short small soft strong sure
tall thick thin tiny total unlocked usual visible warm weak wet white whole wide wrong yellow young
"""

_VERBS = """
add added apply asked ask attack become began begin bring bring buy call came carry carried carrying choose click
clicked close come contain contains cook cut delete describe drink drop dropped eat enter examine fill filled find
follow found get give given go goes going gone got hold keep know known lead leading leads leave let lie lies listen
lock look looking looks made make makes move need needs notice opened pick place placed pull push put read remove
said save say says scroll search see seen select selected send set show shown sit sits stand standing stands submit
take taken tell throw took try turn turned type unlock use used wait walk want went wear write
"""

NOT_NOUNS = frozenset(f"{_FUNCTION_WORDS} {_ADJECTIVES} {_VERBS}".split())
"""Function words, everyday adjectives and everyday verbs, lower-cased."""
