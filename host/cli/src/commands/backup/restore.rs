//! `belljar restore`: an archive is unpacked beside the place where it belongs, checked, and put there
//! as a whole.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use belljar_policy::{Shown, ShownPath as _};
use belljar_store::Store;
use flate2::bufread::GzDecoder;
use tar::EntryType;

use super::collect::{self, Digesting};
use super::manifest::{Entry, MAX_MANIFEST, Manifest, NAME, Part, broken, split};
use super::scratch::{self, Scratch};
use crate::args::server::RestoreArgs;
use crate::setup::data::failed;
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::{Places, STORE, STORE_FILE, create_private, not_written};
use crate::setup::host;
use crate::term::out::Out;
use crate::term::table;

/// The beginning of every file of SQLite.
const HEADER: &[u8] = b"SQLite format 3\0";

/// Most bytes after the last file: the end of a tar archive, with padding.
const MAX_END: u64 = 1 << 20;

pub(crate) fn run(args: &RestoreArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let target = Target::find(args, places)?;
    scratch::remove_on_signal(out)?;
    let mut archive = tar::Archive::new(opened(&args.file)?);
    let mut entries = archive.entries().map_err(|error| damaged(&error))?.raw(true);
    let manifest = manifest(&mut entries)?;
    if target.root.is_none() && manifest.has(Part::Data) && manifest.has(Part::Sessions) {
        return Err(Failure::usage("the data root in the backup is not the home's own")
            .hint("say where it goes: `--data DIR`"));
    }
    let staged = Staged::make(&target, out)?;
    staged.has_room(&manifest)?;
    staged.directories(&manifest)?;
    for (number, entry) in manifest.files.iter().enumerate() {
        staged.file(number, entry, entries.next())?;
    }
    if entries.next().is_some() {
        return Err(broken("it holds more than its manifest says"));
    }
    ends(archive.into_inner())?;
    staged.check_stores()?;
    scratch::finish();
    staged.put_in_place(&target)?;
    say(&manifest, &target, places, out);
    Ok(Exit::Completed)
}

/// Where a backup goes.
struct Target {
    home: PathBuf,
    /// The data root, where it is not in the home.
    root: Option<PathBuf>,
}

impl Target {
    fn find(args: &RestoreArgs, places: &Places) -> Result<Self, Failure> {
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let home = resolved(&places.home);
        let root = match &args.data.data {
            None => None,
            Some(path) => Some(resolved(&std::path::absolute(path).map_err(|error| {
                Failure::usage(format!("`{}` is not a usable path: {error}", path.shown()))
            })?)),
        };
        let root = root.filter(|root| *root != home.join("sessions"));
        if let Some(root) =
            root.as_ref().filter(|root| root.starts_with(&home) || home.starts_with(root))
        {
            return Err(Failure::usage(format!(
                "the data root `{}` and the home `{}` lie in each other",
                root.shown(),
                home.shown()
            ))
            .hint("leave out `--data`, or name a directory elsewhere"));
        }
        for path in [Some(&home), root.as_ref()].into_iter().flatten() {
            is_empty(path)?;
        }
        Ok(Self { home, root })
    }
}

/// INV-158: nothing is replaced.
fn is_empty(path: &Path) -> Result<(), Failure> {
    let why = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => error.to_string(),
        Ok(mut entries) => match entries.next() {
            None => return Ok(()),
            Some(_) => "it is not empty".to_owned(),
        },
    };
    Err(Failure::usage(format!("nothing is restored into `{}`: {why}", path.shown()))
        .hint("a backup goes into a directory that is empty or not there: `BELLJAR_HOME=DIR` names another home, `--data DIR` another data root"))
}

type Packed = GzDecoder<BufReader<File>>;

fn opened(path: &Path) -> Result<Packed, Failure> {
    let file = collect::open(path, true)
        .map_err(|error| Failure::usage(format!("failed to open `{}`: {error}", path.shown())))?;
    Ok(GzDecoder::new(BufReader::new(file)))
}

fn damaged(error: &io::Error) -> Failure {
    broken(&format!("it is damaged or cut off ({})", Shown::clipped(&error.to_string(), 200)))
}

/// The manifest, which comes first.
fn manifest<R: Read>(entries: &mut tar::Entries<'_, R>) -> Result<Manifest, Failure> {
    let first = entries.next().ok_or_else(|| broken("it is empty"))?;
    let entry = first.map_err(|error| damaged(&error))?;
    let is_it = is_file_called(&entry, NAME) && entry.size() <= MAX_MANIFEST;
    if !is_it {
        return Err(broken(
            "it does not begin with a manifest, so `belljar backup` has not made it",
        ));
    }
    let mut bytes = Vec::new();
    entry.take(MAX_MANIFEST).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
    Manifest::read(&bytes)
}

/// Whether an entry is a plain file with this name: no link, no device, no header for the next entry's name.
fn is_file_called<R: Read>(entry: &tar::Entry<'_, R>, name: &str) -> bool {
    let header = entry.header();
    header.entry_type() == EntryType::Regular && *header.path_bytes() == *name.as_bytes()
}

/// A check that nothing is behind the last file, to the end of the archive.
fn ends(mut packed: Packed) -> Result<(), Failure> {
    let mut rest = Vec::new();
    let mut end = io::Read::take(&mut packed, MAX_END);
    end.read_to_end(&mut rest).map_err(|error| damaged(&error))?;
    let over = rest.len() as u64 == MAX_END || rest.iter().any(|byte| *byte != 0);
    let mut file = packed.into_inner();
    let more = file.fill_buf().map_err(|error| damaged(&error))?;
    if over || !more.is_empty() {
        return Err(broken("it holds more than its manifest says"));
    }
    Ok(())
}

/// The directories beside the target for unpacking, removed on drop.
struct Staged {
    home: Scratch,
    root: Option<Scratch>,
}

impl Staged {
    fn make(target: &Target, out: &Out) -> Result<Self, Failure> {
        let root = target.root.as_deref().map(|root| beside(root, out)).transpose()?;
        Ok(Self { home: beside(&target.home, out)?, root })
    }

    /// Where a part goes.
    fn of(&self, part: Part) -> PathBuf {
        let home = self.home.path().join("new");
        match (part, &self.root) {
            (Part::Home, _) => home,
            (Part::Data, Some(root)) => root.path().join("new"),
            (Part::Data, None) | (Part::Sessions, _) => home.join("sessions"),
        }
    }

    fn place(&self, path: &str) -> Result<PathBuf, Failure> {
        let (part, below) = split(path).ok_or_else(|| broken("a path lies nowhere"))?;
        Ok(self.of(part).join(below))
    }

    fn has_room(&self, manifest: &Manifest) -> Result<(), Failure> {
        let place = self.root.as_ref().unwrap_or(&self.home).path();
        let room = rustix::fs::statvfs(place)
            .map_err(|error| not_written("look at", place, &error.into()))?;
        let room = room.f_bavail.saturating_mul(room.f_frsize);
        if manifest.bytes() <= room {
            return Ok(());
        }
        let (needed, room) = (table::size(manifest.bytes()), table::size(room));
        Err(broken(&format!("it takes {needed}, and `{}` has room for {room}", place.shown())))
    }

    fn directories(&self, manifest: &Manifest) -> Result<(), Failure> {
        let parts = Part::ALL.into_iter().filter(|part| *part == Part::Home || manifest.has(*part));
        let parts: Vec<PathBuf> = parts.map(|part| self.of(part)).collect();
        let below = manifest.directories.iter().map(|path| self.place(path));
        for path in parts.into_iter().map(Ok).chain(below) {
            let path = path?;
            create_private(&path).map_err(|error| not_written("create", &path, &error))?;
        }
        Ok(())
    }

    /// INV-158: the next entry is this file with exactly these bytes, or nothing is restored.
    fn file<R: Read>(
        &self,
        number: usize,
        wanted: &Entry,
        entry: Option<io::Result<tar::Entry<'_, R>>>,
    ) -> Result<(), Failure> {
        let shown = || Shown::clipped(&wanted.path, 200).to_string();
        let entry = entry.ok_or_else(|| broken(&format!("it ends before `{}`", shown())))?;
        let entry = entry.map_err(|error| damaged(&error))?;
        if !is_file_called(&entry, &number.to_string()) || entry.size() != wanted.size {
            return Err(broken(&format!("where `{}` should be is something else", shown())));
        }
        let path = self.place(&wanted.path)?;
        let mut file = create(&path, wanted.executable)
            .map_err(|error| not_written("create", &path, &error))?;
        let mut digesting = Digesting::of(entry.take(wanted.size));
        match io::copy(&mut digesting, &mut file) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                return Err(not_written("write", &path, &error));
            }
            Err(error) => return Err(damaged(&error)),
        }
        let (size, sha256) = digesting.finish();
        if size == wanted.size && sha256 == wanted.sha256.to_lowercase() {
            return Ok(());
        }
        Err(broken(&format!("`{}` is not what was backed up", shown())))
    }

    /// Checks that every store has exactly the schema of this program, opens it, which migrates the schema,
    /// and verifies all of it.
    fn check_stores(&self) -> Result<(), Failure> {
        for part in [Part::Data, Part::Sessions] {
            let path = self.of(part).join(STORE).join(STORE_FILE);
            if !path.is_file() {
                continue;
            }
            if !is_database(&path).map_err(|error| not_written("read", &path, &error))? {
                return Err(broken(&format!(
                    "`{}/{STORE}/{STORE_FILE}` is no store",
                    part.as_str()
                )));
            }
            host::small_runtime()?.block_on(async {
                let unfit = |error| broken(&chain(&error));
                // INV-158: before any stored code can run.
                Store::check_schema(&path).await.map_err(unfit)?;
                let store = Store::open(&path).await.map_err(unfit)?;
                let whole = store.verify().await.map_err(|error| broken(&failed(error).message));
                store.close().await;
                whole
            })?;
        }
        Ok(())
    }

    fn put_in_place(&self, target: &Target) -> Result<(), Failure> {
        let root = target.root.as_deref().map(|root| (self.of(Part::Data), root));
        // Without a server's data in it there is no data root to make.
        let root = root.filter(|(staged, _)| staged.is_dir());
        if let Some((staged, root)) = &root {
            put(staged, root)?;
        }
        put(&self.of(Part::Home), &target.home).map_err(|failure| match &root {
            None => failure,
            Some((staged, root)) => match fs::rename(root, staged) {
                Ok(()) => failure,
                Err(_) => {
                    failure.hint(format!("`{}` is restored, and yours to delete", root.shown()))
                }
            },
        })
    }
}

/// Whether a file is a database at all: SQLite treats one of a few bytes as empty.
fn is_database(path: &Path) -> io::Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(HEADER.len() as u64).read_to_end(&mut start)?;
    Ok(start == HEADER)
}

/// A private directory beside a place, whose parents are made.
fn beside(place: &Path, out: &Out) -> Result<Scratch, Failure> {
    let parent = place.parent().unwrap_or(place);
    let made = create_private(parent);
    let made = made.and_then(|()| Scratch::make(scratch::OF_RESTORE, parent, out));
    made.map_err(|error| not_written("create a directory in", parent, &error))
}

#[cfg(unix)]
fn create(path: &Path, executable: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mode = if executable { 0o700 } else { 0o600 };
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

#[cfg(not(unix))]
fn create(path: &Path, _executable: bool) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

/// Moves a directory to a place that is missing or empty.
fn put(staged: &Path, place: &Path) -> Result<(), Failure> {
    let removed = match fs::remove_dir(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    removed
        .and_then(|()| fs::rename(staged, place))
        .map_err(|error| not_written("put the backup at", place, &error))
}

fn say(manifest: &Manifest, target: &Target, places: &Places, out: &Out) {
    let files = table::some(manifest.files.len() as u64, "file");
    out.line(format_args!("restored {files} into {}", target.home.shown()));
    if let Some(root) = target.root.as_ref().filter(|root| root.is_dir()) {
        out.line(format_args!("the data root is {}", root.shown()));
    }
    let settings = match host::settings(places) {
        Ok(settings) => settings,
        Err(failure) => return out.failure(&failure),
    };
    let named = settings.server.data.as_deref();
    let there = target.root.clone().unwrap_or_else(|| target.home.join("sessions"));
    if manifest.has(Part::Data) && named.map_or(target.root.is_some(), |named| named != there) {
        out.note(format_args!(
            "`belljar.toml` does not name this data root: set `data` under `[server]`, or give \
             `--data {}` to `belljar serve` and the commands around it",
            there.shown()
        ));
    }
}
