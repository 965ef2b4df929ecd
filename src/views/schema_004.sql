-- What is asked together with a code stands beside it, so that a code is looked through without its entries.
ALTER TABLE entry_codes ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entry_codes ADD COLUMN decision INTEGER;

-- What a file that was made before already holds.
UPDATE entry_codes
    SET (kind, decision) = (SELECT e.kind, e.decision FROM entries e WHERE e.sequence = entry_codes.sequence);
