# Every target works on a fresh machine with Go. `make help` lists them.
GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Without grpcnotrace the linker keeps every method of every type, as html/template calls
# methods by name: the binary has 38 MB instead of 28.
TAGS     := grpcnotrace
LDFLAGS  := -s -w -X main.version=$(VERSION)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GORELEASER  := github.com/goreleaser/goreleaser/v2@v2.14.0

# Packages tested at once: two per processor, because many tests wait more than they compute.
PACKAGES    := $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))

.DEFAULT_GOAL := help
.PHONY: help run build demo attack check-deploy test test-long slow race e2e e2e-all llama lab collector soak lint fuzz bench bench-quick bench-watched bench-docs learn-docs recording servers vuln release publish docker clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: build ## build and start the gateway: no configuration, no Redis
	@exec bin/rebound serve

build: ## bin/rebound and bin/mockllm, static
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

demo: build ## faults, straight and through the gateway, side by side; no account needed
	@bin/rebound demo

test: servers ## the quick tests, on real sockets and a real redis-server
	$(GO) test -short -p $(PACKAGES) -timeout 20m ./...

test-long: servers ## all tests: also replays of long sessions, hostile growth, simulations and generators
	$(GO) test -timeout 60m ./...

slow: ## slow, silent and dead upstreams in real time (minutes)
	REBOUND_TEST_REAL_TIME=1 $(GO) test ./cmd/rebound/app -run InRealTime -count 1 -timeout 20m

race: servers ## the quick tests with the race detector
	$(GO) test -race -short -timeout 60m ./...

# The tests start servers of their own; this only makes the programs available,
# where that is possible. Without nginx and haproxy one test is skipped, without
# Chromium those of the page, and under CI they fail.
servers:
	@missing=; for p in redis-server nginx haproxy chromium; do command -v $$p >/dev/null || missing="$$missing $$p"; done; \
	test -z "$$missing" || { echo "installing$$missing for the tests"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; } || \
	  echo "not installed:$$missing" >&2
	@command -v redis-server >/dev/null || test -n "$$REBOUND_TEST_REDIS" || \
	  { echo "redis-server is needed: install it, or set REBOUND_TEST_REDIS=redis://HOST:PORT" >&2; exit 1; }

# Client libraries of each format and four agents, through the gateway.
E2E_CLIENTS := openai-node,openai-python,vercel,node-stream,python-responses,vercel-responses,anthropic-node,anthropic-python,plain-messages,loop-python,loop-node-responses,vercel-agent-anthropic,codex
e2e: ## a short list of real clients through every fault (Node and Python are needed)
	$(GO) run ./e2e -pace scaled -leg through -client $(E2E_CLIENTS)

e2e-all: ## all real clients, straight and through the gateway, also at real pace, and another project's judge
	$(GO) run ./e2e

collector: ## the demo's traces through a real OpenTelemetry Collector, which it builds (minutes, the first time)
	$(GO) build -C e2e/traces/collector -o $(CURDIR)/bin/otelcol .
	REBOUND_TEST_COLLECTOR=$(CURDIR)/bin/otelcol $(GO) test ./e2e/traces -count 1 -v

llama: ## llama-server's own tests of all formats, straight and through the gateway (CMake; builds it for ten minutes, once)
	$(GO) run ./e2e/llama

lab: ## a real model, straight and through the gateway (MODEL=FILE.gguf, LLAMA=PROGRAM; without it llama-server is built)
	$(GO) run ./e2e/llama -lab $(abspath $(MODEL)) $(if $(LLAMA),-server $(abspath $(LLAMA)))

FOR ?= 30m
check-deploy: ## deploy/: the alerts and what makes them fire, and the Helm chart (with promtool and helm)
	promtool check rules deploy/alerts.yaml
	promtool test rules deploy/alerts.test.yaml
	helm lint deploy/helm/rebound
	helm template rebound deploy/helm/rebound --kube-version 1.31.0 --set autoscaling.enabled=true,ingress.enabled=true,serviceMonitor.enabled=true >/dev/null

attack: servers ## every attack of docs/security.md: the tests named there, in full (as root, with Chromium and redis-sentinel)
	$(GO) test -timeout 60m -run "^($$(grep -o '`Test[A-Za-z0-9]*`' docs/security.md | tr -d '`' | sort -u | paste -sd'|'))\$$" ./...

soak: servers ## many clients, every fault and every store for half an hour (FOR=2m, BEFORE=PROGRAM); renews docs/reliability.md
	$(GO) test ./e2e/soak -run '^TestSoak$$' -count 1 -timeout 0 -v -args -for $(FOR) -report $(CURDIR)/docs/reliability.md $(if $(BEFORE),-before $(BEFORE))

lint: vuln ## gofmt, go vet, staticcheck, go mod tidy, govulncheck
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod tidy -diff

# govulncheck asks vuln.go.dev, or the copy that GOVULNDB names. Where there is
# neither, nothing was looked at: that is said, and it is no failure of the code.
vuln: ## known vulnerabilities in what is linked
	@out=$$($(GO) run $(GOVULNCHECK) ./... 2>&1) || case "$$out" in \
	  *"fetching vulnerabilities"*) echo "govulncheck was skipped: its database cannot be reached. Set GOVULNDB to a copy." >&2;; \
	  *) echo "$$out"; exit 1;; esac

FUZZTIME ?= 30s
fuzz: ## every fuzz target for FUZZTIME
	@set -e; for pkg in $$(grep -rl --include=*_test.go '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' $$pkg/*_test.go | sed 's/func //'); do \
	    echo "$$pkg $$f"; $(GO) test $$pkg -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME); done; done

bench: ## CPU, latency, memory and start-up next to nginx and httputil.ReverseProxy (Linux, two cores)
	$(GO) run ./e2e/bench -o bench.json

bench-quick: ## the same in a minute or two, only to see that it works
	$(GO) run ./e2e/bench -quick

bench-watched: ## what events, an open page and traces cost at 500 requests a second, in five minutes
	$(GO) run ./e2e/bench -watched

bench-docs: ## measure and renew the figures of docs/performance.md
	$(GO) run ./e2e/bench -md docs/performance.md

learn-docs: ## simulate what learning brings and renew the figures of docs/learning.md
	$(GO) run ./e2e/learning -md docs/learning.md

recording: ## docs/recording.svg: an answer that breaks, straight and through the gateway
	$(GO) run ./e2e/recording

# What a release has is in .goreleaser.yaml.
release: ## dist/: archives and packages of this commit, with checksums; nothing is signed or published
	$(GO) run $(GORELEASER) release --clean --snapshot --skip=sign,sbom,docker

publish: ## a release of the tag at this commit (with syft, cosign, docker and the tokens of .github/workflows/release.yml)
	$(GO) run $(GORELEASER) release --clean $(if $(NOTES),--release-notes $(NOTES))

docker: ## the container image
	docker build --build-arg VERSION=$(VERSION) -t rebound:$(VERSION) .

clean: ## remove what was built
	rm -rf bin dist bench.json e2e/.cache
