-- What was said over A2A, and the tasks that began without a TaskSpec. Only the gateway's own stream tells of them.

CREATE TABLE messages (
    said       INTEGER PRIMARY KEY, -- the entry that records it
    caller     INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    content    ANY NOT NULL,        -- 32 bytes, or the text if it is no SHA-256
    asked      TEXT,                -- the task that it began or went on with, if that had no TaskSpec yet
    handoff_id TEXT,
    attempt    INTEGER,
    UNIQUE (caller, message_id)
) STRICT;
CREATE INDEX messages_by_asked ON messages (asked) WHERE asked IS NOT NULL;
CREATE INDEX messages_by_handoff ON messages (handoff_id) WHERE handoff_id IS NOT NULL;

CREATE TABLE asked (
    began      INTEGER PRIMARY KEY, -- the entry of its first message
    task_id    TEXT NOT NULL UNIQUE,
    caller     INTEGER NOT NULL,
    context_id TEXT NOT NULL,
    state      INTEGER NOT NULL,
    handoff_id TEXT,                -- what became of it
    attempt    INTEGER,
    decided    INTEGER,             -- the entry that refused it without a handoff of its own
    updated    INTEGER NOT NULL
) STRICT;
CREATE INDEX asked_by_caller ON asked (caller, updated);
CREATE INDEX asked_by_update ON asked (updated);

-- Lists of tasks are in the order of what happened last.
CREATE INDEX attempts_by_update ON attempts (updated);
CREATE INDEX attempts_by_source ON attempts (source, updated) WHERE source IS NOT NULL;
CREATE INDEX attempts_by_target ON attempts (target, updated) WHERE target IS NOT NULL;
