"""The official Python SDK against belljar: both transports, both revisions."""

import asyncio
import os

from mcp import Client, MCPError, StdioServerParameters, types

MODES = ["legacy", "2026-07-28", "auto"]


def stdio():
    env = {name: os.environ[name] for name in ("BELLJAR_HOME", "HOME", "PATH") if name in os.environ}
    return StdioServerParameters(command=os.environ["BELLJAR"], args=["mcp"], env=env)


def text(result):
    return "".join(part.text for part in result.content if part.type == "text")


async def says_yes(context, params):
    assert "file_read" in params.message, params
    return types.ElicitResult(action="accept", content={"answer": "yes"})


async def says_no(context, params):
    return types.ElicitResult(action="decline")


async def checks(server, mode):
    said = []

    async def progress(done, total, message):
        said.append(done)

    async with Client(server(), mode=mode, elicitation_callback=says_yes) as client:
        # A client that is told the revision beforehand asks for nothing about the server.
        named = client.server_info
        assert named is None if mode == "2026-07-28" else named.name == "belljar", named
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"file_read", "file_write", "agent_clerk"} <= set(tools), tools
        assert tools["file_read"].annotations.read_only_hint is True
        result = await client.call_tool("file_list", {})
        assert "note.txt" in text(result), result
        result = await client.call_tool("file_read", {"path": "note.txt"})
        assert "tide turns" in text(result), result
        result = await client.call_tool("file_read", {"path": "none.txt"})
        assert result.is_error, result
        result = await client.call_tool("attach_file", {"path": "dot.png"})
        kinds = [part.type for part in result.content]
        assert "image" in kinds, result
        result = await client.call_tool(
            "agent_clerk", {"task": "when is high water?"}, progress_callback=progress
        )
        assert text(result) == "High water is at 06:12.", result
        assert said == sorted(set(said)), said
        await client.call_tool("file_write", {"path": "new.txt", "content": "low water\n"})
        resources = {it.name: it.uri for it in (await client.list_resources()).resources}
        changes = await client.read_resource(resources["changes"])
        assert "+low water" in changes.contents[0].text, changes
        prompt = await client.get_prompt("tides", {"task": "when?"})
        assert "Count from six." in prompt.messages[0].content.text, prompt
        try:
            await client.call_tool("nothing", {})
            raise AssertionError("an unknown tool was called")
        except MCPError as error:
            assert "unknown tool" in str(error), error
        # A flood: all are answered.
        results = await asyncio.gather(*(client.call_tool("file_list", {}) for _ in range(300)))
        assert all("note.txt" in text(result) for result in results)
    async with Client(server(), mode=mode, elicitation_callback=says_no) as client:
        result = await client.call_tool("file_read", {"path": "note.txt"})
        assert result.is_error and "tide" not in text(result), result
    async with Client(server(), mode=mode) as client:
        result = await client.call_tool("file_read", {"path": "note.txt"})
        assert result.is_error and "tide" not in text(result), result


async def main():
    for name, server in (("stdio", stdio), ("http", lambda: os.environ["BELLJAR_URL"])):
        for mode in MODES:
            await checks(server, mode)
            print(f"sdk {name} {mode}: as expected")


asyncio.run(main())
