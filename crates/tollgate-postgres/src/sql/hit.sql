-- Judges hits on one bucket, all of one cost: what most calls of a lone caller consist of. It answers as apply_v1 does, with a
-- third of the expressions, each of which PL/pgSQL sets up anew in every transaction.
--
-- of_key                          the key
-- capacity, unit, drain, tick     the bucket
-- cost, times                     what a hit costs, and how many there are
-- at, lock_wait, commit           as in apply_v1
--
-- Returns the instant, how many hits are admitted, and the level before any of them.
--
-- Error TG001 asks for a call of apply_v1 in place of this one: a row changed twice while it was judged, the call had to wait
-- for long, a policy has changed and the level has to be counted in other units, or the row is not one of this schema's.
CREATE OR REPLACE FUNCTION {schema}.hit_v1(
    of_key bytea, capacity bigint, unit bigint, drain bigint, tick bigint, cost bigint, times bigint,
    at bigint, lock_wait integer, commit text
) RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $function$
DECLARE
    began    CONSTANT timestamptz := clock_timestamp();
    now      bigint;
    old_a    bigint;
    old_b    bigint;
    old_c    bigint;
    level    bigint;
    new_b    bigint;
    admitted bigint;
    expires  bigint;
    locked   boolean := false;
    setting  text;
BEGIN
LOOP
    IF locked THEN
        PERFORM {schema}.lock_wait_left_v1(lock_wait, began);
        SELECT t.a, t.b, t.c INTO old_a, old_b, old_c FROM {schema}.counters AS t WHERE t.key = of_key FOR UPDATE;
    ELSE
        SELECT t.a, t.b, t.c INTO old_a, old_b, old_c FROM {schema}.counters AS t WHERE t.key = of_key;
    END IF;
    -- The clock is read after the row is.
    now := coalesce(at, least(greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 0), {last_time}));
    level := 0;
    IF old_a IS NOT NULL THEN
        IF old_c <> unit OR old_a < 0 OR old_a > {last_time} OR old_b < 0 OR old_b > {max_stored} THEN
            PERFORM {schema}.raced_v1();
        END IF;
        level := {schema}.bucket_drained_v1(old_b, now / tick - old_a / tick, drain);
    END IF;
    admitted := CASE WHEN cost > capacity OR level > (capacity - cost) * unit THEN 0
        ELSE least(times, (capacity * unit - level) / (cost * unit)) END;
    -- A denial from before the stored instant moves that back, so that nobody waits for it twice.
    IF admitted = 0 AND (old_a IS NULL OR old_a <= now) THEN
        RETURN ARRAY[now, admitted, level];
    END IF;

    new_b := level + admitted * cost * unit;
    expires := {schema}.bucket_expiry_v1(new_b, drain, tick, now);
    IF at IS NOT NULL THEN
        -- The sweeper goes by the clock, which knows nothing of an instant that the caller named.
        expires := expires + greatest((extract(epoch FROM began) * 1000000)::bigint - now, 0);
    END IF;
    setting := set_config('lock_timeout', lock_wait::text, true);
    setting := set_config('synchronous_commit', commit, true);
    IF old_a IS NULL THEN
        INSERT INTO {schema}.counters (expires_at, a, b, c, key) VALUES (expires, now, new_b, unit, of_key)
            ON CONFLICT (key) DO NOTHING;
    ELSE
        UPDATE {schema}.counters AS t SET expires_at = expires, a = now, b = new_b
            WHERE t.key = of_key AND t.a = old_a AND t.b = old_b AND t.c = old_c;
    END IF;
    IF FOUND THEN
        -- A long wait has made the instant stale.
        IF at IS NULL AND clock_timestamp() > began + interval '200 milliseconds' THEN
            PERFORM {schema}.raced_v1();
        END IF;
        RETURN ARRAY[now, admitted, level];
    END IF;
    IF locked THEN
        PERFORM {schema}.raced_v1();
    END IF;
    locked := true;
END LOOP;
END
$function$;
