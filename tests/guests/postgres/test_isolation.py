"""The server itself keeps agents and scopes apart: raw SQL finds nothing that its settings do not open."""

from __future__ import annotations

import json

import psycopg
import pytest
from tests.support.index_contents import EVERYWHERE, fingerprint, found_texts, put, seen_by, vector
from tests.support.postgres_server import APP_ROLE, SCHEMA, open_postgres_store, running_server

from plainmind.base.errors import IndexUnavailable
from plainmind.base.model import PRIVATE, SHARED
from plainmind.guests.postgres.connections import KINDS
from plainmind.guests.postgres.migrations import prepare
from plainmind.guests.postgres.store import PostgresStore
from plainmind.index.protocol import keyword_candidates, vector_candidates


@pytest.fixture
def store(tmp_path):
    store = open_postgres_store(tmp_path)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "a private studio")
        put(fresh, "b.md", "a shared studio", scope=SHARED)
    yield store
    store.close()


@pytest.fixture
def db():
    with psycopg.connect(running_server().app_dsn) as db:
        db.execute(f"SET search_path = {SCHEMA}, public")
        yield db


def allow(db, agent=None, scopes=None):
    for name, said in (("plainmind.agent", agent), ("plainmind.scopes", scopes)):
        if said is not None:
            db.execute("SELECT set_config(%s, %s, false)", (name, said))


def rows(db, generation):
    return {kind: db.execute(f"SELECT count(*) FROM {kind}_{generation}").fetchone()[0] for kind in KINDS}


def agent_of(store):
    return store.describe()["agent"]


def generation_of(store):
    return store.describe()["generation"]


def test_the_role_of_the_memory_neither_owns_tables_nor_passes_by_their_guards(store, db):
    row = db.execute(
        """SELECT bool_or(pg_has_role(relowner, 'MEMBER')), bool_and(relrowsecurity AND relforcerowsecurity)
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %s AND c.relkind = 'r' AND c.relname <> 'migrations'""",
        (SCHEMA,),
    ).fetchone()
    assert row == (False, True)
    assert db.execute(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone() == (False,)


def test_without_any_setting_there_are_no_rows(store, db):
    assert set(rows(db, generation_of(store)).values()) == {0}
    assert db.execute("SELECT count(*) FROM indexes").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM generations").fetchone() == (0,)


def test_an_agent_alone_without_scopes_sees_no_row(store, db):
    allow(db, agent=agent_of(store))
    assert set(rows(db, generation_of(store)).values()) == {0}


def test_another_agent_sees_none_of_the_rows(store, db, tmp_path):
    allow(db, agent="another agent", scopes="*")
    assert set(rows(db, generation_of(store)).values()) == {0}
    assert db.execute("SELECT count(*) FROM indexes WHERE agent = %s", (agent_of(store),)).fetchone() == (0,)


def test_the_agent_itself_sees_every_row(store, db):
    allow(db, agent=agent_of(store), scopes="*")
    found = rows(db, generation_of(store))
    assert (found["files"], found["chunks"], found["vectors"], found["segments"]) == (2, 2, 2, 2)


@pytest.mark.parametrize("scopes", [[SHARED], [PRIVATE], ["group:1"], []])
def test_only_rows_of_named_scopes_are_seen(store, db, scopes):
    allow(db, agent=agent_of(store), scopes=json.dumps(scopes))
    generation = generation_of(store)
    for kind in KINDS:
        seen = {scope for (scope,) in db.execute(f"SELECT DISTINCT scope FROM {kind}_{generation}")}
        assert seen == set(scopes) & {SHARED, PRIVATE}


@pytest.mark.parametrize("scopes", ["private", "", "{}", '"*"'])
def test_a_setting_that_is_no_list_of_scopes_opens_nothing(store, db, scopes):
    allow(db, agent=agent_of(store), scopes=scopes)
    assert set(rows(db, generation_of(store)).values()) == {0}


def test_nobody_writes_rows_for_another_agent(store, db):
    allow(db, agent="another agent", scopes="*")
    generation = generation_of(store)
    assert db.execute(f"DELETE FROM chunks_{generation}").rowcount == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute(
            f"INSERT INTO vectors_{generation} VALUES (99, 'memory', 'shared', %s)", (f"[{'1,' * 15}1]",)
        )
    db.rollback()


@pytest.mark.parametrize("function", ["drop_generation", "index_vectors", "analyze_generation", "write_anew"])
def test_no_function_works_on_the_generation_of_another_agent(store, db, function):
    allow(db, agent="another agent", scopes="*")
    try:
        db.execute(f"SELECT {function}(%s)", (generation_of(store),))
    except psycopg.Error:
        db.rollback()
    else:
        db.commit()
    assert sorted(found_texts(store, "studio")) == ["a private studio", "a shared studio"]


def test_a_generation_cannot_be_made_for_the_index_of_another_agent(store, db):
    allow(db, agent=agent_of(store), scopes="*")
    (index,) = db.execute("SELECT id FROM indexes WHERE agent = %s", (agent_of(store),)).fetchone()
    allow(db, agent="another agent")
    with pytest.raises(psycopg.errors.NoDataFound):
        db.execute("SELECT make_generation(%s, '', '', 4)", (index,))


def test_the_role_of_the_memory_cannot_take_guards_away(store, db):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute(f"ALTER TABLE chunks_{generation_of(store)} DISABLE ROW LEVEL SECURITY")


def test_two_agents_of_one_installation_do_not_find_each_others_notes(store, tmp_path):
    other = open_postgres_store(tmp_path / "other")
    try:
        with other.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the studio of the other")
        assert found_texts(other, "studio") == ["the studio of the other"]
        assert "the studio of the other" not in found_texts(store, "studio", where=seen_by(PRIVATE, SHARED))
    finally:
        other.close()


def test_a_role_without_rights_is_told_so(store, tmp_path):
    with psycopg.connect(running_server().dsn, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'plainmind_tests_nobody'").fetchone() is None:
            db.execute("CREATE ROLE plainmind_tests_nobody LOGIN")
    stranger = open_postgres_store(tmp_path, role="plainmind_tests_nobody")
    with pytest.raises(IndexUnavailable) as raised, stranger.reading():
        pass
    assert "--prepare" in raised.value.hint
    stranger.close()


@pytest.fixture
def operator():
    name = "plainmind_tests_operator"
    server = running_server()
    with psycopg.connect(server.dsn, autocommit=True) as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
            db.execute(f"CREATE ROLE {name} LOGIN")
    prepare(server.dsn, schema=SCHEMA, role=name, is_operator=True)
    return name


def test_only_an_operator_may_ask_which_indexes_there_are(store, tmp_path, operator):
    with pytest.raises(IndexUnavailable, match="does not let this role") as raised:
        store.all_indexes()
    assert "--operator" in raised.value.hint
    allowed = open_postgres_store(tmp_path / "theirs", role=operator)
    assert (agent_of(store), "notes") in allowed.all_indexes()
    other = allowed.index_of(agent_of(store), "notes")
    assert sorted(found_texts(other, "studio")) == ["a private studio", "a shared studio"]
    other.close()
    allowed.close()


def test_nobody_lists_indexes_by_saying_that_it_is_a_listing(store, db):
    db.execute("SELECT set_config('plainmind.listing', 'on', false)")
    assert db.execute("SELECT count(*) FROM indexes").fetchone() == (0,)


def test_what_one_filter_has_shown_keeps_its_vector_for_whoever_may_see_it_next(store):
    with store.reading() as reader:
        everything = keyword_candidates(reader, ["studio"], where=EVERYWHERE, limit=9)
        vector_candidates(reader, vector("a shared studio"), where=seen_by(SHARED), limit=9)
    (private,) = [each.id for each in everything if each.chunk.path == "a.md"]
    with store.reading() as reader:
        assert reader.similarities(vector("a private studio"), [private]) == [pytest.approx(1.0, abs=0.01)]


def test_writing_tables_anew_keeps_the_rows_of_every_scope(store, db):
    allow(db, agent=agent_of(store), scopes=json.dumps([SHARED]))
    db.execute("SELECT write_anew(%s)", (generation_of(store),))
    db.commit()
    assert sorted(found_texts(store, "studio")) == ["a private studio", "a shared studio"]
    store.digest()


def test_functions_of_the_owner_run_nothing_that_others_have_put_beside_pgvector(tmp_path):
    # As every role could do in `public` before PostgreSQL 15, and can still do in databases of then.
    server, name = running_server(), f"plainmind_{abs(hash(str(tmp_path)))}"
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=name)
    try:
        prepare(dsn, schema=SCHEMA, role=APP_ROLE)
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(f"GRANT CREATE ON SCHEMA public TO {APP_ROLE}")
        app = psycopg.conninfo.make_conninfo(dsn, user=APP_ROLE)
        with psycopg.connect(app, autocommit=True) as db:
            db.execute("CREATE TABLE public.caught (who text)")
            db.execute("GRANT INSERT ON public.caught TO PUBLIC")
            db.execute(
                """CREATE FUNCTION public.joined(text, integer) RETURNS text LANGUAGE plpgsql AS
                   'BEGIN INSERT INTO public.caught VALUES (current_user); RETURN $1 || $2::text; END'"""
            )
            db.execute(
                "CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = integer, FUNCTION = public.joined)"
            )
        store = PostgresStore(app, agent="a", workspace="w", schema=SCHEMA)
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
        store.erase("memory", "a.md")
        store.close()
        with psycopg.connect(dsn) as admin:
            assert (
                admin.execute("SELECT who FROM public.caught WHERE who <> %s", (APP_ROLE,)).fetchall() == []
            )
    finally:
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
