//! The changes that an update makes, agent by agent: rights first.

use std::collections::{BTreeMap, BTreeSet};

use belljar_definition::{AgentDefinition, Slug};
use belljar_policy::{LIMITS, Shown};
use belljar_work::StopSignal;
use serde_json::{Value, json};

use super::report;
use super::vetting::{Agent, Vetted};
use crate::term::out::{Out, Style};

/// Bytes of two prompts whose lines are compared; longer ones are only said to differ.
const MAX_COMPARED: usize = 200_000;

/// The difference between an installed library and its source now.
pub(super) struct Difference<'a> {
    pub(super) added: Vec<&'a Agent>,
    pub(super) removed: Vec<&'a Agent>,
    pub(super) changed: Vec<Changed<'a>>,
}

/// An agent that is in both, with another text.
pub(super) struct Changed<'a> {
    pub(super) new: &'a Agent,
    /// One line each, `+` for a new and `-` for a removed one.
    pub(super) lines: Vec<String>,
}

impl<'a> Difference<'a> {
    pub(super) fn of(old: &'a Vetted, new: &'a Vetted) -> Self {
        let (old, new) = (by_name(old), by_name(new));
        let only = |these: &BTreeMap<&Slug, &'a Agent>, others: &BTreeMap<&Slug, &'a Agent>| {
            let these = these.iter().filter(|(slug, _)| !others.contains_key(*slug));
            these.map(|(_, agent)| *agent).collect()
        };
        let mut changed = Vec::new();
        for (slug, new) in &new {
            let Some(old) = old.get(slug) else { continue };
            if old.file.bytes != new.file.bytes {
                changed.push(Changed { new, lines: lines(old, new) });
            }
        }
        Self { added: only(&new, &old), removed: only(&old, &new), changed }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// The agents whose text nobody has agreed to yet.
    pub(super) fn new_texts(&self) -> impl Iterator<Item = &'a Agent> {
        self.added.iter().copied().chain(self.changed.iter().map(|changed| changed.new))
    }

    pub(super) fn show(&self, out: &Out) {
        if !self.added.is_empty() {
            out.line(out.paint(Style::Bold, "added"));
            report::agents(self.added.iter().copied(), out);
            out.line("");
        }
        if !self.removed.is_empty() {
            let names: Vec<String> =
                self.removed.iter().map(|agent| agent.resolved.id.slug.to_string()).collect();
            out.line(format_args!("{} {}", out.paint(Style::Bold, "removed"), names.join(", ")));
            out.line("");
        }
        for Changed { new, lines } in &self.changed {
            let word = out.paint(Style::Bold, "changed");
            out.line(format_args!("{word} {}", new.resolved.id.slug));
            for line in lines {
                let style = match line.trim_start().as_bytes().first() {
                    Some(b'+') => Style::Yellow,
                    Some(b'-') => Style::Green,
                    _ => Style::Dim,
                };
                out.line(format_args!("  {}", out.paint(style, line)));
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        let ids = |agents: &[&Agent]| {
            agents.iter().map(|agent| agent.resolved.id.to_string()).collect::<Vec<_>>()
        };
        let changed = self.changed.iter().map(
            |Changed { new, lines }| json!({ "agent": report::agent(new), "differences": lines }),
        );
        json!({
            "added": self.added.iter().map(|agent| report::agent(agent)).collect::<Vec<_>>(),
            "removed": ids(&self.removed),
            "changed": changed.collect::<Vec<_>>(),
        })
    }
}

fn by_name(vetted: &Vetted) -> BTreeMap<&Slug, &Agent> {
    vetted.agents.iter().map(|agent| (&agent.resolved.id.slug, agent)).collect()
}

/// The differences, rights before words.
fn lines(old: &Agent, new: &Agent) -> Vec<String> {
    let mut lines = Vec::new();
    signed("asks", &old.resolved.asks(), &new.resolved.asks(), &mut lines);
    signed("gets", &old.resolved.gets(), &new.resolved.gets(), &mut lines);
    let status = |agent: &Agent| vec![agent.resolved.status.as_str().to_owned()];
    signed("status", &status(old), &status(new), &mut lines);
    let (before, after) = (&old.resolved.definition, &new.resolved.definition);
    signed("model", &model(before), &model(after), &mut lines);
    signed("limits", &limits(before), &limits(after), &mut lines);
    let visibility = |it: &AgentDefinition| vec![it.visibility.to_string()];
    signed("visibility", &visibility(before), &visibility(after), &mut lines);
    signed("may call", &delegates(before), &delegates(after), &mut lines);
    let rights = lines.len();
    if before.description != after.description {
        let words = Shown::clipped(&after.description, 200);
        lines.push(format!("description: {words}"));
    }
    if before.body != after.body {
        lines.push(body(&before.body, &after.body));
    }
    if rights == 0 {
        lines.insert(0, "the same rights".to_owned());
    }
    lines
}

/// `+ asks: x` and `- asks: y`.
fn signed(what: &str, old: &[String], new: &[String], lines: &mut Vec<String>) {
    let (old, new): (BTreeSet<&String>, BTreeSet<&String>) =
        (old.iter().collect(), new.iter().collect());
    lines.extend(new.difference(&old).map(|it| format!("+ {what}: {it}")));
    lines.extend(old.difference(&new).map(|it| format!("- {what}: {it}")));
}

fn model(definition: &AgentDefinition) -> Vec<String> {
    definition.model.iter().map(|model| Shown::clipped(model, 80).to_string()).collect()
}

fn limits(definition: &AgentDefinition) -> Vec<String> {
    let asked = &definition.asked.limits;
    let rows = LIMITS.iter().filter_map(|row| Some((row.key, asked.get(row.key)?)));
    rows.map(|(key, value)| format!("{key} = {value}")).collect()
}

fn delegates(definition: &AgentDefinition) -> Vec<String> {
    let Some(said) = &definition.subagents else { return Vec::new() };
    let named = said.allowed_agents.iter().flatten();
    let mut all: Vec<String> = named.map(|name| Shown::clipped(name, 80).to_string()).collect();
    if said.allowed_agents.is_none() && said.enabled != Some(false) {
        all.push("everybody".to_owned());
    }
    all
}

fn body(old: &str, new: &str) -> String {
    if old.len() + new.len() > MAX_COMPARED {
        return "prompt: another text".to_owned();
    }
    // The work is bounded, so no stop signal is needed.
    match belljar_changes::changed_lines(old.as_bytes(), new.as_bytes(), &StopSignal::never()) {
        Ok((added, removed)) => format!("prompt: {added} lines more, {removed} lines less"),
        Err(_) => "prompt: another text".to_owned(),
    }
}
