package guardian

// Watch does nothing on Windows: job objects end with us.
func Watch(int) error { return nil }

// Unwatch does nothing on Windows.
func Unwatch(int) {}
