//! Makes tool names from the names of a component's functions.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// The most bytes of a tool's name, because providers of models refuse longer ones.
const MAX_NAME: usize = 64;

/// The hexadecimal digits of a digest that tell two equal names apart.
const DIGITS: usize = 8;

/// The full name of a function: `namespace:package/interface@version#function`, or the function alone.
pub(super) fn spell_function(interface: Option<&str>, function: &str) -> String {
    match interface {
        Some(interface) => format!("{interface}#{function}"),
        None => function.to_owned(),
    }
}

/// Why a function with the given name cannot be offered; `None`: it can.
pub(super) fn refusal_reason(function: &str) -> Option<&'static str> {
    function.starts_with('[').then_some("it belongs to a resource, which JSON cannot name")
}

/// Tool names for functions, in the same order, without their version: `docs:adder/ops@0.1.0#add-two`
/// becomes `docs_adder_ops_add_two`. A name that is too long or not unique gets digits of its full name's
/// digest, so that it depends on the component only.
pub(super) fn tool_names<'a>(spelled: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let plain: Vec<String> = spelled.clone().map(plain_name).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *counts.entry(name).or_default() += 1;
    }
    let named = plain.iter().zip(spelled).map(|(name, spelled)| {
        let alone = counts.get(name.as_str()) == Some(&1);
        if alone && name.len() <= MAX_NAME { name.clone() } else { mark_name(name, spelled) }
    });
    named.collect()
}

fn plain_name(spelled: &str) -> String {
    let (interface, function) = spelled.rsplit_once('#').unwrap_or(("", spelled));
    let interface = interface.split('@').next().unwrap_or_default();
    let whole =
        if interface.is_empty() { function.to_owned() } else { format!("{interface}_{function}") };
    let legal = whole.chars().map(|c| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9') => c,
        _ => '_',
    });
    let legal: String = legal.collect();
    // WIT demands that a name begins with a letter; other sources of names do not.
    if legal.starts_with(|c: char| c.is_ascii_lowercase()) { legal } else { format!("f_{legal}") }
}

fn mark_name(name: &str, spelled: &str) -> String {
    let digest = Sha256::digest(spelled.as_bytes());
    let digits: String = digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    let room = MAX_NAME - DIGITS - 1;
    // The name is ASCII, so it can be cut at any byte.
    let head = name.get(..name.len().min(room)).unwrap_or_default();
    format!("{head}_{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_bounded_and_told_apart() {
        let long = format!("a:b/{}#run", "c".repeat(200));
        let spelled = [
            "docs:adder/ops@0.1.0#add-two",
            "run",
            "a:b-c/d#e",
            "a:b/c-d#e",
            "x:y/z@1.0.0#HTTP-get",
            &long,
        ];
        let tools = tool_names(spelled.iter().copied());
        assert_eq!(tools[0], "docs_adder_ops_add_two");
        assert_eq!((tools[1].as_str(), tools[4].as_str()), ("run", "x_y_z_http_get"));
        assert!(tools[2].starts_with("a_b_c_d_e_") && tools[3].starts_with("a_b_c_d_e_"));
        assert_ne!(tools[2], tools[3]);
        for tool in &tools {
            assert!(tool.len() <= MAX_NAME && tool.as_bytes()[0].is_ascii_lowercase(), "{tool}");
            let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            assert!(tool.bytes().all(legal), "{tool}");
        }
        assert_eq!(tools, super::tool_names(spelled.iter().copied()), "the same each time");
        assert!(refusal_reason("[method]a.b").is_some() && refusal_reason("a").is_none());
    }

    #[test]
    fn two_versions_of_one_interface_are_two_tools() {
        let tools = tool_names(["a:b/c@1.0.0#f", "a:b/c@2.0.0#f"].into_iter());
        assert_ne!(tools[0], tools[1]);
    }
}
