//! The table of limits in the documentation matches the limits in the code.

use belljar_policy::LIMITS;

const PAGE: &str = include_str!("../../../docs/security/budgets.md");

#[test]
fn the_page_lists_every_limit_as_the_code_has_it() {
    let mut missing = Vec::new();
    for row in LIMITS {
        let line =
            format!("| `{}` | {} | {} | {} |", row.key, grouped(row.default), row.unit, row.why);
        if !PAGE.lines().any(|found| found == line) {
            missing.push(line);
        }
    }
    assert!(
        missing.is_empty(),
        "host/docs/security/budgets.md should hold these lines:\n{}",
        missing.join("\n")
    );
}

/// Formats 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
