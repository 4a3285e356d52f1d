//! Mounts below a directory that agents write, and links that somebody else left there.

use std::fs;
use std::os::unix::fs::symlink;

use crate::kit::World;

const AGENT: &str = "---\nname: NAME\ndescription: d\ntools: ['*']\n---\nBe brief.\n";

const SCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: mover
    turns:
      - calls: [{name: shell, arguments: {command: 'mv d d0 && mv e d'}}]
      - say: moved
  - agent: reader
    turns:
      - calls: [{name: file_read, arguments: {path: /o/note.txt}}]
      - expect: {results: [{name: file_read, contains: what was granted}]}
        say: read
  - agent: neighbour
    turns:
      - calls: [{name: file_read, arguments: {path: /p/note.txt}}]
      - expect: {results: [{name: file_read, contains: of the neighbour}]}
        say: read
";

/// INV-178.
#[test]
fn a_directory_that_an_agent_moves_leads_its_mount_nowhere_else() {
    let world = World::new();
    world.file("d/out/note.txt", "what was granted");
    world.file("p/note.txt", "of the neighbour");
    let secret = world.other("secret/note.txt", b"of nobody here");
    // As a checkout of a repository brings it along: agents make no links.
    fs::create_dir(world.workspace().join("e")).unwrap();
    symlink(secret.parent().unwrap(), world.workspace().join("e/out")).unwrap();
    for name in ["mover", "reader", "neighbour"] {
        world.home_file(&format!("agents/{name}.md"), &AGENT.replace("NAME", name));
    }
    world.home_file("script.yaml", SCRIPT);
    let mount = |guest: &str, below: &str| {
        let host = world.workspace().join(below);
        format!("mounts = [{{ path = '{guest}', host = '{}', access = 'read' }}]\n", host.display())
    };
    let settings = format!(
        "[models.main]\nkind = 'scripted'\nmodel = 'script.yaml'\n\
         [grants.mover]\nadd_tools = ['shell']\n\
         mounts = [{{ path = '/workspace', access = 'read-write' }}]\n\
         [grants.reader]\n{}[grants.neighbour]\n{}",
        mount("/o", "d/out"),
        mount("/p", "p")
    );
    world.home_file("belljar.toml", &settings);
    let run = |agent: &str| world.run(&["run", "--json", "--agent", agent, "go"]);

    run("reader").exits(0).says("completed");
    run("mover").exits(0);
    assert!(world.workspace().join("d/out").is_symlink(), "the directories were not moved");

    let refused = run("reader");
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains("lies in a directory that agents write"), "{said}");
    assert!(!said.contains("of nobody here"), "{said}");
    run("neighbour").exits(0).says("completed");
    // The operator moves it back, and it is what it was.
    fs::rename(world.workspace().join("d"), world.workspace().join("e")).unwrap();
    fs::rename(world.workspace().join("d0"), world.workspace().join("d")).unwrap();
    run("reader").exits(0).says("completed");
}
