"""The contract's errors, and which of them an exception of Python is."""

import errno


class ToolError(Exception):
    """Why a call gives nothing. The text goes to the model: say what to do differently."""

    kind = "failed"


class InvalidArguments(ToolError):
    """The arguments contradict each other, or ask for what cannot be."""

    kind = "invalid-arguments"


class NotFound(ToolError):
    """What the call names does not exist."""

    kind = "not-found"


class Denied(ToolError):
    """The sandbox refused something that the call needs."""

    kind = "denied"


class TooLarge(ToolError):
    """The input or the result is larger than the tool handles."""

    kind = "too-large"


class Failed(ToolError):
    """Anything else."""

    kind = "failed"


BY_KIND = {error.kind: error for error in (InvalidArguments, NotFound, Denied, TooLarge, Failed)}

# WASI's number for what lies outside of every directory that was given.
_NOT_CAPABLE = 76
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, _NOT_CAPABLE}
_LARGE = {errno.EDQUOT, errno.EFBIG, errno.ENOSPC}


def of(error: BaseException) -> ToolError:
    """The contract's error for an exception."""
    if isinstance(error, ToolError):
        return error
    if isinstance(error, OSError) and error.errno is not None:
        return _of_file(error)
    if isinstance(error, MemoryError):
        return TooLarge("the tool has no memory left for this")
    if isinstance(error, UnicodeDecodeError):
        return Failed("the file is not valid UTF-8 text")
    return Failed(f"{type(error).__name__}: {error}")


def _of_file(error: OSError) -> ToolError:
    name = error.filename
    what = f"`{name}`" if isinstance(name, str) else "a file"
    if error.errno == errno.ENOENT:
        return NotFound(f"{what} does not exist")
    if error.errno == errno.EROFS:
        return Denied(f"{what} is in a read-only mount")
    if error.errno in _REFUSED:
        return Denied(f"access to {what} was refused")
    if error.errno in _LARGE:
        return TooLarge(f"{what}: the limit on written bytes is reached")
    return Failed(f"{what}: {(error.strerror or 'failed').lower()}")
