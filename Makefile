# Everything starts here: `make book` sets up, executes every chapter once, and builds the site.

# Windows sets OS in every shell of its own, WSL does not.
ifeq ($(OS),Windows_NT)
$(error The book is built on Linux, macOS or WSL, not on Windows itself: open WSL ('wsl --install' sets it up), clone \
  the repository there, and run this command again)
endif

SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV   ?= .venv
# Exact versions; `make setup LOCK=` in a fresh clone takes the newest instead.
LOCK   ?= requirements.txt
EXTRAS ?= book,browser,test,lint,logs,real
# The CPU build of torch saves some gigabytes; where this index cannot be reached pip goes on without it.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
TORCH_VERSION ?= 2.13.0

SCALE   ?= ci
CORPUS  ?= yahoo-like
SEED    ?= 0
JOBS    ?= 2
CHAPTER ?=
# Which kept tables `make paper` computes (all), and at most how many seeds of each (all).
TABLES  ?=
SEEDS   ?=
# Not empty: the seeds that a kept table holds stay as they are, and only those that it lacks are computed.
GO_ON   ?=
# The scheduler of a dask cluster that computes them, as tcp://host:8786 (this machine).
CLUSTER ?=
# Which experiments `make tables` computes (all); with ANEW=1 finished cells, too; with CHECK=1 it only compares.
EXPERIMENT ?=
ANEW    ?=
CHECK   ?=
PORT    ?= 8000
# The size at which the copies for Colab are tried.
COLAB_SCALE ?= smoke
PYTEST_ARGS ?=
# Which modules `make mutants` breaks (all), and how many mutants it draws.
MODULES ?=
SAMPLE  ?= 400

# A variable in small letters would be taken by nobody, and the book built at another scale than was meant.
$(foreach name,scale corpus seed seeds jobs chapter tables experiment cluster port python venv,$(if $(filter command,$(origin $(name))),$(error \
  $(name)=$($(name)) sets nothing: variables are written in capitals, $(shell echo $(name) | tr a-z A-Z)='$($(name))')))

BIN   := $(VENV)/bin
# Written when the environment is whole: without it an environment is made anew.
WHOLE := $(VENV)/.whole
# Without --no-compile more than half of the set-up compiles modules of which most are never imported.
PIP   := $(BIN)/python -m pip install --no-compile $(if $(LOCK),-c $(LOCK))
TOOLS := $(BIN)/python -m book_tools
# Where one chapter is wanted, it has to be named.
NAMED = @[ -n '$(CHAPTER)' ] || { echo "CHAPTER is not set; name one, as in 'make $@ CHAPTER=5'" >&2; exit 2; }
RUN_OPTIONS = --scale '$(SCALE)' --corpus '$(CORPUS)' --seed '$(SEED)' --jobs '$(JOBS)'

# One thread in every pool, so that parallelism changes no digit.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export NUMEXPR_NUM_THREADS := 1

.PHONY: help setup book chapter page paper tables pdf offline judges browser colab publish test mutants verify accept lint format lock serve clean

help:
	@echo "make TARGET [VARIABLE=value …]"
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12
	@echo "seldom needed, and explained in the Makefile: tables, accept, judges, mutants, lock, publish"
	@echo "variables: SCALE=$(SCALE) CORPUS=$(CORPUS) SEED=$(SEED) JOBS=$(JOBS) PYTHON=$(PYTHON) VENV=$(VENV)"
	@echo "corpora: yahoo-like, istella-like, yahoo-like:mixed, istella-like:mixed, digits, and letor:FOLDER[@OPTION,…],"
	@echo "a folder below the one that the environment variable CFLTR_DATA names: CFLTR_DATA=~/collections make …"

setup: $(WHOLE) ## make the environment with the exact versions

$(WHOLE): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "PYTHON=$(PYTHON): Python 3.11 or newer is needed; name one, as in 'make setup PYTHON=python3.12'" >&2; exit 1; }
	@if [ -e $(WHOLE) ]; then rm $(WHOLE); else $(PYTHON) -m venv --clear --upgrade-deps $(VENV); fi
	$(PIP) --quiet --retries 0 $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
	$(PIP) --quiet --editable '.[$(EXTRAS)]'
	@touch $(WHOLE)

book: $(WHOLE) ## execute the chapters and build the site into _build/html
	$(TOOLS) book $(RUN_OPTIONS)

chapter: $(WHOLE) ## execute one chapter, and say where its notebook lies: make chapter CHAPTER=5
	$(NAMED)
	$(TOOLS) run $(RUN_OPTIONS) --chapter '$(CHAPTER)'

page: $(WHOLE) ## execute one chapter, build its page alone, and say where it lies: make page CHAPTER=5 SCALE=smoke
	$(NAMED)
	$(TOOLS) page $(RUN_OPTIONS) --chapter '$(CHAPTER)'

# Long: minutes at scale ci, hours at scale paper.  Finished cells lie in _build/kept until `make clean`.
paper: $(WHOLE) ## compute kept tables, or go on with them: make paper CHAPTER=07 SCALE=paper TABLES='…' SEEDS=5
	$(NAMED)
	$(TOOLS) paper $(RUN_OPTIONS) --chapter '$(CHAPTER)' --tables '$(TABLES)' --seeds '$(SEEDS)' \
	  --cluster '$(CLUSTER)' $(if $(GO_ON),--go-on)

# As `make paper`, for the experiments that stand in a chapter's module.
tables: $(WHOLE)
	$(NAMED)
	$(TOOLS) tables --scale '$(SCALE)' --corpus '$(CORPUS)' --jobs '$(JOBS)' --chapter '$(CHAPTER)' \
	  --experiment '$(EXPERIMENT)' $(if $(ANEW),--anew) $(if $(CHECK),--check)

pdf: $(WHOLE) ## after make book: the book as a PDF (needs TeX; says what to install)
	$(TOOLS) pdf

offline: $(WHOLE) ## after make book: the site as one archive that works from a folder
	$(TOOLS) offline

# Installs what `make browser` asks for its judgement: axe-core, which judges how accessible the pages are, and the
# validator of the W3C, which needs Java 11 or newer.
judges:
	npm install --global --no-audit --no-fund --loglevel=error axe-core@4 vnu-jar@26

browser: $(WHOLE) ## validate every built page, and open it in headless Chromium (make judges installs what it needs)
	$(TOOLS) markup
	$(TOOLS) browser

colab: $(WHOLE) ## run the chapters' copies as Colab would: alone, bare, installed from the committed revision
	$(TOOLS) colab-check --scale '$(COLAB_SCALE)' --jobs '$(JOBS)' --torch-index '$(TORCH_INDEX)' \
	  $(if $(CHAPTER),--chapter '$(CHAPTER)')

# Pushes the copies to the branch colab of origin: Colab opens what lies in a repository.  The copies are built, so they
# get a branch of their own, without history.
publish:
	@set -e; ls _build/html/colab/*.ipynb > /dev/null || { echo "no copies to publish; run 'make book'" >&2; exit 2; }; \
	tree=$$(for copy in _build/html/colab/*.ipynb; do \
	  printf '100644 blob %s\t%s\n' "$$(git hash-object -w "$$copy")" "$${copy##*/}"; done | git mktree); \
	commit=$$(git -c user.name='The book' -c user.email=book@localhost commit-tree "$$tree" \
	  -m "Copies of the chapters for Colab, made from $$(git rev-parse HEAD)"); \
	git push --force origin "$$commit:refs/heads/colab"

test: $(WHOLE) ## run the tests
	$(BIN)/python -m pytest -n '$(JOBS)' --dist worksteal $(PYTEST_ARGS)

# Breaks a sample of formulas and counts what the tests notice: make mutants MODULES='metrics logs' SAMPLE=400.
# A fresh draw each time, unless SEED is given on the command line; its own packages are installed when it is first run.
mutants: $(WHOLE)
	@$(BIN)/python -c 'import mutmut' 2> /dev/null || $(PIP) --quiet --editable '.[mutants]'
	$(BIN)/python tests/mutants $(MODULES) --sample '$(SAMPLE)' --jobs '$(JOBS)' \
	  $(if $(filter command,$(firstword $(origin SEED))),--seed '$(SEED)')

verify: $(WHOLE) ## check every claim and number of the last run, or those of one chapter: make verify CHAPTER=5
	$(TOOLS) verify $(if $(CHAPTER),--chapter '$(CHAPTER)')

# After make book: its verdicts and numbers become what verify compares with, and what turned is printed; those of one
# chapter after make chapter CHAPTER=1: make accept CHAPTER=1.
accept: $(WHOLE)
	$(TOOLS) accept $(if $(CHAPTER),--chapter '$(CHAPTER)')

lint: $(WHOLE) ## check style, types, and that chapters hold no outputs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy cfltr_core cfltr_book book_tools
	$(TOOLS) check

format: $(WHOLE) ## put the code into the one style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Resolves requirements.txt anew, to the newest versions: without --upgrade uv would keep those that the file holds.
lock: $(WHOLE)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --upgrade --universal --no-header --no-annotate --all-extras pyproject.toml \
	  -P 'torch==$(TORCH_VERSION)' -o requirements.txt

serve: $(WHOLE) ## look at the site, on this machine only
	@[ -e _build/html/index.html ] || { echo "no site to serve; build it with 'make book'" >&2; exit 2; }
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html '$(PORT)'

clean: ## remove everything that was built; the environment stays
	rm -rf _build
