# The commands of this project. `make` without a target lists them.

SWIFT ?= swift
OS := $(shell uname -s)

# Homebrew keeps headers and libraries outside the compiler's search paths.
ifeq ($(OS),Darwin)
BREW := $(shell brew --prefix 2>/dev/null)
export CPATH := $(BREW)/include$(if $(CPATH),:$(CPATH))
export LIBRARY_PATH := $(BREW)/lib$(if $(LIBRARY_PATH),:$(LIBRARY_PATH))
endif

# The number of tests that run at once. Without a limit, all tests start at once and share a few
# threads, so a test that awaits something continues only after most others have ended.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 4

.DEFAULT_GOAL := help
.PHONY: help deps demo test test-times house trace check lint api consumer examples traits docs docs-site \
  bench-quick shared-test page-test address zones fuzz payloads counts proof bench bench-shared bench-sealed bench-compare bench-deps \
  format install

help: ## list the targets, and the parts of the proof
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile
	@Scripts/proof --list

demo: deps ## load five feeds through the cache, past seven days, and inspect the store
	Scripts/demo

test: deps ## install LevelDB if it is missing, build, and run all tests
	$(SWIFT) test

shared-test: deps ## test the caches that machines share, with a Redis server, which this installs
	@Scripts/deps shared
	$(SWIFT) test --filter LarderSharedTests

page-test: deps ## test the page of kvinspect in Chromium, which this installs; SHOTS=folder for pictures
	Scripts/page-test $(SHOTS)

test-times: deps ## print the tests that take most processor time; FILTER=name for some tests
	Scripts/test-times $(FILTER)

house: ## print how large the code is: lines, by part, functions, types, targets, comments
	Scripts/house

trace: ## print how many files a save, a read and a load enter, and check WalkThrough.md
	Scripts/trace

check: lint test shared-test page-test trace api traits consumer examples docs bench-quick ## all checks of a change

lint: ## check the formatting, strictly
	$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Plugins Tests \
	  Benchmarks Examples

api: deps ## compare the public declarations with the recorded ones; Scripts/api --record
	Scripts/api

traits: deps ## test the package's traits: what they log, count and trace; sharing over a network
	@Scripts/deps shared
	@Scripts/deps encryption
	$(SWIFT) test --package-path Tests/TraitTests --scratch-path .build-traits
	$(SWIFT) run --package-path Tests/TraitTests --scratch-path .build-traits SharedCache | \
	  diff -u Examples/SharedCache/Expected.txt -
	$(SWIFT) run --package-path Tests/TraitTests --scratch-path .build-traits SealedStore | \
	  diff -u Examples/SealedStore/Expected.txt -

consumer: deps ## build and run the README's program in a package that depends on a tag of HEAD
	Scripts/consumer-check

examples: deps ## build and run the programs in Examples, and compare what they print
	Scripts/examples

docs: deps ## build the documentation; a broken link is an error
	Scripts/docs

docs-site: deps ## write the documentation as static pages into SITE (.build-docs/site)
	Scripts/docs-site "$(or $(SITE),.build-docs/site)" $(BASE)

bench-quick: bench-deps ## run every benchmark briefly, and verify its results, not its times
	cd Benchmarks && $(SWIFT) run -c release larder-bench --quick
	cd Benchmarks && $(SWIFT) run -c release larder-bench --quick --background --rounds 1
	cd Benchmarks && $(SWIFT) run -c release larder-bench --quick --week
	cd Benchmarks && $(SWIFT) run -c release larder-bench --quick --budget
	cd Benchmarks && $(SWIFT) run -c release larder-bench --quick --large
	cd Benchmarks && { seq 9; seq 9; } | $(SWIFT) run -c release larder-bench --budget-hits \
	  --capacity 90 --step 1 | tail -n 1 | grep -x 50.00
	cd Benchmarks && for file in Results/*.json Results/hit-ratios.txt; do \
	  $(SWIFT) run -c release larder-bench --plot "$$file" --output .build/plots || exit; done

bench: bench-deps ## measure, print the tables, and write and draw Benchmarks/Results
	cd Benchmarks && $(SWIFT) run -c release larder-bench --output Results
	cd Benchmarks && $(SWIFT) run -c release larder-bench --large --output Results
	cd Benchmarks && $(SWIFT) run -c release larder-bench --week --output Results

bench-shared: bench-deps ## measure caches that machines share, against hiredis; QUICK=1 for seconds
	@Scripts/deps bench-shared
	cd Benchmarks && $(SWIFT) run -c release --traits Shared --scratch-path .build-shared \
	  larder-bench --suite shared $(if $(QUICK),--quick)

bench-sealed: deps ## measure what a key costs, beside a store without one
	$(SWIFT) run -c release --package-path Tests/TraitTests --scratch-path .build-sealed SealCosts

bench-compare: bench-deps ## measure HEAD against BASE=commit; ONLY=workload, SUITE=suite, ROUNDS=n
	Scripts/bench-compare "$(BASE)" $(if $(SUITE),--suite "$(SUITE)") $(if $(ONLY),--only "$(ONLY)") \
	  $(if $(ROUNDS),--rounds "$(ROUNDS)")

install: deps ## install kvinspect, its man page and completions; PREFIX, /usr/local by default
	Scripts/install $(PREFIX)

bench-deps: ## install the stores that the benchmarks compare with, if they are missing
	@Scripts/deps bench

address: deps ## run the engine's, store's and coders' tests under the address sanitizer
	Scripts/address

zones: deps ## run the store's and the feeds' tests in three time zones
	Scripts/zones

fuzz: ## fuzz the coders and the readers of files and RESP for a minute each
	Scripts/fuzz

payloads: deps ## compare the payloads of HEAD with those of BASE=commit, for random values
	Scripts/payloads "$(BASE)"

counts: deps ## compare instructions and allocations of operations with the recorded ones
	Scripts/counts

proof: deps ## run the slow proofs, some hours; PART=name runs one, an hour at most:
	Scripts/proof $(PART)

format: ## format all Swift code in place
	$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Plugins Tests \
	  Benchmarks Examples

deps: ## install LevelDB's headers if they are missing
	@Scripts/deps
