"""Holds `belljar acp` against editors' own code: the official TypeScript client and `acpx`.

Usage: run.py BELLJAR NODE PACKAGES

Makes a home with a scripted model for each, runs `sdk.mjs` with NODE, which finds its packages in
PACKAGES, and then `acpx` as a person would, with its agent killed in the middle of a turn.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

SETTINGS = """\
[models.scripted]
kind = "scripted"
model = "transcript.yaml"
[roles]
main = "scripted"
[grants.clerk]
add_tools = { file_read = 'ask', spawn_agent = 'allow' }
"""

AGENT = """\
---
name: {name}
description: Looks at files.
tools: [{tools}]
---
You look at files.
"""

TRANSCRIPT = """\
transcript: 1
agents:
  - agent: clerk
    turns:
      - say: 'Reading. '
        calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: There is one note.
      - calls: [{name: file_write, arguments: {path: new.txt, content: "new\\n"}}]
      - say: Written.
      - calls: [{name: spawn_agent, arguments: {agent: scout, task: Look around.}}]
      - say: It has looked.
      - say: Half.
        hang: true
  - agent: scout
    turns:
      - say: I have looked.
"""

# What is said by the process that comes after the one that was killed.
LATER = """\
transcript: 1
agents:
  - agent: clerk
    turns:
      - say: The rest.
      - say: And more.
"""


class World:
    def __init__(self, directory, belljar):
        self.root = pathlib.Path(directory).resolve()
        self.home, self.workspace = self.root / "home", self.root / "workspace"
        (self.home / "agents").mkdir(parents=True)
        self.workspace.mkdir()
        (self.workspace / "note.txt").write_text("one note\n")
        (self.home / "belljar.toml").write_text(SETTINGS)
        tools = {"clerk": "file_read, file_write, spawn_agent", "scout": ""}
        for name, given in tools.items():
            text = AGENT.format(name=name, tools=given)
            (self.home / "agents" / f"{name}.md").write_text(text)
        self.says(TRANSCRIPT)
        self.env = {
            **os.environ, "BELLJAR_HOME": str(self.home), "BELLJAR": str(belljar),
            "HOME": str(self.root), "WORKSPACE": str(self.workspace), "LATER": LATER,
        }

    def says(self, transcript):
        (self.home / "transcript.yaml").write_text(transcript)


def sdk(belljar, node, packages):
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory, belljar)
        # The package is found from where a script stands.
        script = world.root / "sdk.mjs"
        shutil.copy(HERE / "sdk.mjs", script)
        (world.root / "node_modules").symlink_to(packages / "node_modules")
        done = subprocess.run([node, script], env=world.env, cwd=world.root, timeout=100)
        if done.returncode:
            sys.exit(done.returncode)


def until(what, condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what}: it never is")
        time.sleep(0.05)


def children(belljar):
    """The processes of `belljar acp`, but for those that they have started."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if entry.name.isdigit() and words[:2] == [os.fsencode(belljar), b"acp"]:
            found.append(int(entry.name))
    return found


def acpx(belljar, node, packages):
    with tempfile.TemporaryDirectory() as directory:
        world = World(directory, belljar)
        # One of its own, so that no other process of this machine is taken for it.
        own = world.root / "belljar"
        own.symlink_to(belljar)
        program = [
            node, packages / "node_modules/acpx/dist/cli.js", "--cwd", world.workspace,
            "--approve-all", "--format", "json", "--agent", f"{own} acp --agent clerk",
        ]

        def run(*words, **more):
            command = [str(word) for word in (*program, *words)]
            return subprocess.run(
                command, env=world.env, cwd=world.workspace, text=True, timeout=100,
                stdout=subprocess.PIPE, **more,
            )

        made = run("sessions", "new")
        assert made.returncode == 0, made.stdout
        first = run("prompt", "what is here?")
        assert first.returncode == 0 and "There is one note." in first.stdout, first.stdout
        killed = children(own)
        assert killed, "acpx keeps no agent"
        for process in killed:
            os.kill(process, signal.SIGKILL)
        until("the agent is gone", lambda: not set(killed) & set(children(own)))
        world.says(LATER)
        later = run("prompt", "go on")
        assert later.returncode == 0 and "The rest." in later.stdout, later.stdout
        # One session: it did not begin anew.
        listed = subprocess.run(
            [belljar, "sessions", "list", "--json"], env=world.env, cwd=world.workspace,
            check=True, stdout=subprocess.PIPE, text=True,
        )
        sessions = json.loads(listed.stdout)
        assert len(sessions) == 1, listed.stdout
        run("sessions", "close")
        print("acpx: a session, a prompt, a killed agent, the same session again")


def main():
    belljar, node, packages = (pathlib.Path(given).resolve() for given in sys.argv[1:4])
    sdk(belljar, node, packages)
    acpx(belljar, node, packages)


if __name__ == "__main__":
    main()
