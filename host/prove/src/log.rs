//! Searches the log of this process for secrets.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// A layer for `tracing` that searches every logged line for the secrets of running attacks.
///
/// [`crate::Suite`] installs it if the program has no subscriber yet; a program that has one adds this layer
/// to it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogTap;

impl<S: Subscriber> Layer<S> for LogTap {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut text = LogText::default();
        attributes.record(&mut text);
        text.check_secrets();
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut text = LogText::default();
        values.record(&mut text);
        text.check_secrets();
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = LogText::default();
        event.record(&mut text);
        text.check_secrets();
    }
}

/// The fields of one log line as text.
#[derive(Default)]
struct LogText(String);

impl LogText {
    fn check_secrets(&self) {
        crate::secret::look_for_all("the log", self.0.as_bytes());
    }
}

impl Visit for LogText {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        // The write cannot fail, because a `String` grows as needed.
        let _ = write!(self.0, "{value:?} ");
    }

    fn record_str(&mut self, _: &Field, value: &str) {
        self.0.push_str(value);
        self.0.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::secret::SecretCanary;

    #[test]
    fn a_value_in_a_log_line_is_seen() {
        let canary = SecretCanary::new();
        let subscriber = tracing_subscriber::registry().with(LogTap);
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!(header = "harmless", "nothing");
            assert_eq!(canary.seen_place(), None);
            tracing::debug!(header = canary.value(), "a line");
        });
        assert_eq!(canary.seen_place().as_deref(), Some("the log"));
    }
}
