//! Tells an operator what would allow a refused request. Shown only to the person at the terminal: agents,
//! models and callers of the server get the refusal without it.

use belljar_agent::exact_rule;
use belljar_policy::{
    DecisionSource, DenyCode, HostRule, HostScope, MountAccess, RequestTarget, TargetHost, ToolAsk,
};
use belljar_sandbox::Denial;

use crate::commands::run::named;

/// The host of a refused request; `None` = no rule for hosts decides about the refusal.
pub(crate) fn denied_target(denial: &Denial) -> Option<RequestTarget> {
    let target = RequestTarget::parse(denial.target.as_deref()?).ok()?;
    let by_rule = match denial.code {
        DenyCode::HostNotAllowed | DenyCode::InterfaceNotGranted => true,
        // A host name that resolves to a private address is allowed only by a rule with exactly this name.
        DenyCode::AddressNotAllowed => match target.host() {
            TargetHost::Ip(_) => true,
            TargetHost::Name(name) => name == "localhost",
        },
        DenyCode::ToolNotAllowed
        | DenyCode::NobodyToAsk
        | DenyCode::PathNotAllowed
        | DenyCode::ReadOnly
        | DenyCode::SpecialFile
        | DenyCode::RequestNotAllowed
        | DenyCode::SecretInReply
        | DenyCode::LimitReached
        | DenyCode::DeniedByHook => false,
    };
    by_rule.then_some(target)
}

/// What would let a `tools call` reach this host: a line of the manifest, an option, or both. INV-432: only
/// for a host that the manifest names, or that the person named in `arguments`.
pub(super) fn for_call(
    target: &RequestTarget,
    ask: &ToolAsk,
    hosts: &[HostRule],
    arguments: &str,
) -> Vec<String> {
    let Some(rule) = exact_rule(target) else { return Vec::new() };
    if !named::by_words(arguments, target) && !named::by_rules(&ask.hosts, target) {
        let why =
            "neither the arguments nor its `tool.toml` name that host: it is the tool's own idea";
        return vec![why.to_owned()];
    }
    let covered = |rules: &[HostRule]| {
        HostScope::from_rules(DecisionSource::Manifest, rules.to_vec()).check_target(target).is_ok()
    };
    let mut lines = Vec::new();
    if !covered(&ask.hosts) {
        lines.push(format!("its `tool.toml` does not ask for it: `hosts = [\"{rule}\"]`"));
    }
    if !hosts.contains(&rule) {
        lines.push(format!("`--host {rule}` lets this call reach it"));
    }
    lines
}

/// What would let a `tools call` write to a read-only mount: a line of the manifest, an option, or both.
pub(super) fn for_write(denial: &Denial, ask: &ToolAsk, given: MountAccess) -> Vec<String> {
    let mut lines = Vec::new();
    if denial.code == DenyCode::ReadOnly {
        if ask.mounts != Some(MountAccess::ReadWrite) {
            lines.push(
                "its `tool.toml` does not ask to write: `mounts = \"read-write\"`".to_owned(),
            );
        }
        if given != MountAccess::ReadWrite {
            lines.push("`--allow-write` lets this call write the workspace".to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(code: DenyCode, to: &str) -> Denial {
        Denial { target: Some(to.to_owned()), ..Denial::new(code, "request", "facts") }
    }

    #[test]
    fn only_a_target_that_a_rule_can_open_has_a_way() {
        let named = |code, to: &str| {
            denied_target(&denial(code, to))
                .and_then(|it| exact_rule(&it))
                .map(|rule| rule.to_string())
        };
        let refused = DenyCode::HostNotAllowed;
        assert_eq!(named(refused, "https://api.test:8443").unwrap(), "https://api.test:8443");
        assert_eq!(named(refused, "http://[::1]:80").unwrap(), "http://[::1]");
        assert_eq!(
            named(DenyCode::AddressNotAllowed, "http://10.0.0.1").unwrap(),
            "http://10.0.0.1"
        );
        assert_eq!(named(DenyCode::AddressNotAllowed, "http://inner.test"), None);
        assert_eq!(named(DenyCode::LimitReached, "https://api.test"), None);
        assert_eq!(named(refused, "[withheld: it holds a secret]"), None);
    }

    #[test]
    fn a_call_is_told_what_is_missing_on_either_side() {
        let target = RequestTarget::parse("https://api.test").unwrap();
        let rule: HostRule = "https://api.test".parse().unwrap();
        let asks = ToolAsk { hosts: vec!["https://*.test".parse().unwrap()], ..ToolAsk::default() };
        let words = r#"{"url": "https://api.test/x"}"#;
        let lines = |ask: &ToolAsk, hosts: &[HostRule]| for_call(&target, ask, hosts, words);
        assert_eq!(lines(&ToolAsk::default(), &[]).len(), 2);
        assert_eq!(lines(&asks, &[]), ["`--host https://api.test` lets this call reach it"]);
        let manifest = lines(&ToolAsk::default(), std::slice::from_ref(&rule));
        assert_eq!(
            manifest,
            ["its `tool.toml` does not ask for it: `hosts = [\"https://api.test\"]`"]
        );
    }

    #[test]
    fn a_host_that_a_tool_thought_of_has_no_option_that_is_ready() {
        let target = RequestTarget::parse("https://evil.test").unwrap();
        let any = ToolAsk { hosts: vec!["https://*".parse().unwrap()], ..ToolAsk::default() };
        let lines = for_call(&target, &any, &[], r#"{"url": "https://api.test"}"#);
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].contains("--host") && !lines[0].contains("evil.test"), "{lines:?}");
    }

    #[test]
    fn a_write_is_told_what_is_missing_on_either_side_and_another_refusal_nothing() {
        let asks = |mounts| ToolAsk { mounts: Some(mounts), ..ToolAsk::default() };
        let lines = |code, ask, given| {
            for_write(&Denial::new(code, "open", "facts"), &asks(ask), given).len()
        };
        let (read, write) = (MountAccess::Read, MountAccess::ReadWrite);
        assert_eq!(lines(DenyCode::ReadOnly, read, read), 2);
        assert_eq!(lines(DenyCode::ReadOnly, write, read), 1);
        assert_eq!(lines(DenyCode::ReadOnly, read, write), 1);
        assert_eq!(lines(DenyCode::PathNotAllowed, read, read), 0);
    }
}
