//! Every stock tool passes its cases.
//!
//! By default the committed components are tested; `BELLJAR_TOOLS_DIR` names another folder
//! of components, such as those that `cargo xtask test guests` has just built.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "tools/hostile.rs"]
mod hostile;

use std::path::{Path, PathBuf};

use belljar_definition::ToolManifest;
use belljar_kit::TestHost;
use belljar_kit::cases::{ToolUnderTest, run_cases};
use belljar_sandbox::Wasm;

#[tokio::test(flavor = "multi_thread")]
async fn every_stock_tool_passes_its_cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf();
    let components = std::env::var_os("BELLJAR_TOOLS_DIR")
        .map_or_else(|| root.join("tools/prebuilt"), PathBuf::from);
    let host = TestHost::new();
    let (mut ran, mut failures) = (0, Vec::new());
    for name in tool_names(&root) {
        let tool = load(&root, &components, name);
        let (cases, failed) = run_cases(&host.sandbox, &tool).await;
        println!("{}: {cases} cases", tool.name);
        ran += cases;
        failures.extend(failed);
    }
    assert!(failures.is_empty(), "{} faults:\n{}", failures.len(), failures.join("\n"));
    assert!(ran > 0, "no case ran");
}

/// The program answers from `tools/prebuilt/described.json` what its tools offer. With
/// `BELLJAR_DESCRIBE=1` the file is written instead; `cargo xtask rebuild tools` does so.
#[tokio::test(flavor = "multi_thread")]
async fn the_descriptions_that_are_kept_are_the_components_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf();
    let prebuilt = root.join("tools/prebuilt");
    let host = TestHost::new();
    let mut described = serde_json::Map::new();
    for name in tool_names(&root) {
        let wasm = Wasm::new(belljar_kit::unpacked(&prebuilt, &name));
        let tools = host.sandbox.describe_tools(&wasm).await.unwrap();
        let digest = wasm.digest().to_string();
        described.insert(name, serde_json::json!({ "digest": digest, "tools": &*tools }));
    }
    let text = format!("{:#}\n", serde_json::Value::Object(described));
    let file = prebuilt.join("described.json");
    if std::env::var_os("BELLJAR_DESCRIBE").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(
        kept == text,
        "`tools/prebuilt/described.json` is not what the components say: run `cargo xtask rebuild tools`"
    );
}

fn tool_names(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("tools")).unwrap();
    let with_manifest = |entry: &std::fs::DirEntry| entry.path().join("tool.toml").exists();
    let mut names: Vec<_> = entries
        .map(Result::unwrap)
        .filter(with_manifest)
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn load(root: &Path, components: &Path, name: String) -> ToolUnderTest {
    let folder = root.join("tools").join(&name);
    let read = |path: PathBuf| {
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let text = |path: PathBuf| String::from_utf8(read(path)).unwrap();
    let manifest_path = folder.join("tool.toml");
    let manifest = ToolManifest::parse(&manifest_path, &text(manifest_path.clone()))
        .unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
    ToolUnderTest {
        wasm: Wasm::new(belljar_kit::unpacked(components, &name)),
        ask: manifest.ask,
        cases: text(folder.join("tests/cases.toml")),
        name,
    }
}
