//! Converts an agent of any program to belljar's own format.
//!
//! The written form is parsed again and compared: a form with another name, prompt, model, limit or set of
//! tools is refused. For example, `tools: Read` of Claude Code becomes `tools: [file_read]`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use belljar_policy::{CallPermission, LIMITS, ToolName, WriteScope};

use super::{AgentDefinition, KnownTools, ParsedAgentFile, SubagentsAsk, parse_agent};
use crate::{Dialect, Visibility};

/// A file in belljar's own format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalForm {
    /// Frontmatter and body.
    pub text: String,
    /// Names of unavailable tools, which are left out.
    pub left_out: Vec<String>,
}

/// Why an agent cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCanonicalForm {
    /// The file has belljar's format already.
    #[error("it is in belljar's own form already")]
    Already,
    /// The author switched the agent off, which the format cannot express.
    #[error("its author switched it off")]
    Disabled,
    /// The file's statements about tools cannot be parsed, so the converted agent might have more tools.
    #[error("what it says of its tools cannot be read")]
    Unclear,
    /// No tool is available, so the agent could not do its work.
    #[error("none of its tools can be had here")]
    NoTools,
    /// The written form has a different meaning, in this respect.
    #[error("its {0} cannot be written so that it means the same")]
    Differs(&'static str),
}

/// Writes an agent in belljar's own format: tools under belljar's names, the body byte for byte. Never adds a
/// right that the file does not request.
pub fn canonical_form(
    agent: &AgentDefinition,
    known: &KnownTools,
) -> Result<CanonicalForm, NoCanonicalForm> {
    if agent.dialect == Dialect::Canonical {
        return Err(NoCanonicalForm::Already);
    }
    if agent.disabled {
        return Err(NoCanonicalForm::Disabled);
    }
    if !agent.unclear.is_empty() {
        return Err(NoCanonicalForm::Unclear);
    }
    if agent.has_lost_all_tools() {
        return Err(NoCanonicalForm::NoTools);
    }
    let text = write_agent(agent);
    let ParsedAgentFile::Agent { definition, .. } =
        parse_agent(&agent.path, text.as_bytes(), known)
    else {
        return Err(NoCanonicalForm::Differs("text"));
    };
    compare_meaning(agent, &definition, known)?;
    let unavailable = agent.unavailable.iter().map(|tool| tool.name.clone());
    let left_out = agent.unknown_tools.iter().cloned().chain(unavailable).collect();
    Ok(CanonicalForm { text, left_out })
}

/// Writes the agent as frontmatter and body.
fn write_agent(agent: &AgentDefinition) -> String {
    let mut yaml = String::new();
    let mut field = |name: &str, value: String| {
        // Writing to a text cannot fail.
        let _ = writeln!(yaml, "{name}: {value}");
    };
    field("name", quote_text(&agent.name));
    field("description", quote_text(&agent.description));
    write_tools(agent, &mut field);
    if let Some(model) = &agent.model {
        field("model", quote_text(model));
    }
    let limits = &agent.asked.limits;
    if let Some(steps) = limits.get("steps") {
        field("maxTurns", steps.to_string());
    }
    let others = LIMITS.iter().filter(|row| row.key != "steps");
    let others = others.filter_map(|row| Some(format!("{}: {}", row.key, limits.get(row.key)?)));
    let others: Vec<_> = others.collect();
    if !others.is_empty() {
        field("limits", format!("{{ {} }}", others.join(", ")));
    }
    if let Some(hosts) = &agent.asked.hosts {
        let hosts: Vec<_> = hosts.iter().map(|rule| quote_text(&rule.to_string())).collect();
        field("hosts", format!("[{}]", hosts.join(", ")));
    }
    match agent.asked.writes {
        WriteScope::Nowhere => field("readonly", "true".to_owned()),
        WriteScope::Workspace => field("sandbox", "workspace-write".to_owned()),
        WriteScope::Anywhere => {}
    }
    if let Some(subagents) =
        agent.subagents.as_ref().map(format_subagent_fields).filter(|it| !it.is_empty())
    {
        field("subagents", format!("{{ {} }}", subagents.join(", ")));
    }
    if agent.isolated {
        field("isolation", "worktree".to_owned());
    }
    if let Some(tools_as) = agent.tools_as {
        field("toolsAs", tools_as.to_string());
    }
    field("visibility", agent.visibility.to_string());
    format!("---\n{yaml}---\n{}", agent.body)
}

/// Writes the tools: the file's list, or the denials by name, by names for later tools, and for all unnamed
/// tools.
fn write_tools(agent: &AgentDefinition, field: &mut dyn FnMut(&str, String)) {
    let asked = &agent.asked;
    let most = |permission| {
        let rows = asked.at_most.iter().filter(move |(_, most)| **most == permission);
        rows.map(|(tool, _)| tool.as_str())
    };
    if let Some(tools) = &asked.tools {
        field("tools", format_list(tools.iter().map(ToolName::as_str)));
    }
    let all = asked.others.filter(|_| asked.tools.is_none());
    let open = |permission| {
        let open = agent.open_names.iter().filter(move |(_, most)| *most == permission);
        let names: BTreeSet<String> = open.map(|(name, _)| quote_text(name)).collect();
        names.into_iter().filter(|_| asked.tools.is_none())
    };
    if asked.tools.is_none() && all != Some(CallPermission::Deny) {
        let names = most(CallPermission::Deny).map(str::to_owned);
        let names: Vec<_> = names.chain(open(CallPermission::Deny)).collect();
        if !names.is_empty() {
            field("disallowedTools", format!("[{}]", names.join(", ")));
        }
    }
    let mut words = Vec::new();
    words.extend(all.map(|all| format!("\"*\": {all}")));
    words.extend(open(CallPermission::Ask).map(|name| format!("{name}: ask")));
    for (tool, most) in &asked.at_most {
        let said = match all {
            Some(all) => *most != all,
            None => *most == CallPermission::Ask,
        };
        if said && !(*most == CallPermission::Deny && all != Some(CallPermission::Deny)) {
            words.push(format!("{tool}: {most}"));
        }
    }
    if !words.is_empty() {
        field("permission", format!("{{ {} }}", words.join(", ")));
    }
}

/// The limits on delegation as fields of `subagents`.
fn format_subagent_fields(asked: &SubagentsAsk) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(asked.enabled.map(|enabled| format!("enabled: {enabled}")));
    words.extend(asked.max_depth.map(|depth| format!("max_depth: {depth}")));
    words.extend(asked.max_concurrent.map(|most| format!("max_concurrent: {most}")));
    if let Some(agents) = &asked.allowed_agents {
        let names: Vec<_> = agents.iter().map(|name| quote_text(name)).collect();
        words.push(format!("allowed_agents: [{}]", names.join(", ")));
    }
    words
}

/// Whether both definitions have the same meaning.
fn compare_meaning(
    agent: &AgentDefinition,
    written: &AgentDefinition,
    known: &KnownTools,
) -> Result<(), NoCanonicalForm> {
    // A canonical file may only name existing tools, so children's tools do not count.
    let agents = |agent: &AgentDefinition| {
        let asked = agent.subagents.clone().unwrap_or_default();
        SubagentsAsk { allowed_tools: None, ..asked }
    };
    // With a list, an unlisted tool is denied, whatever other fields state.
    let open = |agent: &AgentDefinition| {
        let open = agent.open_names.iter().cloned().collect::<BTreeSet<_>>();
        agent.asked.tools.is_none().then_some((agent.asked.others, open))
    };
    let same = [
        ("name", agent.name == written.name && agent.slug == written.slug),
        ("description", agent.description == written.description),
        ("body", agent.body == written.body),
        ("model", agent.model == written.model),
        ("visibility", agent.visibility == written.visibility),
        ("limits", agent.asked.limits == written.asked.limits),
        ("mounts", agent.asked.mounts == written.asked.mounts),
        ("hosts", agent.asked.hosts == written.asked.hosts),
        ("writing", agent.asked.writes == written.asked.writes),
        ("tools that are installed later", open(agent) == open(written)),
        ("subagents", agents(agent) == agents(written)),
        ("list of tools", have_same_tools(agent, written, known)),
        (
            "form",
            written.dialect == Dialect::Canonical && Visibility::ALL.contains(&agent.visibility),
        ),
    ];
    match same.iter().find(|(_, same)| !same) {
        Some((what, _)) => Err(NoCanonicalForm::Differs(what)),
        None => Ok(()),
    }
}

/// Whether both definitions permit the same known tools, and either both or neither have a list.
fn have_same_tools(agent: &AgentDefinition, written: &AgentDefinition, known: &KnownTools) -> bool {
    let may = |agent: &AgentDefinition, tool: &ToolName| {
        let named = agent.asked.tools.as_ref().is_none_or(|tools| tools.contains(tool));
        if named { agent.asked.highest_permission(tool.as_str()) } else { CallPermission::Deny }
    };
    agent.asked.tools.is_some() == written.asked.tools.is_some()
        && known.iter().all(|tool| may(agent, tool) == may(written, tool))
}

fn format_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    format!("[{}]", names.join(", "))
}

/// A text in double quotes, with every character escaped that YAML or a reader could misinterpret.
fn quote_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let plain =
            c == ' ' || c.is_alphanumeric() || (c.is_ascii_graphic() && !matches!(c, '"' | '\\'));
        let emoji = matches!(u32::from(c), 0x2010..=0x2027 | 0x2030..=0x205e | 0x2190..=0x2bff | 0x1f300..=0x1faff);
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\n' => write!(out, "\\n"),
            '\t' => write!(out, "\\t"),
            c if plain || emoji => write!(out, "{c}"),
            c => match u32::from(c) {
                n @ 0..=0xff => write!(out, "\\x{n:02x}"),
                n @ 0x100..=0xffff => write!(out, "\\u{n:04x}"),
                n => write!(out, "\\U{n:08x}"),
            },
        };
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_so_that_yaml_reads_them_back() {
        for text in [
            "a: b # c",
            "\"q\" \\n",
            "l\n\tm\r",
            "\u{202e}\u{85}\u{2028}\u{feff}",
            "emoji \u{1f680} caf\u{e9}",
            "\u{1}\u{7f}",
        ] {
            let yaml = format!("a: {}", quote_text(text));
            let root = crate::yaml::parse_document(&yaml, 1).unwrap();
            let crate::yaml::YamlValue::Map(map) = root.value else { panic!("{yaml}") };
            assert_eq!(map[0].1.as_text(), Some(text), "{yaml}");
        }
    }
}
