//! `belljar drafts`: agents, teams and skills in the home's `drafts/` that wait for a person to activate
//! them.

use std::path::{Path, PathBuf};

use belljar_agent::{Host, resolve_team_file};
use belljar_catalogue::Library;
use belljar_definition::{
    AgentContext, AgentDefinition, CatalogEntry, Diagnostic, Filed, Severity, Skill, Slug,
    TeamDefinition,
};
use belljar_policy::{Shown, ShownPath as _};
use serde_json::{Value, json};

use crate::args::server::TenantArg;
use crate::args::{DraftsArgs, DraftsCommand};
use crate::commands::catalogue::agents;
use crate::setup::below::{self, Below};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::setup::ours::make_private;
use crate::setup::whose::Whose;
use crate::term::out::{Out, Style};
use crate::term::table::{Table, plain, styled};

pub(crate) fn run(args: &DraftsArgs, operator: &Places, out: &Out) -> Result<Exit, Failure> {
    let whose = match &args.command {
        DraftsCommand::List { .. } => Whose::named(&args.of, operator)?,
        DraftsCommand::Promote { .. } => Whose::to_change(&args.of, operator)?,
    };
    let host = whose.host(out)?;
    let drafts = Drafts { host: &host, of: &args.of, places: &whose.places, out };
    match &args.command {
        DraftsCommand::List { json } => drafts.list(*json),
        DraftsCommand::Promote { draft } => drafts.promote_one(draft),
    }
}

/// The drafts of one home, and the means to check them.
struct Drafts<'a> {
    host: &'a Host,
    of: &'a TenantArg,
    places: &'a Places,
    out: &'a Out,
}

/// A draft, with the obstacles to its activation.
struct Draft {
    kind: &'static str,
    name: String,
    /// The file that was read.
    file: PathBuf,
    /// Why it cannot be promoted: errors. Warnings and notes do not stand in the way.
    findings: Vec<Diagnostic>,
}

impl Draft {
    fn is_ready(&self) -> bool {
        self.findings.iter().all(|found| found.severity < Severity::Error)
    }

    /// The path to move: for a skill with a folder, the folder.
    fn unit(&self) -> &Path {
        let is_skill =
            self.file.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md"));
        let folder = self.file.parent().filter(|_| is_skill);
        folder.unwrap_or(&self.file)
    }
}

impl Drafts<'_> {
    fn list(&self, json: bool) -> Result<Exit, Failure> {
        let out = self.out;
        let drafts = self.all()?;
        if json {
            let row = |draft: &Draft| {
                json!({
                    "draft": format!("{}/{}", draft.kind, draft.name),
                    "path": draft.file,
                    "ready": draft.is_ready(),
                    "findings": draft.findings.iter().map(agents::as_json).collect::<Vec<_>>(),
                })
            };
            out.json(&drafts.iter().map(row).collect::<Vec<Value>>())?;
            return Ok(Exit::Completed);
        }
        if drafts.is_empty() {
            out.note(format_args!("no drafts in {}", self.places.drafts().shown()));
            return Ok(Exit::Completed);
        }
        let mut table = Table::new(out, &["draft", "status", "file"]);
        for draft in &drafts {
            let (style, word) = match draft.is_ready() {
                true => (Style::Green, "ready to promote"),
                false => (Style::Red, "cannot be promoted"),
            };
            table.row([
                plain(Shown::new(&format!("{}/{}", draft.kind, draft.name))),
                styled(style, word),
                plain(Shown::new(&draft.file.to_string_lossy())),
            ]);
        }
        table.print(out);
        drafts.iter().flat_map(|draft| &draft.findings).for_each(|found| out.diagnostic(found));
        Ok(Exit::Completed)
    }

    fn all(&self) -> Result<Vec<Draft>, Failure> {
        let mut drafts = self.drafts::<AgentDefinition>(&self.host.library, self.context())?;
        drafts.extend(self.drafts::<TeamDefinition>(&self.host.teams, ())?);
        drafts.extend(self.drafts::<Skill>(&self.host.skills, ())?);
        Ok(drafts)
    }

    fn context(&self) -> AgentContext {
        let shapes = self.host.settings.shapes;
        AgentContext { known: self.host.tools.known(), shapes }
    }

    fn promote_one(&self, draft: &str) -> Result<Exit, Failure> {
        let wrong = || {
            Failure::usage(format!("`{}` names no draft", Shown::clipped(draft, 100)))
                .hint("write `agents/NAME`, `teams/NAME` or `skills/NAME`")
        };
        let (kind, name) = draft.split_once('/').ok_or_else(wrong)?;
        match kind {
            "agents" | "agent" => self.promote(&*self.host.library, self.context(), name),
            "teams" | "team" => self.promote(&*self.host.teams, (), name),
            "skills" | "skill" => self.promote(&*self.host.skills, (), name),
            _ => Err(wrong()),
        }
    }

    /// The drafts of one kind: checked like other files, and for name clashes.
    fn drafts<D>(&self, live: &Library<D>, context: D::Context) -> Result<Vec<Draft>, Failure>
    where
        D: Filed + PartialEq + Clone + Check,
    {
        let found = belljar_catalogue::drafts(live, &self.places.home, context);
        let draft = |one: belljar_catalogue::Draft<D>| {
            let mut findings = one.findings;
            if let Some(entry) = &one.entry {
                findings.extend(D::more(self, entry)?);
            }
            Ok(Draft { kind: D::KIND.folder, name: one.name, file: one.file, findings })
        };
        found.into_iter().map(draft).collect()
    }

    fn promote<D>(
        &self,
        live: &Library<D>,
        context: D::Context,
        name: &str,
    ) -> Result<Exit, Failure>
    where
        D: Filed + PartialEq + Clone + Check,
    {
        let noun = D::KIND.noun;
        let slug = Slug::of(name).map(|slug| slug.to_string());
        let mut found = self.drafts(live, context)?;
        found.retain(|draft| Some(&draft.name) == slug.as_ref());
        let shown = Shown::clipped(name, 100).to_string();
        // Of two drafts with one name, the list shows the second as a duplicate with its reason.
        let Some(draft) = found.into_iter().next() else {
            let message = format!("no draft of {} is called `{shown}`", D::KIND.a_noun);
            let list = self.of.command("belljar drafts list");
            return Err(Failure::usage(message).hint(format!("`{list}` shows all")));
        };
        if !draft.is_ready() {
            let message = format!("{noun} `{shown}` stays a draft");
            return Err(Failure::diagnostics(message, draft.findings));
        }
        for finding in &draft.findings {
            self.out.diagnostic(finding);
        }
        let to = self.move_live(&draft)?;
        let word = self.out.paint(Style::Green, "promoted");
        self.out.line(format_args!("{word} {}", Shown::new(&to.to_string_lossy())));
        // The file may have been written to since it was read.
        live.refresh();
        let is_live = |entry: &CatalogEntry<D>| entry.definition.path().starts_with(&to);
        if !live.catalog().entries().iter().any(is_live) {
            let message = format!("{noun} `{shown}` was changed meanwhile and is not in use");
            return Err(Failure::diagnostics(message, live.problems()));
        }
        Ok(Exit::Completed)
    }

    fn move_live(&self, draft: &Draft) -> Result<PathBuf, Failure> {
        let from = draft.unit();
        let shown = |path: &Path| Shown::new(&path.to_string_lossy()).to_string();
        let name = from.file_name().ok_or_else(|| Failure::usage("the draft has no name"))?;
        let folder = self.places.home.join(draft.kind);
        let to = folder.join(name);
        let moved = self.source(from).and_then(|(source, from)| {
            let live = below::in_home(&self.places.home, &folder)?;
            source.move_new(&from, &live, Path::new(name))?;
            make_private(&to)
        });
        match moved {
            Ok(()) => Ok(to),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Failure::usage(format!("`{}` is there already", shown(&to)))
                    .hint("rename the draft, or remove what is there"))
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

impl Drafts<'_> {
    /// The folder of all drafts, open, and a draft's path below it.
    fn source(&self, draft: &Path) -> std::io::Result<(Below, PathBuf)> {
        let all = self.places.drafts();
        let below = draft.strip_prefix(&all).map_err(std::io::Error::other)?;
        Ok((below::in_home(&self.places.home, &all)?, below.to_path_buf()))
    }
}

/// The checks of a kind besides its text.
trait Check: Sized {
    fn more(drafts: &Drafts<'_>, draft: &CatalogEntry<Self>) -> Result<Vec<Diagnostic>, Failure>;
}

impl Check for AgentDefinition {
    fn more(_: &Drafts<'_>, _: &CatalogEntry<Self>) -> Result<Vec<Diagnostic>, Failure> {
        Ok(Vec::new())
    }
}

impl Check for Skill {
    fn more(_: &Drafts<'_>, _: &CatalogEntry<Self>) -> Result<Vec<Diagnostic>, Failure> {
        Ok(Vec::new())
    }
}

impl Check for TeamDefinition {
    fn more(drafts: &Drafts<'_>, draft: &CatalogEntry<Self>) -> Result<Vec<Diagnostic>, Failure> {
        let (host, workspace) = (drafts.host, &drafts.places.workspace);
        let team = resolve_team_file(host, draft.id.clone(), draft.definition.clone(), workspace)
            .map_err(agents::not_found)?;
        Ok(team.problems.into_iter().map(crate::commands::catalogue::teams::mild).collect())
    }
}
