package upstreams

import (
	"context"
	"log/slog"
)

func dialHTTP(ctx context.Context, cfg Config, ev linkEvents, log *slog.Logger) (*link, error) {
	panic("todo")
}
