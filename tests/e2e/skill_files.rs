//! The other files of a skill: what an agent reads and runs of them, and what it does not.

use std::fs;

use crate::kit::World;

const SKILL: &str = "---
name: tides
description: How tide tables are read.
---
Read `${CLAUDE_SKILL_DIR}/references/table.md`, then run `{baseDir}/scripts/count.py`.
";

const SCRIPT: &str = "import argparse
parser = argparse.ArgumentParser()
parser.add_argument('heights', nargs='+', type=int)
if __name__ == '__main__':
    print('highest', max(parser.parse_args().heights))
";

/// A skill with other files, and one for persons alone.
fn world() -> World {
    let world = World::new();
    world.home_file("skills/tides/SKILL.md", SKILL);
    world.home_file("skills/tides/references/table.md", "3\n7\n5\n");
    world.home_file("skills/tides/scripts/count.py", SCRIPT);
    let kept = "---\nname: deploy\ndescription: d\ndisable-model-invocation: true\n---\nDeploy.\n";
    world.home_file("skills/deploy/SKILL.md", kept);
    world.home_file("skills/deploy/key.md", "the kept key\n");
    world
}

fn script(world: &World, turns: &str) {
    let text = format!("transcript: 1\nagents:\n  - agent: general-purpose\n    turns:\n{turns}");
    world.home_file("script.yaml", &text);
    let model = "[models.main]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n";
    world.home_file("belljar.toml", model);
}

#[test]
fn an_agent_reads_and_runs_the_other_files_of_its_skill() {
    let world = world();
    script(
        &world,
        r#"
      - calls: [{name: use_skill, arguments: {name: tides}}]
      - expect:
          results:
            - name: use_skill
              contains:
                - "are in `/skills/tides`"
                - "`references/table.md`, `scripts/count.py`"
                - "Read `/skills/tides/references/table.md`, then run `/skills/tides/scripts/count.py`"
        calls:
          - {name: file_read, arguments: {path: /skills/tides/references/table.md}}
          - {name: shell, arguments: {command: "cd /skills/tides && ls && wc -l < references/table.md"}}
          - name: run_python
            arguments:
              code: |
                import sys
                path = "/skills/tides/scripts/count.py"
                heights = tools.file_read(path="/skills/tides/references/table.md").split()
                sys.argv = [path, *heights]
                exec(compile(tools.file_read(path=path), path, "exec"), {"__name__": "__main__"})
      - expect:
          results:
            - {name: file_read, contains: "7"}
            - {name: shell, contains: [references, scripts, "3"]}
            - {name: run_python, contains: "highest 7"}
        say: Seven.
"#,
    );
    world.run(&["run", "how high?"]).exits(0).says("Seven.");
}

#[test]
fn a_skills_files_are_not_written_and_lead_nowhere_else_and_others_stay_hidden() {
    let world = world();
    let outside = world.other("outside.txt", b"the outside\n");
    std::os::unix::fs::symlink(&outside, world.home().join("skills/tides/leak.md")).unwrap();
    std::os::unix::fs::symlink("/etc", world.home().join("skills/tides/etc")).unwrap();
    script(
        &world,
        r#"
      - calls:
          - {name: file_write, arguments: {path: /skills/tides/references/table.md, content: "9"}}
          - {name: shell, arguments: {command: "echo 9 > /skills/tides/new.md; rm /skills/tides/SKILL.md"}}
          - {name: file_read, arguments: {path: /skills/tides/leak.md}}
          - {name: file_read, arguments: {path: /skills/tides/etc/hostname}}
          - {name: file_read, arguments: {path: /skills/tides/../deploy/key.md}}
          - {name: file_read, arguments: {path: /skills/deploy/key.md}}
          - {name: use_skill, arguments: {name: deploy}}
      - expect:
          results:
            - {name: file_write, is_error: true}
            - {name: shell}
            - {name: file_read, is_error: true}
            - {name: file_read, is_error: true}
            - {name: file_read, is_error: true}
            - {name: file_read, is_error: true}
            - {name: use_skill, is_error: true}
        calls: [{name: file_read, arguments: {path: /skills/tides/references/table.md}}]
      - expect: {results: [{name: file_read, contains: "7"}]}
        say: Unharmed.
"#,
    );
    let done = world.run(&["run", "try"]).exits(0).says("Unharmed.");
    assert!(!done.stderr.contains("the outside") && !done.stderr.contains("the kept key"));
    let folder = world.home().join("skills/tides");
    assert_eq!(fs::read_to_string(folder.join("references/table.md")).unwrap(), "3\n7\n5\n");
    assert_eq!(fs::read_to_string(folder.join("SKILL.md")).unwrap(), SKILL);
    assert!(!folder.join("new.md").exists());
}

#[test]
fn whoever_may_not_load_skills_reads_none_of_their_files() {
    let world = world();
    let agent = |name: &str, more: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n{more}---\nYou are {name}.\n");
        world.home_file(&format!("agents/{name}.md"), &text);
    };
    agent("plain", "tools: [file_read]\n");
    agent("closed", "tools: [file_read, use_skill]\nmounts: []\n");
    agent("open", "tools: [file_read, use_skill]\n");
    let turns = |name: &str, refused: bool| {
        format!(
            "  - agent: {name}\n    turns:\n      - calls: [{{name: file_read, arguments: {{path: /skills/tides/references/table.md}}}}]\n      - expect: {{results: [{{name: file_read, is_error: {refused}}}]}}\n        say: As it is.\n"
        )
    };
    let all = [("plain", true), ("closed", true), ("open", false)];
    let turns: String = all.iter().map(|(name, refused)| turns(name, *refused)).collect();
    world.home_file("script.yaml", &format!("transcript: 1\nagents:\n{turns}"));
    let model = "[models.main]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n";
    world.home_file("belljar.toml", model);
    for (name, _) in all {
        world.run(&["run", "--agent", name, "read"]).exits(0).says("As it is.");
    }
}

#[test]
fn a_workspaces_skill_has_its_files_too_and_none_from_outside() {
    let world = world();
    world.file(".belljar/skills/theirs/SKILL.md", "---\nname: theirs\ndescription: d\n---\nDo.\n");
    world.file(".belljar/skills/theirs/notes.md", "their notes\n");
    // The folder of this one is a link, which is not followed.
    let far = world.other("far/SKILL.md", b"---\nname: far\ndescription: d\n---\nDo.\n");
    world.other("far/notes.md", b"far notes\n");
    let link = world.workspace().join(".belljar/skills/far");
    std::os::unix::fs::symlink(far.parent().unwrap(), link).unwrap();
    script(
        &world,
        r#"
      - calls:
          - {name: use_skill, arguments: {name: theirs}}
          - {name: file_read, arguments: {path: /skills/theirs/notes.md}}
          - {name: file_read, arguments: {path: /skills/far/notes.md}}
      - expect:
          results:
            - {name: use_skill, contains: ["came with the workspace", "`/skills/theirs`"]}
            - {name: file_read, contains: "their notes"}
            - {name: file_read, is_error: true}
        say: Read.
"#,
    );
    world.run(&["run", "read"]).exits(0).says("Read.");
    assert!(fs::read_to_string(world.workspace().join(".belljar/skills/theirs/notes.md")).is_ok());
}
