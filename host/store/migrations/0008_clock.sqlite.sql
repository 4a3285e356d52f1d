-- The bound of the audit log keeps behind the clock: whatever a statement asks for, a line stays
-- for a day at the least (`audit_days` is never less). A row that is put in the place of the old
-- one is held to the same.
DROP TRIGGER audit_is_kept_no_longer;

CREATE TRIGGER audit_is_kept_no_longer BEFORE UPDATE ON audit_kept
WHEN NEW.since < OLD.since OR NEW.since > (unixepoch() - 86400) * 1000
BEGIN
    SELECT RAISE(ABORT, 'the time of the audit log only grows, and stays a day behind the clock');
END;

CREATE TRIGGER audit_bound_is_made BEFORE INSERT ON audit_kept
WHEN NEW.since > (unixepoch() - 86400) * 1000
BEGIN
    SELECT RAISE(ABORT, 'the time of the audit log stays a day behind the clock');
END;
