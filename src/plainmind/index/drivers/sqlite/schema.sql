-- One generation of the index. Derived from the notes: never migrated, always rebuilt beside and published.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL        -- `fingerprint` (JSON; no row: never built) and `reason` of the build
) WITHOUT ROWID;

CREATE TABLE revision (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    value    INTEGER NOT NULL, -- grows with every transaction, so that caches of any process notice
    contents INTEGER NOT NULL, -- `value` when a chunk last came or went: what touches of files leave as it is
    next_id  INTEGER NOT NULL  -- ids below are taken, for ever
);
-- It begins anywhere: in a folder that was deleted, numbers of generations begin again, and theirs must not look alike.
INSERT INTO revision SELECT 1, begins, begins, 1 FROM (SELECT random() & 0xFFFFFFFFFF AS begins);

CREATE TABLE totals (          -- kept up to date by every transaction: counting rows would slow each search
    source TEXT PRIMARY KEY,
    files  INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    terms  INTEGER NOT NULL    -- sum of chunks.length: BM25 needs the average length
) WITHOUT ROWID;

CREATE TABLE scopes (          -- who may see files; numbers are never used twice
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name NOT NULL UNIQUE       -- private, shared, group:<id>, person:<id>: a text, or a blob as chunks.text is one
);

CREATE TABLE files (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    source   TEXT NOT NULL,    -- memory, sessions
    path     TEXT NOT NULL,    -- as cited
    hash     TEXT NOT NULL,    -- SHA-256 of the bytes
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode    INTEGER NOT NULL, -- two's complement: the largest inode numbers do not fit a signed integer
    scope    INTEGER NOT NULL REFERENCES scopes (id),
    chunks   INTEGER NOT NULL, -- how many it has: counting them would make a long file slow to add to
    tallest  INTEGER NOT NULL, -- no chunk has a larger end_line - start_line: bounds the search for a line
    UNIQUE (source, path)
);

CREATE TABLE chunks (
    id         INTEGER PRIMARY KEY, -- first_id of its segment + its position there; never used twice
    file_id    INTEGER NOT NULL REFERENCES files (id),
    ordinal    INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line   INTEGER NOT NULL,
    length     INTEGER NOT NULL,    -- how many terms it has, as BM25 counts them
    day        TEXT,
    context    NOT NULL,            -- this and `text`: a text, or a blob, the text in UTF-8, deflated
    text       NOT NULL
);

CREATE INDEX chunks_by_file ON chunks (file_id, start_line);

CREATE TABLE vectors (         -- apart from the chunks: a search reads hundreds of vectors and few texts
    id     INTEGER PRIMARY KEY,-- of the chunk
    vector BLOB NOT NULL       -- of unit length, as `vectors.shorten` makes it: dims + 1 bytes, or float16 as the machine has it
);

-- What is searched is packed in segments, because reading a row for each chunk costs more than comparing it. A segment
-- is a run of chunk ids of one source, so that a filter leaves out whole segments. Chunks of all scopes share them:
-- hundreds of groups and people with a few chunks each would make hundreds of segments to look through. Positions are
-- never used again: what was removed stays as a hole, and its postings with it, until the segment is mostly holes and
-- what lives in it moves to another one.
CREATE TABLE segments (
    first_id INTEGER PRIMARY KEY,
    source   TEXT NOT NULL,
    capacity INTEGER NOT NULL, -- ids that belong to it, at most 65,536
    used     INTEGER NOT NULL, -- positions that have been given out
    dead     INTEGER NOT NULL, -- positions that are holes
    stale    INTEGER NOT NULL, -- holes that are still in the postings
    revision INTEGER NOT NULL, -- revision.value of the last change of its lengths, absences and audience
    posted   INTEGER NOT NULL  -- revision.value of the last change of its postings and signs
);

-- Blobs of segments, each in a table of its own: changed in place by blob I/O, never by UPDATE.
CREATE TABLE lengths (
    segment INTEGER PRIMARY KEY REFERENCES segments (first_id),
    lengths BLOB NOT NULL      -- uint16 for each position: chunks.length, 0 for a hole
);
CREATE TABLE absences (
    segment INTEGER PRIMARY KEY REFERENCES segments (first_id),
    absent  BLOB NOT NULL      -- a byte for each position: 0 where there is a vector, 255 where there is none
);
CREATE TABLE audiences (       -- read only for who may not see everything
    segment INTEGER PRIMARY KEY REFERENCES segments (first_id),
    scopes  BLOB NOT NULL      -- uint32 for each position: files.scope of its chunk, anything for a hole
);
CREATE TABLE signs (
    segment INTEGER PRIMARY KEY REFERENCES segments (first_id),
    signs   BLOB NOT NULL      -- the signs of each position's vector, dims / 4 bytes: see signs.py
);

CREATE TABLE postings (
    segment   INTEGER NOT NULL REFERENCES segments (first_id),
    term      TEXT NOT NULL,
    positions BLOB NOT NULL,   -- uint16, ascending: where the term stands, or stood
    counts    BLOB NOT NULL,   -- a byte for each of them: how often
    PRIMARY KEY (segment, term)
) WITHOUT ROWID;
