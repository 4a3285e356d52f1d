//! Makes the variables of a script last.
//!
//! In JavaScript a second `let s` of the same scope is an error, and each call is the same scope: a
//! model that runs its script again would be refused. So `let`, `const` and `class` at the top level
//! become `var`s, which may be declared again. Lines stay as they are; inside of braces, brackets and
//! parentheses nothing changes.

/// The script with its top-level declarations as `var`s.
pub(crate) fn persistent(code: &str) -> String {
    let mut scan = Scan {
        code,
        at: 0,
        depth: 0,
        out: String::with_capacity(code.len() + 16),
        copied: 0,
        before: Before::Start,
    };
    scan.run();
    scan.out.push_str(code.get(scan.copied..).unwrap_or_default());
    scan.out
}

/// The kind of what stands before the current place: it decides whether `/` divides, and whether a
/// word can begin a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The beginning, `;`, a brace or a line that ended: a statement may begin.
    Start,
    /// A value: an identifier, a literal, a closing parenthesis or bracket.
    Value,
    /// An operator, or a word such as `return`: an expression follows.
    Operator,
}

struct Scan<'a> {
    code: &'a str,
    at: usize,
    depth: usize,
    out: String,
    /// The bytes of `code` that are in `out`.
    copied: usize,
    before: Before,
}

impl Scan<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    // A line may end a statement without a semicolon.
                    if self.before == Before::Value {
                        self.before = Before::Start;
                    }
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'/' if self.peek(1) == Some(b'/') => self.skip_to("\n", 0),
                b'/' if self.peek(1) == Some(b'*') => self.skip_to("*/", 2),
                b'/' if self.before != Before::Value => self.regex(),
                b'"' | b'\'' => self.quoted(byte),
                b'`' => self.template(),
                b'{' | b'(' | b'[' => self.step(Before::Start, self.depth + 1),
                b'}' => self.step(Before::Start, self.depth.saturating_sub(1)),
                b')' | b']' => self.step(Before::Value, self.depth.saturating_sub(1)),
                b';' => self.step(Before::Start, self.depth),
                _ if is_word(byte) => self.word(),
                _ => self.step(Before::Operator, self.depth),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.code.as_bytes().get(self.at + ahead).copied()
    }

    fn step(&mut self, before: Before, depth: usize) {
        self.at += 1;
        self.before = before;
        self.depth = depth;
    }

    /// To the next `end`, and `beyond` bytes further; to the end of the script where there is none.
    fn skip_to(&mut self, end: &str, beyond: usize) {
        let rest = self.code.get(self.at..).unwrap_or_default();
        self.at = rest.find(end).map_or(self.code.len(), |found| self.at + found + beyond);
    }

    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == quote || byte == b'\n' {
                break;
            }
        }
        self.before = Before::Value;
    }

    fn regex(&mut self) {
        self.at += 1;
        let mut class = false;
        while let Some(byte) = self.peek(0) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            match byte {
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => break,
                b'\n' => break,
                _ => {}
            }
        }
        self.before = Before::Value;
    }

    /// A template, with the expressions in it: nothing in there is at the top level.
    fn template(&mut self) {
        self.at += 1;
        let mut braces: Vec<usize> = Vec::new();
        while let Some(byte) = self.peek(0) {
            match (byte, braces.last_mut()) {
                (b'\\', _) => self.at += 1,
                (b'`', None) => break,
                (b'$', None) if self.peek(1) == Some(b'{') => {
                    self.at += 1;
                    braces.push(0);
                }
                (b'{', Some(open)) => *open += 1,
                (b'}', Some(0)) => drop(braces.pop()),
                (b'}', Some(open)) => *open -= 1,
                // A template within an expression of a template: its own expressions count braces
                // in the same way, and its end is the next backtick.
                (b'`', Some(_)) => {
                    self.template();
                    continue;
                }
                (b'"' | b'\'', Some(_)) => {
                    self.quoted(byte);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        self.before = Before::Value;
    }

    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
        let word = self.code.get(start..self.at).unwrap_or_default();
        let begins = self.before == Before::Start && self.depth == 0;
        self.before = match word {
            "return" | "typeof" | "case" | "in" | "of" | "delete" | "void" | "throw" | "new"
            | "else" | "do" | "instanceof" | "await" | "yield" => Before::Operator,
            _ => Before::Value,
        };
        match word {
            "let" | "const" if begins && self.declares() => self.replace(start, "var"),
            "class" if begins => self.class(start),
            _ => {}
        }
    }

    /// Whether a name or a pattern follows, so that the word is a declaration.
    fn declares(&self) -> bool {
        let rest = self.code.get(self.at..).unwrap_or_default();
        let next = rest.trim_start().bytes().next();
        rest.starts_with(char::is_whitespace) && next.is_some_and(is_word)
            || matches!(next, Some(b'{' | b'['))
    }

    /// `class Name` becomes `var Name = class Name`.
    fn class(&mut self, start: usize) {
        let rest = self.code.get(self.at..).unwrap_or_default();
        let name: &str = rest.trim_start();
        let length = name.bytes().take_while(|byte| is_word(*byte)).count();
        let name = name.get(..length).unwrap_or_default();
        if !name.is_empty() && name != "extends" {
            self.copy(start);
            self.out.push_str("var ");
            self.out.push_str(name);
            self.out.push_str(" = ");
        }
    }

    /// Puts a word in place of the one that ends here.
    fn replace(&mut self, start: usize, by: &str) {
        self.copy(start);
        self.out.push_str(by);
        // The columns of what follows stay the same.
        self.out.extend(std::iter::repeat_n(' ', (self.at - start).saturating_sub(by.len())));
        self.copied = self.at;
    }

    fn copy(&mut self, to: usize) {
        self.out.push_str(self.code.get(self.copied..to).unwrap_or_default());
        self.copied = to;
    }
}

/// A byte of an identifier or a number; so is every byte of a character beyond ASCII.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte == b'#' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::persistent;

    #[test]
    fn declarations_at_the_top_level_become_variables() {
        for (code, expected) in [
            ("let a = 1", "var a = 1"),
            ("const a = 1;let b", "var   a = 1;var b"),
            ("const {a, b} = c", "var   {a, b} = c"),
            ("x()\nlet a", "x()\nvar a"),
            (
                "class A {}\nclass B extends A {}",
                "var A = class A {}\nvar B = class B extends A {}",
            ),
            ("{ let a } let b", "{ let a } var b"),
            ("/* let */ let a // let b", "/* let */ var a // let b"),
            (
                "let a = `x ${ `let ${ {a: 1}.a } }` } let b`; let c",
                "var a = `x ${ `let ${ {a: 1}.a } }` } let b`; var c",
            ),
            ("let r = /[/{]let/; let b = 4 / 2; let c", "var r = /[/{]let/; var b = 4 / 2; var c"),
            ("let é = 1", "var é = 1"),
        ] {
            assert_eq!(persistent(code), expected);
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for code in [
            "for (let i = 0; i < 3; i++) { const x = i }",
            "function f() { let a }",
            "if (a) { let b }",
            "x = { let: 1, const: 2 }",
            "a.let",
            "x = class A {}",
            "'let a'; \"const b\"; `let c`",
            "var a = \"it's; let b\\\"\"",
            "x = a\n/ let / g",
            "",
            "'",
            "`${",
            "/",
            "}}}) let",
        ] {
            assert_eq!(persistent(code), code, "{code}");
        }
    }

    #[test]
    fn lines_stay_where_they_are() {
        let code = "let a = 1\n\nclass B {\n}\nconst c = `\n${a}\n`\nlet d";
        assert_eq!(persistent(code).lines().count(), code.lines().count());
    }
}
