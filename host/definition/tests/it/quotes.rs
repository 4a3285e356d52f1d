//! Quotes and brackets that end too early or not at all: the hint names the way out.

use crate::show::agent;

/// The first finding about frontmatter with these lines, in belljar's own form.
fn hint(lines: &str) -> String {
    let said = agent(format!("---\nname: s\nvisibility: user-facing\n{lines}\n---\nbody\n"));
    let hint = said.lines().find_map(|line| line.trim().strip_prefix("hint: "));
    hint.unwrap_or_else(|| panic!("no hint:\n{said}")).to_owned()
}

#[test]
fn a_quote_that_is_not_closed_is_named_by_the_line_on_which_it_opens() {
    let closed = "is not closed: end the value with one";
    assert_eq!(
        hint("description: \"one\nmaxTurns: 3"),
        format!("the `\"` that opens on line 4 {closed}")
    );
    assert_eq!(
        hint("description: it's 'one' d\ntools: ['file_read]"),
        format!("the `'` that opens on line 5 {closed}")
    );
}

#[test]
fn a_quote_within_quotes_and_an_open_list_are_told_apart() {
    assert!(hint("description: 'it's here'").starts_with("write `''` for a `'`"));
    assert!(hint("description: \"half\" of it").starts_with("put the whole value in `'…'`"));
    assert!(hint("description: d\ntools: [file_read").starts_with("close the list, `[a, b]`"));
}
