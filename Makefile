# make demo | test | test-all | parity | preflight | check | generate | lock | compare
# Needs Linux, Python 3.11 or 3.12 and nothing else; everything is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
CORES ?= all
WORKERS ?= 2
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONHASHSEED ?= 0

.PHONY: demo setup parity preflight test test-all check format generate lock compare clean

demo: setup ## the whole chain on the bundled mini crawl
	snakemake --profile local --cores $(CORES)
	t5repro frozen data.dvc
	t5repro show results/demo
	t5repro certificate

setup: .venv/installed ## .venv with the locked packages

.venv/installed: requirements/cpu-gpu.txt pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 13) else 'Python 3.11 or 3.12 is needed; name one with make PYTHON=python3.12')"
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/cpu-gpu.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

test: setup ## everything that takes seconds, and the demo's chain in small
	pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder -m "not slow and not accelerator and not parity"

test-all: setup ## with what takes minutes
	pytest

parity: .venv/parity ## install the peers, and compare with them: Hugging Face on torch, TFDS
	pytest -m parity tests/parity tests/c4/test_parity_tfds.py

.venv/parity: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[parity]" --no-build-isolation
	# Its functions are called, and its framework is not: what it depends on stays away.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps tensorflow-datasets==4.9.10
	touch $@

preflight: .venv-preflight/installed ## the TPU compiler, in an environment of its own

.venv-preflight/installed: requirements/preflight.txt
	$(PYTHON) -m venv .venv-preflight
	.venv-preflight/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/preflight.txt
	touch $@

check: setup ## style, types, rule files, names in documents, generated files
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	python workflow/lint.py
	python -m workflow.check_docs
	t5repro config check

format: setup
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

generate: setup ## files made from the settings schema
	t5repro config generate

lock: ## lock files with hashes; needs uv and the network
	requirements/lock.sh

compare: setup ## two fresh clones, one core and two: the same bytes?
	python tests/workflow/compare_clones.py

clean: ## everything that can be made again, but not .venv
	rm -rf results work logs .snakemake
