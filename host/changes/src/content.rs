//! The contents of a change: before, after, merged; their lines and digests.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use belljar_sandbox::{Digest, Original, Overlay};
use belljar_work::StopSignal;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::change::{Conflict, FileChange, FileDifference, Node};
use crate::diff::{MAX_STEPS, Meter};
use crate::workspace::Workspace;
use crate::{ChangesError, text};

/// Both contents of a file.
pub(crate) struct Contents {
    /// Both versions as texts; `None` = not text, or too large.
    pub(crate) texts: Option<(Vec<u8>, Vec<u8>)>,
}

/// Opens the content before a change. If the workspace's file changed too, opens the agent's original, if
/// known.
pub(crate) fn before(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Option<File>, ChangesError> {
    let Some(below) = &file.below else { return Ok(None) };
    if (file.merges || file.conflict == Some(Conflict::Changed))
        && let Some(base) = base(overlay, file.original.as_ref())
    {
        return Ok(Some(base));
    }
    match workspace.open(below) {
        Ok((file, _)) => Ok(Some(file)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP) => Ok(None),
        Err(errno) => Err(ChangesError::io("open", below)(errno)),
    }
}

/// Opens the content after a change.
pub(crate) fn after(overlay: &Overlay, file: &FileChange) -> Result<Option<File>, ChangesError> {
    match file.kind {
        FileDifference::Deleted => Ok(None),
        FileDifference::Added
        | FileDifference::Modified
        | FileDifference::Renamed { .. }
        | FileDifference::Mode => {
            overlay.open_file(&file.path).map(Some).map_err(ChangesError::io("open", &file.path))
        }
    }
}

pub(crate) fn contents(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Contents, ChangesError> {
    let failed = |error: io::Error| ChangesError::io("read", &file.path)(error);
    let (before, after) = (before(overlay, workspace, file)?, after(overlay, file)?);
    let text = |file: Option<File>| file.map_or(Ok(Some(Vec::new())), read_text);
    let texts = text(before).and_then(|before| Ok(before.zip(text(after)?))).map_err(failed)?;
    Ok(Contents { texts })
}

fn base(overlay: &Overlay, original: Option<&Original>) -> Option<File> {
    overlay.base(&original?.digest?).ok()
}

/// The merge of both versions, if possible.
pub(crate) fn merged(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
    stop: &StopSignal,
) -> Result<Option<Vec<u8>>, ChangesError> {
    let versions = versions(overlay, workspace, file)?;
    let Some([base, ours, theirs]) = versions else { return Ok(None) };
    Ok(text::merge(&base, &ours, &theirs, stop)?)
}

/// Counts the lines of a change with at most `steps`, and subtracts the used steps.
pub(crate) fn count(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &mut FileChange,
    steps: &mut u64,
    stop: &StopSignal,
) -> Result<(), ChangesError> {
    let has_lines = match &file.kind {
        FileDifference::Renamed { modified: false, .. } | FileDifference::Mode => false,
        FileDifference::Deleted => file.node == Node::File,
        FileDifference::Added | FileDifference::Modified | FileDifference::Renamed { .. } => {
            file.node != Node::Directory
        }
    };
    if has_lines {
        match contents(overlay, workspace, file)?.texts {
            Some((before, after)) => {
                let most = MAX_STEPS.min(*steps);
                let mut meter = Meter::of(most, stop);
                let counted = text::count(&before, &after, &mut meter)?;
                *steps -= most - meter.left();
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
pub(crate) fn versions(
    overlay: &Overlay,
    workspace: &Workspace,
    file: &FileChange,
) -> Result<Option<[Vec<u8>; 3]>, ChangesError> {
    let failed = |error: io::Error| ChangesError::io("read", &file.path)(error);
    let (Some(below), Some(base)) = (&file.below, base(overlay, file.original.as_ref())) else {
        return Ok(None);
    };
    let Ok((ours, _)) = workspace.open(below) else { return Ok(None) };
    let Some(theirs) = after(overlay, file)? else { return Ok(None) };
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
        stop.check()?;
        match file.read(&mut part).map_err(ChangesError::io("read", path))? {
            0 => return Ok(Digest::from_bytes(sum.finalize().into())),
            read => sum.update(part.get(..read).unwrap_or_default()),
        }
    }
}

/// The SHA-256 of a file.
pub(crate) fn digest(mut file: &File) -> io::Result<Digest> {
    let mut sum = Sha256::new();
    let mut part = vec![0; 64 << 10];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(Digest::from_bytes(sum.finalize().into())),
            read => sum.update(part.get(..read).unwrap_or_default()),
        }
    }
}
