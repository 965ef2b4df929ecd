-- What the look-ups of claims rest on, as one number (sum.rs): a row that was lost or changed is missed at the next start.
-- The names of claims are many, so the ledger is applied again rather than the number made here.
ALTER TABLE applied ADD COLUMN claims INTEGER NOT NULL DEFAULT 0;
UPDATE applied SET rebuilding = 1;
