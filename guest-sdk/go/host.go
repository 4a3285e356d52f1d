package tool

// Level is how much a line of the log matters.
type Level uint8

const (
	// Trace is for following the tool's steps.
	Trace Level = iota
	// Debug is for finding a fault in the tool.
	Debug
	// Info is what an operator may want to know.
	Info
	// Warn: something is off, and the call went on.
	Warn
	// ErrorLevel: the call failed for a reason that an operator can mend.
	ErrorLevel
)

// Log writes a line to the operator's log. Never shown to the model; the host keeps a bounded number.
func Log(level Level, message string) { hostLog(level, message) }

// Progress reports how far a long call has come, both numbers in the same unit; a total of 0 is one
// that is not known. Display only.
func Progress(done, total uint64, message string) { hostProgress(done, total, message) }

// Config is what the operator set for this tool, and whether it is set. `tool.toml` names the keys.
func Config(key string) (string, bool) { return hostConfig(key) }

// SecretExists says whether the operator granted this tool a secret of this name. Its value is never
// seen here: the host joins it to requests.
func SecretExists(name string) bool {
	_, is := Config("secret." + name)
	return is
}
