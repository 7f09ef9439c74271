"""Exact reading and modulated generation with `transformers` models: tiny random ones, and a trained one."""

import asyncio
import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from seasoned.errors import InputError, ModelAnswerError, ModelUnavailableError  # noqa: E402
from seasoned.llms.priors.exact import ExactReader  # noqa: E402
from seasoned.llms.priors.modulated_logits import ModulatedLogits  # noqa: E402
from seasoned.llms.providers.transformers import TransformersModel  # noqa: E402
from seasoned.llms.providers.tree_attention import score_branches, usable_layout  # noqa: E402
from seasoned.llms.wire.text_scores import TextScorer  # noqa: E402
from seasoned.protocols import Message, PriorReader, PriorReading  # noqa: E402

pytestmark = pytest.mark.transformers

ACTIONS = ["open", "open door", "open the door", "go north", "go south", "wait", "take the key from the table"]
STATE = "You are in a kitchen. There is a door, a key and a table."
TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.3}
LLAMA = {**SMALL, "intermediate_size": 64, "num_key_value_heads": 2, "max_position_embeddings": 256}


def make_tokenizer(template=TEMPLATE):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator([STATE, *ACTIONS] * 4, trainer)
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    made.chat_template = template
    return made


def make_network(kind, vocab=320):
    torch.manual_seed(0)
    if kind == "gpt2":
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=vocab, n_embd=32, n_layer=2, n_head=4, n_positions=256, initializer_range=0.3
            )
        ).eval()
    if kind == "mistral":  # a sliding window shorter than the prompt
        return transformers.MistralForCausalLM(
            transformers.MistralConfig(vocab_size=vocab, **LLAMA, sliding_window=6)
        ).eval()
    if kind == "bloom":  # positions are not an argument
        return transformers.BloomForCausalLM(
            transformers.BloomConfig(vocab_size=vocab, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.3)
        ).eval()
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=vocab, **LLAMA)).eval()


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@pytest.fixture(scope="module")
def llama(tokenizer):
    return TransformersModel(make_network("llama"), tokenizer)


@pytest.fixture(scope="module")
def smollm():
    from seasoned.errors import MissingExtraError
    from seasoned.llms.providers.local import default_model_path

    try:
        path = default_model_path()
    except MissingExtraError as error:
        pytest.skip(str(error))
    return TransformersModel(path.parent, gguf_file=path.name)


def score(model, texts=ACTIONS, state=STATE):
    return asyncio.run(model.score((Message("user", state),), texts))


def one_by_one(network, prompt_ids, sequences, ends):
    """The definition: a full forward pass for each text alone."""
    scores = []
    for ids in sequences:
        with torch.no_grad():
            logits = network(torch.tensor([[*prompt_ids, *ids]])).logits[0, len(prompt_ids) - 1 :].float()
        logprobs = torch.log_softmax(logits, -1)
        values = [logprobs[t, token].item() for t, token in enumerate(ids)]
        scores.append([*values, logprobs[len(ids), list(ends)].exp().sum().log().item()])
    return scores


@pytest.mark.parametrize("max_batch_tokens", [4096, 16, 1])
@pytest.mark.parametrize(
    ("kind", "layout"),
    [("llama", "tree"), ("llama", "rows"), ("gpt2", "tree"), ("gpt2", "rows"), ("mistral", "rows"), ("bloom", "rows")],
)
def test_scores_equal_a_full_pass_for_each_text(kind, layout, max_batch_tokens):
    network = make_network(kind)
    assert usable_layout(network) == ("tree" if kind in {"llama", "gpt2"} else "rows")
    rng = np.random.default_rng(1)
    prompt = rng.integers(3, 320, 30).tolist()
    sequences = [[5, 6, 7], [5, 6], [5, 6, 8, 9, 10], [11], [12, 6, 7], [11, 5]]
    scores = score_branches(network, prompt, sequences, [2, 4], max_batch_tokens=max_batch_tokens, layout=layout)
    expected = one_by_one(network, prompt, sequences, [2, 4])
    for values, wanted in zip(scores, expected, strict=True):
        assert values == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_close_to_float32(dtype):
    network = make_network("llama")
    sequences = [[5, 6, 7], [5, 6], [11]]
    prompt = list(range(20, 50))
    full = one_by_one(network, prompt, sequences, [2])
    half = score_branches(network.to(dtype), prompt, sequences, [2], max_batch_tokens=4096, layout="tree")
    for values, wanted in zip(half, full, strict=True):
        assert values == pytest.approx(wanted, abs=0.3)


def test_scores_of_a_trained_model_equal_a_full_pass_for_each_text(smollm):
    scores = score(smollm)
    assert smollm._layout == "tree"
    wanted = one_by_one(smollm.model, scores.prompt_ids, scores.token_ids, scores.end_token_ids)
    for text, values in zip(scores.texts, wanted, strict=True):
        assert scores.logprobs[text] == pytest.approx(sum(values), abs=1e-4 * len(values))
    rows = TransformersModel(smollm.model, smollm.tokenizer, layout="rows", max_batch_tokens=100)
    assert score(rows).logprobs == pytest.approx(scores.logprobs, abs=1e-3)
    # The tokens spell prompt and text, and nothing else.
    messages = [{"role": "user", "content": STATE}]
    prompt = smollm.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    for text, ids in zip(scores.texts, scores.token_ids, strict=True):
        assert smollm.tokenizer.decode([*scores.prompt_ids, *ids]) == prompt + text


def test_reader_normalises_the_raw_sums(llama):
    reader = ExactReader(llama)
    reading = asyncio.run(reader.read(STATE, "Cook.", ACTIONS))
    assert isinstance(reader, PriorReader) and isinstance(reading, PriorReading) and isinstance(llama, TextScorer)
    assert (reading.prior.method, reading.prior.model) == ("exact", llama.name)
    raw = np.array([reading.scores.logprobs[action] for action in ACTIONS])
    assert [reading.prior[action] for action in ACTIONS] == pytest.approx((raw - np.logaddexp.reduce(raw)).tolist())
    assert reading.scores.coverage == pytest.approx(np.exp(raw).sum())
    assert (reading.usage.calls, reading.usage.cost_usd) == (1, 0.0)


def test_without_a_menu_a_candidate_does_not_change_the_others(llama):
    reader = ExactReader(llama, menu="none")
    few = asyncio.run(reader.read(STATE, "", ACTIONS[:3])).scores.logprobs
    many = asyncio.run(reader.read(STATE, "", ACTIONS)).scores.logprobs
    assert {action: many[action] for action in few} == pytest.approx(few, abs=1e-4)


@pytest.mark.parametrize("template", [TEMPLATE, None])
def test_blanks_around_a_candidate_are_not_scored(template):
    model = TransformersModel(make_network("llama"), make_tokenizer(template))
    plain, padded = score(model, ["go north"]), score(model, ["  go north\n"])
    assert plain.token_ids == padded.token_ids
    assert plain.token_logprobs == padded.token_logprobs


# ------------------------------------------------------------------------------------------------ generation


ADVANTAGES = {"open": 0.5, "open door": -1.0, "wait": 1.5, "go south": -0.25}


def stepwise(network, processor, prompt_ids, ids, ends):
    """The logprobs of each token of a text and of its end in generation, one forward pass a token."""
    step_logprobs = []
    for t, token in enumerate([*ids, None]):
        given = torch.tensor([[*prompt_ids, *ids[:t]]])
        with torch.no_grad():
            logits = network(given).logits[:, -1].float()
        logprobs = torch.log_softmax(processor(given, logits), -1)[0]
        step_logprobs.append(
            logprobs[token].item() if token is not None else logprobs[list(ends)].exp().sum().log().item()
        )
    return step_logprobs


@pytest.mark.parametrize("ends", [[2], [2, 4]])
def test_generation_steps_multiply_to_the_restricted_policy(tokenizer, ends):
    model = TransformersModel(make_network("llama"), tokenizer, end_token_ids=ends)
    scores = score(model)
    processor = ModulatedLogits(scores, ADVANTAGES, beta=2.0)
    weights = {t: math.exp(scores.logprobs[t] + 2.0 * ADVANTAGES.get(t, 0.0)) for t in ACTIONS}
    for text, ids in zip(scores.texts, scores.token_ids, strict=True):
        steps = stepwise(model.model, processor, scores.prompt_ids, ids, ends)
        assert math.exp(sum(steps)) == pytest.approx(weights[text] / sum(weights.values()), rel=1e-5, abs=1e-12)


def test_generation_steps_multiply_to_the_open_policy(llama):
    scores = score(llama)
    processor = ModulatedLogits(scores, ADVANTAGES, beta=2.0, restricted=False)
    total = 1.0 + sum(math.exp(scores.logprobs[t]) * math.expm1(2.0 * ADVANTAGES.get(t, 0.0)) for t in ACTIONS)
    outside = [(300,), (*scores.token_ids[0], 250), (7, 7, 7)]
    for ids in (*scores.token_ids, *outside):
        text = dict(zip(scores.token_ids, scores.texts, strict=True)).get(ids)
        own = sum(one_by_one(llama.model, scores.prompt_ids, [ids], scores.end_token_ids)[0])
        shift = 2.0 * ADVANTAGES.get(text, 0.0)
        steps = stepwise(llama.model, processor, scores.prompt_ids, ids, scores.end_token_ids)
        assert sum(steps) == pytest.approx(own + shift - math.log(total), abs=1e-4)


def generate(model, scores, processor, n, **settings):
    torch.manual_seed(7)
    prompt = torch.tensor([scores.prompt_ids])
    made = model.model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        logits_processor=[processor],
        num_return_sequences=n,
        **{**processor.settings, **settings},
    )
    ends = set(scores.end_token_ids)
    return [tuple(itertools.takewhile(lambda t: t not in ends, row[prompt.shape[1] :].tolist())) for row in made]


def chi_square(counts, expected):
    return sum((counts[key] - value) ** 2 / value for key, value in expected.items())


def test_sampled_text_follows_the_restricted_policy(llama):
    scores, n = score(llama, ACTIONS[:5]), 2000
    advantages = {text: -scores.logprobs[text] + i * 0.3 for i, text in enumerate(scores.texts)}
    processor = ModulatedLogits(scores, advantages, beta=1.0)
    samples = generate(llama, scores, processor, n)
    assert set(samples) <= set(scores.token_ids)
    expected = {
        ids: n * math.exp(processor.policy.logprobs[text])
        for ids, text in zip(scores.token_ids, scores.texts, strict=True)
    }
    assert min(expected.values()) > 100
    assert (
        chi_square({ids: samples.count(ids) for ids in expected}, expected) < 18.47
    )  # 4 degrees of freedom, p = 0.001
    decoded = {llama.tokenizer.decode(list(ids)) for ids in samples}
    assert decoded == set(scores.texts)


def test_sampled_text_follows_the_open_policy(llama):
    """The advantage gives candidates about half of the mass; the rest are other texts."""
    scores, n = score(llama, ACTIONS[:4]), 1000
    advantages = {text: -scores.logprobs[text] - math.log(8) for text in scores.texts}
    processor = ModulatedLogits(scores, advantages, beta=1.0, restricted=False)
    samples = generate(llama, scores, processor, n, max_new_tokens=12)
    expected = {
        ids: n * math.exp(processor.policy.logprobs[text])
        for ids, text in zip(scores.token_ids, scores.texts, strict=True)
    }
    counts = {ids: samples.count(ids) for ids in expected}
    expected["other"], counts["other"] = n - sum(expected.values()), n - sum(counts.values())
    assert min(expected.values()) > 50
    assert chi_square(counts, expected) < 18.47


def test_beta_zero_is_the_models_own_policy(llama):
    scores = score(llama)
    given = torch.tensor([[*scores.prompt_ids, scores.token_ids[0][0]]])
    logits = torch.randn(1, 320)
    changed = ModulatedLogits(scores, ADVANTAGES, 0.0, restricted=False)(given, logits)
    assert torch.allclose(torch.log_softmax(changed, -1), torch.log_softmax(logits, -1), atol=1e-5)


# ------------------------------------------------------------------------------------------------ bad input


def test_nan_logits_are_refused(tokenizer):
    network = make_network("llama")
    with torch.no_grad():
        network.lm_head.weight[17] = math.nan
    with pytest.raises(ModelAnswerError, match="NaN"):
        score(TransformersModel(network, tokenizer, layout="tree"))
    with pytest.raises(ModelAnswerError, match="NaN"):
        score(TransformersModel(network, tokenizer, layout="rows"))


@pytest.mark.parametrize(
    ("texts", "state"),
    [
        ([], STATE),
        ([" "], STATE),
        (["go</s>"], STATE),
        (["<s>go"], STATE),
        (["go north", " go north "], STATE),
        (["go north"], "word " * 300),
        (["go north"], ""),
        ([7], STATE),
    ],
)
def test_texts_that_cannot_be_scored(llama, texts, state):
    with pytest.raises(InputError) as raised:
        score(llama, texts, state)
    assert all((raised.value.seen, raised.value.rule, raised.value.next_step))


@pytest.mark.parametrize("candidates", [[], "go", ["go", "GO"], [""], ["go", 3]])
def test_invalid_candidates_are_refused(llama, candidates):
    with pytest.raises(InputError):
        asyncio.run(ExactReader(llama).read(STATE, "", candidates))


def test_text_that_merges_with_the_prompt_is_refused(tokenizer):
    """After "...ope" the text "n" would change the prompt's last tokens."""
    glued = make_tokenizer("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    model = TransformersModel(make_network("llama"), glued)
    with pytest.raises(InputError, match="merge"):
        score(model, ["en the door"], "You op")


def test_unusable_models_are_refused(tokenizer, tmp_path):
    network = make_network("llama")
    for make in (
        lambda: TransformersModel(network),
        lambda: TransformersModel(make_network("llama").train(), tokenizer),
        lambda: TransformersModel(network, tokenizer, max_batch_tokens=0),
        lambda: TransformersModel(network, tokenizer, layout="heap"),
    ):
        with pytest.raises(InputError) as raised:
            make()
        assert all((raised.value.seen, raised.value.rule, raised.value.next_step))
    with pytest.raises(ModelUnavailableError):
        score(TransformersModel(tmp_path))
    endless = make_tokenizer()
    endless.eos_token = None
    mute = make_network("llama")
    mute.generation_config.eos_token_id = None
    with pytest.raises(InputError, match="end"):
        score(TransformersModel(mute, endless))


def test_misused_generation_is_refused(llama):
    scores = score(llama)
    processor = ModulatedLogits(scores, ADVANTAGES, 1.0)
    logits = torch.zeros(1, 320)
    with pytest.raises(InputError, match="prompt"):
        processor(torch.tensor([[1, 2, 3]]), logits)
    with pytest.raises(InputError, match="candidates"):
        processor(torch.tensor([[*scores.prompt_ids, 319, 319]]), logits)
    with pytest.raises(ModelAnswerError, match="NaN"):
        processor(torch.tensor([scores.prompt_ids]), logits * math.nan)
    finished = torch.tensor([[*scores.prompt_ids, 2, 2]])
    assert torch.equal(processor(finished, logits), logits)
