//! The checks of `belljar doctor` for the operator's files: agents, libraries, teams, skills, names, hooks
//! and tools.

use std::path::Path;

use belljar_agent::{HookCheck, Host, absent_directories, resolve_all, resolve_all_teams};
use belljar_definition::{AgentReadiness, Diagnostic, Severity};

use super::super::libraries::LibraryState;
use super::{CheckResult, DoctorCheck, failed_check, make_check};
use crate::commands::catalogue::agents;
use crate::libraries::LibraryLock;
use crate::setup::home::HomePaths;
use crate::setup::host::{self, HostAssembly};
use crate::term::out::TerminalOutput;

/// Adds these checks, if a host can be built from the settings.
pub(super) fn check_all(places: &HomePaths, out: &TerminalOutput, checks: &mut Vec<DoctorCheck>) {
    let host = match HostAssembly::new(places, out).and_then(HostAssembly::build_host) {
        Ok(host) => host,
        Err(failure) => return checks.push(failed_check("agents", &failure)),
    };
    checks.push(check_agents(&host, places));
    checks.extend(check_libraries(places));
    checks.push(check_teams(&host, places));
    checks.push(check_skills(&host));
    checks.extend(check_names(&host, &places.workspace));
    checks.extend(check_hooks(&host, places));
    let problems: Vec<String> = host.tools.problems().iter().map(ToString::to_string).collect();
    let servers = host.tools.servers().len();
    let servers = if servers > 0 { format!(", {servers} MCP servers") } else { String::new() };
    let text = format!("{} components{servers}", host.tools.components().len());
    let worst = host.tools.problems().iter().map(|problem| problem.severity).max();
    let finding = match worst {
        None => CheckResult::Good,
        Some(Severity::Note | Severity::Warning) => CheckResult::Note,
        Some(Severity::Error) => CheckResult::Bad,
    };
    checks.push(DoctorCheck { details: problems, ..make_check("tools", finding, text) });
}

/// The check of agents: how many can run, and which files have errors.
fn check_agents(host: &Host, places: &HomePaths) -> DoctorCheck {
    let agents = match resolve_all(host, &places.workspace) {
        Ok(agents) => agents,
        Err(error) => return make_check("agents", CheckResult::Bad, error.to_string()),
    };
    let blocked = agents
        .iter()
        .filter(|agent| matches!(agent.status, AgentReadiness::Blocked { .. }))
        .count();
    let problems = host.library.problems();
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let text = format!("{} ready, {blocked} blocked, {errors} errors", agents.len() - blocked);
    let finding = if errors > 0 { CheckResult::Bad } else { CheckResult::Good };
    let mut check = make_check("agents", finding, text);
    if errors > 0 {
        check.details.push("`belljar agents check` says what is wrong".to_owned());
    }
    for agent in agents.iter().filter(|agent| agent.lacks_directory) {
        let absent = absent_directories(&agent.rights).join("; ");
        check.details.push(format!("`{}`: {absent}", agent.id));
        check.finding = CheckResult::Bad;
    }
    check
}

/// The check of teams: how many can run.
fn check_teams(host: &Host, places: &HomePaths) -> DoctorCheck {
    let teams = match resolve_all_teams(host, &places.workspace) {
        Ok(teams) => teams,
        Err(error) => return make_check("teams", CheckResult::Bad, error.to_string()),
    };
    let blocked = teams.iter().filter(|team| !team.problems.is_empty()).count();
    let ready = teams.len() - blocked;
    check_files("teams", format!("{ready} ready, {blocked} blocked"), &host.teams.problems())
}

fn check_skills(host: &Host) -> DoctorCheck {
    let skills = host.skills.catalog().entries().len();
    check_files("skills", skills.to_string(), &host.skills.problems())
}

/// The check of one kind of file. `problems` = the faults found in such files.
fn check_files(name: &'static str, text: String, problems: &[Diagnostic]) -> DoctorCheck {
    let errors = problems.iter().filter(|found| found.severity == Severity::Error).count();
    let mut check = make_check(name, CheckResult::Good, format!("{text}, {errors} errors"));
    if errors > 0 {
        check.finding = CheckResult::Bad;
        check.details.push(format!("`belljar {name} check` says what is wrong"));
    }
    check
}

/// The check of names in the settings: a name that does not exist grants or blocks nothing. `None` = all
/// exist.
fn check_names(host: &Host, workspace: &Path) -> Option<DoctorCheck> {
    let mut details: Vec<String> =
        agents::unknown_agents(host, workspace).iter().map(ToString::to_string).collect();
    let known = host.tools.known_tools();
    for tool in host.settings.tools.keys().filter(|tool| !known.contains(tool.as_str())) {
        details.push(format!("`[tools.{tool}]` is there, and there is no such tool"));
    }
    let text = format!("{} in the configuration that nothing has", details.len());
    (!details.is_empty())
        .then(|| DoctorCheck { details, ..make_check("names", CheckResult::Note, text) })
}

/// The check whether the files of installed libraries are unchanged; `None` = no library is installed.
fn check_libraries(places: &HomePaths) -> Option<DoctorCheck> {
    let installed = match LibraryLock::read(&places.libraries_directory()) {
        Ok(lock) => lock.libraries,
        Err(failure) => return Some(failed_check("libraries", &failure)),
    };
    if installed.is_empty() {
        return None;
    }
    let altered: Vec<_> = installed
        .iter()
        .map(|(name, library)| {
            (
                name,
                LibraryState::for_library(
                    library,
                    &places.libraries_directory().join(&library.directory),
                ),
            )
        })
        .filter(|(_, state)| *state != LibraryState::WHOLE)
        .collect();
    let details = altered.iter().map(|(name, state)| {
        format!("`{name}`: {}; `belljar agents update {name}` puts it right", state.as_str())
    });
    let (finding, text) = match altered.len() {
        0 => (CheckResult::Good, format!("{} installed", installed.len())),
        n => (CheckResult::Bad, format!("{n} of {} not as installed", installed.len())),
    };
    Some(DoctorCheck { details: details.collect(), ..make_check("libraries", finding, text) })
}

/// The check whether the programs and components of hooks exist; `None` = there are no hooks.
fn check_hooks(host: &Host, places: &HomePaths) -> Option<DoctorCheck> {
    let checked = match host::small_runtime() {
        Ok(runtime) => runtime.block_on(host.hooks.check_all(&places.workspace)),
        Err(failure) => return Some(failed_check("hooks", &failure)),
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
        0 => (CheckResult::Good, format!("{} configured", checked.len())),
        _ => (CheckResult::Bad, format!("{broken} of {} cannot run", checked.len())),
    };
    Some(DoctorCheck {
        details: checked.iter().map(line).collect(),
        ..make_check("hooks", finding, text)
    })
}
