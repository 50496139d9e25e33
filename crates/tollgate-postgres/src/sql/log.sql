-- The sliding log. Entries lie flat in arrays: instant, total, instant, total, oldest first, totals rising.

-- How many entries were made at `until` or before.
CREATE OR REPLACE FUNCTION {schema}.log_made_by_v1(entries bigint[], until bigint) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    low  integer := 0;
    high integer := cardinality(entries) / 2;
    mid  integer;
BEGIN
    WHILE low < high LOOP
        mid := (low + high) / 2;
        IF entries[2 * mid + 1] <= until THEN
            low := mid + 1;
        ELSE
            high := mid;
        END IF;
    END LOOP;
    RETURN low;
END
$function$;

-- The first entry whose total reaches `target`, as its place counted from 1.
CREATE OR REPLACE FUNCTION {schema}.log_reaching_v1(entries bigint[], target bigint) RETURNS integer
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    low  integer := 0;
    high integer := cardinality(entries) / 2;
    mid  integer;
BEGIN
    WHILE low < high LOOP
        mid := (low + high) / 2;
        IF entries[2 * mid + 2] < target THEN
            low := mid + 1;
        ELSE
            high := mid;
        END IF;
    END LOOP;
    RETURN low + 1;
END
$function$;

-- Every total lowered by `units`.
CREATE OR REPLACE FUNCTION {schema}.log_lowered_v1(entries bigint[], units bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    FOR i IN 1 .. cardinality(entries) / 2 LOOP
        entries[2 * i] := entries[2 * i] - units;
    END LOOP;
    RETURN entries;
END
$function$;

-- The running total of the newest entry.
CREATE OR REPLACE FUNCTION {schema}.log_total_v1(head {schema}.logs) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    RETURN coalesce(head.tail[cardinality(head.tail)], head.tail_base);
END
$function$;

-- The running total of everything that no longer counts at `now`.
-- A head that is not locked comes with the transaction that wrote it; NULL if it has been overwritten since, because
-- its chunks may no longer be the ones it speaks of.
CREATE OR REPLACE FUNCTION {schema}.log_before_v1(head {schema}.logs, written_by xid, period bigint, now bigint)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    before  bigint := head.tail_base;
    chunk   {schema}.log_chunks;
    expired integer;
BEGIN
    IF head.tail[1] + period <= now THEN
        before := head.tail[2 * {schema}.log_made_by_v1(head.tail, now - period)];
    ELSIF head.chunked AND head.tail_base > head.base THEN
        SELECT * INTO chunk FROM {schema}.log_chunks AS c
            WHERE c.key = head.key AND c.last_at > now - period
            ORDER BY c.key, c.last_at LIMIT 1;
        IF FOUND THEN
            expired := {schema}.log_made_by_v1(chunk.entries, now - period);
            before := CASE WHEN expired = 0 THEN chunk.base ELSE chunk.entries[2 * expired] END;
        END IF;
        IF written_by IS NOT NULL THEN
            PERFORM 1 FROM {schema}.logs AS l WHERE l.key = head.key AND l.xmin = written_by;
            IF NOT FOUND THEN
                RETURN NULL;
            END IF;
        END IF;
    END IF;
    RETURN greatest(before, head.base);
END
$function$;

-- Judges a hit of `cost`: allowed, used, the instant it fits (0 if it does or never will), the instant all is forgotten.
-- NULL as above.
CREATE OR REPLACE FUNCTION {schema}.log_view_v1(
    head {schema}.logs, written_by xid, period bigint, quota bigint, cost bigint, now bigint
) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    total   bigint := {schema}.log_total_v1(head);
    before  bigint;
    used    bigint;
    target  bigint;
    entries bigint[];
    reset_at bigint;
BEGIN
    IF cardinality(head.tail) % 2 <> 0 OR total < head.base THEN
        RAISE EXCEPTION 'the log of key % ends in the middle of an entry', encode(head.key, 'hex')
            USING ERRCODE = 'data_corrupted';
    ELSIF total = head.base THEN
        RETURN ARRAY[CASE WHEN cost <= quota THEN 1 ELSE 0 END, 0, 0, now];
    END IF;
    before := {schema}.log_before_v1(head, written_by, period, now);
    IF before IS NULL THEN
        RETURN NULL;
    END IF;
    used := total - before;
    -- An entry from the future counts as made now, which is what the next hit makes of it.
    reset_at := greatest(least(head.tail[cardinality(head.tail) - 1], now) + period, now);
    IF cost > quota THEN
        RETURN ARRAY[0, used, 0, reset_at];
    ELSIF used <= quota - cost THEN
        RETURN ARRAY[1, used, 0, reset_at];
    END IF;
    target := before + used - (quota - cost);
    entries := head.tail;
    IF target <= head.tail_base THEN
        SELECT c.entries INTO entries FROM {schema}.log_chunks AS c
            WHERE c.key = head.key AND c.last_total >= target
            ORDER BY c.key, c.last_total LIMIT 1;
        IF written_by IS NOT NULL THEN
            PERFORM 1 FROM {schema}.logs AS l WHERE l.key = head.key AND l.xmin = written_by;
            IF NOT FOUND THEN
                RETURN NULL;
            END IF;
        END IF;
    END IF;
    RETURN ARRAY[
        0, used,
        least(entries[2 * {schema}.log_reaching_v1(entries, target) - 1], now) + period,
        reset_at
    ];
END
$function$;

-- Moves everything later than `now` to `now`. The head is locked.
CREATE OR REPLACE FUNCTION {schema}.log_rewound_v1(head {schema}.logs, now bigint) RETURNS {schema}.logs
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    total  bigint := {schema}.log_total_v1(head);
    pulled bigint[];
    base   bigint;
    kept   integer;
BEGIN
    IF head.chunked AND head.tail[1] > now THEN
        WITH gone AS (
            DELETE FROM {schema}.log_chunks AS c WHERE c.key = head.key AND c.last_at >= now RETURNING c.*
        )
        SELECT array_agg(e.number ORDER BY g.last_at, e.place), min(g.base)
            INTO pulled, base
            FROM gone AS g, unnest(g.entries) WITH ORDINALITY AS e (number, place);
        IF pulled IS NOT NULL THEN
            head.tail := pulled || head.tail;
            head.tail_base := base;
        END IF;
    END IF;
    kept := {schema}.log_made_by_v1(head.tail, now);
    head.tail := head.tail[1 : 2 * kept];
    IF kept > 0 AND head.tail[2 * kept - 1] = now THEN
        head.tail[2 * kept] := total;
    ELSE
        head.tail := head.tail || ARRAY[now, total];
    END IF;
    RETURN head;
END
$function$;

-- Brings the log to `now`: nothing lies in the future, nothing expired counts any more. The head is locked.
CREATE OR REPLACE FUNCTION {schema}.log_advanced_v1(head {schema}.logs, period bigint, now bigint)
RETURNS {schema}.logs
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    total bigint := {schema}.log_total_v1(head);
BEGIN
    IF head.tail[cardinality(head.tail) - 1] > now THEN
        head := {schema}.log_rewound_v1(head, now);
    END IF;
    head.base := {schema}.log_before_v1(head, NULL, period, now);
    IF head.base = total THEN
        head.tail := '{}';
        head.tail_base := total;
        IF head.chunked THEN
            DELETE FROM {schema}.log_chunks AS c WHERE c.key = head.key;
            head.chunked := false;
        END IF;
    END IF;
    RETURN head;
END
$function$;

-- Makes room in a full tail: what no longer counts goes, what does moves to a chunk. The head is locked.
CREATE OR REPLACE FUNCTION {schema}.log_flushed_v1(head {schema}.logs) RETURNS {schema}.logs
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    total   bigint := {schema}.log_total_v1(head);
    dropped integer;
BEGIN
    DELETE FROM {schema}.log_chunks AS c WHERE c.key = head.key AND c.last_total <= head.base;
    head.chunked := head.chunked AND head.base < head.tail_base;
    dropped := {schema}.log_reaching_v1(head.tail, head.base + 1) - 1;
    IF dropped > 0 THEN
        head.tail_base := head.tail[2 * dropped];
        head.tail := head.tail[2 * dropped + 1 :];
    END IF;
    IF 4 * dropped < cardinality(head.tail) THEN
        INSERT INTO {schema}.log_chunks (key, last_at, last_total, base, entries)
            VALUES (head.key, head.tail[cardinality(head.tail) - 1], total, head.tail_base, head.tail);
        head.tail := '{}';
        head.tail_base := total;
        head.chunked := true;
    END IF;
    -- Totals only ever rise; long before they leave the range, they start over from what still counts.
    IF total > 4000000000000000000 THEN
        UPDATE {schema}.log_chunks AS c SET
            last_total = c.last_total - head.base,
            base = c.base - head.base,
            entries = {schema}.log_lowered_v1(c.entries, head.base)
            WHERE c.key = head.key;
        head.tail := {schema}.log_lowered_v1(head.tail, head.base);
        head.tail_base := head.tail_base - head.base;
        head.base := 0;
    END IF;
    RETURN head;
END
$function$;

-- Charges `units` at `now` to a log that has been brought to `now`. The head is locked.
CREATE OR REPLACE FUNCTION {schema}.log_pushed_v1(head {schema}.logs, now bigint, units bigint)
RETURNS {schema}.logs
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    filled integer := cardinality(head.tail);
BEGIN
    IF filled > 0 AND head.tail[filled - 1] = now THEN
        head.tail[filled] := head.tail[filled] + units;
        RETURN head;
    END IF;
    -- 32 entries are half a kilobyte: enough to make chunks rare, little enough to be written with every hit.
    IF filled >= 64 THEN
        head := {schema}.log_flushed_v1(head);
    END IF;
    head.tail := head.tail || ARRAY[now, {schema}.log_total_v1(head) + units];
    RETURN head;
END
$function$;

-- Gives back up to `units` of what was charged at `charged_at`; the head stays as it is if there is nothing to give.
-- The head is locked. Work in proportion to the hits admitted since.
CREATE OR REPLACE FUNCTION {schema}.log_given_back_v1(head {schema}.logs, charged_at bigint, units bigint)
RETURNS {schema}.logs
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    chunk   {schema}.log_chunks;
    kept    bigint[] := head.tail;
    before  bigint := head.tail_base;
    in_tail boolean := coalesce(head.tail[1] <= charged_at, false);
    place   integer;
    back    bigint;
BEGIN
    IF NOT in_tail THEN
        SELECT * INTO chunk FROM {schema}.log_chunks AS c
            WHERE c.key = head.key AND c.last_at >= charged_at
            ORDER BY c.key, c.last_at LIMIT 1;
        IF NOT FOUND THEN
            RETURN head;
        END IF;
        kept := chunk.entries;
        before := chunk.base;
    END IF;
    place := {schema}.log_made_by_v1(kept, charged_at);
    IF place = 0 OR kept[2 * place - 1] <> charged_at THEN
        RETURN head;
    END IF;
    IF place > 1 THEN
        before := kept[2 * place - 2];
    END IF;
    before := greatest(before, head.base);
    back := least(units, kept[2 * place] - before);
    IF back <= 0 THEN
        RETURN head;
    END IF;

    kept := kept[1 : 2 * place - 2] || {schema}.log_lowered_v1(kept[2 * place - 1 :], back);
    IF kept[2 * place] = before THEN
        kept := kept[1 : 2 * place - 2] || kept[2 * place + 1 :];
    END IF;
    IF in_tail THEN
        head.tail := kept;
    ELSE
        UPDATE {schema}.log_chunks AS c SET
            last_total = c.last_total - back,
            base = c.base - back,
            entries = {schema}.log_lowered_v1(c.entries, back)
            WHERE c.key = head.key AND c.last_at > chunk.last_at;
        IF cardinality(kept) = 0 THEN
            DELETE FROM {schema}.log_chunks AS c WHERE c.key = head.key AND c.last_at = chunk.last_at;
        ELSE
            UPDATE {schema}.log_chunks AS c SET
                last_at = kept[cardinality(kept) - 1],
                last_total = kept[cardinality(kept)],
                entries = kept
                WHERE c.key = head.key AND c.last_at = chunk.last_at;
        END IF;
        head.tail := {schema}.log_lowered_v1(head.tail, back);
        head.tail_base := head.tail_base - back;
    END IF;
    -- The newest entry always stands in the tail.
    IF cardinality(head.tail) = 0 AND head.chunked THEN
        DELETE FROM {schema}.log_chunks AS c
            WHERE c.key = head.key AND c.last_total = head.tail_base
            RETURNING c.* INTO chunk;
        IF FOUND THEN
            head.tail := chunk.entries;
            head.tail_base := chunk.base;
        END IF;
    END IF;
    RETURN head;
END
$function$;

-- The head of a key's log; an empty one if the key was never seen.
CREATE OR REPLACE FUNCTION {schema}.log_head_v1(of_key bytea) RETURNS {schema}.logs
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    head {schema}.logs;
BEGIN
    SELECT * INTO head FROM {schema}.logs AS l WHERE l.key = of_key;
    IF NOT FOUND THEN
        head := ROW(0, 0, 0, false, of_key, '{}');
    END IF;
    RETURN head;
END
$function$;

-- Writes a head that is locked. All is forgotten one period after the newest entry.
CREATE OR REPLACE FUNCTION {schema}.log_stored_v1(head {schema}.logs, period bigint, at bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    newest bigint := coalesce(head.tail[cardinality(head.tail) - 1], 0);
BEGIN
    IF at IS NOT NULL THEN
        -- The sweeper goes by the clock, which knows nothing of the instant the caller named.
        newest := greatest(newest, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
    END IF;
    UPDATE {schema}.logs AS l SET
        expires_at = newest + period, base = head.base, tail_base = head.tail_base,
        chunked = head.chunked, tail = head.tail
        WHERE l.key = head.key;
END
$function$;
