//! Finds usable models: keys in the environment, and local servers with their lists. A server's answer is a
//! stranger's: its time, bytes and names are bounded, and only valid names are shown or written.

use std::time::Duration;

use belljar_policy::ShownText;
use reqwest::Url;
use serde_json::Value;

use crate::setup::exit::Failure;
use crate::setup::host::small_runtime;

/// The time limit for a server's whole answer. A local server needs milliseconds, or seconds to list files; a
/// silent one is probably no model server.
const PATIENCE: Duration = Duration::from_secs(3);

/// Most bytes of an answer. A server with hundreds of models needs a tenth of this.
const MAX_REPLY: usize = 1 << 20;

/// Most models of one server that a person is offered, because a longer list is hard to read.
const MAX_MODELS: usize = 20;

/// Most bytes of a model's name. The longest ones in use are paths of files.
const MAX_NAME: usize = 200;

/// Plausible context sizes in tokens; any other number in an answer is ignored.
const CONTEXT: std::ops::RangeInclusive<u64> = 512..=100_000_000;

/// Model servers with their usual ports on this machine.
pub(super) const SERVERS: [(&str, &str, u16); 4] = [
    ("ollama", "Ollama", 11_434),
    ("llama-cpp", "llama.cpp", 8_080),
    ("lm-studio", "LM Studio", 1_234),
    ("vllm", "vLLM", 8_000),
];

/// A provider whose models are used with a key in the environment.
pub(super) struct KeyProvider {
    pub(super) section: &'static str,
    pub(super) key_env: &'static str,
    kind: &'static str,
    base_url: Option<&'static str>,
    /// The model that is written for this provider, until the person chooses another.
    model: &'static str,
}

/// The providers that are looked for in the environment, the preferred one first.
pub(super) const PROVIDERS: [KeyProvider; 3] = [
    KeyProvider {
        section: "anthropic",
        key_env: "ANTHROPIC_API_KEY",
        kind: "anthropic",
        base_url: None,
        model: "claude-sonnet-4-5",
    },
    KeyProvider {
        section: "openai",
        key_env: "OPENAI_API_KEY",
        kind: "openai",
        base_url: None,
        model: "gpt-5",
    },
    KeyProvider {
        section: "openrouter",
        key_env: "OPENROUTER_API_KEY",
        kind: "openai",
        base_url: Some("https://openrouter.ai/api/v1"),
        model: "openrouter/auto",
    },
];

/// A usable model, in the form of a section of `belljar.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelCandidate {
    pub(super) section: String,
    pub(super) kind: &'static str,
    pub(super) base_url: Option<String>,
    pub(super) model: String,
    pub(super) key_env: Option<&'static str>,
    pub(super) context_tokens: Option<u64>,
}

/// The found models, the preferred one first, and notes about servers that gave another answer.
#[derive(Debug, Default)]
pub(super) struct FoundModels {
    pub(super) candidates: Vec<ModelCandidate>,
    pub(super) complaints: Vec<String>,
}

impl ModelCandidate {
    /// The place of the model in words, for example the server's address.
    pub(super) fn format_place(&self) -> String {
        match (self.key_env, &self.base_url) {
            (Some(key), _) => format!("with the key in {key}"),
            (None, Some(url)) => format!("at {url}"),
            (None, None) => String::new(),
        }
    }
}

/// Finds models by keys in the environment and by asking these servers; without `servers`, the usual ones of
/// this machine. `env` returns whether a variable is set.
pub(super) fn find_models(
    servers: &[Url],
    env: &dyn Fn(&str) -> bool,
) -> Result<FoundModels, Failure> {
    let mut found = FoundModels::default();
    let asked: Vec<(String, Url)> = if servers.is_empty() {
        found.candidates = with_keys(env);
        let usual = SERVERS.iter().map(|(section, _, port)| {
            let url = Url::parse(&format!("http://127.0.0.1:{port}/v1"));
            Some(((*section).to_owned(), url.ok()?))
        });
        usual.flatten().collect()
    } else {
        servers.iter().map(|url| ("local".to_owned(), url.clone())).collect()
    };
    let answers = small_runtime()?.block_on(ask_all(&asked));
    for ((section, url), answer) in asked.iter().zip(answers) {
        match answer {
            Ok(models) => {
                let candidate = |(model, context_tokens)| ModelCandidate {
                    section: section.clone(),
                    kind: "openai",
                    base_url: Some(url.to_string()),
                    model,
                    key_env: None,
                    context_tokens,
                };
                found.candidates.extend(models.into_iter().map(candidate));
            }
            // No server listens there; for a usual port this is not reported.
            Err(ServerSilence::Absent(_)) if servers.is_empty() => {}
            Err(ServerSilence::Absent(why) | ServerSilence::Unfit(why)) => {
                found.complaints.push(format!("no model at {url}: {why}"));
            }
        }
    }
    Ok(found)
}

/// The models of providers whose keys are set. No request is made, and no key is read.
fn with_keys(env: &dyn Fn(&str) -> bool) -> Vec<ModelCandidate> {
    let present = PROVIDERS.iter().filter(|provider| env(provider.key_env));
    present
        .map(|provider| ModelCandidate {
            section: provider.section.to_owned(),
            kind: provider.kind,
            base_url: provider.base_url.map(str::to_owned),
            model: provider.model.to_owned(),
            key_env: Some(provider.key_env),
            context_tokens: None,
        })
        .collect()
}

/// Parses the base address of a model server, as a person writes it: with `/v1` or without.
pub(super) fn base_url(text: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| {
        Failure::usage(format!(
            "`{}` is not the address of a server: {why}",
            ShownText::clip_line(text, 200)
        ))
        .with_hint("write `--model-at http://127.0.0.1:8080`")
    };
    let mut url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("it does not begin with `http://` or `https://`"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("a key does not belong in it"));
    }
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    let versioned = path.ends_with("/v1");
    url.set_path(&if versioned { path } else { format!("{path}/v1") });
    Ok(url)
}

/// The reason why a server offers no models.
enum ServerSilence {
    /// There is no server.
    Absent(String),
    /// A server without models, or with an answer that is no list of models.
    Unfit(String),
}

type Models = Vec<(String, Option<u64>)>;

/// Asks all servers at the same time, each with the time limit [`PATIENCE`].
async fn ask_all(servers: &[(String, Url)]) -> Vec<Result<Models, ServerSilence>> {
    let mut asked = tokio::task::JoinSet::new();
    for (at, (_, url)) in servers.iter().enumerate() {
        let url = url.clone();
        asked.spawn(async move {
            let answer = tokio::time::timeout(PATIENCE, ask_server(&url)).await;
            let late = || format!("no whole answer within {} seconds", PATIENCE.as_secs());
            (at, answer.unwrap_or_else(|_| Err(ServerSilence::Unfit(late()))))
        });
    }
    let mut answers: Vec<_> = asked.join_all().await;
    answers.sort_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Asks one server for its list of models.
async fn ask_server(base: &Url) -> Result<Models, ServerSilence> {
    let unfit = |why: &str| ServerSilence::Unfit(ShownText::clip_line(why, 200).to_string());
    let client = belljar_model::http_client(base.scheme() == "https")
        .map_err(|error| unfit(&error.to_string()))?;
    let mut list = base.clone();
    list.set_path(&format!("{}/models", base.path()));
    let mut response = match client.get(list).send().await {
        Ok(response) => response,
        Err(error) if error.is_connect() => {
            return Err(ServerSilence::Absent("nothing answers there".to_owned()));
        }
        Err(_) => return Err(unfit("what answers there does not speak HTTP")),
    };
    match response.status().as_u16() {
        200 => {}
        401 | 403 => {
            return Err(unfit("it wants a key; write the section by hand, with `key_env`"));
        }
        status => return Err(unfit(&format!("it answers with status {status}"))),
    }
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len().saturating_add(chunk.len()) <= MAX_REPLY => {
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => return Err(unfit("its answer has no end")),
            Ok(None) => break,
            Err(_) => return Err(unfit("its answer breaks off")),
        }
    }
    parse_models(&body).ok_or_else(|| unfit("its answer is not a list of models"))
}

/// Parses a server's list of models; `None` = it is no list with at least one usable name.
fn parse_models(body: &[u8]) -> Option<Models> {
    let answer: Value = belljar_received::json::from_slice(body).ok()?;
    let listed = answer.get("data")?.as_array()?.iter();
    let model = |entry: &Value| {
        let name = entry.get("id")?.as_str()?;
        let context = entry.get("max_model_len").and_then(Value::as_u64);
        is_fit(name).then(|| (name.to_owned(), context.filter(|n| CONTEXT.contains(n))))
    };
    let models: Models = listed.filter_map(model).take(MAX_MODELS).collect();
    (!models.is_empty()).then_some(models)
}

/// Returns whether a name may be offered: printable, of limited length, and of a model that can answer in
/// text.
fn is_fit(name: &str) -> bool {
    let printable = name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let embeds = name.to_ascii_lowercase().contains("embed");
    printable && !embeds && !name.is_empty() && name.len() <= MAX_NAME && name.trim() == name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(body: &str) -> Option<Vec<String>> {
        Some(parse_models(body.as_bytes())?.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn a_list_of_models_is_read_and_what_does_not_fit_is_passed_over() {
        let body = r#"{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"},
            {"id":"a\u001b[31mred"},{"id":"\u202etxt"},{"id":" "},{"id":7},{"name":"x"},
            {"id":"/models/my model.gguf"}]}"#;
        assert_eq!(names(body).unwrap(), ["qwen3:8b", "/models/my model.gguf"]);
        for body in
            ["", "[]", "{}", r#"{"data":{}}"#, r#"{"data":[]}"#, r#"{"data":[{"id":"\n"}]}"#]
        {
            assert_eq!(names(body), None, "{body}");
        }
        let long = format!(r#"{{"data":[{{"id":"{}"}}]}}"#, "a".repeat(MAX_NAME + 1));
        assert_eq!(names(&long), None);
        let many = r#"{"id":"a"},"#.repeat(500);
        let many = format!(r#"{{"data":[{}]}}"#, many.trim_end_matches(','));
        assert_eq!(names(&many).unwrap().len(), MAX_MODELS);
    }

    #[test]
    fn a_context_is_taken_over_where_it_can_be_one() {
        let context = |n: &str| {
            let body = format!(r#"{{"data":[{{"id":"m","max_model_len":{n}}}]}}"#);
            parse_models(body.as_bytes()).unwrap()[0].1
        };
        assert_eq!(context("32768"), Some(32_768));
        for not in ["0", "-1", "1e99", "\"32768\"", "18446744073709551615"] {
            assert_eq!(context(not), None, "{not}");
        }
    }

    #[test]
    fn addresses_get_the_version_and_keep_no_key() {
        assert_eq!(base_url("http://127.0.0.1:8080").unwrap().as_str(), "http://127.0.0.1:8080/v1");
        assert_eq!(base_url("http://h/api/v1/").unwrap().as_str(), "http://h/api/v1");
        for wrong in ["127.0.0.1:8080", "ftp://a", "http://u:p@h", "", "file:///etc"] {
            assert!(base_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_in_the_environment_is_a_candidate_by_its_name() {
        let found = with_keys(&|name| name == "OPENROUTER_API_KEY");
        let [candidate] = &found[..] else { panic!("{found:?}") };
        assert_eq!(candidate.key_env, Some("OPENROUTER_API_KEY"));
        assert_eq!(candidate.base_url.as_deref(), Some("https://openrouter.ai/api/v1"));
    }
}
