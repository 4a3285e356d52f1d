//! How tools are shown to an agent.

/// The form in which tools are shown to an agent, without effect on its rights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ToolsAs {
    /// Each tool is callable. The default.
    #[default]
    Calls,
    /// All tools are functions of the code-running tool, the only callable one: `run_python`, or without it
    /// `run_javascript`. Without both, like [`ToolsAs::Calls`].
    Code,
    /// Each tool is callable, and the code-running tool describes them as functions.
    Both,
}

impl ToolsAs {
    /// All values, in the order of the documentation.
    const ALL: [Self; 3] = [Self::Calls, Self::Code, Self::Both];

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses the name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text.trim())
    }
}
