"""A server of ours, for as long as its peers talk to it."""

import contextlib
import pathlib
import subprocess
import sys


@contextlib.contextmanager
def served(command, log: pathlib.Path, **settings):
    """Starts `command` and gives the address that the first line of its output ends with.

    What it logs goes to `log`, and is shown when it does not start, when its peers fail, and when it ends
    by itself. `settings` are those of the process: `env`, `cwd`.
    """
    with open(log, "w") as lines:
        server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=lines, text=True, **settings
        )
    try:
        line = server.stdout.readline().split()
        if not line:
            sys.exit(log.read_text())
        yield line[-1]
        if server.poll() is not None:
            sys.exit("the server ended: " + log.read_text())
    except BaseException:
        print(log.read_text(), file=sys.stderr)
        raise
    finally:
        server.kill()
        server.wait()


def passed(command, **settings):
    """Runs a peer to its end; one that fails ends all."""
    done = subprocess.run(command, **settings)
    if done.returncode:
        sys.exit(done.returncode)
