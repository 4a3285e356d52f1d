//! Completion by Tab: of commands, of agents after `/agent`, and of teams after `/team`.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::slash::COMMANDS;

/// The words that Tab completes.
#[derive(Debug, Default)]
pub(super) struct CompletionWords {
    agents: Vec<String>,
    teams: Vec<String>,
}

impl CompletionWords {
    /// The commands, with these agents and teams. The names must be plain, without a stranger's text.
    pub(super) fn new(agents: Vec<String>, teams: Vec<String>) -> Self {
        Self { agents, teams }
    }

    /// The position of the last word of `line` in bytes, and the words that complete it.
    fn complete_line(&self, line: &str) -> (usize, Vec<String>) {
        let Some(command) = line.strip_prefix('/') else { return (line.len(), Vec::new()) };
        let start = line.rfind(' ').map_or(1, |at| at + 1);
        let word = line.get(start..).unwrap_or_default();
        let words: Vec<&str> = command.split(' ').collect();
        let names = match words.as_slice() {
            [_] => COMMANDS.iter().map(|row| row.name.to_owned()).collect(),
            ["agent", _] | ["agent", "-b" | "-k", _] => self.agents.clone(),
            ["team", _] => self.teams.clone(),
            _ => Vec::new(),
        };
        let fits = names.into_iter().filter(|name| name.starts_with(word));
        (start, fits.map(|name| format!("{name} ")).collect())
    }
}

impl Completer for CompletionWords {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.complete_line(line.get(..position).unwrap_or_default()))
    }
}

impl Hinter for CompletionWords {
    type Hint = String;
}

impl Highlighter for CompletionWords {}

impl Validator for CompletionWords {}

impl Helper for CompletionWords {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_the_agents_behind_one_are_completed_and_text_is_not() {
        let words =
            CompletionWords::new(vec!["scout".into(), "scribe".into()], vec!["report".into()]);
        assert_eq!(words.complete_line("/age"), (1, vec!["agents ".into(), "agent ".into()]));
        assert_eq!(words.complete_line("/agent sco"), (7, vec!["scout ".into()]));
        assert_eq!(words.complete_line("/agent -b sc").1.len(), 2);
        assert_eq!(words.complete_line("/team "), (6, vec!["report ".into()]));
        assert_eq!(words.complete_line("/agent scout sc").1, Vec::<String>::new());
        assert_eq!(words.complete_line("sco").1, Vec::<String>::new());
    }
}
