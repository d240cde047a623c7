"""A migration is rehearsed: a real database as a service, two attempts that go wrong, and each time it is back by itself, intact."""
import hashlib
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.running import digest, wait_for, write  # noqa: E402
from support.staying import execute, good, staying, steps  # noqa: E402

PROGRAMS = "/usr/lib/postgresql/15/bin"
DATA = "/tmp/database"
RUN = (f"test -d {DATA}/data || {{ mkdir {DATA} && {PROGRAMS}/initdb -D {DATA}/data -A trust -U app --no-locale -E UTF8 >{DATA}/made; }} && "
       f"exec {PROGRAMS}/postgres -D {DATA}/data -k {DATA} -c listen_addresses=")
PSQL = f"{PROGRAMS}/psql -h {DATA} -U app -v ON_ERROR_STOP=1 -Atq postgres"
LOAD = """create table accounts (id int primary key, owner text not null, amount text not null);
insert into accounts select n, 'owner ' || n, (n * 7 % 1000)::text from generate_series(1, 20000) n;
update accounts set amount = 'n/a' where id = 19999;"""

# The first attempt does some of its work before it meets a lock; the second meets a row that nobody had thought of.
ATTEMPTS = {
    "1-drop-and-lock.sql": "delete from accounts where id % 2 = 0; alter table accounts add column cents int;",
    "2-cast.sql": "alter table accounts rename owner to holder; alter table accounts alter amount type int using amount::int;",
    "3-careful.sql": "begin; alter table accounts add column cents int; update accounts set cents = amount::int * 100 where amount ~ '^[0-9]+$'; commit;",
}


def ask(place, ident, query):
    return good(execute(place, ident, f'{PSQL} -c "{query}"')).text.strip()


def content(place, ident):
    """Everything that is in the database: its tables, and each row."""
    dump = good(execute(place, ident, f"{PROGRAMS}/pg_dump -h {DATA} -U app postgres")).out
    assert dump.count(b"\n") > 20000, dump[-500:]
    return hashlib.sha256(b"\n".join(line for line in dump.splitlines() if b"restrict" not in line)).hexdigest()


def attempt(place, ident, name, *options):
    return execute(place, ident, f"{PSQL} -f {name}", *options)


@test
def a_migration_is_tried_three_times_and_the_database_is_back_by_itself_after_each_failure(place):
    if not os.path.exists(f"{PROGRAMS}/postgres"):
        skip("postgres is not installed; tools/setup check installs it")
    for name, script in ATTEMPTS.items():
        write(place.work / name, script)
    before = digest(place.work)
    policy = place.dir / "policy.yaml"
    policy.write_text(json.dumps({"services": [{"name": "database", "run": RUN, "ready": f"{PSQL} -c 'select 1'"}]}))
    policy.chmod(0o600)
    options = ("-u", "65534:65534") if os.geteuid() == 0 else ()  # a database server refuses to be root
    with staying(place, "--policy", policy, *options, timeout=120) as ident:
        good(execute(place, ident, f'{PSQL} -c "{LOAD}"'))
        good(place.cove("stop", ident))  # nothing is half written, so this is a point to go back to
        good(place.cove("start", ident))
        loaded, point = content(place, ident), steps(place, ident)[0]["number"]

        # One holds a lock, as a report does that somebody runs; the migration waits for it until its time is up.
        good(place.cove("exec", "-d", ident, "--", "sh", "-c", f'{PSQL} -c "begin; lock table accounts in row share mode; select pg_sleep(1000)"'))
        wait_for(lambda: ask(place, ident, "select count(*) from pg_locks where mode = 'RowShareLock' and granted") != "0", what="the lock")
        equal(attempt(place, ident, "1-drop-and-lock.sql", "--timeout", "2s").code, 124, "it is stuck")
        equal(execute(place, ident, f'{PSQL} -c "select count(*) from accounts"', "--timeout", "1s").code, 124, "and with it everybody who needs the table")
        good(place.cove("rollback", ident, str(point), timeout=120))
        equal(json.loads(place.cove("show", "--json", ident).out)["services"], {"database": "ready"}, "up again by itself")
        equal(ask(place, ident, "select count(*) from pg_stat_activity where query like '%pg_sleep%' and pid <> pg_backend_pid()"), "0", "the lock is gone")
        equal(content(place, ident), loaded, "and everything is there")

        done = attempt(place, ident, "2-cast.sql")
        assert done.code == 3 and "n/a" in done.errors, done
        equal(ask(place, ident, "select count(holder) from accounts"), "20000", "half of it was done")
        good(place.cove("rollback", ident, str(point), timeout=120))
        equal(content(place, ident), loaded)

        good(attempt(place, ident, "3-careful.sql"))
        equal(ask(place, ident, "select count(*), count(cents), sum(cents) from accounts"), f"20000|19999|{sum(n * 7 % 1000 for n in range(1, 20001) if n != 19999) * 100}")
        equal(digest(place.work), before, "the host's tree never saw any of it")
        equal([(row["exit"], row["reason"]) for row in steps(place, ident) if row["argv"][-1].endswith(".sql")],
              [(124, "timed-out"), (3, "exited"), (0, "exited")], "and all of it is on record")
    assert not os.path.exists(DATA), "nothing of it is on the host"


if __name__ == "__main__":
    main()
