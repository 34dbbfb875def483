# Everything a person or CI does with the project. `make` alone prints the list.

PYTHON  ?= python3
VENV    := $(CURDIR)/.venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.twinlake-stamp
TOOLS   := $(CURDIR)/.tools
S3      := $(TOOLS)/versitygw
AZURE   := $(TOOLS)/azurite
CONNECT := $(TOOLS)/connect
POSTGRES := $(TOOLS)/postgres
TLC     := $(TOOLS)/tlc
DAFT    := $(TOOLS)/daft
ICEBERG_REST := $(TOOLS)/iceberg-rest

export PYSPARK_PYTHON := $(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(BIN)/python
export PATH := $(BIN):$(PATH)

# In CI every run of pytest prints its slowest tests and keeps the times of all.
TIMES = $(if $(CI),--durations=25 --junitxml=$(CURDIR)/.ci-out/$@.xml)
# On Spark a file's tests share tables, so they stay together; tests/support/tiers.py orders the files.
BY_FILE = --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo quick test fast spark doctest cover bench soak s3 azure connect postgres daft tlc iceberg-rest fmt lint docs lock java clean

help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv from the hashed lock (nothing to do while the lock is unchanged)

# The locks are complete, so nothing is resolved: pip 23 takes an extra of a locked package (coverage[toml])
# for another requirement, and fails as soon as there is a newer release than the locked one.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "twinlake needs Python 3.11 or newer; point PYTHON at one: make setup PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

demo: setup java ## the examples on tables in a temporary folder: protocols, a million rows, streams and SQL, an upgrade, conflicts, Iceberg clients
	@$(BIN)/twinlake demo

quick: setup ## unit and property tests that start no process and search no model (about a minute)
	$(BIN)/pytest -n 2 --dist worksteal -m quick tests/unit tests/property

test: java lint fast doctest spark ## everything CI runs: lint, types, import contracts, tests

fast: setup ## the tests that need no Spark
	$(BIN)/pytest -n 2 --dist worksteal -m "not spark" $(TIMES)

doctest: setup ## the examples in the docstrings
	$(BIN)/pytest --doctest-modules --import-mode=prepend -q --ignore=src/twinlake/__main__.py src/twinlake

spark: setup java ## the tests on Spark, in two processes with one session each
	$(BIN)/pytest -n 2 $(BY_FILE) -m spark $(TIMES)

cover: setup ## the fast tests with branch coverage
	$(BIN)/pytest -n 2 -m "not spark" --cov --cov-report=term

bench: setup ## side by side with the peers; a table, a JSON file and a plot
	$(BIN)/python -m benchmarks

soak: setup java ## the tests with their long loops
	TWINLAKE_SCALE=full $(BIN)/pytest -n 2 --dist worksteal -m "not spark"
	TWINLAKE_SCALE=full $(BIN)/pytest -n 2 $(BY_FILE) -m spark

s3: $(S3) ## build the S3 server for the tests, once (needs Go)

$(S3):
	@command -v go >/dev/null || \
		{ echo "the S3 server is built from source: install Go and run make s3 again"; exit 1; }
	GOBIN=$(TOOLS) go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

azure: $(AZURE)/.stamp ## install the Azure server for the tests, once (needs Node and npm)

# Azurite 3.36 and newer want Node 21 or newer; this release runs on Node 20 as well.
$(AZURE)/.stamp:
	@command -v npm >/dev/null || \
		{ echo "the Azure server is a package of npm: install Node and npm and run make azure again"; exit 1; }
	@rm -rf $(AZURE)
	npm install --prefix $(AZURE) --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
		--fetch-retries=2 --fetch-retry-maxtimeout=10000 --fetch-timeout=60000 azurite@3.35.0
	@touch $@

connect: $(CONNECT)/.stamp ## what the test of Spark Connect needs, once (kept out of .venv)

$(CONNECT)/.stamp: requirements-connect.lock | $(STAMP)
	@rm -rf $(CONNECT)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--target $(CONNECT) -r requirements-connect.lock
	@touch $@

postgres: $(POSTGRES)/.stamp ## a PostgreSQL server and its driver for the tests, once (kept out of .venv)

$(POSTGRES)/.stamp: requirements-postgres.lock | $(STAMP)
	@rm -rf $(POSTGRES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--target $(POSTGRES) -r requirements-postgres.lock
	@touch $@

daft: $(DAFT)/.stamp ## another engine on the REST catalog for its test, once (kept out of .venv)

$(DAFT)/.stamp: requirements-daft.lock | $(STAMP)
	@rm -rf $(DAFT)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--target $(DAFT) -r requirements-daft.lock
	@touch $@

tlc: $(TLC)/.stamp ## the TLC model checker for the benchmark, once (kept out of .venv; needs Java)

$(TLC)/.stamp: requirements-tlc.lock | $(STAMP)
	@rm -rf $(TLC)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
		--target $(TLC) -r requirements-tlc.lock
	@touch $@

iceberg-rest: $(ICEBERG_REST)/.stamp ## Iceberg's reference REST server for the benchmark, once (kept out of .venv; needs Java)

# By Ivy, which comes with PySpark, into a cache of its own: nothing of it meets the jars of Spark.
$(ICEBERG_REST)/.stamp: benchmarks/iceberg_rest.xml | $(STAMP) java
	@rm -rf $(ICEBERG_REST)
	@"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -cp "$$(echo $(VENV)/lib/python3*/site-packages/pyspark/jars/ivy-*.jar)" \
		org.apache.ivy.Main -warn -cache $(ICEBERG_REST)/cache -ivy benchmarks/iceberg_rest.xml \
		-retrieve "$(ICEBERG_REST)/[artifact]-[revision](-[classifier]).[ext]"
	@rm -rf $(ICEBERG_REST)/cache
	@touch $@

fmt: setup ## format the code and apply the fixes of the linter
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: setup ## formatting, lint, types, import contracts, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python docs/generate.py --check

docs: setup ## write the generated reference pages
	$(BIN)/python docs/generate.py

lock: ## resolve the lock files again (needs uv)
	uv pip compile --generate-hashes --no-header --no-emit-index-url --no-annotate \
		--python-version 3.11 --upgrade --extra spark --extra server requirements.in pyproject.toml -o requirements.lock
	uv pip compile --generate-hashes --no-header --no-emit-index-url --no-annotate \
		--python-version 3.11 --upgrade requirements-connect.in -o requirements-connect.lock
	uv pip compile --generate-hashes --no-header --no-emit-index-url --no-annotate --no-deps \
		--python-version 3.11 --upgrade requirements-postgres.in -o requirements-postgres.lock
	uv pip compile --generate-hashes --no-header --no-emit-index-url --no-annotate --no-deps \
		--python-version 3.11 --upgrade requirements-tlc.in -o requirements-tlc.lock
	uv pip compile --generate-hashes --no-header --no-emit-index-url --no-annotate --no-deps \
		--python-version 3.11 --upgrade requirements-daft.in -o requirements-daft.lock

java:
	@home="$${JAVA_HOME:+$$JAVA_HOME/bin/}"; \
	major=$$("$${home}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	if [ "$${major:-0}" -lt 17 ]; then \
		echo "Spark needs Java 17 or 21 (found: $${major:-none})."; \
		echo "Install a JDK, for instance the package openjdk-17-jre-headless (Debian, Ubuntu),"; \
		echo "java-17-openjdk-headless (Fedora) or openjdk@17 (Homebrew), or set JAVA_HOME."; \
		exit 1; \
	fi

clean: ## remove caches and build products; keeps .venv and .tools
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
	find src tests docs benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
