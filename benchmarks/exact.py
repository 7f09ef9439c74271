"""Exact scoring of 32 candidates of 8 tokens after a prompt of 512, compared with one forward pass over as many tokens.

The pass is the minimum work of the same model: one sequence of 512 + 32 * 8 tokens, logits for the last 257, without
reading them. Scoring includes template, tokeniser, prompt, branches and logprobs. No two candidates share a first
token, so that no token is saved. Both alternate; the ratio is taken pair by pair.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys

import numpy as np
import torch
from workload import timed_s, write_result

from seasoned.llms.providers.local import default_model_path
from seasoned.llms.providers.transformers import TransformersModel
from seasoned.llms.providers.tree_attention import score_branches
from seasoned.protocols import Message

CANDIDATES, TOKENS, PROMPT_TOKENS = 32, 8, 512
TEXT = (
    "the red key door table open take drop north south east west kitchen garden box lamp book old small large green "
    "blue bread knife water stone wood iron glass road river bridge house room wall window light dark cold warm left"
)
WORDS = TEXT.split()


def make_prompt(model: TransformersModel, rng: np.random.Generator) -> tuple[Message, ...]:
    """A user's message that makes a prompt of exactly `PROMPT_TOKENS` tokens."""
    said = ["You see"]
    while (n := len(model.prompt_ids([Message("user", " ".join(said))]))) < PROMPT_TOKENS:
        said += [str(word) for word in rng.choice(WORDS, size=max(1, (PROMPT_TOKENS - n) // 2))]
    if n != PROMPT_TOKENS:
        sys.exit(f"a prompt of {n} tokens, not {PROMPT_TOKENS}")
    return (Message("user", " ".join(said)),)


def make_texts(model: TransformersModel, rng: np.random.Generator) -> list[str]:
    """Texts of exactly `TOKENS` tokens, each with another first word."""
    texts = []
    for first in rng.permutation(WORDS)[:CANDIDATES]:
        words = [str(first)]
        while (n := len(model.tokenizer(" ".join(words), add_special_tokens=False)["input_ids"])) < TOKENS:
            words.append(str(rng.choice(WORDS)))
        if n != TOKENS:
            sys.exit(f"{words} has {n} tokens, not {TOKENS}")
        texts.append(" ".join(words))
    return texts


def summary(values: list[float]) -> dict[str, float]:
    return {"n": len(values), "median": statistics.median(values), "min": min(values), "max": max(values)}


def measure(options: argparse.Namespace) -> dict[str, object]:
    torch.set_num_threads(options.threads)
    path = default_model_path()
    model = TransformersModel(path.parent, gguf_file=path.name)
    rng = np.random.default_rng(options.seed)
    messages, texts = make_prompt(model, rng), make_texts(model, rng)
    scores = asyncio.run(model.score(messages, texts))  # loads, and finds the layout
    lengths = {len(ids) for ids in scores.token_ids}
    firsts = {ids[0] for ids in scores.token_ids}
    if (len(scores.prompt_ids), lengths, len(firsts)) != (PROMPT_TOKENS, {TOKENS}, CANDIDATES):
        sys.exit(f"{len(scores.prompt_ids)} tokens, candidates of {lengths}, {len(firsts)} beginnings")
    line = torch.tensor([[*scores.prompt_ids, *(token for ids in scores.token_ids for token in ids)]])

    def forward() -> None:
        with torch.inference_mode():
            model.model(line, use_cache=False, logits_to_keep=CANDIDATES * TOKENS + 1)

    def one_pass() -> None:
        asyncio.run(asyncio.to_thread(forward))  # on a thread, as scoring is: threads differ in how they share cores

    def rows() -> None:
        score_branches(
            model.model,
            scores.prompt_ids,
            scores.token_ids,
            scores.end_token_ids,
            max_batch_tokens=65536,
            layout="rows",
        )

    one_pass()
    passes, ours = [], []
    for pair in range(options.n):
        steps = [(passes, one_pass), (ours, lambda: asyncio.run(model.score(messages, texts)))]
        for times, call in steps if pair % 2 else reversed(steps):
            times.append(timed_s(call)[0])
    ratios = [a / b for a, b in zip(ours, passes, strict=True)]
    others: dict[str, list[float]] = {}
    if options.others:
        others = {
            "rows instead of a tree, s": [timed_s(rows)[0]],
            "a full pass for each candidate, s": [timed_s(separate, model, scores)[0]],
        }
    print(f"{'':<44}{'n':>4}{'median':>10}{'min':>10}{'max':>10}")
    table = {"one forward pass, s": passes, "exact scoring, s": ours, "ratio": ratios, **others}
    for name, values in table.items():
        figures = summary(values)
        print(f"{name:<44}{figures['n']:>4}{figures['median']:>10.3f}{figures['min']:>10.3f}{figures['max']:>10.3f}")
    return {
        "model": model.name.rpartition("/")[2],
        "layout": "tree",
        "threads": options.threads,
        "dtype": str(model.model.dtype),
        "torch": torch.__version__,
        "prompt_tokens": PROMPT_TOKENS,
        "candidates": CANDIDATES,
        "tokens_per_candidate": TOKENS,
        "ratios": ratios,
        **{name: summary(values) for name, values in table.items()},
    }


def separate(model: TransformersModel, scores: object) -> None:
    """Score each candidate by a pass of its own, and stop where a logprob differs by more than 1e-3 nats."""
    for ids, ours in zip(scores.token_ids, scores.token_logprobs, strict=True):
        with torch.inference_mode():
            logits = model.model(torch.tensor([[*scores.prompt_ids, *ids]]), logits_to_keep=TOKENS + 1).logits[0]
        logprobs = logits.float().log_softmax(-1)
        values = [logprobs[t, token].item() for t, token in enumerate([*ids, *scores.end_token_ids])]
        if not np.allclose(values, ours, atol=1e-3):
            sys.exit(f"{ids}: {ours} and {values}")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--n", type=int, default=15, help="pairs")
    parser.add_argument("--threads", type=int, default=1, help="more wait for each other where cores are shared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--others", action="store_true", help="also time padded rows, and a pass for each candidate")
    options = parser.parse_args()
    write_result(
        "exact",
        {"command": " ".join(["python benchmarks/exact.py", *sys.argv[1:]]), "seed": options.seed, **measure(options)},
    )


if __name__ == "__main__":
    main()
