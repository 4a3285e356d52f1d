//go:build !wasip1

package tool

// Outside of a component there is no host, so that a tool's functions can be tested with `go test`.

func hostLog(Level, string)               {}
func hostProgress(uint64, uint64, string) {}
func hostConfig(string) (string, bool)    { return "", false }
