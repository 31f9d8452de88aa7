package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases.
var version = ""

// protocols are the MCP revisions that clients may speak to us.
var protocols = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// release tells what this binary is.
type release struct {
	Version   string   `json:"version"`
	Commit    string   `json:"commit"`
	Go        string   `json:"go"`
	Protocols []string `json:"protocols"`
}

func thisRelease() release {
	b := release{Version: version, Commit: "unknown", Go: runtime.Version(), Protocols: protocols}
	info, ok := debug.ReadBuildInfo()
	if b.Version == "" {
		b.Version = "dev"
		if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
	}
	if !ok {
		return b
	}
	dirty := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+dirty"
			}
		}
	}
	b.Commit += dirty
	return b
}

func versionText() string {
	b := thisRelease()
	return fmt.Sprintf("toolsearch-mcp %s\ncommit %s\n%s %s/%s\nMCP %s",
		b.Version, b.Commit, b.Go, runtime.GOOS, runtime.GOARCH, strings.Join(b.Protocols, ", "))
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and MCP protocol versions",
		Args:  exactly(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return json.NewEncoder(a.stdout).Encode(thisRelease())
			}
			_, err := fmt.Fprintln(a.stdout, versionText())
			return err
		},
	}
	a.jsonFlag(cmd)
	return cmd
}
