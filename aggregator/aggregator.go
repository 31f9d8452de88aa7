// Package aggregator is the MCP face: what our client sees. It answers lists
// and calls from a view of the directory, and sends every call through one
// chain of Requesters.
//
// It does not rank, does not decide policy, and talks to no server itself.
package aggregator
