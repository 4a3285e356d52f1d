//! Limits that are part of SQL statements.

/// The most agents of one tenant.
pub const MAX_AGENTS: i64 = 1_000;

/// The most bytes of all agents of a tenant, because all of them are in memory while the tenant is served.
pub const MAX_AGENTS_BYTES: i64 = 16 << 20;
