"""IPC: the socket inside at which programs mark steps of their own.  Everything that comes that way is hostile."""
import contextlib
import json
import os
import time

from attack import UNSAFE, control_fires, equal, main, memory_of, test
from support.running import nothing_left, reap, wait_for
from support.staying import execute, good, steps

# What one does who talks to the socket without our program.
TALK = """
import array, os, socket, struct, sys, time
def frame(kind, words=(), status=0, number=0, version=1, count=None, length=None):
    text = b"".join(w.encode() + b"\\0" for w in words)
    return struct.pack("=IIIIQQiI4032s", version, kind, len(words) if count is None else count, len(text) if length is None else length, 0, number, status, 0, text)
def meet():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(3)
    s.connect("/run/cove/marks")
    return s
def said(s):
    try:
        got = s.recv(8192)
    except TimeoutError:
        return "nothing"
    except ConnectionError:
        return "gone"
    return {3: "started", 4: "done", 5: "refused"}.get(struct.unpack("=II", got[:8])[1], "?") if got else "gone"
def ask(s, *args, **kwargs):
    try:
        s.send(frame(*args, **kwargs))
    except (BrokenPipeError, ConnectionError):
        return "gone"
    return said(s)
BEGIN, END = 1, 2
"""


@contextlib.contextmanager
def staying(place, *options, **kwargs):
    done = place.cove("create", *options, **kwargs)
    equal(done.code, 0, done)
    try:
        yield done.text.strip()
    finally:
        place.cove("rm", "-f", done.text.strip())
        reap()
    nothing_left(place)


def keeper(place, ident):
    return json.loads((place.state / "sandboxes" / ident / "record.json").read_text())["keeper"]


def processor(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    """Without those that are there for a moment."""
    counts = []
    for _ in range(20):
        counts.append(len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.02)
    return min(counts)


def talk(place, ident, script, **kwargs):
    return good(place.cove("exec", ident, "--", "python3", "-c", TALK + script, **kwargs)).text.split()


@test(id="IPC-10")
def only_who_began_a_step_can_end_it_and_nothing_else_is_heard(place):
    with staying(place) as ident:
        pid = keeper(place, ident)
        good(execute(place, ident, "true"))
        wait_for(lambda: steps(place, ident)[0]["state"] == "over", what="the end of the first step")
        wait_for(lambda: os.path.lexists(place.state / "cove-init"), what="its rest, from which on it lends PID 1's program")
        before = descriptors(pid)
        script = '''
mine = meet()
print(ask(mine, BEGIN, ("/", "mine")))
for other in (frame(END, number=1), frame(END, number=2), frame(END, number=3), frame(2**31), frame(0), frame(4), frame(3), frame(BEGIN, ("/", "x"), version=2), frame(BEGIN),
              frame(BEGIN, ("/",)), frame(BEGIN, ("/", "x"), count=3), frame(BEGIN, ("/", "x"), count=2**32 - 1), frame(BEGIN, ("/", "x"), length=2**32 - 1),
              frame(BEGIN, ("/", "x"), length=1), frame(BEGIN, ("/", "x"), length=4033), b"", b"x", frame(BEGIN, ("/", "x"))[:-1], frame(BEGIN, ("/", "x")) + b"x"):
    s = meet()
    s.send(other)
    print(said(s))
s = meet()
s.sendmsg([frame(BEGIN, ("/", "x"))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
print(said(s))
s = meet()
s.sendmsg([frame(BEGIN, ("/", "x"))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 100))])
print(said(s))
twice = meet()
print(ask(twice, BEGIN, ("/", "twice")), ask(twice, BEGIN, ("/", "again")))
print(ask(mine, END, status=7 << 8), said(mine))
'''
        heard = talk(place, ident, script)
        equal(heard[0], "started", "who says it right is heard")
        equal(set(heard[1:22]), {"gone"}, "and nobody else")
        equal(heard[22:], ["started", "gone", "done", "gone"], "twice, and the end of the first")
        equal(descriptors(pid), before, "descriptors of the keeper")
        rows = {row["number"]: row for row in steps(place, ident)}
        equal([(rows[n]["argv"], rows[n]["inside"], rows[n]["reason"], rows[n]["exit"]) for n in (3, 4)],
              [(["mine"], True, "exited", 7), (["twice"], True, "unsaid", None)], "what was said, as said")
        equal([(rows[n]["inside"], rows[n]["exit"]) for n in (1, 2)], [(False, 0), (False, 0)], "the other steps ended by themselves")
        equal(len(rows), 4, "nothing else is on record")
        equal(place.cove("steps", ident).code, 0, "the record is whole")


FLOOD = '''
end, count = time.monotonic() + SECONDS, 0
held = []
while time.monotonic() < end:
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        s.connect("/run/cove/marks")
        s.send(frame(BEGIN, ("/", "flood")))
        s.send(frame(END))
        count += 1
        held.append(s)
        if len(held) > 200:
            del held[:100]
    except OSError:
        time.sleep(0.0005)
print("said", count)
'''


@test(id="IPC-11")
def a_flood_of_marks_is_not_recorded_and_keeps_nobody_waiting(place):
    seconds = 3

    def flood(binary=None, **kwargs):
        with staying(place, binary=binary, **kwargs) as ident:
            pid = keeper(place, ident)
            good(place.cove("exec", "-d", ident, "--", "python3", "-c", TALK + FLOOD.replace("SECONDS", str(seconds))))
            used, kept = processor(pid), memory_of(pid)
            begun = time.monotonic()
            while time.monotonic() < begun + seconds:
                asked = time.monotonic()
                good(execute(place, ident, "true"))
                good(place.cove("show", ident))
                assert time.monotonic() - asked < 5, "another command has to wait"
            used = processor(pid) - used
            assert memory_of(pid) - kept < 8192 or "COVE_SANITIZED" in os.environ, "memory of the keeper, in KiB"  # a sanitizer keeps what was freed
            wait_for(lambda: steps(place, ident)[0]["state"] == "over", what="the end of the flood")
            return sum(row["inside"] for row in steps(place, ident)), used

    marked, used = flood()
    assert 0 < marked <= 64 + 10 * (seconds + 3), f"{marked} steps were recorded"
    loose, loose_used = flood(binary=UNSAFE, env={"COVE_UNSAFE_WITHOUT": "marks"})
    control_fires(loose > 3 * marked, f"without the bound more are recorded: {loose}, not {marked} ({loose_used} s of processor time, not {used})")


@test(id="IPC-11")
def connections_that_say_nothing_or_do_not_read_take_nobody_else_his(place):
    with staying(place) as ident:
        pid = keeper(place, ident)
        good(place.cove("exec", "-d", ident, "--", "python3", "-c", TALK + """
held, end = [], time.monotonic() + 3
while len(held) < 500 and time.monotonic() < end:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        s.connect("/run/cove/marks")
        held.append(s)
    except OSError:
        time.sleep(0.01)
print(len(held), flush=True)
time.sleep(1000)
"""))
        wait_for(lambda: place.cove("logs", "--step", "1", ident).text.strip(), what="connections that say nothing")
        control_fires(int(place.cove("logs", "--step", "1", ident).text) >= 32, "they were connected")
        begun = time.monotonic()
        equal(good(execute(place, ident, "/run/cove/step echo unmarked")).text, "unmarked\n", "the program of ours goes on without")
        assert time.monotonic() - begun < 10, "and soon"
        time.sleep(0.5)
        used = processor(pid)
        time.sleep(1)
        assert processor(pid) - used < 0.3, "the keeper rests"
        assert len(os.listdir(f"/proc/{pid}/fd")) < 100, "descriptors of the keeper"
        good(execute(place, ident, "true"))


@test(id="IPC-10")
def what_comes_with_a_message_of_the_keeper_leads_nowhere(place):
    """A receiver may ask the kernel who sent something: a number and, on newer kernels, a handle."""
    with staying(place) as ident:
        heard = talk(place, ident, """
s = meet()
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
try:
    s.setsockopt(socket.SOL_SOCKET, 76, 1)  # SO_PASSPIDFD
except OSError:
    pass
s.send(frame(BEGIN, ("/", "x")))
data, extra, flags, _ = s.recvmsg(8192, 1024)
import signal
for level, kind, bytes_ in extra:
    if kind == 2:
        pid = struct.unpack("=iII", bytes_)[0]
        print("pid", pid)
        assert pid == 0, pid
    if kind == 4:
        fd = struct.unpack("=i", bytes_)[0]
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            try:
                signal.pidfd_send_signal(fd, number)
                print("signalled")
            except OSError as error:
                print("refused")
        import ctypes
        print("taken" if ctypes.CDLL(None).syscall(438, fd, 0, 0) >= 0 else "refused")
print("end")
""")
        equal(heard[:2], ["pid", "0"], "the keeper has no number inside")
        equal(set(heard[2:-1]) - {"refused"}, set(), "what a handle on it is good for")
        good(execute(place, ident, "true"))


if __name__ == "__main__":
    main()
