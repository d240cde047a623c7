"""`cove apply` under fault injection: a tree, a sandbox that changed it in every way, and a judge.

One sandbox is made once.  For each fault the owner's tree is laid out anew, and the record is given a later
beginning, because the kernel stamps when a file was laid out and nobody can set that back.
"""
import collections
import contextlib
import ctypes
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from support import harness
from support.harness import Place as PlainPlace
from support.running import wait_for, descendants, write

BIG = 300_000
OWNER = "owner's own, nobody else has it\n"

BASE = {"changed": "old\n" * 50, "big": "o" * BIG, "mode": "m\n", "removed": "gone\n", "moved": "moves\n" * 9, "dir/sub/x": "x\n", "dir/y": "y\n",
        "old-dir/one": "one\n", "old-dir/two": "two\n", "opaque/gone": "g\n", "opaque/stays": "s\n", "file-to-dir": "f\n", "dir-to-file/a": "a\n",
        "file-to-link": "l\n", "untouched": OWNER, "dir/untouched": OWNER, "opaque-not/z": "z\n"}

SCRIPT = f"""
echo new >changed; head -c {BIG} /dev/zero | tr '\\0' n >big; chmod 755 mode; rm removed; mv moved elsewhere; echo added >added; : >empty
mkdir -p new/deep; echo deep >new/deep/f; mkdir empty-dir; chmod 700 dir/sub; mv dir/y dir/renamed; mv old-dir new-dir; echo three >new-dir/three
rm -r opaque; mkdir opaque; echo s >opaque/stays; echo n >opaque/new; rm file-to-dir; mkdir file-to-dir; echo i >file-to-dir/inner
rm -r dir-to-file; echo now >dir-to-file; rm file-to-link; ln -s changed file-to-link; ln -sfn new link; ln -s changed new-link; truncate -s 5M sparse
mkdir closed; echo c >closed/c; chmod 500 closed"""

# Everything that touches a file.  Counted one by one, as strace does.
CALLS = """openat openat2 newfstatat fstat fstatat64 statx renameat2 unlinkat mkdirat symlinkat fchownat fchmod fchmodat fchmodat2 chmod copy_file_range pread64
 pwrite64 ftruncate lseek readlinkat readlink getdents64 faccessat faccessat2 syncfs lgetxattr name_to_handle_at read write""".split()
ERRORS = ("EIO", "ENOSPC", "EINTR")


def snapshot(top):
    """Path -> kind, mode and content of everything below; leftovers apart."""
    tree, beside = {}, []
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = pathlib.Path(folder) / name
            status = path.lstat()
            if re.fullmatch(r"\.cove-apply-[0-9a-f]{16}", name):
                beside.append(str(path.relative_to(top)))
                continue
            key = str(path.relative_to(top))
            if path.is_symlink():
                tree[key] = ("link", os.readlink(path))
            elif path.is_dir():
                tree[key] = ("directory", status.st_mode & 0o777)
            else:
                tree[key] = ("file", status.st_mode & 0o777, path.read_bytes())
    return tree, beside


@contextlib.contextmanager
def in_memory():
    """A directory on a tmpfs, in a mount namespace of our own.  For root."""
    libc = ctypes.CDLL(None, use_errno=True)
    top = tempfile.mkdtemp(prefix="cove-memory-")
    os.chmod(top, 0o755)
    CLONE_NEWNS, MS_PRIVATE, MS_REC, MNT_DETACH = 0x20000, 1 << 18, 1 << 14, 2
    for done in (libc.unshare(CLONE_NEWNS), libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None),
                 libc.mount(b"tmpfs", top.encode(), b"tmpfs", 0, None)):
        if done != 0:
            raise OSError(ctypes.get_errno(), "mount a tmpfs")
    try:
        yield top
    finally:
        libc.umount2(top.encode(), MNT_DETACH)
        os.rmdir(top)


class Scenario:
    """`where`: a directory on the file system in question."""

    def __init__(self, where=None):
        saved, tempfile.tempdir = tempfile.tempdir, where or tempfile.tempdir
        try:
            self.place = PlainPlace()  # the image of a warm one is on another file system
        finally:
            tempfile.tempdir = saved
        self.work, self.pristine = self.place.work, self.place.dir / "pristine"
        for name, content in BASE.items():
            write(self.pristine / name, content)
        (self.pristine / "link").symlink_to("old")
        subprocess.run(["find", self.pristine, "-exec", "touch", "-h", "-d", "2020-01-01", "{}", "+"], check=True)
        self.lay_out()
        done = self.place.cove("run", "-q", "--", "sh", "-ec", SCRIPT)
        assert done.code == 0, done
        wait_for(lambda: not descendants(), what="the end of all guards")
        self.record, = self.place.state.glob("sandboxes/*/record.json")
        self.old = self.tree()[0]
        began = time.monotonic()
        done = self.apply()
        self.duration = time.monotonic() - began
        assert done.code == 0, done
        self.new, beside = self.tree()
        assert not beside and self.new != self.old, beside
        assert self.new["untouched"] == self.old["untouched"] and "removed" not in self.new and self.new["big"][2] == b"n" * BIG

    def close(self):
        self.place.close()

    def tree(self):
        return snapshot(self.work)

    def lay_out(self):
        """The owner's tree as it was, in the same directory, and a sandbox that began right after."""
        for entry in self.work.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                entry.chmod(0o700)
                shutil.rmtree(entry)
            else:
                entry.unlink()
        shutil.copytree(self.pristine, self.work, symlinks=True, dirs_exist_ok=True)
        if hasattr(self, "record"):
            time.sleep(0.011)  # a tick of the clock that files are stamped by
            record = json.loads(self.record.read_text())
            record["created"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
            self.record.write_text(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")
            time.sleep(0.002)

    def apply(self, *prefix):
        process = subprocess.run([*prefix, harness.COVE, "apply", "--yes"], cwd=self.work, env=self.place.env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        return harness.Result(process)

    def calls(self):
        """(name, how often) of one apply that nobody disturbs."""
        self.lay_out()
        log = self.place.dir / "trace"
        done = self.apply("strace", "-qq", "-o", log, "-e", "trace=" + ",".join("?" + call for call in CALLS))
        assert done.code == 0, done
        return collections.Counter(line.split("(")[0] for line in log.read_text(errors="replace").splitlines())

    def faults(self):
        """Every call of an apply, with each error and with a kill."""
        return [(name, number, what) for name, count in sorted(self.calls().items()) for number in range(1, count + 1)
                for what in (*(f"error={error}" for error in ERRORS), "signal=KILL")]

    def disturb(self, name, number, what):
        self.lay_out()
        return self.apply("strace", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:{what}:when={number}")

    def judge(self, what, code):
        """Every file is old or new, none of the owner's is lost; a run that said all is well did it all."""
        now, beside = self.tree()
        for path in set(now) | set(self.old) | set(self.new):
            allowed = [self.old.get(path), self.new.get(path)]
            if self.new.get(path, ("",))[0] == "directory":
                allowed += [("directory", self.new[path][1] | 0o700)]
                allowed += [None] if self.old.get(path, ("",))[0] != "directory" else []
            if self.old.get(path, ("",))[0] == "directory" and self.new.get(path, ("",))[0] == "file":
                allowed += [None]  # an empty directory is gone before its place is taken
            assert now.get(path) in allowed, f"{what}: {path} is {str(now.get(path))[:90]}, neither old nor new"
        if code == 0:
            assert now == self.new, f"{what}: said all is well, but {sorted(p for p in set(now) | set(self.new) if now.get(p) != self.new.get(p))}"
        return beside

    def completes(self, what):
        """A second try ends with the new tree and nothing beside it; a third has nothing to do."""
        done = self.apply()
        now, beside = self.tree()
        wrong = sorted(path for path in set(now) | set(self.new) if now.get(path) != self.new.get(path))
        assert done.code == 0 and not wrong and not beside, f"{what}: the second try: {wrong} {beside} {done!r}"
        names = self.place.cove("diff", "--name-only")
        assert names.code == 0 and not names.out, f"{what}: still a difference: {names!r}"

    def try_fault(self, fault):
        done = self.disturb(*fault)
        what = "{} {} {}".format(*fault)
        self.judge(what, done.code)
        self.completes(what)

    def try_kill(self, dice):
        """True if it was killed before its end.  Half of the time an apply takes is reading.  How long it takes changes with
        what else the machine does: the time to choose from follows, so that about one of five is through before."""
        self.lay_out()
        process = subprocess.Popen([harness.COVE, "apply", "--yes"], cwd=self.work, env=self.place.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        delay = dice.uniform(0, self.duration)
        time.sleep(delay)
        process.kill()
        code = process.wait()
        what = f"a kill after {delay * 1000:.1f} ms"
        self.judge(what, code)
        self.completes(what)
        self.duration *= 1.03 if code < 0 else 0.9
        return code < 0
