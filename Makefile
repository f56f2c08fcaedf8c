# Two commands matter: `make lab` and `make test`. `make help` lists the rest.

# The newest of the supported Pythons that runs here and can make an environment.
PYTHON        ?= $(or $(shell for name in python3.12 python3.11 python3.10; do \
                   if $$name -c 'import ensurepip, venv' >/dev/null 2>&1; then \
                     echo $$name; break; fi; done),python3.11)
VENV          ?= .venv
VENV_BOARD    ?= .venv-board-image
SYSROOT_ARMV7 ?= .venv-armv7
BOARD         ?= csim
JOBS          ?=
NOTEBOOKS     ?=
COURSE        ?= course
LAB_FLAGS     ?=
PYTEST_FLAGS  ?=
BENCH_FLAGS   ?=

SHELL         := /bin/bash
.SHELLFLAGS   := -euo pipefail -c
MAKEFLAGS     += --no-print-directory
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := help

# A stamp is written only after everything before it succeeded, so that an install which failed
# halfway is done again; it is older than the files it depends on when one of them changes.
# What the tests need comes on top, into the same environment.
STAMP         := $(VENV)/.installed
STAMP_TEST    := $(VENV)/.installed-test
STAMP_BOARD   := $(VENV_BOARD)/.installed
PY            := $(VENV)/bin/python
PY_BOARD      := $(VENV_BOARD)/bin/python
PACKAGING     := pyproject.toml pynq_torch/board/startup/_pynq_torch_autoload.py \
                 pynq_torch/board/startup/pynq_torch_autoload.pth

# Lessons that have as much to say on board rtl, beside those that choose it themselves.
RTL_LESSONS   := 00 01 02 03 04 05 06 07 08 09 10 16 21
# nbval executes every lesson as it is committed. These run with other sizes and another seed: a
# product, buffers and streams, charts, records, and one that chooses board rtl itself.
CSIM_LESSONS  := 02 05 13 14 17 21
CSIM_VALUES   := SEED=3 SIZES=96,160
# Rooms and kernels in which `make test-long` plants faults, SAMPLE in each.
MUTATED       := waits diagnosis buffers board hls kernels ops nn verify hw/kernels hw/include
# Where each part of `make test` writes how long its tests took.
TIMES         := reports/times

# Jupyter refuses to run as root unless told to; in a container there is often nobody else.
AS_ROOT       := $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)

# NAME=value words of the command line, as in `make report SEED=3`, without make's own, quoted for
# the shell. Make keeps a space inside a value as a backslash and a space.
empty         :=
GAP           := @gap@
OVERRIDES      = $(subst \$(empty) $(empty),$(GAP),$(MAKEOVERRIDES))
OWN           := PYTHON=% COURSE=% VENV=% VENV_BOARD=% BOARD=% JOBS=% NOTEBOOKS=% LAB_FLAGS=% \
                 PYTEST_FLAGS=% BENCH_FLAGS=%
PARAMETERS     = $(foreach word,$(filter-out $(OWN),$(OVERRIDES)),'$(subst $(GAP), ,$(subst ','\'',$(word)))')

.PHONY: help env env-test lab report release instructor test test-long lint lint-sources format test-unit test-reports \
        test-notebooks mutate bench test-board-image armv7-sysroot clean distclean

help: ## list the targets
	@echo "make TARGET"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	  | while IFS='|' read -r target text; do printf '  %-18s %s\n' "$$target" "$$text"; done

env: $(STAMP) ## create .venv with what the lessons need

env-test: $(STAMP_TEST) ## and with what the tests need

# Of drawings in outputs JupyterLab shows nothing but their words, unless it trusts the notebook.
lab: $(STAMP) ## open JupyterLab on the workbook (LAB_FLAGS="..." passes through)
	$(VENV)/bin/jupyter trust notebooks/*.ipynb > /dev/null
	$(VENV)/bin/jupyter lab --notebook-dir=. $(AS_ROOT) \
	  --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb $(LAB_FLAGS)

report: $(STAMP) ## run the notebooks, write reports/index.html (BOARD=csim SIZES="64 128" NOTEBOOKS=05 JOBS=2)
	$(PY) -m pynq_torch report --board '$(BOARD)' $(if $(JOBS),--jobs '$(JOBS)') \
	  $(if $(NOTEBOOKS),--only '$(NOTEBOOKS)') $(PARAMETERS)

release: $(STAMP_TEST) ## the course for nbgrader, with the student's edition in course/release (COURSE=course)
	$(PY) -m pynq_torch course '$(COURSE)'

instructor: $(STAMP_TEST) ## the instructor's edition alone, in course/source (COURSE=course)
	$(PY) -m pynq_torch course --instructor '$(COURSE)'

# A part that fails does not keep the others from running, and fails the whole.
test: $(STAMP_TEST) ## everything that CI runs; ends with its ten slowest parts
	@$(PY) tests/browser/chromium.py
	@rm -rf $(TIMES)
	@failed=; \
	$(MAKE) --keep-going --jobs 2 lint-sources test-unit || failed=" lint or unit tests,"; \
	$(MAKE) test-reports || failed+=" reports,"; \
	$(MAKE) test-notebooks || failed+=" notebooks,"; \
	$(PY) ci/slowest.py $(TIMES) reports/test reports/rtl; \
	if [ -n "$$failed" ]; then echo "make test: failed:$${failed%,}" >&2; exit 1; fi

test-long: $(STAMP_TEST) ## what takes hours: all lessons, 10 times the examples, mutations (SEED=0 SAMPLE=40)
	$(PY) -m pynq_torch report --board csim --jobs 2 --keep 3 --output reports/long
	PYNQ_TORCH_GRADE=all $(PY) -m pytest --timeout 20000 $(PYTEST_FLAGS) tests/test_grading.py
	PYNQ_TORCH_EXAMPLES=10 $(PY) -m pytest -n 2 --timeout 3000 -m hypothesis $(PYTEST_FLAGS) tests
	@failed=; for module in $(or $(MODULE),$(MUTATED)); do \
	  $(MAKE) mutate MODULE="$$module" JOBS='$(or $(JOBS),2)' || failed=1; \
	done; [ -z "$$failed" ]

lint: lint-sources ## ruff, mypy, codespell, import-linter, notebook style
	$(PY) -m pytest -q tests/test_notebook_style.py

# What `make test` runs beside the unit tests, to which the notebooks' style belongs.
lint-sources: $(STAMP_TEST)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/codespell
	$(VENV)/bin/lint-imports --no-logo --no-cache

format: $(STAMP_TEST) ## let ruff write the layout
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# Without --no-loadscope-reorder files with many tests would come first; tests/conftest.py orders.
test-unit: $(STAMP_TEST) ## pytest on tests/
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder \
	  --junit-xml=$(TIMES)/unit.xml $(PYTEST_FLAGS) tests

test-reports: $(STAMP_TEST) ## the lessons that tell more with other values, or on board rtl
	@failed=; \
	$(PY) -m pynq_torch report --board csim --only '$(CSIM_LESSONS)' --jobs 2 --keep 3 \
	  --output reports/test $(CSIM_VALUES) || failed=1; \
	$(PY) -m pynq_torch report --board rtl --only '$(RTL_LESSONS)' --jobs 2 --keep 3 \
	  --output reports/rtl || failed=1; \
	[ -z "$$failed" ]

test-notebooks: $(STAMP_TEST) ## run every notebook and compare with its committed outputs
	$(PY) -m pytest -n 2 --dist loadfile --nbval --junit-xml=$(TIMES)/notebooks.xml \
	  $(PYTEST_FLAGS) notebooks

mutate: $(STAMP_TEST) ## plant faults in MODULE, see which the tests notice (SEED=0 SAMPLE=40 THRESHOLD=90 JOBS=1)
	@$(PY) tests/mutate.py '$(MODULE)' $(if $(SEED),--seed '$(SEED)') \
	  $(if $(SAMPLE),--sample '$(SAMPLE)') $(if $(THRESHOLD),--threshold '$(THRESHOLD)') \
	  $(if $(JOBS),--jobs '$(JOBS)') $(if $(TESTS),--tests '$(TESTS)')

bench: $(STAMP) ## print the figures of speed, each with its conditions (BENCH_FLAGS="...")
	$(PY) tests/bench.py $(BENCH_FLAGS)

test-board-image: $(STAMP_BOARD) ## run the notebooks under the board image's own Jupyter
	$(PY_BOARD) -m pynq_torch report --board csim --jobs 2 --keep 3 --output reports/board-image

armv7-sysroot: $(SYSROOT_ARMV7)/.installed ## an emulated armhf Python with pynq, for tests/test_armv7.py

clean: ## remove reports and caches, keep the environments
	rm -rf reports .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find pynq_torch tests ci hw -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the environments as well
	rm -rf $(VENV) $(VENV_BOARD) $(SYSROOT_ARMV7) $(VENV).lock $(VENV_BOARD).lock

$(STAMP): $(PACKAGING) ci/constraints.txt ci/install.sh
	@PYTHON='$(PYTHON)' ci/install.sh $@ ci/constraints.txt --editable '.[virtual,lab,rtl]'

$(STAMP_TEST): $(STAMP)
	@PYTHON='$(PYTHON)' ci/install.sh $@ ci/constraints.txt --editable '.[test]'

$(STAMP_BOARD): $(PACKAGING) ci/constraints-board-image.txt ci/install.sh
	@PYTHON='$(PYTHON)' ci/install.sh $@ ci/constraints-board-image.txt \
	  --editable '.[virtual,lab,rtl]' notebook

$(SYSROOT_ARMV7)/.installed: ci/constraints.txt ci/armv7/sysroot.sh | $(STAMP)
	@VENV='$(VENV)' ci/armv7/sysroot.sh '$(SYSROOT_ARMV7)'
