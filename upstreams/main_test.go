package upstreams

import (
	"os"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/guardian"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/mcptest"
)

// TestMain is also every process that the tests start.
func TestMain(m *testing.M) {
	guardian.MaybeRun()
	mcptest.MaybeServe()
	maybePlay()
	os.Exit(m.Run())
}
