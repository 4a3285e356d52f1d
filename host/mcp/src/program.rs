//! The session of one agent with a server that is a program. The process starts with the first call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use belljar_os_sandbox::Program;
use belljar_policy::{Budget, Caps, DenyCode, HostScope, Level, Source, ToolName};
use belljar_sandbox::{
    CallError, CallResult, Digest, Outgoing, OutgoingSpec, Output, Receipt, ToolErrorKind,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::answer::{Answer, cut, frame, shown};
use crate::call::{CallSpec, ending, is_given_up};
use crate::connection::Connection;
use crate::demands::{Clock, Talk};
use crate::exchange::{Aside, Fault};
use crate::limits::FAREWELL;
use crate::listing::{ListedTool, Listing, changed};
use crate::message::{notification, request};
use crate::pages::ToolPages;
use crate::process::{Lost, Process};
use crate::revision::OF_SESSIONS;

/// The requested revision of the protocol; other spoken revisions are accepted too.
const REVISION: &str = "2025-11-25";

/// A code of JSON-RPC: the arguments do not fit.
const INVALID_PARAMS: i64 = -32602;

/// Separates a command line from the digest of its program, in the address of an accepted list.
const DIGEST: &str = " sha256:";

/// A server's program, with the accepted digest.
#[derive(Debug)]
pub struct ServerProgram {
    program: Program,
    command_line: String,
    digest: Option<String>,
}

/// A running program and its list of tools.
#[derive(Debug)]
pub(crate) struct ProgramSession {
    process: Process,
    ids: AtomicU64,
    now: BTreeMap<String, Digest>,
    /// True after the program has announced that its tools changed.
    stale: bool,
}

/// The reason why a call has no output.
enum Failed {
    Lost(Lost),
    /// The tool differs from the accepted one.
    Changed(&'static str),
    Output(CallError),
}

impl From<Lost> for Failed {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl ServerProgram {
    /// A program without accepted tools. `command_line` is its name in the file of accepted lists.
    pub fn new(program: Program, command_line: String) -> Self {
        Self { program, command_line, digest: None }
    }

    /// The address of the accepted list for this digest: a changed program is another server.
    pub fn address(&self, digest: &str) -> String {
        format!("{}{DIGEST}{digest}", self.command_line)
    }

    /// The digest at the time of acceptance.
    pub fn accepted_digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Sets the digest in an accepted address; `false` = the address is another command's.
    pub(crate) fn accepted(self, address: &str) -> (Self, bool) {
        let digest = address.rsplit_once(DIGEST).filter(|(line, _)| *line == self.command_line);
        let digest = digest.map(|(_, digest)| digest);
        match digest.filter(|digest| Digest::from_hex(digest).is_some()) {
            Some(digest) => (Self { digest: Some(digest.to_owned()), ..self }, true),
            None => (self, false),
        }
    }
}

impl Connection {
    /// The present digest of the server's program; `None` = the server is no program.
    ///
    /// # Errors
    ///
    /// When it cannot be found out: the text is for the operator.
    pub async fn identify(&self, spec: &CallSpec<'_>) -> Result<Option<String>, String> {
        let Some(program) = self.server().program() else { return Ok(None) };
        let gate = self.no_gate(spec, spec.budget);
        let digest = Process::identify(&gate, &program.program).await;
        digest.map(Some).map_err(|lost| lost.to_string())
    }

    /// Lists the tools of the server's program, if the digest matches.
    ///
    /// # Errors
    ///
    /// When the server cannot be asked: the text is for the operator, with the server's words escaped.
    pub async fn list_of_program(
        &self,
        digest: &str,
        spec: &CallSpec<'_>,
    ) -> Result<Listing, String> {
        let Some(program) = self.server().program() else {
            return Err("it is no command".to_owned());
        };
        let budget = spec.budget.child(Level::Call, Caps::unlimited());
        let gate = self.no_gate(spec, &budget);
        let most = self.longest(spec.limits);
        let listing = async {
            let mut session = self.begun(&gate, program, digest).await?;
            let listing = session.listed(&gate, self.server().name()).await;
            session.process.end(false).await;
            listing
        };
        let listing = tokio::select! {
            biased;
            () = spec.cancel.cancelled() => return Err("it was cancelled".to_owned()),
            listing = timeout(most, listing) => listing,
        };
        let mut receipt = Receipt::empty("", "", "");
        let _ = gate.conclude(Ok(Output::default()), &mut receipt, Duration::ZERO);
        let denied = receipt.denials.iter().map(|denial| &denial.facts);
        let logged = receipt.logs.iter().map(|line| &line.message);
        let facts: String = denied.chain(logged).map(|facts| format!("\n  {facts}")).collect();
        match listing {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(lost)) => Err(format!("{lost}{facts}")),
            Err(_) => Err(format!("it does not answer within {} seconds", most.as_secs())),
        }
    }

    /// As [`Connection::call`]. INV-322: an early end of the call ends the process.
    pub(crate) async fn call_program(
        &self,
        program: &ServerProgram,
        tool: &ToolName,
        arguments: &str,
        spec: CallSpec<'_>,
    ) -> CallResult {
        let asked = Instant::now();
        let Some(accepted) = self.server().tools().get(tool) else {
            let receipt = Receipt::empty(tool.as_str(), "", arguments);
            let outcome = Err(CallError::Refused(DenyCode::ToolNotAllowed));
            return CallResult { outcome, receipt };
        };
        let mut receipt = Receipt::empty(tool.as_str(), &accepted.digest().to_string(), arguments);
        let budget = spec.budget.child(Level::Call, Caps::of_call(spec.limits));
        let gate = self.no_gate(&spec, &budget);
        let most = self.longest(spec.limits);
        let progress = spec.progress.clone().map(|sink| gate.progress(sink));
        let talk = Talk::of(self.server(), spec.answers, progress, &self.waits);
        let clock = Clock::begin(most, &self.waits);
        let outcome = match spec.within(&clock, self.running.front()).await {
            Ok(mut front) => {
                let doing =
                    self.called_program(program, &mut front, &gate, accepted, arguments, &talk);
                let done = spec.within(&clock, Box::pin(doing)).await;
                let outcome = done
                    .and_then(|done| done.map_err(|failed| self.told_of_program(failed, &gate)));
                if is_given_up(&outcome)
                    && let Some(session) = front.take()
                {
                    session.give_up(&gate).await;
                }
                front.settle();
                outcome
            }
            Err(early) => Err(early),
        };
        receipt.ending = ending(&outcome);
        let outcome = gate.conclude(outcome, &mut receipt, asked.elapsed());
        CallResult { outcome, receipt }
    }

    /// Ends the process and its descendants.
    pub(crate) async fn close_program(&self) {
        // The call that holds the session ends the process.
        let Ok(mut running) = timeout(FAREWELL, self.running.front()).await else { return };
        if let Some(session) = running.take() {
            session.process.end(false).await;
        }
    }

    /// A gate that refuses all hosts, because a program is not reached over the network. The gate still
    /// counts bytes, masks secrets and writes the receipt.
    fn no_gate(&self, spec: &CallSpec<'_>, budget: &Budget) -> Outgoing {
        let scope = HostScope::of(Source::Grants, Vec::new());
        let (secrets, joined) = (spec.secrets, &self.server().secrets);
        let limits = spec.limits;
        Outgoing::new(spec.sandbox, OutgoingSpec { scope, secrets, joined, budget, limits })
    }

    async fn called_program(
        &self,
        program: &ServerProgram,
        running: &mut Option<ProgramSession>,
        gate: &Outgoing,
        tool: &ListedTool,
        arguments: &str,
        talk: &Talk<'_>,
    ) -> Result<Output, Failed> {
        let called = self.called_in_process(program, running, gate, tool, arguments, talk).await;
        match called {
            // The call was not made, so it is made once more, in a new process.
            Err(Failed::Lost(Lost::EndedBefore)) => {
                *running = None;
                self.called_in_process(program, running, gate, tool, arguments, talk).await
            }
            Err(Failed::Lost(lost)) if !matches!(lost, Lost::Fault(Fault::Rpc(_))) => {
                // After any fault, the next call starts a new process.
                if let Some(session) = running.take() {
                    session.process.end(true).await;
                }
                Err(lost.into())
            }
            called => called,
        }
    }

    async fn called_in_process(
        &self,
        program: &ServerProgram,
        running: &mut Option<ProgramSession>,
        gate: &Outgoing,
        tool: &ListedTool,
        arguments: &str,
        talk: &Talk<'_>,
    ) -> Result<Output, Failed> {
        if let Some(stale) = running.take_if(|session| session.stale) {
            stale.process.end(false).await;
        }
        let session = match running {
            Some(session) => session,
            None => {
                let digest = program.accepted_digest().ok_or(Lost::Other)?;
                let mut session = self.begun(gate, program, digest).await?;
                let listing = session.listed(gate, self.server().name()).await?;
                session.now = listing.digests();
                running.insert(session)
            }
        };
        if let Some(how) = changed(&session.now, tool) {
            return Err(Failed::Changed(how));
        }
        let arguments = tool.read_arguments(arguments);
        let id = session.next_id();
        let params =
            json!({"name": tool.name, "arguments": arguments, "_meta": {"progressToken": id}});
        let mut aside = Aside::of_call(talk);
        let asked = request(id, "tools/call", &params);
        let result = session.process.ask(gate, id, &asked, &mut aside).await;
        session.stale = aside.tools_changed;
        let answer = Answer::of(self.server().name(), &result?);
        if answer.is_error {
            let message = answer.error_text();
            return Err(Failed::Output(CallError::Tool { kind: ToolErrorKind::Failed, message }));
        }
        gate.accept(answer.parts).map_err(Failed::Output)
    }

    /// Starts the program, if the digest matches, and initializes the session.
    async fn begun(
        &self,
        gate: &Outgoing,
        program: &ServerProgram,
        digest: &str,
    ) -> Result<ProgramSession, Lost> {
        let process = Process::start(gate, &program.program, digest).await?;
        self.server().secrets.iter().for_each(|name| gate.secret_used(name));
        let (ids, now) = (AtomicU64::new(0), BTreeMap::new());
        let mut session = ProgramSession { process, ids, now, stale: false };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": self.server().granted.capabilities(),
            "clientInfo": {"name": "belljar", "version": env!("CARGO_PKG_VERSION")},
        });
        let (id, mut aside) = (session.next_id(), Aside::default());
        let asked = request(id, "initialize", &params);
        let begun = session.process.ask(gate, id, &asked, &mut aside).await?;
        let revision = begun.get("protocolVersion").and_then(Value::as_str);
        if !OF_SESSIONS.into_iter().any(|spoken| Some(spoken) == revision) {
            return Err(Fault::Broken("it speaks no revision that is spoken here").into());
        }
        let begun = notification("notifications/initialized", &json!({}));
        session.process.tell(gate, &begun).await?;
        Ok(session)
    }

    /// Returns the error that a model may see, and logs the details, which name files of this machine.
    fn told_of_program(&self, failed: Failed, gate: &Outgoing) -> CallError {
        let name = self.server().name();
        let refused = |how: &str| {
            let facts = format!("the MCP server `{name}`: {how}: see `belljar mcp review {name}`");
            gate.deny(DenyCode::ToolNotAllowed, "call", facts);
            CallError::Refused(DenyCode::ToolNotAllowed)
        };
        let no_result = |why: &str| {
            let message = format!("the MCP server `{name}` gave no result: {why}");
            CallError::Tool { kind: ToolErrorKind::Failed, message }
        };
        match failed {
            Failed::Output(error) => error,
            Failed::Changed(how) => refused(&format!("the tool {how}")),
            Failed::Lost(lost @ (Lost::Other | Lost::NoSandbox)) => refused(&lost.to_string()),
            Failed::Lost(Lost::NotStarted(why)) => {
                gate.log("error", &why);
                no_result("it cannot be started")
            }
            Failed::Lost(Lost::Fault(Fault::Rpc(error))) => {
                let kind = match error.code {
                    INVALID_PARAMS => ToolErrorKind::InvalidArguments,
                    _ => ToolErrorKind::Failed,
                };
                let message = cut(format!("{}\n{}", frame(name), shown(&error.message)));
                CallError::Tool { kind, message }
            }
            Failed::Lost(lost) => no_result(&lost.to_string()),
        }
    }
}

impl ProgramSession {
    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    async fn listed(&mut self, gate: &Outgoing, server: &str) -> Result<Listing, Lost> {
        let (mut pages, mut cursor) = (ToolPages::default(), None);
        loop {
            let params = cursor.map_or(json!({}), |cursor: String| json!({"cursor": cursor}));
            let (id, mut aside) = (self.next_id(), Aside::default());
            let asked = request(id, "tools/list", &params);
            let mut page = self.process.ask(gate, id, &asked, &mut aside).await?;
            cursor = pages.take(&mut page)?;
            if cursor.is_none() {
                return Ok(Listing::checked(server, pages).await?);
            }
        }
    }

    /// Notifies the program that its call was cancelled, then ends the process. No effect of the call happens
    /// after this; a late answer is dropped. The program has a moment to end by itself.
    async fn give_up(mut self, gate: &Outgoing) {
        let id = self.ids.load(Ordering::Relaxed);
        let params = json!({"requestId": id, "reason": "it was cancelled"});
        let cancelled = notification("notifications/cancelled", &params);
        let _ = timeout(FAREWELL, self.process.tell(gate, &cancelled)).await;
        self.process.end(false).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_was_accepted_is_bound_to_a_command_line_and_a_digest() {
        let of = |line: &str| {
            let program = Program {
                name: "s".to_owned(),
                path: "/bin/true".into(),
                args: Vec::new(),
                data: BTreeSet::new(),
                read: BTreeSet::new(),
                write: BTreeSet::new(),
                network: false,
                memory: 0,
                processes: 0,
            };
            ServerProgram::new(program, line.to_owned())
        };
        let digest = Digest::of(b"x").to_string();
        let address = of("[\"a\"]").address(&digest);
        let (program, same) = of("[\"a\"]").accepted(&address);
        assert_eq!((program.accepted_digest(), same), (Some(digest.as_str()), true));
        for (line, address) in [
            ("[\"b\"]", address.as_str()),
            ("[\"a\"]", "[\"a\"]"),
            ("[\"a\"]", "[\"a\"] sha256:00"),
            ("[\"a\"]", "https://a.test"),
        ] {
            let (program, same) = of(line).accepted(address);
            assert!(!same && program.accepted_digest().is_none(), "{line} {address}");
        }
    }
}
