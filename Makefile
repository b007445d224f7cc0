# `make demo`, `make test` and `make docs` need Python 3.11 or newer and make. They create .venv, with uv
# if it is installed.
#
#   make PYTHON=python3.12 test     another interpreter (.venv is created again)
#   make test ARGS="-k cli -x"      options for pytest, `psiphi demo` or `psiphi bench`
#   make test JOBS=8                eight test processes instead of two
#   make test BROWSER=no            do not install Chromium for the viewer's tests (only root on Debian
#                                   and its derivatives does)

VENV := .venv
RUN := $(VENV)/bin/python
JOBS ?= 2
ARGS ?=
BROWSER ?= yes
UV := $(shell command -v uv 2>/dev/null)
INSTALL := $(if $(UV),uv pip install --quiet --python $(RUN),$(RUN) -m pip install --quiet)

# ROS sets PYTHONPATH, which would add its packages to ours.
unexport PYTHONPATH
unexport PYTHONHOME

.NOTPARALLEL:
.PHONY: help demo test test-gpu torture lint browser fmt bench docs release-check clean

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 16

demo: $(VENV)/.with-core  ## the first minute with psiphi
	@$(RUN) -m psiphi demo $(ARGS)

test: lint browser  ## lint, types, and every test
	@$(RUN) -m pytest -n $(JOBS) --dist worksteal $(ARGS)

test-gpu: $(VENV)/.with-test  ## psiphi on this machine's GPU, compared with the CPU (torch, CuPy or JAX)
	@$(RUN) -m pytest tests/backends/cuda/test_on_gpu.py $(ARGS)

torture: $(VENV)/.with-test  ## hostile input for hours: make torture ARGS="--minutes 300"
	@$(RUN) tests/hostile/torture.py $(ARGS)

lint: $(VENV)/.with-test  ## ruff (rules and format) and pyright
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m pyright --pythonpath $(RUN)

BROWSERS := $(PSIPHI_CHROMIUM) chromium chromium-browser google-chrome chrome
GET := DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq

browser: $(VENV)/.with-test
	@if [ "$(BROWSER)" = yes ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	    && [ -z "$$(for name in $(BROWSERS); do command -v "$$name"; done)" ]; then \
	    echo "Installing Chromium for the viewer's tests (BROWSER=no leaves it)"; \
	    { $(GET) update && $(GET) install --no-install-recommends chromium; } >$(VENV)/browser.log 2>&1 \
	        || echo "Chromium could not be installed ($(VENV)/browser.log): those tests are skipped"; \
	fi

fmt: $(VENV)/.with-test  ## apply ruff's fixes, and format
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

bench: $(VENV)/.with-bench  ## compare psiphi with other libraries
	@$(RUN) -m psiphi bench $(ARGS)

docs: $(VENV)/.with-docs  ## the docs site, build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet $(ARGS)
	@echo "build/site/index.html is the site: open it in any browser"

release-check: $(VENV)/.with-release  ## build wheel and sdist, and use each in an empty environment
	@$(RUN) tools/release.py $(ARGS)

clean:  ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist

# -- set-up: a stamp exists only after its step has succeeded, so an interrupted set-up starts over -----

PACKAGE_core := .
PACKAGE_test := .[test]
PACKAGE_bench := .[bench]
PACKAGE_docs := .[docs]
PACKAGE_release := .[release]

$(VENV)/.with-core $(VENV)/.with-test $(VENV)/.with-bench $(VENV)/.with-docs $(VENV)/.with-release: $(VENV)/.with-%: pyproject.toml $(VENV)/.made
	@echo "Installing psiphi ($*) into $(VENV): once, and again when pyproject.toml changes"
	@mv $(VENV)/.made $(VENV)/.unfinished
	@$(INSTALL) --editable '$(PACKAGE_$*)'
	@mv $(VENV)/.unfinished $(VENV)/.made
	@touch $@

# Created again when the tree has moved, its interpreter is missing, or PYTHON names another version.
ifneq ($(shell cat $(VENV)/.made 2>/dev/null),$(CURDIR) $(shell "$(or $(PYTHON),$(RUN))" -V 2>/dev/null))
.PHONY: $(VENV)/.made
endif

PYTHONS := $(if $(PYTHON),"$(PYTHON)",python3.11 python3.12 python3.13 python3 python)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

$(VENV)/.made:
	@python=; for candidate in $(PYTHONS); do \
	    if "$$candidate" -c '$(NEW_ENOUGH)' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo 'psiphi needs Python 3.11 or newer; tried: $(PYTHONS).' >&2; \
	    echo 'Install one, or name it: make PYTHON=/path/to/python3' >&2; exit 1; \
	fi; \
	echo "Creating $(VENV) with $$("$$python" -V)"; rm -rf $(VENV); \
	if [ -n "$(UV)" ]; then uv venv --quiet --seed --python "$$python" $(VENV); \
	elif "$$python" -c 'import ensurepip' 2>/dev/null; then "$$python" -m venv $(VENV); \
	else "$$python" -m venv --without-pip $(VENV) && "$$python" -m pip --python $(RUN) install --quiet pip; fi
	@echo "$(CURDIR) $$($(RUN) -V)" > $@
