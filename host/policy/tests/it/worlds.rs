//! Arbitrary definitions, grants and manifests, made of few names, so that they often refer to the same
//! things.

use std::collections::BTreeSet;

use belljar_policy::{
    AskedRights, CallPermission, Grants, GuestPath, HostRule, LIMITS, Limits, LimitsRequest, Mount,
    MountAccess, MountAsk, PeersAsk, RequestTarget, SecretName, ToolAsk, ToolName, WriteScope,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

pub(crate) const TOOLS: &[&str] = &["file_read", "file_write", "web_fetch", "shell"];
const SECRETS: &[&str] = &["brave", "github"];
const GUESTS: &[&str] = &["/workspace", "/workspace/out", "/data"];
const DIRECTORIES: &[&str] = &["/srv/a", "/srv/b"];
const RULES: &[&str] = &[
    "https://*",
    "https://*:*",
    "http://*.corp.example",
    "https://*.corp.example",
    "https://api.corp.example",
    "https://api.corp.example:443",
    "https://api.corp.example:8443",
    "10.0.0.0/8",
    "10.1.0.0/16:*",
    "https://10.1.2.3",
];
const URLS: &[&str] = &[
    "https://api.corp.example/",
    "https://api.corp.example:8443/",
    "http://api.corp.example/",
    "https://corp.example/",
    "https://a.b.corp.example/",
    "https://other.example/",
    "https://10.1.2.3/",
    "http://10.200.0.1:99/",
];
const PATHS: &[&str] =
    &["/workspace/a", "/workspace/out/b", "/data/c", "/etc/passwd", "/workspace2/a", "/workspace"];

pub(crate) fn rule(text: &str) -> HostRule {
    text.parse().unwrap()
}

pub(crate) fn rules() -> Vec<HostRule> {
    RULES.iter().map(|text| rule(text)).collect()
}

pub(crate) fn targets() -> Vec<RequestTarget> {
    URLS.iter().map(|url| RequestTarget::parse(url).unwrap()).collect()
}

pub(crate) fn paths() -> &'static [&'static str] {
    PATHS
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

fn some_of(all: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(all, 0..=all.len())
}

fn access() -> impl Strategy<Value = MountAccess> {
    select(vec![MountAccess::Read, MountAccess::ReadWrite])
}

fn permission() -> impl Strategy<Value = CallPermission> {
    select(vec![CallPermission::Deny, CallPermission::Ask, CallPermission::Allow])
}

fn host_rules() -> impl Strategy<Value = Vec<HostRule>> {
    some_of(RULES).prop_map(|texts| texts.into_iter().map(rule).collect())
}

fn secrets() -> impl Strategy<Value = BTreeSet<SecretName>> {
    some_of(SECRETS)
        .prop_map(|names| names.into_iter().map(|name| SecretName::new(name).unwrap()).collect())
}

/// About half of the limits have a value, from zero to the maximum.
fn limits() -> impl Strategy<Value = LimitsRequest> {
    let value = prop_oneof![Just(0), 1..100_u64, Just(u64::MAX)];
    let row = prop::option::of(value);
    prop::collection::vec(row, LIMITS.len()).prop_map(|values| {
        let mut limits = LimitsRequest::default();
        for (row, value) in LIMITS.iter().zip(values) {
            if let Some(value) = value {
                assert!(limits.set(row.key, value));
            }
        }
        limits
    })
}

pub(crate) fn asked() -> impl Strategy<Value = AskedRights> {
    let tools = prop::option::of(some_of(TOOLS));
    let at_most = prop::collection::btree_map(select(TOOLS), permission(), 0..2);
    let mounts = (some_of(GUESTS), prop::collection::vec(access(), GUESTS.len()));
    let others = prop::option::of(permission());
    let writes = select(vec![WriteScope::Nowhere, WriteScope::Workspace, WriteScope::Anywhere]);
    let rest = (others, writes, limits());
    (tools, at_most, prop::option::of(mounts), prop::option::of(host_rules()), rest).prop_map(
        |(tools, at_most, mounts, hosts, (others, writes, limits))| AskedRights {
            tools: tools.map(|names| names.into_iter().map(tool).collect()),
            at_most: at_most.into_iter().map(|(name, most)| (tool(name), most)).collect(),
            others,
            writes,
            mounts: mounts.map(|(guests, access)| {
                let asks = guests.into_iter().zip(access);
                asks.map(|(guest, access)| MountAsk {
                    guest: GuestPath::new(guest).unwrap(),
                    access,
                })
                .collect()
            }),
            hosts,
            limits,
        },
    )
}

pub(crate) fn grants() -> impl Strategy<Value = Grants> {
    let tools = prop::collection::btree_map(select(TOOLS), permission(), 0..=TOOLS.len());
    let place = (select(DIRECTORIES), access());
    let mounts = (some_of(GUESTS), prop::collection::vec(place, GUESTS.len()));
    let hosts = prop::collection::vec(host_rules(), 0..3);
    (tools, mounts, hosts, secrets(), limits()).prop_map(
        |(tools, (guests, places), hosts, secrets, limits)| Grants {
            tools: tools.into_iter().map(|(name, may)| (tool(name), may)).collect(),
            mounts: guests
                .into_iter()
                .zip(places)
                .map(|(guest, (host, access))| Mount {
                    guest: GuestPath::new(guest).unwrap(),
                    host: host.into(),
                    access,
                })
                .collect(),
            hosts,
            secrets,
            limits: Limits::default().granted(&limits),
        },
    )
}

pub(crate) fn manifest() -> impl Strategy<Value = ToolAsk> {
    let names = prop::collection::btree_set(select(TOOLS).prop_map(tool), 0..=TOOLS.len());
    let peers =
        prop_oneof![Just(PeersAsk::None), Just(PeersAsk::All), names.prop_map(PeersAsk::Only)];
    (prop::option::of(access()), host_rules(), secrets(), limits(), peers).prop_map(
        |(mounts, hosts, secrets, limits, peers)| ToolAsk {
            mounts,
            hosts,
            secrets,
            limits,
            peers,
            ..ToolAsk::default()
        },
    )
}
