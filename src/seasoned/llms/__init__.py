"""Language models behind one protocol, and their own policy over named candidates.

Importing this loads neither the OpenAI client nor llama.cpp; making a model does.
"""

from __future__ import annotations

from seasoned.llms.cache import CachedLLM
from seasoned.llms.labels import LabelReader, label_prior, label_prompt
from seasoned.llms.local import LocalLLM, default_model_path
from seasoned.llms.openai import OpenAILLM
from seasoned.llms.opening import LLMS, open_llm
from seasoned.llms.scripted import ScriptedLLM

__all__ = [
    "LLMS",
    "CachedLLM",
    "LabelReader",
    "LocalLLM",
    "OpenAILLM",
    "ScriptedLLM",
    "default_model_path",
    "label_prior",
    "label_prompt",
    "open_llm",
]
