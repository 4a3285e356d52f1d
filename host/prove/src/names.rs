//! A resolver that knows only the names that attacks have set, so no query leaves the machine.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_sandbox::http::NameResolver;

/// The names of all attacks, with their next answers. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTable(Arc<Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>>);

impl NameTable {
    /// Sets the answers for a name: each list in turn; the last one is repeated.
    pub(crate) fn set_answers(&self, name: &str, answers: impl IntoIterator<Item = Vec<IpAddr>>) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_ascii_lowercase(), answers.into_iter().collect());
    }

    fn next_answer(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = names.get_mut(name)?;
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }
}

#[async_trait]
impl NameResolver for NameTable {
    async fn resolve_name(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.next_answer(name)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name"))
    }
}
