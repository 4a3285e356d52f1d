//! A host on this machine for the tests: git repositories over HTTP, and files by their paths.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// An answer that is not git's.
#[derive(Clone)]
pub(super) enum Answer {
    File(Vec<u8>),
    Redirection(String),
}

/// A running host.
pub(super) struct TestHost {
    pub(super) port: u16,
    repositories: PathBuf,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TestHost {
    /// Serves the bare repositories in this folder.
    pub(super) fn start(repositories: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = Self {
            port: listener.local_addr().unwrap().port(),
            repositories: repositories.to_path_buf(),
            answers: Arc::default(),
            asked: Arc::default(),
        };
        let (folder, answers, asked) =
            (host.repositories.clone(), Arc::clone(&host.answers), Arc::clone(&host.asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, answers, asked) =
                    (folder.clone(), Arc::clone(&answers), Arc::clone(&asked));
                std::thread::spawn(move || serve(stream, &folder, &answers, &asked));
            }
        });
        host
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(super) fn put(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(format!("/{path}"), answer);
    }

    /// The paths that were asked for.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Clones a work tree, to be served as `NAME`; `options` are set in its configuration.
    pub(super) fn publish(&self, tree: &Path, name: &str, options: &[&str]) {
        let bare = self.repositories.join(name);
        let bare = bare.to_str().unwrap();
        super::git(tree, &["clone", "--quiet", "--bare", ".", bare]);
        for option in options {
            super::git(tree, &["-C", bare, "config", option, "true"]);
        }
    }
}

fn serve(
    mut stream: TcpStream,
    folder: &Path,
    answers: &Mutex<BTreeMap<String, Answer>>,
    asked: &Mutex<Vec<String>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut words = line.split_whitespace();
        let (method, target) =
            (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default());
        // The form for proxies names the host too.
        let target = match target.strip_prefix("http://") {
            Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]).to_owned(),
            None => target.to_owned(),
        };
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        asked.lock().unwrap().push(target.clone());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let found = answers.lock().unwrap().get(path).cloned();
        let (status, kind, bytes) = match found {
            Some(Answer::File(bytes)) => ("200 OK".to_owned(), String::new(), bytes),
            Some(Answer::Redirection(to)) => {
                ("302 Found".to_owned(), format!("location: {to}\r\n"), Vec::new())
            }
            None => run_backend(folder, &method, path, query, &headers, &body),
        };
        let closes = headers.get("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        let head = format!("HTTP/1.1 {status}\r\n{kind}content-length: {}\r\n\r\n", bytes.len());
        let written = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes));
        if written.is_err() || closes {
            return;
        }
    }
}

/// The answer of `git http-backend`.
fn run_backend(
    folder: &Path,
    method: &str,
    path: &str,
    query: &str,
    headers: &BTreeMap<String, String>,
    body: &[u8],
) -> (String, String, Vec<u8>) {
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let body = body.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&body);
    });
    let output = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let bytes = output.get(end + 4..).unwrap_or_default().to_vec();
    let (mut status, mut kind) = ("200 OK".to_owned(), String::new());
    for line in head.lines() {
        match line.strip_prefix("Status: ") {
            Some(other) => status = other.to_owned(),
            None => kind.push_str(&format!("{line}\r\n")),
        }
    }
    (status, kind, bytes)
}
