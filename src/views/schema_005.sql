-- Whom entries concern, as runs of entries that stand side by side: a decision is one row for each of them, and whoever
-- is concerned by everything has one row in all.
CREATE TABLE runs (
    whose INTEGER NOT NULL, -- an agent, or a route with the sign turned
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    PRIMARY KEY (whose, first)
) STRICT, WITHOUT ROWID;

-- Who sent an entry stands in its text alone, so that a file that was made before cannot be filled from its own tables:
-- the ledger is applied to it again.
UPDATE applied SET rebuilding = 1;
