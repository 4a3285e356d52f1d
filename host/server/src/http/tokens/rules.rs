//! The operator's word on the holder of a token: the tenant and the scope that a key would have.

use belljar_definition::{IssuerSetting, TokenRule, TokenScope};

use super::check::{CheckedToken, claim_texts};

/// The rights of a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenRights {
    pub(crate) tenant: String,
    pub(crate) scope: TokenScope,
}

/// The rights in the first matching rule. INV-373: a token's own `scope` narrows the rights, and never widens
/// them.
pub(super) fn rights_from_rules(
    issuer: &IssuerSetting,
    checked: &CheckedToken,
) -> Option<TokenRights> {
    let rule = issuer.allow.iter().find(|rule| rule_matches(rule, checked))?;
    let said = ["scope", "scp"].into_iter().flat_map(|name| claim_texts(checked.claims.get(name)));
    let most = said.filter_map(|text| text.split(' ').filter_map(scope_ceiling).max()).max();
    let scope = most.map_or(rule.scope, |most| most.min(rule.scope));
    Some(TokenRights { tenant: rule.tenant.clone(), scope })
}

fn rule_matches(rule: &TokenRule, checked: &CheckedToken) -> bool {
    let TokenRule { subject, claim, tenant: _, scope: _ } = rule;
    let subject = subject.as_ref().map(|subject| *subject == checked.subject);
    let claim =
        claim.as_ref().map(|(name, value)| claim_texts(checked.claims.get(name)).contains(value));
    // A rule without a condition matches no holder.
    (subject.is_some() || claim.is_some()) && subject != Some(false) && claim != Some(false)
}

/// The scope for a word of a token; an unknown word means the least scope.
fn scope_ceiling(word: &str) -> Option<TokenScope> {
    let name = word.strip_prefix("belljar:")?;
    let known = TokenScope::ALL.into_iter().find(|scope| scope.as_str() == name);
    Some(known.unwrap_or(TokenScope::ReadOnly))
}
