-- Takes away expired rows on `page_count` pages of `counters`, or of `logs`, from `first_page` on.
--
-- Rows that somebody holds are left for the next time. One call at a time per schema: while another one is at work, a
-- call does nothing. Returns how many rows went, and 1 if pages are left, 0 if not, -1 if another call is at work.
CREATE OR REPLACE FUNCTION {schema}.sweep_v1(logs boolean, first_page bigint, page_count bigint) RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    first_row CONSTANT tid := format('(%s,0)', first_page)::tid;
    after_row CONSTANT tid := format('(%s,0)', first_page + page_count)::tid;
    -- A clock that is set back by up to a minute finds everything it needs.
    expired   CONSTANT bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 60000000;
    swept     bigint;
    pages     bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('tollgate sweep {schema}', 0)) THEN
        RETURN ARRAY[0, -1];
    END IF;
    -- What is lost with a crash is swept again.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF logs THEN
        WITH dead AS (
            SELECT l.ctid FROM {schema}.logs AS l
                WHERE l.ctid >= first_row AND l.ctid < after_row AND l.expires_at <= expired
                FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM {schema}.logs AS l WHERE l.ctid = ANY (ARRAY(SELECT d.ctid FROM dead AS d)) RETURNING l.key
        ), chunks AS (
            DELETE FROM {schema}.log_chunks AS c USING gone AS g WHERE c.key = g.key
        )
        SELECT count(*) INTO swept FROM gone;
        pages := pg_relation_size('{schema}.logs') / current_setting('block_size')::bigint;
    ELSE
        WITH dead AS (
            SELECT t.ctid FROM {schema}.counters AS t
                WHERE t.ctid >= first_row AND t.ctid < after_row AND t.expires_at <= expired
                FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM {schema}.counters AS t WHERE t.ctid = ANY (ARRAY(SELECT d.ctid FROM dead AS d)) RETURNING 1
        )
        SELECT count(*) INTO swept FROM gone;
        pages := pg_relation_size('{schema}.counters') / current_setting('block_size')::bigint;
    END IF;
    RETURN ARRAY[swept, CASE WHEN first_page + page_count < pages THEN 1 ELSE 0 END];
END
$function$;

-- The whole of both tables, in a transaction for every 64 pages: for pg_cron, as `CALL {schema}.sweep_all_v1()`.
-- A procedure that ends transactions cannot pin its search_path, so everything in it is named in full.
CREATE OR REPLACE PROCEDURE {schema}.sweep_all_v1()
LANGUAGE plpgsql AS $procedure$
DECLARE
    outcome bigint[];
    page    bigint;
BEGIN
    FOR is_log IN 0 .. 1 LOOP
        page := 0;
        LOOP
            outcome := {schema}.sweep_v1(is_log OPERATOR(pg_catalog.=) 1, page, 64);
            COMMIT;
            EXIT WHEN outcome[2] OPERATOR(pg_catalog.<>) 1;
            page := page OPERATOR(pg_catalog.+) 64;
        END LOOP;
    END LOOP;
END
$procedure$;
