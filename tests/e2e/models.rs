//! The model section of `belljar.toml`, each key as the guide writes it.

use std::sync::atomic::{AtomicUsize, Ordering};

use belljar_kit::peers::{HttpPeer, Reply};
use serde_json::Value;

use crate::kit::World;
#[cfg(unix)]
use crate::kit::server::Server;

/// A server that says `hello` in chat completions and keeps what it was sent.
fn server() -> HttpPeer {
    let said = "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}";
    server_that_says(vec![format!("data: {said}\n\ndata: [DONE]\n\n")])
}

/// A server that answers with these streams in turn, again and again, and keeps what it was sent.
fn server_that_says(streams: Vec<String>) -> HttpPeer {
    let turns = AtomicUsize::new(0);
    HttpPeer::start(move |_| {
        let stream = &streams[turns.fetch_add(1, Ordering::SeqCst) % streams.len()];
        Reply::new("200 OK", "content-type: text/event-stream\r\n", stream)
    })
}

#[test]
fn every_key_of_a_model_reaches_its_server() {
    let world = World::new();
    let peer = server();
    let address = peer.address;
    let key_file = world.other("key", b"sk-from-a-file\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    world.home_file(
        "belljar.toml",
        &format!(
            r#"
[models.one]
kind = "openai"
base_url = "http://{address}/v1"
model = "the-one"
key_file = "{}"
max_output_tokens = 77
effort = "low"
temperature = 0.5
headers = {{ "X-Title" = "belljar test" }}
max_tokens_field = "max_completion_tokens"
extra_body = {{ top_k = 20, chat_template_kwargs = {{ enable_thinking = false }} }}
[models.two]
kind = "openai"
base_url = "http://{address}/v1"
model = "the-other"
key_env = "TWO_KEY"
[roles]
main = "one"
fast = "two"
"#,
            key_file.display()
        ),
    );
    world.run(&["run", "say it"]).exits(0).says("hello");
    let request = peer.next_request();
    assert!(request.head.starts_with("POST /v1/chat/completions "), "{request:?}");
    assert_eq!(request.header("authorization"), Some("Bearer sk-from-a-file"));
    assert_eq!(request.header("x-title"), Some("belljar test"));
    let body = request.body;
    assert_eq!(body["model"], "the-one");
    assert_eq!(body["max_completion_tokens"], 77);
    assert_eq!((&body["temperature"], &body["reasoning_effort"]), (&0.5.into(), &"low".into()));
    assert_eq!(body["top_k"], 20);
    assert_eq!(body["chat_template_kwargs"]["enable_thinking"], false);

    let args = ["run", "--model", "fast", "say it"];
    let output = world.command(&args).env("TWO_KEY", "sk-from-env").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let request = peer.next_request();
    assert_eq!(request.header("authorization"), Some("Bearer sk-from-env"));
    let body = request.body;
    assert_eq!(body["model"], "the-other");
    assert!(body.get("max_completion_tokens").is_none() && body.get("top_k").is_none(), "{body}");
}

#[test]
fn as_many_runs_are_kept_as_the_settings_say() {
    let world = World::new();
    let address = server().address;
    let model = format!(
        "[models.main]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\n"
    );
    let runs = || {
        let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
        let kept = world.run(&["receipts", "--json"]).exits(0).json();
        let count = kept.as_array().unwrap().len();
        assert_eq!(sessions.as_array().unwrap().len(), count);
        count
    };
    for (keep, after) in [("keep_runs = 2\n", [1, 2, 2]), ("keep_runs = 0\n", [0, 0, 0])] {
        world.home_file("belljar.toml", &format!("{keep}{model}"));
        for expected in after {
            world.run(&["run", "say it"]).exits(0);
            assert_eq!(runs(), expected, "{keep}");
        }
    }
}

/// Text that was shown is void once the answer breaks off and is asked for again; where a door cannot take
/// it back, the answer is not asked for again.
#[cfg(unix)]
#[test]
fn text_of_an_answer_that_breaks_off_is_replaced_where_a_door_can_take_it_back() {
    let delta = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let whole = delta("It is whole.")
        + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let world = World::new();
    let peer = server_that_says(vec![delta("It is hal"), whole]);
    let address = peer.address;
    let settings = format!(
        "[models.main]\nkind = \"openai\"\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\n"
    );
    world.home_file("belljar.toml", &settings);
    world.home_file(
        "agents/clerk.md",
        "---\nname: clerk\ndescription: d\ntools: []\n---\nAnswer.\n",
    );
    let asked = || peer.take_requests().len();
    let stream = ["run", "--agent", "clerk", "--output-format", "stream-json", "go"];
    let done = world.run(&stream).exits(0);
    let retry = done.stdout.lines().find(|line| line.contains("\"retry\"")).unwrap();
    let retry: Value = serde_json::from_str(retry).unwrap();
    assert_eq!(retry["replaces"], true, "{retry}");
    assert_eq!(asked(), 2);
    let done = world.run(&["run", "--agent", "clerk", "-q", "go"]).exits(0);
    assert_eq!((done.stdout.trim(), asked()), ("It is whole.", 2));

    let server = Server::start(&world, &[]);
    let mut body =
        serde_json::json!({"model": "clerk", "messages": [{"role": "user", "content": "go"}]});
    let (status, text) = server.post("/v1/chat/completions", "", &body.to_string());
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (status, &answer["choices"][0]["message"]["content"]),
        (200, &"It is whole.".into())
    );
    assert_eq!(asked(), 2);
    // A stream has said it, and takes nothing back.
    body["stream"] = true.into();
    let (_, text) = server.post("/v1/chat/completions", "", &body.to_string());
    assert!(text.contains("It is hal") && text.contains("\"error\""), "{text}");
    assert!(!text.contains("It is whole.") && asked() == 1, "{text}");
}

#[test]
fn what_a_caller_says_of_sampling_reaches_the_model_and_its_answer_ends_before_a_stop_word() {
    let world = World::new();
    let peer = server();
    let address = peer.address;
    let model = format!("kind = \"openai\"\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"");
    world.home_file(
        "belljar.toml",
        &format!(
            "[models.main]\n{model}\nextra_body = {{ top_p = 0.9 }}\n[roles]\nmain = \"main\"\n"
        ),
    );
    world.home_file("agents/clerk.md", "---\nname: clerk\ndescription: A.\ntools: []\n---\nA.\n");
    let server = Server::start(&world, &[]);
    let asked = serde_json::json!({
        "model": "clerk", "messages": [{"role": "user", "content": "x"}],
        "top_p": 0.25, "presence_penalty": 1, "frequency_penalty": -1, "seed": 7, "temperature": 0,
        "stop": ["llo", "zz"],
    });
    let (status, text) = server.post("/v1/chat/completions", "", &asked.to_string());
    assert_eq!(status, 200, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "he");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let body = peer.next_request().body;
    for field in ["top_p", "seed", "stop"] {
        assert_eq!(body[field], asked[field], "{body}");
    }
    for field in ["presence_penalty", "frequency_penalty", "temperature"] {
        assert_eq!(body[field].as_f64(), asked[field].as_f64(), "{body}");
    }
    // The settings' own word is back for who says nothing.
    let asked = serde_json::json!({"model": "clerk", "input": "x"});
    let (status, text) = server.post("/v1/responses", "", &asked.to_string());
    assert_eq!(status, 200, "{text}");
    let body = peer.next_request().body;
    assert_eq!((&body["top_p"], body.get("stop")), (&0.9.into(), None), "{body}");
}
