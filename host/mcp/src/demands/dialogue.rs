//! Shows a server's form to a person as questions: whether to answer, each field, and whether to send.
//! INV-361: every question names the server, in escaped and bounded text.

use belljar_policy::ShownText;
use serde_json::{Map, Value, json};

use super::address::ElicitedAddress;
use super::field::{FieldKind, FormField};
use super::form::ElicitationForm;
use super::respondent::CallRespondent;
use super::{QuestionAnswer, ServerQuestion};

/// The most attempts to answer one field.
const MAX_TRIES: usize = 3;

/// The most characters of a server's message in a question.
const MAX_MESSAGE: usize = 600;

/// The most characters of the list of fields in the first question.
const MAX_LISTED: usize = 800;

/// The most characters of a suggested value in the list of fields.
const MAX_VALUE: usize = 80;

/// The most characters of a question that every door shows uncut.
const MAX_WHOLE: usize = 400;

/// The most characters of a field's description.
const MAX_DESCRIPTION: usize = 300;

const FILL: &str = "Answer it";
const LEAVE: &str = "Take the values that it suggests";
const OPEN: &str = "I will open it";
const ACCEPT: &str = "Yes";
const NEXT: &str = "Show me the rest";
const SEND: &str = "Send it";
const DECLINE: &str = "Decline";
const MUTE: &str = "Decline, and ask me nothing more for it in this run";

/// A person's answer to a form, in the terms of MCP.
#[derive(Debug, PartialEq)]
pub(super) enum FormResponse {
    /// The person agreed; a form has content.
    Accepted(Option<Map<String, Value>>),
    /// The person refused.
    Declined,
    /// The person closed the question, or no person answered.
    Cancelled,
}

impl FormResponse {
    /// The result that is sent to the server.
    pub(super) fn into_result(self) -> Value {
        match self {
            Self::Accepted(Some(content)) => json!({"action": "accept", "content": content}),
            Self::Accepted(None) => json!({"action": "accept"}),
            Self::Declined => json!({"action": "decline"}),
            Self::Cancelled => json!({"action": "cancel"}),
        }
    }

    /// The name of the answer for the log.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accepted",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Asks the person to fill in a server's form, field by field.
pub(super) async fn fill_form(
    form: &ElicitationForm,
    server: &str,
    person: &CallRespondent<'_>,
) -> FormResponse {
    match collect_values(form, server, person).await {
        Ok(content) => FormResponse::Accepted(Some(content)),
        Err(word) => word,
    }
}

/// Asks whether to answer the form at all, then asks for each field, or takes the suggested values.
async fn collect_values(
    form: &ElicitationForm,
    server: &str,
    person: &CallRespondent<'_>,
) -> Result<Map<String, Value>, FormResponse> {
    let fields: Vec<String> = form.fields.iter().map(format_field).collect();
    let wanted = match fields.is_empty() {
        true => String::new(),
        false => {
            let fields = fields.join("; ");
            format!(" It wants to know: {}.", ShownText::clip_line(&fields, MAX_LISTED))
        }
    };
    let text = format!(
        "the MCP server `{server}` asks you (it is not belljar, and not your agent). Your answers go to \
         that server: no password, token or other secret.{wanted}"
    );
    let shown = shows_all(form, &text);
    let text = format!("{text} It says: {}", ShownText::clip_line(&form.message, MAX_MESSAGE));
    let mut options = match (fields.is_empty(), shown && form.can_be_left()) {
        (true, _) => vec![ACCEPT],
        (false, true) => vec![FILL, LEAVE],
        (false, false) => vec![FILL],
    };
    options.extend([DECLINE, MUTE]);
    if ask_option(person, server, (&text, &text), &options).await? != FILL {
        return form.build_content(Map::new()).ok_or(FormResponse::Cancelled);
    }
    let mut said = Map::new();
    for field in &form.fields {
        if let Some(value) = ask_field(field, server, person).await? {
            said.insert(field.name.clone(), value);
        }
    }
    let content = form.build_content(said).ok_or(FormResponse::Cancelled)?;
    // A person who has not seen all of the content does not send it.
    let pieces = review_questions(&content, server).ok_or(FormResponse::Declined)?;
    let noted = format!("{}what you have said", goes_to(server));
    for (at, piece) in (1..).zip(&pieces) {
        let go_on = if at == pieces.len() { SEND } else { NEXT };
        ask_option(person, server, (piece, &noted), &[go_on, DECLINE]).await?;
    }
    Ok(content)
}

fn is_shown_whole(field: &FormField, value: &Value, server: &str) -> bool {
    review_questions(&Map::from_iter([(field.name.clone(), value.clone())]), server).is_some()
}

fn goes_to(server: &str) -> String {
    format!("this goes to the MCP server `{server}`: ")
}

/// Splits the content for review into questions that every door shows uncut; `None` if a value is too long
/// for a question.
fn review_questions(content: &Map<String, Value>, server: &str) -> Option<Vec<String>> {
    let begin = goes_to(server);
    let mut pieces = vec![begin.clone()];
    for (name, value) in content {
        let shown = format!("`{name}` = {value}; ");
        let shown = ShownText::new(&shown).to_string();
        let fits = |piece: &str| piece.chars().count() + shown.chars().count() <= MAX_WHOLE;
        match pieces.last_mut() {
            Some(piece) if fits(piece) => piece.push_str(&shown),
            _ if fits(&begin) => pieces.push(format!("{begin}{shown}")),
            _ => return None,
        }
    }
    Some(pieces)
}

/// Shows the person an address that the server wants opened. It is not opened here.
pub(super) async fn show_address(
    address: &ElicitedAddress,
    server: &str,
    person: &CallRespondent<'_>,
) -> FormResponse {
    let text = format!(
        "the MCP server `{server}` asks you (it is not belljar, and not your agent) to open an address \
         of the host `{}` in a browser; belljar opens nothing. Only do so if you know that host. The \
         address: {} It says: {}",
        address.host,
        ShownText::new(&address.url),
        ShownText::clip_line(&address.message, MAX_MESSAGE)
    );
    match ask_option(person, server, (&text, &text), &[OPEN, DECLINE, MUTE]).await {
        Ok(_) => FormResponse::Accepted(None),
        Err(word) => word,
    }
}

/// Asks a question, and returns the option that continues; any other answer ends the form. The pair contains
/// the person's text and the text for the log.
async fn ask_option<'o>(
    person: &CallRespondent<'_>,
    server: &str,
    (text, noted): (&str, &str),
    options: &[&'o str],
) -> Result<&'o str, FormResponse> {
    let offered: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    let words = match person.ask_person(&ServerQuestion { text, noted, options: &offered }).await {
        QuestionAnswer::Words(words) => words.trim().to_lowercase(),
        QuestionAnswer::No => return Err(FormResponse::Declined),
        QuestionAnswer::Blank | QuestionAnswer::Nobody | QuestionAnswer::Closed => {
            return Err(FormResponse::Cancelled);
        }
    };
    match options.iter().find(|option| option.to_lowercase() == words).copied() {
        Some(MUTE) => {
            person.mute_server(server).await;
            Err(FormResponse::Declined)
        }
        Some(DECLINE) => Err(FormResponse::Declined),
        Some(chosen) => Ok(chosen),
        None => Err(FormResponse::Cancelled),
    }
}

/// Asks for the value of one field: a value, none for a skipped field, or the person's answer to the whole
/// form.
async fn ask_field(
    field: &FormField,
    server: &str,
    person: &CallRespondent<'_>,
) -> Result<Option<Value>, FormResponse> {
    let options = match &field.kind {
        FieldKind::YesOrNo => vec!["yes".to_owned(), "no".to_owned()],
        FieldKind::One(of) => of.iter().map(super::field::FieldChoice::shown_title).collect(),
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Several { .. } => Vec::new(),
    };
    let whose = format!("for the MCP server `{server}`: ");
    let noted = format!("{whose}{}", format_prompt(field));
    let mut text = noted.clone();
    for _ in 0..MAX_TRIES {
        match person
            .ask_person(&ServerQuestion { text: &text, noted: &noted, options: &options })
            .await
        {
            QuestionAnswer::Words(words) => match field.kind.value_of(&words) {
                Some(value) if is_shown_whole(field, &value, server) => return Ok(Some(value)),
                Some(_) => {
                    let wanted = format_prompt(field);
                    text = format!("{whose}that is too long to be shown whole once more. {wanted}");
                }
                None => {
                    let words = ShownText::clip_line(&words, 40).to_string();
                    text = format!("{whose}`{words}` does not fit. {}", format_prompt(field));
                }
            },
            QuestionAnswer::Blank if field.default.is_some() || !field.is_required => {
                return Ok(None);
            }
            QuestionAnswer::No => return Err(FormResponse::Declined),
            QuestionAnswer::Blank | QuestionAnswer::Nobody | QuestionAnswer::Closed => {
                return Err(FormResponse::Cancelled);
            }
        }
    }
    Err(FormResponse::Cancelled)
}

/// The question for one field: its name, description and accepted values, and what a blank answer means.
fn format_prompt(field: &FormField) -> String {
    let description = field
        .description
        .as_deref()
        .map(|text| format!(": {}", ShownText::clip_line(text, MAX_DESCRIPTION)));
    let blank = match (&field.default, field.is_required) {
        (Some(default), _) => format!("; nothing = {}", format_value(default)),
        (None, false) => "; nothing = it is left out".to_owned(),
        (None, true) => String::new(),
    };
    let description = description.unwrap_or_default();
    format!("{}{description} ({}{blank})", field.shown_name(), field.kind.describe_values())
}

/// Returns whether every door shows all suggested values uncut in the first question. Otherwise a person
/// could send a value with one yes without having seen it.
fn shows_all(form: &ElicitationForm, text: &str) -> bool {
    let whole = |default: &Value| default.to_string().chars().count() <= MAX_VALUE;
    let mut defaults = form.fields.iter().filter_map(|field| field.default.as_ref());
    text.chars().count() <= MAX_WHOLE && defaults.all(whole)
}

/// A field as the person is shown it: its name, and the value that the server suggests.
fn format_field(field: &FormField) -> String {
    match &field.default {
        Some(default) => format!("{} (it suggests {})", field.shown_name(), format_value(default)),
        None => field.shown_name(),
    }
}

fn format_value(value: &Value) -> String {
    ShownText::clip_line(&value.to_string(), MAX_VALUE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demands::form::Elicitation;
    use crate::demands::{SampleRequest, SampledText, SamplingGrant, ServerResponder};
    use std::sync::Mutex;

    /// In the answers of a test: the person explicitly gives no answer.
    const NO: &str = "(no)";

    /// A person who gives these answers one after the other, and then no more.
    #[derive(Default)]
    struct Person {
        says: Mutex<Vec<&'static str>>,
        read: Mutex<Vec<(String, Vec<String>)>>,
        noted: Mutex<Vec<String>>,
        muted: Mutex<bool>,
    }

    #[async_trait::async_trait]
    impl ServerResponder for Person {
        async fn ask_person(&self, asked: &ServerQuestion<'_>) -> QuestionAnswer {
            self.read.lock().unwrap().push((asked.text.to_owned(), asked.options.to_vec()));
            self.noted.lock().unwrap().push(asked.noted.to_owned());
            let mut says = self.says.lock().unwrap();
            match says.is_empty() {
                true => QuestionAnswer::Nobody,
                false => match says.remove(0) {
                    "" => QuestionAnswer::Blank,
                    NO => QuestionAnswer::No,
                    words => QuestionAnswer::Words(words.to_owned()),
                },
            }
        }

        async fn sample_text(
            &self,
            _: &str,
            _: &SamplingGrant,
            _: &SampleRequest,
        ) -> Result<SampledText, String> {
            Err("no model".to_owned())
        }

        fn is_muted(&self, _: &str) -> bool {
            *self.muted.lock().unwrap()
        }

        async fn mute_server(&self, _: &str) {
            *self.muted.lock().unwrap() = true;
        }

        fn is_given_up(&self, _: &str) -> bool {
            false
        }

        fn record_attendance(&self, _: &str, _: bool) {}
    }

    fn form() -> ElicitationForm {
        let params = json!({"message": "who\u{1b}[2J\u{202e}?", "requestedSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "title": "Name\u{200b}", "default": "Jo"},
                "b": {"type": "integer", "minimum": 1, "description": "how many"},
                "c": {"type": "string", "enum": ["x", "y"], "default": "y"},
            },
            "required": ["a"],
        }});
        match Elicitation::from_params(&params) {
            Ok(Elicitation::Form(form)) => form,
            other => panic!("{other:?}"),
        }
    }

    async fn said(says: &[&'static str]) -> (FormResponse, Person) {
        let person = Person { says: Mutex::new(says.to_vec()), ..Person::default() };
        (fill_form(&form(), "s", &CallRespondent::with_answers(&person)).await, person)
    }

    #[tokio::test]
    async fn a_form_is_filled_in_question_by_question_and_sent_at_a_last_yes() {
        let content = |value: Value| FormResponse::Accepted(value.as_object().cloned());
        let (word, person) = said(&[FILL, "Ann", "0", "3", "X", SEND]).await;
        assert_eq!(word, content(json!({"a": "Ann", "b": 3, "c": "x"})));
        let read = person.read.lock().unwrap().clone();
        assert_eq!(read.len(), 6);
        assert!(read.iter().all(|(text, _)| !text.chars().any(ShownText::is_hidden)), "{read:?}");
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
        assert!(matches!(word, FormResponse::Accepted(Some(_))), "{word:?}");
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
            (&[DECLINE][..], FormResponse::Declined),
            (&[NO][..], FormResponse::Declined),
            (&[""][..], FormResponse::Cancelled),
            (&[][..], FormResponse::Cancelled),
            (&["yes please"][..], FormResponse::Cancelled),
            (&[FILL, "Ann", "3", "x"][..], FormResponse::Cancelled),
            (&[FILL, "Ann", "3", "x", ""][..], FormResponse::Cancelled),
            (&[FILL, NO, "3", "x", SEND][..], FormResponse::Declined),
            (&[FILL, "Ann", "3", "x", DECLINE][..], FormResponse::Declined),
            (&[FILL, "Ann", "0", "0", "0"][..], FormResponse::Cancelled),
        ] {
            let (word, _) = said(says).await;
            assert_eq!(word, expected, "{says:?}");
        }
        let (word, person) = said(&[MUTE]).await;
        assert_eq!((word, person.is_muted("s")), (FormResponse::Declined, true));
        assert_eq!(FormResponse::Declined.into_result(), json!({"action": "decline"}));
        assert_eq!(FormResponse::Cancelled.into_result(), json!({"action": "cancel"}));
    }

    #[tokio::test]
    async fn whoever_does_not_come_to_a_question_is_asked_no_other_in_that_call() {
        let person = Person { says: Mutex::new(vec![FILL]), ..Person::default() };
        let present = CallRespondent::with_answers(&person);
        assert_eq!(fill_form(&form(), "s", &present).await, FormResponse::Cancelled);
        assert_eq!(person.read.lock().unwrap().len(), 2, "the form ends where nobody came");
        person.says.lock().unwrap().push(FILL);
        assert_eq!(fill_form(&form(), "s", &present).await, FormResponse::Cancelled);
        assert_eq!(person.read.lock().unwrap().len(), 2);
        // In another call the person is asked again.
        let (word, person) = said(&[LEAVE]).await;
        assert!(matches!(word, FormResponse::Accepted(Some(_))), "{word:?}");
        assert_eq!(person.read.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn what_is_sent_was_shown_whole_however_many_questions_that_takes() {
        let text = json!({"type": "string"});
        let params = json!({"message": "m", "requestedSchema": {
            "type": "object", "properties": {"a": text, "b": text, "c": text},
        }});
        let Ok(Elicitation::Form(form)) = Elicitation::from_params(&params) else {
            panic!("no form")
        };
        let long = "\u{202e}x".repeat(30).leak() as &'static str;
        let asks = |says: &[&'static str]| {
            let person = Person { says: Mutex::new(says.to_vec()), ..Person::default() };
            let form = &form;
            async move {
                (
                    fill_form(form, "s", &CallRespondent::with_answers(&person)).await,
                    person.read.into_inner().unwrap(),
                )
            }
        };
        let (word, read) = asks(&[FILL, long, long, "z", NEXT, SEND]).await;
        assert!(matches!(word, FormResponse::Accepted(Some(_))), "{word:?}");
        let shown: Vec<&str> = read[4..].iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(shown.len(), 2);
        assert!(shown.iter().all(|text| text.chars().count() <= MAX_WHOLE && !text.contains('…')));
        assert_eq!(shown.concat().matches("\\u{202e}x").count(), 60);
        assert_eq!(read[4].1, [NEXT, DECLINE]);
        for (last, expected) in [(DECLINE, FormResponse::Declined), (SEND, FormResponse::Cancelled)]
        {
            assert_eq!(asks(&[FILL, long, long, "z", last]).await.0, expected);
        }
        let longer = "x".repeat(MAX_WHOLE).leak() as &'static str;
        let (word, read) = asks(&[FILL, longer, "y", "", "", SEND]).await;
        assert!(matches!(word, FormResponse::Accepted(Some(_))), "{word:?}");
        assert!(read[2].0.contains("too long to be shown whole"), "{read:?}");
        let params = json!({"message": "m", "requestedSchema": {
            "type": "object", "properties": {"a": {"type": "string", "default": longer}},
        }});
        let Ok(Elicitation::Form(form)) = Elicitation::from_params(&params) else {
            panic!("no form")
        };
        let person = Person { says: Mutex::new(vec![FILL, "", SEND]), ..Person::default() };
        assert_eq!(
            fill_form(&form, "s", &CallRespondent::with_answers(&person)).await,
            FormResponse::Declined
        );
    }

    #[tokio::test]
    async fn a_suggestion_that_was_cut_is_not_taken_at_one_word() {
        let params = json!({"message": "m", "requestedSchema": {
            "type": "object",
            "properties": {"a": {"type": "string", "default": "x".repeat(MAX_VALUE)}},
        }});
        let Ok(Elicitation::Form(form)) = Elicitation::from_params(&params) else {
            panic!("no form")
        };
        let person = Person { says: Mutex::new(vec![LEAVE]), ..Person::default() };
        assert_eq!(
            fill_form(&form, "s", &CallRespondent::with_answers(&person)).await,
            FormResponse::Cancelled
        );
        let read = person.read.lock().unwrap().clone();
        assert!(!read[0].1.iter().any(|option| option == LEAVE), "{read:?}");
    }

    #[tokio::test]
    async fn an_address_is_shown_with_its_host_and_opened_by_nobody_here() {
        let address = ElicitedAddress {
            message: "log in".to_owned(),
            url: "https://a.test/x".to_owned(),
            host: "a.test".to_owned(),
        };
        let person = Person { says: Mutex::new(vec![OPEN]), ..Person::default() };
        assert_eq!(
            show_address(&address, "s", &CallRespondent::with_answers(&person)).await.into_result(),
            json!({"action": "accept"})
        );
        let read = person.read.lock().unwrap().clone();
        assert!(read[0].0.contains("the host `a.test`"), "{read:?}");
        assert_eq!(
            show_address(&address, "s", &CallRespondent::with_answers(&Person::default())).await,
            FormResponse::Cancelled
        );
    }
}
