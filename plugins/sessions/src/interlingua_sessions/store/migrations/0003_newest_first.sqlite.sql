-- Lists begin with the newest: without these indexes the first line of a list costs a walk over all rows.
CREATE INDEX idx_sessions_updated ON sessions(updated_at, id);

CREATE INDEX idx_messages_asked ON messages(created_at, id) WHERE role = 'user';
