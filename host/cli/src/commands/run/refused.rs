//! The remedies that would let a run reach the hosts that its tools were refused: said to the
//! operator at the terminal, at the end of the run. No event, no answer of a model and no reply of
//! the server has it.
//!
//! INV-432: a command that is ready to be pasted is made for a host alone that the agent's file, the
//! settings or the person named. What else a model asked for is told as the fact that it is.

use std::collections::BTreeSet;

use belljar_agent::{Host, Outcome, ResolvedAgent, missing, resolve, rule};
use belljar_definition::{GrantChange, grant_command, shell_word};
use belljar_policy::{DenyCode, Permission, RightsQuestion, Shown, Source, Target};

use crate::commands::run::named;
use crate::commands::tools::{manifest_of, refused};
use crate::setup::home::Places;
use crate::term::out::{Out, Style};

/// Hosts of one run that are spoken of: a tool can ask for any number.
const MAX_HOSTS: usize = 10;

/// Says for each refused host which command, or whose file, would open it. `words` are those of the
/// person to whom this is said.
pub(crate) fn advise(outcome: &Outcome, words: &str, host: &Host, places: &Places, out: &Out) {
    let mut said = BTreeSet::new();
    for call in outcome.all_receipts() {
        let tool = &call.receipt.tool;
        for denial in &call.receipt.denials {
            let Some(target) = refused::target(denial) else { continue };
            if said.len() >= MAX_HOSTS || !said.insert((call.agent.clone(), target.to_string())) {
                continue;
            }
            let name = name_of(&call.agent, outcome);
            let Ok(agent) = resolve(host, name, &places.workspace) else { continue };
            if let Some(way) = way(&agent, tool, &target, denial.code, words, host) {
                let hint = out.paint_err(Style::Cyan, "hint:");
                let name = Shown::new(name);
                out.note(format_args!("  {hint} `{name}` did not reach `{target}`: {way}"));
            }
        }
    }
}

/// Which source refuses it, and the command where it is the grants.
fn way(
    agent: &ResolvedAgent,
    tool: &str,
    target: &Target,
    code: DenyCode,
    words: &str,
    host: &Host,
) -> Option<String> {
    let manifest = manifest_of(host, tool).ok()?;
    let (asked, grants) = (&agent.definition.asked, &agent.grants);
    let question = RightsQuestion::Url(target.clone());
    let answer = belljar_policy::explain(tool, &question, asked, &manifest, grants, None);
    let change = match (answer.permission, answer.decided_by) {
        (Permission::Deny, Some(Source::Grants)) => missing(agent, tool, &question)?,
        (Permission::Deny, Some(Source::Definition)) => {
            return Some("the agent's own file does not ask for it".to_owned());
        }
        (Permission::Deny, Some(Source::Manifest)) => {
            return Some(format!("the manifest of `{tool}` does not ask for it"));
        }
        (Permission::Deny, Some(Source::Host | Source::Parent | Source::Hook) | None) => {
            return None;
        }
        // The rule that fits opens no private address; one of this name does.
        (Permission::Allow | Permission::Ask, _) if code == DenyCode::AddressNotAllowed => {
            GrantChange { hosts: vec![rule(target)?], ..GrantChange::default() }
        }
        (Permission::Allow | Permission::Ask, _) => return None,
    };
    if is_named(agent, target, words, host) {
        let command = grant_command(&agent.id, &change, false);
        return Some(format!("`{}` lets it", Shown::new(&command)));
    }
    let command = explain_command(&agent.id.grant_key(), tool, target);
    Some(format!(
        "neither its file nor your settings nor you have named that host; `{}` says what decides",
        Shown::new(&command)
    ))
}

fn is_named(agent: &ResolvedAgent, target: &Target, words: &str, host: &Host) -> bool {
    let asked = agent.definition.asked.hosts.iter().flatten();
    named::by_rules(asked, target)
        || named::by_settings(&host.settings, target)
        || named::by_words(words, target)
}

/// The question who decides about a host, as a person types it. A host name may have characters that a
/// shell acts on.
pub(crate) fn explain_command(agent: &str, tool: &str, target: &Target) -> String {
    let [agent, tool, target] = [agent, tool, &*target.to_string()].map(shell_word);
    format!("belljar explain {agent} {tool} {target}")
}

/// An agent's name by its path in the run.
fn name_of<'a>(path: &'a str, outcome: &'a Outcome) -> &'a str {
    match path.rsplit_once('/') {
        None => outcome.agent.strip_prefix("home/").unwrap_or(&outcome.agent),
        Some((_, child)) => child.rsplit_once('#').map_or(child, |(name, _)| name),
    }
}
