"""Write tools for belljar.

A tool is a function with type hints::

    from typing import Annotated
    from belljar import tool

    @tool(read_only=True, idempotent=True)
    def word_count(path: Annotated[str, "The file, relative to the workspace."]) -> str:
        \"\"\"Counts the words of a text file.\"\"\"
        with open(path, encoding="utf-8") as file:
            return f"{path}: {len(file.read().split())} words"

The hints become the JSON schema that models read, and every call is checked against it before the
function runs. The workspace is the current directory: `open`, `os` and `pathlib` work with relative
paths. An `OSError` becomes the contract's error of the same meaning, so a tool need not catch one.
"""

from . import peers
from ._errors import Denied, Failed, InvalidArguments, NotFound, TooLarge, ToolError
from ._host import config, log, progress, secret_exists
from ._output import Attachment, Json, Output
from ._tools import tool

__all__ = [
    "Attachment",
    "Denied",
    "Failed",
    "InvalidArguments",
    "Json",
    "NotFound",
    "Output",
    "TooLarge",
    "ToolError",
    "config",
    "log",
    "peers",
    "progress",
    "secret_exists",
    "tool",
]
__version__ = "0.2.0"
