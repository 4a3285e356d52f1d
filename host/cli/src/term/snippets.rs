//! Makes the snippets below findings: the lines of the file around the place of a fault.

use std::path::PathBuf;

use belljar_definition::{Diagnostic, Severity};
use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::setup::home::{MAX_CONFIG_BYTES, read_bounded};

/// The most snippets of one command. Further findings are one line each, so that a folder full of broken
/// files still fits on a screen or two.
const MAX_SNIPPETS: usize = 20;

/// The columns for miette, the library that draws snippets. Lines are already shorter than this.
const WIDTH: usize = 200;

/// Makes snippets. Keeps the last file, so that consecutive findings in one file read it once.
pub(crate) struct SnippetMaker {
    handler: GraphicalReportHandler,
    left: usize,
    file: Option<(PathBuf, Option<String>)>,
}

impl SnippetMaker {
    /// Makes snippets with or without colours.
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

    /// The lines of the file around a finding. `None` = the finding is a note, has no place, its file is
    /// unreadable, or [`MAX_SNIPPETS`] were made.
    pub(crate) fn make_snippet(&mut self, found: &Diagnostic) -> Option<String> {
        if self.left == 0 || found.line == 0 || found.severity == Severity::Note {
            return None;
        }
        if self.file.as_ref().is_none_or(|(path, _)| *path != found.path) {
            // Every file with findings has at most this size.
            let bytes = read_bounded(&found.path, MAX_CONFIG_BYTES).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            self.file = Some((found.path.clone(), text));
        }
        let (_, text) = self.file.as_ref()?;
        let snippet = found.snippet(text.as_deref()?)?;
        let mut drawn = String::new();
        self.handler.render_report(&mut drawn, &snippet).ok()?;
        // The first line repeats the finding's message, which the caller prints.
        let (_, drawn) = drawn.split_once('\n')?;
        self.left -= 1;
        Some(drawn.trim_end().to_owned())
    }
}
