package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

// realServers returns the real catalogs as fake servers.
func realServers(t testing.TB) []fakeServer {
	byServer := map[string]int{}
	var servers []fakeServer
	forCatalogs(t, func(server string, raw json.RawMessage) {
		i, ok := byServer[server]
		if !ok {
			i = len(servers)
			byServer[server] = i
			servers = append(servers, fakeServer{Name: server})
		}
		servers[i].Tools = append(servers[i].Tools, raw)
	})
	return servers
}

func BenchmarkList(b *testing.B) {
	servers := realServers(b)
	for _, mode := range []Mode{ModeCode, ModeTools, ModeDirectory, ModeOff} {
		b.Run("mode="+string(mode), func(b *testing.B) {
			r := newRig(b, newFakeServers(servers...), rigOptions{settings: Settings{Mode: string(mode)}})
			var size int
			for b.Loop() {
				size = len(list(b, r))
			}
			b.ReportMetric(float64(size), "context-bytes")
		})
	}
}

func BenchmarkCall(b *testing.B) {
	r := newRig(b, newFakeServers(manyServers(1000, "s")...), rigOptions{settings: Settings{Mode: "tools"}})
	l := r.Local("")
	for _, call := range []struct{ name, args string }{
		{nameCall, `{"id":"mcp:s7:do_it","args":{"a":"b"}}`}, {"s7__do_it", `{"a":"b"}`},
	} {
		b.Run(fmt.Sprintf("name=%s", call.name), func(b *testing.B) {
			for b.Loop() {
				if _, err := l.Call(context.Background(), call.name, json.RawMessage(call.args)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
