//! Rule: links of the README, of the guide and of the pages in `host/` lead to files that exist, and the
//! README stays short.
//!
//! Commands that the pages show are run by `tests/e2e/guide`.

use std::path::Path;

use super::TreeFile;

const README: &str = "README.md";
const GUIDE: &str = "host/docs/";

/// The most lines of the README: as much as a reader takes in before the first try. More text belongs in the
/// guide.
const MAX_README_LINES: usize = 130;

/// Checks the length of the README, and every link of each page.
pub(super) fn find_breaches(root: &Path, files: &[TreeFile]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files.iter().filter(|file| is_page(&file.path)) {
        let lines = file.text.lines().count();
        if file.path == README && lines > MAX_README_LINES {
            let most = MAX_README_LINES;
            breaches.push(format!("{README}: {lines} lines, more than {most}; use `{GUIDE}`"));
        }
        let folder = root.join(&file.path);
        let folder = folder.parent().unwrap_or(root);
        for (number, line) in file.text.lines().enumerate() {
            for target in linked_files(line).filter(|target| !folder.join(target).exists()) {
                breaches.push(format!(
                    "{}:{}: the link to `{target}` leads nowhere",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    breaches
}

fn is_page(path: &str) -> bool {
    let stands_in_host = path.starts_with("host/") && path.matches('/').count() == 1;
    path == README || ((path.starts_with(GUIDE) || stands_in_host) && path.ends_with(".md"))
}

/// The files a line links to, without the part after `#`. Links to other sites are left out.
fn linked_files(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter_map(|link| link.split('#').next())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_nothing_and_a_long_readme_are_breaches() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("here.md"), "").unwrap();
        let of = |path: &str, text: String| {
            find_breaches(root.path(), &[TreeFile { path: path.to_owned(), text }])
        };
        let links = "[a](here.md#part) [b](https://a.test/x) [c](#part)\n\n[d](gone.md)\n";
        assert_eq!(
            of(README, links.to_owned()),
            ["README.md:3: the link to `gone.md` leads nowhere"]
        );
        assert_eq!(of("host/docs/a.md", links.to_owned()).len(), 2);
        assert_eq!(of("host/SECURITY.md", "[a](docs/gone.md)".to_owned()).len(), 1);
        assert_eq!(of("tools/README.md", links.to_owned()), [""; 0]);
        assert_eq!(of(README, "line\n".repeat(MAX_README_LINES)), [""; 0]);
        assert_eq!(of(README, "line\n".repeat(MAX_README_LINES + 1)).len(), 1);
    }
}
