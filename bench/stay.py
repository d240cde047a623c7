#!/usr/bin/python3
"""Sandboxes that stay: create, exec, checkpoint, rollback, fork; many at once; memory; beside plain processes,
bubblewrap with plain copies, and container engines where they run, in the same run.

    bench/stay.py [--rounds 100] [--idle 1000] [--listed 10000] [--loaded 1024] [--changed 10] [--only WORD] [--json]

As root with the state directory on a journaled ext4 in a loop file; as an ordinary user where TMPDIR is.
`--only` takes the parts with that word in their name: exec, create, switch, live, write, disk, engines, idle, list.
`--loaded` and `--changed` are the MB that are there beforehand, and that each step changes, while processes live.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time

from living import living
from staying import COVE, MIB, Disk, Drive, Rows, available, timed

BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]


def spawn(*words, **kwargs):
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, **kwargs)


def alternately(rounds, *calls):
    """One after the other, so that what else the machine does hits all."""
    times = [[] for _ in calls]
    for turn in range(rounds):
        for at in range(len(calls)):
            at = (at + turn) % len(calls)
            times[at].append(calls[at]())
    return times


def execs(disk, asked, rows):
    ident = disk.cove("create")
    drive, plain = Drive(disk, ident), Drive(disk)
    outside, connected, shell = alternately(
        asked.rounds, lambda: plain.spawn("/usr/bin/true"), lambda: drive.exec("/usr/bin/true"),
        lambda: plain.spawn(COVE, "exec", ident, "--", "/usr/bin/true"))
    rows.times("true, outside", outside)
    rows.times("exec over an open connection", connected, outside, "outside", "+1 ms")
    rows.times("cove exec", shell, outside, "outside", "+3 ms")
    drive.close(), plain.close()
    disk.cove("rm", "-f", ident)


def creates(disk, asked, rows):
    made, removed = [], []
    plain = Drive(disk)

    def create():
        took, ident = timed(lambda: disk.cove("create"))
        removed.append(timed(lambda: disk.cove("rm", "-f", ident))[0])
        return took

    theirs, ours = alternately(max(10, asked.rounds // 4), lambda: plain.spawn(*BWRAP, "/usr/bin/true"), create)
    rows.times("bubblewrap, true", theirs)
    rows.times("cove create", ours, theirs, "bubblewrap")
    rows.times("cove rm -f", removed)
    plain.close()
    for count in (100, asked.idle) if asked.idle > 100 else (100,):
        rounds = 3 if count == 100 else 1
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            theirs, ours = [], []
            for _ in range(rounds):
                theirs.append(timed(lambda: list(pool.map(lambda _: spawn(*BWRAP, "/usr/bin/true"), range(count))))[0])
                took, made = timed(lambda: list(pool.map(lambda _: disk.cove("create"), range(count))))
                ours.append(took)
                for i in range(0, count, 50):
                    disk.cove("rm", "-f", *made[i:i + 50])
        rows.times(f"{count} bubblewraps at once", theirs)
        rows.times(f"{count} creates at once", ours, theirs, "bubblewrap", "1.1 x" if count == 100 else None)


def fork_until_exec(disk, drive, ident):
    """The command, a connection, the first exec; each by the driver, because Python takes a millisecond to start a program."""
    spawned, _, child = drive.ask("spawn", COVE, "fork", ident)
    opened, = drive.ask("open", disk.sandbox(child))
    took = (int(spawned) + int(opened)) / 1000 + drive.exec("/usr/bin/true")
    disk.cove("rm", "-f", child)
    return took


def forks(disk, ident, count, rows, name, beside=None):
    drive, what = Drive(disk), "a copy and bubblewrap" if beside else None
    rows.times(f"fork until its first exec has ended, {name}", [fork_until_exec(disk, drive, ident) for _ in range(count)], beside, what, "10 ms")
    drive.close()


def copies(disk, size):
    """What a sandbox without layers has to do instead: copy what was written; and bubblewrap on the copy."""
    source, target = disk.dir / "plain", disk.dir / "copied"
    source.mkdir(exist_ok=True)
    with open(source / "data", "wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
    times, forks_ = [], []
    for _ in range(3):
        shutil.rmtree(target, ignore_errors=True)
        times.append(timed(lambda: spawn("cp", "-a", source, target))[0])
        forks_.append(times[-1] + timed(lambda: spawn(*BWRAP, "--bind", target, target, "/usr/bin/true"))[0])
    shutil.rmtree(source), shutil.rmtree(target)
    return times, forks_


def one_size(disk, size, rounds, rows):
    ident = disk.cove("create")
    drive = Drive(disk, ident)
    base = drive.after("/bin/sh", "-c", f"head -c {size} /dev/urandom >big")
    waits, backs = [], []
    for turn in range(rounds):
        step = drive.after("/bin/sh", "-c", f"echo {turn} >>small")
        waits.append(step[1])
        backs.append(drive.rollback(base[2], base[3]))
    name = f"{size // MIB} MB written"
    beside, instead = copies(disk, size)
    rows.times(f"a copy, {name}", beside)
    rows.times(f"a copy, and true in bubblewrap on it, {name}", instead)
    rows.times(f"checkpoint, {name}, a change before each", waits, beside, "a copy", "2 ms")
    rows.times(f"rollback, {name}", backs, beside, "a copy", "2 ms")
    forks(disk, ident, max(5, rounds // 2), rows, name, instead)
    drive.close()
    disk.cove("rm", "-f", ident)


def depths(disk, rounds, rows):
    ident = disk.cove("create")
    drive, depth = Drive(disk, ident), 0
    for until in (1, 50, 200):
        while depth < until:
            step = drive.after("/bin/sh", "-c", f"mkdir -p d{depth % 7}; echo {depth} >d{depth % 7}/f{depth}; echo {depth} >>log")
            depth += 1
        waits, backs, execs_ = [], [], []
        for turn in range(rounds):
            waits.append(drive.after("/bin/sh", "-c", f"echo {turn} >>log")[1])
            backs.append(drive.rollback(step[2], step[3]))
            execs_.append(drive.exec("/usr/bin/true"))
        rows.times(f"checkpoint after {until} steps", waits, None, None, "2 ms")
        rows.times(f"rollback after {until} steps", backs, None, None, "2 ms")
        rows.times(f"exec just after it, {until} steps", execs_)
    forks(disk, ident, 10, rows, "200 steps")
    drive.close()
    disk.cove("rm", "-f", ident)


def switches(disk, asked, rows):
    for size in (MIB, 100 * MIB, 1024 * MIB):
        one_size(disk, size, max(10, asked.rounds // 4), rows)
    depths(disk, max(10, asked.rounds // 4), rows)


def first_write(disk, asked, rows):
    ident = disk.cove("create")
    drive, times, outside = Drive(disk, ident), [], []
    drive.after("/bin/sh", "-c", "head -c 1073741824 /dev/urandom >big")
    spawn("/bin/sh", "-c", "head -c 1073741824 /dev/urandom >big.outside", cwd=disk.dir)
    for _ in range(3):
        outside.append(timed(lambda: spawn("/bin/sh", "-c", "echo x >>big.outside", cwd=disk.dir))[0])
        times.append(drive.after("/bin/sh", "-c", "echo x >>big")[0])
    rows.times("first write into a file of 1 GB after a checkpoint", times, outside, "outside")
    os.unlink(disk.dir / "big.outside")
    drive.close()
    disk.cove("rm", "-f", ident)


def disk_used(disk, asked, rows):
    ident = disk.cove("create")
    drive, count = Drive(disk, ident), 200
    drive.after("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do head -c 20000 /dev/urandom >src$i; done")
    time.sleep(0.5)
    before = disk.used()
    for turn in range(count):
        drive.after("/bin/sh", "-c", f"echo {turn} >>src{turn % 9 + 1}")
    time.sleep(0.5)
    rows.value(f"disk used by each of {count} automatic checkpoints", (disk.used() - before) / count / 1024, "KiB")
    drive.close()
    disk.cove("rm", "-f", ident)


def engines(disk, asked, rows):
    """Container engines, where they run: a command in a container that stays, and a commit of it."""
    for engine in ("docker", "podman"):
        if not shutil.which(engine):
            rows.note(f"{engine}: not installed")
            continue
        try:
            done = subprocess.run([engine, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=20)
        except subprocess.TimeoutExpired:
            rows.note(f"{engine}: does not run here: no answer in 20 s")
            continue
        if done.returncode:
            rows.note(f"{engine}: does not run here: {(done.stderr.strip().splitlines() or ['?'])[-1][:120]}")
            continue
        measure_engine(engine, rows)


def measure_engine(engine, rows):
    """On an image of the host's own shell, so that nothing is fetched."""
    build = subprocess.run(f"tar -c -C / usr/bin/true usr/bin/dash usr/bin/sleep usr/bin/touch lib lib64 usr/lib/x86_64-linux-gnu/libc.so.6 "
                           f"usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 | {engine} import - cove-bench", shell=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if build.returncode:
        rows.note(f"{engine}: cannot import an image")
        return
    started = subprocess.run([engine, "run", "-d", "--network", "none", "cove-bench", "/usr/bin/sleep", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if started.returncode:
        rows.note(f"{engine}: cannot run: {(started.stderr.strip().splitlines() or ['?'])[-1][:120]}")
    else:
        ident = started.stdout.strip()
        rows.times(f"{engine} exec", [timed(lambda: spawn(engine, "exec", ident, "/usr/bin/true"))[0] for _ in range(10)])
        rows.times(f"{engine} commit", [timed(lambda: spawn(engine, "commit", ident, "cove-bench-step"))[0] for _ in range(3)])
        subprocess.run([engine, "rm", "-f", ident], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([engine, "rmi", "-f", "cove-bench", "cove-bench-step"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def idle(disk, asked, rows):
    """Everything counts: keepers, guards, PID 1, kernel memory."""
    disk.cove("rm", "-f", disk.cove("create"))
    before = available()
    made = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: disk.cove("create"), range(asked.idle)))
    rows.value(f"memory of each of {asked.idle} idle sandboxes", (before - available()) / asked.idle, "KiB", "1,024 KiB")
    rows.times(f"cove ls with {asked.idle} that run", [timed(lambda: disk.cove("ls", "-q"))[0] for _ in range(5)])
    for i in range(0, asked.idle, 50):
        disk.cove("rm", "-f", *made[i:i + 50])


def listed(disk, asked, rows):
    """Kept ones, made by copying what one left: to run ten thousand takes longer than to list them."""
    ident = disk.cove("create", "--no-checkpoints")
    disk.cove("stop", ident)
    record = json.loads((disk.sandbox(ident) / "record.json").read_text())
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    for number in range(asked.listed):
        other = "".join(letters[number >> 5 * place & 31] for place in range(4)) + ident[4:]
        if other == ident:
            continue
        disk.sandbox(other).mkdir(0o700)
        (disk.sandbox(other) / "record.json").write_text(json.dumps(dict(record, id=other), separators=(",", ":"), sort_keys=True))
        (disk.sandbox(other) / "record.json").chmod(0o600)
    rows.times(f"cove ls -q at {asked.listed} kept", [timed(lambda: disk.cove("ls", "-q"))[0] for _ in range(5)])
    rows.times(f"cove ls at {asked.listed} kept", [timed(lambda: disk.cove("ls"))[0] for _ in range(5)])
    rows.times(f"cove create at {asked.listed} kept", [timed(lambda: disk.cove("rm", "-f", disk.cove("create")))[0] for _ in range(5)])
    shutil.rmtree(disk.dir / "state/sandboxes")


PARTS = {"exec": execs, "create": creates, "switch": switches, "live": living, "write": first_write, "disk": disk_used, "engines": engines,
         "idle": idle, "list": listed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--listed", type=int, default=10000)
    parser.add_argument("--loaded", type=int, default=1024)
    parser.add_argument("--changed", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    rows, disk = Rows(asked.json), Disk()
    if not asked.json:
        print(f"load {os.getloadavg()[0]:.1f}; {'root, on a journaled ext4 (loop)' if disk.mounted else 'an ordinary user'}")
    try:
        for name, part in PARTS.items():
            if asked.only in name:
                part(disk, asked, rows)
    finally:
        disk.close()
    if asked.json:
        json.dump({"load": os.getloadavg()[0], "rows": rows.rows}, sys.stdout)


main()
