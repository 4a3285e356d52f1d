//! The question of `add` on one screen: agents grouped by equal rights, with what is suspicious and what goes
//! beyond the defaults first.
//!
//! Nothing of these two is left out: what does not fit is counted by kind, with the name of one agent each.
//! For example, `131 read, write to the overlay` stands for 131 agents, and `--details` shows a row for each.

use std::collections::BTreeMap;

use belljar_definition::builtin_tools::SPAWN_AGENT;
use belljar_definition::suspicion::RULES;
use belljar_definition::{BUILTIN_TOOLS, Slug};
use belljar_policy::ShownText;

use super::report;
use super::vetting::{SourceAgent, VettedSource};
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::table;

/// Lines of the list in full that still fit on a screen with the question and the answer.
const MAX_FULL: usize = 18;

/// Lines of suspicions.
const MAX_SUSPICIONS: usize = 4;

/// Lines of groups of equal rights.
const MAX_GROUPS: usize = 5;

/// Kinds of what is asked beyond the defaults, each with a count and a name.
const MAX_KINDS: usize = 4;

/// Rights of the groups that are counted together.
const MAX_WORDS: usize = 8;

/// Files left out that are named.
const MAX_LEFT_OUT: usize = 2;

/// Characters of a path or of a right.
const MAX_ITEM: usize = 80;

/// The words for what tools do; a tool that is not here has its own name.
const WORDS: &[(&str, &[&str])] = &[
    ("read", &["file_read", "file_list", "file_find", "file_search"]),
    ("write", &["file_write", "file_edit", "notebook_edit"]),
    ("run commands in the jar", &["shell"]),
    ("run code in the jar", &["run_python", "run_javascript"]),
    ("search the web", &["web_search"]),
    ("fetch pages", &["web_fetch"]),
    ("attach files", &["attach_file"]),
    ("start agents", &[SPAWN_AGENT]),
];

/// Shows what a source holds: in full where that fits on a screen or is wanted, and else in groups.
pub(super) fn print_source(vetted: &VettedSource, details: bool, out: &TerminalOutput) {
    if details || full_lines(vetted) <= MAX_FULL {
        out.print_line("");
        report::print_agents(&vetted.agents, out);
        report::left_out(vetted, out);
        out.print_line("");
        report::print_suspicions(&vetted.agents, out);
        out.print_line("");
        out.print_line(report::count_statuses(vetted));
        return;
    }
    out.print_line("");
    print_suspicions(&vetted.agents, out);
    print_groups(&vetted.agents, out);
    print_left_out(vetted, out);
    out.print_line(format_args!(
        "{}; `--details` shows each of them",
        report::count_statuses(vetted)
    ));
}

/// The lines of everything in full.
fn full_lines(vetted: &VettedSource) -> usize {
    let suspicions: usize = vetted.agents.iter().map(|agent| agent.suspicions.len()).sum();
    let rules = RULES.iter().filter(|rule| {
        vetted.agents.iter().flat_map(|agent| &agent.suspicions).any(|it| it.rule == *rule)
    });
    let suspicious = if suspicions == 0 { 1 } else { 1 + suspicions + rules.count() };
    let left_out = match vetted.left_out.len() {
        0 => 0,
        files => files + 2,
    };
    let others =
        usize::from(!vetted.documents.is_empty()) + usize::from(!vetted.folders.is_empty());
    vetted.agents.len() + 2 + suspicious + left_out + others
}

fn print_suspicions(agents: &[SourceAgent], out: &TerminalOutput) {
    let all = || agents.iter().flat_map(|agent| agent.suspicions.iter().map(move |it| (agent, it)));
    let (total, of) = (all().count(), agents.iter().filter(|it| !it.suspicions.is_empty()).count());
    if total == 0 {
        out.print_line("suspicious: nothing");
        return;
    }
    out.print_line(format_args!(
        "{}: {} in {}",
        out.paint(TextStyle::Red, "suspicious"),
        table::format_quantity(total as u64, "place"),
        table::format_quantity(of as u64, "agent")
    ));
    let place = |agent: &SourceAgent, line: u32| {
        format!("{}:{line}", ShownText::clip_line(&agent.file.path, MAX_ITEM))
    };
    if total <= MAX_SUSPICIONS {
        for (agent, it) in all() {
            let at = place(agent, it.line);
            let found = ShownText::clip_line(&it.found, MAX_ITEM);
            out.print_line(format_args!("  {at}: {}: {found}", it.rule.name));
        }
        return;
    }
    let mut kinds: Vec<(&str, usize, String, String)> = Vec::new();
    for (agent, it) in all() {
        match kinds.iter_mut().find(|(rule, ..)| *rule == it.rule.name) {
            Some((_, count, ..)) => *count += 1,
            None => {
                let found = ShownText::clip_line(&it.found, MAX_ITEM).to_string();
                kinds.push((it.rule.name, 1, place(agent, it.line), found));
            }
        }
    }
    let shown = if kinds.len() > MAX_SUSPICIONS { MAX_SUSPICIONS - 1 } else { kinds.len() };
    for (rule, count, at, found) in kinds.iter().take(shown) {
        out.print_line(format_args!("  {count} {rule}, the first {at}: {found}"));
    }
    let rest: Vec<String> = kinds
        .iter()
        .skip(shown)
        .map(|(rule, count, at, _)| format!("{count} {rule} ({at})"))
        .collect();
    if !rest.is_empty() {
        out.print_line(format_args!("  {}", rest.join(", ")));
    }
}

fn print_groups(agents: &[SourceAgent], out: &TerminalOutput) {
    let mut groups: BTreeMap<String, Vec<&Slug>> = BTreeMap::new();
    for agent in agents {
        let rights = describe_rights(&agent.resolved.list_rights());
        groups.entry(rights).or_default().push(&agent.resolved.id.slug);
    }
    let mut groups: Vec<(String, Vec<&Slug>)> = groups.into_iter().collect();
    // The groups of few agents are counted together, by each of their rights.
    groups.sort_by_key(|(rights, names)| (std::cmp::Reverse(names.len()), rights.clone()));
    out.print_line(out.paint(TextStyle::Bold, "rights"));
    let shown = if groups.len() > MAX_GROUPS { MAX_GROUPS - 1 } else { groups.len() };
    for (rights, names) in groups.iter().take(shown) {
        let named = match names.as_slice() {
            [one] => format!("  ({one})"),
            _ => String::new(),
        };
        out.print_line(format_args!("  {:<4} {rights}{named}", names.len()));
    }
    let rest = groups.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let few: usize = rest.iter().map(|(_, names)| names.len()).sum();
        let mut words: Vec<&str> = Vec::new();
        for word in rest.iter().flat_map(|(rights, _)| rights.split(", ")) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let more = match words.len().saturating_sub(MAX_WORDS) {
            0 => String::new(),
            more => format!(", and {more} other rights"),
        };
        words.truncate(MAX_WORDS);
        let first = rest.iter().find_map(|(_, names)| names.first());
        let first = first.map_or(String::new(), |name| format!(" (such as of `{name}`)"));
        let groups = table::format_quantity(rest.len() as u64, "other group");
        let words = words.join(", ");
        out.print_line(format_args!("  {few:<4} in {groups}{first} with some of: {words}{more}"));
    }
    let beyond = agents.iter().flat_map(|agent| {
        let denials = agent.resolved.list_denials().into_iter();
        denials.map(move |denial| (describe_item(&denial), &agent.resolved.id.slug))
    });
    let beyond = count_items(beyond);
    if !beyond.is_empty() {
        let word = out.paint(TextStyle::Yellow, "asked beyond the defaults, and not given");
        out.print_line(format_args!("{word}: {beyond}"));
    }
}

/// Counts items, each with the name of its first agent; what does not fit is counted together.
fn count_items<'a>(items: impl Iterator<Item = (String, &'a Slug)>) -> String {
    let mut counts: BTreeMap<String, (usize, &Slug)> = BTreeMap::new();
    for (item, name) in items {
        counts.entry(item).or_insert((0, name)).0 += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(item, (count, _))| (std::cmp::Reverse(*count), item.clone()));
    let mut shown: Vec<String> = counts
        .iter()
        .take(MAX_KINDS)
        .map(|(item, (count, name))| format!("{item} {count} (`{name}`)"))
        .collect();
    if let Some((_, (_, name))) = counts.get(MAX_KINDS) {
        shown.push(format!("{} other kinds (`{name}`)", counts.len() - MAX_KINDS));
    }
    shown.join(", ")
}

/// Rights as words, for example `read, write to the overlay, search the web`.
fn describe_rights(rights: &[String]) -> String {
    let workspace = rights.iter().find_map(|right| right.strip_prefix("mount /workspace ("));
    let workspace = workspace.map(|access| access.trim_end_matches(')'));
    let mut words: Vec<String> = Vec::new();
    for right in rights.iter().filter(|right| !right.starts_with("mount /workspace (")) {
        if BUILTIN_TOOLS.contains(&right.as_str()) && right != SPAWN_AGENT {
            continue;
        }
        let mut word = describe_item(right);
        if word == "write" {
            word = match workspace {
                Some("overlay") => "write to the overlay".to_owned(),
                Some(_) => "write to the workspace".to_owned(),
                None => word,
            };
        }
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let order = |word: &String| {
        let at = WORDS.iter().position(|(known, _)| word.starts_with(known));
        at.unwrap_or(WORDS.len())
    };
    words.sort_by_key(order);
    match words.as_slice() {
        [only] if only == "read" => "read only".to_owned(),
        [] => "no tools".to_owned(),
        words => words.join(", "),
    }
}

/// One right as a word; a right that needs a question says so.
fn describe_item(item: &str) -> String {
    let (name, asks) = match item.strip_suffix(" (ask)") {
        Some(name) => (name, " after a question"),
        None => (item, ""),
    };
    if let Some(server) = name.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()) {
        return format!("MCP of {}{asks}", ShownText::clip_line(server, MAX_ITEM));
    }
    let word = WORDS.iter().find(|(_, tools)| tools.contains(&name)).map(|(word, _)| *word);
    format!("{}{asks}", ShownText::clip_line(word.unwrap_or(name), MAX_ITEM))
}

fn print_left_out(vetted: &VettedSource, out: &TerminalOutput) {
    let number = vetted.left_out.len() + vetted.unnamed;
    if number > 0 {
        let named: Vec<String> = vetted
            .left_out
            .iter()
            .take(MAX_LEFT_OUT)
            .map(|file| format!("{}: {}", ShownText::clip_line(&file.path, MAX_ITEM), file.why))
            .collect();
        let more = if number > MAX_LEFT_OUT { "; ..." } else { "" };
        out.print_line(format_args!("left out {number}: {}{more}", named.join("; ")));
    }
    if !vetted.documents.is_empty() {
        let number = table::format_quantity(vetted.documents.len() as u64, "file");
        out.print_line(format_args!("no agents, for lack of frontmatter: {number}"));
    }
    if !vetted.folders.is_empty() {
        let folders: Vec<String> = vetted.folders.iter().map(|name| format!("{name}/")).collect();
        let folders = folders.join(", ");
        out.print_line(format_args!("not installed, as only agents are: {folders}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_said_in_words() {
        let rights = |items: &[&str]| {
            describe_rights(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(rights(&["file_find", "file_read"]), "read only");
        assert_eq!(
            rights(&[
                "web_search",
                "file_edit",
                "file_read",
                "todo_write",
                "mount /workspace (overlay)"
            ]),
            "read, write to the overlay, search the web"
        );
        assert_eq!(rights(&["no tools"]), "no tools");
        assert_eq!(rights(&[]), "no tools");
        assert_eq!(
            rights(&[
                "shell (ask)",
                "mcp__db__query",
                "host https://x.test",
                "mount /data (read-write)"
            ]),
            "run commands in the jar after a question, MCP of db, host https://x.test, mount /data (read-write)"
        );
    }

    #[test]
    fn what_does_not_fit_is_counted_with_a_name() {
        let slug = |name: &str| Slug::from_name(name).unwrap();
        let names: Vec<Slug> = (0..20).map(|n| slug(&format!("a{n}"))).collect();
        let items = names.iter().enumerate().map(|(n, name)| (format!("right{n:02}"), name));
        let text = count_items(items);
        assert!(text.contains("right00 1 (`a0`)"), "{text}");
        assert!(text.ends_with("16 other kinds (`a4`)"), "{text}");
    }
}
