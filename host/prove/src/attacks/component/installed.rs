//! Attacks by tools in the operator's home that were changed or use another tool's name.

use std::fs;

use belljar_catalogue::{ComponentOrigin, StockTool, ToolCatalogue};
use belljar_definition::Settings;
use std::path::Path;

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::{self, FILE_READ, FILE_READ_MANIFEST, Guest};
use crate::scene::BARE;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "component-takes-the-names-of-others",
        kind: AttackKind::Component,
        tries: "describes itself as `file_read` and `spawn_agent`",
        stopped_by: "the names of stock and built-in tools are taken (INV-21)",
        told: "the name is taken",
        embedded: true,
        run: |arena| Box::pin(install_impostor(arena)),
    },
    Attack {
        id: "component-installed-under-a-taken-name",
        kind: AttackKind::Component,
        tries: "is installed as `file_read`",
        stopped_by: "names of built-in tools are taken (INV-21)",
        told: "a built-in tool has that name",
        embedded: true,
        run: |arena| Box::pin(left_out(arena, FILE_READ.name, Some(guests::PLAIN))),
    },
    Attack {
        id: "component-not-pinned",
        kind: AttackKind::Component,
        tries: "lies in the tools' directory without the operator's word",
        stopped_by: "a tool counts once its digest is pinned (INV-21)",
        told: "is not pinned",
        embedded: true,
        run: |arena| Box::pin(left_out(arena, "helper", None)),
    },
    Attack {
        id: "component-swapped-after-it-was-pinned",
        kind: AttackKind::Component,
        tries: "takes the place of a tool whose digest the operator has pinned",
        stopped_by: "the digest is compared (INV-21)",
        told: "is not the one that is pinned",
        embedded: true,
        run: |arena| Box::pin(left_out(arena, "helper", Some(guests::COUNTER))),
    },
    Attack {
        id: "component-of-a-fifo",
        kind: AttackKind::Component,
        tries: "is a FIFO, which nobody will ever write to",
        stopped_by: "only regular files are opened (INV-8)",
        told: "it is not a regular file",
        embedded: true,
        run: |arena| Box::pin(install_fifo(arena)),
    },
];

/// A catalogue with one guest installed under the given name; if `pinned` is a guest, the settings require
/// that guest's digest.
async fn open_catalogue(
    arena: &Arena,
    name: &str,
    pinned: Option<Guest>,
) -> Result<ToolCatalogue, Escape> {
    let pin = pinned
        .map(|guest| format!("[tools.{name}]\ndigest = \"sha256:{}\"\n", guest.to_wasm().digest()));
    let settings = pin.unwrap_or_default();
    let settings = Settings::parse(Some((Path::new("belljar.toml"), &settings)), None, None)
        .map_err(|problems| Escape::new(format!("the settings: {problems:?}")))?;
    let stock = StockTool::new(FILE_READ.name, arena.guest_wasm(FILE_READ), FILE_READ_MANIFEST);
    let catalogue = ToolCatalogue::from_stock([stock], &settings);
    let tools = arena.path("home").join("tools");
    Ok(catalogue.with_home(&tools, &settings, arena.sandbox()).await)
}

/// Installs a guest as the tool `name`, with a manifest that requests nothing.
async fn install_tool(arena: &Arena, name: &str, guest: Guest) -> Result<(), Escape> {
    arena.jar_builder(&[]).open().await?;
    let folder = arena.path("home").join("tools").join(name);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("tool.toml"), BARE)?;
    Ok(fs::write(folder.join("tool.wasm"), guest.unpack_bytes())?)
}

/// Checks that `file_read` is still the built-in tool; returns the message to the operator.
fn check_stock_reader(catalogue: &ToolCatalogue) -> Stopped {
    let origin = catalogue.find_component(FILE_READ.name).map(|owner| owner.origin);
    if origin != Some(ComponentOrigin::Stock) {
        return Err(Escape::new(format!("`file_read` is now {origin:?}")));
    }
    let problems: Vec<_> = catalogue.problems().iter().map(|it| it.message.clone()).collect();
    Ok(Verdict::with_words(problems.join("; ")))
}

/// Attack `component-takes-the-names-of-others`: the attacker describes itself as `file_read` and
/// `spawn_agent`.
async fn install_impostor(arena: &Arena) -> Stopped {
    impostor_of(arena, guests::IMPOSTOR, 2).await
}

/// Attack by a guest that describes itself under names that are taken; `names` = how many.
pub(super) async fn impostor_of(arena: &Arena, guest: Guest, names: usize) -> Stopped {
    install_tool(arena, "helper", guest).await?;
    let catalogue = open_catalogue(arena, "helper", Some(guest)).await?;
    if catalogue.problems().len() != names || catalogue.find_component("spawn_agent").is_some() {
        return Err(Escape::new(format!("a name was taken: {:?}", catalogue.problems())));
    }
    check_stock_reader(&catalogue)
}

/// Makes 3 attacks, for example `component-installed-under-a-taken-name`: the attacker is installed as
/// `file_read`.
async fn left_out(arena: &Arena, name: &str, pinned: Option<Guest>) -> Stopped {
    install_tool(arena, name, guests::PLAIN).await?;
    let catalogue = open_catalogue(arena, name, pinned).await?;
    let plain = catalogue
        .components()
        .iter()
        .any(|it| it.wasm.digest() == guests::PLAIN.to_wasm().digest());
    if plain || catalogue.find_component("plain").is_some() {
        return Err(Escape::new("the tool is in use"));
    }
    check_stock_reader(&catalogue)
}

/// Attack `component-of-a-fifo`: the attacker is a FIFO, which nobody will ever write to.
async fn install_fifo(arena: &Arena) -> Stopped {
    install_tool(arena, "helper", guests::PLAIN).await?;
    let place = arena.path("home").join("tools/helper/tool.wasm");
    fs::remove_file(&place)?;
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0)
        .map_err(std::io::Error::from)?;
    check_stock_reader(&open_catalogue(arena, "helper", Some(guests::PLAIN)).await?)
}
