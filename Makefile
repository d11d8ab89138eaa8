# Two commands do everything on a machine with Python 3.11+, pip and make:
#   make demo   a private effect on real data, with report
#   make test   sets up and passes the tests
# While working: make check.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Private data sets of the team, when they lie beside the checkout.
export COUNTERVEIL_DATA ?= $(wildcard $(CURDIR)/../shared/data)

.PHONY: demo demo-federation check ready compile test test-all lint reference mutants bench growth fuzz clean

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Installing is silent otherwise: what, and roughly how long where packages have to be downloaded.
INSTALLING = @echo "Installing counterveil with $(1) into $(VENV): $(2) the first time ..."

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(call INSTALLING,the packages of the demo,about a minute)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[demo]"
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(call INSTALLING,the packages of the tests,two to five minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@ $(VENV)/.demo $(VENV)/.federation

demo: $(VENV)/.demo
	$(BIN)/python -m counterveil demo

$(VENV)/.federation: $(VENV)/bin/python pyproject.toml
	$(call INSTALLING,the packages of the federation,one to two minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[federation]"
	touch $@

demo-federation: $(VENV)/.federation
	$(BIN)/python -m counterveil federation demo

# A worker that has nothing left takes tests from the other, so that both cores finish together.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

check: ready
	$(PYTEST) -m "not slow and not long"

test: ready
	$(PYTEST) -m "not slow"

test-all: ready
	$(PYTEST)

# Types and machine code are made on a core each, before two processes of tests would make the code twice.
ready: $(VENV)/.test
	@echo "Checking style and types, compiling loops: about two minutes the first time ..."
	$(MAKE) --no-print-directory --jobs 2 lint compile

compile: $(VENV)/.test
	$(BIN)/python -m tools.compile

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Writes the reference pages of the command line and the API from the code.
reference: $(VENV)/.test
	$(BIN)/python -m tools.reference

# Plants a kept list of faults, one at a time, and prints those that no test notices.
mutants: $(VENV)/.test
	$(BIN)/python -m tools.mutants --jobs 2

fuzz: $(VENV)/.test
	$(BIN)/python -m tools.fuzzing

$(VENV)/.bench: $(VENV)/.test pyproject.toml
	$(call INSTALLING,the packages of the benchmarks,a minute)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	touch $@

# Growth, which fails where a kept ratio got worse, comes last.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

growth: $(VENV)/.bench
	$(BIN)/python -m benchmarks growth

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache
