//! `belljar backup` and `belljar restore`: one archive of all belljar's data, made while a server runs, and
//! restored only after every check.
//!
//! ```text
//! manifest.json   what follows: paths, sizes, SHA-256
//! 0, 1, 2, ...    the files, by their number in the manifest
//! ```

mod collect;
mod manifest;
pub(crate) mod restore;
mod scratch;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use belljar_policy::{ShownPath as _, ShownText};
use belljar_store::SCHEMA_VERSION;
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

use self::collect::{BackupFiles, DigestReader};
use self::manifest::{BackupManifest, BackupPart, FORMAT, ManifestEntry, NAME};
use self::scratch::ScratchDirectory;
use crate::args::server::BackupArgs;
use crate::setup::below;
use crate::setup::data::{DataRoot, in_store, now_millis, store_failure};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, STORE, STORE_FILE, not_written};
use crate::setup::host;
use crate::term::out::TerminalOutput;
use crate::term::table;

/// The most attempts to make a backup, because it begins anew if a file changes while it is read.
const MAX_ATTEMPTS: usize = 3;

/// The most paths of left-out files that are named.
const MAX_NAMED: usize = 5;

/// Runs `belljar backup`: finds and digests all files, writes the archive in a temporary directory, and moves
/// it to its place.
pub(crate) fn run(
    args: &BackupArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let data = DataRoot::find_root(&args.data, &host::read_settings(places)?, places)?;
    let target = archive_target(&args.file, places, &data)?;
    scratch::remove_on_signal(out)?;
    for _ in 0..MAX_ATTEMPTS {
        let scratch = make_scratch(&target, out)?;
        let found = find_files(args, places, &data, scratch.path())?;
        let manifest = describe_backup(args, &found);
        manifest.check_paths().map_err(|failure| {
            let why = failure.message.trim_start_matches("the backup cannot be restored: ");
            Failure::new(format!("a restore would refuse it: {why}"))
                .with_hint("rename it, or move it away")
        })?;
        if let Some(file) = write_archive(&manifest, &found, scratch.path(), &target)? {
            scratch::ignore_signals();
            file.persist_noclobber(&target)
                .map_err(|error| unwritable_archive(&target, &error.error))?;
            print_content(&target, &manifest, &found, out);
            let undecided = count_overlays(data.root_path(), places);
            if undecided > 0 {
                out.print_warning(format_args!(
                    "left out: what agents changed in the overlays of {}: an overlay belongs to its \
                     directory on this machine; `belljar changes` shows them, `belljar apply` keeps them",
                    table::format_quantity(undecided, "session")
                ));
            }
            return Ok(CommandExit::Completed);
        }
    }
    Err(Failure::new(format!(
        "files change while they are read, {MAX_ATTEMPTS} times in a row; nothing is written"
    ))
    .with_hint("leave out `--workspaces`, or wait until the agents that write there have ended"))
}

/// The number of sessions with an overlay: the operator's and all tenants'.
fn count_overlays(root: &Path, places: &HomePaths) -> u64 {
    let below = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut stores = vec![places.store_path(), root.join(STORE).join(STORE_FILE)];
    stores.dedup();
    let tenants = stores.iter().flat_map(|store| below(&store.with_extension("overlays")));
    tenants.map(|tenant| below(&tenant.path()).count() as u64).sum()
}

/// The path of the archive: a new file, outside of the directories that are backed up.
fn archive_target(file: &Path, places: &HomePaths, data: &DataRoot) -> Result<PathBuf, Failure> {
    let shown = file.to_shown();
    let unfit = |why: &str| Failure::usage(format!("`{shown}` cannot be written: {why}"));
    let name = file.file_name().ok_or_else(|| unfit("it names no file"))?;
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    let target = parent.map_err(|error| unfit(&error.to_string()))?.join(name);
    let is_free =
        below::output_place(file, &places.workspace).and_then(|(at, name)| at.is_free(&name));
    if !is_free.map_err(|error| unfit(&error.to_string()))? {
        return Err(
            unfit("it is there already").with_hint("a backup replaces nothing; name a new file")
        );
    }
    let own = [places.home.as_path(), data.root_path()].map(|own| own.canonicalize());
    if own.iter().flatten().any(|own| target.starts_with(own)) {
        return Err(unfit("it lies in what it would hold").with_hint("name a file elsewhere"));
    }
    Ok(target)
}

/// Makes a private directory beside the archive, for copies of stores and for the unfinished archive.
fn make_scratch(target: &Path, out: &TerminalOutput) -> Result<ScratchDirectory, Failure> {
    let parent = target.parent().unwrap_or(Path::new("."));
    ScratchDirectory::make_inside(scratch::OF_BACKUP, parent, out)
        .map_err(|error| unwritable_archive(target, &error))
}

/// The failure of writing the archive at the path that the person chose.
fn unwritable_archive(target: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            let (target, kind) = (target.to_shown(), error.kind());
            Failure::new(format!("`{target}` cannot be written: {kind}"))
                .with_hint("name a file in a directory that you may write to")
        }
        _ => not_written("write", target, error),
    }
}

/// Finds all files of the backup, and makes copies of the stores.
fn find_files(
    args: &BackupArgs,
    places: &HomePaths,
    data: &DataRoot,
    scratch: &Path,
) -> Result<BackupFiles, Failure> {
    let mut found = BackupFiles::default();
    found.add_home(&places.home, &places.cache, data.root_path())?;
    if let Some(store) = snapshot_store(&data.store_path(), scratch, "data.db")? {
        found.add_sessions(data.root_path(), BackupPart::Data, &store, args.workspaces)?;
    }
    if data.root_path() != places.sessions_directory()
        && let Some(store) = snapshot_store(&places.store_path(), scratch, "sessions.db")?
    {
        found.add_sessions(
            &places.sessions_directory(),
            BackupPart::Sessions,
            &store,
            args.workspaces,
        )?;
    }
    if found.files.is_empty() {
        return Err(Failure::usage(format!("there is nothing in `{}`", places.home.to_shown()))
            .with_hint("`BELLJAR_HOME` names another home, `--data` another data root"));
    }
    Ok(found)
}

/// Copies a store into `scratch`, consistent even while a server writes; `None` = there is no store.
fn snapshot_store(store: &Path, scratch: &Path, name: &str) -> Result<Option<PathBuf>, Failure> {
    if !store.is_file() {
        return Ok(None);
    }
    let copy = scratch.join(name);
    in_store(store, async |store| store.write_snapshot(&copy).await.map_err(store_failure))?;
    Ok(Some(copy))
}

/// Makes the manifest from the found files.
fn describe_backup(args: &BackupArgs, found: &BackupFiles) -> BackupManifest {
    BackupManifest {
        format: FORMAT,
        belljar: env!("CARGO_PKG_VERSION").to_owned(),
        schema: SCHEMA_VERSION,
        made: now_millis(),
        workspaces: args.workspaces,
        directories: found.directories.clone(),
        files: found.files.iter().map(|(_, entry)| entry.clone()).collect(),
    }
}

/// Writes the archive in `scratch`, readable by its owner only; `None` = a file has changed since its digest
/// was computed.
fn write_archive(
    manifest: &BackupManifest,
    found: &BackupFiles,
    scratch: &Path,
    target: &Path,
) -> Result<Option<NamedTempFile>, Failure> {
    let failed = |error: io::Error| unwritable_archive(target, &error);
    let file = NamedTempFile::new_in(scratch).map_err(failed)?;
    let packed = GzEncoder::new(BufWriter::new(file), Compression::default());
    let mut archive = tar::Builder::new(packed);
    let json = serde_json::to_vec(manifest)
        .map_err(|error| Failure::new(format!("the manifest cannot be written: {error}")))?;
    if json.len() as u64 > manifest::MAX_MANIFEST {
        return Err(Failure::new("there are too many files to back up")
            .with_hint("leave out `--workspaces`"));
    }
    append_bytes(&mut archive, NAME, json.len() as u64, json.as_slice()).map_err(failed)?;
    for (number, (path, entry)) in found.files.iter().enumerate() {
        if !add_file(&mut archive, number, path, entry).map_err(failed)? {
            return Ok(None);
        }
    }
    let packed = archive.into_inner().map_err(failed)?;
    let mut buffer = packed.finish().map_err(failed)?;
    buffer.flush().map_err(failed)?;
    let file = buffer.into_inner().map_err(|error| failed(error.into_error()))?;
    file.as_file().sync_all().map_err(failed)?;
    Ok(Some(file))
}

type Archive = tar::Builder<GzEncoder<BufWriter<NamedTempFile>>>;

/// Adds a file to the archive; returns false if it has changed since its digest was computed.
fn add_file(
    archive: &mut Archive,
    number: usize,
    path: &Path,
    entry: &ManifestEntry,
) -> io::Result<bool> {
    // Links are followed, as they were for the digest.
    let Ok(file) = collect::open_file(path, true) else { return Ok(false) };
    if file.metadata()?.len() != entry.size {
        return Ok(false);
    }
    let mut digesting = DigestReader::from_reader(io::Read::take(file, entry.size));
    append_bytes(archive, &number.to_string(), entry.size, &mut digesting)?;
    let (size, sha256) = digesting.finish_digest();
    Ok(size == entry.size && sha256 == entry.sha256)
}

/// Adds an entry with this name and content to the archive.
fn append_bytes(
    archive: &mut Archive,
    name: &str,
    size: u64,
    from: impl io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    archive.append_data(&mut header, name, from)
}

/// Prints what the archive contains, and the files that were left out.
fn print_content(
    target: &Path,
    manifest: &BackupManifest,
    found: &BackupFiles,
    out: &TerminalOutput,
) {
    let packed = File::open(target).and_then(|file| file.metadata()).map_or(0, |it| it.len());
    out.print_line(format_args!(
        "wrote {}: {}, {} ({} packed)",
        target.to_shown(),
        table::format_quantity(manifest.files.len() as u64, "file"),
        table::format_size(manifest.total_bytes()),
        table::format_size(packed)
    ));
    out.note(
        "it holds what the home holds: sessions, grants, and secrets that lie in files there; of the \
         server's keys digests only. Keep it as you keep the home",
    );
    if !manifest.workspaces && manifest.has_part(BackupPart::Data) {
        out.note("what tenants' agents work on is not in it: `--workspaces` adds it");
    }
    for (path, why) in found.left_out.iter().take(MAX_NAMED) {
        out.print_warning(format_args!("left out: `{}`: {why}", path.to_shown()));
    }
    let more = found.left_out.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        let more = format!("and {more} more are left out");
        out.print_warning(ShownText::new(&more));
    }
}
