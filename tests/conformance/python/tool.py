"""The conformance tools in Python. `tests/conformance/README.md` says what each has to do."""

import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.request
from typing import Annotated, Literal, Optional

import belljar.urllib  # noqa: F401
from belljar import (Attachment, Denied, Failed, InvalidArguments, Json, NotFound, Output, TooLarge, ToolError,
                     config, log, peers, progress, secret_exists, tool)

_calls = 0


@tool(read_only=True, idempotent=True)
def conf_types(
    text: Annotated[str, "Any text."],
    count: Annotated[int, "A whole number."],
    ratio: Annotated[float, "A number."],
    flag: Annotated[bool, "Yes or no."],
    words: Annotated[list[str], "Some words."],
    color: Annotated[Literal["red", "green", "blue"], "One of three."],
    note: Annotated[Optional[str], "May be left out."] = None,
) -> dict:
    """Answers its arguments, as JSON."""
    return {"text": text, "count": count, "ratio": ratio, "flag": flag, "words": words,
            "color": color, "note": note}


@tool(read_only=True, idempotent=True)
def conf_echo(text: str) -> str:
    """Answers the text."""
    return text


@tool(read_only=True)
def conf_error(kind: str, message: str) -> str:
    """Fails with an error of this kind."""
    kinds = [InvalidArguments, NotFound, Denied, TooLarge, Failed]
    raise next((error for error in kinds if error.kind == kind), Failed)(message)


@tool(read_only=True)
def conf_output(bytes: int) -> str:
    """Answers so many times `x`."""
    return "x" * bytes


@tool(read_only=True)
def conf_parts() -> Output:
    """Answers a text, JSON and a file."""
    file = Attachment("three.bin", "application/octet-stream", bytes(range(256)))
    return Output("one", Json({"two": 2}), file)


@tool(read_only=True)
def conf_read(path: str) -> str:
    """Answers the content of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


@tool
def conf_write(path: str, text: str) -> str:
    """Writes a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return "written"


@tool
def conf_append(path: str, text: str) -> str:
    """Writes at the end of a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)
    return "appended"


@tool(read_only=True)
def conf_list(path: str) -> list:
    """Answers the names in a directory, sorted."""
    return sorted(os.listdir(path))


@tool
def conf_mkdir(path: str) -> str:
    """Makes a directory."""
    os.mkdir(path)
    return "made"


@tool
def conf_rename(source: str, target: str) -> str:
    """Renames a file."""
    os.rename(source, target)
    return "renamed"


@tool
def conf_remove(path: str) -> str:
    """Removes a file."""
    os.remove(path)
    return "removed"


@tool(open_world=True)
def conf_http(method: str, url: str, body: Optional[str] = None) -> dict:
    """Sends a request and answers its status and body."""
    data = None if body is None else body.encode()
    request = urllib.request.Request(url, data, method=method)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return {"status": answer.status, "body": answer.read().decode()}


@tool(read_only=True)
def conf_config(key: str) -> dict:
    """Answers a setting."""
    return {"value": config(key)}


@tool(read_only=True)
def conf_secret(name: str) -> dict:
    """Answers whether a secret exists."""
    return {"exists": secret_exists(name)}


@tool(read_only=True)
def conf_log(level: str, message: str, times: int) -> str:
    """Logs a message."""
    for _ in range(times):
        getattr(log, level)(message)
    return "logged"


@tool(read_only=True)
def conf_progress(steps: int) -> str:
    """Reports progress."""
    for step in range(1, steps + 1):
        progress(step, steps, f"step {step}")
    return "reported"


@tool(read_only=True)
def conf_clock() -> dict:
    """Answers the time, and how long a moment takes."""
    begun = time.monotonic_ns()
    return {"wall_ms": int(time.time() * 1000), "elapsed_ns": time.monotonic_ns() - begun}


@tool(read_only=True)
def conf_random(bytes: int) -> dict:
    """Answers random bytes."""
    return {"hex": secrets.token_hex(bytes)}


@tool(read_only=True)
def conf_environment() -> dict:
    """Answers how many environment variables there are."""
    return {"variables": len(os.environ)}


@tool(read_only=True)
def conf_print(out: str, err: str) -> str:
    """Writes to the standard streams."""
    print(out)
    print(err, file=sys.stderr)
    return "printed"


@tool(read_only=True)
def conf_count() -> dict:
    """Answers how often it was called in this store."""
    global _calls
    _calls += 1
    return {"count": _calls}


@tool(read_only=True)
def conf_trap() -> str:
    """Ends the instance."""
    os.abort()


@tool(read_only=True)
def conf_loop() -> str:
    """Never ends."""
    while True:
        pass


@tool(read_only=True)
def conf_memory() -> str:
    """Takes memory until there is none."""
    taken = []
    while True:
        taken.append(bytearray(b"x" * (1 << 20)))


@tool(read_only=True)
def conf_peers() -> list:
    """Answers the other tools that can be called."""
    return [
        {"name": one.name, "description": one.description, "schema": one.schema,
         "read_only": one.read_only}
        for one in peers.list()
    ]


@tool
def conf_call(tool: str, arguments: str) -> Output:
    """Calls another tool and answers what it answers."""
    return peers.call(tool, **json.loads(arguments))


@tool
def conf_call_many(tools: list[str], arguments: list[str]) -> list:
    """Calls other tools at once."""
    calls = [(tool, json.loads(given)) for tool, given in zip(tools, arguments, strict=True)]
    return [
        {"error": one.kind} if isinstance(one, ToolError) else {"ok": one.text}
        for one in peers.call_many(calls)
    ]
