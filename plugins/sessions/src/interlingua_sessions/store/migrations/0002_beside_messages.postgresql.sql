-- What the first tables have no place for. A session is read in the order of its ids, and the next id is minted from
-- the last one inside the transaction: without this index both would read the whole session.
CREATE INDEX idx_messages_session_id ON messages(session_id, id);

-- Messages that are being streamed; a row goes when its message is finished.
CREATE TABLE partial_messages (
    message_id TEXT COLLATE "C" PRIMARY KEY,
    FOREIGN KEY (message_id) REFERENCES messages(id)
);

-- When a call's tool began to run and why it failed, where a tool loop recorded it.
CREATE TABLE tool_runs (
    tool_call_id TEXT COLLATE "C" PRIMARY KEY,
    started_at BIGINT,
    error TEXT,
    FOREIGN KEY (tool_call_id) REFERENCES tool_calls(id)
);

-- Whole tool results whose message holds them cut: a canonical TOOL message that holds the one result.
CREATE TABLE kept_results (
    tool_call_id TEXT COLLATE "C" PRIMARY KEY,
    result_json TEXT NOT NULL,
    FOREIGN KEY (tool_call_id) REFERENCES tool_calls(id)
);

-- Session-only entries; they are not sent to a model as they are.
CREATE TABLE session_entries (
    id TEXT COLLATE "C" PRIMARY KEY,
    session_id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL, -- custom | branch_summary | compaction_summary
    custom_type TEXT,
    text TEXT NOT NULL,
    data_json TEXT NOT NULL,
    after_message_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    FOREIGN KEY (session_id) REFERENCES sessions(id),
    FOREIGN KEY (after_message_id) REFERENCES messages(id)
);

CREATE INDEX idx_session_entries_session_id ON session_entries(session_id, id);

-- What a message cost before and after each repricing, each with its pricing_version.
CREATE TABLE repricings (
    message_id TEXT COLLATE "C" NOT NULL,
    repriced_at BIGINT NOT NULL,
    old_usage_json TEXT NOT NULL,
    new_usage_json TEXT NOT NULL,
    PRIMARY KEY (message_id, repriced_at),
    FOREIGN KEY (message_id) REFERENCES messages(id)
);
