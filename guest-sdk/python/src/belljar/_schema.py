"""JSON schemas from type hints, and the check of arguments against the same hints."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from typing import Any, Callable, Literal, Union

from ._errors import InvalidArguments

_NONE = type(None)
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}
_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_ABSENT = inspect.Parameter.empty


class Fields:
    """The arguments of a function, or the fields of a dataclass."""

    def __init__(self, hints: dict[str, Any], defaults: dict[str, Any]) -> None:
        self._hints = hints
        self._defaults = defaults

    @classmethod
    def of_function(cls, function: Callable[..., Any]) -> Fields:
        hints = typing.get_type_hints(function, include_extras=True)
        hints.pop("return", None)
        defaults = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in hints:
                raise TypeError(f"`{function.__name__}`: `{name}` needs a type hint")
            if parameter.default is not _ABSENT:
                defaults[name] = parameter.default
        return cls(hints, defaults)

    @classmethod
    def of_dataclass(cls, kind: type) -> Fields:
        hints = typing.get_type_hints(kind, include_extras=True)
        defaults = {}
        for field in dataclasses.fields(kind):
            if field.default is not dataclasses.MISSING:
                defaults[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                defaults[field.name] = field.default_factory
        return cls(hints, defaults)

    def schema(self) -> dict[str, Any]:
        properties = {}
        for name, hint in self._hints.items():
            properties[name] = schema_of(hint)
            default = self._defaults.get(name)
            if isinstance(default, (str, int, float, bool)):
                properties[name]["default"] = default
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        required = [name for name in self._hints if not self._may_be_absent(name)]
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return schema

    def read(self, given: Any, where: str) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise _mismatch(where, "object", given)
        for name in given:
            if name not in self._hints:
                known = ", ".join(f"`{known}`" for known in self._hints)
                raise InvalidArguments(f"unknown field `{name}`, expected one of {known or 'none'}")
        values = {}
        for name, hint in self._hints.items():
            value = given.get(name)
            if name in given and not (value is None and self._may_be_absent(name)):
                values[name] = read(hint, value, f"{where}.{name}" if where else name)
            elif name in self._defaults:
                default = self._defaults[name]
                values[name] = default() if callable(default) else default
            elif self._may_be_absent(name):
                values[name] = None
            else:
                raise InvalidArguments(f"missing field `{name}`")
        return values

    def _may_be_absent(self, name: str) -> bool:
        return name in self._defaults or _NONE in _choices(_plain(self._hints[name])[0])


def schema_of(hint: Any) -> dict[str, Any]:
    """The schema of a type. A text in `Annotated` is its description, a dict is merged into it."""
    kind, notes = _plain(hint)
    schema = _schema_of_plain(kind)
    for note in notes:
        if isinstance(note, str):
            schema["description"] = note
        elif isinstance(note, dict):
            schema.update(note)
    return schema


def _schema_of_plain(kind: Any) -> dict[str, Any]:
    if kind is Any:
        return {}
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return {"type": _SIMPLE[type(parts[0])], "enum": list(parts)}
    if origin is list or kind is list:
        return {"type": "array", "items": schema_of(parts[0] if parts else Any)}
    if origin is dict or kind is dict:
        return {"type": "object", "additionalProperties": schema_of(parts[1]) if parts else True}
    choices = [choice for choice in _choices(kind) if choice is not _NONE]
    if len(choices) > 1:
        return {"anyOf": [schema_of(choice) for choice in choices]}
    if choices != [kind]:
        return schema_of(choices[0])
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        values = [member.value for member in kind]
        return {"type": _SIMPLE[type(values[0])], "enum": values}
    if dataclasses.is_dataclass(kind):
        return Fields.of_dataclass(kind).schema()
    raise TypeError(f"`{kind}` has no JSON schema: use str, int, float, bool, list, dict, "
                    "Literal, Optional, an Enum or a dataclass")


def read(hint: Any, value: Any, where: str) -> Any:
    """A value of a type from what JSON gave, or `InvalidArguments` that names the field."""
    kind, _ = _plain(hint)
    if kind is Any:
        return value
    if kind in _SIMPLE:
        return _read_simple(kind, value, where)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if not any(value == part and type(value) is type(part) for part in parts):
            raise _no_choice(where, value, parts)
        return value
    if origin is list or kind is list:
        if not isinstance(value, list):
            raise _mismatch(where, "array", value)
        items = parts[0] if parts else Any
        return [read(items, item, f"{where}[{at}]") for at, item in enumerate(value)]
    if origin is dict or kind is dict:
        if not isinstance(value, dict):
            raise _mismatch(where, "object", value)
        values = parts[1] if parts else Any
        return {key: read(values, item, f"{where}.{key}") for key, item in value.items()}
    choices = _choices(kind)
    if choices != [kind]:
        return _read_choice(choices, value, where)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise _no_choice(where, value, [member.value for member in kind]) from None
    return kind(**Fields.of_dataclass(kind).read(value, where))


def _read_simple(kind: type, value: Any, where: str) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and type(value) is float and value.is_integer():
        return int(value)
    # `True` is an int in Python and none in JSON.
    if type(value) is not kind:
        raise _mismatch(where, _SIMPLE[kind], value)
    return value


def _read_choice(choices: list[Any], value: Any, where: str) -> Any:
    if value is None and _NONE in choices:
        return None
    left = [choice for choice in choices if choice is not _NONE]
    for choice in left[:-1]:
        try:
            return read(choice, value, where)
        except InvalidArguments:
            continue
    return read(left[-1], value, where)


def _plain(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if typing.get_origin(hint) is typing.Annotated:
        kind, *notes = typing.get_args(hint)
        return kind, tuple(notes)
    return hint, ()


def _choices(kind: Any) -> list[Any]:
    if typing.get_origin(kind) in (Union, types.UnionType):
        return list(typing.get_args(kind))
    return [kind]


def _mismatch(where: str, expected: str, value: Any) -> InvalidArguments:
    what = f"`{where}`" if where else "the arguments"
    return InvalidArguments(f"{what}: expected {_NAMES[expected]}, got {_found(value)}")


def _no_choice(where: str, value: Any, choices: Any) -> InvalidArguments:
    listed = ", ".join(f"`{choice}`" for choice in choices)
    return InvalidArguments(f"`{where}`: {_found(value)} is none of {listed}")


def _found(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text `{value[:40]}`"
    return "a list" if isinstance(value, list) else "an object"
