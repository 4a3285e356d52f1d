-- What a tenant is for ever, also for one that is given the same name later: its directory below
-- the data root is called so. Tenants that are there keep their directories, which have their
-- names; later ones have random ids.
ALTER TABLE tenants ADD COLUMN id TEXT NOT NULL DEFAULT '';

UPDATE tenants SET id = name;

CREATE UNIQUE INDEX tenants_by_id ON tenants (id);
