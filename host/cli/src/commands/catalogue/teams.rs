//! `belljar teams`: lists, checks and runs teams.

use std::path::{Path, PathBuf};

use belljar_agent::{Host, ResolvedTeam, resolve_all_teams, resolve_team, resolve_team_file};
use belljar_definition::{AgentId, Diagnostic, FileRead, Severity, TeamDefinition};
use belljar_policy::{ShownPath as _, ShownText};
use serde_json::{Value, json};

use crate::args::TeamsCommand;
use crate::commands::catalogue::agents;
use crate::commands::run::team as teams_run;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// The most characters of a team's description or stages in the list.
const MAX_DESCRIPTION: usize = 70;

/// Runs the command.
pub(crate) fn run(
    command: &TeamsCommand,
    places: HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    match command {
        TeamsCommand::List { of, json } => list_teams(
            *json,
            &AgentOwner::behind_wall(of, &places, walls, WallGaps::default())?,
            out,
        ),
        TeamsCommand::Check { teams, of, json } => {
            let read = teams.iter().map(PathBuf::from).collect();
            let through = WallGaps { read, ..WallGaps::default() };
            check_teams(teams, *json, &AgentOwner::behind_wall(of, &places, walls, through)?, out)
        }
        TeamsCommand::Run(args) => teams_run::run(args, &places, walls, out),
    }
}

/// Lists the teams, each with whether it can run.
fn list_teams(
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let teams = resolve_all_teams(&host, &whose.places.workspace).map_err(agents::not_found)?;
    if json {
        let rows: Vec<Value> = teams.iter().map(team_summary).collect();
        out.print_json(&rows)?;
    } else {
        let headings = ["team", "scope", "status", "stages", "description"];
        let mut table = TextTable::new(out, &headings).with_cut(MAX_DESCRIPTION);
        for team in &teams {
            let (style, word) = team_status(team);
            table.push_row([
                plain_cell(&team.id.slug),
                plain_cell(agents::format_scope(&team.id.scope)),
                styled_cell(style, word),
                plain_cell(ShownText::clip_line(&format_stages(&team.definition), MAX_DESCRIPTION)),
                plain_cell(ShownText::new(team.definition.description.trim())),
            ]);
        }
        table.print_to(out);
        for team in &teams {
            for problem in &team.problems {
                out.note(soften_diagnostic(problem.clone()));
            }
        }
    }
    Ok(agents::report_findings(&host.teams.problems(), out))
}

/// Checks the named teams or files; without a name, all teams.
fn check_teams(
    teams: &[String],
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let places = &whose.places;
    let mut found = Vec::new();
    let mut good = Vec::new();
    if teams.is_empty() {
        found = host.teams.problems();
        good = resolve_all_teams(&host, &places.workspace).map_err(agents::not_found)?;
    }
    for name in teams {
        if agents::is_file::<TeamDefinition>(name) {
            good.extend(read_team_file(Path::new(name), &host, places, &mut found)?);
        } else {
            good.push(resolve_team(&host, name, &places.workspace).map_err(agents::not_found)?);
        }
    }
    for team in &good {
        found.extend(team.problems.iter().cloned().map(soften_diagnostic));
        if !json {
            let path = team.definition.path.to_string_lossy();
            let name = ShownText::new(&team.definition.name).to_string();
            let (style, word) = team_status(team);
            let word = out.paint(style, word);
            out.print_line(format_args!("{}: team `{name}`: {word}", ShownText::new(&path)));
        }
    }
    agents::end_check(&found, json, out)
}

/// Reads a team file as if it were in the home; its faults are added to `found`.
fn read_team_file(
    path: &Path,
    host: &Host,
    places: &HomePaths,
    found: &mut Vec<Diagnostic>,
) -> Result<Option<ResolvedTeam>, Failure> {
    match agents::read_file::<TeamDefinition>(path) {
        FileRead::Item { item, diagnostics } => {
            found.extend(diagnostics);
            let id = AgentId::in_home(item.slug.clone());
            resolve_team_file(host, id, item, &places.workspace)
                .map(Some)
                .map_err(agents::not_found)
        }
        FileRead::Invalid { diagnostics } => {
            found.extend(diagnostics);
            Ok(None)
        }
        FileRead::Other { reason } => {
            Err(Failure::usage(format!("`{}` is not a team: {}", path.to_shown(), reason.as_str())))
        }
    }
}

/// Makes an error about a missing right a warning, because it is no mistake in the file.
pub(crate) fn soften_diagnostic(mut problem: Diagnostic) -> Diagnostic {
    if problem.code == ResolvedTeam::BLOCKED {
        problem.severity = Severity::Warning;
    }
    problem
}

/// The status of a team as a word, with its colour.
pub(crate) fn team_status(team: &ResolvedTeam) -> (TextStyle, &'static str) {
    if team.problems.is_empty() {
        (TextStyle::Green, "ready")
    } else if team.is_only_blocked() {
        (TextStyle::Yellow, "blocked")
    } else {
        (TextStyle::Red, "incomplete")
    }
}

/// The stages of a team in one line, for example `gatherer, (critic + scout), writer`.
fn format_stages(team: &TeamDefinition) -> String {
    let stage = |stage: &belljar_definition::TeamStage| {
        let names: Vec<&str> = stage.members.iter().map(|member| member.agent.as_str()).collect();
        if stage.parallel { format!("({})", names.join(" + ")) } else { names.join("") }
    };
    team.stages.iter().map(stage).collect::<Vec<_>>().join(", ")
}

/// A team as a JSON object.
fn team_summary(team: &ResolvedTeam) -> Value {
    let definition = &team.definition;
    let stages: Vec<Vec<&str>> = definition
        .stages
        .iter()
        .map(|stage| stage.members.iter().map(|member| member.agent.as_str()).collect())
        .collect();
    let budget = &definition.budget;
    json!({
        "id": team.id.to_string(),
        "name": definition.name,
        "description": definition.description,
        "path": definition.path,
        "status": team_status(team).1,
        "problems": team.problems.iter().map(agents::as_json).collect::<Vec<_>>(),
        "stages": stages,
        "budget": {
            "steps": budget.steps,
            "tokens": budget.tokens,
            "fuel": budget.fuel,
            "timeoutSeconds": budget.timeout_seconds,
        },
    })
}
