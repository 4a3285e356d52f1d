//! Tools that keep state from call to call, for example variables of an interpreter, and calls whose
//! arguments name a shorter time limit.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use belljar_policy::ToolName;

use crate::jar::output::{OutputPart, ToolOutput};
use crate::jar::{Jar, JarSlot};

/// A line for the model, before the first result of a tool whose state was lost.
const BEGAN_ANEW: &str = "[belljar: the tool began anew; what earlier calls had left in it (variables, \
    functions) is gone]";

/// The shortest time limit a call's arguments can set.
const SHORTEST: Duration = Duration::from_millis(1);

impl Jar {
    /// The tools that have state from earlier calls, or whose lost state the model has not been told of. If
    /// the work goes on in another jar, the state of the tools is lost.
    pub fn with_state(&self) -> Vec<ToolName> {
        let has_state = |slot: &JarSlot| {
            let open = || slot.store.lock().unwrap_or_else(PoisonError::into_inner).is_some();
            slot.tool.ask.keeps_state && (slot.lost.load(Ordering::Relaxed) || open())
        };
        let slots =
            self.names.iter().filter(|(_, (slot, _))| self.slots.get(*slot).is_some_and(has_state));
        slots.map(|(name, _)| name.clone()).collect()
    }

    /// Marks that the state of a tool was lost with an earlier jar: the tool's next result then starts with
    /// the note for the model.
    pub fn begins_anew(&self, tool: &str) {
        if let Some(slot) = self.names.get(tool).and_then(|(slot, _)| self.slots.get(*slot)) {
            slot.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the output of a call, with the note in front if the tool lost its state since its previous
    /// call.
    pub(super) fn mark_output(&self, slot: usize, mut output: ToolOutput) -> ToolOutput {
        if self.has_begun_anew(slot) {
            output.parts.insert(0, OutputPart::Text(BEGAN_ANEW.to_owned()));
        }
        output
    }

    /// Puts the note before an error's text if the tool lost its state.
    pub(super) fn mark_error(&self, slot: usize, message: &mut String) {
        if self.has_begun_anew(slot) {
            message.insert_str(0, &format!("{BEGAN_ANEW}\n"));
        }
    }

    /// Whether the tool lost its state and no note has said so yet. Clears the mark.
    fn has_begun_anew(&self, slot: usize) -> bool {
        let slot = self.slots.get(slot).filter(|slot| slot.tool.ask.keeps_state);
        slot.is_some_and(|slot| slot.lost.swap(false, Ordering::Relaxed))
    }
}

impl JarSlot {
    /// The time limit the call's own arguments name, for example `{"timeout": 5}`. `None` if the tool has no
    /// such argument, or it is missing.
    pub(super) fn asked_time(&self, arguments: &str) -> Option<Duration> {
        let name = self.tool.ask.time_argument.as_ref()?;
        let arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
        let seconds = arguments.get(name)?.as_f64().filter(|seconds| *seconds > 0.0)?;
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).max(SHORTEST))
    }
}
