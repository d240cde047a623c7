"""NS: identity, namespaces, capabilities."""
import contextlib
import errno
import os
import re
import subprocess
import time

from attack import (COVE, IDENTITY, MOUNTS_OUT, REFUSED_BY_FILTER, Report, Running, all_refused, attack, attack_host, control_fires,
                    descendants, equal, main, name_of, nothing_is_left, plain_tree, program_of, put_probe, refused, status_of, steps_are,
                    test, unchanged, fingerprint)

CAPABILITY_SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time")


def has_no_rights(status):
    """What is wrong with the rights of a task, as its status tells."""
    wrong = [name for name in CAPABILITY_SETS if int(status(name), 16)]
    wrong += [name for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2")) if status(name) != value]
    if int(status("Seccomp_filters") if status("Seccomp") == "2" else 0) < 2:
        wrong.append("Seccomp_filters")
    return wrong


@test(id="NS-01")
def a_command_starts_without_capabilities_and_filtered(place):
    report = attack(place, "status")
    equal(has_no_rights(report.status), [], "rights of the command")
    # An ordinary user cannot give up supplementary groups; they show as 65534 and open nothing.  Their own one may be among them.
    equal(set(report.status("Groups").split()) - {"65534", report.status("Gid").split()[0]}, set(), "supplementary groups")
    for guard, sign in (("capabilities", "CapEff"), ("seccomp", "Seccomp")):
        control_fires(sign in has_no_rights(attack(place, "status", without=guard).status), guard)
    control_fires("NoNewPrivs" in has_no_rights(attack_host(place, "status").status), "no-new-privileges, on the host")


@test(id="NS-02")
def every_namespace_is_its_own(place):
    def of(pid):
        return {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in NAMESPACES}
    with Running(place, "wait") as one, Running(place, "wait") as two:
        inside, peer, host = of(one.pid), of(two.pid), of("self")
        for name in NAMESPACES:
            assert len({inside[name], peer[name], host[name]}) == 3, f"the {name} namespace is shared: {inside[name]}"
    with Running(place, "wait", without="network,ipc,uts,hostname,time,cgroup,verify") as loose:
        shared = {name for name in NAMESPACES if of(loose.pid)[name] == host[name]}
    control_fires(shared == {"net", "ipc", "uts", "time", "cgroup"}, shared)


def maps_foreign_ids(text, own):
    """Whether an id map, seen from the host, reaches an id that is not the sandbox's to have."""
    for row in text.strip().splitlines():
        _, outside, count = map(int, row.split())
        if outside == 0 or (own and (outside, count) != (own, 1) and outside < 65536):
            return True
    return False


@test(id="NS-03")
def no_id_of_the_host_is_mapped_and_ids_cannot_be_changed(place):
    own = 0 if IDENTITY == "root" else os.getuid()
    with Running(place, "ids") as run:
        maps = {name: open(f"/proc/{run.pid}/{name}").read() for name in ("uid_map", "gid_map")}
        uids = status_of(run.pid)["Uid"].split()
        report = run.end()
    for name, text in maps.items():
        assert text.strip() and not maps_foreign_ids(text, own), f"{name}: {text}"
    assert own or "0" not in uids, f"the command is uid 0 of the host: {uids}"
    assert not own or set(uids) == {str(own)}, uids
    all_refused(report, "ids", besides=("setuid-0", "write:/proc/self/setgroups") if not own else ())
    control_fires(maps_foreign_ids("0 0 1", own), "a map of uid 0")
    control_fires("setuid-0" in attack_host(place, "ids", prefix=["unshare", "--user", "--map-root-user"]).worked(), "where it is mapped, an id can be taken")


@test(id="NS-04")
def no_namespace_can_be_made_inside(place):
    report = attack(place, "nest")
    for step, number in report.chk.items():
        assert number in REFUSED_BY_FILTER, f"{step} answered {name_of(number)}"
        assert not step.startswith("clone3") or number == errno.ENOSYS, "clone3 must be ENOSYS: libraries fall back on nothing else"
    unfiltered = attack(place, "nest", without="seccomp")
    all_refused(unfiltered, "without the filter")
    equal(unfiltered.chk["unshare:user"], errno.ENOSPC, "the second wall, max_user_namespaces")
    for layer in ("knobs", "landlock", "capabilities"):
        steps_are(attack(place, "nest", without=layer), report.chk, REFUSED_BY_FILTER, f"without {layer}")
    control = attack(place, "nest", without="seccomp,knobs")
    control_fires({"unshare:user", "clone:user", "clone3:user"} <= set(control.worked()), control.chk)


@test(id="NS-05")
def namespaces_of_others_cannot_be_entered(place):
    report = attack(place, "setns")
    assert any(step.startswith("setns-pidfd:1") for step in report.chk), "PID 1 was not tried"
    all_refused(report, "setns")
    all_refused(attack(place, "setns", without="seccomp"), "setns without the filter")
    control = attack(place, "setns", without="seccomp,capabilities,landlock,dumpable")
    control_fires(any(step.endswith("/uts") for step in control.worked()), control.chk)


@test(id="NS-06")
def a_held_directory_cannot_be_replaced_through_nested_namespaces(place):
    decoy = plain_tree(place)
    before = fingerprint(decoy)
    grant = ("-v", f"{decoy}:/decoy:ro")
    attack(place, "chain", "/decoy", options=grant)
    unchanged(before, fingerprint(decoy), "nested namespaces")
    nesting = attack(place, "chain", "/decoy", options=grant, without="seccomp,knobs,landlock")
    control_fires(nesting.chk["unshare"] == 0 and nesting.chk["private"] == 0, nesting)
    unchanged(before, fingerprint(decoy), "even where nesting is allowed")
    control = attack(place, "chain", "/decoy", options=grant, without="seccomp,knobs,landlock," + MOUNTS_OUT)
    control_fires((decoy / "protected").read_text().startswith("replaced"), control)


@test(id="NS-07")
def setuid_programs_and_file_capabilities_give_nothing(place):
    program = put_probe(place)
    program.chmod(0o4755)
    if IDENTITY == "root":
        os.setxattr(program, "security.capability", bytes.fromhex("0100000280000000000000000000000000000000"))
        options = ("-u", "1234")
        who = attack(place, "who", options=options)
        equal(who.say["euid"], ["1234"], "a setuid program of root")
        outside = attack_host(place, "who", prefix=["setpriv", "--reuid=1234", "--clear-groups"], cwd="/")
        control_fires(outside.say["euid"] == ["0"] or int(outside.status("CapEff"), 16), outside)
    else:
        who = attack(place, "who")
    equal(has_no_rights(who.status), [], "rights of a setuid program")

    def suid_mounts(lines):
        # A bind of one device node is no place to keep a program.
        return [line for line in lines if "nosuid" not in line.split()[5].split(",") and " - devtmpfs " not in line]
    with Running(place, "wait") as run:
        equal(suid_mounts(open(f"/proc/{run.pid}/mountinfo")), [], "mounts without nosuid")
    control_fires(suid_mounts(open("/proc/self/mountinfo")), "mounts of the host")


@test(id="NS-08")
def the_clock_cannot_be_set(place):
    def offset():
        return time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    before = offset()
    report = attack(place, "clock")
    steps_are(report, ("clock_settime", "settimeofday", "adjtimex", "clock_adjtime"), (errno.EPERM,), "the clock")
    assert abs(offset() - before) < 0.5, "the host's clock moved"
    control = attack(place, "clock", without="seccomp")
    control_fires(all(number == errno.EFAULT for number in control.chk.values()), control.chk)


@test(id="NS-09")
def the_host_keeps_its_name(place):
    before = os.uname()
    all_refused(attack(place, "hostname"), "names")
    all_refused(attack(place, "hostname", without="seccomp"), "names without the filter")
    control = attack(place, "hostname", without="seccomp,capabilities")
    control_fires("sethostname" in control.worked(), control.chk)
    equal(os.uname(), before, "names of the host")


NS10_LAYERS = ("seccomp", "landlock", "capabilities", "dumpable")


@test(id="NS-10")
def init_cannot_be_touched(place):
    report = attack(place, "inits")
    all_refused(report, "attacks on PID 1")
    for layer in NS10_LAYERS:
        loose = attack(place, "inits", without=layer)
        besides = [s for s in loose.chk if s.endswith(("kcmp", "prlimit"))] if layer == "seccomp" else ()
        all_refused(loose, f"without {layer}", besides=besides)
    control = attack(place, "inits", without=",".join(NS10_LAYERS))
    control_fires({"init:seize", "init:open:mem", "init:open:environ", "init:pidfd_getfd"} <= set(control.worked()), control.chk)


def watch_tasks(run, seconds, seen):
    """Looks at every task below the keeper as often as it can; returns what had too many rights."""
    wrong, deadline = set(), time.monotonic() + seconds
    while time.monotonic() < deadline and run.poll() is None:
        for pid in descendants(run.pid):
            program = program_of(pid)
            status = status_of(pid)
            if program == "?" or program == os.path.realpath(run.args[0]) or "Seccomp" not in status:
                continue  # gone, or still our own code that sets the sandbox up
            if "cove-gateway" in program and len(status["NSpid"].split()) == len(status_of("self")["NSpid"].split()):
                continue  # it makes keys, outside
            inside = status["NSpid"].split()[-1]
            if "cove-init" in program:
                # Init keeps capabilities, and so does a child of its until it has become the command.  All
                # are filtered from the first instant.
                seen["init"] += 1
                bad = [name for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2")) if status[name] != value]
            else:
                seen["command"] += 1
                bad = has_no_rights(status.__getitem__)
            wrong |= {(program, inside, name) for name in bad}
    return wrong


@test(id="NS-11")
def no_task_inside_ever_has_rights(place):
    put_probe(place)

    def sample(without=None):
        env = dict(place.env, **({"COVE_UNSAFE_WITHOUT": without} if without else {}))
        from attack import UNSAFE
        seen, wrong = {"init": 0, "command": 0}, set()
        for extra in ((), ("-t",)):
            run = subprocess.Popen([UNSAFE if without else COVE, "run", "--rm", *extra, "--", "./probe", "swarm", "40"], cwd=place.work,
                                   env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            wrong |= watch_tasks(run, 10, seen)
            equal(run.wait(), 0, run.stderr.read())
        return seen, wrong
    seen, wrong = sample()
    assert seen["command"] > 20 and seen["init"] > 20, f"too few samples: {seen}"
    equal(wrong, set(), "rights of tasks inside")
    control_fires(any(name == "CapEff" for _, _, name in sample("capabilities")[1]), "tasks with capabilities")
    control_fires(any("cove-init" in program and name == "Seccomp" for program, _, name in sample("seccomp")[1]), "an init without a filter")


@test(id="NS-12")
def every_way_to_start_gives_the_same_sandbox(place):
    put_probe(place)
    dump = ("./probe status; ./probe ids </dev/null; ./probe environment; ./probe mounts; ./probe change /usr /tmp; ulimit -a;"
            "./probe overwrite /written-at-the-root; ls -l /proc/self/ns | wc -l")
    volatile = ("Pid", "Tgid", "PPid", "NS", "Vm", "Rss", "SigQ", "FDSize", "voluntary", "nonvoluntary", "State", "Mems", "Cpus", "Sig")

    def reference(options, **kwargs):
        result = place.sh(dump, options=options, **kwargs)
        equal(result.code, 0, repr(result))
        lines = [line for line in result.text.replace("\r", "").splitlines() if not any(f"status {name}" in line for name in volatile)]
        lines = [re.sub(r"(mountinfo(?:-1)? )\d+ \d+ \d+:\d+|fd/\d+|(?<=id_map )\s*\d+\s+\d+|[ug]id=\d+", "", line) for line in lines]
        return [line for line in lines if "SAY waiting" not in line]
    plain = reference(())
    for options in (("-t",), ("--explain",), ("--timeout", "60"), ("-q",)):
        other = reference(options)
        equal([line for line in other if line not in plain], [], f"only with {options}")
        equal([line for line in plain if line not in other], [], f"missing with {options}")
    written = [line for line in plain if "overwrite:/written-at-the-root" in line]
    equal(written, [f"CHK overwrite:/written-at-the-root {errno.EACCES}"], "the Landlock domain, at a place that mounts would let it write")
    loose = reference((), without="landlock,capabilities")
    control_fires([line for line in loose if line not in plain], "a different dump without guards")


@test(id="NS-13")
def strange_users_are_refused(place):
    put_probe(place)
    for user in ("", "+0", "0x0", "-1", "4294967296", "1000:", "root\n", "１０００", "0 ", "1000:1000:1000", "root:x"):
        refused(place.run("./probe", "overwrite", "started", options=("-u", user)), f"user {user!r}")
    own = "1234" if IDENTITY == "root" else str(os.getuid())
    control_fires(place.run("true", options=("-u", own)).code == 0, "an ordinary number")
    nothing_is_left(place)


main()
