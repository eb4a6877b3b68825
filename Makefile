# Everything that a person or CI runs. Needs a Rust toolchain, python3 with pip, and a C linker. The control plane is built
# with Go, which is downloaded where it is missing; SUTURE_KUBERNETES chooses its version (tests/controlplane/build).

PYTHON ?= python3
SUTURE_NODES ?= 5

SUTURE := target/release/suture
TEST := cargo test --locked --workspace --exclude suture-e2e
# with the features of what tests it: nothing is compiled twice
RELEASE := --release --locked --package suture-service --package suture-tests
# the tests of all crates, each a file or a folder
TESTS := $(sort $(basename $(notdir $(wildcard */tests/*.rs))) $(notdir $(patsubst %/main.rs,%,$(wildcard */tests/*/main.rs))))
# those that take longer than all others together, and are optimized for that
LONG := audits cli cost deadline hostile independence kubectl laws many oracle policies replay_rate restricted shuffled stacks \
  webhook_rules
E2E := cargo test --locked --package suture-e2e
PRINT := --nocapture --test-threads=1
Z3 := .z3/lib/libz3.so

# libz3 is found by an rpath that .cargo/config.toml sets and that is relative to target/; both would be lost to these
unexport RUSTFLAGS RUSTDOCFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_ENCODED_RUSTDOCFLAGS
export CARGO_TARGET_DIR := target

.PHONY: help build dist demo test long lint e2e replay races faults attacks load soak bench oracle hostile controlplane plane clean

help: ## lists these targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

build: $(Z3) ## builds target/release/suture
	cargo build $(RELEASE) --bin suture

dist: $(Z3) ## builds target/dist/suture, as it is distributed: optimized as a whole, without symbols
	cargo build --profile dist --locked --package suture-service --bin suture

# without `serve` and optimization, which take most of the time of `make build`
demo: $(Z3) ## shows a stale operator's deletion of a live claim being denied
	cargo build --locked --package suture-service --bin suture --no-default-features
	@target/debug/suture check --state tests/demo/cluster --profile none --invariants tests/demo/invariants.yaml \
	  --adapters tests/demo/adapters.yaml --review tests/demo/delete-claim.json; code=$$?; \
	if [ $$code -ne 1 ]; then echo "demo: expected a denial (exit code 1), got exit code $$code" >&2; exit 1; fi

test: $(Z3) ## runs unit tests and suites, all that needs no control plane and little time
	$(TEST) --lib --bins $(addprefix --test ,$(filter-out $(LONG),$(TESTS)))

long: export SUTURE_ORACLE_CASES ?= 10000
long: $(Z3) ## runs the other tests that need no control plane: commands, many random cases, large objects, all in every order
	cargo test $(RELEASE) $(addprefix --test ,$(LONG))
	@# a few again with debug assertions, which a release leaves out
	SUTURE_ORACLE_CASES=1000 $(TEST) --test oracle --test laws

lint: $(Z3) ## checks format, lints and documentation
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --locked --workspace --no-deps

e2e: plane build ## sends real requests to a real control plane with Suture in front, and opens its pages in a browser; fetches both
	$(E2E) --test controlplane --test deploy --test requests --test resources --test standby --test snapshot \
	  --test audit_log --test reports --test page --test tour -- $(PRINT)

replay: plane build ## sends the requests of tests/cases to an API server that holds their state: same verdicts
	$(E2E) --test replay -- $(PRINT)

races: plane build ## sends conflicting requests at the same moment, to one replica and to two
	$(E2E) --test races -- $(PRINT)

faults: plane build ## kills, pauses and cuts off parts under traffic; SUTURE_FAULTS=short for some of them
	$(E2E) --test faults -- $(PRINT)

attacks: plane build ## does what hostile tenants and the worst day do, and prints what others see of it
	$(E2E) --test attacks -- $(PRINT)

load: plane build ## measures what Suture adds to requests, beside no webhook and one that allows everything
	$(E2E) --release --test load -- $(PRINT)

soak: plane build ## churns a cluster for SUTURE_SOAK_MINUTES [20], and judges SUTURE_SOAK_SAMPLES decisions [1000] again
	$(E2E) --test soak -- $(PRINT)

bench: export SUTURE_REPLAY_ENTRIES ?= 100000
bench: export SUTURE_COST_ITEMS ?= 10000
bench: build ## measures decision time and memory on a generated cluster, by each list of an object, and the replay of a log
	$(SUTURE) bench
	cargo test $(RELEASE) --test cost -- each_template --nocapture
	cargo test $(RELEASE) --test replay_rate -- --nocapture

oracle: export SUTURE_ORACLE_CASES ?= 200000
oracle: export SUTURE_INDEPENDENCE_CASES ?= 4000
oracle: $(Z3) ## compares verdicts with brute force, SUTURE_ORACLE_CASES random cases [200000], and histories of what is in flight
	cargo test $(RELEASE) --test oracle --test independence -- --nocapture

hostile: export SUTURE_HOSTILE_CASES ?= 10000
hostile: export SUTURE_HOSTILE_SECONDS ?= 1800
# as `suture serve` has it
hostile: export MALLOC_ARENA_MAX ?= 1
hostile: export MIMALLOC_PURGE_DELAY ?= 0
hostile: export MIMALLOC_ABANDONED_PAGE_PURGE ?= 1
hostile: export MIMALLOC_ABANDONED_RECLAIM_ON_FREE ?= 1
hostile: $(Z3) ## feeds malformed and oversized input, SUTURE_HOSTILE_CASES cases [10000], and SUTURE_HOSTILE_SECONDS [1800]
	cargo test $(RELEASE) --test hostile --test deadline -- --nocapture

controlplane: plane ## starts a real control plane with SUTURE_NODES nodes and kubeconfigs to try it, until Ctrl-C
	cargo run --locked --package suture-e2e --bin controlplane -- $(SUTURE_NODES)

plane:
	tests/controlplane/build >/dev/null

clean: ## removes what was built and downloaded, but not the control plane, which is cached outside the checkout
	cargo clean
	rm -rf .z3

# pip verifies the hashes that the requirements pin; the library takes its place by a rename, so none is ever half there
$(Z3): .cargo/z3-requirements.txt
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || \
	  { echo "make: \`$(PYTHON) -m pip\` is needed to download Z3 (on Debian: apt-get install python3-pip)" >&2; exit 1; }
	@rm -rf .z3/wheel && mkdir -p .z3/wheel
	@$(PYTHON) -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
	  --require-hashes --dest .z3/wheel --requirement $< || \
	  { echo "make: no Z3 with a hash that $< pins could be downloaded for this machine (see pip's error above);" >&2; \
	    echo "make: \`cargo build --release --package suture-service --features vendored\` builds it from source" >&2; exit 1; }
	@$(PYTHON) -m zipfile --extract .z3/wheel/*.whl .z3/wheel
	@rm -rf .z3/lib && mv .z3/wheel/z3/lib .z3/lib && rm -rf .z3/wheel && touch $@
