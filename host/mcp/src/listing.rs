//! The tools that a server offers, checked: they are a stranger's texts, which every later request to a model
//! repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use belljar_policy::{ShownText, ToolName};
use belljar_sandbox::{DescribeLimits, Digest, check_words};
use belljar_work::{StopSignal, WorkKind, WorkStopped};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exchange::ExchangeFault;
use crate::limits::MAX_TOOLS;
use crate::pages::ToolPages;
use crate::parameters;
use crate::revision::ProtocolRevision;

/// The kind of work, for its time limit: checking a server's list.
const CHECKING: WorkKind =
    WorkKind { name: "checking the tools of an MCP server", time: Duration::from_secs(20) };

/// The most characters of an invalid name in an error.
const MAX_NAME: usize = 80;

/// Separators that are allowed in a server's names of tools; each is replaced by `_`.
const SEPARATORS: [char; 3] = ['.', '/', ':'];

/// One tool of a server. Other fields of the server's description are dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedTool {
    /// The tool's name on the server, for example `calendar.list`.
    pub name: String,
    /// The description that models read.
    pub description: String,
    /// The JSON Schema of the arguments, which must describe an object.
    pub schema: Value,
}

impl ListedTool {
    /// Parses the arguments of a call for this tool, with integers where the schema has integers (INV-500).
    /// Invalid JSON becomes `null`.
    pub(crate) fn read_arguments(&self, arguments: &str) -> Value {
        let arguments = belljar_received::json::mend_text(arguments);
        let arguments = belljar_received::whole::by_schema(&arguments, &self.schema);
        serde_json::from_str(&arguments).unwrap_or_default()
    }
}

/// The tools that a server lists, usable and unusable ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolListing {
    /// The usable tools, sorted by name; each name occurs once.
    pub tools: Vec<ListedTool>,
    /// The tools that no agent can be granted.
    pub left_out: Vec<LeftOut>,
    /// The MCP revision that the server uses.
    pub revision: ProtocolRevision,
}

/// A tool that no agent can be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name, escaped, for example `calendar.list`.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// The differences between a server's list and the accepted tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListingDifference {
    /// Tools that are new.
    pub added: Vec<ListedTool>,
    /// Tools whose descriptions differ, each as accepted and as it is now.
    pub changed: Vec<(ListedTool, ListedTool)>,
    /// The removed tools.
    pub removed: Vec<ListedTool>,
}

impl ListedTool {
    /// The tool's name in agents and grants: `mcp__SERVER__TOOL`. Servers allow `.`, `/` and `:` in names,
    /// but providers of models do not, so each becomes `_`. For example, `calendar.list` of the server `work`
    /// is `mcp__work__calendar_list`.
    ///
    /// # Errors
    /// When the name is too long, or has characters that MCP does not allow.
    pub fn own_name(&self, server: &str) -> Result<ToolName, String> {
        let name = format!("mcp__{server}__{}", self.mapped_name());
        // A name such as `../x` has empty parts, and is refused.
        let parts = self.name.split(SEPARATORS).all(|part| !part.is_empty());
        ToolName::new(&name).ok().filter(|_| parts).ok_or_else(|| {
            "its name has to be of letters, digits, `_` and `-`, with single `.`, `/` or `:` between them, and \
             with the server's at most 57 in all"
                .to_owned()
        })
    }

    /// The server's name of the tool with each separator replaced by `_`.
    fn mapped_name(&self) -> String {
        self.name.replace(SEPARATORS, "_")
    }

    /// A digest of the description and schema that a model reads. The order of keys in the schema does not
    /// matter.
    pub fn digest(&self) -> Digest {
        let mut text = String::new();
        for part in [&self.name, &self.description] {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{}:{part}", part.len());
        }
        write_ordered(&self.schema, &mut text);
        Digest::hash_bytes(text.as_bytes())
    }
}

impl ToolListing {
    /// Checks the entries of a server's list. An invalid entry is left out alone. Entries with equal names
    /// are all left out, because the server could answer for any of them.
    pub(crate) fn from_entries(
        server: &str,
        entries: &[Value],
        stop: &StopSignal,
    ) -> Result<Self, WorkStopped> {
        let mut listing = Self::default();
        let mut found: BTreeMap<String, Vec<Result<ListedTool, String>>> = BTreeMap::new();
        for entry in entries {
            stop.check_raised()?;
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            found.entry(name.to_owned()).or_default().push(parse_tool(server, name, entry));
        }
        for (name, mut tools) in found {
            let shown = ShownText::clip_line(&name, MAX_NAME).to_string();
            let tool = match tools.pop() {
                Some(tool) if tools.is_empty() => tool,
                Some(_) | None => Err("the server lists several tools of this name".to_owned()),
            };
            match tool {
                Ok(tool) => listing.tools.push(tool),
                Err(why) => listing.left_out.push(LeftOut { name: shown, why }),
            }
        }
        listing.leave_out_mapped_twins();
        Ok(listing)
    }

    /// Builds a listing from all pages of a list. Only the first [`MAX_TOOLS`] tools in the server's order
    /// are used; one entry of [`ToolListing::left_out`] states how many more there are.
    pub(crate) fn from_pages(
        server: &str,
        pages: ToolPages,
        stop: &StopSignal,
    ) -> Result<Self, WorkStopped> {
        let (mut entries, unread) = pages.into_entries();
        // A server that ignores cursors returns its first page again, so equal entries count once.
        let mut seen = BTreeSet::new();
        entries.retain(|entry| seen.insert(entry.to_string()));
        stop.check_raised()?;
        let rest = entries.split_off(entries.len().min(MAX_TOOLS));
        let mut listing = Self::from_entries(server, &entries, stop)?;
        if let Some(first) = rest.first() {
            let name = first.get("name").and_then(Value::as_str).unwrap_or_default();
            let beyond = rest.len().saturating_add(unread).saturating_sub(1);
            let why = format!(
                "and {beyond} more behind it: of one server the first {MAX_TOOLS} tools of its list are taken; \
                 let the server list fewer, or split it"
            );
            let name = ShownText::clip_line(name, MAX_NAME).to_string();
            listing.left_out.push(LeftOut { name, why });
        }
        Ok(listing)
    }

    /// Like [`ToolListing::from_pages`], on a thread for blocking work that is counted for the server,
    /// because a list may contain megabytes of schemas to check.
    pub(crate) async fn check_pages(server: &str, pages: ToolPages) -> Result<Self, ExchangeFault> {
        let (name, owner) = (server.to_owned(), format!("mcp/{server}"));
        let work = move |stop: &StopSignal| Self::from_pages(&name, pages, stop);
        match belljar_work::run_job(&CHECKING, &owner, work).await {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(_)) | Err(_) => Err(ExchangeFault::Broken("its tools took too long to check")),
        }
    }

    /// Leaves out tools whose names become equal, for example `a.b_c` and `a.b.c`. A tool whose name needs no
    /// change keeps it.
    fn leave_out_mapped_twins(&mut self) {
        let mut owners: BTreeMap<String, usize> = BTreeMap::new();
        for tool in &self.tools {
            *owners.entry(tool.mapped_name()).or_default() += 1;
        }
        let exact: BTreeSet<String> = self.tools.iter().map(|tool| tool.name.clone()).collect();
        let (kept, twins) = std::mem::take(&mut self.tools).into_iter().partition(|tool| {
            let mapped = tool.mapped_name();
            tool.name == mapped || (!exact.contains(&mapped) && owners.get(&mapped) == Some(&1))
        });
        self.tools = kept;
        self.left_out.extend(Vec::into_iter(twins).map(|tool: ListedTool| LeftOut {
            why: format!("another tool of the server is `{}` here too", tool.mapped_name()),
            name: tool.name,
        }));
    }

    /// The digest of each tool, by the tool's name on the server.
    pub(crate) fn tool_digests(&self) -> BTreeMap<String, Digest> {
        self.tools.iter().map(|tool| (tool.name.clone(), tool.digest())).collect()
    }

    /// Compares this listing with the accepted tools.
    pub fn diff_accepted(&self, accepted: &[ListedTool]) -> ListingDifference {
        let mut difference = ListingDifference::default();
        for tool in &self.tools {
            match accepted.iter().find(|it| it.name == tool.name) {
                None => difference.added.push(tool.clone()),
                Some(before) if before.digest() != tool.digest() => {
                    difference.changed.push((before.clone(), tool.clone()));
                }
                Some(_) => {}
            }
        }
        let now: BTreeSet<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let gone = accepted.iter().filter(|tool| !now.contains(tool.name.as_str()));
        difference.removed = gone.cloned().collect();
        difference
    }
}

impl ListingDifference {
    /// Returns whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Parses and checks one entry of a server's list.
fn parse_tool(server: &str, name: &str, entry: &Value) -> Result<ListedTool, String> {
    let words = entry.get("description").and_then(Value::as_str).map(str::trim);
    let description = match words {
        Some(words) if !words.is_empty() => words.to_owned(),
        Some(_) | None => format!("A tool of the MCP server `{server}`, which says nothing of it."),
    };
    let schema = entry.get("inputSchema").ok_or("it has no schema of its arguments")?;
    let tool = ListedTool { name: name.to_owned(), description, schema: schema.clone() };
    check_tool(&tool, server)?;
    Ok(tool)
}

/// How a tool of the server's present list differs from the accepted one, by their digests (INV-311); `None`
/// if it does not.
pub(crate) fn tool_change(
    now: &BTreeMap<String, Digest>,
    tool: &ListedTool,
) -> Option<&'static str> {
    match now.get(&tool.name) {
        Some(digest) if *digest == tool.digest() => None,
        Some(_) => Some("is described otherwise than when it was accepted"),
        None => Some("is not offered any more"),
    }
}

/// Checks whether a tool can be granted at all. Accepted tools are checked again, because their file may have
/// been edited.
pub(crate) fn check_tool(tool: &ListedTool, server: &str) -> Result<(), String> {
    tool.own_name(server)?;
    parameters::check_headers(&tool.schema)?;
    let limits = DescribeLimits::default();
    check_words(&tool.description, &tool.schema.to_string(), &limits).map(drop)
}

/// Writes a value as text, with the keys of objects sorted.
fn write_ordered(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            text.push('{');
            for (key, value) in sorted {
                let _ = write!(text, "{}:", Value::from(key.as_str()));
                write_ordered(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_ordered(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(text, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listing(server: &str, entries: &[Value]) -> ToolListing {
        ToolListing::from_entries(server, entries, &StopSignal::never_raised()).unwrap()
    }

    fn entry(name: &str, description: &str) -> Value {
        json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn what_is_wrong_with_one_tool_leaves_out_that_one_alone() {
        let schema =
            |schema: Value| json!({"name": "s", "description": "d", "inputSchema": schema});
        let wrong = [
            (entry("a b", "d"), "its name"),
            (entry("", "d"), "its name"),
            (entry("../../etc/passwd", "d"), "its name"),
            (entry("a//b", "d"), "its name"),
            (entry("a.", "d"), "its name"),
            (entry("a\u{202e}b", "d"), "its name"),
            (entry("é", "d"), "its name"),
            (entry(&"n".repeat(60), "d"), "its name"),
            (entry("h", "read\u{200b} only"), "hidden character"),
            (entry("h", "x\u{1b}[2J"), "hidden character"),
            (entry("h", "\u{e0041}\u{e0042}"), "hidden character"),
            (entry("l", &"x".repeat(17 << 10)), "bytes"),
            (json!({"name": "s"}), "no schema"),
            (schema(json!([])), "not of an object"),
            (schema(json!({"type": "string"})), "not of an object"),
            (schema(json!({"type": "object", "title": "\u{202e}"})), "hidden character"),
            (schema(json!({"type": "object", "properties": 3})), "JSON Schema"),
            (schema(json!({"type": "object", "x": "y".repeat(65 << 10)})), "bytes"),
        ];
        for (wrong, part) in wrong {
            let listing = listing("s", &[entry("good", "d"), wrong.clone()]);
            let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(names, ["good"], "{wrong}");
            let why = &listing.left_out[0].why;
            assert!(why.contains(part), "{why} should say {part}");
            assert!(!listing.left_out[0].name.contains('\u{202e}'));
        }
        let twice = listing("s", &[entry("a", "one"), entry("b", "d"), entry("a", "two")]);
        assert_eq!((twice.tools.len(), twice.left_out[0].name.as_str()), (1, "a"));
    }

    fn pages(count: usize) -> ToolPages {
        let entries: Vec<Value> = (0..count).map(|n| entry(&format!("t{n}"), "d")).collect();
        let mut pages = ToolPages::default();
        pages.take_page(&mut json!({"tools": entries})).unwrap();
        pages
    }

    /// INV-483: the list is checked on a thread for blocking work.
    #[tokio::test]
    async fn a_list_of_tools_is_checked_beside_the_async_workers_and_ends_with_its_signal() {
        // All threads that one server may use are busy.
        let (begun, mut held) = tokio::sync::mpsc::channel(8);
        let jobs: Vec<_> = (0..belljar_work::MAX_RUNNING_PER_OWNER)
            .map(|_| {
                let begun = begun.clone();
                tokio::spawn(belljar_work::run_job(&CHECKING, "mcp/held", move |stop| {
                    begun.blocking_send(()).unwrap();
                    while !stop.is_raised() {
                        std::thread::yield_now();
                    }
                }))
            })
            .collect();
        for _ in &jobs {
            held.recv().await.unwrap();
        }
        let waits = tokio::spawn(ToolListing::check_pages("held", pages(2)));
        let other = ToolListing::check_pages("other", pages(3)).await.unwrap();
        assert_eq!(other.tools.len(), 3);
        assert!(!waits.is_finished(), "it has no thread yet");
        jobs.iter().for_each(tokio::task::JoinHandle::abort);
        assert_eq!(waits.await.unwrap().unwrap().tools.len(), 2);
        let stop = StopSignal::never_raised();
        stop.raise();
        assert_eq!(ToolListing::from_pages("s", pages(2), &stop), Err(WorkStopped));
    }

    #[test]
    fn every_word_that_a_model_reads_is_pinned_and_the_order_of_keys_is_not() {
        let tool = |description: &str, schema: &str| ListedTool {
            name: "a".to_owned(),
            description: description.to_owned(),
            schema: serde_json::from_str(schema).unwrap(),
        };
        let one = tool("d", r#"{"type":"object","properties":{"x":{"type":"string"},"y":{}}}"#);
        let same = tool("d", r#"{"properties":{"y":{},"x":{"type":"string"}},"type":"object"}"#);
        assert_eq!(one.digest(), same.digest());
        for other in [
            tool("D", r#"{"type":"object","properties":{"x":{"type":"string"},"y":{}}}"#),
            tool("d", r#"{"type":"object","properties":{"x":{"type":"number"},"y":{}}}"#),
            tool("d", r#"{"type":"object","properties":{"x":{"type":"string"}},"y":{}}"#),
        ] {
            assert_ne!(one.digest(), other.digest());
        }
    }

    #[test]
    fn a_name_with_dots_or_slashes_is_mapped_and_no_two_tools_share_one() {
        let names =
            ["calendar.list", "a.b_c", "a_b/c", "c.d", "c_d", "bad name", "files/read", "ns:do"];
        let entries: Vec<Value> = names.iter().map(|name| entry(name, "d")).collect();
        let listing = listing("s", &entries);
        let own = listing.tools.iter().map(|tool| tool.own_name("s").unwrap().to_string());
        assert_eq!(
            own.collect::<Vec<_>>(),
            ["mcp__s__c_d", "mcp__s__calendar_list", "mcp__s__files_read", "mcp__s__ns_do"]
        );
        let left: Vec<&str> = listing.left_out.iter().map(|left| left.name.as_str()).collect();
        assert_eq!(left, ["bad name", "a.b_c", "a_b/c", "c.d"]);
    }

    #[test]
    fn a_server_that_answers_its_first_page_again_lists_each_tool_once() {
        let page = || json!({"tools": [entry("a", "d"), entry("b", "d")], "nextCursor": "same"});
        let mut pages = ToolPages::default();
        assert!(pages.take_page(&mut page()).unwrap().is_some());
        assert_eq!(pages.take_page(&mut page()).unwrap(), None);
        let listing = ToolListing::from_pages("s", pages, &StopSignal::never_raised()).unwrap();
        assert_eq!((listing.tools.len(), listing.left_out.len()), (2, 0), "{listing:?}");
    }

    #[test]
    fn of_many_tools_the_first_are_taken_and_the_rest_is_told() {
        let entries: Vec<Value> = (0..300).map(|n| entry(&format!("t{n}"), "d")).collect();
        let mut pages = ToolPages::default();
        pages.take_page(&mut serde_json::json!({"tools": entries})).unwrap();
        let listing = ToolListing::from_pages("s", pages, &StopSignal::never_raised()).unwrap();
        assert_eq!(listing.tools.len(), MAX_TOOLS);
        assert!(listing.tools.iter().any(|tool| tool.name == "t127"));
        let [rest] = listing.left_out.as_slice() else { panic!("{:?}", listing.left_out) };
        assert_eq!(rest.name, "t128");
        assert!(rest.why.starts_with("and 171 more behind it"), "{}", rest.why);
    }

    #[test]
    fn a_difference_names_what_is_new_what_is_other_and_what_is_gone() {
        let before = listing("s", &[entry("a", "1"), entry("b", "1"), entry("c", "1")]);
        let now = listing("s", &[entry("a", "1"), entry("b", "2"), entry("d", "1")]);
        let difference = now.diff_accepted(&before.tools);
        assert_eq!(difference.added[0].name, "d");
        assert_eq!(difference.changed[0].1.description, "2");
        assert_eq!(difference.removed[0].name, "c");
        assert!(before.diff_accepted(&before.tools).is_empty());
    }
}
