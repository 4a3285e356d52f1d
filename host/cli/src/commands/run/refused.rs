//! Tells an operator at the terminal, at the end of a run, what would allow the requests to hosts that were
//! refused. No event, no answer of a model and no reply of the server has this text.
//!
//! INV-432: a command ready for pasting is made only for a host named by the agent's file, the settings or
//! the person. Other hosts are mentioned as facts.

use std::collections::BTreeSet;

use belljar_agent::{Host, Outcome, ResolvedAgent, exact_rule, missing_grant, resolve_agent};
use belljar_definition::{GrantChange, grant_command, shell_word};
use belljar_policy::{
    CallPermission, DecisionSource, DenyCode, RequestTarget, RightsQuestion, ShownText,
};

use crate::commands::run::named;
use crate::commands::tools::{manifest_of, refused};
use crate::setup::home::HomePaths;
use crate::term::out::{TerminalOutput, TextStyle};

/// The most hosts in the advice of one run, because a tool can ask for any number.
const MAX_HOSTS: usize = 10;

/// Prints for each refused host the command that would allow it, or whose file refuses it. `words` = what the
/// person typed.
pub(crate) fn print_advice(
    outcome: &Outcome,
    words: &str,
    host: &Host,
    places: &HomePaths,
    out: &TerminalOutput,
) {
    let mut said = BTreeSet::new();
    for call in outcome.all_receipts() {
        let tool = &call.receipt.tool;
        for denial in &call.receipt.denials {
            let Some(target) = refused::denied_target(denial) else { continue };
            if said.len() >= MAX_HOSTS || !said.insert((call.agent.clone(), target.to_string())) {
                continue;
            }
            let name = name_of(&call.agent, outcome);
            let Ok(agent) = resolve_agent(host, name, &places.workspace) else { continue };
            if let Some(way) = host_advice(&agent, tool, &target, denial.code, words, host) {
                let hint = out.paint_err(TextStyle::Cyan, "hint:");
                let name = ShownText::new(name);
                out.note(format_args!("  {hint} `{name}` did not reach `{target}`: {way}"));
            }
        }
    }
}

/// The advice about one refused host: who refuses it, and if the grants do, the command.
fn host_advice(
    agent: &ResolvedAgent,
    tool: &str,
    target: &RequestTarget,
    code: DenyCode,
    words: &str,
    host: &Host,
) -> Option<String> {
    let manifest = manifest_of(host, tool).ok()?;
    let (asked, grants) = (&agent.definition.asked, &agent.grants);
    let question = RightsQuestion::Url(target.clone());
    let answer = belljar_policy::explain_tool(tool, &question, asked, &manifest, grants, None);
    let change = match (answer.permission, answer.decided_by) {
        (CallPermission::Deny, Some(DecisionSource::Grants)) => {
            missing_grant(agent, tool, &question)?
        }
        (CallPermission::Deny, Some(DecisionSource::Definition)) => {
            return Some("the agent's own file does not ask for it".to_owned());
        }
        (CallPermission::Deny, Some(DecisionSource::Manifest)) => {
            return Some(format!("the manifest of `{tool}` does not ask for it"));
        }
        (
            CallPermission::Deny,
            Some(DecisionSource::Host | DecisionSource::Parent | DecisionSource::Hook) | None,
        ) => {
            return None;
        }
        // The rule that allows this host does not allow a private address; a rule with exactly this name
        // does.
        (CallPermission::Allow | CallPermission::Ask, _) if code == DenyCode::AddressNotAllowed => {
            GrantChange { hosts: vec![exact_rule(target)?], ..GrantChange::default() }
        }
        (CallPermission::Allow | CallPermission::Ask, _) => return None,
    };
    if is_named(agent, target, words, host) {
        let command = grant_command(&agent.id, &change, false);
        return Some(format!("`{}` lets it", ShownText::new(&command)));
    }
    let command = explain_command(&agent.id.grant_key(), tool, target);
    Some(format!(
        "neither its file nor your settings nor you have named that host; `{}` says what decides",
        ShownText::new(&command)
    ))
}

/// Returns whether the agent's file, the settings or the person's words name the host.
fn is_named(agent: &ResolvedAgent, target: &RequestTarget, words: &str, host: &Host) -> bool {
    let asked = agent.definition.asked.hosts.iter().flatten();
    named::by_rules(asked, target)
        || named::by_settings(&host.settings, target)
        || named::by_words(words, target)
}

/// The `belljar explain` command for a decision about a host. Quoted, because a host name may have characters
/// with a meaning for a shell.
pub(crate) fn explain_command(agent: &str, tool: &str, target: &RequestTarget) -> String {
    let [agent, tool, target] = [agent, tool, &*target.to_string()].map(shell_word);
    format!("belljar explain {agent} {tool} {target}")
}

/// The name of the agent with this path in the run.
fn name_of<'a>(path: &'a str, outcome: &'a Outcome) -> &'a str {
    match path.rsplit_once('/') {
        None => outcome.agent.strip_prefix("home/").unwrap_or(&outcome.agent),
        Some((_, child)) => child.rsplit_once('#').map_or(child, |(name, _)| name),
    }
}
