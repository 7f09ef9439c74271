"""A coding assistant for the terminal that learns from its user, and from tests, builds and git."""

from typing import TYPE_CHECKING

from seasoned.lazy_names import lazy_names

if TYPE_CHECKING:
    from seasoned.chat.assistant import Assistant, ChatSettings, TurnReport
    from seasoned.chat.assistant_factory import chat_memory, open_assistant
    from seasoned.chat.change_ledger import ChangeLedger
    from seasoned.chat.chat_log import ChatLog, ChatTurn
    from seasoned.chat.chat_screen import SLASH_COMMANDS, ChatScreen, ScriptScreen, Tone, TurnInterrupt
    from seasoned.chat.permission_kinds import Permissions
    from seasoned.chat.repository import (
        Repository,
        default_memory_path,
        repository_namespace,
        repository_root,
        sessions_folder,
    )
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
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "seasoned.chat.assistant": ["Assistant", "ChatSettings", "TurnReport"],
        "seasoned.chat.assistant_factory": ["chat_memory", "open_assistant"],
        "seasoned.chat.change_ledger": ["ChangeLedger"],
        "seasoned.chat.chat_log": ["ChatLog", "ChatTurn"],
        "seasoned.chat.permission_kinds": ["Permissions"],
        "seasoned.chat.repository": [
            "Repository",
            "default_memory_path",
            "repository_namespace",
            "repository_root",
            "sessions_folder",
        ],
        "seasoned.chat.chat_screen": ["SLASH_COMMANDS", "ChatScreen", "ScriptScreen", "Tone", "TurnInterrupt"],
        "seasoned.chat.slash_commands": ["SlashCommands"],
        "seasoned.chat.terminal_text": ["EscapeFilter", "plain_text"],
        "seasoned.chat.toolbox": ["TOOLS", "ToolOutcome", "Toolbox"],
    },
)
