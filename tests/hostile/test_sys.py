"""SYS: system calls and the surface of the kernel."""
import ctypes
import errno
import os
import re
import subprocess
import sys
import time

from attack import (IDENTITY, PROBE, REFUSED_BY_FILTER, ROOT, Canaries, Running, all_refused, attack, attack_host, control_fires, equal, libc, main, name_of,
                    put_probe, skip, steps_are, test)

# What the rules about arguments say to -1 everywhere (src/init/syscalls.def).
WITH_MINUS_ONE = {"CLONE": "EPERM", "UNSHARE": "EPERM", "SOCKET": "EAFNOSUPPORT", "SOCKETPAIR": "EAFNOSUPPORT", "SETSOCKOPT": "ALLOW",
                  "IOCTL": "ALLOW", "PERSONALITY": "ALLOW", "MKNOD": "EPERM", "MKNODAT": "EPERM", "PRLIMIT": "EPERM", "SETRLIMIT": "ALLOW", "PRCTL": "EINVAL"}


def policy():
    """Number to name and rule, of this architecture."""
    column = 2 if os.uname().machine == "x86_64" else 3
    text = (ROOT / "src/init/syscalls.def").read_text()
    rows = re.findall(r"^CALL\((\w+), (\d+|NONE), (\d+|NONE), (\w+), (\w+)", text, re.M)
    return {int(row[column - 1]): (row[0], row[3], row[4]) for row in rows if row[column - 1] != "NONE"}


def differences(report, strict=False):
    """Numbers that were not answered as the table says."""
    table, wrong = policy(), []
    for line in report.say["sys"]:
        number, how, value = line.split()
        name, rule, mark = table.get(int(number), (f"number {number}", "ENOSYS", ""))
        if strict and mark.startswith("STRICT_"):
            rule = mark[7:]
        rule = WITH_MINUS_ONE.get(rule, rule)
        answer = name_of(int(value)) if how == "errno" else f"signal {value}"
        # An allowed call gets to the kernel, which may say anything but that it does not exist, unless it is too old.
        # futex says so about an operation that it does not know.
        right = answer == rule if rule != "ALLOW" else answer != "ENOSYS" or int(number) > 450 or name == "futex"
        if not right:
            wrong.append(f"{name}: {answer}, not {rule}")
    return wrong


@test(id="SYS-01")
def every_system_call_is_answered_as_the_table_says(place):
    report = attack(place, "sweep", timeout=120)
    assert len(report.say["sys"]) > 1000, report
    equal(differences(report), [], "answers that differ from the table")
    control_fires(len(differences(attack(place, "sweep", without="seccomp", timeout=120))) > 30, "without the filter they differ")


@test(id="SYS-01")
def the_strict_profile_is_answered_as_the_table_says(place):
    report = attack(place, "sweep", options=("--seccomp", "strict"), timeout=120)
    equal(differences(report, strict=True), [], "answers that differ from the table")
    control_fires(differences(report), "it is not the default profile")


@test(id="SYS-02")
def calls_of_other_architectures_kill(place):
    if os.uname().machine != "x86_64":
        skip("kernel: this architecture has no other ABI to test")
    report = attack(place, "abis")
    for step in ("i386-getpid", "i386-unshare", "i386-socketcall", "x32-getpid", "x32-ioctl"):
        equal(report.say[step], ["signal 31"], step)
    loose = attack(place, "abis", without="seccomp")
    control_fires("signal 31" not in loose.say["i386-getpid"] + loose.say["x32-getpid"], loose)


@test(id="SYS-03")
def io_uring_does_not_exist(place):
    steps_are(attack(place, "io-uring"), ("io_uring_setup", "io_uring_enter", "io_uring_register"), (errno.ENOSYS,), "io_uring")
    loose = attack(place, "io-uring", without="seccomp")
    control_fires(loose.chk["io_uring_setup"] != errno.ENOSYS, loose.chk)


@test(id="SYS-04")
def userfaultfd_is_refused(place):
    report = attack(place, "faults")
    steps_are(report, [s for s in report.chk if s.startswith("userfaultfd")], (errno.EPERM,), "userfaultfd")
    equal(report.chk["dev-userfaultfd"], errno.ENOENT, "/dev/userfaultfd")
    loose = attack(place, "faults", without="seccomp")
    control_fires(loose.chk["userfaultfd:-1"] == errno.EINVAL, loose.chk)


@test(id="SYS-05")
def programmable_parts_of_the_kernel_are_closed(place):
    report = attack(place, "programmable")
    steps_are(report, report.chk, (errno.EPERM,), "bpf, perf and the like")
    loose = attack(place, "programmable", without="seccomp")
    control_fires(loose.chk["bpf:0"] == errno.E2BIG and loose.chk["perf_event_open"] == errno.EFAULT, loose.chk)


def with_key_of_the_host(canaries):
    """A session keyring of our own with a key in it, inherited by what is started from here."""
    keyctl, add_key = 250, 248
    if libc.syscall(keyctl, 1, None) < 0:
        skip("kernel: keyrings are not available to this user")
    description, token = b"cove-test-key", canaries.token().encode()
    key = libc.syscall(add_key, b"user", description, token, len(token), -3)
    assert key > 0, f"add_key: {os.strerror(ctypes.get_errno())}"
    return description.decode()


@test(id="SYS-06")
def keys_of_the_host_cannot_be_had(place):
    canaries = Canaries()
    description = with_key_of_the_host(canaries)
    for without in (None, "landlock", "capabilities", "ipc,verify"):
        report = attack(place, "keys", description, without=without)
        steps_are(report, report.chk, (errno.EPERM,), f"keyrings without {without}")
        canaries.none_in("keys", report)
    loose = attack(place, "keys", description, without="seccomp")
    control_fires(loose.chk["add_key"] == errno.EFAULT and canaries.found_in(loose.result.out), loose.chk)


def socket_is_allowed(family, kind, protocol):
    if family == 1:
        return kind in (1, 2, 5)
    if family == 16:
        return protocol == 0
    if family in (2, 10):
        return (kind, protocol) in ((1, 0), (1, 6), (2, 0), (2, 17))
    return False


def socket_answers(report):
    return {tuple(map(int, line.split()[:3])): int(line.split()[3]) for line in report.say["socket"]}


@test(id="SYS-07")
def only_the_usual_sockets_can_be_made(place):
    for without in (None, "landlock", "capabilities", "network"):
        answers = socket_answers(attack(place, "sockets", without=without))
        assert len(answers) > 4000
        extra = [what for what, number in answers.items() if number == 0 and not socket_is_allowed(*what)]
        equal(extra, [], f"sockets that should not be there, without {without}")
        foreign = {what: number for what, number in answers.items() if what[0] not in (1, 2, 10, 16) and number != errno.EAFNOSUPPORT}
        equal(foreign, {}, "families with another answer")
        for what in ((1, 1, 0), (2, 1, 0), (2, 2, 17), (10, 1, 6), (16, 3, 0)):
            equal(answers[what], 0, f"socket{what}")
    loose = socket_answers(attack(place, "sockets", without="seccomp"))
    control_fires([what for what, number in loose.items() if number == 0 and not socket_is_allowed(*what)], "without the filter there are more")


@test(id="SYS-08")
def only_unix_sockets_come_in_pairs(place):
    report = attack(place, "pairs")
    made = {tuple(map(int, line.split()[:2])) for line in report.say["pair"] if line.endswith(" 0")}
    equal(made, {(1, 1), (1, 2), (1, 5)}, "pairs")
    wrong = [line for line in report.say["pair"] if not line.startswith("1 ") and not line.endswith(f" {errno.EAFNOSUPPORT}")]
    equal(wrong, [], "other families")
    loose = attack(place, "pairs", without="seccomp")
    control_fires([line for line in loose.say["pair"] if not line.startswith("1 ") and not line.endswith(f" {errno.EAFNOSUPPORT}")], "without the filter")


@test(id="SYS-09")
def sockets_load_no_code_and_leave_no_route(place):
    report = attack(place, "options")
    steps_are(report, [s for s in report.chk if s.startswith("ulp:")], (errno.ENOPROTOOPT,), "protocols on TCP")
    steps_are(report, ("attach-bpf", "reuseport-ebpf", "transparent", "bindtodevice", "bindtoifindex", "mark"), (errno.EPERM,), "options")
    equal(report.chk["keepalive"], 0, "an ordinary option")
    loose = attack(place, "options", without="seccomp")
    control_fires(loose.chk["ulp:smc"] != errno.ENOPROTOOPT and loose.chk["attach-bpf"] != errno.EPERM, loose.chk)


@test(id="SYS-10")
def the_network_cannot_be_reconfigured(place):
    report = attack(place, "routes")
    all_refused(report, "the network")
    equal([line for line in report.say["addresses"] if "10.9.8.7" in line], [], "addresses")
    all_refused(attack(place, "routes", without="seccomp"), "the network without the filter", besides=("nfnetlink", "xfrm", "generic"))
    loose = attack_host(place, "routes", prefix=["unshare", "--user", "--map-root-user", "--net"])
    control_fires("address" in loose.worked(), loose.chk)


@test(id="SYS-11")
def odd_personalities_and_hardware_are_refused(place):
    report = attack(place, "personalities")
    allowed = {"personality:00000008", "personality:00020000", "personality:00040000"}
    equal(set(report.worked()), allowed, "personalities")
    steps_are(report, ("modify_ldt", "iopl", "ioperm"), (errno.EPERM,), "hardware")
    strict = attack(place, "personalities", options=("--seccomp", "strict"))
    equal(set(strict.worked()), allowed - {"personality:00040000"}, "personalities of the strict profile")
    loose = attack(place, "personalities", without="seccomp")
    control_fires("personality:00400000" in loose.worked(), loose.chk)


@test(id="SYS-12")
def only_own_processes_can_be_traced(place):
    decoy = subprocess.Popen(["sleep", "100"])
    try:
        report = attack(place, "tracing", str(decoy.pid), str(os.getpid()))
        equal(set(report.worked()), {"own-child"}, "what could be traced")
        all_refused(attack(place, "tracing", str(decoy.pid), options=("--seccomp", "strict")), "the strict profile")
        control_fires(f"host:{decoy.pid}" in attack_host(place, "tracing", str(decoy.pid)).worked(), "on the host it can be traced")
    finally:
        decoy.kill()
        decoy.wait()


@test(id="SYS-13")
def calls_for_the_machine_are_refused(place):
    report = attack(place, "machine")
    steps_are(report, report.chk, REFUSED_BY_FILTER, "the machine")
    loose = attack(place, "machine", without="seccomp")
    changed = [step for step in report.chk if loose.chk[step] not in REFUSED_BY_FILTER]
    control_fires(len(changed) > 8 and {"open_tree", "fanotify_mark", "setns"} <= set(changed), loose.chk)


@test(id="SYS-14")
def a_filter_of_its_own_loosens_nothing(place):
    plain, stacked = attack(place, "unstacked"), attack(place, "stacked")
    equal(stacked.chk["seccomp"], 0, "a filter can be added")
    assert stacked.chk["disable"] != 0
    for step, number in plain.chk.items():
        equal(stacked.chk[step], number, step)
    equal(stacked.say["socket"], plain.say["socket"], "sockets")
    control_fires(attack(place, "unstacked", without="seccomp").chk != plain.chk, "without our filter the answers differ")


@test(id="SYS-15")
def nothing_can_be_typed_into_a_terminal(place):
    report = attack(place, "terminal-requests")
    harmless = report.chk.pop("harmless")
    steps_are(report, report.chk, (errno.EPERM,), "requests")
    equal(harmless, errno.EBADF, "other requests get to the kernel")
    loose = attack(place, "terminal-requests", without="seccomp")
    control_fires(set(loose.chk.values()) == {errno.EBADF}, loose.chk)


@test(id="SYS-16")
def every_thread_is_filtered(place):
    report = attack(place, "threads")
    for when in ("before-exec", "after-exec"):
        equal(report.say[when], ["257 tasks, 0 not filtered"], when)
    control_fires("0 not" not in attack(place, "threads", without="seccomp").say["before-exec"][0], "without the filter")


@test(id="SYS-17")
def prctl_gives_nothing(place):
    report = attack(place, "prctls")
    equal(set(report.worked()), {"PR_SET_NAME"}, "options that worked")
    steps_are(report, ("PR_SET_MM", "PR_SCHED_CORE", "PR_SET_MEMORY_MERGE"), (errno.EPERM,), "options that are refused")
    equal(report.status("NoNewPrivs"), "1")
    equal(int(report.status("CapBnd"), 16), 0, "the bounding set")
    loose = attack(place, "prctls", without="seccomp,capabilities")
    control_fires({"PR_SET_MEMORY_MERGE", "PR_CAPBSET_READ"} & set(loose.worked()), loose.chk)


@test(id="SYS-19")
def priorities_cannot_be_raised(place):
    report = attack(place, "scheduling")
    equal(set(report.worked()) - {"ioprio-rt"}, {"batch"}, "what worked")
    assert report.chk["ioprio-rt"] == errno.EPERM, "real-time disk access"
    memory = int(report.say["memlock"][0])
    assert memory < 1 << 40, f"memory that can be locked is not bounded: {memory}"
    loose = attack(place, "scheduling", without="seccomp")
    control_fires({"set_mempolicy", "mbind"} <= set(loose.worked()), loose.chk)
    if IDENTITY == "root":
        outside = attack_host(place, "scheduling")
        control_fires({"fifo", "rr", "deadline", "nice", "ioprio-rt"} <= set(outside.worked()), outside.chk)


@test(id="SYS-20")
def an_explained_command_is_held_as_tightly(place):
    report = attack(place, "sweep", options=("--explain",), timeout=120)
    # Under supervision a call that the init filter refuses too is answered ENOSYS.
    wrong = [line for line in differences(report) if not line.endswith("not EPERM") or ": ENOSYS" not in line]
    equal(wrong, [], "answers that differ from the table")
    with Running(place, "wait", options=("--explain",)) as run:
        pid = run.pid
        run.process.kill()
        run.process.wait()
        deadline = time.monotonic() + 5
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not os.path.exists(f"/proc/{pid}"), "a command outlived its supervisor"
    control_fires(differences(attack(place, "sweep", without="seccomp", timeout=120)), "without the filter they differ")


main()
