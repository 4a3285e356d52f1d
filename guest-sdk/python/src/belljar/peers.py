"""The other tools of the agent that a tool works for.

They are there when `tool.toml` asks for them (`peers = true`) and the operator agrees. A call made here
is a call of that agent: the same person is asked, the same budgets pay. Outside of a component there is
nobody to call.

    from belljar import peers

    text = peers.call("file_read", path="a.txt").text
"""

from __future__ import annotations

import builtins
import json
from dataclasses import dataclass
from typing import Any, Iterable, Tuple, Union

from ._errors import BY_KIND, Denied, ToolError
from ._output import Attachment, Json, Output, json_text

try:
    from componentize_py_types import Err as _Err
    from wit_world.imports import belljar_tool_types as _types
    from wit_world.imports import peers as _peers
except ImportError:
    _peers = None


@dataclass(frozen=True)
class Peer:
    """A tool that can be called."""

    name: str
    description: str
    schema: dict
    read_only: bool
    idempotent: bool
    open_world: bool


def list() -> builtins.list[Peer]:
    """Those that can be called, in the agent's order."""
    return [] if _peers is None else [_peer(one) for one in _peers.list()]


def call(tool: str, /, **arguments: Any) -> Output:
    """Calls one and waits for its answer; its error is raised."""
    if _peers is None:
        raise _nobody()
    try:
        return _output(_peers.call(_types.Call(tool, json_text(arguments))))
    except _Err as error:
        raise _error(error.value) from None


def call_many(calls: Iterable[Tuple[str, dict]]) -> builtins.list[Union[Output, ToolError]]:
    """Calls several at once; those that only read overlap. One answer or error for each, in their
    order."""
    if _peers is None:
        return [_nobody() for _ in calls]
    made = _peers.call_many([_types.Call(tool, json_text(given)) for tool, given in calls])
    return [_error(one.value) if isinstance(one, _Err) else _output(one.value) for one in made]


def _nobody() -> ToolError:
    return Denied("there are no other tools outside of a component")


def _peer(one: Any) -> Peer:
    hints = _types.Hints
    return Peer(
        one.name,
        one.description,
        json.loads(one.input_schema),
        hints.READ_ONLY in one.hints,
        hints.IDEMPOTENT in one.hints,
        hints.OPEN_WORLD in one.hints,
    )


def _error(error: Any) -> ToolError:
    kinds = {
        _types.ToolError_InvalidArguments: "invalid-arguments",
        _types.ToolError_NotFound: "not-found",
        _types.ToolError_Denied: "denied",
        _types.ToolError_TooLarge: "too-large",
    }
    return BY_KIND[kinds.get(type(error), "failed")](error.value)


def _output(made: Any) -> Output:
    return Output(*[_part(part) for part in made.parts])


def _part(part: Any) -> Union[str, Json, Attachment]:
    value = part.value
    if isinstance(part, _types.Part_Text):
        return value
    if isinstance(part, _types.Part_Json):
        return Json(json.loads(value))
    return Attachment(value.name, value.media_type, bytes(value.data))
