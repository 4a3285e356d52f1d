"""Holds the MCP door of belljar against clients that nobody here wrote.

Usage: run.py BELLJAR NODE PACKAGES

Makes a home and a workspace, starts a server, and runs `sdk.py` with this Python: the official SDK, over
stdio and over HTTP. Then NODE runs the conformance suite in PACKAGES against the server: of both
revisions the scenarios that ask for no tools of the suite's own.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

SETTINGS = """\
[models.scripted]
kind = "scripted"
model = "transcript.yaml"
[roles]
main = "scripted"
[grants.mcp.tools]
file_read = "ask"
file_list = "allow"
file_write = "allow"
attach_file = "allow"
spawn_agent = "allow"
"""

TURNS = "      - say: High water is at 06:12.\n"
TRANSCRIPT = f"transcript: 1\nagents:\n  - agent: clerk\n    turns:\n{TURNS * 20}"

AGENT = """\
---
name: clerk
description: Answers about the tides.
tools: []
---
You answer about the tides.
"""

SKILL = """\
---
name: tides
description: How tides are counted.
---
Count from six.
"""

# The scenarios of each revision that a server passes with whatever tools it has.
SCENARIOS = {
    "2025-11-25": [
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "logging-set-level",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ],
    "2026-07-28": [
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "caching",
        "http-header-validation",
        "sep-2164-resource-not-found",
    ],
}


def conformance(node, packages, url, directory):
    program = packages / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    failed = []
    for revision, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            out = directory / f"{revision}-{scenario}"
            done = subprocess.run(
                [node, program, "server", "--url", url, "--scenario", scenario,
                 "--spec-version", revision, "-o", out],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            checks = [json.loads(path.read_text()) for path in out.rglob("checks.json")]
            statuses = [check["status"] for found in checks for check in found]
            passed = statuses.count("SUCCESS")
            good = done.returncode == 0 and passed and "FAILURE" not in statuses
            print(f"conformance {revision} {scenario}: {passed} of {len(statuses)} checks")
            if not good:
                failed.append(f"{revision} {scenario}\n{done.stdout}")
    if failed:
        sys.exit("\n".join(failed))


def main():
    belljar, node, packages = (pathlib.Path(given).resolve() for given in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        home, workspace = root / "home", root / "workspace"
        for made in ("agents", "skills"):
            (home / made).mkdir(parents=True)
        workspace.mkdir()
        (home / "belljar.toml").write_text(SETTINGS)
        (home / "transcript.yaml").write_text(TRANSCRIPT)
        (home / "agents/clerk.md").write_text(AGENT)
        (home / "skills/tides.md").write_text(SKILL)
        (workspace / "note.txt").write_text("the tide turns at six\n")
        (workspace / "dot.png").write_bytes(bytes.fromhex("89504e470d0a1a0a"))
        env = {**os.environ, "BELLJAR_HOME": str(home)}
        with open(root / "log", "w") as log:
            server = subprocess.Popen(
                [belljar, "--quiet", "serve", "--listen", "127.0.0.1:0"],
                env=env, cwd=workspace, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        try:
            line = server.stdout.readline().split()
            if not line:
                sys.exit((root / "log").read_text())
            url = line[-1] + "/mcp"
            told = {**env, "BELLJAR": str(belljar), "BELLJAR_URL": url}
            done = subprocess.run([sys.executable, HERE / "sdk.py"], env=told, cwd=workspace)
            if done.returncode:
                print((root / "log").read_text(), file=sys.stderr)
                sys.exit(done.returncode)
            conformance(node, packages, url, root)
            if server.poll() is not None:
                sys.exit("the server ended: " + (root / "log").read_text())
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
