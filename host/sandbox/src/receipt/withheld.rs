//! Searches the texts of a tool for the secrets of the run, before any other code gets them: its answer and
//! errors, log lines, standard streams and progress reports.
//!
//! The host passes no secret to a tool. But the tool may have found the same value elsewhere: in a file, in
//! two halves, or in a form the search of replies does not know.

use std::iter;

use belljar_policy::DenyCode;

use crate::imports::http::SecretWatch;
use crate::jar::output::{CallError, OutputPart, ToolOutput};
use crate::jar::progress::{ProgressReport, ProgressSink};
use crate::receipt::record::MAX_DENIALS;
use crate::receipt::{CallEnding, Denial, Receipt};

/// The text that replaces one with a secret in it.
const WITHHELD: &str = "[withheld: it holds a secret]";

/// Wraps a sink of progress reports: a message that contains a secret is replaced by [`WITHHELD`].
pub(crate) fn filter_progress(watch: &SecretWatch, sink: ProgressSink) -> ProgressSink {
    if watch.is_empty() {
        return sink;
    }
    let watch = watch.clone();
    std::sync::Arc::new(move |mut report: ProgressReport| {
        hide_text(&watch, &mut report.message);
        sink(report);
    })
}

/// Returns the outcome of a call, or a refusal if its text contains a secret. Other texts of the tool in the
/// receipt that contain one are replaced.
pub(crate) fn filter_outcome(
    watch: &SecretWatch,
    outcome: Result<ToolOutput, CallError>,
    receipt: &mut Receipt,
) -> Result<ToolOutput, CallError> {
    if watch.is_empty() {
        return outcome;
    }
    let held = match &outcome {
        Ok(output) => output.parts.iter().any(|part| stands_in(watch, part)),
        Err(CallError::Tool { message: text, .. } | CallError::BadOutput(text)) => {
            watch.stands_in(text.as_bytes())
        }
        // These texts come from the host and the engine, not from the tool.
        Err(
            CallError::Refused(_)
            | CallError::Trapped(_)
            | CallError::Exhausted(_)
            | CallError::TimedOut(_)
            | CallError::Cancelled
            | CallError::NotLoaded(_)
            | CallError::HostFault,
        ) => false,
    };
    let mut places = Vec::new();
    if tool_texts(receipt).fold(false, |any, text| any | hide_text(watch, text)) {
        places.push("what the tool logged or printed");
    }
    if held {
        places.push("the tool's answer");
        receipt.ending = CallEnding::Refused(DenyCode::SecretInReply.to_string());
    }
    for place in places {
        record_denial(watch, place, receipt);
    }
    if held { Err(CallError::Refused(DenyCode::SecretInReply)) } else { outcome }
}

fn stands_in(watch: &SecretWatch, part: &OutputPart) -> bool {
    match part {
        OutputPart::Text(text) | OutputPart::Json(text) => watch.stands_in(text.as_bytes()),
        OutputPart::Attachment { name, media_type, data } => {
            [name.as_bytes(), media_type.as_bytes(), data].into_iter().any(|t| watch.stands_in(t))
        }
    }
}

/// All texts in a receipt that the tool chose.
fn tool_texts(receipt: &mut Receipt) -> impl Iterator<Item = &mut String> {
    let logs = receipt.logs.iter_mut().map(|line| &mut line.message);
    let streams = [&mut receipt.stdout, &mut receipt.stderr];
    let paths = receipt.paths_read.iter_mut().chain(&mut receipt.paths_written);
    let denials = receipt.denials.iter_mut();
    let facts = denials.flat_map(|denial| iter::once(&mut denial.facts).chain(&mut denial.target));
    let ending = match &mut receipt.ending {
        CallEnding::Trapped(text) | CallEnding::BadOutput(text) => Some(text),
        CallEnding::Completed
        | CallEnding::ToolError(_)
        | CallEnding::Exhausted(_)
        | CallEnding::TimedOut
        | CallEnding::Cancelled
        | CallEnding::Refused(_)
        | CallEnding::HostFault(_) => None,
    };
    logs.chain(streams).chain(paths).chain(facts).chain(ending)
}

/// Replaces a text with a secret, and returns whether it did.
fn hide_text(watch: &SecretWatch, text: &mut String) -> bool {
    let held = watch.stands_in(text.as_bytes());
    if held {
        WITHHELD.clone_into(text);
    }
    held
}

fn record_denial(watch: &SecretWatch, place: &str, receipt: &mut Receipt) {
    let (code, what) = (DenyCode::SecretInReply, "answer".to_owned());
    let facts = format!("{place} holds {}", watch.count_withheld());
    tracing::info!(target: "belljar::denied", code = %code, what = %what, "{facts}");
    if receipt.denials.len() < MAX_DENIALS {
        receipt.denials.push(Denial::new(code, what, facts));
    } else {
        receipt.denials_dropped = receipt.denials_dropped.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use belljar_policy::SecretName;

    use super::*;
    use crate::imports::http::{Secret, SecretStore};
    use crate::jar::output::ToolErrorKind;
    use crate::receipt::LogLine;

    const VALUE: &str = "value-of-a-key";

    fn watch() -> SecretWatch {
        let name = SecretName::new("key").unwrap();
        let rule = vec!["https://api.test".parse().unwrap()];
        let mut store = SecretStore::default();
        store.insert(name.clone(), Secret::new(&VALUE.into(), rule, "x-key", "").unwrap());
        store.for_run(&[name].into()).secret_watch()
    }

    fn text(text: &str) -> OutputPart {
        OutputPart::Text(text.to_owned())
    }

    #[test]
    fn an_answer_or_an_error_with_a_secret_is_refused_and_its_neighbour_is_not() {
        let watch = watch();
        let file = |name: &str, data: &str| OutputPart::Attachment {
            name: name.to_owned(),
            media_type: "text/plain".to_owned(),
            data: data.to_owned().into(),
        };
        let held = [
            Ok(vec![text("a"), text(&VALUE.to_uppercase())]),
            Ok(vec![OutputPart::Json(format!("[\"{VALUE}\"]"))]),
            Ok(vec![file("a", VALUE)]),
            Ok(vec![file(VALUE, "a")]),
            Err(CallError::Tool { kind: ToolErrorKind::Failed, message: VALUE.to_owned() }),
            Err(CallError::BadOutput(format!("not JSON: {VALUE}"))),
        ];
        for said in held {
            let said = said.map(|parts| ToolOutput { parts });
            let mut receipt = Receipt::for_call("tool", "", "{}");
            let told = filter_outcome(&watch, said, &mut receipt);
            assert_eq!(told, Err(CallError::Refused(DenyCode::SecretInReply)));
            assert_eq!(receipt.denials.len(), 1);
            assert!(!format!("{receipt:?}").contains(VALUE));
        }
        let said = Ok(ToolOutput { parts: vec![text(&VALUE[1..]), file("a", "b")] });
        let mut receipt = Receipt::for_call("tool", "", "{}");
        assert_eq!(filter_outcome(&watch, said.clone(), &mut receipt), said);
        assert_eq!(receipt, Receipt::for_call("tool", "", "{}"));
    }

    #[test]
    fn lines_and_streams_with_a_secret_are_replaced_and_the_others_kept() {
        let line = |text: &str| LogLine { level: "info".to_owned(), message: text.to_owned() };
        let mut receipt = Receipt::for_call("tool", "", "{}");
        receipt.logs = vec![line("before"), line(VALUE)];
        receipt.stdout = format!("a {VALUE} b");
        receipt.stderr = "quiet".to_owned();
        let said = Ok(ToolOutput::default());
        assert_eq!(filter_outcome(&watch(), said.clone(), &mut receipt), said);
        assert_eq!(receipt.logs, [line("before"), line(WITHHELD)]);
        assert_eq!((&*receipt.stdout, &*receipt.stderr), (WITHHELD, "quiet"));
        assert_eq!(receipt.denials.len(), 1);
    }

    #[test]
    fn a_report_with_a_secret_loses_its_words_and_keeps_its_numbers() {
        let seen: Arc<Mutex<Vec<ProgressReport>>> = Arc::default();
        let kept = Arc::clone(&seen);
        let sink =
            filter_progress(&watch(), Arc::new(move |report| kept.lock().unwrap().push(report)));
        let report =
            |text: &str| ProgressReport { done: 1, total: Some(2), message: text.to_owned() };
        sink(report(VALUE));
        sink(report("half"));
        assert_eq!(*seen.lock().unwrap(), [report(WITHHELD), report("half")]);
    }
}
