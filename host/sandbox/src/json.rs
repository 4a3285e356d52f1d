//! Checks strangers' JSON before a value is built from it.

use serde::de::IgnoredAny;

/// The deepest nesting of JSON, because parsers of every language accept this much.
pub(crate) const MAX_DEPTH: usize = 64;

/// Checks that the text is JSON of bounded depth, without building a value. serde_json checks the depth of
/// built values, not of skipped ones.
pub(crate) fn check_json(text: &str) -> Result<(), String> {
    if nesting_depth(text) > MAX_DEPTH {
        return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
    }
    serde_json::from_str::<IgnoredAny>(text).map(|_| ()).map_err(|error| error.to_string())
}

/// The deepest nesting of a JSON text.
fn nesting_depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
