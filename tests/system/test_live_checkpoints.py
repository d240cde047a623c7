"""Checkpoints of a sandbox in which processes are alive, and undo beneath them."""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import signal
import stat
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, finish, one_error, start, wait_for, write  # noqa: E402
from support.staying import execute, good, keeper, layers, state  # noqa: E402
from support.staying import staying_alone as staying  # noqa: E402


def noted(place, ident, number):
    """What the record says that a step changed, when it is there: that comes after its end was told."""
    trace = place.state / "sandboxes" / ident / "trace.jsonl"

    def known():
        lines = [json.loads(line) for line in trace.read_text().split("\n")[:-1] if '"step.changed"' in line]  # the last one may be on its way
        return [line["data"] for line in lines if line["kind"] == "step.changed" and line["data"]["number"] == number]
    return wait_for(known, what=f"the checkpoint of step {number}")[0]


def looked(place, ident, number):
    """The same step as it is shown."""
    noted(place, ident, number)
    (found,) = [row for row in json.loads(place.cove("steps", "--json", ident).out)["steps"] if row["number"] == number]
    return found


def stamp(place, layer):
    """All that is in a layer: names, kinds, modes, owners, sizes, times, links and contents."""
    found = {}
    top = place.state / "layers" / layer
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            if not os.path.relpath(path, top).startswith("u"):
                continue
            body = os.readlink(path) if stat.S_ISLNK(info.st_mode) else hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() if stat.S_ISREG(info.st_mode) else ""
            found[os.path.relpath(path, top)] = (info.st_mode, info.st_uid, info.st_gid, info.st_size * stat.S_ISREG(info.st_mode), info.st_mtime_ns, body)
    return found


def file_of(place, layer, name):
    (found,) = [path for path in (place.state / "layers" / layer).rglob(name)]
    return found.stat()


def server(place, ident, script="while :; do sleep 0.05; done"):
    """Something that stays alive, and does not write into what the tests look at unless told to."""
    done = place.cove("exec", "-d", ident, "--", "sh", "-c", script)
    equal((done.code, done.err), (0, b""), done)
    return int(done.text)


# Making


@test
def a_step_beside_a_living_process_has_a_checkpoint(place):
    write(place.work / "old", "old\n")
    write(place.work / "dir/in", "in\n")
    before = digest(place.work)
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "echo 1 >one; rm old; ln one hard; ln -s one link; mkfifo pipe; mkdir -m 750 d; touch -d 2001-02-03 d/aged; rm -r dir; mkdir dir; echo c >dir/c"))
        first = looked(place, ident, 2)
        assert first["checkpoint"] and first["no_checkpoint"] is None, first
        good(execute(place, ident, "cat one >/dev/null"))
        equal((looked(place, ident, 3)["checkpoint"], looked(place, ident, 3)["no_checkpoint"]), (None, None), "one that only reads")
        good(execute(place, ident, "echo 2 >>one; echo back >old; chmod 711 .; rm link"))
        second = looked(place, ident, 4)
        assert second["checkpoint"] not in (None, first["checkpoint"]), second
        listing = "cd $0 && find . -printf '%p %y %m %s %T@ %l\\n' | sort; find . -type f -exec cat {} +"
        (fork,) = good(place.cove("fork", f"{ident}@2")).text.split()
        (later,) = good(place.cove("fork", f"{ident}@4")).text.split()
        now = execute(place, ident, listing.replace("$0", str(place.work))).text
        try:
            equal(execute(place, fork, "cat one hard; readlink link; stat -c %h one; ls; ls dir; stat -c '%F %a' pipe d; ls old 2>/dev/null").text,
                  "1\n1\none\n2\nd\ndir\nhard\nlink\none\npipe\nc\nfifo 644\ndirectory 750\n")
            equal(execute(place, later, listing.replace("$0", str(place.work))).text, now, "a fork of what is there")
        finally:
            place.cove("rm", "-f", fork, later)
        good(place.cove("rollback", ident, "2"))
        equal(execute(place, ident, "cat one; ls | wc -l; ps -e | grep -c sleep").text, "1\n6\n0\n", "a rollback, which ends what runs")
        equal(digest(place.work), before, "the host's own files")


@test
def what_did_not_change_is_shared(place):
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "echo 1 >same; echo 1 >other; seq 100000 >big"))
        good(execute(place, ident, "echo 2 >>other"))
        good(execute(place, ident, "touch new"))
        made = [looked(place, ident, number)["checkpoint"] for number in (2, 3, 4)]
        for name in ("same", "big"):
            equal(len({file_of(place, layer, name).st_ino for layer in made}), 1, name)
        equal([file_of(place, layer, "other").st_ino == file_of(place, made[0], "other").st_ino for layer in made], [True, False, False])
        equal(file_of(place, made[1], "other").st_ino, file_of(place, made[2], "other").st_ino)


@test
def a_change_that_keeps_size_and_time_is_seen(place):
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "echo 1 >file; touch -d 2001-02-03 file"))
        good(execute(place, ident, "echo 2 >file; touch -d 2001-02-03 file"))
        for number, text in ((2, "1\n"), (3, "2\n")):
            layer = looked(place, ident, number)["checkpoint"]
            (path,) = (place.state / "layers" / layer).rglob("file")
            equal(path.read_text(), text)


@test
def a_file_that_is_mapped_is_seen_to_change(place):
    program = "import mmap,time\nf=open('mapped','r+b')\nm=mmap.mmap(f.fileno(),0)\nm[0:1]=b'0'\nopen('/tmp/ready','w')\n" \
              "while True:\n  time.sleep(0.02)\n  try: m[0:1]=open('/tmp/say').read().strip().encode()[:1]\n  except (OSError, IndexError): pass\n"
    with staying(place) as ident:
        good(execute(place, ident, "printf xyz >mapped"))
        good(place.cove("exec", "-d", ident, "--", "python3", "-c", program))
        for number in (1, 2, 3):
            good(execute(place, ident, f"until [ -e /tmp/ready ]; do sleep 0.01; done; echo {number} >/tmp/say; until [ \"$(head -c1 mapped)\" = {number} ]; do sleep 0.01; done"))
        for number in (1, 2, 3):
            layer = looked(place, ident, 2 + number)["checkpoint"]
            (path,) = (place.state / "layers" / layer).rglob("mapped")
            equal(path.read_text(), f"{number}yz")


def counts(row):
    return (row["added"], row["changed"], row["removed"])


def told(row):
    return sorted((file["how"], file["path"].rsplit("/", 1)[1]) for file in row["files"])


@test
def a_step_beside_a_living_process_is_counted_by_what_it_alone_changed(place):
    for name in ("base", "other", "dir/in", "dir/more"):
        write(place.work / name, f"{name}\n")
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "echo 1 >one; echo 1 >two; echo x >>base; rm -r dir; mkdir dir; echo h >~/h"))
        row = looked(place, ident, 2)
        equal((counts(row), told(row)), ((3, 1, 2), [("added", "h"), ("added", "one"), ("added", "two"), ("changed", "base"), ("removed", "in"), ("removed", "more")]), "the first, of what it lies on")
        good(execute(place, ident, "echo 2 >>two; rm one; echo 3 >three; chmod 600 base; ln two hard; echo back >dir/in"))
        row = looked(place, ident, 3)
        equal((counts(row), told(row)), ((3, 2, 1), [("added", "hard"), ("added", "in"), ("added", "three"), ("changed", "base"), ("changed", "two"), ("removed", "one")]), "what the steps before it changed is not its own")
        wait_for(lambda: all(file["sha256"] for file in looked(place, ident, 3)["files"] if file["how"] != "removed"), what="the hashes")
        new = {file["path"].rsplit("/", 1)[1]: file["sha256"] for file in looked(place, ident, 3)["files"]}
        equal((new["three"], new["two"]), tuple(hashlib.sha256(text).hexdigest() for text in (b"3\n", b"1\n2\n")))
        good(execute(place, ident, "touch base; rm three; rm -r dir"))
        row = looked(place, ident, 4)
        equal((counts(row), told(row)), ((0, 0, 3), [("removed", "dir"), ("removed", "in"), ("removed", "three")]))
        listed = [line for line in place.cove("steps", ident).text.splitlines() if line.split()[0] == "4"]
        assert listed and "+0 ~0 -3" in listed[0], listed


@test
def the_first_step_after_the_last_process_is_counted_by_what_it_alone_changed(place):
    with staying(place) as ident:
        good(execute(place, ident, "sleep 1000 >/dev/null 2>&1 & echo $! >/tmp/pid; echo 1 >one; seq 1000 >many"))
        assert looked(place, ident, 1)["checkpoint"]
        good(execute(place, ident, "kill $(cat /tmp/pid); while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.01; done; echo 2 >two; rm one"))
        row = looked(place, ident, 2)
        equal((counts(row), told(row)), ((1, 0, 1), [("added", "two"), ("removed", "one")]))


@test
def what_a_killed_keeper_has_not_counted_is_counted_by_the_next(place):
    """As if it had been killed before: the lines about the last step are taken away."""
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "echo 1 >one; echo 1 >two"))
        good(execute(place, ident, "echo 2 >>two; rm one"))
        looked(place, ident, 3)
        os.kill(keeper(place, ident), signal.SIGKILL)
        trace = place.state / "sandboxes" / ident / "trace.jsonl"
        wait_for(lambda: state(place, ident) == "killed", what="the end of its keeper")
        lines = trace.read_text().split("\n")[:-1]
        (at,) = [i for i, line in enumerate(lines) if json.loads(line)["kind"] == "step.changed" and json.loads(line)["data"]["number"] == 3]
        trace.write_text("".join(line + "\n" for line in lines[:at]))
        good(place.cove("start", ident))
        row = looked(place, ident, 3)
        equal((counts(row), told(row)), ((0, 1, 1), [("changed", "two"), ("removed", "one")]))


# While nobody looks closely the mapping cannot be written to; and its page stays dirty, so no fault tells of a change.
HIDES = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
fd = os.open("mapped", os.O_RDWR)
page = libc.mmap(None, 4096, 3, 1, fd, 0)
os.close(fd)
last = ""
while True:
    try:
        said = open("/tmp/say").read().strip()
    except OSError:
        said = "0"
    if said and said != last:
        libc.mprotect(page, 4096, 3)
        ctypes.memmove(page, said.encode(), 1)
        libc.mprotect(page, 4096, 1)
        last = said
        os.close(os.open("/tmp/did" + said, os.O_CREAT))
    time.sleep(0.01)
"""


@test
def a_mapping_that_cannot_be_written_to_for_a_while_hides_no_change(place):
    with staying(place) as ident:
        good(execute(place, ident, "printf xyz >mapped"))
        good(place.cove("exec", "-d", ident, "--", "python3", "-c", HIDES))
        for number in (1, 2, 3):
            good(execute(place, ident, f"until [ -e /tmp/did0 ]; do sleep 0.01; done; touch f{number}; echo {number} >/tmp/say; until [ -e /tmp/did{number} ]; do sleep 0.01; done"))
        for number in (1, 2, 3):
            layer = looked(place, ident, 2 + number)["checkpoint"]
            (path,) = (place.state / "layers" / layer).rglob("mapped")
            equal(path.read_text(), f"{number}yz")


@test
def a_writer_changes_none_of_a_hundred_checkpoints(place):
    writer = "i=0; while :; do i=$((i+1)); echo $i >>log; echo $i >now; echo $i >d/$((i%20)); mv now then; [ $((i%7)) = 0 ] && rm -f d/$((i%20)); done"
    with staying(place) as ident:
        good(execute(place, ident, "mkdir d"))
        server(place, ident, writer)
        made = {}
        for number in range(3, 103):
            good(execute(place, ident, f"echo {number} >step"))
            layer = noted(place, ident, number)["checkpoint"]
            assert layer, looked(place, ident, number)
            made[layer] = stamp(place, layer)
            (path,) = (place.state / "layers" / layer).rglob("step")
            equal(path.read_text(), f"{number}\n")
        equal([row["checkpoint"] for row in json.loads(place.cove("steps", "--json", ident).out)["steps"][2:]], list(made), "as they are shown")
        equal(len(made), 100)
        changed = [layer for layer, before in made.items() if stamp(place, layer) != before]
        equal(changed, [], "checkpoints that were written to")
        logs = [int(next((place.state / "layers" / layer).rglob("log")).read_text().split()[-1]) for layer in made]
        equal(logs, sorted(logs), "each shows one instant")
        assert len(set(logs)) > 50, "and the writer went on"


@test
def a_snapshot_is_made_of_what_runs(place):
    with staying(place) as ident:
        server(place, ident, "while :; do date +%N >clock; sleep 0.01; done")
        good(execute(place, ident, "echo 1 >one"))
        equal(good(place.cove("snapshot", ident, "--name", "mid")).text, "mid\n")
        good(execute(place, ident, "echo 2 >one; test -e clock"))
        (fork,) = good(place.cove("fork", "mid")).text.split()
        try:
            equal(execute(place, fork, "cat one; ps -e | grep -c date").text, "1\n0\n")
        finally:
            place.cove("rm", "-f", fork)
            good(place.cove("snapshot", "rm", "mid"))


@test
def what_is_closed_to_its_owner_is_copied_too(place):
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "mkdir shut; echo s >shut/secret; chmod 0 shut/secret; chmod 0 shut; mkdir nowrite; echo n >nowrite/n; chmod 555 nowrite"))
        row = looked(place, ident, 2)
        assert row["checkpoint"], row
        (fork,) = good(place.cove("fork", f"{ident}@2")).text.split()
        try:
            equal(execute(place, fork, "stat -c %a shut nowrite; chmod 700 shut; stat -c %a shut/secret; chmod 600 shut/secret; cat shut/secret nowrite/n").text, "0\n555\n0\ns\nn\n")
        finally:
            place.cove("rm", "-f", fork)


@test
def after_the_last_process_it_is_a_switch_again(place):
    with staying(place) as ident:
        good(execute(place, ident, "sleep 1000 >/dev/null 2>&1 & echo $! >/tmp/pid; echo 1 >one"))
        assert looked(place, ident, 1)["checkpoint"]
        good(execute(place, ident, "kill $(cat /tmp/pid); while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.01; done; echo 2 >two"))
        good(execute(place, ident, "echo 3 >three"))
        assert looked(place, ident, 3)["checkpoint"]
        equal([path.name for path in (place.state / "layers" / looked(place, ident, 3)["checkpoint"]).rglob("one")], [], "only what is new is in its layer")
        for number, text in ((1, "one\n"), (2, "one\ntwo\n"), (3, "one\nthree\ntwo\n")):
            good(place.cove("rollback", ident, number))
            equal(execute(place, ident, "ls").text, text)


@test
def a_keeper_that_is_killed_loses_no_checkpoint_and_stops_nobody_for_good(place):
    chance = random.Random(5)
    made = {}
    with staying(place) as ident:
        number = 0
        for turn in range(8):
            server(place, ident, "while :; do date +%N >clock; done")
            number += 1
            for _ in range(chance.randrange(1, 5)):
                good(execute(place, ident, f"echo {turn} >>log; seq 20000 >big"))
                number += 1
                if chance.random() < 0.6:
                    layer = looked(place, ident, number)["checkpoint"]
                    made[number] = (layer, stamp(place, layer))
            time.sleep(chance.random() * 0.02)
            os.kill(json.loads((place.state / "sandboxes" / ident / "record.json").read_text())["keeper"], signal.SIGKILL)
            good(place.cove("start", ident))
            equal(execute(place, ident, "ps -e | grep -c date").text, "0\n")
            number += 1
        for layer, before in made.values():
            equal(stamp(place, layer), before)
        some = chance.choice(sorted(made))
        good(place.cove("rollback", ident, some))


# A copy that takes its time


def copiers(place, ident):
    """Who copies for this sandbox just now."""
    found = []
    for pid in descendants(keeper(place, ident)):
        with contextlib.suppress(OSError):  # it was quick
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "cove-copier\n":
                found.append(pid)
    return found


@contextlib.contextmanager
def copying(place, ident, *command):
    """The command, while the copy that it has asked for stands still; the caller waits for its end."""
    process = start(place, *command)
    held = []
    try:
        end = time.monotonic() + 10
        while not held:
            held = copiers(place, ident)
            for pid in held:
                os.kill(pid, signal.SIGSTOP)
            assert process.poll() is None and time.monotonic() < end, "no copy was seen"
        yield process
    finally:
        for pid in held:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


MANY = "mkdir many; cd many; i=0; while [ $i -lt 3000 ]; do echo $i >$i; i=$((i+1)); done"


@test
def a_long_copy_keeps_nobody_from_an_answer(place):
    with staying(place, "--live-files", "10") as ident:
        number = server(place, ident, "echo here; while :; do date +%N >clock; sleep 0.01; done")
        good(execute(place, ident, MANY))
        looked(place, ident, 2)
        with copying(place, ident, "snapshot", ident, "--name", "big") as snapshot:
            (row,) = json.loads(good(place.cove("ls", "--json", timeout=5)).out)
            equal((row["id"], row["state"]), (ident, "running"))
            for words in (("show", ident), ("steps", ident), ("tree", ident)):
                good(place.cove(*words, timeout=5))
            equal(good(place.cove("logs", "--step", number, ident, timeout=5)).text, "here\n")
            waiting = [start(place, "exec", ident, "--", "echo", "later")]
            time.sleep(0.2)
            waiting.append(start(place, "pause", ident))
            clock = list((place.state / "sandboxes" / ident).glob("u*/clock"))[0]
            before = clock.stat().st_mtime_ns
            time.sleep(0.3)
            equal(([process.poll() for process in waiting], snapshot.poll()), ([None, None], None), "who would start or stop somebody waits")
            equal(clock.stat().st_mtime_ns, before, "and everybody rests")
        good(finish(snapshot))
        good(finish(waiting[1]))
        good(place.cove("resume", ident))
        equal(good(finish(waiting[0])).text, "later\n", "it was asked for before the pause, and is served first")
        wait_for(lambda: clock.stat().st_mtime_ns != before, what="the server, which goes on")
        (fork,) = good(place.cove("fork", "big")).text.split()
        equal(execute(place, fork, "ls many | wc -l; cat many/2999").text, "3000\n2999\n")
        place.cove("rm", "-f", fork)
        good(place.cove("snapshot", "rm", "big"))


@test
def a_sandbox_can_be_stopped_while_it_is_copied(place):
    for command in (("snapshot", "--name", "never"), ("undo",)):
        with staying(place) as ident:
            good(execute(place, ident, "echo 1 >one"))
            looked(place, ident, 1)
            server(place, ident, MANY + "; touch ../done; sleep 1000")
            wait_for(lambda: list((place.state / "sandboxes" / ident).glob("u*/done")), seconds=20, what="many files")
            before = layers(place)
            with copying(place, ident, command[0], ident, *command[1:]) as process:
                began = time.monotonic()
                good(place.cove("stop", "--timeout", "1s", ident, timeout=20))
                assert time.monotonic() - began < 10, "it waited for the copy"
                failed = finish(process)
                equal(failed.code, 125, failed)
                assert b"being stopped" in failed.err, failed
            equal(layers(place), before, "nothing of the copy is left")
            good(place.cove("start", ident))
            equal(execute(place, ident, "cat one many/7; ls many | wc -l").text, "1\n7\n3000\n")
        equal(good(place.cove("snapshot", "ls")).text.count("never"), 0)


@test
def a_keeper_that_is_killed_while_files_are_copied_leaves_nobody(place):
    with staying(place, "--live-files", "10") as ident:
        server(place, ident)
        good(execute(place, ident, MANY))
        looked(place, ident, 2)
        with copying(place, ident, "snapshot", ident, "--name", "never") as process:
            os.kill(keeper(place, ident), signal.SIGKILL)
            equal(finish(process).code, 125)
            wait_for(lambda: state(place, ident) == "killed", what="the end of all")
        good(place.cove("start", ident))
        equal(execute(place, ident, "cat many/7; ls many | wc -l").text, "7\n3000\n")


# Bounds


@test
def more_than_is_copied_by_itself_has_no_checkpoint(place):
    with staying(place, "--live-bytes", "100K", "--live-files", "20") as ident:
        server(place, ident)
        good(execute(place, ident, "head -c 200000 /dev/zero >big"))
        equal(looked(place, ident, 2)["no_checkpoint"], "processes were running, and 200000 bytes had changed, more than checkpoints.live_bytes")
        good(place.cove("snapshot", ident, "--name", "anyway"))
        good(execute(place, ident, "echo 1 >small"))
        assert looked(place, ident, 3)["checkpoint"], "what the snapshot has copied need not be copied again"
        good(execute(place, ident, "for i in $(seq 30); do touch f$i; done"))
        assert "checkpoints.live_files" in looked(place, ident, 4)["no_checkpoint"]
        one_error(place.cove("rollback", ident, "4"), "step 4 has no checkpoint: processes were running, and 3")
        good(place.cove("rollback", ident, "anyway"))
        equal(execute(place, ident, "ls; wc -c <big").text, "big\n200000\n")
        good(place.cove("snapshot", "rm", "anyway"))


@test
def only_so_many_are_kept(place):
    for alive in (True, False):
        with staying(place, "--keep-checkpoints", "4") as ident:
            offset = server(place, ident) if alive else 0
            good(execute(place, ident, "echo 1 >>log"))
            looked(place, ident, offset + 1)
            good(place.cove("snapshot", ident, "--name", "held"))
            for number in range(2, 21):
                good(execute(place, ident, f"echo {number} >>log"))
            looked(place, ident, offset + 20)
            wait_for(lambda: [row for row in json.loads(place.cove("steps", "--json", ident).out)["steps"] if row["number"] == offset + (15 if alive else 3)][0]["no_checkpoint"], what="the end of old ones")
            rows = json.loads(place.cove("steps", "--json", ident).out)["steps"][offset:]
            there = [row["number"] - offset for row in rows if row["checkpoint"]]
            assert 1 in there and set(range(17, 21)) <= set(there) and 3 not in there, there
            assert not alive or there == [1, 17, 18, 19, 20], there
            one_error(place.cove("rollback", ident, str(offset + 3)), f"step {offset + 3} has no checkpoint: it was dropped, as there were more than checkpoints.keep")
            for number in reversed(there):
                good(place.cove("rollback", ident, str(offset + number)))
                equal(execute(place, ident, "cat log").text, "".join(f"{n}\n" for n in range(1, number + 1)), number)
            good(place.cove("rollback", ident, "0"))
            equal(execute(place, ident, "ls").text, "")
            good(place.cove("snapshot", "rm", "held"))


@test
def only_so_much_is_kept(place):
    with staying(place, "--checkpoint-space", "2M") as ident:
        server(place, ident)
        for number in range(2, 12):
            good(execute(place, ident, "head -c 500000 /dev/urandom >noise; test -e kept || head -c 500000 /dev/urandom >kept"))
            looked(place, ident, number)

        def used():
            try:
                return sum({info.st_ino: info.st_blocks * 512 for path in (place.state / "layers").rglob("*") for info in [path.lstat()]}.values())
            except FileNotFoundError:  # it goes while we look
                return 1 << 30
        wait_for(lambda: used() < 4 << 20, what="the end of old ones")
        rows = json.loads(place.cove("steps", "--json", ident).out)["steps"]
        assert rows[-1]["checkpoint"] and "checkpoints.space" in rows[1]["no_checkpoint"], rows


# Undo beneath what lives


LOOK = "find . ~ /tmp -printf '%p %y %m %s %T@ %l\\n' 2>/dev/null | grep -v ' /tmp/say\\| /tmp d' | sort; find . -type f -readable -exec cat {} +"


@test
def undo_brings_files_back_under_a_server_that_goes_on(place):
    for name in ("kept", "removed", "dir/in", "dir/deep/er", "mode", "swap/x"):
        write(place.work / name, f"{name}\n")
    before = digest(place.work)
    with staying(place) as ident:
        good(place.cove("exec", "-d", ident, "--", "python3", "-m", "http.server", "8123", "--bind", "127.0.0.1"))
        get = "python3 -c \"import urllib.request,sys; sys.stdout.write(urllib.request.urlopen('http://127.0.0.1:8123/'+sys.argv[1]).read().decode())\" "
        wait_for(lambda: execute(place, ident, get + "kept").code == 0, what="the server")
        good(execute(place, ident, "echo 1 >new; ln -s new link; ln new hard; mkdir -m 700 d; touch -d 2001-02-03 d/aged; echo h >~/h; mkfifo d/p; echo t >/tmp/t; chmod 0 d/aged"))
        first = good(execute(place, ident, LOOK)).text
        good(execute(place, ident, "rm removed link; rm -r dir; mkdir dir; echo other >dir/other; chmod 600 mode; echo 2 >>new; echo x >>kept; rm -rf d; rm ~/h /tmp/t; rm -r swap; echo f >swap; mkdir link; echo u >link/u; chmod 711 ."))
        number = len(json.loads(place.cove("steps", "--json", ident).out)["steps"])
        last = good(execute(place, ident, LOOK)).text
        assert first != last
        done = good(place.cove("undo", ident))
        equal(done.text, f"{number - 1}\n")
        told = execute(place, ident, LOOK)
        equal((told.err, told.text), (f"cove: the files went back to before step {number}\n".encode(), first))
        equal(good(execute(place, ident, get + "kept; " + get + "dir/deep/er")).text, "kept\ndir/deep/er\n", "the same server, told once")
        good(place.cove("fork", f"{ident}@{number}", "--name", "redo"))
        try:
            equal(execute(place, "redo", LOOK).text, last, "what was there before the undo is a checkpoint")
        finally:
            place.cove("rm", "-f", "redo")
        good(execute(place, ident, "echo more >more"))
        good(place.cove("undo", ident, "2"))
        equal(execute(place, ident, "ls").text, "dir\nkept\nmode\nremoved\nswap\n")
        equal(digest(place.work), before, "the host's own files")


@test
def undo_while_a_writer_writes_touches_only_what_differs(place):
    with staying(place) as ident:
        good(execute(place, ident, "mkdir stay; for i in 1 2 3; do echo $i >stay/$i; done"))
        server(place, ident, "i=0; while :; do i=$((i+1)); echo $i >>log; sleep 0.002; done")
        good(execute(place, ident, "echo 1 >one; echo 1 >two"))
        good(execute(place, ident, "stat -c %i stay/1 one; exec 3<one; echo 2 >two; rm stay/2"))
        # A step that the writer writes in has changed something, and is one of those that are taken back.
        inodes = execute(place, ident, "had=$(wc -l <log); until [ $(wc -l <log) -gt $had ]; do sleep 0.01; done; stat -c %i stay/1 one").text
        good(place.cove("undo", ident, "2"))
        told = execute(place, ident, "stat -c %i stay/1 one; cat two stay/2; ls -A")
        equal(told.text, inodes + "1\n2\nlog\none\nstay\ntwo\n")
        lines = [json.loads(line) for line in (place.state / "sandboxes" / ident / "trace.jsonl").read_text().split("\n")[:-1]]
        kinds = [line["kind"] for line in lines if line["kind"] in ("checkpoint", "undo")]
        equal((kinds.count("undo"), kinds[kinds.index("undo") - 1]), (1, "checkpoint"))
        size = int(execute(place, ident, "wc -l <log").text)
        wait_for(lambda: int(execute(place, ident, "wc -l <log").text) != size, what="the writer, which goes on")
        equal(place.cove("steps", ident).code, 0, "the chain is whole")


@test
def undo_reads_no_file_where_nothing_was_written(place):
    write(place.work / "folder" / "old", "old\n")
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "rm -r folder; mkdir folder; truncate -s 4T folder/vast; printf x | dd of=folder/vast bs=1 seek=1T conv=notrunc 2>/dev/null; touch -d @1 folder/vast"))
        good(execute(place, ident, "printf y | dd of=folder/vast bs=1 seek=1T conv=notrunc 2>/dev/null; touch -d @1 folder/vast"))
        good(execute(place, ident, "touch more"))
        for count, letter in ((1, "y"), (1, "x")):
            good(place.cove("undo", ident, str(count), timeout=20))
            equal(place.cove("exec", ident, "--", "dd", "if=folder/vast", "bs=1", "skip=1T", "count=1", "status=none").text, letter)


@test
def undo_loses_no_file_that_has_the_name_it_uses_itself(place):
    with staying(place) as ident:
        server(place, ident)
        good(execute(place, ident, "echo mine >.cove-undo; echo too >.cove-undo-1; for i in a b c; do echo 1 >$i; done"))
        good(execute(place, ident, "rm .cove-undo-1; for i in a b c; do echo 2 >$i; done; mkdir .cove-undo-2; echo x >.cove-undo-2/x"))
        good(place.cove("undo", ident))
        equal(execute(place, ident, "ls -A; cat .cove-undo .cove-undo-1 a b c").text, ".cove-undo\n.cove-undo-1\na\nb\nc\nmine\ntoo\n1\n1\n1\n")


@test
def undo_is_not_held_up_by_a_lease(place):
    holds = "import fcntl,os,signal,time\nsignal.signal(signal.SIGIO,signal.SIG_IGN)\nfd=os.open('folder/held',os.O_RDWR)\n" \
            "fcntl.fcntl(fd,fcntl.F_SETLEASE,fcntl.F_WRLCK)\nopen('/tmp/ready','w')\ntime.sleep(300)"
    write(place.work / "folder" / "old", "old\n")
    with staying(place) as ident:
        good(execute(place, ident, "rm -r folder; mkdir folder; echo x >folder/held; echo 1 >folder/other"))
        good(place.cove("exec", "-d", ident, "--", "python3", "-c", holds))
        good(execute(place, ident, "until [ -e /tmp/ready ]; do sleep 0.01; done; echo 2 >folder/other; echo 2 >folder/more"))
        good(place.cove("undo", ident))
        equal(execute(place, ident, "ls folder; cat folder/*").text, "held\nother\nx\n1\n")


@test
def undo_crosses_what_was_frozen_before(place):
    write(place.work / "base", "base\n")
    with staying(place) as ident:
        for number in range(1, 16):
            good(execute(place, ident, f"echo {number} >>log; echo {number} >f{number}; rm -f f{number - 3}; echo {number} >base"))
        server(place, ident)
        good(execute(place, ident, "rm log; mkdir log; echo x >log/x"))
        good(execute(place, ident, "rm -r log f15"))
        for count, number in ((1, 16), (1, 15), (3, 12), (8, 4)):
            good(place.cove("undo", ident, str(count)))
            told = execute(place, ident, "ls; test -d log && cat log/x || cat log; cat base")
            wanted = {16: "base\nf13\nf14\nf15\nlog\nx\n15\n"}.get(number)
            number = min(number, 15)
            names = sorted(f"f{n}" for n in range(max(1, number - 2), number + 1))
            equal(told.text, wanted or "base\n" + "".join(f"{n}\n" for n in names) + "log\n" + "".join(f"{n}\n" for n in range(1, number + 1)) + f"{number}\n", (count, number))
        equal((place.work / "base").read_text(), "base\n")


@test
def what_has_no_process_is_turned_as_before(place):
    with staying(place) as ident:
        for number in (1, 2):
            good(execute(place, ident, f"echo {number} >f{number}"))
        good(place.cove("undo", ident))
        equal(good(execute(place, ident, "ls")).text, "f1\n", "and nobody needs to be told")


adopt_orphans()
main()
