-- What was done that takes something away from somebody or gives it, with its text: a ledger that has lost its end can
-- no longer say what that was.
CREATE TABLE acts (
    sequence INTEGER PRIMARY KEY,
    wire     TEXT NOT NULL
) STRICT;

-- Texts stand in the ledger alone, so it is applied again. That also has every handoff stand by its owner's attempts: before
-- this version the last one under an id spoke for it, whoever sent it.
UPDATE applied SET rebuilding = 1;
