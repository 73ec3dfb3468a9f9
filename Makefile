# Everything runs from two commands on a fresh machine with Python 3.11+, git and make: `make demo` and `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
comma := ,
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test check bench bench-inference inference-accuracy soak test-tf test-cluster test-engines test-oracle test-browser tiny-en learning lock clean

help:  ## list the targets
	@echo 'albert-lite: from a folder of text to a small encoder in production'; echo
	@if [ -t 1 ]; then on=$$'\e[1;36m' off=$$'\e[0m'; fi; \
	sed -nE 's/^([a-z-]+):.*## (.*)/\1 \2/p' $(MAKEFILE_LIST) | \
	while read -r name text; do printf "  $$on%-19s$$off%s\n" "make $$name" "$$text"; done

setup: $(VENV)/.ready  ## create .venv and install from requirements.lock

# $(1): the environment, $(2): its lock file. A missing tool, a wrong Python or a failed download is one sentence.
define install
@command -v git >/dev/null || { echo "git is missing: install it first"; exit 1; }
@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer, or run make PYTHON=/path/to/python3.11"; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1 || echo broken): albert-lite needs Python 3.11 or newer (make PYTHON=/path/to/python3.11)"; exit 1; }
@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (Debian: apt install python3-venv)"; exit 1; }
@echo "installing into $(1) (a few minutes the first time)"
@{ $(PYTHON) -m venv $(1) \
	&& $(1)/bin/pip install --quiet --upgrade pip "setuptools>=77" \
	&& $(1)/bin/pip install --quiet -r $(2) \
	&& $(1)/bin/pip install --quiet --no-deps --no-build-isolation -e . ; } \
	|| { echo "installing from $(2) into $(1) failed, see above: check the network and the disk, then run make again"; exit 1; }
@touch $(1)/.ready
endef

$(VENV)/.ready: requirements.lock pyproject.toml
	$(call install,$(VENV),requirements.lock)

demo: setup  ## the whole job, end to end
	@$(BIN)/albert demo

check: setup  ## format, lint and types
	@$(BIN)/ruff format --check --quiet . || { echo "run: .venv/bin/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

test: check  ## format, lint, types and the test suite, on up to four cores
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

tiny-en: setup  ## make models like the shipped ones (seven hours on two cores; needs the shared corpus, fetches a teacher)
	@$(BIN)/python benchmarks/make_tiny_en.py

learning: setup  ## what pre-training is worth: tiny-en, new weights, a bag of words on seven tasks (hours on two cores; resumable; needs the shared data)
	@$(BIN)/python benchmarks/learning.py --record

bench: setup  ## every benchmark against its peers (long; run nothing beside it)
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

bench-inference: .venv-openvino/.ready  ## engines and precisions against the peers (run nothing beside it; needs the shared data)
	@.venv-openvino/bin/python benchmarks/bench_inference.py --record
	@.venv-openvino/bin/python benchmarks/bench_embedding.py --record

inference-accuracy: .venv-openvino/.ready  ## what int8 and early exit cost on tuned models (an hour on two cores; resumable; needs the shared data)
	@.venv-openvino/bin/python benchmarks/inference_accuracy.py
	@.venv-openvino/bin/python benchmarks/inference_accuracy.py --record

soak: setup  ## long random tests
	@$(BIN)/python -m pytest -m soak --override-ini addopts=-q

# Environments of their own: TensorFlow, Ray and transformers 4 don't belong into the main one.
.venv-%/.ready: requirements-%.lock pyproject.toml
	$(call install,.venv-$*,requirements-$*.lock)

test-tf: .venv-tf/.ready  ## converting checkpoints that real TensorFlow wrote
	@.venv-tf/bin/python -m pytest -m tf tests/interop

test-cluster: .venv-ray/.ready  ## a store, a study and predictions on a two-node Ray cluster, and Ray Serve
	@.venv-ray/bin/python -m pytest -m cluster tests/data/test_build_ray.py tests/study/test_study_ray.py tests/inference/test_ray_data.py tests/serve/test_ray_app.py

test-engines: .venv-openvino/.ready  ## every engine and export, OpenVINO's too, against transformers on real texts
	@.venv-openvino/bin/python -m pytest tests/inference/test_engines.py tests/export
	@.venv-openvino/bin/python -m pytest -m oracle tests/parity/test_real_texts.py

test-browser: setup  ## the server's page and the web export in a real browser (Chromium; npm fetches onnxruntime-web)
	@$(BIN)/python -m pytest -m browser tests/serve tests/export

test-oracle: .venv-oracle/.ready setup  ## token ids against transformers 4's slow tokenizer on all of the real data
	@.venv-oracle/bin/python tests/tokenizer/record_oracle.py
	@$(BIN)/python -m pytest -m oracle

# $(1): the lock file, $(2): what it must hold. torch first: its CPU build is then kept by the rest.
define resolve
@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet --upgrade pip "setuptools>=77"
@.venv-lock/bin/pip install --quiet torch==2.13.0 && .venv-lock/bin/pip install --quiet $(2)
@.venv-lock/bin/pip freeze --exclude-editable | sed -E 's/^(torch==[0-9.]+)\+.*/\1/' > $(1)
@rm -rf .venv-lock
endef

lock:  ## resolve requirements.lock and those of OpenVINO, TensorFlow and Ray anew
	$(call resolve,requirements.lock,-e '.[dev]')
	$(call resolve,requirements-openvino.lock,-e '.[dev$(comma)openvino]' nncf)
	$(call resolve,requirements-ray.lock,-e '.[ray$(comma)serve]' pytest PyYAML)
	$(call resolve,requirements-tf.lock,-e '.[tf]' transformers==4.57.1 pytest hypothesis)

clean:  ## remove the environments
	rm -rf .venv .venv-tf .venv-ray .venv-oracle .venv-openvino
