//! A child's report about its attack.

use std::io::BufRead as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;

use super::acts::Act;
use super::child::Line;

fn lines(output: &Output) -> Vec<Line> {
    let lines = output.stdout.lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str(&line).ok()).collect()
}

/// The answer to the attacker behind the wall; an error says what got through, or why nothing is
/// proven.
pub(super) fn told(act: &Act, output: &Output) -> Result<String, String> {
    let mut lines = lines(output).into_iter();
    let Some(Line::Stands { landlock, seccomp, missing }) = lines.next() else {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "the child did not come as far as its wall: {}: {words}",
            output.status
        ));
    };
    if landlock.is_none_or(|version| version < act.landlock) || !seccomp {
        let has = landlock.map_or("none".to_owned(), |version| version.to_string());
        return Err(format!(
            "this kernel lacks what stops it: landlock {} is needed and it has {has}; {}",
            act.landlock,
            missing.join("; ")
        ));
    }
    let came = lines.next();
    let granted = lines.next();
    match (came, granted, output.status.signal()) {
        (None, None, Some(libc::SIGSYS)) if act.by.errors.is_empty() => {
            Ok("the kernel ended the process".to_owned())
        }
        (Some(Line::Refused(number)), Some(Line::Granted(None)), None) => {
            let error = std::io::Error::from_raw_os_error(number);
            match act.by.errors.contains(&number) {
                true => Ok(error.to_string()),
                false => Err(format!("it failed for another reason than the wall: {error}")),
            }
        }
        (Some(Line::Worked(gave)), ..) => Err(format!("it worked, and gave {gave}")),
        (Some(Line::Failed(why)), ..) => Err(format!("the attack could not be made: {why}")),
        (came, granted, _) => Err(format!("{came:?}, then {granted:?}, then {}", output.status)),
    }
}

/// Why what shows the wall failed; `None` = it worked.
pub(super) fn failure(output: &Output) -> Option<String> {
    match lines(output).into_iter().find(|line| !matches!(line, Line::Stands { .. })) {
        Some(Line::Worked(_)) => None,
        Some(Line::Refused(number)) => Some(std::io::Error::from_raw_os_error(number).to_string()),
        Some(Line::Failed(why)) => Some(why),
        // It became another program, or ended: its effects tell.
        None | Some(Line::Stands { .. } | Line::Granted(_)) => {
            Some(format!("it says nothing: {}", output.status))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::super::acts::all;
    use super::*;

    fn output(lines: &[Line], status: i32) -> Output {
        let stands = Line::Stands { landlock: Some(7), seccomp: true, missing: Vec::new() };
        let lines = std::iter::once(&stands).chain(lines);
        let stdout: String =
            lines.map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        Output { status: ExitStatus::from_raw(status), stdout: stdout.into(), stderr: Vec::new() }
    }

    fn came_of(id: &str, lines: &[Line], status: i32) -> Result<String, String> {
        told(all().find(|act| act.id == id).unwrap(), &output(lines, status))
    }

    #[test]
    fn an_error_that_is_not_the_walls_own_proves_nothing() {
        let refused = |id, number| came_of(id, &[Line::Refused(number), Line::Granted(None)], 0);
        for number in [libc::EFAULT, libc::EBADF, libc::EINVAL, libc::ESRCH, libc::EACCES] {
            refused("wall-process-kill", number).unwrap_err();
            refused("wall-process-signal-by-descriptor", number).unwrap_err();
        }
        // What a file's owner is refused by its modes is not what the wall says.
        refused("wall-files-read", libc::EPERM).unwrap_err();
        refused("wall-files-read", libc::EACCES).unwrap();
        refused("wall-process-kill", libc::ENOSYS).unwrap();
        refused("wall-process-kill", libc::EPERM).unwrap_err();
    }

    #[test]
    fn what_is_to_end_the_process_has_to() {
        came_of("wall-process-trace", &[], libc::SIGSYS).unwrap();
        came_of("wall-process-trace", &[], libc::SIGKILL).unwrap_err();
        let refused = [Line::Refused(libc::EPERM), Line::Granted(None)];
        came_of("wall-process-trace", &refused, 0).unwrap_err();
        came_of("wall-process-kill", &[], libc::SIGSYS).unwrap_err();
    }
}
