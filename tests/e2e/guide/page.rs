//! A page of markdown as a list of what is to be done with it.

/// A page, cut into what the test does one after the other.
pub(super) struct Page {
    pub(super) path: String,
    /// Whether its commands build a guest: they are run where there is a toolchain for that, and
    /// only parsed elsewhere.
    pub(super) builds: bool,
    pub(super) acts: Vec<(usize, Act)>,
}

/// Something that the page shows, at its line.
pub(super) enum Act {
    /// Commands that are run, and what the last of them exits with.
    Run { commands: Vec<Command>, exits: i32 },
    /// A command that runs until the page ends.
    Background(Command),
    /// Commands that are only parsed.
    Parse(Vec<Command>),
    /// A file that is written, or added to.
    File { path: String, text: String, append: bool },
    /// A folder of files that the reader does not see.
    Files(String),
    /// Settings by themselves.
    Settings(String),
}

/// A command and the lines that it is said to print; none = not compared.
pub(super) struct Command {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) printed: Vec<String>,
}

/// A comment's instruction about the block below it.
enum Note {
    File { path: String, append: bool },
    Files(String),
    Exits(i32),
    Background,
    NotRun,
    NotSettings,
}

const COMMENT: &str = "<!-- guide: ";

/// The pages of projects that have to be built.
const PROJECTS: &[&str] = &["guest-sdk/template/", "guest-sdk/examples/rust/"];

/// How the lines of commands begin.
const COMMANDS: &[&str] = &["$ ", "belljar ", "cargo "];

impl Page {
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, String> {
        let builds = PROJECTS.iter().any(|project| path.starts_with(project));
        let mut page = Self { path: path.to_owned(), builds, acts: Vec::new() };
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let mut note: Option<(usize, Note)> = None;
        while let Some((number, line)) = lines.next() {
            if let Some(comment) = line.strip_prefix(COMMENT) {
                if let Some(words) = comment.strip_suffix("-->") {
                    match page.note(number, words.trim())? {
                        Note::Files(name) => page.acts.push((number, Act::Files(name))),
                        other => note = Some((number, other)),
                    }
                } else {
                    let body = until(&mut lines, "-->");
                    let Note::File { path, append } = page.note(number, comment.trim())? else {
                        return Err(page.problem(number, "only a file has lines of its own"));
                    };
                    page.acts.push((number, Act::File { path, text: body, append }));
                }
            } else if let Some(language) = line.strip_prefix("```") {
                let body = until(&mut lines, "```");
                let said = note.take().map(|(_line, note)| note);
                page.block(number, language, body, said)?;
            } else {
                page.prose(number, line);
            }
        }
        match note {
            Some((number, _)) => Err(page.problem(number, "no block follows this comment")),
            None => Ok(page),
        }
    }

    pub(super) fn problem(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    fn note(&self, line: usize, words: &str) -> Result<Note, String> {
        let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
        match (verb, rest) {
            ("file" | "append", path) if !path.is_empty() => {
                Ok(Note::File { path: path.to_owned(), append: verb == "append" })
            }
            ("files", name) if !name.is_empty() => Ok(Note::Files(name.to_owned())),
            ("exits", code) if code.parse::<i32>().is_ok() => {
                Ok(Note::Exits(code.parse().unwrap_or_default()))
            }
            ("background", "") => Ok(Note::Background),
            ("not", reason) if reason.starts_with("run: ") => Ok(Note::NotRun),
            ("not", reason) if reason.starts_with("settings: ") => Ok(Note::NotSettings),
            _ => Err(self.problem(line, &format!("`{words}` is not something to say to the test"))),
        }
    }

    fn block(
        &mut self,
        line: usize,
        language: &str,
        text: String,
        note: Option<Note>,
    ) -> Result<(), String> {
        let act = match (language, note) {
            (_, Some(Note::File { path, append })) => Act::File { path, text, append },
            ("console", Some(Note::Background)) => match commands(line, &text).pop() {
                Some(command) => Act::Background(command),
                None => return Err(self.problem(line, "no command")),
            },
            ("console", Some(Note::Exits(exits))) => {
                Act::Run { commands: commands(line, &text), exits }
            }
            ("console", None) => Act::Run { commands: commands(line, &text), exits: 0 },
            ("console", Some(Note::NotRun)) => Act::Parse(commands(line, &text)),
            ("sh", Some(Note::NotRun)) => Act::Parse(
                text.lines()
                    .zip(line + 1..)
                    .map(|(text, line)| Command {
                        line,
                        text: text.to_owned(),
                        printed: Vec::new(),
                    })
                    .collect(),
            ),
            ("sh", _) => {
                let what = "commands that are run stand in a `console` block, after `$ `";
                return Err(self.problem(line, what));
            }
            ("toml", None) => Act::Settings(text),
            // Nobody would notice that they fail.
            (_, None)
                if text.lines().any(|line| COMMANDS.iter().any(|it| line.starts_with(it))) =>
            {
                return Err(self.problem(line, "commands stand in a `console` block, after `$ `"));
            }
            ("toml", Some(Note::NotSettings)) | (_, None) => return Ok(()),
            (_, Some(_)) => return Err(self.problem(line, "the comment above is for other blocks")),
        };
        self.acts.push((line, act));
        Ok(())
    }

    /// Commands in the text itself are parsed.
    fn prose(&mut self, line: usize, text: &str) {
        let named = text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("belljar "));
        let commands: Vec<_> = named
            .map(|code| Command { line, text: code.to_owned(), printed: Vec::new() })
            .collect();
        if !commands.is_empty() {
            self.acts.push((line, Act::Parse(commands)));
        }
    }
}

fn until<'t>(lines: &mut impl Iterator<Item = (usize, &'t str)>, end: &str) -> String {
    let body = lines.take_while(|(_, line)| *line != end);
    body.map(|(_, line)| format!("{line}\n")).collect()
}

/// The commands of a console block; one that ends in `\` goes on in the next line.
fn commands(line: usize, text: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut goes_on = false;
    for (text, line) in text.lines().zip(line + 1..) {
        if let Some(text) = text.strip_prefix("$ ") {
            goes_on = text.ends_with('\\');
            commands.push(Command { line, text: text.to_owned(), printed: Vec::new() });
        } else if let Some(command) = commands.last_mut() {
            if goes_on {
                command.text = format!("{}\n{text}", command.text);
                goes_on = text.ends_with('\\');
            } else {
                command.printed.push(text.to_owned());
            }
        }
    }
    commands
}

/// Whether lines are as the page shows them.
pub(super) fn matches(shown: &[String], printed: &str) -> bool {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed: Vec<_> = printed.lines().map(words).filter(|line| !line.is_empty()).collect();
    let shown: Vec<_> =
        shown.iter().map(|line| words(line)).filter(|line| !line.is_empty()).collect();
    lines_match(&shown, &printed)
}

fn lines_match(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any == "..." => {
            (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, more)| line_matches(line, first) && lines_match(rest, more)),
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let Some((start, rest)) = shown.split_once("[..]") else { return shown == printed };
    let Some(mut printed) = printed.strip_prefix(start) else { return false };
    let mut pieces: Vec<_> = rest.split("[..]").collect();
    let end = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = printed.find(piece) else { return false };
        printed = &printed[at + piece.len()..];
    }
    printed.ends_with(end)
}

#[test]
fn left_out_lines_and_text_match_and_nothing_else_does() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&shown("a  b\n...\nlast [..] of [..]"), "a b\nx\n\ny\nlast 3 of 4\n"));
    assert!(matches(&shown("...\nend"), "end\n"));
    assert!(!matches(&shown("a\n...\nlast"), "a\nlast\nmore\n"));
    assert!(!matches(&shown("one [..] three"), "one two\n"));
    assert!(!matches(&shown("a"), "a\nb\n"));
}
