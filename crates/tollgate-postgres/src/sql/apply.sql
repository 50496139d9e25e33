-- Judges batches of checks, one after the other, all at one instant.
--
-- keys      every key once, in ascending order, so that whoever locks several rows meets others in the same order
-- families  the family of each key: 0 bucket, 1 fixed window, 2 sliding window, 3 sliding log
-- checks    ten numbers per check, batch after batch:
--             1 the number of checks in the batch (of its first check)
--             2 the key, as its place in `keys`
--             3 what is asked: 0 hit, 1 peek, 2 settle by charging more, 3 settle by giving back
--             4 bucket: capacity   windows, log: limit
--             5 bucket: unit       windows, log: period
--             6 bucket: drain      fixed window: phase, or -1
--             7 bucket: tick
--             8 the cost, or the units to charge more or to give back
--             9 settle: when the hit was charged
--            10 settle: the mark of the hit, an unsigned number in 64 bits
-- at        the instant to judge at; NULL reads the clock
-- locked    lock every row before reading it
-- lock_wait the milliseconds that all waits for rows may take together; 0 leaves it to the server's lock_timeout
-- commit    what synchronous_commit is to be for this call; NULL leaves it as it is
--
-- Returns the instant, then four numbers per check: allowed, and the three words of its verdict.
--
-- Rows are read without a lock first. Who charges nothing never waits and never writes. Who charges writes only if the
-- row is still what was read; if it is not, everything is judged again with the rows locked. The clock is read after
-- the rows are, and again after a wait for one.
CREATE OR REPLACE FUNCTION {schema}.apply_v1(
    keys bytea[], families smallint[], checks bigint[], at bigint, locked boolean, lock_wait integer, commit text
) RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- A plan made while the table was small must not be a scan of the large one.
SET enable_seqscan = off
AS $function$
DECLARE
    stride     CONSTANT integer := 10;
    max_stored CONSTANT bigint := 9007199254740991;
    last_time  CONSTANT bigint := 8000000000000000;
    key_count  CONSTANT integer := cardinality(keys);
    numbers    CONSTANT integer := cardinality(checks);
    began      CONSTANT timestamptz := clock_timestamp();
    written    boolean := false;
    now        bigint;
    result     bigint[];
    -- The rows by key, as they were read and as they are now; NULL for a key never seen.
    old_a bigint[]; old_b bigint[]; old_c bigint[];
    new_a bigint[]; new_b bigint[]; new_c bigint[];
    row_a bigint; row_b bigint; row_c bigint;
    -- Where in `checks` the last rule stands that changed a key; 0 if none did.
    changed_by integer[];
    -- Rows that were made so that there is something to lock.
    made boolean[];
    -- The sliding log at hand, and its key.
    log        {schema}.logs;
    settled    {schema}.logs;
    log_key    integer;
    log_period bigint;
    log_dirty  boolean;
    read       record;
    view       bigint[];
    -- One check.
    p integer; q integer; w integer; k integer;
    first_word integer; batch_end integer;
    op bigint; cost bigint;
    p1 bigint; p2 bigint; p3 bigint; p4 bigint;
    start bigint; level bigint; other bigint; gone bigint; ok boolean;
    admitted boolean;
    expires bigint;
BEGIN
<<attempt>>
LOOP
    IF locked THEN
        PERFORM {schema}.settings_v1(lock_wait, commit);
    END IF;
    changed_by := array_fill(0, ARRAY[key_count]);
    made := array_fill(false, ARRAY[key_count]);
    old_a := array_fill(NULL::bigint, ARRAY[key_count]);
    old_b := old_a;
    old_c := old_a;

    -- Read, and in the second attempt lock.
    FOR i IN 1 .. key_count LOOP
        IF locked AND lock_wait > 0 AND clock_timestamp() > began + interval '2 milliseconds' THEN
            -- All waits share one deadline.
            PERFORM set_config('lock_timeout', greatest(
                lock_wait - floor(extract(epoch FROM clock_timestamp() - began) * 1000)::bigint, 1
            )::text, true);
        END IF;
        IF families[i] = 3 THEN
            -- A log is read when it is judged; here its head is only locked.
            made[i] := locked AND {schema}.log_locked_v1(keys[i]);
            CONTINUE;
        ELSIF NOT locked THEN
            SELECT t.a, t.b, t.c INTO row_a, row_b, row_c FROM {schema}.counters AS t WHERE t.key = keys[i];
        ELSE
            LOOP
                SELECT t.a, t.b, t.c INTO row_a, row_b, row_c
                    FROM {schema}.counters AS t WHERE t.key = keys[i] FOR UPDATE;
                EXIT WHEN FOUND;
                INSERT INTO {schema}.counters (key, expires_at, a, b, c) VALUES (keys[i], 0, 0, 0, 0)
                    ON CONFLICT (key) DO NOTHING;
                IF FOUND THEN
                    made[i] := true;
                    EXIT;
                END IF;
            END LOOP;
            CONTINUE WHEN made[i];
        END IF;
        CONTINUE WHEN row_a IS NULL;
        IF NOT (row_a BETWEEN 0 AND last_time AND row_b BETWEEN 0 AND max_stored AND row_c BETWEEN 0 AND max_stored)
            OR families[i] = 0 AND row_c = 0
        THEN
            RAISE EXCEPTION 'the row of key % is not one that this schema wrote: (%, %, %)',
                encode(keys[i], 'hex'), row_a, row_b, row_c USING ERRCODE = 'data_corrupted';
        END IF;
        old_a[i] := row_a;
        old_b[i] := row_b;
        old_c[i] := row_c;
    END LOOP;
    new_a := old_a;
    new_b := old_b;
    new_c := old_c;
    log_key := 0;
    log_dirty := false;

    now := coalesce(at, least(greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0), last_time));
    result := array_fill(0::bigint, ARRAY[1 + numbers / stride * 4]);
    result[1] := now;
    w := 1;
    p := 0;
    WHILE p < numbers LOOP
        first_word := w;
        batch_end := p + stride * checks[p + 1]::integer;
        admitted := true;

        -- What each check finds at `now`, before anything of this batch is charged.
        q := p;
        WHILE q < batch_end LOOP
            k := checks[q + 2];
            op := checks[q + 3];
            p1 := checks[q + 4];
            p2 := checks[q + 5];
            cost := checks[q + 8];
            CASE families[k]
            WHEN 0 THEN
                level := 0;
                IF new_a[k] IS NOT NULL THEN
                    level := new_b[k];
                    IF new_c[k] <> p2 THEN
                        -- The policy has changed: whole units, rounded up.
                        level := (level + new_c[k] - 1) / new_c[k];
                        level := CASE WHEN level > max_stored / p2 THEN max_stored ELSE level * p2 END;
                    END IF;
                    p3 := checks[q + 6];
                    p4 := checks[q + 7];
                    gone := now / p4 - new_a[k] / p4;
                    IF gone > 0 AND p3 > 0 THEN
                        -- Divided first, since the product may leave the range.
                        level := CASE WHEN gone > level / p3 THEN 0 ELSE level - gone * p3 END;
                    END IF;
                END IF;
                ok := CASE WHEN cost > p1 THEN false ELSE level <= (p1 - cost) * p2 END;
                result[w + 2] := level;
            WHEN 1 THEN
                level := 0;
                start := -1;
                p3 := checks[q + 6];
                IF new_a[k] IS NOT NULL THEN
                    IF p3 >= 0 THEN
                        start := greatest(now - (now + p2 - p3) % p2, 0);
                        start := CASE WHEN new_a[k] >= start THEN start ELSE -1 END;
                    ELSIF new_a[k] > now THEN
                        start := now;
                    ELSIF now - new_a[k] < p2 THEN
                        start := new_a[k];
                    END IF;
                    level := CASE WHEN start >= 0 THEN new_b[k] ELSE 0 END;
                END IF;
                ok := level <= p1 AND cost <= p1 - level;
                result[w + 2] := level;
                result[w + 3] := start;
            WHEN 2 THEN
                level := 0;
                other := 0;
                start := now;
                IF new_a[k] IS NOT NULL THEN
                    gone := now - new_a[k];
                    IF gone < 0 THEN
                        level := new_b[k];
                        other := new_c[k];
                    ELSIF gone < p2 THEN
                        start := new_a[k];
                        level := new_b[k];
                        other := new_c[k];
                    ELSIF gone - p2 < p2 THEN
                        start := new_a[k] + p2;
                        other := new_b[k];
                    END IF;
                END IF;
                -- What the previous window still weighs.
                gone := p2 - (now - start);
                IF other = 0 THEN
                    gone := 0;
                ELSIF other <= 9223372036854775807 / p2 THEN
                    gone := other * gone / p2;
                ELSE
                    gone := div(other::numeric * gone, p2);
                END IF;
                IF gone + level = 0 THEN
                    other := 0;
                    start := now;
                END IF;
                ok := cost <= p1 AND gone + level <= p1 - cost;
                result[w + 2] := level;
                result[w + 3] := start;
                result[w + 4] := other;
            ELSE
                IF log_key <> k THEN
                    IF log_dirty THEN
                        PERFORM {schema}.log_stored_v1(log, log_period, at);
                        log_dirty := false;
                    END IF;
                    SELECT l AS head, CASE WHEN NOT locked THEN l.xmin END AS written_by INTO read
                        FROM {schema}.logs AS l WHERE l.key = keys[k];
                    log := read.head;
                    IF log IS NULL THEN
                        log := ROW(0, 0, 0, false, keys[k], '{}')::{schema}.logs;
                    END IF;
                    log_key := k;
                END IF;
                view := {schema}.log_view_v1(
                    log, read.written_by, p2, p1, CASE WHEN op > 1 THEN p1 + 1 ELSE cost END, now
                );
                IF view IS NULL THEN
                    locked := true;
                    CONTINUE attempt;
                END IF;
                ok := view[1] = 1;
                result[w + 2] := view[2];
                result[w + 3] := view[3];
                result[w + 4] := view[4];
            END CASE;
            IF op = 0 AND NOT ok THEN
                admitted := false;
            END IF;
            result[w + 1] := CASE WHEN ok OR op > 1 THEN 1 ELSE 0 END;
            q := q + stride;
            w := w + 4;
        END LOOP;

        -- What becomes of it.
        q := p;
        w := first_word;
        WHILE q < batch_end LOOP
            k := checks[q + 2];
            op := checks[q + 3];
            IF op = 1 THEN
                q := q + stride;
                w := w + 4;
                CONTINUE;
            END IF;
            p2 := checks[q + 5];
            cost := checks[q + 8];
            level := result[w + 2];
            start := result[w + 3];
            ok := false;
            CASE families[k]
            WHEN 0 THEN
                IF op = 0 AND admitted THEN
                    ok := true;
                    level := level + cost * p2;
                ELSIF op = 0 THEN
                    -- A denial from before the stored instant moves that back, so that nobody waits for it twice.
                    ok := new_a[k] > now;
                ELSIF op = 2 THEN
                    level := CASE WHEN cost > (max_stored - level) / p2 THEN max_stored ELSE level + cost * p2 END;
                    ok := level <> result[w + 2];
                ELSE
                    level := {schema}.bucket_given_back_v1(
                        level, cost, p2, checks[q + 6], checks[q + 7], checks[q + 9], checks[q + 10], now
                    );
                    ok := level <> result[w + 2];
                END IF;
                IF ok THEN
                    new_a[k] := now;
                    new_b[k] := level;
                    new_c[k] := p2;
                    result[w + 2] := level;
                END IF;
            WHEN 1 THEN
                p3 := checks[q + 6];
                IF start < 0 THEN
                    start := CASE WHEN p3 < 0 THEN now ELSE greatest(now - (now + p2 - p3) % p2, 0) END;
                END IF;
                IF op = 0 AND admitted THEN
                    ok := true;
                    level := level + cost;
                ELSIF op = 0 THEN
                    ok := new_a[k] > now;
                ELSE
                    IF op = 2 THEN
                        level := least(level + cost, max_stored);
                    ELSIF checks[q + 9] >= start THEN
                        level := greatest(level - cost, 0);
                    END IF;
                    ok := level <> result[w + 2];
                END IF;
                IF ok THEN
                    new_a[k] := start;
                    new_b[k] := level;
                    new_c[k] := 0;
                    result[w + 2] := level;
                    result[w + 3] := start;
                END IF;
            WHEN 2 THEN
                IF op = 0 AND admitted THEN
                    ok := true;
                    level := level + cost;
                ELSIF op = 0 THEN
                    ok := new_a[k] > now;
                ELSE
                    IF op = 2 THEN
                        level := least(level + cost, max_stored);
                    ELSIF checks[q + 9] >= start THEN
                        level := greatest(level - cost, 0);
                    END IF;
                    ok := level <> result[w + 2];
                END IF;
                IF ok THEN
                    new_a[k] := start;
                    new_b[k] := level;
                    new_c[k] := result[w + 4];
                    result[w + 2] := level;
                END IF;
            ELSE
                IF log_key <> k THEN
                    IF log_dirty THEN
                        PERFORM {schema}.log_stored_v1(log, log_period, at);
                        log_dirty := false;
                    END IF;
                    log := {schema}.log_head_v1(keys[k]);
                    log_key := k;
                END IF;
                ok := CASE
                    WHEN op > 1 THEN cost > 0
                    WHEN admitted THEN true
                    ELSE coalesce(log.tail[cardinality(log.tail) - 1] > now, false)
                END;
                IF ok AND NOT locked THEN
                    locked := true;
                    CONTINUE attempt;
                END IF;
                IF ok THEN
                    IF op = 3 THEN
                        settled := {schema}.log_given_back_v1(log, checks[q + 9], cost);
                        ok := settled IS DISTINCT FROM log;
                        log := settled;
                    ELSE
                        log := {schema}.log_advanced_v1(log, p2, now);
                    END IF;
                    IF op = 2 THEN
                        cost := least(cost, max_stored - ({schema}.log_total_v1(log) - log.base));
                    END IF;
                    IF cost > 0 AND (op = 2 OR op = 0 AND admitted) THEN
                        log := {schema}.log_pushed_v1(log, now, cost);
                    END IF;
                    IF op > 1 THEN
                        view := {schema}.log_view_v1(log, NULL, p2, 0, 1, now);
                        result[w + 2] := view[2];
                        result[w + 4] := view[4];
                    ELSIF admitted THEN
                        result[w + 2] := level + cost;
                        result[w + 4] := now + p2;
                    END IF;
                    log_period := p2;
                    log_dirty := log_dirty OR ok;
                END IF;
            END CASE;
            IF ok THEN
                changed_by[k] := q + 1;
            END IF;
            q := q + stride;
            w := w + 4;
        END LOOP;
        p := batch_end;
    END LOOP;
    IF log_dirty THEN
        PERFORM {schema}.log_stored_v1(log, log_period, at);
    END IF;

    -- Write what changed, in the order of the keys.
    FOR i IN 1 .. key_count LOOP
        q := changed_by[i] - 1;
        IF q < 0 THEN
            IF made[i] THEN
                PERFORM {schema}.unmade_v1(keys[i], families[i]);
            END IF;
            CONTINUE;
        END IF;
        CONTINUE WHEN families[i] = 3;
        p2 := checks[q + 5];
        p3 := checks[q + 6];
        p4 := checks[q + 7];
        expires := CASE
            -- Windows: whatever the algorithm, all is forgotten two periods after the start.
            WHEN families[i] > 0 THEN new_a[i] + 2 * p2
            WHEN p3 = 0 THEN now
            -- A tick more than it takes to drain, since the instant may lie within one.
            WHEN new_b[i] / p3 > (max_stored - now) / p4 - 2 THEN max_stored
            ELSE now + (new_b[i] / p3 + 2) * p4
        END;
        IF at IS NOT NULL THEN
            -- The sweeper goes by the clock, which knows nothing of the instant the caller named.
            expires := greatest(expires, expires - now + (extract(epoch FROM began) * 1000000)::bigint);
        END IF;
        IF locked THEN
            UPDATE {schema}.counters AS t SET expires_at = expires, a = new_a[i], b = new_b[i], c = new_c[i]
                WHERE t.key = keys[i];
            CONTINUE;
        END IF;
        IF NOT written THEN
            PERFORM {schema}.settings_v1(lock_wait, commit);
        END IF;
        IF old_a[i] IS NULL THEN
            INSERT INTO {schema}.counters (expires_at, a, b, c, key)
                VALUES (expires, new_a[i], new_b[i], new_c[i], keys[i])
                ON CONFLICT (key) DO NOTHING;
        ELSE
            UPDATE {schema}.counters AS t SET expires_at = expires, a = new_a[i], b = new_b[i], c = new_c[i]
                WHERE t.key = keys[i] AND t.a = old_a[i] AND t.b = old_b[i] AND t.c = old_c[i];
        END IF;
        IF NOT FOUND AND NOT written THEN
            locked := true;
            CONTINUE attempt;
        END IF;
        -- Rows already written are locked: to lock others now could be out of order. A long wait has made the instant
        -- stale. Either way the caller asks again, with locks from the start.
        IF NOT FOUND OR at IS NULL AND clock_timestamp() > began + interval '50 milliseconds' THEN
            RAISE EXCEPTION 'a row changed while it was judged' USING ERRCODE = 'TG001';
        END IF;
        written := true;
    END LOOP;
    RETURN result;
END LOOP;
END
$function$;
