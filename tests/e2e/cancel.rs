//! Ctrl-C.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

use crate::kit::World;

/// Says something, then hangs until it is cancelled.
const HANGING: &str = "
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: Thinking
        hang: true
";

/// Starts a run that hangs, and waits until it does.
pub(crate) fn hanging(world: &World) -> Child {
    hanging_with(world, &[])
}

/// The same with more options.
pub(crate) fn hanging_with(world: &World, more: &[&str]) -> Child {
    world.file("note.txt", "x");
    let transcript = world.other("hang.yaml", HANGING.as_bytes());
    let transcript = transcript.to_str().unwrap();
    let args = ["run", "--output-format", "stream-json", "--transcript", transcript, "look"];
    let mut child = world.spawn(&[&args, more].concat());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.by_ref().map(Result::unwrap).find(|line| line.contains("Thinking"));
    assert!(line.is_some(), "the run ended without hanging");
    // The rest of stdout is read by a thread, so that the child never waits for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn an_interrupt_cancels_the_run_and_saves_what_it_did() {
    let world = World::new();
    let mut child = hanging(&world);
    interrupt(&child);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr}");
    let run = world.run(&["receipts", "latest", "--json"]).exits(0).json();
    assert_eq!(run["outcome"]["status"], "cancelled");
    assert_eq!(run["outcome"]["receipts"].as_array().unwrap().len(), 1);
}
