//! The job of a helper process, and its messages.

use std::io::{self, Write as _};

use belljar_policy::ShownText;
use serde::{Deserialize, Serialize};

use crate::setup::exit::Failure;

/// The work of a helper process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum HelperJob {
    /// Passes connections of this machine on to the host of `url`.
    Gate { url: String, most: u64, walled: bool },
    /// Requests one file.
    Download { url: String, most: u64, walled: bool },
    /// Requests one package of a registry, and verifies its digest.
    Package { registry: String, package: String, version: Option<String>, most: u64, walled: bool },
}

impl HelperJob {
    /// Whether the helper has to be behind the OS sandbox.
    pub(super) fn is_walled(&self) -> bool {
        match self {
            Self::Gate { walled, .. }
            | Self::Download { walled, .. }
            | Self::Package { walled, .. } => *walled,
        }
    }
}

/// A message of a helper, one a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum HelperNews {
    /// The gate listens there.
    Listening(u16),
    /// So many bytes have been received.
    Received(u64),
    /// The connection, or all of the work, failed for this reason.
    Fault(String),
    /// The file is complete.
    File { sha256: String, version: Option<String> },
}

/// The name of the file in the helper's directory.
pub(super) const FILE: &str = "file";

/// Writes one message. A parent that does not read any more has ended or will end this process.
pub(super) fn send_news(news: &HelperNews) {
    if let Ok(text) = serde_json::to_string(news) {
        let _ = writeln!(io::stdout().lock(), "{text}");
    }
}

/// The failure to fetch from a host, in one line.
pub(super) fn unreachable_host(url: &str, why: &str) -> Failure {
    let shown = ShownText::clip_line(url, 200);
    Failure::new(format!("`{shown}` cannot be fetched: {}", ShownText::clip_line(why, 300)))
        .with_hint("nothing of it is installed; a clone or an archive on this machine can be added without a network")
}
