//! Ends all descendants of the current process. This process must be a subreaper, so that it becomes the
//! parent of orphaned descendants.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, wait,
};

/// How long to wait until all descendants have ended. A killed process is gone in milliseconds, unless the
/// kernel delays it.
const WAIT: Duration = Duration::from_secs(5);

/// How long to wait for a process before looking for descendants again.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The most ancestors of a process that are followed. A longer chain, from forks within one round, is
/// shorter in the next round, because dead ancestors drop out.
const MAX_DEPTH: usize = 1_024;

/// Kills descendants in rounds until there are none: a process started meanwhile is found in the next round.
pub(super) fn kill_all() {
    let begun = Instant::now();
    loop {
        // Reaps children of every process group, because a process in another session is only known by its
        // parent's id.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let all = find_below(getpid().as_raw_pid());
        if all.is_empty() || begun.elapsed() > WAIT {
            return;
        }
        let mut ending = Vec::new();
        for number in all {
            let Some(id) = Pid::from_raw(number) else { continue };
            let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else { continue };
            // It is still a descendant, and while the descriptor is open no other process gets the same id.
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

/// The number of descendants, and of their threads. A process that has ended counts until its parent has
/// waited for it.
pub(super) fn count_descendants() -> (usize, usize) {
    let all = find_below(getpid().as_raw_pid());
    let threads = all.iter().filter_map(|number| read_stat_field(*number, THREADS));
    (all.len(), threads.filter_map(|threads| usize::try_from(threads).ok()).sum())
}

/// The ids of all descendants of the process `root`.
fn find_below(root: i32) -> BTreeSet<i32> {
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

/// Whether a process is a descendant of `root`.
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
    read_stat_field(number, PARENT)
}

/// The positions of two fields of `/proc/N/stat` after the process's name: the parent's id, and the number
/// of threads.
const PARENT: usize = 1;
const THREADS: usize = 17;

fn read_stat_field(number: i32, place: usize) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name is in brackets and may contain any character, also a bracket.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(place)?.parse().ok()
}
