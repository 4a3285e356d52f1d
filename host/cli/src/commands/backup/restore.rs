//! `belljar restore`: unpacks an archive into a directory beside its target, checks everything, and then
//! moves it into place as a whole.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use belljar_policy::{ShownPath as _, ShownText};
use belljar_store::Store;
use flate2::bufread::GzDecoder;
use tar::EntryType;

use super::collect::{self, DigestReader};
use super::manifest::{
    BackupManifest, BackupPart, MAX_MANIFEST, ManifestEntry, NAME, broken_archive, split_path,
};
use super::scratch::{self, ScratchDirectory};
use crate::args::server::RestoreArgs;
use crate::setup::data::store_failure;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::{HomePaths, STORE, STORE_FILE, create_private, not_written};
use crate::setup::host;
use crate::term::out::TerminalOutput;
use crate::term::table;

/// The first bytes of every SQLite file.
const HEADER: &[u8] = b"SQLite format 3\0";

/// Most bytes after the last file of the archive: the end mark of a tar archive, with padding.
const MAX_END: u64 = 1 << 20;

/// Runs the command. Steps: checks the target, reads the manifest, unpacks each file and compares its digest,
/// checks the stores, moves the directories into place.
pub(crate) fn run(
    args: &RestoreArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let target = RestoreTarget::find_target(args, places)?;
    scratch::remove_on_signal(out)?;
    let mut archive = tar::Archive::new(open_archive(&args.file)?);
    let mut entries = archive.entries().map_err(|error| damaged_archive(&error))?.raw(true);
    let manifest = read_manifest(&mut entries)?;
    if target.root.is_none()
        && manifest.has_part(BackupPart::Data)
        && manifest.has_part(BackupPart::Sessions)
    {
        return Err(Failure::usage("the data root in the backup is not the home's own")
            .with_hint("say where it goes: `--data DIR`"));
    }
    let staged = StagedDirectories::make_beside(&target, out)?;
    staged.has_room(&manifest)?;
    staged.make_directories(&manifest)?;
    for (number, entry) in manifest.files.iter().enumerate() {
        staged.unpack_file(number, entry, entries.next())?;
    }
    if entries.next().is_some() {
        return Err(broken_archive("it holds more than its manifest says"));
    }
    check_archive_end(archive.into_inner())?;
    staged.check_stores()?;
    scratch::ignore_signals();
    staged.put_in_place(&target)?;
    print_restored(&manifest, &target, places, out);
    Ok(CommandExit::Completed)
}

/// The directories into which a backup is restored.
struct RestoreTarget {
    home: PathBuf,
    /// The data root; `None` = it is in the home.
    root: Option<PathBuf>,
}

impl RestoreTarget {
    /// Finds the target directories; an error unless they are empty and apart from each other.
    fn find_target(args: &RestoreArgs, places: &HomePaths) -> Result<Self, Failure> {
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let home = resolved(&places.home);
        let root = match &args.data.data {
            None => None,
            Some(path) => Some(resolved(&std::path::absolute(path).map_err(|error| {
                Failure::usage(format!("`{}` is not a usable path: {error}", path.to_shown()))
            })?)),
        };
        let root = root.filter(|root| *root != home.join("sessions"));
        if let Some(root) =
            root.as_ref().filter(|root| root.starts_with(&home) || home.starts_with(root))
        {
            return Err(Failure::usage(format!(
                "the data root `{}` and the home `{}` lie in each other",
                root.to_shown(),
                home.to_shown()
            ))
            .with_hint("leave out `--data`, or name a directory elsewhere"));
        }
        for path in [Some(&home), root.as_ref()].into_iter().flatten() {
            is_empty(path)?;
        }
        Ok(Self { home, root })
    }
}

/// INV-158: an error unless the directory is missing or empty, because a restore replaces nothing.
fn is_empty(path: &Path) -> Result<(), Failure> {
    let why = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => error.to_string(),
        Ok(mut entries) => match entries.next() {
            None => return Ok(()),
            Some(_) => "it is not empty".to_owned(),
        },
    };
    Err(Failure::usage(format!("nothing is restored into `{}`: {why}", path.to_shown()))
        .with_hint("a backup goes into a directory that is empty or not there: `BELLJAR_HOME=DIR` names another home, `--data DIR` another data root"))
}

type Packed = GzDecoder<BufReader<File>>;

/// Opens a compressed archive.
fn open_archive(path: &Path) -> Result<Packed, Failure> {
    let file = collect::open_file(path, true).map_err(|error| {
        Failure::usage(format!("failed to open `{}`: {error}", path.to_shown()))
    })?;
    Ok(GzDecoder::new(BufReader::new(file)))
}

/// The failure for an archive that cannot be read to its end.
fn damaged_archive(error: &io::Error) -> Failure {
    broken_archive(&format!(
        "it is damaged or cut off ({})",
        ShownText::clip_line(&error.to_string(), 200)
    ))
}

/// Reads the manifest, the first entry of the archive.
fn read_manifest<R: Read>(entries: &mut tar::Entries<'_, R>) -> Result<BackupManifest, Failure> {
    let first = entries.next().ok_or_else(|| broken_archive("it is empty"))?;
    let entry = first.map_err(|error| damaged_archive(&error))?;
    let is_it = is_file_called(&entry, NAME) && entry.size() <= MAX_MANIFEST;
    if !is_it {
        return Err(broken_archive(
            "it does not begin with a manifest, so `belljar backup` has not made it",
        ));
    }
    let mut bytes = Vec::new();
    entry.take(MAX_MANIFEST).read_to_end(&mut bytes).map_err(|error| damaged_archive(&error))?;
    BackupManifest::read(&bytes)
}

/// Returns whether an entry is a plain file with this name, and no link, device or header for the next
/// entry's name.
fn is_file_called<R: Read>(entry: &tar::Entry<'_, R>, name: &str) -> bool {
    let header = entry.header();
    header.entry_type() == EntryType::Regular && *header.path_bytes() == *name.as_bytes()
}

/// Checks that the archive has nothing after its last file.
fn check_archive_end(mut packed: Packed) -> Result<(), Failure> {
    let mut rest = Vec::new();
    let mut end = io::Read::take(&mut packed, MAX_END);
    end.read_to_end(&mut rest).map_err(|error| damaged_archive(&error))?;
    let over = rest.len() as u64 == MAX_END || rest.iter().any(|byte| *byte != 0);
    let mut file = packed.into_inner();
    let more = file.fill_buf().map_err(|error| damaged_archive(&error))?;
    if over || !more.is_empty() {
        return Err(broken_archive("it holds more than its manifest says"));
    }
    Ok(())
}

/// The directories beside the target into which the archive is unpacked; removed on drop.
struct StagedDirectories {
    home: ScratchDirectory,
    root: Option<ScratchDirectory>,
}

impl StagedDirectories {
    fn make_beside(target: &RestoreTarget, out: &TerminalOutput) -> Result<Self, Failure> {
        let root = target.root.as_deref().map(|root| make_scratch_beside(root, out)).transpose()?;
        Ok(Self { home: make_scratch_beside(&target.home, out)?, root })
    }

    /// The directory into which a part of the backup is unpacked.
    fn part_directory(&self, part: BackupPart) -> PathBuf {
        let home = self.home.path().join("new");
        match (part, &self.root) {
            (BackupPart::Home, _) => home,
            (BackupPart::Data, Some(root)) => root.path().join("new"),
            (BackupPart::Data, None) | (BackupPart::Sessions, _) => home.join("sessions"),
        }
    }

    fn staged_path(&self, path: &str) -> Result<PathBuf, Failure> {
        let (part, below) =
            split_path(path).ok_or_else(|| broken_archive("a path lies nowhere"))?;
        Ok(self.part_directory(part).join(below))
    }

    /// Checks that the disk has room for all files of the backup.
    fn has_room(&self, manifest: &BackupManifest) -> Result<(), Failure> {
        let place = self.root.as_ref().unwrap_or(&self.home).path();
        let room = rustix::fs::statvfs(place)
            .map_err(|error| not_written("look at", place, &error.into()))?;
        let room = room.f_bavail.saturating_mul(room.f_frsize);
        if manifest.total_bytes() <= room {
            return Ok(());
        }
        let (needed, room) = (table::format_size(manifest.total_bytes()), table::format_size(room));
        Err(broken_archive(&format!(
            "it takes {needed}, and `{}` has room for {room}",
            place.to_shown()
        )))
    }

    /// Makes all directories of the backup, private to their owner.
    fn make_directories(&self, manifest: &BackupManifest) -> Result<(), Failure> {
        let parts = BackupPart::ALL
            .into_iter()
            .filter(|part| *part == BackupPart::Home || manifest.has_part(*part));
        let parts: Vec<PathBuf> = parts.map(|part| self.part_directory(part)).collect();
        let below = manifest.directories.iter().map(|path| self.staged_path(path));
        for path in parts.into_iter().map(Ok).chain(below) {
            let path = path?;
            create_private(&path).map_err(|error| not_written("create", &path, &error))?;
        }
        Ok(())
    }

    /// INV-158: unpacks the next entry of the archive; an error unless it is the file `wanted` with exactly
    /// its bytes.
    fn unpack_file<R: Read>(
        &self,
        number: usize,
        wanted: &ManifestEntry,
        entry: Option<io::Result<tar::Entry<'_, R>>>,
    ) -> Result<(), Failure> {
        let shown = || ShownText::clip_line(&wanted.path, 200).to_string();
        let entry =
            entry.ok_or_else(|| broken_archive(&format!("it ends before `{}`", shown())))?;
        let entry = entry.map_err(|error| damaged_archive(&error))?;
        if !is_file_called(&entry, &number.to_string()) || entry.size() != wanted.size {
            return Err(broken_archive(&format!(
                "where `{}` should be is something else",
                shown()
            )));
        }
        let path = self.staged_path(&wanted.path)?;
        let mut file = create_file(&path, wanted.executable)
            .map_err(|error| not_written("create", &path, &error))?;
        let mut digesting = DigestReader::from_reader(entry.take(wanted.size));
        match io::copy(&mut digesting, &mut file) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                return Err(not_written("write", &path, &error));
            }
            Err(error) => return Err(damaged_archive(&error)),
        }
        let (size, sha256) = digesting.finish_digest();
        if size == wanted.size && sha256 == wanted.sha256.to_lowercase() {
            return Ok(());
        }
        Err(broken_archive(&format!("`{}` is not what was backed up", shown())))
    }

    /// Checks that every store has exactly the schema of one of this program's versions, opens it, which
    /// migrates it, and verifies all its data.
    fn check_stores(&self) -> Result<(), Failure> {
        for part in [BackupPart::Data, BackupPart::Sessions] {
            let path = self.part_directory(part).join(STORE).join(STORE_FILE);
            if !path.is_file() {
                continue;
            }
            if !is_database(&path).map_err(|error| not_written("read", &path, &error))? {
                return Err(broken_archive(&format!(
                    "`{}/{STORE}/{STORE_FILE}` is no store",
                    part.as_str()
                )));
            }
            host::small_runtime()?.block_on(async {
                let unfit = |error| broken_archive(&format_error_chain(&error));
                // INV-158: checked before the store is opened, because a foreign schema could contain code.
                Store::check_schema(&path).await.map_err(unfit)?;
                let store = Store::open(&path).await.map_err(unfit)?;
                let whole = store
                    .verify_file()
                    .await
                    .map_err(|error| broken_archive(&store_failure(error).message));
                store.close().await;
                whole
            })?;
        }
        Ok(())
    }

    /// Moves the unpacked directories to their target. If the second move fails, the first is undone.
    fn put_in_place(&self, target: &RestoreTarget) -> Result<(), Failure> {
        let root = target.root.as_deref().map(|root| (self.part_directory(BackupPart::Data), root));
        // A backup without a server's data has no data root.
        let root = root.filter(|(staged, _)| staged.is_dir());
        if let Some((staged, root)) = &root {
            move_into_place(staged, root)?;
        }
        move_into_place(&self.part_directory(BackupPart::Home), &target.home).map_err(|failure| {
            match &root {
                None => failure,
                Some((staged, root)) => match fs::rename(root, staged) {
                    Ok(()) => failure,
                    Err(_) => failure.with_hint(format!(
                        "`{}` is restored, and yours to delete",
                        root.to_shown()
                    )),
                },
            }
        })
    }
}

/// Returns whether a file is a database. SQLite itself would accept an empty file.
fn is_database(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(HEADER.len() as u64).read_to_end(&mut start)?;
    Ok(start == HEADER)
}

/// Makes a private directory beside `place`, whose missing parents are made.
fn make_scratch_beside(place: &Path, out: &TerminalOutput) -> Result<ScratchDirectory, Failure> {
    let parent = place.parent().unwrap_or(place);
    let made = create_private(parent);
    let made = made.and_then(|()| ScratchDirectory::make_inside(scratch::OF_RESTORE, parent, out));
    made.map_err(|error| not_written("create a directory in", parent, &error))
}

#[cfg(unix)]
fn create_file(path: &Path, executable: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mode = if executable { 0o700 } else { 0o600 };
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

#[cfg(not(unix))]
fn create_file(path: &Path, _executable: bool) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

/// Moves a directory to a path that is missing or an empty directory.
fn move_into_place(staged: &Path, place: &Path) -> Result<(), Failure> {
    let removed = match fs::remove_dir(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    removed
        .and_then(|()| fs::rename(staged, place))
        .map_err(|error| not_written("put the backup at", place, &error))
}

/// Prints what was restored, and a note if `belljar.toml` names another data root.
fn print_restored(
    manifest: &BackupManifest,
    target: &RestoreTarget,
    places: &HomePaths,
    out: &TerminalOutput,
) {
    let files = table::format_quantity(manifest.files.len() as u64, "file");
    out.print_line(format_args!("restored {files} into {}", target.home.to_shown()));
    if let Some(root) = target.root.as_ref().filter(|root| root.is_dir()) {
        out.print_line(format_args!("the data root is {}", root.to_shown()));
    }
    let settings = match host::read_settings(places) {
        Ok(settings) => settings,
        Err(failure) => return out.print_failure(&failure),
    };
    let named = settings.server.data.as_deref();
    let there = target.root.clone().unwrap_or_else(|| target.home.join("sessions"));
    if manifest.has_part(BackupPart::Data)
        && named.map_or(target.root.is_some(), |named| named != there)
    {
        out.note(format_args!(
            "`belljar.toml` does not name this data root: set `data` under `[server]`, or give \
             `--data {}` to `belljar serve` and the commands around it",
            there.to_shown()
        ));
    }
}
