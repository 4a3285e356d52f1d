//! The contents of a change: before, after, merged; their lines and digests.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::{Digest, OriginalState, Overlay};
use belljar_work::StopSignal;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::changes::change::{ChangeConflict, FileChange, FileDifference, NodeKind};
use crate::changes::diff::{MAX_STEPS, StepMeter};
use crate::changes::workspace::Workspace;
use crate::changes::{ChangesError, text};

/// Both contents of a file.
pub(crate) struct TextPair {
    /// Both versions as texts; `None` = not text, or too large.
    pub(crate) texts: Option<(Vec<u8>, Vec<u8>)>,
}

/// Opens the content before a change. If the workspace's file changed too, opens the agent's original, if
/// known.
pub(crate) fn open_original(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Option<File>, ChangesError> {
    let Some(below) = &file.below else { return Ok(None) };
    if (file.merges || file.conflict == Some(ChangeConflict::Changed))
        && let Some(base) = open_base(overlay, file.original.as_ref())
    {
        return Ok(Some(base));
    }
    match workspace.open_file(below) {
        Ok((file, _)) => Ok(Some(file)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP) => Ok(None),
        Err(errno) => Err(ChangesError::from_io("open", below)(errno)),
    }
}

/// Opens the content after a change.
pub(crate) fn open_result(
    overlay: &Overlay,
    file: &FileChange,
) -> Result<Option<File>, ChangesError> {
    match file.kind {
        FileDifference::Deleted => Ok(None),
        FileDifference::Added
        | FileDifference::Modified
        | FileDifference::Renamed { .. }
        | FileDifference::Mode => overlay
            .open_file(&file.path)
            .map(Some)
            .map_err(ChangesError::from_io("open", &file.path)),
    }
}

/// Reads the texts of a file before and after the change.
pub(crate) fn read_contents(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<TextPair, ChangesError> {
    let failed = |error: io::Error| ChangesError::from_io("read", &file.path)(error);
    let (before, after) = (open_original(overlay, workspace, file)?, open_result(overlay, file)?);
    let text = |file: Option<File>| file.map_or(Ok(Some(Vec::new())), read_text);
    let texts = text(before).and_then(|before| Ok(before.zip(text(after)?))).map_err(failed)?;
    Ok(TextPair { texts })
}

fn open_base(overlay: &Overlay, original: Option<&OriginalState>) -> Option<File> {
    overlay.open_base(&original?.digest?).ok()
}

/// The merge of both versions, if possible.
pub(crate) fn merge_versions(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
    stop: &StopSignal,
) -> Result<Option<Vec<u8>>, ChangesError> {
    let versions = read_versions(overlay, workspace, file)?;
    let Some([base, ours, theirs]) = versions else { return Ok(None) };
    Ok(text::merge_texts(&base, &ours, &theirs, stop)?)
}

/// Counts the lines of a change with at most `steps`, and subtracts the used steps.
pub(crate) fn count_lines(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &mut FileChange,
    steps: &mut u64,
    stop: &StopSignal,
) -> Result<(), ChangesError> {
    let has_lines = match &file.kind {
        FileDifference::Renamed { modified: false, .. } | FileDifference::Mode => false,
        FileDifference::Deleted => file.node == NodeKind::File,
        FileDifference::Added | FileDifference::Modified | FileDifference::Renamed { .. } => {
            file.node != NodeKind::Directory
        }
    };
    if has_lines {
        match read_contents(overlay, workspace, file)?.texts {
            Some((before, after)) => {
                let most = MAX_STEPS.min(*steps);
                let mut meter = StepMeter::with_steps(most, stop);
                let counted = text::count_differences(&before, &after, &mut meter)?;
                *steps -= most - meter.steps_left();
                (file.added, file.removed) = (counted.added, counted.removed);
                file.replaced = counted.is_coarse;
            }
            None => file.binary = true,
        }
    }
    file.counted = true;
    Ok(())
}

/// Three versions of a text: the agent's original, the workspace's and the agent's; `None` = a version is
/// unknown, or not text.
pub(crate) fn read_versions(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Option<[Vec<u8>; 3]>, ChangesError> {
    let failed = |error: io::Error| ChangesError::from_io("read", &file.path)(error);
    let (Some(below), Some(base)) = (&file.below, open_base(overlay, file.original.as_ref()))
    else {
        return Ok(None);
    };
    let Ok((ours, _)) = workspace.open_file(below) else { return Ok(None) };
    let Some(theirs) = open_result(overlay, file)? else { return Ok(None) };
    let mut texts = Vec::new();
    for file in [base, ours, theirs] {
        match read_text(file).map_err(failed)? {
            Some(text) => texts.push(text),
            None => return Ok(None),
        }
    }
    Ok(texts.try_into().ok())
}

/// A file as a text; `None` = not text, or too large.
fn read_text(file: File) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    file.take(text::MAX_TEXT + 1).read_to_end(&mut content)?;
    let fits = content.len() as u64 <= text::MAX_TEXT && !text::is_binary(&content);
    Ok(fits.then_some(content))
}

/// The SHA-256 of a file of any size.
pub(crate) fn digest_until(
    mut file: &File,
    path: &Path,
    stop: &StopSignal,
) -> Result<Digest, ChangesError> {
    let mut sum = Sha256::new();
    let mut part = vec![0; 64 << 10];
    loop {
        stop.check_raised()?;
        match file.read(&mut part).map_err(ChangesError::from_io("read", path))? {
            0 => return Ok(Digest::from_bytes(sum.finalize().into())),
            read => sum.update(part.get(..read).unwrap_or_default()),
        }
    }
}

/// The SHA-256 of a file.
pub(crate) fn file_digest(mut file: &File) -> io::Result<Digest> {
    let mut sum = Sha256::new();
    let mut part = vec![0; 64 << 10];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(Digest::from_bytes(sum.finalize().into())),
            read => sum.update(part.get(..read).unwrap_or_default()),
        }
    }
}
