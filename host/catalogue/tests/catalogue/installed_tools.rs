//! Tools installed in the home: pinned by digest, and never in a built-in's place.

use std::fs;
use std::path::Path;

use belljar_catalogue::ToolCatalogue;
use belljar_definition::Settings;
use belljar_kit::wat_tool;
use belljar_kit::world::{BARE, sandbox, stock, write};
use belljar_sandbox::Digest;
use tempfile::TempDir;

const OK: &str = "(i32.store (i32.const 0x300) (i32.const 0x6b6f))
    (call $text (i32.const 0x300) (i32.const 2))";

fn install(dir: &Path, name: &str, wasm: &[u8]) -> String {
    write(&dir.join(name).join("tool.toml"), BARE);
    fs::write(dir.join(name).join("tool.wasm"), wasm).unwrap();
    Digest::hash_bytes(wasm).to_string()
}

async fn catalogue(dir: &Path, settings: &str) -> ToolCatalogue {
    let settings = Settings::parse(Some((Path::new("b.toml"), settings)), None, None).unwrap();
    let stock = ToolCatalogue::from_stock([stock("file_read")], &settings);
    stock.with_home(dir, &settings, &sandbox()).await
}

fn codes(catalogue: &ToolCatalogue) -> Vec<&'static str> {
    catalogue.problems().iter().map(|found| found.code).collect()
}

#[tokio::test]
async fn an_installed_tool_counts_once_its_digest_is_pinned() {
    let dir = TempDir::new().unwrap();
    let digest = install(dir.path(), "mine", &wat_tool("mine", OK));
    let unpinned = catalogue(dir.path(), "").await;
    assert_eq!(codes(&unpinned), ["unpinned-tool"]);
    let hint = unpinned.problems()[0].hint.clone().unwrap();
    assert!(hint.contains(&format!("digest = \"sha256:{digest}\"")), "{hint}");
    assert!(hint.contains("`belljar grant AGENT --tool mine`"), "{hint}");
    assert!(unpinned.find_component("mine").is_none() && unpinned.known_tools().contains("mine"));
    assert!(
        unpinned.knows_tool("mine")
            && unpinned.knows_tool("spawn_agent")
            && !unpinned.knows_tool("yours")
    );

    let pin = format!("[tools.mine]\ndigest = \"sha256:{digest}\"\n");
    let pinned = catalogue(dir.path(), &pin).await;
    assert_eq!(codes(&pinned), [""; 0]);
    assert!(pinned.find_component("mine").is_some());

    // The file changed after it was pinned.
    install(dir.path(), "mine", &wat_tool("mine", "unreachable"));
    let changed = catalogue(dir.path(), &pin).await;
    assert_eq!(codes(&changed), ["changed-tool"]);
    assert!(changed.find_component("mine").is_none());
}

#[tokio::test]
async fn a_built_in_name_cannot_be_taken_by_folder_or_by_description() {
    let dir = TempDir::new().unwrap();
    install(dir.path(), "file_read", &wat_tool("file_read", OK));
    install(dir.path(), "spawn_agent", &wat_tool("spawn_agent", OK));
    let digest = install(dir.path(), "sly", &wat_tool("file_read", OK));
    let pin = format!("[tools.sly]\ndigest = \"sha256:{digest}\"\n");
    let it = catalogue(dir.path(), &pin).await;
    assert_eq!(codes(&it), ["name-taken", "name-taken", "name-taken"]);
    assert_eq!(
        it.find_component("file_read").unwrap().wasm.digest(),
        stock("file_read").wasm.digest()
    );
    assert!(it.find_component("spawn_agent").is_none());
}

#[tokio::test]
async fn what_is_wrong_with_one_tool_keeps_no_other_from_loading() {
    let dir = TempDir::new().unwrap();
    let garbage = install(dir.path(), "garbage", b"not wasm at all");
    let good = install(dir.path(), "good", &wat_tool("good", OK));
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::create_dir(dir.path().join("bad name")).unwrap();
    install(dir.path(), "unclear", &wat_tool("unclear", OK));
    fs::write(dir.path().join("unclear/tool.toml"), "mounts = 7").unwrap();
    let pins = format!(
        "[tools.garbage]\ndigest = \"sha256:{garbage}\"\n[tools.good]\ndigest = \"sha256:{good}\"\n"
    );
    let it = catalogue(dir.path(), &pins).await;
    assert!(it.find_component("good").is_some());
    for bad in ["garbage", "empty", "unclear"] {
        assert!(it.find_component(bad).is_none(), "{bad}");
        let named = it.problems().iter().any(|found| found.to_string().contains(bad));
        assert!(named, "{bad}: {:#?}", it.problems());
    }
    assert!(codes(&it).contains(&"bad-name"));
}
