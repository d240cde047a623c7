"""A sandbox that stays, what it must hold, and whatever can go wrong while something is asked of it.

One file, `log`, has a line for each step; what was said to be done must be there, what was under way may be or not,
and nothing else.  For `make check` a few, for the soak all.
"""
import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

from support import harness
from support.running import descendants, reap, wait_for
from support.staying import inside_pid

ERRORS = ("EIO", "ENOSPC", "EINTR", "EMFILE")
CALLS = """openat openat2 newfstatat fstat statx renameat renameat2 rename unlinkat unlink mkdirat mkdir rmdir symlinkat linkat fchmod fchmodat fchownat pwrite64 ftruncate
 readlinkat readlink getdents64 faccessat faccessat2 syncfs fsync fdatasync flock mount umount2 move_mount open_tree fsopen fsconfig fsmount setns unshare clone clone3 vfork fork
 wait4 waitid pipe2 socketpair sendmsg recvmsg accept4 bind listen memfd_create fcntl epoll_ctl pidfd_send_signal mmap read write""".split()


# Whose calls are disturbed.  `all`: of everybody whom it starts too, each its own number N: the keeper until it is
# ready, its guard, PID 1, who mounts.
WHO = {"create": ("client", "all"), "begin": ("client", "all"), "remove": ("client", "keeper")}


def name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as comm:
        return comm.read().strip()
    return ""


def groups_of(pid):
    """The control groups that Cove has made and a process is in."""
    found = set()
    with contextlib.suppress(OSError):
        for line in open(f"/proc/{pid}/cgroup"):
            path = line.strip().split(":", 2)[2]
            if "/cove-" in path:
                found |= {str(tree) + path for tree in pathlib.Path("/sys/fs/cgroup").iterdir() if os.path.isdir(str(tree) + path)}
                found |= {"/sys/fs/cgroup" + path} if os.path.isdir("/sys/fs/cgroup" + path) else set()
    return found


class Stay:
    def __init__(self, place, dice):
        self.place, self.dice, self.number, self.groups = place, dice, 0, set()
        self.log, self.points = "", {0: ""}
        self.other = None  # another sandbox, which is asked something
        done = place.cove("create", "--name", "stay")
        assert done.code == 0, done
        self.ident = done.text.strip()
        self.folder = place.state / "sandboxes" / self.ident
        self.note_groups()

    def cove(self, *words):
        return self.place.cove(*words, timeout=120)

    # --- who is there ---

    def keeper(self, ident=None):
        with contextlib.suppress(OSError, ValueError, KeyError):
            pid = json.loads((self.place.state / "sandboxes" / (ident or self.ident) / "record.json").read_text())["keeper"]
            if name_of(pid) == "cove-keeper":
                return pid
        return None

    def family(self):
        """Keeper, guard and PID 1, as far as they live."""
        keeper, found = self.keeper(), {}
        if keeper:
            found["keeper"] = keeper
            for pid in descendants(keeper):
                with contextlib.suppress(OSError, IndexError):
                    if inside_pid(pid) == "1":
                        found["init"] = pid
                    elif name_of(pid) == "cove-guard":
                        found["guard"] = pid
        return found

    def note_groups(self):
        first = self.family().get("init")
        if first:
            self.groups |= groups_of(first)

    # --- what can be asked: words, and the log afterwards ---

    def append(self):
        self.number += 1
        return ("exec", self.ident, "--", "sh", "-c", f"echo {self.number} >>log"), self.log + f"{self.number}\n"

    def back(self):
        step = self.dice.choice(list(self.points)[-6:])
        return ("rollback", "--timeout", "100ms", self.ident, str(step)), self.points[step]

    def snap(self):
        self.number += 1
        return ("snapshot", self.ident, "--name", f"s{self.number}"), self.log

    def fork(self):
        return ("fork", self.ident), self.log

    def stop(self):
        return ("stop", "--timeout", "100ms", self.ident), self.log

    def start(self):
        return ("start", self.ident), self.log

    def pause(self):
        return ("pause", self.ident), self.log

    def create(self):
        return ("create",), self.log

    def begin(self):
        done = self.cove("stop", "--timeout", "100ms", self.ident)
        assert done.code == 0, done
        return self.start()

    def remove(self):
        """Of another one, with a step, that runs."""
        done = self.cove("create")
        assert done.code == 0, done
        self.other = done.text.strip()
        done = self.cove("exec", self.other, "--", "sh", "-c", "echo x >x; mkdir -p a/b; chmod 0 a")
        assert done.code == 0, done
        return ("rm", "-f", self.other), self.log

    OPERATIONS = ("append", "append", "append", "back", "snap", "fork", "stop", "pause")

    # --- the judge ---

    def ready(self):
        """It runs, or can be started."""
        for _ in range(5):  # a pause whose asker was killed may still be on its way
            if not self.keeper():
                break
            self.cove("resume", self.ident)
            if self.cove("exec", self.ident, "--", "true").code == 0:
                return
        if self.keeper():
            self.cove("stop", "--timeout", "100ms", self.ident)
        done = None
        for _ in range(20):  # its guard may still be at work; or a start whose asker was killed, which is ready by now
            done = self.cove("start", self.ident)
            if done.code == 0 or (self.keeper() and self.cove("exec", self.ident, "--", "true").code == 0):
                self.note_groups()
                return
            time.sleep(0.1)
        raise AssertionError(f"it does not start again: {done!r}\n{[(pid, name_of(pid)) for pid in descendants()]}")

    def content(self):
        done = self.cove("exec", self.ident, "--", "sh", "-c", "cat log 2>/dev/null; true")
        assert done.code == 0, f"its files cannot be read: {done!r}"
        return done.text

    def judge(self, what, words, done, after, mute=False):
        """`mute`: it may be that it could say nothing."""
        before = self.log
        assert done.code in (0, 1, 125) or done.code < 0, f"{what}: {words}: {done!r}"
        if done.code == 125 and not mute:
            assert done.errors.startswith("cove: "), f"{what}: {words}: refused without a word: {done!r}"
        self.ready()
        self.log = self.content()
        allowed = (after,) if done.code == 0 else (before, after)
        assert self.log in allowed, f"{what}: {words} exit {done.code}: the log is {self.log!r}, wanted one of {allowed!r}\n{done.errors}"
        steps = self.cove("steps", "--json", self.ident)
        assert steps.code == 0, f"{what}: {steps!r}"
        listed = json.loads(steps.out)["steps"]
        if words[0] == "exec" and done.code == 0 and listed:
            numbers = [row["number"] for row in listed if row.get("argv", [""])[-1] == words[-1]]
            assert numbers, f"{what}: a step that was done is not on record: {words}"
            self.points[numbers[-1]] = self.log
        if words[0] == "fork" and done.code == 0 and done.text:
            self.judge_fork(what, done.text.strip(), self.log)
        if words[0] == "create" and done.code == 0 and done.text:
            self.judge_fork(what, done.text.strip(), "")
        if words[0] == "rm" and done.code == 0:
            rows = [row["id"] for row in json.loads(self.cove("ls", "--json").out)]
            assert self.other not in rows, f"{what}: it is there, and was said to be gone"
        self.other = None
        self.tidy()

    def judge_fork(self, what, ident, wanted):
        read = ("exec", ident, "--", "sh", "-c", "cat log 2>/dev/null; true")
        done = self.cove(*read)
        if done.code == 125:  # it was ready, and what came then was too much for it: it goes, or has gone
            wait_for(lambda: reap() or not self.keeper(ident), seconds=20, what=f"{what}: the end of a keeper that answers with {done!r}")
            done = self.cove("start", ident)
            assert done.code == 0, f"{what}: the new one does not start again: {done!r}"
            done = self.cove(*read)
        assert (done.code, done.text) == (0, wanted), f"{what}: the new one has {done!r}, wanted {wanted!r}"

    def tidy(self):
        """Forks and snapshots are made to be gone again."""
        for row in json.loads(self.cove("ls", "--json").out):
            if row["id"] != self.ident:
                done = self.cove("rm", "-f", row["id"])
                assert done.code == 0, done
        for row in json.loads(self.cove("snapshot", "ls", "--json").out):
            done = self.cove("snapshot", "rm", row["name"])
            assert done.code == 0, done
        reap()

    def sweep(self):
        """By the next start."""
        last = self.cove("create")
        assert last.code == 0, last
        assert self.cove("rm", "-f", last.text.strip()).code == 0

    # --- faults ---

    def ask(self, words):
        return subprocess.Popen([harness.COVE, *words], env=self.place.env, cwd=self.place.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True)

    @staticmethod
    def answer(process):
        try:
            out, err = process.communicate(timeout=90 * harness.PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with whom it traces
            process.communicate()
            raise AssertionError("it hangs") from None
        return harness.Result(subprocess.CompletedProcess([], process.returncode, out, err))

    def kill(self):
        """One of its processes dies at a random moment of something.  True: before that was over."""
        words, after = getattr(self, self.dice.choice(self.OPERATIONS))()
        victims = self.dice.choice((("keeper",), ("keeper",), ("keeper",), ("init",), ("guard",), ("keeper", "guard"), ("client",)))
        noise = self.ask(("exec", self.ident, "--", "sh", "-c", "while :; do echo x >noise; mv noise noise2; done")) if self.dice.random() < 0.3 else None
        family = self.family()
        asked = self.ask(words)
        delay = self.dice.uniform(0, self.dice.choice((0.005, 0.012, 0.04)))
        time.sleep(delay)
        over = asked.poll() is not None
        for victim in victims:
            pid = asked.pid if victim == "client" else family.get(victim)
            if pid and not (victim == "client" and over):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if noise and not victims[0] == "keeper":
            noise.kill()
        done = self.answer(asked)
        if noise:
            noise.kill()
            noise.communicate()
        if "keeper" in victims and family.get("keeper"):
            wait_for(lambda: not [pid for pid in descendants() if pid in family.values()], seconds=20, what="the death of its processes")
        what = f"{'+'.join(victims)} killed after {delay * 1000:.1f} ms of {words}"
        try:
            self.judge(what, words, done, after)
        except AssertionError as why:
            raise AssertionError(f"{what}, exit {done.code}: {why}") from why
        return not over

    @contextlib.contextmanager
    def traced(self, pid, *options):
        """A process with somebody at its calls."""
        process = subprocess.Popen(["strace", "-p", str(pid), *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = process.stderr.readline()
        assert b"attached" in said, said
        try:
            yield
        finally:
            process.terminate()
            process.communicate()

    def under(self, who, words, *options):
        """What is asked, with somebody at the calls of one of those whom it concerns."""
        if who == "keeper":
            with self.traced(self.keeper(self.other), *options):
                done = self.answer(self.ask(words))
                time.sleep(0.05)
            return done
        if who == "client":
            return self.answer(subprocess.Popen(["strace", "-qq", *options, harness.COVE, *words], env=self.place.env, cwd=self.place.work, stdin=subprocess.DEVNULL,
                                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True))
        return self.under_all(words, *options)

    def under_all(self, words, *options):
        """The tracer is no parent, so what is asked ends when it ends, and the rest goes on without it."""
        with open(self.place.dir / "said.out", "w+b") as out, open(self.place.dir / "said.err", "w+b") as err:
            process = subprocess.Popen(["strace", "-qq", "-f", "-D", *options, harness.COVE, *words], env=self.place.env, cwd=self.place.work, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, start_new_session=True)
            try:
                process.wait(timeout=90 * harness.PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise AssertionError("it hangs") from None
            finally:
                for pid in descendants():
                    if name_of(pid) == "strace":
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)  # they go on as if it had never been
                wait_for(lambda: reap() or not [pid for pid in descendants() if name_of(pid) == "strace"], seconds=20, what="the end of the tracer")
            out.seek(0), err.seek(0)
            return harness.Result(subprocess.CompletedProcess([], process.returncode, out.read(), err.read()))

    def calls(self, operation):
        """How often the keeper, and who asks, make which call for it."""
        found = []
        log = self.place.dir / "calls"
        trace = ("-e", "trace=" + ",".join("?" + call for call in CALLS))
        for who in WHO.get(operation, ("keeper", "client")):
            # Most calls of a short program with a sanitizer are the loader's and the sanitizer's own, which do not survive their failure.
            if who != "keeper" and "COVE_SANITIZED" in os.environ:
                continue
            self.ready()
            words, after = getattr(self, operation)()
            self.judge("nothing", words, self.under(who, words, *(("-ff",) if who == "all" else ()), "-o", str(log), *trace), after)
            counted = collections.Counter()
            for path in log.parent.glob("calls*"):  # of each process the one with the most
                counted |= collections.Counter(line.split("(")[0] for line in path.read_text(errors="replace").splitlines() if line[:1].isalpha())
                path.unlink()
            found += [(operation, who, call, number, what) for call, count in sorted(counted.items()) if call in CALLS for number in range(1, count + 1)
                      for what in (*(f"error={error}" for error in ERRORS), "signal=KILL")]
        return found

    def faults(self, operations=("append", "back", "snap", "fork", "stop", "pause", "create", "begin", "remove")):
        return [fault for operation in operations for fault in self.calls(operation)]

    def disturb(self, operation, who, call, number, what):
        try:
            self.disturb_once(operation, who, call, number, what)
        except AssertionError as why:
            raise AssertionError(f"{operation}: {call} {number} of the {who}: {what}: {why}") from why

    def disturb_once(self, operation, who, call, number, what):
        self.ready()
        words, after = getattr(self, operation)()
        done = self.under(who, words, "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={number}")
        self.judge(f"{operation}: {call} {number} of the {who}: {what}", words, done, after, mute=call == "write" and who != "keeper")

    # --- the end ---

    def close(self):
        """Everything is removed, and nothing is left: no process, mount, file, layer or control group."""
        self.note_groups()
        done = self.cove("rm", "-f", self.ident)
        assert done.code == 0, done
        for group in self.groups:  # one whose guard died is swept when it is old
            with contextlib.suppress(OSError):
                os.utime(group, (1, 1))
        self.sweep()
        wait_for(lambda: not descendants(), seconds=20, what=f"the end of {descendants()}")
        reap()

        def left():
            layers = [str(path) for path in (self.place.state / "layers").iterdir()] if (self.place.state / "layers").exists() else []
            return self.place.directories_and_mounts() + layers + [group for group in self.groups if os.path.exists(group)]
        end = time.monotonic() + 20 * harness.PATIENCE
        while (found := left()):
            assert time.monotonic() < end, f"left behind: {found}"
            time.sleep(1)
            self.sweep()  # one that took long rests before the next


def kills(place, dice, count):
    """How many came before what was asked was over."""
    stay = Stay(place, dice)
    early = sum(stay.kill() for _ in range(count))
    stay.close()
    return early
