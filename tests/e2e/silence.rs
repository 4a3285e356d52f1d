//! A server among connections that say nothing, with as few descriptors as most machines give.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::kit::server::{Server, key};
use crate::kit::{World, until};

/// More than there are descriptors.
const SILENT: usize = 1_100;

/// No answer takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server with these descriptors, soft and hard.
fn start(world: &World, limits: &str) -> Server {
    let plain = world.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut limited = Command::new("sh");
    let script = format!("{limits}; exec \"$0\" \"$@\"");
    limited.args(["-c", &script]).arg(plain.get_program()).args(plain.get_args());
    limited.current_dir(world.workspace()).env_clear();
    limited.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    Server::of(&mut limited)
}

/// This process holds the other ends.
fn room_for_clients() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

fn limit_of(server: &Server) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().to_owned()
}

fn open_files(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count()
}

/// Seconds of processor time that a process has used.
fn processor_time(server: &Server) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = [11, 12].map(|at| fields[at].parse::<u64>().unwrap()).iter().sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

#[test]
fn silent_connections_beyond_all_descriptors_shut_nobody_out() {
    room_for_clients();
    let world = World::new();
    world.run(&["tenants", "add", "blue"]).exits(0);
    let blue = key(&world, "blue", "member");
    let server = start(&world, "ulimit -n 1024");
    assert_eq!(limit_of(&server), "1024");
    // A connection of the tenant's that was there before, and has asked for something.
    let mut before = TcpStream::connect(server.address()).unwrap();
    let ask = format!(
        "GET /v1/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {blue}\r\n\r\n",
        server.address()
    );
    let status = |stream: &mut TcpStream| -> String {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(ask.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (mut line, mut first) = (String::new(), String::new());
        reader.read_line(&mut first).unwrap();
        let mut length = 0;
        while line != "\r\n" {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "it was closed: {first:?}");
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse().unwrap();
            }
        }
        std::io::Read::read_exact(&mut reader, &mut vec![0; length]).unwrap();
        first
    };
    assert!(status(&mut before).starts_with("HTTP/1.1 200"));
    let mut silent = Vec::with_capacity(SILENT);
    for count in 0..SILENT {
        silent.push(TcpStream::connect(server.address()).unwrap());
        // It is used, now and then.
        if count % 100 == 99 {
            assert!(status(&mut before).starts_with("HTTP/1.1 200"), "after {count}");
        }
    }
    assert_eq!(server.get("/healthz", None).0, 200);
    assert_eq!(server.get("/v1/sessions", Some(&blue)).0, 200);
    assert_eq!(server.get("/v1/sessions", None).0, 401);
    assert!(status(&mut before).starts_with("HTTP/1.1 200"));
    let files = open_files(&server);
    assert!(files < 1_024 - 32, "{files} of 1,024 descriptors are in use");
    // Nothing spins: there comes a second without a request that costs the server next to nothing.
    before.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    until("the server rests", || {
        let used = processor_time(&server);
        assert!(std::io::Read::read(&mut &before, &mut [0]).is_err(), "it is open, and silent");
        processor_time(&server) - used < 0.5
    });
    drop(silent);
    let done = server.terminate().exits(0);
    assert!(!done.stderr.contains("refused by the system"), "{}", done.stderr);
}

#[test]
fn a_server_takes_all_the_descriptors_that_it_may_have() {
    let world = World::new();
    let server = start(&world, "ulimit -Sn 256; ulimit -Hn 4096");
    assert_eq!(limit_of(&server), "4096");
    // A hard limit below what the tests themselves have is the most that there is.
    let (status, body) = server.post("/v1/agents/validate", "", &json!({"text": "x"}).to_string());
    assert_eq!(status, 200, "{body}");
}
