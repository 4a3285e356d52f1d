//! Reads a child's report about its attack.

use std::io::BufRead as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;

use super::acts::WallAct;
use super::child::ChildLine;

fn parse_lines(output: &Output) -> Vec<ChildLine> {
    let lines = output.stdout.lines().map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_str(&line).ok()).collect()
}

/// The answer to the attacker behind the wall. An error states what was not stopped, or why nothing is
/// proved.
pub(super) fn attacker_answer(act: &WallAct, output: &Output) -> Result<String, String> {
    let mut lines = parse_lines(output).into_iter();
    let Some(ChildLine::Stands { landlock, seccomp, missing }) = lines.next() else {
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
        (Some(ChildLine::Refused(number)), Some(ChildLine::Granted(None)), None) => {
            let error = std::io::Error::from_raw_os_error(number);
            match act.by.errors.contains(&number) {
                true => Ok(error.to_string()),
                false => Err(format!("it failed for another reason than the wall: {error}")),
            }
        }
        (Some(ChildLine::Worked(gave)), ..) => Err(format!("it worked, and gave {gave}")),
        (Some(ChildLine::Failed(why)), ..) => Err(format!("the attack could not be made: {why}")),
        (came, granted, _) => Err(format!("{came:?}, then {granted:?}, then {}", output.status)),
    }
}

/// The reason why the control failed; `None` if it succeeded.
pub(super) fn control_failure(output: &Output) -> Option<String> {
    match parse_lines(output).into_iter().find(|line| !matches!(line, ChildLine::Stands { .. })) {
        Some(ChildLine::Worked(_)) => None,
        Some(ChildLine::Refused(number)) => {
            Some(std::io::Error::from_raw_os_error(number).to_string())
        }
        Some(ChildLine::Failed(why)) => Some(why),
        // The child became another program, or ended; the effects are checked elsewhere.
        None | Some(ChildLine::Stands { .. } | ChildLine::Granted(_)) => {
            Some(format!("it says nothing: {}", output.status))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::super::acts::list_acts;
    use super::*;

    fn output(lines: &[ChildLine], status: i32) -> Output {
        let stands = ChildLine::Stands { landlock: Some(7), seccomp: true, missing: Vec::new() };
        let lines = std::iter::once(&stands).chain(lines);
        let stdout: String =
            lines.map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        Output { status: ExitStatus::from_raw(status), stdout: stdout.into(), stderr: Vec::new() }
    }

    fn came_of(id: &str, lines: &[ChildLine], status: i32) -> Result<String, String> {
        attacker_answer(list_acts().find(|act| act.id == id).unwrap(), &output(lines, status))
    }

    #[test]
    fn an_error_that_is_not_the_walls_own_proves_nothing() {
        let refused =
            |id, number| came_of(id, &[ChildLine::Refused(number), ChildLine::Granted(None)], 0);
        for number in [libc::EFAULT, libc::EBADF, libc::EINVAL, libc::ESRCH, libc::EACCES] {
            refused("wall-process-kill", number).unwrap_err();
            refused("wall-process-signal-by-descriptor", number).unwrap_err();
        }
        // An error that the file's modes cause does not come from the wall.
        refused("wall-files-read", libc::EPERM).unwrap_err();
        refused("wall-files-read", libc::EACCES).unwrap();
        refused("wall-process-kill", libc::ENOSYS).unwrap();
        refused("wall-process-kill", libc::EPERM).unwrap_err();
    }

    #[test]
    fn what_is_to_end_the_process_has_to() {
        came_of("wall-process-trace", &[], libc::SIGSYS).unwrap();
        came_of("wall-process-trace", &[], libc::SIGKILL).unwrap_err();
        let refused = [ChildLine::Refused(libc::EPERM), ChildLine::Granted(None)];
        came_of("wall-process-trace", &refused, 0).unwrap_err();
        came_of("wall-process-kill", &[], libc::SIGSYS).unwrap_err();
    }
}
