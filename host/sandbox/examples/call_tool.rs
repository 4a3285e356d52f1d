//! Shows how a program uses a jar: the stock tool `file_read` sees a single directory, reads a file in that
//! directory, and is refused a file outside.
//!
//! ```sh
//! cargo run --example call_tool
//! ```

#![allow(clippy::print_stdout, reason = "an example speaks")]

use std::error::Error;
use std::process::ExitCode;

use belljar_sandbox::{Jar, Sandbox, SandboxConfig, compiler_child};

fn main() -> ExitCode {
    // Components from strangers are compiled in a child process with limits; the child runs this program
    // again.
    if let Some(done) = compiler_child() {
        return done;
    }
    match run_example() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run_example() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("notes.txt"), "Water the plants.\n")?;

    let sandbox = Sandbox::new(SandboxConfig::compiling_in_child()?)?;
    let jar = Jar::builder()
        .tool_file(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/prebuilt/file_read.wasm"))
        .read_only(directory.path())
        .build(&sandbox)
        .await?;

    // A call like a model's: the name of a tool, and arguments as JSON.
    let result = jar.call_tool("file_read", r#"{"path": "notes.txt"}"#).await?;
    println!("{}", result.outcome?.text());
    let receipt = result.receipt;
    println!("read {:?}, {} fuel, {} µs", receipt.paths_read, receipt.fuel, receipt.times.total);

    let result = jar.call_tool("file_read", r#"{"path": "../../etc/passwd"}"#).await?;
    assert!(result.outcome.is_err(), "a file outside was read");
    println!(
        "refused: {}",
        result.receipt.denials.first().map_or("", |denial| denial.facts.as_str())
    );
    jar.close().await;
    Ok(())
}
