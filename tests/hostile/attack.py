"""What the hostile tests share: running a probe, planting tokens, and judging from the host."""
import base64
import contextlib
import ctypes
import errno
import hashlib
import os
import pathlib
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, IDENTITY, PATIENCE, PROBES, ROOT, UNSAFE, Place, equal, main, skip, test  # noqa: E402,F401
from support.running import adopt_orphans, cold, doings  # noqa: E402,F401

PROBE = PROBES / "probe"
SOAK_SECONDS = float(os.environ.get("COVE_SOAK_SECONDS", "2"))
REFUSED_BY_FILTER = (errno.EPERM, errno.ENOSYS)

libc = ctypes.CDLL(None, use_errno=True)
adopt_orphans()  # what a run leaves behind becomes our child


def landlock_abi():
    """What this kernel's Landlock can tell apart; 0 if there is none."""
    SYS_LANDLOCK_CREATE_RULESET, VERSION = 444, 1
    return max(0, libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, VERSION))


# --- probes -----------------------------------------------------------------------------------

class Report:
    """What a probe said.  `chk` has the errno of each step (0: it worked), `say` lists of lines."""

    def __init__(self, result):
        self.result = result
        self.chk, self.say = {}, {}
        for line in (result.text + "\n" + result.errors).split("\n"):
            word, _, rest = line.rstrip("\r").partition(" ")
            if word == "CHK" and " " in rest:
                step, _, number = rest.rpartition(" ")
                self.chk[step] = int(number)
            elif word == "SAY":
                key, _, value = rest.partition(" ")
                self.say.setdefault(key, []).append(value)

    def status(self, name):
        """A line of /proc/self/status."""
        for line in self.say.get("status", []):
            if line.startswith(name + ":"):
                return line.partition(":")[2].strip()
        raise AssertionError(f"the probe did not report {name}: {self.result!r}")

    def worked(self):
        return [step for step, number in self.chk.items() if number == 0]

    def __repr__(self):
        return f"{self.result!r}"


def put_probe(place, name="probe"):
    target = place.work / name
    if not target.exists():
        shutil.copy(PROBE, target)
        target.chmod(0o755)
    return target


def attack(place, *words, works=True, **kwargs):
    """Runs a probe in a sandbox."""
    put_probe(place)
    result = place.run("./probe", *words, **kwargs)
    if works:
        assert result.code == 0, f"the probe did not run: {result!r}"
    return Report(result)


def attack_host(place, *words, prefix=(), cwd=None, env=None, **kwargs):
    """Runs the same probe on the host: the control of guards that cannot be left out."""
    from support.harness import Result
    done = subprocess.run([*prefix, str(put_probe(place)), *map(str, words)], stdin=subprocess.DEVNULL, cwd=cwd or place.work,
                          env=dict(place.env, **(env or {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **kwargs)
    return Report(Result(done))


def steps_are(report, steps, allowed, what):
    """Each of these steps was tried and answered with one of the allowed errors."""
    for step in steps:
        assert step in report.chk, f"{what}: {step} was not tried: {report!r}"
        assert report.chk[step] in allowed, f"{what}: {step} answered {name_of(report.chk[step])}"


def all_refused(report, what, besides=()):
    assert report.chk, f"{what}: nothing was tried: {report!r}"
    worked = [step for step in report.worked() if step not in besides]
    assert not worked, f"{what}: these worked: {worked}"


def control_fires(condition, what):
    assert condition, f"the control does not fire, so the check proves nothing: {what}"


def name_of(number):
    return errno.errorcode.get(number, str(number)) if number else "success"


# --- a run that is looked at while it lasts -----------------------------------------------------

class Running:
    """A sandbox whose probe waits; `pid` is its number on the host, `cove` that of the keeper."""

    def __init__(self, place, *words, options=(), without=None, env=None, wait_for=b"SAY waiting", **kwargs):
        put_probe(place)
        environ = dict(place.env, **(env or {}))
        binary = COVE
        if without:
            binary, environ["COVE_UNSAFE_WITHOUT"] = UNSAFE, without
        self.process = subprocess.Popen([binary, "run", "--rm", *options, "--", "./probe", *map(str, words)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, cwd=place.work, **kwargs)
        self.cove, self.output = self.process.pid, b""
        while wait_for not in self.output:
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise AssertionError(f"the sandbox ended too early: {self.output!r} {self.process.stderr.read()!r}")
            self.output += more

    @property
    def pids(self):
        return [pid for pid in descendants(self.cove)]

    @property
    def pid(self):
        for pid in self.pids:
            if program_of(pid).endswith("/probe"):
                return pid
        raise AssertionError(f"no probe among {[(p, program_of(p)) for p in self.pids]}")

    def end(self):
        out, err = self.process.communicate(timeout=30)

        class Done:
            returncode, stdout, stderr = self.process.returncode, self.output + out, err
        from support.harness import Result
        return Report(Result(Done))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                self.process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()


def descendants(pid):
    found = []
    for tid in list_directory(f"/proc/{pid}/task"):
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{tid}/children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += [int(child), *descendants(int(child))]
    return found


def list_directory(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def program_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return "?"


def status_of(pid):
    """/proc/PID/status as a dictionary; empty if it is gone."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def memory_of(pid):
    """In KiB."""
    return int(status_of(pid)["VmRSS"].split()[0])


def nothing_is_left(place, what="", seconds=5):
    """No directory of a sandbox, no mount, no process that we now have to reap.  What a run leaves
    is removed behind its back, so that its user need not wait."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        left = [f"directory {p}" for p in list_directory(place.state / "sandboxes")]
        left += [f"mount {line}" for line in open("/proc/self/mountinfo") if str(place.dir) in line]
        left += [f"process {pid} {program_of(pid)}" for pid in descendants(os.getpid()) if "cove" in program_of(pid)]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    assert not left, f"{what} left behind: {left}"


# --- tokens -------------------------------------------------------------------------------------

class Canaries:
    """Random tokens, and one scanner that finds them in any of the forms that carry them out."""

    def __init__(self):
        self.tokens = []

    def token(self):
        self.tokens.append("canary" + secrets.token_hex(16))
        return self.tokens[-1]

    def plant(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.token() + "\n")
        return path

    @staticmethod
    def forms(token):
        raw = token.encode()
        yield raw
        yield raw[::-1]
        yield raw.hex().encode()
        yield "".join(f"%{byte:02x}" for byte in raw).encode()
        for shift in range(3):  # base64 at each of its three alignments, without the ends that depend on neighbours
            yield base64.b64encode(b"\0" * shift + raw)[4 if shift else 0:-4].rstrip(b"=")

    def found_in(self, *outputs):
        everything = b"\n".join(o if isinstance(o, bytes) else str(o).encode() for o in outputs)
        lower = everything.lower()
        return [t for t in self.tokens for form in self.forms(t) if form in everything or form.lower() in lower]

    def none_in(self, what, *results):
        for report in results:
            result = getattr(report, "result", report)
            found = self.found_in(result.out, result.err)
            assert not found, f"{what}: {len(found)} tokens of the host came out: {result!r}"


# --- the state of the host ------------------------------------------------------------------------

def fingerprint(top):
    """Everything about a tree that an attack could change."""
    found = {}
    for path in [pathlib.Path(top), *sorted(pathlib.Path(top).rglob("*"))]:
        status = path.lstat()
        content = ""
        if stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        attributes = {}
        with contextlib.suppress(OSError):
            attributes = {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}
        found[str(path)] = (status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size,
                            status.st_mtime_ns, status.st_ctime_ns, content, attributes)
    return found


def unchanged(before, after, what):
    for path in sorted(set(before) | set(after)):
        assert before.get(path) == after.get(path), f"{what}: {path} changed from {before.get(path)} to {after.get(path)}"


def plain_tree(place, name="decoy"):
    """A small tree to attack: files `file`, `other`, `protected`, a directory `sub`."""
    top = place.dir / name
    (top / "sub").mkdir(parents=True)
    for file in ("file", "other", "protected"):
        (top / file).write_text(f"{file} of the host\n")
    return top


def without_each(layers, others=""):
    """For rows that must hold with each single layer removed: the value of `without` for each."""
    return [layer + others for layer in layers]


MOUNTS_OUT = "readonly,verify"
COW_OUT = "copy-on-write,verify"


def run_with_home(place, home):
    """A prefix that makes `home` the home directory: the password database names root's."""
    if IDENTITY != "root":
        return []
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'mount --bind "{home}" /root && exec "$@"', "sh"]


def cove_with(place, prefix, *args, tries=5, **kwargs):
    """Runs cove under another program (strace, a launcher).  What hangs is ended with all below it.  A strace that
    lost one of its processes to a SIGKILL in the wrong moment gives up itself, and nothing was shown: again."""
    result = cove_with_once(place, prefix, *args, **kwargs)
    if tries > 1 and "strace: ptrace(" in result.errors:
        return cove_with(place, prefix, *args, tries=tries - 1, **kwargs)
    return result


def cove_with_once(place, prefix, *args, env=None, input=b"", cwd=None, timeout=60, **kwargs):
    from support.harness import Result
    process = subprocess.Popen([*map(str, prefix), COVE, *map(str, args)], stdin=subprocess.PIPE, env=dict(place.env, **(env or {})), cwd=cwd or place.work,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    try:
        out, err = process.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired:
        below = descendants(process.pid)
        found = doings([process.pid, *below])
        for pid in [process.pid, *below]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        raise AssertionError(f"it hangs: {' '.join(map(str, prefix))} cove {' '.join(map(str, args))}: {found}") from None

    class Done:
        returncode, stdout, stderr = process.returncode, out, err
    return Result(Done)


def error_lines(result):
    return [line for line in result.errors.splitlines() if line.startswith("cove")]


def refused(result, what, *words):
    """Our own error: exit code 125, a message that says the words, and no command was run."""
    assert result.code == 125, f"{what}: was not refused: {result!r}"
    assert error_lines(result), f"{what}: no error was shown: {result!r}"
    for word in words:
        assert re.search(word, result.errors, re.I), f"{what}: the error does not say {word!r}: {result!r}"


# --- traces ---------------------------------------------------------------------------------------

def traced(place, *options, env=None, calls="execve,execveat,openat,open,openat2,clone,clone3,fork,vfork,pivot_root"):
    """Runs cove under strace; the lines of the processes that still have the host before them."""
    lines, result = traced_command(place, "run", "--rm", *options, "--", "/usr/bin/true", env=env, calls=calls)
    equal(result.code, 0, repr(result))
    return lines, result


def traced_command(place, *words, env=None, cwd=None, calls="execve,execveat,clone,clone3,fork,vfork,pivot_root"):
    """The same for any command of cove's, whatever its exit code is."""
    if not shutil.which("strace"):
        skip("strace is not installed")
    log = place.dir / "trace"
    result = cove_with(place, [shutil.which("strace"), "-f", "--seccomp-bpf", "-qq", "-y", "--pidns-translation", "-s", "300", "-o", log, "-e", f"trace={calls}"], *words, env=env, cwd=cwd)
    lines, inside, seen, parents = [], set(), set(), {}
    everything = log.read_text(errors="replace").splitlines()
    for line in everything:  # the parent's line may be finished long after its child ran
        child = re.search(r"(?:clone3?|v?fork)\b.* = (\d+)(?: /\* (\d+) in strace's PID NS \*/)?$", line)
        if child:
            parents[child[2] or child[1]] = line.split()[0]
    for line in everything:
        pid = line.split()[0]
        if pid not in seen and parents.get(pid) in inside:
            inside.add(pid)
        seen.add(pid)
        if pid not in inside:
            lines.append(line)
        if "execveat(" in line or "pivot_root(" in line:
            inside.add(pid)
    return lines, result


def hostile_workspace(place, canaries):
    """A repository that wants its files to be used on the host."""
    for name in ("git", "sh", "newuidmap", "newgidmap", "mount", "cove", "bash", "env", "ldconfig"):
        trap = place.work / name
        trap.write_text(f"#!/bin/sh\necho {canaries.token()} > {place.dir}/sprung\n")
        trap.chmod(0o755)
    for name in (".env", ".npmrc", ".envrc", ".gitconfig", ".bashrc", "nsswitch.conf", "etc/nsswitch.conf", "libnss_files.so.2", "lib/libnss_files.so.2",
                 ".config/cove/policy.yaml", "policy.yaml", ".cove/policy.yaml", "ld.so.preload", "proc/self/status", "gconv-modules", ".git/hooks/pre-commit"):
        canaries.plant(place.work / name)
    (place.work / ".git/config").write_text("[core]\n\tfsmonitor = ./git\n\thooksPath = .git/hooks\n")
    (place.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
