//! `belljar skills`: the skills, and faulty files.

use std::path::{Path, PathBuf};

use belljar_agent::ResolveError;
use belljar_definition::{CatalogEntry, Diagnostic, FileRead, Severity, Skill, SkillCallers};
use belljar_policy::{Shown, ShownPath as _};
use serde_json::{Value, json};

use crate::args::{SkillsArgs, SkillsCommand};
use crate::commands::catalogue::agents;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::walls::{Through, Walls};
use crate::setup::whose::Whose;
use crate::term::out::Out;
use crate::term::table::{self, Table, plain};

/// Characters of a description, or of the triggers, in the list.
const MAX_DESCRIPTION: usize = 80;

pub(crate) fn run(
    args: &SkillsArgs,
    places: Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let whose = |read| {
        let through = Through { read, ..Through::default() };
        Whose::behind(&args.of, &places, walls, through)
    };
    match &args.command {
        SkillsCommand::List { json } => list(*json, &whose(Vec::new())?, out),
        SkillsCommand::Check { skills, json } => {
            check(skills, *json, &whose(skills.iter().map(PathBuf::from).collect())?, out)
        }
    }
}

fn list(json: bool, whose: &Whose, out: &Out) -> Result<Exit, Failure> {
    let host = whose.host(out)?;
    let catalog = host.skills.catalog();
    if json {
        let rows: Vec<Value> = catalog.entries().iter().map(summary).collect();
        out.json(&rows)?;
    } else if catalog.entries().is_empty() {
        out.note(format_args!("no skills in {}", whose.places.home.join("skills").shown()));
    } else {
        let headings = ["skill", "scope", "called by", "triggers", "description"];
        let mut table = Table::new(out, &headings).cut(MAX_DESCRIPTION);
        for skill in catalog.entries() {
            let Skill { description, triggers, callers, .. } = &skill.definition;
            table.row([
                plain(&skill.id.slug),
                plain(agents::scope(&skill.id.scope)),
                plain(called_by(*callers)),
                plain(Shown::clipped(&triggers.join(", "), MAX_DESCRIPTION)),
                plain(Shown::new(description.trim())),
            ]);
        }
        table.print(out);
    }
    Ok(agents::report(&host.skills.problems(), out))
}

/// Checks skills by name or file; without any, all of the library.
fn check(skills: &[String], json: bool, whose: &Whose, out: &Out) -> Result<Exit, Failure> {
    let host = whose.host(out)?;
    let catalog = host.skills.catalog();
    let mut found = Vec::new();
    if skills.is_empty() {
        found = host.skills.problems();
        if !json {
            let errors = found.iter().filter(|found| found.severity == Severity::Error).count();
            let skills = table::some(catalog.entries().len() as u64, "skill");
            out.line(format_args!("{skills}, {}", table::some(errors as u64, "error")));
        }
    }
    for word in skills {
        if agents::is_file::<Skill>(word) {
            file(Path::new(word), json, &mut found, out);
            continue;
        }
        let not_found = |error| agents::not_found(ResolveError::NotFound(error));
        let skill = catalog.find(word).map_err(not_found)?;
        found.extend(skill.diagnostics.iter().cloned());
        if !json {
            good(&skill.definition, out);
        }
    }
    agents::checked(&found, json, out)
}

/// Reads a skill file; faults go to `found`.
fn file(path: &Path, json: bool, found: &mut Vec<Diagnostic>, out: &Out) {
    match agents::read_file::<Skill>(path) {
        FileRead::Item { item, diagnostics } => {
            found.extend(diagnostics);
            if !json {
                good(&item, out);
            }
        }
        FileRead::Invalid { diagnostics } => found.extend(diagnostics),
        FileRead::Other { reason } => {
            let shown = Shown::new(&path.to_string_lossy()).to_string();
            let text = format!("{shown}: not a skill: {}", reason.as_str());
            if json { out.note(text) } else { out.line(text) }
        }
    }
}

fn good(skill: &Skill, out: &Out) {
    let path = skill.path.to_string_lossy();
    out.line(format_args!("{}: skill `{}`", Shown::new(&path), Shown::new(&skill.name)));
}

/// Those whom the author of a skill lets load it, in a word.
fn called_by(callers: SkillCallers) -> &'static str {
    match (callers.model, callers.person) {
        (true, true) => "all",
        (true, false) => "models",
        (false, true) => "persons",
        (false, false) => "nobody",
    }
}

fn summary(skill: &CatalogEntry<Skill>) -> Value {
    let Skill { name, description, triggers, callers, body, path, .. } = &skill.definition;
    json!({
        "id": skill.id.to_string(),
        "name": name,
        "description": description,
        "triggers": triggers,
        "by_model": callers.model,
        "by_person": callers.person,
        "bytes": body.len(),
        "path": path,
    })
}
