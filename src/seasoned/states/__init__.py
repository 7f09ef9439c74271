"""Text to feature set: deterministic, local, no model call."""

from typing import TYPE_CHECKING

from seasoned.lazy_names import lazy_names

if TYPE_CHECKING:
    from seasoned.states.buckets import Buckets
    from seasoned.states.encoder_identity import encoder_from_identity
    from seasoned.states.fields import Field, FieldValue, Nouns, PatternMatch, RecentVerbs
    from seasoned.states.masks import ALL_MASKS, HASHES, NUMBERS, TIMESTAMPS, TOKENS, UUIDS, Mask, apply_masks
    from seasoned.states.recent_actions import split_recent, with_recent_actions
    from seasoned.states.redaction import REDACTION_RULES, Redactor, redact_episode
    from seasoned.states.subwords import SubwordEncoder
    from seasoned.states.templates import Template, TemplateEncoder
    from seasoned.states.tokens import TokenEncoder
    from seasoned.states.transcript.conversation_states import (
        AgentTurn,
        ConversationStates,
        conversation_items,
        conversation_state,
        conversation_task,
        turn_actions,
    )
    from seasoned.states.transcript.transcript_encoder import TranscriptEncoder
    from seasoned.states.transcript.transcript_text import InputMessage, Transcript, parse_transcript
    from seasoned.states.urls import UrlRules, normalize_url

__all__ = [
    "ALL_MASKS",
    "HASHES",
    "NUMBERS",
    "REDACTION_RULES",
    "TIMESTAMPS",
    "TOKENS",
    "UUIDS",
    "AgentTurn",
    "Buckets",
    "ConversationStates",
    "Field",
    "FieldValue",
    "InputMessage",
    "Mask",
    "Nouns",
    "PatternMatch",
    "RecentVerbs",
    "Redactor",
    "SubwordEncoder",
    "Template",
    "TemplateEncoder",
    "TokenEncoder",
    "Transcript",
    "TranscriptEncoder",
    "UrlRules",
    "apply_masks",
    "conversation_items",
    "conversation_state",
    "conversation_task",
    "encoder_from_identity",
    "normalize_url",
    "parse_transcript",
    "redact_episode",
    "split_recent",
    "turn_actions",
    "with_recent_actions",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "seasoned.states.buckets": ["Buckets"],
        "seasoned.states.encoder_identity": ["encoder_from_identity"],
        "seasoned.states.fields": ["Field", "FieldValue", "Nouns", "PatternMatch", "RecentVerbs"],
        "seasoned.states.masks": [
            "ALL_MASKS",
            "HASHES",
            "Mask",
            "NUMBERS",
            "TIMESTAMPS",
            "TOKENS",
            "UUIDS",
            "apply_masks",
        ],
        "seasoned.states.recent_actions": ["split_recent", "with_recent_actions"],
        "seasoned.states.redaction": ["REDACTION_RULES", "Redactor", "redact_episode"],
        "seasoned.states.subwords": ["SubwordEncoder"],
        "seasoned.states.templates": ["Template", "TemplateEncoder"],
        "seasoned.states.tokens": ["TokenEncoder"],
        "seasoned.states.transcript.conversation_states": [
            "AgentTurn",
            "ConversationStates",
            "conversation_items",
            "conversation_state",
            "conversation_task",
            "turn_actions",
        ],
        "seasoned.states.transcript.transcript_encoder": ["TranscriptEncoder"],
        "seasoned.states.transcript.transcript_text": ["InputMessage", "Transcript", "parse_transcript"],
        "seasoned.states.urls": ["UrlRules", "normalize_url"],
    },
)
