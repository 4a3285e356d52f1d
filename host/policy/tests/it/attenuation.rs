//! A child agent never has a right that its parent lacks, nor a right that a source withholds.

use std::net::IpAddr;

use belljar_policy::{
    AskedRights, CallPermission, DecisionSource, Grants, GuestPath, LIMITS, Mount, MountAccess,
    MountAsk, Rights, RightsQuestion, ToolAsk, WriteScope, explain_tool,
};
use proptest::prelude::*;

use crate::worlds::{TOOLS, asked, grants, manifest, paths, rules, targets};

/// A tree of spawned agents. The parent of each entry is an earlier entry.
fn tree() -> impl Strategy<Value = Vec<(prop::sample::Index, AskedRights, Grants)>> {
    prop::collection::vec((any::<prop::sample::Index>(), asked(), grants()), 1..8)
}

/// What an agent with these rights may do, whatever the internal form of the rights.
fn may_do(rights: &Rights) -> Vec<String> {
    let mut may = Vec::new();
    for (name, permission) in rights.offered_tools() {
        assert_ne!(permission, CallPermission::Deny, "a denied tool is never listed");
        assert!(rights.tool(name.as_str()).is_ok());
        may.push(format!("call {name}"));
        if permission == CallPermission::Allow {
            may.push(format!("call {name} unasked"));
        }
    }
    for mount in rights.mounts() {
        may.push(format!("read {} at {}", mount.host.display(), mount.guest));
        if mount.access == MountAccess::ReadWrite {
            may.push(format!("write {} at {}", mount.host.display(), mount.guest));
        }
    }
    let addresses: [IpAddr; 3] =
        ["10.1.2.3".parse().unwrap(), "10.200.0.1".parse().unwrap(), "1.1.1.1".parse().unwrap()];
    for target in targets() {
        let Ok(permit) = rights.hosts().check_target(&target) else { continue };
        may.push(format!("ask {target}"));
        for address in addresses.iter().filter(|address| permit.check_address(**address).is_ok()) {
            may.push(format!("reach {target} at {address}"));
        }
    }
    may.extend(rights.secrets().iter().map(|name| format!("use {name}")));
    may
}

fn assert_within(child: &Rights, parent: &Rights) {
    assert!(child.is_within(parent), "child {child:?}\nparent {parent:?}");
    let above = may_do(parent);
    for right in may_do(child) {
        assert!(above.contains(&right), "the child may {right}, the parent may not");
    }
    for row in LIMITS {
        assert!(child.limits().get(row.key) <= parent.limits().get(row.key), "{}", row.key);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn a_rehearsal_writes_nowhere_and_reaches_nothing(
        asked in asked(), grants in grants(), children in tree(), network in any::<bool>(),
    ) {
        let (rights, _) = Rights::intersect_rights(&asked, &grants, None);
        let rehearsed = rights.clone().for_rehearsal(network);
        assert_within(&rehearsed, &rights);
        let mut all = vec![rehearsed];
        for (_, asked, grants) in &children {
            let (child, _) = all[all.len() - 1].attenuate_for_child(asked, grants);
            all.push(child);
        }
        for rights in &all {
            assert!(rights.mounts().iter().all(|mount| mount.access <= MountAccess::Overlay));
            if !network {
                assert!(targets().iter().all(|target| rights.hosts().check_target(target).is_err()));
                assert!(rights.secrets().is_empty());
            }
        }
        // The callable tools and the readable mounts are unchanged.
        let tools = |rights: &Rights| rights.offered_tools().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(tools(&all[0]), tools(&rights));
        assert_eq!(all[0].mounts().len(), rights.mounts().len());
    }

    #[test]
    fn no_tree_of_spawns_yields_a_right_that_an_ancestor_lacks(nodes in tree()) {
        let mut rights: Vec<(Option<usize>, Rights)> = Vec::new();
        for (at, asked, grants) in &nodes {
            let parent = (!rights.is_empty()).then(|| at.index(rights.len()));
            let above = parent.map(|at| &rights[at].1);
            let (own, _) = match above {
                None => Rights::intersect_rights(asked, grants, None),
                Some(above) => above.attenuate_for_child(asked, grants),
            };
            rights.push((parent, own));
        }
        for (parent, own) in &rights {
            let mut up = *parent;
            while let Some(at) = up {
                assert_within(own, &rights[at].1);
                up = rights[at].0;
            }
        }
    }

    #[test]
    fn no_source_is_exceeded(asked in asked(), grants in grants(), ask in manifest()) {
        let (rights, _) = Rights::intersect_rights(&asked, &grants, None);
        let (granted, _) = Rights::intersect_rights(&AskedRights::default(), &grants, None);
        assert_within(&rights, &granted);
        for (name, permission) in rights.offered_tools() {
            prop_assert!(asked.tools.as_ref().is_none_or(|tools| tools.contains(name)));
            prop_assert!(asked.at_most.get(name).is_none_or(|most| permission <= *most));
            let others = asked.others.filter(|_| !asked.at_most.contains_key(name));
            prop_assert!(others.is_none_or(|most| permission <= most));
        }
        for mount in rights.mounts() {
            let asks = asked.mounts.as_ref();
            let fits = asks.is_none_or(|asks| {
                asks.iter().any(|ask| ask.guest == mount.guest && ask.access >= mount.access)
            });
            prop_assert!(fits, "{:?} was not asked for", mount);
            let workspace = mount.guest.as_str().starts_with("/workspace");
            let may_write = match asked.writes {
                WriteScope::Nowhere => false,
                WriteScope::Workspace => workspace,
                WriteScope::Anywhere => true,
            };
            prop_assert!(may_write || mount.access == MountAccess::Read, "{:?}", mount);
        }
        let tool = rights.for_tool(&ask);
        for mount in tool.mounts() {
            prop_assert!(Some(mount.access) <= ask.mounts);
            prop_assert!(rights.mounts().iter().any(|own| mount.is_within(own)));
        }
        prop_assert!(tool.secrets().is_subset(&ask.secrets));
        prop_assert!(tool.secrets().is_subset(rights.secrets()));
        prop_assert!(tool.limits().within(rights.limits()));
        for target in targets() {
            if tool.hosts().check_target(&target).is_ok() {
                prop_assert!(rights.hosts().check_target(&target).is_ok());
                let own = belljar_policy::HostScope::from_rules(DecisionSource::Manifest, ask.hosts.clone());
                prop_assert!(own.check_target(&target).is_ok());
            }
        }
    }

    #[test]
    fn what_a_tool_may_call_is_within_its_agents_rights(
        asked in asked(),
        grants in grants(),
        ask in manifest(),
    ) {
        let (rights, _) = Rights::intersect_rights(&asked, &grants, None);
        let tool = rights.for_tool(&ask);
        for name in tool.peer_tools() {
            prop_assert!(rights.tool_permission(name.as_str()) != CallPermission::Deny);
            prop_assert!(ask.peers.covers_tool(name));
        }
        let given = rights.offered_tools().filter(|(name, _)| ask.peers.covers_tool(name)).count();
        prop_assert_eq!(tool.peer_tools().len(), given);
    }

    #[test]
    fn what_a_definition_asks_and_does_not_get_is_always_noted(asked in asked(), grants in grants()) {
        let (rights, notes) = Rights::intersect_rights(&asked, &grants, None);
        for name in asked.tools.iter().flatten() {
            let given = rights.tool_permission(name.as_str()) != CallPermission::Deny;
            let said = asked.at_most.get(name).copied().or(asked.others);
            let given_up = said == Some(CallPermission::Deny);
            let noted = notes.iter().any(|note| note.what == format!("tool `{name}`"));
            prop_assert_eq!(noted, !given && !given_up, "{}", name);
        }
        for ask in asked.mounts.iter().flatten() {
            let workspace = ask.guest.as_str().starts_with("/workspace");
            let reads = asked.writes == WriteScope::Nowhere
                || (asked.writes == WriteScope::Workspace && !workspace);
            let wanted = if reads { MountAccess::Read } else { ask.access };
            let given = rights.mounts().iter().any(|m| m.guest == ask.guest && m.access >= wanted);
            let what = format!("mount `{}` ({})", ask.guest, ask.access);
            prop_assert_eq!(notes.iter().any(|note| note.what == what), !given, "{}", what);
        }
    }

    #[test]
    fn explain_says_what_the_rights_do(
        asked in asked(),
        grants in grants(),
        ask in manifest(),
        above in prop::option::of((super::worlds::asked(), super::worlds::grants())),
    ) {
        let parent = above.map(|(asked, grants)| Rights::intersect_rights(&asked, &grants, None).0);
        let (rights, _) = Rights::intersect_rights(&asked, &grants, parent.as_ref());
        let tool_rights = rights.for_tool(&ask);
        for tool in TOOLS {
            let may = rights.tool_permission(tool);
            let says = |question| explain_tool(tool, &question, &asked, &ask, &grants, parent.as_ref());
            prop_assert_eq!(says(RightsQuestion::Call).permission, may);
            for path in paths() {
                let covering = || tool_rights.mounts().iter().filter(|m| m.guest.covers_path(path));
                for access in [MountAccess::Read, MountAccess::ReadWrite] {
                    let fits = covering().any(|mount| mount.access >= access);
                    let expected = if fits { may } else { CallPermission::Deny };
                    let question = RightsQuestion::Path((*path).to_owned(), access);
                    let explanation = says(question);
                    prop_assert_eq!(explanation.permission, expected, "{} {:?}", path, explanation);
                    prop_assert_eq!(explanation.decided_by.is_none(), expected == CallPermission::Allow);
                }
            }
            for target in targets() {
                let fits = tool_rights.hosts().check_target(&target).is_ok();
                let expected = if fits { may } else { CallPermission::Deny };
                prop_assert_eq!(says(RightsQuestion::Url(target.clone())).permission, expected, "{}", target);
            }
        }
    }
}

#[test]
fn a_rule_that_covers_another_matches_all_that_it_matches() {
    let scope = |rule| belljar_policy::HostScope::from_rules(DecisionSource::Grants, vec![rule]);
    let mut covered = 0;
    for a in rules() {
        assert!(a.covers_rule(&a), "{a}");
        for b in rules().into_iter().filter(|b| a.covers_rule(b)) {
            covered += 1;
            for target in targets() {
                let (wide, narrow) = (scope(a.clone()), scope(b.clone()));
                assert!(
                    narrow.check_target(&target).is_err() || wide.check_target(&target).is_ok(),
                    "{a} covers {b}, and not {target}"
                );
            }
        }
    }
    assert!(covered > rules().len(), "some rule covers another");
}

#[test]
fn a_default_grants_nothing() {
    let (rights, _) = Rights::intersect_rights(&AskedRights::default(), &Grants::none(), None);
    assert_eq!(may_do(&rights), Vec::<String>::new());
    assert_eq!(may_do(&Rights::none()), Vec::<String>::new());
    let tool = rights.for_tool(&ToolAsk::default());
    assert!(tool.mounts().is_empty() && tool.hosts().is_none() && tool.secrets().is_empty());
}

proptest! {
    #[test]
    fn a_refusal_names_the_source_that_explain_names(
        asked in asked(),
        grants in grants(),
        ask in manifest(),
        above in prop::option::of((super::worlds::asked(), super::worlds::grants())),
    ) {
        let parent = above.map(|(asked, grants)| Rights::intersect_rights(&asked, &grants, None).0);
        let (rights, notes) = Rights::intersect_rights(&asked, &grants, parent.as_ref());
        for tool in TOOLS {
            let says = explain_tool(tool, &RightsQuestion::Call, &asked, &ask, &grants, parent.as_ref());
            prop_assert_eq!(&rights.explain_decision(tool), &says);
            let refused = rights.tool(tool).err().map(|denied| denied.by);
            let expected = says.decided_by.filter(|_| says.permission == CallPermission::Deny);
            prop_assert_eq!(refused, expected, "{}", tool);
            let wanted = format!("tool `{tool}`");
            if let Some(note) = notes.iter().find(|note| note.what == wanted) {
                prop_assert_eq!(Some(note.by), says.decided_by, "{}", tool);
            }
        }
        // Without a parent, because a parent's lists belong to other sources.
        let (alone, _) = Rights::intersect_rights(&asked, &grants, None);
        for target in targets() {
            let scope = alone.for_tool(&ask);
            let question = RightsQuestion::Url(target.clone());
            for tool in TOOLS.iter().filter(|tool| alone.tool(tool).is_ok()) {
                let says = explain_tool(tool, &question, &asked, &ask, &grants, None);
                let refused = scope.hosts().check_target(&target).err().map(|denied| denied.by);
                let expected = says.decided_by.filter(|_| says.permission == CallPermission::Deny);
                prop_assert_eq!(refused, expected, "{} {}", tool, target);
            }
        }
    }
}

#[test]
fn a_folder_is_read_only_and_never_beside_what_leaves_it_out() {
    let folder = |guest: &str| Mount {
        guest: GuestPath::new(guest).unwrap(),
        host: "/home/skills/a".into(),
        access: MountAccess::ReadWrite,
    };
    let mut grants = Grants::none();
    grants.mounts.push(Mount { host: "/ws".into(), ..folder("/skills/mine") });
    let with = |asked: &AskedRights| {
        let (rights, _) = Rights::intersect_rights(asked, &grants, None);
        let folders = ["/skills/a", "/skills/mine", "/skills/mine/in", "/skills"].map(folder);
        let mounts = rights.with_folders(folders, asked).mounts().to_vec();
        mounts.iter().map(|m| format!("{} {}", m.guest, m.access)).collect::<Vec<_>>().join(", ")
    };
    let all = AskedRights::default();
    assert_eq!(with(&all), "/skills/mine read-write, /skills/a read");
    assert_eq!(with(&AskedRights { mounts: Some(Vec::new()), ..all.clone() }), "");
    let guest = GuestPath::new("/skills/a").unwrap();
    let named = vec![MountAsk { guest, access: MountAccess::ReadWrite }];
    assert_eq!(with(&AskedRights { mounts: Some(named), ..all }), "/skills/a read");
}
