"""What benchmarks of sandboxes that stay share: a disk for them, and the driver (drive.c) that talks to keepers."""
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

BUILD = pathlib.Path(__file__).resolve().parents[1] / "build"
COVE = str(BUILD / "src/cli/cove")
DRIVE = str(BUILD / "bench/cove-drive")
MIB = 1 << 20


class Disk:
    """A state directory, a home and a workspace; for root on a file system with a journal, in a loop file."""

    def __init__(self, gigabytes=16):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="cove-bench-"))
        self.mounted = os.geteuid() == 0
        self.dir = self.top / "mnt"
        self.dir.mkdir()
        if self.mounted:
            subprocess.run(["truncate", "-s", f"{gigabytes}G", self.top / "disk"], check=True)
            subprocess.run(["mkfs.ext4", "-q", "-F", self.top / "disk"], check=True)
            subprocess.run(["mount", "-o", "loop", self.top / "disk", self.dir], check=True)
        self.work = self.dir / "work"
        self.work.mkdir()
        (self.work / "README").write_text("a workspace\n")
        self.env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "COVE_HOME": str(self.dir / "state"), "HOME": str(self.dir)}

    def cove(self, *words):
        done = subprocess.run([COVE, *words], cwd=self.work, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True)
        if done.returncode:
            raise SystemExit(f"cove {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def sandbox(self, ident):
        return self.dir / "state/sandboxes" / ident

    def used(self):
        """In bytes, by the file system itself where it is ours alone."""
        if self.mounted:
            info = os.statvfs(self.dir)
            return (info.f_blocks - info.f_bfree) * info.f_frsize
        return int(subprocess.run(["du", "-s", "--block-size=1", self.dir], stdout=subprocess.PIPE, text=True).stdout.split()[0])

    def close(self):
        """Whatever still runs here is ended first, also after an error."""
        for _ in range(20):
            left = self.cove("ls", "-q").split()
            if not left:
                break
            for i in range(0, len(left), 50):
                subprocess.run([COVE, "rm", "-f", *left[i:i + 50]], cwd=self.work, env=self.env, stdout=subprocess.DEVNULL)
        os.chdir("/")
        for _ in range(100):  # the last guard may still be removing files
            if not self.mounted or subprocess.run(["umount", self.dir], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.1)
        else:
            subprocess.run(["umount", "-l", self.dir])
        subprocess.run(["chmod", "-R", "u+rwX", self.top])
        subprocess.run(["rm", "-rf", self.top])


class Drive:
    """The driver, as a server would be: connected to one keeper, or to none.  Times are in milliseconds."""

    def __init__(self, disk, ident=None):
        self.process = subprocess.Popen([DRIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        cwd="/", env=disk.env)
        if ident:
            self.ask("open", disk.sandbox(ident))

    def ask(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the driver ended at: {words}")
        return line.rstrip("\n").split("\t")

    def exec(self, *words):
        return int(self.ask("exec", *words)[0]) / 1000

    def output(self, *words):
        return self.ask("exec", *words)[2]

    def spawn(self, *words):
        return int(self.ask("spawn", *words)[0]) / 1000

    def after(self, *words):
        """A command; how long whoever comes next waits for its checkpoint; the layer and the step."""
        ran, waited, layer, step = self.ask("after", *words)
        return int(ran) / 1000, int(waited) / 1000, layer, step

    def rollback(self, layer, step):
        return int(self.ask("rollback", layer, step)[0]) / 1000

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Processor:
    """The time of all processors that this process and whatever it starts has taken, keepers in the background too; where root
    has the accounting groups of cgroup v1.  Beside other work it says more than a clock."""

    GROUPS = pathlib.Path("/sys/fs/cgroup/cpuacct")

    def __init__(self):
        self.group = self.GROUPS / f"cove-bench-{os.getpid()}"
        try:
            self.group.mkdir()
            (self.group / "cgroup.procs").write_text("0")
        except OSError:
            self.group = None

    def seconds(self):
        return int((self.group / "cpuacct.usage").read_text()) / 1e9 if self.group else None

    def close(self):
        """Guards may still be at work in it."""
        for _ in range(100 if self.group else 0):
            (self.GROUPS / "cgroup.procs").write_text("0")
            try:
                self.group.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def timed(call):
    began = time.perf_counter()
    result = call()
    return (time.perf_counter() - began) * 1000, result


class Rows:
    """What was measured.  Each is shown as it comes: a bench may be stopped."""

    def __init__(self, quiet):
        self.rows, self.quiet = [], quiet

    def times(self, name, times, beside=None, what=None, most=None):
        entry = {"name": name, "n": len(times), "min": min(times), "p50": statistics.median(times), "p90": sorted(times)[len(times) * 9 // 10]}
        if beside is not None:
            base = statistics.median(beside)
            entry.update(to=what, added=entry["p50"] - base, ratio=entry["p50"] / base)
        if most:
            entry["target"] = most
        self.add(entry)

    def value(self, name, value, unit, most=None):
        self.add({"name": name, "value": value, "unit": unit, **({"target": most} if most else {})})

    def note(self, text):
        self.add({"name": text})

    def add(self, entry):
        self.rows.append(entry)
        if not self.quiet:
            print(show(entry), flush=True)


def show(entry):
    if "p50" in entry:
        text = f"{entry['name']:52} p50 {entry['p50']:8.2f}  min {entry['min']:8.2f}  p90 {entry['p90']:8.2f} ms  ({entry['n']})"
        if "to" in entry:
            text += f"  {entry['added']:+.2f} ms, {entry['ratio']:.2f} x {entry['to']}"
    elif "value" in entry:
        text = f"{entry['name']:52} {entry['value']:12,.1f} {entry['unit']}"
    else:
        return entry["name"]
    return text + (f"  [target: {entry['target']}]" if "target" in entry else "")


def lying_free():
    """KiB that are free in lists of single processors, hundreds of MiB after much work: no sum of the kernel's has them."""
    return sum(map(int, re.findall(r"\bcount:\s+(\d+)", pathlib.Path("/proc/zoneinfo").read_text()))) * os.sysconf("SC_PAGE_SIZE") // 1024


def available():
    """KiB of memory that could be used, after what can be given back was.  Blocks of the disk that a journal still refers to
    are not given back the first time, and what is there of them is counted by half."""
    subprocess.run(["sync"])
    for _ in range(3):
        if os.access("/proc/sys/vm/drop_caches", os.W_OK):
            pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        time.sleep(0.5)
    return lying_free() + int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable")).split()[1])
