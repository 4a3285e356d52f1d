//! The roles of models, and the words that agent files use for them.

/// A purpose for which a model is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ModelRole {
    /// The default model.
    Main,
    /// A cheap and quick model.
    Fast,
    /// The most capable model.
    Strong,
    /// The model that shortens long conversations.
    Compaction,
    /// The model that answers when the main model fails.
    Fallback,
}

impl ModelRole {
    /// All roles.
    pub const ALL: [Self; 5] =
        [Self::Main, Self::Fast, Self::Strong, Self::Compaction, Self::Fallback];

    /// The role's name in the table `[roles]`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A word that agent files use for a model's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleAlias {
    /// The word, for example `sonnet`; upper and lower case are equal.
    pub name: &'static str,
    /// The role; `None` = the model of the parent agent, or the main model if there is no parent.
    pub role: Option<ModelRole>,
    /// The product that uses this word, for the documentation.
    pub origin: &'static str,
}

const fn role_alias(name: &'static str, role: ModelRole, origin: &'static str) -> RoleAlias {
    RoleAlias { name, role: Some(role), origin }
}

/// All words for roles. The documentation is generated from this table.
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

/// The table `[roles]` of the settings: the configured model for each role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleTable {
    /// The main model. Absent: the model called `main`, or else the only configured model.
    pub main: Option<String>,
    /// The fast model. Absent: the model called `fast`, or else the main model, with a note.
    pub fast: Option<String>,
    /// The strong model. Absent: the model called `strong`, or else the main model, with a note.
    pub strong: Option<String>,
    /// The model that shortens conversations. Absent: the model called `compaction`, or else the main model,
    /// with a note.
    pub compaction: Option<String>,
    /// The model used when the main model fails. Absent: the model called `fallback`, or else the main model,
    /// with a note.
    pub fallback: Option<String>,
}

impl RoleTable {
    /// The configured model for a role; `None` if the table has none.
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
