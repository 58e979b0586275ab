# Every target prepares what it needs; a second run finds it done. `make help` lists all.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-bench docs demo check test test-all lint unit sim contract integration system nightly \
	node-kafka test-cluster test-peers compose-smoke air-gap deb audit sbom release pictures \
	bench bench-multicast bench-unicast bench-disk bench-circuits bench-paths bench-scheduler bench-ldm bench-people \
	bench-probes bench-bridges bench-distributed bench-beside bench-spacing bench-seeds \
	lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/' | expand -t 16

setup: ## Prepare the demo: Debian packages, .venv, downburst-node, dashboard
	@scripts/setup.sh demo

setup-test: ## Prepare the tests as well: their programs, PostgreSQL, Java, iproute2, nftables, Chromium and others
	@scripts/setup.sh test

setup-bench: ## Prepare the measurements: the optimised programs, and everything that tests use
	@scripts/setup.sh bench && scripts/setup.sh tools

docs: ## Build the documentation in dist/docs: the site that a hub serves at /guide/, and manual pages
	@scripts/setup.sh docs

demo: setup ## Run a hub, five sites and several feeds on this machine; options by ARGS="..."
	@.venv/bin/downburst demo $(ARGS)

check: ## Run lint and unit tests of the changed files: seconds for Python, up to three minutes for a crate
	@scripts/check.sh $(ARGS)

test: ## Run lint, unit, simulation, contract and integration tests, and a real case of each kind; 25 minutes
	@scripts/test.sh test

test-all: ## Run everything else that continuous integration runs after `make test`; 35 minutes
	@scripts/test.sh test-all

lint: ## Run ruff, mypy, import-linter, rustfmt, clippy, svelte-check, licences, shellcheck
	@scripts/test.sh lint

unit: ## Run the unit tests of Python, the crates and the dashboard
	@scripts/test.sh unit

sim: ## Run the protocols in simulated networks
	@scripts/test.sh sim

contract: ## Run the suites that every implementation of a port must pass
	@scripts/test.sh contract

integration: ## Run the hub with the real node on the loopback interface
	@scripts/test.sh integration

system: ## Run real processes in network namespaces and a browser; best as root
	@scripts/test.sh system

nightly: ## Run the tests that take minutes each, and measure the coverage
	@scripts/test.sh nightly

node-kafka: ## Build downburst-node-kafka, the hub's node for feeds on Kafka; needs a C compiler and OpenSSL's headers
	@scripts/node-kafka.sh

test-cluster: setup-test ## Run the log's contract on a real Kafka, and the chart on a real API server and kubelet
	@scripts/test-cluster.sh

test-peers: setup-test ## Order circuits from real provider agents; as root, DOWNBURST_PEERS=directory of prepared ones
	@scripts/test-peers.sh $(ARGS)

compose-smoke: ## Run docker-compose.yml on a Docker engine: products to three sites, by multicast and under kill -9
	@scripts/compose-smoke.sh

air-gap: ## Make dist/downburst-air-gap.tar.gz: images, docker-compose.yml and chart for machines without network
	@scripts/compose-smoke.sh bundle dist/downburst-air-gap.tar.gz

deb: setup node-kafka ## Make Debian packages of hub and site in dist/, for this machine's Debian
	@scripts/deb.sh

audit: setup-test ## Scan licences, bans, sources and advisories of all dependencies; dist/audit.json
	@scripts/audit.sh

sbom: setup ## Write the software bill of materials (CycloneDX) of crates and packages into dist/
	@scripts/sbom.sh

release: setup node-kafka ## Build the files of a release in dist/release/; ARGS="--key FILE" signs, "--dry-run" lists
	@scripts/release.sh $(ARGS)

pictures: setup-test ## Take the pictures of README and guides from running hubs
	@.venv/bin/python scripts/screenshot.py
	@PYTHONPATH=tests .venv/bin/python scripts/screenshot_bridges.py

bench: ## List the side-by-side measurements that exist
	@echo 'make bench-NAME [OUT=file.json] [ARGS="--rows 1,4 --runs 3"]'
	@echo "  bench-unicast       unicast beside sendfile, NATS and Kafka"
	@echo "  bench-multicast     multicast beside UFTP, NORM, NATS, TCP fan-outs and a blaster"
	@echo "  bench-disk          bytes written per product byte, a product of 5 GB, writes that survive a power cut"
	@echo "  bench-circuits      circuits: admission, beside greedy flows, small buffers, set-up"
	@echo "  bench-paths         data connections, learned TCP profiles, the tracer's cost, forecasts"
	@echo "  bench-probes        knees, delays and soaks of probes, their cost to products, TCP stacks"
	@echo "  bench-bridges       files and notifications of WIS2 beside wis2downloader and pywis-pubsub"
	@echo "  bench-distributed   one broker beside librdkafka; one, two and four senders; seconds after losses"
	@echo "  bench-ldm           eight LDM downstreams of a hub: products a second, silence, processor time"
	@echo "  bench-spacing       datagrams 12 us apart: loss, spacing and CPU of receivers that block, adapt and poll"
	@echo "  bench-people        questions about thirty days of latency on both databases, then the pages"
	@echo "  bench-seeds         published figures of five studies beside models and measurements; writes docs/studies.md"
	@echo "  bench-scheduler     cost of planning, and predictions beside measurements"
	@echo "  bench-beside        one of these in two checkouts in turns: BEFORE=../other, ARGS=\"--bench multicast\""

MEASURE = DOWNBURST_PROFILE=release PYTHONPATH=$(CURDIR):$(CURDIR)/tests .venv/bin/python

bench-distributed: setup-bench node-kafka ## Measure a hub of several machines: broker, senders, losses; OUT=file.json
	@$(MEASURE) -m bench.distributed $(if $(OUT),--out $(OUT)) $(ARGS)

bench-circuits: setup-bench ## Measure circuits, as root for all of it; OUT=file.json
	@$(MEASURE) -m bench.circuits $(if $(OUT),--out $(OUT)) $(ARGS)

bench-paths: setup-bench ## Measure long paths: connections, TCP profiles, tracer, as root; OUT=file.json
	@$(MEASURE) -m bench.paths $(if $(OUT),--out $(OUT)) $(ARGS)

bench-probes: setup-bench ## Measure probes of paths, as root; OUT=file.json, ARGS="--quick" for a first look
	@$(MEASURE) -m bench.probes $(if $(OUT),--out $(OUT)) $(ARGS)

bench-bridges: setup-bench ## Measure sources of WIS2 beside wis2downloader and pywis-pubsub; OUT=file.json
	@$(MEASURE) -m bench.bridges $(if $(OUT),--out $(OUT)) $(ARGS)

bench-people: setup-bench ## Measure questions about thirty days of history, and the pages; OUT=file.json
	@$(MEASURE) -m bench.people $(if $(OUT),--out $(OUT)) $(ARGS)

bench-scheduler: setup-bench ## Measure planning rounds and predictions; OUT=file.json
	@$(MEASURE) -m bench.scheduler $(if $(OUT),--out $(OUT)) $(ARGS)

bench-multicast: setup-bench ## Measure multicast beside its peers and the machine's limit, as root; OUT=file.json
	@$(MEASURE) -m bench.multicast $(if $(OUT),--out $(OUT)) $(ARGS)

bench-unicast: setup-bench ## Measure unicast beside sendfile, NATS and Kafka, as root; OUT=file.json
	@$(MEASURE) -m bench.unicast $(if $(OUT),--out $(OUT)) $(ARGS)

bench-disk: setup-bench ## Measure bytes, processor time and memory on a real disk, as root for all of it; OUT=file.json
	@$(MEASURE) -m bench.disk $(if $(OUT),--out $(OUT)) $(ARGS)

bench-ldm: setup-bench ## Measure a hub that serves LDM downstreams; OUT=file.json
	@$(MEASURE) -m bench.ldm $(if $(OUT),--out $(OUT)) $(ARGS)

bench-spacing: setup-bench ## Measure receivers of datagrams 12 us apart; OUT=file.json
	@$(MEASURE) -m bench.spacing $(if $(OUT),--out $(OUT)) $(ARGS)

bench-seeds: setup-bench ## Measure the published figures of five studies again, as root; ARGS="--quick"
	@$(MEASURE) -m bench.seeds --out $(or $(OUT),dist/seeds.json) $(ARGS)

bench-beside: setup-bench ## Measure this checkout and another one in turns; BEFORE=directory of the other
	@$(MEASURE) -m bench.two_checkouts $(BEFORE) $(if $(OUT),--out $(OUT)) $(ARGS)

bench-%:
	@echo "There is no bench-$*; 'make bench' lists what exists." >&2; exit 2

lock: setup ## Make the lock files anew
	@scripts/lock.sh

clean: ## Remove what set-up and tests made: .venv, .cache, dist, node_modules, workers/target
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf services/dashboard/dist services/dashboard/node_modules workers/target
