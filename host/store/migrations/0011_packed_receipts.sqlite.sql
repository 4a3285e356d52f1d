CREATE TRIGGER receipt_blocks_bytes_more AFTER INSERT ON receipt_blocks
BEGIN
    UPDATE session_bytes SET bytes = bytes + NEW.bytes WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER receipt_blocks_bytes_changed AFTER UPDATE OF bytes ON receipt_blocks
BEGIN
    UPDATE session_bytes SET bytes = bytes + NEW.bytes - OLD.bytes WHERE session_id = NEW.session_id;
END;

CREATE TRIGGER receipt_blocks_bytes_less AFTER DELETE ON receipt_blocks
BEGIN
    UPDATE session_bytes SET bytes = bytes - OLD.bytes WHERE session_id = OLD.session_id;
END;
