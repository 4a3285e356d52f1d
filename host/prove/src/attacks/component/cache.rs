//! Attacks by machine code that the host did not compile.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use belljar_sandbox::{Compiler, Sandbox, Wasm};

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::{COUNTER, Guest, PLAIN};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "component-planted-machine-code",
        kind: AttackKind::Component,
        tries: "puts machine code of its own in the place of another tool's in the cache",
        stopped_by: "a keyed digest over name and content (INV-23)",
        told: "plain",
        embedded: true,
        run: |arena| Box::pin(plant_entry(arena, "cwasm")),
    },
    Attack {
        id: "component-planted-description",
        kind: AttackKind::Component,
        tries: "puts its own description in the place of another tool's in the cache",
        stopped_by: "a keyed digest over name and content (INV-23)",
        told: "plain",
        embedded: true,
        run: |arena| Box::pin(plant_entry(arena, "tools")),
    },
    Attack {
        id: "component-altered-machine-code",
        kind: AttackKind::Component,
        tries: "changes one bit of machine code in the cache",
        stopped_by: "a keyed digest over name and content (INV-23)",
        told: "the compiler does not start",
        embedded: true,
        run: |arena| Box::pin(alter_entry(arena)),
    },
    Attack {
        id: "component-cache-open-to-others",
        kind: AttackKind::Component,
        tries: "fills a cache directory that anybody may write to",
        stopped_by: "a directory that was open to others gets another key (INV-23)",
        told: "the compiler does not start",
        embedded: true,
        run: |arena| Box::pin(open_to_others(arena)),
    },
    Attack {
        id: "component-link-for-a-cache",
        kind: AttackKind::Component,
        tries: "puts a link in the place of the cache directory",
        stopped_by: "only a directory of the owner's own is used (INV-23)",
        told: "it is not a directory",
        embedded: true,
        run: |arena| Box::pin(link_cache(arena)),
    },
    Attack {
        id: "component-machine-code-for-a-tool",
        kind: AttackKind::Component,
        tries: "is machine code already, to be run as it is",
        stopped_by: "a tool is WebAssembly, whatever its name (INV-23)",
        told: "not a WebAssembly file",
        embedded: true,
        run: |arena| Box::pin(as_a_tool(arena)),
    },
];

/// The bytes before the content of a cache entry: a mark and a digest.
const HEAD: usize = 48;

/// A cache with the entries of two guests. The files' names do not show the guest, so the files were listed
/// after each was compiled.
struct FilledCache {
    cache: PathBuf,
    plain: Vec<PathBuf>,
    counter: Vec<PathBuf>,
}

impl FilledCache {
    /// Describes both guests in a new sandbox, and notes which cache files each has caused.
    async fn new(arena: &Arena) -> Result<Self, Escape> {
        arena.jar_builder(&[]).open().await?;
        let cache = arena.path("home").join("cache");
        let sandbox = open_sandbox(arena, &cache, arena.compiler())?;
        described_name(&sandbox, PLAIN).await?;
        let plain = list_cache_files(&cache)?;
        described_name(&sandbox, COUNTER).await?;
        let mut counter = list_cache_files(&cache)?;
        counter.retain(|file| !plain.contains(file));
        Ok(Self { cache, plain, counter })
    }
}

fn list_cache_files(cache: &Path) -> Result<Vec<PathBuf>, Escape> {
    Ok(fs::read_dir(cache)?.flatten().map(|entry| entry.path()).collect())
}

fn open_sandbox(arena: &Arena, cache: &Path, compiler: Compiler) -> Result<Sandbox, Escape> {
    Ok(arena.own_sandbox(Some(cache.to_owned()), compiler).map_err(anyhow::Error::from)?)
}

/// A compiler that cannot run, so a component loads only from the cache.
fn missing_compiler() -> Compiler {
    Compiler::Child { program: "/nonexistent/compiler".into(), args: Vec::new() }
}

async fn described_name(sandbox: &Sandbox, guest: Guest) -> Result<String, Escape> {
    let tools = sandbox.describe_tools(&guest.to_wasm()).await.map_err(anyhow::Error::from)?;
    Ok(tools.iter().map(|tool| tool.name.to_string()).collect())
}

/// The file with the given ending among the cache files of a guest.
fn entry_with_ending<'a>(files: &'a [PathBuf], ending: &str) -> Result<&'a Path, Escape> {
    let found = files.iter().find(|path| path.extension() == Some(OsStr::new(ending)));
    found.map(PathBuf::as_path).ok_or_else(|| Escape::new(format!("no `.{ending}`")))
}

/// Makes 2 attacks, for example `component-planted-machine-code`: the attacker puts machine code of its own
/// in the place of another tool's in the cache.
async fn plant_entry(arena: &Arena, ending: &str) -> Stopped {
    let FilledCache { cache, plain, counter } = FilledCache::new(arena).await?;
    fs::copy(entry_with_ending(&counter, ending)?, entry_with_ending(&plain, ending)?)?;
    if ending == "cwasm" {
        // Without its cached description, the guest must be run to state its name.
        fs::remove_file(entry_with_ending(&plain, "tools")?)?;
    }
    match described_name(&open_sandbox(arena, &cache, arena.compiler())?, PLAIN).await? {
        name if name == PLAIN.name => Ok(Verdict::with_words(name)),
        name => Err(Escape::new(format!("the planted `{name}` was used"))),
    }
}

/// Loads a component without a compiler: it works while the cache entry is unchanged, and fails after
/// `change`.
async fn check_worthless(
    arena: &Arena,
    change: impl FnOnce(&Path, &Path) -> std::io::Result<()>,
) -> Stopped {
    let FilledCache { cache, plain, .. } = FilledCache::new(arena).await?;
    let before =
        open_sandbox(arena, &cache, missing_compiler())?.load_component(&PLAIN.to_wasm()).await;
    before.map_err(|error| Escape::new(format!("the cache is of no use: {error}")))?;
    change(&cache, entry_with_ending(&plain, "cwasm")?)?;
    match open_sandbox(arena, &cache, missing_compiler())?.load_component(&PLAIN.to_wasm()).await {
        Ok(_) => Err(Escape::new("the entry was used")),
        Err(error) => Ok(Verdict::with_words(error.to_string())),
    }
}

/// Attack `component-altered-machine-code`: the attacker changes one bit of machine code in the cache.
async fn alter_entry(arena: &Arena) -> Stopped {
    let change = |_: &Path, entry: &Path| {
        let mut bytes = fs::read(entry)?;
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 1;
        }
        fs::write(entry, bytes)
    };
    check_worthless(arena, change).await
}

/// Attack `component-cache-open-to-others`: the attacker fills a cache directory that anybody may write to.
async fn open_to_others(arena: &Arena) -> Stopped {
    let open =
        |cache: &Path, _: &Path| fs::set_permissions(cache, fs::Permissions::from_mode(0o777));
    let verdict = check_worthless(arena, open).await?;
    let mode = fs::metadata(arena.path("home").join("cache"))?.permissions().mode() & 0o777;
    if mode != 0o700 {
        return Err(Escape::new(format!("the directory is still open: {mode:o}")));
    }
    Ok(verdict)
}

/// Attack `component-link-for-a-cache`: the attacker puts a link in the place of the cache directory.
async fn link_cache(arena: &Arena) -> Stopped {
    arena.jar_builder(&[]).open().await?;
    let place = arena.path("home").join("cache");
    std::os::unix::fs::symlink(arena.outside_path(), &place)?;
    match arena.own_sandbox(Some(place), missing_compiler()) {
        Ok(_) => Err(Escape::new("the link was followed")),
        Err(error) => Ok(Verdict::with_words(error.to_string())),
    }
}

/// Attack `component-machine-code-for-a-tool`: the attacker is machine code already, to be run as it is.
async fn as_a_tool(arena: &Arena) -> Stopped {
    let FilledCache { counter, .. } = FilledCache::new(arena).await?;
    let bytes = fs::read(entry_with_ending(&counter, "cwasm")?)?;
    let code = bytes.get(HEAD..).unwrap_or_default().to_vec();
    for tool in [bytes, code] {
        match arena.sandbox().load_component(&Wasm::new(tool)).await {
            Ok(_) => return Err(Escape::new("it was loaded")),
            Err(belljar_sandbox::LoadError::NotWasm) => {}
            Err(error) => return Err(Escape::new(format!("it was looked into: {error}"))),
        }
    }
    Ok(Verdict::with_words(belljar_sandbox::LoadError::NotWasm.to_string()))
}
