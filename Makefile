# Everything runs from two commands on a fresh machine with Python 3.11+, git and make: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test check bench soak test-tf test-cluster test-oracle lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.ready  ## create .venv and install from requirements.lock

$(VENV)/.ready: requirements.lock pyproject.toml
	@command -v git >/dev/null || { echo "git is missing: install it first"; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer, or run make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"{sys.executable} is Python {v[0]}.{v[1]}: albert-lite needs 3.11 or newer (make PYTHON=/path/to/python3.11)")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (Debian: apt install python3-venv)"; exit 1; }
	@echo "installing into $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --upgrade pip "setuptools>=77"
	@$(BIN)/pip install --quiet -r requirements.lock
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: setup  ## the whole job, end to end
	@$(BIN)/albert demo

check: setup  ## format, lint and types
	@$(BIN)/ruff format --check --quiet . || { echo "run: .venv/bin/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

test: check  ## format, lint, types and the test suite
	@$(BIN)/python -m pytest

bench: setup  ## every benchmark against its peers (long; run nothing beside it)
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

soak: setup  ## long random tests
	@$(BIN)/python -m pytest -m soak --override-ini addopts=-q

# Environments of their own: TensorFlow, Ray and transformers 4 don't belong into the main one.
.venv-%/.ready: requirements-%.lock pyproject.toml
	@$(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/pip install --quiet --upgrade pip "setuptools>=77"
	@.venv-$*/bin/pip install --quiet -r requirements-$*.lock
	@.venv-$*/bin/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

test-tf: .venv-tf/.ready  ## converting checkpoints that real TensorFlow wrote
	@.venv-tf/bin/python -m pytest -m tf

test-cluster: .venv-ray/.ready  ## building a store on a two-node Ray cluster
	@.venv-ray/bin/python -m pytest -m cluster

test-oracle: .venv-oracle/.ready setup  ## token ids against transformers 4's slow tokenizer on all of the real data
	@.venv-oracle/bin/python tests/tokenizer/record_oracle.py
	@$(BIN)/python -m pytest -m oracle

lock:  ## resolve requirements*.lock anew
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet --upgrade pip "setuptools>=77"
	@.venv-lock/bin/pip install --quiet torch==2.13.0 && .venv-lock/bin/pip install --quiet -e '.[dev]'
	@.venv-lock/bin/pip freeze --exclude-editable | sed -E 's/^(torch==[0-9.]+)\+.*/\1/' > requirements.lock
	@rm -rf .venv-lock

clean:  ## remove the environments
	rm -rf .venv .venv-tf .venv-ray .venv-oracle
