-- A row that another program has changed, deleted or added is damage. Our programs say for which agent they work, in every
-- transaction; who does not is a stranger, and the generation gets a mark that its readers look at: `contents` below 0.
CREATE FUNCTION {schema}.mark_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    PERFORM set_config('plainmind.agent', TG_ARGV[1], true);
    UPDATE generations SET contents = -1 WHERE id = TG_ARGV[0]::integer;
    PERFORM set_config('plainmind.agent', '', true);
    RETURN NULL;
END
$$;

CREATE FUNCTION {schema}.watch_table(made text, agent text) RETURNS void
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
BEGIN
    EXECUTE format($watch$
        CREATE TRIGGER strangers AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {schema}.%I
         FOR EACH STATEMENT WHEN (coalesce(current_setting('plainmind.agent', true), '') = '')
         EXECUTE FUNCTION {schema}.mark_changed(%L, %L)
        $watch$, made, split_part(made, '_', 2), agent);
END
$$;

CREATE OR REPLACE FUNCTION {schema}.guard_table(made text, agent text) RETURNS void
LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', made);
    EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', made);
    EXECUTE format($policy$
        CREATE POLICY own ON {schema}.%I
         USING ((SELECT current_setting('plainmind.agent', true)) = %L
                AND ((SELECT current_setting('plainmind.scopes', true)) = '*'
                     OR scope = ANY ((SELECT {schema}.named_scopes())::text[])))
        $policy$, made, agent);
    PERFORM watch_table(made, agent);
END
$$;

REVOKE ALL ON FUNCTION {schema}.mark_changed, {schema}.watch_table FROM PUBLIC;

-- The generations that are there already. Their agents are read from the policies: rows would be hidden from us here.
DO $existing$
DECLARE
    guarded record;
BEGIN
    FOR guarded IN
        SELECT tablename, substring(qual FROM $q$= '((?:[^']|'')*)'::text$q$) AS agent
          FROM pg_policies
         WHERE schemaname = {schema_name} AND policyname = 'own' AND tablename ~ '^(files|chunks|vectors|segments|positions|postings)_[0-9]+$'
    LOOP
        PERFORM {schema}.watch_table(guarded.tablename, replace(guarded.agent, '''''', ''''));
    END LOOP;
END
$existing$;
