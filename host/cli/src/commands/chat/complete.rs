//! Completions of Tab: the commands, the agents behind `/agent`, the teams behind `/team`.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::slash::COMMANDS;

/// The words that can be completed.
#[derive(Debug, Default)]
pub(super) struct Words {
    agents: Vec<String>,
    teams: Vec<String>,
}

impl Words {
    /// The commands, and these agents and teams: plain names, no foreign text.
    pub(super) fn new(agents: Vec<String>, teams: Vec<String>) -> Self {
        Self { agents, teams }
    }

    /// The beginning of the last word of `line`, and its possible completions.
    fn of(&self, line: &str) -> (usize, Vec<String>) {
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

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.of(line.get(..position).unwrap_or_default()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_the_agents_behind_one_are_completed_and_text_is_not() {
        let words = Words::new(vec!["scout".into(), "scribe".into()], vec!["report".into()]);
        assert_eq!(words.of("/age"), (1, vec!["agents ".into(), "agent ".into()]));
        assert_eq!(words.of("/agent sco"), (7, vec!["scout ".into()]));
        assert_eq!(words.of("/agent -b sc").1.len(), 2);
        assert_eq!(words.of("/team "), (6, vec!["report ".into()]));
        assert_eq!(words.of("/agent scout sc").1, Vec::<String>::new());
        assert_eq!(words.of("sco").1, Vec::<String>::new());
    }
}
