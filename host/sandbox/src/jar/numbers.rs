//! Converts numbers in a call's arguments.

use std::borrow::Cow;

use belljar_policy::ToolName;

use crate::jar::Jar;

impl Jar {
    /// INV-500: converts whole numbers to integers where the tool's schema requires them. The component is
    /// described already, so the call does not wait.
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
            // The call itself fails with the reason.
            Err(_) => Cow::Borrowed(arguments),
        }
    }
}
