//! A copy of the needed parts of a stranger's git repository: its objects and the names of its commits, each
//! as a regular file.
//!
//! A repository has many ways to refer outside of itself, for example alternates, a common directory, a
//! `.git` file, links, includes, symbolic references. None is in the copy, which is made only from the files
//! listed here. A repository that needs such a reference is refused with its name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::FileType;

use super::folder::{OpenFolder, WorkDeadline};

/// Bytes of all objects. A library with ten years of history has a few hundred million.
const MAX_BYTES: u64 = 1 << 30;

/// Objects, packs and references.
const MAX_FILES: usize = 200_000;

/// Bytes of a file that names one commit.
const MAX_REF: u64 = 1 << 10;

/// Bytes of a list of references, or of commits without parents.
const MAX_LIST: u64 = 16 << 20;

/// Folders of references below `refs/heads` and `refs/tags`.
const MAX_DEPTH: usize = 16;

/// The copy's configuration of git. The stranger's is not used, and the process that serves a clone reads
/// only this one.
const CONFIG: &str = "\
\tbare = true
\tpackedGitWindowSize = 32m
\tpackedGitLimit = 256m
\tbigFileThreshold = 16m
\thooksPath = /dev/null
\tfsmonitor = false
[pack]
\tthreads = 1
\twindowMemory = 64m
\tdeltaCacheSize = 16m
[gc]
\tauto = 0
";

/// Why a repository is not copied.
#[derive(Debug)]
pub(super) struct RepositoryFault {
    /// Completes "the repository ...".
    pub(super) why: String,
    pub(super) hint: &'static str,
}

const ELSEWHERE: &str = "belljar takes of a repository what lies in it and nothing else: make a \
    whole one with `git clone --no-local --bare`, and give that";

impl From<io::Error> for RepositoryFault {
    fn from(error: io::Error) -> Self {
        Self { why: format!("cannot be read: {error}"), hint: "nothing of it is installed" }
    }
}

/// Names that show a repository with parts elsewhere, or parts that are not read.
const ELSEWHERE_BY: &[(&str, &str)] = &[
    ("commondir", "has its objects in another one (`commondir`)"),
    ("objects/info/alternates", "borrows objects of another one (`objects/info/alternates`)"),
    (
        "objects/info/http-alternates",
        "borrows objects of another one (`objects/info/http-alternates`)",
    ),
    ("reftable", "keeps its references in a form that is not read (`reftable`)"),
];

/// Copies a work tree's or a bare repository to a directory that is not there yet. Returns whether the
/// repository has any commit.
pub(super) fn copy_repository(
    from: &Path,
    to: &Path,
    until: WorkDeadline,
) -> Result<bool, RepositoryFault> {
    let folder = open_repository(from)?;
    for (path, what) in ELSEWHERE_BY {
        if is_there(&folder, path)? {
            return Err(RepositoryFault { why: (*what).to_owned(), hint: ELSEWHERE });
        }
    }
    let mut copier = RepositoryCopier { left: MAX_BYTES, files: 0, until };
    let refs = copier.read_references(&folder)?;
    let head = read_head(&folder)?;
    let is_long = head.len() == 64 || refs.values().any(|id| id.len() == 64);
    for below in ["objects/pack", "refs/heads"] {
        fs::create_dir_all(to.join(below))?;
    }
    copier.copy_objects(&folder, &to.join("objects"))?;
    if folder.file_kind("shallow")?.is_some() {
        let list =
            lossy_text(folder.read_file("shallow", MAX_LIST).map_err(fault_at_path("shallow"))?);
        let ids: Vec<&str> = list.lines().filter(|line| is_id(line)).collect();
        fs::write(to.join("shallow"), ids.join("\n") + "\n")?;
    }
    let packed: String = refs.iter().map(|(name, id)| format!("{id} {name}\n")).collect();
    fs::write(to.join("packed-refs"), packed)?;
    fs::write(to.join("HEAD"), format!("{head}\n"))?;
    fs::write(to.join("config"), copy_config(is_long))?;
    Ok(!refs.is_empty() || is_id(&head))
}

/// The copy's configuration; `is_long` = its ids have 64 digits.
fn copy_config(is_long: bool) -> String {
    let (version, format) = match is_long {
        true => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        false => (0, ""),
    };
    format!("[core]\n\trepositoryFormatVersion = {version}\n{CONFIG}{format}")
}

/// The repository's own folder: `.git` if present, or the given one.
fn open_repository(from: &Path) -> Result<OpenFolder, RepositoryFault> {
    let folder = OpenFolder::open(from)?;
    let refused = |what: &str| Err(RepositoryFault { why: what.to_owned(), hint: ELSEWHERE });
    match folder.file_kind(".git")? {
        None => Ok(folder),
        Some(FileType::Directory) => {
            Ok(folder.open_folder(".git").map_err(fault_at_path(".git"))?)
        }
        Some(FileType::RegularFile) => refused("lies elsewhere: its `.git` is a file"),
        Some(FileType::Symlink) => refused("lies elsewhere: its `.git` is a link"),
        Some(_) => refused("cannot be used: its `.git` is no folder"),
    }
}

/// Whether the path exists. A parent folder that is a link leads elsewhere, and is refused.
fn is_there(folder: &OpenFolder, path: &str) -> Result<bool, RepositoryFault> {
    is_below_folder(folder, path, 0)
}

/// As [`is_there`], from the part of the path that begins at `start` and lies in `folder`.
fn is_below_folder(folder: &OpenFolder, path: &str, start: usize) -> Result<bool, RepositoryFault> {
    let rest = path.get(start..).unwrap_or_default();
    let Some(length) = rest.find('/') else {
        return Ok(folder.file_kind(rest)?.is_some());
    };
    let (name, so_far) = (rest.get(..length), path.get(..start + length));
    let (name, so_far) = (name.unwrap_or_default(), so_far.unwrap_or_default());
    match folder.file_kind(name)? {
        None => Ok(false),
        Some(FileType::Directory) => {
            let inner = folder.open_folder(name).map_err(fault_at_path(so_far))?;
            is_below_folder(&inner, path, start + length + 1)
        }
        Some(_) => Err(leads_away(so_far)),
    }
}

/// The commit of `HEAD`, for the copy.
fn read_head(folder: &OpenFolder) -> Result<String, RepositoryFault> {
    let head = lossy_text(folder.read_file("HEAD", MAX_REF).map_err(fault_at_path("HEAD"))?);
    let head = head.trim_end();
    let branch = head.strip_prefix("ref:").map(str::trim_start);
    match branch {
        Some(name) if name.starts_with("refs/heads/") && is_name(name) => {
            Ok(format!("ref: {name}"))
        }
        None if is_id(head) => Ok(head.to_owned()),
        Some(_) | None => Err(RepositoryFault {
            why: "cannot be used: its `HEAD` names neither a branch nor a commit".to_owned(),
            hint: "check a branch out there, or name one of its commits in a clone",
        }),
    }
}

/// Counts the copied files and bytes.
struct RepositoryCopier {
    left: u64,
    files: usize,
    until: WorkDeadline,
}

impl RepositoryCopier {
    fn count_file(&mut self) -> io::Result<()> {
        self.until.time_left()?;
        self.files += 1;
        match self.files > MAX_FILES {
            true => Err(io::Error::other(format!("it has more than {MAX_FILES} files"))),
            false => Ok(()),
        }
    }

    /// Branches and tags that name an object. Symbolic references other than `HEAD` are ignored.
    fn read_references(
        &mut self,
        folder: &OpenFolder,
    ) -> Result<BTreeMap<String, String>, RepositoryFault> {
        let mut found = BTreeMap::new();
        if folder.file_kind("packed-refs")?.is_some() {
            let list = lossy_text(
                folder.read_file("packed-refs", MAX_LIST).map_err(fault_at_path("packed-refs"))?,
            );
            for (id, name) in list.lines().filter_map(|line| line.split_once(' ')) {
                if is_id(id) && is_kept(name) {
                    self.count_file()?;
                    found.insert(name.to_owned(), id.to_owned());
                }
            }
        }
        if folder.file_kind("refs")?.is_some() {
            let refs = folder.open_folder("refs").map_err(fault_at_path("refs"))?;
            for kind in ["heads", "tags"] {
                if refs.file_kind(kind)?.is_some() {
                    let below = format!("refs/{kind}");
                    let folder = refs.open_folder(kind).map_err(fault_at_path(&below))?;
                    self.read_loose_references(&folder, &below, 0, &mut found)?;
                }
            }
        }
        Ok(found)
    }

    fn read_loose_references(
        &mut self,
        folder: &OpenFolder,
        below: &str,
        depth: usize,
        found: &mut BTreeMap<String, String>,
    ) -> Result<(), RepositoryFault> {
        for entry in folder.list_entries()? {
            let entry = entry?;
            self.count_file()?;
            let Some(name) = entry.name.to_str().map(|name| format!("{below}/{name}")) else {
                continue;
            };
            match entry.kind {
                FileType::Directory if depth < MAX_DEPTH => {
                    let folder = folder.open_folder(&entry.name).map_err(fault_at_path(&name))?;
                    self.read_loose_references(&folder, &name, depth + 1, found)?;
                }
                FileType::RegularFile if is_kept(&name) => {
                    let id = lossy_text(
                        folder.read_file(&entry.name, MAX_REF).map_err(fault_at_path(&name))?,
                    );
                    let id = id.trim_end();
                    if is_id(id) {
                        found.insert(name, id.to_owned());
                    }
                }
                FileType::RegularFile | FileType::Directory => {}
                _ => return Err(leads_away(&name)),
            }
        }
        Ok(())
    }

    fn copy_objects(&mut self, folder: &OpenFolder, to: &Path) -> Result<(), RepositoryFault> {
        let objects = folder.open_folder("objects").map_err(fault_at_path("objects"))?;
        for entry in objects.list_entries()? {
            let entry = entry?;
            let Some(name) = entry.name.to_str() else { continue };
            let is_loose = name.len() == 2 && is_hex(name);
            if !is_loose && name != "pack" {
                continue;
            }
            let below = format!("objects/{name}");
            let inner = objects.open_folder(name).map_err(fault_at_path(&below))?;
            let fits = match is_loose {
                true => |name: &str| matches!(name.len(), 38 | 62) && is_hex(name),
                false => is_pack,
            };
            fs::create_dir_all(to.join(name))?;
            for entry in inner.list_entries()? {
                let entry = entry?;
                self.count_file()?;
                let Some(name) = entry.name.to_str().filter(|name| fits(name)) else { continue };
                let below = format!("{below}/{name}");
                self.copy_file(&inner, name, &to.join(below.trim_start_matches("objects/")))
                    .map_err(fault_at_path(&below))?;
            }
        }
        Ok(())
    }

    fn copy_file(&mut self, folder: &OpenFolder, name: &str, to: &Path) -> io::Result<()> {
        let (file, meta) = folder.open_file(name)?;
        let too_much = || io::Error::other(format!("its objects have more than {MAX_BYTES} bytes"));
        // Asked first, so that a sparse file costs nothing.
        if meta.len() > self.left {
            return Err(too_much());
        }
        if folder.is_foreign_link(&meta)? {
            return Err(io::Error::other("it is a second name of somebody else's file"));
        }
        let copied = io::copy(&mut file.take(self.left), &mut File::create_new(to)?)?;
        self.left = self.left.checked_sub(copied).ok_or_else(too_much)?;
        Ok(())
    }
}

/// The fault of a part that is there.
fn fault_at_path(path: &str) -> impl Fn(io::Error) -> RepositoryFault {
    move |error| {
        use rustix::io::Errno;
        let code = error.raw_os_error();
        let is = |errno: Errno| code == Some(errno.raw_os_error());
        match is(Errno::LOOP) || is(Errno::NOTDIR) || error.kind() == io::ErrorKind::InvalidInput {
            true => leads_away(path),
            false => RepositoryFault {
                why: format!("cannot be read: `{}`: {error}", belljar_policy::ShownText::new(path)),
                hint: "nothing of it is installed",
            },
        }
    }
}

fn leads_away(path: &str) -> RepositoryFault {
    let path = belljar_policy::ShownText::clip_line(path, 200);
    let why = format!("cannot be used: its `{path}` is a link, or neither file nor folder");
    RepositoryFault { why, hint: ELSEWHERE }
}

fn lossy_text(bytes: Vec<u8>) -> String {
    // Text outside of UTF-8 is neither an id nor a kept name.
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_hex(text)
}

fn is_pack(name: &str) -> bool {
    let stem = name.strip_suffix(".pack").or_else(|| name.strip_suffix(".idx"));
    stem.and_then(|stem| stem.strip_prefix("pack-"))
        .is_some_and(|hash| matches!(hash.len(), 40 | 64) && is_hex(hash))
}

fn is_kept(name: &str) -> bool {
    (name.starts_with("refs/heads/") || name.starts_with("refs/tags/")) && is_name(name)
}

/// As git wants them, and no more than a screen shows.
pub(super) fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
    };
    let plain =
        |c: char| !belljar_policy::ShownText::is_hidden(c) && !" ~^:?*[\\\u{fffd}".contains(c);
    name.len() <= 512
        && name.split('/').all(part)
        && name.chars().all(plain)
        && !name.contains("..")
        && !name.contains("@{")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    const ID: &str = "0123456789012345678901234567890123456789";

    /// A repository as far as the copy looks at it.
    fn repository() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join("from/.git");
        for below in ["objects/ab", "objects/pack", "objects/info", "refs/heads/x", "refs/tags"] {
            fs::create_dir_all(git.join(below)).unwrap();
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("refs/heads/main"), format!("{ID}\n")).unwrap();
        fs::write(git.join("refs/heads/x/y"), "ref: ../../../../etc/passwd\n").unwrap();
        let packed = format!("# sorted\n{ID} refs/tags/v1\n^{ID}\n{ID} refs/replace/{ID}\n");
        fs::write(git.join("packed-refs"), packed).unwrap();
        fs::write(git.join("config"), "[include]\npath = /etc/passwd\n").unwrap();
        fs::write(git.join("objects/ab").join(&ID[2..]), "object").unwrap();
        fs::write(git.join("objects/pack/tmp_pack_1"), "half").unwrap();
        dir
    }

    fn taken(dir: &tempfile::TempDir) -> Result<bool, RepositoryFault> {
        let to = dir.path().join("to");
        let _ = fs::remove_dir_all(&to);
        copy_repository(
            &dir.path().join("from"),
            &to,
            WorkDeadline::after_limit(Duration::from_secs(60)),
        )
    }

    #[test]
    fn objects_and_commits_are_copied_and_nothing_else() {
        let dir = repository();
        taken(&dir).unwrap();
        let to = |name: &str| fs::read_to_string(dir.path().join("to").join(name)).unwrap();
        assert_eq!(to("HEAD"), "ref: refs/heads/main\n");
        assert_eq!(to("packed-refs"), format!("{ID} refs/heads/main\n{ID} refs/tags/v1\n"));
        assert_eq!(to(&format!("objects/ab/{}", &ID[2..])), "object");
        assert!(!to("config").contains("include"));
        assert_eq!(fs::read_dir(dir.path().join("to/objects/pack")).unwrap().count(), 0);
    }

    #[test]
    fn what_names_something_outside_is_refused() {
        type Change = fn(&Path);
        let changes: &[(&str, Change)] = &[
            ("alternates", |git| fs::write(git.join("objects/info/alternates"), "/x").unwrap()),
            ("http-alternates", |git| {
                fs::write(git.join("objects/info/http-alternates"), "http://x").unwrap();
            }),
            ("commondir", |git| fs::write(git.join("commondir"), "../other").unwrap()),
            ("objects/info", |git| {
                fs::remove_dir(git.join("objects/info")).unwrap();
                symlink("/tmp", git.join("objects/info")).unwrap();
            }),
            ("objects/pack", |git| {
                fs::remove_dir_all(git.join("objects/pack")).unwrap();
                symlink("/tmp", git.join("objects/pack")).unwrap();
            }),
            ("objects/ab/", |git| {
                symlink("/etc/passwd", git.join("objects/ab").join("f".repeat(38))).unwrap();
            }),
            ("refs/heads", |git| {
                fs::remove_dir_all(git.join("refs/heads")).unwrap();
                symlink("/tmp", git.join("refs/heads")).unwrap();
            }),
            ("refs/heads/l", |git| symlink("/etc/passwd", git.join("refs/heads/l")).unwrap()),
            ("HEAD", |git| fs::write(git.join("HEAD"), "ref: ../other/HEAD").unwrap()),
            ("packed-refs", |git| {
                fs::remove_file(git.join("packed-refs")).unwrap();
                symlink("/etc/passwd", git.join("packed-refs")).unwrap();
            }),
            ("reftable", |git| fs::create_dir(git.join("reftable")).unwrap()),
        ];
        for (what, change) in changes {
            let dir = repository();
            change(&dir.path().join("from/.git"));
            let refused = taken(&dir).expect_err(what);
            assert!(refused.why.contains(what), "{what}: {}", refused.why);
        }
    }

    #[test]
    fn a_git_that_is_a_file_or_a_link_is_refused() {
        let dir = repository();
        let git = dir.path().join("from/.git");
        fs::rename(&git, dir.path().join("real")).unwrap();
        symlink(dir.path().join("real"), &git).unwrap();
        assert!(taken(&dir).unwrap_err().why.contains("`.git` is a link"));
        fs::remove_file(&git).unwrap();
        fs::write(&git, "gitdir: ../real\n").unwrap();
        assert!(taken(&dir).unwrap_err().why.contains("`.git` is a file"));
    }

    #[test]
    fn a_sparse_pack_costs_nothing_and_a_fifo_is_not_waited_for() {
        use rustix::fs::{CWD, Mode, mknodat};
        let dir = repository();
        let git = dir.path().join("from/.git");
        let pack = git.join(format!("objects/pack/pack-{ID}.pack"));
        File::create(&pack).unwrap().set_len(1 << 40).unwrap();
        assert!(taken(&dir).unwrap_err().why.contains("more than"), "sparse");
        fs::remove_file(&pack).unwrap();
        mknodat(CWD, &pack, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(taken(&dir).unwrap_err().why.contains("neither file nor folder"));
        fs::remove_file(&pack).unwrap();
        // What is not copied is not opened.
        fs::remove_file(git.join("config")).unwrap();
        mknodat(CWD, git.join("config"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        taken(&dir).unwrap();
    }

    #[test]
    fn a_name_is_as_git_wants_it() {
        for good in ["refs/heads/main", "refs/tags/v1.0", "refs/heads/a/b-c_d"] {
            assert!(is_kept(good), "{good}");
        }
        for bad in [
            "refs/heads/../x",
            "refs/heads/.x",
            "refs/heads/x.lock",
            "refs/heads/a b",
            "HEAD",
            "refs/heads/a\nb",
            "refs/heads/a~1",
            "refs/heads/@{0}",
            "refs/heads//a",
            "refs/replace/a",
            "refs/heads/a\u{202e}",
            "refs/heads/a.",
        ] {
            assert!(!is_kept(bad), "{bad}");
        }
    }
}
