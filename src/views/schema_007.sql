-- Who may do work in somebody's name, and so look at it: the person signed for the target and for the fallback that is named.
ALTER TABLE attempts ADD COLUMN delegated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN fallback INTEGER;

-- It stands in the text of entries alone, so the ledger is applied again.
UPDATE applied SET rebuilding = 1;
