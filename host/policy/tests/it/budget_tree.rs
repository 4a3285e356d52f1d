//! A tree of budgets counts exactly, and no order of operations exceeds a limit.

use belljar_policy::{Budget, BudgetCaps, BudgetLevel, METERS, Meter};
use proptest::prelude::*;
use proptest::sample::{Index, select};

#[derive(Debug, Clone)]
enum Op {
    Spawn(Index, u64),
    Bill(Index, u64),
    Reserve(Index, u64),
    /// Releases the last reservation of a budget.
    Refund(Index),
}

fn op() -> impl Strategy<Value = Op> {
    let amount = prop_oneof![0..50_u64, Just(u64::MAX)];
    let cap = prop_oneof![0..200_u64, Just(u64::MAX)];
    prop_oneof![
        (any::<Index>(), cap).prop_map(|(at, cap)| Op::Spawn(at, cap)),
        (any::<Index>(), 0..50_u64).prop_map(|(at, n)| Op::Bill(at, n)),
        (any::<Index>(), amount).prop_map(|(at, n)| Op::Reserve(at, n)),
        any::<Index>().prop_map(Op::Refund),
    ]
}

/// A budget, and the expected state of the budget.
struct Node {
    budget: Budget,
    parent: Option<usize>,
    cap: u64,
    /// The amount that this budget used, without its children.
    own: u64,
    /// The open reservations, which can be released.
    held: Vec<u64>,
    billed: bool,
}

struct Tree(Vec<Node>);

impl Tree {
    fn new(cap: u64, meter: Meter) -> Self {
        let caps = BudgetCaps::unlimited().with_cap(meter, cap);
        let budget = Budget::new_root(BudgetLevel::Session, caps);
        Self(vec![Node { budget, parent: None, cap, own: 0, held: Vec::new(), billed: false }])
    }

    fn up(&self, at: usize) -> Vec<usize> {
        std::iter::successors(Some(at), |at| self.0[*at].parent).collect()
    }

    /// The amount that a budget and all its descendants used.
    fn used(&self, at: usize) -> u64 {
        let below = (0..self.0.len()).filter(|other| self.up(*other).contains(&at));
        below.map(|other| self.0[other].own).sum()
    }

    fn spent(&self, meter: Meter) -> Vec<u64> {
        self.0.iter().map(|node| node.budget.spent_amount(meter)).collect()
    }
}

fn apply(tree: &mut Tree, op: &Op, meter: Meter) {
    let len = tree.0.len();
    match op {
        Op::Spawn(at, cap) => {
            let parent = at.index(len);
            let caps = BudgetCaps::unlimited().with_cap(meter, *cap);
            let budget = tree.0[parent].budget.new_child(BudgetLevel::Subagent, caps);
            let (parent, own, held) = (Some(parent), 0, Vec::new());
            tree.0.push(Node { budget, parent, cap: *cap, own, held, billed: false });
        }
        Op::Bill(at, amount) => {
            let at = at.index(len);
            let passes = tree.up(at).iter().any(|n| tree.used(*n) + amount > tree.0[*n].cap);
            assert_eq!(tree.0[at].budget.bill(meter, *amount).is_err(), passes);
            tree.0[at].own += amount;
            for n in tree.up(at) {
                tree.0[n].billed = true;
            }
        }
        Op::Reserve(at, amount) => {
            let at = at.index(len);
            let before = tree.spent(meter);
            let fits = tree.up(at).iter().all(|n| {
                tree.used(*n).checked_add(*amount).is_some_and(|sum| sum <= tree.0[*n].cap)
            });
            assert_eq!(tree.0[at].budget.reserve(meter, *amount).is_ok(), fits);
            if fits {
                tree.0[at].own += amount;
                tree.0[at].held.push(*amount);
            } else {
                assert_eq!(tree.spent(meter), before, "a refusal takes nothing anywhere");
            }
        }
        Op::Refund(at) => {
            let at = at.index(len);
            if let Some(amount) = tree.0[at].held.pop() {
                tree.0[at].budget.refund(meter, amount);
                tree.0[at].own -= amount;
            }
        }
    }
}

fn assert_counts(tree: &Tree, meter: Meter) {
    for (at, node) in tree.0.iter().enumerate() {
        let used = tree.used(at);
        assert_eq!(node.budget.spent_amount(meter), used);
        assert!(node.billed || used <= node.cap, "only what has happened passes a limit");
        let left = tree.up(at).into_iter().map(|n| tree.0[n].cap.saturating_sub(tree.used(n)));
        assert_eq!(node.budget.remaining_amount(meter), left.min().unwrap());
        let full = tree.up(at).into_iter().find(|n| tree.used(*n) >= tree.0[*n].cap);
        assert_eq!(
            node.budget.exhausted_limit(meter).map(|e| e.limit),
            full.map(|n| tree.0[n].cap)
        );
        for other in METERS.into_iter().filter(|other| *other != meter) {
            assert_eq!(node.budget.spent_amount(other), 0, "meters do not mix");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn a_tree_counts_exactly_and_a_spawn_resets_nothing(
        cap in 0..300_u64,
        meter in select(METERS.to_vec()),
        ops in prop::collection::vec(op(), 0..40),
    ) {
        let mut tree = Tree::new(cap, meter);
        for op in &ops {
            apply(&mut tree, op, meter);
            assert_counts(&tree, meter);
        }
    }
}

#[test]
fn reservations_from_many_threads_never_pass_the_limit() {
    let top = Budget::new_root(
        BudgetLevel::Session,
        BudgetCaps::unlimited().with_cap(Meter::Memory, 1_000),
    );
    let taken: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let child = top.new_child(BudgetLevel::Subagent, BudgetCaps::unlimited());
                scope.spawn(move || {
                    (0..1_000).filter(|_| child.reserve(Meter::Memory, 1).is_ok()).count() as u64
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((taken, top.spent_amount(Meter::Memory)), (1_000, 1_000));
}
