-- Gives the next wait for a row what earlier ones have left over, at least a millisecond.
CREATE OR REPLACE FUNCTION {schema}.lock_wait_left_v1(lock_wait integer, began timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    waited bigint := floor(extract(epoch FROM clock_timestamp() - began) * 1000);
BEGIN
    PERFORM set_config('lock_timeout', greatest(lock_wait - waited, 1)::text, true);
END
$function$;

-- Undoes the call and asks for another one, with locks from the start.
CREATE OR REPLACE FUNCTION {schema}.raced_v1() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    RAISE EXCEPTION 'a row changed while it was judged' USING ERRCODE = 'TG001';
END
$function$;

-- Takes away a row that was made to be locked, and is not needed.
CREATE OR REPLACE FUNCTION {schema}.unmade_v1(of_key bytea, family smallint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    IF family = 3 THEN
        DELETE FROM {schema}.logs AS l WHERE l.key = of_key;
    ELSE
        DELETE FROM {schema}.counters AS t WHERE t.key = of_key;
    END IF;
END
$function$;

-- Names the first row among `keys` that no call of this schema has written.
CREATE OR REPLACE FUNCTION {schema}.corrupt_v1(keys bytea[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    found {schema}.counters;
BEGIN
    SELECT * INTO found FROM {schema}.counters AS t
        WHERE t.key = ANY (keys) AND NOT (
            t.a BETWEEN 0 AND 8000000000000000
            AND t.b BETWEEN 0 AND 9007199254740991
            AND t.c BETWEEN 0 AND 9007199254740991
        )
        LIMIT 1;
    RAISE EXCEPTION 'the row of key % holds (%, %, %)', encode(found.key, 'hex'), found.a, found.b, found.c
        USING ERRCODE = 'data_corrupted';
END
$function$;

-- What drains from a bucket's level in so many ticks. Divided first, since the product may leave the range.
CREATE OR REPLACE FUNCTION {schema}.bucket_drained_v1(level bigint, ticks bigint, drain bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN ticks <= 0 OR drain = 0 THEN level
    WHEN ticks > level / drain THEN 0
    ELSE level - ticks * drain
END;

-- When a bucket's row may go: a tick more than it takes to drain, since the instant may lie within one.
CREATE OR REPLACE FUNCTION {schema}.bucket_expiry_v1(level bigint, drain bigint, tick bigint, now bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN drain = 0 THEN now
    WHEN level / drain > ({max_stored} - now) / tick - 2 THEN {max_stored}
    ELSE now + (level / drain + 2) * tick
END;

-- A bucket's level once units of an earlier hit are given back, as far as they have not drained yet, first in first out.
-- Rare, and the numbers come from outside: arithmetic without a range.
CREATE OR REPLACE FUNCTION {schema}.bucket_given_back_v1(
    level bigint, units bigint, unit bigint, drain bigint, tick bigint, charged_at bigint, mark bigint, now bigint
) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    unsigned CONSTANT numeric := 18446744073709551616;
    drained  numeric := least(greatest(now / tick - charged_at / tick, 0)::numeric * drain, unsigned - 1);
    ended_at numeric := CASE WHEN mark < 0 THEN mark + unsigned ELSE mark END;
BEGIN
    RETURN greatest(level - least(units::numeric * unit, greatest(ended_at - drained, 0)), 0);
END
$function$;

-- Forgets keys. Returns how many there were to forget. `keys` holds every key once, in ascending order.
CREATE OR REPLACE FUNCTION {schema}.reset_v1(keys bytea[], lock_wait integer, commit text) RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $function$
DECLARE
    forgotten bigint := 0;
BEGIN
    PERFORM set_config('lock_timeout', lock_wait::text, true), set_config('synchronous_commit', commit, true);
    FOR i IN 1 .. cardinality(keys) LOOP
        DELETE FROM {schema}.counters AS t WHERE t.key = keys[i];
        IF FOUND THEN
            forgotten := forgotten + 1;
            CONTINUE;
        END IF;
        DELETE FROM {schema}.logs AS l WHERE l.key = keys[i];
        IF FOUND THEN
            forgotten := forgotten + 1;
            DELETE FROM {schema}.log_chunks AS c WHERE c.key = keys[i];
        END IF;
    END LOOP;
    RETURN forgotten;
END
$function$;
