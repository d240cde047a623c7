"""LIFE: everything ends, and nothing stays."""
import json
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import subprocess
import time

from attack import (COVE, IDENTITY, PATIENCE, PROBES, Canaries, Running, attack, control_fires, cove_with, descendants, equal, main, nothing_is_left, program_of, put_probe, skip,
                    test)
from support import lives


def processes_with(word):
    """Processes of this machine whose command line has the word."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if word.encode() in pathlib.Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                pass
    return found


def wait_until(condition, seconds=5):
    deadline = time.monotonic() + seconds * PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


STUBBORN = """trap '' TERM HUP INT; (trap '' TERM HUP INT; setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 0.3; done' {0} </dev/null >/dev/null 2>&1 &)
setsid sh -c 'kill -STOP $$' {0} </dev/null >/dev/null 2>&1 & sleep 100 {0} 2>/dev/null & while :; do sleep 0.1; done"""


@test(id="LIFE-01")
def processes_that_hide_and_ignore_signals_end_too(place):
    word = secrets.token_hex(8)
    result = place.sh(STUBBORN.format(word), options=("--timeout", "700ms"), timeout=30)
    equal(result.code, 124, repr(result))
    assert wait_until(lambda: not processes_with(word)), f"still there: {processes_with(word)}"
    nothing_is_left(place)
    outside = subprocess.Popen(["timeout", "-k", "0.1", "0.5", "sh", "-c", STUBBORN.format(word)])
    outside.wait()
    left = processes_with(word)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    control_fires(left, "on the host they stay")


@test(id="LIFE-02")
def stopped_and_traced_processes_end_too(place):
    word = secrets.token_hex(8)
    script = f"sh -c 'kill -STOP $$' {word} & sh -c 'sleep 100' {word} & ./probe tracing; kill -STOP $!; kill -STOP $$"
    put_probe(place)
    equal(place.sh(script, options=("--timeout", "700ms"), timeout=30).code, 124)
    assert wait_until(lambda: not processes_with(word)), processes_with(word)
    nothing_is_left(place)


@test(id="LIFE-03")
def a_fork_storm_ends_with_its_sandbox(place):
    word = secrets.token_hex(8)
    script = f"s() {{ i=0; while [ $i -lt 400 ]; do sh -c 'sleep 5' {word} & i=$((i+1)); done; wait; }}; s & s & wait"
    result = place.sh(script, options=("--timeout", "400ms"), timeout=60)
    equal(result.code, 124, repr(result)[:300])
    assert wait_until(lambda: not processes_with(word)), processes_with(word)
    nothing_is_left(place, seconds=10)


def number_inside(pid):
    """What a process is called in its own pid namespace; 0 when it is gone."""
    try:
        lines = open(f"/proc/{pid}/status").read().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), 0)


@test(id="LIFE-04")
def the_death_of_init_ends_and_is_told(place):
    with Running(place, "wait") as run:
        init = [pid for pid in run.pids if number_inside(pid) == 1][0]
        pid = run.pid
        os.kill(init, signal.SIGKILL)
        report = run.end()
    equal(report.result.code, 125, repr(report))
    assert "PID 1" in report.result.errors, repr(report)
    assert wait_until(lambda: not os.path.exists(f"/proc/{pid}"))
    nothing_is_left(place)


@test(id="LIFE-05")
def open_files_listeners_and_mappings_do_not_keep_a_sandbox(place):
    word = secrets.token_hex(8)
    script = (f"cd /tmp; exec 9>held; python3 -c 'import mmap,socket,time,sys; m=mmap.mmap(-1,1<<20); s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); "
              f"f=open(\"/tmp/x\",\"w+b\"); f.write(b\"x\"*4096); f.flush(); n=mmap.mmap(f.fileno(),4096); time.sleep(100)' {word} & sleep 0.3; exit 5")
    before = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("net", "mnt")}
    equal(place.sh(script, timeout=30).code, 5)
    assert wait_until(lambda: not processes_with(word)), processes_with(word)
    nothing_is_left(place)
    equal({name: os.readlink(f"/proc/self/ns/{name}") for name in before}, before, "our own namespaces")


def dice():
    """Another order each day."""
    return random.Random(os.environ.get("COVE_SEED", time.strftime("%Y%m%d") + IDENTITY))


@test(id="LIFE-06")
def what_is_asked_of_a_sandbox_while_it_is_killed_is_answered(place):
    """A thousand of them: `tests/soak asked`."""
    lives.interleavings(place, dice(), 8)
    torn = place.work / "file"
    torn.write_bytes(lives.OLD[:9000] + lives.NEW[:11000])
    control_fires(torn.read_bytes() not in (lives.OLD, lives.NEW), "a file that is half of each would be seen")


@test(id="LIFE-07")
def starts_and_stops_with_failing_and_slow_calls_leave_nothing(place):
    """Five hundred of them: `tests/soak disturbed`."""
    if not shutil.which("strace"):
        skip("strace is not installed")
    lives.disturbances(place, dice(), 8, look=8)
    sandbox = place.state / "sandboxes/left-by-hand"
    sandbox.mkdir(mode=0o700)
    control_fires(lives.Inventory(place).more(), "a directory that is left would be seen")
    sandbox.rmdir()


def with_clock(way, place, *words):
    """cove WORDS while its wall clock is set.  Gives the result, how long it took, and how often it looked."""
    began = time.monotonic()
    done = cove_with(place, [PROBES / "stepping-clock", way, "--"], *words, timeout=60 * PATIENCE)
    looks = int(re.findall(r"^looks (\d+)$", done.errors, re.M)[0])
    return done, time.monotonic() - began, looks


@test(id="LIFE-09")
def a_wall_clock_that_is_set_neither_ends_a_run_nor_keeps_one_alive(place):
    report = place.dir / "report.json"
    done, took, looks = with_clock("swing", place, "run", "--rm", "--report", report, "--timeout", "1s", "--", "sleep", "60")
    equal(done.code, 124, done)
    told = json.loads(report.read_text())["usage"]["wall_us"] / 1e6
    assert 1 <= took < 1 + 10 * PATIENCE and 0.9 <= told <= took, f"{took:.1f} s, told as {told:.1f} s"
    done, took, _ = with_clock("swing", place, "run", "--rm", "--timeout", "30s", "--", "sleep", "0.5")
    equal(done.code, 0, done)
    control_fires(looks >= 2, "it looks at the wall clock, which was set each time")


@test(id="LIFE-09")
def what_the_owner_wrote_is_noticed_although_the_clock_was_set_back(place):
    (place.work / "file").write_text("old\n")
    done, _, looks = with_clock("ahead", place, "run", "-q", "--", "sh", "-c", "echo inside >file; sleep 2.5")
    equal(done.code, 0, done)
    (place.work / "file").write_text("the owner's\n")
    record = json.loads(place.cove("ls", "--json").out)[0]
    control_fires(looks >= 2, "its clock was a year ahead when it began")
    assert record["created"] <= record["ended"] <= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 1)), record
    done = place.cove("apply", "--yes")
    equal((done.code, (place.work / "file").read_text()), (1, "the owner's\n"), done)
    assert "CONFLICT file" in done.text, done


@test(id="LIFE-10")
def a_keeper_that_is_killed_takes_its_sandbox_along(place):
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP):
        run = Running(place, "wait")
        pid, below = run.pid, run.pids
        os.kill(run.cove, number)
        run.process.wait(20)
        assert wait_until(lambda: not os.path.exists(f"/proc/{pid}")), f"the command outlived {number}"
        run.process.communicate()
    place.run("true")  # what a kill prevented from being removed, the next start removes
    nothing_is_left(place)


main()
