//! Machine code that the host did not compile.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use belljar_sandbox::{Compiler, Sandbox, Wasm};

use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped, Verdict};
use crate::guests::{COUNTER, Guest, PLAIN};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "component-planted-machine-code",
        kind: Kind::Component,
        tries: "puts machine code of its own in the place of another tool's in the cache",
        stopped_by: "a keyed digest over name and content (INV-23)",
        told: "plain",
        embedded: true,
        run: |arena| Box::pin(planted(arena, "cwasm")),
    },
    Attack {
        id: "component-planted-description",
        kind: Kind::Component,
        tries: "puts its own description in the place of another tool's in the cache",
        stopped_by: "a keyed digest over name and content (INV-23)",
        told: "plain",
        embedded: true,
        run: |arena| Box::pin(planted(arena, "tools")),
    },
    Attack {
        id: "component-altered-machine-code",
        kind: Kind::Component,
        tries: "changes one bit of machine code in the cache",
        stopped_by: "a keyed digest over name and content (INV-23)",
        told: "the compiler does not start",
        embedded: true,
        run: |arena| Box::pin(altered(arena)),
    },
    Attack {
        id: "component-cache-open-to-others",
        kind: Kind::Component,
        tries: "fills a cache directory that anybody may write to",
        stopped_by: "a directory that was open to others gets another key (INV-23)",
        told: "the compiler does not start",
        embedded: true,
        run: |arena| Box::pin(open_to_others(arena)),
    },
    Attack {
        id: "component-link-for-a-cache",
        kind: Kind::Component,
        tries: "puts a link in the place of the cache directory",
        stopped_by: "only a directory of the owner's own is used (INV-23)",
        told: "it is not a directory",
        embedded: true,
        run: |arena| Box::pin(link(arena)),
    },
    Attack {
        id: "component-machine-code-for-a-tool",
        kind: Kind::Component,
        tries: "is machine code already, to be run as it is",
        stopped_by: "a tool is WebAssembly, whatever its name (INV-23)",
        told: "not a WebAssembly file",
        embedded: true,
        run: |arena| Box::pin(as_a_tool(arena)),
    },
];

/// Bytes before the content of an entry: a mark and a digest.
const HEAD: usize = 48;

/// A cache that knows both guests, and which files each of them has there: their names do not tell,
/// so somebody has watched them come.
struct Filled {
    cache: PathBuf,
    plain: Vec<PathBuf>,
    counter: Vec<PathBuf>,
}

impl Filled {
    async fn new(arena: &Arena) -> Result<Self, Escape> {
        arena.jar(&[]).open().await?;
        let cache = arena.path("home").join("cache");
        let sandbox = sandbox(arena, &cache, arena.compiler())?;
        name(&sandbox, PLAIN).await?;
        let plain = files(&cache)?;
        name(&sandbox, COUNTER).await?;
        let mut counter = files(&cache)?;
        counter.retain(|file| !plain.contains(file));
        Ok(Self { cache, plain, counter })
    }
}

fn files(cache: &Path) -> Result<Vec<PathBuf>, Escape> {
    Ok(fs::read_dir(cache)?.flatten().map(|entry| entry.path()).collect())
}

fn sandbox(arena: &Arena, cache: &Path, compiler: Compiler) -> Result<Sandbox, Escape> {
    Ok(arena.own_sandbox(Some(cache.to_owned()), compiler).map_err(anyhow::Error::from)?)
}

/// No compiler at all: only what the cache is trusted with loads.
fn nobody() -> Compiler {
    Compiler::Child { program: "/nonexistent/compiler".into(), args: Vec::new() }
}

async fn name(sandbox: &Sandbox, guest: Guest) -> Result<String, Escape> {
    let tools = sandbox.describe(&guest.wasm()).await.map_err(anyhow::Error::from)?;
    Ok(tools.iter().map(|tool| tool.name.to_string()).collect())
}

/// The entry with this ending among the files of a guest.
fn entry<'a>(files: &'a [PathBuf], ending: &str) -> Result<&'a Path, Escape> {
    let found = files.iter().find(|path| path.extension() == Some(OsStr::new(ending)));
    found.map(PathBuf::as_path).ok_or_else(|| Escape::new(format!("no `.{ending}`")))
}

async fn planted(arena: &Arena, ending: &str) -> Stopped {
    let Filled { cache, plain, counter } = Filled::new(arena).await?;
    fs::copy(entry(&counter, ending)?, entry(&plain, ending)?)?;
    if ending == "cwasm" {
        // So that it has to be run to say its name.
        fs::remove_file(entry(&plain, "tools")?)?;
    }
    match name(&sandbox(arena, &cache, arena.compiler())?, PLAIN).await? {
        name if name == PLAIN.name => Ok(Verdict::told(name)),
        name => Err(Escape::new(format!("the planted `{name}` was used"))),
    }
}

/// Loads from the cache alone: first as it is, then after a change, which makes it worthless.
async fn worthless(
    arena: &Arena,
    change: impl FnOnce(&Path, &Path) -> std::io::Result<()>,
) -> Stopped {
    let Filled { cache, plain, .. } = Filled::new(arena).await?;
    let before = sandbox(arena, &cache, nobody())?.load(&PLAIN.wasm()).await;
    before.map_err(|error| Escape::new(format!("the cache is of no use: {error}")))?;
    change(&cache, entry(&plain, "cwasm")?)?;
    match sandbox(arena, &cache, nobody())?.load(&PLAIN.wasm()).await {
        Ok(_) => Err(Escape::new("the entry was used")),
        Err(error) => Ok(Verdict::told(error.to_string())),
    }
}

async fn altered(arena: &Arena) -> Stopped {
    let change = |_: &Path, entry: &Path| {
        let mut bytes = fs::read(entry)?;
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 1;
        }
        fs::write(entry, bytes)
    };
    worthless(arena, change).await
}

async fn open_to_others(arena: &Arena) -> Stopped {
    let open =
        |cache: &Path, _: &Path| fs::set_permissions(cache, fs::Permissions::from_mode(0o777));
    let verdict = worthless(arena, open).await?;
    let mode = fs::metadata(arena.path("home").join("cache"))?.permissions().mode() & 0o777;
    if mode != 0o700 {
        return Err(Escape::new(format!("the directory is still open: {mode:o}")));
    }
    Ok(verdict)
}

async fn link(arena: &Arena) -> Stopped {
    arena.jar(&[]).open().await?;
    let place = arena.path("home").join("cache");
    std::os::unix::fs::symlink(arena.outside(), &place)?;
    match arena.own_sandbox(Some(place), nobody()) {
        Ok(_) => Err(Escape::new("the link was followed")),
        Err(error) => Ok(Verdict::told(error.to_string())),
    }
}

async fn as_a_tool(arena: &Arena) -> Stopped {
    let Filled { counter, .. } = Filled::new(arena).await?;
    let bytes = fs::read(entry(&counter, "cwasm")?)?;
    let code = bytes.get(HEAD..).unwrap_or_default().to_vec();
    for tool in [bytes, code] {
        match arena.sandbox().load(&Wasm::new(tool)).await {
            Ok(_) => return Err(Escape::new("it was loaded")),
            Err(belljar_sandbox::LoadError::NotWasm) => {}
            Err(error) => return Err(Escape::new(format!("it was looked into: {error}"))),
        }
    }
    Ok(Verdict::told(belljar_sandbox::LoadError::NotWasm.to_string()))
}
