"""A pause of a sandbox that stays: nobody inside moves, and nobody inside can end it."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, PATIENCE, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, descendants, one_error, wait_for  # noqa: E402
from support.staying import execute, keeper, pid_1, state, staying  # noqa: E402

GROUPS = pathlib.Path("/sys/fs/cgroup")
# Wakes itself by a timer of the kernel's, after and every so many milliseconds, and counts.
WAKER = """
import ctypes, os, signal, sys, time
first, again = int(sys.argv[1]), int(sys.argv[2])
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("pad", ctypes.c_char * 48)]
libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
if libc.timer_create(1, ctypes.byref(Event(None, signal.SIGCONT, 0, b"")), ctypes.byref(timer)): raise OSError(ctypes.get_errno())
span = (ctypes.c_long * 4)(again // 1000, again % 1000 * 1000000, first // 1000, first % 1000 * 1000000)
if libc.timer_settime(timer, 0, span, None): raise OSError(ctypes.get_errno())
out = os.open("/tmp/count", os.O_CREAT | os.O_WRONLY)
number = 0
while True:
    number += 1
    os.pwrite(out, b"%09d" % number, 0)
    time.sleep(0.001)
"""


def groups_of(pid):
    """The directories of control groups that a process is in, as far as Cove has made them."""
    found = []
    for line in open(f"/proc/{pid}/cgroup"):
        _, controllers, path = line.strip().split(":", 2)
        if "/cove-f" in path:
            found += [tree for tree in (GROUPS / ("unified" if not controllers else controllers) / path[1:], GROUPS / path[1:]) if tree.exists()]
    return found


def is_frozen(place, ident):
    """Whether the kernel does it here."""
    return bool(groups_of(pid_1(place, ident)))


def counted(place, ident):
    with contextlib.suppress(StopIteration, ValueError):
        return int(next((place.state / "sandboxes" / ident).glob("u*/tmp/count")).read_text())
    return 0


def letter(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[0].decode()
    return "Z"


@test
def when_a_pause_is_told_everybody_has_stopped(place):
    many = 200
    with staying(place) as ident:
        place.cove("exec", "-d", ident, "--", "sh", "-c", f"renice -n 19 $$ >/dev/null; for i in $(seq {many}); do while :; do :; done & done; wait")
        wait_for(lambda: len(descendants(pid_1(place, ident))) >= many, seconds=30, what="so many")
        everybody, frozen = descendants(pid_1(place, ident)), is_frozen(place, ident)
        equal(place.cove("pause", ident).code, 0)
        if frozen:
            assert any("frozen 1" in (g / "cgroup.events").read_text() if (g / "cgroup.events").exists() else
                       "FROZEN" in (g / "freezer.state").read_text() for g in groups_of(pid_1(place, ident))), "frozen by the kernel"
        else:
            equal([found for found in map(letter, everybody) if found not in "TtZ"], [], "who still runs")


@test
def a_timer_does_not_end_a_pause(place):
    with staying(place) as ident:
        (place.work / "waker.py").write_text(WAKER)
        place.cove("exec", "-d", ident, "--", "python3", "waker.py", str(1500 * PATIENCE), "0")
        wait_for(lambda: counted(place, ident) > 3, what="a count")
        frozen = is_frozen(place, ident)
        equal(place.cove("pause", ident).code, 0)
        before = counted(place, ident)
        time.sleep(2.5 * PATIENCE)
        after = counted(place, ident)
        if frozen:
            equal(after, before, "the kernel lets nobody go on")
        assert after < before + 300, f"it was woken and stayed so: {before} {after}"
        time.sleep(0.5)
        equal(counted(place, ident), after, "nobody moves")
        equal(place.cove("resume", ident).code, 0)
        wait_for(lambda: counted(place, ident) > after, what="it to go on")


@test
def who_is_hung_up_during_a_pause_goes_on_only_after_it(place):
    with staying(place) as ident:
        asked = subprocess.Popen([COVE, "exec", ident, "--", "sh", "-c", "trap 'echo 9 >/tmp/count; exit' HUP; echo 1 >/tmp/count; while :; do sleep 0.01; done"],
                                 env=place.env, cwd=place.work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        wait_for(lambda: counted(place, ident) == 1, what="it")
        equal(place.cove("pause", ident).code, 0)
        asked.kill()
        asked.wait()
        time.sleep(0.5)
        equal(counted(place, ident), 1, "it is paused")
        one_error(place.cove("exec", ident, "--", "true"), f"cove resume {ident[:12]}")
        equal(place.cove("resume", ident).code, 0)
        wait_for(lambda: execute(place, ident, "cat /tmp/count").text == "9\n", what="its last word")  # a checkpoint may have taken it by now


# Where the tree of v2 is missing


def hidden(place, hide, *words):
    """cove WORDS where some trees of control groups are not mounted."""
    script = "".join(f"umount {GROUPS}/{name} && " for name in hide) + 'exec "$@"'
    return subprocess.run(["unshare", "-m", "--propagation", "private", "--", "sh", "-c", script, "-", COVE, *words],
                          env=place.env, cwd=place.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * PATIENCE, text=True)


def trees(*names):
    for name in names:
        if not os.path.ismount(GROUPS / name):
            skip(f"kernel: {GROUPS}/{name} is no tree of its own here")


@contextlib.contextmanager
def staying_without(place, *hide):
    done = hidden(place, hide, "create")
    equal((done.returncode, done.stderr), (0, ""))
    try:
        yield done.stdout.strip()
    finally:
        place.cove("rm", "-f", done.stdout.strip())


@test(identities=("root",))
def in_a_tree_of_v1_the_kernel_does_it_too(place):
    trees("unified", "freezer")
    with staying_without(place, "unified") as ident:
        (group,) = groups_of(pid_1(place, ident))
        assert str(group).startswith(f"{GROUPS}/freezer/"), group
        (place.work / "waker.py").write_text(WAKER)
        place.cove("exec", "-d", ident, "--", "python3", "waker.py", "100", "10")
        wait_for(lambda: counted(place, ident) > 3, what="a count")
        equal(place.cove("pause", ident).code, 0)
        before = counted(place, ident)
        time.sleep(1)
        equal((counted(place, ident), (group / "freezer.state").read_text()), (before, "FROZEN\n"))
        equal(place.cove("resume", ident).code, 0)
        wait_for(lambda: counted(place, ident) > before, what="it to go on")
        equal(place.cove("pause", ident).code, 0)
        equal(place.cove("stop", ident).code, 0, "one that is paused can be stopped")
        wait_for(lambda: not group.exists(), what="the end of its group")


@test(identities=("root",))
def one_that_is_frozen_in_a_tree_of_v1_dies_with_its_keeper(place):
    trees("unified", "freezer")
    with staying_without(place, "unified") as ident:
        (group,) = groups_of(pid_1(place, ident))
        place.cove("exec", "-d", ident, "--", "sleep", "1000")
        place.cove("pause", ident)
        os.kill(keeper(place, ident), signal.SIGKILL)
        wait_for(lambda: not descendants(), what="the end of everything")
        equal((state(place, ident), group.exists()), ("killed", False))


@test(identities=("root",))
def one_that_is_frozen_and_lost_keeper_and_guard_is_freed_by_the_next_start(place):
    trees("unified", "freezer")
    with staying_without(place, "unified") as ident:
        first = pid_1(place, ident)
        (group,) = groups_of(first)
        place.cove("exec", "-d", ident, "--", "sleep", "1000")
        place.cove("pause", ident)
        (guard,) = [pid for pid in descendants() if open(f"/proc/{pid}/comm").read() == "cove-guard\n"]
        os.kill(guard, signal.SIGKILL)
        os.kill(keeper(place, ident), signal.SIGKILL)
        time.sleep(0.3)
        assert os.path.exists(f"/proc/{first}"), "it is frozen"
        os.utime(group, (1, 1))  # old enough for a sweep
        with staying_without(place, "unified"):
            pass
        wait_for(lambda: not descendants(), what="the end of everything")
        wait_for(lambda: not group.exists(), what="the end of its group")


@test(identities=("root",))
def where_no_tree_can_freeze_signals_do_it(place):
    trees("unified", "freezer")
    with staying_without(place, "unified", "freezer") as ident:
        equal(groups_of(pid_1(place, ident)), [])
        (place.work / "waker.py").write_text(WAKER)
        place.cove("exec", "-d", ident, "--", "python3", "waker.py", "700", "0")
        wait_for(lambda: counted(place, ident) > 3, what="a count")
        equal(place.cove("pause", ident).code, 0)
        time.sleep(1.2)
        before = counted(place, ident)
        time.sleep(0.5)
        equal(counted(place, ident), before)
        one_error(execute(place, ident, "true"), "paused")


adopt_orphans()
main()
