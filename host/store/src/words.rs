//! The enums whose values are stored as words in the database.

use std::fmt;
use std::str::FromStr;

use belljar_policy::ShownText;

/// The error for a word that no variant has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is none of {known}")]
pub struct UnknownWord {
    /// The unknown word, escaped.
    found: String,
    /// The known words.
    known: String,
}

/// Defines an enum with the word of each variant in the database.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word in the database.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Parses a word; `None` if it is unknown.
            pub(crate) fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                Self::parse(word).ok_or_else(|| UnknownWord {
                    found: ShownText::clip_line(word, 40).to_string(),
                    known: [$(concat!("`", $word, "`")),+].join(", "),
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The kind of a session.
    SessionKind {
        /// A conversation.
        Chat = "chat",
        /// A single run of an agent.
        Run = "run",
        /// A run of a team.
        Team = "team",
        /// A session that was begun through the server.
        Api = "api",
    }
}

impl SessionKind {
    /// Returns whether the session is a run: it has one turn, is not resumed by the service, and may be
    /// deleted when there are more runs than `keep_runs`.
    pub fn is_run(self) -> bool {
        match self {
            Self::Run | Self::Team => true,
            Self::Chat | Self::Api => false,
        }
    }
}

words! {
    /// The author of a message.
    Role {
        /// The person.
        User = "user",
        /// The agent.
        Assistant = "assistant",
    }
}

words! {
    /// The status of a message.
    MessageStatus {
        /// A placeholder: the turn is running, or its process has died.
        InFlight = "in_flight",
        /// The turn has a complete answer.
        Completed = "completed",
        /// The turn ended because a budget was used up.
        Partial = "partial",
        /// The turn failed.
        Failed = "failed",
        /// The turn was cancelled.
        Cancelled = "cancelled",
        /// The process died during the turn.
        Interrupted = "interrupted",
    }
}

words! {
    /// The status of a subagent.
    SubagentStatus {
        /// It waits to start.
        Queued = "queued",
        /// It is running.
        Running = "running",
        /// It ended with a conclusion.
        Completed = "completed",
        /// It ended because a budget was used up.
        Partial = "partial",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

words! {
    /// Where a subagent's definition comes from.
    SubagentSource {
        /// An agent of the catalogue, by its name.
        Preset = "preset",
        /// A copy of the parent and its conversation.
        Fork = "fork",
        /// A stage of a team.
        Team = "team",
    }
}

words! {
    /// The kind of an entry in a turn's journal.
    JournalKind {
        /// A model's answer, with the agent's input before it.
        Said = "said",
        /// A call with effects is about to begin.
        Begun = "begun",
        /// The result of a tool call.
        Result = "result",
        /// The outcome of a subagent.
        Child = "child",
        /// A model is about to write a text for an MCP server, or has written it.
        Written = "written",
        /// A person has refused all further questions of an MCP server.
        Muted = "muted",
    }
}

words! {
    /// The scope of an API key within its tenant. Each scope includes the ones after it.
    KeyScope {
        /// Everything, including keys and the tenant's settings.
        Admin = "admin",
        /// Turns, sessions and agents.
        Member = "member",
        /// Reading only.
        ReadOnly = "read-only",
    }
}

impl KeyScope {
    /// Returns whether a key of the given scope may do what needs the scope `needed`.
    pub fn includes_scope(self, needed: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Member => needed != Self::Admin,
            Self::ReadOnly => needed == Self::ReadOnly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_others_are_none() {
        for status in [MessageStatus::InFlight, MessageStatus::Interrupted] {
            assert_eq!(MessageStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(SubagentStatus::parse("COMPLETED"), None);
        assert_eq!(SubagentSource::parse("team"), Some(SubagentSource::Team));
        assert_eq!(Role::parse("system"), None);
    }

    #[test]
    fn an_unknown_word_is_told_with_those_that_there_are() {
        assert_eq!("read-only".parse(), Ok(KeyScope::ReadOnly));
        let error = "root\u{1b}".parse::<KeyScope>().unwrap_err().to_string();
        assert!(error.ends_with("is none of `admin`, `member`, `read-only`"), "{error}");
        assert!(error.contains("root") && !error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn a_scope_covers_itself_and_the_lesser_ones() {
        let scopes = [KeyScope::Admin, KeyScope::Member, KeyScope::ReadOnly];
        for (place, scope) in scopes.iter().enumerate() {
            for (other, needed) in scopes.iter().enumerate() {
                assert_eq!(scope.includes_scope(*needed), place <= other, "{scope} {needed}");
            }
        }
    }
}
