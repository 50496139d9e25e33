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
-- together  read every row at one snapshot, so that no batch over several keys sees another one half done
-- locked    lock every row before reading it
-- lock_wait the milliseconds that waits for rows may take: all together where rows are taken one by one, each where many
--           are written by one query
-- commit    what synchronous_commit is to be for this call
--
-- Returns the instant, then four numbers per check: allowed, and the three words of its verdict.
--
-- The words in braces are numbers that the library puts in, and the name of the schema.
--
-- Rows are read without a lock first, those of batches over several keys at one snapshot. Who charges nothing never
-- waits and never writes. Who charges writes only if the row is still what was read; if it is not, everything is judged
-- again with the rows locked: at once if nothing has been written yet, else in another call, which error TG001 asks for.
-- The clock is read after the rows are, and again after a wait for one.
CREATE OR REPLACE FUNCTION {schema}.apply_v1(
    keys bytea[], families smallint[], checks bigint[], at bigint, together boolean, locked boolean,
    lock_wait integer, commit text
) RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- One plan, whatever the arrays hold and whatever the size of the table was when it was made: key by key through the
-- index, in the order of the keys.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    key_count  CONSTANT integer := cardinality(keys);
    numbers    CONSTANT integer := cardinality(checks);
    began      CONSTANT timestamptz := clock_timestamp();
    written    integer := 0;
    now        bigint;
    result     bigint[];
    -- The rows by key, as they were read and as they are now; NULL for a key never seen.
    old_a bigint[]; old_b bigint[]; old_c bigint[];
    new_a bigint[]; new_b bigint[]; new_c bigint[];
    row_a bigint; row_b bigint; row_c bigint;
    -- When a changed row may go; NULL for a row that has not changed.
    expires bigint[];
    -- The sweeper goes by the clock, which knows nothing of an instant that the caller named.
    shift bigint := 0;
    affected integer; missing integer; fresh integer;
    setting text;
    -- Rows that were made so that there is something to lock.
    made boolean[];
    -- The sliding log at hand, and its key.
    log        {schema}.logs;
    -- The logs by key, with the transactions that wrote them, if all rows were read together.
    heads      {schema}.logs[];
    writers    xid[];
    settled    {schema}.logs;
    log_key    integer;
    log_period bigint;
    log_dirty  boolean;
    read       record;
    view       bigint[];
    -- One check.
    p integer; q integer; w integer; k integer; first_word integer; batch_end integer;
    op bigint; cost bigint;
    p1 bigint; p2 bigint; p3 bigint; p4 bigint;
    start bigint; level bigint; other bigint; gone bigint; ok boolean; admitted boolean;
BEGIN
<<attempt>>
LOOP
    expires := array_fill(NULL::bigint, ARRAY[key_count]);
    old_a := expires;
    old_b := expires;
    old_c := expires;

    -- Read, and in the second attempt lock: first the rows are made that are not there, then the others locked, each in
    -- the order of the keys. To make a row may mean to wait for whoever makes or writes it, so that comes first: nobody waits
    -- to lock or to write a row that no transaction has shown yet. So all waits go one way.
    -- A log is read when it is judged, unless all rows are read together.
    IF locked THEN
        setting := set_config('lock_timeout', lock_wait::text, true);
        setting := set_config('synchronous_commit', commit, true);
        made := array_fill(false, ARRAY[key_count]);
        FOR i IN 1 .. key_count LOOP
            IF clock_timestamp() > began + interval '2 milliseconds' THEN
                PERFORM {schema}.lock_wait_left_v1(lock_wait, began);
            END IF;
            IF families[i] = 3 THEN
                PERFORM 1 FROM {schema}.logs AS l WHERE l.key = keys[i];
                CONTINUE WHEN FOUND;
                INSERT INTO {schema}.logs (expires_at, base, tail_base, chunked, key, tail)
                    VALUES (0, 0, 0, false, keys[i], '{}')
                    ON CONFLICT (key) DO NOTHING;
            ELSE
                PERFORM 1 FROM {schema}.counters AS t WHERE t.key = keys[i];
                CONTINUE WHEN FOUND;
                INSERT INTO {schema}.counters (expires_at, a, b, c, key) VALUES (0, 0, 0, 0, keys[i])
                    ON CONFLICT (key) DO NOTHING;
            END IF;
            made[i] := FOUND;
        END LOOP;
        FOR i IN 1 .. key_count LOOP
            CONTINUE WHEN made[i];
            IF clock_timestamp() > began + interval '2 milliseconds' THEN
                PERFORM {schema}.lock_wait_left_v1(lock_wait, began);
            END IF;
            IF families[i] = 3 THEN
                PERFORM 1 FROM {schema}.logs AS l WHERE l.key = keys[i] FOR UPDATE;
            ELSE
                SELECT t.a, t.b, t.c INTO row_a, row_b, row_c
                    FROM {schema}.counters AS t WHERE t.key = keys[i] FOR UPDATE;
                old_a[i] := row_a;
                old_b[i] := row_b;
                old_c[i] := row_c;
            END IF;
            IF NOT FOUND THEN
                PERFORM {schema}.raced_v1();
            END IF;
        END LOOP;
    ELSIF NOT together AND key_count < {many} THEN
        FOR i IN 1 .. key_count LOOP
            IF families[i] < 3 THEN
                SELECT t.a, t.b, t.c INTO row_a, row_b, row_c
                    FROM {schema}.counters AS t WHERE t.key = keys[i];
                old_a[i] := row_a;
                old_b[i] := row_b;
                old_c[i] := row_c;
            END IF;
        END LOOP;
    ELSIF NOT together THEN
        SELECT array_agg(r.a), array_agg(r.b), array_agg(r.c) INTO old_a, old_b, old_c FROM (
            SELECT t.a, t.b, t.c
                FROM generate_subscripts(keys, 1) AS i
                LEFT JOIN {schema}.counters AS t ON t.key = keys[i]
                ORDER BY i
        ) AS r;
    ELSE
        SELECT array_agg(r.a), array_agg(r.b), array_agg(r.c), array_agg(r.head), array_agg(r.written_by)
            INTO old_a, old_b, old_c, heads, writers FROM (
            SELECT t.a, t.b, t.c, l AS head, l.xmin AS written_by
                FROM generate_subscripts(keys, 1) AS i
                LEFT JOIN {schema}.counters AS t ON t.key = keys[i]
                LEFT JOIN {schema}.logs AS l ON l.key = CASE WHEN families[i] = 3 THEN keys[i] END
                ORDER BY i
        ) AS r;
    END IF;
    IF  0 > ANY (old_a) OR {last_time} < ANY (old_a) OR 0 > ANY (old_b) OR {max_stored} < ANY (old_b)
        OR 0 > ANY (old_c) OR {max_stored} < ANY (old_c)
    THEN
        PERFORM {schema}.corrupt_v1(keys);
    END IF;
    new_a := old_a;
    new_b := old_b;
    new_c := old_c;
    log_key := 0;
    log_dirty := false;

    now := coalesce(at, least(greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0), {last_time}));
    IF at IS NOT NULL THEN
        shift := greatest((extract(epoch FROM began) * 1000000)::bigint - now, 0);
    END IF;
    result := array_fill(0::bigint, ARRAY[1 + numbers / {stride} * 4]);
    result[1] := now;
    w := 1;
    p := 0;
    WHILE p < numbers LOOP
        first_word := w;
        batch_end := p + {stride} * checks[p + 1]::integer;
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
                        level := CASE WHEN level > {max_stored} / p2 THEN {max_stored} ELSE level * p2 END;
                    END IF;
                    p4 := checks[q + 7];
                    gone := now / p4 - new_a[k] / p4;
                    level := {schema}.bucket_drained_v1(level, gone, checks[q + 6]);
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
                    IF locked OR heads IS NULL THEN
                        SELECT l AS head, CASE WHEN NOT locked THEN l.xmin END AS written_by INTO read
                            FROM {schema}.logs AS l WHERE l.key = keys[k];
                    ELSE
                        SELECT heads[k] AS head, writers[k] AS written_by INTO read;
                    END IF;
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
            q := q + {stride};
            w := w + 4;
        END LOOP;

        -- What becomes of it.
        q := p;
        w := first_word;
        WHILE q < batch_end LOOP
            IF batch_end > p + {stride} THEN
                -- With a single check, these are still what they were above.
                k := checks[q + 2];
                op := checks[q + 3];
                p2 := checks[q + 5];
                cost := checks[q + 8];
                level := result[w + 2];
                start := result[w + 3];
            END IF;
            IF op = 1 THEN
                q := q + {stride};
                w := w + 4;
                CONTINUE;
            END IF;
            CASE families[k]
            WHEN 0 THEN
                IF op = 0 AND admitted THEN
                    ok := true;
                    level := level + cost * p2;
                ELSIF op = 0 THEN
                    -- A denial from before the stored instant moves that back, so that nobody waits for it twice.
                    ok := new_a[k] > now;
                ELSIF op = 2 THEN
                    level := CASE WHEN cost > ({max_stored} - level) / p2 THEN {max_stored} ELSE level + cost * p2 END;
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
                    expires[k] := shift + {schema}.bucket_expiry_v1(level, checks[q + 6], checks[q + 7], now);
                END IF;
            WHEN 1, 2 THEN
                IF start < 0 THEN
                    p3 := checks[q + 6];
                    start := CASE WHEN p3 < 0 THEN now ELSE greatest(now - (now + p2 - p3) % p2, 0) END;
                END IF;
                IF op = 0 AND admitted THEN
                    ok := true;
                    level := level + cost;
                ELSIF op = 0 THEN
                    ok := new_a[k] > now;
                ELSE
                    IF op = 2 THEN
                        level := least(level + cost, {max_stored});
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
                    result[w + 3] := start;
                    -- A sliding window weighs for one period more.
                    expires[k] := shift + start + families[k] * p2;
                END IF;
            ELSE
                IF log_key <> k THEN
                    IF log_dirty THEN
                        PERFORM {schema}.log_stored_v1(log, log_period, at);
                        log_dirty := false;
                    END IF;
                    -- Without locks, only a batch of several checks comes here, and its heads were read together.
                    log := CASE WHEN locked THEN {schema}.log_head_v1(keys[k]) ELSE heads[k] END;
                    log_key := CASE WHEN locked THEN k ELSE 0 END;
                END IF;
                IF op = 2 THEN
                    cost := least(cost, {max_stored} - result[w + 2]);
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
                    IF op = 2 OR op = 0 AND admitted THEN
                        log := {schema}.log_pushed_v1(log, now, cost);
                    END IF;
                    IF op > 1 THEN
                        view := {schema}.log_view_v1(log, NULL, p2, 0, 1, now);
                        result[w + 2] := view[2];
                        result[w + 4] := view[4];
                    ELSIF admitted THEN
                        result[w + 2] := result[w + 2] + cost;
                        result[w + 4] := now + p2;
                    END IF;
                    log_period := p2;
                    log_dirty := log_dirty OR ok;
                    made[k] := made[k] AND NOT ok;
                END IF;
            END CASE;
            q := q + {stride};
            w := w + 4;
        END LOOP;
        p := batch_end;
    END LOOP;
    IF log_dirty THEN
        PERFORM {schema}.log_stored_v1(log, log_period, at);
    END IF;

    -- Write what changed, in the order of the keys.
    IF locked THEN
        FOR i IN 1 .. key_count LOOP
            IF expires[i] IS NOT NULL THEN
                UPDATE {schema}.counters AS t
                    SET expires_at = expires[i], a = new_a[i], b = new_b[i], c = new_c[i]
                    WHERE t.key = keys[i];
            ELSIF made[i] THEN
                PERFORM {schema}.unmade_v1(keys[i], families[i]);
            END IF;
        END LOOP;
        RETURN result;
    END IF;
    affected := key_count - cardinality(array_positions(expires, NULL));
    EXIT WHEN affected = 0;
    setting := set_config('lock_timeout', lock_wait::text, true);
    setting := set_config('synchronous_commit', commit, true);
    fresh := 0;
    IF affected >= {many} THEN
        -- NULL is a row to make, or a log.
        IF array_position(old_a, NULL) IS NOT NULL THEN
            INSERT INTO {schema}.counters (expires_at, a, b, c, key)
                SELECT expires[i], new_a[i], new_b[i], new_c[i], keys[i]
                    FROM generate_subscripts(keys, 1) AS i
                    WHERE expires[i] IS NOT NULL AND old_a[i] IS NULL
                    ORDER BY i
                ON CONFLICT (key) DO NOTHING;
            GET DIAGNOSTICS fresh = ROW_COUNT;
        END IF;
        IF fresh < affected THEN
            UPDATE {schema}.counters AS t SET expires_at = expires[i], a = new_a[i], b = new_b[i], c = new_c[i]
                FROM generate_subscripts(keys, 1) AS i
                WHERE expires[i] IS NOT NULL AND old_a[i] IS NOT NULL
                    AND t.key = keys[i] AND t.a = old_a[i] AND t.b = old_b[i] AND t.c = old_c[i];
            GET DIAGNOSTICS written = ROW_COUNT;
        END IF;
    ELSE
        missing := 0;
        FOR i IN 1 .. key_count LOOP
            CONTINUE WHEN expires[i] IS NULL OR old_a[i] IS NOT NULL;
            missing := missing + 1;
            INSERT INTO {schema}.counters (expires_at, a, b, c, key)
                VALUES (expires[i], new_a[i], new_b[i], new_c[i], keys[i])
                ON CONFLICT (key) DO NOTHING;
            EXIT WHEN NOT FOUND;
            fresh := fresh + 1;
        END LOOP;
        FOR i IN 1 .. key_count LOOP
            EXIT WHEN fresh < missing;
            CONTINUE WHEN expires[i] IS NULL OR old_a[i] IS NULL;
            IF written > 0 AND clock_timestamp() > began + interval '2 milliseconds' THEN
                PERFORM {schema}.lock_wait_left_v1(lock_wait, began);
            END IF;
            UPDATE {schema}.counters AS t
                SET expires_at = expires[i], a = new_a[i], b = new_b[i], c = new_c[i]
                WHERE t.key = keys[i] AND t.a = old_a[i] AND t.b = old_b[i] AND t.c = old_c[i];
            EXIT WHEN NOT FOUND;
            written := written + 1;
        END LOOP;
    END IF;
    written := written + fresh;
    IF written = 0 AND key_count = 1 THEN
        locked := true;
        CONTINUE attempt;
    END IF;
    -- Rows already written are locked, and so are those that a write waited for in vain: to lock others now could be out
    -- of order. A long wait has made the instant stale. Either way the caller asks again, with locks from the start.
    IF written < affected OR at IS NULL AND clock_timestamp() > began + interval '200 milliseconds' THEN
        PERFORM {schema}.raced_v1();
    END IF;
    EXIT;
END LOOP;
    RETURN result;
END
$function$;
