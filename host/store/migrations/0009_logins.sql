-- A browser that was let in with a key has a secret of its own instead, which is good for as long as
-- its key is, and no longer than until `expires`. `of_key` is empty where the operator's own link let
-- it in. With its tenant it goes; keys stay as long as their tenants do.
CREATE TABLE logins (
    id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    of_key TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    created BIGINT NOT NULL,
    expires BIGINT NOT NULL
);

CREATE INDEX logins_of_key ON logins (of_key, created);

CREATE INDEX logins_of_tenant ON logins (tenant);
