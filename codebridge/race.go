//go:build race

package codebridge

// underRace tells that the race detector is built in, which maps more memory
// than a worker may have.
const underRace = true
