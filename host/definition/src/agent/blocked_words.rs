//! Restrictions of tools that cannot be parsed: they block the agent, and the report shows the line.

use belljar_policy::{CallPermission, ShownText};

use super::names::{NameEntry, NamedTools};
use super::tool_list::ToolListReader;
use super::tools::TOOL_ALIASES;
use crate::suggest;

impl ToolListReader<'_, '_, '_, '_> {
    /// Blocks the agent because of an entry that restricts in an unknown way.
    pub(super) fn not_understood(&mut self, entry: &NameEntry) {
        let name = ShownText::clip_line(&entry.text, 60).to_string();
        let (field, line) = (&self.field.0, entry.at.line);
        let message = format!(
            "`{name}` in `{field}` is a restriction that is not understood, so the agent is blocked"
        );
        let hint = "name the tools that it may use, one by one, or those that it may not in \
                    `disallowedTools`";
        self.fields.findings.warning(entry.at, "not-understood", message, Some(hint.to_owned()));
        let why = format!("line {line}: it is a restriction that is not understood; {hint}");
        self.list.lose_by(&name, why);
    }

    /// Blocks the agent if a name in a list of forbidden tools is unknown.
    pub(super) fn known_or_blocked(
        &mut self,
        entry: &NameEntry,
        found: &NamedTools,
        most: CallPermission,
    ) {
        if found.is_known || most == CallPermission::Allow {
            return;
        }
        let name = ShownText::clip_line(&entry.text, 60).to_string();
        let line = entry.at.line;
        let message = format!(
            "`{name}` is no tool that is known here, so what is taken away is not known and the \
             agent is blocked"
        );
        // A suggestion needs a comparison with every tool, so a finding that is only counted gets
        // none.
        let aliases = || TOOL_ALIASES.iter().map(|row| row.name);
        let nearest = || suggest::find_nearest(&entry.text, aliases());
        let is_told = !self.fields.findings.is_full();
        let meant =
            is_told.then(|| nearest().or_else(|| self.known.suggest_name(&entry.text))).flatten();
        let hint = match meant {
            Some(word) => format!("did you mean `{word}`?"),
            None => "write the name of a tool, such as `Bash`, `Write` or `WebFetch`, or take it \
                     out; `belljar tools aliases` lists them"
                .to_owned(),
        };
        let why = format!("line {line}: it is no tool that is known here; {hint}");
        self.fields.findings.warning(entry.at, "unknown-tool", message, Some(hint));
        self.list.lose_by(&name, why);
    }
}
