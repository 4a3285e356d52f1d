"""What the host offers to every tool. Outside of a component these do nothing, so that a tool's
functions can be tested with any Python."""

from __future__ import annotations

from typing import Optional

try:
    from wit_world.imports import log as _log
    from wit_world.imports import progress as _progress
    from wit_world.imports import store as _store
except ImportError:
    _log = _progress = _store = None


class _Log:
    """Lines for the operator's log. Never shown to the model; the host keeps a bounded number."""

    def trace(self, message: object) -> None:
        """For following the tool's steps."""
        self._write("TRACE", message)

    def debug(self, message: object) -> None:
        """For finding a fault in the tool."""
        self._write("DEBUG", message)

    def info(self, message: object) -> None:
        """Something an operator may want to know."""
        self._write("INFO", message)

    def warn(self, message: object) -> None:
        """Something is off, and the call went on."""
        self._write("WARN", message)

    def error(self, message: object) -> None:
        """The call failed for a reason that an operator can mend."""
        self._write("ERROR", message)

    @staticmethod
    def _write(level: str, message: object) -> None:
        if _log is not None:
            _log.log(_log.Level[level], str(message))


log = _Log()


def progress(done: int, total: Optional[int] = None, message: str = "") -> None:
    """Reports how far a long call has come, both numbers in the same unit. Display only."""
    if _progress is not None:
        _progress.report(done, total, message)


def config(key: str) -> Optional[str]:
    """What the operator set for this tool, or None. `tool.toml` names the keys."""
    return None if _store is None else _store.get(key)


def secret_exists(name: str) -> bool:
    """Whether the operator granted this tool a secret of this name. Its value is never seen here:
    the host joins it to requests."""
    return config(f"secret.{name}") is not None
