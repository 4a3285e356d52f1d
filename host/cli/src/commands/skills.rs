//! `belljar skills`: which skills there are, and what is wrong with their files.

use belljar_definition::{CatalogEntry, Skill};
use belljar_policy::Shown;
use serde_json::{Value, json};

use super::agents;
use crate::args::SkillsCommand;
use crate::exit::{Exit, Failure};
use crate::home::Places;
use crate::host::Assembly;
use crate::out::Out;
use crate::table::{Table, plain};

/// Characters of a description, or of the triggers, in the list.
const MAX_DESCRIPTION: usize = 80;

pub(super) fn run(command: &SkillsCommand, places: &Places, out: &Out) -> Result<Exit, Failure> {
    match command {
        SkillsCommand::List { json } => list(*json, places, out),
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
