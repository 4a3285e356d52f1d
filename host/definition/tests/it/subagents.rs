//! `[subagents]`, `subagents` of a grant, and the profile of subagents.

use belljar_definition::{AgentId, SubagentProfile, Visibility};

use crate::show::{both, home};

fn id(text: &str) -> AgentId {
    text.parse().unwrap()
}

#[test]
fn who_may_be_called_is_said_key_by_key_and_a_workspace_only_narrows_it() {
    let settings = both(
        "[subagents]
max_depth = 3
blocked_agents = ['root']
[defaults.user-facing]
subagents = { max_concurrent = 8, allowed_agents = ['scout', 'critic'] }
[grants.boss]
subagents = { allowed_agents = [], allowed_tools = ['file_read'] }",
        "[subagents]
max_depth = 2
blocked_tools = ['web_fetch']
[grants.boss]
subagents = { max_concurrent = 2 }",
    )
    .unwrap();
    let policy = &settings.subagents;
    assert_eq!((policy.max_depth, policy.blocked_agents.as_slice()), (2, &["root".to_owned()][..]));
    assert_eq!(policy.blocked_tools.len(), 1);
    let said = settings.delegation(&id("boss"), Visibility::UserFacing);
    assert_eq!(said[0].max_concurrent, Some(8));
    assert_eq!(said[0].allowed_agents, Some(Vec::new()), "an empty list is nobody");
    assert_eq!(said[0].allowed_tools.as_ref().map(Vec::len), Some(1));
    assert_eq!((said[1].max_concurrent, &said[1].allowed_agents), (Some(2), &None));
    let deeper = both("", "[subagents]\nmax_depth = 8").unwrap();
    assert_eq!(deeper.subagents.max_depth, 1, "a workspace allows nothing more");
}

#[test]
fn how_long_an_agent_waits_for_a_subagent_is_said_by_the_narrowest_section_at_home() {
    let settings = home(
        "[defaults.user-facing]
subagents = { auto_background = '5m' }
[grants.boss]
subagents = { auto_background = '60s', max_concurrent = 2 }
[grants.chief]
subagents = { auto_background = 'never' }",
    )
    .unwrap();
    let wait = |name: &str, visibility| {
        settings.auto_background(&id(name), visibility).map(|wait| wait.as_secs())
    };
    assert_eq!(wait("boss", Visibility::UserFacing), Some(60));
    assert_eq!(wait("chief", Visibility::UserFacing), None);
    assert_eq!(wait("other", Visibility::UserFacing), Some(300));
    assert_eq!(wait("other", Visibility::Internal), None, "nothing is said of these");
}

#[test]
fn a_wait_that_cannot_be_kept_is_an_error_and_no_wait_at_all() {
    let text = |toml: &str| home(toml).unwrap_err();
    for value in ["'0s'", "'25h'", "'60'", "60", "'soon'", "true", "['5s']"] {
        let found = text(&format!("[grants.a]\nsubagents = {{ auto_background = {value} }}"));
        assert!(
            found.contains("`auto_background` must be a time from \"1s\" to \"24h\""),
            "{found}"
        );
    }
    let place = text("[grants.a]\nauto_background = '60s'");
    assert!(place.contains("subagents = { auto_background = ... }"), "{place}");
    // A stranger's workspace decides nothing about how an agent of the operator's runs.
    let theirs = both("", "[grants.a]\nsubagents = { auto_background = '1s' }").unwrap_err();
    assert!(theirs.contains("no place in a workspace's"), "{theirs}");
}

#[test]
fn a_profile_is_said_for_all_or_of_a_role_and_only_at_home() {
    const MODELS: &str = "[models.tiny]\nkind = 'openai'\nmodel = 'q'\n\
                          [models.big]\nkind = 'openai'\nmodel = 'p'\n";
    let of = |text: &str| home(&format!("{MODELS}{text}"));
    assert_eq!(of("").unwrap().profile, SubagentProfile::Whole);
    assert_eq!(of("[agents]\nprofile = 'whole'").unwrap().profile, SubagentProfile::Whole);
    assert_eq!(of("[agents]\nprofile = 'small'").unwrap().profile, SubagentProfile::Small);
    let roles = of("[roles]\nmain = 'big'\nfast = { model = 'tiny', profile = 'small' }").unwrap();
    assert_eq!(roles.roles.get("fast").map(String::as_str), Some("tiny"));
    assert_eq!(roles.small_models.iter().collect::<Vec<_>>(), ["tiny"]);
    for (text, wants) in [
        ("[agents]\nprofile = 'tiny'", "`profile` must be `small` or `whole`"),
        ("[agents]\nprofile = true", "`profile` must be `small` or `whole`"),
        ("[roles]\nfast = { profile = 'small' }", "`model` is missing"),
        ("[roles]\nfast = { model = 'tiny', profil = 'small' }", "did you mean `profile`?"),
        ("[roles]\nfast = { model = 'gone', profile = 'small' }", "not configured"),
        ("[roles]\nfast = 5", "not a text"),
    ] {
        let found = of(text).unwrap_err();
        assert!(found.contains(wants), "{text}: {found}");
    }
    assert!(both("", "[agents]\nprofile = 'small'").is_err());
}

#[test]
fn a_slip_in_subagents_is_one_clear_error() {
    let text = |toml: &str| home(toml).unwrap_err();
    let deep = text("[subagents]\nmax_depth = 9");
    assert!(deep.contains("`max_depth`") && deep.contains("from 0 to 8"), "{deep}");
    let slip = text("[grants.a]\nsubagents = { max_concurent = 2 }");
    assert!(slip.contains("did you mean `max_concurrent`?"), "{slip}");
    let none = text("[grants.a]\nsubagents = { max_concurrent = 0 }");
    assert!(none.contains("from 1 to 1000"), "{none}");
    assert!(text("[subagents]\nblocked_agents = ['']").contains("blank entry"));
}
