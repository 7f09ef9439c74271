"""Language models behind one protocol, and readers of a model's own policy over named candidates.

Importing this package loads neither the OpenAI client, LiteLLM nor llama.cpp; opening a model does.
"""

from typing import TYPE_CHECKING

from seasoned.lazy_names import lazy_names

if TYPE_CHECKING:
    from seasoned.llms.cache.completion_cache import CachedLLM
    from seasoned.llms.cache.score_cache import CachedScorer
    from seasoned.llms.cache.vector_cache import CachedEmbedder
    from seasoned.llms.embeddings.batched_embedder import ScriptedEmbedder
    from seasoned.llms.embeddings.endpoint_embedder import EndpointEmbedder
    from seasoned.llms.embeddings.local_embedder import LocalEmbedder
    from seasoned.llms.priors.decision_reader import DecisionReader
    from seasoned.llms.priors.exact import ExactReader, ExactReading
    from seasoned.llms.priors.labels import LabelReader, label_prior, label_prompt
    from seasoned.llms.priors.logit_bias import BiasChooser
    from seasoned.llms.priors.modulated_logits import ModulatedLogits, TriePolicy
    from seasoned.llms.priors.reader_selection import READING_METHODS, AutoReader, choose_reader, reader_for
    from seasoned.llms.priors.verbalized import VerbalizedReader, confidence_logprobs, verbalized_prompt
    from seasoned.llms.priors.votes import (
        DEFAULT_VOTES,
        Votes,
        VotesReader,
        VotesReading,
        smoothed_logprobs,
        votes_prompt,
    )
    from seasoned.llms.providers.anthropic import AnthropicLLM
    from seasoned.llms.providers.litellm import LiteLLM
    from seasoned.llms.providers.local import LocalLLM, default_model_path
    from seasoned.llms.providers.local_scorer import LocalScorer
    from seasoned.llms.providers.openai import OpenAILLM
    from seasoned.llms.providers.scripted import ScriptedLLM
    from seasoned.llms.providers.transformers import TransformersModel
    from seasoned.llms.registry import LLM_SPECIFICATIONS, LLMS, SCORER_SPECIFICATIONS, SCORERS, open_llm, open_scorer
    from seasoned.llms.wire.action_parser import read_action
    from seasoned.llms.wire.candidate_menu import MENUS, Menu
    from seasoned.llms.wire.decision_server import DecisionAnswers, DecisionProbe, DecisionServer
    from seasoned.llms.wire.decision_types import TypedAnswer, TypedQuestion
    from seasoned.llms.wire.text_scores import TextScorer, TextScores
    from seasoned.llms.wire.token_trie import TokenTrie

__all__ = [
    "DEFAULT_VOTES",
    "LLMS",
    "LLM_SPECIFICATIONS",
    "MENUS",
    "READING_METHODS",
    "SCORERS",
    "SCORER_SPECIFICATIONS",
    "AnthropicLLM",
    "AutoReader",
    "BiasChooser",
    "CachedEmbedder",
    "CachedLLM",
    "CachedScorer",
    "DecisionAnswers",
    "DecisionProbe",
    "DecisionReader",
    "DecisionServer",
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
    "TypedAnswer",
    "TypedQuestion",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "seasoned.llms.cache.completion_cache": ["CachedLLM"],
        "seasoned.llms.cache.score_cache": ["CachedScorer"],
        "seasoned.llms.cache.vector_cache": ["CachedEmbedder"],
        "seasoned.llms.embeddings.batched_embedder": ["ScriptedEmbedder"],
        "seasoned.llms.embeddings.endpoint_embedder": ["EndpointEmbedder"],
        "seasoned.llms.embeddings.local_embedder": ["LocalEmbedder"],
        "seasoned.llms.priors.decision_reader": ["DecisionReader"],
        "seasoned.llms.priors.exact": ["ExactReader", "ExactReading"],
        "seasoned.llms.priors.labels": ["LabelReader", "label_prior", "label_prompt"],
        "seasoned.llms.priors.logit_bias": ["BiasChooser"],
        "seasoned.llms.priors.modulated_logits": ["ModulatedLogits", "TriePolicy"],
        "seasoned.llms.priors.reader_selection": ["READING_METHODS", "AutoReader", "choose_reader", "reader_for"],
        "seasoned.llms.priors.verbalized": ["VerbalizedReader", "confidence_logprobs", "verbalized_prompt"],
        "seasoned.llms.priors.votes": [
            "DEFAULT_VOTES",
            "Votes",
            "VotesReader",
            "VotesReading",
            "smoothed_logprobs",
            "votes_prompt",
        ],
        "seasoned.llms.providers.anthropic": ["AnthropicLLM"],
        "seasoned.llms.providers.litellm": ["LiteLLM"],
        "seasoned.llms.providers.local": ["LocalLLM", "default_model_path"],
        "seasoned.llms.providers.local_scorer": ["LocalScorer"],
        "seasoned.llms.providers.openai": ["OpenAILLM"],
        "seasoned.llms.providers.scripted": ["ScriptedLLM"],
        "seasoned.llms.providers.transformers": ["TransformersModel"],
        "seasoned.llms.registry": [
            "LLM_SPECIFICATIONS",
            "LLMS",
            "SCORER_SPECIFICATIONS",
            "SCORERS",
            "open_llm",
            "open_scorer",
        ],
        "seasoned.llms.wire.action_parser": ["read_action"],
        "seasoned.llms.wire.candidate_menu": ["MENUS", "Menu"],
        "seasoned.llms.wire.decision_server": ["DecisionAnswers", "DecisionProbe", "DecisionServer"],
        "seasoned.llms.wire.decision_types": ["TypedAnswer", "TypedQuestion"],
        "seasoned.llms.wire.text_scores": ["TextScorer", "TextScores"],
        "seasoned.llms.wire.token_trie": ["TokenTrie"],
    },
)
