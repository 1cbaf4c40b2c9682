# Everything runs in a virtual environment of its own; Python 3.11, 3.12 or 3.13 and a package registry are all it needs.
#   make demo    a BERT of transformers: captured, read, edited, verified, drawn, saved, loaded; about a minute
#   make compat  what works with which versions: docs/dev/compat.md
#   make check   lint, types, and the quick tests: for every change
#   make test    lint, types, all tests
#   make test-python PYTHON=python3.13   what depends on bytecode, on another Python, in an environment of its own
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2

RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help venv demo compat site check test test-python lint types bench view-bundle clean check-python

# The rules of the house, the graph, its code and torch.fx's tests, and a sample of captures.
QUICK := tests/architecture tests/ir tests/codegen tests/fx tests/capture/recording/test_example.py \
  tests/capture/guards/test_sizes.py tests/capture/guards/test_code_is_guarded.py \
  tests/frameworks/torch/test_facts.py tests/frameworks/torch/modules/test_training_mode.py

help:
	@echo "make demo    capture a BERT, read, edit, verify, draw, save and load it; installs only what that needs"
	@echo "make site    the pages as a site, in site/"
	@echo "make compat  what works with which versions of Python and packages (docs/dev/compat.md)"
	@echo "make check   lint, types and the quick tests: for every change"
	@echo "make test    lint, types and all tests"
	@echo "make test-python PYTHON=python3.13   what depends on bytecode, on another Python"
	@echo "make lint    ruff alone"
	@echo "make types   mypy alone"
	@echo "make bench   the benchmarks"
	@echo "make view-bundle   bundle the page of clew.view anew, after a change of view_app/ (needs npm)"
	@echo "make venv    only the virtual environment ($(VENV))"
	@echo "make clean   remove the virtual environment and all caches"

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	  echo "Clew needs Python 3.11, 3.12 or 3.13, and '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one: make PYTHON=/path/to/python3.11 ..."; exit 1; } >&2

venv: $(STAMP)

# The stamp is written last, so an interrupted install is done again; `venv` itself is harmless to repeat.
$(STAMP): pyproject.toml constraints.txt | check-python
	@echo "Installing into $(VENV); the first time takes a minute or more."
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[torch,jax,onnx,wrappers,bench,dev]' tensorflow-cpu
	@touch $(STAMP)

# The demo has an environment of its own, with PyTorch and transformers and nothing else; that of `make venv` will do, too.
demo: | check-python
	@test -e $(STAMP) || test -e .venv-demo/.installed || { \
	  echo "Installing PyTorch and transformers into .venv-demo; the first time takes a minute or more."; \
	  $(PYTHON) -m venv .venv-demo && .venv-demo/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[demo]' && touch .venv-demo/.installed; }
	@if test -e $(STAMP); then $(RUN) examples/demo.py; else .venv-demo/bin/python examples/demo.py; fi

# The site has an environment of its own as well: it needs no framework.
site: | check-python
	@test -e .venv-site/.installed || { $(PYTHON) -m venv .venv-site && .venv-site/bin/python -m pip install --quiet \
	  --disable-pip-version-check -c constraints.txt '.[site]' && touch .venv-site/.installed; }
	.venv-site/bin/mkdocs build --quiet
	@echo "The site is in site/index.html; .venv-site/bin/mkdocs serve shows it."

compat: $(STAMP)
	$(RUN) -m benchmarks.compat --write

lint: $(STAMP)
	$(RUN) -m ruff check .

types: $(STAMP)
	$(RUN) -m mypy

check: lint types
	$(RUN) -m pytest -n $(WORKERS) -q -m "not slow" $(QUICK)

test: lint types
	$(RUN) -m pytest -n $(WORKERS)

# Another Python has an environment of its own, and may have another torch: make test-python TORCH=2.15.0 ...
test-python: check-python
	$(MAKE) --no-print-directory on-python VENV=.venv-$(notdir $(PYTHON))$(if $(TORCH),-torch-$(TORCH))

.PHONY: on-python
on-python: check-python
	test -e $(STAMP) || $(PYTHON) -m venv $(VENV)
	sed '$(if $(TORCH),s/^torch==.*/torch==$(TORCH)/)' constraints.txt > $(VENV)/constraints.txt
	test -e $(STAMP) || $(RUN) -m pip install --quiet --disable-pip-version-check -c $(VENV)/constraints.txt \
	  -e '.[torch,jax,onnx,wrappers,bench,dev]' tensorflow-cpu
	@touch $(STAMP)
	$(RUN) -m tests.footguns
	$(RUN) -m tests.control_flow
	$(RUN) -m pytest -n $(WORKERS) -q tests/capture tests/codegen tests/ir tests/fx tests/frameworks/torch tests/frameworks/numpy

# The page of clew.view, bundled from view_app/ into the file that the package carries. Needs node and npm; users do not.
view-bundle:
	cd view_app && npm ci --no-audit --no-fund --ignore-scripts && npm run --silent build

bench: $(STAMP)
	$(RUN) -m benchmarks

clean:
	rm -rf $(VENV) .venv-* view_app/node_modules build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
