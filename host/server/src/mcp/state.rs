//! `requestState`: a text that a client gets when a person must decide first, and sends back with the
//! person's answer. INV-292: the text is signed, bound to tenant, key, session and request, valid for a
//! quarter of an hour, and only once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};

/// The time for which a state is valid, while a person answers.
const LASTS: Duration = Duration::from_secs(15 * 60);

/// The maximum number of a tenant's used states, each remembered until it expires so that it is not accepted
/// twice. INV-391: a tenant at this limit must wait until a state expires, and no other tenant waits.
const MAX_USED: usize = 16_384;

/// Used states, each with the time at which it expires.
type Used = HashMap<String, Instant>;

/// Makes and checks the states of a process.
pub(crate) struct SealedStates {
    codec: RequestStateCodec,
    /// The used states of each tenant.
    used: Mutex<HashMap<String, Used>>,
    /// The time for which a state is valid.
    lasts: Duration,
    /// The maximum number of used states remembered for a tenant: [`MAX_USED`], except in tests.
    most: usize,
}

/// The subject of a state: the call or the question that the client continues with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub(crate) enum StateSubject {
    /// A call of a tool, made after a person has allowed it.
    Call,
    /// A question of a running turn, which waits for the answer.
    Question { session: String, message: String, question: u64 },
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    nonce: String,
    #[serde(flatten)]
    about: StateSubject,
}

impl SealedStates {
    /// Creates a maker of states with a random signing key, which is never stored: after a restart no earlier
    /// state is valid.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        Self::that_last(LASTS)
    }

    /// Creates a maker of states that are valid for `lasts`.
    fn that_last(lasts: Duration) -> Result<Self, getrandom::Error> {
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key)?;
        // The codec requires a key of at least 32 bytes, which this key has.
        let codec = RequestStateCodec::new_unchecked(key.to_vec());
        Ok(Self { codec, used: Mutex::default(), lasts, most: MAX_USED })
    }

    /// Makes a state that is valid only together with `bound`: the text of the request and its sender.
    pub(crate) fn seal_state(&self, about: StateSubject, bound: &str) -> Result<String, ErrorData> {
        let mut nonce = [0_u8; 16];
        let failed = || ErrorData::internal_error("the server failed; its log says why", None);
        getrandom::fill(&mut nonce).map_err(|_| failed())?;
        let nonce = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
        let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(self.lasts);
        let sealed = self.codec.seal_json_with(&SealedState { nonce, about }, &options);
        sealed.map_err(|_| failed())
    }

    /// Checks a state that a client of this tenant sent, and marks it as used.
    pub(crate) fn open_state(
        &self,
        state: &str,
        bound: &str,
        tenant: &str,
    ) -> Result<StateSubject, ErrorData> {
        let refused = || ErrorData::invalid_params("`requestState` is not valid here", None);
        let opened = self.codec.open_json_with::<SealedState>(state, bound.as_bytes());
        let SealedState { nonce, about } = opened.map_err(|_| refused())?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if !used.contains_key(tenant) {
            // Before a new tenant is added, expired states of all tenants are removed.
            used.retain(|_, of| {
                of.retain(|_, until| *until > now);
                !of.is_empty()
            });
        }
        let used = used.entry(tenant.to_owned()).or_default();
        if used.len() >= self.most {
            used.retain(|_, until| *until > now);
        }
        if used.len() >= self.most || used.contains_key(&nonce) {
            return Err(refused());
        }
        used.insert(nonce, now + self.lasts);
        Ok(about)
    }
}

/// The text that a state is bound to: the client, the tool and the arguments of its call.
pub(crate) fn bound_to(client: &str, tool: &str, arguments: &str) -> String {
    format!("{client}\n{tool}\n{arguments}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    const RED: &str = "red";

    #[test]
    fn a_state_is_good_once_for_the_same_key_and_request() {
        let states = SealedStates::new().unwrap();
        let bound = bound_to("red/key:a", "shell", "{}");
        let state = states.seal_state(StateSubject::Call, &bound).unwrap();
        for other in ["blue/key:a", "red/key:b"] {
            assert!(
                states.open_state(&state, &bound_to(other, "shell", "{}"), RED).is_err(),
                "{other}"
            );
        }
        assert!(
            states.open_state(&state, &bound_to("red/key:a", "shell", "{\"a\":1}"), RED).is_err()
        );
        assert!(states.open_state(&state[1..], &bound, RED).is_err());
        assert!(
            SealedStates::new().unwrap().open_state(&state, &bound, RED).is_err(),
            "of another process"
        );
        assert_eq!(states.open_state(&state, &bound, RED).unwrap(), StateSubject::Call);
        assert!(states.open_state(&state, &bound, RED).is_err(), "a second time");
    }

    /// INV-391: a tenant at its limit of used states does not affect others.
    #[test]
    fn a_tenant_that_brings_many_states_back_takes_none_of_its_neighbours() {
        let states = SealedStates { most: 3, ..SealedStates::new().unwrap() };
        let call = |key: &str| {
            let bound = bound_to(key, "shell", "{}");
            (states.seal_state(StateSubject::Call, &bound).unwrap(), bound)
        };
        let of = |key: &str, tenant: &str| {
            let (state, bound) = call(key);
            states.open_state(&state, &bound, tenant)
        };
        for _ in 0..3 {
            of("red/key:a", RED).unwrap();
        }
        let (state, bound) = call("red/key:b");
        assert!(states.open_state(&state, &bound, RED).is_err(), "one more than a tenant has");
        of("blue/key:a", "blue").unwrap();
        assert!(of("red/key:a", RED).is_err());
        // After the used states have expired there is room again.
        for until in states.used.lock().unwrap().values_mut().flat_map(Used::values_mut) {
            *until = Instant::now();
        }
        assert_eq!(states.open_state(&state, &bound, RED).unwrap(), StateSubject::Call);
        assert!(states.open_state(&state, &bound, RED).is_err(), "a second time");
        of("green/key:a", "green").unwrap();
        let left: Vec<_> = states.used.lock().unwrap().keys().cloned().collect();
        assert!(!left.contains(&"blue".to_owned()), "{left:?}");
    }

    #[test]
    fn a_state_is_good_for_its_time_and_not_behind_it() {
        let bound = bound_to("red/key:a", "shell", "{}");
        let states = SealedStates::new().unwrap();
        assert_eq!(states.lasts, Duration::from_secs(900));
        let state = states.seal_state(StateSubject::Call, &bound).unwrap();
        assert_eq!(states.open_state(&state, &bound, RED).unwrap(), StateSubject::Call);
        let states = SealedStates::that_last(Duration::ZERO).unwrap();
        let state = states.seal_state(StateSubject::Call, &bound).unwrap();
        let past = SystemTime::now() + Duration::from_millis(2);
        while SystemTime::now() <= past {
            std::thread::yield_now();
        }
        assert!(states.open_state(&state, &bound, RED).is_err());
        let forever = states.codec.seal_json(&StateSubject::Call).unwrap();
        assert!(states.open_state(&forever, &bound, RED).is_err(), "one that is bound to nothing");
    }
}
