//! `belljar skills`: which skills there are, and what is wrong with their files.

use std::path::PathBuf;

use belljar_definition::{CatalogEntry, FileRead, Severity, Skill};
use belljar_policy::Shown;
use serde_json::{Value, json};

use super::agents;
use crate::args::SkillsCommand;
use crate::exit::{Exit, Failure};
use crate::home::Places;
use crate::host::Assembly;
use crate::out::Out;
use crate::table::{Table, plain};
use crate::walls::Walls;

/// Characters of a description, or of the triggers, in the list.
const MAX_DESCRIPTION: usize = 80;

pub(super) fn run(
    command: &SkillsCommand,
    places: Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    match command {
        SkillsCommand::List { json } => list(*json, &walls.around(places), out),
        SkillsCommand::Check { files, json } => {
            check(files, *json, &walls.reading(places, files.clone()), out)
        }
    }
}

fn list(json: bool, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let host = Assembly::new(places, out)?.host()?;
    let catalog = host.skills.catalog();
    if json {
        let rows: Vec<Value> = catalog.entries().iter().map(summary).collect();
        out.json(&rows)?;
    } else if catalog.entries().is_empty() {
        out.note(format_args!("no skills in {}", places.home.join("skills").display()));
    } else {
        let mut table = Table::new(out, &["skill", "scope", "triggers", "description"]);
        for skill in catalog.entries() {
            let Skill { description, triggers, .. } = &skill.definition;
            table.row([
                plain(&skill.id.slug),
                plain(agents::scope(&skill.id.scope)),
                plain(Shown::clipped(&triggers.join(", "), MAX_DESCRIPTION)),
                plain(Shown::clipped(description, MAX_DESCRIPTION)),
            ]);
        }
        table.print(out);
    }
    Ok(agents::report(&host.skills.problems(), out))
}

/// Checks files; without any, all skills.
fn check(files: &[PathBuf], json: bool, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let mut found = Vec::new();
    if files.is_empty() {
        let host = Assembly::new(places, out)?.host()?;
        found = host.skills.problems();
        if !json {
            let errors = found.iter().filter(|found| found.severity == Severity::Error).count();
            let skills = host.skills.catalog().entries().len();
            out.line(format_args!("{skills} skills, {errors} errors"));
        }
    }
    for path in files {
        let shown = Shown::new(&path.to_string_lossy()).to_string();
        match agents::read_file::<Skill>(path) {
            FileRead::Item { item, diagnostics } => {
                found.extend(diagnostics);
                if !json {
                    out.line(format_args!("{shown}: skill `{}`", Shown::new(&item.name)));
                }
            }
            FileRead::Invalid { diagnostics } => found.extend(diagnostics),
            FileRead::Other { reason } if json => {
                out.note(format_args!("{shown}: not a skill: {}", reason.as_str()));
            }
            FileRead::Other { reason } => {
                out.line(format_args!("{shown}: not a skill: {}", reason.as_str()));
            }
        }
    }
    if json {
        let rows: Vec<Value> = found.iter().map(agents::as_json).collect();
        out.json(&rows)?;
    }
    Ok(agents::report(&found, out))
}

fn summary(skill: &CatalogEntry<Skill>) -> Value {
    let Skill { name, description, triggers, body, path, .. } = &skill.definition;
    json!({
        "id": skill.id.to_string(),
        "name": name,
        "description": description,
        "triggers": triggers,
        "bytes": body.len(),
        "path": path,
    })
}
