//! `belljar drafts`: lists and activates agents, teams and skills in the home's `drafts/`, which are not used
//! until a person activates them.

use std::path::{Path, PathBuf};

use belljar_agent::{Host, resolve_team_file};
use belljar_catalogue::Library;
use belljar_definition::{
    AgentContext, AgentDefinition, CatalogEntry, CatalogItem, Diagnostic, Severity,
    SkillDefinition, Slug, TeamDefinition,
};
use belljar_policy::{ShownPath as _, ShownText};
use serde_json::{Value, json};

use crate::args::server::TenantArg;
use crate::args::{DraftsArgs, DraftsCommand};
use crate::commands::catalogue::agents;
use crate::setup::below::{self, DirectoryHandle};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::setup::ours::make_private;
use crate::setup::whose::AgentOwner;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table::{TextTable, plain_cell, styled_cell};

/// Runs the command.
pub(crate) fn run(
    args: &DraftsArgs,
    operator: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let whose = match &args.command {
        DraftsCommand::List { .. } => AgentOwner::for_tenant(&args.of, operator)?,
        DraftsCommand::Promote { .. } => AgentOwner::to_change(&args.of, operator)?,
    };
    let host = whose.build_host(out)?;
    let drafts = DraftFolder { host: &host, of: &args.of, places: &whose.places, out };
    match &args.command {
        DraftsCommand::List { json } => drafts.list_drafts(*json),
        DraftsCommand::Promote { draft } => drafts.promote_one(draft),
    }
}

/// The drafts of one home, with what is needed to check them.
struct DraftFolder<'a> {
    host: &'a Host,
    of: &'a TenantArg,
    places: &'a HomePaths,
    out: &'a TerminalOutput,
}

/// A draft, with the faults that keep it from being activated.
struct DraftFile {
    kind: &'static str,
    name: String,
    /// The file that has the text of the draft.
    file: PathBuf,
    /// Errors that keep the draft from being activated. Warnings do not.
    findings: Vec<Diagnostic>,
}

impl DraftFile {
    fn is_ready(&self) -> bool {
        self.findings.iter().all(|found| found.severity < Severity::Error)
    }

    /// The path that is moved: the folder for a skill in a folder, otherwise the file.
    fn unit_path(&self) -> &Path {
        let is_skill =
            self.file.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"));
        let folder = self.file.parent().filter(|_| is_skill);
        folder.unwrap_or(&self.file)
    }
}

impl DraftFolder<'_> {
    /// Lists the drafts, each with whether it can be activated.
    fn list_drafts(&self, json: bool) -> Result<CommandExit, Failure> {
        let out = self.out;
        let drafts = self.all_drafts()?;
        if json {
            let row = |draft: &DraftFile| {
                json!({
                    "draft": format!("{}/{}", draft.kind, draft.name),
                    "path": draft.file,
                    "ready": draft.is_ready(),
                    "findings": draft.findings.iter().map(agents::as_json).collect::<Vec<_>>(),
                })
            };
            out.print_json(&drafts.iter().map(row).collect::<Vec<Value>>())?;
            return Ok(CommandExit::Completed);
        }
        if drafts.is_empty() {
            out.note(format_args!("no drafts in {}", self.places.drafts_directory().to_shown()));
            return Ok(CommandExit::Completed);
        }
        let mut table = TextTable::new(out, &["draft", "status", "file"]);
        for draft in &drafts {
            let (style, word) = match draft.is_ready() {
                true => (TextStyle::Green, "ready to promote"),
                false => (TextStyle::Red, "cannot be promoted"),
            };
            table.push_row([
                plain_cell(ShownText::new(&format!("{}/{}", draft.kind, draft.name))),
                styled_cell(style, word),
                plain_cell(ShownText::new(&draft.file.to_string_lossy())),
            ]);
        }
        table.print_to(out);
        drafts
            .iter()
            .flat_map(|draft| &draft.findings)
            .for_each(|found| out.print_diagnostic(found));
        Ok(CommandExit::Completed)
    }

    /// All drafts: agents, teams and skills, each checked.
    fn all_drafts(&self) -> Result<Vec<DraftFile>, Failure> {
        let mut drafts =
            self.drafts_of_kind::<AgentDefinition>(&self.host.library, self.agent_context())?;
        drafts.extend(self.drafts_of_kind::<TeamDefinition>(&self.host.teams, ())?);
        drafts.extend(self.drafts_of_kind::<SkillDefinition>(&self.host.skills, ())?);
        Ok(drafts)
    }

    fn agent_context(&self) -> AgentContext {
        let shapes = self.host.settings.shapes;
        AgentContext { known: self.host.tools.known_tools(), shapes }
    }

    /// Activates the draft named `agents/NAME`, `teams/NAME` or `skills/NAME`.
    fn promote_one(&self, draft: &str) -> Result<CommandExit, Failure> {
        let wrong = || {
            Failure::usage(format!("`{}` names no draft", ShownText::clip_line(draft, 100)))
                .with_hint("write `agents/NAME`, `teams/NAME` or `skills/NAME`")
        };
        let (kind, name) = draft.split_once('/').ok_or_else(wrong)?;
        match kind {
            "agents" | "agent" => {
                self.promote_draft(&*self.host.library, self.agent_context(), name)
            }
            "teams" | "team" => self.promote_draft(&*self.host.teams, (), name),
            "skills" | "skill" => self.promote_draft(&*self.host.skills, (), name),
            _ => Err(wrong()),
        }
    }

    /// The drafts of one kind, checked like files in use, and for names that are taken.
    fn drafts_of_kind<D>(
        &self,
        live: &Library<D>,
        context: D::Context,
    ) -> Result<Vec<DraftFile>, Failure>
    where
        D: CatalogItem + PartialEq + Clone + DraftCheck,
    {
        let found = belljar_catalogue::list_drafts(live, &self.places.home, context);
        let draft = |one: belljar_catalogue::Draft<D>| {
            let mut findings = one.findings;
            if let Some(entry) = &one.entry {
                findings.extend(D::check_more(self, entry)?);
            }
            Ok(DraftFile { kind: D::KIND.folder, name: one.name, file: one.file, findings })
        };
        found.into_iter().map(draft).collect()
    }

    /// Activates one draft of a kind: checks it, moves it into place, and prints a note.
    fn promote_draft<D>(
        &self,
        live: &Library<D>,
        context: D::Context,
        name: &str,
    ) -> Result<CommandExit, Failure>
    where
        D: CatalogItem + PartialEq + Clone + DraftCheck,
    {
        let noun = D::KIND.noun;
        let slug = Slug::from_name(name).map(|slug| slug.to_string());
        let mut found = self.drafts_of_kind(live, context)?;
        found.retain(|draft| Some(&draft.name) == slug.as_ref());
        let shown = ShownText::clip_line(name, 100).to_string();
        // If two drafts have the same name, the list shows the second as a duplicate.
        let Some(draft) = found.into_iter().next() else {
            let message = format!("no draft of {} is called `{shown}`", D::KIND.a_noun);
            let list = self.of.format_command("belljar drafts list");
            return Err(Failure::usage(message).with_hint(format!("`{list}` shows all")));
        };
        if !draft.is_ready() {
            let message = format!("{noun} `{shown}` stays a draft");
            return Err(Failure::from_diagnostics(message, draft.findings));
        }
        for finding in &draft.findings {
            self.out.print_diagnostic(finding);
        }
        let to = self.move_live(&draft)?;
        let word = self.out.paint(TextStyle::Green, "promoted");
        self.out.print_line(format_args!("{word} {}", ShownText::new(&to.to_string_lossy())));
        // Read again, because the file may have changed since it was checked.
        live.refresh();
        let is_live = |entry: &CatalogEntry<D>| entry.definition.path().starts_with(&to);
        if !live.catalog().entries().iter().any(is_live) {
            let message = format!("{noun} `{shown}` was changed meanwhile and is not in use");
            return Err(Failure::from_diagnostics(message, live.problems()));
        }
        Ok(CommandExit::Completed)
    }

    /// Moves a draft to the folder of its kind, if the name is free.
    fn move_live(&self, draft: &DraftFile) -> Result<PathBuf, Failure> {
        let from = draft.unit_path();
        let shown = |path: &Path| ShownText::new(&path.to_string_lossy()).to_string();
        let name = from.file_name().ok_or_else(|| Failure::usage("the draft has no name"))?;
        let folder = self.places.home.join(draft.kind);
        let to = folder.join(name);
        let moved = self.open_source(from).and_then(|(source, from)| {
            let live = below::in_home(&self.places.home, &folder)?;
            source.move_new(&from, &live, Path::new(name))?;
            make_private(&to)
        });
        match moved {
            Ok(()) => Ok(to),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Failure::usage(format!("`{}` is there already", shown(&to)))
                    .with_hint("rename the draft, or remove what is there"))
            }
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                Err(Failure::usage(error.to_string()))
            }
            Err(error) => {
                let (from, to) = (shown(from), shown(&to));
                Err(Failure::new(format!("failed to move `{from}` to `{to}`: {error}")))
            }
        }
    }
}

impl DraftFolder<'_> {
    /// Opens the folder of all drafts; returns it with the draft's path below it.
    fn open_source(&self, draft: &Path) -> std::io::Result<(DirectoryHandle, PathBuf)> {
        let all = self.places.drafts_directory();
        let below = draft.strip_prefix(&all).map_err(std::io::Error::other)?;
        Ok((below::in_home(&self.places.home, &all)?, below.to_path_buf()))
    }
}

/// Checks of a kind of draft that go beyond its text.
trait DraftCheck: Sized {
    fn check_more(
        drafts: &DraftFolder<'_>,
        draft: &CatalogEntry<Self>,
    ) -> Result<Vec<Diagnostic>, Failure>;
}

impl DraftCheck for AgentDefinition {
    fn check_more(_: &DraftFolder<'_>, _: &CatalogEntry<Self>) -> Result<Vec<Diagnostic>, Failure> {
        Ok(Vec::new())
    }
}

impl DraftCheck for SkillDefinition {
    fn check_more(_: &DraftFolder<'_>, _: &CatalogEntry<Self>) -> Result<Vec<Diagnostic>, Failure> {
        Ok(Vec::new())
    }
}

impl DraftCheck for TeamDefinition {
    fn check_more(
        drafts: &DraftFolder<'_>,
        draft: &CatalogEntry<Self>,
    ) -> Result<Vec<Diagnostic>, Failure> {
        let (host, workspace) = (drafts.host, &drafts.places.workspace);
        let team = resolve_team_file(host, draft.id.clone(), draft.definition.clone(), workspace)
            .map_err(agents::not_found)?;
        Ok(team
            .problems
            .into_iter()
            .map(crate::commands::catalogue::teams::soften_diagnostic)
            .collect())
    }
}
