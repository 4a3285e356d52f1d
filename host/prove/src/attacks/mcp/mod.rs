//! MCP servers whose tools an agent was granted, and that are not what they were when somebody accepted
//! them.

mod asks;
mod calls;
mod lists;
mod stage;
mod tokens;
mod words;

use crate::attack::Attack;

pub(super) const ATTACKS: [&[Attack<crate::Arena>]; 5] =
    [lists::ATTACKS, calls::ATTACKS, words::ATTACKS, tokens::ATTACKS, asks::ATTACKS];
