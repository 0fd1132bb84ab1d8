-- Names the agents that have indexed a workspace: whoever forgets a text of it takes it out of all their indexes.
CREATE FUNCTION {schema}.agents_of(of_workspace text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    PERFORM set_config('plainmind.listing', 'on', true);
    RETURN QUERY SELECT i.agent FROM indexes i WHERE i.workspace = of_workspace ORDER BY i.agent;
    PERFORM set_config('plainmind.listing', 'off', true);
END
$$;
REVOKE ALL ON FUNCTION {schema}.agents_of FROM PUBLIC;

-- Whoever may build an index of this schema already may call it.
DO $grant$
DECLARE
    role text;
BEGIN
    FOR role IN
        SELECT DISTINCT grantee.rolname
          FROM pg_proc made
          JOIN pg_namespace place ON place.oid = made.pronamespace AND place.nspname = {schema_name}
         CROSS JOIN aclexplode(made.proacl) AS given
          JOIN pg_roles grantee ON grantee.oid = given.grantee
         WHERE made.proname = 'make_generation' AND given.privilege_type = 'EXECUTE'
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION {schema}.agents_of TO %I', role);
    END LOOP;
END
$grant$;
