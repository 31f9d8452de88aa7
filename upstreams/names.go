package upstreams

// SafeName returns the safe form of a configured server name (contract 2):
// a function of the name alone.
func SafeName(name string) string { panic("todo") }

// ToolID returns mcp:<safe>:<tool>.
func ToolID(safe, tool string) string { return "mcp:" + safe + ":" + tool }

// FullName returns the flat name of a tool, at most max characters of
// [A-Za-z0-9_-] (contract 2): a function of server and tool name alone.
func FullName(safe, tool string, max int) string { panic("todo") }
