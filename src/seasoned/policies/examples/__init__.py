"""Examples: the best past steps for a prompt, retrieved by several keys, ranked by value, curated by their effect."""

from seasoned.policies.examples.curation import Curation
from seasoned.policies.examples.example import Example, ExampleValuation
from seasoned.policies.examples.prompt_memory import ExampleMemory
from seasoned.policies.examples.query import ExampleQuery, Purpose
from seasoned.policies.examples.rendering import render
from seasoned.policies.examples.retrieval import Examples
from seasoned.policies.examples.vector_index import VectorIndex
from seasoned.policies.examples.vector_recall import VectorRecall

__all__ = [
    "Curation",
    "Example",
    "ExampleMemory",
    "ExampleQuery",
    "ExampleValuation",
    "Examples",
    "Purpose",
    "VectorIndex",
    "VectorRecall",
    "render",
]
