"""`run_python`: CPython whose functions are the agent's tools.

Everything that is imported here is imported when the component is built, and its memory becomes a part
of the component: a store that opens finds the interpreter ready. A module that is not imported by then
does not exist for scripts.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types

import preload
from session import Session, ScriptFailed

DESCRIPTION = (
    "Runs Python 3.14 in a sandbox and returns what it prints and the value of its last expression. Your other "
    'tools are functions there: `tools.file_read(path="a.txt")` returns the result (text as str, JSON as a value) '
    "or raises ToolError with `kind`; there is no `await`. "
    '`parallel([tools.file_read.of(path="a"), ...])` makes several calls, at once where they only read, and returns '
    'their results in order. `help()` lists the tools, `help("file_read")` its arguments. Prefer one script that '
    "reads, filters and counts over many calls: only what you print or return is shown. Variables last from call "
    "to call. The usual modules of the standard library are there (`modules` has their names); there is no network, "
    "file system, process or thread of its own."
)

SCHEMA = {
    "type": "object",
    "properties": {
        "code": {"description": "The script.", "type": "string"},
        "timeout": {
            "description": "Stop the script after so many seconds. Default: the operator's limit, which it cannot exceed.",
            "type": "number",
        },
        "fresh": {
            "description": "Start anew: without the variables of earlier calls.",
            "type": "boolean",
            "default": False,
        },
    },
    "required": ["code"],
    "additionalProperties": False,
}

WANTED = {"code": str, "timeout": (int, float), "fresh": bool}

session = Session()
# The first script would else pay for what a compiler and a formatter set up once.
session.run("1 + 1")
session = Session()
preload.settle()


class Tools(exports.Tools):
    def describe(self):
        hints = types.Hints(0)
        return [types.Definition("run_python", DESCRIPTION, json.dumps(SCHEMA), hints)]

    def invoke(self, call):
        global session
        if call.tool != "run_python":
            raise Err(types.ToolError_NotFound(f"this component has no tool `{call.tool}`"))
        arguments = checked(call.arguments)
        if arguments.get("fresh"):
            session = Session()
        try:
            text = session.run(arguments["code"])
        except ScriptFailed as failed:
            raise Err(types.ToolError_Failed(failed.text)) from None
        return types.Output([types.Part_Text(text)])


def checked(text):
    """The arguments; `null` is the same as nothing."""
    arguments = {key: value for key, value in json.loads(text).items() if value is not None}
    for key, value in arguments.items():
        if key not in WANTED:
            known = ", ".join(f"`{name}`" for name in WANTED)
            raise Err(types.ToolError_InvalidArguments(f"unknown field `{key}`, expected one of {known}"))
        if not isinstance(value, WANTED[key]) or (isinstance(value, bool) and WANTED[key] is not bool):
            expected = {"code": "a string", "timeout": "a number", "fresh": "true or false"}[key]
            found = json.dumps(value)[:80]
            raise Err(types.ToolError_InvalidArguments(f"`{key}`: expected {expected}, got {found}"))
    if "code" not in arguments:
        raise Err(types.ToolError_InvalidArguments("missing field `code`"))
    return arguments
