//! The roles of models, and the words that agent files use for them.

/// A part that a model plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ModelRole {
    /// The default model.
    Main,
    /// Cheap and quick.
    Fast,
    /// The most capable.
    Strong,
    /// Shortens histories.
    Compaction,
    /// The model that answers when the main model fails.
    Fallback,
}

impl ModelRole {
    /// All roles.
    pub const ALL: [Self; 5] =
        [Self::Main, Self::Fast, Self::Strong, Self::Compaction, Self::Fallback];

    /// The name in the `[roles]` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A name that agent files use for a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleAlias {
    /// The name, for example `sonnet`; case does not matter.
    pub name: &'static str,
    /// The role; `None` means the model of the parent agent, and `main` where there is none.
    pub role: Option<ModelRole>,
    /// The product whose word this is; for documentation.
    pub origin: &'static str,
}

const fn role_alias(name: &'static str, role: ModelRole, origin: &'static str) -> RoleAlias {
    RoleAlias { name, role: Some(role), origin }
}

/// Every alias. The documentation is made from this table too.
pub const ALIASES: &[RoleAlias] = &[
    role_alias("main", ModelRole::Main, "belljar, Netclaw"),
    role_alias("fast", ModelRole::Fast, "belljar, SmallCode"),
    role_alias("strong", ModelRole::Strong, "belljar, SmallCode"),
    role_alias("compaction", ModelRole::Compaction, "belljar, Netclaw"),
    role_alias("fallback", ModelRole::Fallback, "belljar, Netclaw"),
    role_alias("default", ModelRole::Main, "SmallCode"),
    role_alias("medium", ModelRole::Main, "SmallCode"),
    role_alias("sonnet", ModelRole::Main, "Claude Code"),
    role_alias("opus", ModelRole::Strong, "Claude Code"),
    role_alias("haiku", ModelRole::Fast, "Claude Code"),
    RoleAlias { name: "inherit", role: None, origin: "Claude Code" },
];

/// The `[roles]` table: which configured model plays which role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleTable {
    /// Absent: the model called `main`, else the only one there is.
    pub main: Option<String>,
    /// Absent: the model called `fast`, else that of `main`, with a note.
    pub fast: Option<String>,
    /// Absent: the model called `strong`, else that of `main`, with a note.
    pub strong: Option<String>,
    /// Absent: the model called `compaction`, else that of `main`, with a note.
    pub compaction: Option<String>,
    /// Absent: the model called `fallback`, else that of `main`, with a note.
    pub fallback: Option<String>,
}

impl RoleTable {
    pub(crate) fn get(&self, role: ModelRole) -> Option<&str> {
        match role {
            ModelRole::Main => self.main.as_deref(),
            ModelRole::Fast => self.fast.as_deref(),
            ModelRole::Strong => self.strong.as_deref(),
            ModelRole::Compaction => self.compaction.as_deref(),
            ModelRole::Fallback => self.fallback.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_lower_case_and_unique() {
        let mut names: Vec<&str> = ALIASES.iter().map(|alias| alias.name).collect();
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase())));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALIASES.len());
    }
}
