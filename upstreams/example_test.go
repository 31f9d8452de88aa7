package upstreams_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func ExampleSet() {
	notes := mcp.NewServer(&mcp.Implementation{Name: "notes"}, nil)
	type input struct {
		Text string `json:"text"`
	}
	mcp.AddTool(notes, &mcp.Tool{Name: "add_note"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted: " + in.Text}}}, nil, nil
	})

	set := upstreams.NewSet(upstreams.Options{})
	defer set.Close()
	err := set.Apply([]upstreams.Config{{
		Name: "notes",
		// A file has command or url in its place.
		Dial: func(ctx context.Context) (mcp.Transport, error) {
			client, server := mcp.NewInMemoryTransports()
			_, err := notes.Connect(context.Background(), server, nil)
			return client, err
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	set.Start()
	<-set.Settled()

	tool := set.Snapshot().Tools[0]
	fmt.Println(tool.ID, tool.FullName)
	res, err := set.Do(context.Background(), upstreams.Call{Tool: tool, Args: json.RawMessage(`{"text":"milk"}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(res.Raw))
	// Output:
	// mcp:notes:add_note notes__add_note
	// {"content":[{"type":"text","text":"noted: milk"}]}
}
