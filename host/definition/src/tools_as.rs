//! How an agent is shown its tools.

/// The form in which an agent is shown its tools, without effect on its rights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ToolsAs {
    /// Each by itself, to be called. The default.
    #[default]
    Calls,
    /// As functions of the one code-running tool, the only callable one: `run_python`, or without it
    /// `run_javascript`. Without both, like [`ToolsAs::Calls`].
    Code,
    /// Both: each tool is callable, and the code-running tool describes them as functions.
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
