//! Tests of tool aliases: what is shown, how a call is translated, and what is refused.

use std::path::Path;

use belljar_definition::{Dialect, KnownTools, ParsedAgentFile, parse_agent};
use belljar_policy::{AskedRights, CallPermission, Grants, Rights, ToolName};

use super::*;
use crate::tools::dispatch::{CallDecision, Dispatcher, ToolProvider};

const TOOLS: &[&str] = &[
    "attach_file",
    "clarify",
    "file_edit",
    "file_find",
    "file_list",
    "file_read",
    "file_search",
    "file_write",
    "notebook_edit",
    "shell",
    "spawn_agent",
    "todo_write",
    "use_skill",
    "web_fetch",
    "web_search",
];

/// An agent definition with these lines in its frontmatter.
fn definition(frontmatter: &str) -> AgentDefinition {
    let text = format!("---\nname: s\ndescription: d\n{frontmatter}\n---\nbody");
    let known: KnownTools = TOOLS.iter().map(|name| ToolName::new(name).unwrap()).collect();
    match parse_agent(Path::new("s.md"), text.as_bytes(), &known) {
        ParsedAgentFile::Agent { definition, .. } => *definition,
        other => panic!("{other:?}"),
    }
}

/// Specifications of tools with these names.
fn specs(names: &[&str]) -> Vec<ToolSpec> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: "own".to_owned(),
        schema: json!({}),
    };
    names.iter().map(spec).collect()
}

fn shown(frontmatter: &str, tools: &[&str]) -> Vec<String> {
    let mut specs = specs(tools);
    ToolAliases::put_up(&definition(frontmatter), &mut specs);
    specs.into_iter().map(|spec| spec.name).collect()
}

/// Belljar's arguments for a call of the dialect's tool.
fn own(dialect: Dialect, name: &str, arguments: Value) -> Result<Value, String> {
    let alias = ForeignTool::for_dialect(dialect).iter().find(|alias| alias.name == name).unwrap();
    let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.to_string() };
    let call = translate_call(alias, &call)?;
    assert_eq!(call.name, alias.tool);
    Ok(serde_json::from_str(&call.arguments).unwrap())
}

#[test]
fn tools_have_the_names_that_the_author_used_and_others_keep_their_own() {
    let tools = ["attach_file", "file_edit", "file_read", "file_search"];
    assert_eq!(
        shown("tools: Read, Grep, MultiEdit, attach_file", &tools),
        ["attach_file", "MultiEdit", "Read", "Grep"]
    );
    assert_eq!(shown("model: sonnet", &tools), ["attach_file", "Edit", "Read", "Grep"]);
    assert_eq!(shown("mode: subagent", &tools), ["attach_file", "edit", "read", "grep"]);
    assert_eq!(shown("tools: [file_read, file_edit]", &tools), tools);
}

#[test]
fn a_name_is_given_to_one_tool_only() {
    // The Copilot tool `file_search` searches for names; belljar's tool of that name searches in contents.
    let names = shown("user-invocable: true\ntools: [search]", &["file_find", "file_search"]);
    assert_eq!(names, ["file_search", "grep_search"]);
    let names = shown(
        "user-invocable: true\ntools: [file_search, search/fileSearch]",
        &["file_search", "file_find"],
    );
    assert_eq!(names, ["file_search", "file_find"]);
}

#[test]
fn arguments_are_renamed_defaulted_and_taken_apart() {
    let claude = |name, arguments| own(Dialect::ClaudeCode, name, arguments).unwrap();
    assert_eq!(
        claude("Read", json!({"file_path": "a", "offset": 3, "limit": null})),
        json!({"path": "a", "offset": 3, "line_numbers": "tab"})
    );
    assert_eq!(
        claude(
            "MultiEdit",
            json!({"file_path": "a", "edits": [
                {"old_string": "x", "new_string": "y", "replace_all": true}
            ]})
        ),
        json!({"path": "a", "edits": [{"old_text": "x", "new_text": "y", "replace_all": true}]})
    );
    assert_eq!(
        claude("Grep", json!({"pattern": "x", "-A": 2, "-n": true, "type": "rust"})),
        json!({
            "pattern": "x", "file_type": "rust", "after": 2, "output_mode": "files_with_matches"
        })
    );
    assert_eq!(
        claude("WebSearch", json!({"query": "q", "allowed_domains": ["a.b", "c.d"]})),
        json!({"query": "q site:a.b OR site:c.d"})
    );
    assert_eq!(
        claude(
            "AskUserQuestion",
            json!({"questions": [{
                "question": "Which?", "header": "H", "multiSelect": false,
                "options": [{"label": "A", "description": "the first"}, {"label": "B"}],
            }]})
        ),
        json!({"question": "Which?", "options": ["A", "B"]})
    );
    assert_eq!(
        claude("Task", json!({"prompt": "p", "description": "d", "run_in_background": true})),
        json!({"task": "p", "background": true})
    );
    assert_eq!(
        claude("TaskOutput", json!({"task_id": "bg-1", "block": false, "timeout": 1})),
        json!({"id": "bg-1", "wait": false})
    );
    assert_eq!(
        claude(
            "TaskCreate",
            json!({"subject": "s", "description": "d", "activeForm": "a", "metadata": {"k": 1}})
        ),
        json!({"content": "s", "detail": "d", "activeForm": "a", "action": "create"})
    );
    assert_eq!(
        claude("TaskUpdate", json!({"taskId": "1", "status": "deleted", "addBlockedBy": ["2"]})),
        json!({"id": "1", "status": "deleted", "blocked_by": ["2"], "action": "update"})
    );
    assert_eq!(claude("TaskList", json!({})), json!({"action": "list"}));
    assert_eq!(claude("TaskGet", json!({"taskId": "1"})), json!({"id": "1", "action": "get"}));
    let copilot = |name, arguments| own(Dialect::Copilot, name, arguments).unwrap();
    assert_eq!(
        copilot("grep_search", json!({"query": "a.b(", "isRegexp": false})),
        json!({"pattern": "a\\.b\\(", "case_insensitive": true})
    );
    assert_eq!(copilot("grep_search", json!({"query": "a.b"}))["pattern"], "a\\.b");
    assert_eq!(copilot("grep_search", json!({"query": "a.b", "isRegexp": true}))["pattern"], "a.b");
    assert_eq!(
        copilot(
            "manage_todo_list",
            json!({"todoList": [
                {"id": 1, "title": "t", "status": "not-started"}
            ]})
        ),
        json!({"todos": [{"content": "t", "status": "pending"}]})
    );
    assert_eq!(copilot("fetch_webpage", json!({"urls": ["u"]})), json!({"url": "u"}));
    let gemini = |name, arguments| own(Dialect::GeminiCli, name, arguments).unwrap();
    assert_eq!(
        gemini("run_shell_command", json!({"command": "ls", "dir_path": "src"})),
        json!({"command": "ls", "cwd": "src"})
    );
    assert_eq!(
        gemini(
            "replace",
            json!({"file_path": "a", "instruction": "i", "old_string": "x", "new_string": "y"})
        ),
        json!({"path": "a", "old_text": "x", "new_text": "y"})
    );
    assert_eq!(
        gemini("write_todos", json!({"todos": [{"description": "t", "status": "blocked"}]})),
        json!({"todos": [{"content": "t", "status": "pending"}]})
    );
    let pi = |name, arguments| own(Dialect::Pi, name, arguments).unwrap();
    assert_eq!(
        pi("edit", json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]})),
        json!({"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]})
    );
    assert_eq!(
        pi("grep", json!({"pattern": "x", "glob": "*.rs", "ignoreCase": true, "context": 2})),
        json!({"pattern": "x", "glob": "*.rs", "case_insensitive": true, "context": 2})
    );
    let literal = own(Dialect::Pi, "grep", json!({"pattern": "x", "literal": true}));
    assert!(literal.unwrap_err().contains("write a regular expression"));
}

#[test]
fn what_cannot_be_done_is_refused_in_the_authors_words() {
    let wrong = |name, arguments: Value| own(Dialect::ClaudeCode, name, arguments).unwrap_err();
    for (name, arguments, says) in [
        ("Read", json!({}), "`file_path` is missing"),
        ("Read", json!({"path": "a", "file_path": "a"}), "there is no `path`"),
        ("Bash", json!({"command": "a", "run_in_background": true}), "nothing goes on after"),
        ("Grep", json!({"pattern": "a", "output_mode": "all"}), "is none of `files_with_matches`"),
        ("MultiEdit", json!({"file_path": "a", "edits": [{"old_string": "x"}]}), "(item 1)"),
        ("WebSearch", json!({"query": "a", "blocked_domains": ["x y"]}), "not a list of host"),
        ("AskUserQuestion", json!({"questions": [{}, {}]}), "make a call for each"),
        ("AskUserQuestion", json!({"questions": []}), "it is empty"),
    ] {
        let text = wrong(name, arguments);
        assert!(text.starts_with("invalid arguments: ") && text.contains(says), "{text}");
    }
    let deep = format!("{{\"file_path\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let call = ToolCall { id: "1".into(), name: "Read".into(), arguments: deep };
    let alias = &ForeignTool::for_dialect(Dialect::ClaudeCode)[0];
    assert!(translate_call(alias, &call).unwrap_err().starts_with("invalid arguments: "));
}

#[test]
fn an_error_speaks_of_the_names_that_the_model_knows() {
    let mut specs = specs(&["file_edit"]);
    let aliases = ToolAliases::put_up(&definition("tools: Edit"), &mut specs);
    let answer = |content: &str, is_error| CallAnswer { content: content.to_owned(), is_error };
    let said =
        aliases.reword_answer("Edit", answer("`old_text` is not in the file: `file_edit`", true));
    assert_eq!(said.content, "`old_string` is not in the file: `Edit`");
    let said = aliases.reword_answer("Edit", answer("`old_text`", false));
    assert_eq!(said.content, "`old_text`");
}

#[test]
fn every_face_has_a_schema_that_a_call_with_just_the_required_arguments_satisfies() {
    for dialect in Dialect::WITH_TOOLS {
        for alias in ForeignTool::for_dialect(dialect) {
            let schema = arguments_schema(alias.arguments);
            let call = example(alias.arguments);
            let valid = jsonschema::is_valid(&schema, &call);
            assert!(valid, "{dialect} {}: {schema} {call}", alias.name);
            own(dialect, alias.name, call).unwrap();
        }
    }
}

#[test]
fn a_tool_shown_under_another_name_is_not_called_by_its_own() {
    let mut specs = specs(&["attach_file", "file_read"]);
    let aliases = ToolAliases::put_up(&definition("tools: Read, attach_file"), &mut specs);
    let mut grants = Grants::none();
    for name in ["attach_file", "file_read", "file_write"] {
        grants.tools.insert(ToolName::new(name).unwrap(), CallPermission::Allow);
    }
    let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
    let shown =
        ["attach_file", "file_read"].map(|name| (ToolName::new(name).unwrap(), ToolProvider::Jar));
    let it = Dispatcher::new(rights, BTreeMap::from(shown), aliases);
    let call = |name: &str| {
        let arguments = r#"{"file_path": "a"}"#.to_owned();
        it.translate_call(&ToolCall { id: "1".into(), name: name.into(), arguments })
    };
    assert_eq!(call("Read").unwrap().unwrap().name, "file_read");
    assert!(call("attach_file").unwrap().is_none());
    let refused = call("file_read").unwrap_err();
    assert_eq!(refused.text, "tool not allowed: the available tools are `attach_file`, `Read`");
    // A tool name of the dialect that the agent was not granted is unknown to it.
    let write = call("Write").unwrap();
    assert!(write.is_none());
    let write = ToolCall { id: "1".into(), name: "Write".into(), arguments: "{}".into() };
    assert!(matches!(it.decide_call(&write, 0), CallDecision::Refuse(_)));
}

/// The simplest valid arguments, with all required ones.
fn example(arguments: &[ForeignArgument]) -> Value {
    let required = arguments.iter().filter(|argument| argument.required);
    let value = |argument: &ForeignArgument| match argument.kind {
        ArgumentKind::Text => json!("a"),
        ArgumentKind::Number => json!(1),
        ArgumentKind::Flag => json!(false),
        ArgumentKind::Word(words) => json!(words[0].0),
        ArgumentKind::Texts => json!(["a"]),
        ArgumentKind::Object => json!({}),
        ArgumentKind::Items(members) => json!([example(members)]),
    };
    Value::Object(required.map(|it| (it.name.to_owned(), value(it))).collect())
}
