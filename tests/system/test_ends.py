"""What ends with a command of a sandbox that stays, and what does not."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import PATIENCE, equal, main, test  # noqa: E402
from support.running import adopt_orphans, finish, read_until, start, wait_for  # noqa: E402
from support.staying import execute, staying  # noqa: E402

# A process that left its group, its session and its parent.
DAEMON = "setsid sh -c 'sleep 1000 & echo $! >>{name}' >/dev/null 2>&1 </dev/null; "


def alive(place, ident, name):
    """How many of those that wrote their numbers there live."""
    return int(execute(place, ident, f"for p in $(cat {name}); do kill -0 $p 2>/dev/null && echo; done | wc -l").text)


@test
def a_time_out_ends_all_that_descend_from_the_command_and_nobody_else(place):
    with staying(place) as ident:
        execute(place, ident, DAEMON.format(name="/tmp/others"))
        done = execute(place, ident, DAEMON.format(name="/tmp/mine") * 3 + "(sleep 1000 & echo $! >>/tmp/mine) & sleep 1000", "--timeout", "700ms")
        equal(done.code, 124, done)
        equal((alive(place, ident, "/tmp/mine"), alive(place, ident, "/tmp/others")), (0, 1))
        equal(int(execute(place, ident, "wc -l </tmp/mine").text), 4, "so many there were")


@test
def who_is_started_in_the_last_moments_ends_too(place):
    script = "trap \"" + DAEMON.format(name="/tmp/mine").replace('"', '\\"').replace("$", "\\$") + " exit 0\" TERM; echo x; while :; do sleep 0.02; done"
    with staying(place) as ident:
        done = execute(place, ident, script, "--timeout", "300ms")
        equal(done.code, 124, done)
        equal(execute(place, ident, "wc -l </tmp/mine").text, "1\n", "it was started")
        equal(alive(place, ident, "/tmp/mine"), 0)


@test
def who_forks_without_end_ends_at_a_time_out(place):
    (place.work / "bomb.py").write_text("import os, time\nwhile True:\n    try:\n        if os.fork() == 0:\n            os.setsid()\n            if os.fork(): os._exit(0)\n        else:\n            time.sleep(0.001)\n    except OSError:\n        time.sleep(0.001)\n")
    with staying(place, "--processes", "150") as ident:
        done = place.cove("exec", "--timeout", "1500ms", ident, "--", "python3", "bomb.py", timeout=120)
        equal(done.code, 124, done)
        equal(execute(place, ident, "pgrep -c python3").text, "0\n")


@test
def a_command_with_a_time_is_as_one_without(place):
    with staying(place) as ident:
        for script, code in (("exit 0", 0), ("exit 77", 77), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("kill -SEGV $$", 139), ("no-such-program", 127)):
            done = execute(place, ident, script, "--timeout", "60s")
            equal(done.code, code, (script, done))
        execute(place, ident, DAEMON.format(name="/tmp/left"), "--timeout", "60s")
        equal(alive(place, ident, "/tmp/left"), 1, "what it leaves goes on")
        asked = start(place, "exec", "--timeout", "60s", ident, "--", "sh", "-c", "trap 'exit 8' USR1; echo ready; while :; do sleep 0.05; done")
        read_until(asked.stdout, b"ready\n")
        asked.send_signal(10)
        equal(finish(asked).code, 8, "signals reach it")


TRACER = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(0x4206, int(sys.argv[1]), 0, 0): sys.exit(ctypes.get_errno())
open(sys.argv[2], "w").close()
time.sleep(1000)
"""


def held(place, ident, name, *options):
    """A command that a tracer has; its number is in a file of that name."""
    asked = start(place, "exec", *options, ident, "--", "sh", "-c", f"echo $$ >/tmp/{name}; exec sleep 1000")
    wait_for(lambda: execute(place, ident, f"cat /tmp/{name}").text, what="its number")
    place.cove("exec", "-d", ident, "--", "sh", "-c", f"exec python3 tracer.py $(cat /tmp/{name}) /tmp/{name}.seized")
    wait_for(lambda: execute(place, ident, f"test -e /tmp/{name}.seized").code == 0, what="its tracer")
    return asked


@test
def who_is_dead_and_held_by_a_tracer_does_not_hold_a_command(place):
    """The time is long enough for its tracer to come, also where there is much other work."""
    (place.work / "tracer.py").write_text(TRACER)
    with staying(place) as ident:
        timed, hung = held(place, ident, "timed", "--timeout", f"{5 * PATIENCE}s"), held(place, ident, "hung")
        began = time.monotonic()
        os.kill(hung.pid, 9)  # hung up: SIGHUP ends it, and it is a zombie of its tracer's
        finish(hung)
        gone = execute(place, ident, "while kill -0 $(cat /tmp/hung) 2>/dev/null; do sleep 0.05; done", "--timeout", f"{30 * PATIENCE}s")
        equal(gone.code, 0, f"its end: {gone!r}")
        equal(finish(timed, 30).code, 124)
        assert time.monotonic() - began < 12 * PATIENCE


adopt_orphans()
main()
