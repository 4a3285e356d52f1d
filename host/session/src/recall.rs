//! What an agent takes from before its process died, call by call, and what it keeps for the
//! next time.

use belljar_policy::Meter;

use crate::agent::Agent;
use crate::carry::Call;
use crate::dispatch::{Decision, arguments};
use crate::orders::Order;
use crate::outcome::{ChildSummary, Usage};
use crate::results;
use crate::steps::{Kept, StepKind};
use crate::turn::{Answer, Loop};

impl Agent<'_> {
    /// The answer of a call that had one before the process died, or that had begun. `None` = it
    /// is made now.
    pub(crate) async fn recall_call(
        &self,
        call: Call<'_>,
        decision: &Decision,
        machine: &Loop,
    ) -> Option<Answer> {
        let Some(kept) = self.past.result(call.step, call.position) else {
            return self.interrupted(call).await;
        };
        if let Some(receipt) = &kept.receipt {
            let _ = self.job.budget.bill(Meter::Fuel, receipt.receipt.fuel);
            let files = kept.attachments.clone();
            self.ledger.carried(call.position, receipt.clone(), files);
        }
        match decision {
            Decision::Host(permit, Order::Spawn(order)) if kept.background.is_some() => {
                // It goes on in the background, or is told of again.
                let request = machine.request();
                self.spawn(call, permit.clone(), order.clone(), request).await;
            }
            Decision::Host(_, Order::Result { id, .. } | Order::Cancel { id }) => {
                if self.has_ended(id) {
                    self.background.fetched(id);
                }
            }
            Decision::Host(..) | Decision::Tool(_) | Decision::Refuse(_) => {
                for (place, summary) in self.past.children(call.step, call.position) {
                    self.count_recalled(summary);
                    self.ledger.child(place, summary.clone());
                }
            }
        }
        Some(kept.answer())
    }

    /// A call with effects that had begun: whoever made it again might do twice what was to be
    /// done once.
    async fn interrupted(&self, call: Call<'_>) -> Option<Answer> {
        let begun = self.past.begun(call.step, call.position)?;
        // Subagents go on by themselves.
        if !begun.is_empty() {
            return None;
        }
        self.started(call);
        let carried = results::of_interrupted(&call.call.name, arguments(call.call));
        let answer = self.note(call, carried);
        self.keep_result(call, &answer).await;
        Some(answer)
    }

    /// Keeps what a call came to, before the model hears of it.
    pub(crate) async fn keep_result(&self, call: Call<'_>, answer: &Answer) {
        let kept = || {
            let (receipt, attachments) = self.ledger.of_call(call.step, call.position);
            StepKind::Result(Box::new(Kept {
                content: answer.content.clone(),
                is_error: answer.is_error,
                receipt,
                attachments,
                background: self.background.of_call(&call.call.id),
            }))
        };
        self.job.keep_step(call.step, call.position, kept).await;
    }

    /// What a subagent used before the process died counts as it did then.
    pub(crate) fn count_recalled(&self, child: &ChildSummary) {
        let Usage { steps, input_tokens, output_tokens, fuel, .. } = child.outcome.total;
        let tokens = input_tokens.saturating_add(output_tokens);
        for (meter, amount) in [(Meter::Steps, steps), (Meter::Tokens, tokens), (Meter::Fuel, fuel)]
        {
            // The gauge tells.
            let _ = self.job.budget.bill(meter, amount);
        }
    }

    /// Whether a subagent in the background had ended before the process died.
    fn has_ended(&self, id: &str) -> bool {
        self.past.ended_in_background(id)
    }
}
