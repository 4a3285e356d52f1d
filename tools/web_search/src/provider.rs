//! The two search engines: how each is asked and how its answer is read.

use crate::results::Found;
use belljar_guest::ToolError;
use belljar_guest::http::{Url, encode_query};
use serde_json::Value;

const BRAVE: &str = "https://api.search.brave.com";

/// The search engine that the operator chose.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    /// A SearXNG instance with its JSON format switched on.
    Searxng { base: String },
    /// Brave's API, whose key the host joins to the request.
    Brave { base: String },
}

impl Provider {
    /// The provider for the operator's settings.
    pub(crate) fn choose(
        provider: Option<String>,
        url: Option<String>,
    ) -> Result<Provider, ToolError> {
        let base = url.filter(|url| !url.trim().is_empty());
        if let Some(base) = &base {
            Url::parse(base).map_err(|_| setup("`url` is not a URL"))?;
        }
        let base = base.map(|base| base.trim_end_matches('/').to_owned());
        match (provider.as_deref().map(str::trim), base) {
            (Some("searxng"), Some(base)) => Ok(Provider::Searxng { base }),
            (Some("searxng"), None) => Err(setup("`url` is missing, the address of SearXNG")),
            (Some("brave"), base) => {
                Ok(Provider::Brave { base: base.unwrap_or_else(|| BRAVE.to_owned()) })
            }
            (Some(_), _) => Err(setup("`provider` is neither `searxng` nor `brave`")),
            (None, _) => Err(setup("`provider` is missing, `searxng` or `brave`")),
        }
    }

    /// The secret that this provider needs.
    pub(crate) fn secret(&self) -> Option<&'static str> {
        match self {
            Provider::Searxng { .. } => None,
            Provider::Brave { .. } => Some("brave"),
        }
    }

    /// The URL of a query.
    pub(crate) fn request(&self, query: &str, count: usize) -> String {
        match self {
            Provider::Searxng { base } => {
                format!("{base}/search?{}", encode_query(&[("q", query), ("format", "json")]))
            }
            Provider::Brave { base } => {
                let count = count.to_string();
                let query =
                    encode_query(&[("q", query), ("count", &count), ("text_decorations", "false")]);
                format!("{base}/res/v1/web/search?{query}")
            }
        }
    }

    /// Reads an answer. It comes from strangers: what does not fit is passed over.
    pub(crate) fn results(&self, body: &[u8]) -> Result<Vec<Found>, ToolError> {
        let answer: Value = serde_json::from_slice(body)
            .map_err(|_| ToolError::Failed("the search engine's answer is not JSON".to_owned()))?;
        let (list, excerpt) = match self {
            Provider::Searxng { .. } => (answer.get("results"), "content"),
            // Brave leaves `web` out when it found nothing.
            Provider::Brave { .. } => match answer.get("web") {
                Some(web) => (web.get("results"), "description"),
                None if answer.is_object() => return Ok(Vec::new()),
                None => (None, ""),
            },
        };
        let list = list.and_then(Value::as_array).ok_or_else(|| {
            ToolError::Failed("the search engine's answer has no list of results".to_owned())
        })?;
        Ok(list.iter().filter_map(|entry| Found::read(entry, excerpt)).collect())
    }

    /// What an error status means here.
    pub(crate) fn explain(&self, status: u16) -> String {
        match (self, status) {
            (Provider::Searxng { .. }, 403) => {
                "SearXNG answered 403: the operator has to allow `json` under `search.formats`"
                    .to_owned()
            }
            (Provider::Brave { .. }, 401 | 403 | 422) => {
                format!("Brave answered {status}: the operator has to check the secret `brave`")
            }
            (_, 429) => {
                "the search engine allows no more requests for now; try again later".to_owned()
            }
            _ => format!("the search engine answered {status}"),
        }
    }
}

fn setup(what: &str) -> ToolError {
    ToolError::Failed(format!(
        "web search is not set up: {what}; the operator sets it under `[tools.web_search.config]`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(provider: Option<&str>, url: Option<&str>) -> Result<Provider, ToolError> {
        Provider::choose(provider.map(str::to_owned), url.map(str::to_owned))
    }

    #[test]
    fn the_operators_settings_choose_the_provider() {
        let searxng = choose(Some("searxng"), Some("http://localhost:8080/")).unwrap();
        assert_eq!(searxng.request("a b", 3), "http://localhost:8080/search?q=a%20b&format=json");
        let brave = choose(Some("brave"), None).unwrap();
        assert_eq!(
            brave.request("a&b", 3),
            "https://api.search.brave.com/res/v1/web/search?q=a%26b&count=3&text_decorations=false"
        );
        assert_eq!((searxng.secret(), brave.secret()), (None, Some("brave")));
    }

    #[test]
    fn what_the_operator_left_out_is_named() {
        for (provider, url, named) in [
            (None, None, "`provider` is missing"),
            (Some("bing"), None, "neither"),
            (Some("searxng"), None, "`url` is missing"),
            (Some("searxng"), Some("localhost"), "`url` is not a URL"),
        ] {
            let Err(ToolError::Failed(text)) = choose(provider, url) else { panic!("{named}") };
            assert!(text.contains(named) && text.contains("[tools.web_search.config]"), "{text}");
        }
    }

    #[test]
    fn a_hostile_answer_is_an_error_or_passed_over() {
        let searxng = Provider::Searxng { base: String::new() };
        let brave = Provider::Brave { base: String::new() };
        for body in ["", "<html>", "[]", "{\"results\":3}", "{\"web\":{\"results\":{}}}"] {
            assert!(searxng.results(body.as_bytes()).is_err(), "{body}");
        }
        let deep = "[".repeat(100_000);
        assert!(searxng.results(deep.as_bytes()).is_err());
        assert_eq!(brave.results(b"{}").unwrap(), []);
        let odd =
            r#"{"results":[1,null,{"title":"no url"},{"url":7},{"url":"https://a/","title":[]}]}"#;
        let found = searxng.results(odd.as_bytes()).unwrap();
        assert_eq!(found.len(), 1);
    }
}
