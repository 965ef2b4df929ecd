-- What somebody else was refused for under an id is no longer how its handoff stands. A file where it is shows so is made
-- again from the ledger; in every other one there is nothing to change.
UPDATE applied SET rebuilding = 1 WHERE EXISTS (
    SELECT 1 FROM handoffs h
    CROSS JOIN attempts a ON a.created = h.current
    CROSS JOIN attempts f ON f.created = h.handoff
    WHERE h.accepted IS NULL AND (a.source IS NOT f.source OR a.correlation != f.correlation)
);
