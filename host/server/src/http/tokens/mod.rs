//! Tokens of an issuer that the operator trusts, beside belljar's own keys.
//!
//! ```text
//! token ──> seen.rs: its form, whose it says it is ──> keys.rs: the keys of that issuer
//!       ──> check.rs: signature, audience, times ──> rules.rs: the operator's word on its holder
//! ```
//!
//! INV-371: a token is worth what the operator has written down. Nobody is let in without a rule of
//! theirs, and a claim widens nothing by itself.

mod check;
mod keys;
mod provider;
mod rules;
mod seen;
mod trusted;

use std::sync::Arc;
use std::time::Duration;

use belljar_definition::IssuerSetting;
use sha2::{Digest as _, Sha256};

use self::check::{Checked, check};
use self::keys::{Found, Keyring};
pub(crate) use self::rules::Given;
use self::seen::Seen;
pub use self::trusted::Issuers;
use crate::http::problem::{Kind, Problem};

/// The holder of a token that has passed.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    /// The digest of its token.
    pub(crate) id: Arc<str>,
    issuer: Arc<str>,
    checked: Arc<Checked>,
}

/// A token that is let in.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) holder: Holder,
    pub(crate) given: Given,
}

/// Why a token is not.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is none that this server takes.
    Invalid(&'static str),
    /// Its issuer signed it, and it is not for this server, or not of now.
    Past(&'static str),
    /// It is an issuer's own, and no rule lets its holder in.
    Nobody(Box<Holder>),
    /// It cannot be told now.
    Unknown(Problem),
}

/// The tokens of a server.
pub(crate) struct Tokens {
    issuers: Arc<dyn Issuers>,
    keyring: Keyring,
}

impl Tokens {
    pub(crate) fn new(issuers: Arc<dyn Issuers>) -> Self {
        provider::install();
        Self { issuers, keyring: Keyring::default() }
    }

    /// The addresses of the issuers; none where the settings cannot be read.
    pub(crate) async fn addresses(&self) -> Vec<String> {
        let issuers = self.issuers.in_force().await.unwrap_or_default();
        issuers.into_iter().map(|issuer| issuer.url).collect()
    }

    /// Whether anybody is trusted; `None` = the settings cannot be read.
    pub(crate) async fn are_trusted(&self) -> Option<bool> {
        self.issuers.in_force().await.ok().map(|issuers| !issuers.is_empty())
    }

    /// Who holds this token, at this second since 1970.
    pub(crate) async fn admit(&self, text: &str, now: i64) -> Result<Admitted, Refused> {
        let seen = Seen::of(text).ok_or(Refused::Invalid("it is no token that is taken here"))?;
        let issuers = self.settings().await?;
        let issuer = issuers.iter().find(|issuer| issuer.url == seen.issuer);
        let issuer = issuer.ok_or(Refused::Invalid("its issuer is none that is trusted here"))?;
        if !issuer.algorithms.contains(&seen.algorithm) {
            return Err(Refused::Invalid("its algorithm is none that is taken of its issuer"));
        }
        self.keyring.forget_all_but(&issuers);
        let key = match self.keyring.find(&self.issuers, &issuer.url, &seen).await {
            Found::Key(key) => key,
            Found::None => return Err(Refused::Invalid("its key is none of its issuer's")),
            Found::Unreached(wait) => return Err(Refused::Unknown(unreached(wait))),
        };
        let checked = check(text, &seen, issuer, &key)?;
        checked.is_of_now(now).map_err(Refused::Past)?;
        let holder = Holder {
            id: digest(text),
            issuer: issuer.url.as_str().into(),
            checked: Arc::new(checked),
        };
        match rules::given(issuer, &holder.checked) {
            Some(given) => Ok(Admitted { holder, given }),
            None => Err(Refused::Nobody(Box::new(holder))),
        }
    }

    /// The rights of a holder who was let in, by the settings as they are now; `None` = it is not any
    /// more.
    pub(crate) async fn still(&self, holder: &Holder, now: i64) -> Option<Given> {
        let issuers = self.issuers.in_force().await.ok()?;
        let issuer = issuers.iter().find(|issuer| *issuer.url == *holder.issuer)?;
        let fits = holder.checked.lasts(now) && holder.checked.is_for(issuer);
        fits.then(|| rules::given(issuer, &holder.checked)).flatten()
    }

    async fn settings(&self) -> Result<Vec<IssuerSetting>, Refused> {
        self.issuers.in_force().await.map_err(|why| {
            tracing::error!("no token is taken while the settings cannot be read: {why}");
            let detail = "whose tokens are taken cannot be read just now";
            Refused::Unknown(Problem::unavailable(detail, SETTINGS_AGAIN))
        })
    }
}

/// When it makes sense to try again where the settings cannot be read.
const SETTINGS_AGAIN: Duration = Duration::from_secs(10);

/// The issuer that a token says it is of.
pub(crate) fn issuer_of(text: &str) -> Option<Arc<str>> {
    Seen::of(text).map(|seen| seen.issuer.into())
}

impl Holder {
    pub(crate) fn issuer(&self) -> &Arc<str> {
        &self.issuer
    }

    /// Its name in the audit log, and whose sessions it reaches: INV-375: no two subjects have the
    /// same, since no address of an issuer has a `#`.
    pub(crate) fn actor(&self) -> Arc<str> {
        format!("token:{}#{}", self.issuer, self.checked.subject).into()
    }
}

/// An issuer whose keys cannot be had is nothing that a token could do about.
fn unreached(wait: Duration) -> Problem {
    Problem::unavailable("the issuer of this token cannot be asked for its keys", wait)
}

/// The problem of a token that is none.
pub(crate) fn invalid(why: &str) -> Problem {
    Problem::new(Kind::NoKey, format!("the token is not valid: {why}"))
        .hint("get a new one from an issuer that this server's metadata names")
}

/// The problem of a token whose holder nobody has let in.
pub(crate) fn nobody() -> Problem {
    Problem::new(Kind::NoKey, "the token is valid, and nobody has let its subject in").hint(
        "the operator of this server writes who is let in, under `allow` of `[server.issuers.NAME]`",
    )
}

fn digest(text: &str) -> Arc<str> {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}
