//! Whole reviews: a workspace, an overlay that is written as guests write it, and a journal.

mod attacks;
mod conflicts;
mod kills;
mod later;
mod lists;
mod looks;
mod random;
mod taken_back;
mod world;
