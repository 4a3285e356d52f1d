//! `cargo xtask test llama`: tests belljar with a real llama.cpp server.
//!
//! Makes a tiny model with random weights, serves the model on loopback with llama.cpp's HTTP server, and
//! runs the test target `peers` of the command line with that server. The Python packages are installed by
//! `.ci/run`, or by hand: `python3 -m venv target/peers`, then `target/peers/bin/pip install xllamacpp gguf
//! numpy`.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// After how many seconds the server ends, in case the current process dies without stopping the server.
const SERVER_SECONDS: &str = "900";

pub(crate) fn run(root: &Path) -> Result<()> {
    let python = root.join("target/peers/bin/python");
    ensure!(
        python.exists(),
        "there is no `target/peers`; make it with `python3 -m venv target/peers`, then \
         `target/peers/bin/pip install xllamacpp gguf numpy`"
    );
    let scripts = root.join("tests/peers/tiny-llama");
    let model = root.join("target/peers/tiny.gguf");
    let status = Command::new(&python).arg(scripts.join("make_model.py")).arg(&model).status()?;
    ensure!(status.success(), "the tiny model could not be made");
    let port = free_port()?;
    let mut server = start_server(&python, &scripts.join("serve.py"), &model, port)?;
    let result = run_tests(root, port);
    server.kill().context("failed to stop the llama.cpp server")?;
    server.wait()?;
    result
}

fn start_server(python: &Path, script: &Path, model: &Path, port: u16) -> Result<Child> {
    let mut server = Command::new(python)
        .arg(script)
        .arg(model)
        .args([&port.to_string(), SERVER_SECONDS])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start the llama.cpp server")?;
    let output = server.stdout.take().context("the server has no output")?;
    // The script says `listening` when the model is loaded.
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next() {
        if line?.starts_with("listening") {
            // The server continues to write, and would end if its output were no longer read.
            #[expect(
                clippy::disallowed_methods,
                reason = "a program for developers, without strangers"
            )]
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(server);
        }
    }
    server.kill()?;
    server.wait()?;
    bail!("the llama.cpp server ended before it listened")
}

fn run_tests(root: &Path, port: u16) -> Result<()> {
    let status = crate::cargo_command()
        .args(["test", "--test", "peers", "--features", "belljar-cli/other-programs"])
        .env("BELLJAR_LLAMA_URL", format!("http://127.0.0.1:{port}/v1"))
        .current_dir(root)
        .status()
        .context("failed to start cargo")?;
    ensure!(status.success(), "the tests against llama.cpp failed");
    Ok(())
}

/// A port that was free a moment ago. If another process takes the port, the server fails with a message.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
