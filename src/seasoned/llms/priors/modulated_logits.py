"""The modulated policy over whole texts c, `p'(c) ∝ p(c) * exp(beta * A(c))`, as next-token logits.

Advantages belong to whole texts; a model draws one token at a time. Let m be a node of the trie of candidate tokens,
`p(m)` the probability that the model's text begins with m, `c >= m` the candidates that do. With the exact `p(c)` of
`TextScores`, the distribution of the next token x follows from the mass below each child.

*Restricted* to the candidates:

    M(m) = sum_{c >= m} p(c) exp(beta A(c)),        p'(x | m) = M(mx) / M(m).

*Open*, where all other texts keep their probabilities relative to each other (their advantage is 0):

    R(m) = 1 + sum_{c >= m} (p(c) / p(m)) (exp(beta A(c)) - 1),        p'(x | m) = p(x | m) R(mx) / R(m),

with R = 1 off the trie. Both telescope along a text: to `M(c) / M(root)`, and to `p(c) exp(beta A(c)) / R(root)` for a
candidate, `p(y) / R(root)` for any other text y. The open form is a conditional distribution since
`sum_x p(x | m) R(mx) = R(m)`: the mass below m is that of its children (Doob's h-transform with h = R; J. L. Doob 1957,
Bulletin de la Societe Mathematique de France 85). Adding `beta * A` to the logits of each token of a candidate instead
would multiply its advantage by its length, and give it to other texts with the same prefix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seasoned.checks import check_number
from seasoned.core import check_beta, log_softmax
from seasoned.errors import InputError, ModelAnswerError, excerpt
from seasoned.llms.wire.text_scores import TextScores
from seasoned.llms.wire.token_trie import END, TokenTrie

__all__ = ["ModulatedLogits", "TriePolicy"]

_SLACK = 1e-3


class TriePolicy:
    """The modulated policy over whole texts, as next-token distributions on their trie.

    Args:
        scores: the candidates' tokens and exact logprobs.
        advantages: advantages by text; a missing one is 0.
        beta: nats per unit of advantage, >= 0.
        restricted: True: only candidates can be sampled. False: other texts keep their relative probabilities.

    Attributes:
        trie: the candidates' tokens.
        logprobs: `log p'(c)` of each text; normalised over the candidates if restricted, over all texts if not.

    Raises:
        InputError: there are no scores, an advantage is not finite or has no text, beta is negative, or logprobs
            contradict each other.

    Example:
        >>> from seasoned.protocols import Usage
        >>> ids, logprobs = ((5, 7), (5,)), ((-0.5, -0.2, -0.1), (-0.5, -1.0))
        >>> scores = TextScores("m", ("open door", "open"), ids, logprobs, (1,), (0,), Usage())
        >>> policy = TriePolicy(scores, {"open": 1.0}, beta=1.0)
        >>> {token: round(math.exp(logprob), 3) for token, logprob in policy.step(1).items()}
        {7: 0.426, -1: 0.574}
    """

    def __init__(
        self, scores: TextScores, advantages: Mapping[str, float], beta: float, *, restricted: bool = True
    ) -> None:
        if not isinstance(scores, TextScores) or not isinstance(advantages, Mapping):
            raise InputError(
                f"scores = {excerpt(scores)}, advantages = {excerpt(advantages)}",
                "scores are TextScores, and advantages map texts to numbers",
                "Take scores from ExactReader.read(...).scores, and {} for no advantage.",
            )
        if unknown := sorted(set(advantages) - set(scores.texts), key=str):
            raise InputError(
                f"advantages of {excerpt(unknown)}", "advantages belong to scored texts", "Score these texts as well."
            )
        shift = np.array([check_number(f"advantage of {text!r}", advantages.get(text, 0.0)) for text in scores.texts])
        with np.errstate(over="ignore"):  # refused below
            shift = check_beta(beta) * shift
        own = np.array([scores.logprobs[text] for text in scores.texts])
        if not np.isfinite(shift).all():
            raise InputError(f"beta * advantages = {shift}", "a shift is finite", "Rescale the advantages.")
        self.trie = TokenTrie(scores.token_ids)
        self.restricted = restricted
        if restricted:
            self._levels = self.trie.log_masses(own + shift - shift.max())
            log_probs = log_softmax(own + shift - shift.max())
        else:
            self._levels = _log_gains(self.trie, scores, own, shift)
            log_probs = own + shift - self._levels[0]
        self.logprobs: Mapping[str, float] = dict(zip(scores.texts, log_probs.tolist(), strict=True))

    def step(self, node: int) -> Mapping[int, float]:
        """Return a value (nats) for each token below `node`, including `END` if a text may end there.

        Restricted: the token's logprob, `log M(mx) - log M(m)`. Open: the addition to the model's own logit,
        `log R(mx)`; a softmax then divides by R(m).
        """
        base = self._levels[node] if self.restricted else 0.0
        return {token: float(self._levels[below] - base) for token, below in self.trie.children(node).items()}


def _log_gains(
    trie: TokenTrie, scores: TextScores, own: npt.NDArray[np.float64], shift: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return `log R` of every node: the log of (mass of other texts + the tilted shares of the candidates below)."""
    prefix = np.zeros(len(trie))
    for position, values in enumerate(scores.token_logprobs):
        prefix[trie.path(position)] = np.cumsum(values)
    shares = trie.log_masses(own) - prefix  # log of sum_{c >= m} p(c) / p(m)
    if shares.max() > _SLACK:
        raise InputError(
            f"continuations of one prefix with a total probability of {math.exp(shares.max()):.6g}",
            "probabilities add up to at most 1",
            "Score all texts after one prompt, in one call.",
        )
    with np.errstate(divide="ignore"):
        rest = np.log(-np.expm1(np.minimum(shares, 0.0)))
    rest[trie.leaves] = -np.inf  # a finished text has no other continuation
    gains: npt.NDArray[np.float64] = np.logaddexp(rest, trie.log_masses(own + shift) - prefix)
    return gains


class ModulatedLogits:
    """A logits processor for `model.generate(..., logits_processor=[ModulatedLogits(...)], **processor.settings)`.

    Sampled texts follow `TriePolicy` exactly, at temperature 1, without truncation, after the prompt of `scores`;
    `settings` sets this in `generate`. The processor has no state between calls, so it serves any number of sequences
    of that prompt.

    Args:
        scores: the candidates' tokens and exact logprobs, from `ExactReader` or a `TextScorer`.
        advantages, beta, restricted: as for `TriePolicy`.

    Raises:
        InputError: as for `TriePolicy`.
    """

    def __init__(
        self, scores: TextScores, advantages: Mapping[str, float], beta: float, *, restricted: bool = True
    ) -> None:
        self.policy = TriePolicy(scores, advantages, beta, restricted=restricted)
        self._prompt_ids = list(scores.prompt_ids)
        self._ends = list(scores.end_token_ids)
        self._longest = max(len(ids) for ids in scores.token_ids)

    @property
    def settings(self) -> dict[str, Any]:
        """The required arguments of `generate`; without a length if other texts may be sampled."""
        sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "num_beams": 1}
        ends = {"eos_token_id": self._ends, "pad_token_id": self._ends[0]}
        return {**sampling, **ends, **({"max_new_tokens": self._longest + 1} if self.policy.restricted else {})}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the logits of the next token, shape (sequences, vocabulary).

        Raises:
            InputError: a sequence does not begin with the prompt, or is restricted and no prefix of a candidate.
            ModelAnswerError: the model's logits are NaN.
        """
        if bool(scores.isnan().any()):
            raise ModelAnswerError("logits with NaN", "a logit is a number", "Check the weights and the number format.")
        changed = scores.clone()
        for row, sequence in enumerate(input_ids.tolist()):
            if sequence[: len(self._prompt_ids)] != self._prompt_ids:
                raise InputError(
                    f"a sequence that begins with {excerpt(sequence[:8])}",
                    "it begins with the prompt of the scores, without padding",
                    "Generate from scores.prompt_ids.",
                )
            self._change(changed[row], sequence[len(self._prompt_ids) :])
        return changed

    def _change(self, logits: Any, written: Sequence[int]) -> None:
        if any(token in self._ends for token in written):
            return  # a finished sequence: the rest is padding
        node = self.policy.trie.walk(written)
        if node is None:
            if self.policy.restricted:
                raise InputError(
                    f"a sequence that goes on with {excerpt(list(written))}",
                    "in restricted mode only candidates are sampled",
                    "Pass `settings` to generate, and no other processor after this one.",
                )
            return
        values = dict(self.policy.step(node))
        end = values.pop(END, None)
        tokens = list(values)
        if not self.policy.restricted:
            logits[tokens] += logits.new_tensor(list(values.values()))
            if end is not None:
                logits[self._ends] += end
            return
        ends = logits[self._ends].log_softmax(-1)  # the model's own shares among the tokens that end a text
        logits.fill_(-math.inf)
        logits[tokens] = logits.new_tensor(list(values.values()))
        if end is not None:
            logits[self._ends] = ends + end
