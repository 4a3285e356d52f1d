//! A form as questions to a person: whether to answer, each field, and whether to send. INV-361: every
//! question names the asking server, in escaped and bounded text.

use belljar_policy::Shown;
use serde_json::{Map, Value, json};

use super::address::Address;
use super::field::{Field, Kind};
use super::form::Form;
use super::respondent::Respondent;
use super::{Heard, ServerQuestion};

/// How often a field is asked about.
const MAX_TRIES: usize = 3;

/// Characters of a server's message in a question.
const MAX_MESSAGE: usize = 600;

/// Characters of all fields in the first question.
const MAX_LISTED: usize = 800;

/// Most characters of a suggestion in the list of fields.
const MAX_VALUE: usize = 80;

/// Characters of a question that every door shows whole.
const MAX_WHOLE: usize = 400;

/// Characters of a description.
const MAX_DESCRIPTION: usize = 300;

const FILL: &str = "Answer it";
const LEAVE: &str = "Take the values that it suggests";
const OPEN: &str = "I will open it";
const ACCEPT: &str = "Yes";
const NEXT: &str = "Show me the rest";
const SEND: &str = "Send it";
const DECLINE: &str = "Decline";
const MUTE: &str = "Decline, and ask me nothing more for it in this run";

/// The person's answer to a form, in the protocol's terms.
#[derive(Debug, PartialEq)]
pub(super) enum Word {
    /// Yes; with the content of a form.
    Accepted(Option<Map<String, Value>>),
    /// The person refused.
    Declined,
    /// The person closed the question, or no person is present.
    Cancelled,
}

impl Word {
    /// The result that the server gets.
    pub(super) fn result(self) -> Value {
        match self {
            Self::Accepted(Some(content)) => json!({"action": "accept", "content": content}),
            Self::Accepted(None) => json!({"action": "accept"}),
            Self::Declined => json!({"action": "decline"}),
            Self::Cancelled => json!({"action": "cancel"}),
        }
    }

    /// The answer's name for a log.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accepted",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Asks the person to fill in a form of this server.
pub(super) async fn fill(form: &Form, server: &str, person: &Respondent<'_>) -> Word {
    match filled(form, server, person).await {
        Ok(content) => Word::Accepted(Some(content)),
        Err(word) => word,
    }
}

async fn filled(
    form: &Form,
    server: &str,
    person: &Respondent<'_>,
) -> Result<Map<String, Value>, Word> {
    let fields: Vec<String> = form.fields.iter().map(listed).collect();
    let wanted = match fields.is_empty() {
        true => String::new(),
        false => {
            let fields = fields.join("; ");
            format!(" It wants to know: {}.", Shown::clipped(&fields, MAX_LISTED))
        }
    };
    let text = format!(
        "the MCP server `{server}` asks you (it is not belljar, and not your agent). Your answers go to \
         that server: no password, token or other secret.{wanted}"
    );
    let shown = shows_all(form, &text);
    let text = format!("{text} It says: {}", Shown::clipped(&form.message, MAX_MESSAGE));
    let mut options = match (fields.is_empty(), shown && form.can_be_left()) {
        (true, _) => vec![ACCEPT],
        (false, true) => vec![FILL, LEAVE],
        (false, false) => vec![FILL],
    };
    options.extend([DECLINE, MUTE]);
    if heard(person, server, (&text, &text), &options).await? != FILL {
        return form.content(Map::new()).ok_or(Word::Cancelled);
    }
    let mut said = Map::new();
    for field in &form.fields {
        if let Some(value) = asked(field, server, person).await? {
            said.insert(field.name.clone(), value);
        }
    }
    let content = form.content(said).ok_or(Word::Cancelled)?;
    // A person who has not read every piece sends nothing.
    let pieces = pieces(&content, server).ok_or(Word::Declined)?;
    let noted = format!("{}what you have said", goes_to(server));
    for (at, piece) in (1..).zip(&pieces) {
        let go_on = if at == pieces.len() { SEND } else { NEXT };
        heard(person, server, (piece, &noted), &[go_on, DECLINE]).await?;
    }
    Ok(content)
}

fn is_shown_whole(field: &Field, value: &Value, server: &str) -> bool {
    pieces(&Map::from_iter([(field.name.clone(), value.clone())]), server).is_some()
}

fn goes_to(server: &str) -> String {
    format!("this goes to the MCP server `{server}`: ")
}

/// The whole content for review, in questions that every door shows whole; `None` = a value is too long for a
/// question.
fn pieces(content: &Map<String, Value>, server: &str) -> Option<Vec<String>> {
    let begin = goes_to(server);
    let mut pieces = vec![begin.clone()];
    for (name, value) in content {
        let shown = format!("`{name}` = {value}; ");
        let shown = Shown::new(&shown).to_string();
        let fits = |piece: &str| piece.chars().count() + shown.chars().count() <= MAX_WHOLE;
        match pieces.last_mut() {
            Some(piece) if fits(piece) => piece.push_str(&shown),
            _ if fits(&begin) => pieces.push(format!("{begin}{shown}")),
            _ => return None,
        }
    }
    Some(pieces)
}

/// Shows the person an address that the server wants opened. Opens nothing.
pub(super) async fn show(address: &Address, server: &str, person: &Respondent<'_>) -> Word {
    let text = format!(
        "the MCP server `{server}` asks you (it is not belljar, and not your agent) to open an address \
         of the host `{}` in a browser; belljar opens nothing. Only do so if you know that host. The \
         address: {} It says: {}",
        address.host,
        Shown::new(&address.url),
        Shown::clipped(&address.message, MAX_MESSAGE)
    );
    match heard(person, server, (&text, &text), &[OPEN, DECLINE, MUTE]).await {
        Ok(_) => Word::Accepted(None),
        Err(word) => word,
    }
}

/// Asks a question, and returns the option by which the person goes on; any other answer is invalid.
/// `Question` has the text for the person and the note for the log.
async fn heard<'o>(
    person: &Respondent<'_>,
    server: &str,
    (text, noted): (&str, &str),
    options: &[&'o str],
) -> Result<&'o str, Word> {
    let offered: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    let words = match person.question(&ServerQuestion { text, noted, options: &offered }).await {
        Heard::Words(words) => words.trim().to_lowercase(),
        Heard::No => return Err(Word::Declined),
        Heard::Blank | Heard::Nobody | Heard::Closed => return Err(Word::Cancelled),
    };
    match options.iter().find(|option| option.to_lowercase() == words).copied() {
        Some(MUTE) => {
            person.mute(server).await;
            Err(Word::Declined)
        }
        Some(DECLINE) => Err(Word::Declined),
        Some(chosen) => Ok(chosen),
        None => Err(Word::Cancelled),
    }
}

/// A value for a field; no value for a skipped field; or the answer to the whole form if the person ended it.
async fn asked(
    field: &Field,
    server: &str,
    person: &Respondent<'_>,
) -> Result<Option<Value>, Word> {
    let options = match &field.kind {
        Kind::YesOrNo => vec!["yes".to_owned(), "no".to_owned()],
        Kind::One(of) => of.iter().map(super::field::Choice::shown).collect(),
        Kind::Text { .. } | Kind::Number { .. } | Kind::Several { .. } => Vec::new(),
    };
    let whose = format!("for the MCP server `{server}`: ");
    let noted = format!("{whose}{}", wanted(field));
    let mut text = noted.clone();
    for _ in 0..MAX_TRIES {
        match person
            .question(&ServerQuestion { text: &text, noted: &noted, options: &options })
            .await
        {
            Heard::Words(words) => match field.kind.value_of(&words) {
                Some(value) if is_shown_whole(field, &value, server) => return Ok(Some(value)),
                Some(_) => {
                    let wanted = wanted(field);
                    text = format!("{whose}that is too long to be shown whole once more. {wanted}");
                }
                None => {
                    let words = Shown::clipped(&words, 40).to_string();
                    text = format!("{whose}`{words}` does not fit. {}", wanted(field));
                }
            },
            Heard::Blank if field.default.is_some() || !field.is_required => return Ok(None),
            Heard::No => return Err(Word::Declined),
            Heard::Blank | Heard::Nobody | Heard::Closed => return Err(Word::Cancelled),
        }
    }
    Err(Word::Cancelled)
}

fn wanted(field: &Field) -> String {
    let description = field
        .description
        .as_deref()
        .map(|text| format!(": {}", Shown::clipped(text, MAX_DESCRIPTION)));
    let blank = match (&field.default, field.is_required) {
        (Some(default), _) => format!("; nothing = {}", value(default)),
        (None, false) => "; nothing = it is left out".to_owned(),
        (None, true) => String::new(),
    };
    let description = description.unwrap_or_default();
    format!("{}{description} ({}{blank})", field.shown(), field.kind.words())
}

/// Returns whether the first question shows every suggestion whole, at every door. A person has not seen a
/// cut suggestion, so a single yes must not send it.
fn shows_all(form: &Form, text: &str) -> bool {
    let whole = |default: &Value| default.to_string().chars().count() <= MAX_VALUE;
    let mut defaults = form.fields.iter().filter_map(|field| field.default.as_ref());
    text.chars().count() <= MAX_WHOLE && defaults.all(whole)
}

fn listed(field: &Field) -> String {
    match &field.default {
        Some(default) => format!("{} (it suggests {})", field.shown(), value(default)),
        None => field.shown(),
    }
}

fn value(value: &Value) -> String {
    Shown::clipped(&value.to_string(), MAX_VALUE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demands::form::Elicitation;
    use crate::demands::{Answers, Sample, Sampled, SamplingGrant};
    use std::sync::Mutex;

    /// No answer, said outright.
    const NO: &str = "(no)";

    /// A person with these answers, one after the other, who then is gone.
    #[derive(Default)]
    struct Person {
        says: Mutex<Vec<&'static str>>,
        read: Mutex<Vec<(String, Vec<String>)>>,
        noted: Mutex<Vec<String>>,
        muted: Mutex<bool>,
    }

    #[async_trait::async_trait]
    impl Answers for Person {
        async fn question(&self, asked: &ServerQuestion<'_>) -> Heard {
            self.read.lock().unwrap().push((asked.text.to_owned(), asked.options.to_vec()));
            self.noted.lock().unwrap().push(asked.noted.to_owned());
            let mut says = self.says.lock().unwrap();
            match says.is_empty() {
                true => Heard::Nobody,
                false => match says.remove(0) {
                    "" => Heard::Blank,
                    NO => Heard::No,
                    words => Heard::Words(words.to_owned()),
                },
            }
        }

        async fn sample(&self, _: &str, _: &SamplingGrant, _: &Sample) -> Result<Sampled, String> {
            Err("no model".to_owned())
        }

        fn is_muted(&self, _: &str) -> bool {
            *self.muted.lock().unwrap()
        }

        async fn mute(&self, _: &str) {
            *self.muted.lock().unwrap() = true;
        }

        fn is_given_up(&self, _: &str) -> bool {
            false
        }

        fn waited(&self, _: &str, _: bool) {}
    }

    fn form() -> Form {
        let params = json!({"message": "who\u{1b}[2J\u{202e}?", "requestedSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "title": "Name\u{200b}", "default": "Jo"},
                "b": {"type": "integer", "minimum": 1, "description": "how many"},
                "c": {"type": "string", "enum": ["x", "y"], "default": "y"},
            },
            "required": ["a"],
        }});
        match Elicitation::read(&params) {
            Ok(Elicitation::Form(form)) => form,
            other => panic!("{other:?}"),
        }
    }

    async fn said(says: &[&'static str]) -> (Word, Person) {
        let person = Person { says: Mutex::new(says.to_vec()), ..Person::default() };
        (fill(&form(), "s", &Respondent::of(&person)).await, person)
    }

    #[tokio::test]
    async fn a_form_is_filled_in_question_by_question_and_sent_at_a_last_yes() {
        let content = |value: Value| Word::Accepted(value.as_object().cloned());
        let (word, person) = said(&[FILL, "Ann", "0", "3", "X", SEND]).await;
        assert_eq!(word, content(json!({"a": "Ann", "b": 3, "c": "x"})));
        let read = person.read.lock().unwrap().clone();
        assert_eq!(read.len(), 6);
        assert!(read.iter().all(|(text, _)| !text.chars().any(Shown::hides)), "{read:?}");
        assert!(read[0].0.contains("the MCP server `s` asks you"), "{read:?}");
        assert!(read[0].0.contains("no password"), "{read:?}");
        assert!(read[3].0.contains("`0` does not fit"), "{read:?}");
        assert!(read[5].0.contains("`a` = \"Ann\""), "{read:?}");
        let (word, _) = said(&[LEAVE]).await;
        assert_eq!(word, content(json!({"a": "Jo", "c": "y"})));
        let (word, _) = said(&[FILL, "", "", "", SEND]).await;
        assert_eq!(word, content(json!({"a": "Jo", "c": "y"})));
    }

    #[tokio::test]
    async fn nothing_that_a_person_says_is_in_what_is_noted_of_the_questions() {
        let (word, person) = said(&[FILL, "Ann of Cleves", "fourth", "4711", "x", SEND]).await;
        assert!(matches!(word, Word::Accepted(Some(_))), "{word:?}");
        let (read, noted) =
            (person.read.lock().unwrap().clone(), person.noted.lock().unwrap().clone());
        assert_eq!(read.len(), noted.len());
        for word in ["Ann", "fourth", "4711"] {
            assert!(read.iter().any(|(text, _)| text.contains(word)), "{word} is shown: {read:?}");
            assert!(!noted.iter().any(|text| text.contains(word)), "{word}: {noted:?}");
        }
        assert!(noted.iter().all(|text| text.contains("MCP server `s`")), "{noted:?}");
    }

    #[tokio::test]
    async fn a_no_is_told_apart_from_nobody_and_neither_sends_anything() {
        for (says, expected) in [
            (&[DECLINE][..], Word::Declined),
            (&[NO][..], Word::Declined),
            (&[""][..], Word::Cancelled),
            (&[][..], Word::Cancelled),
            (&["yes please"][..], Word::Cancelled),
            (&[FILL, "Ann", "3", "x"][..], Word::Cancelled),
            (&[FILL, "Ann", "3", "x", ""][..], Word::Cancelled),
            (&[FILL, NO, "3", "x", SEND][..], Word::Declined),
            (&[FILL, "Ann", "3", "x", DECLINE][..], Word::Declined),
            (&[FILL, "Ann", "0", "0", "0"][..], Word::Cancelled),
        ] {
            let (word, _) = said(says).await;
            assert_eq!(word, expected, "{says:?}");
        }
        let (word, person) = said(&[MUTE]).await;
        assert_eq!((word, person.is_muted("s")), (Word::Declined, true));
        assert_eq!(Word::Declined.result(), json!({"action": "decline"}));
        assert_eq!(Word::Cancelled.result(), json!({"action": "cancel"}));
    }

    #[tokio::test]
    async fn whoever_does_not_come_to_a_question_is_asked_no_other_in_that_call() {
        let person = Person { says: Mutex::new(vec![FILL]), ..Person::default() };
        let present = Respondent::of(&person);
        assert_eq!(fill(&form(), "s", &present).await, Word::Cancelled);
        assert_eq!(person.read.lock().unwrap().len(), 2, "the form ends where nobody came");
        person.says.lock().unwrap().push(FILL);
        assert_eq!(fill(&form(), "s", &present).await, Word::Cancelled);
        assert_eq!(person.read.lock().unwrap().len(), 2);
        // Another call asks again.
        let (word, person) = said(&[LEAVE]).await;
        assert!(matches!(word, Word::Accepted(Some(_))), "{word:?}");
        assert_eq!(person.read.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn what_is_sent_was_shown_whole_however_many_questions_that_takes() {
        let text = json!({"type": "string"});
        let params = json!({"message": "m", "requestedSchema": {
            "type": "object", "properties": {"a": text, "b": text, "c": text},
        }});
        let Ok(Elicitation::Form(form)) = Elicitation::read(&params) else { panic!("no form") };
        let long = "\u{202e}x".repeat(30).leak() as &'static str;
        let asks = |says: &[&'static str]| {
            let person = Person { says: Mutex::new(says.to_vec()), ..Person::default() };
            let form = &form;
            async move {
                (fill(form, "s", &Respondent::of(&person)).await, person.read.into_inner().unwrap())
            }
        };
        let (word, read) = asks(&[FILL, long, long, "z", NEXT, SEND]).await;
        assert!(matches!(word, Word::Accepted(Some(_))), "{word:?}");
        let shown: Vec<&str> = read[4..].iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(shown.len(), 2);
        assert!(shown.iter().all(|text| text.chars().count() <= MAX_WHOLE && !text.contains('…')));
        assert_eq!(shown.concat().matches("\\u{202e}x").count(), 60);
        assert_eq!(read[4].1, [NEXT, DECLINE]);
        for (last, expected) in [(DECLINE, Word::Declined), (SEND, Word::Cancelled)] {
            assert_eq!(asks(&[FILL, long, long, "z", last]).await.0, expected);
        }
        let longer = "x".repeat(MAX_WHOLE).leak() as &'static str;
        let (word, read) = asks(&[FILL, longer, "y", "", "", SEND]).await;
        assert!(matches!(word, Word::Accepted(Some(_))), "{word:?}");
        assert!(read[2].0.contains("too long to be shown whole"), "{read:?}");
        let params = json!({"message": "m", "requestedSchema": {
            "type": "object", "properties": {"a": {"type": "string", "default": longer}},
        }});
        let Ok(Elicitation::Form(form)) = Elicitation::read(&params) else { panic!("no form") };
        let person = Person { says: Mutex::new(vec![FILL, "", SEND]), ..Person::default() };
        assert_eq!(fill(&form, "s", &Respondent::of(&person)).await, Word::Declined);
    }

    #[tokio::test]
    async fn a_suggestion_that_was_cut_is_not_taken_at_one_word() {
        let params = json!({"message": "m", "requestedSchema": {
            "type": "object",
            "properties": {"a": {"type": "string", "default": "x".repeat(MAX_VALUE)}},
        }});
        let Ok(Elicitation::Form(form)) = Elicitation::read(&params) else { panic!("no form") };
        let person = Person { says: Mutex::new(vec![LEAVE]), ..Person::default() };
        assert_eq!(fill(&form, "s", &Respondent::of(&person)).await, Word::Cancelled);
        let read = person.read.lock().unwrap().clone();
        assert!(!read[0].1.iter().any(|option| option == LEAVE), "{read:?}");
    }

    #[tokio::test]
    async fn an_address_is_shown_with_its_host_and_opened_by_nobody_here() {
        let address = Address {
            message: "log in".to_owned(),
            url: "https://a.test/x".to_owned(),
            host: "a.test".to_owned(),
        };
        let person = Person { says: Mutex::new(vec![OPEN]), ..Person::default() };
        assert_eq!(
            show(&address, "s", &Respondent::of(&person)).await.result(),
            json!({"action": "accept"})
        );
        let read = person.read.lock().unwrap().clone();
        assert!(read[0].0.contains("the host `a.test`"), "{read:?}");
        assert_eq!(show(&address, "s", &Respondent::of(&Person::default())).await, Word::Cancelled);
    }
}
