//! Keys appear nowhere.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::kit::{Done, World};

const KEY: &str = "sk-canary-4f1d8c0a77e2";

/// Everything that belljar left behind or printed.
fn leaks(world: &World, done: &Done) -> bool {
    let mut all = format!("{}{}", done.stdout, done.stderr);
    for (_, bytes) in world.home_state() {
        all.push_str(&String::from_utf8_lossy(&bytes));
    }
    for entry in std::fs::read_dir(world.home().join("sessions")).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_file() {
            all.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
        }
    }
    all.contains(KEY)
}

/// A server that repeats the request in its error, as careless ones do.
fn careless_server() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let n = stream.read(&mut request).unwrap_or(0);
            let echo = String::from_utf8_lossy(&request[..n]).replace(['"', '\r', '\n'], " ");
            let body = format!("{{\"error\":{{\"message\":\"bad key in: {echo}\"}}}}");
            let _ = write!(
                stream,
                "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

#[test]
fn a_key_stands_in_no_output_log_error_or_saved_run() {
    let world = World::new();
    let address = careless_server();
    world.home_file(
        "belljar.toml",
        &format!(
            "[models.main]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\nkey_env = \"TEST_KEY\"\n"
        ),
    );
    for args in [
        &["run", "--json", "hello"][..],
        &["run", "hello"],
        &["doctor"],
        &["agents", "show", "general-purpose", "--json"],
    ] {
        let output =
            world.command(args).env("TEST_KEY", KEY).env("BELLJAR_LOG", "trace").output().unwrap();
        let done = Done::of(output);
        assert!(!leaks(&world, &done), "{args:?}: {}{}", done.stdout, done.stderr);
        if args[0] == "run" {
            assert_eq!(done.code, 1, "{}", done.stderr);
            assert!(done.stderr.contains("401"), "{}", done.stderr);
        }
    }
}
