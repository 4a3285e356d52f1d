//! The operator's rules for the holder of a token: which tenant and scope the holder gets, as a key
//! would.

use belljar_definition::{IssuerSetting, TokenRule, TokenScope};

use super::check::{CheckedToken, claim_texts};

/// The rights of a token's holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenRights {
    pub(crate) tenant: String,
    pub(crate) scope: TokenScope,
}

/// The rights of the first rule that matches. INV-373: a `scope` in the token itself narrows these
/// rights, and never widens them.
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

/// Returns whether all conditions of a rule hold for a token.
fn rule_matches(rule: &TokenRule, checked: &CheckedToken) -> bool {
    let TokenRule { subject, claim, tenant: _, scope: _ } = rule;
    let subject = subject.as_ref().map(|subject| *subject == checked.subject);
    let claim =
        claim.as_ref().map(|(name, value)| claim_texts(checked.claims.get(name)).contains(value));
    // A rule without any condition matches no holder, rather than every one.
    (subject.is_some() || claim.is_some()) && subject != Some(false) && claim != Some(false)
}

/// The largest scope that a word in a token's `scope` allows; an unknown word allows only the least
/// scope.
fn scope_ceiling(word: &str) -> Option<TokenScope> {
    let name = word.strip_prefix("belljar:")?;
    let known = TokenScope::ALL.into_iter().find(|scope| scope.as_str() == name);
    Some(known.unwrap_or(TokenScope::ReadOnly))
}
