// Package telemetry writes the JSON Lines records of contract 10 and sets up
// logging. It imports nothing of the program. It never sees arguments,
// results, queries or secrets.
package telemetry
