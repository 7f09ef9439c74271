"""A coding assistant for the terminal that learns from its user, and from tests, builds and git."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seasoned.chat.assistant import Assistant, ChatSettings, TurnReport
    from seasoned.chat.assistant_factory import chat_memory, open_assistant
    from seasoned.chat.change_ledger import ChangeLedger
    from seasoned.chat.chat_log import ChatLog, ChatTurn
    from seasoned.chat.permission_kinds import Permissions
    from seasoned.chat.repository import (
        Repository,
        default_memory_path,
        repository_namespace,
        repository_root,
        sessions_folder,
    )
    from seasoned.chat.screen import SLASH_COMMANDS, ChatScreen, ScriptScreen, Tone, TurnInterrupt
    from seasoned.chat.slash_commands import SlashCommands
    from seasoned.chat.terminal_text import EscapeFilter, plain_text
    from seasoned.chat.toolbox import TOOLS, Toolbox, ToolOutcome

__all__ = [
    "SLASH_COMMANDS",
    "TOOLS",
    "Assistant",
    "ChangeLedger",
    "ChatLog",
    "ChatScreen",
    "ChatSettings",
    "ChatTurn",
    "EscapeFilter",
    "Permissions",
    "Repository",
    "ScriptScreen",
    "SlashCommands",
    "Tone",
    "ToolOutcome",
    "Toolbox",
    "TurnInterrupt",
    "TurnReport",
    "chat_memory",
    "default_memory_path",
    "open_assistant",
    "plain_text",
    "repository_namespace",
    "repository_root",
    "sessions_folder",
]

# Imported when they are first used, so that the prompt comes before the memory is loaded.
_LAZY = {
    "SLASH_COMMANDS": "seasoned.chat.screen",
    "TOOLS": "seasoned.chat.toolbox",
    "Assistant": "seasoned.chat.assistant",
    "ChangeLedger": "seasoned.chat.change_ledger",
    "ChatLog": "seasoned.chat.chat_log",
    "ChatScreen": "seasoned.chat.screen",
    "ChatSettings": "seasoned.chat.assistant",
    "ChatTurn": "seasoned.chat.chat_log",
    "EscapeFilter": "seasoned.chat.terminal_text",
    "Permissions": "seasoned.chat.permission_kinds",
    "Repository": "seasoned.chat.repository",
    "ScriptScreen": "seasoned.chat.screen",
    "SlashCommands": "seasoned.chat.slash_commands",
    "Tone": "seasoned.chat.screen",
    "ToolOutcome": "seasoned.chat.toolbox",
    "Toolbox": "seasoned.chat.toolbox",
    "TurnInterrupt": "seasoned.chat.screen",
    "TurnReport": "seasoned.chat.assistant",
    "chat_memory": "seasoned.chat.assistant_factory",
    "default_memory_path": "seasoned.chat.repository",
    "open_assistant": "seasoned.chat.assistant_factory",
    "plain_text": "seasoned.chat.terminal_text",
    "repository_namespace": "seasoned.chat.repository",
    "repository_root": "seasoned.chat.repository",
    "sessions_folder": "seasoned.chat.repository",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
