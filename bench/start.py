#!/usr/bin/python3
"""How long a start takes: `cove run --rm -- true` and its peers, one after the other in one run.

    bench/start.py [--rounds 100] [--beside FILE]... [--json]

As root it measures root and an ordinary user, with the state directory on a journaled ext4 in a
loop file (this machine's own root may have no journal, which slows overlays down); as an ordinary
user only that, with the state directory where it is.  Each row is a ratio to bubblewrap's median
in the same run.  Back to back, and again with a pause of 300 ms before each start.  `--beside` takes
another build of cove along, to compare them.  What a start costs all processes together, in time of
processors and in system calls, is told besides: on a busy machine that is steadier than how long it takes.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

COVE = str(pathlib.Path(__file__).resolve().parents[1] / "build/src/cli/cove")
BWRAP = ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
OTHERS = {}  # other builds of cove
USER = 1  # daemon: an ordinary user that every system knows, so that no name service is asked


def bundle(place, user):
    """An OCI bundle whose root shows this machine's /usr, for runc, crun and runsc."""
    root = place / "bundle/rootfs"
    for name in ("usr", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        if pathlib.Path("/" + name).is_symlink() and not (root / name).is_symlink():
            (root / name).symlink_to("usr/" + name)
    spec = ["runc", "spec"] + (["--rootless"] if user else [])
    if not (place / "bundle/config.json").exists():
        subprocess.run(spec, cwd=place / "bundle", check=True, preexec_fn=become if user else None)
    config = json.loads((place / "bundle/config.json").read_text())
    config["process"].update(args=["/usr/bin/true"], terminal=False)
    config["mounts"] = [m for m in config["mounts"] if m["destination"] != "/sys/fs/cgroup"]
    config["mounts"].append({"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]})
    (place / "bundle/config.json").write_text(json.dumps(config))
    return place / "bundle"


def become():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)


def contenders(place, user):
    """Name -> a function that gives the command line; those that do not run here are named too."""
    oci = bundle(place, user) if shutil.which("runc") else None
    runs = iter(range(10**9))
    found = {
        "bubblewrap": lambda: ["bwrap", *BWRAP],
        "cove": lambda: [COVE_COPY, "run", "--rm", "--", "true"],
        **{name: lambda copy=copy: [copy, "run", "--rm", "--", "true"] for name, copy in OTHERS.items()},
        "true, no sandbox": lambda: ["true"],
        "bare namespaces": lambda: ["unshare", "--user", "--map-current-user", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--cgroup", "true"],
    }
    for runtime in ("crun", "runc", "runsc"):
        if shutil.which(runtime) and oci:
            options = ["--root", str(place / ("oci-" + runtime))]
            if runtime == "runsc":
                options += ["--network=none", "--ignore-cgroups"] + (["--rootless"] if user else [])
            found[runtime] = lambda runtime=runtime, options=options: [runtime, *options, "run", "--bundle", str(oci), f"b{os.getpid()}-{next(runs)}"]
    return found


def once(command, environ, cwd, user):
    null = os.open("/dev/null", os.O_RDWR)
    began = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, environ,
                          file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter() - began
    os.close(null)
    return took * 1000 if status == 0 else None


def why_not(command, environ):
    """The last thing it says, for the table."""
    done = subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return lines[-1][:100]


def measure(place, user, rounds, pause):
    environ = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(place / "home"), "COVE_HOME": str(place / "state"),
               "XDG_RUNTIME_DIR": str(place / "run")}
    os.chdir(place / "work")
    everybody = contenders(place, user)
    slow = {"runc", "runsc", "crun"} | ({"true, no sandbox", "bare namespaces"} if pause else set())
    times = {}
    for name, command in list(everybody.items()):
        if once(command(), environ, place, user) is None:
            times[name] = why_not(command(), environ)
            del everybody[name]
        else:
            times[name] = []
    names = list(everybody)
    for turn in range(rounds):
        # In another order each time: what one leaves to the kernel to take apart slows the next down.
        for name in random.Random(turn).sample(names, len(names)):
            command = everybody[name]
            if name in slow and turn >= max(5, rounds // 10):
                continue
            if pause:
                time.sleep(pause)
            took = once(command(), environ, place, user)
            if took is not None:
                times[name].append(took)
    return times


def wait_for_all():
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def calls_of(command, environ, place):
    """How many system calls all its processes make; None without strace."""
    log = place / "home/calls"
    if not shutil.which("strace"):
        return None
    subprocess.run(["strace", "-f", "-qq", "-o", str(log), *command], env=environ, check=True)
    wait_for_all()
    return sum(" resumed>" not in line and "+++" not in line and "---" not in line for line in log.read_text(errors="replace").splitlines())


def costs(place, user, rounds):
    """Name -> processor time of one start in ms (quarter, median, three quarters), with whoever tidies up; system calls."""
    environ = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(place / "home"), "COVE_HOME": str(place / "state"),
               "XDG_RUNTIME_DIR": str(place / "run")}
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: who outlives cove is ours to wait for
    wanted = {name: command for name, command in contenders(place, user).items() if name in ("bubblewrap", "cove", *OTHERS)}
    spent = {name: [] for name in wanted}
    for turn in range(rounds):
        for name in random.Random(turn).sample(list(wanted), len(wanted)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            if once(wanted[name](), environ, place, user) is None:
                continue
            wait_for_all()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent[name].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return {name: {"ms": statistics.quantiles(values, n=4), "calls": calls_of(wanted[name](), environ, place)}
            for name, values in spent.items() if len(values) > 1}


def phases(place):
    """Where the time of one start goes, by the product's own report: medians in ms."""
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home"), "COVE_HOME": str(place / "state")}
    rows = []
    for _ in range(30):
        report = place / "home/report"
        subprocess.run([COVE_COPY, "run", "--rm", "--report", str(report), "--", "true"], env=environ, cwd=place / "work", check=True)
        rows.append(json.loads(report.read_text())["phases_us"])
    names = ["planned", "cloned", "ready", "started", "exited", "empty"]
    medians = {n: statistics.median(r[n] for r in rows) / 1000 for n in names}
    before = 0.0
    parts = {}
    for name in names:
        parts[name], before = medians[name] - before, medians[name]
    return parts


class Journaled:
    """A journaled file system in a loop file, when root can make one."""

    def __init__(self, base):
        self.place = base / "journaled"
        self.mounted = False
        if os.geteuid() == 0 and shutil.which("mkfs.ext4"):
            self.place.mkdir()
            image = base / "journaled.img"
            with open(image, "wb") as file:
                file.truncate(1 << 30)
            done = subprocess.run(["mkfs.ext4", "-q", str(image)]).returncode == 0 and \
                subprocess.run(["mount", "-o", "loop", str(image), str(self.place)]).returncode == 0
            self.mounted = done
        if not self.mounted:
            self.place = base

    def close(self):
        os.chdir("/")
        for _ in range(50):  # the last sandbox's guard may still be removing files
            if not self.mounted or subprocess.run(["umount", str(self.place)], stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.1)


def show(title, times):
    reference = statistics.median(times["bubblewrap"]) if times.get("bubblewrap") else None
    print(f"\n{title}\n{'':20} {'p50 ms':>8} {'p25':>8} {'p75':>8} {'x bwrap':>8}  rounds")
    for name, values in times.items():
        if isinstance(values, str) or not values:
            print(f"{name:20} does not run here: {values or 'every start failed'}")
            continue
        values.sort()
        p50 = statistics.median(values)
        ratio = f"{p50 / reference:8.2f}" if reference else "       -"
        print(f"{name:20} {p50:8.2f} {values[len(values) // 4]:8.2f} {values[len(values) * 3 // 4]:8.2f} {ratio}  {len(values)}")


def run_as(kind, base, arguments):
    """In a child, so that becoming a user does not stick."""
    place = base / kind
    for name in ("home", "work", "state", "run"):
        (place / name).mkdir(parents=True)
    user = kind == "user"
    for item in (place, *(place / n for n in ("home", "work", "state", "run"))):
        if os.geteuid() == 0 and user:
            os.chown(item, USER, USER)
        item.chmod(0o700 if item.name == "state" else 0o755)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        if user:
            become()
        result = {"back to back": measure(place, user, arguments.rounds, 0),
                  "after 300 ms": measure(place, user, max(8, arguments.rounds // 3), 0.3), "phases": phases(place),
                  "costs": costs(place, user, arguments.rounds)}
        with os.fdopen(writer, "w") as out:
            json.dump(result, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as got:
        text = got.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {}


def main():
    global COVE_COPY
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--beside", metavar="FILE", action="append", default=[], help="another build of cove, measured alternately; may be repeated")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    base = pathlib.Path(tempfile.mkdtemp(prefix="cove-bench-"))
    base.chmod(0o755)
    COVE_COPY = str(base / "cove")
    shutil.copy(COVE, COVE_COPY)
    for number, other in enumerate(arguments.beside):
        OTHERS[f"other {number}: {pathlib.Path(other).name}"[:20]] = shutil.copy(other, base / f"other{number}")
    disk = Journaled(base)
    disk.place.chmod(0o755)
    results = {}
    try:
        for kind in (["root", "user"] if os.geteuid() == 0 else ["user"]):
            results[kind] = run_as(kind, disk.place, arguments)
    finally:
        disk.close()
        subprocess.run(["chmod", "-R", "u+rwX", str(base)], stderr=subprocess.DEVNULL)
        shutil.rmtree(base, ignore_errors=True)
    if arguments.json:
        print(json.dumps({"journaled": disk.mounted, "load": os.getloadavg()[0], **results}))
        return
    print(f"load {os.getloadavg()[0]:.2f}; state directory on {'a journaled ext4 (loop)' if disk.mounted else 'the file system of ' + tempfile.gettempdir()}")
    for kind, result in results.items():
        for mode in ("back to back", "after 300 ms"):
            show(f"start as {kind}, {mode}", result[mode])
        print(f"\nwhere cove's time goes as {kind} (ms): " + ", ".join(f"{n} {v:.2f}" for n, v in result["phases"].items()))
        for name, cost in result["costs"].items():
            low, middle, high = cost["ms"]
            print(f"{name}, all its processes as {kind}: {middle:.2f} ms ({low:.2f} to {high:.2f}) of a processor, {cost['calls'] or '?'} system calls")


main()
