"""Tree attention: the logprobs of every branch of a token trie after one prompt, evaluated once (PyTorch).

The prompt is evaluated alone, in pieces. Then, if the model supports it, the branches form one sequence: each node
attends to the prompt and its own ancestors, by an attention mask, at its position in its text. A shared prefix is
computed once, and the prompt's cache of keys and values is not copied. (Speculative decoding verifies its drafts in
this way: X. Miao et al., SpecInfer, arXiv 2305.09781, "tree attention".) Other models (with sliding windows, recurrent
layers, or without position ids as input) get one padded row a text, over copies of the cache.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from seasoned.errors import InputError, ModelAnswerError
from seasoned.llms.wire.token_trie import END, TokenTrie
from seasoned.registry import load_extra

__all__ = ["Layout", "score_branches", "usable_layout"]

Layout = Literal["tree", "rows"]
"""The layout of branches: one sequence with a mask, or one padded row each."""

_ATTENTION_WITH_MASKS = ("eager", "sdpa")
_TRIED = ([[3, 4, 5], [3, 4, 6, 7], [3], [8, 3]], [1, 2, 3, 4, 5, 6, 7])


def score_branches(
    model: Any,
    prompt_ids: Sequence[int],
    sequences: Sequence[Sequence[int]],
    end_token_ids: Sequence[int],
    *,
    max_batch_tokens: int,
    layout: Layout,
) -> list[list[float]]:
    """Return, for each sequence, the logprob (nats) of each of its tokens and of its end.

    Args:
        model: a `transformers` causal language model, in evaluation mode.
        prompt_ids: at least one token.
        sequences: token ids, all different, none empty.
        end_token_ids: the tokens that end a text; their probabilities are summed.
        max_batch_tokens: the largest number of new tokens a forward pass; rows count with their prompt. One sequence is
            never divided, so a longer one exceeds the limit.
        layout: see `usable_layout`.

    Raises:
        InputError: the sequences are not a trie.
        ModelAnswerError: the model's logits are NaN or infinite.
    """
    torch = load_extra("torch", "transformers")
    logprobs: list[list[float]] = [[] for _ in sequences]
    with torch.inference_mode():
        last, cache = _prefill(torch, model, prompt_ids, max_batch_tokens)
        n_repeated = 0 if layout == "tree" else len(prompt_ids)
        groups = list(_groups(sequences, max_batch_tokens, layout, n_repeated))
        for group in groups:
            # The last group may change the prompt's cache; the others get a copy.
            group_cache = cache if group is groups[-1] else copy.deepcopy(cache)
            trie = TokenTrie([sequences[position] for position in group])
            branch = _tree if layout == "tree" else _rows
            for position, values in zip(
                group, branch(torch, model, trie, len(prompt_ids), last, group_cache, end_token_ids), strict=True
            ):
                logprobs[position] = values
    return logprobs


def usable_layout(model: Any) -> Layout:
    """Return `tree` if the model supports it: by its configuration, and by a comparison with `rows` on a tiny case."""
    torch = load_extra("torch", "transformers")
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if (
        kinds != {"full_attention"}
        or getattr(config, "sliding_window", None)
        or getattr(model.config, "_attn_implementation", None) not in _ATTENTION_WITH_MASKS
        or not _accepts(model, "position_ids")
    ):
        return "rows"
    sequences, prompt = _TRIED
    highest = config.vocab_size - 1
    prompt = [min(token, highest) for token in prompt]
    tree, rows = (
        score_branches(model, prompt, sequences, [0], max_batch_tokens=4096, layout=layout)
        for layout in ("tree", "rows")
    )
    difference = max(
        abs(a - b) for left, right in zip(tree, rows, strict=True) for a, b in zip(left, right, strict=True)
    )
    # A generous rounding error: 1e-4 nats in float32, 0.25 nats in bfloat16. A wrong mask is far outside.
    return "tree" if difference <= max(1e-4, 32 * torch.finfo(model.dtype).eps) else "rows"


def _accepts(model: Any, name: str) -> bool:
    return name in inspect.signature(model.forward).parameters


def _prefill(torch: Any, model: Any, prompt_ids: Sequence[int], max_batch_tokens: int) -> tuple[Any, Any]:
    """Return the logits after the prompt, shape (vocabulary,), and its cache."""
    ids = torch.tensor([list(prompt_ids)], device=model.device)
    last_only = {"logits_to_keep": 1} if _accepts(model, "logits_to_keep") else {}
    cache = None
    for begin in range(0, len(prompt_ids), max_batch_tokens):
        answer = model(ids[:, begin : begin + max_batch_tokens], past_key_values=cache, use_cache=True, **last_only)
        cache = getattr(answer, "past_key_values", None)
    if cache is None:
        raise InputError(
            f"{type(model).__name__} after {len(prompt_ids)} tokens",
            "a prompt has a token, and the model returns past_key_values",
            "Use a model with an attention cache.",
        )
    return answer.logits[0, -1], cache


def _groups(
    sequences: Sequence[Sequence[int]], max_batch_tokens: int, layout: Layout, n_repeated: int
) -> Iterator[list[int]]:
    """Yield positions of sequences, neighbours in the trie together, in batches within the bound."""
    group: list[int] = []
    size = longest = 0
    previous: Sequence[int] = ()
    for position in sorted(range(len(sequences)), key=lambda p: list(sequences[p])):
        sequence = sequences[position]
        if layout == "tree":
            grown = size + len(sequence) - _n_shared(previous, sequence)
        else:
            longest = max(longest, len(sequence))
            grown = (len(group) + 1) * (n_repeated + longest)
        if group and grown > max_batch_tokens:
            yield group
            group, longest = [], len(sequence)
            grown = longest + n_repeated
        group.append(position)
        size, previous = grown, sequence
    yield group


def _n_shared(left: Sequence[int], right: Sequence[int]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _tree(
    torch: Any, model: Any, trie: TokenTrie, n_prompt: int, last: Any, cache: Any, ends: Sequence[int]
) -> list[list[float]]:
    inner = np.flatnonzero(trie.tokens != END)
    column = np.full(len(trie), -1)
    column[inner] = np.arange(len(inner))
    attends = np.eye(len(inner), dtype=bool)
    for index, node in enumerate(inner):
        if trie.parents[node] > 0:
            attends[index] |= attends[column[trie.parents[node]]]
    visible = torch.from_numpy(np.concatenate([np.ones((len(inner), n_prompt), dtype=bool), attends], axis=1))
    mask = torch.zeros(visible.shape, dtype=model.dtype).masked_fill(~visible, torch.finfo(model.dtype).min)
    answer = model(
        torch.from_numpy(trie.tokens[inner])[None].to(model.device),
        attention_mask=mask[None, None].to(model.device),
        position_ids=torch.from_numpy(n_prompt + trie.depths[inner] - 1)[None].to(model.device),
        past_key_values=cache,
        use_cache=True,
    )
    logits = torch.cat([last[None], answer.logits[0]])
    rows = [column[trie.parents[trie.path(i)]] + 1 for i in range(len(trie.leaves))]
    targets = [trie.tokens[trie.path(i)] for i in range(len(trie.leaves))]
    return _gathered(torch, logits, rows, targets, ends)


def _rows(
    torch: Any, model: Any, trie: TokenTrie, n_prompt: int, last: Any, cache: Any, ends: Sequence[int]
) -> list[list[float]]:
    targets = [trie.tokens[trie.path(i)] for i in range(len(trie.leaves))]
    longest = max(len(target) for target in targets) - 1
    ids = np.zeros((len(targets), longest), dtype=np.int64)
    mask = np.ones((len(targets), n_prompt + longest), dtype=np.int64)
    for row, target in enumerate(targets):
        ids[row, : len(target) - 1] = target[:-1]
        mask[row, n_prompt + len(target) - 1 :] = 0
    cache.batch_repeat_interleave(len(targets))
    positions = torch.arange(n_prompt, n_prompt + longest, device=model.device)[None].expand(len(targets), -1)
    answer = model(
        torch.from_numpy(ids).to(model.device),
        attention_mask=torch.from_numpy(mask).to(model.device),
        past_key_values=cache,
        use_cache=True,
        **({"position_ids": positions} if _accepts(model, "position_ids") else {}),
    )
    logits = torch.cat([last[None], answer.logits.flatten(0, 1)])
    rows = [np.array([0, *(1 + row * longest + np.arange(len(t) - 1))]) for row, t in enumerate(targets)]
    return _gathered(torch, logits, rows, targets, ends)


def _gathered(
    torch: Any, logits: Any, rows: Sequence[Any], targets: Sequence[Any], ends: Sequence[int]
) -> list[list[float]]:
    """Return the logprob of each target in its row of logits; `END` is any of the end tokens."""
    row, target = np.concatenate(rows), np.concatenate(targets)
    used, at = np.unique(row, return_inverse=True)  # padding is dropped: its logits may be NaN
    logits = logits[torch.from_numpy(used).to(logits.device)].float()
    totals = logits.logsumexp(-1)
    if not bool(totals.isfinite().all()):
        raise ModelAnswerError(
            "logits with NaN or infinity",
            "a logit is a number below infinity",
            "Check the weights and the number format.",
        )
    index = torch.from_numpy(at).to(logits.device)
    tokens = torch.from_numpy(np.where(target == END, ends[0], target)).to(logits.device)
    single = logits[index, tokens]
    ended = logits[:, list(ends)].logsumexp(-1)[index]
    is_end = torch.from_numpy(target == END).to(logits.device)
    values = (torch.where(is_end, ended, single) - totals[index]).clamp(max=0.0).double().cpu().numpy()
    cuts = np.cumsum([len(part) for part in targets])[:-1]
    return [part.tolist() for part in np.split(values, cuts)]
