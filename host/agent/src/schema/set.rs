//! The JSON Schemas of a request, compiled once for all checks.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belljar_work::{StopSignal, WorkStopped};
use serde_json::Value;

use crate::brought::{BroughtError, UnfitInput};
use crate::limits::MAX_SCHEMAS_MEMORY;
use crate::schema::cost::SchemaCost;
use crate::schema::{COMPILING, CompiledSchema, deadline_error};

/// The schemas of a caller, compiled when first needed. Clones share them.
#[derive(Clone, Default)]
pub struct CallerSchemas(Arc<SchemasState>);

#[derive(Default)]
struct SchemasState {
    compiled: OnceLock<Arc<SchemaSet>>,
    /// A reservation of the schemas' bytes, released when the schemas are dropped.
    held: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A schema with its place in the request, for example `tools[2].parameters`.
pub(crate) type At = (String, Value);

/// Compiled schemas, each with its source.
#[derive(Debug, Default)]
pub(crate) struct SchemaSet(Vec<(Value, CompiledSchema)>);

impl CallerSchemas {
    /// Keeps `held`, a reservation of the schemas' bytes, until the last clone is dropped.
    pub fn keep_claim(&self, held: Box<dyn Any + Send>) {
        *self.0.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }

    /// The compiled schemas of a request; compiles them on the first call.
    pub(crate) async fn get_or_compile(
        &self,
        schemas: Vec<At>,
        owner: &str,
    ) -> Result<Arc<SchemaSet>, BroughtError> {
        if let Some(compiled) = self.0.compiled.get().filter(|it| it.is_of(&schemas)) {
            return Ok(Arc::clone(compiled));
        }
        if schemas.is_empty() {
            return Ok(Arc::default());
        }
        let made = belljar_work::run_job(&COMPILING, owner, move |stop| {
            SchemaSet::compile_all(schemas, stop)
        });
        let made = Arc::new(made.await??);
        // Two callers at the same time both compile; the first result is kept.
        let _ = self.0.compiled.set(Arc::clone(&made));
        Ok(made)
    }
}

impl SchemaSet {
    /// The compiled form of a schema; `None` = the request does not have this schema.
    pub(crate) fn get(&self, schema: &Value) -> Option<CompiledSchema> {
        self.0.iter().find(|(known, _)| known == schema).map(|(_, compiled)| compiled.clone())
    }

    fn is_of(&self, schemas: &[At]) -> bool {
        schemas.iter().all(|(_, schema)| self.0.iter().any(|(known, _)| known == schema))
    }

    /// Weighs all schemas, then compiles each different one.
    pub(crate) fn compile_all(schemas: Vec<At>, stop: &StopSignal) -> Result<Self, BroughtError> {
        let costs = weigh_all(&schemas, stop)?;
        let mut compiled: Vec<(Value, CompiledSchema)> = Vec::with_capacity(schemas.len());
        for ((at, schema), cost) in schemas.into_iter().zip(costs) {
            if compiled.iter().any(|(known, _)| *known == schema) {
                continue;
            }
            stop.check_raised().map_err(|WorkStopped| deadline_error(&COMPILING))?;
            match CompiledSchema::compile(&schema, cost) {
                Ok(one) => compiled.push((schema, one)),
                Err(why) => return Err(UnfitInput { at, why }.into()),
            }
        }
        Ok(Self(compiled))
    }
}

/// The bytes that these schemas will take when compiled.
pub(crate) async fn memory_of(schemas: Vec<At>, owner: &str) -> Result<u64, BroughtError> {
    if schemas.is_empty() {
        return Ok(0);
    }
    let weighed = belljar_work::run_job(&COMPILING, owner, move |stop| weigh_all(&schemas, stop));
    Ok(weighed.await??.iter().map(|cost| cost.memory).sum())
}

/// INV-400: computes the cost of each schema, and refuses a set that is too large together.
fn weigh_all(schemas: &[At], stop: &StopSignal) -> Result<Vec<SchemaCost>, BroughtError> {
    let mut sum = 0_u64;
    let mut costs: Vec<SchemaCost> = Vec::with_capacity(schemas.len());
    for (at, schema) in schemas {
        let cost = CompiledSchema::weigh_schema(schema, stop);
        // If weighing was stopped, the schema is not invalid: only the deadline stops it.
        stop.check_raised().map_err(|WorkStopped| deadline_error(&COMPILING))?;
        let cost = cost.map_err(|why| UnfitInput { at: at.clone(), why })?;
        sum = sum.saturating_add(cost.memory);
        if sum > MAX_SCHEMAS_MEMORY {
            let why = format!(
                "brings the schemas of this request to more than {MAX_SCHEMAS_MEMORY} bytes when they \
                 are compiled, mostly for their patterns: use fewer or shorter ones"
            );
            return Err(UnfitInput { at: at.clone(), why }.into());
        }
        costs.push(cost);
    }
    Ok(costs)
}

impl PartialEq for CallerSchemas {
    /// Two inputs are equal if their other fields are: the schemas are compiled from these.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for CallerSchemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerSchemas").finish_non_exhaustive()
    }
}
