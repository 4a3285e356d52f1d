//! Executes the nested calls of a tool within the tool's own call, in the same task, so all end with the
//! outer call.

use std::sync::Arc;

use belljar_model::ToolCall;
use belljar_policy::{
    CallPermission, DecisionSource, DenyCode, PolicyDenial, ShownText, ToolPermit,
};
use belljar_sandbox::{
    CallCourse, CallEnding, CallOptions, CallResult, Digest, Jar, NestedScope, PeerCall, PeerError,
    PeerResult, PeerTool, Receipt, ToolErrorKind,
};
use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::agent_loop::machine::AgentLoop;
use crate::replay::log::LoggedCourse;
use crate::replay::persist::address_of;
use crate::tools::call::{PlacedCall, arguments};
use crate::tools::dispatch::{CallDecision, CallRefusal, Dispatcher, RefusalReason};
use crate::tools::execute::group_calls;
use crate::tools::executor::CallExecutor;
use crate::tools::nested::outer::{NestedPlace, OuterCall, address_within, call_digest};
use crate::tools::nested::port::{NestedRequest, PeersPort};
use crate::tools::result::{self, ExecutedCall};

impl CallExecutor<'_> {
    /// Calls a component of the jar, and executes the calls that it makes meanwhile.
    pub(crate) async fn call_jar(
        &self,
        jar: &Jar,
        call: PlacedCall<'_>,
        permit: ToolPermit,
        course: Option<LoggedCourse>,
        machine: &AgentLoop,
    ) -> ExecutedCall {
        let progress = self.progress_sink(call, &permit);
        let course = course.map(|it| CallCourse {
            seed: *Digest::hash_bytes(it.seed.as_bytes()).as_bytes(),
            began: it.began,
        });
        let within = call.nested.and_then(|nested| nested.within);
        if !jar.may_call_others(permit.tool().as_str()) {
            let with = CallOptions { progress, peers: None, within, course, fresh: call.fresh };
            let result = jar.call_with(permit, arguments(call.call), with).await;
            return result::from_call_result(&call.call.id, result);
        }
        let address = address_within(&address_of(self.job, call), call.step, call.position);
        let past = self.effects.past_within(self, &address);
        let outer = OuterCall::new(&call.call.id, address, past, call.nested);
        let (port, mut requests) = PeersPort::open(Arc::clone(&self.peers));
        let with = CallOptions { progress, peers: Some(port), within, course, fresh: call.fresh };
        let mut running = Box::pin(jar.call_with(permit, arguments(call.call), with));
        let ended = loop {
            let request = tokio::select! {
                biased;
                ended = &mut running => break Some(ended),
                Some(request) = requests.recv() => request,
            };
            let NestedRequest { calls, within, reply } = request;
            let mut answering = Box::pin(self.answer_all(calls, &outer, &within, call, machine));
            tokio::select! {
                biased;
                answers = &mut answering => {
                    if outer.divergence_reason().is_some() {
                        break None;
                    }
                    // Sending fails only if the tool has ended, and then its call has ended too.
                    let _ = reply.send(answers);
                }
                ended = &mut running => {
                    self.let_end(answering).await;
                    break Some(ended);
                }
            }
        };
        drop(running);
        self.finish_outer(call, &outer, ended, machine).await
    }

    /// Waits for the outer call's result while its nested calls are executed. `None` = the call was ended,
    /// because its nested calls differ from the journal.
    async fn finish_outer(
        &self,
        call: PlacedCall<'_>,
        outer: &OuterCall,
        ended: Option<CallResult>,
        machine: &AgentLoop,
    ) -> ExecutedCall {
        let how = self.effects.left_over(self, outer, machine).await;
        match (ended, how) {
            (None, how) => {
                let how = how.unwrap_or_default();
                result::from_diverged(
                    Receipt::for_call(&call.call.name, "", arguments(call.call)),
                    how,
                )
            }
            (Some(result), Some(how)) if result.receipt.ending != CallEnding::Cancelled => {
                result::from_diverged(result.receipt, how)
            }
            (Some(result), _) => result::from_call_result(&call.call.id, result),
        }
    }

    /// INV-241: the source of times and random numbers for a repeatable call: the stored one if the call is
    /// repeated.
    pub(crate) fn course_of(
        &self,
        call: PlacedCall<'_>,
        permit: &ToolPermit,
    ) -> Option<LoggedCourse> {
        if !self.replayable.contains(permit.tool()) {
            return None;
        }
        self.effects.logged_course(call).or_else(|| {
            let clock = &self.job.shared.host.clock;
            let began = u64::try_from(clock.now().as_millisecond()).unwrap_or_default();
            let random = u64::from(clock.random_number()) << 32 | u64::from(clock.random_number());
            let place = address_within(&address_of(self.job, call), call.step, call.position);
            let seed = format!("{random}:{}:{place}", self.job.shared.run);
            Some(LoggedCourse { began, seed })
        })
    }

    /// INV-232: ends the nested calls of an outer call that has ended. Cancelled calls end by themselves and
    /// have receipts; others are dropped.
    async fn let_end(&self, answering: impl Future<Output = Vec<PeerResult>>) {
        if self.stop.is_cancelled() || self.job.budget.is_cancelled() {
            let _ = answering.await;
        }
    }

    /// Executes several nested calls, side by side where their kinds allow it, and returns a result for each.
    async fn answer_all(
        &self,
        asked: Vec<PeerCall>,
        outer: &OuterCall,
        within: &NestedScope,
        of: PlacedCall<'_>,
        machine: &AgentLoop,
    ) -> Vec<PeerResult> {
        let first = outer.reserve_places(asked.len());
        let ids = (first..).map(|place| outer.id_of(place));
        let asked: Vec<ToolCall> = asked
            .into_iter()
            .zip(ids)
            .map(|(PeerCall { tool, arguments }, id)| ToolCall { id, name: tool, arguments })
            .collect();
        let decided =
            asked.iter().map(|call| decide_nested(call, within, machine.dispatcher(), &self.peers));
        let (own, decisions): (Vec<Option<ToolCall>>, Vec<CallDecision>) = decided.unzip();
        let digests: Vec<String> = asked.iter().map(call_digest).collect();
        let calls = asked.iter().zip(&own).zip(&digests).enumerate();
        let calls = calls.map(|(at, ((asked, own), called))| PlacedCall {
            step: of.step,
            position: first + at,
            call: own.as_ref().unwrap_or(asked),
            nested: Some(NestedPlace { outer, within: Some(within), asked: &asked.name, called }),
            fresh: of.fresh,
        });
        let mut open = OpenCalls { agent: self, calls: calls.collect() };
        let mut told: Vec<PeerResult> = asked.iter().map(|_| Err(cancelled_error())).collect();
        for group in group_calls(open.calls.iter().copied().zip(decisions)) {
            if self.stop.is_cancelled() || within.end_token().is_cancelled() {
                break;
            }
            let mut running: FuturesUnordered<_> = group
                .into_iter()
                .map(|(call, decision)| self.one(call, decision, machine))
                .collect();
            while let Some((position, answer)) = running.next().await {
                open.calls.retain(|call| call.position != position);
                if let Some(slot) = told.get_mut(position - first) {
                    *slot = outer.take_form(position).to_peer_result(&answer);
                }
            }
        }
        told
    }
}

/// The nested calls that have no result yet. When dropped, ends each with a receipt.
struct OpenCalls<'a, 'j> {
    agent: &'a CallExecutor<'j>,
    calls: Vec<PlacedCall<'a>>,
}

impl Drop for OpenCalls<'_, '_> {
    fn drop(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            let executed = result::from_abandoned(&call.call.name, arguments(call.call));
            self.agent.record_executed(call, executed);
        }
    }
}

/// INV-230: decides about a nested call. An unknown tool, a tool that the agent may not use and a tool that
/// the calling tool's manifest does not request get the same answer.
fn decide_nested(
    call: &ToolCall,
    within: &NestedScope,
    dispatcher: &Dispatcher,
    peers: &[PeerTool],
) -> (Option<ToolCall>, CallDecision) {
    let own = match dispatcher.translate_call(call) {
        Ok(own) => own,
        Err(refusal) => {
            // The tool must learn nothing about a denied name, not even whether the arguments are well
            // formed.
            let known = peers.iter().any(|it| it.name == call.name && can_reach_peer(within, it));
            let refused = || not_allowed(call, within, dispatcher, peers);
            return (None, CallDecision::Refuse(if known { refusal } else { refused() }));
        }
    };
    let tool = own.as_ref().unwrap_or(call).name.as_str();
    // INV-255: a tool that was not shown cannot be called. Checked before the waiting component below, so
    // the refusal of a denied name does not reveal a waiting component.
    let is_peer = peers.iter().any(|peer| peer.tool.as_str() == tool);
    let decision = if !is_peer || !within.may_call(tool) || !dispatcher.offers_tool(tool) {
        CallDecision::Refuse(not_allowed(call, within, dispatcher, peers))
    } else if within.is_waiting(tool) {
        let text =
            format!("`{tool}` cannot be called from here: its component waits for this call");
        let denied =
            PolicyDenial::new(DenyCode::ToolNotAllowed, DecisionSource::Host, text.clone());
        CallDecision::Refuse(CallRefusal { text, reason: RefusalReason::Denied(denied) })
    } else {
        dispatcher.decide_call(own.as_ref().unwrap_or(call), 0)
    };
    (own, decision)
}

fn can_reach_peer(within: &NestedScope, peer: &PeerTool) -> bool {
    within.may_call(peer.tool.as_str()) && !within.is_waiting(peer.tool.as_str())
}

/// The refusal of a nested call. The deciding source is the agent's rights, or else the calling tool's
/// manifest.
fn not_allowed(
    call: &ToolCall,
    within: &NestedScope,
    dispatcher: &Dispatcher,
    peers: &[PeerTool],
) -> CallRefusal {
    let names = peers.iter().filter(|peer| can_reach_peer(within, peer));
    let names: Vec<String> = names.map(|peer| format!("`{}`", peer.name)).collect();
    let code = DenyCode::ToolNotAllowed;
    let text = match names.is_empty() {
        true => format!("{code}: no tools are available"),
        false => format!("{code}: the available tools are {}", names.join(", ")),
    };
    let tool = dispatcher.own_name(&call.name);
    let decision = dispatcher.explain_tool(tool);
    let shown = ShownText::clip_line(&call.name, 64);
    let denied = match decision.permission {
        CallPermission::Deny => decision.to_denial(tool),
        CallPermission::Allow | CallPermission::Ask if !within.may_call(tool) => {
            let facts =
                format!("tool `{shown}`: the manifest of the calling tool does not name it");
            PolicyDenial::new(code, DecisionSource::Manifest, facts)
        }
        CallPermission::Allow | CallPermission::Ask => {
            let facts = format!("tool `{shown}` is not called from code, or not by that name");
            PolicyDenial::new(code, DecisionSource::Host, facts)
        }
    };
    CallRefusal { text, reason: RefusalReason::Denied(denied) }
}

fn cancelled_error() -> PeerError {
    PeerError { kind: ToolErrorKind::Failed, message: "cancelled".to_owned() }
}
