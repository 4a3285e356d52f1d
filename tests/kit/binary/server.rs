//! `belljar serve` in a world.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::Duration;

use super::{Done, World};

/// A server that is ended with its test.
pub(crate) struct Server {
    child: Option<Child>,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(world: &World, more: &[&str]) -> Self {
        Self::start_with(world, more, &[])
    }

    pub(crate) fn start_with(world: &World, more: &[&str], env: &[(&str, &str)]) -> Self {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0"];
        args.extend(more);
        Self::of(world.command(&args).envs(env.iter().copied()))
    }

    /// The server that a command starts, once it answers.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let done = Done::of(child.wait_with_output().unwrap());
            panic!("it said `{line}`: {}", done.stderr);
        };
        Self { address: address.to_owned(), child: Some(child) }
    }

    /// The process.
    #[cfg(target_os = "linux")]
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The status and the body of a `GET`.
    pub(crate) fn get(&self, path: &str, key: Option<&str>) -> (u16, String) {
        let key = key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
        self.send("GET", path, &key, "")
    }

    /// The status and the body of a `POST` of JSON, with more lines in its head.
    pub(crate) fn post(&self, path: &str, lines: &str, json: &str) -> (u16, String) {
        let length = json.len();
        let lines =
            format!("{lines}content-type: application/json\r\ncontent-length: {length}\r\n");
        self.send("POST", path, &lines, json)
    }

    /// The status and the body of a `DELETE`.
    pub(crate) fn delete(&self, path: &str, key: &str) -> (u16, String) {
        self.send("DELETE", path, &format!("authorization: Bearer {key}\r\n"), "")
    }

    /// Asks for a stream of events, and waits until it says this.
    #[cfg(unix)]
    pub(crate) fn until(&self, method: &str, path: &str, json: &str, word: &str) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (host, length) = (&self.address, json.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{json}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let lines = BufReader::new(stream).lines();
        assert!(
            lines.map(Result::unwrap).any(|line| line.contains(word)),
            "it never said `{word}`"
        );
    }

    fn send(&self, method: &str, path: &str, lines: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let host = &self.address;
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        stream.write_all(format!("{head}{lines}\r\n{body}").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    #[cfg(unix)]
    pub(crate) fn terminate(self) -> Done {
        self.signal(rustix::process::Signal::TERM);
        self.ended()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(self.child.as_ref().unwrap());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    #[cfg(unix)]
    pub(crate) fn ended(mut self) -> Done {
        Done::of(self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn key(world: &World, tenant: &str, scope: &str) -> String {
    let args = ["keys", "create", "--tenant", tenant, "--scope", scope, "--name", "test"];
    world.run(&args).exits(0).stdout.trim().to_owned()
}
