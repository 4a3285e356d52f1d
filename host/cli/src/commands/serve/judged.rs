//! Texts of messages about faults in a tenant's files.

use std::path::Path;

use belljar_server::OpenError;

use crate::setup::exit::Failure;

/// The most findings of one tenant that are logged in full; further ones are counted.
const MOST_FINDINGS: usize = 5;

/// Returns whether a directory is below another, with links resolved. A missing directory is judged by its
/// nearest existing parent.
pub(crate) fn is_below(path: &Path, root: &Path) -> bool {
    let steps_back =
        |path: &Path| path.components().any(|part| matches!(part, std::path::Component::ParentDir));
    if steps_back(path) {
        return false;
    }
    path.ancestors()
        .find_map(|there| there.canonicalize().ok())
        .is_some_and(|there| there.starts_with(root))
}

/// Makes an error of a failure, with its first findings and the number of further ones.
pub(crate) fn setup_error(failure: &Failure) -> OpenError {
    let all = failure.diagnostics.len();
    let first = failure.diagnostics.iter().take(MOST_FINDINGS);
    let mut lines: Vec<String> = first.map(ToString::to_string).collect();
    if all > lines.len() {
        lines.push(format!("and {} more", all.saturating_sub(lines.len())));
    }
    lines.push(failure.message.clone());
    lines.extend(failure.hints.iter().map(|hint| format!("hint: {hint}")));
    lines.retain(|line| !line.is_empty());
    OpenError::Setup(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_a_tenants_directory_is_not_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (own, other) = (root.join("own"), root.join("other"));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&other).unwrap();
        assert!(is_below(&own, &own) && is_below(&own.join("a/b"), &own));
        assert!(!is_below(&other, &own) && !is_below(&root, &own));
        assert!(!is_below(&own.join("../other"), &own));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&other, own.join("link")).unwrap();
            assert!(!is_below(&own.join("link"), &own) && !is_below(&own.join("link/x"), &own));
        }
    }
}
