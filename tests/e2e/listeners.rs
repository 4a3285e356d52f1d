//! The servers on this machine that a tool reaches, the one that runs it among them.

use std::net::TcpListener;

use belljar_kit::peers::{HttpPeer, Reply};
use serde_json::{Value, json};

use crate::kit::World;
use crate::kit::server::Server;

/// The words of a service of the operator's, which tools may read.
const GRANTED: &str = "words of the service next door";

/// A port that was free a moment ago: the transcript has to name it before the server is there.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Fetches these, one after the other, with every port of this machine granted.
fn fetcher(world: &World, urls: &[String]) {
    let calls: Vec<Value> =
        urls.iter().map(|url| json!({"name": "web_fetch", "arguments": {"url": url}})).collect();
    let turns = json!([{"calls": calls}, {"say": "that was all"}]);
    let agent = json!([{"agent": "fetcher", "turns": turns}]);
    let script = json!({"transcript": 1, "each_run": true, "agents": agent});
    world.home_file("transcript.yaml", &script.to_string());
    let definition = "---\nname: fetcher\ndescription: d\ntools: [web_fetch]\n---\nFetch.\n";
    world.home_file("agents/fetcher.md", definition);
    let hosts =
        "'http://127.0.0.1:*', 'http://127.0.0.2:*', 'http://[::1]:*', 'http://localhost:*'";
    let settings = format!(
        "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n\n\
         [grants.fetcher]\ntools = ['web_fetch']\nhosts = [{hosts}]\n"
    );
    world.home_file("belljar.toml", &settings);
}

#[test]
fn a_tool_reaches_no_belljar_on_this_machine_and_its_neighbours_it_does() {
    let (world, other) = (World::new(), World::new());
    // Neither has a key: whoever gets there is the operator.
    let sibling = Server::start(&other, &[]);
    let service = HttpPeer::with_reply(Reply::text(GRANTED));
    let (own, next_door) = (free_port(), service.address.port());
    let urls = [
        format!("http://127.0.0.1:{own}/v1/audit"),
        format!("http://127.0.0.2:{own}/v1/audit"),
        format!("http://[::1]:{own}/v1/audit"),
        format!("http://localhost:{own}/v1/audit"),
        format!("http://{}/v1/audit", sibling.address()),
        format!("http://127.0.0.1:{next_door}/"),
    ];
    fetcher(&world, &urls);
    let listen = format!("127.0.0.1:{own}");
    let server = Server::of(&mut world.command(&["serve", "--listen", &listen]));
    let before = other.run(&["sessions", "list", "--json"]).exits(0).stdout;
    let asked = json!({"agent": "fetcher", "text": "go"}).to_string();
    let (status, body) = server.post("/v1/chat", "", &asked);
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["status"], "completed", "{answer:#}");
    let session = answer["session"].as_str().unwrap();
    let path = format!("/v1/sessions/{session}/messages?full=true");
    let (_, said) = server.get(&path, None);
    let said: Value = serde_json::from_str(&said).unwrap();
    let results = said["messages"][1]["messages"][2]["results"].as_array().unwrap();
    assert_eq!(results.len(), urls.len(), "{results:#?}");
    let (granted, refused) = results.split_last().unwrap();
    for (result, url) in refused.iter().zip(&urls) {
        let text = result["content"].as_str().unwrap_or_default();
        let refused = result["is_error"] == true || text.contains("[403, ");
        assert!(refused && !text.contains("entries"), "{url}: {result:#}");
    }
    assert!(granted.to_string().contains(GRANTED), "{granted:#}");
    // No effect: the sibling has answered nothing, and goes on answering people.
    assert_eq!(other.run(&["sessions", "list", "--json"]).exits(0).stdout, before);
    assert_eq!(sibling.get("/v1/audit", None).0, 200);
}
