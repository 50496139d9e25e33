-- Times are whole microseconds since the Unix epoch, so no time zone ever comes in.
-- A key is sixteen bytes for prefix, scope, policy and algorithm family, then the subject.
-- No index covers a column that a hit changes, and pages are left with room: updates stay on their page (HOT).

CREATE TABLE IF NOT EXISTS {schema}.version (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  integer NOT NULL
);

-- Buckets, fixed windows and sliding windows. The wide columns come first, so that nothing is padded.
--              a        b      c
-- bucket       updated  level  unit
-- fixed        start    count  0
-- sliding      start    count  previous
CREATE {unlogged}TABLE IF NOT EXISTS {schema}.counters (
    expires_at bigint NOT NULL,
    a          bigint NOT NULL,
    b          bigint NOT NULL,
    c          bigint NOT NULL,
    key        bytea  NOT NULL,
    PRIMARY KEY (key)
) WITH (fillfactor = 85);

-- Sliding logs: the newest entries stand in the row itself, in `tail`; older ones in chunks.
-- An entry is two numbers, the instant and the running total of all units up to and including it.
-- Entries whose total is at most `base` no longer count. `tail_base` is the total before the tail.
CREATE {unlogged}TABLE IF NOT EXISTS {schema}.logs (
    expires_at bigint   NOT NULL,
    base       bigint   NOT NULL,
    tail_base  bigint   NOT NULL,
    chunked    boolean  NOT NULL,
    key        bytea    NOT NULL,
    tail       bigint[] NOT NULL,
    PRIMARY KEY (key)
) WITH (fillfactor = 70);
ALTER TABLE {schema}.logs ALTER COLUMN tail SET STORAGE EXTERNAL;

CREATE {unlogged}TABLE IF NOT EXISTS {schema}.log_chunks (
    last_at    bigint   NOT NULL,
    last_total bigint   NOT NULL,
    base       bigint   NOT NULL,
    key        bytea    NOT NULL,
    entries    bigint[] NOT NULL,
    PRIMARY KEY (key, last_at)
);
ALTER TABLE {schema}.log_chunks ALTER COLUMN entries SET STORAGE EXTERNAL;
-- A chunk is written once, so this index costs its share of a hit only every so many hits.
CREATE INDEX IF NOT EXISTS log_chunks_by_total ON {schema}.log_chunks (key, last_total);
