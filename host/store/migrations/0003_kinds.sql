-- What began a session: a conversation, a run, a team, a server's caller. All that is older is a
-- conversation.
ALTER TABLE sessions ADD COLUMN kind TEXT NOT NULL DEFAULT 'chat';

CREATE INDEX sessions_by_kind ON sessions (tenant, kind, id);
