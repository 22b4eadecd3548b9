# Every target sets up what it needs: a machine with Python 3.11 (or newer) and make is enough.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
UV_VERSION := 0.13.8
HELM_VERSION := v3.16.4
TOOLS := .cache/tools
UV := $(TOOLS)/bin/uv
# Into a folder of its own, which any pip does in three seconds; where there is no pip, an environment has one.
PIP_OPTIONS := --quiet --disable-pip-version-check
RUN := .venv/bin
# Not a version manager's shim: uv makes the environment anew whenever its path is not the interpreter's own.
INTERPRETER = $(shell $(PYTHON) -c 'import sys; print(sys.executable)')
export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := .venv
# Without bytecode on disk every process compiles hundreds of modules of its own.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test-fast test test-all test-spark test-spark-smoke kernels demo-check check lint types imports format bench bench-parts release faults attack soak pictures papers \
  generated helm docs clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: .cache/stamp-run  ## the whole thing on this machine: embedded broker, simulated models, live metrics, status page
	$(RUN)/streamwatch demo $(ARGS)

# Processes that take file after file, longest first, each of which collects what it takes (tests/parts.py).
# A file is one process's: two would start its brokers twice, and compile its estimators side by side.
WORKERS ?= 2
PYTEST = $(RUN)/python -m tests.parts $(WORKERS)

test-fast: kernels  ## what needs no broker, browser or hundredths of a second each: while writing code (a minute)
	STREAMWATCH_TESTS=fast $(PYTEST) $(ARGS)

# Of the slow tests a sixteenth and of the heavy ones a quarter, others at every commit; all of them where some are
# asked for by ARGS, and in the gate. Four processes, as many of the slow tests wait.
TIER ?= $(if $(ARGS),default,rotating)
test: WORKERS = 4
test: kernels  ## before handing in: all parts, those that need Kafka, Prometheus … say so where they cannot be had (minutes)
	STREAMWATCH_TESTS=$(TIER) $(PYTEST) $(ARGS)

test-all: kernels  ## everything, at full length: papers, 10,000 orders, 50 kills, half an hour of soak (hours)
	STREAMWATCH_TESTS=all $(PYTEST) $(ARGS)
	$(RUN)/python -m tests.faults.soak

test-spark: .cache/spark/stamp  ## the same core on Spark: its tests, and the job on Apache Kafka (minutes; installs a gigabyte)
	STREAMWATCH_TESTS=default STREAMWATCH_REQUIRE_SPARK=1 .cache/spark/bin/python -m pytest tests/spark $(ARGS)

test-spark-smoke: .cache/spark/stamp  ## of these the quick ones: the stages in Spark's tester, and one job that nobody kills
	STREAMWATCH_TESTS=default STREAMWATCH_REQUIRE_SPARK=1 .cache/spark/bin/python -m pytest tests/spark -k "not killed" $(ARGS)

kernels: .cache/stamp-dev  ## the estimators that tests share, compiled ahead (minutes, once)
	$(RUN)/python -m tests.layouts

demo-check: .cache/stamp-dev  ## the demo as a user starts it, until its alarm is on /metrics and in the API
	$(RUN)/python -m tests.demo_check

check: lint types imports  ## lint, types and import rules

lint: .cache/stamp-dev
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: .cache/stamp-dev
	$(RUN)/pyright

imports: .cache/stamp-dev
	$(RUN)/lint-imports

format: .cache/stamp-dev  ## let ruff put the code in order
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

bench: .cache/stamp-dev  ## the daemon beside its peers, in one run (minutes): docs/speed.json, and the table made of it
	-$(MAKE) .cache/quix/stamp
	$(RUN)/python -m tests.bench.peers
	$(RUN)/python -m tests.bench.peers.table --write

bench-parts: .cache/stamp-dev  ## its parts beside theirs: kernel, scrape, decoder (minutes)
	$(RUN)/python -m tests.bench.kernel_vs_river
	$(RUN)/python -m tests.bench.end_to_end
	$(RUN)/python -m tests.bench.scrape
	$(RUN)/python -m tests.bench.decode
	$(RUN)/python -m tests.bench.kernel_vs_moa

release: .cache/stamp-dev  ## wheels with what default settings compile, each tried in a clean environment, SBOM, sums: dist/ (minutes)
	$(UV) sync --quiet --frozen --inexact --python "$(INTERPRETER)" --only-group release
	$(RUN)/python -m deploy.release.build $(ARGS)

faults: .cache/stamp-dev  ## hundreds of kills, simulation seeds by the ten thousand (an hour)
	STREAMWATCH_TESTS=all STREAMWATCH_KILLS=500 STREAMWATCH_POWER_CUTS=100 $(RUN)/python -m pytest tests/faults --log-cli-level=info $(ARGS)
	$(RUN)/python -m tests.faults.simulation --seeds 50000

attack: .cache/stamp-dev  ## hostile clients, records, receivers and names against the daemon's edges (minutes)
	$(RUN)/python -m tests.attack $(ARGS)
	$(RUN)/python -m pytest tests/attack tests/integration/test_kafka_damage.py tests/browser/test_hostile_names.py tests/settings/test_secrets.py

soak: .cache/stamp-dev  ## half an hour and ten million events: memory must not grow
	$(RUN)/python -m tests.faults.soak --new-models --picture docs/pictures/soak.png

pictures: .cache/stamp-dev  ## the README's pictures and screenshots, made anew
	$(RUN)/python -m tests.bench.drift_picture docs/pictures/drift.png
	$(RUN)/python -m tests.browser.screenshots deploy/pictures/

papers: .cache/stamp-dev  ## the papers' experiments at full size into docs/evidence/papers, cards of streams into docs/testbed.md (minutes)
	$(RUN)/python -m docs.experiments.generate $(ARGS)

docs: .cache/stamp-dev  ## the site of docs/ in build/site, every link checked
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --quiet --strict

generated: .cache/stamp-dev  ## everything in deploy/ and docs/ that is made from something else
	$(RUN)/python -m deploy.grafana.generate
	$(RUN)/python deploy/kubernetes/generate.py
	$(RUN)/python -m docs.reference.generate --write

.cache/spark/stamp: $(UV) pyproject.toml uv.lock  # apart from .venv: `make test` never installs Spark
	UV_PROJECT_ENVIRONMENT=.cache/spark $(UV) sync --quiet --frozen --inexact --python "$(INTERPRETER)" --all-extras --group test
	@touch $@

.cache/quix/stamp: $(UV)  # a peer in `make bench`; it pins another confluent-kafka than the tests
	$(UV) venv --quiet --clear --python "$(INTERPRETER)" .cache/quix
	$(UV) pip install --quiet --python .cache/quix/bin/python "quixstreams==3.28.*" "river>=0.22"
	@touch $@

helm: .cache/helm/helm  ## Helm, built from its source, for the chart's tests (needs Go 1.23 or newer)

.cache/helm/helm:
	GOBIN="$(CURDIR)/.cache/helm" go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)

clean:  ## forget the environment and every cache
	rm -rf .venv .cache .pytest_cache .ruff_cache .hypothesis build dist

$(UV):
	@test -n "$(PYTHON)" || { echo "streamwatch needs Python 3.11 or newer on the PATH"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "streamwatch needs Python 3.11 or newer, $(PYTHON) is older: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m pip install $(PIP_OPTIONS) --target $(TOOLS) uv==$(UV_VERSION) 2>/dev/null \
	  || { $(PYTHON) -m venv $(TOOLS) && $(TOOLS)/bin/python -m pip install $(PIP_OPTIONS) uv==$(UV_VERSION); }

.cache/stamp-run: $(UV) pyproject.toml uv.lock
	$(UV) sync --quiet --frozen --inexact --python "$(INTERPRETER)" --no-default-groups --extra demo
	@touch $@

.cache/stamp-dev: $(UV) pyproject.toml uv.lock
	$(UV) sync --quiet --frozen --inexact --python "$(INTERPRETER)" --all-extras --no-extra spark --all-groups
	@touch $@ .cache/stamp-run
