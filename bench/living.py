"""Checkpoints while processes live: plain files, a dev server, a database; with what is loaded beforehand, and so much changed by
each step.  Beside it a plain copy of what changed, and of everything: what one without layers would have to do."""
import json
import os
import shutil
import subprocess

from staying import MIB, Drive, timed

FILES = 200
PROGRAMS = "/usr/lib/postgresql/15/bin"
DATA = "/tmp/database"
SERVE = (f"test -d {DATA}/data || {{ mkdir {DATA} && {PROGRAMS}/initdb -D {DATA}/data -A trust -U app --no-locale -E UTF8 >{DATA}/made; }} && "
         f"exec {PROGRAMS}/postgres -D {DATA}/data -k {DATA} -c listen_addresses= -c fsync=off")
PSQL = f"{PROGRAMS}/psql -h {DATA} -U app -v ON_ERROR_STOP=1 -Atq postgres"
ROW = 1000  # bytes of a row, about


def good(drive, line):
    """A command of some length, without a measure."""
    ran, code, said = drive.ask("exec", "/bin/sh", "-c", line)
    if code != "0":
        raise SystemExit(f"inside: {line}: exit code {code}: {said}")
    return said


def copies(disk, size, files, rounds):
    """The same bytes in as many files, copied by cp."""
    source, target = disk.dir / "plain", disk.dir / "copied"
    source.mkdir()
    for number in range(files):
        (source / f"f{number}").write_bytes(os.urandom(size // files))
    times = []
    for _ in range(rounds):
        times.append(timed(lambda: subprocess.run(["cp", "-a", source, target], check=True))[0])
        shutil.rmtree(target)
    shutil.rmtree(source)
    return times


def change(turn, size, files):
    """Every file gets other bytes; nothing is read, so that the step is short beside its checkpoint."""
    return f"for i in $(seq {files}); do head -c {size // files} pool | sed '1s/^/{turn}/' >changed/f$i; done"


def steps(drive, rounds, size, files):
    good(drive, f"mkdir -p changed; test -e pool || head -c {2 * size // files} /dev/urandom >pool")
    drive.after("/bin/sh", "-c", change("begin", size, files))
    return [drive.after("/bin/sh", "-c", change(turn, size, files))[1] for turn in range(rounds)]


def undos(disk, drive, ident, rounds):
    times = []
    for turn in range(rounds):
        drive.after("/bin/sh", "-c", f"echo {turn} >>log")
        times.append(timed(lambda: disk.cove("undo", ident))[0])
    return times


def files(disk, asked, rows):
    ident = disk.cove("create")
    drive, size = Drive(disk, ident), asked.changed * MIB
    disk.cove("exec", "-d", ident, "--", "sleep", "1000000")
    name = f"{asked.changed} MB in {FILES} files changed"
    beside = copies(disk, size, FILES, max(5, asked.rounds // 10))
    rows.times(f"a copy, {name}", beside)
    rows.times(f"live checkpoint, {name}", steps(drive, max(10, asked.rounds // 4), size, FILES), beside, "a copy", "20 ms")
    drive.close()
    disk.cove("rm", "-f", ident)


def server(disk, asked, rows):
    """What was there before it runs is frozen already; it answers while steps come and go."""
    ident = disk.cove("create")
    drive = Drive(disk, ident)
    loaded = f"{asked.loaded} MB loaded"
    drive.after("/bin/sh", "-c", f"mkdir site; for i in $(seq {asked.loaded}); do head -c 1048576 /dev/urandom >site/f$i; done")
    disk.cove("exec", "-d", ident, "--", "python3", "-m", "http.server", "8000")
    ask = "for i in $(seq 100); do curl -sf localhost:8000/README >/dev/null && exit 0; sleep 0.05; done; exit 1"
    good(drive, ask)
    rounds = max(10, asked.rounds // 4)
    beside = copies(disk, asked.loaded * MIB, asked.loaded, 3)
    rows.times(f"a copy of all of it, {loaded}", beside)
    rows.times(f"dev server alive, {loaded}: checkpoint, {asked.changed} MB", steps(drive, rounds, asked.changed * MIB, FILES), beside, "a copy")
    rows.times(f"dev server alive, {loaded}: cove undo", undos(disk, drive, ident, rounds))
    good(drive, ask)
    rows.times(f"fork of it until its first exec has ended, {loaded}", [fork(disk, ident) for _ in range(rounds)])
    drive.close()
    disk.cove("rm", "-f", ident)


def fork(disk, ident):
    took, child = timed(lambda: disk.cove("fork", ident))
    drive = Drive(disk)
    took += timed(lambda: (drive.ask("open", disk.sandbox(child)), drive.exec("/usr/bin/true")))[0]
    drive.close()
    disk.cove("rm", "-f", child)
    return took


def database(disk, asked, rows):
    """An update of some rows writes into files of up to 1 GB each: without a file system that shares blocks each is copied whole."""
    if not os.path.exists(f"{PROGRAMS}/postgres"):
        rows.note(f"PostgreSQL: {PROGRAMS}/postgres is not installed")
        return
    policy = disk.dir / "policy.yaml"
    policy.write_text(json.dumps({"services": [{"name": "database", "run": SERVE, "ready": f"{PSQL} -c 'select 1'", "within": "2m"}]}))
    policy.chmod(0o600)
    user = ("-u", "65534:65534") if os.geteuid() == 0 else ()  # a database server refuses to be root
    ident = disk.cove("create", "--policy", policy, *user)
    drive, count, part = Drive(disk, ident), asked.loaded * MIB // ROW, asked.changed * MIB // ROW
    text = f"repeat(md5(n::text), {ROW // 32 - 2})"
    good(drive, f"{PSQL} -c 'create table rows (n int primary key, text text); alter table rows alter text set storage plain' "
                f"-c 'insert into rows select n, {text} from generate_series(1, {count}) n' -c checkpoint")
    drive.close()
    disk.cove("stop", ident), disk.cove("start", ident)
    drive, waits, ran = Drive(disk, ident), [], []
    for turn in range(max(4, asked.rounds // 25)):
        low = turn * part % max(1, count - part)
        step = drive.after("/bin/sh", "-c", f"{PSQL} -c 'update rows set text = reverse(text) where n > {low} and n <= {low + part}' -c checkpoint")
        ran.append(step[0]), waits.append(step[1])
    name = f"PostgreSQL alive, {asked.loaded} MB loaded"
    rows.times(f"{name}: update of {asked.changed} MB", ran)
    rows.times(f"{name}: snapshot of it", waits, ran, "the update")
    if good(drive, f"{PSQL} -c 'select count(*) from rows'") != str(count):
        raise SystemExit("the database has lost rows")
    drive.close()
    backs = []
    for _ in range(3):
        backs.append(timed(lambda: (disk.cove("stop", ident), disk.cove("start", ident)))[0])
    rows.times(f"{name}: stop and start, until it is ready", backs)
    disk.cove("rm", "-f", ident)


def living(disk, asked, rows):
    files(disk, asked, rows)
    server(disk, asked, rows)
    database(disk, asked, rows)
