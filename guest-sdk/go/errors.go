package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Error is one of the contract's errors. The text goes to the model: say what to do differently.
type Error struct {
	kind    Kind
	message string
}

func (e *Error) Error() string { return e.message }

// Kind is which of the contract's errors one is.
type Kind uint8

// The kinds, in the contract's order.
const (
	KindInvalidArguments Kind = iota
	KindNotFound
	KindDenied
	KindTooLarge
	KindFailed
)

// String is the contract's word for it.
func (k Kind) String() string {
	words := []string{"invalid-arguments", "not-found", "denied", "too-large", "failed"}
	return words[min(int(k), len(words)-1)]
}

// KindOf says which of the contract's errors an error is, or would become.
func KindOf(err error) Kind { return errorOf(err).kind }

// NewError is an error of this kind.
func NewError(kind Kind, message string) error { return &Error{kind, message} }

// InvalidArguments: the arguments contradict each other, or ask for what cannot be.
func InvalidArguments(format string, values ...any) error {
	return made(KindInvalidArguments, format, values)
}

// NotFound: what the call names does not exist.
func NotFound(format string, values ...any) error { return made(KindNotFound, format, values) }

// Denied: the sandbox refused something that the call needs.
func Denied(format string, values ...any) error { return made(KindDenied, format, values) }

// TooLarge: the input or the result is larger than the tool handles.
func TooLarge(format string, values ...any) error { return made(KindTooLarge, format, values) }

// Failed: anything else.
func Failed(format string, values ...any) error { return made(KindFailed, format, values) }

func made(kind Kind, format string, values []any) error {
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
		return &Error{KindFailed, err.Error()}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{KindNotFound, what + " does not exist"}
	case errors.Is(err, syscall.EROFS):
		return &Error{KindDenied, what + " is in a read-only mount"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, notCapable), errors.Is(err, syscall.EBADF):
		return &Error{KindDenied, "access to " + what + " was refused"}
	case errors.Is(err, syscall.EFBIG), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{KindTooLarge, what + ": the limit on written bytes is reached"}
	default:
		return &Error{KindFailed, err.Error()}
	}
}

// notCapable is WASI's number for what lies outside of every directory that was given. Package syscall
// finds some of that itself, and says EBADF.
const notCapable = syscall.Errno(76)
