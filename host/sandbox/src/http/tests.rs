//! The gate as a whole, against servers on loopback.


