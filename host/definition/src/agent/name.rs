//! Reads the name of an agent, and its slug.

use std::path::Path;

use belljar_policy::ShownText;

use crate::fields::UnreadFields;
use crate::slug::is_refused;
use crate::{Dialect, Slug};

/// The longest name of an agent, in characters.
const MAX_NAME: usize = 100;

/// Reads `name`, or else derives it from the file's name. A name may have any letters; look-ups use its slug.
pub(super) fn read_name(
    path: &Path,
    dialect: Dialect,
    fields: &mut UnreadFields<'_, '_>,
) -> Option<(String, Slug)> {
    let stem = agent_file_stem(path);
    let at = fields.field_position("name");
    let written = if dialect == Dialect::Canonical {
        Some(fields.required_text("name")?)
    } else {
        fields.optional_text("name").filter(|name| !name.trim().is_empty())
    };
    let mut name = written.map_or_else(
        || {
            let message =
                format!("it has no `name`; the file's name serves: `{}`", ShownText::new(&stem));
            fields.findings.warning(at, "missing-name", message, None);
            stem.clone()
        },
        |name| name.trim().to_owned(),
    );
    if is_unfit_name(&name) {
        let message = unfit_message();
        if dialect == Dialect::Canonical || is_unfit_name(&stem) {
            fields.findings.error(at, "bad-name", message);
            return None;
        }
        let message = format!("{message}; the file's name serves: `{}`", ShownText::new(&stem));
        fields.findings.warning(at, "bad-name", message, None);
        name.clone_from(&stem);
    }
    if let Some(slug) = Slug::from_name(&name) {
        return Some((name, slug));
    }
    let Some(slug) = Slug::from_name(&stem) else {
        fields.findings.error_hint(
            at,
            "bad-name",
            format!("`{}` gives no identity", ShownText::new(&name)),
            "give `name`, or the file, at least one letter or digit",
        );
        return None;
    };
    let message =
        format!("`{}` has no letter or digit; look it up as `{slug}`", ShownText::new(&name));
    fields.findings.note(at, "name-from-file", message);
    Some((name, slug))
}

/// Whether a name is too long for display, or has invisible characters.
pub(crate) fn is_unfit_name(name: &str) -> bool {
    name.chars().count() > MAX_NAME || name.chars().any(is_refused)
}

/// The message about an unfit name.
pub(crate) fn unfit_message() -> String {
    format!(
        "`name` has more than {MAX_NAME} characters, or control characters or others that are not seen"
    )
}

/// The file's name without the suffixes of agent files.
fn agent_file_stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let cut = |name: &str, end: &str| {
        let at = name.len().checked_sub(end.len())?;
        let (stem, found) = name.split_at_checked(at)?;
        (found.eq_ignore_ascii_case(end) && !stem.is_empty()).then(|| stem.to_owned())
    };
    let stem = cut(&name, ".md").unwrap_or(name);
    [".agent", ".chatmode"].iter().find_map(|end| cut(&stem, end)).unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stem_is_the_name_without_the_endings_of_agent_files() {
        for (path, expected) in [
            ("a/Plan.agent.md", "Plan"),
            ("a/plan.chatmode.MD", "plan"),
            ("a/plan.md", "plan"),
            ("a/.md", ".md"),
            ("a/x.agent", "x"),
        ] {
            assert_eq!(agent_file_stem(Path::new(path)), expected, "{path}");
        }
    }
}
