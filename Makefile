# Each target does all set-up itself (scripts/setup.sh); a second run finds it done in a second.
SHELL := /bin/bash
BIN := .venv/bin
LIKENESS_DATA ?= $(abspath ../shared/data)
TEST_WORKERS ?= 3
PYTEST_ARGS ?=

# One thread a process: results repeat to the last bit, and small machines are not overrun.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export NUMEXPR_NUM_THREADS := 1
export LIKENESS_DATA
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help demo probe-demo test lint bench validity findings soak setup setup-dev clean

help:
	@echo "make demo      audit the sample portraits and write a report (out/demo)"
	@echo "make probe-demo  probe a small language model on this machine and write a report (out/probe-demo)"
	@echo "make test      lint, types, layers, then every test"
	@echo "make bench     speed of a pair and of a call, scaling, memory"
	@echo "make validity  do the figures measure what they say, on real portraits"
	@echo "make findings  audit eight tools on the London portraits and check what the report must show"
	@echo "make soak      load, kills and faults against the real service (about half an hour; QUICK=1: ten minutes)"
	@echo "make lint      lint, types and layers alone"
	@echo "make setup     only the set-up that demo does; setup-dev: the one that test does"
	@echo "make clean     remove .venv, caches and out/"

demo: setup
	@$(BIN)/likeness audit samples/audit.yaml --out out/demo

probe-demo:
	@scripts/setup.sh local-llm
	@$(BIN)/likeness probe samples/probes/demo.yaml --out out/probe-demo

test: lint
	@$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder -rs --durations=10 $(PYTEST_ARGS)

lint: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup-dev
	@$(BIN)/python docs/bench/probe_client_bench.py
	@$(BIN)/python docs/bench/bench.py

validity: setup-dev
	@missed=0; for script in docs/validity/*.py; do echo "== $$script"; $(BIN)/python $$script || missed=1; done; exit $$missed

findings: setup-dev
	@$(BIN)/python docs/findings/real_tools.py

ifdef QUICK
SOAKS := "gate_load --pairs 40 --seconds 30" "batch --pictures 200" "kills --moments 3" \
	"faults --seconds 8" "hostile --every 10" "fuzz --examples 5"
else
SOAKS := gate_load batch kills faults hostile fuzz
endif

soak: setup-dev
	@missed=0; for soak in $(SOAKS); do set -- $$soak; name=$$1; shift; echo "== docs/soak/$$name.py $$*"; \
		$(BIN)/python docs/soak/$$name.py "$$@" || missed=1; done; exit $$missed

setup:
	@scripts/setup.sh run

setup-dev:
	@scripts/setup.sh dev

clean:
	rm -rf .venv out build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
