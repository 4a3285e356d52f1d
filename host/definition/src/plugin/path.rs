//! Paths inside a plugin, as manifests write them.

use std::fmt;

use belljar_policy::ShownText;

/// The longest path, in bytes.
const MAX_PATH: usize = 512;

/// A path below a plugin's root, with `/` between its parts; the empty path is the root. For example,
/// `./skills/` becomes `skills`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginPath(String);

impl PluginPath {
    /// Parses a path of a manifest.
    ///
    /// # Errors
    ///
    /// INV-630: when the path is absolute, leaves the root, or has parts that a person would read as another
    /// path; the text is the reason.
    pub fn parse(written: &str) -> Result<Self, &'static str> {
        if written.len() > MAX_PATH {
            return Err("is longer than a path may be");
        }
        if written.chars().any(ShownText::is_hidden) {
            return Err("has characters that no screen shows");
        }
        if written.contains(['\\', ':', '~', '%', '$']) {
            return Err("is not a plain path");
        }
        if written.starts_with('/') {
            return Err("is absolute");
        }
        let mut parts = Vec::new();
        for part in written.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err("leaves the plugin"),
                part if part.ends_with(['.', ' ']) || part.starts_with(' ') => {
                    return Err("has a part that begins or ends with a blank or a dot");
                }
                part => parts.push(part),
            }
        }
        Ok(Self(parts.join("/")))
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a file is at this path or below it.
    pub fn contains(&self, file: &str) -> bool {
        self.below(file).is_some()
    }

    /// The rest of a file's path below this path: empty for the path itself, `None` outside.
    pub fn below<'a>(&self, file: &'a str) -> Option<&'a str> {
        if self.0.is_empty() {
            return Some(file);
        }
        match file.strip_prefix(self.0.as_str())? {
            "" => Some(""),
            rest => rest.strip_prefix('/'),
        }
    }

    /// The path of a name below this path.
    #[must_use]
    pub fn join(&self, name: &str) -> String {
        if self.0.is_empty() { name.to_owned() } else { format!("{}/{name}", self.0) }
    }
}

impl fmt::Display for PluginPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "./{}", ShownText::new(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_inside_the_plugin() {
        for (written, expected) in
            [("./", ""), (".", ""), ("./a//b/", "a/b"), ("a", "a"), ("./.mcp.json", ".mcp.json")]
        {
            assert_eq!(PluginPath::parse(written).unwrap().as_str(), expected, "{written}");
        }
        for bad in [
            "../a",
            "./a/../../b",
            "/etc",
            "~/a",
            "C:/a",
            "a\\b",
            "./a\u{202e}",
            "./a./b",
            "./ a",
            "./a%2fb",
            "${HOME}/a",
            "https://example.org",
            "./a\0",
        ] {
            assert!(PluginPath::parse(bad).is_err(), "{bad}");
        }
        let long = "a/".repeat(MAX_PATH);
        assert!(PluginPath::parse(&long).is_err());
    }

    #[test]
    fn a_file_is_below_a_whole_part_only() {
        let path = PluginPath::parse("./skills").unwrap();
        assert_eq!(path.below("skills/a/SKILL.md"), Some("a/SKILL.md"));
        assert_eq!(path.below("skills2/a"), None);
        assert_eq!(PluginPath::default().below("a"), Some("a"));
        assert_eq!(path.join("a"), "skills/a");
    }
}
