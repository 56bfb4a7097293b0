# `make` alone lists what there is. Everything is installed into this folder (.venv, .cache).
# More arguments for the program behind a target go into ARGS, e.g. make test ARGS="-k sweep -x".

SHELL := bash
PYTHON := .venv/bin/python
UV = $(or $(shell command -v uv),.tools/bin/uv)
ONCE ?=
PORT ?=
LIMIT ?=
ARGS ?=
SIZE ?= small
SYSTEMS ?=
WORKLOADS ?=
UPDATES ?=
FRESH ?=
KEEP ?=
MINUTES ?= 60
SEED ?=

# The Java that set-up found, so that nobody needs to set JAVA_HOME.
WITH_JAVA := JAVA_HOME="$(CURDIR)/.venv/java"
# Fast tests are plain Python: one that starts a JVM by mistake fails here.
WITHOUT_JAVA := JAVA_HOME=/nonexistent/fast-tests-start-no-jvm
# What run and cluster take: ONCE=1 ends when the indexes stand at their ends, LIMIT=MINUTES is its limit.
CHOICES = ONCE="$(ONCE)" PORT="$(PORT)" LIMIT="$(LIMIT)"

.DEFAULT_GOAL := help
.PHONY: help setup .ready run cluster archive env test test-fast coverage faults lint format lock release bench bench-long bench-advisor bench-fixed bench-task bench-cold bench-run bench-scale clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r target text; do printf '  make %-13s  %s\n' "$$target" "$$text"; done

setup: ## install Python packages, Java if missing, the Delta jars; repeated, it does nothing
	@bash scripts/setup

.ready:
	@bash scripts/setup --quiet

run: .ready ## Airflow and Spark with real flights, until Ctrl-C; ONCE=1 ends when it has caught up
	@$(WITH_JAVA) $(CHOICES) $(PYTHON) -m rig.embedded $(ARGS)

cluster: .ready ## the parts of docker-compose.yaml without Docker: PostgreSQL, Spark master and worker, Airflow
	@$(WITH_JAVA) $(CHOICES) $(PYTHON) -m rig.cluster $(ARGS)

archive: .ready ## keep Spark's classes in a file, so that every JVM starts some seconds sooner
	@$(WITH_JAVA) $(PYTHON) -m tidetable.engine.archive

env: ## write .env for docker-compose.yaml, with fresh secrets
	@python3 scripts/make_env.py

test: lint ## everything: ruff, mypy, the whole of pytest; Chromium and PostgreSQL are installed if that is possible
	@bash scripts/readers > /dev/null || true  # if it cannot be made, its test fails and says why
	@bash scripts/browser > /dev/null || true  # without one the browser tests say that they were left out
	@$(WITHOUT_JAVA) $(PYTHON) -m pytest -n auto --dist loadfile -m 'not spark' --durations=10 $(ARGS)
	@$(WITH_JAVA) $(PYTHON) -m tidetable.engine.archive  # the tests start many JVMs
	@$(WITH_JAVA) $(PYTHON) -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m spark --durations=25 $(ARGS)  # two JVMs: most of them wait most of the time

test-fast: .ready ## only the tests that start no JVM and take no time
	@$(WITHOUT_JAVA) $(PYTHON) -m pytest -n auto --dist loadfile -m 'not spark and not slow' $(ARGS)

coverage: .ready ## the tests once more, counting which lines they run: core and config 95 %, table and engine 90 %
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	@$(WITHOUT_JAVA) $(PYTHON) -m coverage run -m pytest -n auto --dist loadfile -m 'not spark' -q $(ARGS)
	@$(WITH_JAVA) $(PYTHON) -m coverage run -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'spark and not e2e and not cluster' -q $(ARGS)
	@$(PYTHON) -m coverage combine -q
	@for floor in core config; do $(PYTHON) -m coverage report --include="*/tidetable/$$floor/*" --skip-covered --show-missing --fail-under=95 || exit 1; done
	@for floor in table engine; do $(PYTHON) -m coverage report --include="*/tidetable/$$floor/*" --skip-covered --show-missing --fail-under=90 || exit 1; done

faults: .ready ## stories, kills, pairs of operations, hostile sources with fresh seeds; MINUTES=60, SEED=N
	@$(WITH_JAVA) $(PYTHON) -m tidetable.engine.archive  # it starts many JVMs
	@$(WITH_JAVA) $(PYTHON) -m tests.faults --minutes "$(MINUTES)" $(if $(SEED),--seed "$(SEED)") $(ARGS)

lint: .ready ## ruff (rules and format), mypy, and import-linter: which floor may import which
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@.venv/bin/lint-imports --no-logo --cache-dir .cache/import_linter

format: .ready ## let ruff format the code and repair what it can
	@$(PYTHON) -m ruff check --fix-only --exit-zero .
	@$(PYTHON) -m ruff format .

lock: ## make requirements.txt (and -readers) from pyproject.toml and requirements.in; ARGS=--upgrade for newer versions
	@$(UV) pip compile --quiet --python-version 3.11 --custom-compile-command 'make lock' --all-extras pyproject.toml requirements.in -o requirements.txt $(ARGS)
	@$(UV) pip compile --quiet --python-version 3.11 --no-annotate --custom-compile-command 'make lock' requirements-readers.in -o requirements-readers.txt $(ARGS)

release: .ready ## build the wheel and the sdist into dist/, check them, tag the version; uploads nothing
	@bash scripts/release

bench: .ready ## ours against what people use instead, to bench/results; SIZE=small, medium or large, see docs/benchmark.md
	@$(WITH_JAVA) $(PYTHON) -m bench --size "$(SIZE)" --systems "$(SYSTEMS)" --workloads "$(WORKLOADS)" --updates "$(UPDATES)" --fresh "$(FRESH)" --keep "$(KEEP)"

bench-advisor: .ready ## is what the advisor advises within 15 % of the best setting? to bench/results/advisor.md
	@$(WITH_JAVA) $(PYTHON) -m bench.advisor --live-mb "$(or $(LIVE_MB),100)" --updates "$(or $(UPDATES),6)" --workloads "$(WORKLOADS)"

bench-long: .ready ## 500 updates of a small index: does an update get slower as history grows?
	@$(WITH_JAVA) $(PYTHON) bench/long_run.py $(ARGS)

bench-fixed: .ready ## what an update costs that has nothing to do, to bench/results/fixed_cost.md
	@$(WITH_JAVA) $(PYTHON) -m bench.fixed_cost

bench-task: .ready ## what the Spark job of one Airflow task costs, to bench/results/task_cost.md
	@$(WITH_JAVA) $(PYTHON) -m bench.task_cost

bench-cold: .ready ## what `tidetable update` costs from a cold start, to bench/results/cold_start.md
	@$(WITH_JAVA) $(PYTHON) -m bench.cold_start $(ARGS)

bench-run: .ready ## what a run of Airflow costs, queued to validated, three indexes at once, to bench/results/run_cost.md
	@$(WITH_JAVA) $(PYTHON) -m bench.run_cost $(ARGS)

bench-scale: .ready ## the same stream at 1, 3, 10 and 30 times the rate: how does an update grow with the rows?
	@$(WITH_JAVA) $(PYTHON) -m bench.scale

clean: ## remove what runs have made: tables, reports, the sample, what Airflow remembers
	@if [ -L .airflow-cluster/pg ]; then rm -rf "$$(readlink .airflow-cluster/pg)"; fi
	rm -rf .tidetable .airflow .airflow-cluster .live include/data

distclean: clean ## also remove what set-up and tools have made
	rm -rf dist .venv .cache .tools .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
