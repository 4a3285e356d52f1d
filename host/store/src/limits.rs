//! Bounds that statements hold themselves.

/// Most agents of one tenant.
pub const MAX_AGENTS: i64 = 1_000;

/// Most bytes of all agents of a tenant, because all are in memory while the tenant is served.
pub const MAX_AGENTS_BYTES: i64 = 16 << 20;
