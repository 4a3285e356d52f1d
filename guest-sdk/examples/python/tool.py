"""`word_count`: counts the words of a text file. Make it yours."""

from typing import Annotated

from belljar import tool


def count(text: str) -> int:
    return len(text.split())


@tool(read_only=True, idempotent=True)
def word_count(path: Annotated[str, "The file, relative to the workspace."]) -> str:
    """Counts the words of a text file."""
    with open(path, encoding="utf-8") as file:
        return f"{path}: {count(file.read())} words"
