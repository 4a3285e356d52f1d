//! Masks paths of the host in everything that leaves the server: each JSON answer, event and message,
//! the metrics, and the name of a file are converted to a [`PublicText`].
//!
//! A [`PublicText`] contains no known path of the host. Only [`PlaceHider`] makes one, and answers,
//! streams and sockets accept nothing else, so an unmasked text cannot be sent. Two kinds of text are
//! not searched: other people's texts, in the fields of [`SAID`], and the bytes of a tool's file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::extract::ws::Utf8Bytes;
use belljar_agent::Host;
use belljar_definition::{KeySetting, Settings};
use belljar_policy::ShownText;
use serde_json::{Map, Value};

/// JSON fields whose texts are sent unchanged, because their authors do not know the host's paths:
/// texts of a person or a model; the text of an agent, which an admin reads and writes back; the
/// arguments of a call, on which a person decides.
const SAID: [&str; 3] = ["text", "body", "arguments"];

/// Returns whether a JSON object is a message that the host composed for a model, from a person's text
/// with notices, frames and other material. Such a text may contain host paths; the person's text alone
/// is in the message of the session.
fn is_put_together(fields: &Map<String, Value>) -> bool {
    fields.get("role").is_some_and(|role| role == "user") && !fields.contains_key("place")
}

/// The fewest characters of a path that is masked. Three, because `/` is in every path and reveals
/// nothing.
const MIN_PLACE: usize = 3;

/// A directory or file of the host that is masked in every answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenPlace {
    /// The absolute path of the directory or file.
    pub path: PathBuf,
    /// The replacement, for example `/workspace`. If it is empty, paths below the directory are shown
    /// relative, for example `agents/scout.md`.
    pub name: String,
}

impl HiddenPlace {
    /// Creates an entry with its replacement.
    pub fn new(path: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self { path: path.into(), name: name.into() }
    }
}

/// A text without hidden places. Only [`PlaceHider`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicText(String);

impl PublicText {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// An event as a message of a WebSocket, without paths of the host. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicEvent(Utf8Bytes);

impl PublicEvent {
    pub(crate) fn into_text(self) -> Utf8Bytes {
        self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The most masked events kept for other watchers of the same session.
const MAX_SHARED: usize = 32;

/// The most bytes of an event that is kept for other watchers.
const MAX_SHARED_BYTES: usize = 16 << 10;

/// Masks a growing list of host paths: opening a tenant adds its paths.
#[derive(Debug, Default)]
pub(crate) struct PlaceHider {
    known: RwLock<Arc<HiddenPlaces>>,
    /// The newest masked events that have several watchers, each with its unmasked text.
    events: Mutex<VecDeque<(Arc<str>, PublicEvent)>>,
}

#[derive(Debug, Default, Clone)]
struct HiddenPlaces {
    /// The paths with their replacements, longest first, so a path is found before its parent directory is.
    places: Vec<(String, String)>,
    /// The shortest of these paths in JSON form, without those below another one: a text that contains
    /// none of them contains no path at all.
    marks: Vec<String>,
}

impl PlaceHider {
    /// Creates a masker for the given paths.
    pub(crate) fn new(places: &[HiddenPlace]) -> Self {
        let outward = Self::default();
        outward.hide_places(places);
        outward
    }

    /// Adds paths to mask.
    pub(crate) fn hide_places(&self, places: &[HiddenPlace]) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = HiddenPlaces::clone(&known);
        for place in places {
            next.add_place(place);
        }
        next.places.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        next.marks = next.find_marks();
        *known = Arc::new(next);
        // Dropped before `events` is locked, because other code takes these two locks in the opposite
        // order.
        drop(known);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Adds the host paths that a tenant's turns can reveal, for example its workspace and home.
    pub(crate) fn hide_of(&self, host: &Host, workspace: &Path) {
        let home = host.home.as_deref();
        let mut places = configured_places(&host.settings, workspace, home);
        places.push(HiddenPlace::new(workspace, "/workspace"));
        places.extend(home.map(|home| HiddenPlace::new(home, "")));
        self.hide_places(&places);
    }

    /// Masks host paths in JSON. Invalid JSON becomes `null`.
    pub(crate) fn hide_in_json(&self, json: String) -> PublicText {
        let known = self.hidden_places();
        if !known.marks.iter().any(|mark| json.contains(mark.as_str())) {
            return PublicText(json);
        }
        let hidden = serde_json::from_str(&json).ok().map(|value| known.hide_in_value(value));
        PublicText(hidden.unwrap_or_default().to_string())
    }

    /// Masks an event for a WebSocket. The result is kept, so it is computed once for all watchers.
    pub(crate) fn hide_in_event(&self, json: &Arc<str>) -> PublicEvent {
        let make = || {
            let text = format!("{{\"type\":\"event\",\"event\":{json}}}");
            PublicEvent(self.hide_in_json(text).into_string().into())
        };
        // Only the caller and the hub hold this text, so there is no other watcher to share the result
        // with.
        if json.len() > MAX_SHARED_BYTES || Arc::strong_count(json) <= 2 {
            return make();
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, event)) = events.iter().rev().find(|(known, _)| Arc::ptr_eq(known, json)) {
            return event.clone();
        }
        let event = make();
        if events.len() >= MAX_SHARED {
            events.pop_front();
        }
        events.push_back((Arc::clone(json), event.clone()));
        event
    }

    /// Masks a text that is not JSON.
    pub(crate) fn hide_in_text(&self, text: &str) -> PublicText {
        PublicText(self.hidden_places().hidden_text(text))
    }

    fn hidden_places(&self) -> Arc<HiddenPlaces> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HiddenPlaces {
    /// Adds a path, and its canonical form, to the list: each as it is, and as it looks when escaped
    /// for display.
    fn add_place(&mut self, place: &HiddenPlace) {
        let found = place.path.canonicalize().ok();
        for path in std::iter::once(&place.path).chain(&found) {
            let text = path.to_string_lossy();
            let text = text.trim_end_matches('/');
            if path.is_absolute() && text.chars().count() >= MIN_PLACE {
                let shown = ShownText::new(text).to_string();
                for text in [text.to_owned(), shown] {
                    if !self.places.iter().any(|(known, _)| *known == text) {
                        self.places.push((text, place.name.clone()));
                    }
                }
            }
        }
    }

    /// The hidden paths that are below no other one, in JSON form.
    fn find_marks(&self) -> Vec<String> {
        let below = |path: &str, above: &str| {
            path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
        };
        let tops = self
            .places
            .iter()
            .filter(|(path, _)| !self.places.iter().any(|(above, _)| below(path, above)));
        tops.map(|(path, _)| Value::from(path.as_str()).to_string().trim_matches('"').to_owned())
            .collect()
    }

    /// Masks every text and key in a JSON value, except the texts in the fields of [`SAID`].
    fn hide_in_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.hidden_text(&text)),
            Value::Array(values) => {
                values.into_iter().map(|value| self.hide_in_value(value)).collect()
            }
            Value::Object(fields) => {
                let composed = is_put_together(&fields);
                let hide = |(key, value): (String, Value)| {
                    let said = value.is_string() && SAID.contains(&key.as_str()) && !composed;
                    (self.hidden_text(&key), if said { value } else { self.hide_in_value(value) })
                };
                Value::Object(fields.into_iter().map(hide).collect::<Map<_, _>>())
            }
            other => other,
        }
    }

    /// Replaces every hidden path in a text.
    fn hidden_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (path, name) in &self.places {
            if text.contains(path.as_str()) {
                text = replace_path(&text, path, name);
            }
        }
        text
    }
}

/// Replaces a path in a text by a name, but only as a whole: `/home/a` is not replaced in `/home/ab`.
fn replace_path(text: &str, path: &str, name: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once(path) {
        let last = before.chars().next_back().or_else(|| out.chars().next_back());
        let mut next = behind.chars();
        let (first, second) = (next.next(), next.next());
        out.push_str(before);
        let begins = !last.is_some_and(|c| is_of_name(c) || c == '.');
        let ends = match first {
            Some('.') => !second.is_some_and(is_of_name),
            Some(c) => !is_of_name(c),
            None => true,
        };
        rest = behind;
        match (begins && ends, name) {
            (false, _) => out.push_str(path),
            (true, "") => match behind.strip_prefix('/') {
                Some(below) => rest = below,
                None => out.push_str("home"),
            },
            (true, name) => out.push_str(name),
        }
    }
    out.push_str(rest);
    out
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// The host paths that appear in settings, for example directories of mounts.
fn configured_places(
    settings: &Settings,
    workspace: &Path,
    home: Option<&Path>,
) -> Vec<HiddenPlace> {
    let keys = settings.models.values().map(|model| &model.key);
    let keys = keys.chain(settings.secrets.values().map(|secret| &secret.value));
    let keys = keys.filter_map(|key| match key {
        KeySetting::File(path) => Some(path),
        KeySetting::None | KeySetting::Env(_) => None,
    });
    let keys = keys.map(|path| {
        let path = home.map_or_else(|| path.clone(), |home| home.join(path));
        HiddenPlace::new(path, "a file of the operator")
    });
    let mounts = settings.possible_mounts(workspace);
    let mounts = mounts.iter().map(|mount| HiddenPlace::new(&mount.host, mount.guest.to_string()));
    keys.chain(mounts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outward() -> PlaceHider {
        PlaceHider::new(&[
            HiddenPlace::new("/srv/data", "data"),
            HiddenPlace::new("/srv/data/tenants/1/home", ""),
            HiddenPlace::new("/srv/data/tenants/1/workspace", "/workspace"),
            HiddenPlace::new("/", "nothing"),
        ])
    }

    fn said(value: &Value) -> Value {
        serde_json::from_str(outward().hide_in_json(value.to_string()).as_str()).unwrap()
    }

    #[test]
    fn a_place_is_called_by_its_name_wherever_it_stands() {
        for (text, expected) in [
            ("`/srv/data/tenants/1/home/agents/x.md` is broken", "`agents/x.md` is broken"),
            ("in /srv/data/tenants/1/home.", "in home."),
            ("workspace:/srv/data/tenants/1/workspace/scout", "workspace:/workspace/scout"),
            ("file:///srv/data/belljar.db", "file://data/belljar.db"),
            ("/srv/data:/srv/data", "data:data"),
            (
                "/srv/database and /x/srv/data and /srv/data.old",
                "/srv/database and /x/srv/data and /srv/data.old",
            ),
        ] {
            assert_eq!(said(&json!([text])), json!([expected]));
            assert_eq!(said(&json!({ "why": { text: 1 } })), json!({ "why": { expected: 1 } }));
        }
    }

    #[test]
    fn what_was_said_and_what_names_no_place_stays_as_it_is() {
        let value = json!({ "text": "see /srv/data/x", "n": 1.5, "other": "/srv", "path": "/v1" });
        assert_eq!(said(&value), value);
        assert_eq!(said(&json!({ "text": ["/srv/data/x"] })), json!({ "text": ["data/x"] }));
        assert_eq!(outward().hide_in_json("/srv/data is no JSON".to_owned()).as_str(), "null");
    }

    #[test]
    fn an_event_is_made_once_for_all_who_watch_and_anew_where_more_is_hidden() {
        let outward = outward();
        let event: Arc<str> = r#"{"path":"/srv/data/x","also":"/opt/y"}"#.into();
        let _watchers = [Arc::clone(&event), Arc::clone(&event)];
        let said = |outward: &PlaceHider| outward.hide_in_event(&event).into_text();
        let first = said(&outward);
        assert_eq!(first.as_str(), r#"{"type":"event","event":{"path":"data/x","also":"/opt/y"}}"#);
        assert_eq!(first.as_ptr(), said(&outward).as_ptr(), "shared");
        outward.hide_places(&[HiddenPlace::new("/opt", "elsewhere")]);
        let next = said(&outward);
        assert!(next.as_str().contains(r#""also":"elsewhere/y""#), "{next}");
        // However many events pass, only [`MAX_SHARED`] of them are kept.
        for number in 0..MAX_SHARED * 2 {
            let event: Arc<str> = format!("{{\"id\":{number}}}").into();
            let _watchers = [Arc::clone(&event), Arc::clone(&event)];
            outward.hide_in_event(&event);
        }
        assert_eq!(outward.events.lock().unwrap().len(), MAX_SHARED);
    }

    #[test]
    fn what_the_host_put_together_for_a_model_is_searched_and_a_persons_words_are_not() {
        let own = json!({ "role": "user", "place": 1, "text": "see /srv/data/x" });
        let sent = json!({ "role": "user", "text": "see /srv/data/x" });
        let answer = json!({ "role": "assistant", "text": "I guess /srv/data/x" });
        let hidden = json!({ "role": "user", "text": "see data/x" });
        assert_eq!(said(&json!([own, sent, answer])), json!([own, hidden, answer]));
    }

    #[test]
    fn what_is_no_json_is_searched_as_it_is() {
        assert_eq!(
            outward().hide_in_text("# /srv/data\n1 /srv/data/x").as_str(),
            "# data\n1 data/x"
        );
    }

    #[test]
    fn a_place_that_json_or_a_screen_escapes_is_found_too() {
        let outward = PlaceHider::new(&[HiddenPlace::new("/srv/a\"b\u{202e}c", "data")]);
        for text in ["/srv/a\"b\u{202e}c/x", "/srv/a\"b\\u{202e}c/x"] {
            assert_eq!(outward.hide_in_json(json!(text).to_string()).as_str(), "\"data/x\"");
        }
    }
}
