//! Skill files, good and bad, and which files are some.

use std::path::{Path, PathBuf};

use belljar_definition::{
    AgentScope, Catalog, CatalogItem as _, FileRead, ScannedContent, SkillDefinition, SourceFile,
};

use crate::show::{skill as shown, skill_at};

#[test]
fn a_skill_has_a_name_a_description_triggers_and_a_body() {
    check!("---
name: Release Notes
description: How release notes are written here.
triggers: [release notes, '  change   log ']
---
Write them so.
", @r#"
    Release Notes (release-notes): How release notes are written here.
    ["release notes", "change log"] "Write them so.\n"
    "#);
    check!("---\nname: n\ndescription: d\ntriggers: one word, two words\n---\nb", @r#"
    n (n): d
    ["one word", "two words"] "b"
    "#);
}

#[test]
fn files_of_other_programs_load_as_they_are() {
    check!("---
name: pdf
description: Reads PDFs.
license: Proprietary
allowed-tools: Read, Bash(pdftotext:*)
metadata: { version: 2 }
---
Use pdftotext.
", @r#"
    pdf (pdf): Reads PDFs.
    [] "Use pdftotext.\n"
    skills/s/SKILL.md:4:1: note: ignored: `license`, `metadata`
    "#);
}

#[test]
fn a_word_about_who_may_call_a_skill_restricts_in_every_spelling_and_where_it_is_not_understood() {
    let callers = |line: &str| {
        let text = format!("---\nname: n\ndescription: d\n{line}\n---\nb");
        match SkillDefinition::read_file(Path::new("skills/n/SKILL.md"), text.as_bytes(), &()) {
            FileRead::Item { item, diagnostics } => {
                (item.callers.model, item.callers.person, diagnostics.is_empty())
            }
            other => panic!("{line}: {other:?}"),
        }
    };
    for (line, read) in [
        ("", (true, true, true)),
        ("disable-model-invocation: true", (false, true, true)),
        ("disable-model-invocation: false", (true, true, true)),
        ("disable_model_invocation: \"true\"", (false, true, true)),
        ("disableModelInvocation: true", (false, true, true)),
        ("user-invocable: false", (true, false, true)),
        ("user-invocable: true", (true, true, true)),
        ("user_invocable: 'false'", (true, false, true)),
        ("userInvocable: false", (true, false, true)),
        ("disable-model-invocation: true\nuser-invocable: false", (false, false, true)),
        ("disable-model-invocation: false\ndisableModelInvocation: true", (false, true, true)),
        ("disable-model-invocation: yes", (false, true, false)),
        ("disable-model-invocation: no, never", (false, true, false)),
        ("disable-model-invocation: [true]", (false, true, false)),
        ("disable-model-invocation:", (false, true, false)),
        ("user-invocable: never", (true, false, false)),
        ("user-invocable: 0", (true, false, false)),
    ] {
        assert_eq!(callers(line), read, "{line}");
    }
}

#[test]
fn a_missing_name_is_that_of_the_folder_or_file() {
    insta::assert_snapshot!(skill_at("skills/pdf-tools/SKILL.md", "---\ndescription: d\n---\nb"), @r#"
    pdf-tools (pdf-tools): d
    [] "b"
    skills/pdf-tools/SKILL.md:1:1: warning: it has no `name`; the file's name serves: `pdf-tools`
    "#);
    insta::assert_snapshot!(skill_at("skills/pdf.md", "---\ndescription: d\n---\nb"), @r#"
    pdf (pdf): d
    [] "b"
    skills/pdf.md:1:1: warning: it has no `name`; the file's name serves: `pdf`
    "#);
}

#[test]
fn a_skill_without_a_description_has_the_first_line_of_its_text() {
    for (fields, at) in [("", "1:1"), ("description:\n", "3:1"), ("description: ''\n", "3:1")] {
        let told = shown(format!("---\nname: n\n{fields}---\n\n```sh\n# Read *PDFs*.\nMore.\n"));
        assert!(told.starts_with("n (n): Read *PDFs*.\n"), "{told}");
        let warned =
            format!("{at}: warning: it has no `description`; the first line of its text serves");
        assert!(told.contains(&warned), "{told}");
    }
    let nothing = shown("---\nname: n\n---\n---\n```\n");
    assert!(nothing.starts_with("invalid"), "{nothing}");
    let list = shown("---\nname: n\ndescription: [a, b]\n---\nb");
    assert!(list.contains("`description` is a list, not a text"), "{list}");
}

#[test]
fn the_first_line_of_a_plain_skill_says_something_and_its_encoding_is_told() {
    let read = |path: &str, bytes: &[u8]| {
        format!("{:?}", SkillDefinition::read_file(Path::new(path), bytes, &()))
    };
    for text in [
        "<!-- x -->\n# Do it.\n",
        "```\nDo it.\n```\n",
        "# \r\n\r\nDo it.\r\n",
        "![a](b.png)\nDo it.\rMore.",
    ] {
        let told = read("skills/plain.md", text.as_bytes());
        assert!(told.contains("description: \"Do it.\""), "{text:?}: {told}");
    }
    let latin = read("skills/latin.md", b"Gr\xfc\xdfe.\n");
    assert!(latin.contains("the file is not UTF-8 from here on"), "{latin}");
    let wide: Vec<u8> = "---\nname: n\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for path in ["skills/wide.md", "skills/wide/SKILL.md"] {
        let told = read(path, &wide);
        assert!(told.contains("is written in UTF-16"), "{told}");
    }
    for name in ["NOTICE.md", "COPYING.md", "README.de.md", "AGENTS.md"] {
        assert!(!SkillDefinition::accepts_path(Path::new(name)), "{name}");
    }
    assert!(SkillDefinition::accepts_path(Path::new("notices-of-sea.md")));
}

#[test]
fn bad_skills_get_one_clear_diagnostic() {
    check!("---\nname: n\ndescription: d\n---\n \n", @r#"
    invalid
    skills/s/SKILL.md:4:1: error: there is no text after the frontmatter
      hint: write the instructions below the closing `---`
    "#);
    check!("---\nname: n\ndescription: d\ntriggers: {a: b}\n---\nb", @r#"
    invalid
    skills/s/SKILL.md:4:1: error: `triggers` is a map, not a list of words
    "#);
    check!("---\nname: n\ndescription: d\ntriggers: [ab, abc]\n---\nb", @r#"
    n (n): d
    ["abc"] "b"
    skills/s/SKILL.md:4:12: warning: `ab` is not a trigger, and is left out
      hint: write words of 3 to 100 characters
    "#);
    check!("---\nname: n\ndescription: d\nb", @r#"
    invalid
    skills/s/SKILL.md:1:1: error: the frontmatter is never closed
      hint: put a line `---` between the fields and the prompt
    "#);
    check!("##\n\n# \n", @r#"
    invalid
    skills/s/SKILL.md:1:1: error: there is no text but the marks of a heading
    "#);
    check!("", @r#"
    invalid
    skills/s/SKILL.md:1:1: error: the file is empty
      hint: begin it with `---`, `name: ...`, `description: ...`, `---`
    "#);
    insta::assert_snapshot!(shown(format!("---\nname: n\ndescription: d\n---\n{}", "x".repeat(512 << 10))), @r#"
    invalid
    skills/s/SKILL.md: error: the file has 524319 bytes; a skill has at most 524288
    "#);
}

#[test]
fn loose_yaml_is_read_field_by_field() {
    check!("---\nname: pdf\ndescription: Use this when: the user asks\nlicense: MIT\n---\nb", @r#"
    pdf (pdf): Use this when: the user asks
    [] "b"
    skills/s/SKILL.md:3:27: warning: the frontmatter is not valid YAML, so it was read field by field; `description` is taken as text: mapping values are not allowed in this context, in `description: Use this when: the user asks`
      hint: quote the value of `description`: it holds `: `
    skills/s/SKILL.md:4:1: note: ignored: `license`
    "#);
    check!("---\nname: n\ndescription: d\nallowed-tools: Read: x\n---\nb", @r#"
    n (n): d
    [] "b"
    skills/s/SKILL.md:4:20: warning: the frontmatter is not valid YAML, so it was read field by field; `allowedTools` is taken as text: mapping values are not allowed in this context, in `allowed-tools: Read: x`
      hint: quote the value of `allowed-tools`: it holds `: `
    "#);
}

#[test]
fn a_file_without_frontmatter_is_a_skill_named_by_its_path() {
    check!("\u{feff}\n# Release notes\n\nWrite them so.\n", @r#"
    s (s): Release notes
    [] "\n# Release notes\n\nWrite them so.\n"
    skills/s/SKILL.md:1:1: note: it has no frontmatter: its name is `s`, its description its first line
    "#);
    insta::assert_snapshot!(skill_at("skills/style.md", "Use plain words.\nAnd short ones."), @r#"
    style (style): Use plain words.
    [] "Use plain words.\nAnd short ones."
    skills/style.md:1:1: note: it has no frontmatter: its name is `style`, its description its first line
    "#);
    insta::assert_snapshot!(skill_at("skills/README.md", "# Our skills"), @r#"
    Documentation: the file is documentation
    "#);
}

#[test]
fn a_likely_slip_is_a_warning() {
    check!("---\nname: n\ndescription: d\ntrigger: [abc]\n---\nb", @r#"
    n (n): d
    [] "b"
    skills/s/SKILL.md:4:1: warning: `trigger` is not a field of a skill
      hint: did you mean `triggers`?
    "#);
}

#[test]
fn only_skill_files_and_top_level_markdown_are_skills() {
    for yes in ["a/SKILL.md", "a/b/skill.md", "plain.md", "Plain.MD"] {
        assert!(SkillDefinition::accepts_path(Path::new(yes)), "{yes}");
    }
    let no = ["README.md", "LICENSE", "LICENSE.md", "CHANGELOG-2.md", "CONTRIBUTING.md"];
    for no in no.into_iter().chain(["a/reference.md", "a/scripts/x.py", "x.yaml"]) {
        assert!(!SkillDefinition::accepts_path(Path::new(no)), "{no}");
    }
}

#[test]
fn a_workspaces_skill_never_takes_a_home_skills_name_and_bad_ones_stop_nobody() {
    let file = |scope: AgentScope, path: &str, text: &str| {
        let root = match &scope {
            AgentScope::Workspace(path) => path.join(".belljar/skills"),
            AgentScope::Home | AgentScope::Library(_) => PathBuf::from("/home/skills"),
        };
        let path = root.join(path);
        SourceFile { scope, root, path, content: ScannedContent::Bytes(text.as_bytes().to_vec()) }
    };
    let good = "---\nname: n\ndescription: d\n---\nb";
    let files = vec![
        file(AgentScope::Workspace("/ws".into()), "n/SKILL.md", good),
        file(AgentScope::Home, "n/SKILL.md", good),
        file(AgentScope::Home, "m/SKILL.md", "---\nname: [\n---\n"),
        file(AgentScope::Home, "notes.md", "# not a skill\n"),
    ];
    let catalog = Catalog::<SkillDefinition>::from_files(files, &(), false);
    let ids: Vec<String> = catalog.entries().iter().map(|entry| entry.id.to_string()).collect();
    assert_eq!(ids, ["home/n"]);
    let said: Vec<String> = catalog.diagnostics().map(ToString::to_string).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    /home/skills/m/SKILL.md:2:7: error: the frontmatter is not valid YAML: unclosed bracket '['
      hint: close the list, `[a, b]`; quote a text that begins so
    /ws/.belljar/skills/n/SKILL.md: error: skill `n` is skipped: `/home/skills/n/SKILL.md` already has that name
      hint: rename it, or set `project_override = true` in `belljar.toml` at home
    "#);
    insta::assert_snapshot!(catalog.find_by_name("m").unwrap_err(), @r#"
    no skill is called `m`
      hint: `/home/skills/m/SKILL.md` could not be understood; see `belljar skills check`
    "#);
}
