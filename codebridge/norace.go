//go:build !race

package codebridge

// underRace tells that the race detector is built in.
const underRace = false
