"""Holds the OpenAI wires of `belljar serve` against OpenAI's own packages.

Usage: run.py BELLJAR NODE PACKAGES

Starts a server with a scripted model on a directory of its own, makes keys, and runs `sdk.py` and
`open_responses.py` with this Python and `sdk.mjs` with NODE, which finds its package in PACKAGES.
"""

import os
import pathlib
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
"""

AGENT = """\
---
name: {name}
description: Answers about the tides.
tools: []
---
You answer about the tides.
"""

CALL = "      - calls: [{name: get_tide, arguments: {port: Brest}}]\n"
TOLD = (
    "      - expect: {results: [{name: get_tide, contains: '06:12'}]}\n"
    "        say: High water is at 06:12.\n"
)
SAYS = "      - say: High water is at 06:12.\n        usage: {input: 20, cached: 8, output: 7}\n"

# What each agent says, in order. A language has agents of its own, so that the order of the checks
# of one means nothing to another.
AGENTS = {
    "clerk": SAYS,
    "tools": CALL + TOLD,
    "formed": "      - say: It is 6.\n      - say: '{\"hour\": 6}'\n",
    "slow": "      - say: Looking.\n        hang: true\n",
}


def transcript(languages):
    lines = ["transcript: 1\n", "agents:\n"]
    for language in languages:
        for name, turns in AGENTS.items():
            lines.append(f"  - agent: {language}-{name}\n    turns:\n{turns * 12}")
    return "".join(lines)


def create_key(belljar, scope, env, workspace):
    made = subprocess.run(
        [belljar, "keys", "create", "--scope", scope, "--name", f"peers-{scope}"],
        env=env, cwd=workspace, check=True, stdout=subprocess.PIPE, text=True,
    )
    return next(word for word in made.stdout.split() if word.startswith("bj_"))


def main():
    belljar, node, packages = (pathlib.Path(given).resolve() for given in sys.argv[1:4])
    languages = ["py", "js", "open"]
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        home, workspace = root / "home", root / "workspace"
        (home / "agents").mkdir(parents=True)
        workspace.mkdir()
        (home / "belljar.toml").write_text(SETTINGS)
        (home / "transcript.yaml").write_text(transcript(languages))
        for language in languages:
            for name in AGENTS:
                name = f"{language}-{name}"
                (home / "agents" / f"{name}.md").write_text(AGENT.format(name=name))
        env = {**os.environ, "BELLJAR_HOME": str(home)}
        keys = {scope: create_key(belljar, scope, env, workspace) for scope in ("member", "read-only")}
        command = [belljar, "--quiet", "serve", "--listen", "127.0.0.1:0"]
        with served(command, root / "log", env=env, cwd=workspace) as url:
            # The package is found from where a script stands.
            script = root / "sdk.mjs"
            shutil.copy(HERE / "sdk.mjs", script)
            (root / "node_modules").symlink_to(packages / "node_modules")
            told = {
                **os.environ, "BELLJAR_URL": url + "/v1",
                "BELLJAR_KEY": keys["member"], "BELLJAR_READER": keys["read-only"],
            }
            passed([sys.executable, HERE / "sdk.py"], env=told, cwd=root)
            passed([sys.executable, HERE / "open_responses.py"], env=told, cwd=root)
            passed([node, script], env=told, cwd=root)


if __name__ == "__main__":
    main()
