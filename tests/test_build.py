"""Objects from specifications, and refused specifications."""

from __future__ import annotations

import asyncio

import pytest

from seasoned import Episode, JitRL, Memory, Step
from seasoned.agents import UniformReader
from seasoned.build import ALONE, close_reader, make_policy, make_reader, open_env, open_memory
from seasoned.errors import (
    ConfigError,
    EncoderMismatchError,
    InputError,
    MissingExtraError,
    NotFoundError,
    ReadOnlyStoreError,
    SeasonedError,
    UnknownNameError,
)
from seasoned.llms import AutoReader, CachedScorer, LabelReader, VerbalizedReader, VotesReader
from seasoned.llms.priors.exact import ExactReader
from seasoned.policies import PRESETS, ModelAlone
from seasoned.protocols import PriorReader
from seasoned.states import NUMBERS, TokenEncoder
from seasoned.testing import check_environment, check_policy


def refused(error, advice, call):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.seen and caught.value.rule
    assert advice in caught.value.next_step or advice in caught.value.rule


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        yield opened


# ------------------------------------------------------------------------------------------ policies


@pytest.mark.parametrize("name", [ALONE, *PRESETS])
def test_named_policies_pass_the_policy_checker(memory, name):
    for n in range(6):
        memory.add(Episode("t", [Step("page:cart total:12", ["click(checkout)", "click(back)"][n % 2], float(n % 2))]))
    policy = make_policy(name, memory)
    assert policy.name == name
    check_policy(policy)


def test_preset_is_built_with_its_settings_and_overrides(memory):
    policy = make_policy("seed", memory, beta=2.5, exploration=None)
    assert isinstance(policy, JitRL) and policy.name == "seed+"
    assert (policy.settings.beta, policy.settings.exploration, policy.settings.k) == (2.5, None, PRESETS["seed"].k)
    assert make_policy("default", memory).settings == PRESETS["default"]
    assert isinstance(make_policy(ALONE, None), ModelAlone)


def test_invalid_policies_are_refused(memory):
    refused(UnknownNameError, "'default'", lambda: make_policy("defualt", memory))
    refused(UnknownNameError, "'base'", lambda: make_policy("bas", memory))
    refused(UnknownNameError, "seed", lambda: make_policy("", memory))
    refused(InputError, "memory", lambda: make_policy("default", None))
    refused(InputError, "no settings", lambda: make_policy(ALONE, memory, beta=1.0))
    refused(InputError, "'beta'", lambda: make_policy("default", memory, betta=1.0))
    refused(InputError, "beta", lambda: make_policy("default", memory, beta=-1.0))


# ------------------------------------------------------------------------------------------ readers


def test_uniform_reader_needs_no_model():
    reader = make_reader("uniform")
    assert isinstance(reader, UniformReader) and isinstance(reader, PriorReader)
    assert dict(asyncio.run(reader.read("s", "t", ["a"])).prior) == {"a": 0.0}


def test_reader_has_the_given_method_and_cache(tmp_path):
    pytest.importorskip("openai")
    settings = {"base_url": "http://127.0.0.1:9/v1", "api_key": "none"}
    reader = make_reader("openai:m", cache=tmp_path / "answers.db", calibrate=False, **settings)
    assert isinstance(reader, AutoReader) and isinstance(reader, PriorReader)
    assert not reader.calibrate and "m" in reader.name
    assert (tmp_path / "answers.db").exists()
    assert make_reader("openai:m", **settings).calibrate
    for method, kind in (("label", LabelReader), ("votes", VotesReader), ("verbalized", VerbalizedReader)):
        assert isinstance(make_reader("openai:m", method=method, **settings), kind)
    assert make_reader("openai:m", method="votes", n_votes=3, **settings).n == 3
    refused(UnknownNameError, "transformers", lambda: make_reader("openai:m", method="exact", **settings))


def test_exact_reader_of_a_local_model_has_the_given_cache_and_menu(tmp_path):
    pytest.importorskip("xllamacpp")
    reader = make_reader("local", method="exact", cache=tmp_path / "answers.db", menu="line", context_tokens=256)
    assert isinstance(reader, ExactReader) and isinstance(reader, PriorReader) and reader.menu == "line"
    assert (tmp_path / "answers.db").exists() and isinstance(reader.model, CachedScorer)
    assert reader.llm is reader.model.llm and reader.llm.name == reader.name
    asyncio.run(close_reader(reader))


def test_menu_needs_the_method_exact_and_a_known_name():
    refused(InputError, "the method 'exact'", lambda: make_reader("local", method="label", menu="line"))
    refused(InputError, "line", lambda: make_reader("local", method="exact", menu="lines"))


def test_cache_folder_is_created_and_close_reader_closes_the_cache(tmp_path):
    pytest.importorskip("openai")
    settings = {"base_url": "http://127.0.0.1:9/v1", "api_key": "none"}
    reader = make_reader("openai:m", cache=tmp_path / "deep" / "run" / "answers.db", **settings)
    assert (tmp_path / "deep" / "run" / "answers.db").exists()
    asyncio.run(close_reader(reader))
    for method in ("label", "votes", "verbalized"):
        asyncio.run(close_reader(make_reader("openai:m", method=method, **settings)))
    assert [file.name for file in (tmp_path / "deep" / "run").iterdir()] == ["answers.db"]  # no journal is left open
    asyncio.run(close_reader(make_reader("uniform")))
    (tmp_path / "taken").write_text("mine")
    refused(InputError, "path", lambda: make_reader("openai:m", cache=tmp_path / "taken" / "answers.db", **settings))
    with pytest.raises(ConfigError):
        make_reader("openai", cache=tmp_path / "new" / "answers.db")
    assert not (tmp_path / "new").exists()


def test_invalid_readers_are_refused(tmp_path):
    refused(UnknownNameError, "'local'", lambda: make_reader("locl"))
    refused(UnknownNameError, "'openai'", lambda: make_reader("openia:gpt"))
    refused(UnknownNameError, "openai:gpt-4o-mini", lambda: make_reader("gpt-4o-mini"))
    refused(ConfigError, "openai:MODEL", lambda: make_reader("openai"))
    refused(InputError, "model specification", lambda: make_reader(""))
    refused(InputError, "uniform", lambda: make_reader("uniform", temperature=1.0))
    refused(InputError, "uniform", lambda: make_reader("uniform", method="votes"))
    refused(UnknownNameError, "'votes'", lambda: make_reader("local", method="vote"))
    refused(InputError, "at least 1", lambda: make_reader("local", method="votes", n_votes=0))
    with pytest.raises((InputError, MissingExtraError)):
        make_reader("openai:m", no_such_setting=1)
    (tmp_path / "notes.txt").write_text("mine " * 100)
    with pytest.raises(SeasonedError):
        make_reader("local", cache=tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine " * 100


# ------------------------------------------------------------------------------------------ environments


def test_environment_name_opens_the_same_environment():
    for spec in ("grid:S.T/..G?slip=0.1&max_steps=9", 'bandit:{"a":{"x":0.0,"y":1.0}}?rounds=3'):
        name = open_env(spec).name
        assert open_env(name).name == name
        check_environment(lambda name=name: open_env(name))


# ------------------------------------------------------------------------------------------ memories


def namespaces(path, *names, encoder=None):
    for name in names:
        with Memory.open(path, namespace=name, encoder=encoder) as memory:
            memory.add(Episode("t", [Step(f"page {name} 7", "click", 1.0)]))


def test_memory_is_opened_with_its_stored_encoder(tmp_path):
    path = tmp_path / "m.db"
    namespaces(path, "shop", encoder=TokenEncoder(masks=[NUMBERS]))
    with Memory.open(path, namespace="shop") as memory:
        assert memory.encoder == TokenEncoder(masks=[NUMBERS])
    with open_memory(str(path)) as memory:  # the only namespace there is
        assert memory.namespace == "shop"
        assert memory.search("page shop 8")[0].similarity == 1.0  # the number is masked, as it was when it was stored
        memory.verify()
    with pytest.raises(EncoderMismatchError):
        open_memory(str(path), encoder=TokenEncoder())


def test_several_namespaces_need_one_named(tmp_path):
    path = tmp_path / "m.db"
    namespaces(path, "shop", "desk")
    refused(InputError, "desk, shop", lambda: open_memory(str(path)))
    with open_memory(str(path), namespace="desk") as memory:
        assert len(memory) == 1
    refused(NotFoundError, "", lambda: open_memory(str(path), namespace="dsk"))
    assert set(Memory.namespaces(path)) == {"desk", "shop"}


def test_missing_memory_is_created_only_with_create(tmp_path):
    path = tmp_path / "m.db"
    with pytest.raises(NotFoundError):
        open_memory(str(path))
    assert not path.exists()
    with open_memory(str(path), create=True, gamma=0.25) as memory:
        assert (memory.namespace, memory.gamma, len(memory)) == ("default", 0.25, 0)
    with open_memory(str(path), read_only=True) as memory, pytest.raises(ReadOnlyStoreError):
        memory.add(Episode("t", [Step("page", "click")]))


def test_memory_in_ram_is_new_at_every_opening():
    for _ in range(2):
        with open_memory(":memory:", create=True) as memory:
            assert len(memory) == 0
            memory.add(Episode("t", [Step("page", "click")]))
