"""Language models behind one protocol, and their own policy over named candidates.

Importing this loads neither the OpenAI client, LiteLLM nor llama.cpp; making a model does.
"""

from __future__ import annotations

from seasoned.llms.answers import read_action
from seasoned.llms.bias import BiasChooser
from seasoned.llms.cache import CachedLLM
from seasoned.llms.choosing import READING_METHODS, AutoReader, choose_reader, reader_for
from seasoned.llms.embedding import ScriptedEmbedder
from seasoned.llms.embedding_cache import CachedEmbedder
from seasoned.llms.embedding_endpoint import EndpointEmbedder
from seasoned.llms.embedding_local import LocalEmbedder
from seasoned.llms.exact import ExactReader, ExactReading
from seasoned.llms.labels import LabelReader, label_prior, label_prompt
from seasoned.llms.litellm import LiteLLM
from seasoned.llms.local import LocalLLM, default_model_path
from seasoned.llms.local_scoring import LocalScorer
from seasoned.llms.menus import MENUS, Menu
from seasoned.llms.modulated import ModulatedLogits, TriePolicy
from seasoned.llms.openai import OpenAILLM
from seasoned.llms.opening import LLMS, SCORERS, open_llm, open_scorer
from seasoned.llms.score_cache import CachedScorer
from seasoned.llms.scores import TextScorer, TextScores
from seasoned.llms.scripted import ScriptedLLM
from seasoned.llms.transformers import TransformersModel
from seasoned.llms.trie import TokenTrie
from seasoned.llms.verbalized import VerbalizedReader, confidence_logprobs, verbalized_prompt
from seasoned.llms.votes import DEFAULT_VOTES, Votes, VotesReader, VotesReading, smoothed_logprobs, votes_prompt

__all__ = [
    "DEFAULT_VOTES",
    "LLMS",
    "MENUS",
    "READING_METHODS",
    "SCORERS",
    "AutoReader",
    "BiasChooser",
    "CachedEmbedder",
    "CachedLLM",
    "CachedScorer",
    "EndpointEmbedder",
    "ExactReader",
    "ExactReading",
    "LabelReader",
    "LiteLLM",
    "LocalEmbedder",
    "LocalLLM",
    "LocalScorer",
    "Menu",
    "ModulatedLogits",
    "OpenAILLM",
    "ScriptedEmbedder",
    "ScriptedLLM",
    "TextScorer",
    "TextScores",
    "TokenTrie",
    "TransformersModel",
    "TriePolicy",
    "VerbalizedReader",
    "Votes",
    "VotesReader",
    "VotesReading",
    "choose_reader",
    "confidence_logprobs",
    "default_model_path",
    "label_prior",
    "label_prompt",
    "open_llm",
    "open_scorer",
    "read_action",
    "reader_for",
    "smoothed_logprobs",
    "verbalized_prompt",
    "votes_prompt",
]
