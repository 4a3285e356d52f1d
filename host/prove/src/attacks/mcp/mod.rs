//! Attacks by MCP servers whose tools were granted to an agent and that have changed since the operator
//! accepted them.

mod asks;
mod calls;
mod lists;
mod stage;
mod tokens;
mod words;

use crate::attack::Attack;

pub(super) const ATTACKS: [&[Attack<crate::Arena>]; 5] =
    [lists::ATTACKS, calls::ATTACKS, words::ATTACKS, tokens::ATTACKS, asks::ATTACKS];
