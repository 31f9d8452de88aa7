package upstreams

import (
	"os"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// TestMain is also every process that the tests start.
func TestMain(m *testing.M) {
	mcptest.MaybeServe()
	maybePlay()
	os.Exit(m.Run())
}
