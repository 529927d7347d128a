# Everything a developer or CI does. `make` or `make help` lists the targets.
# Tools are pinned here by version and run with `go run` or `npx`, so that they never
# move the versions in go.mod (docs/adr/0004).

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
NPM ?= npm
BIN := bin/turnkeeper
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

SQLC := CGO_ENABLED=0 $(GO) run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1
OAPI_CODEGEN := $(GO) run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2
OPENAPI_TYPESCRIPT := npx --yes --package=typescript@5.9.3 --package=openapi-typescript@7.13.0 -- openapi-typescript
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOFUMPT := $(GO) run mvdan.cc/gofumpt@v0.12.0
CODEX_PACKAGE := @openai/codex@0.171.0
CLAUDE_PACKAGE := @anthropic-ai/claude-agent-sdk@0.3.332
ACP_PACKAGES := @agentclientprotocol/codex-acp@2.6.0 @agentclientprotocol/claude-agent-acp@0.101.0

WEB_STAMP := web/dist/index.html
NPM_STAMP := web/node_modules/.package-lock.json
ACP_SDK := server/acpagent/testdata/sdk
ACP_SDK_STAMP := $(ACP_SDK)/node_modules/.package-lock.json
PROVIDERS_STAMP := .cache/providers/node_modules/.package-lock.json
WEB_SOURCES := $(shell find web clientgen/ts -type f -not -path 'web/node_modules/*' -not -path 'web/dist/*' \
	-not -path 'web/e2e/*' -not -path 'web/test-results/*' 2>/dev/null)
GENERATED := db/dbgen openapi clientgen/goclient/client.gen.go clientgen/ts/schema.gen.ts

.PHONY: help build binary web run test unit acp-sdk race lint fmt generate verify bench e2e ci providers test-providers e2e-providers clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  \033[1m%-15s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: web binary ## the web view and the one binary, bin/turnkeeper

# The view is embedded where it was built; without it the daemon says how to build it.
binary:
	$(GO) build -trimpath -ldflags '-X github.com/turnkeeper/turnkeeper/server/cli.version=$(VERSION)' -o $(BIN) ./server/cmd/turnkeeper

web: $(WEB_STAMP) ## the web view alone, web/dist

$(NPM_STAMP): web/package.json web/package-lock.json
	@command -v $(NPM) >/dev/null || { echo 'The web view needs Node.js 20.19 or newer with npm: https://nodejs.org'; exit 1; }
	cd web && $(NPM) ci --no-audit --no-fund
	@touch $@

$(WEB_STAMP): $(NPM_STAMP) $(WEB_SOURCES)
	cd web && $(NPM) run build
	@touch $@

run: build ## build what is missing, start the daemon, open the web view; Ctrl-C ends it
	@exec $(BIN) serve --open --any-port

test: ## vet, Go tests with the race detector, web tests, and a real browser on a real daemon
	$(MAKE) race
	$(MAKE) unit
	$(MAKE) e2e

# Under the race detector the store takes a sample of the orders; without it, every one, and
# counts what it writes.
race: $(ACP_SDK_STAMP) ## vet and Go tests with the race detector, the store also without
	$(GO) vet ./...
	$(GO) test -race -p 1 -timeout 40m ./...
	$(GO) test -timeout 20m ./server/store

acp-sdk: $(ACP_SDK_STAMP) ## the published ACP client and its schemas, which Go tests judge our agent by

$(ACP_SDK_STAMP): $(ACP_SDK)/package.json $(ACP_SDK)/package-lock.json
	@command -v $(NPM) >/dev/null || { echo 'Tests of the ACP agent need Node.js 20 or newer with npm: https://nodejs.org'; exit 1; }
	cd $(ACP_SDK) && $(NPM) ci --no-audit --no-fund
	@touch $@

unit: $(NPM_STAMP) ## tests of the web view that need no browser
	cd web && $(NPM) run check && $(NPM) test

e2e: build ## tests of the web view in Chromium against a real daemon
	@browser="$$(scripts/browser.sh)"; echo "browser: $$browser"; \
	cd web && TURNKEEPER_CHROMIUM="$$browser" TURNKEEPER_BIN="$(CURDIR)/$(BIN)" $(NPM) run e2e

lint: ## golangci-lint with .golangci.yaml
	$(GOLANGCI_LINT) run ./...

fmt: ## format Go sources
	$(GOFUMPT) -w $$(git ls-files '*.go' | grep -vE '^db/dbgen/|\.gen\.go$$')

generate: $(NPM_STAMP) ## rows and queries, openapi.json, and both clients
	$(SQLC) generate
	@mkdir -p openapi
	$(GO) run ./server/cmd/turnkeeper openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json
	$(OAPI_CODEGEN) -config clientgen/oapi-codegen.yaml openapi/openapi.json
	$(OPENAPI_TYPESCRIPT) openapi/openapi.json -o clientgen/ts/schema.gen.ts

verify: generate ## generated files are current; imports, licences and the libc pin hold
	@git diff --exit-code -- $(GENERATED) || { echo 'Generated files differ from what is committed: commit them.'; exit 1; }
	@new="$$(git ls-files --others --exclude-standard -- $(GENERATED))"; [ -z "$$new" ] || { echo "Not committed: $$new"; exit 1; }
	$(GO) test -count=1 ./server/archtest

bench: ## ours against raw yardsticks in one run; fails below server/bench/floors.json
	$(GO) run ./server/bench/ratio

providers: $(PROVIDERS_STAMP) ## the real providers that test-providers drives, in .cache

# npm chooses the packages of this platform, which hold the programs; what Claude's package
# calls its peers are libraries that no program of ours uses.
$(PROVIDERS_STAMP): Makefile
	@mkdir -p .cache/providers && [ -f .cache/providers/package.json ] || echo '{"private":true}' > .cache/providers/package.json
	cd .cache/providers && $(NPM) install --no-audit --no-fund --save-exact --legacy-peer-deps $(CODEX_PACKAGE) $(CLAUDE_PACKAGE) $(ACP_PACKAGES)
	@touch $@

test-providers: providers ## adapters against the real provider programs and scripted models
	TURNKEEPER_CODEX_BIN="$(CURDIR)/.cache/providers/node_modules/.bin/codex" $(GO) test -count=1 -timeout 20m -tags providers ./server/provider/...
	$(MAKE) e2e-providers

e2e-providers: providers build ## the web view in Chromium with every real provider program
	$(GO) build -o bin/modelserver ./server/provider/modeltest/modelserver
	@browser="$$(scripts/browser.sh)"; echo "browser: $$browser"; \
	cd web && TURNKEEPER_CHROMIUM="$$browser" TURNKEEPER_BIN="$(CURDIR)/$(BIN)" $(NPM) run e2e:providers

ci: ## everything: what .ci/run calls, with lint and benchmarks
	$(MAKE) test
	$(MAKE) test-providers
	$(MAKE) verify
	$(MAKE) lint
	$(MAKE) bench

clean: ## remove what was built; caches in .cache stay
	rm -rf bin web/test-results server/bench/out
	find web/dist -mindepth 1 -not -name .gitkeep -delete
