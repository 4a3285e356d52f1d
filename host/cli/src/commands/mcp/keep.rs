//! The offer of a server, stored as accepted if a person has seen exactly this offer and agrees; the same for
//! remote servers and commands.

use std::path::{Path, PathBuf};

use belljar_definition::suspicion::{RULES, Suspicion, suspicions_of_text};
use belljar_mcp::{Accepted, Difference, Granted, ListedTool, Listing, Server};
use belljar_policy::{Shown, ShownPath as _};
use belljar_sandbox::Digest;
use serde_json::json;

use crate::args::server::TenantArg;
use crate::setup::below::{Below, For};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::Places;
use crate::term::diff;
use crate::term::out::{Out, Style};

/// The offer of a server, as it is now.
pub(super) struct Offer<'a> {
    pub(super) server: &'a Server,
    /// The server's kind, `url` or `command`, for the audit log.
    pub(super) at: &'static str,
    pub(super) address: &'a str,
    pub(super) listing: &'a Listing,
}

impl Offer<'_> {
    /// The difference from the accepted tools. Prints the left-out ones.
    pub(super) fn difference(&self, out: &Out) -> Difference {
        let before: Vec<ListedTool> = self.server.tools().values().cloned().collect();
        for tool in &self.listing.left_out {
            out.warning(format_args!("tool `{}` is left out: {}", tool.name, tool.why));
        }
        self.listing.difference(&before)
    }

    /// Says that there is nothing to accept.
    pub(super) fn unchanged(&self, out: &Out) -> Exit {
        out.line(format_args!("nothing changed at `{}`: {}", self.server.name(), self.count()));
        Exit::Completed
    }

    /// Shows the offer to a person, and stores it if they agree. `accept`: the digest shown before.
    pub(super) fn keep(
        &self,
        difference: &Difference,
        accept: Option<&str>,
        (of, operator): (&TenantArg, &Places),
        directory: &Below,
        out: &Out,
    ) -> Result<Exit, Failure> {
        grants(self.server.granted(), out);
        show(difference, out);
        suspicious(difference, out);
        let (name, digest) = (self.server.name(), self.digest());
        let again = of.command(&format!("belljar mcp review {name} --accept {digest}"));
        if !agreed(accept, (name, &digest), &again, out)? {
            return Ok(Exit::NotAllowed);
        }
        let accepted = Accepted::of(self.address, self.listing.tools.clone());
        let text = accepted.spoken_to(self.listing.revision).text();
        let text = text.map_err(|error| Failure::new(error.to_string()))?;
        let file = PathBuf::from(Accepted::file(name));
        let put = directory.replace(&file, text.as_bytes(), For::Owner);
        put.map_err(|error| unwritten(&directory.path().join(&file), &error))?;
        let detail = json!({
            "digest": digest,
            self.at: self.address,
            "tools": self.listing.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        });
        let what = ("accept_mcp_tools", "the tools are accepted");
        of.audit(operator, what, vec![(name.to_owned(), detail)])?;
        let word = out.paint(Style::Green, "accepted");
        out.line(format_args!("{word} {} of `{name}`", self.count()));
        let grant = of.command("belljar grant AGENT --tool mcp__NAME__TOOL");
        out.note(format_args!("grant them by name: `{grant}`"));
        Ok(Exit::Completed)
    }

    /// A digest of the address and of every word that models would read. Uncut, because a hostile server
    /// could otherwise find two offers with one short digest.
    fn digest(&self) -> String {
        let mut all = self.address.to_owned();
        for tool in &self.listing.tools {
            all.push('\n');
            all.push_str(&tool.digest().to_string());
        }
        Digest::of(all.as_bytes()).to_string()
    }

    fn count(&self) -> String {
        match self.listing.tools.len() {
            1 => "1 tool".to_owned(),
            number => format!("{number} tools"),
        }
    }
}

/// Prints the requests that the server may make, by `belljar.toml`.
fn grants(granted: &Granted, out: &Out) {
    for grant in said(granted) {
        out.line(format_args!("it may ask for {grant}"));
    }
}

/// The same, one after the other.
pub(super) fn said(granted: &Granted) -> Vec<String> {
    let forms = granted.elicitation.then(|| "forms, which are put to you".to_owned());
    let texts = granted.sampling.as_ref().map(|it| {
        let model = Shown::clipped(&it.model, 60);
        format!("texts of the model `{model}`, {} tokens a run", it.tokens)
    });
    let roots = granted.roots.as_ref().map(|_| "its directories".to_owned());
    [forms, texts, roots].into_iter().flatten().collect()
}

fn show(difference: &Difference, out: &Out) {
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

/// Suspicious signs, for a person to check before agreeing, by the rules for libraries.
fn suspicious(difference: &Difference, out: &Out) {
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

/// INV-312: whether a person has seen exactly this offer, and agrees. `again`: the command for agreeing
/// later.
fn agreed(
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

pub(super) fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to write `{}`: {error}", path.shown()))
}
