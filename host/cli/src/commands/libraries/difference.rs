//! The changes that an update makes, agent by agent: rights first.

use std::collections::{BTreeMap, BTreeSet};

use belljar_definition::{AgentDefinition, Slug};
use belljar_policy::{LIMITS, ShownText};
use belljar_work::StopSignal;
use serde_json::{Value, json};

use super::report;
use super::vetting::{SourceAgent, VettedSource};
use crate::term::out::{TerminalOutput, TextStyle};

/// The most bytes of two prompts whose lines are compared; for longer prompts, only the fact of a difference is
/// reported.
const MAX_COMPARED: usize = 200_000;

/// The difference between an installed library and its source now.
pub(super) struct LibraryDifference<'a> {
    pub(super) added: Vec<&'a SourceAgent>,
    pub(super) removed: Vec<&'a SourceAgent>,
    pub(super) changed: Vec<ChangedAgent<'a>>,
}

/// An agent of the installed library and of its source, with different files.
pub(super) struct ChangedAgent<'a> {
    pub(super) new: &'a SourceAgent,
    /// The differences as lines, for example `+ asks: x` for a new request and `- asks: y` for a removed one.
    pub(super) lines: Vec<String>,
}

impl<'a> LibraryDifference<'a> {
    pub(super) fn compare_versions(old: &'a VettedSource, new: &'a VettedSource) -> Self {
        let (old, new) = (index_agents(old), index_agents(new));
        let only = |these: &BTreeMap<&Slug, &'a SourceAgent>,
                    others: &BTreeMap<&Slug, &'a SourceAgent>| {
            let these = these.iter().filter(|(slug, _)| !others.contains_key(*slug));
            these.map(|(_, agent)| *agent).collect()
        };
        let mut changed = Vec::new();
        for (slug, new) in &new {
            let Some(old) = old.get(slug) else { continue };
            if old.file.bytes != new.file.bytes {
                changed.push(ChangedAgent { new, lines: agent_difference(old, new) });
            }
        }
        Self { added: only(&new, &old), removed: only(&old, &new), changed }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// The agents whose text nobody has agreed to yet.
    pub(super) fn new_texts(&self) -> impl Iterator<Item = &'a SourceAgent> {
        self.added.iter().copied().chain(self.changed.iter().map(|changed| changed.new))
    }

    pub(super) fn print_difference(&self, out: &TerminalOutput) {
        if !self.added.is_empty() {
            out.print_line(out.paint(TextStyle::Bold, "added"));
            report::print_agents(self.added.iter().copied(), out);
            out.print_line("");
        }
        if !self.removed.is_empty() {
            let names: Vec<String> =
                self.removed.iter().map(|agent| agent.resolved.id.slug.to_string()).collect();
            out.print_line(format_args!(
                "{} {}",
                out.paint(TextStyle::Bold, "removed"),
                names.join(", ")
            ));
            out.print_line("");
        }
        for ChangedAgent { new, lines } in &self.changed {
            let word = out.paint(TextStyle::Bold, "changed");
            out.print_line(format_args!("{word} {}", new.resolved.id.slug));
            for line in lines {
                let style = match line.trim_start().as_bytes().first() {
                    Some(b'+') => TextStyle::Yellow,
                    Some(b'-') => TextStyle::Green,
                    _ => TextStyle::Dim,
                };
                out.print_line(format_args!("  {}", out.paint(style, line)));
            }
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let ids = |agents: &[&SourceAgent]| {
            agents.iter().map(|agent| agent.resolved.id.to_string()).collect::<Vec<_>>()
        };
        let changed = self.changed.iter().map(
            |ChangedAgent { new, lines }| json!({ "agent": report::agent_json(new), "differences": lines }),
        );
        json!({
            "added": self.added.iter().map(|agent| report::agent_json(agent)).collect::<Vec<_>>(),
            "removed": ids(&self.removed),
            "changed": changed.collect::<Vec<_>>(),
        })
    }
}

fn index_agents(vetted: &VettedSource) -> BTreeMap<&Slug, &SourceAgent> {
    vetted.agents.iter().map(|agent| (&agent.resolved.id.slug, agent)).collect()
}

/// Lists the differences between two versions of an agent: rights first, then description and prompt.
pub(in crate::commands) fn agent_difference(old: &SourceAgent, new: &SourceAgent) -> Vec<String> {
    let mut lines = Vec::new();
    push_signed_lines(
        "asks",
        &old.resolved.list_requests(),
        &new.resolved.list_requests(),
        &mut lines,
    );
    push_signed_lines("gets", &old.resolved.list_rights(), &new.resolved.list_rights(), &mut lines);
    let status = |agent: &SourceAgent| vec![agent.resolved.status.as_str().to_owned()];
    push_signed_lines("status", &status(old), &status(new), &mut lines);
    let (before, after) = (&old.resolved.definition, &new.resolved.definition);
    push_signed_lines("model", &model_words(before), &model_words(after), &mut lines);
    push_signed_lines("limits", &limit_words(before), &limit_words(after), &mut lines);
    let visibility = |it: &AgentDefinition| vec![it.visibility.to_string()];
    push_signed_lines("visibility", &visibility(before), &visibility(after), &mut lines);
    push_signed_lines("may call", &delegate_words(before), &delegate_words(after), &mut lines);
    let rights = lines.len();
    if before.description != after.description {
        let words = ShownText::clip_line(&after.description, 200);
        lines.push(format!("description: {words}"));
    }
    if before.body != after.body {
        lines.push(format!("prompt: {}", line_difference(&before.body, &after.body)));
    }
    if rights == 0 {
        lines.insert(0, "the same rights".to_owned());
    }
    lines
}

/// `+ asks: x` and `- asks: y`.
fn push_signed_lines(what: &str, old: &[String], new: &[String], lines: &mut Vec<String>) {
    let (old, new): (BTreeSet<&String>, BTreeSet<&String>) =
        (old.iter().collect(), new.iter().collect());
    lines.extend(new.difference(&old).map(|it| format!("+ {what}: {it}")));
    lines.extend(old.difference(&new).map(|it| format!("- {what}: {it}")));
}

fn model_words(definition: &AgentDefinition) -> Vec<String> {
    definition.model.iter().map(|model| ShownText::clip_line(model, 80).to_string()).collect()
}

fn limit_words(definition: &AgentDefinition) -> Vec<String> {
    let asked = &definition.asked.limits;
    let rows = LIMITS.iter().filter_map(|row| Some((row.key, asked.get(row.key)?)));
    rows.map(|(key, value)| format!("{key} = {value}")).collect()
}

fn delegate_words(definition: &AgentDefinition) -> Vec<String> {
    let Some(said) = &definition.subagents else { return Vec::new() };
    let named = said.allowed_agents.iter().flatten();
    let mut all: Vec<String> =
        named.map(|name| ShownText::clip_line(name, 80).to_string()).collect();
    if said.allowed_agents.is_none() && said.enabled != Some(false) {
        all.push("everybody".to_owned());
    }
    all
}

/// The number of lines that a text has more and less.
pub(in crate::commands) fn line_difference(old: &str, new: &str) -> String {
    if old.len() + new.len() > MAX_COMPARED {
        return "another text".to_owned();
    }
    // The work is bounded, so no stop signal is needed.
    match belljar_overlay::changed_lines(
        old.as_bytes(),
        new.as_bytes(),
        &StopSignal::never_raised(),
    ) {
        Ok((added, removed)) => format!("{added} lines more, {removed} lines less"),
        Err(_) => "another text".to_owned(),
    }
}
