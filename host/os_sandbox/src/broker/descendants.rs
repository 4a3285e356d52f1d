//! Ends every process below this one. This process must be a subreaper: orphans become its children then.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, wait,
};

/// How long descendants may take to end: a killed process is gone in milliseconds, unless the kernel holds
/// it.
const WAIT: Duration = Duration::from_secs(5);

/// How long one process is waited for before the search begins again.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Ancestors that are followed: the longest chain made by forks within one round is met again in the next,
/// closer to this process.
const MAX_DEPTH: usize = 1_024;

/// Kills them until there are none: whoever starts others meanwhile is met in the next round.
pub(super) fn end() {
    let begun = Instant::now();
    loop {
        // Waits for any group: a process in a session of its own is found by its parent's number alone.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let all = below(getpid().as_raw_pid());
        if all.is_empty() || begun.elapsed() > WAIT {
            return;
        }
        let mut ending = Vec::new();
        for number in all {
            let Some(id) = Pid::from_raw(number) else { continue };
            let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else { continue };
            // Still a descendant, now that its number cannot be reused unseen.
            if is_below(getpid().as_raw_pid(), number)
                && pidfd_send_signal(&process, Signal::KILL).is_ok()
            {
                ending.push(process);
            }
        }
        for process in &ending {
            let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&ROUND));
        }
    }
}

/// Counts the processes below this one, and their threads. An ended process counts until its parent has
/// waited for it.
pub(super) fn count() -> (usize, usize) {
    let all = below(getpid().as_raw_pid());
    let threads = all.iter().filter_map(|number| field(*number, THREADS));
    (all.len(), threads.filter_map(|threads| usize::try_from(threads).ok()).sum())
}

/// The processes below `root`.
fn below(root: i32) -> BTreeSet<i32> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(number) {
            parents.insert(number, parent);
        }
    }
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for (number, parent) in &parents {
            if *parent == root || found.contains(parent) {
                found.insert(*number);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether a process is below `root`.
fn is_below(root: i32, number: i32) -> bool {
    let mut at = number;
    for _ in 0..MAX_DEPTH {
        match parent_of(at) {
            Some(parent) if parent == root => return true,
            Some(parent) if parent > 1 => at = parent,
            Some(_) | None => return false,
        }
    }
    false
}

fn parent_of(number: i32) -> Option<i32> {
    field(number, PARENT)
}

/// Positions in a process's statistics after the name: the parent, and the number of threads.
const PARENT: usize = 1;
const THREADS: usize = 17;

fn field(number: i32, place: usize) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(place)?.parse().ok()
}
