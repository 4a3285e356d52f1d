//! Transcripts of a scripted model: files that a run plays instead of asking a model, or records.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use belljar_model::{Recording, ScriptedModel};
use belljar_policy::ShownPath as _;

use crate::setup::below;
use crate::setup::exit::{Failure, format_error_chain};
use crate::setup::home::read_bounded;
use crate::term::out::TerminalOutput;

/// Most bytes of a transcript.
const MAX_TRANSCRIPT_BYTES: u64 = belljar_model::limits::MAX_TRANSCRIPT_BYTES as u64;

/// Reads a transcript, and makes the model that plays it.
pub(crate) fn scripted_model(path: &Path) -> Result<ScriptedModel, Failure> {
    let shown = path.to_shown();
    let bytes = read_bounded(path, MAX_TRANSCRIPT_BYTES)
        .map_err(|error| Failure::usage(format!("failed to read transcript `{shown}`: {error}")))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("transcript `{shown}` is not valid UTF-8")))?;
    ScriptedModel::from_yaml(&text, path)
        .map_err(|error| Failure::usage(format_error_chain(&error)))
}

/// A transcript that is being recorded.
pub(crate) struct TranscriptFile {
    path: PathBuf,
    file: File,
    pub(crate) recording: Recording,
}

impl TranscriptFile {
    /// Opens the file before the run, because no file can be made behind the OS sandbox, and a wrong path
    /// should be reported before a model costs anything. The old content stays until the transcript is
    /// written.
    pub(crate) fn create_file(path: &Path, workspace: &Path) -> Result<Self, Failure> {
        // Inside the workspace no link is followed, because it would lead to a file that nobody named
        // (INV-433).
        let opened =
            below::output_place(path, workspace).and_then(|(at, name)| at.open_to_write(&name));
        let file = opened.map_err(|error| not_recorded(path, &error))?;
        Ok(Self { path: path.to_path_buf(), file, recording: Recording::new() })
    }

    /// Writes the recorded answers into the file.
    pub(crate) fn write_recording(mut self, out: &TerminalOutput) -> Result<(), Failure> {
        let yaml = self.recording.to_yaml().map_err(|error| {
            Failure::new(format!("the run cannot be recorded: {}", format_error_chain(&error)))
        })?;
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(yaml.as_bytes()));
        written.map_err(|error| not_recorded(&self.path, &error))?;
        out.note(format_args!("recorded in {}", self.path.to_shown()));
        Ok(())
    }
}

fn not_recorded(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("failed to write `{}`: {error}", path.to_shown()))
}
