BEGIN TRANSACTION;
CREATE TABLE kept_results (
    tool_call_id TEXT PRIMARY KEY,
    result_json TEXT NOT NULL,
    FOREIGN KEY (tool_call_id) REFERENCES tool_calls(id)
) STRICT;
CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    role TEXT NOT NULL,
    content_json TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    FOREIGN KEY (session_id) REFERENCES sessions(id)
) STRICT;
INSERT INTO "messages" VALUES('01JZ0000000000000000000001','01JZ0000000000000000000000','system','[{"type":"text","text":"Answer briefly."}]','{"model":null,"provider":null,"routing":null,"usage":null,"parent_tool_use_id":null,"status":"complete","user_id":null,"team_id":null,"provider_raw":null}',1793527201123456,1);
INSERT INTO "messages" VALUES('01JZ0000000000000000000002','01JZ0000000000000000000000','user','[{"type":"text","text":"How wide is it? ¿Y qué? 🌒"},{"type":"image","source":{"kind":"base64","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="},"media_type":"image/png"}]','{"model":null,"provider":null,"routing":null,"usage":null,"parent_tool_use_id":null,"status":"complete","user_id":null,"team_id":null,"provider_raw":null}',1793527202123456,1);
INSERT INTO "messages" VALUES('01JZ0000000000000000000003','01JZ0000000000000000000000','assistant','[{"type":"thinking","text":"A moon.","signature":"c2lnbmVk"},{"type":"tool_use","id":"tu_1","name":"look_up","input":{"moon":"Ganymede","digits":3}}]','{"model":"acme:large","provider":"acme","routing":null,"usage":{"input_tokens":12,"output_tokens":34,"cached_input_tokens":null,"cache_creation_input_tokens":null,"cost_usd":"0.000546","pricing_version":"acme 2026-11-01","latency_ms":null},"parent_tool_use_id":null,"status":"complete","user_id":null,"team_id":null,"provider_raw":null}',1793527203123456,1);
INSERT INTO "messages" VALUES('01JZ0000000000000000000004','01JZ0000000000000000000000','tool','[{"type":"tool_result","tool_use_id":"tu_1","content":[{"type":"text","text":"not found"}],"is_error":true}]','{"model":null,"provider":null,"routing":null,"usage":null,"parent_tool_use_id":null,"status":"complete","user_id":null,"team_id":null,"provider_raw":null}',1793527204123456,1);
INSERT INTO "messages" VALUES('01JZ0000000000000000000005','01JZ0000000000000000000000','assistant','[{"type":"text","text":"5,268 km."}]','{"model":"acme:large","provider":"acme","routing":null,"usage":{"input_tokens":12,"output_tokens":34,"cached_input_tokens":null,"cache_creation_input_tokens":null,"cost_usd":"0.000546","pricing_version":"acme 2026-11-01","latency_ms":null},"parent_tool_use_id":null,"status":"complete","user_id":null,"team_id":null,"provider_raw":null}',1793527205123456,1);
INSERT INTO "messages" VALUES('01JZ0000000000000000000006','01JZ0000000000000000000000','assistant','[{"type":"text","text":"And its surf"}]','{"model":"acme:large","provider":"acme","routing":null,"usage":null,"parent_tool_use_id":null,"status":"cancelled","user_id":null,"team_id":null,"provider_raw":null}',1793527206123456,1);
CREATE TABLE partial_messages (
    message_id TEXT PRIMARY KEY,
    FOREIGN KEY (message_id) REFERENCES messages(id)
) STRICT;
CREATE TABLE repricings (
    message_id TEXT NOT NULL,
    repriced_at INTEGER NOT NULL,
    old_usage_json TEXT NOT NULL,
    new_usage_json TEXT NOT NULL,
    PRIMARY KEY (message_id, repriced_at),
    FOREIGN KEY (message_id) REFERENCES messages(id)
) STRICT;
CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL);
INSERT INTO "schema_migrations" VALUES(1,'tables',1795498732960801);
INSERT INTO "schema_migrations" VALUES(2,'beside_messages',1795498732961921);
INSERT INTO "schema_migrations" VALUES(3,'newest_first',1795498732962141);
CREATE TABLE session_entries (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    kind TEXT NOT NULL, 
    custom_type TEXT,
    text TEXT NOT NULL,
    data_json TEXT NOT NULL,
    after_message_id TEXT,
    created_at INTEGER NOT NULL,
    FOREIGN KEY (session_id) REFERENCES sessions(id),
    FOREIGN KEY (after_message_id) REFERENCES messages(id)
) STRICT;
INSERT INTO "session_entries" VALUES('01M8610VDT010ZFMKXKJT4J838','01JZ0000000000000000000000','compaction_summary',NULL,'They spoke of moons.','{"kept":2}','01JZ0000000000000000000006',1795498732987047);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    workspace_path TEXT NOT NULL,
    active_model TEXT,
    routing_policy_json TEXT,
    schema_version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO "sessions" VALUES('01JZ0000000000000000000000','moons','acme:large',NULL,1,1795498732974715,1795498732986777);
CREATE TABLE tool_calls (
    id TEXT PRIMARY KEY, 
    session_id TEXT NOT NULL,
    message_id TEXT NOT NULL, 
    result_message_id TEXT, 
    name TEXT NOT NULL,
    status TEXT NOT NULL, 
    provider_id TEXT, 
    provider TEXT,
    created_at INTEGER NOT NULL,
    completed_at INTEGER,
    FOREIGN KEY (session_id) REFERENCES sessions(id),
    FOREIGN KEY (message_id) REFERENCES messages(id),
    FOREIGN KEY (result_message_id) REFERENCES messages(id)
) STRICT;
INSERT INTO "tool_calls" VALUES('tu_1','01JZ0000000000000000000000','01JZ0000000000000000000003','01JZ0000000000000000000004','look_up','failed',NULL,'acme',1793527203123456,1793527204123456);
CREATE TABLE tool_runs (
    tool_call_id TEXT PRIMARY KEY,
    started_at INTEGER,
    error TEXT,
    FOREIGN KEY (tool_call_id) REFERENCES tool_calls(id)
) STRICT;
CREATE INDEX idx_messages_session_created ON messages(session_id, created_at);
CREATE INDEX idx_tool_calls_session_status ON tool_calls(session_id, status);
CREATE INDEX idx_messages_session_id ON messages(session_id, id);
CREATE INDEX idx_session_entries_session_id ON session_entries(session_id, id);
CREATE INDEX idx_sessions_updated ON sessions(updated_at, id);
CREATE INDEX idx_messages_asked ON messages(created_at, id) WHERE role = 'user';
COMMIT;
