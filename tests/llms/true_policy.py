"""An endpoint with a known policy over the candidates: the softmax of its weights, for every reading method."""

from __future__ import annotations

import json
import math
import random
import re

from seasoned.protocols import Capabilities, Completion, TokenLogprob, Usage

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
OUTSIDE = {"The": 0.5, "Z": 1.0}  # logits of tokens that are no candidate's letter


def softmax(logits):
    top = max(logits.values())
    weights = {name: math.exp(logit - top) for name, logit in logits.items()}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


class TruePolicy:
    """Answers lettered menus by a token, bulleted ones by an action, numbered ones by confidences.

    A letter's probability is split between the token with a leading blank (0.3) and without (0.7).
    """

    def __init__(self, weights, *, biased_logprobs=False, top=20, honours_bias=True, name="true"):
        self.weights = weights
        self.biased_logprobs = biased_logprobs
        self.top = top
        self.honours_bias = honours_bias
        self.name = name
        self.requests = []
        self.vocabulary = {token: 50 + i for i, token in enumerate([*LETTERS, *(f" {x}" for x in LETTERS), "The"])}

    @property
    def policy(self):
        return softmax(self.weights)

    async def capabilities(self):
        return Capabilities(self.top > 0, self.top, self.honours_bias, self.biased_logprobs, True)

    async def token_ids(self, text):
        return (self.vocabulary[text],) if text in self.vocabulary else tuple(ord(c) for c in text)

    async def aclose(self):
        pass

    async def complete(self, request):
        self.requests.append(request)
        text = request.messages[-1].content
        rng = random.Random(request.seed)
        usage = Usage(1, 0, len(text.split()), 1, 0.0, 0.0)
        letters = dict(re.findall(r"^([A-Z])\) (.*)$", text, re.MULTILINE))
        if letters:
            return self._letter(request, letters, rng, usage)
        offered = re.findall(r"^- (.*)$", text, re.MULTILINE)
        if offered:
            names = list(offered)
            chosen = rng.choices(names, [softmax({n: self.weights[n] for n in names})[n] for n in names])[0]
            return Completion(chosen, self.name, usage, "stop")
        numbered = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))
        stated = {key: round(100 * self.policy[name]) for key, name in numbered.items()}
        return Completion(json.dumps(stated), self.name, usage, "stop")

    def _letter(self, request, letters, rng, usage):
        logits = dict(OUTSIDE)
        for letter, name in letters.items():
            logits[letter] = self.weights[name] + math.log(0.7)
            logits[f" {letter}"] = self.weights[name] + math.log(0.3)
        bias = request.logit_bias if self.honours_bias else {}
        shifted = {t: logit + bias.get(self.vocabulary.get(t, -1), 0.0) for t, logit in logits.items()}
        probs = softmax(shifted)
        token = max(probs, key=probs.get) if request.temperature == 0 else rng.choices(list(probs), probs.values())[0]
        shown = probs if self.biased_logprobs else softmax(logits)
        ranked = sorted(((t, math.log(p)) for t, p in shown.items() if p > 0), key=lambda pair: -pair[1])
        top = tuple(TokenLogprob(t, min(0.0, lp)) for t, lp in ranked[: request.top_logprobs])
        return Completion(token, self.name, usage, "length", (top,) if top else ())
