//! The tenants of the server on this machine: which could not be served, and why.

use belljar_definition::Settings;
use belljar_policy::Shown;

use super::{Check, Finding, bad, check};
use crate::args::server::DataArg;
use crate::commands::serve::tenancy::Tenancy;
use crate::setup::data::{Data, failed, in_store};
use crate::setup::exit::Failure;
use crate::setup::home::Places;
use crate::setup::host;
use crate::setup::walls::Through;

/// The named data root, if it has a store. Makes nothing.
pub(super) fn data(arg: &DataArg, places: &Places) -> Option<Data> {
    let data = Data::find(arg, &host::settings(places).ok()?, places).ok()?;
    data.store().is_file().then_some(data)
}

/// The gaps in the OS sandbox that looking at tenants needs besides.
pub(super) fn through(data: Option<&Data>, mut through: Through) -> Through {
    if let Some(data) = data {
        through.read.extend(data.of_tenants());
        through.write.push(data.store_directory());
    }
    through
}

/// One line for all tenants, where there are any beside the operator's own.
pub(super) fn check_all(settings: Settings, places: &Places, data: Data) -> Option<Check> {
    match find(settings, places, data) {
        Ok((0, _)) => None,
        Ok((count, refused)) if refused.is_empty() => {
            Some(check("tenants", Finding::Good, format!("{count} can be served")))
        }
        Ok((count, refused)) => {
            let text = format!("{} of {count} cannot be served", refused.len());
            Some(Check { details: refused, ..check("tenants", Finding::Bad, text) })
        }
        Err(failure) => Some(bad("tenants", &failure)),
    }
}

/// The number of tenants, and the reasons for each that cannot be served.
fn find(settings: Settings, places: &Places, data: Data) -> Result<(usize, Vec<String>), Failure> {
    let store = data.store();
    let tenancy = Tenancy { settings, places: places.clone(), data, reach: None };
    let checked =
        in_store(&store, async |store| tenancy.check_all(&store.registry()).await.map_err(failed))?;
    let count = checked.len();
    let refused = checked.into_iter().filter_map(|(tenant, error)| {
        let why = error?.to_string();
        Some(format!("`{}`: {}", tenant.name, Shown::multiline(&why)))
    });
    Ok((count, refused.collect()))
}
