-- What people look at first, counted as it is decided: asking a million entries would take too long.

-- Decisions by the minute in which they were made.
CREATE TABLE decision_minutes (
    minute   INTEGER NOT NULL, -- since 1970
    decision INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (minute, decision)
) STRICT, WITHOUT ROWID;

-- Codes that decisions named, by the hour.
CREATE TABLE code_hours (
    hour  INTEGER NOT NULL, -- since 1970
    code  INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (hour, code)
) STRICT, WITHOUT ROWID;

-- What a file that was made before these tables already holds.
INSERT INTO decision_minutes (minute, decision, count)
    SELECT time / 60000000000, decision, count(*) FROM entries WHERE decision IS NOT NULL GROUP BY 1, 2;
INSERT INTO code_hours (hour, code, count)
    SELECT e.time / 3600000000000, c.code, count(*)
    FROM entry_codes c CROSS JOIN entries e ON e.sequence = c.sequence
    WHERE e.decision IS NOT NULL GROUP BY 1, 2;

-- From a handoff to those it led to.
CREATE INDEX attempts_by_parent ON attempts (parent) WHERE parent IS NOT NULL;
