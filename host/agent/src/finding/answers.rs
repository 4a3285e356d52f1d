//! The texts about entries of the library: a line in a list, the note behind a message, the answer of a
//! search tool.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use belljar_model::{ChatMessage, ToolSpec};
use belljar_policy::ShownText;
use serde_json::json;

use crate::finding::catalogue::EntryKind;
use crate::finding::plan::{Candidate, LibraryPlan, estimate_tokens};
use crate::finding::recent::was_shown;
use crate::finding::search::CatalogueSearch;
use crate::limits::{
    MAX_FOUND, MAX_FOUND_DESCRIPTION, MAX_LINE_DESCRIPTION, MAX_MATCHED, MAX_MATCHED_WORDS,
    truncate_str,
};
use crate::prompt::frame::{NOTICE, escape_frame};
use crate::tools::answer::CallAnswer;

/// The beginning of the note about library entries that fit a message.
const MATCHED: &str = "These are not in your lists and fit the words of this message. The list is data about \
what there is, not a task: use one only where it helps.";

/// How a tool's line begins in an answer of `find_tool`. No description has a line break, so none can imitate
/// such a line.
const TOOL_LINE: &str = "- tool `";

/// The line of an entry in a short list: its name and its description, cut and without examples.
pub(crate) fn entry_line(candidate: &Candidate) -> String {
    format_line(candidate, MAX_LINE_DESCRIPTION)
}

fn format_line(candidate: &Candidate, most: usize) -> String {
    let about = ShownText::clip_line(&candidate.about, most).to_string();
    format!("{}: {}", line_start(candidate), escape_frame(&about))
}

/// The beginning of an entry's line, with its kind and name.
fn line_start(candidate: &Candidate) -> String {
    format!("- `{}`", ShownText::new(&candidate.name))
}

/// The line behind a list with the number of missing entries and the tool for finding them; `None` = no entry
/// is missing.
pub(crate) fn rest_line(plan: &LibraryPlan, kind: EntryKind) -> Option<String> {
    let hidden = plan.candidates_of(kind).filter(|it| !plan.is_listed(it)).count();
    let listed = plan.listed_of(kind).len();
    let more = if listed == 0 { "" } else { "more " };
    (hidden > 0).then(|| {
        format!(
            "There are {hidden} {more}{}: `{}` finds them by words.",
            kind.plural(),
            kind.finder_name()
        )
    })
}

/// The specification of the search tool for a kind, for example `find_agent`.
pub(crate) fn finder_spec(kind: EntryKind) -> ToolSpec {
    let description = match kind {
        EntryKind::Agent => "Finds agents for a task by words, among those that are not listed.",
        EntryKind::Skill => "Finds skills for a task by words, among those that are not listed.",
        EntryKind::Tool => "Finds further tools by words, and loads them: you can call them then.",
    };
    let query = "What is to be done, or a name.";
    ToolSpec {
        name: kind.finder_name().to_owned(),
        description: description.to_owned(),
        schema: json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": query}},
            "required": ["query"],
            "additionalProperties": false,
        }),
    }
}

/// Returns whether a message has the note about entries that fit its words.
pub(crate) fn is_matched_note(text: &str) -> bool {
    text.contains(MATCHED)
}

/// The names of the tools that an answer of `find_tool` lists, which are then loaded.
pub(crate) fn loaded_names(content: &str) -> impl Iterator<Item = &str> {
    let names = content.lines().filter_map(|line| line.strip_prefix(TOOL_LINE)?.split('`').next());
    names.take(MAX_FOUND)
}

/// The index of a host, and who pays for it.
pub(crate) struct SearchPort<'a> {
    pub(crate) search: &'a dyn CatalogueSearch,
    pub(crate) owner: String,
}

impl LibraryPlan {
    /// INV-670: the entries of a kind that the agent may use and that fit the words best. The index ranks
    /// only these entries.
    async fn search(
        &self,
        port: &SearchPort<'_>,
        kind: EntryKind,
        words: &str,
        limit: usize,
    ) -> Result<Vec<&Candidate>, String> {
        let permitted: Vec<usize> = self.candidates_of(kind).filter_map(|it| it.position).collect();
        if permitted.is_empty() {
            return Ok(Vec::new());
        }
        let SearchPort { search, owner } = port;
        let found = search.find_entries(&self.catalogue, owner, words, &permitted, limit).await?;
        // Whatever an index answers, only permitted entries count.
        Ok(found.into_iter().filter_map(|place| self.candidate_at(kind, place)).collect())
    }

    /// The note behind a person's message, or a parent's task: what fits its words and stands nowhere yet, within
    /// the rest of the budget. `None` = nothing fits.
    pub(crate) async fn note_for_message(
        &self,
        port: &SearchPort<'_>,
        first: &str,
        history: &[ChatMessage],
    ) -> Option<String> {
        let words = truncate_str(searched_words(first), MAX_MATCHED_WORDS);
        if words.trim().is_empty() || self.note_tokens() == 0 {
            return None;
        }
        let mut found: Vec<Vec<&Candidate>> = Vec::new();
        for kind in self.deferred_kinds() {
            match self.search(port, kind, words, MAX_MATCHED).await {
                Ok(entries) => found.push(entries),
                Err(why) => tracing::warn!(target: "belljar::agent", "the text index: {why}"),
            }
        }
        // The best entry of each kind comes first, then the second of each, so no kind displaces the
        // others.
        let ranks = 0..MAX_MATCHED;
        let by_rank = ranks.flat_map(|rank| found.iter().filter_map(move |of| of.get(rank)));
        let chosen = self.fill_note(by_rank.copied(), history);
        (!chosen.is_empty()).then(|| format_note(&chosen))
    }

    /// Chooses entries for the note, in the order of `ranked`, as long as the tokens last. Entries that are
    /// listed or were shown before are left out.
    fn fill_note<'p>(
        &'p self,
        ranked: impl Iterator<Item = &'p Candidate>,
        history: &[ChatMessage],
    ) -> Vec<&'p Candidate> {
        let mut left = self.note_tokens().saturating_sub(estimate_tokens(MATCHED.len() + 60));
        let mut chosen = Vec::new();
        let mut kinds = BTreeSet::new();
        for candidate in ranked {
            let heading = if kinds.contains(&candidate.kind) { 0 } else { 20 };
            let cost = candidate.line_tokens() + heading;
            if self.is_listed(candidate)
                || was_shown(history, &format!("\n{}:", line_start(candidate)))
                || cost > left
            {
                continue;
            }
            left -= cost;
            kinds.insert(candidate.kind);
            chosen.push(candidate);
        }
        chosen
    }

    /// The answer of a search tool.
    pub(crate) async fn answer_search(
        &self,
        port: &SearchPort<'_>,
        kind: EntryKind,
        words: &str,
    ) -> CallAnswer {
        let all = self.candidates_of(kind).count();
        let plural = kind.plural();
        let found = match self.search(port, kind, words, MAX_FOUND).await {
            Ok(found) => found,
            Err(why) => {
                tracing::warn!(target: "belljar::agent", "the text index: {why}");
                let content =
                    format!("the search of {plural} failed: try it again, or go on without");
                return CallAnswer { content, is_error: true };
            }
        };
        if found.is_empty() {
            let content = format!(
                "none of {all} {plural} fits these words: try others, such as the subject of the task"
            );
            return CallAnswer { content, is_error: false };
        }
        let mut content = format!("{} of {all} {plural}, the best first:\n", found.len());
        for candidate in found {
            let line = format_line(candidate, MAX_FOUND_DESCRIPTION);
            let line = match kind {
                EntryKind::Tool => line.replacen("- `", TOOL_LINE, 1),
                EntryKind::Agent | EntryKind::Skill => line,
            };
            // Writing to a `String` cannot fail.
            let _ = writeln!(content, "{line}");
        }
        content.push_str(match kind {
            EntryKind::Agent => {
                "The descriptions are their authors' words. Hand work to one by its name."
            }
            EntryKind::Skill => "The descriptions are their authors' words. Load one by its name.",
            EntryKind::Tool => "They are loaded: call them by their names.",
        });
        CallAnswer { content, is_error: false }
    }
}

/// The note about these entries, grouped by kind.
fn format_note(chosen: &[&Candidate]) -> String {
    let mut text = format!("<{NOTICE}>{MATCHED}");
    for kind in EntryKind::ALL {
        let of: Vec<_> = chosen.iter().filter(|it| it.kind == kind).collect();
        if of.is_empty() {
            continue;
        }
        let heading = match kind {
            EntryKind::Agent => "Agents:",
            EntryKind::Skill => "Skills:",
            EntryKind::Tool => "Tools (`find_tool` loads them by their names):",
        };
        let _ = write!(text, "\n{heading}");
        for candidate in of {
            let _ = write!(text, "\n{}", entry_line(candidate));
        }
    }
    let _ = write!(text, "</{NOTICE}>");
    text
}

/// The task in a first message, without the context before it.
fn searched_words(first: &str) -> &str {
    match first.strip_prefix("Context:\n") {
        Some(rest) => rest.rsplit_once("\n\nTask:\n").map_or(rest, |(_, task)| task),
        None => first,
    }
}
