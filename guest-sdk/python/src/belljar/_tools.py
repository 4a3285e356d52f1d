"""The tools of a component: `@tool` and the table that it fills."""

from __future__ import annotations

import inspect
import json
import os
import sys
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Optional

from . import _errors
from ._errors import InvalidArguments, NotFound, ToolError
from ._output import Output, json_text, output
from ._schema import Fields

WORKSPACE = "/workspace"


@dataclass
class Tool:
    """A function as a tool."""

    name: str
    description: str
    function: Callable[..., Any]
    fields: Fields
    read_only: bool
    idempotent: bool
    open_world: bool

    def schema(self) -> str:
        return json_text(self.fields.schema())


TOOLS: dict[str, Tool] = {}


def tool(
    function: Optional[Callable[..., Any]] = None,
    *,
    name: Optional[str] = None,
    description: Optional[str] = None,
    read_only: bool = False,
    idempotent: bool = False,
    open_world: bool = False,
) -> Any:
    """Offers a function as a tool; its name and its doc string are those of the tool. Returns the
    function as it was.

    The hints are promises that let the host overlap calls; they never widen a right: `read_only`
    (changes nothing outside its own store), `idempotent` (calling again changes nothing more),
    `open_world` (talks to the network).
    """

    def publish(function: Callable[..., Any]) -> Callable[..., Any]:
        words = description or inspect.getdoc(function)
        if not words:
            raise TypeError(f"`{function.__name__}` needs a doc string: it tells models when to call it")
        named = name or function.__name__
        TOOLS[named] = Tool(named, words, function, Fields.of_function(function), read_only,
                            idempotent, open_world)
        return function

    return publish if function is None else publish(function)


def run(name: str, arguments: str) -> Output:
    """Calls a tool with JSON arguments; every failure is a `ToolError`."""
    found = TOOLS.get(name)
    if found is None:
        raise NotFound(f"this component has no tool `{name}`")
    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from error
    values = found.fields.read(given, "")
    if os.path.isdir(WORKSPACE):
        os.chdir(WORKSPACE)
    try:
        return output(found.function(**values))
    except ToolError:
        raise
    except Exception as error:
        # For the tool's author; the host keeps the first bytes of it.
        if not isinstance(error, OSError):
            traceback.print_exc()
        raise _errors.of(error) from error
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
