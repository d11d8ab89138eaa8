# Two commands do everything on a machine with Python 3.11+, pip and make:
#   make demo   a private effect on real data, with report
#   make test   sets up and passes the tests
# While working: make check.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Flower pins typer, rich, starlette and others below what the rest is tested with.
FEDERATION := $(VENV)/federation
# Private data sets of the team, when they lie beside the checkout.
export COUNTERVEIL_DATA ?= $(wildcard $(CURDIR)/../shared/data)

# Written where it is missing, whatever the shell says: without it every process compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE
# Modules are compiled when they are first imported; most are never.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

.PHONY: demo demo-federation federation-tests check environments ready compile test test-all test-portable test-newest lint reference docs wheel constraints sbom mutants bench growth fuzz clean

$(VENV)/bin/python:
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	@echo "Installing Counterveil and what the demo needs (about half a minute, once)"
	@$(INSTALL) -e ".[demo]"
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml lab/pyproject.toml
	@echo "Installing Counterveil, its laboratory and what their tests need (2 GB, one to three minutes, once)"
	@$(INSTALL) -e ".[test]" -e ./lab
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/python -m counterveil demo

$(FEDERATION)/.ready: pyproject.toml
	@echo "Installing Counterveil and what a federation needs, apart (about a minute, once)"
	@$(PYTHON) -m venv $(FEDERATION)
	@$(if $(PIP_CONSTRAINT),PIP_CONSTRAINT=$(CURDIR)/constraints-federation.txt) $(FEDERATION)/bin/python -m pip install \
		--quiet --no-compile --disable-pip-version-check -e ".[federation-test]"
	@touch $@

demo-federation: $(FEDERATION)/.ready
	$(FEDERATION)/bin/python -m counterveil federation demo

# A worker that has nothing left takes tests from the other, so that both cores finish together.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
# Only these folders have such tests, and the others import what is not installed there.
PYTEST_FEDERATION := PYTHONPATH=lab/src $(FEDERATION)/bin/python -m pytest tests/system/federation tests/attack/federation

check: ready
	$(PYTEST) -m "not slow and not long"

# Types are checked on one core while the tests of a federation run on the other.
test: environments
	@$(MAKE) --no-print-directory --jobs 2 lint federation-tests compile
	$(PYTEST) -m "not slow and not federation"

federation-tests: $(FEDERATION)/.ready
	$(PYTEST_FEDERATION) -m "federation and not slow"

test-all: export COUNTERVEIL_TESTS = all
test-all: environments ready
	$(PYTEST) -m "not federation"
	$(PYTEST_FEDERATION) -m federation
	$(BIN)/python -m tools.clean

# What reads data, asks and prints, with any Python and the newest of everything: peers in the other tests hold pandas
# below 3. `make test-newest PYTHON=python3.14`; with PANDAS='pandas<3' the pandas before.
PANDAS ?= pandas>=3
test-newest:
	@echo "Installing the newest packages for $$($(PYTHON) --version) apart (about a minute)"
	@$(PYTHON) -m venv --clear $(VENV)/newest
	@$(VENV)/newest/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -e \
		".[pandas,polars,pyarrow,demo]" "$(PANDAS)" cryptography pytest hypothesis
	$(VENV)/newest/bin/python -m pytest tests/unit/data tests/unit/session tests/unit/cli -m "not slow"

# The tests that compute with floats, as machines with other vector units, another BLAS and another libm round.
test-portable: ready
	$(BIN)/python -m tools.portable -n 2 --dist worksteal

# Both are installed at the same time.
environments:
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.test $(FEDERATION)/.ready

# One core checks types while the other writes byte code, before two processes of tests would each write all of it.
ready: $(VENV)/.test
	@$(MAKE) --no-print-directory --jobs 2 lint compile

compile: $(VENV)/.test
	@test -e $(VENV)/.compiled || $(BIN)/python -m pytest --collect-only -qq >/dev/null || true  # the tests will say why
	@touch $(VENV)/.compiled

lint: $(VENV)/.test
	@echo "Checking style, types, imports and docstrings (about a minute the first time)"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.check_docstrings

# Writes the reference pages of the command line, the sources of rows and the values of answers from the code.
reference: $(VENV)/.test
	$(BIN)/python -m tools.reference

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml lab/pyproject.toml
	@echo "Installing Counterveil and what the site needs (about a minute, once)"
	@$(INSTALL) -e ".[docs]" -e ./lab
	@touch $@ $(VENV)/.demo

# The documentation site in build/site/html; audits and every notebook run, warnings are errors.
docs: $(VENV)/.docs
	$(BIN)/python -m tools.site --fresh

# Builds sdist and wheel and tries the wheel in an empty environment; the other two write files for a release.
wheel constraints sbom:
	$(PYTHON) -m tools.release $@

# Plants a kept list of faults, one at a time, and prints those that no test notices.
mutants: $(VENV)/.test
	$(BIN)/python -m tools.mutants --jobs 2

fuzz: $(VENV)/.test
	$(BIN)/python -m tools.fuzzing

$(VENV)/.bench: $(VENV)/.test pyproject.toml
	@echo "Installing what the benchmarks need (about a minute, once)"
	@$(INSTALL) -e ".[bench]"
	@touch $@

# Growth, which fails where a kept ratio got worse, comes last.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

growth: $(VENV)/.bench
	$(BIN)/python -m benchmarks growth

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache
