# Everything here needs only Python 3.10+, git and make; what else it takes goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup test test-sdk-matrix quick check format demo pins clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(READY) ## Make the virtual environment (the others do it by themselves)

# Done again only when what is to be installed has changed.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "a2a-fencing needs Python 3.10 or newer; say which: make PYTHON=python3.12 ...")'
	@echo "setting up $(VENV), which takes a minute or two ..."
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV) && \
		uv pip install --quiet --python $(BIN)/python --constraints constraints.txt --editable '.[dev]'; \
	else \
		{ $(PYTHON) -m venv $(VENV) || { echo "cannot make a virtual environment (Debian: apt install python3-venv)" >&2; false; }; } && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'; \
	fi
	@touch $@

# A file's tests stay together, as some share a server; two files at a time, as each may start several.
JOBS ?= 2

# Those of signals and children have a process to themselves.
ALONE := tests/unit/dashboard/test_processes.py

test: $(READY) ## Run every test, JOBS=2 files at a time
	$(PYTEST) -q $(ALONE)
	$(PYTEST) -n $(JOBS) --dist loadfile --ignore $(ALONE)

SDK_VERSIONS ?= 1.0.3 1.1.5 1.2.0 1.2.3 1.3.0

# Environments of their own, as only one SDK fits into one.
test-sdk-matrix: $(SDK_VERSIONS:%=test-sdk-%) ## Run what must work on every SDK, on each (SDK_VERSIONS="1.2.0 1.3.0")

test-sdk-%:
	@test -x $(VENV)-sdk/$*/bin/python || $(PYTHON) -m venv $(VENV)-sdk/$*
	@$(VENV)-sdk/$*/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable . 'a2a-sdk[http-server,sql]==$*' aiosqlite pytest pytest-asyncio pytest-timeout
	$(VENV)-sdk/$*/bin/python -m pytest -q tests/sdk

quick: $(READY) ## Run the tests that need no processes, databases or browser
	$(PYTEST) -m 'not integration'

check: $(READY) ## What to run before a commit: lint, format, types, quick tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(PYTEST) -q -m 'not integration'

format: $(READY) ## Let ruff rewrite the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

demo: $(READY) ## Three replicas, a load and the dashboard; Ctrl-C ends them (ARGS="--headless --seconds 30")
	@$(BIN)/a2a-fencing demo $(ARGS)

pins: $(READY) ## Resolve constraints.txt anew
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --upgrade --all-extras \
		--no-header --no-annotate --no-emit-package a2a-fencing --output-file constraints.txt pyproject.toml

clean: ## Remove what was made
	rm -rf $(VENV) $(VENV)-sdk .pytest_cache .mypy_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
