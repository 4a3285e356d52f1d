"""Holds `belljar serve` against its own OpenAPI document, with schemathesis.

Usage: check.py BELLJAR [EXAMPLES]

Starts a server with a scripted model on a directory of its own, makes an admin's key, and lets
schemathesis send what the document allows and what it forbids. An answer of 500 and above, a status
or a body that the document does not know, is a failure. WebSockets are not described by OpenAPI.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from serving import passed, served  # noqa: E402

# Each finds an answer that is not documented; what a server may refuse besides is its own affair.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]

SETTINGS = """\
[models.scripted]
kind = "scripted"
model = "transcript.yaml"
[roles]
main = "scripted"
[server]
requests_per_second = 100000
failed_keys_per_minute = 100000
"""

TRANSCRIPT = """\
transcript: 1
each_run: true
agents:
  - agent: general-purpose
    turns: [{say: done}]
"""


def main():
    belljar = pathlib.Path(sys.argv[1]).resolve()
    examples = sys.argv[2] if len(sys.argv) > 2 else "30"
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory, "home")
        workspace = pathlib.Path(directory, "workspace")
        home.mkdir()
        workspace.mkdir()
        home.joinpath("belljar.toml").write_text(SETTINGS)
        home.joinpath("transcript.yaml").write_text(TRANSCRIPT)
        env = {**os.environ, "BELLJAR_HOME": str(home)}
        made = subprocess.run(
            [belljar, "keys", "create", "--scope", "admin", "--name", "schemathesis"],
            env=env, cwd=workspace, check=True, stdout=subprocess.PIPE, text=True,
        )
        key = next(word for word in made.stdout.split() if word.startswith("bj_"))
        command = [belljar, "--quiet", "serve", "--listen", "127.0.0.1:0"]
        with served(command, pathlib.Path(directory, "log"), env=env, cwd=workspace) as url:
            schemathesis = pathlib.Path(sys.executable).with_name("schemathesis")
            passed([
                schemathesis, "run", url + "/v1/openapi.json", "--url", url,
                "--header", "Authorization: Bearer " + key,
                "--checks", ",".join(CHECKS), "--exclude-path", "/v1/ws",
                "--max-examples", examples, "--request-timeout", "30", "--no-color",
            ], cwd=directory)


if __name__ == "__main__":
    main()
