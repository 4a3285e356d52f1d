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
use crate::exchange::{Aside, Fault};
use crate::limits::{FAREWELL, MAX_ROUNDS};
use crate::line::Line;
use crate::listing::{ListedTool, Listing, changed};
use crate::message::Ids;
use crate::opening::Opening;
use crate::parameters;
use crate::program::ServerProgram;
use crate::revision::Revision;
use crate::rounds::{Demand, Wanted};
use crate::server::Server;
use crate::transport::Transport;

/// A code of JSON-RPC: the arguments do not fit.
const INVALID_PARAMS: i64 = -32602;

/// A session with a server, of one agent. Calls wait for each other, in the order asked.
#[derive(Debug)]
pub struct Connection {
    server: Arc<Server>,
    open: Line<Open>,
    ids: Arc<Ids>,
    /// The time spent waiting for a person here, in any call.
    waits: Waits,
}

/// A session that has begun.
#[derive(Debug)]
struct Open {
    transport: Transport,
    /// The tools as the server describes them now.
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
        Self { server, open: Line::default(), ids: Arc::default(), waits: Waits::default() }
    }

    /// The longest time of one call, or of one look at the list of tools.
    fn longest(&self, limits: &Limits) -> Duration {
        let most = Duration::from_secs(limits.call_timeout_seconds);
        self.server.timeout.map_or(most, |own| own.min(most))
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Calls an accepted tool. INV-311: a tool whose present description differs from the accepted one is
    /// refused.
    pub async fn call(&self, tool: &ToolName, arguments: &str, spec: CallSpec<'_>) -> CallResult {
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
                if is_given_up(&outcome)
                    && let Some(open) = front.take()
                {
                    open.transport.give_up(&gate.gate).await;
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
        let facts = |receipt: &Receipt| {
            let first = receipt.denials.first().map(|denial| format!(" ({})", denial.facts));
            first.unwrap_or_default()
        };
        self.list_tools(None, &spec, facts).await
    }

    /// The tools that the server's program lists now, if the digest matches.
    ///
    /// # Errors
    ///
    /// When the server cannot be asked: the text is for the operator, with the server's words escaped.
    pub async fn list_of_program(
        &self,
        digest: &str,
        spec: &CallSpec<'_>,
    ) -> Result<Listing, String> {
        let Some(program) = self.server.program() else {
            return Err("it is no command".to_owned());
        };
        let facts = |receipt: &Receipt| {
            let denied = receipt.denials.iter().map(|denial| &denial.facts);
            let logged = receipt.logs.iter().map(|line| &line.message);
            denied.chain(logged).map(|facts| format!("\n  {facts}")).collect::<String>()
        };
        self.list_tools(Some((program, digest)), spec, facts).await
    }

    /// Lists the tools in a session of their own. `facts`: what of the receipt stands behind a failure.
    async fn list_tools(
        &self,
        program: Option<(&ServerProgram, &str)>,
        spec: &CallSpec<'_>,
        facts: impl FnOnce(&Receipt) -> String,
    ) -> Result<Listing, String> {
        let budget = spec.budget.child(Level::Call, Caps::unlimited());
        let mut gate = self.gate_of_now(spec, &budget);
        let most = self.longest(spec.limits);
        let listing = async {
            match self.list_once(&gate.gate, program).await {
                Err(Fault::Unauthorized(challenge)) => {
                    gate = self.renewed(&gate, spec, &budget, &challenge).await?;
                    Ok(self.list_once(&gate.gate, program).await?)
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
        match listing {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(failed)) => Err(failed.why() + &facts(&receipt)),
            Err(_) => Err(format!("it does not answer within {} seconds", most.as_secs())),
        }
    }

    async fn list_once(
        &self,
        gate: &Outgoing,
        program: Option<(&ServerProgram, &str)>,
    ) -> Result<Listing, Fault> {
        let mut transport = match program {
            Some((program, digest)) => self.start_program(gate, program, digest).await?,
            None => self.opening().begin(gate).await?,
        };
        let listing = self.opening().listed(gate, &mut transport).await;
        transport.leave(gate).await;
        listing.map(|(listing, _)| listing)
    }

    /// Tells the server that the session is over, and ends a program with its descendants.
    pub async fn close(&self, spec: CallSpec<'_>) {
        // The call that holds the session ends it.
        let Ok(mut front) = timeout(FAREWELL, self.open.front()).await else { return };
        if let Some(open) = front.take() {
            open.transport.close(&self.gate_of_now(&spec, spec.budget).gate).await;
        }
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
        // Nothing gets through to the network for a program, which is reached otherwise.
        let hosts = match self.server.program() {
            Some(_) => Vec::new(),
            None => vec![self.server.host.clone()],
        };
        let scope = HostScope::of(Source::Grants, hosts);
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
            // The call was not made: once more, in a session of its own.
            Err(Failed::Fault(Fault::SessionOver | Fault::EndedBefore)) => {
                *open = None;
                self.called_in(open, gate, tool, arguments, talk).await
            }
            Err(Failed::Fault(fault)) if !matches!(fault, Fault::Rpc(_)) => {
                // Whatever is wrong with it, the next call begins anew.
                if let Some(open) = open.take() {
                    open.transport.stop(true).await;
                }
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
        if let Some(stale) = open.take_if(|open| open.is_stale()) {
            stale.transport.stop(false).await;
        }
        let session = match open {
            Some(session) => session,
            None => open.insert(self.session(gate).await?),
        };
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
        let revision = session.transport.revision();
        let mut headers = HeaderMap::new();
        if revision == Revision::Stateless {
            headers = parameters::headers(&tool.schema, &arguments);
        }
        let call = json!({"name": tool.name, "arguments": arguments});
        let mut params = call.clone();
        for _ in 0..MAX_ROUNDS {
            let id = session.transport.ids().next();
            params["_meta"] = json!({"progressToken": id});
            let asked = self.opening().request(revision, id, "tools/call", params);
            let mut aside = Aside::of_call(talk);
            aside.headers.clone_from(&headers);
            let result = Box::pin(session.transport.ask(gate, id, &asked, &mut aside)).await;
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

    /// A session, with the tools that the server lists.
    async fn session(&self, gate: &Outgoing) -> Result<Open, Fault> {
        let opening = self.opening();
        let revision = self.server.pinned.unwrap_or(self.server.revision);
        let mut transport = match (self.server.program(), revision) {
            (Some(program), _) => {
                let digest = program.accepted_digest().ok_or(Fault::OtherProgram)?;
                self.start_program(gate, program, digest).await?
            }
            (None, Revision::Sessions) => {
                opening.initialize(gate, opening.http_transport(revision)).await?
            }
            // Every answer of a stateless server repeats the facts of `server/discover`.
            (None, Revision::Stateless) => opening.http_transport(revision),
        };
        let (listing, until) = opening.listed(gate, &mut transport).await?;
        Ok(Open { transport, now: listing.digests(), stale: false, until })
    }

    /// Returns the text that a model may see, and logs the rest, which may name files of this machine.
    fn told(&self, failed: Failed, gate: &Outgoing) -> CallError {
        let name = &self.server.name;
        let refused = |facts: String| {
            gate.deny(DenyCode::ToolNotAllowed, "call", facts);
            CallError::Refused(DenyCode::ToolNotAllowed)
        };
        let no_result = |kind: ToolErrorKind, why: &str| {
            let message = format!("the MCP server `{name}` gave no result: {why}");
            CallError::Tool { kind, message }
        };
        let refuse_program = |how: &str| {
            refused(format!("the MCP server `{name}`: {how}: see `belljar mcp review {name}`"))
        };
        match failed {
            Failed::Output(error) => error,
            Failed::Changed(how) if self.server.program().is_some() => {
                refuse_program(&format!("the tool {how}"))
            }
            Failed::Changed(how) => refused(format!(
                "the tool {how} by the MCP server `{name}`: `belljar mcp review {name}` shows the \
                 difference"
            )),
            Failed::NoToken(why) => {
                let facts = format!("the MCP server `{name}` wants a token: {why}");
                gate.deny(DenyCode::RequestNotAllowed, "a token", facts);
                no_result(ToolErrorKind::Denied, "it wants a token")
            }
            Failed::Fault(fault @ (Fault::OtherProgram | Fault::NoSandbox)) => {
                refuse_program(&fault.to_string())
            }
            Failed::Fault(Fault::NotStarted(why)) => {
                gate.log("error", &why);
                no_result(ToolErrorKind::Failed, "it cannot be started")
            }
            Failed::Fault(Fault::Rpc(error)) => {
                let kind = match error.code {
                    INVALID_PARAMS => ToolErrorKind::InvalidArguments,
                    _ => ToolErrorKind::Failed,
                };
                let message = cut(format!("{}\n{}", frame(name), shown(&error.message)));
                CallError::Tool { kind, message }
            }
            Failed::Fault(fault) => no_result(ToolErrorKind::Failed, &fault.to_string()),
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
