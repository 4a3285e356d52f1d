CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    title TEXT NOT NULL,
    agent TEXT NOT NULL,
    workspace TEXT NOT NULL,
    model TEXT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL
);

CREATE INDEX sessions_by_update ON sessions (tenant, updated);

CREATE INDEX sessions_by_workspace ON sessions (tenant, workspace, updated);

CREATE TABLE messages (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    sort_order BIGINT NOT NULL,
    role TEXT NOT NULL,
    status TEXT NOT NULL,
    content TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    UNIQUE (session_id, sort_order),
    UNIQUE (session_id, id)
);

CREATE TABLE subagent_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    parent_message_id TEXT NOT NULL,
    parent_tool_call_id TEXT NOT NULL,
    parent_agent TEXT NOT NULL,
    parent_subagent_id TEXT,
    depth BIGINT NOT NULL,
    chain_id TEXT NOT NULL,
    source TEXT NOT NULL,
    agent TEXT NOT NULL,
    display_name TEXT NOT NULL,
    goal TEXT NOT NULL,
    context TEXT,
    status TEXT NOT NULL,
    model TEXT NOT NULL,
    tool_names TEXT NOT NULL,
    summary TEXT NOT NULL,
    result TEXT NOT NULL,
    error TEXT,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    fuel BIGINT NOT NULL,
    sort_order BIGINT NOT NULL,
    created BIGINT NOT NULL,
    started BIGINT,
    ended BIGINT,
    UNIQUE (session_id, id),
    FOREIGN KEY (session_id, parent_message_id)
        REFERENCES messages (session_id, id) ON DELETE CASCADE,
    FOREIGN KEY (session_id, parent_subagent_id)
        REFERENCES subagent_sessions (session_id, id) ON DELETE CASCADE
);

CREATE INDEX subagents_of_message ON subagent_sessions (session_id, parent_message_id, sort_order);

CREATE INDEX subagents_by_status ON subagent_sessions (session_id, status);

CREATE INDEX subagents_by_parent ON subagent_sessions (parent_agent, created);

-- What a cascade looks up.
CREATE INDEX subagents_below_subagent ON subagent_sessions (session_id, parent_subagent_id);
