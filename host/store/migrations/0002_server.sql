CREATE TABLE tenants (
    name TEXT NOT NULL PRIMARY KEY,
    -- 0 or 1.
    disabled BIGINT NOT NULL,
    created BIGINT NOT NULL
);

-- The tenant of the command line is always there; older files may hold rows of others.
INSERT INTO tenants (name, disabled, created)
    SELECT 'local', 0, 0
    UNION
    SELECT tenant, 0, 0 FROM sessions;

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    label TEXT NOT NULL,
    scope TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    created BIGINT NOT NULL,
    last_used BIGINT,
    revoked BIGINT
);

CREATE INDEX api_keys_of_tenant ON api_keys (tenant, id);

CREATE TABLE agents (
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    slug TEXT NOT NULL,
    text TEXT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    PRIMARY KEY (tenant, slug)
);

-- A day is text, `YYYY-MM-DD`.
CREATE TABLE usage_days (
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    day TEXT NOT NULL,
    turns BIGINT NOT NULL,
    steps BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    tool_calls BIGINT NOT NULL,
    fuel BIGINT NOT NULL,
    PRIMARY KEY (tenant, day)
);

-- Outlives its tenant, so it refers to none.
CREATE TABLE audit (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    object TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE INDEX audit_of_tenant ON audit (tenant, id);

-- What follows belongs to a message, and so to the message's session: deleting the session
-- deletes its messages, and those delete this.

-- The body is a JSON array of events, one on each line.
CREATE TABLE event_blocks (
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, last_seq),
    FOREIGN KEY (session_id, message_id)
        REFERENCES messages (session_id, id) ON DELETE CASCADE
);

CREATE TABLE receipts (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    step BIGINT NOT NULL,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- 0 or 1.
    ok BIGINT NOT NULL,
    ending TEXT NOT NULL,
    fuel BIGINT NOT NULL,
    micros BIGINT NOT NULL,
    body TEXT NOT NULL,
    created BIGINT NOT NULL,
    FOREIGN KEY (session_id, message_id)
        REFERENCES messages (session_id, id) ON DELETE CASCADE
);

CREATE TABLE permission_answers (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    question BIGINT NOT NULL,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    answer TEXT NOT NULL,
    actor TEXT NOT NULL,
    asked BIGINT NOT NULL,
    answered BIGINT NOT NULL,
    FOREIGN KEY (session_id, message_id)
        REFERENCES messages (session_id, id) ON DELETE CASCADE
);

CREATE TABLE attachments (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    call_id TEXT,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    created BIGINT NOT NULL,
    data BYTEA NOT NULL,
    FOREIGN KEY (session_id, message_id)
        REFERENCES messages (session_id, id) ON DELETE CASCADE
);

CREATE TABLE journal (
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    agent TEXT NOT NULL,
    step BIGINT NOT NULL,
    position BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, message_id, seq),
    FOREIGN KEY (session_id, message_id)
        REFERENCES messages (session_id, id) ON DELETE CASCADE
);

CREATE TABLE compactions (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    upto_sort_order BIGINT NOT NULL,
    text TEXT NOT NULL,
    created BIGINT NOT NULL,
    PRIMARY KEY (session_id, upto_sort_order)
);

-- What a cascade looks up; those of receipts also serve their list.
CREATE INDEX event_blocks_of_message ON event_blocks (session_id, message_id);

CREATE INDEX receipts_of_message ON receipts (session_id, message_id, created);

CREATE INDEX answers_of_message ON permission_answers (session_id, message_id);

CREATE INDEX attachments_of_message ON attachments (session_id, message_id);

-- What a start looks for.
CREATE INDEX messages_in_flight ON messages (session_id) WHERE status = 'in_flight';
