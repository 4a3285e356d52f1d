-- Lines of the audit log are kept for a time that the operator states. The file still refuses to
-- lose one before its time is over: what is younger than `since` stays, and `since` only grows.
CREATE TABLE audit_kept (
    -- 1: there is one row.
    only_row BIGINT NOT NULL PRIMARY KEY,
    since BIGINT NOT NULL
);

INSERT INTO audit_kept (only_row, since) VALUES (1, 0);

CREATE INDEX audit_by_time ON audit (at);

DROP TRIGGER audit_is_not_deleted;

CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
WHEN OLD.at >= COALESCE((SELECT MIN(since) FROM audit_kept), 0)
BEGIN
    SELECT RAISE(ABORT, 'an audit entry is never deleted before its time');
END;

CREATE TRIGGER audit_is_kept_no_longer BEFORE UPDATE ON audit_kept
WHEN NEW.since < OLD.since
BEGIN
    SELECT RAISE(ABORT, 'the time of the audit log only grows');
END;
