//! `belljar skills`: lists and checks skills.

use std::path::{Path, PathBuf};

use belljar_agent::ResolveError;
use belljar_definition::{
    CatalogEntry, Diagnostic, FileRead, Severity, SkillCallers, SkillDefinition,
};
use belljar_policy::{ShownPath as _, ShownText};
use serde_json::{Value, json};

use crate::args::{SkillsArgs, SkillsCommand};
use crate::commands::catalogue::agents;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::AgentOwner;
use crate::term::out::TerminalOutput;
use crate::term::table::{self, TextTable, plain_cell};

/// The most characters of a skill's description or triggers in the list.
const MAX_DESCRIPTION: usize = 80;

/// Runs the command.
pub(crate) fn run(
    args: &SkillsArgs,
    places: HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let whose = |read| {
        let through = WallGaps { read, ..WallGaps::default() };
        AgentOwner::behind_wall(&args.of, &places, walls, through)
    };
    match &args.command {
        SkillsCommand::List { json } => list_skills(*json, &whose(Vec::new())?, out),
        SkillsCommand::Check { skills, json } => {
            check_skills(skills, *json, &whose(skills.iter().map(PathBuf::from).collect())?, out)
        }
    }
}

/// Lists the skills.
fn list_skills(
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let catalog = host.skills.catalog();
    if json {
        let rows: Vec<Value> = catalog.entries().iter().map(skill_summary).collect();
        out.print_json(&rows)?;
    } else if catalog.entries().is_empty() {
        out.note(format_args!("no skills in {}", whose.places.home.join("skills").to_shown()));
    } else {
        let headings = ["skill", "scope", "called by", "triggers", "description"];
        let mut table = TextTable::new(out, &headings).with_cut(MAX_DESCRIPTION);
        for skill in catalog.entries() {
            let SkillDefinition { description, triggers, callers, .. } = &skill.definition;
            table.push_row([
                plain_cell(&skill.id.slug),
                plain_cell(agents::format_scope(&skill.id.scope)),
                plain_cell(called_by(*callers)),
                plain_cell(ShownText::clip_line(&triggers.join(", "), MAX_DESCRIPTION)),
                plain_cell(ShownText::new(description.trim())),
            ]);
        }
        table.print_to(out);
    }
    Ok(agents::report_findings(&host.skills.problems(), out))
}

/// Checks the named skills or files; without a name, all skills.
fn check_skills(
    skills: &[String],
    json: bool,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let host = whose.build_host(out)?;
    let catalog = host.skills.catalog();
    let mut found = Vec::new();
    if skills.is_empty() {
        found = host.skills.problems();
        if !json {
            let errors = found.iter().filter(|found| found.severity == Severity::Error).count();
            let skills = table::format_quantity(catalog.entries().len() as u64, "skill");
            out.print_line(format_args!(
                "{skills}, {}",
                table::format_quantity(errors as u64, "error")
            ));
        }
    }
    for word in skills {
        if agents::is_file::<SkillDefinition>(word) {
            check_file(Path::new(word), json, &mut found, out);
            continue;
        }
        let not_found = |error| agents::not_found(ResolveError::NotFound(error));
        let skill = catalog.find_by_name(word).map_err(not_found)?;
        found.extend(skill.diagnostics.iter().cloned());
        if !json {
            print_good_skill(&skill.definition, out);
        }
    }
    agents::end_check(&found, json, out)
}

/// Reads a skill file; its faults are added to `found`.
fn check_file(path: &Path, json: bool, found: &mut Vec<Diagnostic>, out: &TerminalOutput) {
    match agents::read_file::<SkillDefinition>(path) {
        FileRead::Item { item, diagnostics } => {
            found.extend(diagnostics);
            if !json {
                print_good_skill(&item, out);
            }
        }
        FileRead::Invalid { diagnostics } => found.extend(diagnostics),
        FileRead::Other { reason } => {
            let shown = ShownText::new(&path.to_string_lossy()).to_string();
            let text = format!("{shown}: not a skill: {}", reason.as_str());
            if json { out.note(text) } else { out.print_line(text) }
        }
    }
}

/// Prints the line about a skill without faults.
fn print_good_skill(skill: &SkillDefinition, out: &TerminalOutput) {
    let path = skill.path.to_string_lossy();
    out.print_line(format_args!(
        "{}: skill `{}`",
        ShownText::new(&path),
        ShownText::new(&skill.name)
    ));
}

/// Who may load a skill, as its author has said: the model, the person or both.
fn called_by(callers: SkillCallers) -> &'static str {
    match (callers.model, callers.person) {
        (true, true) => "all",
        (true, false) => "models",
        (false, true) => "persons",
        (false, false) => "nobody",
    }
}

/// A skill as a JSON object.
fn skill_summary(skill: &CatalogEntry<SkillDefinition>) -> Value {
    let SkillDefinition { name, description, triggers, callers, body, path, .. } =
        &skill.definition;
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
