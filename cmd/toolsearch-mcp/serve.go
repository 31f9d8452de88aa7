package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsearch-mcp/toolsearch-mcp/aggregator"
	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/directory"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/config"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/wire"
	"github.com/toolsearch-mcp/toolsearch-mcp/policy"
	"github.com/toolsearch-mcp/toolsearch-mcp/upstreams"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be an MCP server on stdin and stdout (what a client starts)",
		Args:  exactly(0, 0, ""),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
	a.modeFlags(cmd)
	return cmd
}

func (a *app) serve(ctx context.Context) error {
	if os.Getenv(upstreams.DepthEnv) != "" {
		return fmt.Errorf("this toolsearch-mcp was started by another one (%s is set): remove the entry that starts it from mcpServers, or it would start itself for ever", upstreams.DepthEnv)
	}
	a.serving = true
	log, redactor, err := a.logger()
	if err != nil {
		return err
	}
	cfg, err := a.load(redactor)
	if err != nil {
		return err
	}
	announce(log, "configuration loaded", "path", cfg.Path)
	for _, w := range cfg.Warnings {
		log.Warn("configuration", "warning", w)
	}

	p, err := a.build(ctx, cfg, redactor, log)
	if err != nil {
		return err
	}
	defer p.close()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(signalGrace, p.set.Abort) })()
	a.configPath = cfg.Path // a reload reads the same file
	stop := p.watch(ctx)
	defer stop()
	if isTerminal(a.stdin) {
		fmt.Fprintln(a.stderr, "toolsearch-mcp waits for an MCP client on stdin; press Ctrl-C to end it, or try: toolsearch-mcp demo")
	}
	transport := wire.NewServerTransport(io.NopCloser(a.stdin), nopWriteCloser{a.stdout}, wire.Options{
		RawMethods: aggregator.RawMethods(),
	})
	err = p.face.Run(ctx, transport)
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil // a signal, or the client has gone
	}
	return err
}

// signalGrace is how long children may take to end by themselves after a
// signal to us; who sent it will not wait long either.
const signalGrace = 500 * time.Millisecond

// nopWriteCloser leaves the process's own stdout open.
type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

// announce writes a log line whatever the level: which file started commands
// must never be a riddle.
func announce(log *slog.Logger, message string, args ...any) {
	r := slog.NewRecord(time.Now(), slog.LevelInfo, message, 0)
	r.Add(args...)
	_ = log.Handler().Handle(context.Background(), r) // stderr is all that we have
}

// load reads the configuration and makes its secrets known to the redactor.
func (a *app) load(redactor *telemetry.Redactor) (*config.Config, error) {
	if a.mode != "" {
		if _, err := aggregator.ParseMode(a.mode); err != nil {
			return nil, &usageError{"toolsearch-mcp", err}
		}
	}
	exe, err := executable()
	if err != nil {
		exe = "" // entries are then compared by name alone
	}
	cfg, err := config.Load(config.Options{Path: a.configPath, Executable: exe})
	if _, ok := errors.AsType[*config.NotFoundError](err); ok {
		return nil, fmt.Errorf("%w; write one (config.example.yaml shows all keys), or try without any: toolsearch-mcp demo", err)
	}
	if err != nil {
		return nil, err
	}
	redactor.Add(cfg.Secrets...)
	return cfg, nil
}

// executable is a variable because in tests the upstream servers are the test
// binary too.
var executable = os.Executable

// cacheDir returns our folder in the user's cache, "" if there is none.
func cacheDir(log *slog.Logger) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		log.Info("no cache folder: catalogs are not kept", "err", err)
		return ""
	}
	return filepath.Join(dir, "toolsearch-mcp")
}

func subfolder(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// program is everything that runs, in the order in which it is built.
type program struct {
	// fixed at creation
	app      *app
	log      *slog.Logger
	redactor *telemetry.Redactor
	records  *telemetry.Log // nil: none
	set      *upstreams.Set
	gate     *policy.Gate
	dir      *directory.Directory
	engine   *codebridge.Engine
	face     *aggregator.Server

	// owned by build, then by the goroutine of watch
	config *config.Config
	policy *policy.Policy

	sandboxErr error // why programs cannot run; nil: they can, or nobody asked
}

const (
	// probeTime is how long initialize may wait for the sandbox (contract 3).
	probeTime = 200 * time.Millisecond
	// patientProbeTime is for a person, who would rather wait than do without.
	patientProbeTime = 10 * time.Second
)

// build is the wiring: what a call passes from the client to a server and
// back. No server is started.
func (a *app) build(ctx context.Context, cfg *config.Config, redactor *telemetry.Redactor, log *slog.Logger) (_ *program, err error) {
	p := &program{app: a, log: log, redactor: redactor, config: cfg}
	var probing sync.WaitGroup // until it is over, sandboxErr is not read
	defer func() {
		if err != nil {
			p.close()
			probing.Wait()
		}
	}()
	ver := thisRelease().Version
	cache := cacheDir(log)

	p.engine = codebridge.New(codebridge.Options{Config: cfg.CodeBridge, CacheDir: subfolder(cache, "engine"), Logger: log})
	probing.Go(func() { p.sandboxErr = a.probe(ctx, cfg, p.engine) })

	if p.policy, err = a.compile(cfg); err != nil {
		return nil, err
	}
	if cfg.Telemetry.Log != "" {
		if p.records, err = telemetry.Open(cfg.Telemetry.Log, log); err != nil {
			return nil, fmt.Errorf("%w: change telemetry.log in %s", err, cfg.Path)
		}
	}
	catalogs := subfolder(cache, "catalogs")
	if cfg.Path == "" {
		catalogs = "" // the demo's servers are not worth remembering
	}
	p.set = upstreams.NewSet(upstreams.Options{
		MaxNameLength: cfg.ToolSearch.MaxNameLength, CacheDir: catalogs, Version: ver, Logger: log,
	})
	if err := p.set.Apply(cfg.Servers); err != nil {
		return nil, err
	}
	p.gate = policy.NewGate(p.policy, p.set)
	p.dir = directory.New(directory.Options{Source: p.set.Snapshot, Rules: p.policy, Logger: log})

	var runner aggregator.CodeRunner = p.engine
	if probing.Wait(); p.sandboxErr != nil {
		log.Warn("scripts cannot run here: mode code becomes mode tools", "err", p.sandboxErr)
		runner = nil
	}
	p.face = aggregator.New(aggregator.Options{
		Directory: p.dir,
		Servers:   p.set,
		Head:      aggregator.NewRecorder(p.gate, p.records),
		Engine:    runner,
		Settings:  cfg.ToolSearch,
		Profile:   a.chooser(cfg, p.policy),
		Telemetry: p.records,
		Logger:    log,
		Version:   ver,
	})
	return p, nil
}

// compile makes the policy of a configuration, which must know the profile of
// --profile.
func (a *app) compile(cfg *config.Config) (*policy.Policy, error) {
	pol, err := policy.Compile(cfg.Policy)
	if err != nil {
		return nil, err
	}
	if _, err := pol.ProfileFor(a.profile, ""); err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	return pol, nil
}

// probe tells why programs cannot run here; nil if they can, or if no client
// may get mode code.
func (a *app) probe(ctx context.Context, cfg *config.Config, engine *codebridge.Engine) error {
	mayGet := func(mode string) bool { return cmp.Or(a.mode, mode) == string(aggregator.ModeCode) }
	if !mayGet(cfg.ToolSearch.Mode) && !slices.ContainsFunc(cfg.Policy.Profiles, func(p policy.Profile) bool { return mayGet(p.Mode) }) {
		return nil
	}
	if a.checking {
		return engine.Check(ctx)
	}
	limit := patientProbeTime
	if a.serving {
		limit = probeTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the sandbox process did not answer within %v", limit))
	defer cancel()
	err := engine.Probe(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// chooser returns who gets what: the profile of --profile, else the first that
// matches the client's name; the mode of --mode, else the profile's, else the
// configuration's.
func (a *app) chooser(cfg *config.Config, pol *policy.Policy) aggregator.ChooseProfile {
	return func(client string) (profile, mode string, err error) {
		pr, err := pol.ProfileFor(a.profile, client)
		if err != nil {
			return "", "", err
		}
		return pr.Name, cmp.Or(a.mode, pr.Mode, cfg.ToolSearch.Mode), nil
	}
}

// settle starts all servers and waits until each is ready or has failed once.
func (p *program) settle(ctx context.Context) error {
	p.face.Start()
	select {
	case <-p.set.Settled():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listed returns what tools/list has for callers with this profile: how many
// bytes and how many tools.
func (p *program) listed(ctx context.Context, profile string) (size, tools int, err error) {
	raw, err := p.face.Local(profile).List(ctx)
	if err != nil {
		return 0, 0, err
	}
	var list struct{ Tools []json.RawMessage }
	err = json.Unmarshal(raw, &list)
	return len(raw), len(list.Tools), err
}

// close ends everything: first those who call others.
func (p *program) close() {
	if p.engine != nil {
		if err := p.engine.Close(); err != nil {
			p.log.Warn("closing the sandbox", "err", err)
		}
	}
	if p.dir != nil {
		if err := p.dir.Close(); err != nil {
			p.log.Warn("closing the index", "err", err)
		}
	}
	if p.set != nil {
		if err := p.set.Close(); err != nil {
			p.log.Warn("closing the servers", "err", err)
		}
	}
	if err := p.records.Close(); err != nil {
		p.log.Warn("closing the telemetry log", "err", err)
	}
}
