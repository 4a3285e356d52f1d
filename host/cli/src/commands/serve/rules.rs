//! The rules of issuers that let the holders of tokens into a tenant.

use std::collections::BTreeSet;

use belljar_definition::{IssuerSetting, TokenRule};
use belljar_policy::{Shown, ShownPath as _};
use belljar_store::Tenant;

use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::setup::host;
use crate::term::out::Out;

/// Rules named in a message; others are counted.
const MAX_NAMED: usize = 10;

/// The rules for this name, as texts of a message.
fn of(issuers: &[IssuerSetting], tenant: &str) -> Vec<String> {
    let named = |issuer: &IssuerSetting, rule: &TokenRule| {
        let TokenRule { subject, claim, tenant: _, scope } = rule;
        let subject = subject.as_ref().map(|it| format!("subject `{}`", Shown::clipped(it, 80)));
        let claim = claim.as_ref().map(|(name, value)| {
            format!("claim `{}` = `{}`", Shown::clipped(name, 40), Shown::clipped(value, 80))
        });
        let who: Vec<String> = subject.into_iter().chain(claim).collect();
        let (issuer, who) = (Shown::clipped(&issuer.name, 64), who.join(" and "));
        format!("`[[server.issuers.{issuer}.allow]]` for {who}, scope `{}`", scope.as_str())
    };
    let rules = issuers.iter().flat_map(|issuer| issuer.allow.iter().map(move |it| (issuer, it)));
    rules.filter(|(_, rule)| rule.tenant == tenant).map(|(one, rule)| named(one, rule)).collect()
}

fn listed(rules: &[String]) -> String {
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
pub(super) fn refuse_removal(places: &Places, tenant: &Tenant) -> Result<(), Failure> {
    let rules = of(&host::settings(places)?.server.issuers, &tenant.name);
    if rules.is_empty() {
        return Ok(());
    }
    let name = Shown::clipped(&tenant.name, 64);
    Err(Failure::usage(format!(
        "tenant `{name}` is not deleted: rules of issuers let tokens into whatever has its name:\n{}",
        listed(&rules)
    ))
    .hint(format!("take them out of `{}` first", places.config().shown()))
    .hint(format!("to shut it at once: `belljar tenants disable {name}`")))
}

/// Prints rules that admit nobody, because the tenant is missing or disabled.
pub(super) fn say_idle(issuers: &[IssuerSetting], tenants: &[Tenant], out: &Out) {
    let named: BTreeSet<&str> =
        issuers.iter().flat_map(|issuer| &issuer.allow).map(|rule| rule.tenant.as_str()).collect();
    for name in named {
        let state = match tenants.iter().find(|tenant| tenant.name == name) {
            Some(tenant) if tenant.disabled => "is disabled",
            Some(_) => continue,
            None => "is not there",
        };
        let (rules, name) = (of(issuers, name), Shown::clipped(name, 64));
        out.warning(format_args!(
            "tenant `{name}` {state}, so these rules let nobody in:\n{}",
            listed(&rules)
        ));
    }
}

/// Prints who is admitted to a new tenant.
pub(super) fn say(places: &Places, tenant: &Tenant, out: &Out) {
    let rules = match host::settings(places) {
        Ok(settings) => of(&settings.server.issuers, &tenant.name),
        Err(_) => {
            out.warning("whether a rule of an issuer lets tokens into it is not known: the settings cannot be read");
            return;
        }
    };
    if !rules.is_empty() {
        let name = Shown::clipped(&tenant.name, 64);
        out.note(format_args!("rules of issuers let tokens into `{name}`:\n{}", listed(&rules)));
    }
}
