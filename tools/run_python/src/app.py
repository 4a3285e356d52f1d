"""`run_python`: CPython whose functions are the agent's tools.

Everything that is imported here is imported when the component is built, and its memory becomes a part
of the component: a store that opens finds the interpreter ready. A module that is not imported by then
does not exist for scripts.
"""

import json
import sys

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types

import lasting
import preload
from session import Session, ScriptFailed
from whole import whole

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

# Scripts that are run when the component is built: the first of a store would else pay for what a compiler and a
# formatter set up once, and for the interpreter's learning of the code that runs all scripts.
FIRST = (
    "print(1)",
    "x = [1, 2]\nfor y in x:\n    print(y)\nlen(x)",
    "import json, re\ndef f(n):\n    return n + 1\n{f(n): str(n) for n in range(9)}",
    "tools.none",
    "1 / 0",
    '"\\ud83d"',
)

# How often each is run: the interpreter has learnt by then.
TIMES = 80

session = Session()


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
            raise Err(types.ToolError_Failed(whole(failed.text))) from None
        return types.Output([types.Part_Text(whole(text))])


def checked(text):
    """The arguments; `null` is the same as nothing."""
    arguments = {key: value for key, value in json.loads(text).items() if value is not None}
    for key, value in arguments.items():
        if key not in WANTED:
            known = ", ".join(f"`{name}`" for name in WANTED)
            raise Err(types.ToolError_InvalidArguments(whole(f"unknown field `{key}`, expected one of {known}")))
        if not isinstance(value, WANTED[key]) or (isinstance(value, bool) and WANTED[key] is not bool):
            expected = {"code": "a string", "timeout": "a number", "fresh": "true or false"}[key]
            found = json.dumps(value)[:80]
            raise Err(types.ToolError_InvalidArguments(f"`{key}`: expected {expected}, got {found}"))
    if "code" not in arguments:
        raise Err(types.ToolError_InvalidArguments("missing field `code`"))
    return arguments


def settle():
    """Makes a memory that is worth to begin with."""
    global session
    preload.settle()
    ready, given = Tools(), [types.Call("run_python", json.dumps({"code": code})) for code in FIRST]
    for _ in range(TIMES):
        for call in given:
            try:
                ready.invoke(call)
            except Err:
                pass
    session = Session()
    return lasting.settle((session, session.names, sys.modules["__main__"]))


# Held, as the interpreter goes on to use what they lie in.
lasting_objects, filled = settle()
