//! Processes that are killed while they write to an overlay: what they were told was done is there,
//! and nothing but the one change that they were at.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::differential::op;
use super::world::{Fd, Op, Random, Side, names, plant, scratch};

/// Kills that `cargo test` makes.
const KILLS: u64 = 200;

/// Operations of a process that nobody kills.
const LENGTH: u64 = 150;

/// Tells the process to be killed its seed and its directory.
const TOLD: &str = "BELLJAR_OVERLAY_KILLED";

/// The upper tree and the lower one: what stands at each path.
type Seen = [BTreeMap<String, String>; 2];

/// The same operations for the same seed.
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

/// All that is seen of both.
async fn seen(side: &mut Side) -> Seen {
    [side.tree(0).await, side.tree(1).await]
}

/// The process that is killed below is this test, started once more; by itself it makes one sequence,
/// and finds it again.
#[tokio::test]
async fn a_process_that_nobody_kills_writes_a_whole_sequence() {
    if let Ok(told) = std::env::var(TOLD) {
        let (seed, home) = told.split_once(' ').unwrap();
        let mut sequence = Sequence::new(Path::new(home), seed.parse().unwrap());
        let mut out = std::io::stdout();
        // A line is said once the operation was acknowledged.
        for _ in 0..LENGTH {
            sequence.step().await;
            out.write_all(b"done\n").unwrap();
        }
        // Whoever reads kills.
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
    // At any moment: it goes on while this is read.
    let until = Random::new(seed).below(usize::try_from(LENGTH).unwrap()) as u64;
    while done < until {
        let line = lines.next().expect("it lives").unwrap();
        done += u64::from(line.ends_with("done"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Said and not read yet; a line that was cut off was not said.
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
        // Linux gives a file its new time before the bytes, and a kill can come between the two.
        if !is_but_for_new_times(&found, &acknowledged) {
            assert_eq!(found, next, "seed {seed}, after {done}:\n{}", log.join("\n"));
        }
    }
}

/// Whether all is the same but that some files of the first have the time of now.
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
