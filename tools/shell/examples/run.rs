//! Runs a script as the tool does, natively, with the current directory as the workspace:
//! `cargo run -p belljar-tool-shell --example run -- 'echo hi'`. It confines nothing.
#![allow(clippy::print_stdout)]

use belljar_tool_shell::answer;
use belljar_tool_shell::files::Mount;
use belljar_tool_shell::session::{START, Session};

fn main() -> std::io::Result<()> {
    let mount = Mount { guest: START.to_owned(), host: std::env::current_dir()? };
    let mut session = Session::new(&[mount])?;
    for script in std::env::args().skip(1) {
        print!("{}", answer::text(&session.run(&script)));
    }
    Ok(())
}
