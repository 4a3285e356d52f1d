//! Kills processes that write to an overlay. Every acknowledged change is present afterwards; beyond that,
//! at most the change that was being made.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::differential::op;
use super::world::{Fd, Op, Random, Side, names, plant, scratch};

/// The number of kills in `cargo test`.
const KILLS: u64 = 200;

/// The number of operations of a process that is not killed.
const LENGTH: u64 = 150;

/// The environment variable with the seed and the directory of a process that is killed.
const TOLD: &str = "BELLJAR_OVERLAY_KILLED";

/// The content of both mounts: a description of each path.
type Seen = [BTreeMap<String, String>; 2];

/// A sequence of operations, the same for the same seed.
struct Sequence {
    side: Side,
    fds: Vec<Fd>,
    random: Random,
    seed: u64,
}

impl Sequence {
    fn new(home: &Path, seed: u64) -> Self {
        let mut side = Side::overlaid(home);
        let fds = side.preopens();
        Self { side, fds, random: Random::new(!seed), seed }
    }

    async fn step(&mut self) -> String {
        let op = op(&mut self.random, names(self.seed), self.fds.len());
        let (said, opened) = self.side.act(&op, &self.fds).await;
        self.fds.extend(opened);
        if let Op::Drop(index) = op {
            let index = index % self.fds.len();
            self.fds.remove(index);
        }
        format!("{op:?}: {said}")
    }
}

fn planted(seed: u64) -> tempfile::TempDir {
    let home = scratch();
    plant(&home.path().join("one"), seed);
    plant(&home.path().join("two"), seed + 1);
    home
}

/// The content of both mounts.
async fn seen(side: &mut Side) -> Seen {
    [side.tree(0).await, side.tree(1).await]
}

/// `killed` starts this test in a process, and kills the process. Without the variable, the test runs one
/// sequence, and checks that the content survives reopening.
#[tokio::test]
async fn a_process_that_nobody_kills_writes_a_whole_sequence() {
    if let Ok(told) = std::env::var(TOLD) {
        let (seed, home) = told.split_once(' ').unwrap();
        let mut sequence = Sequence::new(Path::new(home), seed.parse().unwrap());
        let mut out = std::io::stdout();
        // A line is printed after the operation was acknowledged.
        for _ in 0..LENGTH {
            sequence.step().await;
            out.write_all(b"done\n").unwrap();
        }
        // The reader kills this process.
        out.write_all(b"end\n").unwrap();
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let home = planted(1);
    let mut sequence = Sequence::new(home.path(), 1);
    for _ in 0..LENGTH {
        sequence.step().await;
    }
    let before = seen(&mut sequence.side).await;
    drop(sequence);
    assert_eq!(seen(&mut Side::overlaid(home.path())).await, before);
}

#[test]
fn a_killed_process_loses_nothing_that_was_acknowledged_and_invents_nothing() {
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let seeds = (0..KILLS).filter(move |seed| seed % threads == thread);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                seeds.for_each(|seed| runtime.block_on(killed(seed)));
            });
        }
    });
}

async fn killed(seed: u64) {
    let home = planted(seed);
    let test = concat!(module_path!(), "::a_process_that_nobody_kills_writes_a_whole_sequence");
    let (_, test) = test.split_once("::").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(TOLD, format!("{seed} {}", home.path().display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut done = 0;
    // The kill happens at a random moment: the process continues while its output is read.
    let until = Random::new(seed).below(usize::try_from(LENGTH).unwrap()) as u64;
    while done < until {
        let line = lines.next().expect("it lives").unwrap();
        done += u64::from(line.ends_with("done"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Lines that were printed but not read yet also count. An incomplete line does not.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    done += rest.iter().filter(|line| line.ends_with("done")).count() as u64;
    let found = seen(&mut Side::overlaid(home.path())).await;
    let again = planted(seed);
    let mut sequence = Sequence::new(again.path(), seed);
    let mut log = Vec::new();
    for _ in 0..done {
        log.push(sequence.step().await);
    }
    let acknowledged = seen(&mut sequence.side).await;
    if found != acknowledged {
        log.push(sequence.step().await);
        let next = seen(&mut sequence.side).await;
        // Linux sets the new time of a file before the bytes are written, and a kill can happen in between.
        if !is_but_for_new_times(&found, &acknowledged) {
            assert_eq!(found, next, "seed {seed}, after {done}:\n{}", log.join("\n"));
        }
    }
}

/// Whether both contents are the same, except that some files of the first have the present time.
fn is_but_for_new_times(first: &Seen, second: &Seen) -> bool {
    let without_time = |text: &str| {
        let (before, after) = text.split_once(" links, of the present ")?;
        Some(format!("{before} {after}"))
    };
    let without_any = |text: &str| {
        let (before, after) = text.split_once(" links, of ")?;
        let (_, after) = after.split_once(" Descriptor")?;
        Some(format!("{before} Descriptor{after}"))
    };
    first.iter().zip(second).all(|(first, second)| {
        let same = |(path, text): (&String, &String)| {
            second.get(path).is_some_and(|other| {
                let timed = without_time(text);
                text == other || timed.is_some() && timed == without_any(other)
            })
        };
        first.len() == second.len() && first.iter().all(same)
    })
}
