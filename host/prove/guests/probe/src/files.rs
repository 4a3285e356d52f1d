//! Raw calls of `wasi:filesystem`, with every flag spelled out.

use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, ErrorCode, NewTimestamp, OpenFlags,
    PathFlags,
};

use crate::Said;
use crate::held::{self, Held};

/// A path, seen from a preopened directory (`/workspace`, unless `at` names another) or from a
/// descriptor that is held.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    held: Option<usize>,
    path: String,
    #[serde(default)]
    follow: bool,
}

/// One call.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Step {
    /// The preopened directories' paths.
    Preopens {},
    /// `open-at`. `flags`: letters of `create directory exclusive truncate` in `open`, and of
    /// `read write mutate sync` in `mode`, separated by spaces.
    Open {
        place: Place,
        #[serde(default)]
        open: String,
        #[serde(default)]
        mode: String,
    },
    /// Opens for reading and reads all of it, at most `max` bytes.
    ReadFile {
        place: Place,
        #[serde(default = "plenty")]
        max: u64,
    },
    /// Opens with create and truncate and writes the text.
    WriteFile {
        place: Place,
        text: String,
    },
    Stat {
        place: Place,
    },
    Readlink {
        place: Place,
    },
    MetadataHash {
        place: Place,
    },
    Mkdir {
        place: Place,
    },
    Rmdir {
        place: Place,
    },
    Unlink {
        place: Place,
    },
    /// A symbolic link at `place` to `target`.
    Symlink {
        place: Place,
        target: String,
    },
    /// A hard link of `place` at `to`.
    Link {
        place: Place,
        to: Place,
    },
    Rename {
        place: Place,
        to: Place,
    },
    SetTimesAt {
        place: Place,
    },
    List {
        place: Place,
    },
    /// On a held descriptor.
    Read {
        held: usize,
        len: u64,
        offset: u64,
    },
    Write {
        held: usize,
        len: usize,
        offset: u64,
    },
    /// Through a stream: at `offset`, or at the end.
    Stream {
        held: usize,
        len: usize,
        #[serde(default)]
        offset: u64,
        #[serde(default)]
        append: bool,
    },
    SetSize {
        held: usize,
        size: u64,
    },
    SetTimes {
        held: usize,
        seconds: u64,
    },
    Sync {
        held: usize,
    },
    SyncData {
        held: usize,
    },
    Advise {
        held: usize,
        len: u64,
    },
    Flags {
        held: usize,
    },
    StatHeld {
        held: usize,
    },
    /// Streams on the descriptor, kept.
    ReadStream {
        held: usize,
        offset: u64,
    },
    WriteStream {
        held: usize,
        offset: u64,
    },
    /// A listing of the directory, kept without being read.
    Listing {
        held: usize,
    },
    /// Makes directories below each other, `depth` of them, each opened from the one before.
    Descend {
        depth: u64,
    },
}

fn plenty() -> u64 {
    1 << 16
}

impl Step {
    pub(crate) fn run(self) -> Said {
        match self {
            Self::Preopens {} => {
                let paths: Vec<String> =
                    get_directories().into_iter().map(|(_, path)| path).collect();
                Ok(json!(paths))
            }
            Self::Open { place, open, mode } => {
                let opened = open_at(&place, open_flags(&open), mode_flags(&mode))?;
                Ok(json!({ "held": held::keep(Held::Descriptor(opened)) }))
            }
            Self::ReadFile { place, max } => {
                let file = open_at(&place, OpenFlags::empty(), DescriptorFlags::READ)?;
                let (bytes, _) = file.read(max, 0).map_err(word)?;
                Ok(json!(String::from_utf8_lossy(&bytes)))
            }
            Self::WriteFile { place, text } => {
                let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
                let file = open_at(&place, flags, DescriptorFlags::WRITE)?;
                file.write(text.as_bytes(), 0).map(|n| json!(n)).map_err(word)
            }
            Self::Stat { place } => {
                place.from(|dir| dir.stat_at(place.flags(), &place.path)).map(|stat| shown(&stat))
            }
            Self::Readlink { place } => {
                place.from(|dir| dir.readlink_at(&place.path)).map(|target| json!(target))
            }
            Self::MetadataHash { place } => place
                .from(|dir| dir.metadata_hash_at(place.flags(), &place.path))
                .map(|hash| json!([hash.lower, hash.upper])),
            Self::Mkdir { place } => place.from(|dir| dir.create_directory_at(&place.path)).map(ok),
            Self::Rmdir { place } => place.from(|dir| dir.remove_directory_at(&place.path)).map(ok),
            Self::Unlink { place } => place.from(|dir| dir.unlink_file_at(&place.path)).map(ok),
            Self::Symlink { place, target } => {
                place.from(|dir| dir.symlink_at(&target, &place.path)).map(ok)
            }
            Self::Link { place, to } => {
                let new = to.base()?;
                place.from(|dir| dir.link_at(place.flags(), &place.path, &new, &to.path)).map(ok)
            }
            Self::Rename { place, to } => {
                let new = to.base()?;
                place.from(|dir| dir.rename_at(&place.path, &new, &to.path)).map(ok)
            }
            Self::SetTimesAt { place } => {
                let now = NewTimestamp::Now;
                place.from(|dir| dir.set_times_at(place.flags(), &place.path, now, now)).map(ok)
            }
            Self::List { place } => {
                let flags = DescriptorFlags::READ;
                let entries =
                    open_at(&place, OpenFlags::DIRECTORY, flags)?.read_directory().map_err(word)?;
                let mut names = Vec::new();
                while let Some(entry) = entries.read_directory_entry().map_err(word)? {
                    names.push(entry.name);
                }
                Ok(json!(names))
            }
            step => step.on_held(),
        }
    }

    /// The calls on what is open already.
    fn on_held(self) -> Said {
        match self {
            Self::Read { held, len, offset } => {
                on(held, |file| file.read(len, offset)).map(|(bytes, _)| json!(bytes.len()))
            }
            Self::Write { held, len, offset } => {
                on(held, |file| file.write(&vec![b'x'; len], offset)).map(|n| json!(n))
            }
            Self::Stream { held, len, offset, append } => {
                let stream = on(held, |file| match append {
                    true => file.append_via_stream(),
                    false => file.write_via_stream(offset),
                })?;
                for chunk in vec![b'x'; len].chunks(4096) {
                    stream
                        .blocking_write_and_flush(chunk)
                        .map_err(|error| crate::streams::word(&error))?;
                }
                Ok(Value::Null)
            }
            Self::SetSize { held, size } => on(held, |file| file.set_size(size)).map(ok),
            Self::SetTimes { held, seconds } => {
                let then = NewTimestamp::Timestamp(Datetime { seconds, nanoseconds: 0 });
                on(held, |file| file.set_times(then, then)).map(ok)
            }
            Self::Sync { held } => on(held, Descriptor::sync).map(ok),
            Self::SyncData { held } => on(held, Descriptor::sync_data).map(ok),
            Self::Advise { held, len } => {
                on(held, |file| file.advise(0, len, Advice::WillNeed)).map(ok)
            }
            Self::Flags { held } => {
                on(held, Descriptor::get_flags).map(|flags| json!(format!("{flags:?}")))
            }
            Self::StatHeld { held } => on(held, Descriptor::stat).map(|stat| shown(&stat)),
            Self::ReadStream { held, offset } => {
                let stream = on(held, |file| file.read_via_stream(offset))?;
                Ok(json!({ "held": held::keep(Held::Input(stream)) }))
            }
            Self::WriteStream { held, offset } => {
                let stream = on(held, |file| file.write_via_stream(offset))?;
                Ok(json!({ "held": held::keep(Held::Output(stream)) }))
            }
            Self::Listing { held } => {
                let listing = on(held, Descriptor::read_directory)?;
                Ok(json!({ "held": held::keep(Held::Listing(listing)) }))
            }
            Self::Descend { depth } => descend(depth),
            _ => Err("not a call on a descriptor".to_owned()),
        }
    }
}

impl Place {
    fn flags(&self) -> PathFlags {
        if self.follow { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() }
    }

    /// The preopened directory, as a descriptor of its own.
    fn base(&self) -> Result<Descriptor, String> {
        let name = self.at.as_deref().unwrap_or("/workspace");
        let found = get_directories().into_iter().find(|(_, path)| path == name);
        found.map(|(dir, _)| dir).ok_or_else(|| format!("no preopened directory `{name}`"))
    }

    fn from<T>(&self, act: impl FnOnce(&Descriptor) -> Result<T, ErrorCode>) -> Result<T, String> {
        match self.held {
            Some(number) => on(number, act),
            None => act(&self.base()?).map_err(word),
        }
    }
}

fn open_at(place: &Place, open: OpenFlags, mode: DescriptorFlags) -> Result<Descriptor, String> {
    place.from(|dir| dir.open_at(place.flags(), &place.path, open, mode))
}

fn on<T>(
    number: usize,
    act: impl FnOnce(&Descriptor) -> Result<T, ErrorCode>,
) -> Result<T, String> {
    held::with(number, |held| match held {
        Held::Descriptor(descriptor) => act(descriptor).map_err(word),
        _ => held::wrong(),
    })
}

fn descend(depth: u64) -> Said {
    let start = Place { at: None, held: None, path: ".".to_owned(), follow: false };
    let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
    let mut here = start.base()?;
    for made in 0..depth {
        let next = here
            .create_directory_at("d")
            .and_then(|()| here.open_at(PathFlags::empty(), "d", OpenFlags::DIRECTORY, flags));
        match next {
            Ok(next) => here = next,
            Err(error) => return Ok(json!({ "made": made, "error": word(error) })),
        }
    }
    Ok(json!({ "made": depth }))
}

fn open_flags(words: &str) -> OpenFlags {
    let flag = |word: &str| match word {
        "create" => OpenFlags::CREATE,
        "directory" => OpenFlags::DIRECTORY,
        "exclusive" => OpenFlags::EXCLUSIVE,
        "truncate" => OpenFlags::TRUNCATE,
        _ => OpenFlags::empty(),
    };
    words.split(' ').map(flag).fold(OpenFlags::empty(), |all, one| all | one)
}

fn mode_flags(words: &str) -> DescriptorFlags {
    let flag = |word: &str| match word {
        "read" => DescriptorFlags::READ,
        "write" => DescriptorFlags::WRITE,
        "mutate" => DescriptorFlags::MUTATE_DIRECTORY,
        "sync" => DescriptorFlags::FILE_INTEGRITY_SYNC,
        _ => DescriptorFlags::empty(),
    };
    words.split(' ').map(flag).fold(DescriptorFlags::empty(), |all, one| all | one)
}

fn shown(stat: &DescriptorStat) -> Value {
    json!({ "type": format!("{:?}", stat.type_), "size": stat.size, "links": stat.link_count })
}

fn ok((): ()) -> Value {
    Value::Null
}

fn word(error: ErrorCode) -> String {
    error.name().to_owned()
}
