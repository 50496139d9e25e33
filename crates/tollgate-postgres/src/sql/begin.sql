-- One at a time: CREATE ... IF NOT EXISTS fails when two run it at once.
SELECT pg_advisory_xact_lock(hashtextextended('tollgate schema {schema}', 0));

-- Functions in SQL keep the operators that are found when they are made.
SET LOCAL search_path = pg_catalog, pg_temp;

DO $do$
DECLARE
    present integer;
BEGIN
    -- CREATE SCHEMA IF NOT EXISTS asks for the right to create even where there is nothing to do.
    IF to_regnamespace('{schema}') IS NULL THEN
        CREATE SCHEMA {schema};
    END IF;
    IF to_regclass('{schema}.version') IS NOT NULL THEN
        SELECT max(v.version) INTO present FROM {schema}.version AS v;
        IF present > {version} THEN
            RAISE EXCEPTION 'the schema {schema} has version %, and this script makes version {version}', present
                USING ERRCODE = 'TG002', HINT = 'Use a newer library.';
        END IF;
    END IF;
END
$do$;
