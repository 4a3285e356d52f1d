//! Overlays, called as a guest would.

mod attacks;
mod differential;
mod forks;
mod kept;
mod killed;
mod world;
