#!/usr/bin/python3
"""What a diff costs: 100 changes in a repository of a million files, with git on the same tree beside it.

    bench/diff.py [--files 1000000] [--rounds 20] [--json]

`cove diff` must cost the changes and not the tree: its median has a budget of 50 ms.  git is measured
afterwards on the same tree with the same changes in it, its index fresh; its own median is the ratio.
The tree is made in $TMPDIR and removed.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

COVE = str(pathlib.Path(__file__).resolve().parents[1] / "build/src/cli/cove")
BUDGET = 50.0
A_DIRECTORY = 1000


def make_tree(work, files):
    """Small directories of empty files, all tracked; 100 of them have lines."""
    subprocess.run(["git", "init", "-q", work], check=True)
    blob = subprocess.run(["git", "hash-object", "-w", "--stdin"], cwd=work, input=b"", stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    lines = []
    for number in range(files // A_DIRECTORY):
        folder = work / f"group{number // 100}" / f"part{number}"
        folder.mkdir(parents=True)
        handle = os.open(folder, os.O_RDONLY)
        for i in range(A_DIRECTORY):
            os.close(os.open(f"file{i}.c", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=handle))
            lines.append(f"100644 {blob}\t{folder.relative_to(work)}/file{i}.c")
        os.close(handle)
    (work / ".gitignore").write_text("*.o\nbuild/\n")
    subprocess.run(["git", "update-index", "--index-info"], cwd=work, input="\n".join(lines).encode() + b"\n", check=True)
    subprocess.run(["git", "add", ".gitignore"], cwd=work, check=True)


def script(files):
    """Fifty edits, thirty new files, twenty that go; all over the tree."""
    lines, parts = [], files // A_DIRECTORY
    for i in range(100):
        number = i * parts // 100
        folder = f"group{number // 100}/part{number}"
        lines.append(f"seq 20 >{folder}/file{i}.c" if i < 50 else f"seq 30 >{folder}/new{i}.c" if i < 80 else f"rm {folder}/file{i}.c")
    return "; ".join(lines)


def measure(command, cwd, environ):
    """Milliseconds: on the clock, and of a processor, which says more on a busy machine."""
    began = time.perf_counter()
    child = subprocess.Popen(command, cwd=cwd, env=environ, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    took = (time.perf_counter() - began) * 1000
    child.returncode = status
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return took, (usage.ru_utime + usage.ru_stime) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    place = pathlib.Path(tempfile.mkdtemp(prefix="cove-bench-"))
    try:
        work = place / "work"
        (place / "home").mkdir()
        environ = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(place / "home"), "COVE_HOME": str(place / "state")}
        make_tree(work, options.files)
        subprocess.run([COVE, "run", "-q", "--", "sh", "-ec", script(options.files)], cwd=work, env=environ, check=True)
        times = {}
        for name in ("diff", "diff --stat", "diff --json"):
            times["cove " + name] = [measure([COVE, *name.split()], work, environ) for _ in range(options.rounds)]
        subprocess.run([COVE, "apply", "--yes"], cwd=work, env=environ, check=True, stdout=subprocess.DEVNULL)
        for name in ("status", "diff"):
            measure(["git", name], work, environ)  # the first one refreshes the index
            times["git " + name] = [measure(["git", name], work, environ) for _ in range(max(3, options.rounds // 4))]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    medians = {name: statistics.median(wall for wall, _ in pairs) for name, pairs in times.items()}
    busy = {name: statistics.median(cpu for _, cpu in pairs) for name, pairs in times.items()}
    if options.json:
        print(json.dumps({"files": options.files, "milliseconds": medians, "processor": busy, "load": os.getloadavg()[0]}))
    else:
        print(f"100 changes in a tree of {options.files:,} files, median of {options.rounds}; load {os.getloadavg()[0]:.2f}")
        for name, median in medians.items():
            print(f"  {name:16} {median:9.1f} ms, of a processor {busy[name]:8.1f}, fastest {min(times[name])[0]:8.1f}; {median / medians['git status']:6.3f} of git status")
    slow = [name for name, median in medians.items() if name.startswith("cove") and median > BUDGET]
    raise SystemExit(f"over the budget of {BUDGET} ms: {', '.join(slow)}" if slow else 0)


main()
