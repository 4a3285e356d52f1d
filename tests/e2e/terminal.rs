//! A person at a terminal: what they type early, and what comes to them while they type.

use crate::kit::World;
use crate::kit::terminal::Terminal;

fn start(script: &str) -> (World, Terminal) {
    let world = World::new();
    let transcript = world.other("transcript.yaml", script.as_bytes());
    let terminal = Terminal::start(&world, &["chat", "--transcript", transcript.to_str().unwrap()]);
    (world, terminal)
}

fn leave(mut terminal: Terminal) -> String {
    terminal.types("/quit\n");
    let (code, text) = terminal.ends();
    assert_eq!(code, 0, "{text}");
    text
}

#[test]
fn lines_that_are_typed_early_are_the_next_messages() {
    let turns: String = ["one", "two", "three"]
        .map(|word| {
            format!("      - expect: {{last_user_contains: word {word}}}\n        say: I heard {word}.\n")
        })
        .concat();
    let script = format!("transcript: 1\nagents:\n  - agent: general-purpose\n    turns:\n{turns}");
    let (_world, mut terminal) = start(&script);
    terminal.until("/help lists the commands");
    terminal.types("word one\nword two\nword three\n");
    for word in ["one", "two", "three"] {
        terminal.until(&format!("I heard {word}."));
    }
    leave(terminal);
}

const ASKING: &str = r#"
transcript: 1
agents:
  - agent: general-purpose
    turns:
      - calls: [{name: clarify, arguments: {question: "Which gauge?", options: []}}]
      - calls: [{name: clarify, arguments: {question: "Which tide?", options: []}}]
      - expect: {results: [{name: clarify, contains: the high one}]}
        say: Noted.
      - expect: {last_user_contains: and then}
        say: It ebbs.
"#;

/// INV-514.
#[test]
fn a_line_that_was_typed_before_a_question_is_no_answer_to_it_and_not_lost() {
    let (_world, mut terminal) = start(ASKING);
    terminal.until("/help lists the commands");
    terminal.types("look\n");
    terminal.until("Which gauge?");
    terminal.until("your answer:");
    // The second line is there before the second question is.
    terminal.types("the old one\nand then\n");
    terminal.until("Which tide?");
    terminal.until("your answer:");
    terminal.types("the high one\n");
    terminal.until("Noted.");
    terminal.until("> and then");
    terminal.until("It ebbs.");
    leave(terminal);
}

const ASIDE: &str = r#"
transcript: 1
agents:
  - agent: code-analyst
    turns:
      - say: It is in limits.rs.
  - agent: general-purpose
    turns:
      - say: Good day.
"#;

#[test]
fn a_result_of_the_background_comes_to_a_person_who_types_nothing() {
    let (_world, mut terminal) = start(ASIDE);
    terminal.until("/help lists the commands");
    terminal.types("/agent -b code-analyst find the limit\n");
    terminal.until("number 1 runs");
    terminal.until("number 1 (`code-analyst`) has ended");
    terminal.until("It is in limits.rs.");
    // The prompt stands again, and takes what is typed.
    terminal.types("hello\n");
    terminal.until("Good day.");
    leave(terminal);
}

const HANGING: &str = r#"
transcript: 1
agents:
  - agent: code-analyst
    turns:
      - say: Thinking.
        hang: true
"#;

#[test]
fn cancel_lists_what_runs_and_stops_only_what_it_is_told_to() {
    let (_world, mut terminal) = start(HANGING);
    terminal.until("/help lists the commands");
    terminal.types("/agent -b code-analyst find the limit\n");
    terminal.until("number 1 runs");
    terminal.types("/cancel\n");
    terminal.until("find the limit");
    terminal.until("/cancel N stops number N");
    terminal.types("/cancel 2\n");
    terminal.until("these run: 1");
    terminal.types("/cancel 1\n");
    terminal.until("number 1 (`code-analyst`) has ended");
    terminal.types("/cancel\n");
    terminal.until("nothing runs in the background");
    leave(terminal);
}
