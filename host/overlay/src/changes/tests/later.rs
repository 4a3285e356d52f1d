//! Tests of files that a program would run because of their name or of other files: each is listed with a
//! reason and held back, and neighbouring files are applied.

use super::world::World;
use crate::changes::ApplyOptions;

/// Writes each path in `held`, checks the reason that contains these words, and checks that the file is held
/// back. `plain.md` and `others` are applied.
fn check(world: &World, held: &[(&str, &str)], others: &[&str]) {
    for (path, _) in held {
        world.write_below(path, "changed\n");
    }
    for path in others.iter().chain(&["plain.md"]) {
        world.write_below(path, "changed\n");
    }
    let before: Vec<_> = held.iter().map(|(path, _)| world.read(path)).collect();
    let applied = world.apply(&["."], &ApplyOptions::default());
    for (path, words) in held {
        let found = applied.held_back.iter().find(|(at, _)| at.to_str() == Some(path));
        let (_, reason) = found.unwrap_or_else(|| panic!("{path}: {applied:?}"));
        assert!(reason.contains(words), "{path}: {reason}");
    }
    assert_eq!(applied.held_back.len(), held.len(), "{applied:?}");
    let after: Vec<_> = held.iter().map(|(path, _)| world.read(path)).collect();
    assert_eq!(after, before);
    for path in others.iter().chain(&["plain.md"]) {
        assert_eq!(world.read(path).as_deref(), Some("changed\n"), "{path}");
    }
}

#[test]
fn variants_of_known_names_are_held_back_and_their_neighbours_applied() {
    let held = [
        ("PKGBUILD", "package"),
        ("Package@swift-5.9.swift", "swift"),
        ("app.json", "hosting service"),
        ("cucumber.js", "test runner"),
        ("debian/rules", "package"),
        ("sitecustomize/__init__.py", "Python runs it at every start"),
        ("tasks/__init__.py", "invoke"),
        ("version.sbt", "sbt"),
        ("Doxyfile.in", "filters"),
        ("copier.yaml", "maker of projects"),
        ("db/migrate/0001_first.rb", "migration"),
        ("commands/deploy.md", "instructions"),
        ("dot_zshrc", "desktop"),
        ("haproxy.cfg", "server"),
        ("features/support/env.rb", "test runner"),
        ("Nukefile", "tools give"),
    ];
    let others = [
        "tasks/todo.md",
        "src/a.py",
        "docs/jest.md",
        "docs/tools.md",
        "db/schema.sql",
        "src/features/auth.ts",
        "dot_product.py",
        "lib/profile.rb",
    ];
    check(&World::new(&[]), &held, &others);
}

#[test]
fn a_new_file_in_the_place_of_a_module_is_held_back() {
    let files = [
        ("app/__init__.py", ""),
        ("queue.py", "old\n"),
        ("code/a.py", ""),
        ("tools/x.py", ""),
        ("lib/a.rb", ""),
    ];
    let held = [
        ("json.py", "Python"),
        ("logging/__init__.py", "Python"),
        ("logging/handlers.py", "Python"),
        ("pytest.py", "Python"),
        ("tests/iniconfig.py", "Python"),
        ("tools/Types.py", "Python"),
        ("code/__init__.py", "Python"),
        ("lib/minitest/autorun.rb", "Ruby"),
        ("lib/Test/More.pm", "Perl"),
        ("lpeg.lua", "Lua"),
        ("this.py", "Python"),
        ("pytest_httpx/__init__.py", "Python"),
        ("t/lib/Test/MockModule.pm", "Perl"),
        ("lib/Test.rakumod", "Raku"),
        ("include/stdio.h", "compiler"),
        ("src/Data/Map.hs", "GHC"),
        ("strutils.nim", "nim"),
        ("test/clojure/test.clj", "Clojure"),
        ("ert.el", "emacs"),
        ("PEAR.php", "PHP"),
    ];
    // In a package no module is shadowed. A file that existed before is only changed, a directory without
    // `__init__` is no module, and a new package's own modules belong to the package.
    let others = [
        "app/json.py",
        "queue.py",
        "html/a.py",
        "acme/__init__.py",
        "acme/types.py",
        "json.md",
        "src/acme.h",
        "src/Acme/Map.hs",
        "acme.nim",
        "acme/stdio.h",
    ];
    check(&World::new(&files), &held, &others);
}

#[test]
fn files_that_a_named_file_runs_in_turn_are_held_back() {
    let make = "check:\n\tsh tools/check.sh && ./gen\n\tcd sub && python3 -O job.py\n\
                \tpython -m acme.gate\n\tbash notes.txt\n\tcc -o a src/main.c README.md\n";
    let npm = r#"{"main": "src/index.js", "scripts": {"t": "node --trace scripts/t", "b": "tsx ./b.mts"}}"#;
    let files = [
        ("Makefile", make),
        ("web/package.json", npm),
        (".github/workflows/a.yml", "run: ${{ github.workspace }}/ci/run.py\n"),
        ("tools/check.sh", ". ./tools/inner.sh\n. \"$(dirname $0)/lib.sh\"\n"),
    ];
    let held = [
        ("acme/gate.py", "make"),
        ("b.txt", "make"),
        ("ci/run.py", "CI"),
        ("notes.txt", "make"),
        ("sub/job.py", "make"),
        ("tools/lib.sh", "make"),
        ("web/b.mts", "npm"),
        ("web/scripts/t.js", "npm"),
    ];
    let world = World::new(&files);
    world.write_below("Makefile.inc.mk", "x:\n\tsh b.txt\n");
    let options = ApplyOptions { also_what_runs: true, ..ApplyOptions::default() };
    let listed = world.changes();
    assert_eq!(listed.files().iter().filter(|it| it.runs_later.is_some()).count(), 1);
    world.apply(&["Makefile.inc.mk"], &options);
    check(&world, &held, &["src/main.c", "README.md", "web/src/index.js"]);
}

#[test]
fn a_file_that_only_a_new_makefile_names_is_held_back_with_it() {
    let world = World::new(&[]);
    world.write_below("Makefile", "all:\n\t./tools/run.sh\n");
    world.write_below("tools/run.sh", "sh tools/next.sh\n");
    world.write_below("tools/next.sh", "echo\n");
    world.write_below("tools/other.sh", "echo\n");
    let applied = world.apply(&["."], &ApplyOptions::default());
    let held: Vec<_> = applied.held_back.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(held, ["Makefile", "tools/next.sh", "tools/run.sh"]);
    assert!(world.read("tools/other.sh").is_some() && world.read("tools/run.sh").is_none());
}

/// However large a workspace, the search for named files ends; files beyond the bound are not marked.
#[test]
fn the_search_for_named_files_is_bounded() {
    let world = World::new(&[]);
    let many = "sh tools/a.sh ".repeat(200_000) + "tools/far.sh";
    std::fs::write(world.ws().join("Makefile"), &many).unwrap();
    for dir in 0..600 {
        let dir = world.ws().join(format!("d{dir}"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("Makefile"), "x:\n\tsh ../tools/b.sh\n").unwrap();
    }
    for path in ["tools/a.sh", "tools/b.sh", "tools/far.sh"] {
        world.write_below(path, "x\n");
    }
    let changes = world.changes();
    let marked = changes.files().iter().filter(|it| it.runs_later.is_some());
    let marked: Vec<_> = marked.map(|it| it.path.to_str().unwrap()).collect();
    assert_eq!(marked, ["tools/a.sh", "tools/b.sh"]);
}

#[test]
fn source_text_is_counted_once_and_apart_from_what_runs_by_itself() {
    let world = World::new(&[("gone.rs", "x\n")]);
    for path in ["src/a.rs", "tests/b.py", "notes.md", "Makefile", "conftest.py"] {
        world.write_below(path, "x\n");
    }
    world.overlay.remove_path("gone.rs").unwrap();
    let stat = world.changes().change_stat();
    assert_eq!((stat.files, stat.code, stat.run_later), (6, 2, 2));
}
