//! The limits of each tenant, from the operator's settings and the tenant's own.

use belljar_definition::ServerSetting;
use belljar_session::ServiceLimits;

/// The default number of one tenant's running turns.
const DEFAULT_TENANT_TURNS: u32 = 64;
/// The default number of one tenant's waiting turns; a further turn is refused.
const DEFAULT_TENANT_QUEUE: u32 = 256;

/// The default storage of one tenant in MiB: enough for some hundred thousand turns, or a few thousand of the
/// largest.
const DEFAULT_STORAGE_MIB: u32 = 4_096;

/// The limits of a tenant whose own settings have none.
pub(crate) fn service_limits(server: &ServerSetting) -> ServiceLimits {
    ServiceLimits {
        concurrent_turns: count_or_default(server.tenant_turns, DEFAULT_TENANT_TURNS),
        queued_turns: count_or_default(server.tenant_queue, DEFAULT_TENANT_QUEUE),
        tokens_per_day: server.tenant_tokens_per_day,
        fuel_per_day: server.tenant_fuel_per_day,
        storage_bytes: Some(storage_bytes(
            server.tenant_storage_mib.unwrap_or(DEFAULT_STORAGE_MIB),
        )),
    }
}

/// The number in the settings, otherwise the default.
pub(crate) fn count_or_default(stated: Option<u32>, default: u32) -> usize {
    usize::try_from(stated.unwrap_or(default)).unwrap_or(usize::MAX)
}

/// The limits in a tenant's own `belljar.toml`, otherwise those for all tenants.
pub(crate) fn limits_of(own: &ServerSetting, all: ServiceLimits) -> ServiceLimits {
    let count = |own: Option<u32>, all| own.and_then(|n| usize::try_from(n).ok()).unwrap_or(all);
    ServiceLimits {
        concurrent_turns: count(own.tenant_turns, all.concurrent_turns),
        queued_turns: count(own.tenant_queue, all.queued_turns),
        tokens_per_day: own.tenant_tokens_per_day.or(all.tokens_per_day),
        fuel_per_day: own.tenant_fuel_per_day.or(all.fuel_per_day),
        storage_bytes: own.tenant_storage_mib.map(storage_bytes).or(all.storage_bytes),
    }
}

/// Converts MiB to bytes.
fn storage_bytes(mib: u32) -> u64 {
    u64::from(mib) << 20
}
