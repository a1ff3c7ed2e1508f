# Every target works from a bare machine with git, make and Python >= 3.11, as `python3` or as PYTHON=/path/to/it.
# The first run makes .venv; later runs see a fresh stamp and start at once. `make help` lists the targets.
PYTHON ?= python3
# pytest-xdist: a process for each CPU, files in the order of tests/conftest.py; WORKERS= for one process alone
WORKERS ?= --numprocesses=auto --dist=loadscope --no-loadscope-reorder
VENV := .venv
BIN := $(VENV)/bin
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/pycache# child processes need not compile again
INPUTS := pyproject.toml core/pyproject.toml $(wildcard plugins/*/pyproject.toml) constraints.txt tests/tools/hashes.txt tests/tools/venv.py

SERVED := anthropic,openai,google,ollama
.DEFAULT_GOAL := help
.PHONY: help demo test docs ray mutants mutation lint wheels release bench matrix record venv constraints clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

demo: $(VENV)/.demo ## Replay one conversation across four services and back (ARGS="--live …" for the real thing)
	@$(BIN)/interlingua demo $(ARGS)

test: $(VENV)/.dev ## Run the tests on every CPU (ARGS="tests/core -k name" to choose; INTERLINGUA_FULL=1 repeats the long laws in full, with new examples; INTERLINGUA_CORPUS=folder adds recorded traffic)
	$(BYTECODE) $(BIN)/python -m pytest $(WORKERS) $(ARGS)

docs: $(VENV)/.docs ## Build the documentation site into site/, strictly: a broken link fails (ARGS=--help for options)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --config-file .mkdocs.yml $(ARGS)
	@echo "site/index.html: $(BIN)/python -m http.server --directory site --bind 127.0.0.1 8000"

ray: $(VENV)/.dev ## Install Ray beside .venv and run the tests of bulk on it
	@$(PYTHON) tests/tools/venv.py ray
	.venv-ray/bin/python -m pytest tests/bulk/test_ray.py tests/bulk/test_ray_cluster.py tests/bulk/test_tables.py $(ARGS)

mutants: $(VENV)/.dev ## Print the kill matrix: broken adapters, the rules that catch them (ARGS="--only chat")
	$(BYTECODE) $(BIN)/python -m tests.contract.broken $(ARGS)

mutation: $(VENV)/.dev ## Measure which changes of results the contract's rules notice; write docs/reference/mutation.md (ARGS="--sample 60" for a part)
	$(BYTECODE) $(BIN)/python -m tests.tools.mutation $(ARGS)

lint: $(VENV)/.dev ## ruff, mypy --strict, the import contracts and the limits of prose
	$(BIN)/ruff check .
	$(BIN)/mypy core/src $(wildcard plugins/*/src)
	$(BIN)/mypy --platform win32 --no-warn-unreachable --cache-dir .mypy_cache/win32 core/src $(wildcard plugins/*/src)
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tests/tools/prose.py

wheels: $(VENV)/.dev ## Build every wheel and check each in a clean environment away from the checkout
	$(BIN)/python -m pytest tests/wheels/check_wheels.py tests/wheels/check_apps.py $(ARGS)

release: ## Build a release into dist/ twice, check it and try it out (VERSION=0.1.0 REPOSITORY=https://…); uploads nothing
	@$(PYTHON) -m tests.tools.release --version "$(VERSION)" --repository "$(REPOSITORY)"

bench: $(VENV)/.dev ## Compare with the hand-written floor, in one run
	$(BIN)/python tests/tools/bench/bench.py $(ARGS)

matrix: $(VENV)/.dev ## Swap histories between all providers and back; write docs/reference/swap-matrix.md, .html and served-apis.md
	INTERLINGUA_CONFIG=/dev/null $(BIN)/interlingua matrix --out docs/reference --serve $(SERVED) $(ARGS)

record: $(VENV)/.dev ## Record cassettes again: llama.cpp's server, or PROVIDER=anthropic with its key (ARGS="--only 'openai/*'")
	$(BIN)/python -m tests.tools.record $(if $(PROVIDER),--provider $(PROVIDER)) $(ARGS)

venv: $(VENV)/.dev ## Make or update .venv with everything a developer needs

constraints: ## Resolve the newest versions again and write constraints.txt and their hashes
	$(PYTHON) tests/tools/venv.py constraints

clean: ## Remove .venv and caches
	rm -rf $(VENV) .venv-ray .venv-release site dist .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.demo $(VENV)/.dev $(VENV)/.docs: $(INPUTS)
	@$(PYTHON) tests/tools/venv.py $(patsubst .%,%,$(notdir $@))
