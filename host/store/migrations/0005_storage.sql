-- Bytes of each session with all that belongs to it: its texts, and a little for each row.
CREATE TABLE session_bytes (
    session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    bytes BIGINT NOT NULL
);

-- The same of each tenant, with its agents.
CREATE TABLE tenant_bytes (
    tenant TEXT NOT NULL PRIMARY KEY,
    bytes BIGINT NOT NULL
);

INSERT INTO session_bytes (session_id, tenant, bytes)
    SELECT s.id, s.tenant, 512
    + COALESCE((SELECT SUM(128 + octet_length(r.content) + octet_length(r.metadata)) FROM messages r
        WHERE r.session_id = s.id), 0)
    + COALESCE((SELECT SUM(128 + octet_length(r.goal) + COALESCE(octet_length(r.context), 0) + octet_length(r.tool_names) + octet_length(r.summary) + octet_length(r.result)) FROM subagent_sessions r
        WHERE r.session_id = s.id), 0)
    + COALESCE((SELECT SUM(128 + octet_length(r.body)) FROM event_blocks r
        WHERE r.session_id = s.id), 0)
    + COALESCE((SELECT SUM(128 + octet_length(r.body)) FROM receipts r
        WHERE r.session_id = s.id), 0)
    + COALESCE((SELECT SUM(128 + octet_length(r.arguments)) FROM permission_answers r
        WHERE r.session_id = s.id), 0)
    + COALESCE((SELECT SUM(128 + octet_length(r.data)) FROM attachments r
        WHERE r.session_id = s.id), 0)
    + COALESCE((SELECT SUM(128 + octet_length(r.body)) FROM journal r
        WHERE r.session_id = s.id), 0)
    + COALESCE((SELECT SUM(128 + octet_length(r.text)) FROM compactions r
        WHERE r.session_id = s.id), 0)
    FROM sessions s;

INSERT INTO tenant_bytes (tenant, bytes)
    SELECT t.tenant, SUM(t.bytes) FROM (
        SELECT tenant, bytes FROM session_bytes
        UNION ALL
        SELECT tenant, 128 + octet_length(text) FROM agents
    ) t GROUP BY t.tenant;

CREATE INDEX session_bytes_of_tenant ON session_bytes (tenant);
