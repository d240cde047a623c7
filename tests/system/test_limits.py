"""What a run may use, and what it used.

The same tests hold wherever they run: which kind of limit this user can have here is read from the plan, and judged
by what the kernel offers, not by who we are.
"""
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, IDENTITY, PATIENCE, equal, main, skip, test  # noqa: E402
from support import running  # noqa: E402

running.adopt_orphans()

# No bomb of ours takes more than this, should its limit not hold.
SAFE = 300 << 20

FILL = f"""
import sys, time
held = []
for _ in range({SAFE >> 20}):
    held.append(b"x" * (1 << 20))
    time.sleep(0.002)
print("survived")
"""


def ids(place):
    """The sandboxes of this test that run."""
    return [entry.name for entry in (place.state / "sandboxes").iterdir()]


def groups(sandboxes):
    """Their control groups: other tests may have theirs meanwhile."""
    return [path for one in sandboxes for path in glob.glob(f"/sys/fs/cgroup/**/cove-{one}*", recursive=True)]


def report(place, *command, options=(), code=None, **kwargs):
    """Runs a command and gives (result, report)."""
    path = place.dir / "report.json"
    result = place.run(*command, options=("--report", path, *options), **kwargs)
    if code is not None:
        equal(result.code, code, f"exit code: {result!r}")
    return result, json.loads(path.read_text())


def plan(place, *options):
    """limit -> how it would be kept."""
    result = place.cove("run", "--print-plan", "--json", *options, "--", "true")
    equal(result.code, 0, repr(result))
    return {step["target"].split()[0]: step["source"] for step in json.loads(result.text)["steps"] if step["kind"] == "limit"}


def ended_by(result, told, limit):
    equal((result.code, told["exit_code"], told["reason"], told["limit"]), (137, 137, "limit", limit), repr(result))
    equal(told["limits"][limit]["reached"], True, limit)
    assert f"the limit {limit} " in result.errors, result


def has_cgroups():
    """Whether this user could make a group: by trying what we would do, in Python."""
    if os.geteuid() != 0 or IDENTITY != "root":
        return os.path.exists(f"/run/user/{os.getuid()}/systemd/private")
    return os.access("/sys/fs/cgroup", os.W_OK)


# --- what is promised -----------------------------------------------------------------------------

@test
def the_plan_says_how_each_limit_is_kept(place):
    kinds = plan(place, "--memory", "1G", "--cpus", "1", "--processes", "100", "--open-files", "100", "--file-size", "1M",
                 "--disk", "1G", "--inodes", "1000", "--output", "1M")
    equal(sorted(kinds), sorted(["memory", "cpus", "processes", "open-files", "file-size", "disk", "inodes", "output"]))
    for name in ("processes", "open-files", "file-size", "output"):
        assert kinds[name].startswith("hard"), kinds
    if has_cgroups():
        assert kinds["memory"].startswith("hard, cgroup"), kinds
    else:
        equal((kinds["memory"], kinds["cpus"]), ("sampled", "asked for, affinity"))


@test
def nothing_asked_for_means_no_group_and_the_usual_bound(place):
    equal(plan(place), {"processes": "hard, rlimit"})
    process = running.start(place, "run", "--rm", "--", "sh", "-c", "echo up; sleep 5")
    running.read_until(process.stdout, b"up")
    known = ids(place)
    made = groups(known)
    running.stop(process)
    assert known, "no sandbox ran"
    equal(made, [], "control groups")


@test(id="Z-13")
def what_must_be_hard_and_cannot_be_is_refused_with_a_way_out(place):
    running.one_error(place.cove("run", "--dry-run", "--disk", "1G", "--enforce", "hard", "--", "true"), "disk 1G", "sampled", "COVE_HOME")
    policy = running.write(place.dir / "policy.yaml", "limits: { disk: { max: 1G, hard: true } }\n", 0o600)
    running.one_error(place.cove("run", "--policy", policy, "--", "true"), "disk 1G", "must be hard")
    equal(place.run("true", options=("--processes", "100", "--output", "1M", "--enforce", "hard")).code, 0)
    if not has_cgroups():
        running.one_error(place.run("true", options=("--memory", "1G", "--enforce", "hard")), "memory 1G", "sampled", "systemd")


@test
def a_repository_can_narrow_a_limit_and_not_widen_it(place):
    running.write(place.work / "cove.yaml", "policy:\n  limits: { output: 10, processes: 9000 }\n")
    result = place.run("sh", "-c", "printf 0123456789abcdef", options=("--output", "1K"))
    equal((result.code, result.out), (137, b"0123456789"), repr(result))
    shown = place.cove("policy", "show").text
    assert "limits.output: 10\n" in shown and "limits.processes: 4096\n" in shown, shown


# --- single limits --------------------------------------------------------------------------------

@test(judges_time=True)
def more_memory_than_allowed_ends_the_run_and_is_named(place):
    began = time.monotonic()
    result, told = report(place, "python3", "-c", FILL, options=("--memory", "64M"))
    ended_by(result, told, "memory")
    assert b"survived" not in result.out and time.monotonic() - began < 15 * PATIENCE, result
    assert told["usage"]["peak_kib"] < (200 << 10), told["usage"]
    running.nothing_left(place)


@test
def memory_below_the_limit_is_left_alone(place):
    result, told = report(place, "python3", "-c", "x = b'x' * (40 << 20); print('fine')", options=("--memory", "256M"), code=0)
    equal((result.out, told["limits"]["memory"]["reached"], told["limit"]), (b"fine\n", False, None))


@test(judges_time=True)
def memory_of_a_process_whose_first_thread_has_ended_counts(place):
    """/proc/PID shows nothing of such a process; only its other threads do."""
    script = ("import ctypes, os, threading, time\n"
              "def hold():\n"
              "    time.sleep(0.3)\n"
              "    held = [(b'x' * (1 << 20), time.sleep(0.002)) for _ in range(150)]\n"
              "    time.sleep(1.5)\n"
              "    os.write(1, b'survived')\n"
              "    os._exit(0)\n"
              "threading.Thread(target=hold).start()\n"
              f"ctypes.CDLL(None).syscall({60 if os.uname().machine == 'x86_64' else 93}, 0)\n")
    equal(place.run("python3", "-c", script, options=("--memory", "1G")).out, b"survived", "control")
    result, told = report(place, "python3", "-c", script, options=("--memory", "64M"))
    ended_by(result, told, "memory")


@test
def memory_that_was_only_forked_counts_once(place):
    """The pages of parent and children are the same until somebody writes."""
    script = ("import os, time\nx = b'x' * (50 << 20)\n"
              "for i in range(4):\n    if os.fork() == 0:\n        time.sleep(1)\n        os._exit(0)\n"
              "time.sleep(1)\nprint('fine')")
    result, told = report(place, "python3", "-c", script, options=("--memory", "160M"), code=0)
    equal((result.out, told["limits"]["memory"]["reached"]), (b"fine\n", False))


@test
def memory_that_many_processes_have_together_counts(place):
    script = "import os, time\nfor i in range(4):\n    if os.fork() == 0:\n        x = b'x' * (40 << 20)\n        time.sleep(5)\n        os._exit(0)\ntime.sleep(5)"
    result, told = report(place, "python3", "-c", script, options=("--memory", "100M"))
    ended_by(result, told, "memory")


@test
def shared_memory_counts_once(place):
    """Three processes with the same 60 MB: 180 in sum, and 60 in truth."""
    script = ("import mmap, os, time\nm = mmap.mmap(-1, 60 << 20)\nfor i in range(0, 60 << 20, 4096): m[i] = 1\n"
              "for i in range(2):\n    if os.fork() == 0:\n        for i in range(0, 60 << 20, 4096): m[i]\n        time.sleep(1)\n        os._exit(0)\n"
              "time.sleep(1)\nprint('fine')")
    result, _ = report(place, "python3", "-c", script, options=("--memory", "150M"))
    equal((result.code, result.out), (0, b"fine\n"), repr(result))


@test
def more_processes_than_allowed_cannot_be_made(place):
    script = "import os, time\nn = 0\ntry:\n    while n < 100:\n        if os.fork() == 0:\n            time.sleep(9)\n        n += 1\nexcept OSError as e:\n    print(n, e.errno, flush=True)\ntime.sleep(0.5)"
    result, told = report(place, "python3", "-c", script, options=("--processes", "30"))
    equal(result.out, b"29 11\n", "forks, and EAGAIN")
    if told["limits"]["processes"]["kept_by"].startswith("cgroup"):
        equal(told["limits"]["processes"]["reached"], True)
    equal(told["usage"]["processes"], 30, str(told["usage"]))


@test
def threads_are_processes_too(place):
    script = "import threading, time\nn = 0\ntry:\n    for n in range(100): threading.Thread(target=time.sleep, args=(3,), daemon=True).start()\nexcept RuntimeError: pass\nprint(n)"
    equal(place.run("python3", "-c", script, options=("--processes", "30")).out, b"29\n")


@test(judges_time=True)
def processors_are_bounded(place):
    if plan(place, "--cpus", "0.5")["cpus"].startswith("hard"):
        _, told = report(place, "sh", "-c", "timeout 1.5 sh -c 'while :; do :; done'; true", options=("--cpus", "0.25"), code=0)
        used, wall = told["usage"]["user_us"] + told["usage"]["system_us"], told["usage"]["wall_us"]
        assert used < wall / 2, f"{used} us of {wall} us with a quarter of a processor"
        # A machine that is busy with others may never give it as much as it is allowed.
        assert told["limits"]["cpus"]["reached"] or used < wall / 5, told
    else:
        equal(place.run("nproc", options=("--cpus", "0.5")).out, b"1\n")


@test(identities=("user", "nested"))
def processors_are_bounded_however_late_the_keeper_is(place):
    """It moves its clone to another processor and lets it go again: the clone must not take the moment between for all it has."""
    if plan(place, "--cpus", "0.5")["cpus"].startswith("hard"):
        skip("kernel: a group keeps this limit here")
    running.tool("strace")
    done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sched_setaffinity", "-e", "inject=sched_setaffinity:delay_exit=100000:when=1",
                           COVE, "run", "--rm", "--cpus", "0.5", "--", "nproc"], cwd=place.work, env=place.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(done.stdout, b"1\n", repr(done))


@test
def open_files_are_bounded_and_stay_so(place):
    script = ("import os, resource\nn = 0\ntry:\n    while n < 5000: os.dup(0); n += 1\nexcept OSError as e: print(n, e.errno)\n"
              "try: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); print('raised')\nexcept (ValueError, OSError): print('held')")
    result = place.run("python3", "-c", script, options=("--open-files", "64"))
    equal(result.text.split()[1:], ["24", "held"], repr(result))
    assert int(result.text.split()[0]) < 64, result


@test
def a_file_cannot_outgrow_its_limit(place):
    result, told = report(place, "sh", "-c", "exec head -c 2000000 /dev/zero > f", options=("--file-size", "1M"))
    ended_by(result, told, "file-size")
    result = place.sh("head -c 2000000 /dev/zero > f; wc -c < f", options=("--file-size", "1M"))
    equal(result.out.strip(), b"1048576", repr(result))


@test(judges_time=True)
def more_on_disk_than_allowed_ends_the_run(place):
    for what in ("head -c 80000000 /dev/zero > f",
                 "mkdir d; for i in 1 2 3 4 5 6 7 8; do head -c 10000000 /dev/zero > d/$i; done",
                 "head -c 80000000 /dev/zero > /tmp/f",
                 "mkdir d; head -c 80000000 /dev/zero > d/f; chmod 0 d",
                 "exec 3> f; rm f; head -c 80000000 /dev/zero >&3"):
        began = time.monotonic()
        result, told = report(place, "sh", "-c", what + "; sleep 20", options=("--disk", "30M"))
        ended_by(result, told, "disk")
        assert time.monotonic() - began < 10 * PATIENCE, what
    result, told = report(place, "sh", "-c", "head -c 100000000 /dev/zero > f", options=("--disk", "30M"))
    ended_by(result, told, "disk")  # also one that was over before anybody looked
    result, told = report(place, "sh", "-c", "head -c 10000000 /dev/zero > f; sleep 1", options=("--disk", "30M"), code=0)
    equal(told["limits"]["disk"]["reached"], False)
    running.nothing_left(place)


@test
def more_files_than_allowed_end_the_run(place):
    result, told = report(place, "python3", "-c", "import os, time\nfor i in range(3000): open(f'f{i}', 'w')\ntime.sleep(20)", options=("--inodes", "1000"))
    ended_by(result, told, "inodes")
    running.nothing_left(place)


@test
def output_ends_exactly_at_its_limit(place):
    for script in ("head -c 100000 /dev/zero", "head -c 1001 /dev/zero", "head -c 600 /dev/zero; head -c 600 /dev/zero >&2"):
        result, told = report(place, "sh", "-c", script, options=("--output", "1000"))
        ended_by(result, told, "output")
        equal(len(result.out) + result.err.count(b"\0"), 1000, script)
    result, told = report(place, "head", "-c", "1000", "/dev/zero", options=("--output", "1000"), code=0)
    equal((len(result.out), told["limits"]["output"]["reached"]), (1000, False))


@test
def output_of_a_flood_that_never_ends_is_cut_and_the_flood_ended(place):
    began = time.monotonic()
    result, told = report(place, "yes", options=("--output", "1M"))
    ended_by(result, told, "output")
    equal(len(result.out), 1 << 20)
    assert time.monotonic() - began < 10 * PATIENCE


@test
def a_time_out_still_is_124(place):
    result, told = report(place, "sleep", "20", options=("--timeout", "300ms", "--memory", "64M"))
    equal((result.code, told["reason"], told["limit"]), (124, "timed-out", None), repr(result))


HELD = "import array, ctypes, mmap, os, socket, threading, time\nkept = []\n" \
       "def fill(keep):\n" \
       "    for _ in range(6):\n" \
       "        fd = os.open('f', os.O_RDWR | os.O_CREAT)\n" \
       "        os.unlink('f')\n" \
       "        os.posix_fallocate(fd, 0, 20 << 20)\n" \
       "        keep(fd)\n" \
       "    time.sleep(3)\n" \
       "    os.write(1, b'survived')\n" \
       "    os._exit(0)\n"


@test(judges_time=True)
def removed_files_that_no_descriptor_of_a_process_leads_to_count_on_disk(place):
    """Mapped and closed, sent to a socket that nobody reads, or held by a thread with descriptors of its own."""
    scripts = {
        "mapped": "libc = ctypes.CDLL(None)\nlibc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
                  "fill(lambda fd: (libc.mmap(None, 4096, 1, 2, fd, 0), os.close(fd)))",
        "sent": "one, other = socket.socketpair()\nfill(lambda fd: (socket.send_fds(one, [b'x'], [fd]), os.close(fd)))",
        "own table": "thread = threading.Thread(target=lambda: (ctypes.CDLL(None).unshare(0x400), fill(kept.append)))\n"
                     "thread.start()\nthread.join()",
        "among many": "def decoy():\n"
                      "    for i in range(900):\n"
                      "        fd = os.open(f'd{os.getpid()}', os.O_RDWR | os.O_CREAT)\n"
                      "        os.unlink(f'd{os.getpid()}')\n"
                      "        os.write(fd, b'x')\n"
                      "    os.write(there, b'x')\n"
                      "    time.sleep(60)\n"
                      "here, there = os.pipe()\n"
                      "for _ in range(5):\n    os.fork() or decoy()\n"
                      "for _ in range(5):\n    os.read(here, 1)\n"
                      "os.fork() or fill(kept.append)\nos.wait()",
    }
    controls = running.at_once(lambda script: place.run("python3", "-c", HELD + script, options=("--disk", "10G")).out, scripts.values())
    equal(dict(zip(scripts, controls)), dict.fromkeys(scripts, b"survived"), "controls")
    for script in scripts.values():
        result, told = report(place, "python3", "-c", HELD + script, options=("--disk", "50M"))
        ended_by(result, told, "disk")


# --- usage ----------------------------------------------------------------------------------------

@test
def a_run_tells_what_it_used_and_who_counted(place):
    script = ("import os, subprocess, time\nx = b'x' * (50 << 20)\nopen('f', 'wb').write(x[:10 << 20])\n"
              "p = [subprocess.Popen(['sleep', '1']) for _ in range(5)]\nwhile time.process_time() < 0.5: pass\n[q.wait() for q in p]")
    for options in ((), ("--memory", "512M", "--processes", "100")):
        _, told = report(place, "python3", "-c", script, options=options, code=0)
        usage = told["usage"]
        assert usage["user_us"] + usage["system_us"] > 300000, usage
        assert (50 << 10) < usage["peak_kib"] < (200 << 10), usage
        assert (10 << 20) <= usage["written_bytes"] < (40 << 20), usage
        assert 6 <= usage["processes"] <= 12, usage
        assert usage["wall_us"] > 1000000, usage
        for name in ("cpu_from", "memory_from", "processes_from"):
            assert usage[name] in ("rusage", "sampled", "cgroup-v1", "cgroup-v2"), usage


@test
def what_was_left_in_the_background_is_counted(place):
    """Nobody waits for it: it is killed, and what it had used is in the sum."""
    script = "sh -c 'while :; do :; done' & sleep 1"
    _, told = report(place, "sh", "-c", script, code=0)
    assert told["usage"]["user_us"] + told["usage"]["system_us"] > 100000, told["usage"]


@test
def the_summary_names_what_was_used_and_what_was_reached(place):
    result = place.sh("head -c 3000000 /dev/zero > f; sleep 0.3", options=("--summary", "--processes", "200", "--open-files", "50"))
    for words in ("CPU ", "peak ", "processes ", "processes 200 (hard, ", "open-files 50 (hard, rlimit)"):
        assert words in result.errors, f"{words!r} is not in: {result.errors}"
    # The kernel counts pages as they become dirty: one that is written back before it is full counts twice.
    (written,) = re.findall(r"written (\d+) KiB", result.errors)
    assert 2929 <= int(written) < 2 * 2930, result.errors
    result = place.run("yes", options=("--summary", "--output", "1K"))
    assert "limit output: everything was killed" in result.errors and "output 1K (hard, counted, REACHED)" in result.errors, result.errors


# --- nothing is left ------------------------------------------------------------------------------

def grouped(place):
    """A sandbox in groups that waits, and those groups; skips where there are none."""
    if "cgroup" not in plan(place, "--memory", "100M")["memory"]:
        skip("kernel: this user has no control groups here")
    process = running.start(place, "run", "--rm", "--memory", "100M", "--processes", "50", "--", "sh", "-c", "echo up; sleep 60")
    running.read_until(process.stdout, b"up")
    known = ids(place)
    made = groups(known)
    if not made:
        running.stop(process)
    assert made, "no group was made"
    return process, known


@test
def the_first_process_is_in_the_group_before_the_command_runs(place):
    process, known = grouped(place)
    paths = {pid: open(f"/proc/{pid}/cgroup").read() for pid in running.descendants(process.pid)}
    init = [pid for pid in paths if b"cove-init" in open(f"/proc/{pid}/cmdline", "rb").read()]
    running.stop(process)
    equal(len(init), 1, "processes of our own inside")
    assert f"cove-{known[0]}" in paths[init[0]], (known, paths)


@test
def groups_are_gone_after_the_end(place):
    process, known = grouped(place)
    process.terminate()
    running.finish(process)
    running.wait_for(lambda: not groups(known), 10, "the end of the groups")
    running.nothing_left(place)


@test
def groups_are_gone_after_the_keeper_was_killed(place):
    process, known = grouped(place)
    running.stop(process)
    running.wait_for(lambda: not groups(known), 10, "the end of the groups")
    running.nothing_left(place)


@test
def a_start_that_fails_leaves_no_group(place):
    result, told = report(place, "no-such-command", options=("--memory", "100M"), code=127)
    running.wait_for(lambda: not groups([told["id"]]), 10, "the end of the groups")


if __name__ == "__main__":
    main()
