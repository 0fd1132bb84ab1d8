-- One generation of the index. Derived from the notes: never migrated, always rebuilt beside and published.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL        -- `fingerprint` (JSON; no row: never built) and `reason` of the build
) WITHOUT ROWID;

CREATE TABLE revision (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    value INTEGER NOT NULL     -- grows with every transaction, so that caches of any process notice
);
INSERT INTO revision VALUES (1, 0);

CREATE TABLE totals (          -- kept up to date by every transaction: counting rows would slow each search
    source TEXT PRIMARY KEY,
    files  INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    terms  INTEGER NOT NULL    -- sum of chunks.term_count: BM25 needs the average length
) WITHOUT ROWID;

CREATE TABLE files (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    source   TEXT NOT NULL,    -- memory, sessions
    path     TEXT NOT NULL,    -- as cited
    hash     TEXT NOT NULL,    -- SHA-256 of the bytes
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode    INTEGER NOT NULL, -- two's complement: the largest inode numbers do not fit a signed integer
    UNIQUE (source, path)
);

CREATE TABLE chunks (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- also the rowid in chunks_fts; never used twice
    file_id    INTEGER NOT NULL REFERENCES files (id),
    ordinal    INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line   INTEGER NOT NULL,
    term_count INTEGER NOT NULL,
    slot       INTEGER,        -- segment id * 1024 + position in the segment; NULL: no vector
    day        TEXT,
    context    TEXT NOT NULL,
    text       TEXT NOT NULL
);

-- Covers the lengths that BM25 reads, by source, without touching the texts.
CREATE INDEX chunks_by_file ON chunks (file_id, ordinal, term_count, slot);

-- The postings. `terms` arrives folded and stemmed, joined by spaces, so the tokenizer has to split at white
-- space only: every other ASCII character is made part of a token, as all characters beyond ASCII already are.
-- Contentless: the text is kept once, in `chunks`; deleting by rowid still works.
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
    terms,
    content = '', contentless_delete = 1,
    tokenize = "ascii tokenchars '!""#$%&''''()*+,-./:;<=>?@[\]^_`{|}~'"
);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE chunks_terms USING fts5vocab (chunks_fts, row);           -- in how many chunks a term stands
CREATE VIRTUAL TABLE chunks_occurrences USING fts5vocab (chunks_fts, instance); -- where each of them is

-- Vectors are packed, because reading one row a chunk costs more than comparing its vector. A segment is of one
-- source, so that a filter leaves out whole segments.
CREATE TABLE vector_segments (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    source    TEXT NOT NULL,
    used      INTEGER NOT NULL, -- slots taken
    revision  INTEGER NOT NULL, -- revision.value of the last change: what caches compare
    chunk_ids BLOB NOT NULL     -- 1024 native int64; 0: the slot is free
);

CREATE TABLE vector_blocks (   -- apart from its segment: changed in place by blob I/O, never by UPDATE
    id      INTEGER PRIMARY KEY REFERENCES vector_segments (id),
    vectors BLOB NOT NULL      -- 1024 * dims native float16 of unit length; zeros in a free slot
);
