//! Ending every process below this one, which has to be their subreaper: those whose parents are
//! gone are its own children then.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, wait,
};

/// How long they may take: a killed process is gone in milliseconds, unless the kernel holds it.
const WAIT: Duration = Duration::from_secs(5);

/// How long one of them is waited for before all are looked for again.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Parents of parents that are looked at: the longest chain that a fork makes within one round is
/// met again in the next, closer to this process.
const MAX_DEPTH: usize = 1_024;

/// Kills them until there are none: whoever starts others meanwhile is met in the next round.
pub(super) fn end() {
    let begun = Instant::now();
    loop {
        // Of any group: those in sessions of their own are met by their parent's number alone.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let all = below(getpid().as_raw_pid());
        if all.is_empty() || begun.elapsed() > WAIT {
            return;
        }
        let mut ending = Vec::new();
        for number in all {
            let Some(id) = Pid::from_raw(number) else { continue };
            let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else { continue };
            // Still one of ours, now that its number cannot become another's unseen.
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

/// How many processes there are below this one, and their threads. One that has ended counts until its
/// parent has asked how.
pub(super) fn count() -> (usize, usize) {
    let all = below(getpid().as_raw_pid());
    let threads = all.iter().filter_map(|number| field(*number, THREADS));
    (all.len(), threads.filter_map(|threads| usize::try_from(threads).ok()).sum())
}

/// The processes below this one.
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

/// Whether a process is below this one.
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

/// Places of a process's statistics behind its name: its parent, and how many threads it has.
const PARENT: usize = 1;
const THREADS: usize = 17;

fn field(number: i32, place: usize) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(place)?.parse().ok()
}
