//! Makes the nested calls of a tool during its own call, in the same task, so that all end with the outer call.

use std::sync::Arc;

use belljar_model::ToolCall;
use belljar_policy::{Denied, DenyCode, Permission, Shown, Source, ToolPermit};
use belljar_sandbox::{
    CallResult, CallWith, Course, Digest, Ending, Jar, PeerCall, PeerError, PeerResult, PeerTool,
    Receipt, ToolErrorKind, Within,
};
use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::agent_loop::machine::Loop;
use crate::replay::log::LoggedCourse;
use crate::replay::persist::address_of;
use crate::tools::call::{Call, arguments};
use crate::tools::dispatch::{Decision, Dispatcher, Reason, Refusal};
use crate::tools::execute::groups;
use crate::tools::executor::CallExecutor;
use crate::tools::nested::outer::{Nested, Outer, address_within, called};
use crate::tools::nested::port::{PeersPort, Request};
use crate::tools::result::{self, Executed};

impl CallExecutor<'_> {
    /// Calls a component of the jar, and makes its nested calls.
    pub(crate) async fn call_jar(
        &self,
        jar: &Jar,
        call: Call<'_>,
        permit: ToolPermit,
        course: Option<LoggedCourse>,
        machine: &Loop,
    ) -> Executed {
        let progress = self.progress(call, &permit);
        let course = course
            .map(|it| Course { seed: *Digest::of(it.seed.as_bytes()).as_bytes(), began: it.began });
        let within = call.nested.and_then(|nested| nested.within);
        if !jar.may_call_others(permit.tool().as_str()) {
            let with = CallWith { progress, peers: None, within, course, fresh: call.fresh };
            let result = jar.call_with(permit, arguments(call.call), with).await;
            return result::of_call(&call.call.id, result);
        }
        let address = address_within(&address_of(self.job, call), call.step, call.position);
        let past = self.effects.past_within(self, &address);
        let outer = Outer::new(&call.call.id, address, past, call.nested);
        let (port, mut requests) = PeersPort::open(Arc::clone(&self.peers));
        let with = CallWith { progress, peers: Some(port), within, course, fresh: call.fresh };
        let mut running = Box::pin(jar.call_with(permit, arguments(call.call), with));
        let ended = loop {
            let request = tokio::select! {
                biased;
                ended = &mut running => break Some(ended),
                Some(request) = requests.recv() => request,
            };
            let Request { calls, within, reply } = request;
            let mut answering = Box::pin(self.answer_all(calls, &outer, &within, call, machine));
            tokio::select! {
                biased;
                answers = &mut answering => {
                    if outer.diverged().is_some() {
                        break None;
                    }
                    // An error: the asking tool has ended, and so does its call.
                    let _ = reply.send(answers);
                }
                ended = &mut running => {
                    self.let_end(answering).await;
                    break Some(ended);
                }
            }
        };
        drop(running);
        self.executed(call, &outer, ended, machine).await
    }

    /// Waits for the result of a call with nested calls; `None` = the call was ended, because its nested
    /// calls differ from the record.
    async fn executed(
        &self,
        call: Call<'_>,
        outer: &Outer,
        ended: Option<CallResult>,
        machine: &Loop,
    ) -> Executed {
        let how = self.effects.left_over(self, outer, machine).await;
        match (ended, how) {
            (None, how) => {
                let how = how.unwrap_or_default();
                result::of_diverged(Receipt::empty(&call.call.name, "", arguments(call.call)), how)
            }
            (Some(result), Some(how)) if result.receipt.ending != Ending::Cancelled => {
                result::of_diverged(result.receipt, how)
            }
            (Some(result), _) => result::of_call(&call.call.id, result),
        }
    }

    /// INV-241: the source of a repeatable call's times and random numbers: the recorded one, if any.
    pub(crate) fn course_of(&self, call: Call<'_>, permit: &ToolPermit) -> Option<LoggedCourse> {
        if !self.replayable.contains(permit.tool()) {
            return None;
        }
        self.effects.course(call).or_else(|| {
            let clock = &self.job.shared.host.clock;
            let began = u64::try_from(clock.now().as_millisecond()).unwrap_or_default();
            let random = u64::from(clock.random()) << 32 | u64::from(clock.random());
            let place = address_within(&address_of(self.job, call), call.step, call.position);
            let seed = format!("{random}:{}:{place}", self.job.shared.run);
            Some(LoggedCourse { began, seed })
        })
    }

    /// INV-232: ends the nested calls of an ended call. Cancelled calls end by themselves and have receipts;
    /// other calls are dropped.
    async fn let_end(&self, answering: impl Future<Output = Vec<PeerResult>>) {
        if self.stop.is_cancelled() || self.job.budget.is_cancelled() {
            let _ = answering.await;
        }
    }

    /// Makes calls side by side as far as their kinds allow, like a step's calls. Returns a result for each.
    async fn answer_all(
        &self,
        asked: Vec<PeerCall>,
        outer: &Outer,
        within: &Within,
        of: Call<'_>,
        machine: &Loop,
    ) -> Vec<PeerResult> {
        let first = outer.take(asked.len());
        let ids = (first..).map(|place| outer.id_of(place));
        let asked: Vec<ToolCall> = asked
            .into_iter()
            .zip(ids)
            .map(|(PeerCall { tool, arguments }, id)| ToolCall { id, name: tool, arguments })
            .collect();
        let decided =
            asked.iter().map(|call| decide(call, within, machine.dispatcher(), &self.peers));
        let (own, decisions): (Vec<Option<ToolCall>>, Vec<Decision>) = decided.unzip();
        let digests: Vec<String> = asked.iter().map(called).collect();
        let calls = asked.iter().zip(&own).zip(&digests).enumerate();
        let calls = calls.map(|(at, ((asked, own), called))| Call {
            step: of.step,
            position: first + at,
            call: own.as_ref().unwrap_or(asked),
            nested: Some(Nested { outer, within: Some(within), asked: &asked.name, called }),
            fresh: of.fresh,
        });
        let mut open = Open { agent: self, calls: calls.collect() };
        let mut told: Vec<PeerResult> = asked.iter().map(|_| Err(cancelled())).collect();
        for group in groups(open.calls.iter().copied().zip(decisions)) {
            if self.stop.is_cancelled() || within.ended().is_cancelled() {
                break;
            }
            let mut running: FuturesUnordered<_> = group
                .into_iter()
                .map(|(call, decision)| self.one(call, decision, machine))
                .collect();
            while let Some((position, answer)) = running.next().await {
                open.calls.retain(|call| call.position != position);
                if let Some(slot) = told.get_mut(position - first) {
                    *slot = outer.told(position).tell(&answer);
                }
            }
        }
        told
    }
}

/// The calls without a result yet. Dropping this ends the calls, each with a receipt.
struct Open<'a, 'j> {
    agent: &'a CallExecutor<'j>,
    calls: Vec<Call<'a>>,
}

impl Drop for Open<'_, '_> {
    fn drop(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            let executed = result::of_abandoned(&call.call.name, arguments(call.call));
            self.agent.note(call, executed);
        }
    }
}

/// INV-230: decides about a tool's call. A missing name, a name that the agent lacks and a name that the
/// tool's manifest does not request get the same answer.
fn decide(
    call: &ToolCall,
    within: &Within,
    dispatcher: &Dispatcher,
    peers: &[PeerTool],
) -> (Option<ToolCall>, Decision) {
    let own = match dispatcher.translate(call) {
        Ok(own) => own,
        Err(refusal) => {
            // About a denied name the tool learns nothing, not even whether the arguments are well formed.
            let known = peers.iter().any(|it| it.name == call.name && reaches(within, it));
            let refused = || not_allowed(call, within, dispatcher, peers);
            return (None, Decision::Refuse(if known { refusal } else { refused() }));
        }
    };
    let tool = own.as_ref().unwrap_or(call).name.as_str();
    // INV-255: a tool that was not shown cannot be called, and the refusal of a denied name does not reveal
    // that its component is waiting.
    let is_peer = peers.iter().any(|peer| peer.tool.as_str() == tool);
    let decision = if !is_peer || !within.may_call(tool) || !dispatcher.offers(tool) {
        Decision::Refuse(not_allowed(call, within, dispatcher, peers))
    } else if within.waits(tool) {
        let text =
            format!("`{tool}` cannot be called from here: its component waits for this call");
        let denied = Denied::new(DenyCode::ToolNotAllowed, Source::Host, text.clone());
        Decision::Refuse(Refusal { text, reason: Reason::Denied(denied) })
    } else {
        dispatcher.decide(own.as_ref().unwrap_or(call), 0)
    };
    (own, decision)
}

fn reaches(within: &Within, peer: &PeerTool) -> bool {
    within.may_call(peer.tool.as_str()) && !within.waits(peer.tool.as_str())
}

/// The refusal of a tool's call. The decision's source is the agent's own, otherwise the calling tool's
/// manifest.
fn not_allowed(
    call: &ToolCall,
    within: &Within,
    dispatcher: &Dispatcher,
    peers: &[PeerTool],
) -> Refusal {
    let names = peers.iter().filter(|peer| reaches(within, peer));
    let names: Vec<String> = names.map(|peer| format!("`{}`", peer.name)).collect();
    let code = DenyCode::ToolNotAllowed;
    let text = match names.is_empty() {
        true => format!("{code}: no tools are available"),
        false => format!("{code}: the available tools are {}", names.join(", ")),
    };
    let tool = dispatcher.own_name(&call.name);
    let decision = dispatcher.decision(tool);
    let shown = Shown::clipped(&call.name, 64);
    let denied = match decision.permission {
        Permission::Deny => decision.denied(tool),
        Permission::Allow | Permission::Ask if !within.may_call(tool) => {
            let facts =
                format!("tool `{shown}`: the manifest of the calling tool does not name it");
            Denied::new(code, Source::Manifest, facts)
        }
        Permission::Allow | Permission::Ask => {
            let facts = format!("tool `{shown}` is not called from code, or not by that name");
            Denied::new(code, Source::Host, facts)
        }
    };
    Refusal { text, reason: Reason::Denied(denied) }
}

fn cancelled() -> PeerError {
    PeerError { kind: ToolErrorKind::Failed, message: "cancelled".to_owned() }
}
