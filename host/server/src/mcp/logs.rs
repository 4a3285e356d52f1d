//! Passes log lines of tools to a client that requested them: for the whole session in older revisions
//! of MCP, for one request in the newest.
#![expect(deprecated, reason = "clients of 2025-11-25 have it so")]

use std::sync::atomic::{AtomicU8, Ordering};

use belljar_agent::CallReceipt;
use belljar_session::DirectDone;
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::RequestContext;
use serde_json::json;

/// The level of a client that requested no log lines.
const SILENT: u8 = u8::MAX;

/// The lowest level of log lines that the client requested.
pub(super) struct LogForwarder(AtomicU8);

impl LogForwarder {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(SILENT))
    }

    pub(super) fn set_level(&self, level: LoggingLevel) {
        self.0.store(level_rank(level), Ordering::Relaxed);
    }

    /// Sends the log lines of a finished call to the client.
    pub(super) async fn send_lines(&self, cx: &RequestContext<RoleServer>, done: &DirectDone) {
        let least = cx.meta.log_level().map(level_rank).unwrap_or(self.0.load(Ordering::Relaxed));
        for (tool, level, text) in done.result.receipts.iter().flat_map(lines_of) {
            if level_rank(level) < least {
                continue;
            }
            let line = LoggingMessageNotificationParam::new(level, json!(text)).with_logger(tool);
            if cx.peer.notify_logging_message(line).await.is_err() {
                return;
            }
        }
    }
}

/// The log lines of a call: tool, level and text of each.
fn lines_of(receipt: &CallReceipt) -> impl Iterator<Item = (String, LoggingLevel, String)> + '_ {
    receipt.receipt.logs.iter().map(|line| {
        let level = match line.level.as_str() {
            "error" => LoggingLevel::Error,
            "warn" => LoggingLevel::Warning,
            "info" => LoggingLevel::Info,
            _ => LoggingLevel::Debug,
        };
        (receipt.tool.clone(), level, line.message.clone())
    })
}

/// The rank of a level: a higher rank is more severe.
fn level_rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
