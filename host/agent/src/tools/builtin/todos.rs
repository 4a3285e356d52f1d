//! The agent's todo list. It is derived from the calls in the conversation, so a later turn, a fork and a
//! resumed run have the same list.

use std::collections::BTreeSet;

use belljar_definition::builtin_tools::TODO_WRITE;
use belljar_model::{ChatMessage, ToolCall};
use belljar_policy::ShownText;

use crate::events::{TodoItem, TodoStatus};
use crate::limits::MAX_TODOS;
use crate::tools::builtin::arguments::{BuiltinCall, Todo, TodoCall, TodoChange};
use crate::tools::builtin::tool::BuiltinTool;
use crate::tools::dispatch::Dispatcher;

/// The todo list after the calls so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TodoList {
    items: Vec<NumberedTodo>,
    /// The highest id so far. An id is never used twice.
    last: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NumberedTodo {
    id: u64,
    content: String,
    detail: String,
    status: TodoStatus,
    /// The ids of the items to finish before this item.
    blocked_by: BTreeSet<u64>,
}

impl TodoList {
    /// Derives the list from the answered todo calls of a conversation.
    pub(crate) fn from_messages(messages: &[ChatMessage], dispatcher: &Dispatcher) -> Self {
        let mut list = Self::default();
        let mut asked: &[ToolCall] = &[];
        for message in messages {
            match message {
                ChatMessage::User { .. } => {}
                ChatMessage::Assistant { calls, .. } => asked = calls,
                ChatMessage::Tool { results } => {
                    for result in results.iter().filter(|result| !result.is_error) {
                        let call = asked.iter().find(|call| call.id == result.id);
                        if let Some(change) = call.and_then(|call| parse_change(call, dispatcher)) {
                            // A change that failed when it was made is an error in the conversation, and
                            // fails here again.
                            let _ = list.apply_call(&change);
                        }
                    }
                }
            }
        }
        list
    }

    /// Applies a call to the list and returns the text for the model. An error is for the model too, and
    /// changes nothing.
    pub(crate) fn apply_call(&mut self, call: &TodoCall) -> Result<String, String> {
        match call {
            TodoCall::Write(todos) => Ok(self.replace_items(todos)),
            TodoCall::Create { content, detail } => self.create_item(content, detail.as_deref()),
            TodoCall::Get { id } => self.find_item(id).map(|item| self.format_details(item)),
            TodoCall::List => Ok(self.format_lines()),
            TodoCall::Update { id, change } => self.update_item(id, change),
        }
    }

    /// The list as watchers see it in events.
    pub(crate) fn to_items(&self) -> Vec<TodoItem> {
        let item =
            |item: &NumberedTodo| TodoItem { content: item.content.clone(), status: item.status };
        self.items.iter().map(item).collect()
    }

    /// Replaces the whole list.
    fn replace_items(&mut self, todos: &[Todo]) -> String {
        self.items = (1..)
            .zip(todos)
            .map(|(id, todo)| NumberedTodo {
                id,
                content: todo.content.clone(),
                detail: String::new(),
                status: todo.status,
                blocked_by: BTreeSet::new(),
            })
            .collect();
        self.last = u64::try_from(todos.len()).unwrap_or(u64::MAX);
        let count = |status| todos.iter().filter(|todo| todo.status == status).count();
        format!(
            "kept {} items: {} completed, {} in progress, {} pending",
            todos.len(),
            count(TodoStatus::Completed),
            count(TodoStatus::InProgress),
            count(TodoStatus::Pending)
        )
    }

    /// Adds an item with the next id.
    fn create_item(&mut self, content: &str, detail: Option<&str>) -> Result<String, String> {
        if self.items.len() >= MAX_TODOS {
            return Err(format!("the list has {MAX_TODOS} tasks, which is the most; remove some"));
        }
        self.last = self.last.saturating_add(1);
        let id = self.last;
        self.items.push(NumberedTodo {
            id,
            content: content.to_owned(),
            detail: detail.unwrap_or_default().to_owned(),
            status: TodoStatus::Pending,
            blocked_by: BTreeSet::new(),
        });
        Ok(format!("task #{id} is in the list: {content}"))
    }

    /// Changes or removes an item, and the items that it blocks or waits for.
    fn update_item(&mut self, id: &str, change: &TodoChange) -> Result<String, String> {
        let own = self.find_item(id)?.id;
        let ids = |named: &[String]| -> Result<Vec<u64>, String> {
            let found = named.iter().map(|id| self.find_item(id).map(|item| item.id));
            let found: Vec<u64> = found.collect::<Result<_, _>>()?;
            match found.contains(&own) {
                true => Err(format!("task #{own} cannot wait for itself")),
                false => Ok(found),
            }
        };
        let (blocks, blocked_by) = (ids(&change.blocks)?, ids(&change.blocked_by)?);
        if change.delete {
            self.items.retain(|item| item.id != own);
            for item in &mut self.items {
                item.blocked_by.remove(&own);
            }
            return Ok(format!("task #{own} is removed"));
        }
        for item in &mut self.items {
            if blocks.contains(&item.id) {
                item.blocked_by.insert(own);
            }
            if item.id == own {
                item.blocked_by.extend(&blocked_by);
                item.status = change.status.unwrap_or(item.status);
                if let Some(content) = &change.content {
                    item.content.clone_from(content);
                }
                if let Some(detail) = &change.detail {
                    item.detail.clone_from(detail);
                }
            }
        }
        self.find_item(id).map(|item| format!("changed: {}", self.format_line(item)))
    }

    /// Finds an item by its id, for example `1` or `#1`.
    fn find_item(&self, id: &str) -> Result<&NumberedTodo, String> {
        let number = id.trim().trim_start_matches('#').parse::<u64>().ok();
        let found = self.items.iter().find(|item| Some(item.id) == number);
        found.ok_or_else(|| {
            let known: Vec<String> =
                self.items.iter().map(|item| format!("#{}", item.id)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!("there is no task `{}`; there are {known}", ShownText::clip_line(id, 60))
        })
    }

    /// The list as text, one line for each item.
    fn format_lines(&self) -> String {
        if self.items.is_empty() {
            return "the list is empty".to_owned();
        }
        let lines: Vec<String> = self.items.iter().map(|item| self.format_line(item)).collect();
        lines.join("\n")
    }

    fn format_line(&self, item: &NumberedTodo) -> String {
        let waits = self.waits_for(item);
        let waits = if waits.is_empty() { waits } else { format!(" (blocked by {waits})") };
        format!("#{} [{}] {}{waits}", item.id, item.status.as_str(), item.content)
    }

    /// One item as text, with its details and the items that it blocks.
    fn format_details(&self, item: &NumberedTodo) -> String {
        let mut text = self.format_line(item);
        let blocked = self.items.iter().filter(|other| other.blocked_by.contains(&item.id));
        let blocked: Vec<String> = blocked.map(|other| format!("#{}", other.id)).collect();
        if !blocked.is_empty() {
            text.push_str(&format!("\nblocks {}", blocked.join(", ")));
        }
        if !item.detail.is_empty() {
            text.push_str(&format!("\n\n{}", item.detail));
        }
        text
    }

    /// The unfinished items that this item waits for, as text.
    fn waits_for(&self, item: &NumberedTodo) -> String {
        let open = |id: &&u64| {
            self.items.iter().any(|other| {
                other.id == **id
                    && matches!(other.status, TodoStatus::Pending | TodoStatus::InProgress)
            })
        };
        let open: Vec<String> =
            item.blocked_by.iter().filter(open).map(|id| format!("#{id}")).collect();
        open.join(", ")
    }
}

/// Parses an earlier call of the conversation as a todo call, under any name that the model used for the
/// tool.
fn parse_change(call: &ToolCall, dispatcher: &Dispatcher) -> Option<TodoCall> {
    let own = dispatcher.translate_call(call).ok()?;
    let call = own.as_ref().unwrap_or(call);
    if call.name != TODO_WRITE {
        return None;
    }
    match BuiltinCall::parse(BuiltinTool::Todo, &call.arguments) {
        Ok(BuiltinCall::Todo(change)) => Some(change),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The todo call with these arguments.
    fn call(arguments: &str) -> TodoCall {
        match BuiltinCall::parse(BuiltinTool::Todo, arguments) {
            Ok(BuiltinCall::Todo(call)) => call,
            other => panic!("{other:?}"),
        }
    }

    fn done(list: &mut TodoList, arguments: &str) -> String {
        list.apply_call(&call(arguments)).unwrap()
    }

    #[test]
    fn a_task_is_made_found_changed_and_removed_by_its_id() {
        let mut list = TodoList::default();
        let made =
            done(&mut list, r#"{"action":"create","content":"look","detail":"at all of it"}"#);
        assert_eq!(made, "task #1 is in the list: look");
        done(&mut list, r#"{"action":"create","content":"write"}"#);
        done(&mut list, r##"{"action":"update","id":"#2","blocked_by":["1"]}"##);
        assert_eq!(
            done(&mut list, r#"{"action":"list"}"#),
            "#1 [pending] look\n#2 [pending] write (blocked by #1)"
        );
        assert_eq!(
            done(&mut list, r#"{"action":"get","id":1}"#),
            "#1 [pending] look\nblocks #2\n\nat all of it"
        );
        done(&mut list, r#"{"action":"update","id":"1","status":"completed"}"#);
        assert_eq!(done(&mut list, r#"{"action":"get","id":"2"}"#), "#2 [pending] write");
        done(&mut list, r#"{"action":"update","id":"1","status":"deleted"}"#);
        let made = done(&mut list, r#"{"action":"create","content":"rest"}"#);
        assert!(made.starts_with("task #3"), "no id is given twice: {made}");
        assert_eq!(list.to_items().len(), 2);
    }

    #[test]
    fn what_names_no_task_changes_nothing_and_says_which_there_are() {
        let mut list = TodoList::default();
        done(&mut list, r#"{"action":"create","content":"look"}"#);
        let before = list.clone();
        for wrong in [
            r#"{"action":"get","id":"2"}"#,
            r#"{"action":"update","id":"one","status":"completed"}"#,
            r#"{"action":"update","id":"1","status":"completed","blocked_by":["7"]}"#,
        ] {
            let error = list.apply_call(&call(wrong)).unwrap_err();
            assert!(error.contains("there are #1"), "{error}");
        }
        let itself = r#"{"action":"update","id":"1","blocks":["1"]}"#;
        assert!(list.apply_call(&call(itself)).unwrap_err().contains("itself"));
        assert_eq!(list, before);
    }

    #[test]
    fn a_list_that_is_sent_whole_takes_the_place_of_all() {
        let mut list = TodoList::default();
        done(&mut list, r#"{"action":"create","content":"look"}"#);
        let kept = done(&mut list, r#"{"todos":[{"content":"a","status":"completed"}]}"#);
        assert_eq!(kept, "kept 1 items: 1 completed, 0 in progress, 0 pending");
        assert_eq!(done(&mut list, r#"{"action":"list"}"#), "#1 [completed] a");
    }
}
