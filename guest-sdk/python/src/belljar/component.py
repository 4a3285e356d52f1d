"""The component's own module: `belljar tools build` names it to componentize-py. It imports the
project's `tool.py`, which fills the table of tools."""

import tool as _project  # noqa: F401
from componentize_py_types import Err
from wit_world.imports import belljar_tool_types as records

from ._errors import ToolError
from ._output import Json, json_text
from ._tools import TOOLS, Tool, run

_ERRORS = {
    "invalid-arguments": records.ToolError_InvalidArguments,
    "not-found": records.ToolError_NotFound,
    "denied": records.ToolError_Denied,
    "too-large": records.ToolError_TooLarge,
    "failed": records.ToolError_Failed,
}


class Tools:
    """What the component exports."""

    def describe(self):
        return [_definition(tool) for tool in TOOLS.values()]

    def invoke(self, call):
        try:
            output = run(call.tool, call.arguments)
            return records.Output(parts=[_part(part) for part in output.parts])
        except ToolError as error:
            raise Err(_ERRORS[error.kind](str(error))) from None


def _definition(tool: Tool):
    hints = records.Hints(0)
    for wanted, hint in [
        (tool.read_only, records.Hints.READ_ONLY),
        (tool.idempotent, records.Hints.IDEMPOTENT),
        (tool.open_world, records.Hints.OPEN_WORLD),
    ]:
        if wanted:
            hints |= hint
    return records.Definition(tool.name, tool.description, tool.schema(), hints)


def _part(part):
    if isinstance(part, str):
        return records.Part_Text(part)
    if isinstance(part, Json):
        return records.Part_Json(json_text(part.value))
    return records.Part_Attachment(records.Attachment(part.name, part.media_type, part.data))
