//! The commands of a chat, in one table for the parser, `/help` and completion.

use belljar_policy::ShownText;

/// The most edits between a typed word and a command that is suggested for it.
const MAX_EDITS: usize = 2;

/// The most characters of an unknown command that an error repeats.
const MAX_SHOWN: usize = 40;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlashAction {
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

/// A command of the table.
pub(super) struct SlashCommand {
    pub(super) name: &'static str,
    pub(super) action: SlashAction,
    pub(super) arguments: &'static str,
    pub(super) help: &'static str,
}

/// All commands, in the order of `/help`.
pub(super) const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "help",
        action: SlashAction::Help,
        arguments: "",
        help: "list the commands",
    },
    SlashCommand {
        name: "agents",
        action: SlashAction::Agents,
        arguments: "",
        help: "list the agents",
    },
    SlashCommand {
        name: "agent",
        action: SlashAction::Agent,
        arguments: "[-b|-k] NAME TASK",
        help: "run an agent on the side; -b in the background, -k tells the conversation",
    },
    SlashCommand {
        name: "teams",
        action: SlashAction::Teams,
        arguments: "",
        help: "list the teams",
    },
    SlashCommand {
        name: "team",
        action: SlashAction::Team,
        arguments: "NAME TASK",
        help: "run a team on the side",
    },
    SlashCommand {
        name: "skills",
        action: SlashAction::Skills,
        arguments: "",
        help: "list the skills",
    },
    SlashCommand {
        name: "tools",
        action: SlashAction::Tools,
        arguments: "",
        help: "list the tools of the agent you talk with",
    },
    SlashCommand {
        name: "changes",
        action: SlashAction::Changes,
        arguments: "[PATH...]",
        help: "show what was changed in the overlay of this conversation",
    },
    SlashCommand {
        name: "apply",
        action: SlashAction::Apply,
        arguments: "[--yes] [--also-what-runs] [PATH...]",
        help: "put these changes into the workspace, after asking",
    },
    SlashCommand {
        name: "discard",
        action: SlashAction::Discard,
        arguments: "[--yes] [PATH...]",
        help: "throw these changes away, after asking",
    },
    SlashCommand {
        name: "undo",
        action: SlashAction::Undo,
        arguments: "",
        help: "take the last `/apply` back",
    },
    SlashCommand {
        name: "budget",
        action: SlashAction::Budget,
        arguments: "",
        help: "show what was used",
    },
    SlashCommand {
        name: "compact",
        action: SlashAction::Compact,
        arguments: "",
        help: "put a summary in the place of what was said so far",
    },
    SlashCommand {
        name: "cancel",
        action: SlashAction::Cancel,
        arguments: "[N|all]",
        help: "list what runs in the background; stop number N of it, or all",
    },
    SlashCommand {
        name: "quit",
        action: SlashAction::Quit,
        arguments: "",
        help: "leave; Ctrl-D does the same",
    },
];

/// What a typed line means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatInput<'a> {
    /// An empty line.
    Blank,
    /// A message to the agent.
    Say(&'a str),
    /// A command with its trimmed argument, for example `/cancel 2`.
    Command(SlashAction, &'a str),
    /// An unknown command. The text says so, and suggests a similar one.
    Unknown(String),
}

/// Parses a line. A line that begins with `/` is a command; with a blank before the `/`, it is a message.
pub(super) fn parse_line(line: &str) -> ChatInput<'_> {
    if line.trim().is_empty() {
        return ChatInput::Blank;
    }
    let Some(command) = line.strip_prefix('/') else { return ChatInput::Say(line) };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match COMMANDS.iter().find(|row| row.name == name) {
        Some(row) => ChatInput::Command(row.action, rest.trim()),
        None => ChatInput::Unknown(unknown_command(name)),
    }
}

/// A command with its argument, for example `/cancel [N]`.
pub(super) fn format_usage(row: &SlashCommand) -> String {
    format!("/{} {}", row.name, row.arguments).trim_end().to_owned()
}

pub(super) fn find_command(action: SlashAction) -> Option<&'static SlashCommand> {
    COMMANDS.iter().find(|row| row.action == action)
}

/// The error for an unknown command, with a suggestion.
fn unknown_command(name: &str) -> String {
    let shown = ShownText::clip_line(name, MAX_SHOWN);
    match likely_command(name) {
        Some(likely) => format!("there is no command `/{shown}`; did you mean `/{likely}`?"),
        None => format!(
            "there is no command `/{shown}`; `/help` lists them, and a blank before the `/` says the line to the agent"
        ),
    }
}

/// The command that a person probably meant: the most similar one, or the only one with this beginning.
fn likely_command(name: &str) -> Option<&'static str> {
    let name: String = name.chars().take(MAX_SHOWN).flat_map(char::to_lowercase).collect();
    let mut begins = COMMANDS.iter().filter(|row| !name.is_empty() && row.name.starts_with(&name));
    if let (Some(row), None) = (begins.next(), begins.next()) {
        return Some(row.name);
    }
    let near = COMMANDS.iter().map(|row| (edit_distance(&name, row.name), row.name)).min()?;
    (near.0 <= MAX_EDITS && near.0 < name.chars().count()).then_some(near.1)
}

/// The number of edits from `a` to `b`: characters inserted, removed, replaced, or swapped with their
/// neighbour.
fn edit_distance(a: &str, b: &str) -> usize {
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
        assert_eq!(parse_line(" \t"), ChatInput::Blank);
        assert_eq!(parse_line(" /help me"), ChatInput::Say(" /help me"));
        assert_eq!(parse_line("a / b"), ChatInput::Say("a / b"));
        assert_eq!(
            parse_line("/agent  scout  look here "),
            ChatInput::Command(SlashAction::Agent, "scout  look here")
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
            let ChatInput::Unknown(why) = parse_line(typed) else { panic!("{typed}") };
            assert!(why.ends_with(&format!("did you mean `{meant}`?")), "{why}");
        }
        for typed in ["/", "/x", "/etc/passwd", "/\u{1b}[2J"] {
            let ChatInput::Unknown(why) = parse_line(typed) else { panic!("{typed}") };
            assert!(why.contains("/help") && !why.contains('\u{1b}'), "{why}");
        }
    }

    #[test]
    fn every_command_has_one_row() {
        for (place, row) in COMMANDS.iter().enumerate() {
            let same = |other: &SlashCommand| other.name == row.name || other.action == row.action;
            assert_eq!(COMMANDS.iter().position(same), Some(place), "{}", row.name);
        }
    }
}
