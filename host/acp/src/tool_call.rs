//! A tool call as an editor shows it: title, kind, files, and the changes that it would make.

use std::path::Path;

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Diff, TextContent, ToolCallContent, ToolCallLocation, ToolKind,
};
use belljar_agent::limits::truncate_str;
use belljar_policy::ShownText;
use belljar_received::whole::to_unsigned;
use serde_json::Value;

use crate::limits::{MAX_DIFF, MAX_RESULT, MAX_TITLE};
use crate::places;

/// The arguments that may name what a call is about; the first one that the call has is shown.
const SUBJECTS: &[&str] =
    &["path", "file_path", "command", "pattern", "query", "url", "agent", "name", "code"];

/// The kind of a tool in ACP, from its name.
pub(crate) fn tool_kind(tool: &str) -> ToolKind {
    match tool {
        "file_read" | "file_list" | "attach_file" => ToolKind::Read,
        "file_write" | "file_edit" | "notebook_edit" => ToolKind::Edit,
        "file_find" | "file_search" => ToolKind::Search,
        "web_fetch" | "web_search" => ToolKind::Fetch,
        "shell" | "run_javascript" | "run_python" => ToolKind::Execute,
        "todo_write" | "use_skill" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// Parses the arguments as JSON; malformed ones become a JSON string.
pub(crate) fn parse_arguments(text: &str) -> Value {
    belljar_received::json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The tool and what it is about, in one line.
pub(crate) fn call_title(tool: &str, arguments: &Value) -> String {
    let subject = SUBJECTS.iter().find_map(|field| arguments.get(field)?.as_str());
    let tool = ShownText::clip_line(tool, MAX_TITLE);
    match subject.and_then(|subject| subject.trim().lines().next()) {
        Some(line) => format!("{tool} {}", ShownText::clip_line(line, MAX_TITLE)),
        None => tool.to_string(),
    }
}

/// The files of the workspace that a call's arguments name.
pub(crate) fn call_locations(arguments: &Value, workspace: &Path) -> Vec<ToolCallLocation> {
    let path =
        ["path", "file_path", "to"].iter().filter_map(|field| arguments.get(field)?.as_str());
    let places = path.filter_map(|path| places::host_path(workspace, path));
    let line = ["line", "start_line", "from_line"].iter();
    let line = line.filter_map(|field| to_unsigned(arguments.get(field)?)).next();
    let line = line.and_then(|line| u32::try_from(line).ok());
    places.map(|place| ToolCallLocation::new(place).line(line)).collect()
}

/// The difference that a call which writes a file would make. Its old text is what the call claims.
pub(crate) fn call_diffs(tool: &str, arguments: &Value, workspace: &Path) -> Vec<ToolCallContent> {
    let text = |field: &str| arguments.get(field).and_then(Value::as_str);
    let (old, new) = match tool {
        "file_write" => (None, text("content")),
        "file_edit" => (text("old_text"), text("new_text")),
        _ => return Vec::new(),
    };
    let path = text("path").and_then(|path| places::host_path(workspace, path));
    let (Some(path), Some(new)) = (path, new) else { return Vec::new() };
    if old.map_or(0, str::len).saturating_add(new.len()) > MAX_DIFF {
        return Vec::new();
    }
    vec![ToolCallContent::Diff(Diff::new(path, new).old_text(old.map(str::to_owned)))]
}

/// A text as content of a call.
pub(crate) fn text_content(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(clipped_block(text)))
}

/// A text as a block, uncut.
pub(crate) fn whole_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// A text as a block, cut at the limit for updates.
pub(crate) fn clipped_block(text: &str) -> ContentBlock {
    let short = truncate_str(text, MAX_RESULT);
    let text = match text.len() - short.len() {
        0 => short.to_owned(),
        more => format!("{short}\n[cut: {more} bytes more]"),
    };
    ContentBlock::Text(TextContent::new(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_says_what_it_is_about_and_names_files_of_the_workspace_alone() {
        let workspace = Path::new("/w");
        let edit = json!({"path": "/workspace/a.rs", "old_text": "x", "new_text": "y"});
        assert_eq!(call_title("file_edit", &edit), "file_edit /workspace/a.rs");
        assert_eq!(call_locations(&edit, workspace)[0].path, Path::new("/w/a.rs"));
        let diffs_of = |arguments: &Value| call_diffs("file_edit", arguments, workspace);
        let [ToolCallContent::Diff(diff)] = &diffs_of(&edit)[..] else { panic!("no diff") };
        assert_eq!((diff.old_text.as_deref(), diff.new_text.as_str()), (Some("x"), "y"));
        let outside = json!({"path": "/etc/passwd", "old_text": "x", "new_text": "y"});
        assert!(call_locations(&outside, workspace).is_empty() && diffs_of(&outside).is_empty());
        let hidden = json!({"command": "ls\u{1b}[2J\nrm"});
        assert!(!call_title("shell", &hidden).contains('\u{1b}'));
        assert_eq!(call_title("shell", &parse_arguments("no json")), "shell");
    }
}
