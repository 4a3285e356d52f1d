//! How an agent is shown its tools.

/// How an agent is shown its tools. It changes nothing about which it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ToolsAs {
    /// Each by itself, to be called. The default.
    #[default]
    Calls,
    /// As functions of the one tool that runs code, which alone can be called: `run_python`, or where
    /// the agent does not have it `run_javascript`. With neither as [`ToolsAs::Calls`].
    Code,
    /// Both: each can be called, and the tool that runs code describes them as functions.
    Both,
}

impl ToolsAs {
    /// All, in the order of the docs.
    const ALL: [Self; 3] = [Self::Calls, Self::Code, Self::Both];

    /// The word, as files spell it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text.trim())
    }
}
