// Package guardian ends the process groups of our children when we are gone,
// also after kill -9.
package guardian
