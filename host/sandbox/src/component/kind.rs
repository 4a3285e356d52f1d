//! The kinds of components that can be used, told apart by the names of their exports.

use serde::Serialize;

use crate::component::interfaces::{is_command_export, is_hook_export, is_tool_export};

/// How a component is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComponentKind {
    /// The component exports `belljar:tool/tools` and describes its own tools.
    Tool,
    /// The component exports `wasi:cli/run`. It is one tool, whose arguments become a command line.
    Command,
    /// The component exports other functions. Each is a tool, described by its type.
    Functions,
    /// The component exports `belljar:hook/hooks`. It is not a tool.
    Hook,
}

/// Whether an export is an interface, a function or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportForm {
    Interface,
    Function,
    Other,
}

/// The kind of a component with these exports. The tool contract comes first: a component that has it is a
/// tool, whatever else it exports. `None`: nothing is usable, or a belljar interface has an unknown version,
/// whose meaning its types do not show.
pub(crate) fn kind_of<'a>(
    exports: impl Iterator<Item = (&'a str, ExportForm)> + Clone,
) -> Option<ComponentKind> {
    let has = |is: fn(&str) -> bool| {
        exports.clone().any(|(name, form)| form == ExportForm::Interface && is(name))
    };
    if has(is_tool_export) {
        return Some(ComponentKind::Tool);
    }
    if has(is_hook_export) {
        return Some(ComponentKind::Hook);
    }
    if exports.clone().any(|(name, _)| name.starts_with("belljar:")) {
        return None;
    }
    if has(is_command_export) {
        return Some(ComponentKind::Command);
    }
    let callable = |(_, form)| matches!(form, ExportForm::Interface | ExportForm::Function);
    exports.clone().any(callable).then_some(ComponentKind::Functions)
}

impl std::fmt::Display for ComponentKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Command => "command",
            Self::Functions => "functions",
            Self::Hook => "hook",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(exports: &[(&'static str, ExportForm)]) -> Option<ComponentKind> {
        kind_of(exports.iter().copied())
    }

    #[test]
    fn the_contract_comes_first_and_its_unknown_versions_are_nothing() {
        let run = ("wasi:cli/run@0.2.3", ExportForm::Interface);
        let tool = ("belljar:tool/tools@0.1.0", ExportForm::Interface);
        assert_eq!(of(&[run, tool]), Some(ComponentKind::Tool));
        assert_eq!(of(&[run, ("a:b/c", ExportForm::Interface)]), Some(ComponentKind::Command));
        assert_eq!(of(&[("run", ExportForm::Function)]), Some(ComponentKind::Functions));
        assert_eq!(
            of(&[("belljar:hook/hooks@0.1.0", ExportForm::Interface)]),
            Some(ComponentKind::Hook)
        );
        assert_eq!(of(&[("belljar:tool/tools@9.0.0", ExportForm::Interface), run]), None);
        assert_eq!(
            of(&[("wasi:cli/run@0.3.0", ExportForm::Interface)]),
            Some(ComponentKind::Functions)
        );
        assert_eq!(of(&[("t", ExportForm::Other)]), None);
        assert_eq!(of(&[]), None);
    }
}
