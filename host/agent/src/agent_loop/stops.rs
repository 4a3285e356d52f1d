//! Stop words: an answer ends at the first stop word, even if split between two pieces of a stream. Nothing
//! after a stop word is shown, stored or called.

use belljar_model::{ModelReply, StopReason, StreamEvent};

/// Cuts the streamed events of an answer at the first stop word.
#[derive(Debug)]
pub(crate) struct StopFilter<'a> {
    words: &'a [String],
    /// Text at the end that may be the beginning of a stop word: the next piece decides.
    held: String,
    /// True after a stop word has occurred.
    met: bool,
}

impl<'a> StopFilter<'a> {
    /// A filter for an answer. If `words` is empty, all text passes.
    pub(crate) fn new(words: &'a [String]) -> Self {
        Self { words, held: String::new(), met: false }
    }

    /// The event without text after a stop word; `None` = nothing is left of it.
    pub(crate) fn filter_event(&mut self, event: StreamEvent) -> Option<StreamEvent> {
        if self.words.is_empty() {
            return Some(event);
        }
        match event {
            // After a retry, the text of the failed attempt is void.
            StreamEvent::Retrying { .. } => {
                self.held.clear();
                self.met = false;
                Some(event)
            }
            StreamEvent::Started => Some(event),
            StreamEvent::TextDelta(text) if !self.met => {
                self.filter_text(&text).map(StreamEvent::TextDelta)
            }
            StreamEvent::TextDelta(_)
            | StreamEvent::ThinkingDelta(_)
            | StreamEvent::CallStarted { .. } => (!self.met).then_some(event),
        }
    }

    /// The text that may be shown now: all before a stop word, without a possible beginning of one.
    fn filter_text(&mut self, text: &str) -> Option<String> {
        self.held.push_str(text);
        if let Some(at) = find_first_stop(&self.held, self.words) {
            self.met = true;
            self.held.truncate(at);
            return self.flush_text();
        }
        let begun = begun_word_len(&self.held, self.words);
        let keep = self.held.split_off(self.held.len().saturating_sub(begun));
        let told = std::mem::replace(&mut self.held, keep);
        Some(told).filter(|told| !told.is_empty())
    }

    /// The text that was held back, when the stream ends.
    pub(crate) fn flush_text(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.held)).filter(|rest| !rest.is_empty())
    }

    /// Cuts a whole answer at the first stop word. A cut answer has no calls, because calls come after the
    /// text.
    pub(crate) fn cut_reply(&self, reply: &mut ModelReply) {
        let Some(at) = find_first_stop(&reply.text, self.words) else { return };
        reply.text.truncate(at);
        reply.calls.clear();
        // The reasoning is dropped, because it refers to positions in the full text and to calls.
        reply.reasoning = None;
        if reply.stop != StopReason::Refusal {
            reply.stop = StopReason::EndTurn;
        }
    }
}

/// The position of the stop word that is complete first, where a model would stop generating.
fn find_first_stop(text: &str, words: &[String]) -> Option<usize> {
    let places = words.iter().filter_map(|word| {
        let at = text.find(word.as_str())?;
        Some((at.saturating_add(word.len()), at))
    });
    places.min().map(|(_, at)| at)
}

/// How many bytes at the end of a text could be the beginning of a stop word.
fn begun_word_len(text: &str, words: &[String]) -> usize {
    let ends = |word: &String| {
        let beginnings = word.char_indices().map(|(at, _)| at).rev();
        let mut beginnings = beginnings.filter(|at| *at > 0);
        beginnings.find(|at| word.get(..*at).is_some_and(|part| text.ends_with(part)))
    };
    words.iter().filter_map(ends).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_model::{TokenUsage, ToolCall};
    use proptest::prelude::*;

    fn words(of: &[&str]) -> Vec<String> {
        of.iter().map(|word| (*word).to_owned()).collect()
    }

    /// The texts shown for a stream of pieces.
    fn told(stops: &mut StopFilter<'_>, pieces: &[&str]) -> Vec<String> {
        let delta = |piece: &&str| stops.filter_event(StreamEvent::TextDelta((*piece).to_owned()));
        let mut told: Vec<_> = pieces
            .iter()
            .filter_map(delta)
            .map(|event| match event {
                StreamEvent::TextDelta(text) => text,
                other => panic!("{other:?}"),
            })
            .collect();
        told.extend(stops.flush_text());
        told
    }

    /// An answer with a text and one call.
    fn reply(text: &str) -> ModelReply {
        let call = ToolCall { id: "1".into(), name: "t".into(), arguments: "{}".into() };
        ModelReply {
            text: text.into(),
            calls: vec![call],
            reasoning: None,
            usage: TokenUsage::default(),
            stop: StopReason::ToolUse,
        }
    }

    #[test]
    fn an_answer_is_cut_before_a_word_over_the_borders_of_its_pieces() {
        let stop = words(&["Observation:", "éé"]);
        let cut = |pieces: &[&str]| told(&mut StopFilter::new(&stop), pieces);
        assert_eq!(cut(&["a Obs", "erva", "tion: b", "c"]), ["a "]);
        assert_eq!(cut(&["a Obs", "tinate"]), ["a ", "Obstinate"]);
        assert_eq!(cut(&["a Obs"]), ["a ", "Obs"]);
        assert_eq!(cut(&["xé", "éy"]), ["x"]);
        assert_eq!(cut(&["Observation: b"]), Vec::<String>::new());
        let none = words(&[]);
        assert_eq!(told(&mut StopFilter::new(&none), &["a", "b"]), ["a", "b"]);
    }

    #[test]
    fn an_attempt_that_is_void_leaves_nothing_behind() {
        let stop = words(&["END"]);
        let mut stops = StopFilter::new(&stop);
        assert_eq!(told(&mut stops, &["a END b"]), ["a "]);
        let again = StreamEvent::Retrying {
            attempt: 2,
            after: std::time::Duration::ZERO,
            reason: String::new(),
        };
        assert!(stops.filter_event(again).is_some());
        assert_eq!(told(&mut stops, &["c EN", "X"]), ["c ", "ENX"]);
    }

    #[test]
    fn a_call_behind_a_word_is_none() {
        let stop = words(&["END"]);
        let stops = StopFilter::new(&stop);
        let mut cut = reply("a END b");
        stops.cut_reply(&mut cut);
        assert_eq!((cut.text.as_str(), cut.calls.len(), cut.stop), ("a ", 0, StopReason::EndTurn));
        let mut whole = reply("a EN");
        stops.cut_reply(&mut whole);
        assert_eq!(whole, reply("a EN"));
    }

    proptest! {
        #[test]
        fn a_stream_says_what_the_whole_answer_says(
            pieces in prop::collection::vec("[ab\u{e9}]{0,4}", 0..8),
            stop in prop::collection::vec("[ab\u{e9}]{1,3}", 1..4),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let mut stops = StopFilter::new(&stop);
            let streamed = told(&mut stops, &pieces).concat();
            let mut whole = reply(&pieces.concat());
            stops.cut_reply(&mut whole);
            prop_assert_eq!(streamed, whole.text);
        }
    }
}
