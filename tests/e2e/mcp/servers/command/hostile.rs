//! Commands that do not keep to the protocol, or to their place.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use serde_json::json;

use super::{Stage, lives};
use crate::kit::until;
use crate::mcp::servers::{the_neighbour_works, told};

/// Calls a tool of a command that acts so: it is an error that says why, its process is gone, the other
/// tools work on, and so does the server once it is honest again.
#[track_caller]
fn fails(mode: &str, why: &str) -> Stage {
    let stage = Stage::with("timeout_seconds = 3\n");
    let mut client = stage.client();
    stage.mode(mode);
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(is_error && text.contains(why), "{text} should say {why}");
    assert!(!text.contains("forged"), "{text}");
    the_neighbour_works(&mut client);
    stage.mode("honest");
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "again"})));
    assert!(!is_error && text.ends_with("again"), "{text}");
    let [first, second] = stage.processes()[..] else { panic!("{:?}", stage.seen()) };
    client.leave().exits(0);
    assert!(!lives(first) && !lives(second));
    stage
}

#[test]
fn a_flood_of_messages_ends_the_call_and_the_command() {
    fails("flood", "gave no result");
}

#[test]
fn a_line_without_an_end_ends_the_call_and_the_command() {
    fails("endless", "a message is too long");
}

#[test]
fn half_a_line_and_then_silence_ends_with_the_time_of_the_call() {
    fails("half", "the call took over 3 seconds");
}

#[test]
fn an_answer_to_another_request_is_none() {
    fails("forged alone", "the call took over 3 seconds");
    let stage = Stage::new();
    let mut client = stage.client();
    stage.mode("forged");
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "genuine"})));
    assert!(!is_error && text.ends_with("genuine") && !text.contains("forged"), "{text}");
    client.leave().exits(0);
}

#[test]
fn a_line_outside_of_the_protocol_is_passed_over_and_logged() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.mode("banner");
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(!is_error && text.ends_with('a'), "{text}");
    client.leave().exits(0);
    let sessions = stage.world.run(&["sessions", "list", "--json"]).exits(0).json();
    let session = sessions[0]["id"].as_str().unwrap().to_owned();
    let receipts = stage.world.run(&["receipts", &session, "--json"]).exits(0);
    receipts.says("passed over: `Welcome to the server!`");
}

#[test]
fn a_command_that_dies_in_mid_call_is_started_anew_by_the_next() {
    let stage = fails("dies", "it has ended");
    let sessions = stage.world.run(&["sessions", "list", "--json"]).exits(0).json();
    let session = sessions[0]["id"].as_str().unwrap().to_owned();
    stage.world.run(&["receipts", &session, "--json"]).exits(0).says("the reason of its end");
    let said = "mcp__peer__echo: stderr: the reason of its end";
    stage.world.run(&["receipts", &session]).exits(0).says(said);
    fails("closes", "it has ended");
}

#[test]
fn a_command_that_floods_its_stderr_is_not_waited_for_and_answers() {
    let stage = Stage::new();
    let mut client = stage.client();
    stage.mode("complains");
    let (text, is_error) = told(&client.call("mcp__peer__echo", json!({"text": "a"})));
    assert!(!is_error && text.ends_with('a'), "{text}");
    the_neighbour_works(&mut client);
    let done = client.leave().exits(0);
    assert!(!done.stderr.contains("eeee"), "its words are not the terminal's");
}

#[test]
fn sampling_roots_and_elicitation_are_refused_and_a_loop_of_them_ends() {
    let stage = fails("asks", "it asks for too much");
    let seen = stage.seen();
    let answers: Vec<&String> = seen.iter().filter(|line| line.starts_with("answer ")).collect();
    assert!(answers.len() <= 16 && answers.iter().all(|line| line.contains("-32601")), "{seen:?}");
}

#[test]
fn what_it_was_not_given_is_refused_by_the_operating_system() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let local = stage.path("local");
    let own = UnixListener::bind(&local).unwrap();
    let paths =
        [".ssh/id_ed25519", "home/belljar.toml", "home/mcp/peer.json", "workspace/note.txt"];
    let arguments = json!({
        "paths": paths.map(|path| stage.path(path)),
        "beside": stage.path("planted"),
        "port": listener.local_addr().unwrap().port(),
        "local": local,
    });
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(stage.path(path)).unwrap().permissions().mode()
    };
    let before = mode(".ssh/id_ed25519");
    stage.mode("attempts");
    let mut client = stage.client();
    let (text, is_error) = told(&client.call("mcp__peer__echo", arguments));
    assert!(!is_error, "{text}");
    let mut lines = text.lines().skip(1).collect::<Vec<_>>();
    // `LC_CTYPE` is one that Python sets itself.
    let variables = "variables: ['HOME', 'LC_CTYPE', 'PATH', 'TMPDIR']";
    assert_eq!(lines.pop().unwrap(), variables, "its own, and none of anybody's");
    assert_eq!(lines.len(), 21, "{text}");
    for line in lines {
        let worked = line.ends_with(": worked");
        assert_eq!(worked, line.starts_with("neighbour"), "{line}");
    }
    the_neighbour_works(&mut client);
    client.leave().exits(0);
    assert_eq!(mode(".ssh/id_ed25519"), before);
    for planted in ["planted", "read/planted"] {
        assert!(!std::path::Path::new(&stage.path(planted)).exists());
    }
    for refused in [listener.set_nonblocking(true), own.set_nonblocking(true)] {
        refused.unwrap();
    }
    assert!(listener.accept().is_err() && own.accept().is_err(), "nobody has come");
}

#[test]
fn a_command_with_more_threads_than_it_may_have_is_ended() {
    let stage = Stage::new();
    stage.mode("attempts");
    let mut client = stage.client();
    let arguments = json!({"paths": ["/"], "beside": "", "port": 0, "local": "", "threads": true});
    let (text, is_error) = told(&client.call("mcp__peer__echo", arguments));
    // Its memory is used up, or it is ended: whichever comes first.
    assert!(is_error && text.contains("it has ended") || text.contains("refused"), "{text}");
    the_neighbour_works(&mut client);
    client.leave().exits(0);
    assert!(stage.processes().iter().all(|process| !lives(*process)));
}

/// INV-365.
#[test]
fn a_call_that_is_cancelled_leaves_no_command_in_the_midst_of_it() {
    for mode in ["deaf", "silent"] {
        let stage = Stage::new();
        let mut client = stage.client();
        stage.mode(mode);
        let arguments = json!({"name": "mcp__peer__echo", "arguments": {"text": "a"}});
        let id = client.request("tools/call", arguments.clone());
        until("it works on the call", || stage.seen().contains(&"at work".to_owned()));
        // Another one waits behind it.
        let next = client.request("tools/call", arguments);
        let cancelled = json!({"requestId": id});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled});
        stage.mode("honest");
        client.send(&cancelled);
        let (text, is_error) = told(&client.answer(next));
        assert!(!is_error && text.ends_with('a'), "{mode}: {text}");
        let [first, second] = stage.processes()[..] else { panic!("{mode}: {:?}", stage.seen()) };
        assert!(!lives(first) && lives(second), "{mode}: {:?}", stage.seen());
        if mode == "deaf" {
            hears_of_it_at_work(&stage);
        }
        the_neighbour_works(&mut client);
        client.leave().exits(0);
        assert!(!lives(second));
    }
}

/// INV-365.
#[test]
fn a_server_that_a_script_has_called_is_told_that_the_script_was_cancelled() {
    let stage = Stage::new();
    let settings = std::fs::read_to_string(stage.world.home().join("belljar.toml")).unwrap();
    let settings = settings.replacen("'file_read'", "'file_read', 'run_javascript'", 1);
    stage.world.home_file("belljar.toml", &settings);
    let mut client = stage.client();
    stage.mode("deaf");
    let code = json!({"code": "tools.mcp__peer__echo({text: 'a'})"});
    let id = client.request("tools/call", json!({"name": "run_javascript", "arguments": code}));
    until("it works on the call", || stage.seen().contains(&"at work".to_owned()));
    let cancelled = json!({"requestId": id});
    stage.mode("honest");
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    let echo = json!({"name": "mcp__peer__echo", "arguments": {"text": "a"}});
    let next = client.request("tools/call", echo);
    let (text, is_error) = told(&client.answer(next));
    assert!(!is_error && text.ends_with('a'), "{text}");
    let [first, second] = stage.processes()[..] else { panic!("{:?}", stage.seen()) };
    assert!(!lives(first) && lives(second), "{:?}", stage.seen());
    hears_of_it_at_work(&stage);
    the_neighbour_works(&mut client);
    client.leave().exits(0);
}

/// A command was told that its call is cancelled while it worked on it.
fn hears_of_it_at_work(stage: &Stage) {
    let seen = stage.seen();
    let heard = seen.iter().position(|line| line == "notifications/cancelled");
    let works = seen.iter().position(|line| line == "works on");
    assert!(heard < works && heard.is_some(), "{seen:?}");
}
