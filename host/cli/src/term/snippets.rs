//! The lines of findings, shown below each finding.

use std::path::PathBuf;

use belljar_definition::{Diagnostic, Severity};
use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::setup::home::{MAX_CONFIG_BYTES, read_bounded};

/// Snippets of one command: further findings are a line each, so that a folder full of broken files still
/// fits a screen or two.
const MAX_SNIPPETS: usize = 20;

/// Columns for miette. Lines are clipped below this already.
const WIDTH: usize = 200;

/// Makes snippets; reads each file once as long as its findings follow each other.
pub(crate) struct SnippetMaker {
    handler: GraphicalReportHandler,
    left: usize,
    file: Option<(PathBuf, Option<String>)>,
}

impl SnippetMaker {
    pub(crate) fn new(colour: bool) -> Self {
        let theme =
            if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(WIDTH)
            .with_wrap_lines(false)
            .with_links(false)
            .without_primary_span_start()
            .without_syntax_highlighting();
        Self { handler, left: MAX_SNIPPETS, file: None }
    }

    /// The lines around the place of a finding. `None` for notes, where the place or the file
    /// is not to be had, and after [`MAX_SNIPPETS`].
    pub(crate) fn make_snippet(&mut self, found: &Diagnostic) -> Option<String> {
        if self.left == 0 || found.line == 0 || found.severity == Severity::Note {
            return None;
        }
        if self.file.as_ref().is_none_or(|(path, _)| *path != found.path) {
            // Every kind of file with findings is at most this large.
            let bytes = read_bounded(&found.path, MAX_CONFIG_BYTES).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            self.file = Some((found.path.clone(), text));
        }
        let (_, text) = self.file.as_ref()?;
        let snippet = found.snippet(text.as_deref()?)?;
        let mut drawn = String::new();
        self.handler.render_report(&mut drawn, &snippet).ok()?;
        // The first line is the message's, which the caller prints.
        let (_, drawn) = drawn.split_once('\n')?;
        self.left -= 1;
        Some(drawn.trim_end().to_owned())
    }
}
