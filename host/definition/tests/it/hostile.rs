//! Files that are made to hurt: each gets one clear answer, soon.

use std::path::Path;
use std::time::Duration;

use belljar_definition::{
    AgentScope, Catalog, KnownTools, MAX_DEFINITION, MAX_DIAGNOSTICS, MAX_FRONTMATTER,
    ParsedAgentFile, ScannedContent, Settings, SourceFile, parse_agent,
};
use belljar_policy::ToolName;
use rustix::time::{ClockId, clock_gettime};

use crate::show::{agent, errors, known, manifest};

/// The processor time of a test's thread, which a busy machine does not prolong.
struct Spent(Duration);

impl Spent {
    fn now() -> Self {
        Self(clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap())
    }

    /// The time since then.
    fn time(&self) -> Duration {
        Self::now().0 - self.0
    }
}

/// Far more than any of these takes on a slow machine, far less than a bomb that goes off.
const SOON: Duration = Duration::from_secs(5);

/// The same for the largest inputs that are read, in a build without optimisation. What these
/// tests keep from coming back took minutes.
const IN_TIME: Duration = Duration::from_secs(20);

/// Parses an agent file within the time limit; returns the answer.
fn quick(text: impl AsRef<[u8]>) -> String {
    let start = Spent::now();
    let answer = agent(text);
    assert!(start.time() < SOON, "took {:?}", start.time());
    assert_eq!(answer.lines().next(), Some("invalid"), "{answer}");
    let answer = answer.lines().skip(1).collect::<Vec<_>>().join("\n");
    assert!(answer.len() < 2_000, "{} bytes", answer.len());
    answer
}

fn file(yaml: &str) -> String {
    format!("---\nname: s\ndescription: d\n{yaml}\n---\nbody")
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..10 {
        let uses = vec![format!("*a{}", n - 1); 9].join(", ");
        bomb += &format!("a{n}: &a{n} [{uses}]\n");
    }
    insta::assert_snapshot!(quick(file(&bomb)), @r#"
    agents/scout.md:8:10: error: the frontmatter is not valid YAML: more than 32 aliases, or aliases of aliases
      hint: write the values out instead of anchors and aliases
    "#);
}

/// Shown on a terminal, this file seems to have a short list of tools.
#[test]
fn a_carriage_return_that_hides_a_line_is_refused() {
    insta::assert_snapshot!(quick(file("tools: [file_write] #\rtools: [file_read]   #")), @r#"
    agents/scout.md:4:22: error: the frontmatter is not valid YAML: a carriage return that ends no line
      hint: save the file with ordinary line endings
    "#);
}

#[test]
fn merge_keys_are_refused() {
    insta::assert_snapshot!(quick(file("base: &b {a: 1}\nc:\n  <<: *b")), @r#"
    agents/scout.md:6:3: error: the frontmatter is not valid YAML: merge keys are not read
      hint: write the values out instead of anchors and aliases
    "#);
}

#[test]
fn depth_bombs_are_refused() {
    insta::assert_snapshot!(quick(file(&format!("a: {}", "[".repeat(30_000)))), @r#"
    agents/scout.md:4:20: error: the frontmatter is not valid YAML: nested deeper than 16 levels
      hint: flatten it
    "#);
    let maps: String = (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    insta::assert_snapshot!(quick(file(&format!("b:\n{maps}"))), @r#"
    agents/scout.md:21:17: error: the frontmatter is not valid YAML: nested deeper than 16 levels
      hint: flatten it
    "#);
}

#[test]
fn size_bombs_are_refused() {
    insta::assert_snapshot!(quick(file(&format!("a: {}", "x".repeat(MAX_FRONTMATTER)))), @r#"
    agents/scout.md:1:1: error: the frontmatter has 65563 bytes, at most 65536 are read
      hint: move prose below the closing `---`
    "#);
    let many = "[".to_owned() + &"1,".repeat(MAX_FRONTMATTER / 2 - 200) + "]";
    insta::assert_snapshot!(quick(file(&format!("a: {many}"))), @r#"
    agents/scout.md:4:19991: error: the frontmatter is not valid YAML: more than 10000 values
      hint: move data below the closing `---`
    "#);
    let text = file("") + &"x".repeat(MAX_DEFINITION);
    insta::assert_snapshot!(quick(text), @r#"
    agents/scout.md: error: the file has 1048612 bytes; an agent definition has at most 1048576
      hint: move long reference text to files that the agent reads when it needs them
    "#);
}

#[test]
fn a_hundred_megabytes_are_refused_by_their_length() {
    let bytes = vec![b'-'; 100 << 20];
    let start = Spent::now();
    let ParsedAgentFile::Invalid { diagnostics } = parse_agent(Path::new("a.md"), &bytes, &known())
    else {
        panic!("taken for an agent");
    };
    assert!(start.time() < SOON);
    insta::assert_snapshot!(diagnostics[0].to_string(), @r#"
    a.md: error: the file has 104857600 bytes; an agent definition has at most 1048576
      hint: move long reference text to files that the agent reads when it needs them
    "#);
}

#[test]
fn a_flood_of_findings_is_cut() {
    let keys: String = (0..2_000).map(|n| format!("key{n}: 1\n")).collect();
    let answer = agent(file(&format!("visibility: internal\n{keys}")));
    assert!(answer.lines().count() < 130, "{}", answer.lines().count());
    assert!(answer.contains("more findings in this file are not listed"), "{answer}");
}

#[test]
fn invalid_utf8_is_placed() {
    insta::assert_snapshot!(quick(b"---\nname: s\ndescription: caf\xe9\n---\nbody"), @r#"
    agents/scout.md:3:17: error: the file is not UTF-8 from here on
      hint: save it as UTF-8
    "#);
    insta::assert_snapshot!(agent(b"# caf\xe9\n"), @"NoFrontmatter: the file does not begin with `---`, so it has no frontmatter");
}

#[test]
fn control_characters_in_yaml_are_refused() {
    insta::assert_snapshot!(quick(file("a: \u{1}\u{1b}[2J")), @r#"agents/scout.md:4:4: error: the frontmatter is not valid YAML: unexpected character: `\u{1}'"#);
}

#[test]
fn toml_bombs_are_refused() {
    let start = Spent::now();
    let deep = errors(&format!("a = {}", "[".repeat(100_000)));
    assert!(deep.contains("not valid TOML"), "{deep}");
    let dotted = errors(&format!("{}a = 1", "a.".repeat(100_000)));
    assert!(dotted.contains("belljar.toml"), "{dotted}");
    let long = errors(&"#".repeat(2 << 20));
    insta::assert_snapshot!(long, @"belljar.toml: error: the file has 2097152 bytes, at most 1048576 are read");
    assert!(manifest(&"[a]\n".repeat(10_000)).len() < 60_000);
    assert!(start.time() < SOON, "took {:?}", start.time());
}

/// As many tools as the largest number of MCP servers may list.
fn many_tools() -> KnownTools {
    let name = |n: usize| ToolName::new(&format!("mcp__s{}__tool{n}", n / 128)).unwrap();
    (0..8_192).map(name).chain(known().iter().cloned()).collect()
}

#[test]
fn thousands_of_names_in_one_text_cost_no_search_of_all_tools_each() {
    let tools = many_tools();
    let start = Spent::now();
    for (field, lost) in [
        (format!("disallowedTools: [\"{}\"]", "Read ".repeat(13_000)), true),
        (format!("disallowedTools: [{}]", "'*l*', ".repeat(490)), true),
        (format!("disallowedTools: [{}]", "Read, ".repeat(490)), false),
        ("disallowedTools: ['*l*']".to_owned(), false),
    ] {
        let text = file(&field);
        let parsed = parse_agent(Path::new("a.md"), text.as_bytes(), &tools);
        let ParsedAgentFile::Agent { definition, .. } = parsed else { panic!("no agent") };
        assert_eq!(!definition.unclear.is_empty(), lost, "{}", &field[..30]);
    }
    assert!(start.time() < IN_TIME, "took {:?}", start.time());
}

#[test]
fn a_settings_file_of_faults_has_some_told_and_the_rest_counted() {
    let many = |unit: &str| unit.repeat(((1 << 20) - 100) / unit.len());
    let keys = |end: &str| -> String { (0..90_000).map(|n| format!("k{n}=1{end}")).collect() };
    let start = Spent::now();
    for text in [
        many("=\n"),
        format!("x={{{}}}", many("a=1,")),
        keys("\n"),
        format!("subagents={{{}z=1}}", keys(",")),
        format!("[defaults.internal]\nlimits={{{}z=1}}", keys(",")),
    ] {
        let workspace = Some((Path::new("belljar.toml"), text.as_str()));
        let faults = Settings::parse(None, workspace, None).unwrap_err();
        assert!((1..=MAX_DIAGNOSTICS + 1).contains(&faults.len()), "{}", faults.len());
    }
    assert!(start.time() < IN_TIME, "took {:?}", start.time());
}

/// Agent files with texts by number.
fn files(scope: &AgentScope, count: usize, text: impl Fn(usize) -> String) -> Vec<SourceFile> {
    let file = |n: usize| SourceFile {
        scope: scope.clone(),
        root: "/r".into(),
        path: format!("/r/{scope:?}/a{n}.md").into(),
        content: ScannedContent::Bytes(text(n).into_bytes()),
    };
    (0..count).map(file).collect()
}

#[test]
fn names_are_found_among_the_most_files_without_a_search_of_all_of_them() {
    let library = AgentScope::Library("l".to_owned());
    let mut all = files(&library, 5_000, |n| format!("---\nname: b{n}\ndescription: d\n---\nx"));
    all.extend(files(&AgentScope::Workspace("/w".into()), 5_000, |_| {
        "---\na: [\n---\nx".to_owned()
    }));
    let catalog = Catalog::from_agent_files(all, known(), false);
    assert_eq!((catalog.agents().len(), catalog.skipped_files().len()), (5_000, 5_000));
    let start = Spent::now();
    for entry in catalog.agents().iter().cycle().take(25_000) {
        let bare = catalog.find_unscoped(&entry.id.slug).map(|found| &found.id);
        assert_eq!(
            (bare, catalog.get(&entry.id).map(|it| &it.id)),
            (Some(&entry.id), Some(&entry.id))
        );
    }
    assert!(start.time() < IN_TIME, "took {:?}", start.time());
    let names: String = (0..30_000).map(|n| format!("[grants.\"c{n}\"]\n")).collect();
    let workspace = Some((Path::new("belljar.toml"), names.as_str()));
    let settings = Settings::parse(None, workspace, None).unwrap();
    let start = Spent::now();
    let told = settings.check_agents(&catalog, &Catalog::default(), Path::new("/w"));
    assert!(start.time() < IN_TIME, "took {:?}", start.time());
    assert_eq!(told.len(), MAX_DIAGNOSTICS + 1);
    let last = told.last().map(|it| it.message.as_str());
    assert_eq!(last, Some("29950 more agents are named, and not there"));
}
