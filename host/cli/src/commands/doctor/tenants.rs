//! The check of `belljar doctor` for the server's tenants on this machine: which could not be served, and
//! why.

use belljar_definition::Settings;
use belljar_policy::ShownText;

use super::{CheckResult, DoctorCheck, failed_check, make_check};
use crate::args::server::DataArg;
use crate::commands::serve::tenancy::TenantSettings;
use crate::setup::data::{DataRoot, in_store, store_failure};
use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::walls::WallGaps;

/// The data root that the command line names, if it has a store. Creates nothing.
pub(super) fn find_data(arg: &DataArg, places: &HomePaths) -> Option<DataRoot> {
    let data = DataRoot::find_root(arg, &host::read_settings(places).ok()?, places).ok()?;
    data.store_path().is_file().then_some(data)
}

/// The gaps in the OS sandbox that are needed to look at tenants, added to `through`.
pub(super) fn tenant_gaps(data: Option<&DataRoot>, mut through: WallGaps) -> WallGaps {
    if let Some(data) = data {
        through.read.extend(data.tenant_read_paths());
        through.write.push(data.store_directory());
    }
    through
}

/// The check of all tenants; `None` = there are none besides the operator's own.
pub(super) fn check_all(
    settings: Settings,
    places: &HomePaths,
    data: DataRoot,
) -> Option<DoctorCheck> {
    match find_unservable(settings, places, data) {
        Ok((0, _)) => None,
        Ok((count, refused)) if refused.is_empty() => {
            Some(make_check("tenants", CheckResult::Good, format!("{count} can be served")))
        }
        Ok((count, refused)) => {
            let text = format!("{} of {count} cannot be served", refused.len());
            Some(DoctorCheck { details: refused, ..make_check("tenants", CheckResult::Bad, text) })
        }
        Err(failure) => Some(failed_check("tenants", &failure)),
    }
}

/// The number of tenants, and the reason for each that cannot be served.
fn find_unservable(
    settings: Settings,
    places: &HomePaths,
    data: DataRoot,
) -> Result<(usize, Vec<String>), Failure> {
    let store = data.store_path();
    let tenancy = TenantSettings { settings, places: places.clone(), data, reach: None };
    let checked = in_store(&store, async |store| {
        tenancy.check_all(&store.tenant_registry()).await.map_err(store_failure)
    })?;
    let count = checked.len();
    let refused = checked.into_iter().filter_map(|(tenant, error)| {
        let why = error?.to_string();
        Some(format!("`{}`: {}", tenant.name, ShownText::multiline(&why)))
    });
    Ok((count, refused.collect()))
}
