#!/usr/bin/python3
"""What it costs to work inside: the same work outside, in bwrap and in Cove, alternating in one run.

    bench/work.py [--json FILE] [--rounds N] [--files N] [WORD...]

A word picks measurements (compile, files, pipe, git, python).  Every figure is the time of the work
itself, taken inside by the same small program, so that starting the sandbox is no part of it; ratios
are of the medians.  As root the work and the state directory lie on a fresh ext4 with a journal in a
file; where that cannot be made, wherever the temporary directory is, and the table says so.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
COVE = os.environ.get("COVE", str(ROOT / "build/src/cli/cove"))
TARGETS = {"compile": 1.03, "git status, warm": 1.35}

# Runs argv[1:] and says what it took, on the last line; "-N" first: the best of N.
TIMER = """
import subprocess, sys, time
n = int(sys.argv[1])
for _ in range(n):
    t = time.perf_counter()
    subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
    print(time.perf_counter() - t)
"""

FILES = """
import os, time
n, out = 10000, {}
os.makedirs("many/d", exist_ok=True)
os.chdir("many")
def measure(name, work):
    t = time.perf_counter()
    for i in range(n):
        work(f"d/{i}")
    print(name, time.perf_counter() - t)
def create(p):
    with open(p, "wb") as f:
        f.write(b"x" * 100)
def read(p):
    with open(p, "rb") as f:
        f.read()
measure("create", create)
measure("stat", os.stat)
measure("read", read)
measure("unlink", os.unlink)
"""

PIPE = """
import subprocess, time
t = time.perf_counter()
subprocess.run("head -c 1073741824 /dev/zero | cat | cat >/dev/null", shell=True, check=True)
print(time.perf_counter() - t)
"""


class Disk:
    """Where the work is done: a journaled file system of our own if we may make one."""

    def __init__(self):
        self.dir, self.kind, self.mounted = pathlib.Path(tempfile.mkdtemp(prefix="cove-bench-")), "the temporary directory's", False
        if os.geteuid() == 0:
            image, top = self.dir / "image", self.dir / "disk"
            top.mkdir()
            with open(image, "wb") as file:
                file.truncate(6 << 30)
            made = subprocess.run(["mkfs.ext4", "-q", "-F", image], stderr=subprocess.DEVNULL)
            if made.returncode == 0 and subprocess.run(["mount", "-o", "loop", image, top], stderr=subprocess.DEVNULL).returncode == 0:
                self.kind, self.mounted = "journaled ext4 on a loop device", True
        self.dir.chmod(0o755)
        self.top = self.dir / "disk"
        self.top.mkdir(exist_ok=True)
        self.top.chmod(0o755)

    def close(self):
        if self.mounted:
            for _ in range(50):
                if subprocess.run(["umount", self.top], stderr=subprocess.DEVNULL).returncode == 0:
                    break
                time.sleep(0.1)
        shutil.rmtree(self.dir, ignore_errors=True)


class Bench:
    def __init__(self, disk, uid, rounds):
        self.top, self.uid, self.rounds = disk.top / str(uid), uid, rounds
        self.work, self.home = self.top / "work", self.top / "home"
        for folder in (self.top, self.work, self.home):
            folder.mkdir()
            os.chown(folder, uid, uid)
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "COVE_HOME": str(self.top / "state"), "LANG": "C.UTF-8"}
        self.user = [] if uid == os.geteuid() else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
        self.cove = str(disk.top / "cove")
        if not os.path.exists(self.cove):
            shutil.copy(COVE, self.cove)
            os.chmod(self.cove, 0o755)
        self.places = {"outside": [], "bwrap": ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind",
                                               str(self.work), str(self.work), "--"], "cove": [self.cove, "run", "--rm", "-q", "--"]}

    def run(self, place, *command, cwd=None, input=None):
        done = subprocess.run([*self.user, *self.places[place], *map(str, command)], cwd=cwd or self.work, env=self.env, input=input,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        if done.returncode:
            sys.exit(f"{place}: {' '.join(map(str, command))[:200]}: exit {done.returncode}\n{done.stderr.decode(errors='replace')[-2000:]}")
        return done.stdout.decode()

    def alternate(self, once, rounds=None):
        """once(place) -> {name: seconds}, in turns, the order of the three changing from round to round."""
        taken = {}
        for _ in range(rounds or self.rounds):
            for place in random.sample(list(self.places), len(self.places)):
                for name, seconds in once(place).items():
                    taken.setdefault(name, {}).setdefault(place, []).append(seconds)
        return taken

    # --- the measurements ---

    def compile(self):
        folder = self.work / "c"
        folder.mkdir()
        for i in range(30):
            lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", "#include <unistd.h>", "#include <pthread.h>"]
            lines += [f"int f{i}_{j}(int a, char *b) {{ int s = 0; for (int k = 0; k < a; k++) {{ s += b[k] * {j}; if (s % 7 == 3) b[k] = (char)s; }} "
                      f"switch (s & 7) {{ case 1: return s + {i}; case 2: return (int)strlen(b); default: return snprintf(b, 9, \"%d\", s); }} }}" for j in range(25)]
            (folder / f"f{i}.c").write_text("\n".join(lines) + "\n")
        (folder / "Makefile").write_text("all: $(patsubst %.c,%.o,$(wildcard *.c))\n%.o: %.c\n\t@gcc -O1 -c -o $@ $<\n")
        self.own(folder)

        def once(place):
            seconds = float(self.run(place, "/usr/bin/python3", "-c", TIMER, 1, "make", "-s", "-j2", "-B", cwd=folder).split()[-1])
            for file in folder.glob("*.o"):
                file.unlink()
            return {"compile": seconds}
        return self.alternate(once)

    def files(self):
        def once(place):
            lines = self.run(place, "/usr/bin/python3", "-c", FILES).splitlines()
            shutil.rmtree(self.work / "many", ignore_errors=True)
            return {f"10,000 files: {name}": float(value) for name, value in map(str.split, lines)}
        return self.alternate(once, max(3, self.rounds // 2))

    def pipe(self):
        def within(place):
            out = {"pipe, 1 GiB inside": float(self.run(place, "/usr/bin/python3", "-c", PIPE).split()[-1])}
            began = time.perf_counter()
            with open("/dev/null", "wb") as sink:
                source = subprocess.Popen(["head", "-c", str(1 << 30), "/dev/zero"], stdout=subprocess.PIPE)
                subprocess.run([*self.user, *self.places[place], "cat"], cwd=self.work, env=self.env, stdin=source.stdout, stdout=sink, check=True)
                source.wait()
            out["pipe, 1 GiB in (cat >/dev/null)"] = time.perf_counter() - began
            began = time.perf_counter()
            sink = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            source = subprocess.Popen(["head", "-c", str(1 << 30), "/dev/zero"], stdout=subprocess.PIPE)
            subprocess.run([*self.user, *self.places[place], "cat"], cwd=self.work, env=self.env, stdin=source.stdout, stdout=sink.stdin, check=True)
            sink.stdin.close()
            sink.wait()
            source.wait()
            out["pipe, 1 GiB through (in and out)"] = time.perf_counter() - began
            return out
        return self.alternate(within, max(3, self.rounds // 2))

    def git(self, count):
        repository = self.work / "repository"
        for i in range(count):
            path = repository / f"d{i % 100}/e{i // 100 % 10}/f{i}"
            if i < 1000:
                path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{i}\n")
        self.own(repository)
        env = dict(self.env, GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@example.com", GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@example.com")
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"], ["gc", "-q"], ["status"]):
            subprocess.run([*self.user, "git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *command], cwd=repository, env=env, check=True, stdout=subprocess.DEVNULL)

        def once(place):
            seconds = [float(s) for s in self.run(place, "/usr/bin/python3", "-c", TIMER, 6, "git", "status", "--short", cwd=repository).split()]
            return {"git status, first": seconds[0], "git status, second": seconds[1], "git status, warm": statistics.median(seconds[2:])}
        taken = self.alternate(once)
        shutil.rmtree(repository)
        return taken

    def python(self):
        def once(place):
            seconds = [float(s) for s in self.run(place, "/usr/bin/python3", "-c", TIMER, 20, "/usr/bin/python3", "-c", "import json, asyncio").split()]
            return {"python3 start (json, asyncio)": statistics.median(seconds)}
        return self.alternate(once)

    def own(self, tree):
        if self.uid != os.geteuid():
            subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", tree], check=True)


def table(taken):
    rows = {}
    print(f"  {'':34} {'outside':>10} {'bwrap':>10} {'cove':>10} {'bwrap/out':>10} {'cove/out':>10} {'by minima':>10}  target")
    for name, places in taken.items():
        medians = {place: statistics.median(values) for place, values in places.items()}
        ratio, target = medians["cove"] / medians["outside"], TARGETS.get(name)
        lowest = min(places["cove"]) / min(places["outside"])  # says more than the medians on a busy machine
        rows[name] = {"seconds": medians, "bwrap/outside": medians["bwrap"] / medians["outside"], "cove/outside": ratio, "cove/outside by minima": lowest, "samples": places, "target": target}
        verdict = "" if target is None else f"{target:.2f} {'met' if ratio <= target else 'MISSED'}"
        print(f"  {name:34} {medians['outside'] * 1000:8.1f}ms {medians['bwrap'] * 1000:8.1f}ms {medians['cove'] * 1000:8.1f}ms "
              f"{medians['bwrap'] / medians['outside']:10.3f} {ratio:10.3f} {lowest:10.3f}  {verdict}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write every figure to FILE")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--files", type=int, default=50000, help="files in the git repository")
    parser.add_argument("what", nargs="*", help="compile, files, pipe, git, python; all of them by default")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the file system is unmounted
    result = {"load before": os.getloadavg()[0], "cpus": len(os.sched_getaffinity(0)), "kernel": os.uname().release, "identities": {}}
    disk = Disk()
    try:
        for uid in (0, 54321) if os.geteuid() == 0 else (os.geteuid(),):
            who = "root" if uid == 0 else "an ordinary user"
            print(f"work as {who}; {options.rounds} rounds; files on {disk.kind} file system; load {os.getloadavg()[0]:.2f} on {result['cpus']} processors", flush=True)
            bench, taken = Bench(disk, uid, options.rounds), {}
            for name in ("compile", "files", "pipe", "git", "python"):
                if not options.what or name in options.what:
                    taken.update(bench.git(options.files) if name == "git" else getattr(bench, name)())
            result["identities"][who] = table(taken)
    finally:
        disk.close()
    result.update({"disk": disk.kind, "load after": os.getloadavg()[0]})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1))


main()
