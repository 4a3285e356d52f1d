//! Attacks by names that are granted but lead to addresses that are not.

use std::net::{IpAddr, Ipv4Addr};

use belljar_policy::DenyCode;
use serde_json::{Value, json};

use super::{all_denied, check_both, get_step, open_network_jar};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests::PROBE;
use crate::peer::reply_script;
use crate::scene::{ScenePlan, agent_file};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "network-redirect-to-a-private-address",
        kind: AttackKind::Network,
        tries: "is redirected by a granted host to this machine and to a metadata service",
        stopped_by: "no redirect is followed; the guest's next request is checked (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(redirect_to_forbidden(arena)),
    },
    Attack {
        id: "network-rebinding",
        kind: AttackKind::Network,
        tries: "has its name resolve to a granted address first, and to another when it counts",
        stopped_by: "a connection goes to the address that was checked (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(rebind_name(arena)),
    },
    Attack {
        id: "network-bad-address-among-good",
        kind: AttackKind::Network,
        tries: "has its name resolve to a granted and a private address at once",
        stopped_by: "every address is checked, and only those that pass are tried (INV-10)",
        told: "Connection",
        embedded: true,
        run: |arena| Box::pin(among_good(arena)),
    },
    Attack {
        id: "network-addresses-without-end",
        kind: AttackKind::Network,
        tries: "has its name resolve to 20,000 addresses",
        stopped_by: "a bound on the addresses of one name",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(without_end(arena)),
    },
    Attack {
        id: "network-name-of-this-machine",
        kind: AttackKind::Network,
        tries: "asks this machine by its names where every host is granted",
        stopped_by: "addresses that are not public need a rule that says so (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(this_machine(arena)),
    },
    Attack {
        id: "network-ipv4-in-ipv6",
        kind: AttackKind::Network,
        tries: "writes IPv4 addresses of this machine as IPv6 ones where every host is granted",
        stopped_by: "addresses that are not public need a rule that says so (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(all_of(arena, &IPV4_IN_IPV6)),
    },
    Attack {
        id: "network-octal-and-decimal-addresses",
        kind: AttackKind::Network,
        tries: "writes addresses in octal, hexadecimal, decimal and with parts left out",
        stopped_by: "a URL is read as the URL standard does, and the address checked (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(all_of(arena, &ODD_NOTATIONS)),
    },
    Attack {
        id: "network-metadata-services",
        kind: AttackKind::Network,
        tries: "asks the metadata services of the clouds where every host is granted",
        stopped_by: "addresses that are not public need a rule that says so (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(ask_metadata_service(arena)),
    },
    Attack {
        id: "network-private-networks",
        kind: AttackKind::Network,
        tries: "asks private, local, shared, multicast and reserved addresses",
        stopped_by: "addresses that are not public need a rule that says so (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(all_of(arena, &PRIVATE)),
    },
    Attack {
        id: "network-manifest-that-opens-an-address",
        kind: AttackKind::Network,
        tries: "lists a private address in its own manifest",
        stopped_by: "only the operator's list opens addresses (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(own_list(arena, false)),
    },
    Attack {
        id: "network-agent-file-that-opens-an-address",
        kind: AttackKind::Network,
        tries: "lists a private address in the agent's file",
        stopped_by: "only the operator's list opens addresses (INV-10)",
        told: "DestinationIpProhibited",
        embedded: true,
        run: |arena| Box::pin(own_list(arena, true)),
    },
    Attack {
        id: "network-manifest-that-asked-for-no-host",
        kind: AttackKind::Network,
        tries: "is a tool without hosts in its manifest, in an agent that was granted one",
        stopped_by: "a tool gets of the rights only what its manifest asks for (INV-24)",
        told: "HttpRequestDenied",
        embedded: true,
        run: |arena| Box::pin(never_asked(arena)),
    },
];

/// The widest rule for hosts: any host and port, without TLS.
const ANY: &str = "http://*:*";
/// The error word of a request to an address that is refused.
const PROHIBITED: &str = "DestinationIpProhibited";

const IPV4_IN_IPV6: [&str; 10] = [
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[2606:4700::5efe:7f00:1]",
];

const ODD_NOTATIONS: [&str; 12] = [
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "017700000001",
    "2130706433",
    "127.0.0.1.",
    "0x7F.0x0.0x0.0x1",
    "00000177.1",
    "0",
    "2852039166",
];

const PRIVATE: [&str; 20] = [
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.1.1",
    "100.64.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "169.254.1.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.251",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fec0::1]",
    "[ff02::1]",
];

/// Checks that each of the given hosts is refused at the forbidden port, although every host is granted.
async fn all_of(arena: &Arena, hosts: &[&str]) -> Stopped {
    let jar = open_network_jar(arena, &[ANY]).await?;
    let port = arena.forbidden_address().port();
    let steps: Vec<_> = hosts.iter().map(|host| get_step(&format!("{host}:{port}"), "/")).collect();
    let steps = jar.run_steps(json!(steps)).await?;
    all_denied(&steps, &[PROHIBITED], DenyCode::AddressNotAllowed)
}

fn parse_ipv4(text: &str) -> Result<IpAddr, Escape> {
    let ip: Ipv4Addr = text.parse().map_err(|_| Escape::new("not an address"))?;
    Ok(ip.into())
}

/// Attack `network-redirect-to-a-private-address`: the attacker is redirected by a granted host to this
/// machine and to a metadata service.
async fn redirect_to_forbidden(arena: &Arena) -> Stopped {
    let here = format!("http://{}/", arena.forbidden_address());
    let headers = [("location", &*here), ("refresh", &*format!("0; url={here}"))];
    let peer = arena.start_peer(reply_script("307 Temporary Redirect", &headers, "")).await?;
    let jar = open_network_jar(arena, &[&peer.grant_rule(), ANY]).await?;
    let first = jar.run_steps(json!([get_step(&peer.address().to_string(), "/")])).await?;
    let status = first.step_value(0)?.get("status").and_then(Value::as_u64);
    if status != Some(307) {
        return Err(Escape::new(format!("the redirect came as {status:?}")));
    }
    // The guest follows the redirect itself, as a careless one would.
    let away = ["169.254.169.254", "metadata.test", &arena.forbidden_address().to_string()]
        .map(|authority| get_step(authority, "/latest/meta-data/"));
    arena.set_name_answers("metadata.test", [vec![parse_ipv4("169.254.169.254")?]]);
    let steps = jar.run_steps(json!(away)).await?;
    all_denied(&steps, &[PROHIBITED], DenyCode::AddressNotAllowed)
}

/// Attack `network-rebinding`: the attacker has its name resolve to a granted address first, and to another
/// when it counts.
async fn rebind_name(arena: &Arena) -> Stopped {
    let port = arena.forbidden_address().port();
    // Nothing listens at the granted address, and the other answer is the forbidden address.
    let granted = [format!("http://rebind.test:{port}"), format!("http://127.0.0.2:{port}")];
    let jar = open_network_jar(arena, &[&granted[0], &granted[1]]).await?;
    arena.set_name_answers(
        "rebind.test",
        [vec![parse_ipv4("127.0.0.2")?], vec![parse_ipv4("127.0.0.1")?]],
    );
    let twice = [0, 1].map(|_| get_step(&format!("rebind.test:{port}"), "/"));
    let steps = jar.run_steps(json!(twice)).await?;
    // If connecting resolved the name again, the first request would get through.
    let first = steps.step_error(0)?;
    if !first.contains("Connection") && !first.contains("DestinationUnavailable") {
        return Err(Escape::new(format!("the address that was checked gave {first}")));
    }
    check_both(
        steps.call.check_denied(DenyCode::AddressNotAllowed),
        steps.check_refused(PROHIBITED),
    )
}

/// Attack `network-bad-address-among-good`: the attacker has its name resolve to a granted and a private
/// address at once.
async fn among_good(arena: &Arena) -> Stopped {
    let port = arena.forbidden_address().port();
    let granted = [format!("http://mixed.test:{port}"), format!("http://127.0.0.2:{port}")];
    let jar = open_network_jar(arena, &[&granted[0], &granted[1]]).await?;
    let (bad, good) = (parse_ipv4("127.0.0.1")?, parse_ipv4("127.0.0.2")?);
    arena.set_name_answers("mixed.test", [vec![bad, good], vec![good, bad], vec![bad, good, bad]]);
    let thrice = [0, 1, 2].map(|_| get_step(&format!("mixed.test:{port}"), "/"));
    let steps = jar.run_steps(json!(thrice)).await?;
    steps.all_refused(0, &["Connection", "DestinationUnavailable"])
}

/// Attack `network-addresses-without-end`: the attacker has its name resolve to 20,000 addresses.
async fn without_end(arena: &Arena) -> Stopped {
    const LOOKED_AT: usize = 16;
    let port = arena.forbidden_address().port();
    // The forbidden address would be granted, but it is so late in the answer that it is not read.
    let granted = [format!("http://many.test:{port}"), format!("http://127.0.0.1:{port}")];
    let jar = open_network_jar(arena, &[&granted[0], &granted[1]]).await?;
    let (private, here) = (parse_ipv4("10.0.0.1")?, parse_ipv4("127.0.0.1")?);
    let mut many = vec![private; LOOKED_AT];
    many.extend(std::iter::repeat_n(here, 20_000));
    arena.set_name_answers("many.test", [many]);
    let steps = jar.run_steps(json!([get_step(&format!("many.test:{port}"), "/")])).await?;
    all_denied(&steps, &[PROHIBITED], DenyCode::AddressNotAllowed)
}

/// Attack `network-name-of-this-machine`: the attacker asks this machine by its names where every host is
/// granted.
async fn this_machine(arena: &Arena) -> Stopped {
    let names = ["localhost", "localhost.", "LOCALHOST", "machine.test", "a.localhost"];
    for name in names {
        arena.set_name_answers(name.trim_end_matches('.'), [vec![parse_ipv4("127.0.0.1")?]]);
    }
    all_of(arena, &names).await
}

/// Attack `network-metadata-services`: the attacker asks the metadata services of the clouds where every host
/// is granted.
async fn ask_metadata_service(arena: &Arena) -> Stopped {
    arena.set_name_answers("metadata.google.internal", [vec![parse_ipv4("169.254.169.254")?]]);
    let hosts = [
        "169.254.169.254",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "0xa9fea9fe",
        "metadata.google.internal",
    ];
    all_of(arena, &hosts).await
}

/// Runs an agent whose tool, the probe, sends one request to the forbidden address.
async fn ask_as_agent(arena: &Arena, hosts: &str, file: &str, manifest: &'static str) -> Stopped {
    let step = get_step(&arena.forbidden_address().to_string(), "/");
    let call = json!({ "steps": [step] });
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: it\n    turns:\n      - calls:\n          - {{name: probe, arguments: {call}}}\n      - say: done\n"
    );
    let settings = format!("[grants.it]\ntools = [\"probe\"]\nhosts = [\"{hosts}\"]\n");
    let scene = arena.build_scene(&ScenePlan {
        transcript: &transcript,
        settings: &settings,
        agents: &[("it.md", &agent_file("it", file))],
        guests: &[(PROBE, manifest)],
        ..ScenePlan::default()
    })?;
    scene.run_agent("it", "task").await?;
    match scene.tool_results().first() {
        Some((told, false)) if told.contains("error") => Ok(Verdict::with_words(told)),
        other => Err(Escape::new(format!("the probe was told {other:?}"))),
    }
}

/// Attack in which the manifest or the agent file names this machine's addresses, while the operator's list
/// has only "any host".
async fn own_list(arena: &Arena, in_the_file: bool) -> Stopped {
    const WIDE: &str = "manifest = 1\ndescription = \"test\"\nhosts = [\"http://*:*\"]\n";
    const NAMED: &str =
        "manifest = 1\ndescription = \"test\"\nhosts = [\"http://127.0.0.0/8:*\"]\n";
    if in_the_file {
        let file = "tools: [probe]\nhosts: [\"http://127.0.0.0/8:*\"]\n";
        return ask_as_agent(arena, ANY, file, WIDE).await;
    }
    ask_as_agent(arena, ANY, "tools: [probe]\n", NAMED).await
}

/// Attack `network-manifest-that-asked-for-no-host`: the attacker is a tool without hosts in its manifest, in
/// an agent that was granted one.
async fn never_asked(arena: &Arena) -> Stopped {
    let granted = format!("http://{}", arena.forbidden_address());
    ask_as_agent(arena, &granted, "tools: [probe]\n", crate::scene::BARE).await
}
