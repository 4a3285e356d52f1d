"""The client that the conformance suite starts: belljar, with a home of its own and an agent that calls
the tools of the server which the suite plays.

Usage: client.py BELLJAR URL, with the suite's words in the environment. Where the server wants a token,
this is also the person who says yes in a browser. The exit code says whether all calls were answered.
"""

import contextlib
import http.client
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import urllib.parse

BELLJAR, URL = sys.argv[1], sys.argv[2]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
REVISION = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))

# The name that the suite expects of a client with a document about itself.
DOCUMENT = "https://conformance-test.local/client-metadata.json"

# A tool that is to be told the schema of the other one, as belljar has it.
ECHO = "json_schema_echo"

# Where the suite looks at the list alone, and its server has nothing to call.
LISTED_ALONE = ["json-schema-ref-no-deref"]

# Where the server asks a person, who is at a terminal and takes the values that the form suggests.
ASKED = ["elicitation-sep1034-client-defaults"]
ANSWER = b"2\n"

# How often a person says yes before they give up.
MOST_LOGINS = 2

# What single tools of the suite are called with; others without arguments.
ARGUMENTS = {
    "add_numbers": {"a": 2, "b": 3},
    "valid_tool": {"region": "eu"},
    "lookup_user": {"id": "a-1"},
}

SETTINGS = """\
[models.scripted]
kind = "scripted"
model = "transcript.yaml"
[roles]
main = "scripted"
[mcp.peer]
url = "{url}"
revision = "{revision}"
[mcp.peer.oauth]
client_metadata_url = "{document}"
"""

AGENT = """\
---
name: clerk
description: Calls tools.
visibility: user-facing
---
You call tools.
"""


class Home:
    def __init__(self, root):
        self.home, self.workspace = root / "home", root / "workspace"
        (self.home / "agents").mkdir(parents=True)
        self.workspace.mkdir()
        (self.home / "agents/clerk.md").write_text(AGENT)
        self.env = {**os.environ, "BELLJAR_HOME": str(self.home)}
        self.logins = 0
        self.settings()

    def settings(self, tools=()):
        text = SETTINGS.format(url=URL, revision=REVISION, document=DOCUMENT)
        if SCENARIO in ASKED:
            text = text.replace("[mcp.peer]\n", "[mcp.peer]\nelicitation = true\n")
        if "client_id" in CONTEXT:
            text += f'client_id = "{CONTEXT["client_id"]}"\n'
        if "client_secret" in CONTEXT:
            (self.home / "client.txt").write_text(CONTEXT["client_secret"])
            text += 'client_secret = "client"\n'
            if SCENARIO.startswith("auth/client-credentials"):
                text += 'grant = "client-credentials"\n'
            host = CONTEXT.get("issuer", "http://localhost:*")
            text += f'[secrets.client]\nhost = "{host}"\nheader = "authorization"\nfile = "client.txt"\n'
        text += f"[grants.clerk]\ntools = {json.dumps(list(tools))}\n"
        (self.home / "belljar.toml").write_text(text)

    def run(self, *words):
        done = subprocess.run(
            [BELLJAR, *words], env=self.env, cwd=self.workspace, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        print("$ belljar", *words, "->", done.returncode)
        print(done.stdout + done.stderr)
        return done

    def asked(self, *words):
        """The same before a person at a terminal, who answers one question."""
        person, terminal = pty.openpty()
        process = subprocess.Popen(
            [BELLJAR, *words], env=self.env, cwd=self.workspace, text=True,
            stdin=terminal, stdout=subprocess.PIPE, stderr=terminal,
        )
        os.close(terminal)
        shown, answered = b"", False
        with contextlib.suppress(OSError):
            # The end of the terminal is an error.
            while piece := os.read(person, 4096):
                shown += piece
                if not answered and b"your answer:" in shown:
                    answered = True
                    os.write(person, ANSWER)
        stdout = process.stdout.read()
        code = process.wait()
        print("$ belljar", *words, "->", code)
        print(stdout + shown.decode(errors="replace"))
        return subprocess.CompletedProcess(words, code, stdout, shown.decode(errors="replace"))

    def review(self):
        """Accepts what the server offers; gives the words of a refusal, else nothing."""
        shown = self.run("mcp", "review", "peer")
        digest = re.search(r"--accept ([0-9a-f]{64})", shown.stderr)
        if shown.returncode == 4 and digest:
            shown = self.run("mcp", "review", "peer", "--accept", digest[1])
        return shown.stderr if shown.returncode else ""

    def login(self, words):
        """Says yes in a browser, to the rights that these words name too. Whether a token came."""
        self.logins += 1
        # A person reads which right the server wants, and names it.
        scope = re.search(r"it wants `([^`]+)`", words)
        more = ["--scope", scope[1]] if scope else []
        process = subprocess.Popen(
            [BELLJAR, "mcp", "login", "peer", *more], env=self.env, cwd=self.workspace, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sys.stdout,
        )
        address = process.stdout.readline().strip()
        if address.startswith("http"):
            back = visit(address)
            if back:
                visit(back)
        print(process.stdout.read())
        return process.wait() == 0

    def calls(self):
        """Has an agent call the tools; gives the words of what went wrong, else nothing."""
        listed = json.loads(self.run("mcp", "list", "--json").stdout)
        tools = listed[0]["tools"]
        self.settings(tools)
        wanted = [(call["name"], call["arguments"]) for call in CONTEXT.get("toolCalls", [])]
        if not wanted:
            names = [tool.removeprefix("mcp__peer__") for tool in tools]
            wanted = [(name, ARGUMENTS.get(name, {})) for name in names]
        if ECHO in dict(wanted):
            accepted = json.loads((self.home / "mcp/peer.json").read_text())["tools"]
            schemas = {tool["name"]: tool["schema"] for tool in accepted}
            wanted = [(ECHO, {"schema": next(schemas[it] for it in schemas if it != ECHO)})]
        turns = [
            {"calls": [{"name": f"mcp__peer__{name}", "arguments": arguments}]}
            for name, arguments in wanted
        ]
        agents = [{"agent": "clerk", "turns": [*turns, {"say": "Done."}]}]
        script = json.dumps({"transcript": 1, "agents": agents})
        (self.home / "transcript.yaml").write_text(script)
        run = self.asked if SCENARIO in ASKED else self.run
        done = run("run", "--json", "--agent", "clerk", "go")
        calls = json.loads(done.stdout)["receipts"] if done.stdout.startswith("{") else []
        receipts = [call["receipt"] for call in calls]
        bad = [receipt for receipt in receipts if receipt["ending"]["kind"] != "completed"]
        whole = done.returncode == 0 and len(receipts) == len(wanted) and not bad
        return "" if whole else json.dumps(bad) + done.stderr


def visit(address):
    """Asks for a page, and gives where it sends the browser."""
    url = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
    connection.request("GET", url.path + ("?" + url.query if url.query else ""))
    answer = connection.getresponse()
    answer.read()
    return answer.getheader("location")


def main():
    with tempfile.TemporaryDirectory() as directory:
        home = Home(pathlib.Path(directory))
        steps = [home.review] if SCENARIO in LISTED_ALONE else [home.review, home.calls]
        while steps:
            why = steps[0]()
            if not why:
                steps.pop(0)
            elif "mcp login" in why and home.logins < MOST_LOGINS:
                if not home.login(why):
                    sys.exit("there is no token")
            else:
                sys.exit(why)


if __name__ == "__main__":
    main()
