-- Judges hits on buckets, all at one instant: what most calls of many callers consist of. It answers as apply_v1 does,
-- but judges all of them by one query, where apply_v1 goes from check to check.
--
-- keys      every key once, in ascending order
-- hits      six numbers per key: capacity, unit, drain, tick, the cost of a hit, and how many hits there are
-- at, lock_wait, commit   as in apply_v1
--
-- Returns the instant, then how many hits of each key are admitted, then each key's level before any of them.
--
-- Error TG001 asks for a call of apply_v1 in place of this one: a row changed while it was judged, the call had to wait for
-- long, or a policy has changed and the level has to be counted in other units.
CREATE OR REPLACE FUNCTION {schema}.hits_v1(
    keys bytea[], hits bigint[], at bigint, lock_wait integer, commit text
) RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- One plan, whatever the arrays hold: planning takes as long as judging.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
DECLARE
    began    CONSTANT timestamptz := clock_timestamp();
    now      bigint;
    -- The sweeper goes by the clock, which knows nothing of an instant that the caller named.
    shift    bigint := 0;
    -- The rows by key, and where they lie; NULL for a key never seen.
    old_a bigint[]; old_b bigint[]; old_c bigint[]; places tid[];
    levels   bigint[];
    admitted bigint[];
    -- Levels to write, and when the rows may go; NULL for a row that does not change.
    new_b    bigint[];
    expires  bigint[];
    changed  bigint;
    missing  bigint;
    written  bigint := 0;
    fresh    bigint := 0;
    other_unit boolean;
    setting  text;
BEGIN
    SELECT array_agg(r.a), array_agg(r.b), array_agg(r.c), array_agg(r.ctid)
        INTO old_a, old_b, old_c, places
        FROM (
            SELECT t.a, t.b, t.c, t.ctid
                FROM generate_subscripts(keys, 1) AS i
                LEFT JOIN {schema}.counters AS t ON t.key = keys[i]
                ORDER BY i
        ) AS r;
    IF  0 > ANY (old_a) OR {last_time} < ANY (old_a) OR 0 > ANY (old_b) OR {max_stored} < ANY (old_b)
        OR 0 > ANY (old_c) OR {max_stored} < ANY (old_c)
    THEN
        PERFORM {schema}.corrupt_v1(keys);
    END IF;

    -- The clock is read after the rows are.
    now := coalesce(at, least(greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0), {last_time}));
    IF at IS NOT NULL THEN
        shift := greatest((extract(epoch FROM began) * 1000000)::bigint - now, 0);
    END IF;
    -- OFFSET 0 keeps the planner from working out a column again wherever it is used.
    SELECT array_agg(j.level), array_agg(j.admitted), array_agg(j.new_b), array_agg(j.expires), count(j.expires),
            count(j.expires) FILTER (WHERE j.is_new), bool_or(j.other_unit)
        INTO levels, admitted, new_b, expires, changed, missing, other_unit
        FROM (
            SELECT f.level, f.admitted, f.other_unit, f.a IS NULL AS is_new, f.level + f.admitted * f.cost * f.unit AS new_b,
                -- A denial from before the stored instant moves that back, so that nobody waits for it twice.
                CASE WHEN f.admitted > 0 OR f.a > now THEN
                    shift + {schema}.bucket_expiry_v1(f.level + f.admitted * f.cost * f.unit, f.drain, f.tick, now)
                END AS expires
                FROM (
                    SELECT v.*,
                        CASE WHEN v.cost > v.capacity OR v.level > (v.capacity - v.cost) * v.unit THEN 0
                        ELSE least(v.times, (v.capacity * v.unit - v.level) / (v.cost * v.unit)) END AS admitted
                        FROM (
                            SELECT h.*, CASE WHEN h.a IS NULL THEN 0 ELSE
                                {schema}.bucket_drained_v1(h.b, now / h.tick - h.a / h.tick, h.drain)
                            END AS level
                                FROM (
                                    SELECT i, old_a[i] AS a, old_b[i] AS b, old_c[i] <> hits[6 * i - 4] AS other_unit,
                                        hits[6 * i - 5] AS capacity, hits[6 * i - 4] AS unit, hits[6 * i - 3] AS drain,
                                        hits[6 * i - 2] AS tick, hits[6 * i - 1] AS cost, hits[6 * i] AS times
                                        FROM generate_subscripts(keys, 1) AS i
                                        OFFSET 0
                                ) AS h
                                OFFSET 0
                        ) AS v
                        OFFSET 0
                ) AS f
                ORDER BY f.i
        ) AS j;
    IF other_unit THEN
        PERFORM {schema}.raced_v1();
    END IF;
    IF changed > 0 THEN
        setting := set_config('lock_timeout', lock_wait::text, true);
        setting := set_config('synchronous_commit', commit, true);
        -- Rows are made before any other is written, as in apply_v1.
        IF missing > 0 THEN
            INSERT INTO {schema}.counters (expires_at, a, b, c, key)
                SELECT expires[i], now, new_b[i], hits[6 * i - 4], keys[i]
                    FROM generate_subscripts(keys, 1) AS i
                    WHERE expires[i] IS NOT NULL AND old_a[i] IS NULL
                    ORDER BY i
                ON CONFLICT (key) DO NOTHING;
            GET DIAGNOSTICS fresh = ROW_COUNT;
            IF fresh < missing THEN
                PERFORM {schema}.raced_v1();
            END IF;
        END IF;
        IF fresh < changed THEN
            -- By its place a row is found without the index; the key says that it is still this row that lies there.
            UPDATE {schema}.counters AS t SET expires_at = expires[i], a = now, b = new_b[i]
                FROM generate_subscripts(keys, 1) AS i
                WHERE expires[i] IS NOT NULL AND old_a[i] IS NOT NULL AND t.ctid = places[i] AND t.key = keys[i]
                    AND t.a = old_a[i] AND t.b = old_b[i] AND t.c = hits[6 * i - 4];
            GET DIAGNOSTICS written = ROW_COUNT;
        END IF;
        IF written + fresh < changed OR at IS NULL AND clock_timestamp() > began + interval '200 milliseconds' THEN
            PERFORM {schema}.raced_v1();
        END IF;
    END IF;
    RETURN now || admitted || levels;
END
$function$;
