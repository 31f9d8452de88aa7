package upstreams

import (
	"context"
	"log/slog"
)

func dialStdio(ctx context.Context, cfg Config, ev linkEvents, log *slog.Logger) (*link, error) {
	panic("todo")
}
