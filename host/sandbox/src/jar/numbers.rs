//! Converts whole numbers in a call's arguments, for example `3.0`, to integers.

use std::borrow::Cow;

use belljar_policy::ToolName;

use crate::jar::Jar;

impl Jar {
    /// INV-500: converts each whole number in the arguments to an integer if the tool's schema wants one
    /// there. The component's description is stored already, so nothing waits.
    pub(super) async fn with_whole_numbers<'t>(
        &self,
        slot: usize,
        name: &ToolName,
        arguments: &'t str,
    ) -> Cow<'t, str> {
        if !belljar_received::whole::may_contain_float(arguments) {
            return Cow::Borrowed(arguments);
        }
        let Some(slot) = self.slots.get(slot) else { return Cow::Borrowed(arguments) };
        match self.sandbox.describe_tools(&slot.tool.wasm).await {
            Ok(tools) => match tools.iter().find(|tool| tool.name == *name) {
                Some(tool) => belljar_received::whole::by_schema(arguments, &tool.schema),
                None => Cow::Borrowed(arguments),
            },
            // The arguments stay as they are: the call itself will fail, with the reason.
            Err(_) => Cow::Borrowed(arguments),
        }
    }
}
