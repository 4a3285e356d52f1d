//! The client of a program that speaks JSON-RPC in lines, for example an editor of `belljar acp`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::http::PATIENCE;

/// A program and the client's end of its streams; the program is killed with the client.
pub struct RpcClient {
    child: Option<Child>,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
}

impl RpcClient {
    /// Starts the program.
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let input = child.stdin.take();
        Self { child: Some(child), input, lines, last: 0 }
    }

    /// Sends a line, which may be no JSON.
    pub fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Sends a request, and returns its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.line(&request.to_string());
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Answers a request of the program.
    pub fn respond(&mut self, request: &Value, result: &Value) {
        let line = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.line(&line.to_string());
    }

    /// The next message of the program, which writes one in each line.
    pub fn next_message(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => parse(&line),
            Err(error) => {
                let _ = self.child.as_mut().unwrap().kill();
                let output = self.child.take().unwrap().wait_with_output().unwrap();
                panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }

    /// The stream that the program reads, for a client that writes on its own.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    /// Closes the program's input, checks the rest of its messages, and waits for its end.
    pub fn leave(mut self) -> Output {
        drop(self.input.take());
        self.lines.iter().for_each(|line| drop(parse(&line)));
        self.child.take().unwrap().wait_with_output().unwrap()
    }

    /// Ends the program as `kill -9` does.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

impl Drop for RpcClient {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
