//! Asks the person to agree before something is changed.

use crate::setup::exit::Failure;
use crate::term::out::TerminalOutput;

/// Returns whether a person agrees to what was shown: by `--yes`, or by an answer. If not, prints that
/// nothing is `done`, for example `written` or `applied`.
pub(crate) fn ask_agreement(
    question: &str,
    yes: bool,
    done: &str,
    out: &TerminalOutput,
) -> Result<bool, Failure> {
    match yes.then_some(true).or_else(|| out.ask(question)) {
        Some(true) => Ok(true),
        Some(false) => {
            out.note(format_args!("nothing is {done}"));
            Ok(false)
        }
        None => Err(Failure::usage(format!("there is nobody to ask, so nothing is {done}"))
            .with_hint("look at what is shown above and repeat the command with `--yes`")),
    }
}
