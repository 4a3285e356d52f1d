//! `belljar mcp review`: what a server offers now, beside what was accepted of it. Accepted is what a
//! person has seen: in the same process, or by a digest of it.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use belljar_definition::suspicion::{RULES, Suspicion, suspicions_of_text};
use belljar_mcp::{Accepted, CallSpec, Connection, Difference, ListedTool, Listing, Server};
use belljar_policy::{Budget, Caps, Level, Limits, Shown, ShownPath as _};
use belljar_sandbox::Digest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{programs, served};
use crate::args::server::TenantArg;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, create_private};
use crate::setup::host;
use crate::setup::walls::Walls;
use crate::setup::whose::Whose;
use crate::term::diff;
use crate::term::out::{Out, Style};

pub(super) fn run(
    name: &str,
    accept: Option<&str>,
    of: &TenantArg,
    operator: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    if let Some(done) = programs::review(name, accept, of, operator, walls, out)? {
        return Ok(done);
    }
    let whose = Whose::named(of, operator)?;
    let places = &whose.places;
    let settings = host::settings(places)?;
    let setting = served::setting(&settings, name, places)?;
    let directory = places.mcp();
    create_private(&directory).map_err(|error| unwritten(&directory, &error))?;
    let mut through = served::through(of, operator)?;
    through.write.push(directory.clone());
    walls.up(operator, &through)?;
    let host = whose.host(out)?;
    let server = served::find(&host, name)?;
    let listing = asked(&server, &host, out)?;

    let before: Vec<ListedTool> = server.tools().values().cloned().collect();
    let difference = listing.difference(&before);
    for tool in &listing.left_out {
        out.warning(format_args!("tool `{}` is left out: {}", tool.name, tool.why));
    }
    if difference.is_empty() && server.withheld().is_none() {
        out.line(format_args!("nothing changed at `{name}`: {}", count(&listing)));
        return Ok(Exit::Completed);
    }
    show(&difference, out);
    suspicious(&difference, out);
    let digest = digest(&setting.url, &listing);
    let again = of.command(&format!("belljar mcp review {name} --accept {digest}"));
    if !agreed(accept, (name, &digest), &again, out)? {
        return Ok(Exit::NotAllowed);
    }
    let accepted = Accepted::of(&setting.url, listing.tools.clone());
    let text = accepted.spoken_to(listing.revision).text();
    let text = text.map_err(|error| Failure::new(error.to_string()))?;
    let path = directory.join(Accepted::file(name));
    replace(&directory, &path, &text).map_err(|error| unwritten(&path, &error))?;
    let detail = json!({
        "digest": digest,
        "url": setting.url,
        "tools": listing.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
    });
    let what = ("accept_mcp_tools", "the tools are accepted");
    of.audit(operator, what, vec![(name.to_owned(), detail)])?;
    let word = out.paint(Style::Green, "accepted");
    out.line(format_args!("{word} {} of `{name}`", count(&listing)));
    let grant = of.command("belljar grant AGENT --tool mcp__NAME__TOOL");
    out.note(format_args!("grant them by name: `{grant}`"));
    Ok(Exit::Completed)
}

/// Lists the tools of the server, through the gate.
fn asked(server: &Arc<Server>, host: &belljar_agent::Host, out: &Out) -> Result<Listing, Failure> {
    let runtime = host::small_runtime()?;
    let listed = runtime.block_on(async {
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, out);
        let budget = Budget::root(Level::Tenant, Caps::unlimited());
        let (connection, limits) = (Connection::new(Arc::clone(server)), Limits::default());
        let spec = CallSpec {
            sandbox: &host.sandbox,
            secrets: &host.secrets,
            budget: &budget,
            limits: &limits,
            cancel: &cancel,
            progress: None,
        };
        connection.list(spec).await
    });
    listed.map_err(|why| {
        Failure::new(format!(
            "the MCP server `{}` did not say what it offers: {why}",
            server.name()
        ))
    })
}

pub(super) fn show(difference: &Difference, out: &Out) {
    let heading = |word: &str, tool: &ListedTool| {
        out.line(format_args!("{} {}", out.paint(Style::Bold, word), tool.name));
    };
    for tool in &difference.added {
        heading("new", tool);
        for line in words(tool).lines() {
            out.line(format_args!("  {}", Shown::multiline(line)));
        }
    }
    for (before, now) in &difference.changed {
        heading("changed", now);
        diff::show(&now.name, &words(before), &words(now), out);
    }
    for tool in &difference.removed {
        heading("gone", tool);
    }
}

/// All that a model is told of a tool.
fn words(tool: &ListedTool) -> String {
    let schema = serde_json::to_string_pretty(&tool.schema).unwrap_or_default();
    format!("{}\n{schema}\n", tool.description)
}

/// The signs that a person should look at before they say yes, by the rules for libraries.
pub(super) fn suspicious(difference: &Difference, out: &Out) {
    let changed = difference.changed.iter().map(|(_, now)| now);
    let tools = difference.added.iter().chain(changed);
    let found: Vec<(&ListedTool, Suspicion)> = tools
        .flat_map(|tool| suspicions_of_text(&words(tool)).into_iter().map(move |it| (tool, it)))
        .collect();
    if found.is_empty() {
        out.line("suspicious: nothing");
        return;
    }
    out.line(out.paint(Style::Bold, "suspicious"));
    for (tool, it) in &found {
        let rule = out.paint(Style::Red, it.rule.name);
        out.line(format_args!("  {}: {rule}: {}", tool.name, it.found));
    }
    for rule in RULES.iter().filter(|rule| found.iter().any(|(_, it)| it.rule == *rule)) {
        out.line(format_args!("  {}: {}", rule.name, rule.why));
    }
}

/// INV-312: whether a person has seen exactly this, and says yes. `again`: the command that does.
pub(super) fn agreed(
    accept: Option<&str>,
    (name, digest): (&str, &str),
    again: &str,
    out: &Out,
) -> Result<bool, Failure> {
    match accept {
        Some(seen) if seen == digest => Ok(true),
        Some(_) => Err(Failure::new(format!("what `{name}` offers is not what was shown before"))
            .hint(format!("look at it above; then `{again}`"))),
        None if out.can_ask() => Ok(out.ask("accept this?") == Some(true)),
        None => {
            out.note(format_args!("to accept this: `{again}`"));
            Ok(false)
        }
    }
}

/// Of the address and of every word that models would be told. Whole: a server that has offers made for
/// it could find two of one digest, were it cut to what is easy to read.
pub(super) fn digest(url: &str, listing: &Listing) -> String {
    let mut all = url.to_owned();
    for tool in &listing.tools {
        all.push('\n');
        all.push_str(&tool.digest().to_string());
    }
    Digest::of(all.as_bytes()).to_string()
}

pub(super) fn count(listing: &Listing) -> String {
    match listing.tools.len() {
        1 => "1 tool".to_owned(),
        number => format!("{number} tools"),
    }
}

/// Writes beside the file and puts it in its place, so that nobody finds half of it.
pub(super) fn replace(directory: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = tempfile::NamedTempFile::new_in(directory)?;
    beside.write_all(text.as_bytes())?;
    beside.persist(path).map(drop).map_err(|error| error.error)
}

pub(super) fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to write `{}`: {error}", path.shown()))
}
