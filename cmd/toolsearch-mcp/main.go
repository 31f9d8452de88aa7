// Command toolsearch-mcp stands in front of many MCP servers and shows a
// client a few tools to search, describe and call all of theirs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toolsearch-mcp/toolsearch-mcp/codebridge"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/config"
	"github.com/toolsearch-mcp/toolsearch-mcp/internal/telemetry"
)

func main() {
	codebridge.MaybeWorker()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK      = 0
	exitProblem = 1 // told on stderr
	exitUsage   = 2
)

// app is one run of the command line.
type app struct {
	// fixed at creation
	stdin          io.Reader
	stdout, stderr io.Writer

	// set by flags
	configPath, profile, mode string
	logLevel, logFormat       string
	json, wait                bool

	// set by commands
	serving  bool // a client waits for our first answer
	checking bool // what failed before is tried again
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "toolsearch-mcp: %v; see %s --help\n", err, usage.command)
		return exitUsage
	case !errors.Is(err, errTold):
		fmt.Fprintf(stderr, "toolsearch-mcp: %v\n", err)
	}
	return exitProblem
}

// errTold ends with exitProblem and says nothing more.
var errTold = errors.New("told already")

// usageError is a command line that means nothing.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "toolsearch-mcp",
		Short: "One MCP server in front of many, with tool search",
		Long: `toolsearch-mcp connects to the MCP servers of its configuration and presents
itself as one MCP server that finds and calls their tools.

Without a command it is "serve": an MCP client starts it and talks to it over
stdin and stdout. Try "toolsearch-mcp demo" first: it needs no configuration.`,
		Version:           versionText(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := fmt.Errorf("unknown command %q", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				err = fmt.Errorf("%w, did you mean %s?", err, strings.Join(near, " or "))
			}
			return &usageError{cmd.CommandPath(), err}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if num := (*strconv.NumError)(nil); errors.As(err, &num) && errors.Is(num, strconv.ErrSyntax) {
			want := "want a whole number"
			if num.Func == "ParseBool" {
				want = "want true or false"
			}
			err = errors.New(strings.TrimSuffix(err.Error(), num.Error()) + want)
		}
		return &usageError{cmd.CommandPath(), err}
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.configPath, "config", "", "configuration file (default $"+config.EnvPath+", else toolsearch-mcp/config.yaml in the user's configuration folder)")
	flags.StringVar(&a.logLevel, "log-level", "", "debug, info, warn or error (default info on a terminal, else warn)")
	flags.StringVar(&a.logFormat, "log-format", "", "text or json (default text on a terminal, else json)")
	a.modeFlags(root)
	for _, name := range []string{"mode", "profile"} {
		flag := root.Flags().Lookup(name)
		flag.Usage = "as of serve: " + flag.Usage
	}
	root.AddCommand(a.serveCommand(), a.demoCommand(), a.checkCommand(), a.searchCommand(),
		a.describeCommand(), a.callCommand(), a.codeCommand(), a.versionCommand())
	return root
}

// modeFlags adds the flags that say what the client sees.
func (a *app) modeFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.mode, "mode", "", "code, tools, directory or off (default: the configuration's)")
	a.profileFlag(cmd)
}

func (a *app) profileFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.profile, "profile", "", "policy profile to use, whatever the client calls itself")
}

func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON for programs")
}

// exactly is cobra.RangeArgs with a usage error.
func exactly(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return &usageError{cmd.CommandPath(), fmt.Errorf("%s is missing", what)}
		case len(args) > high:
			return &usageError{cmd.CommandPath(), fmt.Errorf("unexpected argument %q", args[high])}
		}
		return nil
	}
}

// logger returns the program's log on stderr, in which no secret shows that
// the redactor has learned by then.
func (a *app) logger() (*slog.Logger, *telemetry.Redactor, error) {
	if err := telemetry.CheckLogging(a.logLevel, a.logFormat); err != nil {
		return nil, nil, &usageError{"toolsearch-mcp", err}
	}
	redactor := new(telemetry.Redactor)
	log := telemetry.NewLogger(a.stderr, a.logLevel, a.logFormat, isTerminal(a.stderr))
	return slog.New(redactor.Handler(log.Handler())), redactor, nil
}

// isTerminal tells whether a stream belongs to a person.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
