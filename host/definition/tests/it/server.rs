//! `[server]` of `belljar.toml`: its keys and its mistakes.

use std::path::PathBuf;

use crate::show::{both, errors, home};

#[test]
fn every_key_of_the_server_is_read() {
    let settings = home(
        "[server]
listen = '127.0.0.1:7000'
data = '~/data'
host_names = ['jar.example.org']
origins = ['https://app.example.org']
jars = 8
queue = 0
tenant_turns = 4
tenant_queue = 2
requests_per_second = 10
connections_per_address = 20
failed_keys_per_minute = 30
audit_days = 40
otlp_endpoint = 'http://127.0.0.1:4318'",
    );
    let server = settings.unwrap().server;
    assert_eq!(server.listen.as_deref(), Some("127.0.0.1:7000"));
    assert_eq!(server.data, Some(PathBuf::from("/home/op/data")));
    assert_eq!((server.host_names.len(), server.origins.len()), (1, 1));
    let numbers = [
        server.jars,
        server.queue,
        server.tenant_turns,
        server.tenant_queue,
        server.requests_per_second,
        server.connections_per_address,
        server.failed_keys_per_minute,
        server.audit_days,
    ];
    assert_eq!(numbers, [8, 0, 4, 2, 10, 20, 30, 40].map(Some));
    assert_eq!(server.otlp_endpoint.as_deref(), Some("http://127.0.0.1:4318"));
    assert_eq!(home("").unwrap().server, Default::default());
}

#[test]
fn a_slip_in_server_is_one_clear_error() {
    for (toml, said) in [
        ("[server]\nlisen = 'x'", "did you mean `listen`?"),
        ("[server]\nlisten = 'localhost'", "an address with a port"),
        ("[server]\ndata = 'here'", "an absolute path"),
        ("[server]\njars = 0", "from 1 to 100000"),
        ("[server]\norigins = ['']", "blank entry"),
        ("server = 1", "not a table"),
    ] {
        let found = errors(toml);
        assert!(found.contains(said), "{toml}: {found}");
    }
}

#[test]
fn a_workspace_cannot_say_how_the_server_is_run() {
    let refused = both("", "[server]\njars = 1").unwrap_err();
    assert!(refused.contains("`server` has no place in a workspace's `belljar.toml`"), "{refused}");
}
