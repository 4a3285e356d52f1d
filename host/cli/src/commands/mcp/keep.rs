//! Accepts the tools that an MCP server offers: they are stored if a person has seen exactly this offer and
//! agrees. Used for remote servers and for commands.

use std::path::{Path, PathBuf};

use belljar_definition::suspicion::{RULES, Suspicion, suspicions_of_text};
use belljar_mcp::{
    AcceptedTools, ListedTool, ListingDifference, Server, ServerGrants, ToolListing,
};
use belljar_policy::{ShownPath as _, ShownText};
use belljar_sandbox::Digest;
use serde_json::json;

use crate::args::server::TenantArg;
use crate::setup::below::{DirectoryHandle, FileAudience};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::HomePaths;
use crate::term::diff;
use crate::term::out::{TerminalOutput, TextStyle};

/// The tools that a server offers at present.
pub(super) struct ServerOffer<'a> {
    pub(super) server: &'a Server,
    /// The kind of server for the audit log: `url` or `command`.
    pub(super) at: &'static str,
    pub(super) address: &'a str,
    pub(super) listing: &'a ToolListing,
}

impl ServerOffer<'_> {
    /// The difference from the accepted tools. Also prints the offered tools that cannot be used.
    pub(super) fn find_difference(&self, out: &TerminalOutput) -> ListingDifference {
        let before: Vec<ListedTool> = self.server.tools().values().cloned().collect();
        for tool in &self.listing.left_out {
            out.print_warning(format_args!("tool `{}` is left out: {}", tool.name, tool.why));
        }
        self.listing.diff_accepted(&before)
    }

    /// Prints that there is nothing to accept.
    pub(super) fn report_unchanged(&self, out: &TerminalOutput) -> CommandExit {
        out.print_line(format_args!(
            "nothing changed at `{}`: {}",
            self.server.name(),
            self.format_tool_count()
        ));
        CommandExit::Completed
    }

    /// Shows the offer to a person, and stores it if they agree. `accept` = the digest of an offer that the
    /// person has seen before.
    pub(super) fn store_if_agreed(
        &self,
        difference: &ListingDifference,
        accept: Option<&str>,
        (of, operator): (&TenantArg, &HomePaths),
        directory: &DirectoryHandle,
        out: &TerminalOutput,
    ) -> Result<CommandExit, Failure> {
        print_grants(self.server.request_grants(), out);
        show_difference(difference, out);
        print_suspicions(difference, out);
        let (name, digest) = (self.server.name(), self.offer_digest());
        let again = of.format_command(&format!("belljar mcp review {name} --accept {digest}"));
        if !ask_agreement(accept, (name, &digest), &again, out)? {
            return Ok(CommandExit::NotAllowed);
        }
        let accepted = AcceptedTools::from_tools(self.address, self.listing.tools.clone());
        let text = accepted.spoken_to(self.listing.revision).to_text();
        let text = text.map_err(|error| Failure::new(error.to_string()))?;
        let file = PathBuf::from(AcceptedTools::file_name(name));
        let put = directory.replace_file(&file, text.as_bytes(), FileAudience::Owner);
        put.map_err(|error| unwritable_file(&directory.path().join(&file), &error))?;
        let detail = json!({
            "digest": digest,
            self.at: self.address,
            "tools": self.listing.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        });
        let what = ("accept_mcp_tools", "the tools are accepted");
        of.audit_action(operator, what, vec![(name.to_owned(), detail)])?;
        let word = out.paint(TextStyle::Green, "accepted");
        out.print_line(format_args!("{word} {} of `{name}`", self.format_tool_count()));
        let grant = of.format_command("belljar grant AGENT --tool mcp__NAME__TOOL");
        out.note(format_args!("grant them by name: `{grant}`"));
        Ok(CommandExit::Completed)
    }

    /// A digest of the address and of every word that models would read. Not shortened, because a hostile
    /// server could otherwise find two offers with the same short digest.
    fn offer_digest(&self) -> String {
        let mut all = self.address.to_owned();
        for tool in &self.listing.tools {
            all.push('\n');
            all.push_str(&tool.digest().to_string());
        }
        Digest::hash_bytes(all.as_bytes()).to_string()
    }

    /// The number of offered tools in words.
    fn format_tool_count(&self) -> String {
        match self.listing.tools.len() {
            1 => "1 tool".to_owned(),
            number => format!("{number} tools"),
        }
    }
}

/// Prints what the server may request during a call, by `belljar.toml`.
fn print_grants(granted: &ServerGrants, out: &TerminalOutput) {
    for grant in list_grants(granted) {
        out.print_line(format_args!("it may ask for {grant}"));
    }
}

/// What the server may request during a call, by `belljar.toml`, one item each, for example forms for the
/// person.
pub(super) fn list_grants(granted: &ServerGrants) -> Vec<String> {
    let forms = granted.elicitation.then(|| "forms, which are put to you".to_owned());
    let texts = granted.sampling.as_ref().map(|it| {
        let model = ShownText::clip_line(&it.model, 60);
        format!("texts of the model `{model}`, {} tokens a run", it.tokens)
    });
    let roots = granted.roots.as_ref().map(|_| "its directories".to_owned());
    [forms, texts, roots].into_iter().flatten().collect()
}

/// Prints the new, changed and removed tools, for a person to judge.
fn show_difference(difference: &ListingDifference, out: &TerminalOutput) {
    let heading = |word: &str, tool: &ListedTool| {
        out.print_line(format_args!("{} {}", out.paint(TextStyle::Bold, word), tool.name));
    };
    for tool in &difference.added {
        heading("new", tool);
        for line in tool_words(tool).lines() {
            out.print_line(format_args!("  {}", ShownText::multiline(line)));
        }
    }
    for (before, now) in &difference.changed {
        heading("changed", now);
        diff::print_diff(&now.name, &tool_words(before), &tool_words(now), out);
    }
    for tool in &difference.removed {
        heading("gone", tool);
    }
}

/// Everything that a model is told about a tool.
fn tool_words(tool: &ListedTool) -> String {
    let schema = serde_json::to_string_pretty(&tool.schema).unwrap_or_default();
    format!("{}\n{schema}\n", tool.description)
}

/// Prints suspicious signs in the offer, by the rules for libraries, for a person to check first.
fn print_suspicions(difference: &ListingDifference, out: &TerminalOutput) {
    let changed = difference.changed.iter().map(|(_, now)| now);
    let tools = difference.added.iter().chain(changed);
    let found: Vec<(&ListedTool, Suspicion)> = tools
        .flat_map(|tool| {
            suspicions_of_text(&tool_words(tool)).into_iter().map(move |it| (tool, it))
        })
        .collect();
    if found.is_empty() {
        out.print_line("suspicious: nothing");
        return;
    }
    out.print_line(out.paint(TextStyle::Bold, "suspicious"));
    for (tool, it) in &found {
        let rule = out.paint(TextStyle::Red, it.rule.name);
        out.print_line(format_args!("  {}: {rule}: {}", tool.name, it.found));
    }
    for rule in RULES.iter().filter(|rule| found.iter().any(|(_, it)| it.rule == *rule)) {
        out.print_line(format_args!("  {}: {}", rule.name, rule.why));
    }
}

/// INV-312: returns whether a person has seen exactly this offer, and agrees. `again` = the command with
/// which they can agree later.
fn ask_agreement(
    accept: Option<&str>,
    (name, digest): (&str, &str),
    again: &str,
    out: &TerminalOutput,
) -> Result<bool, Failure> {
    match accept {
        Some(seen) if seen == digest => Ok(true),
        Some(_) => Err(Failure::new(format!("what `{name}` offers is not what was shown before"))
            .with_hint(format!("look at it above; then `{again}`"))),
        None if out.can_ask() => Ok(out.ask("accept this?") == Some(true)),
        None => {
            out.note(format_args!("to accept this: `{again}`"));
            Ok(false)
        }
    }
}

pub(super) fn unwritable_file(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to write `{}`: {error}", path.to_shown()))
}
