"""What every system and hostile test stands on: runs the built binary, judges from the host, speaks TAP.

A test is a function marked @test; its name, read as a sentence, is what it promises.  It raises
AssertionError when the promise is broken and calls skip() when this machine cannot show it.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(os.environ.get("COVE_TESTS", pathlib.Path(__file__).resolve().parents[2]))
IDENTITY = os.environ.get("COVE_IDENTITY", "root" if os.geteuid() == 0 else "user")
COVE = os.environ.get("COVE", str(ROOT / os.environ.get("COVE_BUILD", "build") / "src/cli/cove"))
UNSAFE = os.environ.get("COVE_UNSAFE", str(ROOT / "build-unsafe/src/cli/cove"))
PATIENCE = int(os.environ.get("COVE_PATIENCE", "1"))  # how much slower an emulated machine may be; waits are longer by that
PROBES = pathlib.Path(os.environ.get("COVE_PROBES", ROOT / "build/tests/hostile"))
PART = os.environ.get("COVE_JUDGING")  # of a suite: tests that judge time, or (empty) the others

_tests = []


class Skipped(Exception):
    pass


def skip(reason):
    """Says loudly that a promise could not be shown here.  A reason that starts with "kernel:"
    is the only kind that CI accepts."""
    raise Skipped(reason)


def test(function=None, *, judges_time=False, identities=("root", "user", "nested"), id=None):
    """Marks a test.  `id` is a row of the check suite, such as NS-01.  One that judges how long something takes, on a machine
    that has other work beside, runs where there is little of it: tests/run runs those of a suite by themselves."""
    def mark(f):
        if PART is None or bool(PART) == judges_time:
            _tests.append((f, identities, id))
        return f
    return mark(function) if function else mark


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def errors(self):
        return self.err.decode(errors="replace")

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.text[-2000:]}\n--- stderr\n{self.errors[-2000:]}"


class Place:
    """A scratch area of one test: a workspace `work`, a state directory, a home; gone afterwards."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cove-test-"))
        self.work, self.home = self.dir / "work", self.dir / "home"
        self.work.mkdir()
        self.home.mkdir()
        self.state = self.dir / "state"
        self.env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.home),
                    "COVE_HOME": str(self.state), "LANG": "C.UTF-8", "TERM": "xterm"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def cove(self, *args, binary=None, input=b"", cwd=None, env=None, timeout=60, without=None, **kwargs):
        """Runs cove.  `without` names guards to leave out: then the unsafe test build is used."""
        environ = dict(self.env, **(env or {}))
        if without:
            binary, environ["COVE_UNSAFE_WITHOUT"] = binary or UNSAFE, without
        return Result(subprocess.run([binary or COVE, *map(os.fsencode, map(str, args))], input=input, env=environ,
                                     cwd=cwd or self.work, timeout=timeout * PATIENCE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, **kwargs))

    def run(self, *command, options=(), **kwargs):
        """cove run --rm OPTIONS -- COMMAND"""
        return self.cove("run", "--rm", *options, "--", *command, **kwargs)

    def sh(self, script, **kwargs):
        return self.run("sh", "-c", script, **kwargs)

    def close(self):
        for _ in range(100):  # a guard may still be preparing what the next sandbox would have used
            subprocess.run(["rm", "-rf", self.dir], stderr=subprocess.DEVNULL)  # shutil gives up in a deep tree
            if not self.dir.exists():
                break
            subprocess.run(["chmod", "-R", "u+rwX", self.dir], stderr=subprocess.DEVNULL)
            time.sleep(0.02)

    def directories_and_mounts(self):
        """What is still there of them of sandboxes that are over."""
        sandboxes = self.state / "sandboxes"
        found = [f"directory {p}" for p in sandboxes.iterdir()] if sandboxes.exists() else []
        return found + [f"mount {line.strip()}" for line in open("/proc/self/mountinfo") if str(self.dir) in line]

    def left_behind(self):
        """The same, and processes."""
        found = self.directories_and_mounts()
        for process in pathlib.Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    if b"cove-init" in (process / "cmdline").read_bytes():
                        parent = (process / "status").read_text().split("PPid:")[1].split()[0]
                        if not self.is_of_another(parent):
                            found.append(f"process {process.name} (parent {parent})")
                except (OSError, IndexError):
                    pass
        return found

    def is_of_another(self, keeper):
        """True for a keeper that lives and keeps its state elsewhere: of a suite that runs beside this one, or of somebody who works here."""
        try:
            environ = pathlib.Path(f"/proc/{keeper}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return any(environ) and b"COVE_HOME=" + os.fsencode(self.env["COVE_HOME"]) not in environ  # of a dead one nothing can be read


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def load_json(text):
    return json.loads(text)


def say(line):
    """A line of TAP; also for who wants to follow a suite that takes long, before it has ended (COVE_PROGRESS, a file)."""
    print(line, flush=True)
    if "COVE_PROGRESS" in os.environ:
        with open(os.environ["COVE_PROGRESS"], "a", encoding="utf-8") as progress:
            progress.write(f"     {pathlib.Path(sys.argv[0]).stem[5:]} as {IDENTITY}: {line}\n")


def run_one(function):
    """Runs a test in a place of its own: why it was skipped, and why it failed."""
    place = Place()
    try:
        function(place)
        return None, None
    except Skipped as why:
        return why, None
    except Exception:
        return None, traceback.format_exc()
    finally:
        place.close()


def main():
    """Runs the tests of this file that match argv (substring), as TAP.  Behind each is how long it took, and how much of
    that its processes worked, as far as they were waited for: the rest was waiting."""
    only, number, failed = sys.argv[1:], 0, 0
    for function, identities, row in _tests:
        if IDENTITY not in identities:
            continue
        name = (f"{row} " if row else "") + function.__name__.replace("_", " ")
        if only and not any(word in name or word in function.__name__ for word in only):
            continue
        number += 1
        began, worked = time.monotonic(), sum(os.times()[:4])
        skipped, wrong = run_one(function)
        failed += wrong is not None
        said = f"SKIP {skipped}" if skipped else f"{time.monotonic() - began:.2f} s, {sum(os.times()[:4]) - worked:.2f} s of work"
        say(f"{'not ok' if wrong else 'ok'} {number} - {name} # {said}")
        for line in (wrong or "").splitlines():
            print(f"# {line}", flush=True)
    print(f"1..{number}", flush=True)
    sys.exit(failed > 0)
