//! A server that trusts an issuer, and the commands that speak of it.

use crate::kit::World;
use crate::kit::server::{Server, key};

const CORP: &str = "[server.issuers.corp]\nurl = 'https://id.example.org'\naudience = 'a'\n";

fn rule(tenant: &str) -> String {
    format!(
        "[[server.issuers.corp.allow]]\nsubject = 'alice'\ntenant = '{tenant}'\nscope = 'admin'\n"
    )
}

/// INV-384.
#[test]
fn a_tenant_is_not_deleted_while_a_rule_of_an_issuer_names_it() {
    let world = World::new();
    for tenant in ["red", "blue"] {
        world.run(&["tenants", "add", tenant]).exits(0);
    }
    let red = key(&world, "red", "admin");
    world.home_file("belljar.toml", &format!("{CORP}{}", rule("red")));
    let server = Server::start(&world, &[]);
    let refused = world.run(&["tenants", "rm", "red", "--yes", "--purge"]).exits(2);
    refused.complains("subject `alice`, scope `admin`").complains("tenants disable red");
    assert!(world.home().join(world.workspace_of("red")).exists());
    assert_eq!(server.get("/v1/sessions", Some(&red)).0, 200, "nothing of it is gone");
    // One that no rule names is, and so is this one without its rule.
    world.run(&["tenants", "rm", "blue", "--yes"]).exits(0);
    world.home_file("belljar.toml", CORP);
    world.run(&["tenants", "rm", "red", "--yes"]).exits(0);
    // A rule that is there first is no secret to whoever makes the tenant.
    world.home_file("belljar.toml", &format!("{CORP}{}", rule("red")));
    let made = world.run(&["tenants", "add", "red"]).exits(0);
    made.complains("let tokens into `red`").complains("subject `alice`, scope `admin`");
    let made = world.run(&["tenants", "add", "blue"]).exits(0);
    assert!(!made.stderr.contains("let tokens"), "{}", made.stderr);
    // Where nobody can tell, nothing is deleted.
    world.home_file("belljar.toml", "[server.issuers");
    world.run(&["tenants", "rm", "blue", "--yes"]).exits(2);
    world.home_file("belljar.toml", CORP);
    world.run(&["tenants", "rm", "blue", "--yes"]).exits(0);
}

#[test]
fn rules_that_let_nobody_in_are_named_when_the_server_starts() {
    let world = World::new();
    for tenant in ["red", "blue"] {
        world.run(&["tenants", "add", tenant]).exits(0);
    }
    world.run(&["tenants", "disable", "blue"]).exits(0);
    let rules = ["red", "blue", "green"].map(rule).concat();
    world.home_file("belljar.toml", &format!("{CORP}{rules}"));
    let done = Server::start(&world, &[]).terminate().exits(0);
    assert!(!done.stderr.contains("tenant `red`"), "{}", done.stderr);
    done.complains("tenant `green` is not there, so these rules let nobody in")
        .complains("tenant `blue` is disabled")
        .complains("subject `alice`, scope `admin`");
}

/// INV-377.
#[test]
fn a_server_that_trusts_an_issuer_is_not_said_to_be_open() {
    let world = World::new();
    world.home_file("belljar.toml", CORP);
    let key = key(&world, "local", "admin");
    let revoked = world.run(&["keys", "revoke", &key[3..19]]).exits(0);
    revoked.complains("tokens of the issuers still open the server");
    let open = ["keys", "open-to-this-machine", "--yes"];
    let refused = world.run(&open).exits(2);
    refused.complains("tokens of https://id.example.org still open the server");
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/v1/audit", None).0, 401);
    server.terminate().exits(0);
    world.home_file("belljar.toml", "");
    world.run(&open).exits(0).complains("the next start of the server");
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/v1/audit", None).0, 200);
}
