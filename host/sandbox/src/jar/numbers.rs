//! Numbers of a call's arguments.

use std::borrow::Cow;

use belljar_policy::ToolName;

use crate::jar::Jar;

impl Jar {
    /// INV-500: the arguments with integers where the tool's schema expects them. The component is described
    /// already, so there is no wait.
    pub(super) async fn with_whole_numbers<'t>(
        &self,
        slot: usize,
        name: &ToolName,
        arguments: &'t str,
    ) -> Cow<'t, str> {
        if !belljar_received::whole::may_have(arguments) {
            return Cow::Borrowed(arguments);
        }
        let Some(slot) = self.slots.get(slot) else { return Cow::Borrowed(arguments) };
        match self.sandbox.describe(&slot.tool.wasm).await {
            Ok(tools) => match tools.iter().find(|tool| tool.name == *name) {
                Some(tool) => belljar_received::whole::by_schema(arguments, &tool.schema),
                None => Cow::Borrowed(arguments),
            },
            // A call would fail too, with the reason.
            Err(_) => Cow::Borrowed(arguments),
        }
    }
}
