//! The session of one agent with one server: begun with its first call, one call at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use belljar_policy::{Budget, Caps, DenyCode, HostScope, Level, Limits, Source, ToolName};
use belljar_sandbox::{
    CallError, CallResult, Digest, Ending, Outgoing, OutgoingSpec, Output, ProgressSink, Receipt,
    Sandbox, SecretStore, ToolErrorKind,
};
use http::HeaderValue;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, cut, frame, shown};
use crate::exchange::{Address, Aside, Fault, ask, leave, tell};
use crate::limits::{FAREWELL, MAX_CURSOR, MAX_PAGES, MAX_TOOLS};
use crate::listing::{ListedTool, Listing};
use crate::message::{notification, request};
use crate::server::Server;

/// The revision of the protocol that is asked for.
const REVISION: &str = "2025-11-25";

/// Those that are spoken: of an older one nothing is used that this one lacks.
const SPOKEN: [&str; 3] = [REVISION, "2025-06-18", "2025-03-26"];

/// A code of JSON-RPC: the arguments do not fit.
const INVALID_PARAMS: i64 = -32602;

/// The means of a call.
pub struct CallSpec<'a> {
    /// Its gate, and how that resolves names.
    pub sandbox: &'a Sandbox,
    /// The secrets of the run.
    pub secrets: &'a SecretStore,
    /// Pays for what is sent and received.
    pub budget: &'a Budget,
    /// Bounds the time, the output and the connections.
    pub limits: &'a Limits,
    /// Ends the call.
    pub cancel: &'a CancellationToken,
    /// Where reports of progress go.
    pub progress: Option<ProgressSink>,
}

/// A session with a server, of one agent. Calls wait for each other, in the order asked.
#[derive(Debug)]
pub struct Connection {
    server: Arc<Server>,
    open: Mutex<Option<Open>>,
    ids: AtomicU64,
}

/// A session that has begun.
#[derive(Debug)]
struct Open {
    address: Address,
    /// The tools as the server describes them now.
    now: BTreeMap<String, Digest>,
    /// It has said that they are others.
    stale: bool,
}

/// Why a call has no output.
enum Failed {
    Fault(Fault),
    /// The tool is not as it was accepted.
    Changed(&'static str),
    Output(CallError),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Connection {
    /// A session that begins with the first call.
    pub fn new(server: Arc<Server>) -> Self {
        Self { server, open: Mutex::default(), ids: AtomicU64::new(0) }
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Calls a tool that was accepted. INV-311: one that the server describes in other words now is
    /// not called.
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
        let gate = self.gate(&spec, &budget);
        let most = Duration::from_secs(spec.limits.call_timeout_seconds);
        let most = self.server.timeout.map_or(most, |own| own.min(most));
        let doing = self.called(&gate, accepted, arguments, spec.progress.as_ref());
        let outcome = tokio::select! {
            biased;
            () = spec.cancel.cancelled() => Err(CallError::Cancelled),
            () = spec.budget.cancelled() => Err(CallError::Cancelled),
            done = timeout(most, doing) => match done {
                Ok(done) => done.map_err(|failed| self.told(failed, &gate)),
                Err(_) => Err(CallError::TimedOut(most.as_secs())),
            },
        };
        if matches!(outcome, Err(CallError::Cancelled | CallError::TimedOut(_))) {
            self.give_up(&gate).await;
        }
        receipt.ending = ending(&outcome);
        let outcome = gate.conclude(outcome, &mut receipt, asked.elapsed());
        CallResult { outcome, receipt }
    }

    /// The tools that the server lists now.
    ///
    /// # Errors
    ///
    /// When it cannot be asked: the text is for the operator, and what the server says in it is escaped.
    pub async fn list(&self, spec: CallSpec<'_>) -> Result<Listing, String> {
        let budget = spec.budget.child(Level::Call, Caps::unlimited());
        let gate = self.gate(&spec, &budget);
        let most = Duration::from_secs(spec.limits.call_timeout_seconds);
        let listing = async {
            let mut address = self.begin(&gate).await?;
            let listing = self.listed(&gate, &mut address).await;
            let _ = timeout(FAREWELL, leave(&gate, &address)).await;
            listing
        };
        let listing = tokio::select! {
            biased;
            () = spec.cancel.cancelled() => return Err("it was cancelled".to_owned()),
            listing = timeout(most, listing) => listing,
        };
        let mut receipt = Receipt::empty("", "", "");
        let _ = gate.conclude(Ok(Output::default()), &mut receipt, Duration::ZERO);
        let facts = receipt.denials.first().map(|denial| format!(" ({})", denial.facts));
        match listing {
            Ok(Ok(listing)) => Ok(listing),
            Ok(Err(fault)) => Err(format!("{fault}{}", facts.unwrap_or_default())),
            Err(_) => Err(format!("it does not answer within {} seconds", most.as_secs())),
        }
    }

    /// Tells the server that the session is over.
    pub async fn close(&self, spec: CallSpec<'_>) {
        let closing = async {
            let Some(open) = self.open.lock().await.take() else { return };
            if open.address.session.is_some() {
                let _ = leave(&self.gate(&spec, spec.budget), &open.address).await;
            }
        };
        let _ = timeout(FAREWELL, closing).await;
    }

    /// INV-310: the gate lets through the server's own host, with its own secrets.
    fn gate(&self, spec: &CallSpec<'_>, budget: &Budget) -> Outgoing {
        let scope = HostScope::of(Source::Grants, vec![self.server.host.clone()]);
        let (secrets, joined) = (spec.secrets, &self.server.secrets);
        let limits = spec.limits;
        Outgoing::new(spec.sandbox, OutgoingSpec { scope, secrets, joined, budget, limits })
    }

    async fn called(
        &self,
        gate: &Outgoing,
        tool: &ListedTool,
        arguments: &str,
        progress: Option<&ProgressSink>,
    ) -> Result<Output, Failed> {
        let mut open = self.open.lock().await;
        let called = self.called_in(&mut open, gate, tool, arguments, progress).await;
        match called {
            // The call was not made: once more, in a session of its own.
            Err(Failed::Fault(Fault::SessionOver)) => {
                *open = None;
                self.called_in(&mut open, gate, tool, arguments, progress).await
            }
            Err(Failed::Fault(fault)) if !matches!(fault, Fault::Rpc(_)) => {
                // Whatever is wrong with it, the next call begins anew.
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
        progress: Option<&ProgressSink>,
    ) -> Result<Output, Failed> {
        let session = match open.take().filter(|open| !open.stale) {
            Some(session) => session,
            None => self.session(gate).await?,
        };
        let session = open.insert(session);
        match session.now.get(&tool.name) {
            Some(digest) if *digest == tool.digest() => {}
            Some(_) => {
                return Err(Failed::Changed("is described otherwise than when it was accepted"));
            }
            None => return Err(Failed::Changed("is not offered any more")),
        }
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
        let id = self.next_id();
        let params =
            json!({"name": tool.name, "arguments": arguments, "_meta": {"progressToken": id}});
        let mut aside = Aside::reporting(progress);
        let asked = request(id, "tools/call", &params);
        let result = ask(gate, &session.address, id, &asked, &mut aside).await;
        session.stale = aside.tools_changed;
        let answer = Answer::of(&self.server.name, &result?);
        if answer.is_error {
            let message = answer.error_text();
            return Err(Failed::Output(CallError::Tool { kind: ToolErrorKind::Failed, message }));
        }
        gate.accept(answer.parts).map_err(Failed::Output)
    }

    /// A session, with the tools that the server lists in it.
    async fn session(&self, gate: &Outgoing) -> Result<Open, Fault> {
        let mut address = self.begin(gate).await?;
        let listing = self.listed(gate, &mut address).await?;
        let now = listing.tools.iter().map(|tool| (tool.name.clone(), tool.digest())).collect();
        Ok(Open { address, now, stale: false })
    }

    async fn begin(&self, gate: &Outgoing) -> Result<Address, Fault> {
        let mut address = Address { url: self.server.url.clone(), session: None, version: None };
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "belljar", "version": env!("CARGO_PKG_VERSION")},
        });
        let (id, mut aside) = (self.next_id(), Aside::default());
        let begun =
            ask(gate, &address, id, &request(id, "initialize", &params), &mut aside).await?;
        let revision = begun.get("protocolVersion").and_then(Value::as_str);
        let spoken = SPOKEN.into_iter().find(|spoken| Some(*spoken) == revision);
        let spoken = spoken.ok_or(Fault::Broken("it speaks no revision that is spoken here"))?;
        address.session = aside.session;
        address.version = Some(HeaderValue::from_static(spoken));
        tell(gate, &address, &notification("notifications/initialized", &json!({}))).await?;
        Ok(address)
    }

    async fn listed(&self, gate: &Outgoing, address: &mut Address) -> Result<Listing, Fault> {
        let (mut entries, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let params = cursor.as_ref().map_or(json!({}), |cursor| json!({"cursor": cursor}));
            let (id, mut aside) = (self.next_id(), Aside::default());
            let asked = request(id, "tools/list", &params);
            let mut page = ask(gate, address, id, &asked, &mut aside).await?;
            match page.get_mut("tools").map(Value::take) {
                Some(Value::Array(tools)) => entries.extend(tools),
                _ => return Err(Fault::Broken("its list has no tools")),
            }
            if entries.len() > MAX_TOOLS {
                return Err(Fault::Broken("it lists too many tools"));
            }
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            match &cursor {
                None => return Ok(Listing::of(&self.server.name, &entries)),
                Some(cursor) if cursor.len() > MAX_CURSOR => break,
                Some(_) => {}
            }
        }
        Err(Fault::Broken("its list does not end"))
    }

    /// Tells the server that the call which it works on has ended, and forgets the session: an answer
    /// that is late is nobody's.
    async fn give_up(&self, gate: &Outgoing) {
        // The call that was dropped held it, and those that wait have not begun.
        let Ok(mut open) = self.open.try_lock() else { return };
        let Some(session) = open.take() else { return };
        let id = self.ids.load(Ordering::Relaxed);
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

    /// Says what a model may know of it, and writes the rest down.
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

    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }
}

fn ending(outcome: &Result<Output, CallError>) -> Ending {
    match outcome {
        Ok(_) => Ending::Completed,
        Err(CallError::Tool { kind, .. }) => Ending::ToolError(kind.as_str().to_owned()),
        Err(CallError::Refused(code)) => Ending::Refused(code.to_string()),
        Err(CallError::Exhausted(which)) => Ending::Exhausted(which.to_string()),
        Err(CallError::TimedOut(_)) => Ending::TimedOut,
        Err(CallError::Cancelled) => Ending::Cancelled,
        Err(CallError::BadOutput(why)) => Ending::BadOutput(why.clone()),
        Err(CallError::Trapped(_) | CallError::NotLoaded(_) | CallError::HostFault) => {
            Ending::HostFault("the call did not come to its end".to_owned())
        }
    }
}

impl std::fmt::Debug for CallSpec<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallSpec").finish_non_exhaustive()
    }
}
