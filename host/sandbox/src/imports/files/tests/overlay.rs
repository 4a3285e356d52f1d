//! Overlays, called as a guest would.

mod attacks;
mod differential;
mod kept;
mod world;
