//! The placeholders of a text: one pass from its beginning to its end.
//!
//! The pass reads the author's text alone. What replaces a placeholder is never read again, so an argument with
//! `$1`, `@file` or a command in backticks is text.

use super::CommandStyle;

/// The most searches for an end that a text does not have.
const MAX_UNCLOSED: u32 = 16;

/// The longest path, in bytes.
const MAX_PATH: usize = 255;

/// A part of the author's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyPart<'b> {
    Text(&'b str),
    /// An escaped `$`.
    Dollar,
    /// All arguments.
    All,
    /// The argument at this place, from 0 (`$ARGUMENTS[0]`).
    At(usize),
    /// `$N`, whose first number depends on the text.
    Number(usize),
    /// `$name`.
    Named(&'b str),
    /// A file's path, with its own parts, as written.
    File(Vec<BodyPart<'b>>, &'b str),
    /// A shell command, as written.
    Shell(&'b str),
}

/// The reader of one text.
pub(super) struct BodyScanner<'b> {
    body: &'b str,
    at: usize,
    /// The beginning of the text that is not in a part yet.
    begun: usize,
    parts: Vec<BodyPart<'b>>,
    names: &'b [String],
    style: CommandStyle,
    /// The fence of the code block around the place, for example three backticks.
    fence: Option<&'b str>,
    /// Whether the place is between two backticks on one line.
    in_code: bool,
    /// Whether nothing but blanks was read of the line.
    line_blank: bool,
    /// Searches for an end that the text does not have. Bounded, because each reads the rest of the text.
    unclosed: u32,
}

impl<'b> BodyScanner<'b> {
    /// The parts of a text, in order.
    pub(super) fn scan_body(
        body: &'b str,
        style: CommandStyle,
        names: &'b [String],
    ) -> Vec<BodyPart<'b>> {
        let mut it = Self::at_beginning(body, style, names);
        while it.at < body.len() {
            it.scan_step();
        }
        it.push_text(body.len());
        it.parts
    }

    fn at_beginning(body: &'b str, style: CommandStyle, names: &'b [String]) -> Self {
        Self {
            body,
            at: 0,
            begun: 0,
            parts: Vec::new(),
            names,
            style,
            fence: None,
            in_code: false,
            line_blank: true,
            unclosed: 0,
        }
    }

    /// The parts of a file's path: its placeholders alone.
    fn scan_path(path: &'b str, style: CommandStyle, names: &'b [String]) -> Vec<BodyPart<'b>> {
        let mut it = Self::at_beginning(path, style, names);
        while it.at < path.len() {
            if !it.take_argument() {
                it.step_over();
            }
        }
        it.push_text(path.len());
        it.parts
    }

    fn rest(&self) -> &'b str {
        self.body.get(self.at..).unwrap_or_default()
    }

    fn step_over(&mut self) {
        let next = self.rest().chars().next();
        self.line_blank &= next.is_none_or(char::is_whitespace);
        self.at += next.map_or(1, char::len_utf8);
    }

    fn before(&self) -> Option<char> {
        self.body.get(..self.at)?.chars().next_back()
    }

    fn is_after_blank(&self) -> bool {
        self.before().is_none_or(char::is_whitespace)
    }

    fn push_text(&mut self, end: usize) {
        if let Some(text) = self.body.get(self.begun..end).filter(|text| !text.is_empty()) {
            self.parts.push(BodyPart::Text(text));
        }
    }

    /// Adds a part of `length` bytes at the present place.
    fn push_part(&mut self, part: BodyPart<'b>, length: usize) {
        self.push_text(self.at);
        self.parts.push(part);
        self.at += length;
        self.begun = self.at;
        self.line_blank = false;
    }

    fn scan_step(&mut self) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return };
        match first {
            '`' => self.scan_backticks(),
            '~' if rest.starts_with("~~~") && self.line_blank => self.scan_fence("~~~"),
            '\n' => {
                self.in_code = false;
                self.line_blank = true;
                self.at += 1;
            }
            '!' if self.fence.is_none() && self.take_shell() => {}
            '@' if self.fence.is_none() && !self.in_code && self.take_file() => {}
            _ if self.take_argument() => {}
            _ => self.step_over(),
        }
    }

    fn scan_backticks(&mut self) {
        let rest = self.rest();
        if rest.starts_with("```") && self.line_blank {
            return self.scan_fence("```");
        }
        if self.fence.is_none() {
            self.in_code = !self.in_code;
        }
        self.line_blank = false;
        self.at += 1;
    }

    /// A fence opens or closes a block; one opened by `!` after the fence is a shell command.
    fn scan_fence(&mut self, mark: &'static str) {
        let rest = self.rest();
        let line_end = rest.find('\n').unwrap_or(rest.len());
        let line = rest.get(..line_end).unwrap_or_default();
        match self.fence {
            Some(open) => {
                if open == mark && line.trim_end() == mark {
                    self.fence = None;
                }
            }
            None => {
                let info = line.get(mark.len()..).unwrap_or_default().trim();
                if self.style == CommandStyle::Dollar
                    && (info == "!" || info.starts_with("! "))
                    && self.unclosed < MAX_UNCLOSED
                {
                    match find_block(rest, line_end, mark) {
                        Some((command, length)) => {
                            return self.push_part(BodyPart::Shell(command), length);
                        }
                        None => self.unclosed += 1,
                    }
                }
                self.fence = Some(mark);
            }
        }
        self.at += line_end;
    }

    /// A shell command, in the words of the text's style.
    fn take_shell(&mut self) -> bool {
        let rest = self.rest();
        let found = match self.style {
            CommandStyle::Dollar if self.is_after_blank() && !self.in_code => {
                rest.strip_prefix("!`").and_then(|rest| {
                    let end = rest.find(['`', '\n'])?;
                    let closed = rest.get(end..)?.starts_with('`');
                    rest.get(..end).filter(|_| closed).map(|command| (command, end + 3))
                })
            }
            CommandStyle::Dollar => None,
            CommandStyle::Braces => rest.strip_prefix("!{").and_then(|rest| self.take_braced(rest)),
        };
        match found.filter(|(command, _)| !command.trim().is_empty()) {
            Some((command, length)) => {
                self.push_part(BodyPart::Shell(command), length);
                true
            }
            None => false,
        }
    }

    /// A file, in the words of the text's style.
    fn take_file(&mut self) -> bool {
        let rest = self.rest();
        let found = match self.style {
            CommandStyle::Dollar => {
                let opens = self.before().is_none_or(|c| c.is_whitespace() || "([\"'".contains(c));
                let path = rest.get(1..).filter(|_| opens).map(take_path);
                path.filter(|path| is_path(path)).map(|path| (path, path.len() + 1))
            }
            CommandStyle::Braces => rest
                .strip_prefix("@{")
                .and_then(|rest| self.take_braced(rest))
                .map(|(path, length)| (path.trim(), length)),
        };
        let Some((path, length)) = found.filter(|(path, _)| !path.is_empty()) else {
            return false;
        };
        let written = rest.get(..length).unwrap_or_default();
        let parts = Self::scan_path(path, self.style, self.names);
        self.push_part(BodyPart::File(parts, written), length);
        true
    }

    /// The text up to the brace that closes, and the length with the two characters in front and the brace.
    fn take_braced(&mut self, rest: &'b str) -> Option<(&'b str, usize)> {
        if self.unclosed >= MAX_UNCLOSED {
            return None;
        }
        let Some(end) = find_closing_brace(rest) else {
            self.unclosed += 1;
            return None;
        };
        rest.get(..end).map(|text| (text, end + 3))
    }

    /// A placeholder of arguments.
    fn take_argument(&mut self) -> bool {
        let rest = self.rest();
        let found = match self.style {
            CommandStyle::Braces => rest.starts_with("{{args}}").then_some((BodyPart::All, 8)),
            CommandStyle::Dollar => match rest.strip_prefix('\\') {
                // An escape counts only before a placeholder: shell code has others.
                Some(after) => find_argument(after, self.names).map(|_| (BodyPart::Dollar, 2)),
                None => find_argument(rest, self.names),
            },
        };
        match found {
            Some((part, length)) => {
                self.push_part(part, length);
                true
            }
            None => false,
        }
    }
}

/// The placeholder at the beginning of a text, with its length.
pub(super) fn find_argument<'b>(text: &'b str, names: &[String]) -> Option<(BodyPart<'b>, usize)> {
    const ALL: &str = "ARGUMENTS";
    let rest = text.strip_prefix('$')?;
    if let Some(inner) = rest.strip_prefix('{') {
        let end = inner.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))?;
        let name = inner
            .get(..end)
            .filter(|_| inner.get(end..).is_some_and(|rest| rest.starts_with('}')))?;
        let length = name.len() + 3;
        if name == ALL {
            return Some((BodyPart::All, length));
        }
        return names.iter().any(|known| known == name).then_some((BodyPart::Named(name), length));
    }
    if let Some(after) = rest.strip_prefix(ALL) {
        if let Some(digits) = after.strip_prefix('[').and_then(find_index) {
            let place = digits.parse().unwrap_or(usize::MAX);
            return Some((BodyPart::At(place), ALL.len() + digits.len() + 3));
        }
        let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        return ends.then_some((BodyPart::All, ALL.len() + 1));
    }
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits > 0 {
        return find_number(rest, digits);
    }
    let word = rest.len()
        - rest.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-')).len();
    let word = rest.get(..word).filter(|word| !word.is_empty())?;
    // `$file-name` is the argument `file-name`, or else `file` before `-name`.
    let known = names.iter().filter(|name| {
        word.strip_prefix(name.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let name = known.map(String::len).max()?;
    word.get(..name).map(|name| (BodyPart::Named(name), name.len() + 1))
}

/// `$1`, and not an amount of money such as `$150`, `$5.99` or `$1,000`.
fn find_number(rest: &str, digits: usize) -> Option<(BodyPart<'_>, usize)> {
    let after = rest.get(digits..)?;
    let mut next = after.chars();
    let is_amount = match next.next() {
        Some('.' | ',') => next.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphanumeric() || matches!(c, '_' | '%'),
        None => false,
    };
    let number = rest.get(..digits).filter(|_| digits <= 2 && !is_amount)?;
    Some((BodyPart::Number(number.parse().ok()?), digits + 1))
}

/// The digits before a closing bracket.
fn find_index(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let closed = text.get(end..)?.starts_with(']');
    text.get(..end).filter(|digits| closed && (1..=4).contains(&digits.len()))
}

/// The content of a block whose first line ends at `line_end`, and the length of the whole block.
fn find_block<'b>(text: &'b str, line_end: usize, mark: &str) -> Option<(&'b str, usize)> {
    let start = line_end + 1;
    let mut at = start;
    for line in text.get(start..)?.split_inclusive('\n') {
        if line.trim() == mark {
            return Some((text.get(start..at)?.trim_end_matches('\n'), at + line.trim_end().len()));
        }
        at += line.len();
    }
    None
}

/// The place of the brace that closes the one before the text.
fn find_closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth = depth.saturating_add(1),
            '}' if depth == 0 => return Some(at),
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The path at the beginning of a text, without punctuation at its end. It ends before another `[@`, so a text
/// that repeats these is not read again for each of them.
fn take_path(text: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || "`\"'()<>|;".contains(c);
    let mut end = text.len();
    let mut before = None;
    for (at, c) in text.char_indices() {
        if ends(c) || at >= MAX_PATH {
            end = at;
            break;
        }
        if before == Some('[') && c == '@' {
            end = at - 1;
            break;
        }
        before = Some(c);
    }
    let path = text.get(..end).unwrap_or_default();
    path.trim_end_matches(['.', ',', ':', '!', '?', ']', '*'])
}

/// Whether a word after `@` is a path: it has a folder, an ending or a placeholder. `@param` and `@someone` are not.
fn is_path(word: &str) -> bool {
    const CODE: [&str; 5] = ["pytest.", "app.", "router.", "click.", "dataclasses."];
    let names_folder = word.contains('/') || word.starts_with('~');
    let has_ending = word
        .rsplit_once('.')
        .is_some_and(|(stem, ending)| !stem.is_empty() && !ending.is_empty() && ending.len() <= 10);
    let is_code = CODE.iter().any(|code| word.starts_with(code));
    word.starts_with('$') || ((names_folder || has_ending) && !is_code)
}
