//! Which of many files are agents, and which of them is meant by a name.

use std::path::PathBuf;

use belljar_definition::{AgentScope, Catalog, ScannedContent, SkipReason, SourceFile};

use crate::show::known;

/// A file of this scope, path and text.
fn file(scope: AgentScope, path: &str, text: &str) -> SourceFile {
    let root = match &scope {
        AgentScope::Home => PathBuf::from("/drafts/home/agents"),
        AgentScope::Library(name) => PathBuf::from(format!("/lib/{name}")),
        AgentScope::Workspace(path) => path.join(".belljar/agents"),
    };
    let path = root.join(path);
    SourceFile { scope, root, path, content: ScannedContent::Bytes(text.as_bytes().to_vec()) }
}

fn home(path: &str, text: &str) -> SourceFile {
    file(AgentScope::Home, path, text)
}

fn workspace(path: &str, text: &str) -> SourceFile {
    file(AgentScope::Workspace("/ws".into()), path, text)
}

fn library(name: &str, path: &str, text: &str) -> SourceFile {
    file(AgentScope::Library(name.to_owned()), path, text)
}

fn agent(name: &str) -> String {
    format!("---\nname: {name}\ndescription: d\n---\nI am {name}.")
}

fn build(files: Vec<SourceFile>) -> Catalog {
    Catalog::from_agent_files(files, known(), false)
}

fn ids(catalog: &Catalog) -> Vec<String> {
    catalog.agents().iter().map(|entry| entry.id.to_string()).collect()
}

fn said(catalog: &Catalog) -> String {
    catalog.diagnostics().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn one_bad_file_stops_nobody() {
    let mut files = vec![
        home("b.md", &agent("b")),
        home("a.md", "---\nname: [\n---\nb"),
        home("sub/c.md", &agent("c")),
        home("README.md", "# hi"),
        home("notes/plan.md", "# hi"),
        home("script.py", "x"),
    ];
    files.push(SourceFile { content: ScannedContent::TooLarge(100 << 20), ..home("huge.md", "") });
    files.push(SourceFile {
        content: ScannedContent::Unreadable("denied".into()),
        ..home("x.md", "")
    });
    let catalog = build(files);
    assert_eq!(ids(&catalog), ["home/b", "home/c"]);
    insta::assert_snapshot!(said(&catalog), @r#"
    /drafts/home/agents/a.md:2:7: error: the frontmatter is not valid YAML: unclosed bracket '['
      hint: close the list, `[a, b]`; quote a text that begins so
    /drafts/home/agents/huge.md: error: the file has 104857600 bytes; an agent definition has at most 1048576
      hint: move long reference text to files that the agent reads when it needs them
    /drafts/home/agents/notes/plan.md: note: not an agent: the file does not begin with `---`, so it has no frontmatter
    /drafts/home/agents/x.md: error: the file cannot be read: denied
    "#);
}

#[test]
fn within_a_scope_the_first_in_path_order_wins() {
    let catalog = build(vec![home("z.md", &agent("Scout")), home("a/b.md", &agent("scout"))]);
    assert_eq!(ids(&catalog), ["home/scout"]);
    assert!(catalog.agents()[0].definition.path.ends_with("a/b.md"));
    insta::assert_snapshot!(said(&catalog), @r#"
    /drafts/home/agents/z.md: error: agent `Scout` is skipped: `/drafts/home/agents/a/b.md` already has that name
      hint: rename one of them
    "#);
}

#[test]
fn a_workspace_agent_never_takes_a_home_agents_name() {
    let files = || vec![workspace("s.md", &agent("scout")), home("s.md", &agent("scout"))];
    let catalog = build(files());
    assert_eq!(ids(&catalog), ["home/scout"]);
    insta::assert_snapshot!(said(&catalog), @r#"
    /ws/.belljar/agents/s.md: error: agent `scout` is skipped: `/drafts/home/agents/s.md` already has that name
      hint: rename it, or set `project_override = true` in `belljar.toml` at home
    "#);
    let catalog = Catalog::from_agent_files(files(), known(), true);
    assert_eq!(ids(&catalog), ["workspace:/ws/scout"]);
    insta::assert_snapshot!(said(&catalog), @"/ws/.belljar/agents/s.md: note: agent `workspace:/ws/scout` takes the place of `/drafts/home/agents/s.md`, because `project_override` is set");
}

#[test]
fn drafts_wait_and_a_directory_above_called_drafts_does_not_matter() {
    let catalog = build(vec![
        home("drafts/a.md", &agent("a")),
        home("x/Drafts/b.md", &agent("b")),
        home("drafts.md", &agent("c")),
    ]);
    assert_eq!(ids(&catalog), ["home/c"]);
    let waiting = catalog.skipped_files().iter().filter(|s| s.reason == SkipReason::Quarantined);
    assert_eq!(waiting.count(), 2);
}

#[test]
fn a_name_finds_home_then_workspace_then_the_only_library() {
    let catalog = build(vec![
        home("a.md", &agent("a")),
        library("one", "a.md", &agent("a")),
        library("one", "b.md", &agent("Code Reviewer")),
        library("one", "c.md", &agent("c")),
        library("two", "c.md", &agent("c")),
        workspace("d.md", &agent("d")),
        workspace("c2.md", "---\nname: c2\n---\nb"),
    ]);
    let find = |name: &str| match catalog.find_by_name(name) {
        Ok(entry) => entry.id.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(find("a"), "home/a");
    assert_eq!(find("library/one/a"), "library/one/a");
    assert_eq!(find("Code Reviewer"), "library/one/code-reviewer");
    assert_eq!(find("d"), "workspace:/ws/d");
    assert_eq!(find("workspace/d"), "workspace:/ws/d");
    assert_eq!(find("workspace:/ws/d"), "workspace:/ws/d");
    insta::assert_snapshot!(find("c"), @r#"
    several agents are called `c`
      hint: write one of `library/one/c`, `library/two/c`
    "#);
    insta::assert_snapshot!(find("code-reviewr"), @r#"
    no agent is called `code-reviewr`
      hint: did you mean `code-reviewer`?
    "#);
    insta::assert_snapshot!(find("c2"), @r#"
    no agent is called `c2`
      hint: `/ws/.belljar/agents/c2.md` could not be understood; see `belljar agents check`
    "#);
    insta::assert_snapshot!(find("zzz\u{202e}"), @r#"
    no agent is called `zzz\u{202e}`
      hint: `belljar agents list` shows all
    "#);
}

#[test]
fn a_library_stands_back_for_a_file_that_cannot_be_understood() {
    let files = |broken: SourceFile| vec![broken, library("one", "a.md", &agent("a"))];
    let bad = "---\nname: [\n---\nb";
    for broken in [home("a.md", bad), workspace("sub/A.md", bad), library("two", "a.md", bad)] {
        let catalog = build(files(broken));
        let error = catalog.find_by_name("a").unwrap_err().to_string();
        assert!(error.contains("could not be understood"), "{error}");
        assert_eq!(catalog.find_by_name("library/one/a").unwrap().id.to_string(), "library/one/a");
    }
    let altered = SourceFile { content: ScannedContent::Altered, ..library("two", "a.md", "") };
    let catalog = build(files(altered));
    assert!(catalog.find_by_name("a").is_err());
    assert!(said(&catalog).contains("belljar agents update two"), "{}", said(&catalog));
}

#[test]
fn libraries_come_last() {
    let catalog = build(vec![
        library("one", "a.md", &agent("a")),
        workspace("b.md", &agent("b")),
        home("c.md", &agent("c")),
    ]);
    assert_eq!(ids(&catalog), ["home/c", "workspace:/ws/b", "library/one/a"]);
}

#[test]
fn a_name_with_a_colon_is_no_librarys_agent_of_the_joined_name() {
    let stranger = || library("x", "pilot-scout.md", &agent("pilot-scout"));
    let plugins = || library("harbour/pilot", "scout.md", &agent("scout"));
    let own = || home("pilot-scout.md", &agent("pilot-scout"));
    for (files, id) in [
        (vec![stranger()], None),
        (vec![stranger(), plugins()], Some("library/harbour/pilot/scout")),
        (vec![stranger(), plugins(), own()], Some("home/pilot-scout")),
    ] {
        let catalog = build(files);
        let found = catalog.find_by_name("pilot:scout").ok().map(|entry| entry.id.to_string());
        assert_eq!(found.as_deref(), id);
        assert!(catalog.find_by_name("pilot-scout").is_ok());
    }
}
