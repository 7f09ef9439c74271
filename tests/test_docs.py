"""The documentation is executed, complete and up to date."""

from __future__ import annotations

import doctest
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import itertools
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import seasoned

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
WRITTEN = [page for page in PAGES if page.parent != DOCS / "reference"]
FENCE = re.compile(r"^```(?P<language>\w*)(?P<marks>[^\n]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?:!?\[[^\]\n]*\]\(|<img src=\")(?P<target>[^)\"\s]+)[)\"]")
# What pages need beyond an environment of development: `make test-frameworks`, `make test-litellm`.
FRAMEWORKS = {
    "langchain-agents.md": "langchain",
    "pydantic-ai-agents.md": "pydantic-ai-slim",
    "openai-agents-sdk.md": "openai-agents",
    "litellm-calls.md": "litellm",
    "opentelemetry-spans.md": "opentelemetry-sdk",
}
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(seasoned.__path__, "seasoned.")
    if not info.name.endswith(".__main__")  # importing it runs it
)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block, the line at which its body begins, and the last line of text before it."""

    language: str
    marks: str
    body: str
    line: int
    before: str


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        before = text[: match.start()].rstrip().rpartition("\n")[2]
        line = text.count("\n", 0, match.start()) + 2
        yield Block(match["language"], match["marks"].strip(), match["body"], line, before)


def script_of(page):
    """The page's Python with each line at its line number on the page, which tracebacks then show."""
    lines = []
    for block in blocks_of(page):
        if block.language == "python" and block.marks != "no-run":
            lines += [""] * (block.line - 1 - len(lines)) + block.body.splitlines()
    return "\n".join(lines)


def commands_of(page):
    """The commands of a page with continued lines joined, except `make` commands, which have separate tests."""
    for block in blocks_of(page):
        if block.language == "console" and block.marks != "no-run":
            for line in block.body.replace("\\\n", " ").splitlines():
                if line.startswith("$ ") and not line.startswith("$ make "):
                    yield line.removeprefix("$ ")


COLD = {ROOT / "README.md"}  # what a reader runs first starts as it does for a reader; other pages, in a warm Python


@pytest.fixture(scope="module")
def warm_path(warm_python, tmp_path_factory):
    """A folder for PATH in which `seasoned` is the installed command, run by the warm Python."""
    folder = tmp_path_factory.mktemp("bin")
    command = [*warm_python, str(Path(sys.executable).with_name("seasoned"))]
    (folder / "seasoned").write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    (folder / "seasoned").chmod(0o755)
    return folder


def run(command, folder, *first_on_path):
    path = os.pathsep.join(map(str, [*first_on_path, Path(sys.executable).parent, os.environ["PATH"]]))
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=230, check=False
    )


@pytest.fixture(scope="module")
def python_of(warm_python, tmp_path_factory):
    """Run the Python of a page once, in a separate folder; return the finished process and the folder."""

    @functools.cache
    def python_of(page):
        folder = tmp_path_factory.mktemp("page")
        script = folder / page.name.replace(".md", ".py")
        script.write_text(script_of(page), encoding="utf-8")
        return run([*([sys.executable] if page in COLD else warm_python), str(script)], folder), folder

    return python_of


def texts_outside_code(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@functools.cache
def slugs(page):
    headings = re.findall(r"^#+ (.+)$", texts_outside_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ------------------------------------------------------------------------------------------------ what a reader runs


def missing_package(page):
    """The package of a framework that a page needs, and this environment has not; None if it has all."""
    package = FRAMEWORKS.get(page.name)
    found = package is None or next(iter(importlib.metadata.distributions(name=package)), None) is not None
    return None if found else package


@pytest.mark.parametrize("page", [page for page in WRITTEN if script_of(page).strip()], ids=name_of)
def test_python_blocks_of_a_page_run_as_one_script(page, python_of):
    if (package := missing_package(page)) is not None:
        pytest.skip(f"needs {package}")
    done, _ = python_of(page)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [page for page in WRITTEN if list(commands_of(page))], ids=name_of)
def test_commands_of_a_page_succeed_in_order(page, python_of, warm_path):
    """The commands run after the page's Python in the same folder, and may read its files."""
    done, folder = python_of(page)
    assert done.returncode == 0, done.stderr
    script = "\n".join(["set -x", *commands_of(page)])
    done = run(["bash", "-euo", "pipefail", "-c", script], folder, *([] if page in COLD else [warm_path]))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("name", ["README.md", "docs/how-to/coding-assistant.md", "docs/how-to/mcp-server.md"])
def test_text_after_a_python_block_is_what_it_prints(name, python_of):
    done, _ = python_of(ROOT / name)
    blocks = list(blocks_of(ROOT / name))
    shown = [b.body for a, b in itertools.pairwise(blocks) if (a.language, b.language) == ("python", "text")]
    assert done.stdout == "".join(shown)


def test_block_that_is_not_run_has_a_reason():
    for page, block in [(each, block) for each in WRITTEN for block in blocks_of(each)]:
        where = f"{name_of(page)}, line {block.line}"
        if block.language in {"python", "console"}:
            assert block.marks in {"", "no-run"}, f"{where}: {block.marks}"
        if block.marks == "no-run":
            assert block.before, f"{where} has no reason"
            assert not block.before.startswith(("#", "```")), f"{where} has no reason"


def test_named_make_targets_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in WRITTEN:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?:^\$ |`)make ([a-z-]+)", text, re.MULTILINE))
        assert named <= targets, name_of(page)


# ------------------------------------------------------------------------------------------------ where it leads


def test_relative_links_resolve():
    for page, match in [(each, match) for each in PAGES for match in LINK.finditer(texts_outside_code(each))]:
        target, _, anchor = match["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        where = f"{name_of(page)}: {match[0]}"
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{where} leads nowhere"
        assert file.is_relative_to(ROOT), f"{where} leaves the project"
        if anchor and file.suffix == ".md":
            assert anchor in slugs(file), f"{where}: no such heading"


def test_named_project_files_exist():
    named = {
        (name_of(page), path)
        for page in WRITTEN
        for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]+)`", page.read_text(encoding="utf-8"))
    }
    assert [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_index_lists_every_page():
    index = DOCS / "README.md"
    linked = {(DOCS / match["target"]).resolve() for match in LINK.finditer(index.read_text(encoding="utf-8"))}
    assert {name_of(page) for page in DOCS.rglob("*.md")} - {name_of(p) for p in linked if p.is_relative_to(ROOT)} == {
        "docs/README.md"
    }


# ------------------------------------------------------------------------------------------------ what is generated


def load_generator():
    spec = importlib.util.spec_from_file_location("generate_docs", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["api.md", "cli.md", "errors.md", "presets.md"])
def test_a_generated_page_is_up_to_date(name):
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == load_generator().page(name), "run: make docs"


def test_generated_pages_are_the_tested_ones():
    generated = set(load_generator().PAGES)
    assert generated == {"api.md", "cli.md", "errors.md", "presets.md"}
    assert {page.name for page in (DOCS / "reference").glob("*.md")} == generated


# ------------------------------------------------------------------------------------------------ docstrings


WITHOUT_EXAMPLES = {"seasoned.build", "seasoned.sqlite_cache", "seasoned.sqlite_connection"}


def package_of(name):
    return ".".join(name.split(".")[:2])


@pytest.mark.parametrize("package", sorted({package_of(name) for name in ["seasoned", *MODULES]}))
def test_docstring_examples_pass(package, tmp_path, monkeypatch):
    """Each module's examples run in a folder of their own."""
    failed, n_examples = [], 0
    for name in ["seasoned", *MODULES]:
        if package_of(name) == package:
            (tmp_path / name).mkdir()
            monkeypatch.chdir(tmp_path / name)
            result = doctest.testmod(importlib.import_module(name))
            failed += [name] * bool(result.failed)
            n_examples += result.attempted
    assert not failed, "see the output above"
    assert n_examples or package in WITHOUT_EXAMPLES


def test_every_public_name_has_an_example():
    named = {name: getattr(seasoned, name) for name in seasoned.__all__ if not name.startswith("_")}
    documented = {name: inspect.getdoc(value) or "" for name, value in named.items() if callable(value)}  # no constants
    assert [name for name, text in documented.items() if ">>>" not in text] == []


@pytest.mark.parametrize("name", ["seasoned.Memory", "seasoned.llms.OpenAILLM", "seasoned.llms.LocalScorer"])
def test_reference_lists_inherited_members(name):
    """The page lists every public member of the class, whichever class of the package defines it."""
    module, _, cls = name.rpartition(".")
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    section = page.partition(f"\n### {cls}\n")[2].partition("\n### ")[0]
    listed = re.findall(r"^#### `(?:async )?\.(\w+)", section, re.MULTILINE)
    members = [member for member in dir(getattr(importlib.import_module(module), cls)) if not member.startswith("_")]
    assert sorted(listed) == members
