# Everything here needs only Python 3.10 or newer and make: the first target that runs
# makes .venv and installs the project in it. `make PYTHON=/path/to/python` chooses the Python, and
# `make lab LAB=--allow-root` gives JupyterLab an option.

VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
PEERS := $(VENV)/.installed-peers
BENCH := $(VENV)/.installed-bench
CLUSTER := $(VENV)/.installed-cluster
BROWSER := $(VENV)/.installed-browser
CHAT := $(VENV)/.installed-chat
LOWEST := $(VENV)/lowest
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python3.10 python
TORCH :=
LAB :=
SAME :=
STAGES :=
PARTS :=
TESTS := -n auto --dist loadfile --no-loadscope-reorder \
  $(foreach other,browser peers smollm2,--ignore=autograder/tests/$(other))

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test lab bench bench-figures bench-class build versions mutants lint report-picture test-lowest test-peers test-browser test-chat clean

help:
	@echo '  make demo        grade a sample class with nbgrader and show the scores'
	@echo '  make test        run the tests'
	@echo '  make lab         open JupyterLab on a copy of the released notebooks, in lab/; STAGES="kv-cache ..." chooses'
	@echo '  make build       make course/source and course/release from solutions/'
	@echo '  make bench       measure, also beside transformers on PyTorch (installs both), and print the goals;'
	@echo '                   PARTS="reuse speed serving chat" chooses, also for bench-figures'
	@echo '  make bench-figures  measure, and write course/MEASURED.md and the pictures of README.md'
	@echo '  make report-picture  write the picture of a report in README.md, with headless Chromium'
	@echo '  make bench-class  grade 200 submissions with both commands, a few with stock nbgrader, some on a Dask cluster, and 10000 simulated'
	@echo '  make mutants     grade every one-step change of the solutions; list those that lose no check or get a wrong name or hint'
	@echo '  make versions    record that the code that decides scores is that of the stages'\'' version numbers'
	@echo '  make lint        check style and formatting'
	@echo '  make test-lowest  run the tests with the oldest libraries that pyproject.toml allows'
	@echo '  make test-peers  compare with transformers on PyTorch (installs both)'
	@echo '  make test-chat   download the chat model by pip, 93 MB, and test with it'
	@echo '  make test-browser  test the pages in headless Chromium, which has to be installed'
	@echo '  make clean       remove the sample class and caches; keeps lab/ and the gradebook'

demo: $(INSTALLED)
	@$(PY) -m autograder demo

test: $(INSTALLED)
	@OPENBLAS_NUM_THREADS=1 $(PY) -m pytest $(TESTS)

test-lowest: $(LOWEST)/.installed
	@OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest $(TESTS)

lab: $(INSTALLED)
	@$(PY) -m autograder release $(STAGES) --output lab
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" JUPYTER_CONFIG_PATH="$(CURDIR)/course/jupyter:$$JUPYTER_CONFIG_PATH" \
	  $(PY) -m jupyterlab --notebook-dir=lab $(LAB)

build: $(INSTALLED)
	@$(PY) -m autograder build

bench: $(BENCH)
	@$(PY) -m autograder.bench $(PARTS)

bench-figures: $(BENCH)
	@$(PY) -m autograder.bench --write $(PARTS)

bench-class: $(CLUSTER)
	@$(PY) -m autograder.bench.grading_commands
	@$(PY) -m autograder.bench.cluster

mutants: $(INSTALLED)
	@$(PY) -m autograder.mutants

versions: $(INSTALLED)
	@$(PY) -m autograder.stages.versions $(SAME)

lint: $(INSTALLED)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(VENV)/bin/lint-imports --no-cache

test-peers: $(PEERS)
	@$(PY) -m pytest autograder/tests/peers

test-chat: $(CHAT)
	@$(PY) -m autograder fetch smollm2 --from-package
	@$(PY) -m pytest autograder/tests/smollm2

test-browser: $(BROWSER)
	@PATH="$(CURDIR)/$(VENV)/proxy/node_modules/.bin:$$PATH" $(PY) -m pytest autograder/tests/browser

report-picture: $(BROWSER)
	@AUTOGRADER_SCREENSHOTS=course/images $(PY) -m pytest autograder/tests/browser/test_report.py -k lecture

# Only what a marker in it, or its name, tells to be of a program's making.
clean:
	@if [ -e demo-class ] && [ ! -e demo-class/.sample-class ]; then \
	  echo 'demo-class/ is kept: autograder demo did not make it.'; else rm -rf demo-class; fi
	@for cache in .pytest_cache .ruff_cache; do if [ -f $$cache/CACHEDIR.TAG ]; then rm -rf $$cache; fi; done
	@find autograder solutions data course -path '*/__pycache__/*.pyc' -type f -delete
	@find autograder solutions data course -name __pycache__ -type d -empty -delete

# Installed anew whenever pyproject.toml changes.
$(INSTALLED): pyproject.toml
	@set -e; \
	if [ -e $(VENV) ] && [ ! -f $(VENV)/pyvenv.cfg ]; then \
	  echo '$(VENV) is no virtual environment. Move it away, or name another: make VENV=folder' >&2; exit 1; \
	fi; \
	if [ ! -x $(PY) ] || ! $(PY) -m pip --version >/dev/null 2>&1; then \
	  for candidate in $(or $(PYTHON),$(CANDIDATES)); do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	      found="$$candidate"; break; \
	    fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo 'No Python 3.10 or newer was found. Install one, or name it: make PYTHON=/path/to/python' >&2; exit 1; \
	  fi; \
	  if [ -e $(VENV) ] && [ ! -f $(VENV)/.made-here ]; then \
	    echo '$(VENV) has no pip, and was not made here. Move it away, or name another: make VENV=folder' >&2; exit 1; \
	  fi; \
	  echo "Making .venv with $$("$$found" --version)"; \
	  rm -rf $(VENV); mkdir $(VENV); touch $(VENV)/.made-here; \
	  if ! "$$found" -m venv $(VENV); then \
	    rm -rf $(VENV); \
	    echo "$$found cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	  fi; \
	fi
	@echo 'Installing the project and what it needs, which takes a minute or two'
	@$(PY) -m pip install --quiet -e '.[test]'
	@touch $@

$(PEERS): pyproject.toml $(INSTALLED)
	@echo 'Installing PyTorch and transformers; make TORCH=torch==VERSION chooses the build'
	@$(PY) -m pip install --quiet $(TORCH) -e '.[test,peers]'
	@touch $@

# Without these two, the benchmarks leave the comparison with them out and say so.
$(BENCH): pyproject.toml $(INSTALLED)
	@echo 'Installing PyTorch and transformers to compare with; make TORCH=torch==VERSION chooses the build'
	@if $(PY) -m pip install --quiet $(TORCH) -e '.[test,peers]'; then touch $@; fi

$(CLUSTER): pyproject.toml $(INSTALLED)
	@$(PY) -m pip install --quiet -e '.[test,dask]'
	@touch $@

# JupyterHub's proxy is a program for Node.js: without npm, the tests of a hub are skipped.
$(BROWSER): pyproject.toml $(INSTALLED)
	@$(PY) -m pip install --quiet -e '.[test,browser]'
	@if command -v npm >/dev/null; then npm install --silent --prefix $(VENV)/proxy configurable-http-proxy; fi
	@touch $@

# uv can choose the oldest versions, which pip cannot.
$(LOWEST)/.installed: pyproject.toml $(INSTALLED)
	@rm -rf $(LOWEST)
	@$(PY) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet uv
	@$(LOWEST)/bin/python -m uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -e '.[test]'
	@touch $@

$(CHAT): pyproject.toml $(INSTALLED)
	@$(PY) -m pip install --quiet -e '.[test,chat]'
	@touch $@
