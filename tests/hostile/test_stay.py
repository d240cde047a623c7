"""What a sandbox with many commands adds: whoever is there already looks at who enters, and neighbours at each other."""
import concurrent.futures
import contextlib
import errno
import json
import os
import pathlib
import random
import re
import subprocess
import threading
import time

from attack import COVE, IDENTITY, PATIENCE, SOAK_SECONDS, control_fires, equal, main, memory_of, put_probe, status_of, test
from support.running import descendants, nothing_left, one_error, reap, wait_for
from support.staying import execute, keeper, pid_1, state, staying

EXECS = 40 if SOAK_SECONDS <= 2 else 2000


def of_init(pid):
    """Whether a process still is, or always was, our own program of PID 1."""
    with contextlib.suppress(OSError):
        return "cove-init" in os.readlink(f"/proc/{pid}/exe")
    return True


def wrong_rights(place, ident, seen, over):
    """What processes inside have that they must not have, sampled until it is over."""
    first, found = pid_1(place, ident), set()
    while not over.is_set():
        for pid in descendants(first):
            # Looked at twice: what was read in between belongs to what it was both times.
            before, its, after = of_init(pid), status_of(pid), of_init(pid)
            if not its or "NoNewPrivs" not in its:
                continue
            seen["ours" if before else "command"] += 1
            found |= {(name, its[name]) for name, wanted in (("Seccomp", "2"), ("NoNewPrivs", "1")) if its[name] != wanted}
            if not before and not after and int(its["CapEff"], 16) | int(its["CapPrm"], 16) | int(its["CapBnd"], 16):
                found.add(("CapEff", its["CapEff"]))
    return found


@test(id="NS-11")
def no_command_that_enters_ever_has_rights(place):
    def sample(without=None):
        seen, over = {"ours": 0, "command": 0}, threading.Event()
        with staying(place, without=without) as ident, concurrent.futures.ThreadPoolExecutor(3) as pool:
            looks = pool.submit(wrong_rights, place, ident, seen, over)
            for options in ((), ("--timeout", "30s"), ("-d",)) * (EXECS // 8):
                place.cove("exec", *options, ident, "--", "sh", "-c", "sleep 0.02 & sleep 0.02", without=without)
            over.set()
            return seen, looks.result()
    seen, wrong = sample()
    assert seen["command"] > 20 and seen["ours"] > 10, f"too few samples: {seen}"
    equal(wrong, set(), "rights of commands")
    control_fires(any(name == "CapEff" for name, _ in sample("capabilities")[1]), "commands with capabilities")


@test(id="NS-12")
def every_way_to_enter_gives_the_same_sandbox(place):
    put_probe(place)
    dump = ("./probe status; ./probe ids </dev/null; ./probe mounts; ./probe change /usr /tmp; ulimit -a; ls /proc/self/fd | wc -l; "
            "./probe overwrite /written-at-the-root; ls -l /proc/self/ns | wc -l")
    volatile = ("Pid", "Tgid", "PPid", "NS", "Vm", "Rss", "SigQ", "FDSize", "voluntary", "nonvoluntary", "State", "Mems", "Cpus", "Sig", "Ngid", "Name")

    def lines(text):
        kept = [line for line in text.replace("\r", "").splitlines() if not any(f"status {name}" in line for name in volatile)]
        return [re.sub(r"(mountinfo(?:-1)? )\d+ \d+ \d+:\d+|fd/\d+|(?<=id_map )\s*\d+\s+\d+|[ug]id=\d+|lowerdir=[^,]*|uuid=on,", "", line) for line in kept if "SAY waiting" not in line]

    def enter(ident, *options, **kwargs):
        done = execute(place, ident, dump, *options, **kwargs)
        equal(done.code, 0, done)
        return lines(done.text)

    def same(other, what):
        equal([line for line in other if line not in plain], [], f"only {what}")
        equal([line for line in plain if line not in other], [], f"missing {what}")
    with staying(place) as ident:
        plain = enter(ident)
        written = [line for line in plain if "overwrite:/written-at-the-root" in line]
        equal(written, [f"CHK overwrite:/written-at-the-root {errno.EACCES}"], "the Landlock domain, at a place that mounts would let it write")
        for options in (("--timeout", "60s"), ("-e", "A=b"), ("-w", str(place.work))):
            same(enter(ident, *options), f"with {options}")
        place.cove("exec", "-d", ident, "--", "sh", "-c", f"({dump}) >/tmp/dump 2>&1; : >/tmp/dumped")
        wait_for(lambda: execute(place, ident, "test -e /tmp/dumped").code == 0, what="the one in the background")
        same(lines(execute(place, ident, "cat /tmp/dump").text), "in the background")
        if IDENTITY != "root":  # it hurts itself, and the next command comes from another spawner
            execute(place, ident, "kill -9 2")
            execute(place, ident, "true")
            same(enter(ident), "from another spawner")
        equal(place.cove("rollback", ident, "1").code, 0)
        same(enter(ident), "after a rollback")
        (fork,) = place.cove("fork", ident).text.split()
        same(enter(fork), "in a fork")
        place.cove("rm", "-f", fork)
        place.cove("stop", ident)
        place.cove("start", ident)
        same(enter(ident), "after a start")
        place.cove("pause", ident)
        place.cove("resume", ident)
        same(enter(ident), "after a pause")
    with staying(place, without="landlock,capabilities") as ident:
        loose = enter(ident, without="landlock,capabilities")
        control_fires([line for line in loose if line not in plain], "a different dump without guards")


# Looks at every process that comes, as fast as it can, until it is told that it is enough; what it got of our own programs.
SPY = r"""
import os
found = set()
def tried(word, path, flags):
    try: fd = os.open(path, flags)
    except OSError: return
    try:
        if flags == os.O_PATH and "cove-init" not in os.readlink(f"/proc/self/fd/{fd}"): return
        if flags == os.O_RDONLY and word != "mem" and not os.read(fd, 1): return
        found.add(word)
    except OSError: pass
    finally: os.close(fd)
open("/tmp/begun", "w")
while not os.path.exists("/tmp/enough"):
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid(): continue
        top = f"/proc/{name}"
        tried("exe held", top + "/exe", os.O_PATH)
        try: ours = "cove-init" in os.readlink(top + "/exe")
        except OSError: ours = False
        if not ours: continue
        tried("exe written", top + "/exe", os.O_WRONLY)
        for word in ("mem", "maps", "environ"): tried(word, f"{top}/{word}", os.O_RDONLY)
        try:
            if os.listdir(top + "/fd") and "cove-init" in os.readlink(top + "/exe"): found.add("fd")
        except OSError: pass
print("found", *sorted(found), sep="\n")
"""


def spied(place, without=None):
    (place.work / "spy.py").write_text(SPY)
    with staying(place, without=without) as ident:
        place.cove("exec", "-d", ident, "--", "sh", "-c", "python3 spy.py >/tmp/said; : >/tmp/over", without=without)
        wait_for(lambda: execute(place, ident, "test -e /tmp/begun", without=without).code == 0, what="the spy")
        entered, end = 0, time.monotonic() + max(2, SOAK_SECONDS)
        while entered <= 10 or time.monotonic() < end:
            execute(place, ident, "true", *(("--timeout", "30s") if entered % 2 else ()), without=without)
            entered += 1
        execute(place, ident, "touch /tmp/enough", without=without)
        wait_for(lambda: execute(place, ident, "test -e /tmp/over", without=without).code == 0, what="the end of the spy")
        return set(execute(place, ident, "cat /tmp/said", without=without).text.splitlines()[1:])


@test(id="PROC-07")
def whoever_is_inside_cannot_open_the_programs_of_who_enters(place):
    before = pathlib.Path(COVE).read_bytes()
    equal(spied(place) & {"exe held", "exe written"}, set(), "programs opened")
    equal(pathlib.Path(COVE).read_bytes() == before, True, "our program is unchanged")
    loose = spied(place, "seccomp,landlock,capabilities,dumpable")
    control_fires("exe held" in loose, loose)
    assert "exe written" not in loose, "even without those guards it is sealed"


@test(id="FD-06")
def nothing_of_who_enters_can_be_read_before_its_exec(place):
    equal(spied(place), set(), "of our own programs")
    loose = spied(place, "seccomp,landlock,capabilities,dumpable")
    control_fires({"mem", "fd"} & loose, loose)


@test(id="FD-02")
def no_directory_of_ours_can_be_where_a_command_begins(place):
    with staying(place) as ident:
        for where in (*(f"/proc/self/fd/{number}" for number in range(3, 20)), "/proc/1/cwd", "/proc/1/root", "/proc/2/cwd", "/proc/2/root", "/proc/1/fd/3"):
            done = place.cove("exec", "-w", where, ident, "--", "pwd")
            one_error(done, where)
        control_fires(place.cove("exec", "-w", "/proc/self/root", ident, "--", "pwd").code == 0, "one that leads to its own root")


# One sandbox against another


NEIGHBOUR = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, do):
    try: do(); print("CHK", name, 0)
    except OSError as why: print("CHK", name, why.errno)
def called(name, result): print("CHK", name, 0 if result >= 0 else ctypes.get_errno())
for pid in map(int, sys.argv[2:]):
    tried("kill", lambda: os.kill(pid, 0))
    tried("proc", lambda: os.listdir(f"/proc/{pid}/fd"))
    called("trace", libc.ptrace(0x4206, pid, 0, 0))
    called("pidfd", libc.syscall(434, pid, 0))
def connect():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s: s.connect(sys.argv[1] + "/control")
tried("control", connect)
tried("directory", lambda: os.listdir(sys.argv[1]))
"""


@test(id="LIFE-02")
def a_neighbour_cannot_be_reached_signalled_or_traced(place):
    (place.work / "neighbour.py").write_text(NEIGHBOUR)
    with staying(place) as ident:
        (other,) = place.cove("fork", ident).text.split()
        place.cove("exec", "-d", other, "--", "sleep", "1000")
        wait_for(lambda: len(descendants(pid_1(place, other))) > 1, what="its command")
        pids = [str(pid) for pid in [keeper(place, other), pid_1(place, other), *descendants(pid_1(place, other))]]
        folder = str(place.state / "sandboxes" / other)
        said = place.cove("exec", ident, "--", "python3", "neighbour.py", folder, *pids).text
        found = re.findall(r"^CHK (\w+) (\d+)$", said, re.M)
        equal(len(found), 4 * len(pids) + 2, said)
        equal([step for step, number in found if number == "0"], [], "what worked from inside")
        execute(place, ident, "kill -9 -1")
        equal(len(descendants(pid_1(place, other))) >= 1, True, "who is next door lives on")
        equal(execute(place, other, "pgrep -c sleep").text, "1\n")
        host = subprocess.run(["/usr/bin/python3", str(place.work / "neighbour.py"), folder, pids[0]], stdout=subprocess.PIPE, text=True).stdout
        worked = [step for step, number in re.findall(r"^CHK (\w+) (\d+)$", host, re.M) if number == "0"]
        control_fires({"kill", "proc", "control", "directory"} <= set(worked), host)
        place.cove("rm", "-f", other)


@test(id="OVL-05")
def forks_share_layers_and_see_nothing_of_each_other_afterwards(place):
    with staying(place) as ident:
        execute(place, ident, "mkdir d; echo shared >d/f; echo gone >g; ln d/f hard")
        (other,) = place.cove("fork", ident).text.split()
        layers = place.state / "layers"

        def content():
            return {str(path.relative_to(layers)): path.read_bytes() for path in layers.rglob("*") if path.is_file() and not path.is_symlink() and "refs" not in path.parts}
        before = content()
        hostile = ("echo later >d/f; rm g; chmod 777 d; mv d e; echo new >n; ln e/f twice; truncate -s 0 hard; setfattr -n user.x -v y e/f 2>/dev/null; : >e/f; "
                   "python3 -c \"import mmap,os; f=open('e/f','r+b'); f.write(b'x'*9); f.flush(); m=mmap.mmap(f.fileno(),9); m[0:1]=b'y'; m.flush()\"")
        execute(place, ident, hostile)
        equal(execute(place, other, "cat d/f g hard; ls").text.split()[:3], ["shared", "gone", "shared"], "the other has what was there")
        assert "n" not in execute(place, other, "ls").text.split()
        equal(execute(place, other, "echo its >own; echo its >>d/f; cat d/f").text, "shared\nits\n")
        assert "own" not in execute(place, ident, "ls").text.split()
        now = content()
        equal({name: now.get(name) for name in before}, before, "frozen layers")
        (victim,) = [layers / name for name in before if name.endswith("/d/f")][:1]
        victim.write_text("changed from outside\n")
        control_fires(content()[str(victim.relative_to(layers))] != before[str(victim.relative_to(layers))], "a write into a layer is seen")
        place.cove("rm", "-f", other)


def held_by(pid):
    found = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(entry))
    return found


@test(id="FD-01")
def a_keeper_holds_nothing_of_its_neighbours_and_a_command_nothing_of_its_keeper(place):
    with staying(place) as ident:
        (other,) = place.cove("fork", ident).text.split()
        held = held_by(keeper(place, other))
        equal([path for path in held if ident in path], [], "of the one it was forked from")
        control_fires([path for path in held if other in path], "its own is seen")
        for options in ((), ("--timeout", "30s"), ("-i",)):
            equal(execute(place, ident, "ls /proc/self/fd; ls -l /proc/self/fd | grep -v 'pipe\\|total\\|/proc/'", *options).text.split()[:4], ["0", "1", "2", "3"], options)
        place.cove("rm", "-f", other)


# Many at once


def answer(place, ident, asked):
    """Whoever was caught by a pause is answered when that is over."""
    try:
        return asked.communicate(timeout=5 * PATIENCE)
    except subprocess.TimeoutExpired:
        place.cove("resume", ident)
        return asked.communicate(timeout=60 * PATIENCE)


@test(id="LIFE-06")
def whatever_is_asked_at_once_is_answered_and_nothing_is_left(place):
    chance = random.Random(os.environ.get("COVE_SEED", time.strftime("%Y%m%d") + IDENTITY))
    with staying(place, "--name", "one") as ident:
        execute(place, ident, "echo first >f")
        asked = (("stop", "--timeout", "50ms", ident), ("exec", ident, "--", "sh", "-c", "echo x >>f"), ("exec", "-d", ident, "--", "sleep", "0.05"), ("start", ident),
                 ("rollback", ident, "1"), ("fork", ident), ("pause", ident), ("resume", ident), ("steps", ident), ("diff", ident), ("snapshot", ident, "--name", "s"),
                 ("cp", f"{ident}:{place.work}/f", str(place.dir / "out")), ("ls",), ("tree", ident))
        for turn in range(int(6 * max(1, SOAK_SECONDS / 2))):
            chosen = chance.sample(asked, 6)
            running = [subprocess.Popen([COVE, *words], env=place.env, cwd=place.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for words in chosen]
            for words, one in zip(chosen, running):
                out, err = answer(place, ident, one)
                assert one.returncode in (0, 1, 125, 129, 137, 143), f"{words}: exit {one.returncode} {out!r} {err!r}"
                assert one.returncode != 125 or err.startswith(b"cove: "), f"{words}: {err!r}"
            for row in json.loads(place.cove("ls", "--json").out):
                if row["id"] != ident:
                    equal(place.cove("rm", "-f", row["id"]).code, 0)
            place.cove("snapshot", "rm", "s")
            reap()
        place.cove("resume", ident)
        if state(place, ident) != "running":
            equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "head -1 f").text, "first\n")
        folder = place.state / "sandboxes" / ident
        control_fires(folder.exists(), "what would be left is seen")
    nothing_left(place)


@test(id="LIFE-08")
def the_name_and_id_of_one_that_is_removed_lead_nowhere(place):
    with staying(place, "--name", "same") as ident:
        execute(place, ident, "echo old >f")
        place.cove("rm", "-f", ident)
        for words in (("exec", ident, "--", "cat", "f"), ("start", ident), ("fork", ident), ("logs", ident), ("diff", ident), ("attach", ident)):
            assert place.cove(*words).code != 0, words
        with staying(place, "--name", "same") as again:
            assert again != ident
            equal(execute(place, "same", "cat f 2>/dev/null; echo new").text, "new\n")
            equal(place.cove("rollback", "same", "1").code == 0 and execute(place, "same", "cat f").text == "old\n", False)


def size_of(path):
    """Of one that is replaced by its next part just now: nothing."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


@test(id="RES-09")
def output_that_nobody_reads_and_floods_from_many_sides_take_no_memory(place):
    with staying(place) as ident:
        execute(place, ident, "true")
        before = memory_of(keeper(place, ident))
        for _ in range(8):
            place.cove("exec", "-d", ident, "--", "sh", "-c", "yes | head -c 100000000; yes >&2")
        time.sleep(2)
        grown = memory_of(keeper(place, ident)) - before
        assert grown < 32 << 10, f"{grown} KiB more"
        kept = sum(map(size_of, (place.state / "sandboxes" / ident / "output").iterdir()))
        assert kept < 8 * (9 << 20), f"{kept} bytes are kept"
        began = time.monotonic()
        equal(execute(place, ident, "echo fine").text, "fine\n")
        assert time.monotonic() - began < 10 * PATIENCE, "others are served meanwhile"
        control_fires(kept > 1 << 20, "it was written")


@test(id="RES-10")
def orphans_and_the_dead_are_buried(place):
    with staying(place) as ident:
        execute(place, ident, "for i in $(seq 300); do (sh -c 'exit 3' & true) & done; wait")
        first = pid_1(place, ident)

        def there():
            return [pid for pid in os.listdir("/proc") if pid.isdigit() and status_of(pid).get("PPid", "") == str(first)]
        wait_for(lambda: len(there()) <= 2, what="that all are buried")
        execute(place, ident, "sleep 100 >/dev/null 2>&1 &")
        control_fires(len(there()) >= 2, "one that lives is seen")


@test(id="RES-06")
def connections_and_commands_that_are_too_many_are_refused_and_the_others_go_on(place):
    import socket
    with staying(place) as ident:
        os.chdir(place.state / "sandboxes" / ident)
        held, refused = [], 0
        try:
            for _ in range(1500):
                one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                one.settimeout(2)
                try:
                    one.connect("control")
                except OSError:
                    refused += 1
                held.append(one)
                if len(held) % 100 == 0 and held[-1].fileno() > 1000:
                    break
        finally:
            os.chdir("/")
            for one in held:
                one.close()
        wait_for(lambda: execute(place, ident, "echo fine").text == "fine\n", what="a working sandbox")
        control_fires(len(held) > 500, "so many were tried")


@test(id="RES-14")
def huge_words_are_refused_or_taken_and_cost_nothing_afterwards(place):
    with staying(place) as ident:
        execute(place, ident, "true")
        before = memory_of(keeper(place, ident))
        for _ in range(10):
            done = place.cove("exec", ident, "--", "true", *["x" * 100000] * 12)
            assert done.code in (0, 125, 126), done
        grown = memory_of(keeper(place, ident)) - before
        assert grown < 16 << 10 or "COVE_SANITIZED" in os.environ, f"{grown} KiB more"  # a sanitizer keeps what was freed
        equal(execute(place, ident, "echo fine").text, "fine\n")


@test(id="LIFE-11")
def connections_and_timers_go_on_after_a_pause(place):
    server = ("import socket, time\ns = socket.socket(); s.bind(('127.0.0.1', 7777)); s.listen(); c, _ = s.accept()\n"
              "while True:\n    d = c.recv(100)\n    if not d: break\n    c.send(d)\n")
    client = ("import signal, socket, time\nc = socket.socket()\nwhile c.connect_ex(('127.0.0.1', 7777)): c.close(); c = socket.socket(); time.sleep(0.05)\n"
              "n = 0\nsignal.signal(signal.SIGALRM, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n"
              "while True:\n    c.send(b'%d' % n); assert c.recv(100) == b'%d' % n; n += 1; open('/tmp/n', 'w').write(str(n)); signal.pause()\n")
    (place.work / "server.py").write_text(server)
    (place.work / "client.py").write_text(client)
    with staying(place) as ident:
        for name in ("server", "client"):
            place.cove("exec", "-d", ident, "--", "python3", f"{name}.py")

        def count():
            return int(execute(place, ident, "cat /tmp/n 2>/dev/null || echo 0").text or 0)
        wait_for(lambda: count() > 3, seconds=20, what="the connection")
        equal(place.cove("pause", ident).code, 0)
        time.sleep(0.5)
        upper = next((place.state / "sandboxes" / ident).glob("u*/tmp/n"))
        before = upper.read_text()
        time.sleep(0.5)
        equal(upper.read_text(), before, "nothing moves")
        equal(place.cove("resume", ident).code, 0)
        now = count()
        wait_for(lambda: count() > now + 3, seconds=20, what="the connection to go on")
        control_fires(count() > int(before), "it counts")


main()
