"""For system tests: commands that run beside the test, and what they leave behind.

The test process is made the one that orphans go to, so every process of a sandbox that outlives
its keeper becomes a descendant of the test, and nobody else's sandboxes can be taken for ours.
"""
import atexit
import concurrent.futures
import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

from support import harness

PR_SET_CHILD_SUBREAPER = 36


class WarmPlace(harness.Place):
    """A place whose state directory has the host image already, which takes the first run of a user ten times as
    long as any other.  The image names the home, so all tests that run one after the other have the same,
    emptied in between; and it goes from test to test, and to the next file, unless a test changed it."""

    shared = image = None

    def __init__(self):
        super().__init__()
        if WarmPlace.shared is None:
            WarmPlace.shared = pathlib.Path(os.environ.get("COVE_WARM") or tempfile.mkdtemp(prefix="cove-warm-"))
            if "COVE_WARM" not in os.environ:
                atexit.register(shutil.rmtree, WarmPlace.shared, True)
        self.home.rmdir()
        self.home = WarmPlace.shared / "home"
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.env["HOME"] = str(self.home)
        ready = WarmPlace.shared / "state/images"
        if _listing(ready) != WarmPlace.image:
            self.cove("run", "--rm", "--", "true", env={"COVE_HOME": str(ready.parent)})
            WarmPlace.image = _listing(ready)
        if WarmPlace.image:
            self.state.mkdir(mode=0o700)
            ready.rename(self.state / "images")

    def give_back(self):
        """The image, for the next test."""
        now = _listing(self.state / "images")
        if WarmPlace.image and WarmPlace.image.items() <= now.items():  # there may be one more, of confined programs
            WarmPlace.image = now
            with contextlib.suppress(OSError):  # a place beside this one gave one back
                (self.state / "images").rename(WarmPlace.shared / "state/images")

    def close(self):
        self.give_back()
        super().close()


def _listing(top):
    """What a change of the image would change; a directory's time changes with the directory it is moved to."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            still = (info.st_ino, info.st_size, name == "stamp" or info.st_mtime_ns) if name in files else ()  # stamps are touched
            found[os.path.relpath(path, top)] = (info.st_mode, info.st_uid, info.st_gid, *still)
    return found


def cold(place):
    """The state directory as a new user has it: not there."""
    place.give_back()
    shutil.rmtree(place.state, ignore_errors=True)


def adopt_orphans():
    harness.Place = WarmPlace
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "become a subreaper")
    open(f"/proc/self/task/{os.getpid()}/children").close()  # without it nobody would see what is left


def reap():
    """Takes the dead among those we adopted: thousands of them make everything slow that looks at all processes.
    For between two tries, when nothing that we started ourselves is under way."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def start(place, *args, env=None, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
          stderr=subprocess.PIPE, **kwargs):
    """cove ARGS in the background, as Popen."""
    return subprocess.Popen([harness.COVE, *map(os.fsencode, map(str, args))], env=dict(place.env, **(env or {})),
                            cwd=cwd or place.work, stdin=stdin, stdout=stdout, stderr=stderr, **kwargs)


def finish(process, seconds=20):
    """Its end as a Result; a process that does not end is killed and fails the test."""
    try:
        out, err = process.communicate(timeout=seconds * harness.PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"did not end within {seconds} s\n{out!r}\n{err!r}") from None
    return harness.Result(subprocess.CompletedProcess([], process.returncode, out or b"", err or b""))


def wait_for(condition, seconds=5, what="it"):
    """Waits until `condition()` is true and returns what it gave."""
    end = time.monotonic() + seconds * harness.PATIENCE
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"{what} did not come within {seconds} s"
        time.sleep(0.01)


def at_once(does, cases):
    """What `does` gives for each case, all at the same time: for what waits most of its time.  It must not reap()."""
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        return list(pool.map(does, cases))


def read_until(stream, wanted, seconds=10):
    """Reads from a pipe or terminal until `wanted` has come."""
    fd = stream if isinstance(stream, int) else stream.fileno()
    got, end = b"", time.monotonic() + seconds * harness.PATIENCE
    os.set_blocking(fd, False)
    while wanted not in got:
        try:
            part = os.read(fd, 65536)
            assert part, f"it ended before {wanted!r} came: {got!r}"
            got += part
        except BlockingIOError:
            assert time.monotonic() < end, f"{wanted!r} did not come within {seconds} s: {got!r}"
            time.sleep(0.005)
    os.set_blocking(fd, True)
    return got


def on_terminal(place, *words, answers=(), env=None, columns=0):
    """cove WORDS on a terminal: all that comes out.  Each question gets its answer, once it is asked."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.chdir(place.work)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
            os.execve(harness.COVE, [harness.COVE, *words], dict(place.env, **(env or {})))
        finally:
            os._exit(99)
    out, waiting = b"", list(answers)
    while True:
        if waiting and len(re.findall(rb"\[[yYnNaq?/]+\] ", out)) > len(answers) - len(waiting):
            os.write(fd, waiting.pop(0))
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


def _children(pid):
    """The living children of a process, without zombies."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += open(f"/proc/{pid}/task/{thread}/children").read().split()
    except OSError:
        pass
    return [int(child) for child in found if _state(child) != "Z"]


def _state(pid):
    try:
        return open(f"/proc/{pid}/stat", "rb").read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return "Z"


def doings(pids):
    """What processes are at, for a test that waits in vain: name, system call, and where in the kernel."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found[pid] = [pathlib.Path(f"/proc/{pid}/{name}").read_text().split(" 0x")[0].strip() for name in ("comm", "syscall", "wchan")]
    return found


def descendants(top=None):
    """Living processes below `top` (this one), without zombies."""
    top = top or os.getpid()
    while True:
        found = _children(top)
        for pid in found:  # grows meanwhile
            found += _children(pid)
        if found or not _children(top):  # an orphan may have become ours meanwhile
            return found


def left(place):
    """What sandboxes of this place, and commands of this test, have left."""
    found = [f"process {pid}: {name_of(pid)}" for pid in descendants()]
    return found + place.directories_and_mounts()


def name_of(pid):
    try:
        return open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        return "?"


def nothing_left(place, seconds=10):
    """Asserts that nothing is left, giving what ends by itself a moment for it."""
    end = time.monotonic() + seconds * harness.PATIENCE
    while (found := left(place)):
        assert time.monotonic() < end, f"left behind after {seconds} s: {found}"
        time.sleep(0.01)


def digest(tree):
    """Everything about a tree that a change would change: names, kinds, modes, owners, times, content."""
    lines = []
    for folder, folders, files in os.walk(os.fsencode(tree)):
        folders.sort()
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            info = os.lstat(path)
            content = b""
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                try:
                    content = hashlib.sha256(open(path, "rb").read()).digest()
                except PermissionError:
                    content = b"closed"
            lines.append((path, info.st_mode, info.st_uid, info.st_gid, info.st_size, info.st_mtime_ns, content))
    return hashlib.sha256(repr(lines).encode()).hexdigest()


def one_error(result, *words, code=125):
    """The result is one clear line of our own: exit 125, no output, every one of `words` in it."""
    assert result.code == code, result
    assert result.out == b"", result
    lines = result.errors.splitlines()
    assert len(lines) == 1 and lines[0].startswith("cove: "), result
    for word in words:
        assert word in lines[0], f"{word!r} is not in: {lines[0]}"
    return lines[0]


def write(path, content="", mode=None):
    """A file with its directories."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if mode is not None:
        path.chmod(mode)
    return path


def tool(*names):
    """Skips unless every program is here."""
    for name in names:
        if not shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
            harness.skip(f"{name} is not installed")


def stop(process):
    """Ends what a test started, whatever became of it."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


def gateways(place):
    """Those whose keeper has its state here. Known by what was executed: a name is lost for a moment by execveat."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if process.name.isdigit() and (process / "cmdline").read_bytes() == b"cove-gateway\0":
                keeper = (process / "stat").read_text().rpartition(")")[2].split()[1]
                if os.fsencode(str(place.state)) in pathlib.Path(f"/proc/{keeper}/environ").read_bytes():
                    found.append(int(process.name))
    return found
