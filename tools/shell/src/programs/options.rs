//! Command lines as GNU programs read them.

/// What stands on a command line: options anywhere, until `--`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Options in order: a letter or a long name, and its value.
    pub(super) given: Vec<(String, Option<String>)>,
    /// Everything else.
    pub(super) operands: Vec<String>,
}

impl Options {
    /// Reads arguments; `with_value` names the options that have one.
    pub(super) fn read(args: &[String], with_value: &[&str]) -> Options {
        let mut options = Options::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                options.operands.extend(args.cloned());
                break;
            }
            if let Some(long) = arg.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let value = match value {
                    None if with_value.contains(&name) => args.next().cloned(),
                    value => value,
                };
                options.given.push((name.to_owned(), value));
            } else if arg.len() > 1 && arg.starts_with('-') {
                let mut letters = arg[1..].chars();
                while let Some(letter) = letters.next() {
                    let name = letter.to_string();
                    if with_value.contains(&name.as_str()) {
                        let rest = letters.as_str();
                        let value = if rest.is_empty() {
                            args.next().cloned()
                        } else {
                            Some(rest.to_owned())
                        };
                        options.given.push((name, value));
                        break;
                    }
                    options.given.push((name, None));
                }
            } else {
                options.operands.push(arg.clone());
            }
        }
        options
    }
}

/// The message for an option that a program does not have.
pub(super) fn unknown(program: &str, option: &str) -> String {
    let dashes = if option.chars().count() == 1 { "-" } else { "--" };
    format!("{program}: unrecognized option '{dashes}{option}'\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_bundled_and_values_stand_with_or_after_their_option() {
        let args: Vec<String> =
            ["-lU3", "a", "--label=x", "-U", "4", "--color", "--", "-z"].map(str::to_owned).into();
        let read = Options::read(&args, &["U", "label"]);
        let given: Vec<_> =
            read.given.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        assert_eq!(
            given,
            [
                ("l", None),
                ("U", Some("3")),
                ("label", Some("x")),
                ("U", Some("4")),
                ("color", None)
            ]
        );
        assert_eq!(read.operands, ["a", "-z"]);
    }
}
