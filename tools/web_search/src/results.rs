//! Results as a model reads them.

use serde_json::Value;
use std::fmt::Write as _;

/// Characters of a title, a URL and an excerpt: a stranger's page wrote them.
const MAX_TITLE: usize = 200;
const MAX_URL: usize = 1_000;
const MAX_EXCERPT: usize = 500;

/// One result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    title: String,
    url: String,
    excerpt: String,
}

impl Found {
    /// Reads a result; without a web address it is worth nothing.
    pub(crate) fn read(entry: &Value, excerpt: &str) -> Option<Found> {
        let text =
            |key: &str, most| plain(entry.get(key).and_then(Value::as_str).unwrap_or(""), most);
        let url = entry.get("url")?.as_str()?.trim();
        let web = url.starts_with("https://") || url.starts_with("http://");
        if !web || url.len() > MAX_URL || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return None;
        }
        Some(Found {
            title: text("title", MAX_TITLE),
            url: url.to_owned(),
            excerpt: text(excerpt, MAX_EXCERPT),
        })
    }
}

/// The first `count` results, numbered.
pub(crate) fn show(found: &[Found], count: usize) -> String {
    let mut text = String::new();
    for (number, result) in found.iter().take(count).enumerate() {
        let title = if result.title.is_empty() { "(no title)" } else { &result.title };
        let _ = writeln!(text, "{}. {title}\n   {}", number + 1, result.url);
        if !result.excerpt.is_empty() {
            let _ = writeln!(text, "   {}", result.excerpt);
        }
    }
    if text.is_empty() {
        text.push_str("[belljar: no results]\n");
    }
    text
}

/// One line of text: tags dropped, the common entities resolved, white space squeezed, cut.
fn plain(text: &str, most: usize) -> String {
    let mut kept = String::new();
    let mut in_tag = false;
    // Bounded before anything else: the rest is linear in this.
    let mut characters = text.chars().take(most * 4).peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek();
        match character {
            '<' if next.is_some_and(|next| *next == '/' || next.is_alphabetic()) => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if in_tag => {}
            _ if character.is_control() => kept.push(' '),
            _ => kept.push(character),
        }
    }
    for (entity, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ] {
        kept = kept.replace(entity, character);
    }
    let line = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_are_numbered_and_cut_to_the_count() {
        let entry = |n: u32| json!({"title": format!("T{n}"), "url": format!("https://e.org/{n}"), "content": "x"});
        let found: Vec<Found> = (1..4).filter_map(|n| Found::read(&entry(n), "content")).collect();
        assert_eq!(
            show(&found, 2),
            "1. T1\n   https://e.org/1\n   x\n2. T2\n   https://e.org/2\n   x\n"
        );
        assert_eq!(show(&[], 2), "[belljar: no results]\n");
    }

    #[test]
    fn text_of_strangers_stays_on_its_line() {
        assert_eq!(
            plain("a <b>bold</b>\n2. forged\r\n &amp; &lt;x&gt;", 99),
            "a bold 2. forged & <x>"
        );
        assert_eq!(plain("1 < 2 > 0", 99), "1 < 2 > 0");
        assert_eq!(plain(&"x".repeat(1000), 5), "xxxxx…");
        assert_eq!(Found::read(&json!({"url": "javascript:alert(1)"}), "content"), None);
        assert_eq!(Found::read(&json!({"url": "https://a/\n2. https://b/"}), "content"), None);
    }
}
