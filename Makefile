# `make check` is exactly what CI runs.
.PHONY: build check test race lint bench fuzz update clean

build:
	CGO_ENABLED=0 go build -trimpath ./cmd/toolsearch-mcp

check:
	bash .ci/run

test:
	go test ./...

race:
	go test -race ./...

lint: dist/tools/golangci-lint
	dist/tools/golangci-lint run ./...

dist/tools/golangci-lint: tools/go.mod
	go -C tools build -o ../dist/tools/ tool

# The goals of docs/benchmarks.md.
bench:
	go test ./e2e -run '^$$' -bench . -benchtime 1x -timeout 30m

# Ten seconds for each law.
fuzz:
	@go list ./... | while read -r p; do for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
		go test -run '^$$' -fuzz "^$$f\$$" -fuzztime 10s $$p || exit 1; done; done

# Rewrites the golden files; look at the diff.
update:
	go test ./... -update

clean:
	rm -rf dist toolsearch-mcp
