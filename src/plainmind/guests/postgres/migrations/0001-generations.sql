-- Indexes and their generations. {schema} is the schema of the installation, {vectors} the one that pgvector is in.
--
-- A generation is one build of one index: tables of its own, made by a function, filled, published by one update, and
-- dropped as a whole when another one has taken its place. The names of its tables end with its number.
--
-- Everything is guarded by row-level security. `plainmind.agent` says whose rows a transaction may touch, and
-- `plainmind.scopes` which of them: `*`, or a JSON array of scopes. Where one of them is not set there are no rows.
--
-- Functions that run as the owner look up names here alone: where pgvector is, others may have made functions too.

CREATE TABLE {schema}.indexes (
    id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent     text NOT NULL,
    workspace text NOT NULL,
    published integer,                   -- the generation that answers; NULL: never built
    UNIQUE (agent, workspace)
);

CREATE TABLE {schema}.generations (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    index       integer NOT NULL REFERENCES {schema}.indexes (id),
    agent       text NOT NULL,           -- of the index
    fingerprint text NOT NULL,           -- how it is made, JSON
    reason      text NOT NULL,           -- why it was made
    dims        integer NOT NULL,
    graph       boolean NOT NULL DEFAULT false, -- whether its vectors have an HNSW index
    revision    bigint NOT NULL DEFAULT 0, -- grows by one with every change
    contents    bigint NOT NULL DEFAULT 0, -- a stamp, by the clock, of when a chunk last came or went
    next_id     bigint NOT NULL DEFAULT 1, -- ids below are taken, for ever
    begun       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX generations_of_index ON {schema}.generations (index);

CREATE FUNCTION {schema}.named_scopes() RETURNS text[]
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN current_setting('plainmind.scopes', true) LIKE '[%'
                THEN ARRAY(SELECT jsonb_array_elements_text(current_setting('plainmind.scopes', true)::jsonb))
                ELSE '{{}}'::text[] END
$$;

ALTER TABLE {schema}.indexes ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.indexes FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON {schema}.indexes USING (agent = (SELECT current_setting('plainmind.agent', true)));
ALTER TABLE {schema}.generations ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.generations FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON {schema}.generations USING (agent = (SELECT current_setting('plainmind.agent', true)));

-- Guards one table of a generation: by its agent, and by the scope that each of its rows has.
CREATE FUNCTION {schema}.guard_table(made text, agent text) RETURNS void
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
END
$$;

-- Makes the tables of a new generation, which nobody sees yet; returns its number.
CREATE FUNCTION {schema}.make_generation(of_index integer, made_as text, made_because text, made_dims integer)
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    owner text;
    g     integer;
BEGIN
    SELECT agent INTO STRICT owner
      FROM indexes WHERE id = of_index AND agent = current_setting('plainmind.agent', true);
    INSERT INTO generations (index, agent, fingerprint, reason, dims)
    VALUES (of_index, owner, made_as, made_because, made_dims) RETURNING id INTO g;
    EXECUTE format($files$
        CREATE TABLE {schema}.%I (
            id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name     bytea NOT NULL UNIQUE,  -- SHA-256 of source and path: a path can be too long for an index
            source   text NOT NULL,          -- memory, sessions
            path     text NOT NULL,          -- as cited
            hash     text NOT NULL,          -- SHA-256 of the bytes
            size     bigint NOT NULL,
            mtime_ns bigint NOT NULL,
            inode    bigint NOT NULL,        -- two's complement
            scope    text NOT NULL,          -- who may see it
            chunks   integer NOT NULL,
            tallest  integer NOT NULL        -- no chunk has a larger end_line - start_line
        )$files$, 'files_' || g);
    EXECUTE format($chunks$
        CREATE TABLE {schema}.%I (
            id         bigint PRIMARY KEY,   -- never used twice
            file       integer NOT NULL,
            ordinal    integer NOT NULL,
            start_line integer NOT NULL,
            end_line   integer NOT NULL,
            length     integer NOT NULL,     -- how many terms it has, as BM25 counts them
            scope      text NOT NULL,        -- of its file
            day        text,
            context    text NOT NULL,
            text       text NOT NULL
        )$chunks$, 'chunks_' || g);
    EXECUTE format('CREATE INDEX ON {schema}.%I (file, ordinal)', 'chunks_' || g);
    EXECUTE format('CREATE INDEX ON {schema}.%I (file, start_line)', 'chunks_' || g);
    EXECUTE format($vectors$
        CREATE TABLE {schema}.%I (
            id     bigint PRIMARY KEY,       -- of the chunk
            source text NOT NULL,
            scope  text NOT NULL,
            vector %s NOT NULL
        )$vectors$, 'vectors_' || g, '{vectors}.halfvec' || CASE WHEN made_dims > 0 THEN '(' || made_dims || ')' ELSE '' END);
    EXECUTE format($segments$
        CREATE TABLE {schema}.%I (
            number   integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            source   text NOT NULL,
            scope    text NOT NULL,
            first_id bigint NOT NULL,        -- segments of one source and scope have ids one after the other
            capacity integer NOT NULL,       -- positions that it takes, at most 65,536
            used     integer NOT NULL,       -- positions that have been given out
            living   integer NOT NULL,       -- positions that have a chunk
            terms    bigint NOT NULL,        -- the sum of the lengths of those
            revision bigint NOT NULL,        -- `contents` of the generation, at the last change of ids and lengths
            posted   bigint NOT NULL         -- the same, at the last change of postings
        )$segments$, 'segments_' || g);
    EXECUTE format($positions$
        CREATE TABLE {schema}.%I (
            segment integer PRIMARY KEY,
            scope   text NOT NULL,
            ids     bytea STORAGE EXTERNAL NOT NULL, -- int64 by position, ascending: of the chunk
            lengths bytea STORAGE EXTERNAL NOT NULL  -- uint16 by position: chunks.length, 0 for a hole
        )$positions$, 'positions_' || g);
    EXECUTE format($postings$
        CREATE TABLE {schema}.%I (
            segment   integer NOT NULL,
            term      text COLLATE "C" NOT NULL,     -- a long one by its SHA-256
            whole     text,                          -- a long one
            scope     text NOT NULL,
            positions bytea STORAGE EXTERNAL NOT NULL, -- uint16, ascending: where the term stands, or stood
            counts    bytea STORAGE EXTERNAL NOT NULL, -- a byte for each of them: how often
            PRIMARY KEY (segment, term)
        )$postings$, 'postings_' || g);
    -- Statistics are samples of what a column holds, kept where nobody could erase them.
    EXECUTE format('ALTER TABLE {schema}.%I ALTER path SET STATISTICS 0', 'files_' || g);
    EXECUTE format('ALTER TABLE {schema}.%I ALTER text SET STATISTICS 0, ALTER context SET STATISTICS 0', 'chunks_' || g);
    EXECUTE format('ALTER TABLE {schema}.%I ALTER term SET STATISTICS 0, ALTER whole SET STATISTICS 0', 'postings_' || g);
    EXECUTE format('ALTER TABLE {schema}.%I ALTER vector SET STATISTICS 0', 'vectors_' || g);
    PERFORM guard_table(kind || '_' || g, owner)
       FROM unnest(ARRAY['files', 'chunks', 'vectors', 'segments', 'positions', 'postings']) AS kind;
    RETURN g;
END
$$;

-- Gives the vectors of a generation an HNSW index.
CREATE FUNCTION {schema}.index_vectors(of_generation integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp
SET maintenance_work_mem = '512MB' AS $$
BEGIN
    PERFORM FROM generations WHERE id = of_generation AND agent = current_setting('plainmind.agent', true);
    IF NOT FOUND THEN RAISE no_data_found; END IF;
    EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON {schema}.%I USING hnsw (vector {vectors}.halfvec_cosine_ops)'
                   ' WITH (m = 24, ef_construction = 128)',
                   'graph_' || of_generation, 'vectors_' || of_generation);
    UPDATE generations SET graph = true WHERE id = of_generation;
END
$$;

-- Tells the planner what a generation holds.
CREATE FUNCTION {schema}.analyze_generation(of_generation integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    kind text;
BEGIN
    PERFORM FROM generations WHERE id = of_generation AND agent = current_setting('plainmind.agent', true);
    IF NOT FOUND THEN RAISE no_data_found; END IF;
    FOREACH kind IN ARRAY ARRAY['files', 'chunks', 'vectors', 'segments', 'positions', 'postings'] LOOP
        EXECUTE format('ANALYZE {schema}.%I', kind || '_' || of_generation);
    END LOOP;
END
$$;

-- Drops a generation that is not published and that nobody reads or builds; says whether it is gone.
CREATE FUNCTION {schema}.drop_generation(of_generation integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    kind text;
BEGIN
    IF NOT pg_try_advisory_xact_lock({generation_lock}, of_generation) THEN
        RETURN false;
    END IF;
    DELETE FROM generations g
     WHERE g.id = of_generation AND g.agent = current_setting('plainmind.agent', true)
       AND NOT EXISTS (SELECT FROM indexes i WHERE i.published = of_generation);
    IF NOT FOUND THEN
        RETURN NOT EXISTS (SELECT FROM generations g WHERE g.id = of_generation);
    END IF;
    FOREACH kind IN ARRAY ARRAY['files', 'chunks', 'vectors', 'segments', 'positions', 'postings'] LOOP
        EXECUTE format('DROP TABLE IF EXISTS {schema}.%I', kind || '_' || of_generation);
    END LOOP;
    RETURN true;
END
$$;

-- Writes the tables with text anew, so that no byte of their files has what was deleted. VACUUM FULL would keep what any
-- transaction of any agent might still want to see. Whoever began to read before would see nothing: so it waits for them.
-- It must see the rows of every scope: those it did not see would be gone.
CREATE FUNCTION {schema}.write_anew(of_generation integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    seen text := current_setting('plainmind.scopes', true);
    kind text;
    made text;
BEGIN
    PERFORM FROM generations WHERE id = of_generation AND agent = current_setting('plainmind.agent', true);
    IF NOT FOUND THEN RAISE no_data_found; END IF;
    -- One that is still being built has no readers, but a builder who will not let go.
    IF EXISTS (SELECT FROM indexes i WHERE i.published = of_generation)
       OR pg_try_advisory_xact_lock({index_lock}, -of_generation) THEN
        PERFORM pg_advisory_xact_lock({generation_lock}, of_generation);
    END IF;
    PERFORM set_config('plainmind.scopes', '*', true);
    FOREACH kind IN ARRAY ARRAY['files', 'chunks', 'segments', 'positions', 'postings'] LOOP
        made := kind || '_' || of_generation;
        EXECUTE format('LOCK TABLE {schema}.%I IN ACCESS EXCLUSIVE MODE', made);
        EXECUTE format('CREATE TEMPORARY TABLE kept_rows ON COMMIT DROP AS SELECT * FROM {schema}.%I', made);
        EXECUTE format('TRUNCATE {schema}.%I', made);
        EXECUTE format('INSERT INTO {schema}.%I OVERRIDING SYSTEM VALUE SELECT * FROM pg_temp.kept_rows', made);
        DROP TABLE pg_temp.kept_rows;
    END LOOP;
    PERFORM set_config('plainmind.scopes', coalesce(seen, ''), true);
END
$$;

-- Names every index there is: for operators, who may search those of several agents. Nobody else may call it.
-- The setting is made in its body: in its head only an administrator of the server could.
CREATE POLICY listed ON {schema}.indexes FOR SELECT TO CURRENT_USER
 USING ((SELECT current_setting('plainmind.listing', true)) = 'on');
CREATE FUNCTION {schema}.all_indexes() RETURNS TABLE (agent text, workspace text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
BEGIN
    PERFORM set_config('plainmind.listing', 'on', true);
    RETURN QUERY SELECT i.agent, i.workspace FROM indexes i WHERE i.published IS NOT NULL ORDER BY 1, 2;
    PERFORM set_config('plainmind.listing', 'off', true);
END
$$;

REVOKE ALL ON FUNCTION {schema}.all_indexes, {schema}.write_anew, {schema}.guard_table, {schema}.make_generation, {schema}.index_vectors,
                       {schema}.analyze_generation, {schema}.drop_generation FROM PUBLIC;
