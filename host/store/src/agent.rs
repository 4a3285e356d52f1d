//! The texts of agents that a tenant has created or changed through the API.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::limits::{MAX_AGENTS, MAX_AGENTS_BYTES};
use crate::open::Store;
use crate::statement::{NoRowMeaning, SqlStatement, check_bytes};

/// The most bytes of one agent's text.
pub const MAX_AGENT_BYTES: usize = 256 << 10;

/// A stored agent.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoredAgent {
    /// The agent's name within the tenant.
    pub slug: String,
    /// The agent's definition, a stranger's text.
    pub text: String,
    /// When the agent was created, in milliseconds since 1970.
    pub created: i64,
    /// When the agent was last changed, in milliseconds since 1970. Different for each version of an agent,
    /// so it names the version.
    pub updated: i64,
}

impl Store {
    /// Stores an agent: a new one if `expected_updated` is `None`, otherwise the next version of the one with
    /// this [`StoredAgent::updated`]. Returns the new `updated`, usually `now`.
    ///
    /// If the stored version is another one or missing, the error is [`StoreError::Conflict`]. A tenant may
    /// have at most [`MAX_AGENTS`] agents with at most [`MAX_AGENTS_BYTES`] together; one agent has at most
    /// [`MAX_AGENT_BYTES`].
    pub async fn save_agent(
        &self,
        slug: &str,
        text: &str,
        now: i64,
        expected_updated: Option<i64>,
    ) -> Result<i64, StoreError> {
        const WHAT: &str = "save an agent";
        check_bytes("an agent", text.len(), MAX_AGENT_BYTES)?;
        let tenant = &*self.tenant;
        let (save, updated) = match expected_updated {
            None => {
                let insert = "INSERT INTO agents (tenant, slug, text, created, updated) \
                    SELECT t.name, $2, $3, $4, $4 FROM tenants t WHERE t.name = $1 \
                    AND (SELECT COUNT(*) FROM agents a WHERE a.tenant = $1) < $5 \
                    AND (SELECT COALESCE(SUM(octet_length(a.text)), 0) FROM agents a \
                    WHERE a.tenant = $1) + octet_length($3) <= $6 \
                    ON CONFLICT (tenant, slug) DO NOTHING";
                let args = [
                    tenant.into(),
                    slug.into(),
                    text.into(),
                    now.into(),
                    MAX_AGENTS.into(),
                    MAX_AGENTS_BYTES.into(),
                ];
                (SqlStatement::new(WHAT, NoRowMeaning::AgentNotNew, insert, args), now)
            }
            Some(expected) => {
                let update = "UPDATE agents SET text = $3, updated = $4 \
                    WHERE tenant = $1 AND slug = $2 AND updated = $5 \
                    AND (SELECT COALESCE(SUM(octet_length(a.text)), 0) FROM agents a \
                    WHERE a.tenant = $1 AND a.slug <> $2) + octet_length($3) <= $6";
                let next = now.max(expected.saturating_add(1));
                let args = [
                    tenant.into(),
                    slug.into(),
                    text.into(),
                    next.into(),
                    expected.into(),
                    MAX_AGENTS_BYTES.into(),
                ];
                (SqlStatement::new(WHAT, NoRowMeaning::AgentChanged, update, args), next)
            }
        };
        self.commit_one(save).await?;
        Ok(updated)
    }

    /// An agent by its slug.
    pub async fn find_agent(&self, slug: &str) -> Result<Option<StoredAgent>, StoreError> {
        let select = "SELECT slug, text, created, updated FROM agents \
            WHERE tenant = $1 AND slug = $2";
        let row = self.select_row("read an agent", select, [slug.into()]).await?;
        row.map(|row| self.stored_agent(&row)).transpose()
    }

    /// All agents of this tenant, sorted by slug.
    pub async fn list_agents(&self) -> Result<Vec<StoredAgent>, StoreError> {
        let select = "SELECT slug, text, created, updated FROM agents \
            WHERE tenant = $1 ORDER BY slug";
        let rows = self.select_rows("list the agents", select, []).await?;
        rows.iter().map(|row| self.stored_agent(row)).collect()
    }

    /// The slugs of all agents of this tenant, sorted, for callers that read one agent at a time.
    pub async fn agent_slugs(&self) -> Result<Vec<String>, StoreError> {
        let select = "SELECT slug FROM agents WHERE tenant = $1 ORDER BY slug";
        sqlx::query_scalar(select)
            .bind(&*self.tenant)
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.database_error("list the agents", &error))
    }

    /// Deletes an agent; returns false if there is none.
    pub async fn delete_agent(&self, slug: &str) -> Result<bool, StoreError> {
        let delete = "DELETE FROM agents WHERE tenant = $1 AND slug = $2";
        let args = [(&*self.tenant).into(), slug.into()];
        let delete = SqlStatement::new("delete an agent", NoRowMeaning::Fine, delete, args);
        Ok(self.commit_one(delete).changed_rows().await? > 0)
    }

    /// Reads an agent from its row.
    fn stored_agent(&self, row: &SqliteRow) -> Result<StoredAgent, StoreError> {
        let read = || -> Result<StoredAgent, sqlx::Error> {
            Ok(StoredAgent {
                slug: row.try_get(0)?,
                text: row.try_get(1)?,
                created: row.try_get(2)?,
                updated: row.try_get(3)?,
            })
        };
        read().map_err(|error| self.bad_row("an agent".to_owned(), error))
    }
}
