//! The commands of a chat: one table behind the parser, `/help` and completion.

use belljar_policy::Shown;

/// Edits between a command and the typed word that still make a likely match.
const MAX_EDITS: usize = 2;

/// Characters of an unknown command that are repeated.
const MAX_SHOWN: usize = 40;

/// The action of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Help,
    Agents,
    Agent,
    Teams,
    Team,
    Skills,
    Tools,
    Changes,
    Apply,
    Discard,
    Undo,
    Budget,
    Compact,
    Cancel,
    Quit,
}

/// A row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) action: Action,
    pub(super) arguments: &'static str,
    pub(super) help: &'static str,
}

/// All commands, in the order of `/help`.
pub(super) const COMMANDS: &[Row] = &[
    Row { name: "help", action: Action::Help, arguments: "", help: "list the commands" },
    Row { name: "agents", action: Action::Agents, arguments: "", help: "list the agents" },
    Row {
        name: "agent",
        action: Action::Agent,
        arguments: "[-b|-k] NAME TASK",
        help: "run an agent on the side; -b in the background, -k tells the conversation",
    },
    Row { name: "teams", action: Action::Teams, arguments: "", help: "list the teams" },
    Row {
        name: "team",
        action: Action::Team,
        arguments: "NAME TASK",
        help: "run a team on the side",
    },
    Row { name: "skills", action: Action::Skills, arguments: "", help: "list the skills" },
    Row {
        name: "tools",
        action: Action::Tools,
        arguments: "",
        help: "list the tools of the agent you talk with",
    },
    Row {
        name: "changes",
        action: Action::Changes,
        arguments: "[PATH...]",
        help: "show what was changed in the overlay of this conversation",
    },
    Row {
        name: "apply",
        action: Action::Apply,
        arguments: "[--yes] [--also-what-runs] [PATH...]",
        help: "put these changes into the workspace, after asking",
    },
    Row {
        name: "discard",
        action: Action::Discard,
        arguments: "[--yes] [PATH...]",
        help: "throw these changes away, after asking",
    },
    Row { name: "undo", action: Action::Undo, arguments: "", help: "take the last `/apply` back" },
    Row { name: "budget", action: Action::Budget, arguments: "", help: "show what was used" },
    Row {
        name: "compact",
        action: Action::Compact,
        arguments: "",
        help: "put a summary in the place of what was said so far",
    },
    Row {
        name: "cancel",
        action: Action::Cancel,
        arguments: "[N|all]",
        help: "list what runs in the background; stop number N of it, or all",
    },
    Row { name: "quit", action: Action::Quit, arguments: "", help: "leave; Ctrl-D does the same" },
];

/// The meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input<'a> {
    /// Nothing.
    Blank,
    /// Something to say to the agent.
    Say(&'a str),
    /// A command with its trimmed argument, for example `/cancel 2`.
    Command(Action, &'a str),
    /// No command; why, with the likely one.
    Unknown(String),
}

/// Parses a line. A line that begins with `/` is a command; after a blank it is text.
pub(super) fn read(line: &str) -> Input<'_> {
    if line.trim().is_empty() {
        return Input::Blank;
    }
    let Some(command) = line.strip_prefix('/') else { return Input::Say(line) };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match COMMANDS.iter().find(|row| row.name == name) {
        Some(row) => Input::Command(row.action, rest.trim()),
        None => Input::Unknown(unknown(name)),
    }
}

/// How a command is called.
pub(super) fn usage(row: &Row) -> String {
    format!("/{} {}", row.name, row.arguments).trim_end().to_owned()
}

pub(super) fn row(action: Action) -> Option<&'static Row> {
    COMMANDS.iter().find(|row| row.action == action)
}

fn unknown(name: &str) -> String {
    let shown = Shown::clipped(name, MAX_SHOWN);
    match likely(name) {
        Some(likely) => format!("there is no command `/{shown}`; did you mean `/{likely}`?"),
        None => format!(
            "there is no command `/{shown}`; `/help` lists them, and a blank before the `/` says the line to the agent"
        ),
    }
}

/// The most likely command: the nearest one, or the only one with this beginning.
fn likely(name: &str) -> Option<&'static str> {
    let name: String = name.chars().take(MAX_SHOWN).flat_map(char::to_lowercase).collect();
    let mut begins = COMMANDS.iter().filter(|row| !name.is_empty() && row.name.starts_with(&name));
    if let (Some(row), None) = (begins.next(), begins.next()) {
        return Some(row.name);
    }
    let near = COMMANDS.iter().map(|row| (edits(&name, row.name), row.name)).min()?;
    (near.0 <= MAX_EDITS && near.0 < name.chars().count()).then_some(near.1)
}

/// How many characters have to be put in, taken out, replaced or swapped with their neighbour.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut best =
                (last[j + 1] + 1).min(next[j] + 1).min(last[j] + usize::from(from != to));
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                best = best.min(before[j - 1] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut last, next);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_text_unless_it_begins_with_a_slash() {
        assert_eq!(read(" \t"), Input::Blank);
        assert_eq!(read(" /help me"), Input::Say(" /help me"));
        assert_eq!(read("a / b"), Input::Say("a / b"));
        assert_eq!(
            read("/agent  scout  look here "),
            Input::Command(Action::Agent, "scout  look here")
        );
    }

    #[test]
    fn an_unknown_command_names_the_likely_one() {
        for (typed, meant) in [
            ("/hlep", "/help"),
            ("/agnets", "/agents"),
            ("/TOOLS", "/tools"),
            ("/bud", "/budget"),
            ("/quti", "/quit"),
        ] {
            let Input::Unknown(why) = read(typed) else { panic!("{typed}") };
            assert!(why.ends_with(&format!("did you mean `{meant}`?")), "{why}");
        }
        for typed in ["/", "/x", "/etc/passwd", "/\u{1b}[2J"] {
            let Input::Unknown(why) = read(typed) else { panic!("{typed}") };
            assert!(why.contains("/help") && !why.contains('\u{1b}'), "{why}");
        }
    }

    #[test]
    fn every_command_has_one_row() {
        for (place, row) in COMMANDS.iter().enumerate() {
            let same = |other: &Row| other.name == row.name || other.action == row.action;
            assert_eq!(COMMANDS.iter().position(same), Some(place), "{}", row.name);
        }
    }
}
