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
const MAX_DEPTH: usize = 200;

/// Tags open at once in a page that is parsed at all: the parser looks through them at every
/// tag, so that a page of nothing but `<div>` takes the square of its length. Far above
/// [`MAX_DEPTH`], because pages leave tags open that the parser closes.
const MAX_OPEN: usize = 5_000;

/// Converts a page.
pub(crate) fn from_html(html: &str) -> Result<String, ToolError> {
    if open_tags(html) > MAX_OPEN {
        return Err(too_deep());
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    let tree = converter
        .html_to_tree(html)
        .map_err(|error| ToolError::Failed(format!("the page could not be parsed: {error}")))?;
    let mut open = vec![(tree.clone(), 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        open.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
    }
    Ok(squeeze(&converter.tree_to_markdown(&tree)))
}

fn too_deep() -> ToolError {
    ToolError::TooLarge(format!(
        "the page nests more than {MAX_DEPTH} elements and was not converted"
    ))
}

/// The most tags that are open at once, as far as one look without parsing can tell.
fn open_tags(html: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0_usize);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end..]);
            continue;
        }
        let closing = rest.starts_with('/');
        let name = rest[usize::from(closing)..].split(|c: char| !c.is_ascii_alphanumeric()).next();
        match name.unwrap_or_default().to_ascii_lowercase().as_str() {
            "" => {}
            // Their content is not markup: `a<b` in a script opens nothing.
            name @ ("script" | "style") if !closing => {
                let end = format!("</{name}");
                rest = rest.find(&end).map_or("", |end| &rest[end..]);
            }
            name if is_void(name) => {}
            _ if closing => open = open.saturating_sub(1),
            _ => open += 1,
        }
        most = most.max(open);
    }
    most
}

/// Elements without an end, and those that pages leave open because the next closes them.
fn is_void(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link",
        "meta", "option", "p", "param", "script", "source", "style", "tbody", "td", "tfoot", "th",
        "thead", "tr", "track", "wbr",
    ];
    NAMES.binary_search(&name).is_ok()
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
        for (tag, times) in [("<div>", 100_000), ("<div>", 4_000), ("<ul><li>", 900)] {
            assert!(matches!(from_html(&tag.repeat(times)), Err(ToolError::TooLarge(_))), "{tag}");
        }
        assert!(from_html(&"x<div>".repeat(MAX_DEPTH - 10)).is_ok());
    }

    #[test]
    fn a_long_page_is_not_a_deep_one() {
        assert!(from_html(&"<p>a<br>".repeat(6_000)).is_ok());
        assert!(from_html(&"<div><b>a</b></div>".repeat(6_000)).is_ok());
        let script = format!(
            "<p>text<script>{}</script><!-- {} -->",
            "a<b;".repeat(9_000),
            "<i>".repeat(9_000)
        );
        assert!(from_html(&script).unwrap().contains("text"));
    }

    #[test]
    fn the_names_are_sorted_for_the_search() {
        assert!(
            is_void("area") && is_void("wbr") && is_void("p") && is_void("tr") && !is_void("div")
        );
    }
}
