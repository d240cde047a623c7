"""IPC: sockets, signals, shared memory, locks."""
import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import select
import signal
import socket
import subprocess
import threading
import time

from attack import (COVE, COW_OUT, IDENTITY, MOUNTS_OUT, Canaries, Running, all_refused, attack, attack_host, control_fires, descendants, equal, libc,
                    main, nothing_is_left, program_of, put_probe, skip, status_of, test)


class Listeners:
    """Sockets of the host that count what arrives at them."""
    KINDS = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM, "seqpacket": socket.SOCK_SEQPACKET}

    def __init__(self, names):
        self.sockets, self.arrived = [], 0
        for kind, name in names.items():
            one = socket.socket(socket.AF_UNIX, self.KINDS[kind])
            one.bind("\0" + name[1:] if name.startswith("@") else name)
            if kind != "dgram":
                one.listen(16)
            one.setblocking(False)
            self.sockets.append(one)

    def count(self):
        """How many connections and messages came since the last time."""
        arrived = 0
        for one in self.sockets:
            with contextlib.suppress(BlockingIOError):
                while True:
                    if one.type == socket.SOCK_DGRAM:
                        one.recv(100)
                    else:
                        one.accept()[0].close()
                    arrived += 1
        return arrived

    def close(self):
        for one in self.sockets:
            one.close()


@test(id="IPC-01")
def abstract_sockets_of_the_host_cannot_be_reached(place):
    names = {kind: f"@cove-test-{secrets.token_hex(8)}" for kind in Listeners.KINDS}
    listeners = Listeners(names)
    try:
        for without in (None, "network", "landlock", "seccomp", "capabilities"):
            all_refused(attack(place, "connect", *names.values(), without=without), f"abstract sockets without {without}")
            equal(listeners.count(), 0, f"arrivals without {without}")
        attack(place, "connect", *names.values(), without="network,landlock")
        control_fires(listeners.count() >= 3, "without both walls they arrive")
    finally:
        listeners.close()


WELL_KNOWN = """/run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock /run/crio/crio.sock /run/systemd/private /run/systemd/notify
 /run/systemd/journal/socket /run/systemd/journal/stdout /dev/log /run/dbus/system_bus_socket /run/snapd.socket /run/nscd/socket
 /run/avahi-daemon/socket /run/cups/cups.sock /run/libvirt/libvirt-sock /run/acpid.socket /run/udev/control /var/run/docker.sock
 /tmp/.X11-unix/X0 /run/user/0/bus /run/user/1000/bus /run/user/1000/wayland-0 /run/user/1000/pipewire-0 /run/user/1000/gnupg/S.gpg-agent
 /run/cove /tmp/ssh-agent/agent.1 @/tmp/.X11-unix/X0 @/org/freedesktop/systemd1/notify""".split()


@test(id="IPC-02")
def services_of_the_host_cannot_be_reached(place):
    decoy = place.dir / "decoy"
    decoy.mkdir()
    names = {"stream": str(place.work / "s"), "dgram": str(decoy / "d"), "seqpacket": str(decoy / "q")}
    listeners = Listeners(names)
    inside = [names["stream"], "/decoy/d", "/decoy/q", "/cow/d", "/cow/q"]
    grants = ("-v", f"{decoy}:/decoy:ro", "-v", f"{decoy}:/cow:cow")
    try:
        for without in (None, "landlock", "seccomp", "capabilities", "network"):
            all_refused(attack(place, "connect", *inside, *WELL_KNOWN, options=grants, without=without), f"sockets without {without}")
            equal(listeners.count(), 0, f"arrivals without {without}")
        found = attack(place, "special", "/run", "/var", "/tmp", "/etc", "/home", "/root", "/srv")
        equal([line for line in found.say.get("entry", []) if line.startswith("s") and str(place.work) not in line], [], "sockets that are visible")
        attack(place, "connect", *inside, options=grants, without=f"readonly,{COW_OUT}")
        control_fires(listeners.count() >= 3, "through plain binds they arrive")
    finally:
        listeners.close()


@test(id="IPC-03")
def shared_memory_and_queues_are_the_own_ones(place):
    key = secrets.randbelow(1 << 30) + 1
    shm, sem, msg = libc.shmget(key, 4096, 0o1666), libc.semget(key, 1, 0o1666), libc.msgget(key, 0o1666)
    assert min(shm, sem, msg) >= 0, "the host's own objects"
    queue, librt = f"/cove-test-{secrets.token_hex(6)}", ctypes.CDLL("librt.so.1", use_errno=True)
    mq = librt.mq_open(queue.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
    file = f"/dev/shm/cove-test-{secrets.token_hex(6)}"
    open(file, "w").close()
    try:
        report = attack(place, "system-v", str(key), queue)
        all_refused(report, "objects of the host")
        equal(report.say["found"], ["0 shm 0 sem 0 msg"], "objects by number")
        equal(attack(place, "list", "/dev/shm").say.get("/dev/shm", []), [], "shared files")
        loose = attack(place, "system-v", str(key), queue, without="ipc")
        control_fires({"shmget", "semget", "msgget"} <= set(loose.worked()), loose.chk)
        control_fires(os.path.basename(file) in attack_host(place, "list", "/dev/shm").say["/dev/shm"], "on the host it is seen")
    finally:
        libc.shmctl(shm, 0, None)
        libc.semctl(sem, 0, 0)
        libc.msgctl(msg, 0, None)
        if mq >= 0:
            librt.mq_unlink(queue.encode())
        os.unlink(file)


@test(id="IPC-04")
def signals_stay_inside_and_do_not_end_init(place):
    decoy = subprocess.Popen(["sleep", "100"])
    try:
        report = attack(place, "signals", str(decoy.pid), str(os.getpid()), str(os.getppid()))
        equal(report.say["alive"], ["yes"])
        reached = [step for step in report.worked() if not step.startswith(("init:", "kill-all"))]
        equal([step for step in reached if step.rpartition(":")[2] == str(decoy.pid)], [], "signals to the host")
        equal(decoy.poll(), None, "the process of the host")
        control = attack_host(place, "signals", prefix=["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "sh", "-c",
                                                        'sleep 50 & exec "$0" "$@" $!'])
        control_fires("kill:2" in control.worked() and "pidfd:2" in control.worked(), control.chk)
    finally:
        decoy.kill()
        decoy.wait()


@test(id="IPC-05")
def no_descriptor_can_be_sent_to_the_keeper(place):
    def descriptors(pid):
        return sorted(os.listdir(f"/proc/{pid}/fd"))
    with Running(place, "wait") as quiet:
        before = len(descriptors(quiet.cove))
    with Running(place, "send-descriptors") as run:
        equal(len(descriptors(run.cove)), before, "descriptors of the keeper")
        report = run.end()
    all_refused(report, "sending descriptors")
    equal(report.result.code, 0)
    # Nor through a socket that the user's own input and output happen to be.
    ours, theirs = socket.socketpair()
    put_probe(place)
    run = subprocess.Popen([COVE, "run", "--rm", "--", "./probe", "send-descriptors"], cwd=place.work, env=place.env, stdin=theirs, stdout=theirs,
                           stderr=subprocess.PIPE)
    theirs.close()
    ours.settimeout(20)
    got, handed = b"", []
    while b"waiting" not in got:
        data, fds, _, _ = socket.recv_fds(ours, 65536, 253)
        assert data, "the run ended"
        got, handed = got + data, handed + fds
    ours.shutdown(socket.SHUT_WR)
    equal(run.wait(20), 0, run.stderr.read())
    equal(handed, [], "descriptors that came out")
    loose = attack(place, "send-descriptors", without="descriptors", works=False)
    control_fires(loose.result.code == 125 and "too many descriptors" in loose.result.errors, f"the keeper hears of them where the channel is left open: {loose!r}")


@test(id="IPC-06")
def no_variable_leads_to_a_service(place):
    canaries = Canaries()
    names = ("DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "GPG_AGENT_INFO", "LISTEN_FDS",
             "NOTIFY_SOCKET", "XAUTHORITY", "DOCKER_HOST", "KUBECONFIG", "SSH_CONNECTION", "TMUX", "VSCODE_IPC_HOOK", "container")
    env = {name: "/" + canaries.token() for name in names}
    env["XDG_RUNTIME_DIR"] = str(place.dir / canaries.tokens[2])
    os.mkdir(env["XDG_RUNTIME_DIR"], 0o700)
    report = attack(place, "environment", env=env)
    present = {line.partition("=")[0] for line in report.say["env"]}
    equal(present & set(names), set(), "variables")
    canaries.none_in("variables", report)
    loose = attack(place, "environment", env=env, without="environment")
    control_fires(set(names) <= {line.partition("=")[0] for line in loose.say["env"]}, loose)


MOUNTED, START, STARTED, FAILED, EXITED, LISTENER, END, EMPTY = 2, 3, 4, 5, 6, 8, 9, 10  # src/init/protocol.h
NOBODY, STATUS, STOPPED = 4242, 42 << 8, 0x137F

# Kind, pid (0: the command's), status, size, descriptors, how often.
VIOLATIONS = {
    "a byte": (EXITED, 0, 0, "=1", 0, 1), "a byte too few": (EXITED, 0, 0, "-1", 0, 1), "a byte too many": (EXITED, 0, 0, "+1", 0, 1),
    "oversize": (EXITED, 0, 0, "=100000", 0, 1), "no kind": (0, 0, 0, "+0", 0, 1), "a kind below zero": (-1, 0, 0, "+0", 0, 1), "a kind past the last": (11, 0, 0, "+0", 0, 1),
    "the keeper's own words": (START, 0, 0, "+0", 0, 1), "an order to end": (END, 0, 0, "+0", 0, 1), "a second start": (STARTED, 0, 0, "+0", 0, 1),
    "the end of another": (EXITED, NOBODY, STATUS, "+0", 0, 1), "the end of pid -1": (EXITED, -1, STATUS, "+0", 0, 1), "a status that is no end": (EXITED, 0, STOPPED, "+0", 0, 1),
    "empty before the end": (EMPTY, 0, 0, "+0", 0, 1), "an end with a descriptor": (EXITED, 0, STATUS, "+0", 1, 1), "253 descriptors": (EXITED, 0, STATUS, "+0", 253, 1),
    "a second set-up": (MOUNTED, 0, 0, "+0", 1, 1), "a set-up without its mounts": (MOUNTED, 0, 0, "+0", 0, 1),
    "a listener that nobody asked for": (LISTENER, 0, 0, "+0", 1, 1), "a listener without one": (LISTENER, 0, 0, "+0", 0, 1),
    "an error whose text has no end": (FAILED, 0, 125, "+0", 0, 1), "a flood": (EXITED, NOBODY, 0, "+0", 0, 1_000_000), "a flood of descriptors": (LISTENER, 0, 0, "+0", 4, 100_000),
}


def is_alive(pid):
    return status_of(pid).get("State", "Z")[0] not in "ZX"


def pid_1_of(pids):
    return next(pid for pid in pids if status_of(pid).get("NSpid", "").split()[-1:] == ["1"])


class TakenOver:
    """A sandbox whose command has PID 1's end of the channel, and what became of it: exit code, time, memory."""

    def __init__(self, place, *messages, silent=False):
        words = [word for message in messages for word in message]
        with Running(place, "channel", *words, without="descriptors") as run:
            assert b"CHK found 0" in run.output, run.output
            self.inside = run.pids
            if silent:
                os.kill(pid_1_of(self.inside), signal.SIGSTOP)  # PID 1 itself hears nothing and does nothing
            began = time.monotonic()
            run.process.stdin.write(b"g")
            run.process.stdin.flush()
            watchdog = threading.Timer(20, run.process.kill)  # a keeper that waits for ever has failed too
            watchdog.start()
            self.errors = run.process.stderr.read().decode(errors="replace")
            _, status, usage = os.wait4(run.cove, 0)
            watchdog.cancel()
            run.process.returncode = self.code = os.waitstatus_to_exitcode(status)
            self.seconds, self.kib = time.monotonic() - began, usage.ru_maxrss

    def left(self, seconds=5):
        deadline = time.monotonic() + seconds
        while any(map(is_alive, self.inside)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return [pid for pid in self.inside if is_alive(pid)]


@test(id="IPC-07")
def a_pid_1_that_was_taken_over_ends_only_its_own_sandbox(place):
    with Running(place, "wait") as peer:
        for silent in (False, True):
            for what, message in VIOLATIONS.items():
                run = TakenOver(place, message, silent=silent)
                equal((run.code, "cove: " in run.errors), (125, True), f"{what}: {run.errors}")
                assert run.seconds < 5 and run.kib < 100 << 10, f"{what}: {run.seconds} s, {run.kib} KiB"
                equal(run.left(), [], f"{what}: processes of the sandbox")
        assert is_alive(peer.pid), "another sandbox"
    nothing_is_left(place)
    # What PID 1 may say is believed, once: its own command's end, and that nobody is left although all are.
    for silent in (False, True):
        run = TakenOver(place, (EXITED, 0, STATUS, "+0", 0, 1), (EXITED, 0, 7 << 8, "+0", 0, 1), silent=silent)
        control_fires(run.code == 42, f"a message that has its place: {run.errors}")
        equal(run.left(), [], "processes of the sandbox")
        run = TakenOver(place, (EXITED, 0, STATUS, "+0", 0, 1), (EMPTY, 0, 0, "+0", 0, 1000), silent=silent)
        equal((run.code, run.left()), (42, []), "processes of a sandbox that says it is empty")
        assert run.seconds < 5, run.seconds
    nothing_is_left(place)


@test(id="IPC-08")
def locks_inside_do_not_stop_the_host(place):
    decoy = place.dir / "decoy"
    decoy.mkdir()
    for path in (place.work / "shared", decoy / "shared"):
        path.write_text("x\n")

    def host_can_lock():
        for path in (place.work / "shared", decoy / "shared"):
            try:
                with open(os.open(path, os.O_RDWR | os.O_NONBLOCK), "r+") as file:  # O_NONBLOCK: do not wait for a lease
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        return True
    grant = ("-v", f"{decoy}:/decoy:ro")
    with Running(place, "locks", "shared", "/decoy/shared", options=grant):
        assert host_can_lock(), "a lock inside blocks the host"
    with Running(place, "locks", "shared", "/decoy/shared", options=grant, without=f"readonly,{COW_OUT}"):
        control_fires(not host_can_lock(), "through a plain bind it does")


@test(id="IPC-09")
def there_is_no_vsock(place):
    report = attack(place, "sockets")
    vsock = [line for line in report.say["socket"] if line.startswith("40 ")]
    assert vsock and all(line.endswith(f" {errno.EAFNOSUPPORT}") for line in vsock), vsock
    loose = attack(place, "sockets", without="seccomp")
    others = [line for line in loose.say["socket"] if line.startswith(("38 ", "40 ", "16 ")) and line.endswith(" 0")]
    control_fires(others, "without the filter some rare family answers")


main()
