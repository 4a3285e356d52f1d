//! `belljar acp` in a world, and an editor that talks with it.

use std::collections::VecDeque;
use std::process::Stdio;

use belljar_kit::peers::RpcClient;
use serde_json::{Value, json};

use super::World;

/// An editor with its agent, which is killed with its test.
pub(crate) struct Editor {
    agent: RpcClient,
    cwd: Value,
    /// The updates until now: the session, and the update.
    pub(crate) updates: Vec<(String, Value)>,
    asked: VecDeque<Value>,
    answers: Vec<Value>,
}

impl Editor {
    /// An editor that understands everything.
    pub(crate) fn start(world: &World, more: &[&str]) -> Self {
        let session = json!({"notices": {}, "compaction": {}});
        Self::with(world, more, &json!({"subagents": {}, "session": session}))
    }

    /// An editor that states these capabilities.
    pub(crate) fn with(world: &World, more: &[&str], capabilities: &Value) -> Self {
        let mut args = vec!["acp"];
        args.extend(more);
        let agent = RpcClient::start(world.command(&args).stderr(Stdio::inherit()));
        let mut editor = Self {
            agent,
            cwd: json!(world.workspace().canonicalize().unwrap()),
            updates: Vec::new(),
            asked: VecDeque::new(),
            answers: Vec::new(),
        };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let hello = editor.call("initialize", hello);
        assert_eq!(hello["protocolVersion"], 1, "{hello}");
        editor
    }

    /// Sends a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.agent.line(line);
    }

    /// Sends a request, and gives its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.agent.request(method, &params)
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.agent.notify(method, &params);
    }

    /// Answers a request of the agent's.
    pub(crate) fn respond(&mut self, request: &Value, result: Value) {
        self.agent.respond(request, &result);
    }

    /// Chooses an option of a question, by the end of its id.
    pub(crate) fn choose(&mut self, question: &Value, ending: &str) {
        let options = question["params"]["options"].as_array().unwrap();
        let ids = options.iter().map(|option| option["optionId"].as_str().unwrap());
        let id = ids.into_iter().find(|id| id.ends_with(ending));
        let id = id.unwrap_or_else(|| panic!("no option `{ending}` in {question:#}"));
        self.respond(question, json!({"outcome": {"outcome": "selected", "optionId": id}}));
    }

    fn take(&mut self) {
        let line = self.agent.next_message();
        match (line.get("method").and_then(Value::as_str), line.get("id")) {
            (Some("session/update"), _) => {
                let session = line["params"]["sessionId"].as_str().unwrap().to_owned();
                self.updates.push((session, line["params"]["update"].clone()));
            }
            (Some(_), Some(_)) => self.asked.push_back(line),
            _ => self.answers.push(line),
        }
    }

    /// The whole answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                return self.answers.remove(at);
            }
            self.take();
        }
    }

    /// The result of a request that is met.
    #[track_caller]
    pub(crate) fn result(&mut self, id: u64) -> Value {
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer:#}");
        answer["result"].take()
    }

    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.result(id)
    }

    /// The error of a request that is refused.
    #[track_caller]
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let mut answer = self.answer(id);
        assert!(answer.get("error").is_some(), "{answer:#}");
        answer["error"].take()
    }

    /// The next question of the agent's.
    pub(crate) fn question(&mut self) -> Value {
        loop {
            if let Some(asked) = self.asked.pop_front() {
                return asked;
            }
            self.take();
        }
    }

    /// The methods of the agent's requests that nobody has looked at.
    pub(crate) fn asked_for(&self) -> Vec<&str> {
        self.asked.iter().filter_map(|line| line["method"].as_str()).collect()
    }

    /// The first update of a session that is so.
    pub(crate) fn until(&mut self, session: &str, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let all = self.updates.iter();
            if let Some(found) = all.filter(|(of, _)| of == session).find(|(_, it)| is(it)) {
                return found.1.clone();
            }
            self.take();
        }
    }

    /// The workspace as the parameters of a session.
    pub(crate) fn place(&self) -> Value {
        json!({"cwd": self.cwd, "mcpServers": []})
    }

    /// The same with the id of a session.
    pub(crate) fn place_of(&self, session: &str) -> Value {
        json!({"cwd": self.cwd, "mcpServers": [], "sessionId": session})
    }

    /// A new session.
    pub(crate) fn session(&mut self) -> String {
        let place = self.place();
        let new = self.call("session/new", place);
        new["sessionId"].as_str().unwrap().to_owned()
    }

    /// Begins to say something.
    pub(crate) fn saying(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.begin("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Says something, and gives why the agent stopped.
    #[track_caller]
    pub(crate) fn say(&mut self, session: &str, text: &str) -> String {
        let id = self.saying(session, text);
        let result = self.result(id);
        result["stopReason"].as_str().unwrap().to_owned()
    }

    /// The updates of one kind of a session.
    pub(crate) fn of(&self, session: &str, kind: &str) -> Vec<&Value> {
        let of =
            self.updates.iter().filter(|(of, it)| of == session && it["sessionUpdate"] == kind);
        of.map(|(_, update)| update).collect()
    }

    /// The agent's words in a session.
    pub(crate) fn words(&self, session: &str) -> String {
        let chunks = self.of(session, "agent_message_chunk");
        chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// Closes the agent's input, and waits for its end; whether that was a good one.
    pub(crate) fn leave(self) -> bool {
        self.agent.leave().status.success()
    }

    /// Kills the agent.
    pub(crate) fn kill(self) {
        self.agent.kill();
    }
}
