# Every target sets up what it needs; a second run finds it done. `make help` lists all.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup setup-test demo test test-all lint unit sim contract integration system nightly node-kafka test-cluster compose-smoke air-gap deb audit sbom release \
	bench bench-multicast bench-unicast bench-circuits bench-scheduler bench-ldm bench-people bench-distributed lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/' | expand -t 16

setup: ## Prepare all that the demo needs: Debian packages, .venv, downburst-node, dashboard
	@scripts/setup.sh demo

setup-test: ## Prepare all that the tests need as well: iproute2, nftables, ping, shellcheck, Chromium
	@scripts/setup.sh test

demo: setup ## Run a hub, five sites and several feeds on this machine; options by ARGS="..."
	@.venv/bin/downburst demo $(ARGS)

test: setup-test ## Run all of the tests: lint, unit, sim, contract, cluster (where it was built), integration, system
	@scripts/test.sh

test-all: setup-test ## Run the tests that are too long for `test`; continuous integration runs it after `test`
	@scripts/test.sh test-all

lint: setup-test ## Run ruff, mypy, import-linter, rustfmt, clippy, svelte-check, licences, shellcheck
	@scripts/test.sh lint

unit: setup-test ## Run the unit tests of Python, the crates and the dashboard
	@scripts/test.sh unit

sim: setup-test ## Run the protocols in simulated networks
	@scripts/test.sh sim

contract: setup-test ## Run the suites that every implementation of a port must pass
	@scripts/test.sh contract

integration: setup-test ## Run the hub with the real node on the loopback interface
	@scripts/test.sh integration

system: setup-test ## Run real processes in network namespaces and a browser; best as root
	@scripts/test.sh system

nightly: setup-test ## Run the tests that take minutes
	@scripts/test.sh nightly

node-kafka: ## Build downburst-node-kafka, the hub's node for feeds on Kafka; needs a C compiler and OpenSSL's headers
	@scripts/node-kafka.sh

test-cluster: setup-test ## Run the log's contract on a real Kafka, the chart on a real API server and kubelet; needs Java, Maven, Go
	@scripts/test-cluster.sh

compose-smoke: ## Run docker-compose.yml on a Docker engine: products to three sites, by multicast too, and under kill -9
	@scripts/compose-smoke.sh

air-gap: ## Make dist/downburst-air-gap.tar.gz: images, docker-compose.yml and chart for machines without network
	@scripts/compose-smoke.sh bundle dist/downburst-air-gap.tar.gz

deb: setup node-kafka ## Make Debian packages of hub and site in dist/, for this machine's Debian
	@scripts/deb.sh

audit: setup-test ## Scan licences, bans, sources and advisories of all that is built in; dist/audit.json
	@scripts/audit.sh

sbom: setup ## Write the software bill of materials (CycloneDX) of crates and packages into dist/
	@scripts/sbom.sh

release: setup node-kafka ## Build all files of a release in dist/release/, with checksums; ARGS="--key FILE" signs, "--dry-run" only lists
	@scripts/release.sh $(ARGS)

bench: ## List the side-by-side measurements that exist
	@echo "make bench-unicast [OUT=file.json] [ARGS=\"--rows 1,4 --runs 3\"]   unicast beside sendfile, NATS and Kafka"
	@echo "make bench-multicast [OUT=file.json] [ARGS=\"--rows 1,4 --runs 2\"]   multicast beside UFTP, NORM, NATS, TCP fan-outs and a blaster"
	@echo "make bench-circuits [OUT=file.json] [ARGS=\"--runs 5\"]   circuits: admission, beside greedy flows, small buffers, set-up"
	@echo "make bench-distributed [OUT=file.json] [ARGS=\"--rows 1,3 --runs 3\"]   one broker beside librdkafka, 1, 2 and 4 senders, seconds after losses"
	@echo "make bench-ldm [OUT=file.json] [ARGS=\"--runs 3\"]   eight LDM downstreams of a hub: products a second, silence, processor time"
	@echo "make bench-people [OUT=file.json] [ARGS=\"--runs 20\"]   questions about thirty days of latency on both databases, then the pages"
	@echo "make bench-scheduler [OUT=file.json] [ARGS=\"--rows planning --runs 1\"]   cost of planning, predictions beside what was measured"

MEASURE = DOWNBURST_PROFILE=release PYTHONPATH=$(CURDIR):$(CURDIR)/tests .venv/bin/python

bench-distributed: setup setup-test node-kafka ## Measure a hub of several machines on one: broker, senders, losses; OUT=file.json
	@$(MEASURE) -m bench.distributed $(if $(OUT),--out $(OUT)) $(ARGS)

bench-circuits: setup setup-test ## Measure circuits, as root for all of it; OUT=file.json
	@$(MEASURE) -m bench.circuits $(if $(OUT),--out $(OUT)) $(ARGS)

bench-people: setup setup-test ## Measure questions about thirty days of history on both databases, and the pages; OUT=file.json
	@$(MEASURE) -m bench.people $(if $(OUT),--out $(OUT)) $(ARGS)

bench-scheduler: setup setup-test ## Measure planning rounds and predictions; OUT=file.json
	@$(MEASURE) -m bench.scheduler $(if $(OUT),--out $(OUT)) $(ARGS)

bench-multicast: setup setup-test ## Measure multicast beside its peers and the machine's limit, as root; OUT=file.json
	@$(MEASURE) -m bench.multicast $(if $(OUT),--out $(OUT)) $(ARGS)

bench-unicast: setup setup-test ## Measure unicast beside sendfile, NATS and Kafka, as root; OUT=file.json
	@$(MEASURE) -m bench.unicast $(if $(OUT),--out $(OUT)) $(ARGS)

bench-ldm: setup setup-test ## Measure a hub that serves LDM downstreams; OUT=file.json
	@$(MEASURE) -m bench.ldm $(if $(OUT),--out $(OUT)) $(ARGS)

bench-%:
	@echo "There is no bench-$*; 'make bench' lists what exists." >&2; exit 2

lock: setup ## Make the lock files anew
	@scripts/lock.sh

clean: ## Remove what set-up and tests made: .venv, .cache, dist, node_modules, workers/target
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf services/dashboard/dist services/dashboard/node_modules workers/target
