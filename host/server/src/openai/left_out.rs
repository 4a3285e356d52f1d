//! The parts of a request that belljar has no use for, so the answer can name them.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

/// The answer's header that names the ignored parts.
const IGNORED: HeaderName = HeaderName::from_static("x-belljar-ignored");

/// The most names in the header; the number of further ones is stated.
const MAX_NAMES: usize = 24;

/// The most characters of one name, because a caller can invent any parameters.
const MAX_NAME: usize = 60;

/// The ignored parts of one request. INV-491: each is named in the answer.
#[derive(Debug, Default)]
pub(crate) struct IgnoredParts {
    names: Vec<String>,
    more: usize,
    /// The indices, in the request, of the tools that were accepted.
    pub(crate) tools: Vec<usize>,
}

impl IgnoredParts {
    /// Records an ignored part by its name.
    pub(crate) fn add_part(&mut self, name: &str) {
        if self.names.len() < MAX_NAMES {
            self.names.push(header_safe_name(name));
        } else {
            self.more += 1;
        }
    }

    /// Records an ignored part of an unsupported kind, for example `tools[3] (web_search)`.
    pub(crate) fn add_kind(&mut self, name: &str, kind: &str) {
        self.add_part(&format!("{name} ({kind})"));
    }

    /// Adds the header with the ignored parts to an answer.
    pub(crate) fn name_in_header(&self, response: &mut Response) {
        let mut names = self.names.join(", ");
        if self.more > 0 {
            names.push_str(&format!(", and {} more", self.more));
        }
        if let Some(value) = Some(names).filter(|names| !names.is_empty())
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            response.headers_mut().insert(IGNORED, value);
        }
    }

    /// Converts a place among the accepted tools to the place in the request. For example, if `tools[0]` was
    /// ignored, `tools[0].name` becomes `tools[1].name`.
    pub(crate) fn place_of(&self, at: &str) -> String {
        let known = || {
            let (place, rest) = at.strip_prefix("tools[")?.split_once(']')?;
            let place = self.tools.get(place.parse::<usize>().ok()?)?;
            Some(format!("tools[{place}]{rest}"))
        };
        known().unwrap_or_else(|| at.to_owned())
    }
}

/// A caller's name of a parameter, without letters that a header cannot have or that separate names.
fn header_safe_name(name: &str) -> String {
    let as_is = |c: char| c.is_ascii_graphic() && c != ',' && c != '\\' || c == ' ';
    let mut plain = String::new();
    for (n, c) in name.chars().enumerate() {
        if n == MAX_NAME {
            plain.push_str("...");
            break;
        }
        if as_is(c) { plain.push(c) } else { plain.extend(c.escape_unicode()) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn told(left: &IgnoredParts) -> Option<String> {
        let mut response = Response::new(Body::empty());
        left.name_in_header(&mut response);
        Some(response.headers().get(IGNORED)?.to_str().unwrap().to_owned())
    }

    /// INV-491: every ignored part is named, and no name can add a header.
    #[test]
    fn what_is_left_out_is_named_and_a_callers_names_make_no_header_of_their_own() {
        assert_eq!(told(&IgnoredParts::default()), None);
        let mut left = IgnoredParts::default();
        left.add_part("client_metadata");
        left.add_kind("tools[8]", "web_search");
        left.add_part("x\r\nset-cookie: a=b, \u{202e}é");
        let told_of = told(&left).unwrap();
        assert!(told_of.starts_with("client_metadata, tools[8] (web_search), x\\u{d}\\u{a}"));
        assert_eq!(told_of.split(", ").count(), 3, "{told_of}");
        for n in 0..1_000 {
            left.add_part(&format!("{n}{}", "y".repeat(1_000)));
        }
        let told_of = told(&left).unwrap();
        assert!(told_of.len() < 4_000 && told_of.ends_with("and 979 more"), "{told_of}");
    }

    #[test]
    fn a_tool_is_named_by_its_place_in_the_request() {
        let left = IgnoredParts { tools: vec![0, 3], ..IgnoredParts::default() };
        assert_eq!(left.place_of("tools[1].name"), "tools[3].name");
        for other in ["tools", "form", "tools[2].name", "tools[x]", "tools[1"] {
            assert_eq!(left.place_of(other), other);
        }
    }
}
