-- The tables that follow the ledger. Numbers stand for texts that repeat: see words and correlations.

-- One row: what this file follows, and how far it has come.
CREATE TABLE applied (
    one          INTEGER PRIMARY KEY CHECK (one = 1),
    topic_id     TEXT NOT NULL,
    sequence     INTEGER NOT NULL,
    running_hash TEXT NOT NULL,
    rebuilding   INTEGER NOT NULL
) STRICT;

CREATE TABLE words (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE correlations (
    correlation    INTEGER PRIMARY KEY, -- the first entry that names it
    correlation_id TEXT NOT NULL UNIQUE,
    mentions       INTEGER NOT NULL     -- accepted ones
) STRICT;

CREATE TABLE entries (
    sequence    INTEGER PRIMARY KEY,
    time        INTEGER NOT NULL, -- nanoseconds since 1970; rises with the sequence, so it needs no index
    kind        INTEGER NOT NULL,
    stream      INTEGER NOT NULL, -- a handoff, or a word with the sign turned
    attempt     INTEGER,
    correlation INTEGER NOT NULL,
    decision    INTEGER,
    codes       INTEGER
) STRICT;
CREATE INDEX entries_by_kind ON entries (kind);
CREATE INDEX entries_by_stream ON entries (stream);
CREATE INDEX entries_by_correlation ON entries (correlation);
CREATE INDEX entries_by_decision ON entries (decision) WHERE decision IS NOT NULL;

CREATE TABLE entry_codes (
    code     INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (code, sequence)
) STRICT, WITHOUT ROWID;

-- A handoff as it stands: what its current attempt says. That is the accepted one, or else the latest.
CREATE TABLE handoffs (
    handoff     INTEGER PRIMARY KEY, -- the entry that created its first attempt
    handoff_id  TEXT NOT NULL UNIQUE,
    attempts    INTEGER NOT NULL,
    current     INTEGER NOT NULL,
    accepted    INTEGER,
    status      INTEGER NOT NULL,
    route       INTEGER,
    decision    INTEGER,
    correlation INTEGER NOT NULL
) STRICT;
CREATE INDEX handoffs_by_status ON handoffs (status);
CREATE INDEX handoffs_by_route ON handoffs (route) WHERE route IS NOT NULL;
CREATE INDEX handoffs_by_decision ON handoffs (decision) WHERE decision IS NOT NULL;
CREATE INDEX handoffs_by_correlation ON handoffs (correlation);

CREATE TABLE handoff_agents (
    agent   INTEGER NOT NULL,
    handoff INTEGER NOT NULL,
    PRIMARY KEY (agent, handoff)
) STRICT, WITHOUT ROWID;

CREATE TABLE handoff_codes (
    code    INTEGER NOT NULL,
    handoff INTEGER NOT NULL,
    PRIMARY KEY (code, handoff)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    created         INTEGER PRIMARY KEY, -- the entry that created it
    handoff         INTEGER NOT NULL,
    attempt         INTEGER NOT NULL,
    status          INTEGER NOT NULL,
    source          INTEGER,
    target          INTEGER,
    route           INTEGER,
    mode            INTEGER,
    operation       INTEGER,
    correlation     INTEGER NOT NULL,
    parent          TEXT,
    idempotency_key TEXT,
    message_id      TEXT,
    content_digest  ANY,                 -- 32 bytes, or the text if it is no SHA-256
    accepted        INTEGER NOT NULL,
    decision        INTEGER,
    codes           INTEGER,
    decided         INTEGER,             -- the entry that decided it
    running_hash    BLOB,                -- of that entry, if it was accepted
    gates           INTEGER,
    policy          INTEGER,
    updated         INTEGER NOT NULL,    -- the last entry in its stream
    UNIQUE (handoff, attempt)
) STRICT;
-- A refused handoff claims nothing.
CREATE INDEX attempts_by_key ON attempts (source, idempotency_key) WHERE accepted = 1;
CREATE INDEX attempts_by_message ON attempts (message_id) WHERE accepted = 1 AND message_id IS NOT NULL;
