package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func TestNameWarnings_AreNotCutInTheMiddle(t *testing.T) {
	var tools []*upstreams.Tool
	for i := range 30 {
		name := fmt.Sprintf("%s_%02d", strings.Repeat("long", 15), i)
		tools = append(tools, &upstreams.Tool{ID: "mcp:s:" + name, Safe: "s", Name: name, FullName: fmt.Sprintf("s__%037d", i)})
	}
	r := &report{Warnings: nameWarnings(tools)}
	if text := r.text(); !strings.Contains(text, " more\n") {
		t.Errorf("text() = %s\nwant a warning that ends in how many more there are", text)
	}
}
