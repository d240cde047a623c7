"""What the machine runs out of, and what happens to state on its disk.  After each fault the same judge: nothing is
left, the owner's files are as they were, what is told is true, and the next start works."""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.disks import mount_small  # noqa: E402
from support.harness import COVE, IDENTITY, PATIENCE, Result, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, finish, left, nothing_left, one_error, read_until, start, stop, tool, wait_for, write  # noqa: E402

SOAK = float(os.environ.get("COVE_SOAK_SECONDS", "2")) > 5


class Judge:
    """`with Judge(place):` around a fault."""

    def __init__(self, place):
        self.place, self.before = place, digest(place.work)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        wait_for(lambda: not descendants(), seconds=20, what="I1: the end of every process")
        equal(digest(self.place.work), self.before, "I5: the workspace")
        equal(self.place.run("true").code, 0, "I9: the next start")
        told = self.place.cove("ls", "--json")
        equal([record for record in json.loads(told.out) if record["state"] == "running"], [], "I8: nothing runs")
        wait_for(lambda: not descendants(), seconds=20, what="the end of the guard")
        kept = {record["id"] for record in json.loads(told.out)}
        equal([line for line in left(self.place) if line.rpartition("/")[2] not in kept], [], "I1: what is left")


def keep(place, script="echo new >file; mkdir -p d; echo x >d/x", *options):
    done = place.cove("run", "-q", *options, "--", "sh", "-ec", script)
    equal(done.code, 0, done)
    wait_for(lambda: not descendants(), what="the end of the guard")


def in_mounts(place, script):
    """A script with mounts of its own; "$0" is cove, and the state directory below it."""
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    (place.dir / "mnt").mkdir(exist_ok=True)
    done = subprocess.run(["unshare", *become, "--mount", "--propagation", "private", "sh", "-c", f"MNT={place.dir}/mnt; export COVE_HOME=$MNT/state\n{script}", COVE], cwd=place.work,
                          env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120 * PATIENCE, text=True)
    if "mount: " in done.stderr or "unshare: " in done.stderr:
        skip(f"kernel: this user cannot mount: {done.stderr.strip()[:100]}")
    return done


# Disks

# The record of a run that filled its own disk may not be written any more: as long as its guard is at work it looks as if it ran.
AFTER_A_FILL = """"$0" ls -q | wc -l; "$0" diff --name-only >/dev/null; echo "diff $?"
i=0; while ! "$0" rm -f full >/dev/null 2>&1 && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; [ $i -lt 100 ]; echo "rm $?"; "$0" run --rm -- true; echo "next $?" """


@test(id="Z-06")
def a_sandbox_that_fills_the_disk_can_be_listed_shown_and_removed(place):
    with Judge(place):
        done = in_mounts(place, mount_small("$MNT", 6) + """; mkdir -m 700 $MNT/state
"$0" run -q --name full -- sh -c 'head -c 20M /dev/zero >big; echo "inside $?"'; echo "run $?"\n""" + AFTER_A_FILL)
        equal(done.stdout.split("\n")[:-1], ["inside 1", "run 0", "1", "diff 0", "rm 0", "next 0"], done)


@test(id="Z-07")
def without_inodes_it_is_told_and_everything_can_be_removed(place):
    if IDENTITY == "root" and "size=" not in mount_small("x", 1):
        skip("kernel: root cannot shift the ids of a tmpfs before Linux 6.3")
    with Judge(place):
        done = in_mounts(place, """mount -t tmpfs -o size=30m,nr_inodes=1200,mode=700 small $MNT; mkdir -m 700 $MNT/state
"$0" run -q --name full -- sh -c 'i=0; while true >f$i && [ $i -lt 3000 ]; do i=$((i + 1)); done; [ $i -lt 3000 ]; echo "inside $?"' 2>/dev/null; echo "run $?"\n""" + AFTER_A_FILL
                         + """; i=0; while [ -n "$(ls $MNT/state/sandboxes)" ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; sleep 0.5 # what a guard removes could be used
i=0; while true >$MNT/x$i; do i=$((i + 1)); done 2>/dev/null; "$0" run --rm -- true; echo "none $?" """)
        equal(done.stdout.split("\n")[:-1], ["inside 0", "run 0", "1", "diff 0", "rm 0", "next 0", "none 125"], done)
        equal([line for line in done.stderr.splitlines() if line.startswith("cove: ") and "no space left" not in line.lower() and "still runs" not in line], [], done)


@test(id="Z-08")
def a_state_directory_that_became_read_only_is_still_read(place):
    keep(place)
    with Judge(place):
        done = in_mounts(place, f"""mkdir -p $MNT/state; mount --bind {place.state} $MNT/state; mount -o remount,bind,ro $MNT/state
"$0" ls -q | wc -l; "$0" diff --name-only | tr '\\n' ' '; echo; "$0" show >/dev/null; echo "show $?"
"$0" rm $("$0" ls -q); echo "rm $?"; "$0" run --rm -- true; echo "run $?" """)
        lines = done.stdout.split("\n")[:-1]
        equal((lines[0], lines[1].split(), lines[2], [line.split()[1] != "0" for line in lines[3:]]), ("1", ["d", "d/x", "file"], "show 0", [True, True]), done)
        equal([line for line in done.stderr.splitlines() if "Read-only file system" not in line], [], done)
    equal(place.cove("apply", "--yes", "--to", shutil.copytree(place.work, place.dir / "copy")).code, 0, "and nothing of it was lost")


@test(id="Z-08")
def calls_that_fail_with_eio_are_told(place):
    tool("strace")
    keep(place)
    with Judge(place):
        for words in (("ls",), ("diff",), ("show",), ("export",), ("run", "--rm", "--", "true")):
            for number in (2, 9, 25):
                done = subprocess.run(["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=openat,openat2", "-e", f"inject=openat,openat2:error=EIO:when={number}", COVE, *words],
                                      cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * PATIENCE)
                if b"strace: ptrace(" in done.stderr:
                    continue
                assert done.returncode in (0, 1, 125, 126, 127), f"{words} {number}: {done}"
                assert done.returncode == 0 or done.stderr, f"{words} {number}: it failed without a word"


@test(id="Z-29")
def a_target_that_is_read_only_stays_as_it_is_and_each_file_says_why(place):
    write(place.work / "file", "old\n")
    keep(place)
    with Judge(place):
        done = in_mounts(place, f"""export COVE_HOME={place.state}; mount --bind {place.work} {place.work}; mount -o remount,bind,ro {place.work}; cd {place.work}; "$0" apply --yes; echo "apply $?" """)
        assert "apply 1" in done.stdout and done.stdout.count("FAILED") >= 2 and "Read-only file system" in done.stdout, done
    equal(place.cove("apply", "--yes").code, 0)
    equal(((place.work / "file").read_text(), (place.work / "d/x").read_text()), ("new\n", "x\n"))


# Memory, descriptors, processes

@test(id="Z-10")
def with_too_little_memory_it_ends_with_a_word(place):
    if "COVE_SANITIZED" in os.environ:
        skip("kernel: a sanitizer needs more address space than there is")
    keep(place)
    ends = set()
    with Judge(place):
        for words in (("run", "--rm", "--", "true"), ("diff",), ("ls", "--json")):
            for kibibytes in (4900, 5400, 6000, 9000, 64000):
                done = place.cove(*words, preexec_fn=lambda size=kibibytes << 10: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
                if done.code == -signal.SIGKILL or (done.code == -signal.SIGSEGV and not done.out):
                    continue  # the kernel could not even start it
                assert done.code in (0, 125, 126, 127, -signal.SIGABRT), f"{words} with {kibibytes} KiB: {done!r}"
                assert done.code == 0 or done.err, f"{words} with {kibibytes} KiB: it failed without a word: {done!r}"
                ends.add(done.code == 0)
    equal(ends, {True, False}, "some were enough, some were not")


@test(id="Z-11")
def with_few_descriptors_diff_and_apply_do_it_or_say_so(place):
    write(place.work / "file", "old\n")
    keep(place)
    with Judge(place):
        for limit in (4, 5, 6, 8, 12, 24) if "COVE_SANITIZED" in os.environ else (3, 4, 5, 6, 8, 12, 24):  # a sanitizer is a library, and opened
            copy = shutil.copytree(place.work, place.dir / "copy")
            for words in (("diff",), ("apply", "--yes", "--to", str(copy)), ("export", "-o", str(place.dir / "x.tar"))):
                done = place.cove(*words, preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
                assert done.code in (0, 1, 125) and (done.code == 0 or done.err or done.out), f"{words} with {limit}: {done!r}"
            assert (copy / "file").read_text() in ("old\n", "new\n") and not list(copy.glob(".cove-apply*")), f"with {limit}: {list(copy.iterdir())}"
            shutil.rmtree(copy)


@test(id="Z-12")
def without_processes_it_is_one_error(place):
    tool("strace")
    refused = 0
    with Judge(place):
        for call in ("clone3", "clone", "fork", "vfork"):
            for number in (1, 2):
                done = subprocess.run(["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error=EAGAIN:when={number}", COVE, "run", "--rm", "--", "true"],
                                      cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * PATIENCE)
                if b"strace: ptrace(" in done.stderr:
                    continue
                assert done.returncode in (0, 125), f"{call} {number}: {done}"
                if done.returncode:
                    one_error(Result(done))
                    refused += 1
    assert refused >= 1, "a start takes a process"


# Signals

@test(id="Z-15")
def no_byte_is_lost_or_doubled_in_a_storm_of_signals(place):
    """Signals that the keeper has no use for, and those about its children, a thousand times a second."""
    payload = random.Random(4).randbytes(8 << 20)
    with Judge(place):
        process = start(place, "run", "--rm", "--", "sh", "-c", "cat; echo end >&2", stdin=subprocess.PIPE)
        over = threading.Event()

        def storm():
            while not over.is_set():
                for number in (signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG, signal.SIGCONT):
                    if process.poll() is None:
                        process.send_signal(number)
                    time.sleep(0.001)
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            out, err = process.communicate(payload, timeout=60 * PATIENCE)
        finally:
            over.set()
            thread.join()
            stop(process)
        equal((process.returncode, out == payload, err), (0, True, b"end\n"), f"{len(out)} of {len(payload)} bytes")


@test(id="Z-26")
def floods_of_signals_neither_kill_nor_hang_the_keeper(place):
    """Those that are passed on reach a command that ignores them; then it is told to end, and ends.  Others end the
    keeper, as they end any program, and the sandbox with it."""
    for number in (signal.SIGALRM, signal.SIGVTALRM if "COVE_SANITIZED" in os.environ else signal.SIGSEGV):  # a sanitizer catches that one
        with Judge(place):
            process = start(place, "run", "--rm", "--", "sh", "-c", "echo here; sleep 60")
            read_until(process.stdout, b"here")
            process.send_signal(number)
            equal(finish(process).code, -number)
    with Judge(place):
        process = start(place, "run", "--rm", "--", "sh", "-c", "trap '' HUP INT QUIT USR1 USR2 PIPE; echo here; while :; do sleep 0.1; done")
        try:
            read_until(process.stdout, b"here")
            for _ in range(300):
                for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGWINCH, signal.SIGPIPE):
                    process.send_signal(number)
            time.sleep(0.2)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = finish(process, 20).code
            assert code in (143, 137) and time.monotonic() - began < 10 * PATIENCE, code
        finally:
            stop(process)


@test(id="Z-18")
def a_deadline_that_passed_while_the_keeper_was_stopped_is_kept_at_once(place):
    with Judge(place):
        process = start(place, "run", "--rm", "--timeout", "1s", "--", "sh", "-c", "trap '' TERM; echo here; sleep 60")
        try:
            read_until(process.stdout, b"here")
            process.send_signal(signal.SIGSTOP)
            time.sleep(1.5)
            equal(process.poll(), None, "it is stopped")
            process.send_signal(signal.SIGCONT)
            began = time.monotonic()
            equal(finish(process, 20).code, 124)
            assert time.monotonic() - began < 6 * PATIENCE, f"{time.monotonic() - began:.1f} s"
        finally:
            stop(process)


@test(id="Z-32")
def a_call_that_waits_for_a_dead_keeper_does_not_wait_for_ever(place):
    """With --explain the keeper is asked about each refused call."""
    with Judge(place):
        process = start(place, "run", "--rm", "--explain", "--", "sh", "-c", "echo here; while :; do cat /nowhere 2>/dev/null; done")
        try:
            read_until(process.stdout, b"here")
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            process.kill()
            process.wait()
            wait_for(lambda: not descendants(), seconds=10, what="the end of everything")
        finally:
            stop(process)


# State on the disk

@test(id="Z-16")
def a_record_with_any_byte_wrong_or_missing_harms_only_itself(place):
    keep(place, "echo x >x", "--name", "good")
    keep(place, "echo new >file", "--name", "torn")
    folder = place.state / "sandboxes" / json.loads(place.cove("show", "--json", "torn").out)["id"]
    whole = (folder / "record.json").read_bytes()
    dice = random.Random(os.environ.get("COVE_SEED", time.strftime("%Y%m%d")))
    places = range(len(whole)) if SOAK else sorted(dice.sample(range(len(whole)), 12))
    broken = 0
    with Judge(place):
        for at in places:
            for torn in (whole[:at], whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1:]):
                (folder / "record.json").write_bytes(torn)
                listed = place.cove("ls", "--json")
                equal(listed.code, 0, f"at {at}: {listed!r}")
                states = {record["id"]: record["state"] for record in json.loads(listed.out)}
                equal((len(states), states.get(folder.name) in ("broken", "stopped", "killed"), sorted(states.values())[-1]), (2, True, "stopped"), f"at {at}: {states}")
                broken += states[folder.name] == "broken"
                shown = place.cove("diff", folder.name)
                assert shown.code in (0, 125) or (shown.code == 1 and shown.err), f"at {at}: {shown!r}"
                assert states[folder.name] != "broken" or shown.code != 0, f"at {at}: a broken record was read after all"
        (folder / "record.json").write_bytes(whole)
    assert broken > len(places), f"only {broken} of {2 * len(places)} were noticed"
    equal((place.cove("diff", "good").code, place.cove("diff", "torn").code, place.cove("rm", "good", "torn").code), (0, 0, 0))
    nothing_left(place)


@test(id="Z-19")
def a_process_number_in_a_record_is_not_believed(place):
    keep(place)
    record, = place.state.glob("sandboxes/*/record.json")
    told = json.loads(record.read_text())
    told.update(state="running", keeper=os.getpid(), ended=None, exit_code=None, reason=None)
    record.write_text(json.dumps(told, sort_keys=True, separators=(",", ":")) + "\n")
    with Judge(place):
        equal(json.loads(place.cove("ls", "--json").out)[0]["state"], "killed", "nobody holds its lock")
    equal(place.cove("rm", told["id"]).code, 0)
    nothing_left(place)


@test(id="Z-25")
def who_cleans_the_state_directory_meanwhile_harms_only_what_ran(place):
    for what in ("sandboxes", "images", ""):
        with Judge(place):
            process = start(place, "run", "--", "sh", "-c", "echo x >file; echo here; read x; echo more >more; exit 7", stdin=subprocess.PIPE)
            try:
                read_until(process.stdout, b"here")
                subprocess.run(["rm", "-rf", place.state / what], stderr=subprocess.DEVNULL)
                process.stdin.write(b"\n")
                process.stdin.flush()
                done = finish(process, 20)
                assert done.code in (7, 2, 125) and (done.code == 7 or done.err), f"{what}: {done!r}"
            finally:
                stop(process)


if __name__ == "__main__":
    adopt_orphans()
    main()
