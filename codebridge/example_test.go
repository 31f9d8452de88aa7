package codebridge_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
)

// greeter is a host with one tool.
type greeter struct{}

func (greeter) Lane(string, json.RawMessage) string { return "" }

func (greeter) Call(_ context.Context, c *codebridge.Call) (json.RawMessage, error) {
	if c.Fn == "search" {
		return json.RawMessage(`[{"id":"mcp:demo:greet","input":"{ name: string }"}]`), nil
	}
	return json.RawMessage(`{"tool":{"id":"mcp:demo:greet"},"result":{"content":[{"type":"text","text":"hello"}]}}`), nil
}

func ExampleEngine_Run() {
	// The first line of main must be codebridge.MaybeWorker().
	engine := codebridge.New(codebridge.Options{})
	defer engine.Close()
	result, err := engine.Run(context.Background(), codebridge.Program{Source: `
		const [hit] = await openclaw.tools.search("greet someone");
		const r = await openclaw.tools.call(hit.id, {name: "Ada"});
		console.log("called", hit.id);
		return r.result.details.toUpperCase();
	`}, greeter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(result.Value), result.Logs, result.Error)
	// Output: "HELLO" [called mcp:demo:greet] <nil>
}
