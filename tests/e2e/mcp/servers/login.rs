//! Servers that want a token, and the issuers of one. A server here is its own issuer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::Ordering;

use belljar_kit::peers::{AUTHORIZATION_CODE, HttpRequest, McpPeer, OAuthIssuer, TOKEN_START, mcp};
use serde_json::{Value, json};

use super::{Stage, the_neighbour_works, told};
use crate::kit::server::Server;

/// A login that waits for a person.
struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
}

impl Waiting {
    fn begin(stage: &Stage) -> Self {
        let mut command = stage.world.command(&["mcp", "login", "peer"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        stdout.read_line(&mut address).unwrap();
        Self { child, stdout, address: address.trim().to_owned() }
    }

    /// The person says yes, and their browser goes where it is sent.
    fn yes(&self) {
        let back = visit(&self.address).expect("a redirect");
        visit(&back);
    }

    /// The exit code, and all that was printed.
    fn end(mut self) -> (Option<i32>, String) {
        let mut all = self.address;
        self.stdout.read_to_string(&mut all).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut all).unwrap();
        (self.child.wait().unwrap().code(), all)
    }
}

/// Asks for a page; gives where it sends the browser.
fn visit(address: &str) -> Option<String> {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply.lines().find_map(|line| line.strip_prefix("location: ")).map(str::to_owned)
}

fn posted<'a>(seen: &'a [HttpRequest], path: &str) -> Option<&'a HttpRequest> {
    seen.iter().find(|seen| seen.verb == "POST" && seen.path == path)
}

#[test]
fn a_person_logs_in_and_out_and_nobody_sees_the_token() {
    let stage = Stage::unseen(McpPeer::start(), "");
    OAuthIssuer::default().guard(&stage.peer);
    stage.review().exits(1).complains("`belljar mcp login peer`");
    let waiting = Waiting::begin(&stage);
    // Whoever else calls is not heard.
    let back = waiting.address.split("redirect_uri=").nth(1).unwrap().split('&').next().unwrap();
    let back = back.replace("%3A", ":").replace("%2F", "/");
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    visit(&format!("{back}?code=forged&state=forged"));
    waiting.yes();
    let (code, said) = waiting.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("logged in to `peer`") && !said.contains("canary"), "{said}");
    let seen = stage.peer.seen();
    let form = String::from_utf8_lossy(&posted(&seen, "/token").unwrap().raw).into_owned();
    for part in [
        "grant_type=authorization_code",
        "code_verifier=",
        "resource=http%3A%2F%2F",
        AUTHORIZATION_CODE,
    ] {
        assert!(form.contains(part), "{part}: {form}");
    }
    let file = stage.world.home().join("mcp/tokens/peer.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains(TOKEN_START));

    stage.accept();
    let mut client = stage.client();
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(!is_error && text.ends_with("\na"), "{text}");
    stage.peer.calls(|seen, stream| {
        mcp::reply(stream, seen, &mcp::said(seen.header("authorization").unwrap()));
    });
    let answer = client.call("mcp__peer__echo", json!({"text": "a"}));
    assert!(told(&answer).1 && !answer.to_string().contains("canary"), "{answer}");
    the_neighbour_works(&mut client);
    let done = client.leave().exits(0);
    assert!(!done.stderr.contains("canary"), "{}", done.stderr);
    let sessions = stage.world.run(&["sessions", "list", "--json"]).exits(0).json();
    let session = sessions[0]["id"].as_str().unwrap().to_owned();
    let receipts = stage.world.run(&["receipts", &session, "--json"]).exits(0).stdout;
    assert!(receipts.contains("mcp-peer") && !receipts.contains("canary"), "{receipts}");

    stage.world.run(&["mcp", "logout", "peer"]).exits(0).says("logged out");
    assert!(!file.exists());
    let server = Server::start(&stage.world, &[]);
    let (_, audit) = server.get("/v1/audit", None);
    for action in ["log_in_to_mcp_server", "accept_mcp_tools", "log_out_of_mcp_server"] {
        assert!(audit.contains(action), "{action}: {audit}");
    }
    let (_, tools) = server.get("/v1/tools", None);
    assert!(!audit.contains("canary") && !tools.contains("canary"), "{audit} {tools}");
    let tools: Value = serde_json::from_str(&tools).unwrap();
    let echo = tools["tools"].as_array().unwrap().iter().find(|it| it["name"] == "mcp__peer__echo");
    let echo = echo.unwrap_or_else(|| panic!("{tools}"));
    assert_eq!((&echo["server"], &echo["origin"]), (&json!("peer"), &json!("mcp")));
    assert_eq!(
        (&echo["description"], &echo["read_only"]),
        (&json!("Gives back its text."), &json!(false))
    );
    drop(server);
    OAuthIssuer::default().guard(&stage.peer);
    let mut client = stage.client();
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(is_error && text.contains("it wants a token"), "{text}");
    the_neighbour_works(&mut client);
    client.leave().exits(0);
}

#[test]
fn a_token_that_is_not_taken_any_more_is_renewed_and_kept() {
    let stage = Stage::unseen(McpPeer::start(), "");
    let given = OAuthIssuer { expires_tokens: true, ..OAuthIssuer::default() }.guard(&stage.peer);
    let waiting = Waiting::begin(&stage);
    waiting.yes();
    assert_eq!(waiting.end().0, Some(0));
    stage.accept();
    given.fetch_add(1, Ordering::SeqCst);
    let mut client = stage.client();
    for word in ["one", "two"] {
        let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": word})));
        assert!(!is_error && text.ends_with(word), "{text}");
    }
    client.leave().exits(0);
    assert_eq!(given.load(Ordering::SeqCst), 3, "renewed once");
    let file = std::fs::read_to_string(stage.world.home().join("mcp/tokens/peer.json")).unwrap();
    assert!(
        file.contains(&format!("{TOKEN_START}-3")) && file.contains("refresh-canary-3"),
        "{file}"
    );
}

#[test]
fn whoever_logs_out_or_in_is_not_undone_by_a_process_that_runs() {
    let stage = Stage::unseen(McpPeer::start(), "");
    let given = OAuthIssuer { expires_tokens: true, ..OAuthIssuer::default() }.guard(&stage.peer);
    let log_in = || {
        let waiting = Waiting::begin(&stage);
        waiting.yes();
        let (code, said) = waiting.end();
        assert_eq!(code, Some(0), "{said}");
    };
    let file = stage.world.home().join("mcp/tokens/peer.json");
    let kept = || std::fs::read_to_string(&file).unwrap();
    log_in();
    stage.accept();
    let mut client = stage.client();
    let mut call = || told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    let works = |(text, is_error): (String, bool)| assert!(!is_error, "{text}");
    works(call());

    stage.world.run(&["mcp", "logout", "peer"]).exits(0).says("logged out");
    // What it has it uses until that is refused.
    works(call());
    given.fetch_add(1, Ordering::SeqCst);
    for _ in 0..2 {
        let (text, is_error) = call();
        assert!(is_error && text.contains("it wants a token"), "{text}");
    }
    assert_eq!(given.load(Ordering::SeqCst), 2, "nothing is renewed");
    assert!(!file.exists());

    // A login is taken as it is, by whoever has none and by whoever has an older one.
    for n in [3, 4] {
        log_in();
        works(call());
        assert_eq!(given.load(Ordering::SeqCst), n, "nothing is renewed");
        assert!(kept().contains(&format!("{TOKEN_START}-{n}")));
    }
    // From there on it is renewed as ever.
    given.fetch_add(1, Ordering::SeqCst);
    works(call());
    assert!(kept().contains(&format!("{TOKEN_START}-6")));
    client.leave().exits(0);
}

#[test]
fn a_token_of_another_issuer_than_the_operator_names_is_not_used() {
    let stage = Stage::unseen(McpPeer::start(), "");
    OAuthIssuer::default().guard(&stage.peer);
    let waiting = Waiting::begin(&stage);
    waiting.yes();
    assert_eq!(waiting.end().0, Some(0));
    stage.accept();
    let before = stage.peer.seen().len();
    let config = stage.world.home().join("belljar.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = format!("{text}\n[mcp.peer.oauth]\nissuer = 'https://mine.test'\n");
    stage.world.home_file("belljar.toml", &text);
    let mut client = stage.client();
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(is_error && text.contains("it wants a token"), "{text}");
    the_neighbour_works(&mut client);
    client.leave().exits(0);
    let seen = stage.peer.seen().split_off(before);
    assert!(!seen.is_empty() && seen.iter().all(|it| it.header("authorization").is_none()));
}

/// A login at such an issuer makes no token, and whatever the person said goes nowhere.
#[track_caller]
fn makes_no_token(issuer: OAuthIssuer, why: &str, is_asked: bool) {
    let stage = Stage::unseen(McpPeer::start(), "");
    let given = issuer.guard(&stage.peer);
    let waiting = Waiting::begin(&stage);
    assert_eq!(waiting.address.starts_with("http"), is_asked, "{}", waiting.address);
    if is_asked {
        waiting.yes();
    }
    let (code, said) = waiting.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(why), "{said} should say {why}");
    assert_eq!(given.load(Ordering::SeqCst), 0);
    assert!(posted(&stage.peer.seen(), "/token").is_none());
    assert!(!stage.world.home().join("mcp/tokens/peer.json").exists());
    let listed = stage.world.run(&["mcp", "list", "--json"]).exits(0).json();
    assert_eq!(listed[0]["name"], "peer", "what else there is works on");
}

#[test]
fn an_answer_of_another_issuer_makes_no_token() {
    let issuer =
        OAuthIssuer { iss: Some("https://bank.test".to_owned()), ..OAuthIssuer::default() };
    makes_no_token(issuer, "of another issuer", true);
}

#[test]
fn a_document_about_another_server_makes_no_token() {
    let issuer = OAuthIssuer {
        resource: Some("https://bank.test/mcp".to_owned()),
        ..OAuthIssuer::default()
    };
    makes_no_token(issuer, "which it is not", false);
}

#[test]
fn an_issuer_that_says_it_is_another_makes_no_token() {
    let issuer =
        OAuthIssuer { issuer: Some("https://bank.test".to_owned()), ..OAuthIssuer::default() };
    makes_no_token(issuer, "says that it is `https://bank.test`", false);
}

#[test]
fn an_issuer_that_sends_the_code_elsewhere_in_clear_text_makes_no_token() {
    let issuer = OAuthIssuer {
        token_endpoint: Some("http://bank.test/token".to_owned()),
        ..OAuthIssuer::default()
    };
    makes_no_token(issuer, "is not encrypted", false);
}

#[test]
fn an_issuer_that_has_people_say_yes_to_another_makes_no_token() {
    let issuer = OAuthIssuer {
        authorization_endpoint: Some("https://bank.test/yes".to_owned()),
        ..OAuthIssuer::default()
    };
    makes_no_token(issuer, "does not say whose the answer is", false);
}

#[test]
fn a_service_asks_with_its_own_secret_where_that_is_bound_and_nobody_logs_in() {
    let peer = McpPeer::start();
    let more = |host: &str| {
        format!(
            "[mcp.peer.oauth]\ngrant = 'client-credentials'\nclient_id = 'c'\nclient_secret = \
             'client'\n\n[secrets.client]\nhost = '{host}'\nheader = 'authorization'\nfile = \
             'client.txt'\n"
        )
    };
    let own = format!("http://{}", peer.address);
    let stage = Stage::unseen(peer, &more(&own));
    stage.world.home_file("client.txt", "client-canary-5d0e");
    let given = OAuthIssuer::default().guard(&stage.peer);
    stage.world.run(&["mcp", "login", "peer"]).exits(2).complains("nobody logs in");
    stage.accept();
    let mut client = stage.client();
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(!is_error && text.ends_with("\na"), "{text}");
    client.leave().exits(0);
    let seen = stage.peer.seen();
    let basic = posted(&seen, "/token").unwrap().header("authorization").unwrap().to_owned();
    assert!(basic.starts_with("Basic "), "{basic}");
    assert!(!stage.world.home().join("mcp/tokens/peer.json").exists());

    // Bound elsewhere, it is not sent.
    let config = stage.world.home().join("belljar.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let elsewhere = format!("[secrets.client]\nhost = '{own}'");
    assert!(text.contains(&elsewhere));
    let text = text.replace(&elsewhere, "[secrets.client]\nhost = 'https://other.test'");
    stage.world.home_file("belljar.toml", &text);
    let before = given.load(Ordering::SeqCst);
    let mut client = stage.client();
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(is_error && text.contains("it wants a token"), "{text}");
    assert_eq!(given.load(Ordering::SeqCst), before);
    the_neighbour_works(&mut client);
    client.leave().exits(0);
}

#[test]
fn a_server_is_spoken_to_as_it_was_when_it_was_accepted() {
    let peer = McpPeer::start();
    peer.acts(|seen, stream| {
        let result = match seen.method() {
            "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
            "initialize" | "notifications/initialized" => {
                mcp::status(stream, "400 Bad Request", "");
                return true;
            }
            _ => return false,
        };
        mcp::reply(stream, seen, &result);
        true
    });
    let stage = Stage::with(peer, "");
    let before = stage.peer.seen().len();
    let mut client = stage.client();
    for word in ["one", "two"] {
        let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": word})));
        assert!(!is_error && text.ends_with(word), "{text}");
    }
    the_neighbour_works(&mut client);
    client.leave().exits(0);
    let seen = stage.peer.seen().split_off(before);
    let methods: Vec<&str> = seen.iter().map(HttpRequest::method).collect();
    assert_eq!(methods, ["tools/list", "tools/call", "tools/call"]);
    for one in &seen {
        let meta: &Value = &one.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(one.header("mcp-method"), Some(one.method()));
        assert_eq!(one.header("mcp-session-id"), None);
    }
    assert_eq!(seen[1].header("mcp-name"), Some("echo"));
}
