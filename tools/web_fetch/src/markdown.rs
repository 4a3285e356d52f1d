//! Readable markdown from HTML.

use belljar_guest::ToolError;
use htmd::HtmlToMarkdown;

/// What a reader of the text does not miss.
const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "head", "nav", "footer", "aside", "form", "button",
    "iframe", "svg", "canvas", "object", "video", "audio", "dialog",
];

/// Elements within elements. Real pages stay far below a hundred; the converter is recursive,
/// and a page made to overflow its stack would cost the whole store.
const MAX_DEPTH: usize = 500;

/// Converts a page.
pub(crate) fn from_html(html: &str) -> Result<String, ToolError> {
    if depth(html) > MAX_DEPTH {
        return Err(ToolError::TooLarge(format!(
            "the page nests more than {MAX_DEPTH} elements and was not converted"
        )));
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    let markdown = converter
        .convert(html)
        .map_err(|error| ToolError::Failed(format!("the page could not be converted: {error}")))?;
    Ok(squeeze(&markdown))
}

/// An upper bound of how deep elements nest: every opening tag that is not void and not yet
/// closed counts, including those that a parser would close by itself.
fn depth(html: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0_usize);
    for (at, _) in html.match_indices('<') {
        let rest = &html[at + 1..];
        let name_at = usize::from(rest.starts_with('/'));
        let name = rest[name_at..].split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
        if name.is_empty() || closes_itself(name) {
            continue;
        }
        open = if name_at == 1 { open.saturating_sub(1) } else { open + 1 };
        deepest = deepest.max(open);
    }
    deepest
}

/// Void elements, and those that pages leave open because the next one closes them.
fn closes_itself(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param",
        "source", "track", "wbr", "p", "li", "dt", "dd", "tr", "td", "th", "option", "thead",
        "tbody", "tfoot", "colgroup", "path",
    ];
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// At most one empty line in a row, no trailing white space.
fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    let mut empty = true;
    for line in text.lines().map(str::trim_end) {
        if !(line.is_empty() && empty) {
            squeezed.push_str(line);
            squeezed.push('\n');
        }
        empty = line.is_empty();
    }
    squeezed.truncate(squeezed.trim_end().len());
    squeezed.push('\n');
    squeezed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_readable_markdown() {
        let page = "<!DOCTYPE html><html><head><title>T</title><style>p{}</style></head><body>\
            <nav><a href=/x>menu</a></nav><script>alert(1)</script>\
            <h1>Bells</h1><p>A <b>jar</b> and a <a href=\"/y\">link</a>.</p>\
            <ul><li>one<li>two</ul><pre><code>let x = 1;\n</code></pre></body></html>";
        let text = from_html(page).unwrap();
        for part in ["# Bells", "A **jar** and a [link](/y).", "one", "two", "let x = 1;"] {
            assert!(text.contains(part), "{part} not in {text}");
        }
        for part in ["alert", "p{}", "menu"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_page_made_to_overflow_the_stack_is_refused() {
        let bomb = "<div>".repeat(100_000);
        assert!(matches!(from_html(&bomb), Err(ToolError::TooLarge(_))));
        // Many elements side by side are an ordinary long page.
        assert!(from_html(&"<p>a<br>".repeat(5_000)).is_ok());
        assert!(from_html(&"<div><b>a</b></div>".repeat(5_000)).is_ok());
    }
}
