"""Holds the MCP door of belljar against clients that nobody here wrote.

Usage: run.py BELLJAR FIXTURE NODE PACKAGES REPORTS

Makes a home and a workspace, starts a server, and runs `sdk.py` with this Python and `sdk.mjs` with NODE:
the official SDKs, over stdio and over HTTP; then the Inspector's command line, over both. The
conformance suite in PACKAGES is run against the server, for the scenarios that ask for no tools of the
suite's own, and as a whole against FIXTURE, which has them. The suite's servers are asked by belljar as a
client (`client.py`). What it reports stays in REPORTS.

The other way round, public servers that are commands are reviewed and called by an agent, each in the
sandbox that belljar starts it in.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from serving import passed, served  # noqa: E402

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

# The scenarios of each revision that the product passes with whatever tools it has.
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

# How many scenarios of a server each revision scores, and how many the tasks extension has.
SCORED = {"2025-11-25": 30, "2026-07-28": 37}
TASKS = {"2025-11-25": 0, "2026-07-28": 10}


# The same of a client, which passes all of them.
SCORED_OF_CLIENTS = {"2025-11-25": 18, "2026-07-28": 32}

# Scenarios of a client that nobody scores, and that belljar passes.
UNSCORED = ["auth/client-credentials-basic", "json-schema-2020-12-preservation"]

# Clients that run beside each other; most of each is one process that waits.
CLIENTS = 3


def suite(packages):
    return packages / "node_modules/@modelcontextprotocol/conformance"


def checks_in(directory):
    """The statuses of each scenario's checks, by its name."""
    found = {}
    for path in sorted(directory.glob("server-*/checks.json")):
        name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[-\dZ]+", path.parent.name)[1]
        found[name] = [check["status"] for check in json.loads(path.read_text())]
    return found


def conformance(node, packages, url, directory):
    """The product itself: the scenarios that ask for no tools of the suite's own."""
    program = suite(packages) / "dist/index.js"
    failed = []
    for revision, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            out = directory / revision / scenario
            done = subprocess.run(
                [node, program, "server", "--url", url, "--scenario", scenario,
                 "--spec-version", revision, "-o", out],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            statuses = checks_in(out).get(scenario, [])
            passed = statuses.count("SUCCESS")
            good = done.returncode == 0 and passed and "FAILURE" not in statuses
            print(f"conformance {revision} {scenario}: {passed} of {len(statuses)} checks")
            if not good:
                failed.append(f"{revision} {scenario}\n{done.stdout}")
    if failed:
        sys.exit("\n".join(failed))


def scored(packages, revision, leg="server"):
    """The scenarios of a server or a client that a revision scores."""
    text = (suite(packages) / f"requirements/{revision}.yaml").read_text()
    listed = re.search(rf"^{leg}:\n((?:  - .+\n|\s*\n|  #.*\n)+)", text, re.MULTILINE)[1]
    return re.findall(r"^  - (\S+)$", listed, re.MULTILINE)


def requirements(node, packages, url, directory):
    """The fixture: everything that each revision has for a server, and the reports for people."""
    program = suite(packages) / "dist/index.js"
    runs = {
        revision: subprocess.Popen(
            [node, program, "server", "--url", url, "--requirements", revision,
             "-o", directory / revision],
            stdout=open(directory / f"{revision}.txt", "w"), stderr=subprocess.STDOUT,
        )
        for revision in SCORED
    }
    failed = []
    for revision, run in runs.items():
        code = run.wait()
        found = checks_in(directory / revision)
        required = scored(packages, revision)
        tasks = [name for name in found if name.startswith("tasks-")]
        bad = [name for name, statuses in found.items() if "FAILURE" in statuses]
        passed = [name for name in required if name in found and name not in bad]
        total = sum(len(statuses) for statuses in found.values())
        print(
            f"conformance {revision}: {len(passed)} of {len(required)} scored scenarios, "
            f"{len([name for name in tasks if name not in bad])} of {len(tasks)} of tasks, "
            f"{sum(statuses.count('SUCCESS') for statuses in found.values())} of {total} checks"
        )
        expected = len(required) == SCORED[revision] and len(tasks) == TASKS[revision]
        # Those that nobody scores leave the exit code as it is.
        if code or bad or not expected or len(passed) != len(required):
            failed.append(f"{revision}: exit code {code}, failed: {bad}")
    if failed:
        sys.exit("\n".join([*failed, f"the reports are in {directory}"]))


def as_client(node, packages, belljar, directory):
    """Belljar as a client of the suite's servers: each scenario of each revision by itself."""
    program = suite(packages) / "dist/index.js"
    command = f"{sys.executable} {HERE / 'client.py'} {belljar}"

    def run(revision, scenario):
        out = directory / revision / scenario
        done = subprocess.run(
            [node, program, "client", "--command", command, "--scenario", scenario,
             "--spec-version", revision, "--force", "--timeout", "120000", "-o", out],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.txt").write_text(done.stdout)
        passed = re.search(r"^Passed: (\d+)/(\d+)", done.stdout, re.MULTILINE)
        counts = (int(passed[1]), int(passed[2])) if passed else (0, 0)
        return scenario, done.returncode == 0 and counts[0] > 0, counts

    failed = []
    for revision, expected in SCORED_OF_CLIENTS.items():
        scenarios = scored(packages, revision, "client")
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            results = list(pool.map(lambda scenario: run(revision, scenario), scenarios))
            unscored = list(pool.map(lambda scenario: run(revision, scenario), UNSCORED))
        bad = [scenario for scenario, good, _ in results if not good]
        print(
            f"conformance client {revision}: {len(results) - len(bad)} of {len(results)} scored "
            f"scenarios, {sum(counts[0] for *_, counts in results)} of "
            f"{sum(counts[1] for *_, counts in results)} checks; not passed: {bad}; of others "
            f"{len([good for _, good, _ in unscored if good])} of {len(unscored)}"
        )
        bad += [scenario for scenario, good, _ in unscored if not good]
        if bad or len(results) != expected:
            failed.append(f"client {revision}: failed: {bad}; {len(results)} of {expected} there")
    if failed:
        sys.exit("\n".join([*failed, f"the reports are in {directory}"]))


def inspect(node, packages, belljar, url, env, workspace):
    """The Inspector's command line, over both transports."""
    program = packages / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    env = {**env, "MCP_CATALOG_PATH": str(workspace.parent / "catalog.json")}
    ways = {
        "stdio": ["-e", f"BELLJAR_HOME={env['BELLJAR_HOME']}", "--cwd", workspace, belljar, "mcp"],
        "http": ["--transport", "http", url],
    }
    calls = {
        "tools/list": ([], "agent_clerk"),
        "tools/call": (["--tool-name", "file_list"], "note.txt"),
        "resources/list": ([], "receipts"),
        "prompts/list": ([], "tides"),
    }
    for name, way in ways.items():
        for method, (arguments, expected) in calls.items():
            done = subprocess.run(
                [node, program, "--cli", "--method", method, *arguments, *way],
                env=env, cwd=workspace, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
            if done.returncode or expected not in done.stdout:
                sys.exit(f"the inspector, {name} {method}: {done.stdout}")
        print(f"inspector {name}: {len(calls)} methods as expected")


COMMANDS = """\
[grants.clerk]
tools = ["mcp__files__read_text_file", "mcp__files__write_file", "mcp__time__get_current_time"]
[mcp.files]
command = "{node}"
args = ["{modules}/@modelcontextprotocol/server-filesystem/dist/index.js", "{data}"]
directories = {{ "{modules}" = "read", "{data}" = "read-write" }}
[mcp.time]
command = "{python}"
args = ["-m", "mcp_server_time", "--local-timezone", "Europe/Berlin"]
directories = {{ "{venv}" = "read", "{base}" = "read" }}
"""

CALLS = """\
transcript: 1
agents:
  - agent: clerk
    turns:
      - calls:
          - {{name: mcp__files__read_text_file, arguments: {{path: "{data}/note.txt"}}}}
          - {{name: mcp__files__write_file, arguments: {{path: "{data}/own.txt", content: "written"}}}}
          - {{name: mcp__files__read_text_file, arguments: {{path: "{beside}"}}}}
          - {{name: mcp__time__get_current_time, arguments: {{timezone: "Asia/Tokyo"}}}}
      - expect:
          results:
            - {{name: mcp__files__read_text_file, contains: the tide turns at six}}
            - {{name: mcp__files__write_file, contains: Successfully wrote}}
            - {{name: mcp__files__read_text_file, contains: denied}}
            - {{name: mcp__time__get_current_time, contains: "+09:00"}}
        say: Done.
"""


def commands(belljar, node, packages, root):
    """Public servers that are commands: reviewed, accepted, and called by an agent of a script."""
    home, workspace, data = root / "home", root / "workspace", root / "data"
    for made in (home / "agents", workspace, data):
        made.mkdir(parents=True)
    (data / "note.txt").write_text("the tide turns at six\n")
    beside = root / "beside.txt"
    beside.write_text("nobody's\n")
    values = {
        "node": node, "modules": packages / "node_modules", "data": data, "beside": beside,
        "python": sys.executable, "venv": sys.prefix, "base": sys.base_prefix,
    }
    (home / "belljar.toml").write_text(COMMANDS.format(**values))
    (home / "agents/clerk.md").write_text(AGENT.replace("tools: []\n", ""))
    (root / "calls.yaml").write_text(CALLS.format(**values))
    env = {**os.environ, "BELLJAR_HOME": str(home)}

    def ran(*arguments, code=0):
        done = subprocess.run(
            [belljar, *arguments], env=env, cwd=workspace, text=True, capture_output=True,
        )
        if done.returncode != code:
            sys.exit(f"belljar {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
        return done

    for server in ("files", "time"):
        shown = ran("mcp", "review", server, code=4)
        digest = re.search(r"--accept (\w{64})", shown.stderr)[1]
        print(f"command {server}: {ran('mcp', 'review', server, '--accept', digest).stdout.splitlines()[-1]}")
    done = ran("run", "--agent", "clerk", "--transcript", root / "calls.yaml", "go")
    if done.stdout != "Done.\n" or (data / "own.txt").read_text() != "written":
        sys.exit(f"the commands: {done.stdout}\n{done.stderr}")
    print("commands: four calls as expected")


def main():
    belljar, fixture, node, packages, reports = (
        pathlib.Path(given).resolve() for given in sys.argv[1:6]
    )
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
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
        command = [belljar, "--quiet", "serve", "--listen", "127.0.0.1:0"]
        with served(command, root / "log", env=env, cwd=workspace) as url:
            url += "/mcp"
            told = {**env, "BELLJAR": str(belljar), "BELLJAR_URL": url}
            passed([sys.executable, HERE / "sdk.py"], env=told, cwd=workspace)
            # The package is found from where a script stands.
            script = root / "sdk.mjs"
            shutil.copy(HERE / "sdk.mjs", script)
            (root / "node_modules").symlink_to(packages / "node_modules")
            passed([node, script], env=told, cwd=workspace)
            inspect(node, packages, belljar, url, told, workspace)
            conformance(node, packages, url, reports / "product")
        with served([fixture], root / "fixture-log") as url:
            requirements(node, packages, url + "/mcp", reports)
        commands(belljar, node, packages, root / "commands")
    as_client(node, packages, belljar, reports / "client")


if __name__ == "__main__":
    main()
