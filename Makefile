# Everything a developer types. Needs make and a Python 3.11 or newer; `make install` fetches the rest.

BIN     := .venv/bin
PY      := $(BIN)/python
# Twice as many as two cores: tests wait for other processes, for disks and for clocks in nearly half of their time.
WORKERS ?= 4
TESTS   ?= tests
EVALS   ?= ../shared/evals
# The tests start a thousand processes: compiled once and not by each of them, whatever this machine's habit is.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo quick test check fix faults sim power soak fuzz hosts frameworks bench compare eval lock docs site dist release clean node pytest coverage
.PHONY: wheel
.PHONY: types house costs

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

install: ## make .venv with everything in it (nothing to do when it is up to date)
	@./scripts/bootstrap.sh

demo: install ## index the example workspace and search it
	@./scripts/demo.sh

quick: install ## what a change touches most, in less than a minute: lint, house rules, the nearest tests
	@$(PY) scripts/quick.py

test: install ## everything that must hold: checks, tests, coverage, the built wheel
	@$(MAKE) --no-print-directory --jobs=2 types house wheel
	@$(MAKE) --no-print-directory coverage

check: install ## formatting, lint, types, layers, lengths, generated pages
	@$(MAKE) --no-print-directory --jobs=2 types house

types:
	@$(PY) -m mypy

house:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-logo
	@$(PY) scripts/check_house.py
	@$(PY) scripts/generate_docs.py --check

fix: install ## format, repair what ruff can, write the generated pages anew
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(PY) scripts/generate_docs.py

# Another MCP client than the one in .venv, a search engine and a browser, for the tests that look with other eyes.
node:
	@./scripts/node.sh
	@./scripts/qmd.sh
	@./scripts/chromium.sh

pytest: install node
	@rm -f .coverage .coverage.*
	@$(PY) -m coverage run -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

# The pure packages are covered branch by branch; the rest to nine tenths, by what the tests run in their own process.
coverage: pytest
	@$(PY) -m coverage combine --quiet
	@$(PY) scripts/check_coverage.py

wheel: install
	@$(PY) scripts/check_wheel.py

costs: install node ## the tests that cost most, in CPU seconds
	@PYTHONPATH="$(CURDIR)/scripts" $(PY) -m pytest -q -n $(WORKERS) --dist worksteal -p cpu_cost $(TESTS)

faults: install ## the fault tests at full size, and every property with all its examples
	@PLAINMIND_FAULTS=full $(PY) -m pytest --timeout=3600 tests/faults
	@PLAINMIND_FAULTS=full $(PY) -m pytest --timeout=3600 -m hypothesis --ignore=tests/faults tests

sim: install ## power cuts in simulated lives of a memory, MINUTES=60 of them; a seed that fails is printed
	@$(PY) -m tests.simulation.run --minutes $(or $(MINUTES),60) --first $(or $(FIRST),1000) $(if $(RECORD),--record)

power: install ## power cuts on real file systems in images, as root; CUTS=100 on each
	@./scripts/file_systems.sh
	@$(PY) -m tests.simulation.power --cuts $(or $(CUTS),100) $(if $(RECORD),--record)

soak: install ## everything at work on one memory for MINUTES=480, a REST=0.2 behind each step: nothing may grow; a report with plots in build/soak
	@$(PY) -m tests.soak.run --minutes $(or $(MINUTES),480) --rest $(or $(REST),0.2) $(if $(RECORD),--record)

fuzz: install ## any bytes at every door, CASES=1000000 at each, by PROCESSES=1; KEEP=1 writes down what reaches more lines
	@$(PY) -m tests.fuzz.run --cases $(or $(CASES),1000000) --seed $(or $(SEED),0) --processes $(or $(PROCESSES),1) $(if $(KEEP),--keep) $(if $(RECORD),--record)

hosts: install ## connect real agents from npm, talk with them, disconnect them; UPGRADE=1 takes the newest
	@PLAINMIND_HOSTS="$$(./scripts/hosts.sh)" $(PY) -m pytest --timeout=900 tests/integration/test_hosts.py

frameworks: install ## use each class for a framework in that framework, oldest and newest; ONLY="langchain crewai", UPGRADE=1
	@PLAINMIND_FRAMEWORKS="$$(./scripts/frameworks.sh)" $(PY) -m pytest --timeout=900 tests/integration/test_frameworks.py tests/integration/test_mem0.py

bench: install ## measure speed at several sizes, BENCH=full for a million chunks; the figures go to docs/performance.md
	@$(PY) scripts/add_group.py bench || true  # the figures say what was not measured
	@PYTHONPATH="$(CURDIR)/scripts" $(PY) benchmarks/performance_page.py
	@PYTHONPATH="$(CURDIR)/scripts" $(PY) benchmarks/host_waits.py --record
	@PYTHONPATH="$(CURDIR)/scripts" $(PY) benchmarks/stores.py --record

compare: install ## the same work beside OpenClaw, QMD, memsearch, basic-memory, mem0 and ripgrep; the page is docs/compare.md
	@PYTHONPATH=benchmarks:scripts $(PY) -m compare $(COMPARE)

eval: install ## measure the answers on the public sets in EVALS; the figures go to docs/quality.md
	@$(PY) scripts/evaluate.py $(EVALS)

lock: install ## resolve the dependencies into uv.lock again; UPGRADE=1 takes the newest
	@$(PY) scripts/lock.py $(if $(UPGRADE),--upgrade)

docs: install ## write the generated pages
	@$(PY) scripts/generate_docs.py

site: install ## the documentation as web pages that need no network, in site/
	@$(PY) scripts/add_group.py site
	@$(PY) scripts/build_site.py

dist: install ## build the wheel and the sdist into dist/
	@rm -rf dist
	@$(PY) scripts/release.py --build-only

release: test site ## everything that must hold, both archives tried in empty environments, then a tag; publishing is yours
	@rm -rf dist
	@$(PY) scripts/release.py

clean: ## remove what the other targets made, .venv included
	@rm -rf .venv dist site build .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@rm -rf tests/support/node/node_modules tests/support/qmd/node_modules
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
