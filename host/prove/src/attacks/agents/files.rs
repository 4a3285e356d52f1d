//! Attacks by agent files that are hard to parse, or that are no regular files.

use std::fs;

use belljar_definition::Settings;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::scene::{ScenePlan, agent_file};

/// A row for an agent file that must be reported and skipped, while another agent runs.
macro_rules! skipped {
    ($id:literal, $tries:literal, $by:literal, $told:literal, $text:expr) => {
        Attack {
            id: $id,
            kind: AttackKind::Agents,
            tries: $tries,
            stopped_by: $by,
            told: $told,
            embedded: true,
            run: |arena| Box::pin(skipped(arena, $text)),
        }
    };
}

/// A row for an agent file that must be loaded, but without any tools, while another agent runs.
macro_rules! lost {
    ($id:literal, $tries:literal, $by:literal, $told:literal, $field:expr) => {
        Attack {
            id: $id,
            kind: AttackKind::Agents,
            tries: $tries,
            stopped_by: $by,
            told: $told,
            embedded: true,
            run: |arena| Box::pin(lost(arena, evil(&$field))),
        }
    };
}

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    skipped!(
        "agents-yaml-of-aliases",
        "is YAML in which ten lines mean billions of values",
        "budgets of the YAML reader (INV-16, INV-4)",
        "aliases of aliases",
        alias_bomb()
    ),
    skipped!(
        "agents-yaml-that-nests",
        "is YAML that nests 30,000 deep",
        "budgets of the YAML reader (INV-16, INV-4)",
        "nested deeper than 16 levels",
        evil(&format!("a: {}", "[".repeat(30_000)))
    ),
    skipped!(
        "agents-yaml-of-many-values",
        "is YAML with 30,000 values",
        "budgets of the YAML reader (INV-16, INV-4)",
        "more than 10000 values",
        evil(&format!("a: [{}]", "1,".repeat(30_000)))
    ),
    skipped!(
        "agents-yaml-of-a-megabyte",
        "has a megabyte of frontmatter",
        "a bound on frontmatter (INV-16, INV-4)",
        "at most 65536 are read",
        evil(&format!("a: {}", "x".repeat(1_000_000)))
    ),
    skipped!(
        "agents-file-of-100-mb",
        "is a file of 100 MB",
        "a bound on the file, before it is read (INV-16, INV-4)",
        "at most 1048576",
        format!("{}{}", evil(""), "x".repeat(100_000_000))
    ),
    skipped!(
        "agents-yaml-with-two-meanings",
        "says two things under one key, so that two readers see two agents",
        "keys stand once (INV-4)",
        "a key stands here for the second time",
        evil("tools: []\ntools: [file_read]")
    ),
    skipped!(
        "agents-name-with-escapes",
        "has a name with terminal escapes, a bidi override and a line break",
        "a name is small letters, digits and `-` (INV-15, INV-4)",
        "name",
        agent_file("\"evil\\e[2J\\u202e\\n# it\"", "maxTurns: 3\n")
    ),
    Attack {
        id: "agents-file-that-is-a-fifo",
        kind: AttackKind::Agents,
        tries: "puts a FIFO, a link to a device and a link out of the workspace among its agents",
        stopped_by: "only regular files are read (INV-8, INV-4)",
        told: "skipped",
        embedded: true,
        run: |arena| Box::pin(place_special_files(arena)),
    },
    Attack {
        id: "agents-toml-bombs",
        kind: AttackKind::Agents,
        tries: "brings a `belljar.toml` that nests 100,000 deep, or has a table for each letter",
        stopped_by: "bounds of the TOML reader (INV-16)",
        told: "not valid TOML",
        embedded: true,
        run: |arena| Box::pin(parse_hostile_toml(arena, toml_bombs())),
    },
    Attack {
        id: "agents-toml-of-faults",
        kind: AttackKind::Agents,
        tries: "brings a `belljar.toml` of 400 KB with a fault at each word, all of it on one line or two bytes a line",
        stopped_by: "places are counted once, and some faults are told (INV-420)",
        told: "not valid TOML",
        embedded: true,
        run: |arena| Box::pin(parse_hostile_toml(arena, toml_faults())),
    },
    lost!(
        "agents-names-in-one-text",
        "names 12,000 tools in one text of a list that takes tools away",
        "what one list may name is counted (INV-420)",
        "it names several things",
        format!("disallowedTools: [\"{}\"]", "Read ".repeat(12_000))
    ),
    skipped!(
        "agents-names-in-many-texts",
        "names 12,000 tools in texts of 30 words of a list that takes tools away",
        "what one list may name is counted (INV-420)",
        "has more than 500 names",
        evil(&format!(
            "disallowedTools: [{}]",
            format!("\"{}\", ", "Read ".repeat(30)).repeat(400)
        ))
    ),
];

/// An agent file with the given lines added to its frontmatter.
fn evil(more: &str) -> String {
    agent_file("evil", &format!("maxTurns: 3\n{more}\n"))
}

/// Frontmatter with YAML aliases that expand to nine to the power of ten values.
fn alias_bomb() -> String {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..10 {
        let uses = vec![format!("*a{}", n - 1); 9].join(", ");
        bomb += &format!("a{n}: &a{n} [{uses}]\n");
    }
    evil(&bomb)
}

const TRANSCRIPT: &str = "
transcript: 1
agents:
  - agent: it
    turns: [{say: I am fine}]
";

/// Checks that an agent file is reported and skipped, and that another agent still runs. Returns the reported
/// message.
async fn skipped(arena: &Arena, text: String) -> Stopped {
    let scene = arena.build_scene(&ScenePlan {
        transcript: TRANSCRIPT,
        agents: &[("evil.md", &text), ("it.md", &agent_file("it", ""))],
        ..ScenePlan::default()
    })?;
    let outcome = scene.run_agent("it", "task").await?;
    if outcome.output != "I am fine" {
        return Err(Escape::new(format!("its sibling suffers: {:?}", outcome.error)));
    }
    if scene.host.library.catalog().agents().len() != 1 {
        return Err(Escape::new("it became an agent"));
    }
    let problems = scene.host.library.problems();
    let of = problems.iter().find(|problem| problem.path.ends_with("evil.md"));
    of.map(|problem| Verdict::with_words(problem.message.clone()))
        .ok_or_else(|| Escape::new("nobody is told"))
}

/// Attack `agents-file-that-is-a-fifo`: the attacker puts a FIFO, a link to a device and a link out of the
/// workspace among its agents.
async fn place_special_files(arena: &Arena) -> Stopped {
    let folder = arena.workspace().join(".belljar/agents");
    fs::create_dir_all(&folder)?;
    fs::write(arena.outside_path().join("agent.md"), agent_file("outsider", ""))?;
    mknodat(CWD, folder.join("fifo.md"), FileType::Fifo, Mode::RWXU, 0)
        .map_err(std::io::Error::from)?;
    std::os::unix::fs::symlink("/dev/zero", folder.join("zero.md"))?;
    std::os::unix::fs::symlink(arena.outside_path().join("agent.md"), folder.join("outsider.md"))?;
    std::os::unix::fs::symlink(&folder, folder.join("loop"))?;
    let scene = arena.build_scene(&ScenePlan {
        transcript: TRANSCRIPT,
        agents: &[("it.md", &agent_file("it", ""))],
        ..ScenePlan::default()
    })?;
    let outcome = scene.run_agent("it", "task").await?;
    let names: Vec<_> =
        scene.host.library.catalog().agents().iter().map(|it| it.id.to_string()).collect();
    if outcome.output != "I am fine" || names != ["home/it"] {
        return Err(Escape::new(format!("{names:?}, {:?}", outcome.error)));
    }
    let problems = scene.host.library.problems();
    let told: Vec<_> = problems.iter().map(|it| it.message.clone()).collect();
    Ok(Verdict::with_words(format!("skipped: {}", told.join("; "))))
}

/// Checks that an agent file is loaded, but with an unclear list that grants nothing, and that another agent
/// still runs.
async fn lost(arena: &Arena, text: String) -> Stopped {
    let scene = arena.build_scene(&ScenePlan {
        transcript: TRANSCRIPT,
        agents: &[("evil.md", &text), ("it.md", &agent_file("it", ""))],
        ..ScenePlan::default()
    })?;
    let outcome = scene.run_agent("it", "task").await?;
    if outcome.output != "I am fine" {
        return Err(Escape::new(format!("its sibling suffers: {:?}", outcome.error)));
    }
    let catalog = scene.host.library.catalog();
    let evil = catalog.agents().iter().find(|it| it.id.slug.as_str() == "evil");
    let unclear = evil.and_then(|it| it.definition.unclear.first());
    unclear
        .map(|it| Verdict::with_words(it.why.clone()))
        .ok_or_else(|| Escape::new("its list was taken, and nobody is told"))
}

/// TOML that nests deep, has a long dotted key, is very long, or has a table for each of many names.
fn toml_bombs() -> Vec<String> {
    let tables = |n: u32| format!("[a{n}]\n");
    vec![
        format!("a = {}", "[".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        "#".repeat(2 << 20),
        (0..50_000).map(tables).collect(),
    ]
}

/// TOML with an error at each word. A whole megabyte of it would only take longer.
fn toml_faults() -> Vec<String> {
    vec![format!("x={{{}}}", "a=1,".repeat(100_000)), "=\n".repeat(200_000)]
}

/// Makes 2 attacks, for example `agents-toml-bombs`: the attacker brings a `belljar.toml` that nests 100,000
/// deep, or has a table for each letter.
async fn parse_hostile_toml(arena: &Arena, texts: Vec<String>) -> Stopped {
    arena.jar_builder(&[]).open().await?;
    let mut told = Vec::new();
    for text in texts {
        let path = std::path::Path::new("belljar.toml");
        match Settings::parse(None, Some((path, &text)), None) {
            Ok(_) => return Err(Escape::new("it was taken")),
            Err(problems) => {
                let bytes: usize = problems.iter().map(|it| it.message.len()).sum();
                if bytes > 1 << 20 {
                    return Err(Escape::new(format!("{bytes} bytes of complaints")));
                }
                told.extend(problems.into_iter().next().map(|it| it.message));
            }
        }
    }
    Ok(Verdict::with_words(told.join("; ")))
}
