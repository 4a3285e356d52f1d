//! Random numbers of a script, from a seed that the host gives it.
//!
//! The interpreter takes its own seed when it is made, which is when the component is built: all
//! stores would see the same numbers.

use std::cell::Cell;
use std::rc::Rc;

use rquickjs::{Function, Object, Result};

/// The state of the numbers; `None` = the next one takes a seed. Each script begins so: one that runs
/// again after its process died must see the numbers that it saw.
pub(crate) type State = Rc<Cell<Option<u64>>>;

/// Adds `random`, a number from 0 to 1, without 1.
pub(crate) fn add_to(natives: &Object<'_>) -> Result<State> {
    let state = State::default();
    let own = Rc::clone(&state);
    let random = move || {
        let (next, number) = step(own.get().unwrap_or_else(seed));
        own.set(Some(next));
        number
    };
    natives.set("random", Function::new(natives.ctx().clone(), random)?)?;
    Ok(state)
}

/// Of a 64-bit state the next one, and a number with 53 random bits (splitmix64).
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn step(state: u64) -> (u64, f64) {
    let next = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = next;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (next, (mixed >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(target_family = "wasm")]
fn seed() -> u64 {
    wasip2::random::random::get_random_u64()
}

/// Natively there are only tests, which want the same numbers each time.
#[cfg(not(target_family = "wasm"))]
fn seed() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn numbers_follow_from_the_seed_and_stay_below_one() {
        let numbers = |seed| {
            let mut state = seed;
            std::array::from_fn::<f64, 100, _>(|_| {
                let (next, number) = step(state);
                state = next;
                number
            })
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7).iter().all(|number| (0.0..1.0).contains(number)));
    }
}
