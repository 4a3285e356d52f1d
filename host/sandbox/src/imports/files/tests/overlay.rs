//! Overlays, tested by calls as a guest makes them.

mod attacks;
mod differential;
mod forks;
mod kept;
mod killed;
mod world;
