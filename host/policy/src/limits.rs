//! The limits of a subagent. One table makes the struct, its defaults, the form in which files ask for
//! limits, and the page of documentation.

use serde::{Deserialize, Serialize};

/// A row of the table of limits, [`LIMITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitRow {
    /// The name of the limit in `belljar.toml`, `tool.toml` and agent files.
    pub key: &'static str,
    /// The unit of the value.
    pub unit: &'static str,
    /// The limit if no grant sets it.
    pub default: u64,
    /// What is limited, and the reason for the default.
    pub why: &'static str,
}

macro_rules! limits {
    ($($key:ident, $unit:literal, $default:expr, $why:literal;)*) => {
        /// The limits of one subagent. Every field has the unit of its row in [`LIMITS`]; the [`Default`]
        /// applies without a grant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits {
            $(#[doc = $why] pub $key: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        /// Limits that a file states; absent = unstated.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct LimitsRequest {
            $(
                #[doc = $why]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<u64>,
            )*
        }

        impl Limits {
            /// The minimum of both, field by field. A request never raises a limit.
            #[must_use]
            pub fn narrowed(&self, request: &LimitsRequest) -> Self {
                Self { $($key: request.$key.map_or(self.$key, |asked| asked.min(self.$key)),)* }
            }

            /// The operator's limits: a stated field replaces the default, whether higher or lower.
            #[must_use]
            pub fn granted(&self, request: &LimitsRequest) -> Self {
                Self { $($key: request.$key.unwrap_or(self.$key),)* }
            }

            /// The minimum of both, field by field.
            #[must_use]
            pub fn min(&self, other: &Self) -> Self {
                Self { $($key: self.$key.min(other.$key),)* }
            }

            /// Whether no field is larger than in `other`.
            pub fn within(&self, other: &Self) -> bool {
                true $(&& self.$key <= other.$key)*
            }

            /// The value of one row, by key.
            pub fn get(&self, key: &str) -> Option<u64> {
                match key {
                    $(stringify!($key) => Some(self.$key),)*
                    _ => None,
                }
            }
        }

        impl LimitsRequest {
            /// The value of one row, by key; `None` = unstated, or an unknown key.
            pub fn get(&self, key: &str) -> Option<u64> {
                match key {
                    $(stringify!($key) => self.$key,)*
                    _ => None,
                }
            }

            /// Sets one row, by key; returns whether the key is known.
            pub fn set(&mut self, key: &str, value: u64) -> bool {
                match key {
                    $(stringify!($key) => self.$key = Some(value),)*
                    _ => return false,
                }
                true
            }

            /// The fields that either states, with the minimum where both do.
            #[must_use]
            pub fn and(&self, other: &Self) -> Self {
                Self { $($key: match (self.$key, other.$key) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                },)* }
            }
        }

        /// Every limit with its default: the table behind the code and the documentation.
        pub const LIMITS: &[LimitRow] = &[
            $(LimitRow { key: stringify!($key), unit: $unit, default: $default, why: $why },)*
        ];
    };
}

const MIB: u64 = 1 << 20;

limits! {
    steps, "steps", 30,
        "Answers of the model with their tool calls (`maxTurns`, `--max-steps`). Long enough for real work, short enough that a looping model ends.";
    timeout_seconds, "seconds", 600,
        "Wall time of the whole run (`timeoutSeconds`).";
    prefill_timeout_seconds, "seconds", 120,
        "Wall time to the first token of each step (`prefillTimeoutSeconds`). Local models read a long prompt slowly.";
    tokens, "tokens", 300_000,
        "Input and output tokens of all steps together: thirty steps of 10,000 tokens each. At three dollars for a million tokens, less than one is lost with a run that goes wrong; at 80 % the person is told.";
    fuel_per_call, "fuel", 20_000_000_000,
        "Fuel of one tool call: about two seconds of a tight loop at 11 G fuel a second.";
    fuel, "fuel", 200_000_000_000,
        "Fuel of all tool calls together: ten calls at their limit.";
    call_timeout_seconds, "seconds", 60,
        "Wall time of one tool call, host work and waiting included.";
    memory_bytes, "bytes", 256 * MIB,
        "Linear memory and tables of all stores of the jar together. One pool slot holds as much.";
    output_bytes, "bytes", MIB,
        "What one tool call may return, attachments included; more is an error, not a cut.";
    output_total_bytes, "bytes", 32 * MIB,
        "What all tool calls together may return.";
    write_bytes, "bytes", 64 * MIB,
        "Bytes written to mounts, growth by truncation included.";
    read_bytes, "bytes", 1024 * MIB,
        "Bytes read from mounts.";
    egress_bytes, "bytes", 4 * MIB,
        "Bytes sent over the network: request lines, headers and bodies.";
    ingress_bytes, "bytes", 64 * MIB,
        "Bytes received over the network, headers and bodies.";
    connections, "connections", 4,
        "Outgoing connections open at the same time.";
    open_files, "descriptors", 64,
        "Files and directories open at the same time in one store, mounts included.";
    log_lines, "lines", 200,
        "Lines of `log` and `progress` kept of one call.";
    stdio_bytes, "bytes", 64 << 10,
        "Bytes of stdout and of stderr kept of one call; more is dropped and counted.";
    call_depth, "levels", 2,
        "How deep calls of tools by tools may stand in each other: 1 = a tool that the model called calls others, 2 = those call others too.";
    nested_calls, "calls", 1_000,
        "Calls that tools make, at all depths, below one call of the model.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_narrows_and_only_the_operator_raises() {
        let base = Limits::default();
        let ask = LimitsRequest { steps: Some(1_000), tokens: Some(5), ..Default::default() };
        let narrowed = base.narrowed(&ask);
        assert_eq!((narrowed.steps, narrowed.tokens), (base.steps, 5));
        assert!(narrowed.within(&base));
        assert_eq!(base.granted(&ask).steps, 1_000);
    }

    #[test]
    fn the_table_holds_every_field_with_its_default() {
        let json = serde_keys(&Limits::default());
        let keys: Vec<_> = LIMITS.iter().map(|row| row.key.to_owned()).collect();
        assert_eq!(json, keys);
        for row in LIMITS {
            assert_eq!(Limits::default().get(row.key), Some(row.default));
        }
    }

    fn serde_keys(limits: &Limits) -> Vec<String> {
        let debug = format!("{limits:?}");
        debug
            .trim_start_matches("Limits { ")
            .trim_end_matches(" }")
            .split(", ")
            .map(|field| field.split(':').next().unwrap().to_owned())
            .collect()
    }
}
