//! The part of `belljar doctor` about the operator's files: agents, libraries, teams, skills,
//! names, hooks, tools.

use std::path::Path;

use belljar_agent::{HookCheck, Host, absent_directories, resolve_all, resolve_all_teams};
use belljar_definition::{AgentReadiness, Diagnostic, Severity};

use super::super::libraries::State;
use super::{Check, Finding, bad, check};
use crate::commands::catalogue::agents;
use crate::libraries::Lock;
use crate::setup::home::Places;
use crate::setup::host::{self, Assembly};
use crate::term::out::Out;

/// Checks them, where a host can be put together.
pub(super) fn check_all(places: &Places, out: &Out, checks: &mut Vec<Check>) {
    let host = match Assembly::new(places, out).and_then(Assembly::host) {
        Ok(host) => host,
        Err(failure) => return checks.push(bad("agents", &failure)),
    };
    checks.push(ready(&host, places));
    checks.extend(libraries(places));
    checks.push(teams(&host, places));
    checks.push(skills(&host));
    checks.extend(names(&host, &places.workspace));
    checks.extend(hooks(&host, places));
    let problems: Vec<String> = host.tools.problems().iter().map(ToString::to_string).collect();
    let servers = host.tools.servers().len();
    let servers = if servers > 0 { format!(", {servers} MCP servers") } else { String::new() };
    let text = format!("{} components{servers}", host.tools.components().len());
    let worst = host.tools.problems().iter().map(|problem| problem.severity).max();
    let finding = match worst {
        None => Finding::Good,
        Some(Severity::Note | Severity::Warning) => Finding::Note,
        Some(Severity::Error) => Finding::Bad,
    };
    checks.push(Check { details: problems, ..check("tools", finding, text) });
}

fn ready(host: &Host, places: &Places) -> Check {
    let agents = match resolve_all(host, &places.workspace) {
        Ok(agents) => agents,
        Err(error) => return check("agents", Finding::Bad, error.to_string()),
    };
    let blocked = agents
        .iter()
        .filter(|agent| matches!(agent.status, AgentReadiness::Blocked { .. }))
        .count();
    let problems = host.library.problems();
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let text = format!("{} ready, {blocked} blocked, {errors} errors", agents.len() - blocked);
    let finding = if errors > 0 { Finding::Bad } else { Finding::Good };
    let mut check = check("agents", finding, text);
    if errors > 0 {
        check.details.push("`belljar agents check` says what is wrong".to_owned());
    }
    for agent in agents.iter().filter(|agent| agent.lacks_directory) {
        let absent = absent_directories(&agent.rights).join("; ");
        check.details.push(format!("`{}`: {absent}", agent.id));
        check.finding = Finding::Bad;
    }
    check
}

fn teams(host: &Host, places: &Places) -> Check {
    let teams = match resolve_all_teams(host, &places.workspace) {
        Ok(teams) => teams,
        Err(error) => return check("teams", Finding::Bad, error.to_string()),
    };
    let blocked = teams.iter().filter(|team| !team.problems.is_empty()).count();
    let ready = teams.len() - blocked;
    of_files("teams", format!("{ready} ready, {blocked} blocked"), &host.teams.problems())
}

fn skills(host: &Host) -> Check {
    let skills = host.skills.catalog().entries().len();
    of_files("skills", skills.to_string(), &host.skills.problems())
}

/// A kind of file, and the faults of some.
fn of_files(name: &'static str, text: String, problems: &[Diagnostic]) -> Check {
    let errors = problems.iter().filter(|found| found.severity == Severity::Error).count();
    let mut check = check(name, Finding::Good, format!("{text}, {errors} errors"));
    if errors > 0 {
        check.finding = Finding::Bad;
        check.details.push(format!("`belljar {name} check` says what is wrong"));
    }
    check
}

/// Names in the configuration that nothing has: a slip there grants or blocks nothing.
fn names(host: &Host, workspace: &Path) -> Option<Check> {
    let mut details: Vec<String> =
        agents::unknown(host, workspace).iter().map(ToString::to_string).collect();
    let known = host.tools.known();
    for tool in host.settings.tools.keys().filter(|tool| !known.contains(tool.as_str())) {
        details.push(format!("`[tools.{tool}]` is there, and there is no such tool"));
    }
    let text = format!("{} in the configuration that nothing has", details.len());
    (!details.is_empty()).then(|| Check { details, ..check("names", Finding::Note, text) })
}

/// Whether installed libraries are as they were installed; nothing where there are none.
fn libraries(places: &Places) -> Option<Check> {
    let installed = match Lock::read(&places.libraries()) {
        Ok(lock) => lock.libraries,
        Err(failure) => return Some(bad("libraries", &failure)),
    };
    if installed.is_empty() {
        return None;
    }
    let altered: Vec<_> = installed
        .iter()
        .map(|(name, library)| {
            (name, State::of(library, &places.libraries().join(&library.directory)))
        })
        .filter(|(_, state)| *state != State::WHOLE)
        .collect();
    let details = altered.iter().map(|(name, state)| {
        format!("`{name}`: {}; `belljar agents update {name}` puts it right", state.as_str())
    });
    let (finding, text) = match altered.len() {
        0 => (Finding::Good, format!("{} installed", installed.len())),
        n => (Finding::Bad, format!("{n} of {} not as installed", installed.len())),
    };
    Some(Check { details: details.collect(), ..check("libraries", finding, text) })
}

/// Whether what the hooks run is there; nothing where there are no hooks.
fn hooks(host: &Host, places: &Places) -> Option<Check> {
    let checked = match host::small_runtime() {
        Ok(runtime) => runtime.block_on(host.hooks.check(&places.workspace)),
        Err(failure) => return Some(bad("hooks", &failure)),
    };
    if checked.is_empty() {
        return None;
    }
    let line = |hook: &HookCheck| {
        let matcher = if hook.matcher.is_empty() { "*" } else { &hook.matcher };
        let problem = hook.problem.as_ref().map_or(String::new(), |why| format!(": {why}"));
        format!("{} {matcher}  {}{problem}", hook.event, hook.name)
    };
    let broken = checked.iter().filter(|hook| hook.problem.is_some()).count();
    let (finding, text) = match broken {
        0 => (Finding::Good, format!("{} configured", checked.len())),
        _ => (Finding::Bad, format!("{broken} of {} cannot run", checked.len())),
    };
    Some(Check { details: checked.iter().map(line).collect(), ..check("hooks", finding, text) })
}
