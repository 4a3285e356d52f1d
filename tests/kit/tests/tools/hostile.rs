//! The attacking components that are kept are made of the texts beside them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use belljar_kit::hostile_guest;

/// The files of a folder with an ending, by stem.
fn files(folder: &Path, ending: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == ending) {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.insert(stem, fs::read(&path).unwrap());
        }
    }
    found
}

/// The build of belljar takes `host/prove/prebuilt` as it is, and so needs no assembler. With
/// `BELLJAR_ASSEMBLE=1` the components are written first.
#[test]
fn every_attacking_component_is_made_of_its_text() {
    let prove = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/prove");
    let world = fs::read_to_string(prove.join("guests/guest.wit")).unwrap();
    let texts = files(&prove.join("guests"), "wat");
    let made: BTreeMap<String, Vec<u8>> = texts
        .into_iter()
        .map(|(name, text)| {
            let component = hostile_guest(&name, std::str::from_utf8(&text).unwrap(), &world);
            (name, component)
        })
        .collect();
    assert!(made.len() > 40, "{}", made.len());
    let prebuilt = prove.join("prebuilt");
    if std::env::var_os("BELLJAR_ASSEMBLE").is_some() {
        for (name, component) in &made {
            fs::write(prebuilt.join(format!("{name}.wasm")), component).unwrap();
        }
    }
    let mut kept = files(&prebuilt, "wasm");
    // Of a language with a compiler of its own: `cargo xtask rebuild attack-guests` builds them.
    for built in ["caller", "probe"] {
        kept.remove(built).unwrap();
    }
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kept), names(&made), "a component without its text, or the reverse");
    for (name, component) in &made {
        assert!(
            kept.get(name) == Some(component),
            "`{name}.wasm` is not made of `{name}.wat`: run this test with BELLJAR_ASSEMBLE=1"
        );
    }
}
