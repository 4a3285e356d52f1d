"""Holds `belljar agents check --json` against a reading of the same files by PyYAML.

    python check.py BELLJAR DIRECTORY...

Nothing of belljar's own parser or tables is used: the frontmatter is cut and read here, and the
names of tools are looked up in a table of this file. For every file that is strictly valid:

- each tool that its agent gets is one that a written name means, or no list is written, or `*`;
- no tool that it gets is one that the file takes away;
- each written name is accounted for: given, wanted without a grant, unavailable, or taken away;
- a file with a description and a body is not `invalid`, unless in belljar's own form.

Of the others: each tool that it gets stands somewhere in the text, where a list is written. Where
a directory has an `expected.tsv`, statuses have to be those. No file at all is a failure.
"""

import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

import yaml

READ = {"file_read", "attach_file"}
WRITE = {"file_write"}
EDIT = {"file_edit", "file_write", "notebook_edit"}
FIND = {"file_find"}
GREP = {"file_search"}
SEARCH = {"file_search", "file_find"}
WEB = {"web_fetch", "web_search"}
SHELL = {"shell"}
AGENT = {"spawn_agent", "delegate_parallel", "agent_status", "agent_result", "agent_cancel"}

# What a name may mean at most, in lower case; the last part of a name with `/` counts too.
MEANS = {
    "read": READ, "readfile": READ, "view": READ, "notebookread": READ,
    "write": WRITE, "createfile": WRITE,
    "edit": EDIT, "multiedit": EDIT, "editfiles": EDIT, "notebookedit": EDIT, "editnotebook": EDIT,
    "patch": EDIT, "apply_patch": EDIT,
    "glob": FIND, "filesearch": FIND, "ls": {"file_list"}, "list": {"file_list"},
    "listdirectory": {"file_list"}, "grep": GREP, "search": SEARCH, "codebase": GREP,
    "textsearch": GREP,
    "webfetch": {"web_fetch"}, "fetch": {"web_fetch"}, "websearch": {"web_search"}, "web": WEB,
    "bash": SHELL, "shell": SHELL, "terminal": SHELL, "runcommands": SHELL, "execute": SHELL,
    "runinterminal": SHELL, "terminalcommand": SHELL, "runtests": SHELL, "runtasks": SHELL,
    "task": AGENT, "agent": AGENT, "runsubagent": AGENT,
    "todo": {"todo_write"}, "todos": {"todo_write"}, "todowrite": {"todo_write"},
    "todoread": {"todo_write"}, "skill": {"use_skill"}, "askuserquestion": {"clarify"},
    "question": {"clarify"}, "askquestions": {"clarify"},
}
# Fields only belljar's own form has.
CANONICAL = {
    "modelRole", "timeoutSeconds", "prefillTimeoutSeconds", "visibility", "emitStructuredFindings",
    "mounts", "hosts", "limits", "subagents",
}
ALL = object()


def flat(key):
    return re.sub(r"[-_ ]", "", str(key)).lower()


def means(name):
    """Belljar's tools that a written name may stand for."""
    name = re.sub(r"\(.*", "", name).strip().lower()
    found = {name} | set(MEANS.get(name, ()))
    return found | set(MEANS.get(name.rsplit("/", 1)[-1], ()))


def matches(name, tool):
    name = re.sub(r"\(.*", "", name).strip().lower()
    if "*" not in name:
        return tool in means(name)
    words = [tool] + [word for word, tools in MEANS.items() if tool in tools]
    return any(fnmatch.fnmatchcase(word, name) for word in words)


def names(value):
    """The names of a list or of a text, scopes kept."""
    texts = value if isinstance(value, list) else [value]
    found = []
    for text in texts:
        if isinstance(text, str):
            found += [part.strip().removeprefix("- ") for part in re.split(r"[,\n](?![^(]*\))", text)]
    return [name for name in found if name]


def word(value):
    """allow, ask or deny; patterns count as their strictest, and what is neither as deny."""
    if isinstance(value, dict):
        words = [word(inner) for inner in value.values()]
        return next((w for w in ("deny", "ask", "allow") if w in words), "deny")
    if isinstance(value, bool):
        return "allow" if value else "deny"
    return value if value in ("allow", "ask") else "deny"


class Given:
    """What a file's own text gives: lists of names that all have to name a tool, and denials."""

    def __init__(self, fields):
        self.lists = []
        self.denied = []
        for key, value in fields.items():
            if flat(key) in ("tools", "allowedtools"):
                self.allow(value)
            elif flat(key) == "disallowedtools":
                self.denied += names(value)
            elif flat(key) in ("permission", "permissions") and value is not None:
                self.permission(value)

    def allow(self, value):
        if isinstance(value, dict):
            on = [str(key) for key, state in value.items() if word(state) != "deny"]
            off = [str(key) for key, state in value.items() if word(state) == "deny"]
            self.denied += [name for name in off if name != "*"]
            if on or "*" in off:
                self.lists.append(on)
            return
        listed = names(value)
        self.denied += [name[1:] for name in listed if name[0] in "!-"]
        self.lists.append([name for name in listed if name[0] not in "!-"])

    def permission(self, value):
        if not isinstance(value, dict):
            self.denied += ["*"] if word(value) == "deny" else []
            return
        last_star = None
        for key, state in value.items():
            key = str(key)
            if word(state) == "deny":
                if key == "*":
                    last_star = []
                else:
                    self.denied.append(key)
            elif last_star is not None and key != "*":
                last_star.append(key)
        if last_star is not None:
            self.lists.append(last_star)

    def explains(self, tool):
        listed = all(
            any(name.startswith("*") and len(name) == 1 or matches(name, tool) for name in names_)
            for names_ in self.lists
        )
        return listed and not any(matches(name, tool) for name in self.denied)


def frontmatter(raw):
    text = raw.decode("utf-8", "replace").lstrip("\ufeff")
    found = re.match(r"\s*?^([ \t]*)---[ \t\r]*\n(.*?)^\1-{3,}[ \t\r]*(\n|\Z)", text, re.S | re.M)
    if not found or text[: found.start(1)].strip():
        return None, ""
    return found.group(2), text[found.end():]


def faults(entry, raw):
    """What belljar says of a file and PyYAML does not bear out."""
    yaml_text, body = frontmatter(raw)
    if yaml_text is None:
        if entry["tools"]:
            yield "gets tools without frontmatter"
        return
    try:
        fields = yaml.safe_load(yaml_text)
    except yaml.YAMLError:
        fields = None
    if not isinstance(fields, dict):
        yield from faults_of_broken(entry, yaml_text)
        return
    description = fields.get("description")
    own = CANONICAL & {str(key) for key in fields}
    codes = {found["code"] for found in entry["diagnostics"]}
    whole = description not in (None, "") and str(description).strip() and body.strip()
    if entry["status"] == "invalid" and whole and not own and "repeated-field" not in codes:
        yield "is invalid, although it has a description and a body"
    if entry["status"] == "invalid":
        return
    given = Given(fields)
    for tool in entry["tools"]:
        if not given.explains(tool):
            yield f"gets `{tool}`, which its text does not give"
    wanted = {need["tool"] for need in entry["needs"] if "tool" in need}
    missing = {tool["name"] for tool in entry["unavailable"]}
    got = set(entry["tools"]) | wanted
    for name in (name for listed in given.lists for name in listed):
        accounted = (
            name == "*"
            or name in missing
            or any(tool in got for tool in means(name))
            or any(matches(other, tool) for other in given.denied for tool in means(name))
            or len(given.lists) > 1
        )
        if not accounted:
            yield f"lost `{name}` without a word"


def faults_of_broken(entry, yaml_text):
    listed = re.search(r"^\s*[\"']?(tools|allowed[-_]?tools)[\"']?\s*:", yaml_text, re.M | re.I)
    words = {part for part in re.split(r"[^\w/*-]+", yaml_text) if part}
    if not listed or re.search(r"tools\s*:\s*[\"']?\*", yaml_text, re.I):
        return
    for tool in entry["tools"]:
        if not any(tool in means(part) for part in words):
            yield f"gets `{tool}`, which stands nowhere in its broken text"


def check(belljar, directory):
    """The number of files, those strictly valid, and what is wrong with each."""
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ.get("PATH", ""), "HOME": home, "BELLJAR_HOME": home}
        done = subprocess.run(
            [belljar, "agents", "check", "--json", directory],
            env=env, cwd=home, capture_output=True, check=False,
        )
    if done.returncode not in (0, 2, 4):
        sys.exit(f"{belljar} exits with {done.returncode}:\n{done.stderr.decode()}")
    entries = json.loads(done.stdout)
    wrong = []
    strict = 0
    for entry in entries:
        with open(entry["path"], "rb") as file:
            raw = file.read()
        try:
            strict += isinstance(yaml.safe_load(frontmatter(raw)[0] or ""), dict)
        except yaml.YAMLError:
            pass
        wrong += [f"{entry['path']} {fault}" for fault in faults(entry, raw)]
    wrong += list(unexpected(directory, entries))
    return len(entries), strict, wrong


def unexpected(directory, entries):
    table = os.path.join(directory, "expected.tsv")
    if not os.path.exists(table):
        return
    with open(table, encoding="utf-8") as file:
        expected = dict(line.rstrip("\n").split("\t") for line in file)
    found = {os.path.relpath(entry["path"], directory): entry["status"] for entry in entries}
    for path in sorted(expected.keys() | found.keys()):
        if expected.get(path) != found.get(path):
            yield f"{path} is {found.get(path)}, expected {expected.get(path)}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    belljar, directories = os.path.abspath(sys.argv[1]), sys.argv[2:]
    failed = False
    for directory in map(os.path.abspath, directories):
        count, strict, wrong = check(belljar, directory)
        print(f"{directory}: {count} files, {strict} of them strictly valid, {len(wrong)} faults")
        for line in wrong:
            print(f"  {line}")
        failed |= bool(wrong) or strict == 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
