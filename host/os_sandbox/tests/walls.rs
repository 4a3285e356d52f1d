//! Tests walls (the OS sandbox of a process) and brokers in processes of their own. A raised wall cannot be
//! taken down, so each test part starts this program again; the new process plays the part and prints the
//! results.
//!
//! The usual test harness is not used: its threads would stay outside the wall.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(missing_docs)]

#[cfg(target_os = "linux")]
#[path = "walls/parts.rs"]
mod parts;

#[cfg(target_os = "linux")]
#[path = "walls/programs.rs"]
mod programs;

#[cfg(target_os = "linux")]
#[path = "walls/tests.rs"]
mod tests;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["broker"] => {
            let (hook, program) = (["keeper".into()], ["program-keeper".into()]);
            let keepers = belljar_os_sandbox::KeeperArguments { hook: &hook, program: &program };
            belljar_os_sandbox::serve_broker(keepers, &parts::Shelf)
        }
        ["keeper", command] => belljar_os_sandbox::keep_hook(command.as_ref()),
        ["program-keeper", program] => {
            belljar_os_sandbox::keep_program(program.as_ref(), &["program".into()])
        }
        ["program", program] => {
            belljar_os_sandbox::become_program(program.as_ref(), std::iter::empty())
        }
        ["part", name, directory] => {
            parts::play(name, std::path::Path::new(directory));
            ExitCode::SUCCESS
        }
        _ => {
            tests::all();
            println!("test result: ok");
            ExitCode::SUCCESS
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}
