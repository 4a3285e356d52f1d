"""The agent's tools as functions."""

import json
from dataclasses import dataclass

from componentize_py_types import Err, Ok
from wit_world.imports import peers, types

from whole import whole


class ToolError(Exception):
    """A call that gave no result: `kind` is `invalid-arguments`, `not-found`, `denied`, `too-large` or `failed`."""

    def __init__(self, tool, kind, message):
        super().__init__(message)
        self.tool = tool
        self.kind = kind

    # A traceback names it without the module that scripts do not see.
    __module__ = "builtins"


@dataclass(frozen=True)
class Attachment:
    """A file that a tool handed over."""

    name: str
    media_type: str
    data: bytes


KINDS = {
    types.ToolError_InvalidArguments: "invalid-arguments",
    types.ToolError_NotFound: "not-found",
    types.ToolError_Denied: "denied",
    types.ToolError_TooLarge: "too-large",
    types.ToolError_Failed: "failed",
}


def call_of(name, arguments):
    if not isinstance(name, str):
        raise TypeError(f"the name of a tool must be str, not {type(name).__name__}")
    return types.Call(whole(name), json.dumps(arguments))


class Later:
    """A call that is not made yet, for `parallel`."""

    __slots__ = ("call",)

    def __init__(self, name, arguments):
        self.call = call_of(name, arguments)


class Tool:
    """One tool."""

    __slots__ = ("__name__",)

    def __init__(self, name):
        self.__name__ = name

    def __call__(self, **arguments):
        return result(self.__name__, answered(call_of(self.__name__, arguments)))

    def of(self, **arguments):
        """The call, for `parallel`."""
        return Later(self.__name__, arguments)

    def __repr__(self):
        return f"<tool {self.__name__}>"

    @property
    def __doc__(self):
        return help(self.__name__)


class Tools:
    """All tools of the agent, by their names."""

    __slots__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Tool(name)

    __getitem__ = __getattr__

    def __dir__(self):
        return [tool.name for tool in peers.list()]

    def __iter__(self):
        return iter(dir(self))

    def __repr__(self):
        return "<tools>"


tools_of_the_agent = Tools()


def answered(call):
    try:
        return Ok(peers.call(call))
    except Err as error:
        return error


def result(name, answer):
    """One part is the result itself; of several there is a list."""
    if isinstance(answer, Err):
        raise ToolError(name, KINDS[type(answer.value)], answer.value.value)
    parts = [value(part) for part in answer.value.parts]
    return parts[0] if len(parts) == 1 else parts or None


def value(part):
    if isinstance(part, types.Part_Text):
        return part.value
    if isinstance(part, types.Part_Json):
        return json.loads(part.value)
    return Attachment(part.value.name, part.value.media_type, part.value.data)


def parallel(calls, *, settle=False):
    """Makes calls, at once as far as they only read, and gives their results in order.

    A call is `tools.NAME.of(...)` or `("NAME", {...})`; a function is called in its turn. The first that
    failed is raised when all have ended; with `settle` each failure stands in place of its result.
    """
    results, pending, places = [], [], []
    for at, one in enumerate(calls):
        results.append(None)
        if isinstance(one, Later):
            pending.append(one.call)
            places.append(at)
        elif isinstance(one, tuple) and len(one) == 2:
            pending.append(Later(*one).call)
            places.append(at)
        elif callable(one):
            results[at] = attempt(one)
        else:
            raise TypeError(f'parallel takes calls such as tools.file_read.of(path="a"), not {type(one).__name__}')
    for at, call, answer in zip(places, pending, peers.call_many(pending) if pending else []):
        results[at] = attempt(lambda: result(call.tool, answer))
    if not settle:
        for one in results:
            if isinstance(one, Failed):
                raise one.error
    return [one.error if isinstance(one, Failed) else one for one in results]


@dataclass
class Failed:
    error: Exception


def attempt(made):
    try:
        return made()
    except Exception as error:
        return Failed(error)


def help(name=None):
    """The tools, or one of them with its arguments."""
    name = getattr(name, "__name__", name)
    found = [tool for tool in peers.list() if name is None or tool.name == name]
    if not found:
        return "there are no tools" if name is None else f"there is no tool `{name}`"
    return "\n".join(stub(tool, name is not None) for tool in found)


def stub(tool, whole):
    schema = json.loads(tool.input_schema)
    required = schema.get("required", [])
    arguments, notes = [], []
    # Those that must be given come first, as in a function.
    properties = sorted(schema.get("properties", {}).items(), key=lambda item: item[0] not in required)
    for name, of in properties:
        arguments.append(f"{name}: {type_of(of)}{'' if name in required else ' = ...'}")
        if of.get("description"):
            notes.append(f"    {name}: {of['description']}")
    text = tool.description if whole else tool.description.split(". ")[0]
    notes = "\n".join(["", *notes]) if whole and notes else ""
    star = "*, " if arguments else ""
    return f"tools.{tool.name}({star}{', '.join(arguments)}): {text}{notes}"


def type_of(schema):
    if "enum" in schema:
        return " | ".join(repr(one) for one in schema["enum"])
    plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "null": "None"}
    if schema.get("type") == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    return plain.get(schema.get("type"), "object")
