-- Receipts that came together. The body is a JSON array of them, packed as an LZ4 block behind its
-- size. Beside it stand the smallest and the largest of their times, and those of their ids.
CREATE TABLE receipt_blocks (
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    first_created BIGINT NOT NULL,
    first_id TEXT NOT NULL,
    last_created BIGINT NOT NULL,
    last_id TEXT NOT NULL,
    -- How many they are.
    receipts BIGINT NOT NULL,
    -- As many as they would count for as rows of their own: how well they are packed is the client's doing.
    bytes BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (session_id, last_created, last_id),
    FOREIGN KEY (session_id, message_id)
        REFERENCES messages (session_id, id) ON DELETE CASCADE
);

CREATE INDEX receipt_blocks_of_message ON receipt_blocks (session_id, message_id, last_created);
