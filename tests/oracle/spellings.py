"""Holds `belljar agents check --json` against agent files that are made here, by the thousand.

    python spellings.py BELLJAR

Each file restricts its agent in one spelling: a key or a value in many words, cases, places and
slips of the hand. What the spelling takes away is known from how it was made, not from any reader.
A file may be blocked or not read at all; where its agent is ready it has nothing that was taken
away. Files that restrict nothing are made beside them, and each of those has to be ready with all
that an agent without any such line has.

The same files come out each time. They are made in a directory that is removed afterwards.
"""

import json
import os
import subprocess
import sys
import tempfile

WRITE = {"file_write", "file_edit", "notebook_edit"}
RUN = {"shell"}
WEB = {"web_fetch", "web_search"}
AGENT = {"spawn_agent", "delegate_parallel"}
READ = {"file_read", "attach_file"}
EVERY = WRITE | RUN | WEB | AGENT | READ | {"file_list", "file_find", "file_search"}

HEAD = "name: {name}\ndescription: Looks at a project.\n"
BODY = "You look.\n"


def styles(words):
    """A key of these words as people join them."""
    snake = "_".join(words)
    camel = words[0] + "".join(word.title() for word in words[1:])
    found = [snake, camel, "-".join(words), camel[0].upper() + camel[1:], snake.upper()]
    return list(dict.fromkeys(found + [" ".join(words)]))


def places(line):
    """A line at the top and within maps that programs keep settings in."""
    yield line
    for outer in ("settings", "config", "security", "access_control", "x-runtime"):
        yield f"{outer}:\n  {line}"
    yield f"metadata:\n  rights:\n    - {line}"


ABILITIES = [
    (["write"], WRITE), (["writable"], WRITE), (["can", "write"], WRITE), (["allow", "write"], WRITE),
    (["edit"], WRITE), (["allow", "edits"], WRITE), (["write", "access"], WRITE),
    (["can", "edit", "files"], WRITE), (["file", "write"], WRITE), (["modify", "files"], WRITE),
    (["write", "paths"], WRITE), (["editable", "files"], WRITE), (["delete", "files"], WRITE),
    (["shell"], RUN), (["bash"], RUN), (["exec"], RUN), (["allow", "shell"], RUN),
    (["run", "commands"], RUN), (["command", "execution"], RUN), (["terminal", "access"], RUN),
    (["shell", "enabled"], RUN), (["can", "execute"], RUN),
    (["network"], WEB), (["online"], WEB), (["web", "access"], WEB), (["internet"], WEB),
    (["allow", "internet"], WEB), (["http", "access"], WEB), (["can", "browse", "web"], WEB),
    (["spawning"], AGENT), (["delegation"], AGENT), (["can", "spawn"], AGENT), (["nested"], AGENT),
    (["allow", "subagents"], AGENT), (["spawn", "agents"], AGENT), (["child", "agents"], AGENT),
    (["agents"], AGENT), (["forking"], AGENT),
]
NO = ["false", "'false'", "no", "off", "never", "none", "[]", "disabled", "deny", "0", "False", "nothing"]
YES = ["true", "yes", "on", "all", "'true'", "enabled"]

NOUNS = [
    (["write"], WRITE), (["writes"], WRITE), (["edits"], WRITE), (["file", "writes"], WRITE),
    (["shell"], RUN), (["bash"], RUN), (["exec"], RUN), (["commands"], RUN), (["network"], WEB),
    (["web"], WEB), (["internet"], WEB), (["subagents"], AGENT), (["delegation"], AGENT),
    (["spawning"], AGENT), (["children"], AGENT),
]
TAKING = ["no", "disable", "without", "deny", "forbid", "block", "ban", "skip", "omit", "prevent", "never"]
ALONE = [
    (["read", "only"], WRITE | RUN), (["plan", "mode"], WRITE | RUN), (["view", "only"], WRITE | RUN),
    (["offline"], WEB), (["airgapped"], WEB), (["leaf"], AGENT), (["is", "leaf"], AGENT),
    (["childless"], AGENT), (["restricted"], EVERY), (["sandboxed"], EVERY), (["untrusted"], EVERY),
    (["locked", "down"], EVERY), (["immutable"], WRITE), (["dry", "run"], EVERY), (["safe", "mode"], EVERY),
]
LISTS = ["allowed", "available", "include", "included", "enabled", "only", "permitted", "usable", "use",
         "granted", "whitelisted", "supported", "active"]
DENYING = ["disallowed", "denied", "unavailable", "excluded", "exclude", "skip", "skipped", "blocked",
           "forbidden", "banned", "disabled", "without", "omit", "removed", "unsupported", "restricted"]
# Names in the files of other programs, with what they do.
NAMES = [
    ("fs_write", WRITE), ("execute_bash", RUN), ("Create", {"file_write"}), ("ApplyPatch", {"file_edit"}),
    ("local_shell", RUN), ("str_replace_based_edit_tool", WRITE), ("write_to_file", {"file_write"}),
    ("execute_command", RUN), ("browser*", WEB), ("Wrte", WRITE), ("wirte", WRITE), ("Bahs", RUN),
    ("bash_20250124", RUN), ("text_editor_20250728", WRITE), ("computer", RUN), ("code_execution", RUN),
    ("replace_in_file", WRITE), ("apply_diff", WRITE), ("browser_action", WEB), ("new_task", AGENT),
    ("run_terminal_cmd", RUN), ("edit_file", WRITE), ("run_in_terminal", RUN), ("container.exec", RUN),
    ("developer__shell", RUN), ("ShellTool", RUN), ("PythonREPLTool", RUN), ("FileWriterTool", WRITE),
    ("fetch_webpage", WEB - {"web_search"}), ("search_web", {"web_search"}), ("file writes", WRITE),
    ("network", WEB), ("shell commands", RUN), ("internet access", WEB), ("sub-agents", AGENT),
    ("WRITE", {"file_write"}), ("WebFetch(domain:x)", {"web_fetch"}), ("ba*sh", RUN), ("Writ\u0435", {"file_write"}),
    ("W\u200brite", {"file_write"}), ("~Write", WRITE), ("everything", EVERY), ("all", EVERY),
]
VALUES = [
    (["mode"], ["read-only", "plan", "ask", "safe"], WRITE), (["scope"], ["read", "read-only", "viewer"], WRITE),
    (["role"], ["viewer", "read-only", "observer", "guest"], WRITE), (["fs"], ["ro", "read", "none"], WRITE),
    (["groups"], ["[read]", "[]", "[read, browser]"], WRITE), (["policies"], ["[read-only]", "[no-network]"], WEB),
    (["access"], ["read", "ro", "none", "limited", "[read]"], WRITE), (["profile"], ["restricted", "readonly"], EVERY),
    (["permission", "profile"], ["viewer", "minimal"], WRITE), (["filesystem"], ["read-only", "ro"], WRITE),
    (["capabilities"], ["[read]", "[read-only]", "{write: false}", "{shell: no}"], RUN & WRITE),
    (["privileges"], ["none", "low", "[read]"], EVERY), (["trust", "level"], ["low", "none", "untrusted"], EVERY),
    (["behaviour"], ["no shell", "never write files", "without network"], WRITE & RUN),
    (["write", "path"], ["docs", "docs/**", "[docs]", "none"], WRITE), (["paths"], ["[src]", "[]"], WRITE),
    (["allowed", "hosts"], ["[a.example]", "none", "[]"], WEB), (["domains"], ["[a.example]", "[]"], WEB),
    (["extra"], ["read-only", "sandboxed", "[no-shell]", "Read, Grep", "[Read, Grep]"], WRITE),
    (["max", "tool", "calls"], ["3", "'3'"], EVERY), (["max", "cost", "usd"], ["1.5"], EVERY),
    (["command", "limit"], ["2"], EVERY), (["tool", "budget"], ["10"], EVERY), (["requires", "approval"], ["for everything"], EVERY),
]
# Keys that no table has, off or with what may be read; other languages; slips of the hand.
STRANGE = [
    ("connectivity: none", WEB), ("connected: false", WEB), ("outgoing: none", WEB), ("dns: off", WEB),
    ("external: false", WEB), ("remote: false", WEB), ("firewall: deny-all", WEB), ("disconnected: true", WEB),
    ("open_world: false", WEB), ("swarm: off", AGENT), ("workers: 0", AGENT), ("teammates: []", AGENT),
    ("helpers: none", AGENT), ("orchestrator: false", AGENT), ("solo: true", AGENT), ("works_alone: yes", AGENT),
    ("agents: ''", AGENT), ("persist: false", WRITE), ("saves: never", WRITE), ("w: false", WRITE), ("rw: false", WRITE),
    ("x: false", RUN), ("eval: false", RUN), ("programs: []", RUN), ("interpreter: none", RUN),
    ("functions: []", EVERY), ("function_calling: false", EVERY), ("tool_choice: none", EVERY), ("storage: ro", WRITE),
    ("source: ro", WRITE), ("codebase: read", WRITE), ("persona: read-only", WRITE), ("iam: viewer", WRITE),
    ("rbac: viewer", WRITE), ("acl: [deny write]", WRITE), ("ops: [read]", WRITE), ("operations: [read, list]", WRITE),
    ("groups: [read, [edit, {fileRegex: x}]]", WRITE), ("mode: 0444", WRITE), ("chmod: a-w", WRITE), ("rwx: r--", WRITE),
    ("gets: [Read]", WRITE), ("include: [Read]", WRITE), ("needs: [Read]", WRITE), ("Werkzeuge: Read", WRITE),
    ("\u5de5\u5177: Read", WRITE), ("\u53ea\u8bfb: true", WRITE), ("schreibgesch\u00fctzt: ja", WRITE),
    ("nur_lesen: true", WRITE), ("lecture_seule: oui", WRITE), ("solo_lectura: s\u00ed", WRITE), ("schreiben: nein", WRITE),
    ("\u0441\u0435\u0442\u044c: \u043d\u0435\u0442", WEB), ("\u7f51\u7edc: \u65e0", WEB), ("quarantined: yes", WRITE),
    ("passive: true", WRITE), ("observer: true", WRITE), ("dry: true", WRITE), ("noop: true", WRITE),
    ("gated: true", WRITE), ("oversight: human", WRITE), ("requires: approval", WRITE), ("level: 0", WRITE),
    ("write_free: true", WRITE), ("unable_to_write: true", WRITE), ("stop_edits: true", WRITE), ("'!write': yes", WRITE),
    ("-bash: true", RUN), ("'!tools': Bash", RUN), ("raedonly: true", WRITE), ("readoly: true", WRITE),
    ("read-onyl: true", WRITE), ("permissions: {contents: read}", WRITE), ("permission: {read: only}", WRITE),
    ("disallowedTools: Bash/Write", RUN | {"file_write"}), ("disallowedTools: 'Bash:*'", RUN),
    ("disallowedTools: file access", WRITE), ("disallowedTools: !Bash", RUN), ("disallowedTools: Bash\u3001Write", RUN),
]
# Texts of `tools`, with what none of them gives.
TEXTS = [
    ("All tools except Edit, Write", WRITE), ("all tools except Edit and Write", WRITE),
    ("everything but Bash", RUN), ("'*, except Bash, Write'", RUN | {"file_write"}), ("all minus Bash", RUN),
    ("all tools, no Bash", RUN), ("Any tool other than Bash", RUN), ("'*, !Bash'", RUN), ("'*, -Bash'", RUN),
    ("'*, ~Bash'", RUN), ("'*, ^Bash'", RUN), ("'*, \u2212Bash'", RUN), ("'*, Bash: false'", RUN),
    ("'*, Bash=false'", RUN), ("['*', 'Bash: no']", RUN), ("['*', {Bash: false}]", RUN),
    ("['*', {Bash: read only}]", RUN), ("'*, Bash (read only)'", RUN), ("'*, Bash(git *)'", RUN),
    ("all tools (read-only)", WRITE), ("read-only tools", WRITE), ("Read, Write, read-only", WRITE),
    ("[Read, Write, read-only]", WRITE), ("none", EVERY), ("nothing", EVERY), ("no tools", EVERY),
    ("tous sauf Bash", RUN), ("alle au\u00dfer Bash, Write", RUN | {"file_write"}), ("todo excepto Bash", RUN),
    ("\u5168\u90e8\u9664\u4e86Bash", RUN), ("todos menos Bash", RUN), ("tutto tranne Bash", RUN),
    ("Read, Grep, no Bash, Write", RUN | {"file_write"}), ("everything except for the Bash tool", RUN),
    ("All tools without Bash", RUN), ("every tool excluding Bash", RUN), ("Read and nothing else", WRITE),
    ("Read only", WRITE), ("all but Bash and Write", RUN | {"file_write"}), ("['*', 'not Bash']", RUN),
    ("['all tools', 'except Bash', Write]", RUN | {"file_write"}), ("'*' # all", set()),
    ("{'*': true, bash: false}", RUN), ("{'*': true, bash: ro}", RUN), ("{allow: ['*'], deny: [Bash]}", RUN),
    ("'all tools except: Bash, Write'", RUN | {"file_write"}), ("'*, deny: Write'", {"file_write"}),
    ("'*, excluded: Bash'", RUN), ("'*, minus:Bash'", RUN), ("'*, not(Bash)'", RUN), ("'*, except(Bash)'", RUN),
    ("['*', {except: Bash}]", RUN), ("['*', [except, Bash]]", RUN), ("['*', {not: Bash}]", RUN),
    ("['*', !Bash]", RUN), ("!except [Bash]", RUN), ("!Bash '*'", RUN), ("['*', - Bash]", RUN), ("'*, Bash \u274c'", RUN),
    ("'*, \u2716 Bash'", RUN), ("'*, BashOff'", RUN), ("'*, bash_off'", RUN), ("'*, bash disabled'", RUN),
    ("'*, Bash is forbidden'", RUN), ("'*, un-Bash'", RUN), ("'*, nicht Bash'", RUN), ("'*, pas de Bash'", RUN),
    ("'*, \u4e0d\u8981Bash'", RUN), ("'*, Bash\u7981\u6b62'", RUN), ("Bash hari\u00e7", RUN), ("no, Bash", RUN),
    ("[except, Bash]", RUN), ("[all, minus, Bash]", RUN), ("[all, safe]", WRITE), ("|\n  all tools\n  but: Bash", RUN),
    ("Read, todos", WRITE), ("[Read, todo]", WRITE), ("{exclude: [Bash]}", RUN), ("{wirte: false}", WRITE), ("{bash: false, wirte: false}", WRITE | RUN),
]
PERMISSIONS = ["{wirte: deny}", "{fs_write: deny}", "{'*': allow, edit: deny}", "{edit: never}", "{edit: read-only}",
               "{write: 'no', edit: false}", "{disallow: [Write, Edit]}", "read-only", "[read]"]
JOINTS = [":", " = ", "=", " ", " - ", "; ", "\t", "\uff1a", " : ", ": ", " -> ", " := ", "  ", "~", " < ", "\n: ", "\n"]
TOOL_KEYS = ["tools", "Tools", "TOOLS", "allowedTools", "allowed_tools", "allowed-tools"]
ODD_KEYS = ["t\u200bools", "t\u043eols", "\uff54ools", "\ufefftools", "too\u2060ls", "tools ", "\"tools\"", "'tools'",
            "tool", "tolos", "toosl", "tool_list", "toolset", "Allowed Tools", "tools[]", "tools?", "agent.tools"]


def key_cases():
    for words, taken in ABILITIES:
        for key in styles(words):
            for value in NO:
                spots = list(places(f"{key}: {value}"))
                for line in spots if value == "false" else spots[:1]:
                    yield line, taken
    for noun, taken in NOUNS:
        for verb in TAKING:
            for key in styles([verb, *noun]) + [verb + "".join(noun)]:
                yield f"{key}: true", taken
            yield f"{'_'.join([verb, *noun])}: always", taken
            yield f"settings:\n  {'_'.join([verb, *noun])}: yes", taken
    for words, taken in ALONE:
        for key in styles(words):
            for value in YES:
                spots = list(places(f"{key}: {value}"))
                for line in spots if value == "true" else spots[:1]:
                    yield line, taken


def list_cases():
    for word in LISTS:
        for order in ([word, "tools"], ["tools", word]):
            for key in styles(order) + ["".join(order)]:
                for value in ("[Read]", "Read", "\n  - Read", "Read, Grep", "[]", "none"):
                    yield f"{key}: {value}", EVERY - READ - {"file_search"}
                yield f"settings:\n  {key}: [Read]", WRITE
    for word in DENYING:
        for order in ([word, "tools"], ["tools", word]):
            for key in styles(order):
                for value in ("[Write, Bash]", "Write, Bash", "Write Bash"):
                    yield f"{key}: {value}", RUN | {"file_write"}
    for name, taken in NAMES:
        quoted = json.dumps(name, ensure_ascii=False)
        for line in (f"disallowedTools: [{quoted}]", f"disallowedTools: {quoted}", f"tools: {{{quoted}: false}}",
                     f"disallowed-tools: [Glob, {quoted}]", f"permission: {{{quoted}: deny}}",
                     f"permissions: {{deny: [{quoted}]}}", f"skip_tools: [{quoted}]"):
            yield line, taken


def value_cases():
    for words, values, taken in VALUES:
        for key in styles(words):
            for value in values:
                spots = list(places(f"{key}: {value}"))
                for line in spots if key == "_".join(words) else spots[:1]:
                    yield line, taken or WRITE
    for text, taken in TEXTS:
        for key in ("tools", "allowedTools", "allowed_tools"):
            yield f"{key}: {text}", taken
    yield from STRANGE
    for text in PERMISSIONS:
        for key in ("permission", "permissions"):
            yield f"{key}: {text}", {"file_write"} if "fs" in text or "wirte" in text else {"file_edit"}


def line_cases():
    """Whole files, each with a line that is no field as it stands, or an odd key."""
    rest = EVERY - READ - {"file_search"}
    for key in TOOL_KEYS + ODD_KEYS:
        for joint in JOINTS if key in TOOL_KEYS else (": ",):
            for value in ("Read", "Read, Grep", "[Read, Grep]", "none"):
                if value == "none" and joint.strip() == "":
                    continue
                line = f"{key}{joint}{value}"
                yield f"---\nname: {{name}}\ndescription: It looks.\n{line}\n---\n{BODY}", rest
                yield f"---\nname: {{name}}\n{line}\ndescription: It looks.\n---\n{BODY}", rest
                if joint.strip() == ":" and value != "none":
                    yield f"---\nname: {{name}}\ndescription: It looks.\n---\n{line}\n---\n{BODY}", rest
                    yield f"---\nname: {{name}}\ndescription: It looks.\n---\n{line}\n\n{BODY}", rest
                if joint.strip() in (":", "=", "\uff1a"):
                    yield f"---\nname: {{name}}\ndescription: >\n  It looks.\n  {line}\n---\n{BODY}", rest
                    yield f"---\nname: {{name}}\ndescription: |\n  It looks.\n\n  {line}\n---\n{BODY}", rest
                    yield f"---\nname: {{name}}\ndescription: It looks.\n {line}\n---\n{BODY}", rest
    for line, taken in (("readonly = true", WRITE), ("read_only:true", WRITE), ("readonly true", WRITE),
                        ("disallowedTools:Write", {"file_write"}), ("disallowedTools = Write", {"file_write"}),
                        ("sandbox_mode = read-only", WRITE), ("permission_mode=plan", WRITE),
                        ("write: false", WRITE), ("offline: true", WEB), ("leaf: true", AGENT),
                        ("skip_tools: [Write]", {"file_write"}), ("fs: ro", WRITE)):
        yield f"---\nname: {{name}}\ndescription: It: looks\n{line}\n---\n{BODY}", taken
        yield f"---\nname: {{name}}\ndescription: It looks.\n{line}\n---\n{BODY}", taken


HARMLESS = [
    "color: blue", "category: engineering", "emoji: \U0001f527", "vibe: calm and read-only at heart", "version: 1.2.0",
    "author: someone", "tags: [sandbox, read-only, offline]", "capabilities: [research, code review]",
    "type: subagent", "complexity: high", "effort: low", "temperature: 0.1", "argument-hint: what to do",
    "user-invocable: true", "role: backend developer", "scope: project", "domain: finance", "owner: team-a",
    "target: vscode", "expertise_level: expert", "priority: low", "status: stable", "groups: [engineering]",
    "memory: project", "license: MIT", "keywords: [no-code, limits]", "max_tokens: 4096", "icon: tool",
    "notes: no limits in the network", "icon_path: a.svg", "tool_choice: auto", "agent: agent", "hidden: false",
    "requires_tools: false", "department: security", "# tools: Read", "goal: to write without mistakes",
    "profile: senior", "level: expert", "languages: [python, go]", "homepage: https://example.org",
    "disallowedTools: []", "disallowedTools: none", "tools: '*'", "tools: all", "tools: All tools", "tools: ['*']",
    "readonly: false", "sandbox: none", "max_cost: unlimited", "permission: {edit: allow}", "permission: {}",
    "no_tools: false", "tools_enabled: true", "streaming: false", "memory: false", "seed: 0", "beta: true",
    "tool_choice: auto", "repository: https://example.org", "testing: true", "public: false", "plugins: []",
    "tools: ['*', context7, 'github/*']",
]


def controls():
    for line in HARMLESS:
        yield line
    for words, _ in ABILITIES:
        for key in styles(words):
            for value in YES:
                yield f"{key}: {value}"
    for words, _ in ALONE:
        for key in styles(words):
            for value in ("false", "no", "off"):
                yield f"{key}: {value}"
    for noun, _ in NOUNS:
        for verb in TAKING:
            yield f"{'_'.join([verb, *noun])}: false"


def made():
    """Each file's text, what it takes away, and `None` for one that takes nothing."""
    lines = [*key_cases(), *list_cases(), *value_cases()]
    for line, taken in lines:
        yield f"---\n{HEAD}{line}\n---\n{BODY}", taken
    yield from line_cases()
    for line in controls():
        yield f"---\n{HEAD}{line}\n---\n{BODY}", None


def entries_of(belljar, directory):
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ.get("PATH", ""), "HOME": home, "BELLJAR_HOME": home}
        done = subprocess.run([belljar, "agents", "check", "--json", directory],
                              env=env, cwd=home, capture_output=True, check=False)
    if done.returncode not in (0, 2, 4):
        sys.exit(f"{belljar} exits with {done.returncode}:\n{done.stderr.decode()}")
    return {os.path.basename(entry["path"]): entry for entry in json.loads(done.stdout)}


def fault(entry, taken, every):
    if taken is None:
        if entry is None or not entry["status"].startswith("ready"):
            return f"is {entry and entry['status']}, although it takes nothing away"
        missing = every - set(entry["tools"])
        return f"lost {sorted(missing)}, although it takes nothing away" if missing else None
    if entry is None or not entry["status"].startswith("ready"):
        return None
    more = taken & set(entry["tools"])
    return f"is {entry['status']} with {sorted(more)}" if more else None


# Files of one directory: belljar reads 5,000 at most.
AT_ONCE = 2000


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    belljar = os.path.abspath(sys.argv[1])
    cases = [("base", f"---\n{HEAD}---\n{BODY}", set())]
    cases += [(f"s{n:05}", text, taken) for n, (text, taken) in enumerate(made())]
    entries = {}
    for first in range(0, len(cases), AT_ONCE):
        with tempfile.TemporaryDirectory() as directory:
            for name, text, _ in cases[first:first + AT_ONCE]:
                with open(os.path.join(directory, name + ".md"), "w", encoding="utf-8") as file:
                    file.write(text.replace("{name}", name))
            entries.update(entries_of(belljar, directory))
    every = set(entries["base.md"]["tools"])
    if not every >= {"file_read", "file_write", "file_edit", "shell", "web_fetch", "spawn_agent"}:
        sys.exit(f"an agent without a restriction has only {sorted(every)}")
    wrong = []
    for name, text, taken in cases[1:]:
        said = fault(entries.get(name + ".md"), taken, every)
        if said:
            wrong.append((text, said))
    free = sum(taken is None for _, _, taken in cases)
    print(f"{len(cases)} spellings, {free} of them without a restriction, {len(wrong)} faults")
    for text, said in wrong[:60]:
        print(f"  {text.replace('{name}', 's')!r} {said}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
