//! Resources that a client is told the changes of.

use serde_json::{Value, json};

use super::client::{Client, Revision};
use super::world;

/// The names of the receipts and the changes of the client's session.
fn resources(client: &mut Client) -> [String; 2] {
    let listed = client.ask("resources/list", json!({}));
    let all = listed["result"]["resources"].as_array().unwrap_or_else(|| panic!("{listed}"));
    ["receipts", "changes"].map(|name| {
        let found = all.iter().find(|resource| resource["name"] == name).unwrap();
        found["uri"].as_str().unwrap().to_owned()
    })
}

/// The names that it was told the change of, in order.
fn updated(client: &mut Client) -> Vec<String> {
    let seen: Vec<Value> = client.seen.drain(..).collect();
    let told = seen.iter().filter(|message| message["method"] == "notifications/resources/updated");
    told.map(|message| message["params"]["uri"].as_str().unwrap().to_owned()).collect()
}

fn write(client: &mut Client) -> Value {
    client.call("file_write", json!({"path": "new.txt", "content": "low water\n"}))
}

fn writing() -> crate::kit::World {
    let world = world();
    world.home_file(
        "belljar.toml",
        "[grants.mcp.tools]\nfile_list = 'allow'\nfile_write = 'allow'\n",
    );
    world
}

#[test]
fn a_client_of_the_older_revision_is_told_what_it_subscribed_to() {
    let world = writing();
    let mut client = Client::start(&world, &[], Revision::Older);
    let [receipts, changes] = resources(&mut client);
    write(&mut client);
    assert_eq!(updated(&mut client), [""; 0]);
    for uri in [&receipts, &changes] {
        let done = client.ask("resources/subscribe", json!({"uri": uri}));
        assert_eq!(done["result"], json!({}), "{done}");
    }
    client.call("file_list", json!({}));
    // What a call changed is told before its answer, so that nobody waits for it.
    assert_eq!(updated(&mut client), [receipts.as_str()]);
    write(&mut client);
    let mut told = updated(&mut client);
    told.sort();
    assert_eq!(told, [changes.as_str(), &receipts]);
    client.ask("resources/unsubscribe", json!({"uri": receipts}));
    write(&mut client);
    assert_eq!(updated(&mut client), [changes]);
    client.leave().exits(0);
}

#[test]
fn a_session_that_is_not_its_own_is_none_to_watch() {
    let world = writing();
    let mut other = Client::start(&world, &[], Revision::Older);
    let [theirs, _] = resources(&mut other);
    write(&mut other);
    let mut client = Client::start(&world, &[], Revision::Older);
    let made_up = "belljar://sessions/none/receipts".to_owned();
    for uri in [theirs, made_up, "file:///etc/passwd".to_owned()] {
        let refused = client.ask("resources/subscribe", json!({"uri": uri}));
        let why = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(why.contains("no such resource"), "{why}");
    }
    write(&mut other);
    client.call("file_list", json!({}));
    assert_eq!(updated(&mut client), [""; 0]);
}

#[test]
fn a_client_of_the_newer_revision_listens() {
    let world = writing();
    let mut client = Client::start(&world, &[], Revision::Newer);
    let [receipts, changes] = resources(&mut client);
    let filter = json!({"resourceSubscriptions": [receipts, changes]});
    let listening = client.request("subscriptions/listen", json!({"notifications": filter}));
    let told = client.next();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged", "{told}");
    write(&mut client);
    let mut found = Vec::new();
    while found.len() < 2 {
        let message = match client.seen.pop_front() {
            Some(message) => message,
            None => client.next(),
        };
        assert_eq!(message["method"], "notifications/resources/updated", "{message}");
        let id = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*id, listening, "{message}");
        found.push(message["params"]["uri"].as_str().unwrap().to_owned());
    }
    found.sort();
    assert_eq!(found, [changes, receipts]);
    client.leave().exits(0);
}
