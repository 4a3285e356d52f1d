//! Parses and checks the arguments of built-in tools, except for whether a named agent may be called.

use belljar_policy::ShownText;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::events::TodoStatus;
use crate::finding::catalogue::EntryKind;
use crate::limits::{
    MAX_BATCH, MAX_MATCHED_WORDS, MAX_OPTIONS, MAX_QUESTION_BYTES, MAX_TODO_BYTES,
    MAX_TODO_DETAIL_BYTES, MAX_TODOS, MAX_WORKTREE_NAME, truncate_str,
};
use crate::outcome::ChildOrigin;
use crate::tools::builtin::tool::BuiltinTool;

/// A well-formed call of a built-in tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BuiltinCall {
    Spawn(SpawnArguments),
    Parallel(BatchArguments),
    Status { id: Option<String> },
    Result { id: String, wait: bool },
    Cancel { id: String },
    Skill { name: String },
    Todo(TodoCall),
    Clarify(ClarifyArguments),
    Worktree(WorktreeCall),
    Find { kind: EntryKind, words: String },
}

/// A well-formed request for a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpawnArguments {
    /// The name of the agent. Absent = the general-purpose agent; a fork needs no name.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) context: Option<String>,
    #[serde(default)]
    pub(crate) background: bool,
    #[serde(default)]
    pub(crate) mode: SpawnMode,
    #[serde(default)]
    pub(crate) isolation: Option<FileIsolation>,
}

/// A well-formed request for several subagents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchArguments {
    /// The subject of the tasks, for a person who watches; never blank.
    pub(crate) title: Option<String>,
    pub(crate) tasks: Vec<SpawnArguments>,
}

impl SpawnArguments {
    /// The origin of the requested subagent, for records: a fork or a preset agent.
    pub(crate) fn child_origin(&self) -> ChildOrigin {
        match self.mode {
            SpawnMode::Fresh => ChildOrigin::Preset,
            SpawnMode::Fork => ChildOrigin::Fork,
        }
    }
}

/// Where the subagent's file changes go. Without this, into its parent's overlays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileIsolation {
    /// Into separate overlays, which are merged into the parent's at the end.
    Worktree,
}

/// The conversation with which a subagent begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SpawnMode {
    /// It begins with an empty history.
    #[default]
    Fresh,
    /// It continues a copy of the parent's conversation.
    Fork,
}

/// One item of the agent's todo list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Todo {
    pub(crate) content: String,
    pub(crate) status: TodoStatus,
    /// The label for the time in which the item is in progress; accepted from models, and not used.
    #[serde(default)]
    pub(crate) active_form: Option<String>,
}

/// A well-formed call about the todo list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TodoCall {
    /// Replaces the whole list.
    Write(Vec<Todo>),
    /// Adds an item, with optional details.
    Create { content: String, detail: Option<String> },
    /// Shows the item with this id and its details.
    Get { id: String },
    /// Shows all items.
    List,
    /// Changes the item with this id.
    Update { id: String, change: TodoChange },
}

/// A change to one todo item. An absent field stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TodoChange {
    pub(crate) content: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) status: Option<TodoStatus>,
    /// True = the item is removed.
    pub(crate) delete: bool,
    /// The ids of items that must wait for this item.
    pub(crate) blocks: Vec<String>,
    /// The ids of items that must be done before this item.
    pub(crate) blocked_by: Vec<String>,
}

/// A well-formed call about the agent's worktree, a copy of its overlays.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum WorktreeCall {
    /// Enters a worktree: the agent works in a copy of its overlays from now on.
    Enter {
        #[serde(default)]
        name: Option<String>,
    },
    /// Leaves the worktree and merges its changes into the original layers.
    Keep {
        /// Ignored: the argument belongs to `remove`.
        #[serde(default, rename = "discard_changes")]
        _discard_changes: bool,
    },
    /// Leaves the worktree and drops its changes.
    Remove {
        /// True = drop the worktree even if it has changes.
        #[serde(default)]
        discard_changes: bool,
    },
}

/// The arguments of `clarify`: a question to the person who started the run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClarifyArguments {
    pub(crate) question: String,
    /// Suggested answers. The person may also answer with another text.
    #[serde(default)]
    pub(crate) options: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TasksArguments {
    #[serde(default)]
    title: Option<String>,
    tasks: Vec<TaskArguments>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskArguments {
    #[serde(default)]
    agent: Option<String>,
    task: String,
    #[serde(default)]
    context: Option<String>,
    #[serde(default)]
    isolation: Option<FileIsolation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TodosArguments {
    todos: Vec<Todo>,
}

/// The field that distinguishes a call about an item from a call with a whole list.
#[derive(Deserialize)]
struct HasAction {
    action: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
enum TodoAction {
    Create {
        content: String,
        #[serde(default)]
        detail: Option<String>,
        #[serde(default, rename = "activeForm")]
        _active_form: Option<String>,
    },
    Get {
        id: TodoId,
    },
    List {},
    Update {
        id: TodoId,
        #[serde(default)]
        content: Option<String>,
        #[serde(default)]
        detail: Option<String>,
        #[serde(default, rename = "activeForm")]
        _active_form: Option<String>,
        #[serde(default)]
        status: Option<NewStatus>,
        #[serde(default)]
        blocks: Vec<TodoId>,
        #[serde(default)]
        blocked_by: Vec<TodoId>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum NewStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
    Deleted,
}

/// An item's id. Models write it as a text or as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum TodoId {
    Text(String),
    Number(u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaybeId {
    #[serde(default)]
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitFor {
    id: String,
    #[serde(default = "yes")]
    wait: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryArgument {
    query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NameArgument {
    name: String,
}

fn yes() -> bool {
    true
}

impl BuiltinCall {
    /// Parses the arguments of a built-in tool. The error text is for the model.
    pub(crate) fn parse(tool: BuiltinTool, arguments: &str) -> Result<Self, String> {
        match tool {
            BuiltinTool::Spawn => {
                parse_json(arguments).and_then(SpawnArguments::into_checked).map(Self::Spawn)
            }
            BuiltinTool::Parallel => {
                parse_json(arguments).and_then(check_batch).map(Self::Parallel)
            }
            BuiltinTool::Status => parse_json(arguments).map(|MaybeId { id }| Self::Status { id }),
            BuiltinTool::Result => {
                parse_json(arguments).map(|WaitFor { id, wait }| Self::Result { id, wait })
            }
            BuiltinTool::Cancel => match parse_json(arguments)? {
                MaybeId { id: Some(id) } => Ok(Self::Cancel { id }),
                MaybeId { id: None } => Err(invalid_arguments("missing field `id`")),
            },
            BuiltinTool::Skill => {
                parse_json(arguments).map(|NameArgument { name }| Self::Skill { name })
            }
            BuiltinTool::Todo => parse_todo(arguments).map(Self::Todo),
            BuiltinTool::Clarify => {
                parse_json(arguments).and_then(ClarifyArguments::into_checked).map(Self::Clarify)
            }
            BuiltinTool::Worktree => {
                parse_json(arguments).and_then(WorktreeCall::into_checked).map(Self::Worktree)
            }
        }
    }

    /// Parses the arguments of a search tool, for example `find_agent`. The error is for the model.
    pub(crate) fn parse_search(kind: EntryKind, arguments: &str) -> Result<Self, String> {
        let QueryArgument { query } = parse_json(arguments)?;
        if query.trim().is_empty() {
            return Err(invalid_arguments("`query` is empty; say what is to be done"));
        }
        let words = truncate_str(&query, MAX_MATCHED_WORDS).to_owned();
        Ok(Self::Find { kind, words })
    }

    /// Returns whether the call starts subagents.
    pub(crate) fn spawns_children(&self) -> bool {
        matches!(self, Self::Spawn(_) | Self::Parallel(_))
    }
}

impl SpawnArguments {
    fn into_checked(self) -> Result<Self, String> {
        if self.task.trim().is_empty() {
            return Err(invalid_arguments("`task` is empty; say what the subagent should do"));
        }
        if self.mode == SpawnMode::Fork && self.agent.is_some() {
            return Err(invalid_arguments(
                "a fork continues as yourself, so it takes no `agent`; leave out one of the two",
            ));
        }
        Ok(self)
    }
}

impl WorktreeCall {
    fn into_checked(self) -> Result<Self, String> {
        let Self::Enter { name: Some(name) } = &self else { return Ok(self) };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
        if name.is_empty() || name.len() > MAX_WORKTREE_NAME || !name.chars().all(plain) {
            let text = format!(
                "`name` is letters, digits, `.`, `_`, `-` and `/`, at most {MAX_WORKTREE_NAME}"
            );
            return Err(invalid_arguments(&text));
        }
        Ok(self)
    }
}

impl ClarifyArguments {
    fn into_checked(self) -> Result<Self, String> {
        if self.question.trim().is_empty() {
            return Err(invalid_arguments("`question` is empty"));
        }
        let long = |text: &String| text.len() > MAX_QUESTION_BYTES;
        if long(&self.question) || self.options.iter().any(long) {
            let text = format!("a question or option is longer than {MAX_QUESTION_BYTES} bytes");
            return Err(invalid_arguments(&text));
        }
        if self.options.len() > MAX_OPTIONS {
            return Err(invalid_arguments(&format!("more than {MAX_OPTIONS} options")));
        }
        Ok(self)
    }
}

fn check_batch(TasksArguments { title, tasks }: TasksArguments) -> Result<BatchArguments, String> {
    let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
    if tasks.is_empty() {
        return Err(invalid_arguments("`tasks` is empty"));
    }
    if tasks.len() > MAX_BATCH {
        let text = format!("{} tasks; at most {MAX_BATCH} go into one call", tasks.len());
        return Err(invalid_arguments(&text));
    }
    let asked =
        |(place, TaskArguments { agent, task, context, isolation }): (usize, TaskArguments)| {
            let asked = SpawnArguments {
                agent,
                task,
                context,
                background: false,
                mode: SpawnMode::Fresh,
                isolation,
            };
            asked.into_checked().map_err(|error| format!("{error} (task {})", place + 1))
        };
    let tasks = tasks.into_iter().enumerate().map(asked).collect::<Result<_, _>>()?;
    Ok(BatchArguments { title, tasks })
}

/// Parses a todo call: a whole list, or with `action` one operation on an item.
fn parse_todo(arguments: &str) -> Result<TodoCall, String> {
    if parse_json::<HasAction>(arguments)?.action.is_none() {
        return parse_json(arguments).and_then(check_todos).map(TodoCall::Write);
    }
    match parse_json(arguments)? {
        TodoAction::Create { content, detail, .. } => {
            check_texts(Some(&content), detail.as_deref())?;
            Ok(TodoCall::Create { content, detail })
        }
        TodoAction::Get { id } => Ok(TodoCall::Get { id: id.into_text() }),
        TodoAction::List {} => Ok(TodoCall::List),
        TodoAction::Update { id, content, detail, status, blocks, blocked_by, .. } => {
            check_texts(content.as_deref(), detail.as_deref())?;
            let (delete, status) = match status {
                Some(NewStatus::Deleted) => (true, None),
                Some(NewStatus::Pending) => (false, Some(TodoStatus::Pending)),
                Some(NewStatus::InProgress) => (false, Some(TodoStatus::InProgress)),
                Some(NewStatus::Completed) => (false, Some(TodoStatus::Completed)),
                Some(NewStatus::Cancelled) => (false, Some(TodoStatus::Cancelled)),
                None => (false, None),
            };
            let ids = |ids: Vec<TodoId>| ids.into_iter().map(TodoId::into_text).collect();
            let (blocks, blocked_by) = (ids(blocks), ids(blocked_by));
            let change = TodoChange { content, detail, status, delete, blocks, blocked_by };
            if change == TodoChange::default() {
                return Err(invalid_arguments(
                    "nothing is changed by it: give a `status` or a `content`",
                ));
            }
            Ok(TodoCall::Update { id: id.into_text(), change })
        }
    }
}

impl TodoId {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

fn check_todos(TodosArguments { todos }: TodosArguments) -> Result<Vec<Todo>, String> {
    if todos.len() > MAX_TODOS {
        return Err(invalid_arguments(&format!(
            "{} items; at most {MAX_TODOS} are kept",
            todos.len()
        )));
    }
    for (place, todo) in todos.iter().enumerate() {
        check_texts(Some(&todo.content), None)
            .map_err(|why| format!("{why} (item {})", place + 1))?;
    }
    Ok(todos)
}

/// Checks that the texts of a todo item are neither blank nor too long.
fn check_texts(content: Option<&str>, detail: Option<&str>) -> Result<(), String> {
    if content.is_some_and(|content| content.trim().is_empty()) {
        return Err(invalid_arguments("`content` is empty"));
    }
    if content.is_some_and(|content| content.len() > MAX_TODO_BYTES) {
        return Err(invalid_arguments(&format!("`content` is longer than {MAX_TODO_BYTES} bytes")));
    }
    if detail.is_some_and(|detail| detail.len() > MAX_TODO_DETAIL_BYTES) {
        return Err(invalid_arguments(&format!(
            "`detail` is longer than {MAX_TODO_DETAIL_BYTES} bytes"
        )));
    }
    Ok(())
}

fn parse_json<T: DeserializeOwned>(arguments: &str) -> Result<T, String> {
    belljar_received::json::from_str_with_wholes(arguments)
        .map_err(|error| invalid_arguments(&error.to_string()))
}

fn invalid_arguments(why: &str) -> String {
    format!("invalid arguments: {}", ShownText::clip_line(why, 200))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(tool: BuiltinTool, arguments: &str) -> String {
        let error = BuiltinCall::parse(tool, arguments).unwrap_err();
        assert!(error.starts_with("invalid arguments: "), "{error}");
        error
    }

    #[test]
    fn a_spawn_needs_a_task_and_nothing_unknown() {
        for bad in [
            r#"{}"#,
            r#"{"agent":"a"}"#,
            r#"{"agent":"a","task":" \n"}"#,
            r#"{"agent":"a","task":"t","rights":"all"}"#,
            r#"{"agent":1,"task":"t"}"#,
            r#"{"task":"t","mode":"clone"}"#,
        ] {
            wrong(BuiltinTool::Spawn, bad);
        }
        let asked =
            BuiltinCall::parse(BuiltinTool::Spawn, r#"{"task":"t","context":null}"#).unwrap();
        let BuiltinCall::Spawn(asked) = asked else { panic!("{asked:?}") };
        assert_eq!((asked.agent, asked.context, asked.mode), (None, None, SpawnMode::Fresh));
    }

    #[test]
    fn a_fork_names_no_agent() {
        let error = wrong(BuiltinTool::Spawn, r#"{"agent":"a","task":"t","mode":"fork"}"#);
        assert!(error.contains("takes no `agent`"), "{error}");
        assert!(BuiltinCall::parse(BuiltinTool::Spawn, r#"{"task":"t","mode":"fork"}"#).is_ok());
    }

    #[test]
    fn a_batch_is_neither_empty_nor_endless_and_a_bad_task_is_named() {
        wrong(BuiltinTool::Parallel, r#"{"tasks":[]}"#);
        let bad = r#"{"tasks":[{"agent":"a","task":"t"},{"agent":"a","task":""}]}"#;
        assert!(wrong(BuiltinTool::Parallel, bad).ends_with("(task 2)"));
        let many = vec![r#"{"agent":"a","task":"t"}"#; MAX_BATCH + 1].join(",");
        let many = wrong(BuiltinTool::Parallel, &format!("{{\"tasks\":[{many}]}}"));
        assert!(many.contains("at most"), "{many}");
    }

    #[test]
    fn a_todo_without_content_or_with_an_unknown_status_is_rejected() {
        let todo = |item: &str| format!(r#"{{"todos":[{item}]}}"#);
        for bad in [
            r#"{"content":" ","status":"pending"}"#,
            r#"{"status":"pending"}"#,
            r#"{"content":"a","status":"someday"}"#,
            r#"{"content":"a"}"#,
        ] {
            wrong(BuiltinTool::Todo, &todo(bad));
        }
        for bad in [
            r#"{"action":"create"}"#,
            r#"{"action":"create","content":" "}"#,
            r#"{"action":"create","content":"a","status":"pending"}"#,
            r#"{"action":"get"}"#,
            r#"{"action":"update","id":"1"}"#,
            r#"{"action":"update","id":"1","status":"someday"}"#,
            r#"{"action":"forget","id":"1"}"#,
        ] {
            wrong(BuiltinTool::Todo, bad);
        }
        let good = r#"{"content":"a","status":"in_progress","activeForm":"doing a"}"#;
        assert!(BuiltinCall::parse(BuiltinTool::Todo, &todo(good)).is_ok());
    }

    #[test]
    fn a_number_that_is_whole_is_taken_however_it_is_written() {
        for id in ["7", "7.0", "70e-1", "\"7\""] {
            let call = format!(r#"{{"action":"get","id":{id}}}"#);
            let call = BuiltinCall::parse(BuiltinTool::Todo, &call).unwrap();
            assert_eq!(call, BuiltinCall::Todo(TodoCall::Get { id: "7".to_owned() }));
        }
        for bad in ["7.5", "-7.0", "1e400"] {
            wrong(BuiltinTool::Todo, &format!(r#"{{"action":"get","id":{bad}}}"#));
        }
    }

    #[test]
    fn a_worktree_is_entered_by_a_plain_name_and_left_in_one_of_two_ways() {
        for bad in [
            r#"{}"#,
            r#"{"action":"exit"}"#,
            r#"{"action":"enter","name":""}"#,
            r#"{"action":"enter","name":"a b"}"#,
            r#"{"action":"enter","name":"a\u0000"}"#,
            r#"{"action":"enter","path":"/tmp"}"#,
            r#"{"action":"remove","discard_changes":"yes"}"#,
        ] {
            wrong(BuiltinTool::Worktree, bad);
        }
        let long = format!(r#"{{"action":"enter","name":"{}"}}"#, "x".repeat(65));
        wrong(BuiltinTool::Worktree, &long);
        for good in [
            r#"{"action":"enter"}"#,
            r#"{"action":"enter","name":"feature/a.b_c-1"}"#,
            r#"{"action":"keep","discard_changes":true}"#,
            r#"{"action":"remove"}"#,
        ] {
            assert!(BuiltinCall::parse(BuiltinTool::Worktree, good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_question_is_not_empty_and_an_id_is_needed_where_something_is_done() {
        wrong(BuiltinTool::Clarify, r#"{"question":""}"#);
        wrong(BuiltinTool::Cancel, "{}");
        wrong(BuiltinTool::Result, "{}");
        assert_eq!(
            BuiltinCall::parse(BuiltinTool::Status, "{}"),
            Ok(BuiltinCall::Status { id: None })
        );
    }
}
