module github.com/toolsearch-mcp/toolsearch-mcp

go 1.26.0

require (
	github.com/blevesearch/snowballstem v0.9.0 // stems of English words in search
	github.com/blugelabs/bluge v0.2.2 // the inverted index of search
	github.com/elastic/go-seccomp-bpf v1.6.0 // the sandbox process gives up system calls
	github.com/evanw/esbuild v0.28.2 // strips TypeScript annotations from scripts
	github.com/fastschema/qjs v0.0.6 // QuickJS in WebAssembly: the guest of scripts
	github.com/fsnotify/fsnotify v1.10.1 // the configuration file is watched
	github.com/landlock-lsm/go-landlock v0.11.2 // the sandbox process gives up the file system
	github.com/modelcontextprotocol/go-sdk v1.8.0 // MCP sessions and transports, both sides
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // arguments and results against their schemas
	github.com/spf13/cobra v1.10.2 // the command line
	github.com/tetratelabs/wazero v1.11.0 // WebAssembly below qjs; v1.12.0 breaks qjs v0.0.6
	golang.org/x/sys v0.50.0 // process groups, job objects, resource limits
	golang.org/x/text v0.44.0 // indirect; Unicode normal forms in search
	gopkg.in/yaml.v3 v3.0.1 // the configuration file, with line numbers
)

// Tests alone need these.
require (
	github.com/google/go-cmp v0.7.0 // differences in failures
	github.com/rogpeppe/go-internal v1.16.0 // testscript and txtar
)

require github.com/blugelabs/bluge_segment_api v0.2.0

require (
	github.com/RoaringBitmap/roaring v0.9.4 // indirect
	github.com/bits-and-blooms/bitset v1.2.0 // indirect
	github.com/blevesearch/mmap-go v1.0.4 // indirect
	github.com/blevesearch/vellum v1.0.7 // indirect
	github.com/blugelabs/ice v1.0.0 // indirect
	github.com/blugelabs/ice/v2 v2.0.1 // indirect
	github.com/golang/snappy v0.0.1 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/compress v1.15.2 // indirect
	github.com/mschoch/smat v0.2.0 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/oauth2 v0.35.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/time v0.15.0 // indirect
	golang.org/x/tools v0.52.0 // indirect
	kernel.org/pub/linux/libs/security/libcap/psx v1.2.78 // indirect
)
