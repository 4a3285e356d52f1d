//! Runs random sequences of operations on a directory that is written in place, and on the same directory
//! through overlays. Each result, each refusal and the final content have to be the same, also after the
//! overlays were closed and opened again. The lower directories have to stay unchanged.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use super::super::*;
use super::world::{Fd, Op, Random, Side, names, plant, scratch};

/// The number of sequences in `cargo test`, unless `BELLJAR_OVERLAY_SEQUENCES` says otherwise.
const SEQUENCES: u64 = 10_000;

/// The number of operations in a sequence.
pub(super) const LENGTH: usize = 50;

/// Seeds of sequences that once found a difference.
const KEPT: &str = include_str!("seeds.txt");

fn path(random: &mut Random, names: &[&str]) -> String {
    let mut path = random.pick(names).to_owned();
    while random.one_in(3) {
        path.push('/');
        path.push_str(match random.below(6) {
            0 => "..",
            1 => ".",
            _ => random.pick(names),
        });
    }
    if random.one_in(8) {
        path.push('/');
    }
    match random.below(60) {
        0 => String::new(),
        1 => ".".to_owned(),
        2 => "..".to_owned(),
        3 => format!("/{path}"),
        4 => "/workspace/a".to_owned(),
        _ => path,
    }
}

pub(super) fn op(random: &mut Random, names: &[&str], fds: usize) -> Op {
    // Often one of the newest descriptors, because most of the oldest are directories.
    let at = match random.below(3) {
        0 => random.below(fds),
        1 => random.below(6),
        _ => fds - 1 - random.below(fds.min(4)),
    };
    let dir = if random.one_in(2) { random.below(6) } else { at };
    let follow = if random.one_in(2) { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() };
    match random.below(40) {
        0..10 => {
            let mut open = OpenFlags::empty();
            if random.one_in(2) {
                open |= OpenFlags::CREATE;
            }
            if random.one_in(8) {
                open |= OpenFlags::EXCLUSIVE;
            }
            if random.one_in(5) {
                open |= OpenFlags::TRUNCATE;
            }
            if random.one_in(8) {
                open |= OpenFlags::DIRECTORY;
            }
            if random.one_in(3) {
                open = OpenFlags::empty();
            }
            let mut access = DescriptorFlags::empty();
            if !random.one_in(4) {
                access |= DescriptorFlags::READ;
            }
            if random.one_in(2) {
                access |= DescriptorFlags::WRITE;
            }
            if random.one_in(6) {
                access |= DescriptorFlags::MUTATE_DIRECTORY;
            }
            Op::Open(dir, path(random, names), follow, open, access)
        }
        10 => Op::Read(at, random.below(80) as u64, random.below(40) as u64),
        11..14 => Op::Write(at, random.below(40), random.below(60) as u64),
        14 => {
            let offset = random.one_in(2).then(|| random.below(60) as u64);
            Op::Stream(at, random.below(30), offset)
        }
        15 => Op::ReadStream(at, random.below(30) as u64),
        16 => Op::SetSize(at, random.below(90) as u64),
        17 => Op::SetTimes(at, random.pick(&[0, 1, 77, 1234])),
        18 => Op::SetTimesAt(dir, path(random, names), random.pick(&[0, 1, 77, 1234])),
        19 => Op::Stat(at),
        20 => Op::StatAt(dir, follow, path(random, names)),
        21 | 22 => Op::List(at),
        23 | 24 => Op::MakeDir(dir, path(random, names)),
        25 | 26 => Op::RemoveDir(dir, path(random, names)),
        27 | 28 => Op::Unlink(dir, path(random, names)),
        29..33 => {
            let new = if random.one_in(3) { random.below(fds) } else { dir };
            Op::Rename(dir, path(random, names), new, path(random, names))
        }
        33 => {
            let new = if random.one_in(3) { random.below(fds) } else { dir };
            Op::Link(dir, path(random, names), new, path(random, names))
        }
        34 => Op::Symlink(dir, path(random, names), path(random, names)),
        35 => Op::ReadLink(dir, path(random, names)),
        36 if fds > 12 => Op::Drop(6 + random.below(fds - 6)),
        36 => Op::Flags(at),
        37 => Op::Sync(at),
        38 => Op::Same(at, random.below(fds)),
        _ => Op::SameHash(at, dir, path(random, names)),
    }
}

/// The content of a host directory, including the modification time of each file.
fn picture(path: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let stat = std::fs::symlink_metadata(&path).unwrap();
        let content = match stat.file_type() {
            kind if kind.is_dir() => {
                let below = std::fs::read_dir(&path).unwrap();
                left.extend(below.map(|entry| entry.unwrap().path()));
                String::new()
            }
            kind if kind.is_symlink() => format!("{:?}", std::fs::read_link(&path).unwrap()),
            _ => format!("{:?}", std::fs::read(&path).unwrap()),
        };
        let (inode, mode, modified) = (stat.ino(), stat.mode(), stat.modified().unwrap());
        let said = format!("{inode} {mode:o} {modified:?} {} {content}", stat.nlink());
        found.insert(path, said);
    }
    found
}

/// Runs one sequence. Fails with a log of the operations and the first difference.
async fn sequence(seed: u64) {
    let home = scratch();
    let (plain, overlaid) = (home.path().join("plain"), home.path().join("overlaid"));
    for side in [&plain, &overlaid] {
        plant(&side.join("one"), seed);
        plant(&side.join("two"), seed + 1);
    }
    let before = [picture(&overlaid.join("one")), picture(&overlaid.join("two"))];
    let mut sides = [Side::plain(&plain), Side::overlaid(&overlaid)];
    let mut fds: [Vec<Fd>; 2] = [sides[0].preopens(), sides[1].preopens()];
    assert_eq!(fds[0], fds[1]);
    let mut random = Random::new(!seed);
    let mut log = Vec::new();
    for _ in 0..LENGTH {
        let op = op(&mut random, names(seed), fds[0].len());
        let (said, opened) = sides[0].act(&op, &fds[0]).await;
        let (over, also) = sides[1].act(&op, &fds[1]).await;
        log.push(format!("{op:?}: {said}"));
        assert_eq!(said, over, "seed {seed}:\n{}", log.join("\n"));
        match (opened, also) {
            (Some(one), Some(other)) => {
                fds[0].push(one);
                fds[1].push(other);
            }
            (None, None) => {}
            _ => panic!("seed {seed}: one was opened and the other not"),
        }
        if let Op::Drop(index) = op {
            let index = index % fds[0].len();
            fds[0].remove(index);
            fds[1].remove(index);
        }
    }
    let seen = compare(&mut sides, seed, &log).await;
    let after = [picture(&overlaid.join("one")), picture(&overlaid.join("two"))];
    assert!(before == after, "seed {seed}: the lower directory changed\n{}", log.join("\n"));
    let used: Vec<_> = sides[1].overlays().iter().map(|overlay| overlay.used_quota()).collect();
    drop(sides);
    let mut sides = [Side::plain(&plain), Side::overlaid(&overlaid)];
    let again = compare(&mut sides, seed, &log).await;
    assert_eq!(seen, again, "seed {seed}: opened again\n{}", log.join("\n"));
    for (used, overlay) in used.iter().zip(sides[1].overlays()) {
        // The bytes of open files without a name are released.
        assert!(overlay.used_quota().bytes <= used.bytes, "seed {seed}");
        assert_eq!(overlay.used_quota().files, used.files, "seed {seed}\n{}", log.join("\n"));
    }
}

async fn compare(
    sides: &mut [Side; 2],
    seed: u64,
    log: &[String],
) -> Vec<BTreeMap<String, String>> {
    let mut seen = Vec::new();
    for mount in 0..2 {
        let plain = sides[0].tree(mount).await;
        let over = sides[1].tree(mount).await;
        assert_eq!(plain, over, "seed {seed}:\n{}", log.join("\n"));
        seen.push(over);
    }
    seen
}

fn run(seeds: impl Iterator<Item = u64>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for seed in seeds {
            sequence(seed).await;
        }
    });
}

#[test]
fn an_overlay_does_what_a_directory_does() {
    let sequences = std::env::var("BELLJAR_OVERLAY_SEQUENCES").ok();
    let sequences = sequences.map_or(SEQUENCES, |text| text.parse().expect("a number"));
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let seeds = (0..sequences).filter(move |seed| seed % threads == thread);
            scope.spawn(move || run(seeds));
        }
    });
}

#[test]
fn sequences_that_found_something_once_find_nothing_more() {
    let lines = KEPT.lines().filter(|line| !line.starts_with('#'));
    run(lines.map(|line| line.parse().expect("a seed")));
}
