-- What was decided once for the whole file, and holds until the operator says otherwise.
CREATE TABLE decisions (
    name TEXT NOT NULL PRIMARY KEY,
    decided BIGINT NOT NULL
);

-- Once there was a key, callers need one, whatever becomes of it. The audit log knows of keys that
-- went with their tenants.
INSERT INTO decisions (name, decided)
    SELECT 'keys_needed', 0
    WHERE EXISTS (SELECT 1 FROM api_keys)
        OR EXISTS (SELECT 1 FROM audit WHERE action = 'create_key');
