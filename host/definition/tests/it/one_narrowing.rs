//! A workspace's file leaves as much of a grant as policy does, where the same words are the rights of a
//! parent: both ways to narrow agree.

use std::fmt::Write as _;
use std::path::Path;

use belljar_definition::{AgentId, Visibility};
use belljar_policy::{AskedRights, Grants, Rights};
use proptest::prelude::*;

use crate::show::{both, home};

/// Secrets that a grant may name.
const HEAD: &str = "[secrets.a]\nhost = 'https://a.example'\nheader = 'X'\nenv = 'A'\n\
    [secrets.b]\nhost = 'https://b.example'\nheader = 'X'\nenv = 'B'\n";

/// The keys that a section states; `None` = nothing about that key.
#[derive(Debug, Clone)]
struct Stated {
    tools: Option<Vec<(&'static str, &'static str)>>,
    mounts: Option<Vec<(&'static str, &'static str)>>,
    hosts: Option<Vec<&'static str>>,
    secrets: Option<Vec<&'static str>>,
    steps: Option<u32>,
}

/// Any selection of names, each with one of the words.
fn of(
    names: &[&'static str],
    words: &'static [&'static str],
) -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let names = names.to_vec();
    let most = names.len();
    let some = prop::sample::subsequence(names, 0..=most);
    some.prop_flat_map(move |names| {
        names.into_iter().map(|name| (Just(name), prop::sample::select(words))).collect::<Vec<_>>()
    })
}

prop_compose! {
    /// Any section of grants; with `all`, every key is stated.
    fn stated(all: bool)(
        tools in of(&["file_read", "file_write", "shell"], &["allow", "ask", "deny"]),
        mounts in of(&["/workspace", "/data"], &["read", "overlay", "read-write"]),
        hosts in prop::sample::subsequence(vec!["https://a.example", "https://*.b.example", "https://*"], 0..=3),
        secrets in prop::sample::subsequence(vec!["a", "b"], 0..=2),
        steps in 1_u32..60,
        says in prop::array::uniform5(any::<bool>()),
    ) -> Stated {
        let says = says.map(|says| says || all);
        Stated {
            tools: says[0].then_some(tools),
            mounts: says[1].then_some(mounts),
            hosts: says[2].then_some(hosts),
            secrets: says[3].then_some(secrets),
            steps: says[4].then_some(steps),
        }
    }
}

impl Stated {
    /// The section; directories of the host stand in the home file alone.
    fn text(&self, at_home: bool) -> String {
        let mut text = "[grants.scout]\n".to_owned();
        let quoted = |all: &[&str]| format!("{all:?}");
        if let Some(tools) = &self.tools {
            let tools: Vec<_> =
                tools.iter().map(|(name, may)| format!("{name} = '{may}'")).collect();
            writeln!(text, "tools = {{ {} }}", tools.join(", ")).unwrap();
        }
        if let Some(mounts) = &self.mounts {
            let mount = |(path, access): &(&str, &str)| match at_home && *path != "/workspace" {
                true => format!("{{ path = '{path}', host = '/srv{path}', access = '{access}' }}"),
                false => format!("{{ path = '{path}', access = '{access}' }}"),
            };
            let mounts: Vec<_> = mounts.iter().map(mount).collect();
            writeln!(text, "mounts = [{}]", mounts.join(", ")).unwrap();
        }
        if let Some(hosts) = &self.hosts {
            writeln!(text, "hosts = {}", quoted(hosts)).unwrap();
        }
        if let Some(secrets) = &self.secrets {
            writeln!(text, "secrets = {}", quoted(secrets)).unwrap();
        }
        if let Some(steps) = self.steps {
            writeln!(text, "limits = {{ steps = {steps} }}").unwrap();
        }
        text
    }
}

fn rights(grants: &Grants, parent: Option<&Rights>) -> Rights {
    Rights::intersect_rights(&AskedRights::default(), grants, parent).0
}

proptest! {
    #[test]
    fn a_workspaces_file_narrows_as_a_parent_does(own in stated(true), narrower in stated(false)) {
        let scout: AgentId = "scout".parse().unwrap();
        let own = format!("{HEAD}{}", own.text(true));
        let of = |settings: &belljar_definition::Settings| {
            settings.agent_grants(&scout, Visibility::UserFacing, Path::new("/ws"))
        };
        let given = of(&home(&own).unwrap());
        let narrowed = of(&both(&own, &narrower.text(false)).unwrap());

        // The same words as the rights of a parent: a key that is not stated bounds nothing.
        let as_parent = of(&home(&format!("{HEAD}{}", narrower.text(true))).unwrap());
        let parent = Grants {
            tools: if narrower.tools.is_some() { as_parent.tools } else { given.tools.clone() },
            mounts: if narrower.mounts.is_some() { as_parent.mounts } else { given.mounts.clone() },
            hosts: if narrower.hosts.is_some() { as_parent.hosts } else { given.hosts.clone() },
            secrets: if narrower.secrets.is_some() { as_parent.secrets } else { given.secrets.clone() },
            limits: if narrower.steps.is_some() { as_parent.limits } else { given.limits },
        };
        let policy = rights(&given, Some(&rights(&parent, None)));
        let narrowed = rights(&narrowed, None);
        prop_assert!(narrowed.is_within(&policy), "{narrowed:?} is more than {policy:?}");
        prop_assert!(policy.is_within(&narrowed), "{narrowed:?} is less than {policy:?}");
        prop_assert!(narrowed.is_within(&rights(&given, None)), "a workspace gives nothing");
    }
}
