//! The library: which files become agents, and what an edit does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use belljar_catalogue::{Library, LibraryChange, LibraryRoot};
use belljar_definition::{KnownTools, Severity, Slug};
use belljar_kit::world::{agent, write};
use belljar_policy::ToolName;
use belljar_sandbox::Digest;
use tempfile::TempDir;

struct Disk {
    home: TempDir,
    workspace: TempDir,
}

impl Disk {
    fn new() -> Self {
        Self { home: TempDir::new().unwrap(), workspace: TempDir::new().unwrap() }
    }

    fn home(&self, name: &str, text: &str) {
        write(&self.home.path().join("agents").join(name), text);
    }

    fn project(&self, name: &str, text: &str) {
        write(&self.workspace.path().join(".belljar/agents").join(name), text);
    }

    /// The library of the test's home and workspace.
    fn open(&self, project_override: bool) -> Library {
        let known = KnownTools::new([ToolName::new("file_read").unwrap()]);
        let workspace = self.workspace.path().canonicalize().unwrap();
        let roots =
            vec![LibraryRoot::for_home(self.home.path()), LibraryRoot::for_workspace(&workspace)];
        Library::open(roots, known, project_override)
    }
}

fn names(library: &Library) -> Vec<String> {
    library.catalog().agents().iter().map(|agent| agent.id.to_string()).collect()
}

fn codes(library: &Library, path: &Path) -> Vec<&'static str> {
    let problems = library.problems();
    problems.iter().filter(|found| found.path == path).map(|found| found.code).collect()
}

#[test]
fn folders_are_searched_and_drafts_and_documentation_are_not_agents() {
    let disk = Disk::new();
    disk.home("a.md", &agent("a", ""));
    disk.home("team/deep/b.md", &agent("b", ""));
    disk.home("drafts/c.md", &agent("c", ""));
    disk.home("team/drafts/d.md", &agent("d", ""));
    disk.home(".hidden/e.md", &agent("e", ""));
    disk.home("README.md", "# About these agents\n");
    disk.home("notes.txt", "---\nname: f\n---\n");
    let library = disk.open(false);
    assert_eq!(names(&library), ["home/a", "home/b"]);
    assert_eq!(library.problems(), []);
}

#[test]
fn an_edit_is_picked_up_and_a_broken_one_removes_the_agent_loudly() {
    let disk = Disk::new();
    disk.home("a.md", &agent("a", ""));
    disk.home("b.md", &agent("b", ""));
    let library = disk.open(false);
    let id = |name: &str| {
        let catalog = library.catalog();
        catalog.find_by_name(name).map(|agent| agent.id.clone()).unwrap()
    };
    let (a, b) = (id("a"), id("b"));
    assert_eq!(library.refresh(), [], "nothing changed");

    disk.home("a.md", &agent("a", "tools: [file_read]\n"));
    assert_eq!(library.refresh(), [LibraryChange::Changed(a.clone())]);

    disk.home("a.md", "---\nname: a\n---\nbody\n");
    let changes = library.refresh();
    let [LibraryChange::Removed(gone, why)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(*gone, a);
    assert!(why.iter().any(|found| found.severity == Severity::Error), "{why:?}");
    assert_eq!(names(&library), ["home/b"], "its sibling stays");

    disk.home("a.md", &agent("a", ""));
    assert_eq!(library.refresh(), [LibraryChange::Added(a)]);
    fs::remove_file(disk.home.path().join("agents/b.md")).unwrap();
    assert_eq!(library.refresh(), [LibraryChange::Removed(b, vec![])]);
}

#[test]
fn of_two_files_with_one_name_the_first_path_wins_and_the_other_is_reported() {
    let disk = Disk::new();
    disk.home("x/one.md", &agent("same", "maxTurns: 3\n"));
    disk.home("y/two.md", &agent("same", ""));
    let library = disk.open(false);
    assert_eq!(names(&library), ["home/same"]);
    let path = library.catalog().find_by_name("same").unwrap().definition.path.clone();
    assert!(path.ends_with("x/one.md"), "{path:?}");
    assert_eq!(codes(&library, &disk.home.path().join("agents/y/two.md")).len(), 1);
}

#[test]
fn a_project_agent_takes_a_home_agents_place_only_with_project_override() {
    let disk = Disk::new();
    disk.home("scout.md", &agent("scout", ""));
    disk.project("scout.md", &agent("scout", ""));
    disk.project("own.md", &agent("own", ""));
    let workspace = disk.workspace.path().canonicalize().unwrap();
    let scope = |library: &Library| {
        library.catalog().find_by_name("scout").map(|agent| agent.id.to_string()).unwrap()
    };
    let library = disk.open(false);
    assert_eq!(scope(&library), "home/scout");
    assert_eq!(names(&library).len(), 2);
    let path = workspace.join(".belljar/agents/scout.md");
    assert_eq!(codes(&library, &path).len(), 1, "{:?}", library.problems());
    let library = disk.open(true);
    assert_eq!(scope(&library), format!("workspace:{}/scout", workspace.display()));
}

#[cfg(unix)]
#[test]
fn links_out_of_a_workspace_and_linked_folders_are_not_followed() {
    use std::os::unix::fs::symlink;
    let disk = Disk::new();
    let outside = TempDir::new().unwrap();
    write(&outside.path().join("evil.md"), &agent("evil", ""));
    disk.project("real.md", &agent("real", ""));
    let agents = disk.workspace.path().canonicalize().unwrap().join(".belljar/agents");
    symlink(outside.path().join("evil.md"), agents.join("evil.md")).unwrap();
    symlink(outside.path(), agents.join("folder")).unwrap();
    symlink(&agents, agents.join("loop")).unwrap();
    symlink(agents.join("real.md"), agents.join("z.md")).unwrap();
    let library = disk.open(false);
    let catalog = library.catalog();
    let slugs: Vec<&str> = catalog.agents().iter().map(|agent| agent.id.slug.as_str()).collect();
    assert_eq!(slugs, ["real"]);
    assert_eq!(codes(&library, &agents.join("evil.md")), ["link-outside"]);
    assert_eq!(codes(&library, &agents.join("folder")), ["linked-folder"]);
    assert_eq!(codes(&library, &agents.join("loop")), ["linked-folder"]);
}

#[cfg(unix)]
#[test]
fn a_workspace_whose_agents_folder_is_a_link_outwards_has_no_agents() {
    let disk = Disk::new();
    let outside = TempDir::new().unwrap();
    write(&outside.path().join("evil.md"), &agent("evil", ""));
    fs::create_dir(disk.workspace.path().join(".belljar")).unwrap();
    let agents = disk.workspace.path().canonicalize().unwrap().join(".belljar/agents");
    std::os::unix::fs::symlink(outside.path(), &agents).unwrap();
    let library = disk.open(false);
    assert_eq!(names(&library), [""; 0]);
    assert_eq!(codes(&library, &agents), ["link-outside"]);
}

#[test]
fn a_file_too_large_to_be_an_agent_is_reported_and_not_read() {
    let disk = Disk::new();
    disk.home("ok.md", &agent("ok", ""));
    let big = disk.home.path().join("agents/big.md");
    fs::File::create(&big).unwrap().set_len(100 << 20).unwrap();
    let library = disk.open(false);
    assert_eq!(names(&library), ["home/ok"]);
    assert_eq!(codes(&library, &big).len(), 1, "{:?}", library.problems());
}

#[test]
fn many_large_files_are_read_up_to_a_bound_and_the_rest_is_reported() {
    let disk = Disk::new();
    let long = "x".repeat(1_000_000);
    for n in 10..50 {
        disk.project(&format!("a{n}.md"), &(agent(&format!("a{n}"), "") + &long));
    }
    // Longer than any agent: not read, and so not counted.
    let big = disk.workspace.path().join(".belljar/agents/a00.md");
    fs::File::create(big).unwrap().set_len(100 << 20).unwrap();
    disk.home("ok.md", &agent("ok", ""));
    let library = disk.open(false);
    let found = names(&library);
    assert_eq!(found.len(), 34, "33 of the workspace's and the home's: {found:?}");
    assert!(found.contains(&"home/ok".to_owned()), "{found:?}");
    let agents = disk.workspace.path().canonicalize().unwrap().join(".belljar/agents");
    assert_eq!(codes(&library, &agents), ["too-many"]);
}

#[cfg(unix)]
#[test]
fn a_fifo_named_like_an_agent_holds_nobody_up() {
    let disk = Disk::new();
    disk.home("ok.md", &agent("ok", ""));
    let fifo = disk.home.path().join("agents/pipe.md");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let library = disk.open(false);
    assert_eq!(names(&library), ["home/ok"]);
    assert_eq!(codes(&library, &fifo).len(), 1, "{:?}", library.problems());
}

#[test]
fn folders_past_the_depth_bound_are_reported() {
    let disk = Disk::new();
    let deep = ["d"; 12].join("/");
    disk.home(&format!("{deep}/x.md"), &agent("x", ""));
    let library = disk.open(false);
    assert_eq!(names(&library), [""; 0]);
    assert_eq!(library.problems().iter().map(|found| found.code).collect::<Vec<_>>(), ["too-deep"]);
}

#[test]
fn an_installed_file_counts_while_it_is_what_was_agreed_to() {
    let dir = TempDir::new().unwrap();
    let text = agent("a", "");
    write(&dir.path().join("x/a.md"), &text);
    write(&dir.path().join("stowaway.md"), &agent("stowaway", ""));
    let digest = Digest::hash_bytes(text.as_bytes());
    let files = BTreeMap::from([("x/a.md".into(), digest), ("x/gone.md".into(), digest)]);
    let root =
        LibraryRoot::for_installed(Slug::from_name("lib").unwrap(), dir.path().into(), files);
    let library = Library::open(vec![root], KnownTools::new([]), false);
    assert_eq!(names(&library), ["library/lib/a"]);
    assert_eq!(codes(&library, dir.path()), ["library-incomplete"]);

    let file = dir.path().join("x/a.md");
    write(&file, &text.replace("---\n", "---\n\n"));
    assert_eq!(library.refresh().len(), 1);
    assert_eq!((names(&library).len(), codes(&library, &file)), (0, vec!["altered"]));
    write(&file, &text);
    library.refresh();
    assert_eq!(names(&library), ["library/lib/a"]);
}
