package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/toolsearch-mcp/toolsearch-mcp/internal/config"
)

const (
	// settleTime is how long the folder must be quiet: editors write in steps.
	settleTime = 150 * time.Millisecond
	// maxSettleTime ends the wait in a folder that is never quiet.
	maxSettleTime = time.Second
)

// watch reloads the configuration when its file changes and on SIGHUP, until
// ctx ends or the returned function is called, which waits for it.
func (p *program) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)

	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		err = watchFolders(watcher, p.config.Path)
	}
	if err != nil {
		p.log.Warn("the configuration file is not watched: after a change send SIGHUP (on Windows start toolsearch-mcp anew)", "err", err)
	}

	var done sync.WaitGroup
	done.Go(func() { p.follow(ctx, hangup, watcher) })
	return func() {
		cancel()
		done.Wait()
		signal.Stop(hangup)
		if watcher != nil {
			_ = watcher.Close() // nothing is read from it any more
		}
	}
}

// watchFolders watches the folder of the file, because editors put a new file
// in the place of the old, and that of the file it is a link to.
func watchFolders(w *fsnotify.Watcher, path string) error {
	if err := w.Add(filepath.Dir(path)); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil { // else it is away for the moment
		return w.Add(filepath.Dir(real)) // the same folder twice is one
	}
	return nil
}

func (p *program) follow(ctx context.Context, hangup <-chan os.Signal, watcher *fsnotify.Watcher) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if watcher != nil {
		events, errs = watcher.Events, watcher.Errors
	}
	last, _ := os.ReadFile(p.config.Path) // unreadable: the next content is a change
	var quiet <-chan time.Time
	var since time.Time // of the first event that quiet waits for
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			p.reload()
		case err := <-errs:
			p.log.Warn("watching the configuration file", "err", err)
		case <-events:
			// Of whatever file: a link may lead to ours in several steps.
			if quiet == nil {
				since = time.Now()
			}
			quiet = time.After(min(settleTime, max(0, maxSettleTime-time.Since(since))))
		case <-quiet:
			quiet = nil
			if err := watchFolders(watcher, p.config.Path); err != nil { // a link may lead elsewhere now
				p.log.Warn("watching the configuration file", "err", err)
			}
			now, err := os.ReadFile(p.config.Path)
			if err == nil && !bytes.Equal(now, last) {
				last = now
				p.reload()
			}
		}
	}
}

// reload takes the file's present content into use as a whole, or not at all.
func (p *program) reload() {
	if err := p.reloadFile(); err != nil {
		p.log.Error("configuration not reloaded, the old one stays in use", "path", p.config.Path, "err", err)
	}
}

func (p *program) reloadFile() error {
	cfg, err := p.app.load(p.redactor)
	if err != nil {
		return err
	}
	pol, err := p.app.compile(cfg)
	if err != nil {
		return err
	}

	// The policy first: no server of the new file is met by the old rules.
	p.gate.Swap(pol)
	p.dir.Swap(pol)
	if err := p.set.Apply(cfg.Servers); err != nil {
		p.gate.Swap(p.policy)
		p.dir.Swap(p.policy)
		return err
	}
	p.face.Reload(cfg.ToolSearch, p.app.chooser(cfg, pol))
	for _, w := range cfg.Warnings {
		p.log.Warn("configuration", "warning", w)
	}
	for _, key := range needRestart(p.config, cfg) {
		p.log.Warn("configuration: takes effect at the next start", "key", key)
	}
	p.config, p.policy = cfg, pol
	announce(p.log, "configuration reloaded", "path", cfg.Path)
	return nil
}

// needRestart names the changed keys that running parts were built with.
func needRestart(old, now *config.Config) []string {
	var keys []string
	if old.CodeBridge != now.CodeBridge {
		keys = append(keys, "codeBridge and toolSearch.codeTimeoutMs")
	}
	if old.ToolSearch.MaxNameLength != now.ToolSearch.MaxNameLength {
		keys = append(keys, "toolSearch.maxNameLength")
	}
	if old.Telemetry != now.Telemetry {
		keys = append(keys, "telemetry.log")
	}
	return keys
}
