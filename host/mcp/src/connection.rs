//! The connection of one agent to one MCP server: its session begins with the first call, and calls are made
//! one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{
    Budget, BudgetCaps, BudgetLevel, DecisionSource, DenyCode, HostScope, Limits, SecretName,
    ToolName,
};
use belljar_sandbox::{
    CallError, CallResult, Digest, OutgoingGate, OutgoingSpec, Receipt, SecretStore, ToolErrorKind,
    ToolOutput,
};
use http::HeaderMap;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};

use crate::answer::{ToolAnswer, cut_error, escape_text, frame_line};
use crate::auth::{AuthError, AuthRequester, ServerTokens, renew_tokens};
use crate::call::{CallSpec, call_ending, is_given_up};
use crate::challenge::TokenChallenge;
use crate::demands::{CallTalk, PersonWaits, ServerCallClock};
use crate::exchange::{ExchangeContext, ExchangeFault};
use crate::limits::{FAREWELL, MAX_ROUNDS};
use crate::line::SessionQueue;
use crate::listing::{ListedTool, ToolListing, tool_change};
use crate::message::RequestIds;
use crate::opening::ServerOpening;
use crate::parameters;
use crate::program::ServerProgram;
use crate::revision::ProtocolRevision;
use crate::rounds::{InputDemand, RequiredInput};
use crate::server::Server;
use crate::transport::Transport;

/// The JSON-RPC error code for invalid parameters.
const INVALID_PARAMS: i64 = -32602;

/// One agent's connection to an MCP server. Calls are made one after the other, in the order in which they
/// were requested.
#[derive(Debug)]
pub struct Connection {
    server: Arc<Server>,
    open: SessionQueue<LiveSession>,
    ids: Arc<RequestIds>,
    /// The time that calls of this connection have waited for a person.
    waits: PersonWaits,
}

/// A session with the server.
#[derive(Debug)]
struct LiveSession {
    transport: Transport,
    /// The digest of each tool's description, by the tool's name, as the server listed them last.
    now: BTreeMap<String, Digest>,
    /// True after the server has announced that its tools have changed.
    stale: bool,
    /// When the tools are listed again, for a server that cannot announce changes.
    until: Option<Instant>,
}

/// The reason why a call returned no output.
enum AttemptFailure {
    Fault(ExchangeFault),
    /// The tool differs from the accepted one; the text states how.
    Changed(&'static str),
    Output(CallError),
    /// The server requires a token, and there is none.
    NoToken(AuthError),
}

/// The network gate of a call, with the tokens that it adds to requests to the server.
struct AuthorizedGate {
    gate: OutgoingGate,
    tokens: Option<Arc<ServerTokens>>,
}

impl AttemptFailure {
    /// The reason as a text for the operator.
    fn operator_reason(&self) -> String {
        match self {
            Self::Fault(fault) => fault.to_string(),
            Self::Changed(how) => (*how).to_owned(),
            Self::Output(error) => error.to_string(),
            Self::NoToken(why) => why.to_string(),
        }
    }
}

impl From<ExchangeFault> for AttemptFailure {
    fn from(fault: ExchangeFault) -> Self {
        Self::Fault(fault)
    }
}

impl LiveSession {
    fn is_stale(&self) -> bool {
        self.stale || self.until.is_some_and(|until| until <= Instant::now())
    }
}

impl Connection {
    /// Creates a connection. The session begins with the first call.
    pub fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            open: SessionQueue::default(),
            ids: Arc::default(),
            waits: PersonWaits::default(),
        }
    }

    /// The time limit of one call, or of one listing of the tools.
    fn max_duration(&self, limits: &Limits) -> Duration {
        let most = Duration::from_secs(limits.call_timeout_seconds);
        self.server.timeout.map_or(most, |own| own.min(most))
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Calls an accepted tool. INV-311: a tool whose present description differs from the accepted one is not
    /// called.
    pub async fn call_tool(
        &self,
        tool: &ToolName,
        arguments: &str,
        spec: CallSpec<'_>,
    ) -> CallResult {
        let asked = Instant::now();
        let Some(accepted) = self.server.tools().get(tool) else {
            let receipt = Receipt::for_call(tool.as_str(), "", arguments);
            return CallResult {
                outcome: Err(CallError::Refused(DenyCode::ToolNotAllowed)),
                receipt,
            };
        };
        let mut receipt =
            Receipt::for_call(tool.as_str(), &accepted.digest().to_string(), arguments);
        let budget = spec.budget.new_child(BudgetLevel::Call, BudgetCaps::for_call(spec.limits));
        let mut gate = self.gate_of_now(&spec, &budget);
        let most = self.max_duration(spec.limits);
        let progress = spec.progress.clone().map(|sink| gate.gate.filter_progress(sink));
        let talk = CallTalk::for_call(&self.server, spec.answers, progress, &self.waits);
        let clock = ServerCallClock::with_limit(most, &self.waits);
        let outcome = match spec.run_within(&clock, self.open.wait_for_front()).await {
            Ok(mut front) => {
                let doing = async {
                    let called =
                        self.attempt_call(&mut front, &gate.gate, accepted, arguments, &talk);
                    let called = called.await;
                    let Err(AttemptFailure::Fault(ExchangeFault::Unauthorized(challenge))) = called
                    else {
                        return called;
                    };
                    // The server has refused the token, so it has not executed the call: it is repeated with
                    // a new token.
                    gate = self.renew_gate(&gate, &spec, &budget, &challenge).await?;
                    self.attempt_call(&mut front, &gate.gate, accepted, arguments, &talk).await
                };
                let done = spec.run_within(&clock, Box::pin(doing)).await;
                let outcome = done
                    .and_then(|done| done.map_err(|failed| self.to_call_error(failed, &gate.gate)));
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
        receipt.ending = call_ending(&outcome);
        let outcome = gate.gate.finish_call(outcome, &mut receipt, asked.elapsed());
        CallResult { outcome, receipt }
    }

    /// Lists the tools that the server offers now.
    ///
    /// # Errors
    /// When the server returns no list. The error is for the operator, and the server's text in it is
    /// escaped.
    pub async fn list_tools(&self, spec: CallSpec<'_>) -> Result<ToolListing, String> {
        let facts = |receipt: &Receipt| {
            let first = receipt.denials.first().map(|denial| format!(" ({})", denial.facts));
            first.unwrap_or_default()
        };
        self.list_in_session(None, &spec, facts).await
    }

    /// Starts the program of a local server, and lists its tools. A program with another digest than `digest`
    /// is not started.
    ///
    /// # Errors
    /// When the server returns no list. The error is for the operator, and the server's text in it is
    /// escaped.
    pub async fn list_of_program(
        &self,
        digest: &str,
        spec: &CallSpec<'_>,
    ) -> Result<ToolListing, String> {
        let Some(program) = self.server.program() else {
            return Err("it is no command".to_owned());
        };
        let facts = |receipt: &Receipt| {
            let denied = receipt.denials.iter().map(|denial| &denial.facts);
            let logged = receipt.logs.iter().map(|line| &line.message);
            denied.chain(logged).map(|facts| format!("\n  {facts}")).collect::<String>()
        };
        self.list_in_session(Some((program, digest)), spec, facts).await
    }

    /// Lists the tools in a separate session. `facts` chooses the part of the receipt that is added to an
    /// error.
    async fn list_in_session(
        &self,
        program: Option<(&ServerProgram, &str)>,
        spec: &CallSpec<'_>,
        facts: impl FnOnce(&Receipt) -> String,
    ) -> Result<ToolListing, String> {
        let budget = spec.budget.new_child(BudgetLevel::Call, BudgetCaps::unlimited());
        let mut gate = self.gate_of_now(spec, &budget);
        let most = self.max_duration(spec.limits);
        let listing = async {
            match self.list_once(&gate.gate, program).await {
                Err(ExchangeFault::Unauthorized(challenge)) => {
                    gate = self.renew_gate(&gate, spec, &budget, &challenge).await?;
                    Ok(self.list_once(&gate.gate, program).await?)
                }
                listing => Ok::<_, AttemptFailure>(listing?),
            }
        };
        let listing = tokio::select! {
            biased;
            () = spec.cancel.cancelled() => return Err("it was cancelled".to_owned()),
            listing = timeout(most, listing) => listing,
        };
        let mut receipt = Receipt::for_call("", "", "");
        let _ = gate.gate.finish_call(Ok(ToolOutput::default()), &mut receipt, Duration::ZERO);
        match listing {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(failed)) => Err(failed.operator_reason() + &facts(&receipt)),
            Err(_) => Err(format!("it does not answer within {} seconds", most.as_secs())),
        }
    }

    /// Begins a session, lists the tools, and ends the session.
    async fn list_once(
        &self,
        gate: &OutgoingGate,
        program: Option<(&ServerProgram, &str)>,
    ) -> Result<ToolListing, ExchangeFault> {
        let mut transport = match program {
            Some((program, digest)) => self.start_program(gate, program, digest).await?,
            None => self.server_opening().negotiate_revision(gate).await?,
        };
        let listing = self.server_opening().list_tools(gate, &mut transport).await;
        transport.end_settled(gate).await;
        listing.map(|(listing, _)| listing)
    }

    /// Ends the session, and a program with all its child processes.
    pub async fn close(&self, spec: CallSpec<'_>) {
        // If a call is running, it ends the session itself.
        let Ok(mut front) = timeout(FAREWELL, self.open.wait_for_front()).await else { return };
        if let Some(open) = front.take() {
            open.transport.close_session(&self.gate_of_now(&spec, spec.budget).gate).await;
        }
    }

    /// Opens the network gate of a call. INV-310: it allows only the server's own host, and adds only the
    /// server's own secrets. The token is such a secret: added to requests, and redacted from every reply.
    pub(crate) fn open_gate(
        &self,
        spec: &CallSpec<'_>,
        budget: &Budget,
        tokens: Option<&ServerTokens>,
    ) -> OutgoingGate {
        let (secrets, joined) = self.joined_secrets(spec, tokens);
        OutgoingGate::new(spec.sandbox, self.outgoing_spec(spec, budget, &secrets, &joined))
    }

    fn gate_of_now(&self, spec: &CallSpec<'_>, budget: &Budget) -> AuthorizedGate {
        let tokens = self.server.held.current_tokens();
        AuthorizedGate { gate: self.open_gate(spec, budget, tokens.as_deref()), tokens }
    }

    /// Opens a gate for the same call with a new token in place of the refused one.
    async fn renew_gate(
        &self,
        before: &AuthorizedGate,
        spec: &CallSpec<'_>,
        budget: &Budget,
        challenge: &TokenChallenge,
    ) -> Result<AuthorizedGate, AttemptFailure> {
        let asking = AuthRequester { server: &self.server, gate: &before.gate, spec };
        renew_tokens(&asking, before.tokens.as_ref(), challenge)
            .await
            .map_err(AttemptFailure::NoToken)?;
        let tokens = self.server.held.current_tokens();
        let (secrets, joined) = self.joined_secrets(spec, tokens.as_deref());
        let outgoing = self.outgoing_spec(spec, budget, &secrets, &joined);
        Ok(AuthorizedGate { gate: before.gate.sibling_gate(spec.sandbox, outgoing), tokens })
    }

    /// The secrets of the run together with the server's token, and the names of those that are added to
    /// requests.
    fn joined_secrets(
        &self,
        spec: &CallSpec<'_>,
        tokens: Option<&ServerTokens>,
    ) -> (SecretStore, BTreeSet<SecretName>) {
        let (mut secrets, mut joined) = (spec.secrets.clone(), self.server.secrets.clone());
        let token = tokens.map(|tokens| tokens.gate_secret(&self.server.name, &self.server.host));
        if let Some(Ok((name, secret))) = token {
            secrets.insert(name.clone(), secret);
            joined.insert(name);
        }
        (secrets, joined)
    }

    /// What the network gate of a call allows: only the server's host.
    fn outgoing_spec<'a>(
        &self,
        spec: &'a CallSpec<'_>,
        budget: &'a Budget,
        secrets: &'a SecretStore,
        joined: &'a BTreeSet<SecretName>,
    ) -> OutgoingSpec<'a> {
        // A program is reached through its standard streams, so nothing is allowed through the network.
        let hosts = match self.server.program() {
            Some(_) => Vec::new(),
            None => vec![self.server.host.clone()],
        };
        let scope = HostScope::from_rules(DecisionSource::Grants, hosts);
        OutgoingSpec { scope, secrets, joined, budget, limits: spec.limits }
    }

    /// Makes the call in the open session; repeats it once in a new session if the server has not executed
    /// it.
    async fn attempt_call(
        &self,
        open: &mut Option<LiveSession>,
        gate: &OutgoingGate,
        tool: &ListedTool,
        arguments: &str,
        talk: &CallTalk<'_>,
    ) -> Result<ToolOutput, AttemptFailure> {
        let called = self.called_in(open, gate, tool, arguments, talk).await;
        match called {
            // The server has not executed the call, so it is repeated in a new session.
            Err(AttemptFailure::Fault(ExchangeFault::SessionOver | ExchangeFault::EndedBefore)) => {
                *open = None;
                self.called_in(open, gate, tool, arguments, talk).await
            }
            Err(AttemptFailure::Fault(fault)) if !matches!(fault, ExchangeFault::Rpc(_)) => {
                // After any other fault, the next call begins a new session.
                if let Some(open) = open.take() {
                    open.transport.stop_session(true).await;
                }
                Err(fault.into())
            }
            called => called,
        }
    }

    /// Makes the call in the open session or a new one: checks that the tool is unchanged, sends the request,
    /// and converts the result.
    async fn called_in(
        &self,
        open: &mut Option<LiveSession>,
        gate: &OutgoingGate,
        tool: &ListedTool,
        arguments: &str,
        talk: &CallTalk<'_>,
    ) -> Result<ToolOutput, AttemptFailure> {
        if let Some(stale) = open.take_if(|open| open.is_stale()) {
            stale.transport.stop_session(false).await;
        }
        let session = match open {
            Some(session) => session,
            None => open.insert(self.open_session(gate).await?),
        };
        if let Some(how) = tool_change(&session.now, tool) {
            return Err(AttemptFailure::Changed(how));
        }
        let arguments = tool.read_arguments(arguments);
        let result = Box::pin(self.request_result(session, gate, tool, arguments, talk)).await?;
        let answer = ToolAnswer::from_result(&self.server.name, &result);
        if answer.is_error {
            let message = answer.error_text();
            return Err(AttemptFailure::Output(CallError::Tool {
                kind: ToolErrorKind::Failed,
                message,
            }));
        }
        gate.accept_output(answer.parts).map_err(AttemptFailure::Output)
    }

    /// The result of a call, after as many rounds of input as the server demands (INV-331).
    async fn request_result(
        &self,
        session: &mut LiveSession,
        gate: &OutgoingGate,
        tool: &ListedTool,
        arguments: Value,
        talk: &CallTalk<'_>,
    ) -> Result<Value, ExchangeFault> {
        let revision = session.transport.revision();
        let mut headers = HeaderMap::new();
        if revision == ProtocolRevision::Stateless {
            headers = parameters::argument_headers(&tool.schema, &arguments);
        }
        let call = json!({"name": tool.name, "arguments": arguments});
        let mut params = call.clone();
        for _ in 0..MAX_ROUNDS {
            let id = session.transport.request_ids().next_id();
            params["_meta"] = json!({"progressToken": id});
            let asked = self.server_opening().build_request(revision, id, "tools/call", params);
            let mut aside = ExchangeContext::for_call(talk);
            aside.headers.clone_from(&headers);
            let result =
                Box::pin(session.transport.send_request(gate, id, &asked, &mut aside)).await;
            session.stale |= aside.tools_changed;
            let result = result?;
            if revision == ProtocolRevision::Sessions {
                return Ok(result);
            }
            let Some(wanted) = RequiredInput::from_result(&result)? else { return Ok(result) };
            let mut answers = Map::new();
            for InputDemand { key, method, params } in &wanted.requests {
                let answer = Box::pin(talk.in_round(gate, method, params)).await?;
                answers.insert(key.clone(), answer);
            }
            params = wanted.next_parameters(&call, answers);
        }
        Err(ExchangeFault::Broken("it asks for more again and again"))
    }

    /// Begins a session, and lists the server's tools.
    async fn open_session(&self, gate: &OutgoingGate) -> Result<LiveSession, ExchangeFault> {
        let opening = self.server_opening();
        let revision = self.server.pinned.unwrap_or(self.server.revision);
        let mut transport = match (self.server.program(), revision) {
            (Some(program), _) => {
                let digest = program.accepted_digest().ok_or(ExchangeFault::OtherProgram)?;
                self.start_program(gate, program, digest).await?
            }
            (None, ProtocolRevision::Sessions) => {
                opening.initialize_session(gate, opening.http_transport(revision)).await?
            }
            // A stateless server repeats in every answer what `server/discover` returned.
            (None, ProtocolRevision::Stateless) => opening.http_transport(revision),
        };
        let (listing, until) = opening.list_tools(gate, &mut transport).await?;
        Ok(LiveSession { transport, now: listing.tool_digests(), stale: false, until })
    }

    /// The text that a model may read about a failure. The rest is logged, because it may name files of this
    /// machine.
    fn to_call_error(&self, failed: AttemptFailure, gate: &OutgoingGate) -> CallError {
        let name = &self.server.name;
        let refused = |facts: String| {
            gate.record_denial(DenyCode::ToolNotAllowed, "call", facts);
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
            AttemptFailure::Output(error) => error,
            AttemptFailure::Changed(how) if self.server.program().is_some() => {
                refuse_program(&format!("the tool {how}"))
            }
            AttemptFailure::Changed(how) => refused(format!(
                "the tool {how} by the MCP server `{name}`: `belljar mcp review {name}` shows the \
                 difference"
            )),
            AttemptFailure::NoToken(why) => {
                let facts = format!("the MCP server `{name}` wants a token: {why}");
                gate.record_denial(DenyCode::RequestNotAllowed, "a token", facts);
                no_result(ToolErrorKind::Denied, "it wants a token")
            }
            AttemptFailure::Fault(
                fault @ (ExchangeFault::OtherProgram | ExchangeFault::NoSandbox),
            ) => refuse_program(&fault.to_string()),
            AttemptFailure::Fault(ExchangeFault::NotStarted(why)) => {
                gate.log_line("error", &why);
                no_result(ToolErrorKind::Failed, "it cannot be started")
            }
            AttemptFailure::Fault(ExchangeFault::Rpc(error)) => {
                let kind = match error.code {
                    INVALID_PARAMS => ToolErrorKind::InvalidArguments,
                    _ => ToolErrorKind::Failed,
                };
                let message =
                    cut_error(format!("{}\n{}", frame_line(name), escape_text(&error.message)));
                CallError::Tool { kind, message }
            }
            AttemptFailure::Fault(fault) => no_result(ToolErrorKind::Failed, &fault.to_string()),
        }
    }

    /// What is needed to begin a session with the server.
    pub(crate) fn server_opening(&self) -> ServerOpening<'_> {
        let server = &self.server;
        ServerOpening {
            name: &server.name,
            url: &server.url,
            pinned: server.pinned,
            ids: &self.ids,
            granted: &server.granted,
        }
    }
}
