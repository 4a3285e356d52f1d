//! `belljar drafts` and `belljar skills`: what waits, what is refused, what is moved.

use crate::kit::World;

const AGENT: &str = "---\nname: scout\ndescription: Finds files.\ntools: [file_list]\nvisibility: user-facing\n---\nYou find files.\n";
const TEAM: &str = "name: pair\ndescription: d\nstages: [{agent: summarizer}]\n";
const SKILL: &str = "---\nname: tides\ndescription: How tides are written down.\ntriggers: [tide table]\n---\nIn metres.\n";

#[test]
fn drafts_are_listed_and_not_in_use_until_they_are_promoted() {
    let world = World::new();
    world.run(&["drafts", "list"]).exits(0).complains("no drafts");
    world.home_file("drafts/agents/scout.md", AGENT);
    world.home_file("drafts/teams/pair.yaml", TEAM);
    world.home_file("drafts/skills/tides/SKILL.md", SKILL);
    world.home_file("drafts/skills/tides/table.csv", "1,2\n");
    let list = world.run(&["drafts", "list"]).exits(0);
    list.says("agents/scout").says("teams/pair").says("skills/tides").says("ready to promote");
    let agents = world.run(&["agents", "list"]).exits(0);
    assert!(!agents.stdout.contains("scout"), "{}", agents.stdout);

    for (draft, moved) in [
        ("agents/scout", "agents/scout.md"),
        ("team/pair", "teams/pair.yaml"),
        ("skills/tides", "skills/tides/table.csv"),
    ] {
        world.run(&["drafts", "promote", draft]).exits(0).says("promoted");
        assert!(world.home().join(moved).is_file(), "{moved}");
    }
    world.run(&["agents", "list"]).exits(0).says("scout");
    world.run(&["teams", "list"]).exits(0).says("pair");
    world.run(&["skills", "list"]).exits(0).says("tides").says("tide table");
    world.run(&["drafts", "list"]).exits(0).complains("no drafts");
    world.run(&["drafts", "promote", "agents/scout"]).exits(2).complains("no draft of an agent");
}

/// Promoting this is refused with these words and changes nothing.
#[track_caller]
fn refused(world: &World, draft: &str, words: &str) {
    let before = world.home_state();
    world.run(&["drafts", "promote", draft]).exits(2).complains(words);
    assert_eq!(world.home_state(), before, "{draft}");
}

#[test]
fn a_draft_that_is_invalid_stays_where_it_is() {
    let world = World::new();
    world.home_file("drafts/agents/broken.md", "---\nname: [\n---\nx\n");
    world.home_file("drafts/agents/tool.md", &AGENT.replace("file_list", "file_lsit"));
    world.home_file("drafts/teams/pair.yaml", &TEAM.replace("summarizer", "nobody"));
    world.home_file("drafts/skills/tides.md", "---\nname: tides\ndescription: [x]\n---\nx\n");
    world.home_file("drafts/agents/good.md", &AGENT.replace("scout", "good"));
    refused(&world, "agents/broken", "broken.md:2:7");
    refused(&world, "agents/tool", "did you mean `file_list`?");
    refused(&world, "teams/pair", "no agent is called `nobody`");
    refused(&world, "skills/tides", "`description` is a list, not a text");
    world.run(&["drafts", "list"]).exits(0).says("cannot be promoted").says("ready to promote");
    world.run(&["drafts", "promote", "agents/good"]).exits(0);
}

#[test]
fn a_name_that_is_taken_is_refused_and_nothing_is_overwritten() {
    let world = World::new();
    world.home_file("agents/mine.md", AGENT);
    world.home_file("agents/other.md", &AGENT.replace("scout", "another"));
    world.home_file("agents/broken.md", "---\nname: [\n---\nx\n");
    world.home_file("drafts/agents/scout.md", AGENT);
    world.home_file("drafts/agents/summarizer.md", &AGENT.replace("scout", "summarizer"));
    world.home_file("drafts/agents/broken.md", &AGENT.replace("scout", "broken"));
    world.home_file("drafts/agents/other.md", &AGENT.replace("scout", "free"));
    world.home_file("drafts/skills/code-review/SKILL.md", &SKILL.replace("tides", "code-review"));
    refused(&world, "agents/scout", "mine.md");
    refused(&world, "agents/summarizer", "built-in");
    refused(&world, "agents/broken", "is taken by");
    refused(&world, "agents/free", "is there already");
    refused(&world, "skills/code-review", "built-in");
}

#[test]
fn what_names_no_draft_is_told_apart() {
    let world = World::new();
    world.home_file("agents/live.md", &AGENT.replace("scout", "live"));
    for (draft, words) in [
        ("scout", "names no draft"),
        ("tools/scout", "names no draft"),
        ("agents/nothing", "no draft of an agent is called `nothing`"),
        ("agents/../../agents/live", "no draft of an agent"),
        ("agents/", "no draft of an agent"),
    ] {
        refused(&world, draft, words);
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_no_draft() {
    let world = World::new();
    let outside = world.other("outside.md", AGENT.as_bytes());
    std::fs::create_dir_all(world.home().join("drafts/agents")).unwrap();
    std::os::unix::fs::symlink(&outside, world.home().join("drafts/agents/scout.md")).unwrap();
    refused(&world, "agents/scout", "is a link");
}

#[test]
fn skills_are_listed_and_checked() {
    let world = World::new();
    world.home_file("skills/README.md", "# Mine\n");
    world.home_file("skills/tides.md", SKILL);
    world.home_file("skills/bad/SKILL.md", "---\nname: bad\ndescription: d\nno end\n");
    world.file(".belljar/skills/theirs/SKILL.md", &SKILL.replace("tides", "theirs"));
    let done = world.run(&["skills", "list"]).exits(2).says("code-review").says("theirs");
    let done = done.says("workspace").complains("bad/SKILL.md:1:1");
    assert!(!done.stderr.contains("README"), "{}", done.stderr);
    world.run(&["skills", "check"]).exits(2).says("3 skills, 1 error");
    let good = world.home().join("skills/tides.md");
    world.run(&["skills", "check", good.to_str().unwrap()]).exits(0).says("skill `tides`");
    let skills = world.run(&["skills", "list", "--json"]).json();
    assert_eq!(skills.as_array().unwrap().len(), 3);
}

#[test]
fn skills_are_checked_by_name_or_file() {
    let world = World::new();
    let path = world.home_file("skills/tides/SKILL.md", SKILL);
    world.run(&["skills", "check"]).exits(0).says("skills, 0 errors");
    for word in ["tides", "home/tides", path.to_str().unwrap()] {
        world.run(&["skills", "check", word]).exits(0).says("skill `tides`");
    }
    world.run(&["skills", "check", "tidse"]).exits(2).complains("did you mean `tides`?");
    world.home_file("skills/bad.md", "---\nname: bad\ndescription: [x]\n---\nx\n");
    world.run(&["skills", "check", "tides"]).exits(0);
    world.run(&["skills", "check", "bad"]).exits(2).complains("bad.md");
    let found = world.run(&["skills", "check", "--json"]).exits(2).json();
    assert_eq!(found[0]["severity"], "error", "{found}");
}
