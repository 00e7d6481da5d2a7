# Two commands: `make demo` runs the main job, `make test` passes the tests. Each sets itself up.
SHELL := /bin/bash
.DELETE_ON_ERROR:
export PATH := $(HOME)/.cargo/bin:$(PATH)
CARGO ?= cargo
PREFIX ?= /usr/local
OUT = $${CARGO_TARGET_DIR:-target}
XTASK := $(CARGO) run --quiet --package xtask --

.PHONY: help demo test check build static deb deb-arm64 archive rpm wheel packages-vm docs reproducible semver s3-test zenoh-bridge-test otel-test docker-test kubernetes-test bench store-bulk bench-services bench-containers replay experiments attacks interop conformance-foreign kernel-test kernel-debug-test fuzz advisories builds gen install clean setup-base setup-test

help:            ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

demo: setup-base ## three nodes, one 100 MB file, fetched twice, verified
	@echo "Building onym for the demonstration, once. Each crate is named as it is begun."
	$(CARGO) build --profile demo --locked --no-default-features --package onym --package xtask
	$(OUT)/demo/xtask demo --program $(OUT)/demo/onym

test: setup-test ## everything that CI runs, set-up included
	scripts/test.sh

check: setup-base ## the fast part of the tests (below five minutes)
	scripts/test.sh fast

build: setup-base ## the release binary, target/release/onym
	$(CARGO) build --release --locked --package onym --features s3

static: setup-base ## the binary without shared libraries, target/static/onym: what containers are made of
	$(CARGO) rustc --release --locked --package onym --features s3 --bin onym -- -C target-feature=+crt-static
	install -D target/release/onym target/static/onym

deb: build       ## Debian packages of the node, target/deb
	scripts/deb.sh target/release/onym

deb-arm64: build ## the package for arm64, by cross compilation (Debian: gcc-aarch64-linux-gnu), target/deb
	scripts/deb-arm64.sh $(OUT)/release/onym

archive: static  ## an archive with the static program and an install script, target/archive
	scripts/archive.sh target/static/onym

rpm: archive     ## a package for distributions with RPM, of what the archive has, target/rpm
	scripts/rpm.sh $$(ls -t target/archive/onym-*.tar.gz | head -1)

wheel:           ## the package for Python as a wheel, target/wheel (pip)
	scripts/wheel.sh

image: static   ## an image of the static program for container engines, onym:VERSION (Docker engine)
	scripts/image.sh target/static/onym

packages-vm: setup-test ## the package by a real systemd in a virtual machine (root; minutes)
	$(CARGO) build --release --locked --package onym
	tests/packages/vm.sh target/release/onym

docs: setup-base ## the manual as a site with search, target/manual (mdBook, installed once into target/tools)
	@scripts/setup.sh docs
	PATH="$(CURDIR)/target/tools/bin:$$PATH" mdbook build docs/manual

s3-test: setup-base ## the bucket of a repository against s3s-fs, with faults, and moto (pip; minutes)
	$(CARGO) test --locked --manifest-path tests/s3/Cargo.toml --target-dir $(OUT)/s3
	scripts/moto.sh $(CARGO) test --locked --manifest-path tests/s3/Cargo.toml --target-dir $(OUT)/s3 objects_are_put

zenoh-bridge-test: setup-base ## onym-zenoh, the bridge to Zenoh: its licences, and tests with peers of Zenoh (minutes)
	$(XTASK) licences bridges/zenoh
	$(CARGO) build --locked --package onym
	ONYM="$$(realpath $(OUT))/debug/onym" $(CARGO) test --locked --manifest-path bridges/zenoh/Cargo.toml --target-dir $(OUT)/zenoh

otel-test: setup-base ## spans of two nodes read by a collector of OpenTelemetry: OTELCOL, otelcol on PATH, or built once (Go 1.26; minutes)
	scripts/otelcol.sh $(CARGO) test --locked --package onym-node --test spans -- --ignored

docker-test: setup-base ## the manager with the Docker engine, which is started when none runs
	scripts/docker.sh

kubernetes-test: setup-base ## the manager and its operator with a Kubernetes cluster: of KUBECONFIG, or one node from K8S_BIN (root)
	scripts/kubernetes.sh

bench: setup-base ## relay, onym and the foreign forwarders on PATH, in one run
	scripts/bench.sh

store-bulk: setup-base ## a store with ten million objects of one octet, with names of 30 components, with one object of 10 GB (minutes, 4 GB of disk)
	$(CARGO) build --release --locked --package onym-bench
	target/release/onym-bench store --packets 0 --no-serve --payload 1 --per-object 1 --objects 10000000 --json target/bulk-objects.json
	target/release/onym-bench store --packets 0 --no-serve --payload 1 --per-object 1 --objects 1000000 --components 30 --json target/bulk-names.json
	target/release/onym-bench store --packets 0 --no-serve --per-object 1250000 --objects 1250000 --json target/bulk-octets.json

bench-services: setup-base ## services alone beside a bare relay, and the chain beside the node
	$(CARGO) build --release --locked --package onym --package onym-bench
	target/release/onym-bench services

bench-containers: static ## what a container costs: services on a bridge in namespaces and in Docker (root)
	$(CARGO) build --release --locked --package onym-bench
	scripts/bench-containers.sh

replay: setup-base ## the paper's scaling and poisoning runs by a real manager, as CSV (root for quotas)
	$(CARGO) build --release --locked --package onym --package onym-bench
	scripts/replay.py fig5 --rule paper --router 0.11 --window 128
	scripts/replay.py fig5 --rule headroom --router 0.11 --window 128
	scripts/replay.py fig7

interop: setup-test ## foreign programs: python-ndn, NDNts, and ndnd, NFD, ndn-fwd when on PATH
	$(CARGO) build --release --locked --package onym --package onym-testkit
	tests/interop/run.sh all

conformance-foreign: setup-base ## the packet scripts for any forwarder against ndnd, when on PATH
	$(CARGO) build --release --locked --package onym --package onym-testkit
	tests/interop/run.sh foreign --only packet_scripts

attacks: build    ## what attacks on a node cost, each with its bound (two minutes)
	tests/doors/attacks.py target/release/onym

experiments: setup-test ## the whole library of the laboratory (hours; goes on where it was stopped)
	scripts/lab.sh experiments

kernel-test: setup-base ## the kernel stack in virtual machines of stock Debian kernels
	@scripts/setup.sh kernel
	$(CARGO) build --release --locked --package onym --package onym-testkit
	$(MAKE) -C kernel kernel-test

kernel-debug-test: setup-base ## the same on a kernel with KASAN, lockdep and kmemleak, built once
	@scripts/setup.sh kernel kernel-debug
	$(MAKE) -C kernel kernel-debug-test

fuzz: setup-base ## each fuzz target for FUZZ_SECONDS (60); libFuzzer with the nightly compiler, else the stable driver
	scripts/fuzz.sh

advisories:      ## Cargo.lock against the known advisories about Rust crates (their database, cloned or given)
	scripts/advisories.py

builds: setup-base ## each library alone and with its features, and all by the oldest compiler promised (minutes)
	$(XTASK) builds
	rustup toolchain install --profile minimal $$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
	$(XTASK) builds oldest

reproducible: setup-base ## two builds of the last commit, from nothing: the same program, the same packages (two release builds)
	scripts/reproducible.sh

semver: setup-base ## what of the Rust client's interface changed since the last release (cargo-semver-checks, built once)
	scripts/semver.sh

gen: setup-base  ## writes the generated documents again
	$(XTASK) gen

install: build   ## the binary, manual pages, completions and systemd units under PREFIX (/usr/local)
	scripts/archive.sh target/release/onym target/archive/own
	tar -C target/archive/own -xzf target/archive/own/onym-*.tar.gz
	DESTDIR=$(DESTDIR) target/archive/own/onym-*/install.sh --prefix $(PREFIX)
	rm -rf target/archive/own

clean:           ## removes what was built
	$(CARGO) clean
	rm -rf tests/interop/ndnts/node_modules

setup-base:
	@scripts/setup.sh base

setup-test:
	@scripts/setup.sh base test kernel
