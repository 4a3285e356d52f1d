"""Holds `belljar agents check --json` against a reading of the same files by PyYAML.

    python check.py BELLJAR DIRECTORY...

Nothing of belljar's own parser or tables is used: the frontmatter is cut and read here, and the
names of tools are looked up in a table of this file. For every file that is strictly valid:

- each tool that its agent gets is one that a written name means, or no list is written, or `*`;
- no tool that it gets is one that the file takes away;
- each written name is accounted for: given, wanted without a grant, unavailable, or taken away;
- a file with a description and a body is not `invalid`, unless in belljar's own form;
- a limit that it states in words of any program is kept: what only reads has no tool that writes,
  what may not delegate has no tool for that, and turns and times are no more than the file says;
- a field that speaks of a limit and is in no table of this file never leaves it `ready`;
- patterns that say different things of one tool block the file, and those of one mind do not.

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
    "task": AGENT, "agent": AGENT, "runsubagent": AGENT, "invoke_agent": AGENT,
    "todo": {"todo_write"}, "todos": {"todo_write"}, "todowrite": {"todo_write"},
    "todoread": {"todo_write"}, "taskcreate": {"todo_write"}, "taskget": {"todo_write"},
    "tasklist": {"todo_write"}, "taskupdate": {"todo_write"}, "skill": {"use_skill"}, "askuserquestion": {"clarify"},
    "question": {"clarify"}, "askquestions": {"clarify"},
}
# Fields only belljar's own form has.
CANONICAL = {
    "modelRole", "timeoutSeconds", "prefillTimeoutSeconds", "visibility", "emitStructuredFindings",
    "mounts", "hosts", "limits", "subagents",
}
ALL = object()

READS = {"file_read", "file_list", "file_find", "file_search", "attach_file"} | WEB
# What an agent does for itself, which changes nothing outside its session.
OWN = {"todo_write", "use_skill", "clarify"} | AGENT

READ_ONLY = {"readonly": {True, "true", "yes", "on"}, "permissionmode": {"plan"},
             "sandboxmode": {"read-only"}, "sandbox": {"read-only"}}
NO_CHILDREN = {"allowsubagents": {False, "false", "no", "off"},
               "allowdelegation": {False, "false", "no", "off"},
               "maxsubagentdepth": {0}, "maxsubagents": {0}, "nosubagents": {True, "true"}}
TURNS = {"maxturns", "maxsteps", "maxiterations"}
MINUTES = {"timeoutmins", "timeoutminutes", "maxtimeminutes"}
# Fields that speak of limits and are read by belljar, or limit nothing that an agent may do.
UNDERSTOOD = set(READ_ONLY) | set(NO_CHILDREN) | TURNS | MINUTES | {
    "tools", "allowedtools", "disallowedtools", "deniedtools", "permission", "permissions",
    "approvalpolicy", "network", "networkaccess", "maxtokens", "maxoutputtokens", "maxretries",
    "mcpservers", "handoffs", "skills", "tags", "category", "capabilities", "dependencies",
    "description", "prompt", "name", "argumenthint", "limits", "subagents", "maxconcurrentsubagents",
    "timeoutseconds", "prefilltimeoutseconds", "runconfig", "timeout",
}
SPEAKS = re.compile(
    r"\b(max|limits?|limited|sandbox(ed)?|approvals?|restrict(ed|ions?)?|forbid(den)?|deny|denied"
    r"|disallow(ed)?|read ?only|allow(ed|list)?|networks?|blocked|^no (?=\w))\b"
)
OFF = (None, False, "", "false", "no", "off", "none", [], {})


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
        # There are no servers here, whose resources these would be.
        real = [inner for key, inner in value.items() if not str(key).startswith("mcp:")]
        words = [word(inner) for inner in real]
        return next((w for w in ("deny", "ask", "allow") if w in words), "deny")
    if isinstance(value, bool):
        return "allow" if value else "deny"
    return value if value in ("allow", "ask") else "deny"


def spaced(key):
    """The words of a key, in lower case between blanks."""
    return re.sub(r"[-_]", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", str(key))).lower()


def plain(value):
    return value.strip().lower() if isinstance(value, str) else value


def unread(fields):
    """Fields, at any depth, that speak of a limit and that no table of this file knows."""
    for key, value in fields.items():
        if flat(key) in UNDERSTOOD:
            continue
        gives = re.search(r"\b(allow|network)", spaced(key)) and plain(value) in (True, "true", "all")
        by_name = SPEAKS.search(spaced(key)) and plain(value) not in OFF and not gives
        by_value = plain(value) in ("read-only", "readonly", "restricted", "sandboxed")
        if by_name or by_value:
            yield str(key)
        elif isinstance(value, dict):
            yield from unread(value)


def stated(fields, key, values):
    return any(flat(name) == key and any(plain(value) is v or plain(value) == v and
               isinstance(plain(value), bool) == isinstance(v, bool) for v in values)
               for name, value in fields.items())


def faults_of_limits(entry, fields):
    """Limits that the text states and the agent does not have."""
    tools = set(entry["tools"])
    if any(stated(fields, key, values) for key, values in READ_ONLY.items()):
        for tool in sorted(tools - READS - OWN):
            yield f"gets `{tool}`, although it only reads"
        if entry["writes"] != "nowhere":
            yield "may write, although it only reads"
    if any(stated(fields, key, values) for key, values in NO_CHILDREN.items()):
        for tool in sorted(tools & AGENT):
            yield f"gets `{tool}`, although it may not delegate"
    for key, value in fields.items():
        number = isinstance(value, int) and not isinstance(value, bool) and value > 0
        for names_, limit, factor in ((TURNS, "steps", 1), (MINUTES, "timeout_seconds", 60)):
            if number and flat(key) in names_ and entry["limits"].get(limit, 10**9) > value * factor:
                yield f"has more `{limit}` than `{key}: {value}`"
        if number and flat(key) == "maxsubagentdepth" and entry["max_depth"] != value:
            yield f"may delegate {entry['max_depth']} levels deep, not {value}"
    if entry["status"].startswith("ready"):
        for key in unread(fields):
            yield f"is ready, although `{key}` speaks of a limit"


def faults_of_patterns(entry, permission):
    for key, patterns in (permission or {}).items() if isinstance(permission, dict) else ():
        tools = set(entry["tools"]) & means(str(key))
        if not isinstance(patterns, dict) or flat(key) == "task" or not means(str(key)) - {str(key)}:
            continue
        real = {str(p): word(w) for p, w in patterns.items() if not str(p).startswith("mcp:")}
        whole = any(not p.strip("*/") for p in real)
        # Patterns that differ are not kept: the tool has the least of them, if any.
        if len(set(real.values())) > 1:
            most = tools if "deny" in real.values() else tools - set(entry["ask"])
            for tool in sorted(most):
                yield f"has more of `{tool}` than each pattern of `{key}` gives"
        last = list(permission)[-1] == key
        if whole and last and set(real.values()) == {"allow"} and not tools and flat(key) == "read":
            yield f"lost `{key}`, which its patterns allow"


class Given:
    """What a file's own text gives: lists of names that all have to name a tool, and denials."""

    def __init__(self, fields):
        self.lists = []
        self.denied = []
        for key, value in fields.items():
            if flat(key) in ("tools", "allowedtools"):
                self.allow(value)
            elif flat(key) in ("disallowedtools", "deniedtools"):
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
            if flat(key) == "task" and isinstance(state, dict):
                # Only some agents may be called, of whom the last word counts; whom is not looked
                # at here.
                patterns = [str(pattern) for pattern in state]
                after = len(patterns) - patterns[::-1].index("*") if "*" in patterns else 0
                some = any(word(said) == "allow" for said in list(state.values())[after:])
                state = "allow" if some else state
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
    yield from faults_of_limits(entry, fields)
    for key, value in fields.items():
        if flat(key) in ("permission", "permissions"):
            yield from faults_of_patterns(entry, value)
    wanted = {need["tool"] for need in entry["needs"] if "tool" in need}
    missing = {tool["name"] for tool in entry["unavailable"]}
    got = set(entry["tools"]) | wanted
    for name in (name for listed in given.lists for name in listed):
        accounted = (
            name == "*"
            or "limit-not-kept" in codes
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
