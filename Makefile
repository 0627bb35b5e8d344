# `make help` lists what there is. Every target sets up first what it needs.

# One environment for all commands: Java, the packages, Spark's Python.
RUN = . ./.tidemill/env.sh &&
# The tests of a file stay in one process and share a Spark session; files begin in order, short ones last (tests/conftest.py).
PARALLEL = --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# What to look at when the tests have become slow.
LONGEST = --durations 20 --durations-min 1

# Only `make demo LOG=file` counts, not a variable of that name that happens to be in the environment.
ifeq ($(origin LOG),command line)
DEMO_LOG = --log "$$LOG"
endif
ifdef UPGRADE
LOCK_OPTIONS = --upgrade
endif

# `make test PART=2/6` adds the second of six parts of the long forms; ALL=1 adds all of them.
ifeq ($(origin PART),command line)
LONG_PART = $(PART)
endif

ifeq ($(ALL),1)
LONG_PART =
endif

ifneq ($(filter 1,$(ALL))$(LONG_PART),)
TESTS = not crash
PATIENT = -o faulthandler_timeout=900
else
TESTS = not long and not crash
PATIENT =
endif

# How often `make chaos` begins anew.
SEEDS = 20
# How long `make soak-airflow` runs, and how often it kills.
MINUTES = 60
KILLS = 3
# What else the program of a target is told, for example `make bench OPTIONS=--help`.
OPTIONS =

.PHONY: help setup demo airflow test test-long test-versitygw crash chaos model test-unit check format docs soak-airflow bench bench-audit bench-repair bench-upkeep bench-history bench-pages bench-pace bench-sliding bench-windows bench-airflow bench-cluster matrix kafka s3 connect cluster lock clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## */\1|/p' Makefile | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done

setup: ## bring Java, packages and jars; does what is left to do
	@infra/setup/setup.sh

demo: setup ## run the reference pipeline, kill a batch, prove the result; LOG=file takes your access log
	@$(RUN) tidemill demo $(DEMO_LOG)

airflow: setup ## Airflow with all its parts over a log that is fed, on 127.0.0.1:8080, until Ctrl-C; OPTIONS=--kafka
	@$(RUN) tidemill up $(OPTIONS)

test: setup ## all tests but those that have a shorter form; ALL=1 runs these, too, PART=2/6 a sixth of them
	@$(RUN) TIDEMILL_LONG_PART="$(LONG_PART)" pytest $(PARALLEL) $(LONGEST) $(PATIENT) -m "$(TESTS)"

test-long: setup ## the long forms
	@$(RUN) pytest $(PARALLEL) $(LONGEST) -o faulthandler_timeout=900 -m "long and not crash"

test-versitygw: setup ## the tests of stores on a second one, built from source where there is Go
	@$(RUN) TIDEMILL_TEST_STORE=versitygw pytest -o faulthandler_timeout=900 -m "not crash" tests/stores

crash: setup ## fail at every boundary of every kind of batch in every way
	@$(RUN) pytest $(PARALLEL) tests/batch/test_crash_matrix.py tests/batch/test_batch_kills.py tests/batch/test_batch_zombies.py \
		tests/batch/test_batch_damage.py tests/batch/test_batch_strangers.py tests/batch/test_batch_meetings.py \
		tests/batch/test_crashes_of_kinds.py tests/machine/test_crashes_of_kinds.py \
		tests/machine/test_crashes_of_amendments.py tests/machine/test_crashes_of_decisions.py \
		tests/machine/test_crashes_of_replays.py tests/machine/test_crashes_of_replayed_keys.py tests/kafka/test_kafka_crashes.py

chaos: setup ## kill processes at random moments, and prove what they leave; SEEDS=20
	@$(RUN) python benchmarks/chaos/chaos.py --seeds $(SEEDS) $(OPTIONS)

model: setup ## search the protocol's model, and show what each broken rule leads to
	@$(RUN) pytest tests/protocol -rP

test-unit: setup ## the rules alone: no Spark, no Airflow, no files
	@$(RUN) pytest $(PARALLEL) tests/core

check: setup ## lint, format, types, layers; contracts, and what the work since the main branch broke in them
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) mypy
	@$(RUN) mypy infra/setup
	@$(RUN) mypy infra/local
	@$(RUN) lint-imports
	@$(RUN) for project in . spark_jobs/gallery; do PROJECT=$$project BASE=$$(infra/ci/base.sh) infra/ci/contracts.sh || exit 1; done

format: setup ## put imports and layout in order
	@$(RUN) ruff check --fix-only
	@$(RUN) ruff format

docs: setup ## make a site of the pages, in build/docs; a dead link is an error
	@$(RUN) sphinx-build --quiet --fail-on-warning --keep-going --jobs auto -d build/docs/.doctrees docs build/docs

soak-airflow: setup ## an hour of `tidemill up` with a batch every minute and kills, then proof; MINUTES=60 KILLS=3
	@$(RUN) python benchmarks/soak/soak_airflow.py --minutes $(MINUTES) --kills $(KILLS) $(OPTIONS)

bench: setup ## measure batches against the known ways to do the same
	@$(RUN) python benchmarks/bench/bench.py $(OPTIONS)

matrix: setup ## the same rows on every log, storage, place and writer
	@$(RUN) python benchmarks/matrix/matrix.py $(OPTIONS)

kafka: setup ## a Kafka broker on 127.0.0.1:9092 to try things out, until Ctrl-C
	@$(RUN) python infra/local/broker.py $(OPTIONS)

s3: setup ## a store that speaks S3 on 127.0.0.1:9000 to try things out, until Ctrl-C
	@$(RUN) python infra/local/store.py $(OPTIONS)

connect: setup ## a Spark Connect server on 127.0.0.1:15002 to try things out, until Ctrl-C
	@$(RUN) python infra/local/spark_servers.py connect $(OPTIONS)

cluster: setup ## a Spark cluster of two workers on 127.0.0.1:7077 to try things out, until Ctrl-C
	@$(RUN) python infra/local/spark_servers.py cluster $(OPTIONS)

bench-audit: setup ## what the audit of a batch costs: 30 rules on 2,000 rows
	@$(RUN) python benchmarks/bench/bench_audit.py $(OPTIONS)

bench-repair: setup ## what it costs to repair ten records among a thousand windows
	@$(RUN) python benchmarks/bench/bench_repair.py $(OPTIONS)

bench-upkeep: setup ## 10,000 batches with maintenance every 500: whether the last hundred costs what the second did
	@$(RUN) python benchmarks/bench/bench_upkeep.py $(OPTIONS)

bench-history: setup ## looks at a ledger of a million events, and repairs of a million scattered records
	@$(RUN) python benchmarks/bench/bench_history.py $(OPTIONS)

bench-pages: setup ## how long each page in Airflow takes over ten thousand batches
	@$(RUN) python benchmarks/bench/bench_pages.py $(OPTIONS)

bench-pace: setup ## whether batches keep up with 47,000 records a second in Kafka, for 5 minutes
	@$(RUN) python benchmarks/bench/bench_pace.py $(OPTIONS)

bench-sliding: setup ## windows of an hour by a minute beside tumbling ones: 300 batches with 5,000 keys, 90 with 200,000; KEYS= BATCHES=
	@$(RUN) python benchmarks/bench/bench_sliding.py $(if $(KEYS),--keys $(KEYS)) $(if $(BATCHES),--batches $(BATCHES)) $(OPTIONS)

bench-windows: setup ## sessions, totals and sliding windows against their bounds, into build/bench_windows.json
	@$(RUN) python benchmarks/bench/bench_windows.py $(OPTIONS)

bench-cluster: setup ## 10,000,000 records in a batch on a standalone cluster of two workers, and on one of four
	@$(RUN) python benchmarks/bench/bench_cluster.py $(OPTIONS)

bench-airflow: setup ## seconds from a scheduled moment to the commit: 20 runs on Spark Connect, 20 in local sessions
	@$(RUN) python benchmarks/bench/bench_airflow.py $(OPTIONS)

lock: ## resolve the packages of pyproject.toml again; UPGRADE=1 takes the newest
	@infra/setup/setup.sh lock $(LOCK_OPTIONS)

clean: ## remove results and caches; the environment stays
	rm -rf build dist spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find spark_jobs plugins dags infra tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
