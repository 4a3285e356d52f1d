//! One field of a server's form. Kinds that MCP does not define are refused.

use belljar_policy::ShownText;
use serde_json::{Number, Value};

/// The most bytes of a name, a title or an option.
const MAX_NAME: usize = 200;

/// The most bytes of a description.
const MAX_DESCRIPTION: usize = 1_000;

/// The most bytes of a text answer.
const MAX_TEXT: usize = 4_000;

/// The most options of one field.
const MAX_OPTIONS: usize = 50;

/// Words in the names of fields for secrets, which a person should not type into a server's form.
const SECRETS: [&str; 33] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "mnemonic",
    "seedphrase",
    "recoveryphrase",
    "recoverycode",
    "onetimecode",
    "verificationcode",
    "authcode",
    "otpcode",
    "cvv",
    "cardnumber",
    "creditcard",
    "pincode",
    "securitycode",
    "smscode",
    "mfacode",
    "twofactor",
    "sshkey",
    "bearer",
    "iban",
    "passwort",
    "kennwort",
    "contraseña",
    "motdepasse",
];

/// Words for secrets that count only as whole words: for example, `pin` is also a part of `shipping`.
const SECRET_WORDS: [&str; 9] = ["pin", "otp", "totp", "pwd", "jwt", "cvc", "ssn", "mfa", "2fa"];

/// A field of a form. Its texts are a stranger's.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FormField {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) kind: FieldKind,
    /// The value that is sent if the field is not answered.
    pub(crate) default: Option<Value>,
    pub(crate) is_required: bool,
}

/// The kind of values that a field accepts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldKind {
    Text { least: usize, most: usize, format: Option<TextFormat> },
    Number { whole: bool, least: Option<f64>, most: Option<f64> },
    YesOrNo,
    One(Vec<FieldChoice>),
    Several { of: Vec<FieldChoice>, least: usize, most: usize },
}

/// The format that a text must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

/// An option of a field: the value that is sent, and the text that a person reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldChoice {
    pub(crate) value: String,
    pub(crate) title: String,
}

impl FormField {
    /// Parses a field; `None` if it is of an unknown kind.
    pub(crate) fn from_schema(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        let text = |key: &str, most: usize| match schema.get(key) {
            None => Some(None),
            Some(Value::String(text)) if text.len() <= most => Some(Some(text.clone())),
            Some(_) => None,
        };
        if name.is_empty() || name.len() > MAX_NAME {
            return None;
        }
        let mut field = Self {
            name: name.to_owned(),
            title: text("title", MAX_NAME)?,
            description: text("description", MAX_DESCRIPTION)?,
            kind: FieldKind::from_schema(schema)?,
            default: None,
            is_required,
        };
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            // A default that the field does not accept would be sent although no person chose it.
            field.default = Some(field.kind.accepts_value(default).then(|| default.clone())?);
        }
        Some(field)
    }

    /// The name of the field as a person reads it.
    pub(crate) fn shown_name(&self) -> String {
        let name = ShownText::clip_line(&self.name, 60);
        match &self.title {
            Some(title) => format!("{} (`{name}`)", ShownText::clip_line(title, 80)),
            None => format!("`{name}`"),
        }
    }

    /// Returns whether the field seems to ask for a password, a token or the like (INV-362).
    pub(crate) fn wants_secret(&self) -> bool {
        let counts = matches!(self.kind, FieldKind::Number { .. });
        if !counts && !matches!(self.kind, FieldKind::Text { .. }) {
            return false;
        }
        let texts = [Some(&self.name), self.title.as_ref(), self.description.as_ref()];
        texts.into_iter().flatten().any(|text| says_secret(text, counts))
    }

    /// Returns whether the field accepts free text.
    pub(crate) fn is_of_words(&self) -> bool {
        matches!(self.kind, FieldKind::Text { .. })
    }
}

/// Returns whether a text names a secret. If `counts` is true, the word `token` does not count, because a
/// number of tokens is no secret.
pub(crate) fn says_secret(text: &str, counts: bool) -> bool {
    let plain: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    let plain = plain.to_lowercase();
    let found = |word: &&str| plain.contains(*word) && !(counts && *word == "token");
    SECRETS.iter().any(found)
        || split_words(text).iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
}

/// The words of a text in lower case. For example, `userPin` and `user_pin` both have two words.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut after_small) = (vec![String::new()], false);
    for c in text.chars() {
        if !c.is_alphanumeric() || (after_small && c.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        after_small = c.is_lowercase();
    }
    words
}

impl FieldKind {
    /// Parses the kind of a field with its bounds; `None` if the kind is unknown or the bounds contradict
    /// each other.
    fn from_schema(schema: &Value) -> Option<Self> {
        match schema.get("type")?.as_str()? {
            "string" => {
                if let Some(choices) = parse_choices(schema, "oneOf")? {
                    return Some(Self::One(choices));
                }
                let format = match schema.get("format") {
                    None => None,
                    Some(format) => Some(TextFormat::from_name(format.as_str()?)?),
                };
                let least = read_bound(schema, "minLength")?.unwrap_or_default();
                let most = read_bound(schema, "maxLength")?.unwrap_or(MAX_TEXT).min(MAX_TEXT);
                (least <= most).then_some(Self::Text { least, most, format })
            }
            kind @ ("number" | "integer") => {
                let bound = |key: &str| match schema.get(key) {
                    None => Some(None),
                    Some(bound) => bound.as_f64().map(Some),
                };
                let (least, most) = (bound("minimum")?, bound("maximum")?);
                let fits = least.zip(most).is_none_or(|(least, most)| least <= most);
                fits.then_some(Self::Number { whole: kind == "integer", least, most })
            }
            "boolean" => Some(Self::YesOrNo),
            "array" => {
                let items = schema.get("items")?;
                let of = parse_choices(items, "anyOf")?;
                let of = if of.is_some() { of } else { parse_choices(items, "oneOf")? }?;
                let least = read_bound(schema, "minItems")?.unwrap_or_default();
                let most = read_bound(schema, "maxItems")?.unwrap_or(of.len()).min(of.len());
                (least <= most).then_some(Self::Several { of, least, most })
            }
            _ => None,
        }
    }

    /// Returns whether the field accepts this value.
    pub(crate) fn accepts_value(&self, value: &Value) -> bool {
        let known = |of: &[FieldChoice], value: &Value| {
            value.as_str().is_some_and(|value| of.iter().any(|choice| choice.value == value))
        };
        match self {
            Self::Text { least, most, format } => value.as_str().is_some_and(|text| {
                let length = text.chars().count();
                let fits = format.is_none_or(|format| format.accepts_text(text));
                (*least..=*most).contains(&length) && fits && text.len() <= MAX_TEXT * 4
            }),
            Self::Number { whole, least, most } => value.as_f64().is_some_and(|number| {
                (!whole || value.is_i64() || value.is_u64() || number.fract() == 0.0)
                    && least.is_none_or(|least| number >= least)
                    && most.is_none_or(|most| number <= most)
            }),
            Self::YesOrNo => value.is_boolean(),
            Self::One(of) => known(of, value),
            Self::Several { of, least, most } => value.as_array().is_some_and(|all| {
                let once = all.iter().enumerate().all(|(at, one)| {
                    known(of, one) && !all.iter().take(at).any(|before| before == one)
                });
                once && (*least..=*most).contains(&all.len())
            }),
        }
    }

    /// Parses a person's answer to a value; `None` if the field does not accept it.
    pub(crate) fn value_of(&self, words: &str) -> Option<Value> {
        let word = words.trim();
        let value = match self {
            Self::Text { .. } => Value::from(word),
            Self::Number { whole: true, .. } => Value::from(word.parse::<i64>().ok()?),
            Self::Number { whole: false, .. } => {
                Value::Number(Number::from_f64(word.parse().ok()?)?)
            }
            Self::YesOrNo => match word.to_lowercase().as_str() {
                "yes" | "y" | "true" => Value::Bool(true),
                "no" | "n" | "false" => Value::Bool(false),
                _ => return None,
            },
            Self::One(of) => Value::from(find_choice(of, word)?),
            Self::Several { of, .. } => {
                let words = word.split(',').map(str::trim).filter(|word| !word.is_empty());
                let meant: Option<Vec<&str>> = words.map(|word| find_choice(of, word)).collect();
                Value::from(meant?)
            }
        };
        self.accepts_value(&value).then_some(value)
    }

    /// A text for people about the values that the field accepts.
    pub(crate) fn describe_values(&self) -> String {
        match self {
            Self::Text { least, most, format } => {
                let form = format.map_or("a text", TextFormat::describe_format);
                match (*least, *most) {
                    (0, MAX_TEXT) => form.to_owned(),
                    (least, most) => format!("{form} of {least} to {most} characters"),
                }
            }
            Self::Number { whole, least, most } => {
                let kind = if *whole { "a whole number" } else { "a number" };
                let least = least.map(|least| format!(" from {least}")).unwrap_or_default();
                let most = most.map(|most| format!(" up to {most}")).unwrap_or_default();
                format!("{kind}{least}{most}")
            }
            Self::YesOrNo => "yes or no".to_owned(),
            Self::One(_) => "one of them".to_owned(),
            Self::Several { of, least, most } => {
                let names: Vec<String> = of.iter().map(FieldChoice::shown_title).collect();
                format!("{least} to {most} of these, with commas between: {}", names.join(", "))
            }
        }
    }
}

impl FieldChoice {
    pub(crate) fn shown_title(&self) -> String {
        ShownText::clip_line(&self.title, MAX_NAME).to_string()
    }
}

/// The value of the option that a person has named, by its title or by its value.
fn find_choice<'a>(of: &'a [FieldChoice], word: &str) -> Option<&'a str> {
    let by = |is: &dyn Fn(&FieldChoice) -> bool| of.iter().find(|choice| is(choice));
    let found = by(&|choice| choice.shown_title() == word)
        .or_else(|| by(&|choice| choice.value == word))
        .or_else(|| by(&|choice| choice.title.to_lowercase() == word.to_lowercase()));
    found.map(|choice| choice.value.as_str())
}

/// A bound in the schema: `Some(None)` if there is none, `None` if it is invalid.
#[expect(clippy::option_option, reason = "nothing said, and nonsense, are two things")]
fn read_bound(schema: &Value, key: &str) -> Option<Option<usize>> {
    match schema.get(key) {
        None => Some(None),
        Some(size) => usize::try_from(size.as_u64()?).ok().map(Some),
    }
}

/// The options of a field: plain, with a list of titles, or each with its title. `Some(None)` if the field
/// has no options, `None` if they are malformed.
#[expect(clippy::option_option, reason = "no list, and a wrong one, are two things")]
fn parse_choices(schema: &Value, titled: &str) -> Option<Option<Vec<FieldChoice>>> {
    let choice = |value: &str, title: &str| {
        let fits = value.len() <= MAX_NAME && title.len() <= MAX_NAME;
        fits.then(|| FieldChoice { value: value.to_owned(), title: title.to_owned() })
    };
    let all: Option<Vec<FieldChoice>> = match (schema.get(titled), schema.get("enum")) {
        (None, None) => return Some(None),
        (Some(all), None) => all
            .as_array()?
            .iter()
            .map(|one| choice(one.get("const")?.as_str()?, one.get("title")?.as_str()?))
            .collect(),
        (None, Some(all)) => {
            let names = schema.get("enumNames").and_then(Value::as_array);
            let name = |at: usize| names.and_then(|names| names.get(at)).and_then(Value::as_str);
            let all = all.as_array()?.iter().enumerate();
            all.map(|(at, one)| choice(one.as_str()?, name(at).unwrap_or(one.as_str()?))).collect()
        }
        (Some(_), Some(_)) => return None,
    };
    all.filter(|all| !all.is_empty() && all.len() <= MAX_OPTIONS).map(Some)
}

impl TextFormat {
    /// The format with this name in a schema; `None` if it is unknown.
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            _ => None,
        }
    }

    /// A text for people about the format.
    fn describe_format(self) -> &'static str {
        match self {
            Self::Email => "an address of mail",
            Self::Uri => "an address such as `https://example.com`",
            Self::Date => "a day such as 2026-01-31",
            Self::DateTime => "a time such as 2026-01-31T12:00:00Z",
        }
    }

    /// Returns whether a text has the format.
    fn accepts_text(self, text: &str) -> bool {
        match self {
            Self::Email => text.split_once('@').is_some_and(|(name, host)| {
                let plain = text.chars().all(|c| !c.is_whitespace() && !c.is_control());
                plain && !name.is_empty() && !host.is_empty() && !host.contains('@')
            }),
            Self::Uri => url::Url::parse(text).is_ok(),
            Self::Date => is_date(text),
            Self::DateTime => text
                .split_once(['T', 't'])
                .is_some_and(|(date, time)| is_date(date) && is_time(time)),
        }
    }
}

/// Returns whether a text has the form of `pattern`, in which `0` stands for any digit.
fn is_like(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            like => byte == like,
        })
}

fn is_date(text: &str) -> bool {
    let part = |at: std::ops::Range<usize>| text.get(at).and_then(|part| part.parse::<u8>().ok());
    let within = |part: Option<u8>, most: u8| part.is_some_and(|part| (1..=most).contains(&part));
    is_like(text, "0000-00-00") && within(part(5..7), 12) && within(part(8..10), 31)
}

/// Returns whether a text is a time with a zone, for example `12:00:00Z`.
fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let part = |at: std::ops::Range<usize>| clock.get(at).and_then(|part| part.parse::<u8>().ok());
    let clock_fits = is_like(clock, "00:00:00")
        && part(0..2).is_some_and(|hour| hour < 24)
        && part(3..5).is_some_and(|minute| minute < 60)
        && part(6..8).is_some_and(|second| second <= 60);
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let offset = |zone: &str| is_like(zone, "+00:00") || is_like(zone, "-00:00");
    clock_fits && (zone.eq_ignore_ascii_case("z") || offset(zone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(schema: Value) -> Option<FormField> {
        FormField::from_schema("f", &schema, true)
    }

    #[track_caller]
    fn check(schema: Value, good: &[(&str, Value)], bad: &[&str]) {
        let kind = field(schema.clone()).unwrap_or_else(|| panic!("{schema}")).kind;
        for (words, value) in good {
            assert_eq!(kind.value_of(words).as_ref(), Some(value), "{schema} {words}");
        }
        for words in bad {
            assert_eq!(kind.value_of(words), None, "{schema} {words}");
        }
    }

    #[test]
    fn an_answer_is_taken_where_it_fits_the_field_and_not_otherwise() {
        check(
            json!({"type": "string", "minLength": 2, "maxLength": 3}),
            &[("ab", json!("ab")), (" éé ", json!("éé"))],
            &["a", "abcd", ""],
        );
        check(
            json!({"type": "integer", "minimum": 1, "maximum": 5}),
            &[("5", json!(5))],
            &["0", "6", "1.5", "x", ""],
        );
        check(json!({"type": "number"}), &[("1.5", json!(1.5))], &["NaN", "inf", "1,5"]);
        check(
            json!({"type": "boolean"}),
            &[("Yes", json!(true)), ("no", json!(false))],
            &["1", ""],
        );
        check(
            json!({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]}),
            &[("First", json!("a")), ("b", json!("b")), ("second", json!("b"))],
            &["c", "a,b"],
        );
        let titled = json!([{"const": "a", "title": "A\u{202e}"}, {"const": "b", "title": "B"}]);
        check(
            json!({"type": "string", "oneOf": titled}),
            &[("A\\u{202e}", json!("a")), ("B", json!("b"))],
            &["C"],
        );
        check(
            json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"anyOf": titled}}),
            &[("a, B", json!(["a", "b"])), ("b", json!(["b"]))],
            &["", "a,a", "a,b,a", "c"],
        );
        for (format, good, bad) in [
            ("email", "a@b.test", "a b@c"),
            ("uri", "https://a.test/x", "no address"),
            ("date", "2026-01-31", "2026-13-31"),
            ("date-time", "2026-01-31T12:00:00.5+01:00", "2026-01-31 12:00:00"),
        ] {
            let schema = json!({"type": "string", "format": format});
            check(schema, &[(good, json!(good))], &[bad, ""]);
        }
    }

    #[test]
    fn no_other_kind_of_field_is_known_and_no_default_that_does_not_fit() {
        for wrong in [
            json!({}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "null"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "format": "password"}),
            json!({"type": "string", "minLength": 5, "maxLength": 2}),
            json!({"type": "string", "title": 3}),
            json!({"type": "string", "enum": []}),
            json!({"type": "string", "enum": [1]}),
            json!({"type": "string", "enum": ["a"], "default": "b"}),
            json!({"type": "integer", "default": 1.5}),
            json!({"type": "boolean", "default": "yes"}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"type": "array", "items": {"enum": ["a"]}, "default": ["a", "a"]}),
            json!({"type": "string", "description": "x".repeat(MAX_DESCRIPTION + 1)}),
            json!({"type": "string", "enum": vec!["a"; MAX_OPTIONS + 1]}),
        ] {
            assert_eq!(field(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn a_field_for_a_secret_is_known_by_its_words() {
        let wants = |name: &str, schema: Value| {
            FormField::from_schema(name, &schema, false).unwrap().wants_secret()
        };
        for name in ["password", "API_KEY", "userPin", "access-token", "Pass Phrase", "gh.Token"] {
            assert!(wants(name, json!({"type": "string"})), "{name}");
        }
        assert!(wants("a", json!({"type": "string", "description": "Your pass-word, please"})));
        assert!(wants("a", json!({"type": "string", "title": "One-time code"})));
        assert!(wants("pin", json!({"type": "integer"})));
        assert!(says_secret("Type your SMS code here", false));
        assert!(!says_secret("who are you?", false));
        for (name, schema) in [
            ("max_tokens", json!({"type": "integer"})),
            ("spinner", json!({"type": "string"})),
            ("rotate_token", json!({"type": "boolean"})),
            ("token", json!({"type": "string", "enum": ["a", "b"]})),
        ] {
            assert!(!wants(name, schema.clone()), "{name} {schema}");
        }
    }
}
