package guardian

// MaybeRun does nothing on Windows: job objects end with us.
func MaybeRun() {}

// Watch does nothing on Windows.
func Watch(int) error { return nil }

// Unwatch does nothing on Windows.
func Unwatch(int) {}
