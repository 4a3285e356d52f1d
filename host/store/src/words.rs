//! The closed sets of words in the columns.

use std::fmt;

/// One enum of words: its variants, and how each is spelled in the file.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word in the file.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Reads the word; `None` for any other.
            pub(crate) fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
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
    /// Who a message is from.
    Role {
        /// The person.
        User = "user",
        /// The agent.
        Assistant = "assistant",
    }
}

words! {
    /// How far a message is.
    MessageStatus {
        /// A placeholder: its turn runs, or its process has died.
        InFlight = "in_flight",
        /// All there is to say is said.
        Completed = "completed",
        /// A budget ran out.
        Partial = "partial",
        /// Something broke.
        Failed = "failed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
        /// Its process died while it was in flight.
        Interrupted = "interrupted",
    }
}

words! {
    /// How far a subagent is.
    SubagentStatus {
        /// It waits for its turn.
        Queued = "queued",
        /// It runs.
        Running = "running",
        /// It said all it had to say.
        Completed = "completed",
        /// A budget ran out.
        Partial = "partial",
        /// Something broke.
        Failed = "failed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
    }
}

words! {
    /// Where a subagent's definition came from.
    Source {
        /// An agent by its name.
        Preset = "preset",
        /// A copy of its parent.
        Fork = "fork",
        /// A stage of a team.
        Team = "team",
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
        assert_eq!(Source::parse("team"), Some(Source::Team));
        assert_eq!(Role::parse("system"), None);
    }
}
