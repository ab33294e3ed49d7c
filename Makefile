# Everything here makes its own .venv first; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BASE := $(VENV)/.base
CODE := src tests verification benchmarks examples

.PHONY: demo test quick lint twins mutants fuzz verify verify-gpu figures bench docs changelog setup clean

demo: $(BASE)  ## five fabrics under one workload: a table, a comparison, and a picture in demo/
	$(BIN)/weft sweep studies/demo.toml --workers 2 -o demo
	$(BIN)/weft compare demo --metrics fct.short.p50,fct.short.p99,goodput
	@echo "change it: edit studies/demo.toml, or try"
	@echo "  $(BIN)/weft run shoal poisson --nodes 128 --channels 2 --load 0.6 --load-rate 50Gbps --seed 2"

# three processes: some tests wait for other processes
test: $(READY)  ## what must hold before anything is shared; linters look while tests run
	@$(MAKE) --no-print-directory lint & looking=$$!; \
	  $(BIN)/python -m pytest -n 3 --dist worksteal; held=$$?; wait $$looking && exit $$held

quick: $(READY)  ## what can be asked after every edit: under two minutes on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long"

lint: $(READY)  ## style, layout, imports that point down, and what the signatures promise
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports
	$(BIN)/mypy

twins: $(READY)  ## kernels against their twins once more, compiled so that every index is checked
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 --dist worksteal $$(find tests/fabrics -name 'test_twin*.py')

mutants: $(READY)  ## faults planted in kernels, one at a time: each must be noticed by the law or test it names
	$(BIN)/python verification/mutants.py

fuzz: $(READY)  ## 100,000 inputs on two cores: ten minutes
	@$(BIN)/python tests/fuzz.py --inputs 50000 & first=$$!; \
	  $(BIN)/python tests/fuzz.py --inputs 50000 --seed 1; second=$$?; wait $$first && exit $$second

verify: twins  ## other drawn cases, then theory and the papers' numbers: minutes to hours
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=search
	@for program in verification/*.py; do case $$program in verification/gpu_*) continue;; esac; [ -e "$$program" ] || continue; echo "== $$program"; $(BIN)/python "$$program" || exit 1; done

verify-gpu: $(READY)  ## racks and switches on the GPU of this machine against the processor: drawn, resumed, under load
	$(BIN)/python verification/gpu_racks.py --count 20  # each shape is compiled for itself, some ten seconds
	$(BIN)/python verification/gpu_switches.py --count 30

figures: $(READY)  ## the README's pictures, by the command beside them
	$(BIN)/weft sweep studies/demo.toml --workers 2 -o out/figures
	mkdir -p docs/pictures && cp out/figures/fct-goodput.png out/figures/fct-goodput.csv docs/pictures/

bench: $(READY)
	@for program in benchmarks/*.py; do echo "== $$program"; $(BIN)/python "$$program" || exit 1; done

docs: $(READY)  ## the pages that are generated, and the site in out/site/, which needs no network to be read
	$(BIN)/python -m weft.cli.reference > docs/reference/cli.md
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site
	@echo "open out/site/index.html"

changelog: $(READY)  ## what has changed since the last version
	$(BIN)/towncrier build --draft --version "$$($(BIN)/python -c 'import weft; print(weft.__version__)')"

setup: $(READY)

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

$(BASE): $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	@touch $@

$(READY): $(VENV)/.made pyproject.toml examples/fluid/pyproject.toml
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[cluster,rtl,wire]' --editable examples/fluid --group dev
	@touch $(BASE)
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get install --quiet --yes g++; } || \
	  echo "no C++ compiler: gates run in Amaranth's simulator, some thousand times slower"
	@touch $@

clean:
	rm -rf $(VENV) out demo
