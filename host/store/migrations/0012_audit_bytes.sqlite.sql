-- Lines of the audit log count as what their tenant has stored: whoever acts often, in ways that change
-- something, fills its own room. Lines about callers that were refused do not count: others cause them,
-- and they are bounded where they are written.

CREATE TRIGGER audit_bytes_more AFTER INSERT ON audit
WHEN NEW.action NOT IN ('refused', 'strangers')
    AND (NEW.tenant = 'local' OR EXISTS (SELECT 1 FROM tenants t WHERE t.name = NEW.tenant))
BEGIN
    INSERT INTO tenant_bytes (tenant, bytes)
        VALUES (NEW.tenant, 128 + octet_length(NEW.object) + octet_length(NEW.detail))
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

-- A line from before a tenant was made is of another one that had its name.
CREATE TRIGGER audit_bytes_less AFTER DELETE ON audit
WHEN OLD.action NOT IN ('refused', 'strangers')
    AND OLD.at >= COALESCE((SELECT t.created FROM tenants t WHERE t.name = OLD.tenant), 0)
BEGIN
    UPDATE tenant_bytes SET bytes = MAX(0, bytes - 128 - octet_length(OLD.object)
        - octet_length(OLD.detail)) WHERE tenant = OLD.tenant;
END;

INSERT INTO tenant_bytes (tenant, bytes)
    SELECT a.tenant, SUM(128 + octet_length(a.object) + octet_length(a.detail)) FROM audit a
    WHERE a.action NOT IN ('refused', 'strangers')
    AND (a.tenant = 'local' OR EXISTS (SELECT 1 FROM tenants t WHERE t.name = a.tenant))
    AND a.at >= COALESCE((SELECT t.created FROM tenants t WHERE t.name = a.tenant), 0)
    GROUP BY a.tenant
    ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
