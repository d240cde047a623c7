"""RES: reaching a bound hurts only the sandbox that reached it.

Every attack stops by itself at a size that the machine survives, so that a guard that fails shows as a failed test
and not as a dead machine.  Beside the attacks a second sandbox keeps answering, and so does the owner."""
import contextlib
import json
import os
import pty
import re
import resource
import signal
import subprocess
import time

from attack import (COVE, IDENTITY, PATIENCE, SOAK_SECONDS, Running, attack, attack_host, control_fires, descendants, equal, libc, list_directory, main, memory_of, nothing_is_left,
                    program_of, put_probe, skip, status_of, test)
from support.disks import mount_small, root_shifts_memory
from support.lacking import without
from support.running import at_once


# --- the neighbour, and the owner -------------------------------------------------------------------

class Neighbour:
    """Another sandbox that starts a program whenever it is asked to."""

    def __init__(self, place):
        self.process = subprocess.Popen([COVE, "run", "--rm", "--", "sh", "-c", "while read -r x; do /bin/true; echo ok; done"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=place.env, cwd=place.work)
        self.idle = self.slowest_of(40)

    def beat(self):
        began = time.monotonic()
        self.process.stdin.write(b"x\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"ok\n", "the neighbour is gone"
        return (time.monotonic() - began) * 1000

    def slowest_of(self, count):
        """The p99 of so many answers, in milliseconds; the first one also waits for the start."""
        self.beat()
        return sorted(self.beat() for _ in range(count))[int(count * 0.99) - 1]

    def keeps_answering(self, what):
        slowest = self.slowest_of(40)
        if slowest >= max(50, 3 * self.idle):  # or somebody else was at work just then
            slowest = min(slowest, self.slowest_of(40))
        assert slowest < max(50, 3 * self.idle), f"{what}: the neighbour answered after {slowest:.1f} ms, idle {self.idle:.1f} ms"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=10)


def tasks_below(pid):
    """Processes and threads of a sandbox, without our own: keeper, guard, PID 1."""
    return sum(len(list_directory(f"/proc/{p}/task")) for p in descendants(pid) if program_of(p).endswith("/probe"))


def number(report, key):
    return int(report.say[key][0].split()[0])


def killed_within(running, seconds, what):
    """Its keeper is killed; whoever was below it is gone soon after."""
    there = running.pids
    running.process.kill()
    running.process.communicate()
    deadline = time.monotonic() + seconds * PATIENCE
    while (left := [pid for pid in there if status_of(pid).get("State", "Z")[0] != "Z"]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"{what}: {len(left)} of {len(there)} are still there after {seconds} s"


def told(place, *words, options=(), **kwargs):
    """Runs an attack; gives what it said and the report."""
    path = place.dir / "report.json"
    report = attack(place, *words, works=False, options=("--report", path, *options), **kwargs)
    return report, json.loads(path.read_text())


def stays(place, *words, options):
    """How far an attack comes that no limit ends; nothing if it does not stay for longer than a limit needs to see it."""
    with Running(place, *words, options=options, without="limits") as bomb:
        time.sleep(3)
        stayed = bomb.process.poll() is None
        bomb.process.kill()
        bomb.process.communicate()
    return int(re.search(rb"SAY \w+ (\d+) errno", bomb.output)[1]) if stayed else None


def ended_by(report, summary, limit, what):
    equal((report.result.code, summary["reason"], summary["limit"]), (137, "limit", limit), f"{what}: {report!r}")
    assert f"limit {limit}" in report.result.errors, report


# --- rows -------------------------------------------------------------------------------------------

@test(judges_time=True, id="RES-01")
def a_fork_bomb_stops_at_its_limit_and_the_neighbour_answers(place):
    with Neighbour(place) as neighbour:
        for kind in ("fork", "thread", "exec"):
            with Running(place, "fork-bomb", kind, 300, options=("--processes", "64")) as bomb:
                there = tasks_below(bomb.cove)
                assert 32 <= there <= 64, f"{kind}: {there} tasks"
                neighbour.keeps_answering(kind)
                killed_within(bomb, 5, kind)
        with Running(place, "fork-bomb", "fork", 300, without="limits") as bomb:
            control_fires(tasks_below(bomb.cove) > 250, "without the limit there are more")
            bomb.process.kill()
            bomb.process.communicate()


@test(judges_time=True, id="RES-02")
def a_memory_bomb_ends_itself_and_nobody_else(place):
    """What the kernel keeps for files is given back by itself, and counts only where a group counts it."""
    plan = place.cove("run", "--print-plan", "--memory", "64M", "--", "true").text
    grouped = "memory 64M <- hard" in plan
    with Neighbour(place) as neighbour:
        for kind in ("anon", "shared", "memfd", "tmpfs", *(("cache", "pipes") if grouped else ())):
            report, summary = told(place, "memory-bomb", kind, 200, options=("--memory", "64M"))
            neighbour.keeps_answering(kind)
            if summary["reason"] != "limit":  # stopped by the size of a tmpfs, or by giving pages back
                assert kind in ("tmpfs", "cache", "pipes"), f"{kind}: {report!r}"
                assert kind != "tmpfs" or number(report, "mebibytes") <= 65, f"{kind}: {report!r}"
            else:
                ended_by(report, summary, "memory", kind)
            if grouped:
                assert summary["usage"]["peak_kib"] <= 65 << 10, f"{kind}: {summary['usage']}"
        report, _ = told(place, "memory-bomb", "anon", 200, options=("--memory", "64M"), without="limits")
        control_fires(number(report, "mebibytes") == 200, "without the limit it gets all of it")


@test(id="RES-03")
def a_disk_is_not_filled(place):
    for kind in ("write", "fallocate", "sparse", "small", "unlinked"):
        began = time.monotonic()
        report, summary = told(place, "disk-bomb", kind, 80, options=("--disk", "30M"))
        ended_by(report, summary, "disk", kind)
        assert time.monotonic() - began < 10 * PATIENCE, f"{kind}: {time.monotonic() - began:.1f} s"
        nothing_is_left(place, kind, 20)
    control_fires(stays(place, "disk-bomb", "write", 80, options=("--disk", "30M")) == 80, "without the limit it stays")


@test(id="RES-04")
def inodes_are_not_used_up(place):
    for kind in ("files", "links", "names", "deep"):
        report, summary = told(place, "inode-bomb", kind, 3000, options=("--inodes", "400"))
        ended_by(report, summary, "inodes", kind)
        nothing_is_left(place, kind, 20)
    control_fires(stays(place, "inode-bomb", "files", 1000, options=("--inodes", "400")) == 1000, "without the limit it stays")


HUGE = """
for size in 9223372036854771712 17592186040320 4398046510080; do truncate -s $size huge 2>/dev/null && break; done
printf END | dd of=huge bs=1 seek=$((size - 3)) conv=notrunc 2>/dev/null; cp --reflink=auto --sparse=always huge copy
mkdir many; i=0; while [ $i -lt 60 ]; do truncate -s 1G many/$i; i=$((i + 1)); done
mkdir real; head -c 5000000 /dev/zero | tr '\\0' x >real/big; echo small >real/small"""

HOLES = """{state}; {small}; mkdir -m 700 {top}/state/s; cd {top}/small; export COVE_HOME={top}/state/s
"$0" run -q -- sh -ec '{huge}'; echo "run $?"
"$0" diff --stat >/dev/null; echo "diff $?"
"$0" export -o out.tar huge 2>&1; echo "huge $?"; "$0" export -o out.tar many 2>&1; echo "many $?"; "$0" export -o out.tar real 2>&1; echo "real $?"
"$0" export huge 2>/dev/null | wc -c
"$0" apply --yes 2>&1; echo "apply $?"; ls -A | wc -l
"$0" apply --yes huge copy many real/small >/dev/null 2>&1; echo "some $?"
for f in huge copy real/small; do echo "$f $(stat -c '%s %b' $f) $(tail -c 3 $f)"; done; ls real; ls -A | tr '\\n' ' '; df --output=avail -B1K . | tail -1
timeout 20 cp --sparse=never huge filled 2>&1; echo "filled $?"
"""


@test(id="RES-05")
def holes_come_home_as_holes_and_what_does_not_fit_is_refused_before(place):
    """A disk for the sandbox, and a smaller one for the workspace."""
    if IDENTITY == "root" and not root_shifts_memory():
        skip("kernel: root cannot shift the ids of a tmpfs before Linux 6.3")
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    for name in ("state", "small"):
        (place.dir / name).mkdir(exist_ok=True)
    script = HOLES.format(top=place.dir, huge=HUGE, state=mount_small(place.dir / "state", 64), small=mount_small(place.dir / "small", 4, "755"))
    done = subprocess.run(["unshare", *become, "--mount", "--propagation", "private", "sh", "-c", script, COVE], cwd=place.dir, env=place.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120 * PATIENCE, text=True)
    if "mount: " in done.stderr or "unshare: " in done.stderr:
        skip("kernel: this user cannot mount")
    lines = done.stdout.splitlines()
    codes = dict(line.split() for line in lines if line.split()[0] in ("run", "diff", "huge", "many", "real", "apply", "some", "filled") and len(line.split()) == 2)
    equal({name: codes.get(name) for name in ("run", "diff", "some")}, {"run": "0", "diff": "0", "some": "0"}, done)
    # What a tar would have to spell out, or has no room for, is refused: nothing is written.
    equal({name: codes[name] != "0" for name in ("huge", "many", "real", "apply")}, dict.fromkeys(("huge", "many", "real", "apply"), True), done)
    equal(([line for line in lines if "out.tar" in line], sum("all holes" in line for line in lines), sum("left on the disk" in line for line in lines)), ([], 2, 2), done)
    after = lines.index(f"apply {codes['apply']}")
    equal((lines[lines.index(f"real {codes['real']}") + 1], lines[after + 1]), ("0", "0"), f"bytes of an archive, and files that came home: {done}")
    for name in ("huge", "copy"):
        size, blocks, end = next(line for line in lines if line.startswith(f"{name} ") and len(line.split()) == 4).split()[1:]
        assert int(size) > 1 << 41 and int(blocks) * 512 < 1 << 20 and end == "END", done
    assert "big" not in lines, f"what was not named came home: {done}"
    control_fires(codes["filled"] == "1", f"a plain copy fills the disk: {done}")
    nothing_is_left(place)


@test(id="RES-06")
def descriptors_are_bounded(place):
    for kind in ("sockets", "pipes", "epoll", "memfd"):
        with Running(place, "descriptor-bomb", kind, 2000, options=("--open-files", "64")) as bomb:
            there = len(list_directory(f"/proc/{bomb.pid}/fd"))
            assert 32 <= there <= 64, f"{kind}: {there} descriptors"
    report = attack(place, "flying-bomb", 2000, options=("--open-files", "64"))
    assert number(report, "flying") < 400, f"in flight: {report!r}"
    with Running(place, "descriptor-bomb", "sockets", 400, options=("--open-files", "64"), without="limits") as bomb:
        control_fires(len(list_directory(f"/proc/{bomb.pid}/fd")) > 400, "without the limit there are more")


@test(judges_time=True, id="RES-07")
def burning_processors_leaves_the_neighbour_its_time(place):
    plan = place.cove("run", "--print-plan", "--cpus", "0.05", "--", "true").text
    hard = "cpus 0.05 <- hard" in plan
    with Neighbour(place) as neighbour:
        with Running(place, "burn", 50, 3, options=("--cpus", "0.05")) as bomb:
            equal(bomb.output.count(b"CHK sched_setscheduler 0"), 0, "a place before all others")
            equal(bomb.output.count(b"CHK nice 0"), 0, "a better place")
            if hard:
                neighbour.keeps_answering("burning")
            else:
                equal(status_of(bomb.pid)["Cpus_allowed_list"].isdigit(), True, status_of(bomb.pid)["Cpus_allowed_list"])
    _, summary = told(place, "burn", 50, 2, options=("--cpus", "0.05"))
    _, free = told(place, "burn", 50, 2, options=("--cpus", "0.05"), without="limits")
    used, used_freely = (sum(s["usage"][k] for k in ("user_us", "system_us")) / s["usage"]["wall_us"] for s in (summary, free))
    if hard:
        assert used < 0.15, f"it used {used:.2f} processors"
        control_fires(used_freely > 2 * used, f"without the limit it has more: {used_freely:.2f} and {used:.2f}")
    else:
        with Running(place, "burn", 4, 1, options=("--cpus", "0.05"), without="limits") as bomb:
            control_fires(os.cpu_count() == 1 or not status_of(bomb.pid)["Cpus_allowed_list"].isdigit(), "without the limit it has all of them")


class Owner:
    """Writes a little and waits for the disk, as an editor does."""

    def __init__(self, place):
        self.file = open(place.dir / "owners", "wb", buffering=0)

    def slowest_of(self, count):
        took = []
        for _ in range(count):
            began = time.monotonic()
            self.file.write(b"x" * 4096)
            os.fsync(self.file.fileno())
            took.append(time.monotonic() - began)
        return max(took)


@test(judges_time=True, id="RES-08")
def a_storm_on_the_disk_leaves_the_owner_and_a_neighbour_their_turn(place):
    """It has no bandwidth of its own to keep to: what is shown is that everybody's turn comes, and that it ends."""
    owner, seconds = Owner(place), 2 if SOAK_SECONDS <= 5 else 20
    idle = owner.slowest_of(10)
    with Neighbour(place) as neighbour:
        with Running(place, "io-storm", 4, seconds + 2, options=("--disk", "64M", "--timeout", f"{seconds}s")) as bomb:
            slowest, answers = owner.slowest_of(10), neighbour.slowest_of(20)
            report = bomb.end()
    print(f"# fsync of the owner: {idle * 1000:.0f} ms idle, {slowest * 1000:.0f} ms in the storm; the neighbour: {answers:.0f} ms")
    assert slowest < 5 * PATIENCE and answers < 5000 * PATIENCE, f"{slowest:.1f} s, {answers:.0f} ms"
    equal(report.result.code, 124, report)
    nothing_is_left(place)
    ran = attack(place, "io-storm", 1, 1)
    control_fires(int(ran.say["storm"][0]) > 5, f"it writes and waits: {ran!r}")


def live_peak(keeper):
    """VmHWM in KiB of the child that brings changes home."""
    return max([int(status_of(pid).get("VmHWM", "0 kB").split()[0]) for pid in descendants(keeper) if status_of(pid).get("Name") == "cove-live"] or [0])


STORM = """
import os
for i in range({directories}):
    os.makedirs(f"d{{i % 97}}/e{{i}}")
for i in range({files}):
    open(f"d{{i % 97}}/f{{i}}", "w").write(str(i))
for i in range({events}):
    with open(f"busy{{i % 5}}", "w") as f: f.write(str(i))
"""


@test(id="RES-13")
def a_watcher_that_cannot_follow_looks_around_instead(place):
    """With 100,000 files and more directories than are watched: `tests/soak races`.  Else the kernel tells it nothing at all."""
    many = SOAK_SECONDS > 5
    size = {"directories": 20000, "files": 100000, "events": 200000} if many else {"directories": 100, "files": 1000, "events": 2000}
    report, words = place.dir / "report.json", [COVE, "run", "-q", "--workspace", "live", "--report", place.dir / "report.json", "--"]
    process = subprocess.Popen([*(() if many else without("inotify_init1")), *words, "python3", "-c", STORM.format(**size)], stdin=subprocess.DEVNULL, env=place.env,
                               cwd=place.work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak, end = 0, time.monotonic() + 600 * PATIENCE
    while process.poll() is None:
        peak = max(peak, live_peak(process.pid))
        assert time.monotonic() < end, process.kill()
        time.sleep(0.1)
    equal(process.returncode, 0, process.stderr.read())
    process.stderr.close()
    equal(json.loads(report.read_text())["live"]["slow"], True, "it says that it could not follow")
    assert 0 < peak < 200_000 or "COVE_SANITIZED" in os.environ, f"{peak} KiB"
    equal({f"busy{i}": (place.work / f"busy{i}").read_text() for i in range(5)}, {f"busy{i % 5}": str(i) for i in range(size["events"] - 5, size["events"])})
    equal([i for i in range(size["files"]) if not (place.work / f"d{i % 97}/f{i}").exists() or (place.work / f"d{i % 97}/f{i}").read_text() != str(i)], [], "files that did not come")
    equal(sum(1 for _ in place.work.glob("d*/e*")), size["directories"], "directories")
    subprocess.run([*words, "sh", "-c", "echo x >one"], stdin=subprocess.DEVNULL, env=place.env, cwd=place.work, check=True)
    control_fires(json.loads(report.read_text())["live"]["slow"] is False and (place.work / "one").exists(), "one that is followed is not called slow")


@test(id="RES-09")
def a_flood_of_output_is_bounded_and_fills_no_memory(place):
    for script in ("yes", "yes >&2", "yes x"):
        path = place.dir / "report.json"
        result = place.sh(script, options=("--output", "3M", "--report", path))
        equal((result.code, json.loads(path.read_text())["limit"]), (137, "output"), repr(result)[-300:])
        equal(len(result.out) + len(result.err) - len(result.err.partition(b"cove: ")[2]) - (6 if b"cove: " in result.err else 0), 3 << 20, script)
    # Nobody reads: the keeper must neither grow nor wait in a place where it cannot be ended.
    process = subprocess.Popen([COVE, "run", "--rm", "--", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place.env, cwd=place.work)
    time.sleep(1.5)
    grown = memory_of(process.pid)
    process.send_signal(signal.SIGTERM)
    process.stdout.close()
    process.wait(timeout=10)
    process.stderr.close()
    assert grown < 64 << 10, f"the keeper has {grown} KiB"
    result = place.sh("yes | head -c 4000000", options=("--output", "3M"), without="limits")
    control_fires(len(result.out) == 4000000, "without the limit all of it comes")


@test(judges_time=True, id="RES-10")
def zombies_are_reaped(place):
    with Running(place, "zombies", 2000) as bomb:
        deadline = time.monotonic() + 1.5  # on a busy machine PID 1's turn comes later
        while len(there := [pid for pid in descendants(bomb.cove) if status_of(pid).get("State", "").startswith("Z")]) >= 50 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(there) < 50, f"{len(there)} zombies"
        equal(number_in(bomb.output, "orphans"), 2000, "orphans")


def number_in(output, key):
    return int(output.decode().partition(f"SAY {key} ")[2].split()[0])


@contextlib.contextmanager
def owner_can(what, make):
    """The owner's own programs get what they need, before, meanwhile and after."""
    def works():
        fd = make()
        if fd >= 0:
            os.close(fd)
        return fd >= 0
    assert works(), f"the owner has no {what} even before"
    yield works
    assert works(), f"{what} stays away from the owner"


@test(id="RES-12")
def tables_that_one_user_shares_are_left_to_the_owner(place):
    with owner_can("inotify", lambda: libc.inotify_init1(0)) as works:
        with Running(place, "descriptor-bomb", "inotify", 1000) as bomb:
            assert number_in(bomb.output, "descriptors") <= 96, bomb.output
            assert works(), "the owner's programs get no inotify instance"
        with Running(place, "descriptor-bomb", "inotify", 1000, without="knobs") as bomb:
            control_fires(number_in(bomb.output, "descriptors") > 96, "without the knob it gets more")

    def terminal():
        master, slave = pty.openpty()
        os.close(slave)
        return master
    with owner_can("a terminal", terminal) as works:
        with Running(place, "terminals", 1000) as bomb:
            assert number_in(bomb.output, "terminals") <= 256, bomb.output
            assert works(), "the owner gets no terminal"


@test(id="RES-12")
def of_signals_timers_queues_and_keys_a_sandbox_has_a_part(place):
    most = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
    if most == resource.RLIM_INFINITY:
        skip("kernel: pending signals are not bounded here")
    wanted = most // 8 + 500
    for kind in ("timers", "signals"):
        with Running(place, "table-bomb", kind, wanted) as bomb:
            assert 0 < number_in(bomb.output, "entries") <= most // 8, f"{kind}: {bomb.output}"
            equal(status_of(bomb.pid)["SigQ"].split("/")[1], str(most // 8), f"{kind}: what the kernel says")
            bomb.process.kill()
        control_fires(number(attack_host(place, "table-bomb", kind, wanted, 0), "entries") == wanted, f"{kind}: on the host there are more")
    for kind, bound in (("queues", 2), ("keys", 0), ("segments", 4096)):
        with Running(place, "table-bomb", kind, 5000) as bomb:
            assert number_in(bomb.output, "entries") <= bound, f"{kind}: {bomb.output}"
            shared = subprocess.run(["ipcs", "-m"], stdout=subprocess.PIPE, text=True).stdout if kind == "segments" else ""
            assert len(shared.splitlines()) < 1000, "segments of the sandbox are the host's"
            bomb.process.kill()


@test(id="RES-14")
def arguments_of_megabytes_are_started_and_forgotten(place):
    times = 100 if SOAK_SECONDS <= 5 else 1000
    report, summary = told(place, "exec-bomb", times, options=("--memory", "100M"), timeout=120)
    equal(report.say.get("done"), ["yes"], repr(report)[-500:])
    assert summary["usage"]["peak_kib"] < 100 << 10, summary["usage"]


@test(id="RES-14")
def a_path_of_tens_of_thousands_of_places_is_searched_and_no_more(place):
    """More than 128 KiB are no variable any more."""
    longest = "/x:" * 43000
    began = time.monotonic()
    equal(place.run("nowhere-to-be-found", options=("-e", f"PATH={longest}"), timeout=60).code, 127)
    equal(place.run("true", options=("-e", f"PATH={longest}/usr/bin"), timeout=60).code, 0)
    assert time.monotonic() - began < 20 * PATIENCE, f"{time.monotonic() - began:.1f} s"
    result = place.sh("i=0; p=/x; while [ $i -lt 17 ]; do p=$p:$p; i=$((i + 1)); done; PATH=$p; nowhere-to-be-found", options=("--memory", "100M", "--timeout", "60s"), timeout=90)
    equal(result.code, 127, f"a hundred thousand in a shell: {result!r}"[-300:])


@test(judges_time=True, id="RES-15")
def time_ends_whatever_refuses_to_hear(place):
    """SIGTERM at the end of the time, and two seconds later the end."""
    put_probe(place)
    scripts = ("exec ./probe stubborn", "kill -STOP $$", "trap '' TERM; while :; do sleep 0.1; done", "exec sleep 100")
    paths = [place.dir / f"report{number}.json" for number in range(len(scripts))]
    results = at_once(lambda row: place.sh(row[0], options=("--timeout", "1s", "--report", row[1]), timeout=30), list(zip(scripts, paths)))
    for script, path, result in zip(scripts, paths, results):
        took = json.loads(path.read_text())["usage"]["wall_us"] / 1e6
        equal(result.code, 124, f"{script}: {result!r}")
        assert 1 <= took < 1 + 2 + 1, f"{script}: {took:.1f} s"
    nothing_is_left(place)


if __name__ == "__main__":
    main()
