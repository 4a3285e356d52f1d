#!/usr/bin/env python3
"""Pure computation in a jar against the same interpreter outside of one.

    cargo build --bin belljar
    python3 tests/bench/pure/compare.py                  # all; --help has the options
    python3 tests/bench/pure/compare.py --python python3.13 nbody fannkuch

Python: benchmarks of pyperformance, its own sources from PyPI, run by a native CPython and by the
tool `run_python`. JavaScript: the programs in `javascript/`, run by a native QuickJS (the package
`quickjs-ng` of PyPI) and by `run_javascript`. What is fetched goes to `target/pure-bench`.

A time is the processor time of the whole process, less that of the same program with no rounds.
Native runs and runs in a jar take turns, and the ratio is the median of those of each turn: on a
busy machine, too, both sides meet the same load. A jar is measured as tools have it: metered, with
its limits, by `belljar tools call`. Cranelift makes the machine code of a jar, with the same settings
in a debug build of belljar as in an optimised one, so the build of the host matters little.

Nothing fails because something is slow; a ratio above what it should reach is marked.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
WORK = ROOT / "target/pure-bench"
PACKAGES = ["pyperformance==1.14.0", "quickjs-ng==0.17.0.2"]
REACH = 3.5

# Those that need nothing but the standard library, no files and no processes.
PYTHON = [
    "nbody", "fannkuch", "richards", "json_dumps", "json_loads", "float", "chaos", "nqueens",
    "spectral_norm", "deltablue", "raytrace", "go",
]
JAVASCRIPT = sorted(path.stem for path in (HERE / "javascript").glob("*.js"))

# Stands for pyperf, so that a benchmark does LOOPS rounds with its defaults and measures nothing itself.
PYPERF = '''
import sys, time, types

class Arguments(types.SimpleNamespace):
    def add_argument(self, *flags, default=None, dest=None, **_):
        setattr(self, dest or flags[-1].lstrip("-").replace("-", "_"), default)

class Runner:
    def __init__(self, **_):
        self.metadata, self.argparser = {}, Arguments()
    def parse_args(self):
        return self.argparser
    def bench_func(self, name, function, *args, **_):
        for _ in range(LOOPS):
            function(*args)
    def bench_time_func(self, name, function, *args, **_):
        function(LOOPS, *args)

pyperf = types.ModuleType("pyperf")
pyperf.Runner, pyperf.perf_counter = Runner, time.perf_counter
sys.modules["pyperf"] = pyperf
sys.argv = ["benchmark"]
exec(compile(SOURCE, "benchmark", "exec"), {"__name__": "__main__"})
'''

# Runs a program given on stdin; an exception of it ends the process with an error.
QUICKJS = "import sys, quickjs; quickjs.Context().eval(sys.stdin.read())"


def main():
    options = arguments()
    venv = prepared(options)
    names = options.names or PYTHON + JAVASCRIPT
    sides = [
        Side("Python", "run_python", [options.python, "-"], PYTHON, python_program(venv)),
        Side("JavaScript", "run_javascript", [venv / "bin/python", "-c", QUICKJS], JAVASCRIPT,
             javascript_program),
    ]
    print(f"native Python {told(options.python, 'import platform; print(platform.python_version())')}; "
          f"native QuickJS of {PACKAGES[1].replace('==', ' ')}; load {os.getloadavg()[0]:.1f}")
    for side in sides:
        chosen = [name for name in side.names if name in names]
        if chosen:
            side.table(chosen, options)


def arguments():
    parser = argparse.ArgumentParser(description="Compares jars with native interpreters.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks [default: all]")
    parser.add_argument("--python", default=sys.executable, help="the native Python [default: this]")
    parser.add_argument("--belljar", default=ROOT / "target/debug/belljar", help="the program")
    parser.add_argument("--runs", type=int, default=3, help="runs of each, of which the median counts")
    parser.add_argument("--seconds", type=float, default=0.3, help="of native work in a run")
    options = parser.parse_args()
    unknown = set(options.names) - set(PYTHON + JAVASCRIPT)
    if unknown:
        parser.error(f"no benchmark `{unknown.pop()}`; there are {', '.join(PYTHON + JAVASCRIPT)}")
    if not pathlib.Path(options.belljar).is_file():
        parser.error(f"no program `{options.belljar}`; `cargo build --bin belljar` builds it")
    return options


def prepared(options):
    """A virtual environment with the packages, and a home for belljar where none is set."""
    venv = WORK / "venv"
    if not (venv / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
                   check=True)
    os.environ.setdefault("BELLJAR_HOME", str(WORK / "home"))
    options.runs = max(options.runs, 1)
    return venv


def python_program(venv):
    (sources,) = venv.glob("lib/python3*/site-packages/pyperformance/data-files/benchmarks")

    def program(name, loops):
        source = (sources / f"bm_{name}" / "run_benchmark.py").read_text()
        return f"LOOPS = {loops}\nSOURCE = {source!r}\n{PYPERF}"

    return program


def javascript_program(name, loops):
    return f"{(HERE / 'javascript' / (name + '.js')).read_text()}\nrun({loops});\n0\n"


class Side:
    """A language: how its programs are made, and run natively and in a jar."""

    def __init__(self, title, tool, native, names, program):
        self.title, self.tool, self.native = title, tool, native
        self.names, self.program = names, program

    def table(self, names, options):
        call = [options.belljar, "tools", "call", self.tool, "-"]
        # Compiles the interpreter, where the cache does not have it.
        seconds(call, json.dumps({"code": "1"}))
        print(f"\n| {self.title} | rounds | native | in a jar | ratio | |\n| --- | --- | --- | --- | --- | --- |")
        ratios = []
        for name in names:
            loops = self.rounds(name, options.seconds)
            taken = rounds_of(options.runs, loops, [
                lambda n: seconds(self.native, self.program(name, n)),
                lambda n: seconds(call, json.dumps({"code": self.program(name, n)})),
            ])
            native, jar = (statistics.median(times) for times in zip(*taken))
            ratios.append(statistics.median(jar / native for native, jar in taken))
            mark = "" if ratios[-1] <= REACH else f"above {REACH}"
            print(f"| {name} | {loops} | {native:.3f} s | {jar:.3f} s | {ratios[-1]:.2f}x | {mark} |",
                  flush=True)
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"| geometric mean | | | | {mean:.2f}x | at most {max(ratios):.2f}x |")

    def rounds(self, name, wanted):
        """As many as take about this many seconds natively; doubled until that can be told."""
        loops, took = 1, 0.0
        while True:
            ((took,),) = rounds_of(1, loops, [lambda n: seconds(self.native, self.program(name, n))])
            if took >= wanted / 4:
                return max(1, round(loops * wanted / took))
            loops *= 2 if took > wanted / 20 else 4


def rounds_of(runs, loops, measures):
    """What so many loops take by each measure, less what none take, one list for each run. The
    measures take turns, so that what else the machine does meets all of them."""
    empty = [min(measure(0) for _ in range(runs)) for measure in measures]
    return [[max(measure(loops) - none, 1e-6) for measure, none in zip(measures, empty)]
            for _ in range(runs)]


def seconds(command, stdin):
    """The processor time of a process, which has to end well."""
    with tempfile.TemporaryFile("w+") as source, tempfile.TemporaryFile("w+") as said:
        source.write(stdin)
        source.seek(0)
        process = subprocess.Popen([str(word) for word in command], stdin=source, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"`{command[0]}` ended with {process.returncode}:\n{said.read()[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def told(python, code):
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
