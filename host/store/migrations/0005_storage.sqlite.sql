-- How much each tenant has stored, kept by whoever writes: a sum over all rows would cost each turn a
-- look at everything.

CREATE TRIGGER session_bytes_begin AFTER INSERT ON sessions
BEGIN
    INSERT INTO session_bytes (session_id, tenant, bytes) VALUES (NEW.id, NEW.tenant, 512);
END;

CREATE TRIGGER tenant_bytes_more AFTER INSERT ON session_bytes
BEGIN
    INSERT INTO tenant_bytes (tenant, bytes) VALUES (NEW.tenant, NEW.bytes)
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER tenant_bytes_changed AFTER UPDATE OF bytes ON session_bytes
BEGIN
    UPDATE tenant_bytes SET bytes = bytes + NEW.bytes - OLD.bytes WHERE tenant = NEW.tenant;
END;

-- With a session goes all that it counted, in whatever order its rows go.
CREATE TRIGGER tenant_bytes_less AFTER DELETE ON session_bytes
BEGIN
    UPDATE tenant_bytes SET bytes = bytes - OLD.bytes WHERE tenant = OLD.tenant;
END;

CREATE TRIGGER tenant_bytes_end AFTER DELETE ON tenants
BEGIN
    DELETE FROM tenant_bytes WHERE tenant = OLD.name;
END;

CREATE TRIGGER agent_bytes_more AFTER INSERT ON agents
BEGIN
    INSERT INTO tenant_bytes (tenant, bytes) VALUES (NEW.tenant, 128 + octet_length(NEW.text))
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER agent_bytes_changed AFTER UPDATE OF text ON agents
BEGIN
    UPDATE tenant_bytes SET bytes = bytes + octet_length(NEW.text) - octet_length(OLD.text)
        WHERE tenant = NEW.tenant;
END;

CREATE TRIGGER agent_bytes_less AFTER DELETE ON agents
BEGIN
    UPDATE tenant_bytes SET bytes = bytes - 128 - octet_length(OLD.text) WHERE tenant = OLD.tenant;
END;

CREATE TRIGGER messages_bytes_more AFTER INSERT ON messages
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128 + octet_length(NEW.content) + octet_length(NEW.metadata)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER messages_bytes_changed AFTER UPDATE OF content, metadata ON messages
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128 + octet_length(NEW.content) + octet_length(NEW.metadata))
        - (128 + octet_length(OLD.content) + octet_length(OLD.metadata))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER messages_bytes_less AFTER DELETE ON messages
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128 + octet_length(OLD.content) + octet_length(OLD.metadata))
        WHERE session_id = OLD.session_id;
END;

CREATE TRIGGER subagent_sessions_bytes_more AFTER INSERT ON subagent_sessions
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128
        + octet_length(NEW.goal)
        + COALESCE(octet_length(NEW.context), 0)
        + octet_length(NEW.tool_names)
        + octet_length(NEW.summary)
        + octet_length(NEW.result)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER subagent_sessions_bytes_changed AFTER UPDATE OF goal, context, tool_names, summary, result ON subagent_sessions
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128
        + octet_length(NEW.goal)
        + COALESCE(octet_length(NEW.context), 0)
        + octet_length(NEW.tool_names)
        + octet_length(NEW.summary)
        + octet_length(NEW.result))
        - (128
        + octet_length(OLD.goal)
        + COALESCE(octet_length(OLD.context), 0)
        + octet_length(OLD.tool_names)
        + octet_length(OLD.summary)
        + octet_length(OLD.result))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER subagent_sessions_bytes_less AFTER DELETE ON subagent_sessions
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128
        + octet_length(OLD.goal)
        + COALESCE(octet_length(OLD.context), 0)
        + octet_length(OLD.tool_names)
        + octet_length(OLD.summary)
        + octet_length(OLD.result))
        WHERE session_id = OLD.session_id;
END;

CREATE TRIGGER event_blocks_bytes_more AFTER INSERT ON event_blocks
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128 + octet_length(NEW.body)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER event_blocks_bytes_changed AFTER UPDATE OF body ON event_blocks
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128 + octet_length(NEW.body))
        - (128 + octet_length(OLD.body))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER event_blocks_bytes_less AFTER DELETE ON event_blocks
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128 + octet_length(OLD.body))
        WHERE session_id = OLD.session_id;
END;

CREATE TRIGGER receipts_bytes_more AFTER INSERT ON receipts
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128 + octet_length(NEW.body)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER receipts_bytes_changed AFTER UPDATE OF body ON receipts
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128 + octet_length(NEW.body))
        - (128 + octet_length(OLD.body))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER receipts_bytes_less AFTER DELETE ON receipts
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128 + octet_length(OLD.body))
        WHERE session_id = OLD.session_id;
END;

CREATE TRIGGER permission_answers_bytes_more AFTER INSERT ON permission_answers
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128 + octet_length(NEW.arguments)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER permission_answers_bytes_changed AFTER UPDATE OF arguments ON permission_answers
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128 + octet_length(NEW.arguments))
        - (128 + octet_length(OLD.arguments))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER permission_answers_bytes_less AFTER DELETE ON permission_answers
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128 + octet_length(OLD.arguments))
        WHERE session_id = OLD.session_id;
END;

CREATE TRIGGER attachments_bytes_more AFTER INSERT ON attachments
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128 + octet_length(NEW.data)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER attachments_bytes_changed AFTER UPDATE OF data ON attachments
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128 + octet_length(NEW.data))
        - (128 + octet_length(OLD.data))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER attachments_bytes_less AFTER DELETE ON attachments
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128 + octet_length(OLD.data))
        WHERE session_id = OLD.session_id;
END;

CREATE TRIGGER journal_bytes_more AFTER INSERT ON journal
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128 + octet_length(NEW.body)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER journal_bytes_changed AFTER UPDATE OF body ON journal
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128 + octet_length(NEW.body))
        - (128 + octet_length(OLD.body))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER journal_bytes_less AFTER DELETE ON journal
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128 + octet_length(OLD.body))
        WHERE session_id = OLD.session_id;
END;

CREATE TRIGGER compactions_bytes_more AFTER INSERT ON compactions
BEGIN
    UPDATE session_bytes SET bytes = bytes + 128 + octet_length(NEW.text)
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER compactions_bytes_changed AFTER UPDATE OF text ON compactions
BEGIN
    UPDATE session_bytes SET bytes = bytes + (128 + octet_length(NEW.text))
        - (128 + octet_length(OLD.text))
        WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER compactions_bytes_less AFTER DELETE ON compactions
BEGIN
    UPDATE session_bytes SET bytes = bytes - (128 + octet_length(OLD.text))
        WHERE session_id = OLD.session_id;
END;
