-- Takes away expired rows on the pages from `first_page` on, `page_count` of them, of `counters` or `logs`.
-- Rows that somebody holds are left for the next time. Returns how many went, and whether pages are left.
CREATE OR REPLACE FUNCTION {schema}.sweep_v1(
    logs boolean, first_page bigint, page_count bigint, expired_by bigint, OUT swept bigint, OUT more boolean
)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    first CONSTANT tid := format('(%s,0)', first_page)::tid;
    after CONSTANT tid := format('(%s,0)', first_page + page_count)::tid;
    pages bigint;
BEGIN
    IF logs THEN
        WITH dead AS (
            SELECT l.ctid FROM {schema}.logs AS l
                WHERE l.ctid >= first AND l.ctid < after AND l.expires_at <= expired_by
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
                WHERE t.ctid >= first AND t.ctid < after AND t.expires_at <= expired_by
                FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM {schema}.counters AS t WHERE t.ctid = ANY (ARRAY(SELECT d.ctid FROM dead AS d)) RETURNING 1
        )
        SELECT count(*) INTO swept FROM gone;
        pages := pg_relation_size('{schema}.counters') / current_setting('block_size')::bigint;
    END IF;
    more := first_page + page_count < pages;
END
$function$;
