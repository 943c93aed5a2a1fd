# Everything a person does with the checkout. `make help` lists it.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: notebooks help demo docs wheel test test-all gpu bench-gpu bench lint check format clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## open a model, run it, see what passes change, and stop in the debugger (installs first)
	@$(BIN)/tsrepl warm
	@$(BIN)/python examples/demo.py

test: $(STAMP) ## run the tests but the slow ones (installs first)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --ignore=tests/browser
	$(BIN)/python -m pytest tests/browser

test-all: $(STAMP) ## run all tests, the slow ones too, and then each file alone
	$(BIN)/python -m pytest -n auto --dist worksteal --ignore=tests/browser
	$(BIN)/python -m pytest tests/browser
	$(BIN)/python tools/each_file_alone.py -- -m "not slow"

bench-gpu: $(STAMP) ## measure kernels and tensors on an NVIDIA GPU
	$(BIN)/python benchmarks/gpu.py
	$(BIN)/python benchmarks/gpu_kernels.py

gpu: $(STAMP) ## run the tests that need an NVIDIA GPU, and measure it (bring the extra cuda12 or cuda13 first)
	$(BIN)/python -m pytest -n 8 -m gpu tests/gpu tests/unit/aten
	@$(MAKE) bench-gpu

bench: $(STAMP) ## measure programs and models beside torch.jit (PEER=PYTHON names one that has PyTorch, TABLES="eager ramp" some of the tables), write docs/performance.md
	$(BIN)/python benchmarks/performance.py --write $(if $(PEER),--peer $(PEER)) $(if $(ARCHIVES),--archives $(ARCHIVES)) $(if $(TABLES),--tables $(TABLES))

lint: $(STAMP) ## ruff, mypy --strict, the import contracts and the wording of docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_docstrings.py

check: lint test ## everything that has to pass

wheel: $(STAMP) ## a wheel that carries native operators for this processor (TSREPL_TARGET=x86-64-v3: for those and newer)
	$(BIN)/python -m tools.build_wheel

docs: $(STAMP) ## make the pictures of the docs anew, from real runs in a browser (needs chromium)
	$(BIN)/python tools/draw_terminal.py
	TSREPL_PICTURES=1 $(BIN)/python -m pytest tests/browser

notebooks: $(STAMP) ## run the example notebooks and write down what they answer
	$(BIN)/python tools/run_notebooks.py

format: $(STAMP) ## rewrite the sources in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
