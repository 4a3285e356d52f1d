//! Reads the task of a run, from an argument or from stdin.

use std::io::{IsTerminal as _, Read as _};

use crate::setup::exit::Failure;

/// Most bytes of a task from stdin: more than the context of any model.
pub(crate) const MAX_TASK_BYTES: u64 = 32 << 20;

/// The task in the argument; for `-` or no argument, the text on stdin.
pub(crate) fn read_task(given: Option<&str>) -> Result<String, Failure> {
    let task = match given {
        Some(task) if task != "-" => task.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(Failure::usage("there is no task")
                .with_hint("write it as the last argument, or pipe it in: `belljar run \"…\"`"));
        }
        Some(_) | None => from_stdin()?,
    };
    if task.trim().is_empty() {
        return Err(Failure::usage("the task is empty").with_hint("say what the agent should do"));
    }
    Ok(task)
}

/// Reads the task from stdin.
fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MAX_TASK_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("failed to read the task from stdin: {error}")))?;
    if bytes.len() as u64 > MAX_TASK_BYTES {
        return Err(Failure::usage(format!("the task has more than {MAX_TASK_BYTES} bytes"))
            .with_hint("put it in a file of the workspace and name the file"));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("the task on stdin is not valid UTF-8"))
}
