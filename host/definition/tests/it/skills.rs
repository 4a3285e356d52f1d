//! Skill files, good and bad, and which files are some.

use std::path::{Path, PathBuf};

use belljar_definition::{Catalog, Content, Filed as _, Scope, Skill, SourceFile};

use crate::show::{skill, skill_at};

macro_rules! check {
    ($file:expr, @$expected:literal) => {
        insta::assert_snapshot!(skill($file), @$expected)
    };
}

#[test]
fn a_skill_has_a_name_a_description_triggers_and_a_body() {
    check!("---
name: Release Notes
description: How release notes are written here.
triggers: [release notes, '  change   log ']
---
Write them so.
", @"");
    check!("---\nname: n\ndescription: d\ntriggers: one word, two words\n---\nb", @"");
}

#[test]
fn files_of_other_programs_load_and_their_tools_are_told() {
    check!("---
name: pdf
description: Reads PDFs.
license: Proprietary
allowed-tools: Read, Bash(pdftotext:*)
metadata: { version: 2 }
---
Use pdftotext.
", @"");
}

#[test]
fn a_missing_name_is_that_of_the_folder_or_file() {
    insta::assert_snapshot!(skill_at("skills/pdf-tools/SKILL.md", "---\ndescription: d\n---\nb"), @"");
    insta::assert_snapshot!(skill_at("skills/pdf.md", "---\ndescription: d\n---\nb"), @"");
}

#[test]
fn bad_skills_get_one_clear_diagnostic() {
    check!("---\nname: n\n---\nb", @"");
    check!("---\nname: n\ndescription: d\n---\n \n", @"");
    check!("---\nname: n\ndescription: d\ntriggers: {a: b}\n---\nb", @"");
    check!("---\nname: n\ndescription: d\ntriggers: [ab]\n---\nb", @"");
    check!("---\nname: n\ndescription: d\nb", @"");
    check!("---\nname: n\ndescription: a: b\n---\nb", @"");
    check!("no frontmatter", @"");
    check!("", @"");
    insta::assert_snapshot!(skill(format!("---\nname: n\ndescription: d\n---\n{}", "x".repeat(256 << 10))), @"");
}

#[test]
fn a_likely_slip_is_a_warning() {
    check!("---\nname: n\ndescription: d\ntrigger: [abc]\n---\nb", @"");
}

#[test]
fn only_skill_files_and_top_level_markdown_are_skills() {
    for yes in ["a/SKILL.md", "a/b/skill.md", "plain.md", "Plain.MD"] {
        assert!(Skill::wants(Path::new(yes)), "{yes}");
    }
    let no = ["README.md", "LICENSE", "LICENSE.md", "CHANGELOG-2.md", "CONTRIBUTING.md"];
    for no in no.into_iter().chain(["a/reference.md", "a/scripts/x.py", "x.yaml"]) {
        assert!(!Skill::wants(Path::new(no)), "{no}");
    }
}

#[test]
fn a_workspaces_skill_never_takes_a_home_skills_name_and_bad_ones_stop_nobody() {
    let file = |scope: Scope, path: &str, text: &str| {
        let root = match &scope {
            Scope::Workspace(path) => path.join(".belljar/skills"),
            Scope::Home | Scope::Library(_) => PathBuf::from("/home/skills"),
        };
        let path = root.join(path);
        SourceFile { scope, root, path, content: Content::Bytes(text.as_bytes().to_vec()) }
    };
    let good = "---\nname: n\ndescription: d\n---\nb";
    let files = vec![
        file(Scope::Workspace("/ws".into()), "n/SKILL.md", good),
        file(Scope::Home, "n/SKILL.md", good),
        file(Scope::Home, "m/SKILL.md", "---\nname: [\n---\n"),
        file(Scope::Home, "notes.md", "# not a skill\n"),
    ];
    let catalog = Catalog::<Skill>::of(files, &(), false);
    let ids: Vec<String> = catalog.entries().iter().map(|entry| entry.id.to_string()).collect();
    assert_eq!(ids, ["home/n"]);
    let said: Vec<String> = catalog.diagnostics().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"), @"");
    insta::assert_snapshot!(catalog.find("m").unwrap_err(), @"");
}
