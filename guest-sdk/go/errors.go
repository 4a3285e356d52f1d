package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Error is one of the contract's errors. The text goes to the model: say what to do differently.
type Error struct {
	kind    uint8
	message string
}

func (e *Error) Error() string { return e.message }

const (
	invalidArguments uint8 = iota
	notFound
	denied
	tooLarge
	failed
)

// InvalidArguments: the arguments contradict each other, or ask for what cannot be.
func InvalidArguments(format string, values ...any) error { return made(invalidArguments, format, values) }

// NotFound: what the call names does not exist.
func NotFound(format string, values ...any) error { return made(notFound, format, values) }

// Denied: the sandbox refused something that the call needs.
func Denied(format string, values ...any) error { return made(denied, format, values) }

// TooLarge: the input or the result is larger than the tool handles.
func TooLarge(format string, values ...any) error { return made(tooLarge, format, values) }

// Failed: anything else.
func Failed(format string, values ...any) error { return made(failed, format, values) }

func made(kind uint8, format string, values []any) error {
	return &Error{kind, fmt.Sprintf(format, values...)}
}

// errorOf is the contract's error for whatever a tool's function gave.
func errorOf(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	what := "a file"
	var path *fs.PathError
	var link interface{ Unwrap() error }
	if errors.As(err, &path) {
		what = "`" + path.Path + "`"
	} else if !errors.As(err, &link) {
		return &Error{failed, err.Error()}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{notFound, what + " does not exist"}
	case errors.Is(err, syscall.EROFS):
		return &Error{denied, what + " is in a read-only mount"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, notCapable):
		return &Error{denied, "access to " + what + " was refused"}
	case errors.Is(err, syscall.EFBIG), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{tooLarge, what + ": the limit on written bytes is reached"}
	default:
		return &Error{failed, err.Error()}
	}
}

// notCapable is WASI's number for what lies outside of every directory that was given.
const notCapable = syscall.Errno(76)
