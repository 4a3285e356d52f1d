//! `[server]`: the addresses, data root and limits of `belljar serve`.

use std::path::PathBuf;

use toml::de::DeTable;

use super::issuers::IssuerSetting;
use super::schema::SettingsLoader;

const KEYS: &[&str] = &[
    "listen",
    "data",
    "host_names",
    "origins",
    "jars",
    "queue",
    "tenant_turns",
    "tenant_queue",
    "tenant_tokens_per_day",
    "tenant_fuel_per_day",
    "tenant_storage_mib",
    "requests_per_second",
    "connections_per_address",
    "failed_keys_per_minute",
    "audit_days",
    "finish_left_turns",
    "otlp_endpoint",
    "issuers",
];

/// The largest value of any count.
const MAX_COUNT: u64 = 100_000;

/// The largest storage limit of a tenant: four TiB.
const MAX_STORAGE_MIB: u64 = 4 << 20;

/// The settings under `[server]`. Absent = the server's default; options of the command line override both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSetting {
    /// Address and port to listen on, for example `127.0.0.1:7411`.
    pub listen: Option<String>,
    /// The data root: the store, and the homes and workspaces of tenants. Absolute or below `~`.
    pub data: Option<PathBuf>,
    /// Host names of the server, beside those of the machine itself.
    pub host_names: Vec<String>,
    /// Origins whose pages may call the server, beside the server's own origin.
    pub origins: Vec<String>,
    /// The most concurrent jars of turns, all tenants together.
    pub jars: Option<u32>,
    /// The most waiting turns, all tenants together.
    pub queue: Option<u32>,
    /// The most concurrent turns of one tenant.
    pub tenant_turns: Option<u32>,
    /// The most waiting turns of one tenant.
    pub tenant_queue: Option<u32>,
    /// The most tokens of one tenant a day, in UTC.
    pub tenant_tokens_per_day: Option<u64>,
    /// The most fuel of one tenant a day, in UTC.
    pub tenant_fuel_per_day: Option<u64>,
    /// The most storage of one tenant, in MiB.
    pub tenant_storage_mib: Option<u32>,
    /// The most requests of one key per second.
    pub requests_per_second: Option<u32>,
    /// The most concurrent connections of one address.
    pub connections_per_address: Option<u32>,
    /// The most invalid keys of one address per minute.
    pub failed_keys_per_minute: Option<u32>,
    /// Days after which lines of the audit log are deleted.
    pub audit_days: Option<u32>,
    /// Whether a turn on OpenAI's wires that is not to be stored continues after its caller disconnects.
    pub finish_left_turns: bool,
    /// The collector of traces, by OTLP over HTTP, for example `http://127.0.0.1:4318`.
    pub otlp_endpoint: Option<String>,
    /// `[server.issuers.NAME]`: the issuers whose tokens are accepted beside belljar's own keys.
    pub issuers: Vec<IssuerSetting>,
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads `[server]` of the home file.
    pub(super) fn read_server(&mut self, table: &DeTable<'t>) {
        let Some(item) = table.get("server") else { return };
        let Some(table) = self.reader.read_table("server", item) else { return };
        self.reader.report_unknown_keys(table, "`server`", KEYS);
        let names = |loader: &mut Self, key: &str| {
            table.get(key).map(|item| loader.read_texts(item, key)).unwrap_or_default()
        };
        let setting = ServerSetting {
            listen: self.reader.read_text(table, "listen"),
            data: self.data_root(table),
            host_names: names(self, "host_names"),
            origins: names(self, "origins"),
            jars: self.read_bounded_number(table, "jars", 1, MAX_COUNT),
            queue: self.read_bounded_number(table, "queue", 0, MAX_COUNT),
            tenant_turns: self.read_bounded_number(table, "tenant_turns", 1, MAX_COUNT),
            tenant_queue: self.read_bounded_number(table, "tenant_queue", 0, MAX_COUNT),
            tenant_tokens_per_day: self.reader.read_number(table, "tenant_tokens_per_day"),
            tenant_fuel_per_day: self.reader.read_number(table, "tenant_fuel_per_day"),
            tenant_storage_mib: self.read_bounded_number(
                table,
                "tenant_storage_mib",
                1,
                MAX_STORAGE_MIB,
            ),
            requests_per_second: self.read_bounded_number(
                table,
                "requests_per_second",
                1,
                MAX_COUNT,
            ),
            connections_per_address: self.read_bounded_number(
                table,
                "connections_per_address",
                1,
                MAX_COUNT,
            ),
            failed_keys_per_minute: self.read_bounded_number(
                table,
                "failed_keys_per_minute",
                1,
                MAX_COUNT,
            ),
            audit_days: self.read_bounded_number(table, "audit_days", 1, MAX_COUNT),
            finish_left_turns: self
                .reader
                .read_boolean(table, "finish_left_turns")
                .unwrap_or_default(),
            otlp_endpoint: self.reader.read_text(table, "otlp_endpoint"),
            issuers: self.read_issuers(table),
        };
        if let (Some(text), Some(item)) = (&setting.listen, table.get("listen"))
            && text.parse::<std::net::SocketAddr>().is_err()
        {
            self.reader.report_unfit_value::<()>(
                "listen",
                item,
                "an address with a port: `127.0.0.1:7411`",
            );
        }
        self.settings.server = setting;
    }

    /// Reads the data root, as an absolute path.
    fn data_root(&mut self, table: &DeTable<'t>) -> Option<PathBuf> {
        let item = table.get("data")?;
        let path = self.reader.text_of("data", item)?;
        let path = self.home_path(path);
        if path.is_absolute() {
            return Some(path);
        }
        self.reader.report_unfit_value("data", item, "an absolute path, or one below `~`")
    }
}
