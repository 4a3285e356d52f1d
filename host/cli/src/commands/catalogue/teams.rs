//! `belljar teams`: the teams, and whether each can run.

use std::path::{Path, PathBuf};

use belljar_agent::{Host, ResolvedTeam, resolve_all_teams, resolve_team, resolve_team_file};
use belljar_definition::{AgentId, Diagnostic, FileRead, Severity, TeamDefinition};
use belljar_policy::{Shown, ShownPath as _};
use serde_json::{Value, json};

use crate::args::TeamsCommand;
use crate::commands::catalogue::agents;
use crate::commands::run::team as teams_run;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::{Through, Walls};
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

/// Characters of a description, or of the stages, in the list.
const MAX_DESCRIPTION: usize = 70;

pub(crate) fn run(
    command: &TeamsCommand,
    places: Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    match command {
        TeamsCommand::List { of, json } => {
            list(*json, &Whose::behind(of, &places, walls, Through::default())?, out)
        }
        TeamsCommand::Check { teams, of, json } => {
            let read = teams.iter().map(PathBuf::from).collect();
            let through = Through { read, ..Through::default() };
            check(teams, *json, &Whose::behind(of, &places, walls, through)?, out)
        }
        TeamsCommand::Run(args) => teams_run::run(args, &places, walls, out),
    }
}

fn list(json: bool, whose: &Whose, out: &Out) -> Result<Exit, Failure> {
    let host = whose.host(out)?;
    let teams = resolve_all_teams(&host, &whose.places.workspace).map_err(agents::not_found)?;
    if json {
        let rows: Vec<Value> = teams.iter().map(summary).collect();
        out.json(&rows)?;
    } else {
        let headings = ["team", "scope", "status", "stages", "description"];
        let mut table = Table::new(out, &headings).cut(MAX_DESCRIPTION);
        for team in &teams {
            let (style, word) = status(team);
            table.row([
                plain(&team.id.slug),
                plain(agents::scope(&team.id.scope)),
                styled(style, word),
                plain(Shown::clipped(&stages(&team.definition), MAX_DESCRIPTION)),
                plain(Shown::new(team.definition.description.trim())),
            ]);
        }
        table.print(out);
        for team in &teams {
            for problem in &team.problems {
                out.note(mild(problem.clone()));
            }
        }
    }
    Ok(agents::report(&host.teams.problems(), out))
}

/// Checks teams by name or file; without any, all of the library.
fn check(teams: &[String], json: bool, whose: &Whose, out: &Out) -> Result<Exit, Failure> {
    let host = whose.host(out)?;
    let places = &whose.places;
    let mut found = Vec::new();
    let mut good = Vec::new();
    if teams.is_empty() {
        found = host.teams.problems();
        good = resolve_all_teams(&host, &places.workspace).map_err(agents::not_found)?;
    }
    for name in teams {
        if agents::is_file::<TeamDefinition>(name) {
            good.extend(file(Path::new(name), &host, places, &mut found)?);
        } else {
            good.push(resolve_team(&host, name, &places.workspace).map_err(agents::not_found)?);
        }
    }
    for team in &good {
        found.extend(team.problems.iter().cloned().map(mild));
        if !json {
            let path = team.definition.path.to_string_lossy();
            let name = Shown::new(&team.definition.name).to_string();
            let (style, word) = status(team);
            let word = out.paint(style, word);
            out.line(format_args!("{}: team `{name}`: {word}", Shown::new(&path)));
        }
    }
    agents::checked(&found, json, out)
}

/// Reads a team file as if in the home; faults go to `found`.
fn file(
    path: &Path,
    host: &Host,
    places: &Places,
    found: &mut Vec<Diagnostic>,
) -> Result<Option<ResolvedTeam>, Failure> {
    match agents::read_file::<TeamDefinition>(path) {
        FileRead::Item { item, diagnostics } => {
            found.extend(diagnostics);
            let id = AgentId::home(item.slug.clone());
            resolve_team_file(host, id, item, &places.workspace)
                .map(Some)
                .map_err(agents::not_found)
        }
        FileRead::Invalid { diagnostics } => {
            found.extend(diagnostics);
            Ok(None)
        }
        FileRead::Other { reason } => {
            Err(Failure::usage(format!("`{}` is not a team: {}", path.shown(), reason.as_str())))
        }
    }
}

/// A right that is missing is no mistake of the file.
pub(crate) fn mild(mut problem: Diagnostic) -> Diagnostic {
    if problem.code == ResolvedTeam::BLOCKED {
        problem.severity = Severity::Warning;
    }
    problem
}

pub(crate) fn status(team: &ResolvedTeam) -> (Style, &'static str) {
    if team.problems.is_empty() {
        (Style::Green, "ready")
    } else if team.is_only_blocked() {
        (Style::Yellow, "blocked")
    } else {
        (Style::Red, "incomplete")
    }
}

/// `gatherer, (critic + scout), writer`.
fn stages(team: &TeamDefinition) -> String {
    let stage = |stage: &belljar_definition::Stage| {
        let names: Vec<&str> = stage.members.iter().map(|member| member.agent.as_str()).collect();
        if stage.parallel { format!("({})", names.join(" + ")) } else { names.join("") }
    };
    team.stages.iter().map(stage).collect::<Vec<_>>().join(", ")
}

fn summary(team: &ResolvedTeam) -> Value {
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
        "status": status(team).1,
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
