# `make help` lists the targets; the first one, `demo`, is the default.
# Needs Linux, Python 3.11, 3.12 or 3.13 and nothing else; everything is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
CORES ?= all
WORKERS ?= 2
export TAG ?=
TESTS ?= not slow and not accelerator and not parity and not browser
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONHASHSEED ?= 0

# What a run needs: the environment of `make runtime`, `make cuda`, `make jax` or `make jax-cuda`, if it is there.
ENVIRONMENT := $(or $(wildcard .venv/runtime .venv/cuda .venv/jax-cpu .venv/jax-cuda),.venv/installed)

# The environment of `make jax` has no TensorFlow.
ENGINE ?= $(if $(filter .venv/jax%,$(ENVIRONMENT)),jax,tensorflow)
$(if $(filter $(ENGINE),tensorflow jax),,$(error ENGINE is $(ENGINE); it must be tensorflow or jax))
DEMO_ON_jax := configs/demo.yaml configs/engines/demo_jax.yaml

.PHONY: help demo setup runtime cuda jax jax-cuda signing slurm t5x parity parity-jax parity-4 parity-5 browser preflight docs notebook test test-all check release-check format generate lock compare spread clean

demo: $(ENVIRONMENT) ## run the whole chain on the bundled mini crawl; on JAX after `make jax`, or with ENGINE=jax
	snakemake --profile local --cores $(CORES) $(if $(DEMO_ON_$(ENGINE)),--configfile $(DEMO_ON_$(ENGINE)))
	t5repro dvc raw data.dvc
	t5repro certificate $(if $(DEMO_ON_$(ENGINE)),--run-file $(DEMO_ON_$(ENGINE)))

setup: .venv/installed ## .venv with the locked packages

runtime: .venv/runtime ## .venv with what a run on a CPU needs: no Spark, export or developers' tools

cuda: .venv/cuda ## .venv with what a run on an NVIDIA GPU needs

jax: .venv/jax-cpu ## .venv with what a run on JAX and a CPU needs, without TensorFlow

jax-cuda: .venv/jax-cuda ## .venv with what a run on JAX and an NVIDIA GPU needs, without TensorFlow

signing: .venv/signing ## what signs published models, on top of any of these environments

slurm: .venv/slurm ## what submits jobs to SLURM, on top of any of these environments

t5x: .venv/t5x ## what reads checkpoints of T5X, on top of any of these environments

.venv/installed: requirements/cpu-gpu.txt pyproject.toml
.venv/runtime: requirements/runtime.txt pyproject.toml
.venv/cuda: requirements/cuda.txt pyproject.toml
.venv/jax-cpu: requirements/jax.txt pyproject.toml
.venv/jax-cuda: requirements/jax-cuda.txt pyproject.toml
.venv/installed .venv/runtime .venv/cuda .venv/jax-cpu .venv/jax-cuda:
	$(PYTHON) -c "import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else 'Python 3.11, 3.12 or 3.13 is needed; name one with make PYTHON=python3.12')"
	@echo "installing $$(grep -c '^[a-z].*==' $<) locked packages into .venv: 2 to 8 GB of disk, a few minutes"
	$(PYTHON) -m venv --clear .venv # a package of an older lock, or of `make parity`, would stay
	# pip of Debian 12 would run setup.py of four packages, which then have no list of their files.
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --use-pep517 -r $<
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

test: setup .venv-jax/installed ## run the tests that take seconds, and a small chain end to end, on both engines
	pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "$(TESTS)"

test-all: setup ## run every test
	pytest

parity: parity-jax parity-4 parity-5 ## compare with peers: the other engine, Hugging Face on torch, TFDS; installs them

# All of them, before `.venv` is used.
parity-jax parity-4: .venv/torch .venv/t5x .venv/transformers-5/installed .venv-jax/installed

parity-jax:
	pytest -m parity tests/train tests/workflow

parity-4:
	pytest -m parity tests/parity tests/c4 tests/model

parity-5: .venv/transformers-5/installed
	PYTHONPATH=.venv/transformers-5 pytest -m parity tests/parity

.venv/parity .venv/browser: .venv/installed
.venv/signing .venv/slurm .venv/t5x: $(ENVIRONMENT)
.venv/parity .venv/t5x .venv/browser .venv/signing .venv/slurm: .venv/%: requirements/%.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/$*.txt
	touch $@

# Where pip finds no torch built for CPUs, the one of PyPI, with NVIDIA's libraries.
.venv/torch: .venv/parity requirements/torch-cpu.txt requirements/torch-cuda.txt
	for lock in cpu cuda; do $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/torch-$$lock.txt && break; done
	touch $@

# A folder of its own, found before the packages of .venv, which has transformers 4.
.venv/transformers-5/installed: .venv/torch requirements/transformers-5.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --upgrade --target $(@D) -r requirements/transformers-5.txt
	touch $@

# The second engine, for the tests: without TensorFlow, so that nothing can import it.
.venv-jax/installed: requirements/jax.txt .venv/installed
	$(PYTHON) -m venv --clear .venv-jax
	.venv-jax/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --use-pep517 -r requirements/jax.txt
	.venv-jax/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

browser: .venv/browser ## look at the report of a small run in Chromium; installs its driver
	pytest -m browser tests/browser

preflight: .venv-preflight/installed ## an environment with the TPU compiler

.venv-preflight/installed: requirements/preflight.txt
	$(PYTHON) -m venv .venv-preflight
	.venv-preflight/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/preflight.txt
	touch $@

docs: .venv-docs/installed ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet

notebook: setup .venv-docs/installed ## run examples/notebook on the finished demo, into exports/
	PYTHONPATH=$$(echo $(CURDIR)/.venv-docs/lib/python3*/site-packages) python examples/notebook/execute.py examples/notebook/use_a_model.ipynb exports/use_a_model.ipynb

.venv-docs/installed: requirements/docs.txt
	$(PYTHON) -m venv --clear .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/docs.txt
	touch $@

check: setup ## style, types, rule files, names in documents, generated files
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	python tools/lint.py
	python -m tools.check_docs
	t5repro config check

release-check: .venv-release/installed ## build sdist and wheel into dist/, check them; TAG=v0.2.0 must be the version
	rm -rf dist
	.venv-release/bin/python -m build
	.venv-release/bin/twine check --strict dist/*
	test -z "$$TAG" || test -e "dist/t5repro-$${TAG#v}.tar.gz"

.venv-release/installed: requirements/release.txt
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/release.txt
	touch $@

format: setup
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

generate: setup ## write the files generated from the settings
	t5repro config generate

lock: ## lock files with hashes; needs uv and the network
	requirements/lock.sh

spread: setup ## measure how far losses and scores of the finished demo move by rounding
	python benchmarks/spread.py --run-file configs/demo.yaml

compare: setup ## compare the bytes of two fresh clones, on one core and on two
	python tests/workflow/compare_clones.py

clean: ## delete everything that a run creates, except .venv
	rm -rf results work logs .snakemake

help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 12
