//! The terms of a skill in use: the tools that it leaves, and for how long.

use crate::kit::World;

fn skill(world: &World, name: &str, terms: &str) {
    let text = format!("---\nname: {name}\ndescription: d\n{terms}---\nThe text of {name}.\n");
    world.home_file(&format!("skills/{name}/SKILL.md"), &text);
}

fn script(world: &World, agents: &str) {
    world.home_file("script.yaml", &format!("transcript: 1\nagents:\n{agents}"));
    let model = "[models.main]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n";
    world.home_file("belljar.toml", model);
}

#[test]
fn a_skill_in_use_leaves_the_tools_it_names_until_the_turn_ends() {
    let world = World::new();
    world.file("note.txt", "the note\n");
    skill(&world, "reader", "allowed-tools: Read Nonesuch\n");
    script(
        &world,
        r#"
  - agent: general-purpose
    turns:
      - calls:
          - {name: file_list, arguments: {path: .}}
          - {name: use_skill, arguments: {name: reader}}
      - expect:
          results:
            - {name: file_list, is_error: false}
            - {name: use_skill, contains: ["leaves you: Read, Nonesuch", "The text of reader."]}
        calls:
          - {name: file_list, arguments: {path: .}}
          - {name: shell, arguments: {command: "echo x > made.txt"}}
          - {name: spawn_agent, arguments: {agent: scout, task: List.}}
          - {name: file_read, arguments: {path: note.txt}}
      - expect:
          results:
            - {name: file_list, is_error: true, contains: "the available tools are"}
            - {name: shell, is_error: true, contains: "tool not allowed"}
            - {name: spawn_agent, is_error: true, contains: "tool not allowed"}
            - {name: file_read, is_error: false, contains: "the note"}
        say: Narrowed.
      - calls: [{name: file_list, arguments: {path: .}}]
      - expect: {results: [{name: file_list, is_error: false, contains: "note.txt"}]}
        say: Wide again.
"#,
    );
    let done = world.run_with_stdin(&["chat"], "one\ntwo\n/quit\n").exits(0);
    done.says("Narrowed.").says("Wide again.");
}

#[test]
fn a_skill_adds_no_tool_and_several_skills_narrow_together() {
    let world = World::new();
    world.file("note.txt", "the note\n");
    skill(&world, "writer", "allowed-tools: [Write, Read, Grep]\n");
    skill(&world, "searcher", "allowed-tools: Grep, Write\n");
    skill(&world, "quiet", "disallowed-tools: Read\n");
    world.home_file(
        "agents/clerk.md",
        "---\nname: clerk\ndescription: d\ntools: [file_read, file_search, file_list, use_skill]\n---\nYou are.\n",
    );
    script(
        &world,
        r#"
  - agent: clerk
    turns:
      - calls: [{name: use_skill, arguments: {name: writer}}]
      - calls:
          - {name: file_write, arguments: {path: note.txt, content: x}}
          - {name: file_read, arguments: {path: note.txt}}
          - {name: use_skill, arguments: {name: searcher}}
      - expect:
          results:
            - {name: file_write, is_error: true}
            - {name: file_read, is_error: false}
            - {name: use_skill, is_error: false}
        calls:
          - {name: file_read, arguments: {path: note.txt}}
          - {name: file_search, arguments: {pattern: note, path: .}}
      - expect:
          results:
            - {name: file_read, is_error: true}
            - {name: file_search, is_error: false}
        say: First.
      - calls: [{name: use_skill, arguments: {name: quiet}}]
      - calls:
          - {name: file_read, arguments: {path: note.txt}}
          - {name: file_list, arguments: {path: .}}
      - expect:
          results:
            - {name: file_read, is_error: true}
            - {name: file_list, is_error: false}
        say: Second.
"#,
    );
    let done = world.run_with_stdin(&["chat", "--agent", "clerk"], "a\nb\n/quit\n").exits(0);
    done.says("First.").says("Second.");
}

#[test]
fn a_subagent_has_no_more_than_the_skill_left_its_parent() {
    let world = World::new();
    world.file("note.txt", "the note\n");
    skill(&world, "reader", "allowed-tools: Read, Task\n");
    world.home_file(
        "agents/helper.md",
        "---\nname: helper\ndescription: d\ntools: [file_read, file_list]\n---\nYou help.\n",
    );
    script(
        &world,
        r#"
  - agent: general-purpose
    turns:
      - calls: [{name: use_skill, arguments: {name: reader}}]
      - calls: [{name: spawn_agent, arguments: {agent: helper, task: List.}}]
      - expect: {results: [{name: spawn_agent, contains: "It was refused."}]}
        say: As it should.
  - agent: helper
    turns:
      - calls:
          - {name: file_list, arguments: {path: .}}
          - {name: file_read, arguments: {path: note.txt}}
      - expect:
          results:
            - {name: file_list, is_error: true}
            - {name: file_read, is_error: false}
        say: It was refused.
"#,
    );
    world.run(&["run", "hand it on"]).exits(0).says("As it should.");
}

/// Code that loads a skill would be narrowed by nothing, so only the model itself loads one.
#[test]
fn code_loads_no_skill_and_the_model_still_does_where_its_tools_are_code() {
    for form in ["code", "both"] {
        let world = World::new();
        world.file("note.txt", "the note\n");
        skill(&world, "reader", "allowed-tools: Read, Bash(python3 *)\n");
        let agent = format!(
            "---\nname: clerk\ndescription: d\ntools: [run_python, file_read, file_list, use_skill]\ntoolsAs: {form}\n---\nYou are.\n"
        );
        world.home_file("agents/clerk.md", &agent);
        script(
            &world,
            r#"
  - agent: clerk
    turns:
      - calls:
          - name: run_python
            arguments:
              code: |
                try:
                    print(tools.use_skill(name="reader"))
                except Exception:
                    print("refused to code")
                print(tools.file_list(path="."))
      - expect:
          results:
            - {name: run_python, is_error: false, contains: ["refused to code", "note.txt"]}
        calls: [{name: use_skill, arguments: {name: reader}}]
      - expect: {results: [{name: use_skill, is_error: false, contains: "The text of reader."}]}
        calls:
          - name: run_python
            arguments:
              code: |
                try:
                    print(tools.file_list(path="."))
                except Exception:
                    print("not left")
                print(tools.file_read(path="note.txt"))
      - expect:
          results: [{name: run_python, is_error: false, contains: ["not left", "the note"]}]
        say: Narrowed.
"#,
        );
        let settings = "[models.main]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n\n[grants.clerk]\ntools = [\"run_python\", \"file_read\", \"file_list\", \"use_skill\"]\n";
        world.home_file("belljar.toml", settings);
        world.run(&["run", "--agent", "clerk", "go"]).exits(0).says("Narrowed.");
    }
}
