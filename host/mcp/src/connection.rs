//! The session of one agent with one server over HTTP: begun with the first call, one call at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{
    Budget, Caps, DenyCode, HostScope, Level, Limits, SecretName, Source, ToolName,
};
use belljar_sandbox::{
    CallError, CallResult, Digest, Outgoing, OutgoingSpec, Output, Receipt, SecretStore,
    ToolErrorKind,
};
use http::HeaderMap;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};

use crate::answer::{Answer, cut, frame, shown};
use crate::auth::{Asking, AuthError, Tokens, renew};
use crate::call::{CallSpec, ending, is_given_up};
use crate::challenge::Challenge;
use crate::demands::{Clock, Talk, Waits};
use crate::exchange::{Address, Aside, Fault, answer_beside, ask, leave, overhear, tell};
use crate::limits::{FAREWELL, MAX_ROUNDS};
use crate::line::Line;
use crate::listing::{ListedTool, Listing, changed};
use crate::message::notification;
use crate::opening::{Ids, Opening};
use crate::parameters;
use crate::program::ProgramSession;
use crate::revision::Revision;
use crate::rounds::{Demand, Wanted};
use crate::server::Server;

/// A code of JSON-RPC: the arguments do not fit.
const INVALID_PARAMS: i64 = -32602;

/// A session with a server, of one agent. Calls wait for each other, in the order asked.
#[derive(Debug)]
pub struct Connection {
    server: Arc<Server>,
    open: Line<Open>,
    pub(crate) ids: Ids,
    /// The running program of a server that is a command.
    pub(crate) running: Line<ProgramSession>,
    /// The time spent waiting for a person here, in any call.
    pub(crate) waits: Waits,
}

/// A session that has begun.
#[derive(Debug)]
struct Open {
    address: Address,
    /// The digests of the server's present descriptions of its tools.
    now: BTreeMap<String, Digest>,
    /// True after the server has announced that its tools changed.
    stale: bool,
    /// The time of the next listing of the tools, for a server that cannot announce changes.
    until: Option<Instant>,
}

/// The reason why a call has no output.
enum Failed {
    Fault(Fault),
    /// The tool differs from the accepted one.
    Changed(&'static str),
    Output(CallError),
    /// The server requires a token, and none can be obtained.
    NoToken(AuthError),
}

/// A gate with the token joined to its requests.
struct Gated {
    gate: Outgoing,
    tokens: Option<Arc<Tokens>>,
}

impl Failed {
    /// The reason, for the operator.
    fn why(&self) -> String {
        match self {
            Self::Fault(fault) => fault.to_string(),
            Self::Changed(how) => (*how).to_owned(),
            Self::Output(error) => error.to_string(),
            Self::NoToken(why) => why.to_string(),
        }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Open {
    fn is_stale(&self) -> bool {
        self.stale || self.until.is_some_and(|until| until <= Instant::now())
    }
}

impl Connection {
    /// A session that begins with the first call.
    pub fn new(server: Arc<Server>) -> Self {
        let (open, running) = (Line::default(), Line::default());
        Self { server, open, ids: Ids::default(), running, waits: Waits::default() }
    }

    /// The longest time of one call, or of one look at the list of tools.
    pub(crate) fn longest(&self, limits: &Limits) -> Duration {
        let most = Duration::from_secs(limits.call_timeout_seconds);
        self.server.timeout.map_or(most, |own| own.min(most))
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Calls a tool that was accepted. INV-311: a tool that the server now describes in other words is
    /// refused.
    pub async fn call(&self, tool: &ToolName, arguments: &str, spec: CallSpec<'_>) -> CallResult {
        if let Some(program) = self.server.program() {
            return self.call_program(program, tool, arguments, spec).await;
        }
        let asked = Instant::now();
        let Some(accepted) = self.server.tools().get(tool) else {
            let receipt = Receipt::empty(tool.as_str(), "", arguments);
            return CallResult {
                outcome: Err(CallError::Refused(DenyCode::ToolNotAllowed)),
                receipt,
            };
        };
        let mut receipt = Receipt::empty(tool.as_str(), &accepted.digest().to_string(), arguments);
        let budget = spec.budget.child(Level::Call, Caps::of_call(spec.limits));
        let mut gate = self.gate_of_now(&spec, &budget);
        let most = self.longest(spec.limits);
        let progress = spec.progress.clone().map(|sink| gate.gate.progress(sink));
        let talk = Talk::of(&self.server, spec.answers, progress, &self.waits);
        let clock = Clock::begin(most, &self.waits);
        let outcome = match spec.within(&clock, self.open.front()).await {
            Ok(mut front) => {
                let doing = async {
                    let called = self.called(&mut front, &gate.gate, accepted, arguments, &talk);
                    let called = called.await;
                    let Err(Failed::Fault(Fault::Unauthorized(challenge))) = called else {
                        return called;
                    };
                    // The call was not made: once more, with another token.
                    gate = self.renewed(&gate, &spec, &budget, &challenge).await?;
                    self.called(&mut front, &gate.gate, accepted, arguments, &talk).await
                };
                let done = spec.within(&clock, Box::pin(doing)).await;
                let outcome =
                    done.and_then(|done| done.map_err(|failed| self.told(failed, &gate.gate)));
                if is_given_up(&outcome) {
                    self.give_up(front.take(), &gate.gate).await;
                }
                front.settle();
                outcome
            }
            Err(early) => Err(early),
        };
        receipt.ending = ending(&outcome);
        let outcome = gate.gate.conclude(outcome, &mut receipt, asked.elapsed());
        CallResult { outcome, receipt }
    }

    /// The tools that the server lists now.
    ///
    /// # Errors
    ///
    /// When the server cannot be asked: the text is for the operator, with the server's words escaped.
    pub async fn list(&self, spec: CallSpec<'_>) -> Result<Listing, String> {
        let budget = spec.budget.child(Level::Call, Caps::unlimited());
        let mut gate = self.gate_of_now(&spec, &budget);
        let most = self.longest(spec.limits);
        let listing = async {
            match self.list_once(&gate.gate).await {
                Err(Fault::Unauthorized(challenge)) => {
                    gate = self.renewed(&gate, &spec, &budget, &challenge).await?;
                    Ok(self.list_once(&gate.gate).await?)
                }
                listing => Ok::<_, Failed>(listing?),
            }
        };
        let listing = tokio::select! {
            biased;
            () = spec.cancel.cancelled() => return Err("it was cancelled".to_owned()),
            listing = timeout(most, listing) => listing,
        };
        let mut receipt = Receipt::empty("", "", "");
        let _ = gate.gate.conclude(Ok(Output::default()), &mut receipt, Duration::ZERO);
        let facts = receipt.denials.first().map(|denial| format!(" ({})", denial.facts));
        match listing {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(failed)) => Err(format!("{}{}", failed.why(), facts.unwrap_or_default())),
            Err(_) => Err(format!("it does not answer within {} seconds", most.as_secs())),
        }
    }

    /// Notifies the server that the session has ended.
    pub async fn close(&self, spec: CallSpec<'_>) {
        if self.server.program().is_some() {
            return self.close_program().await;
        }
        let closing = async {
            let Some(open) = self.open.front().await.take() else { return };
            if open.address.session.is_some() {
                let gate = self.gate_of_now(&spec, spec.budget).gate;
                let _ = leave(&gate, &open.address).await;
            }
        };
        let _ = timeout(FAREWELL, closing).await;
    }

    async fn list_once(&self, gate: &Outgoing) -> Result<Listing, Fault> {
        let mut address = self.opening().begin(gate).await?;
        let listing = self.opening().listed(gate, &mut address).await;
        if address.revision == Revision::Sessions {
            let _ = timeout(FAREWELL, leave(gate, &address)).await;
        }
        listing.map(|(listing, _)| listing)
    }

    /// INV-310: the gate lets through the server's own host, with its own secrets. The token is such a
    /// secret: joined to requests, and redacted from every reply.
    pub(crate) fn gate(
        &self,
        spec: &CallSpec<'_>,
        budget: &Budget,
        tokens: Option<&Tokens>,
    ) -> Outgoing {
        let (secrets, joined) = self.secrets(spec, tokens);
        Outgoing::new(spec.sandbox, self.outgoing(spec, budget, &secrets, &joined))
    }

    fn gate_of_now(&self, spec: &CallSpec<'_>, budget: &Budget) -> Gated {
        let tokens = self.server.held.now();
        Gated { gate: self.gate(spec, budget, tokens.as_deref()), tokens }
    }

    /// Returns a gate of the same call with a new token in place of the refused one.
    async fn renewed(
        &self,
        before: &Gated,
        spec: &CallSpec<'_>,
        budget: &Budget,
        challenge: &Challenge,
    ) -> Result<Gated, Failed> {
        let asking = Asking { server: &self.server, gate: &before.gate, spec };
        renew(&asking, before.tokens.as_ref(), challenge).await.map_err(Failed::NoToken)?;
        let tokens = self.server.held.now();
        let (secrets, joined) = self.secrets(spec, tokens.as_deref());
        let outgoing = self.outgoing(spec, budget, &secrets, &joined);
        Ok(Gated { gate: before.gate.beside(spec.sandbox, outgoing), tokens })
    }

    fn secrets(
        &self,
        spec: &CallSpec<'_>,
        tokens: Option<&Tokens>,
    ) -> (SecretStore, BTreeSet<SecretName>) {
        let (mut secrets, mut joined) = (spec.secrets.clone(), self.server.secrets.clone());
        let token = tokens.map(|tokens| tokens.secret(&self.server.name, &self.server.host));
        if let Some(Ok((name, secret))) = token {
            secrets.insert(name.clone(), secret);
            joined.insert(name);
        }
        (secrets, joined)
    }

    fn outgoing<'a>(
        &self,
        spec: &'a CallSpec<'_>,
        budget: &'a Budget,
        secrets: &'a SecretStore,
        joined: &'a BTreeSet<SecretName>,
    ) -> OutgoingSpec<'a> {
        let scope = HostScope::of(Source::Grants, vec![self.server.host.clone()]);
        OutgoingSpec { scope, secrets, joined, budget, limits: spec.limits }
    }

    async fn called(
        &self,
        open: &mut Option<Open>,
        gate: &Outgoing,
        tool: &ListedTool,
        arguments: &str,
        talk: &Talk<'_>,
    ) -> Result<Output, Failed> {
        let called = self.called_in(open, gate, tool, arguments, talk).await;
        match called {
            // The call was not made, so it is made once more, in a new session.
            Err(Failed::Fault(Fault::SessionOver)) => {
                *open = None;
                self.called_in(open, gate, tool, arguments, talk).await
            }
            Err(Failed::Fault(fault)) if !matches!(fault, Fault::Rpc(_)) => {
                // After any fault, the next call begins a new session.
                *open = None;
                Err(fault.into())
            }
            called => called,
        }
    }

    async fn called_in(
        &self,
        open: &mut Option<Open>,
        gate: &Outgoing,
        tool: &ListedTool,
        arguments: &str,
        talk: &Talk<'_>,
    ) -> Result<Output, Failed> {
        let session = match open.take().filter(|open| !open.is_stale()) {
            Some(session) => session,
            None => self.session(gate).await?,
        };
        let session = open.insert(session);
        if let Some(how) = changed(&session.now, tool) {
            return Err(Failed::Changed(how));
        }
        let arguments = tool.read_arguments(arguments);
        let result = Box::pin(self.result(session, gate, tool, arguments, talk)).await?;
        let answer = Answer::of(&self.server.name, &result);
        if answer.is_error {
            let message = answer.error_text();
            return Err(Failed::Output(CallError::Tool { kind: ToolErrorKind::Failed, message }));
        }
        gate.accept(answer.parts).map_err(Failed::Output)
    }

    /// The result of a call, after as many rounds as the server needs (INV-331).
    async fn result(
        &self,
        session: &mut Open,
        gate: &Outgoing,
        tool: &ListedTool,
        arguments: Value,
        talk: &Talk<'_>,
    ) -> Result<Value, Fault> {
        let revision = session.address.revision;
        let mut headers = HeaderMap::new();
        if revision == Revision::Stateless {
            headers = parameters::headers(&tool.schema, &arguments);
        }
        let call = json!({"name": tool.name, "arguments": arguments});
        let mut params = call.clone();
        for _ in 0..MAX_ROUNDS {
            let id = self.ids.next();
            params["_meta"] = json!({"progressToken": id});
            let asked = self.opening().request(revision, id, "tools/call", params);
            let mut aside = Aside::of_call(talk);
            aside.headers.clone_from(&headers);
            let asking = ask(gate, &session.address, id, &asked, &mut aside);
            let result = Box::pin(self.heard(gate, &session.address, talk, asking)).await;
            session.stale |= aside.tools_changed;
            let result = result?;
            if revision == Revision::Sessions {
                return Ok(result);
            }
            let Some(wanted) = Wanted::of(&result)? else { return Ok(result) };
            let mut answers = Map::new();
            for Demand { key, method, params } in &wanted.requests {
                let answer = Box::pin(talk.in_round(gate, method, params)).await?;
                answers.insert(key.clone(), answer);
            }
            params = wanted.answered(&call, answers);
        }
        Err(Fault::Broken("it asks for more again and again"))
    }

    /// The answer to a call. A server with a session may also send requests on a separate stream.
    async fn heard(
        &self,
        gate: &Outgoing,
        address: &Address,
        talk: &Talk<'_>,
        asking: impl Future<Output = Result<Value, Fault>>,
    ) -> Result<Value, Fault> {
        if address.revision != Revision::Sessions || !self.server.granted.is_something() {
            return asking.await;
        }
        let mut asking = Box::pin(asking);
        let Some(stream) = overhear(gate, address).await else { return asking.await };
        tokio::select! {
            answer = &mut asking => answer,
            ended = Box::pin(answer_beside(gate, address, stream, talk)) => {
                ended?;
                asking.await
            }
        }
    }

    /// A session, with the tools that the server lists.
    async fn session(&self, gate: &Outgoing) -> Result<Open, Fault> {
        let revision = self.server.pinned.unwrap_or(self.server.revision);
        let mut address = match revision {
            Revision::Sessions => self.opening().initialize(gate).await?,
            // Every answer of a stateless server repeats the facts of `server/discover`.
            Revision::Stateless => self.opening().address(revision),
        };
        let (listing, until) = self.opening().listed(gate, &mut address).await?;
        Ok(Open { address, now: listing.digests(), stale: false, until })
    }

    /// Notifies the server that the current call and the session have ended: a late answer is dropped.
    async fn give_up(&self, open: Option<Open>, gate: &Outgoing) {
        let session = open.filter(|open| open.address.revision == Revision::Sessions);
        // Without a session, the closed stream is notice enough.
        let Some(session) = session else { return };
        let id = self.ids.last();
        let params = json!({"requestId": id, "reason": "it was cancelled"});
        let farewell = async {
            let _ = tell(gate, &session.address, &notification("notifications/cancelled", &params))
                .await;
            if session.address.session.is_some() {
                let _ = leave(gate, &session.address).await;
            }
        };
        let _ = timeout(FAREWELL, farewell).await;
    }

    /// Returns the text that a model may see, and logs the rest.
    fn told(&self, failed: Failed, gate: &Outgoing) -> CallError {
        let name = &self.server.name;
        match failed {
            Failed::Output(error) => error,
            Failed::Changed(how) => {
                let facts = format!(
                    "the tool {how} by the MCP server `{name}`: `belljar mcp review {name}` shows the \
                     difference"
                );
                gate.deny(DenyCode::ToolNotAllowed, "call", facts);
                CallError::Refused(DenyCode::ToolNotAllowed)
            }
            Failed::NoToken(why) => {
                let facts = format!("the MCP server `{name}` wants a token: {why}");
                gate.deny(DenyCode::RequestNotAllowed, "a token", facts);
                let message = format!("the MCP server `{name}` gave no result: it wants a token");
                CallError::Tool { kind: ToolErrorKind::Denied, message }
            }
            Failed::Fault(Fault::Rpc(error)) => {
                let kind = match error.code {
                    INVALID_PARAMS => ToolErrorKind::InvalidArguments,
                    _ => ToolErrorKind::Failed,
                };
                let message = cut(format!("{}\n{}", frame(name), shown(&error.message)));
                CallError::Tool { kind, message }
            }
            Failed::Fault(fault) => {
                let message = format!("the MCP server `{name}` gave no result: {fault}");
                CallError::Tool { kind: ToolErrorKind::Failed, message }
            }
        }
    }

    pub(crate) fn opening(&self) -> Opening<'_> {
        let server = &self.server;
        Opening {
            name: &server.name,
            url: &server.url,
            pinned: server.pinned,
            ids: &self.ids,
            granted: &server.granted,
        }
    }
}
