-- Times are microseconds since 1970, UTC.
-- INTEGER has 32 bits here, too few for a time; ids are compared byte by byte, whatever the locale of the database.
CREATE TABLE sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    workspace_path TEXT NOT NULL,
    active_model TEXT,
    routing_policy_json TEXT,
    schema_version INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE messages (
    id TEXT COLLATE "C" PRIMARY KEY,
    session_id TEXT COLLATE "C" NOT NULL,
    role TEXT NOT NULL,
    content_json TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    schema_version INTEGER NOT NULL,
    FOREIGN KEY (session_id) REFERENCES sessions(id)
);

CREATE INDEX idx_messages_session_created ON messages(session_id, created_at);

CREATE TABLE tool_calls (
    id TEXT COLLATE "C" PRIMARY KEY, -- canonical tool_use id
    session_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL, -- the ASSISTANT message containing the tool_use
    result_message_id TEXT COLLATE "C", -- the TOOL message answering it (nullable)
    name TEXT NOT NULL,
    status TEXT NOT NULL, -- pending | succeeded | failed | cancelled
    provider_id TEXT, -- the provider's id at the time of generation
    provider TEXT,
    created_at BIGINT NOT NULL,
    completed_at BIGINT,
    FOREIGN KEY (session_id) REFERENCES sessions(id),
    FOREIGN KEY (message_id) REFERENCES messages(id),
    FOREIGN KEY (result_message_id) REFERENCES messages(id)
);

CREATE INDEX idx_tool_calls_session_status ON tool_calls(session_id, status);
