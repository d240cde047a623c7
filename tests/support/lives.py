"""Sandboxes that are ended, disturbed and asked about at the same time, and a judge: for `make check` a few, for the soak a thousand."""
import json
import os
import shutil
import signal
import subprocess
import time

from support import harness
from support.running import descendants, reap, wait_for

# What the command does while it is killed: files that are all old or all new, and others that come and go.
BUSY = """i=0; echo here; while :; do i=$((i + 1)); head -c 20000 /dev/zero | tr '\\0' n >new-$((i % 7)); mv new-$((i % 7)) file; mkdir -p d$((i % 3))/e; rm -rf d$(((i + 1) % 3)); done"""
OLD, NEW = b"o" * 20000, b"n" * 20000


def control_groups():
    return set(subprocess.run(["find", "/sys/fs/cgroup", "-type", "d", "-name", "cove-*"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split())


class Inventory:
    """What there is of sandboxes of one place: directories, mounts, processes of this test, control groups."""

    def __init__(self, place):
        self.place, self.before = place, control_groups()

    def more(self):
        found = [line for line in self.place.left_behind() if not line.startswith("process")]
        ours = [path.name for path in (self.place.state / "sandboxes").iterdir()] if (self.place.state / "sandboxes").exists() else []
        groups = [f"control group {path}" for path in control_groups() - self.before if any(name in path for name in ours)]
        return found + groups + [f"process {pid}" for pid in descendants()]

    def is_as_before(self, what, seconds=20):
        """After one start, which sweeps what the dead could not remove themselves."""
        equal(self.place.run("true").code, 0, f"{what}: the next start")
        end = time.monotonic() + seconds * harness.PATIENCE
        while (found := self.more()):
            assert time.monotonic() < end, f"{what}: left behind: {found}"
            time.sleep(0.02)


def equal(got, wanted, what=""):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


# --- asked about while it is killed -----------------------------------------------------------------

def operations(place, name):
    return (("diff", name), ("diff", "--json", name), ("apply", "--yes", name), ("export", "-o", str(place.dir / "out.tar"), name), ("show", name), ("rm", name), ("rm", "-f", name),
            ("ls", "--json"), ("prune", "--older", "none"), ("apply", "--yes", "--dry-run", name))


def answered(words, code, out, err):
    """It did it, or said in one line why not: never a signal, never silence."""
    text = err.decode(errors="replace")
    assert code in (0, 1, 125), f"{words}: exit {code}: {text[-500:]}"
    if code == 125:
        assert text.startswith("cove: ") and len(text.splitlines()) <= 2, f"{words}: {text[-500:]}"
    if code == 1:
        assert text or out, f"{words}: it failed and said nothing"
    if "--json" in words and code == 0:
        json.loads(out)


def killed_while_asked(place, dice, turn):
    """One interleaving.  True if the operation was answered before the sandbox was dead."""
    name = f"n{turn}"
    (place.work / "file").write_bytes(OLD)
    keeper = subprocess.Popen([harness.COVE, "run", "-q", "--name", name, "--", "sh", "-c", BUSY], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    assert keeper.stdout.read(4) == b"here"
    chosen = dice.sample(operations(place, name), dice.choice((1, 2)))
    asked = [subprocess.Popen([harness.COVE, *words], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for words in chosen]
    time.sleep(dice.choice((0, 0, 0.002, 0.005, 0.01, 0.03)))
    early = any(one.poll() is not None for one in asked)
    keeper.send_signal(dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)))
    try:
        for words, one in zip(chosen, asked):
            out, err = one.communicate(timeout=60 * harness.PATIENCE)
            answered(words, one.returncode, out, err)
    finally:
        for one in asked:
            one.kill()
        keeper.kill()
        keeper.communicate()
    content = (place.work / "file").read_bytes()
    assert content in (OLD, NEW), f"{chosen}: the owner's file is torn: {len(content)} {set(content)}"
    wait_for(lambda: not descendants(), seconds=20, what="the end of everything")
    equal(place.cove("rm", "-f", name).code, 0, f"{chosen}: removing what is left")
    return early


def clean_work(place):
    for path in place.work.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def interleavings(place, dice, count):
    """Returns how many operations ended before the kill came: neither all nor none should."""
    inventory, early = Inventory(place), 0
    for turn in range(count):
        early += killed_while_asked(place, dice, turn)
        clean_work(place)
        reap()
    inventory.is_as_before(f"{count} interleavings")
    return early


# --- started and stopped while calls fail or take long -------------------------------------------------

DISTURBED = ("umount2", "rmdir", "unlink", "unlinkat", "mount", "mkdirat", "mkdir", "renameat2", "rename", "flock", "openat2", "move_mount", "open_tree", "kill", "pidfd_send_signal")
WAYS = ("error=EBUSY", "error=EIO", "error=EINTR", "error=ENOSPC", "delay_enter=10000", "delay_exit=10000")


def disturbed(place, dice):
    """One start and stop with one call failing or slow, once or always, in keeper, guard or mounter."""
    call, way = dice.choice(DISTURBED), dice.choice(WAYS)
    when = dice.choice(("1", "2", "3+", "1+", str(dice.randrange(1, 30)))) if way[0] == "e" else "1+"
    options = dice.choice(((), ("--rm",), ("--memory", "200M"), ("--rm", "--timeout", "50ms")))
    command = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{way}:when={when}", harness.COVE, "run", "-q", *options, "--", "sh", "-c",
               "mkdir -p a/b; echo x >a/b/c; chmod 0 a/b; sleep 0.05"]
    what = f"{call} {way} {when} {options}"
    process = subprocess.Popen(command, cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=90 * harness.PATIENCE)
    except subprocess.TimeoutExpired:
        for pid in [process.pid, *descendants(process.pid)]:
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        raise AssertionError(f"{what}: it hangs") from None
    if b"strace: ptrace(" in err:
        return None  # strace lost a process to a SIGKILL, and gave up itself
    assert process.returncode in (0, 124, 125), f"{what}: exit {process.returncode} {err[-600:]!r}"
    assert process.returncode != 125 or b"cove: " in err, f"{what}: refused without a word: {err[-600:]!r}"
    return process.returncode


def disturbances(place, dice, count, look=10):
    """Returns how many starts were refused."""
    inventory, refused = Inventory(place), 0
    for turn in range(count):
        refused += disturbed(place, dice) == 125
        if turn % look == look - 1 or turn == count - 1:
            for identity in place.cove("ls", "-q").text.split():
                equal(place.cove("rm", "-f", identity).code, 0, "removing what is kept")
            inventory.is_as_before(f"{turn + 1} starts")
        reap()
    return refused
