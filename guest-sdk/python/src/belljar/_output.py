"""What a tool answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Union

from ._errors import Failed


@dataclass
class Json:
    """A part that is JSON, for values that would be taken as text otherwise."""

    value: Any


@dataclass
class Attachment:
    """A part that is a file. The name is for display; the host keeps its last component only."""

    name: str
    media_type: str
    data: bytes


class Output:
    """An answer of several parts: strings, `Json`, `Attachment`, or what JSON can express."""

    def __init__(self, *parts: Any) -> None:
        self.parts: list[Union[str, Json, Attachment]] = [_part(part) for part in parts]

    @property
    def text(self) -> str:
        """The texts and the JSON, one below the other."""
        texts = [part for part in self.parts if not isinstance(part, Attachment)]
        return "\n".join(json_text(one.value) if isinstance(one, Json) else one for one in texts)


def output(value: Any) -> Output:
    """The answer that a function's result stands for."""
    if isinstance(value, Output):
        return value
    return Output() if value is None else Output(value)


def json_text(value: Any) -> str:
    """A value as JSON text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Failed(f"the result is not JSON: {error}") from error


def _part(value: Any) -> Union[str, Json, Attachment]:
    return value if isinstance(value, (str, Json, Attachment)) else Json(value)
