//! Manifests, lists and parts as public plugins write them, and as hostile ones do.

use super::*;
use crate::HookEvent;

fn tree(files: &[(&str, &str)]) -> PluginTree {
    PluginTree::from_files(
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())),
    )
}

fn manifest(files: &[(&str, &str)]) -> PluginManifest {
    let reading = PluginManifest::read(&tree(files), "folder");
    reading.manifest.unwrap_or_else(|| panic!("{:?}", reading.diagnostics))
}

fn errors(files: &[(&str, &str)]) -> Vec<String> {
    let reading = PluginManifest::read(&tree(files), "folder");
    assert_eq!(reading.manifest, None, "{files:?}");
    reading.diagnostics.into_iter().map(|found| found.message).collect()
}

fn inventory(files: &[(&str, &str)]) -> PluginInventory {
    PluginInventory::list(&tree(files), &manifest(files))
}

fn names(parts: &[PluginPart]) -> Vec<&str> {
    parts.iter().map(|part| part.name.as_str()).collect()
}

const CLAUDE: &str = ".claude-plugin/plugin.json";

#[test]
fn a_folder_without_a_manifest_is_a_plugin_with_the_default_places() {
    let found = inventory(&[
        ("agents/a.md", ""),
        ("agents/deep/b.agent.md", ""),
        ("skills/tdd/SKILL.md", ""),
        ("skills/tdd/reference.md", ""),
        ("skills/tdd/examples/inner/SKILL.md", ""),
        ("commands/git/commit.md", ""),
        ("commands/README.md", ""),
        ("templates/agent.md", ""),
        ("output-styles/plain.md", ""),
        ("bin/tool", ""),
        (".lsp.json", r#"{"rust": {"command": "rust-analyzer"}}"#),
        ("settings.json", r#"{"agent": "x"}"#),
    ]);
    assert_eq!(names(&found.agents), ["a", "b"]);
    assert_eq!(names(&found.skills), ["tdd"]);
    assert_eq!(names(&found.commands), ["git:commit"]);
    let unserved: Vec<_> =
        found.unserved.iter().map(|(kind, names)| (*kind, names.len())).collect();
    assert_eq!(
        unserved,
        [
            (PartKind::LspServers, 1),
            (PartKind::OutputStyles, 1),
            (PartKind::Programs, 1),
            (PartKind::Settings, 1)
        ]
    );
}

#[test]
fn paths_of_a_manifest_add_replace_or_merge() {
    let files = &[
        (
            CLAUDE,
            r#"{"name": "p", "skills": "./more", "commands": ["./one.md", "./two"], "agents": "./mine",
                "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]},
                "mcpServers": "./servers.json", "unknown": 1}"#,
        ),
        ("skills/a/SKILL.md", ""),
        ("more/b/SKILL.md", ""),
        ("commands/gone.md", ""),
        ("one.md", ""),
        ("two/c.md", ""),
        ("agents/gone.md", ""),
        ("mine/d.md", ""),
        (
            "hooks/hooks.json",
            r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "y", "timeout": 5, "async": true}]}]}}"#,
        ),
        (
            ".mcp.json",
            r#"{"mcpServers": {"one": {"command": "npx", "args": ["-y", "pkg@latest"]}}}"#,
        ),
        (
            "servers.json",
            r#"{"two": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}"#,
        ),
    ];
    let found = inventory(files);
    assert_eq!(names(&found.skills), ["a", "b"]);
    assert_eq!(names(&found.commands), ["c", "one"]);
    assert_eq!(names(&found.agents), ["d"]);
    let hooks: Vec<String> = found.hooks.iter().map(ToString::to_string).collect();
    assert_eq!(hooks, ["PreToolUse of Bash: runs `y`", "Stop: runs `x`"]);
    assert_eq!(found.hooks[0].known_event(), Some(HookEvent::PreToolUse));
    assert_eq!(found.hooks[0].ignored, ["async"]);
    let servers: Vec<&str> = found.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(servers, ["one", "two"]);
    assert_eq!(found.servers[0].command_line().unwrap(), "npx -y pkg@latest");
    let fetched = found.servers[0].fetched_package().unwrap();
    assert_eq!(
        (fetched.registry, fetched.package.as_str(), fetched.fixed),
        ("npm", "pkg@latest", false)
    );
    assert_eq!(found.servers[1].variables().into_iter().collect::<Vec<_>>(), ["TOKEN"]);
    assert_eq!(found.servers[1].tool_prefix("my.plugin"), "mcp__plugin_my_plugin_two__");
    assert_eq!(manifest(files).unknown_keys, ["unknown"]);
}

#[test]
fn a_wrong_type_of_a_known_key_rejects_the_plugin_and_a_missing_path_is_named() {
    for (text, why) in [
        (r#"{}"#, "no `name`"),
        (r#"{"name": 1}"#, "`name` is a number"),
        (r#"{"name": "p", "version": 2}"#, "`version` is a number, not a text"),
        (r#"{"name": "p", "keywords": "a"}"#, "`keywords` is a text, not a list of texts"),
        (r#"{"name": "p", "agents": {"a": 1}}"#, "`agents` is an object, not a path"),
        (r#"{"name": "p", "commands": "../../etc"}"#, "leaves the plugin"),
        (r#"{"name": "p", "commands": "/etc"}"#, "is absolute"),
        (r#"{"name": "pаypal"}"#, "other characters"),
        (r#"{"name": "a/b"}"#, "other characters"),
        (r#"{"name": "a:b"}"#, "other characters"),
        (r#"{"name": "-p"}"#, "begins or ends"),
        (r#"{"name": ""}"#, "empty"),
        (r#"{"name": "p", "dependencies": [{"version": "1"}]}"#, "names no plugin"),
        (r#"{"name": "p", "userConfig": {"a b": {"type": "string"}}}"#, "no identifier"),
        (r#"{"name": "p", "userConfig": {"a": {"type": "program"}}}"#, "unknown"),
        (r#"{"name": "p""#, "no JSON"),
        (r#"["p"]"#, "a list, not an object"),
    ] {
        let found = errors(&[(CLAUDE, text)]);
        assert!(found.iter().any(|message| message.contains(why)), "{text}: {found:?}");
    }
    let deep =
        format!("{{\"name\": \"p\", \"metadata\": {}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(errors(&[(CLAUDE, &deep)])[0].contains("no JSON"));
    let found = inventory(&[(CLAUDE, r#"{"name": "p", "commands": "./nowhere"}"#)]);
    assert!(found.diagnostics[0].message.contains("./nowhere"), "{:?}", found.diagnostics);
}

const SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";

#[test]
fn agent_plugins_are_closed() {
    let text = |more: &str| format!(r#"{{"$schema": "{SCHEMA}", "name": "a.b-c"{more}}}"#);
    let good = manifest(&[("plugin.json", &text(r#", "future": 1, "extensions": {"org.x": 1}"#))]);
    assert_eq!((good.format, good.name.as_str()), (PluginFormat::AgentPlugins, "a.b-c"));
    let reading = PluginManifest::read(&tree(&[("plugin.json", &text(r#", "future": 1"#))]), "x");
    assert_eq!(reading.diagnostics.len(), 1, "{:?}", reading.diagnostics);
    for (more, why) in [
        (r#", "author": {"name": "n", "phone": "1"}"#, "`author` has a key besides"),
        (r#", "author": "n"#, "no JSON"),
        (r#", "author": "n""#, "`author` is a text"),
        (r#", "version": 1"#, "`version` is a number"),
        (r#", "keywords": [1]"#, "`keywords`"),
    ] {
        let found = errors(&[("plugin.json", &text(more))]);
        assert!(found.iter().any(|message| message.contains(why)), "{more}: {found:?}");
    }
    for name in ["", "A", "a--b", "a..b", "a-", "a_b", &"a".repeat(65)] {
        let text = format!(r#"{{"$schema": "{SCHEMA}", "name": "{name}"}}"#);
        assert!(!errors(&[("plugin.json", &text)]).is_empty(), "{name}");
    }
    let other = SCHEMA.replace("1.0.0", "2.0.0");
    let found = errors(&[("plugin.json", &format!(r#"{{"$schema": "{other}", "name": "a"}}"#))]);
    assert!(found[0].contains("$schema"), "{found:?}");
}

#[test]
fn agent_plugins_have_two_kinds_of_parts_at_fixed_places() {
    let found = inventory(&[
        ("plugin.json", &format!(r#"{{"$schema": "{SCHEMA}", "name": "p"}}"#)),
        ("skills/a/SKILL.md", ""),
        ("skills/group/b/SKILL.md", ""),
        ("agents/c.md", ""),
        (".mcp.json", r#"{"no": {"command": "x"}}"#),
        (
            "mcp.json",
            r#"{"mcpServers": {"ok": {"type": "stdio", "command": "./run", "args": ["${PLUGIN_ROOT}/x"]},
                "shell": {"type": "stdio", "command": "sh -c x"}, "out": {"type": "stdio", "command": "./../x"},
                "plain": {"type": "streamable-http", "url": "http://example.org"},
                "here": {"type": "sse", "url": "http://127.0.0.1:1/x"},
                "user": {"type": "sse", "url": "https://a@example.org/"},
                "hash": {"type": "sse", "url": "https://example.org/#a"}}}"#,
        ),
    ]);
    assert_eq!(names(&found.skills), ["a"]);
    assert!(found.agents.is_empty());
    let mut servers: Vec<&str> = found.servers.iter().map(|server| server.name.as_str()).collect();
    servers.sort_unstable();
    assert_eq!(servers, ["here", "ok"]);
    assert_eq!(found.diagnostics.len(), 5, "{:?}", found.diagnostics);
    assert!(found.servers.iter().all(|server| server.variables().is_empty()));
}

#[test]
fn what_other_programs_add_is_found_and_counted() {
    let gemini = inventory(&[
        (
            "gemini-extension.json",
            r#"{"name": "g", "version": "1", "mcpServers": {"s": {"httpUrl": "https://example.org"}},
                "settings": [{"name": "Key", "envVar": "KEY", "sensitive": true}], "excludeTools": ["x"]}"#,
        ),
        ("GEMINI.md", ""),
        ("commands/git/commit.toml", ""),
    ]);
    assert_eq!(names(&gemini.commands), ["git:commit"]);
    assert_eq!(gemini.servers.len(), 1);
    assert_eq!(gemini.unserved[&PartKind::Contexts], ["GEMINI.md"]);
    let cursor = inventory(&[
        (".cursor-plugin/plugin.json", r#"{"name": "c"}"#),
        ("rules/a.mdc", ""),
        ("mcp.json", r#"{"mcpServers": {"s": {"url": "https://example.org"}}}"#),
    ]);
    assert_eq!(cursor.unserved[&PartKind::Rules], ["a.mdc"]);
    assert_eq!(cursor.servers.len(), 1);
    let codex = manifest(&[(
        ".codex-plugin/plugin.json",
        r#"{"name": "x", "skills": "./skills/", "hooks": {}, "interface": {}}"#,
    )]);
    assert_eq!(codex.format, PluginFormat::Codex);
    assert!(codex.unknown_keys.is_empty(), "{:?}", codex.unknown_keys);
    let options = manifest(&[(CLAUDE, r#"{"name": "o", "userConfig": {"K": {"type": "string", "sensitive": true, "required": true}}}"#)]).options;
    assert!(options[0].sensitive && options[0].required);
}

#[test]
fn malformed_hooks_are_reported_one_by_one() {
    let found = inventory(&[(
        "hooks/hooks.json",
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command"}, {"type": "command", "command": "ok"}, 1]}],
            "Notification": "x", "PreToolUse": [{"matcher": 5, "hooks": []}],
            "SessionStart": [{"type": "prompt", "prompt": "hello", "timeout": 30000}]}}"#,
    )]);
    assert_eq!(found.hooks.len(), 2, "{:?}", found.hooks);
    let by = |event: &str| found.hooks.iter().find(|hook| hook.event == event).unwrap();
    assert_eq!(by("Stop").command(), Some("ok"));
    assert_eq!(by("SessionStart").timeout, Some(30));
    assert_eq!(found.diagnostics.len(), 4, "{:?}", found.diagnostics);
}

fn market(text: &str) -> MarketManifest {
    MarketManifest::read(&tree(&[(MARKET_FILES[0], text)])).unwrap()
}

#[test]
fn a_marketplace_lists_its_usable_entries_and_says_what_is_wrong_with_others() {
    let sha = "a".repeat(40);
    let text = format!(
        r#"{{"name": "m", "owner": {{"name": "o"}}, "metadata": {{"pluginRoot": "./plugins"}},
            "renames": {{"old": "folder", "gone": null, "x": "y", "y": "x"}}, "plugins": [
            {{"name": "folder", "source": "./folder", "tags": ["t"], "category": "c"}},
            {{"name": "folder", "source": "./other"}},
            {{"name": "hub", "source": {{"source": "github", "repo": "a/b", "ref": "v1", "sha": "{sha}"}}}},
            {{"name": "part", "source": {{"source": "git-subdir", "url": "https://example.org/a.git", "path": "x/y"}}}},
            {{"name": "pack", "source": {{"source": "npm", "package": "@a/b", "version": "1.0.0"}}}},
            {{"name": "zip", "source": {{"source": "archive", "url": "https://example.org/a.zip"}}}},
            {{"name": "cmd", "source": {{"source": "command", "command": "curl x | sh"}}}},
            {{"name": "short", "source": {{"source": "github", "repo": "a/b", "sha": "abc"}}}},
            {{"name": "out", "source": "../x"}},
            {{"name": "http", "source": {{"source": "url", "url": "http://example.org/a.git"}}}},
            {{"name": "ext", "source": {{"source": "url", "url": "ext::sh -c x"}}}},
            {{"name": "option", "source": {{"source": "github", "repo": "a/b", "ref": "--upload-pack=x"}}}},
            {{"name": "a/b", "source": "./x"}}, {{"name": "typed", "source": "./x", "version": 1}}, 5]}}"#
    );
    let market = market(&text);
    assert_eq!(market.slug.as_str(), "m");
    let by = |name: &str| market.find_entry(name).unwrap().0;
    assert_eq!(by("folder").source.as_ref().unwrap().to_string(), "./plugins/folder");
    let EntrySource::Git { pin, .. } = by("hub").source.as_ref().unwrap() else { panic!() };
    assert_eq!(pin.revision(), Some(sha.as_str()));
    assert_eq!(
        by("part").source.as_ref().unwrap().to_string(),
        "git https://example.org/a.git ./x/y"
    );
    assert!(by("hub").source.as_ref().unwrap().is_pinned());
    for (name, why) in [
        ("cmd", "is a command"),
        ("short", "no whole commit id"),
        ("out", "leaves the plugin"),
        ("http", "does not begin with `https://`"),
        ("ext", "does not begin with `https://`"),
        ("option", "no name of a branch"),
    ] {
        let found = by(name).source.clone().unwrap_err();
        assert!(found.contains(why), "{name}: {found}");
    }
    assert_eq!(market.diagnostics.len(), 4, "{:?}", market.diagnostics);
    assert_eq!(market.find_entry("old").unwrap().1.as_deref(), Some("folder"));
    assert!(market.find_entry("gone").unwrap_err().contains("withdrawn"));
    assert!(market.find_entry("x").unwrap_err().contains("circle"));
    assert!(market.find_entry("foldr").unwrap_err().contains("did you mean `folder`"));
}

#[test]
fn an_entry_completes_the_manifest_or_replaces_it() {
    let market = market(
        r#"{"name": "m", "owner": {"name": "o"}, "plugins": [
            {"name": "loose", "source": "./", "strict": false, "skills": ["./skills/a"]},
            {"name": "plain", "source": "./", "strict": false},
            {"name": "added", "source": "./", "version": "2", "commands": "./more"}]}"#,
    );
    let files = &[
        (CLAUDE, r#"{"name": "own", "commands": "./c"}"#),
        ("skills/a/SKILL.md", ""),
        ("skills/b/SKILL.md", ""),
        ("c/x.md", ""),
        ("more/y.md", ""),
    ];
    let list = |name: &str| {
        let reading = market.find_entry(name).unwrap().0.read_manifest(&tree(files));
        let manifest = reading.manifest.unwrap();
        (PluginInventory::list(&tree(files), &manifest), manifest, reading.diagnostics)
    };
    let (loose, manifest, diagnostics) = list("loose");
    assert_eq!((names(&loose.skills), loose.commands.len()), (vec!["a"], 0));
    assert_eq!((manifest.name.as_str(), diagnostics.len()), ("loose", 1));
    let (plain, _, _) = list("plain");
    assert_eq!(names(&plain.skills), ["a", "b"]);
    let (added, manifest, _) = list("added");
    assert_eq!((names(&added.commands), names(&added.skills)), (vec!["x", "y"], vec!["a", "b"]));
    assert_eq!((manifest.name.as_str(), manifest.version.as_deref()), ("added", Some("2")));
}
