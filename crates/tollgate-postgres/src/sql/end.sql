INSERT INTO {schema}.version (version) VALUES ({version})
    ON CONFLICT (only_row) DO UPDATE SET version = excluded.version;
