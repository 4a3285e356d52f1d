//! Numbers of a call's arguments.

use std::borrow::Cow;

use belljar_policy::ToolName;

use crate::jar::Jar;

impl Jar {
    /// INV-500: the arguments with integers where the tool's schema asks for them. What a component offers
    /// is known before anybody calls it, so this waits for nothing.
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
            // It cannot be called either, and that says why.
            Err(_) => Cow::Borrowed(arguments),
        }
    }
}
