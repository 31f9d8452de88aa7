package aggregator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

// One server behind the face, inside this process, and a call of its tool.
func Example() {
	ctx := context.Background()
	clock := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1"}, nil)
	type zone struct {
		Zone string `json:"zone"`
	}
	mcp.AddTool(clock, &mcp.Tool{Name: "tell_time", Description: "Tell the time in a zone."},
		func(_ context.Context, _ *mcp.CallToolRequest, in zone) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noon in " + in.Zone}}}, nil, nil
		})
	dial := func(ctx context.Context) (mcp.Transport, error) {
		theirs, ours := mcp.NewInMemoryTransports()
		_, err := clock.Connect(ctx, theirs, nil)
		return ours, err
	}

	// The chain that every call passes: recorder, gate, servers.
	servers := upstreams.NewSet(upstreams.Options{})
	defer servers.Close()
	if err := servers.Apply([]upstreams.Config{{Name: "clock", Dial: dial}}); err != nil {
		log.Fatal(err)
	}
	rules, err := policy.Compile(policy.Rules{})
	if err != nil {
		log.Fatal(err)
	}
	dir := directory.New(directory.Options{Source: servers.Snapshot, Rules: rules})
	defer dir.Close()
	face := aggregator.New(aggregator.Options{
		Directory: dir,
		Servers:   servers,
		Head:      aggregator.NewRecorder(policy.NewGate(rules, servers), nil),
		Settings:  aggregator.Settings{Mode: "tools"},
	})

	face.Start()
	<-servers.Settled()
	me := face.Local("")
	for _, call := range []struct{ tool, args string }{
		{"tool_search", `{"query":"what time is it","limit":1}`},
		{"tool_call", `{"id":"mcp:clock:tell_time","args":{"zone":"UTC"}}`},
	} {
		raw, err := me.Call(ctx, call.tool, json.RawMessage(call.args))
		if err != nil {
			log.Fatal(err)
		}
		var res struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(raw, &res); err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Content[0].Text)
	}
	// Output:
	// [{"id":"mcp:clock:tell_time","source":"mcp","sourceName":"clock","name":"clock__tell_time","description":"Tell the time in a zone.","input":"{ zone: string }"}]
	// noon in UTC
}
