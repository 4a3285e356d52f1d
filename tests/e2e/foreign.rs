//! Agents written for other programs run as they are: their tools have the names and arguments
//! that their authors used.

use serde_json::Value;

use crate::kit::World;

/// As people write them for Claude Code.
const REVIEWER: &str = "---
name: reviewer
description: Reviews code and mends small things.
tools: Read, Grep, Glob, Edit, MultiEdit, Bash, TodoWrite
model: inherit
---
You review code. Start with Grep, then Read with `file_path`, then Edit.
";

const TRANSCRIPT: &str = r#"
transcript: 1
agents:
  - agent: reviewer
    turns:
      - calls:
          - {name: Grep, arguments: {pattern: "fn \\w+", path: src, output_mode: content, "-n": true}}
          - {name: Read, arguments: {file_path: /workspace/src/a.rs, offset: 2}}
          - {name: Glob, arguments: {pattern: "**/*.rs"}}
          - {name: Bash, arguments: {command: "cd src && grep -c fn a.rs | sed 's/^/found /'", description: count}}
      - expect:
          results:
            - {name: Grep, contains: "src/a.rs:1:fn one() {}", is_error: false}
            - {name: Read, contains: "     2\tfn two() {}", is_error: false}
            - {name: Glob, contains: src/a.rs, is_error: false}
            - {name: Bash, contains: found 3, is_error: false}
        calls:
          - {name: Edit, arguments: {file_path: src/a.rs, old_string: one, new_string: eins}}
          - name: MultiEdit
            arguments:
              file_path: src/a.rs
              edits: [{old_string: two, new_string: zwei}, {old_string: three, new_string: drei}]
          - {name: TodoWrite, arguments: {todos: [{content: look, status: completed, activeForm: looking}]}}
      - expect:
          results:
            - {name: Edit, is_error: false}
            - {name: MultiEdit, is_error: false}
            - {name: TodoWrite, is_error: false}
        calls:
          - {name: Edit, arguments: {file_path: src/a.rs, old_string: gone, new_string: x}}
          - {name: file_read, arguments: {path: src/a.rs}}
          - {name: Write, arguments: {file_path: b.rs, content: x}}
          - {name: Read, arguments: {path: src/a.rs}}
          - {name: Bash, arguments: {command: "pwd; git status"}}
          - {name: Bash, arguments: {command: "cat /etc/passwd ../../etc/passwd"}}
      - expect:
          results:
            - {name: Edit, contains: "old_string", is_error: true}
            - {name: file_read, contains: "tool not allowed: the available tools are `Edit`", is_error: true}
            - {name: Write, contains: "tool not allowed", is_error: true}
            - {name: Read, contains: "`file_path` is missing", is_error: true}
            - {name: Bash, contains: /workspace/src, is_error: false}
            - {name: Bash, contains: No such file, is_error: false}
        say: Done.
"#;

const GRANT: &str = "[grants.reviewer]
tools = [\"file_read\", \"file_search\", \"file_find\", \"file_edit\", \"shell\", \"todo_write\"]
mounts = [{ path = \"/workspace\", access = \"read-write\" }]
";

#[test]
fn the_model_calls_tools_by_the_names_of_its_author_and_receipts_know_belljars() {
    let world = World::new();
    world.home_file("agents/reviewer.md", REVIEWER);
    world.home_file("belljar.toml", GRANT);
    let path = world.file("src/a.rs", "fn one() {}\nfn two() {}\nfn three() {}\n");
    let transcript = world.other("transcript.yaml", TRANSCRIPT.as_bytes());
    let transcript = transcript.to_str().unwrap();
    let done =
        world.run(&["run", "--agent", "reviewer", "--json", "--transcript", transcript, "x"]);
    let outcome = done.exits(0).json();
    assert_eq!(outcome["output"], "Done.");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text, "fn eins() {}\nfn zwei() {}\nfn drei() {}\n");
    assert!(!world.workspace().join("b.rs").exists());
    let receipts = outcome["receipts"].as_array().unwrap();
    let tools: Vec<&Value> = receipts.iter().map(|receipt| &receipt["tool"]).collect();
    let first = ["file_search", "file_read", "file_find", "shell", "file_edit", "file_edit"];
    assert_eq!(tools[..6], first);
    assert!(!outcome.to_string().contains("root:x:"));
}

/// Keeps its list as newer models of Claude Code do.
const PLANNER: &str = "---
name: planner
description: Plans.
tools: Read, TaskCreate, TaskGet, TaskList, TaskUpdate
---
You keep a list of tasks.
";

const PLANS: &str = r##"
transcript: 1
agents:
  - agent: planner
    turns:
      - expect: {tools: [Read, TaskCreate, TaskGet, TaskList, TaskUpdate]}
        calls:
          - {name: TaskList}
          - {name: TaskCreate, arguments: {subject: look, description: at everything, activeForm: looking}}
          - {name: TaskCreate, arguments: {subject: write, description: it down, metadata: {kind: text}}}
          - {name: TaskUpdate, arguments: {taskId: "2", addBlockedBy: ["1"], owner: planner}}
          - {name: TaskUpdate, arguments: {taskId: "1", status: in_progress}}
      - expect:
          results:
            - {name: TaskList, contains: the list is empty, is_error: false}
            - {name: TaskCreate, contains: "task #1", is_error: false}
            - {name: TaskCreate, contains: "task #2", is_error: false}
            - {name: TaskUpdate, contains: "#2 [pending] write (blocked by #1)", is_error: false}
            - {name: TaskUpdate, contains: "#1 [in_progress] look", is_error: false}
        calls:
          - {name: TaskGet, arguments: {taskId: "1"}}
          - {name: TaskUpdate, arguments: {taskId: "3", status: completed}}
          - {name: TaskUpdate, arguments: {taskId: "1"}}
          - {name: TaskUpdate, arguments: {taskId: "1", status: done}}
          - {name: TaskCreate, arguments: {title: x}}
          - {name: TaskUpdate, arguments: {taskId: "1", status: deleted}}
          - {name: TaskList, arguments: {}}
      - expect:
          results:
            - {name: TaskGet, contains: ["at everything", "blocks #2"], is_error: false}
            - {name: TaskUpdate, contains: "there are #1, #2", is_error: true}
            - {name: TaskUpdate, contains: "`subject`", is_error: true}
            - {name: TaskUpdate, contains: "`in_progress`", is_error: true}
            - {name: TaskCreate, contains: "`subject` is missing", is_error: true}
            - {name: TaskUpdate, contains: removed, is_error: false}
            - {name: TaskList, contains: "#2 [pending] write", is_error: false}
        say: Planned.
"##;

#[test]
fn a_list_of_tasks_is_kept_by_the_calls_of_claude_code() {
    let world = World::new();
    world.home_file("agents/planner.md", PLANNER);
    world.file("a", "");
    let shown = world.run(&["agents", "check", "planner", "--json"]).exits(0).json();
    assert_eq!(shown[0]["unavailable"].as_array().map(Vec::len), Some(0), "{shown:#}");
    let transcript = world.other("transcript.yaml", PLANS.as_bytes());
    let run = ["run", "--agent", "planner", "--transcript", transcript.to_str().unwrap(), "go"];
    assert_eq!(world.run(&run).exits(0).stdout, "Planned.\n");
    // In a conversation the next turn has the list.
    let more = r##"
transcript: 1
agents:
  - agent: planner
    turns:
      - calls: [{name: TaskCreate, arguments: {subject: look}}]
      - say: Kept.
      - calls: [{name: TaskUpdate, arguments: {taskId: "1", status: completed}}]
      - expect: {results: [{name: TaskUpdate, contains: "#1 [completed] look", is_error: false}]}
        say: Done.
"##;
    let transcript = world.other("chat.yaml", more.as_bytes());
    let chat = ["chat", "--agent", "planner", "--transcript", transcript.to_str().unwrap()];
    let done = world.run_with_stdin(&chat, "one\ntwo\n").exits(0);
    assert_eq!(done.stdout, "Kept.\nDone.\n");
}

#[test]
fn the_table_of_names_is_printed() {
    let world = World::new();
    world.run(&["tools", "aliases"]).exits(0).says("MultiEdit").says("works with limits");
    let json = world.run(&["tools", "aliases", "--json"]).exits(0).json();
    assert_eq!(json[0]["dialect"], "claude-code");
    let page = world.run(&["tools", "aliases", "--markdown"]).exits(0);
    page.says("| `Read` | `file_read` | `file_path` | path |");
    world.run(&["tools", "aliases", "--json", "--markdown"]).exits(2).complains("--markdown");
}
