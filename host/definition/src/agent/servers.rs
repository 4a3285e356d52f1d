//! Reads `mcpServers` of a stranger's file: servers whose tools the agent requests beside its list. Like the
//! list, the field only requests; the operator configures the server, accepts its tools and grants them.

use belljar_policy::ToolName;

use super::tool_list::ToolList;
use super::tools::KnownTools;
use crate::fields::UnreadFields;
use crate::yaml::{YamlNode, YamlValue};

const FIELD: &str = "mcpServers";

/// Adds the tools of the named servers to the agent's list, if there is one and it is not empty. Without a
/// list an agent has all granted tools anyway, and an empty list means none.
pub(super) fn add_server_tools(
    fields: &mut UnreadFields<'_, '_>,
    known: &KnownTools,
    tools: &mut ToolList,
) {
    let Some(asked) = tools.tools.as_mut().filter(|asked| !asked.is_empty()) else { return };
    // Without any configured server, the field is reported as not honoured, like the others.
    if !known.iter().any(|tool| tool.as_str().starts_with("mcp__")) {
        return;
    }
    let Some((key, node)) = fields.take_field(FIELD) else { return };
    for name in server_names(&node) {
        let own: Vec<ToolName> = known.server_tools(&format!("mcp__{name}"));
        if own.is_empty() {
            let name = belljar_policy::ShownText::clip_line(name, 60);
            let message = format!("`{FIELD}` names `{name}`, of which nothing was accepted here");
            fields.findings.warning(key.at, "not-honoured", message, None);
        }
        asked.extend(own);
    }
}

/// The names of servers. How the file would start them is ignored.
fn server_names(node: &YamlNode) -> Vec<&str> {
    match &node.value {
        YamlValue::List(items) => items.iter().flat_map(server_names).collect(),
        YamlValue::Map(entries) => entries.iter().map(|(key, _)| key.text.as_str()).collect(),
        YamlValue::Text(text) => vec![text.as_str()],
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::Int(_) | YamlValue::Float => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{ParsedAgentFile, parse_agent};

    /// The requested tools of an agent file with these fields.
    fn asks(fields: &str) -> Option<Vec<String>> {
        let known = ["file_read", "mcp__a__x", "mcp__a__y", "mcp__b__z"];
        let known = KnownTools::new(known.map(|name| ToolName::new(name).unwrap()));
        let text = format!("---\nname: s\ndescription: d\ncolor: blue\n{fields}\n---\nbody");
        match parse_agent(Path::new("agents/s.md"), text.as_bytes(), &known) {
            ParsedAgentFile::Agent { definition, .. } => {
                let tools = definition.asked.tools?;
                Some(tools.iter().map(ToString::to_string).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_asks_for_the_tools_of_servers_beside_its_list_and_never_against_it() {
        let with = |more: &str| asks(&format!("tools: Read\nmcpServers: {more}")).unwrap();
        assert_eq!(with("[a]"), ["file_read", "mcp__a__x", "mcp__a__y"]);
        assert_eq!(with("{b: {command: sh, args: [-c, id]}}"), ["file_read", "mcp__b__z"]);
        assert_eq!(with("[none, '*', a__x, '']"), ["file_read"]);
        assert_eq!(asks("mcpServers: [a]"), None, "nothing is narrowed");
        assert_eq!(asks("tools: []\nmcpServers: [a]"), Some(Vec::new()));
        let denied = asks("tools: Read\ndisallowedTools: mcp__a\nmcpServers: [a, b]");
        assert_eq!(denied.unwrap(), ["file_read", "mcp__b__z"]);
        assert_eq!(asks("tools: Read, mcp__a__*").unwrap().len(), 3);
    }
}
