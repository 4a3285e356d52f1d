"""The running of scripts, and the variables that last between them."""

import ast
import linecache
import pprint
import sys
import traceback
import types as python_types

import calls
import preload

# Bytes of an answer's text: some eight thousand tokens. More is a sign that the script should have counted
# or filtered.
MAX_TEXT = 30_000

# Characters that are collected of what a script prints: the head and the tail of it are shown.
COLLECTED = 1 << 20

# The name of the script in tracebacks.
SCRIPT = "script"


class ScriptFailed(Exception):
    """The exception that ended a script, as the model reads it."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text


class Printed:
    """Where scripts print to. There is one of it: what a script made to write there, such as a handler of
    `logging`, does so in the calls that follow."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self):
        self.begin()

    def begin(self):
        """Forgets what was printed."""
        self.pieces, self.size, self.more = [], 0, 0

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.size + len(text) <= COLLECTED:
            self.pieces.append(text)
            self.size += len(text)
        else:
            self.more += len(text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def text(self):
        text = cut("".join(self.pieces), self.more)
        return text if not text or text.endswith("\n") else text + "\n"


printed = Printed()


class Session:
    """A namespace."""

    def __init__(self):
        # Modules such as `dataclasses` and `pickle` look for the module of a class.
        main = python_types.ModuleType("__main__")
        sys.modules["__main__"] = main
        self.names = main.__dict__
        self.names.update(
            tools=calls.tools_of_the_agent,
            parallel=calls.parallel,
            help=calls.help,
            ToolError=calls.ToolError,
            modules=list(preload.NAMES),
        )

    def run(self, code):
        """What a script prints and the value of its last expression."""
        preload.reseed()
        printed.begin()
        sys.stdout = sys.stderr = printed
        linecache.cache[SCRIPT] = (len(code), None, code.splitlines(True), SCRIPT)
        try:
            value = self.evaluate(code)
            shown = "" if value is None else f"=> {cut(text_of(value), 0)}\n"
        except SystemExit as left:
            shown = "" if left.code in (None, 0) else f"[belljar: exit code {left.code}]\n"
        except BaseException as error:
            raise ScriptFailed(printed.text() + cut(explained(error), 0)) from None
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        return printed.text() + shown or "[belljar: no output]\n"

    def evaluate(self, code):
        tree = ast.parse(code, SCRIPT)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            exec(compile(tree, SCRIPT, "exec"), self.names)
        if last is None:
            return None
        return eval(compile(ast.Expression(last.value), SCRIPT, "eval"), self.names)


def text_of(value):
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        return pprint.pformat(value, width=120, compact=True, sort_dicts=False)
    return repr(value)


def explained(error):
    """The traceback, without the frames that are not the script's."""
    trace = traceback.TracebackException(type(error), error, error.__traceback__, limit=-40)
    shorten(trace, 0)
    return "".join(trace.format()) + hint(error)


def shorten(trace, depth):
    trace.stack = traceback.StackSummary.from_list([frame for frame in trace.stack if frame.filename == SCRIPT])
    for other in (trace.__cause__, trace.__context__):
        if other is not None and depth < 10:
            shorten(other, depth + 1)


def hint(error):
    if isinstance(error, ModuleNotFoundError):
        return "hint: only modules of the standard library that `modules` lists can be imported\n"
    if isinstance(error, OSError):
        return "hint: there is no file system here; files are read and written by tools, if you have any for it\n"
    if isinstance(error, SyntaxError) and "await" in (error.msg or ""):
        return "hint: tools are called without `await`\n"
    return ""


def cut(text, more):
    """Keeps the head and the tail: the first lines say what it is, the last how it ended."""
    if len(text) <= MAX_TEXT and not more:
        return text
    half = min(len(text), MAX_TEXT) // 2
    left = len(text) - 2 * half + more
    return f"{text[:half]}\n[belljar: {left} characters left out; print less]\n{text[len(text) - half :]}"
