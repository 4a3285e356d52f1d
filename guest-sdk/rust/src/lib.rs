//! Write tools for belljar.
//!
//! A tool is an argument struct, a function and one line that publishes it:
//!
//! ```
//! use belljar_guest::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Args {
//!     /// The file to count, relative to the workspace.
//!     path: String,
//! }
//!
//! fn word_count(args: Args) -> ToolResult {
//!     let path = WorkspacePath::parse(&args.path)?;
//!     let text = std::fs::read_to_string(&path).at(&args.path)?;
//!     Ok(Output::text(format!("{} words", text.split_whitespace().count())))
//! }
//!
//! belljar_guest::tools! {
//!     word_count(Args): "Counts the words of a text file.", hints: read_only | idempotent;
//! }
//! # fn main() {}
//! ```
//!
//! Build the crate as a `cdylib` for `wasm32-wasip2`: the output is a component. The doc
//! comments of the argument struct become the descriptions in the JSON schema that models
//! read, so write them for a model.
//!
//! The workspace is the directory `/workspace`, which is also the current directory: plain
//! `std::fs` works with relative paths. Whatever was not granted answers with an ordinary
//! error, which [`At::at`] turns into the right [`ToolError`].
//!
//! Features, all off by default because a component imports only what its features need:
//! `config` (the operator's settings, and whether a secret is there), `http` (a blocking
//! client), `peers` (calling the agent's other tools; the component then keeps version 0.2 of the
//! contract instead of 0.1), `walk` (files below a directory, honouring `.gitignore`).

#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated from tool.wit")]
#[doc(hidden)]
pub mod bindings;

mod arguments;
#[cfg(feature = "config")]
pub mod config;
mod error;
#[cfg(feature = "http")]
pub mod http;
pub mod log;
mod output;
#[cfg(feature = "peers")]
pub mod peers;
pub mod progress;
mod schema;
#[cfg(feature = "config")]
pub mod secret;
#[cfg(feature = "walk")]
pub mod walk;
mod workspace;

pub use bindings::exports::belljar::tool::tools::{
    Attachment, Call, Definition, Hints, Output, Part, ToolError,
};
pub use error::{At, from_io};
pub use workspace::{ROOT, WorkspacePath, replace_file};

/// What a tool function returns.
pub type ToolResult = Result<Output, ToolError>;

/// What nearly every tool needs.
pub mod prelude {
    pub use crate::{At, Output, ToolError, ToolResult, WorkspacePath, log, progress};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

/// Publishes functions as the tools of this component.
///
/// One line per tool, `;` between them: the function (its name is the tool's name), its
/// argument type in parentheses, a description for the model, and optionally hints:
/// `read_only`, `idempotent`, `open_world`. Hints are promises that let the host overlap
/// calls; they never widen a right.
///
/// The argument type needs `Deserialize` and `JsonSchema`. Give it
/// `#[serde(deny_unknown_fields)]`, so that a model that invents a field is told.
#[macro_export]
macro_rules! tools {
    ($(
        $tool:ident ( $args:ty ) : $description:expr $(, hints: $($hint:ident)|+ )?
    );+ $(;)?) => {
        // Only the component's exports use it, and those exist for WebAssembly alone.
        #[allow(dead_code)]
        struct BelljarTools;

        #[allow(dead_code)]
        impl $crate::bindings::exports::belljar::tool::tools::Guest for BelljarTools {
            fn describe() -> ::std::vec::Vec<$crate::Definition> {
                ::std::vec![$(
                    $crate::__private::definition::<$args>(
                        ::core::stringify!($tool),
                        $description,
                        $crate::Hints::empty() $($(| $crate::__private::hints::$hint())+)?,
                    )
                ),+]
            }

            fn invoke(call: $crate::Call) -> $crate::ToolResult {
                match call.tool.as_str() {
                    $(
                        ::core::stringify!($tool) => $crate::__private::run(&call.arguments, $tool),
                    )+
                    other => ::core::result::Result::Err($crate::__private::unknown_tool(other)),
                }
            }
        }

        #[cfg(target_family = "wasm")]
        $crate::bindings::export!(BelljarTools with_types_in $crate::bindings);
    };
}

/// What [`tools!`] expands to. Not part of the API.
#[doc(hidden)]
pub mod __private {
    use crate::{Definition, Hints, ToolError, ToolResult, arguments, schema, workspace};
    use schemars::JsonSchema;
    use serde::de::DeserializeOwned;

    pub fn definition<A: JsonSchema>(name: &str, description: &str, hints: Hints) -> Definition {
        Definition {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema::of::<A>(),
            hints,
        }
    }

    pub fn run<A: DeserializeOwned>(arguments: &str, tool: fn(A) -> ToolResult) -> ToolResult {
        workspace::enter();
        tool(arguments::parse(arguments)?)
    }

    pub fn unknown_tool(name: &str) -> ToolError {
        ToolError::NotFound(format!("this component has no tool `{name}`"))
    }

    /// One function per hint, so that a misspelt one does not compile.
    pub mod hints {
        use crate::Hints;

        pub fn read_only() -> Hints {
            Hints::READ_ONLY
        }

        pub fn idempotent() -> Hints {
            Hints::IDEMPOTENT
        }

        pub fn open_world() -> Hints {
            Hints::OPEN_WORLD
        }
    }
}
