//! Keys appear nowhere.

use std::net::SocketAddr;

use belljar_kit::peers::{HttpPeer, Reply};

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
fn careless_server() -> SocketAddr {
    let peer = HttpPeer::start(|request| {
        let echo = request.head.replace(['"', '\r', '\n'], " ");
        let body = format!("{{\"error\":{{\"message\":\"bad key in: {echo}\"}}}}");
        Reply::new("401 Unauthorized", "content-type: application/json\r\n", body)
    });
    peer.address
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
