"""One text for one action: what an agent does to actions at its edge, before a policy or a memory sees them.

`seasoned.types.normalize_action` stays the memory's key: it collapses blanks and folds case, whatever the text means.
These functions know the syntax, and lose nothing: what they do not understand, they leave or refuse.
"""

from seasoned.actions.call_syntax import ActionCall, canonical_call, parse_call
from seasoned.actions.equivalence import equivalent
from seasoned.actions.tool_calls import ToolAction, canonical_tool_call, parse_tool_call
from seasoned.actions.web_elements import ELEMENT_ARGUMENTS, Element, Page, describe, resolve

__all__ = [
    "ELEMENT_ARGUMENTS",
    "ActionCall",
    "Element",
    "Page",
    "ToolAction",
    "canonical_call",
    "canonical_tool_call",
    "describe",
    "equivalent",
    "parse_call",
    "parse_tool_call",
    "resolve",
]
