//! The callers for whom an agent is meant.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The callers for whom an agent is meant, which decides the agent's default rights.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Visibility {
    /// People and other agents. The default.
    #[default]
    UserFacing,
    /// Other agents only.
    Internal,
}

impl Visibility {
    /// Both values, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::UserFacing, Self::Internal];

    /// The name in files and in `[defaults.*]`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UserFacing => "user-facing",
            Self::Internal => "internal",
        }
    }

    /// Parses the name; hyphens, underscores, spaces and letter case are ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let plain: String =
            text.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).take(32).collect();
        Self::ALL.into_iter().find(|v| v.as_str().replace('-', "").eq_ignore_ascii_case(&plain))
    }
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphens_and_case_are_free_and_nothing_else_is() {
        for text in ["user-facing", "UserFacing", "user_facing", "USER FACING"] {
            assert_eq!(Visibility::parse(text), Some(Visibility::UserFacing), "{text}");
        }
        assert_eq!(Visibility::parse("Internal"), Some(Visibility::Internal));
        for text in ["", "user", "internals", "public"] {
            assert_eq!(Visibility::parse(text), None, "{text}");
        }
    }
}
