//! The schemas of one request: compiled once, and shared by all checks.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belljar_work::{StopSignal, WorkStopped};
use serde_json::Value;

use crate::brought::{BroughtError, Unfit};
use crate::limits::MAX_SCHEMAS_MEMORY;
use crate::schema::cost::Cost;
use crate::schema::{COMPILING, Schema, late};

/// The schemas of a caller, compiled on first use, shared by clones.
#[derive(Clone, Default)]
pub struct Schemas(Arc<Shared>);

#[derive(Default)]
struct Shared {
    compiled: OnceLock<Arc<Compiled>>,
    /// The reserved bytes of the schemas, freed with the schemas.
    held: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A schema with its place in the request, for example `tools[2].parameters`.
pub(crate) type At = (String, Value);

/// Compiled schemas.
#[derive(Debug, Default)]
pub(crate) struct Compiled(Vec<(Value, Schema)>);

impl Schemas {
    /// Keeps `held`, the claim on the schemas' bytes, until the last clone is dropped.
    pub fn keep(&self, held: Box<dyn Any + Send>) {
        *self.0.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    /// The compiled schemas of a request.
    pub(crate) async fn compiled(
        &self,
        schemas: Vec<At>,
        owner: &str,
    ) -> Result<Arc<Compiled>, BroughtError> {
        if let Some(compiled) = self.0.compiled.get().filter(|it| it.is_of(&schemas)) {
            return Ok(Arc::clone(compiled));
        }
        if schemas.is_empty() {
            return Ok(Arc::default());
        }
        let made = belljar_work::run(&COMPILING, owner, move |stop| Compiled::of(schemas, stop));
        let made = Arc::new(made.await??);
        // Two simultaneous callers compile twice; the first result is kept.
        let _ = self.0.compiled.set(Arc::clone(&made));
        Ok(made)
    }
}

impl Compiled {
    /// The compiled schema; `None` = the request has no such schema.
    pub(crate) fn get(&self, schema: &Value) -> Option<Schema> {
        self.0.iter().find(|(known, _)| known == schema).map(|(_, compiled)| compiled.clone())
    }

    fn is_of(&self, schemas: &[At]) -> bool {
        schemas.iter().all(|(_, schema)| self.0.iter().any(|(known, _)| known == schema))
    }

    pub(crate) fn of(schemas: Vec<At>, stop: &StopSignal) -> Result<Self, BroughtError> {
        let costs = weigh(&schemas, stop)?;
        let mut compiled: Vec<(Value, Schema)> = Vec::with_capacity(schemas.len());
        for ((at, schema), cost) in schemas.into_iter().zip(costs) {
            if compiled.iter().any(|(known, _)| *known == schema) {
                continue;
            }
            stop.check().map_err(|WorkStopped| late(&COMPILING))?;
            match Schema::compile(&schema, cost) {
                Ok(one) => compiled.push((schema, one)),
                Err(why) => return Err(Unfit { at, why }.into()),
            }
        }
        Ok(Self(compiled))
    }
}

/// The bytes of these schemas when compiled.
pub(crate) async fn memory_of(schemas: Vec<At>, owner: &str) -> Result<u64, BroughtError> {
    if schemas.is_empty() {
        return Ok(0);
    }
    let weighed = belljar_work::run(&COMPILING, owner, move |stop| weigh(&schemas, stop));
    Ok(weighed.await??.iter().map(|cost| cost.memory).sum())
}

/// INV-400: weighs each schema, and all schemas together.
fn weigh(schemas: &[At], stop: &StopSignal) -> Result<Vec<Cost>, BroughtError> {
    let mut sum = 0_u64;
    let mut costs: Vec<Cost> = Vec::with_capacity(schemas.len());
    for (at, schema) in schemas {
        let cost = Schema::weigh(schema, stop);
        // A schema whose weighing was stopped is late, not invalid: only the deadline stops the work.
        stop.check().map_err(|WorkStopped| late(&COMPILING))?;
        let cost = cost.map_err(|why| Unfit { at: at.clone(), why })?;
        sum = sum.saturating_add(cost.memory);
        if sum > MAX_SCHEMAS_MEMORY {
            let why = format!(
                "brings the schemas of this request to more than {MAX_SCHEMAS_MEMORY} bytes when they \
                 are compiled, mostly for their patterns: use fewer or shorter ones"
            );
            return Err(Unfit { at: at.clone(), why }.into());
        }
        costs.push(cost);
    }
    Ok(costs)
}

impl PartialEq for Schemas {
    /// Compiled from fields that are compared already.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas").finish_non_exhaustive()
    }
}
