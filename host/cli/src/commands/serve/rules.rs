//! The rules of issuers, which admit holders of tokens to a tenant.

use std::collections::BTreeSet;

use belljar_definition::{IssuerSetting, TokenRule};
use belljar_policy::{ShownPath as _, ShownText};
use belljar_store::Tenant;

use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::term::out::TerminalOutput;

/// The most rules that a message names; further ones are counted.
const MAX_NAMED: usize = 10;

/// The rules that admit to the tenant of this name, as texts of a message.
fn rules_for_tenant(issuers: &[IssuerSetting], tenant: &str) -> Vec<String> {
    let named = |issuer: &IssuerSetting, rule: &TokenRule| {
        let TokenRule { subject, claim, tenant: _, scope } = rule;
        let subject =
            subject.as_ref().map(|it| format!("subject `{}`", ShownText::clip_line(it, 80)));
        let claim = claim.as_ref().map(|(name, value)| {
            format!(
                "claim `{}` = `{}`",
                ShownText::clip_line(name, 40),
                ShownText::clip_line(value, 80)
            )
        });
        let who: Vec<String> = subject.into_iter().chain(claim).collect();
        let (issuer, who) = (ShownText::clip_line(&issuer.name, 64), who.join(" and "));
        format!("`[[server.issuers.{issuer}.allow]]` for {who}, scope `{}`", scope.as_str())
    };
    let rules = issuers.iter().flat_map(|issuer| issuer.allow.iter().map(move |it| (issuer, it)));
    rules.filter(|(_, rule)| rule.tenant == tenant).map(|(one, rule)| named(one, rule)).collect()
}

/// Joins the rules to lines of a message.
fn join_rules(rules: &[String]) -> String {
    let mut lines: Vec<String> =
        rules.iter().take(MAX_NAMED).map(|rule| format!("  {rule}")).collect();
    let more = rules.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    lines.join("\n")
}

/// INV-384: a tenant named by a rule cannot be deleted, because a later tenant of the name would admit the
/// rule's callers.
pub(super) fn refuse_removal(places: &HomePaths, tenant: &Tenant) -> Result<(), Failure> {
    let rules = rules_for_tenant(&host::read_settings(places)?.server.issuers, &tenant.name);
    if rules.is_empty() {
        return Ok(());
    }
    let name = ShownText::clip_line(&tenant.name, 64);
    Err(Failure::usage(format!(
        "tenant `{name}` is not deleted: rules of issuers let tokens into whatever has its name:\n{}",
        join_rules(&rules)
    ))
    .with_hint(format!("take them out of `{}` first", places.config_path().to_shown()))
    .with_hint(format!("to shut it at once: `belljar tenants disable {name}`")))
}

/// Prints rules that admit nobody, because their tenant is missing or disabled.
pub(super) fn say_idle(issuers: &[IssuerSetting], tenants: &[Tenant], out: &TerminalOutput) {
    let named: BTreeSet<&str> =
        issuers.iter().flat_map(|issuer| &issuer.allow).map(|rule| rule.tenant.as_str()).collect();
    for name in named {
        let state = match tenants.iter().find(|tenant| tenant.name == name) {
            Some(tenant) if tenant.disabled => "is disabled",
            Some(_) => continue,
            None => "is not there",
        };
        let (rules, name) = (rules_for_tenant(issuers, name), ShownText::clip_line(name, 64));
        out.print_warning(format_args!(
            "tenant `{name}` {state}, so these rules let nobody in:\n{}",
            join_rules(&rules)
        ));
    }
}

/// Prints which rules admit callers to a new tenant.
pub(super) fn print_rules(places: &HomePaths, tenant: &Tenant, out: &TerminalOutput) {
    let rules = match host::read_settings(places) {
        Ok(settings) => rules_for_tenant(&settings.server.issuers, &tenant.name),
        Err(_) => {
            out.print_warning("whether a rule of an issuer lets tokens into it is not known: the settings cannot be read");
            return;
        }
    };
    if !rules.is_empty() {
        let name = ShownText::clip_line(&tenant.name, 64);
        out.note(format_args!(
            "rules of issuers let tokens into `{name}`:\n{}",
            join_rules(&rules)
        ));
    }
}
