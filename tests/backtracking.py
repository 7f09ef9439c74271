"""Count the steps of a backtracking matcher on a regular expression: work without a clock.

The matcher walks the tree of `re._parser` as CPython's `_sre` does: greedy, lazy and possessive repeats, atomic groups,
look-around, back references. A step is one test of a character, a position or a group. CPython skips some starts by a
known prefix, so the count is an upper bound of its work. A finite bound of a repeat counts as a small constant.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from re import _constants as sre
from re import _parser

BOUND = 3
"""The largest finite bound of a repeat: `{0,64}` is a constant, and growth shows at texts of a few dozen."""

LARGEST_BOUND = 64
"""Of a repeat that counts as a constant; a larger one counts as none: 100,000 steps at each start are no constant."""

_PROBES = "\n \tAZaz09_-.,:;!#$%&'()*+/<=>?@[]\\^`{|}~\"\x00\x85é"
_SIZES = (8, 16, 32)
_MOST_RATIO = 2.5
"""Extra work for twice the extra input: 2 if it is linear, 4 if it is quadratic."""

_LARGE = (64, 256)
_MOST_GROWTH = 8.0
"""Work for four times the input: 4 if it is linear, 16 if it is quadratic."""

_MOST_STEPS = 100_000
"""Nothing linear takes as many for the texts here; an exponential pattern stops at it."""

Next = Callable[[int], bool]


_FRAMES = 20_000
_CHARACTERS = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)


class _TooManyStepsError(Exception):
    pass


def superlinear(
    pattern: str, flags: int = 0, *, anchored: bool = False, full: bool = False, pairs: bool = False
) -> str | None:
    """Return a text family on which the work grows faster than the text, or None.

    Args:
        pattern, flags: as for `re.compile`.
        anchored: one match at the start (`match`, `fullmatch`); else every match of the text, as by `finditer`.
        full: a match ends where the text does, as by `fullmatch`.
        pairs: repeat every pair of symbols too, but of two runs of literals.
    """
    matcher = Matcher(pattern, flags, full=full)
    symbols = matcher.symbols()
    units = symbols + ([a + b for a in symbols for b in symbols if a != b and 1 in (len(a), len(b))] if pairs else [])
    deepest = sys.getrecursionlimit()
    sys.setrecursionlimit(max(deepest, _FRAMES))
    try:
        return _grown(matcher, units, anchored=anchored)
    finally:
        sys.setrecursionlimit(deepest)


def _grown(matcher: Matcher, units: list[str], *, anchored: bool) -> str | None:
    for before in matcher.prefixes():
        for unit in units:
            for after in ("", "\x00"):
                few, some, many = (matcher.steps(before + unit * n + after, anchored=anchored) for n in _SIZES)
                if many < _MOST_STEPS and many - some <= _MOST_RATIO * max(some - few, 1):
                    continue
                less, most = (matcher.steps(before + unit * n + after, anchored=anchored) for n in _LARGE)
                if most > _MOST_GROWTH * less or most > _MOST_STEPS:
                    return (
                        f"{before!r} + {unit!r} * n + {after!r}: {less} steps for {_LARGE[0]}, {most} for {_LARGE[1]}"
                    )
    return None


class Matcher:
    """A backtracking matcher that counts its steps."""

    def __init__(self, pattern: str, flags: int = 0, *, full: bool = False, bound: int = BOUND) -> None:
        self._full = full
        self._bound = bound
        self._tree = _parser.parse(pattern, flags & ~re.DEBUG)
        self._flags = self._tree.state.flags | flags
        self._text = ""
        self._steps = 0
        self._groups: dict[int, tuple[int, int]] = {}
        self._known: dict[tuple[int, int], Callable[[str], bool]] = {}
        self._keep: list[object] = []
        self._run = self._sequence(self._tree, self._flags)

    def steps(self, text: str, *, anchored: bool) -> int:
        """Return the number of steps of one match at the start, or of all matches."""
        self._text, self._steps = text, 0
        start = 0
        while start <= len(text):
            self._steps += 1
            try:
                end = self._end(start)
            except _TooManyStepsError:
                break
            if anchored:
                break
            start = start + 1 if end is None else max(end, start + 1)
        return self._steps

    def search(self, text: str) -> tuple[int, int] | None:
        """Return the span of the first match, as `re.search` finds it."""
        self._text, self._steps = text, 0
        for start in range(len(text) + 1):
            if (end := self._end(start)) is not None:
                return start, end
        return None

    def _end(self, start: int) -> int | None:
        """Return where the match ends that begins here."""
        ends: list[int] = []

        def accept(end: int) -> bool:
            if self._full and end != len(self._text):
                return False
            ends.append(end)
            return True

        self._groups = {}
        return ends[0] if self._run(start, accept) else None

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooManyStepsError

    def symbols(self) -> list[str]:
        """Return one character for each way of matching the pattern's classes, and its runs of literals."""
        literals = sorted({chr(value) for op, value, _ in self._nodes(self._tree, self._flags) if op is sre.LITERAL})
        tests = list(self._known.values())
        by_signature = {tuple(test(char) for test in tests): char for char in [*_PROBES, *literals][::-1]}
        return list(dict.fromkeys([*by_signature.values(), *self._words(self._tree)]))

    def prefixes(self) -> list[str]:
        """Return the shortest texts that lead to each unbounded repeat."""
        return list(dict.fromkeys(["", *self._leads(self._tree, "")]))

    def _nodes(self, tree: object, flags: int) -> Iterator[tuple[object, object, int]]:
        for op, value in tree:
            yield op, value, flags
            for part in _parts(op, value):
                yield from self._nodes(part, flags)

    def _words(self, tree: object) -> Iterator[str]:
        word = ""
        for op, value in [*tree, (None, None)]:
            if op is sre.LITERAL:
                word += chr(value)
                continue
            if len(word) > 1:
                yield word
            word = ""
            for part in _parts(op, value):
                yield from self._words(part)

    def _leads(self, tree: object, before: str) -> Iterator[str]:
        for op, value in tree:
            if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and value[1] is sre.MAXREPEAT:
                yield before
            for part in _parts(op, value):
                yield from self._leads(part, before)
            before += self._shortest([(op, value)])

    def _shortest(self, tree: object) -> str:
        text = ""
        for op, value in tree:
            if op is sre.LITERAL:
                text += chr(value)
            elif op in (sre.IN, sre.NOT_LITERAL, sre.ANY):
                test = self._test(op, value, self._flags)
                text += next((char for char in "aA0 ._-\n" + _PROBES if test(char)), "")
            elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
                text += self._shortest(value[2]) * min(value[0], BOUND)
            elif op is sre.BRANCH:
                text += self._shortest(value[1][0])
            elif op is sre.SUBPATTERN:
                text += self._shortest(value[3])
            elif op is sre.ATOMIC_GROUP:
                text += self._shortest(value)
        return text

    def _sequence(self, tree: object, flags: int) -> Callable[[int, Next], bool]:
        nodes = [self._node(op, value, flags) for op, value in tree]

        def run(at: int, then: Next, index: int = 0) -> bool:
            if index == len(nodes):
                return then(at)
            return nodes[index](at, lambda end: run(end, then, index + 1))

        return run if len(nodes) != 1 else nodes[0]

    def _node(self, op: object, value: object, flags: int) -> Callable[[int, Next], bool]:
        if op in _CHARACTERS:
            return self._character(self._test(op, value, flags))
        if op is sre.AT:
            return self._position(value, flags)
        if op is sre.SUBPATTERN:
            group, added, removed, tree = value
            return self._group(group, self._sequence(tree, (flags | added) & ~removed))
        if op is sre.BRANCH:
            branches = [self._sequence(branch, flags) for branch in value[1]]
            return self._any(branches)
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            low, high, tree = value
            low, high = (
                min(low, self._bound),
                sys.maxsize if high is sre.MAXREPEAT or high > LARGEST_BOUND else min(high, max(self._bound, low)),
            )
            if op is not sre.POSSESSIVE_REPEAT and len(tree) == 1 and tree[0][0] in _CHARACTERS:
                return self._run_of(op, low, high, self._test(*tree[0], flags))
            return self._repeat(op, low, high, self._sequence(tree, flags))
        if op is sre.ATOMIC_GROUP:
            return self._once(self._sequence(value, flags))
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            direction, tree = value
            width = tree.getwidth()[0] if direction < 0 else 0
            return self._look(self._sequence(tree, flags), width, wanted=op is sre.ASSERT)
        if op is sre.GROUPREF:
            return self._reference(value)
        if op is sre.FAILURE:
            return lambda at, then: False
        raise ValueError(f"{op}: a kind of node that the matcher does not count; add it to `_node`")

    def _character(self, test: Callable[[str], bool]) -> Callable[[int, Next], bool]:
        def run(at: int, then: Next) -> bool:
            self._count()
            return at < len(self._text) and test(self._text[at]) and then(at + 1)

        return run

    def _group(self, group: int | None, body: Callable[[int, Next], bool]) -> Callable[[int, Next], bool]:
        if group is None:
            return body

        def run(at: int, then: Next) -> bool:
            def ended(end: int) -> bool:
                before = self._groups.get(group)
                self._groups[group] = (at, end)
                if then(end):
                    return True
                self._groups.pop(group) if before is None else self._groups.update({group: before})
                return False

            return body(at, ended)

        return run

    def _any(self, branches: list[Callable[[int, Next], bool]]) -> Callable[[int, Next], bool]:
        def run(at: int, then: Next) -> bool:
            for branch in branches:  # noqa: SIM110 - any() would use a frame of C for each
                if branch(at, then):
                    return True
            return False

        return run

    def _run_of(self, op: object, low: int, high: int, test: Callable[[str], bool]) -> Callable[[int, Next], bool]:
        """Return the matcher of a repeated character, without a frame for each repeat."""

        def run(at: int, then: Next) -> bool:
            text, count = self._text, 0

            def fits(index: int) -> bool:
                self._count()
                return index < len(text) and test(text[index])

            if op is sre.MIN_REPEAT:
                while count < low or not then(at + count):
                    if count >= high or not fits(at + count):
                        return False
                    count += 1
                return True
            while count < high and fits(at + count):
                count += 1
            while count >= low:
                self._count()
                if then(at + count):
                    return True
                count -= 1
            return False

        return run

    def _repeat(
        self, op: object, low: int, high: int, body: Callable[[int, Next], bool]
    ) -> Callable[[int, Next], bool]:
        if op is sre.POSSESSIVE_REPEAT:
            once = self._once(body)

            def possessive(at: int, then: Next) -> bool:
                count = 0
                while count < high:
                    ends: list[int] = []
                    if not once(at, lambda end, ends=ends: bool(ends.append(end)) or True):
                        break
                    count += 1
                    if ends[0] == at:
                        count = max(count, low)
                        break
                    at = ends[0]
                return count >= low and then(at)

            return possessive

        def more(at: int, then: Next, count: int) -> bool:
            return count < high and body(at, lambda end: (end > at or count < low) and run(end, then, count + 1))

        def run(at: int, then: Next, count: int = 0) -> bool:
            self._count()
            if count < low:
                return more(at, then, count)
            if op is sre.MIN_REPEAT:
                return then(at) or more(at, then, count)
            return more(at, then, count) or then(at)

        return run

    def _once(self, body: Callable[[int, Next], bool]) -> Callable[[int, Next], bool]:
        def run(at: int, then: Next) -> bool:
            ends: list[int] = []
            return body(at, lambda end: bool(ends.append(end)) or True) and then(ends[0])

        return run

    def _look(self, body: Callable[[int, Next], bool], width: int, *, wanted: bool) -> Callable[[int, Next], bool]:
        def run(at: int, then: Next) -> bool:
            self._count()
            found = at >= width and body(at - width, lambda end: True)
            return found == wanted and then(at)

        return run

    def _reference(self, group: int) -> Callable[[int, Next], bool]:
        def run(at: int, then: Next) -> bool:
            self._count()
            begin, end = self._groups.get(group, (0, -1))
            part = self._text[begin:end] if end >= 0 else None
            return part is not None and self._text.startswith(part, at) and then(at + len(part))

        return run

    def _position(self, kind: object, flags: int) -> Callable[[int, Next], bool]:
        def word(at: int) -> bool:
            return 0 <= at < len(self._text) and (self._text[at].isalnum() or self._text[at] == "_")

        def holds(at: int) -> bool:
            text, lines = self._text, flags & re.MULTILINE
            if kind in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
                return at == 0 or bool(kind is sre.AT_BEGINNING and lines and text[at - 1] == "\n")
            if kind is sre.AT_END_STRING:
                return at == len(text)
            if kind is sre.AT_END:
                return text[at:] in ("", "\n") or bool(lines and text[at] == "\n")
            return (word(at - 1) != word(at)) == (kind is sre.AT_BOUNDARY)

        def run(at: int, then: Next) -> bool:
            self._count()
            return holds(at) and then(at)

        return run

    def _test(self, op: object, value: object, flags: int) -> Callable[[str], bool]:
        key = (id(value) if op is sre.IN else hash((op, value)), flags)
        if key not in self._known:
            self._keep.append(value)  # so that no other object gets its id
            answers: dict[str, bool] = {}
            folded = bool(flags & re.IGNORECASE)

            def test(char: str) -> bool:
                if char not in answers:
                    forms = {char, char.lower(), char.upper()} if folded else {char}
                    answers[char] = _holds(op, value, forms, flags)
                return answers[char]

            self._known[key] = test
        return self._known[key]


def _parts(op: object, value: object) -> Iterator[object]:
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        yield value[2]
    elif op is sre.SUBPATTERN:
        yield value[3]
    elif op is sre.BRANCH:
        yield from value[1]
    elif op in (sre.ASSERT, sre.ASSERT_NOT):
        yield value[1]
    elif op is sre.ATOMIC_GROUP:
        yield value


def _holds(op: object, value: object, forms: set[str], flags: int) -> bool:
    if op is sre.ANY:
        return bool(flags & re.DOTALL) or "\n" not in forms
    if op is sre.LITERAL:
        return chr(value) in forms
    if op is sre.NOT_LITERAL:
        return chr(value) not in forms
    members = [item for item in value if item[0] is not sre.NEGATE]
    inside = any(_in(item, char, flags) for item in members for char in forms if len(char) == 1)
    return inside == (len(members) == len(value))


def _in(item: tuple[object, object], char: str, flags: int) -> bool:
    op, value = item
    if op is sre.LITERAL:
        return char == chr(value)
    if op is sre.RANGE:
        return value[0] <= ord(char) <= value[1]
    name = str(value).removeprefix("CATEGORY_")
    ascii_only = bool(flags & re.ASCII) and not char.isascii()
    kinds = {"DIGIT": char.isdecimal(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}
    holds = kinds[name.removeprefix("UNI_").removeprefix("NOT_").removeprefix("UNI_")] and not ascii_only
    return holds != ("NOT_" in name)
