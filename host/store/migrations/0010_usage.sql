-- Usage is counted by day, agent and model. Of earlier days only the sums are known: they have
-- neither, which are empty texts.
CREATE TABLE usage_parts (
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    day TEXT NOT NULL,
    agent TEXT NOT NULL,
    model TEXT NOT NULL,
    turns BIGINT NOT NULL,
    steps BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    tool_calls BIGINT NOT NULL,
    fuel BIGINT NOT NULL,
    PRIMARY KEY (tenant, day, agent, model)
);

INSERT INTO usage_parts
SELECT tenant, day, '', '', turns, steps, input_tokens, cached_tokens, output_tokens, tool_calls, fuel
FROM usage_days;

DROP TABLE usage_days;
