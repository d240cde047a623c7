"""CFG: what happens when something is missing, wrong, or lies."""
import contextlib
import errno
import os
import pathlib
import re
import shutil
import stat
import subprocess
import time

from attack import (COVE, IDENTITY, PROBES, SOAK_SECONDS, UNSAFE, Canaries, Report, Running, attack, attack_host, cold, control_fires, cove_with, equal,
                    error_lines, fingerprint, hostile_workspace, main, name_of, nothing_is_left, put_probe, refused, run_with_home, skip, test, traced, unchanged)

HIDING = "files:\n  hide: [.env]\n"


def policy_file(place, content, name="policy.yaml"):
    path = place.dir / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(0o600)
    return path


@test(id="CFG-01")
def a_policy_that_cannot_be_read_means_no_start(place):
    canaries = Canaries()
    canaries.plant(place.work / ".env")

    def start(path):
        return place.run("cat", ".env", options=("--policy", path))
    control_fires(canaries.found_in(place.run("cat", ".env").out), "without a policy it is visible")
    good = start(policy_file(place, HIDING))
    assert good.code == 1 and not canaries.found_in(good.out), f"a good policy hides it: {good!r}"
    refused(start(place.dir / "missing.yaml"), "a missing policy")
    refused(start(place.dir), "a directory")
    (place.dir / "link.yaml").symlink_to(policy_file(place, HIDING))
    refused(start(place.dir / "link.yaml"), "a link", "link")
    os.mkfifo(place.dir / "pipe.yaml", 0o600)
    refused(start(place.dir / "pipe.yaml"), "a pipe")
    refused(start("/dev/zero"), "a device")
    for what, content, words in (("broken", "files: [hide: {", [r":\d+"]), ("cut off", "files:\n  hide: [.env", [r":\d+"]),
                                 ("no mapping", "- a\n- b\n", [r":\d+"]), ("a tab", "files:\n\thide: [.env]\n", [r":\d+"]),
                                 ("NUL", b"files:\n  hide: [.env]\n\0", []), ("binary", b"\x7fELF\x02\x01\x01" + os.urandom(200), []),
                                 ("too large", "#" * (2 << 20), []), ("two documents", HIDING + "---\nfiles: {}\n", []),
                                 ("an alias bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", [])):
        refused(start(policy_file(place, content)), what, *words)
    for what, content in (("a byte order mark", b"\xef\xbb\xbf" + HIDING.encode()), ("CRLF", HIDING.replace("\n", "\r\n")), ("UTF-16", HIDING.encode("utf-16"))):
        result = start(policy_file(place, content))
        canaries.none_in(what, result)
        assert result.code in (1, 125), f"{what}: {result!r}"
    empty = start(policy_file(place, ""))
    assert empty.code in (0, 125), repr(empty)
    nothing_is_left(place)


@test(id="CFG-02")
def unknown_double_and_wrong_keys_are_errors(place):
    (place.work / ".env").write_text("x")
    for what, content, words in (
            ("an unknown key", "colour: red\n", ["colour", r":1"]), ("a typo", "files:\n  hid: [.env]\n", ["hide", r":2"]), ("a wrong depth", "hide: [.env]\n", ["files.hide", r":1"]),
            ("twice", "files:\n  hide: [.env]\nfiles:\n  hide: []\n", [r":3"]), ("a wrong type", "files:\n  hide: .env\n", ["hide"]), ("a number", "files: 7\n", ["files"]),
            ("a map for a list", "files:\n  hide: {a: b}\n", ["hide"]), ("a wrong choice", "seccomp: none\n", ["strict"]), ("a word", "limits: {timeout: soon}\n", ["timeout"]),
            ("null", "files:\n  hide: ~\n", ["hide"])):
        refused(place.run("true", options=("--policy", policy_file(place, content))), what, *words)
    for what, content in (("JSON twice", '{"files":{"hide":[]},"files":{}}'), ("JSON unknown", '{"colour":1}'), ("JSON cut off", '{"files":'), ("JSON deep", "[" * 100000)):
        refused(place.run("true", options=("--spec", policy_file(place, content, "spec.json"))), what)
    (place.work / "cove.yaml").write_text("policy:\n  fils: {hide: [.env]}\n")
    refused(place.run("true"), "a typo in the repository's own file", "fils")
    control_fires(place.run("true", options=("--policy", policy_file(place, HIDING))).code == 125, "it counts with every other policy too")
    (place.work / "cove.yaml").unlink()
    control_fires(place.run("true", options=("--policy", policy_file(place, HIDING))).code == 0, "a right one")


# --- a kernel that lacks something ----------------------------------------------------------------

def portrait(place, prefix=(), options=(), binary=None):
    """What a sandbox is like from inside, in words that two equal ones share."""
    put_probe(place)
    script = ("./probe status; ./probe overwrite /written-at-the-root /etc/passwd; ./probe nest; ./probe io-uring; ./probe inits; ./probe mounts; ./probe devices; "
              "./probe writable-below /proc/sys /sys; ./probe setns; hostname")
    result = cove_with(place, prefix, "run", "--rm", *options, "--", "sh", "-c", script, timeout=120)
    volatile = ("Pid", "Tgid", "PPid", "NS", "Vm", "Rss", "Sig", "FDSize", "voluntary", "nonvoluntary", "State", "Mems", "Cpus", "TracerPid", "Threads", "Seccomp_filters")
    lines = [line for line in result.text.splitlines() if line.startswith(("SAY", "CHK")) and not any(f"status {name}" in line for name in volatile)]
    lines = [re.sub(r"mountinfo(-1)? \d+ \d+ \d+:\d+|fd/\d+|(?<=id_map )\s*\d+\s+\d+|[ug]id=\d+|setns(-pidfd)?:\d+", "", line) for line in lines]
    return result, sorted(set(line for line in lines if "mountstats" not in line and "waiting" not in line))


def full_or_none(place, reference, prefix, what, exact=True):
    """A start under adverse conditions: our own error, or a sandbox like any other."""
    result, got = portrait(place, prefix)
    if result.code == 125:
        equal(len(error_lines(result)), 1, f"{what}: error lines in {result!r}")
        equal(got, [], f"{what}: the command ran nevertheless")
        return False
    if result.code in (126, 127):  # the command could not be run: it has too few rights, not too many
        equal(got, [], what)
        return False
    equal(result.code, 0, f"{what}: {result!r}")
    weaker = [line for line in got if line not in reference] + [f"missing: {line}" for line in reference if line not in got]
    assert not weaker, f"{what}: the sandbox differs: {weaker[:12]}"
    return True


# name, number on x86-64 and arm64, errors, what the message must say
PREREQUISITES = (
    ("clone3", 435, (errno.ENOSYS, errno.EPERM, errno.ENOSPC), "namespace"), ("mount", 165, (errno.EPERM, errno.ENODEV), "overlay|mount"), ("pivot_root", 155, (errno.EPERM,), "root"),
    ("umount2", 166, (errno.EPERM,), "root"), ("openat2", 437, (errno.ENOSYS,), "."), ("open_tree", 428, (errno.ENOSYS, errno.EPERM), "."), ("move_mount", 429, (errno.EPERM,), "."),
    ("mount_setattr", 442, (errno.ENOSYS, errno.EPERM), "."), ("memfd_create", 319, (errno.ENOSYS,), "memfd"), ("seccomp", 317, (errno.ENOSYS, errno.EINVAL), "seccomp"),
    ("capset", 126, (errno.EPERM,), "capabilit"), ("prctl", 157, (errno.EINVAL, errno.EPERM), "."), ("landlock_add_rule", 445, (errno.EPERM,), "Landlock"),
    ("landlock_restrict_self", 446, (errno.EPERM, errno.E2BIG), "Landlock"), ("execveat", 322, (errno.ENOSYS, errno.EPERM), "."), ("socketpair", 53, (errno.EPERM,), "."),
    ("close_range", 436, (errno.ENOSYS,), "."), ("statx", 332, (errno.ENOSYS,), "."), ("setns", 308, (errno.EPERM,), "."), ("unshare", 272, (errno.EPERM, errno.ENOSYS), "."),
)


@test(id="CFG-03")
def a_missing_prerequisite_means_no_start_and_is_named(place):
    _, reference = portrait(place)
    refusals = 0
    for name, number, errors, words in PREREQUISITES:
        for error in errors:
            prefix = [PROBES / "without-call", number, error, "--"]
            what = f"{name} answers {name_of(error)}"
            if full_or_none(place, reference, prefix, what):
                continue
            refusals += 1
            refused(cove_with(place, prefix, "run", "--rm", "--", "true"), what, words)
            nothing_is_left(place, what)
    assert refusals > 12, f"only {refusals} of them were needed"


@test(id="CFG-03")
def a_kernel_without_landlock_is_stated_and_the_rest_holds(place):
    _, reference = portrait(place)
    for error in (errno.ENOSYS, errno.EOPNOTSUPP):
        prefix = [PROBES / "without-call", 444, error, "--"]
        result, got = portrait(place, prefix)
        equal(result.code, 0, repr(result))
        differs = {re.sub(r" \d+$", "", line) for line in set(got) ^ set(reference)}
        assert differs <= {"CHK overwrite:/written-at-the-root", "CHK overwrite:/etc/passwd"}, f"more than Landlock is gone: {differs}"
        plan = cove_with(place, prefix, "run", "--print-plan", "--", "true").text
        assert "landlock" not in plan.lower() or "no landlock" in plan.lower(), "the plan promises what is not there"
        said = cove_with(place, prefix, "run", "--rm", "--summary", "--", "true").errors
        assert "seccomp" in said and ("landlock" not in said or "no landlock" in said), f"the summary lists protections: {said!r}"
    control_fires("landlock" in place.cove("run", "--print-plan", "--", "true").text.lower(), "the plan has it otherwise")
    control_fires("landlock" in place.run("true", options=("--summary",)).errors, "and so has the summary")


# --- a kernel that says yes and does nothing --------------------------------------------------------

LIES = {"capset": 126, "mount_setattr": 442, "pivot_root": 155, "umount2": 166, "setresuid": 117, "setresgid": 119, "landlock_add_rule": 445, "mount": 165, "move_mount": 429,
        "setns": 308, "close_range": 436, "setsid": 112}


@test(id="CFG-04")
def mounts_ids_and_capabilities_are_read_back(place):
    _, reference = portrait(place)
    stopped = 0
    for name, number in LIES.items():
        stopped += not full_or_none(place, reference, [PROBES / "without-call", number, 0, "--"], f"{name} does nothing and says yes")
        nothing_is_left(place, name)
    assert stopped > 5, f"only {stopped} lies were noticed"


@test(id="CFG-04")
def the_filter_is_read_back(place):
    _, reference = portrait(place)
    full_or_none(place, reference, [PROBES / "without-call", 317, 0, "--"], "seccomp does nothing and says yes")


@test(id="CFG-04")
def the_landlock_domain_is_read_back(place):
    _, reference = portrait(place)
    full_or_none(place, reference, [PROBES / "without-call", 446, 0, "--"], "landlock_restrict_self does nothing and says yes")


@test(id="CFG-04")
def every_single_mount_is_read_back(place):
    def mounts(prefix=()):
        result = cove_with(place, prefix, "run", "--rm", "--", "./probe", "mounts")
        return result, sorted(line.split()[5:7] for line in result.text.splitlines() if line.startswith("SAY mountinfo "))
    put_probe(place)
    log, (_, reference), stopped, number, last = place.dir / "log", mounts(), 0, 0, ""
    while number < 100:
        number += 1
        result, got = mounts(["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", "trace=mount", "-e", f"inject=mount:retval=0:when={number}"])
        injected = [line for line in log.read_text(errors="replace").splitlines() if "INJECTED" in line]
        if not injected:
            break
        stopped += result.code == 125
        assert result.code == 125 or got == reference, f"mount number {number} was not made and nobody noticed: {injected} {result.errors}"
    assert stopped > 10, f"{stopped} of {number} missing mounts were noticed"


# --- what repositories and surroundings say -----------------------------------------------------------

@test(id="CFG-05")
def of_a_repository_only_its_own_policy_is_read(place):
    canaries = Canaries()
    hostile_workspace(place, canaries)
    lines, result = traced(place)
    opened = set()
    for line in lines:
        found = re.search(r' = \d+<([^>]*)>', line)
        if found and found[1].startswith(str(place.work) + "/"):
            opened.add(os.path.relpath(found[1], place.work))
    allowed = {"cove.yaml", ".git", ".git/config", ".git/HEAD", ".git/commondir"}
    equal({path for path in opened if path not in allowed}, set(), "files of the repository that were opened")
    canaries.none_in("the repository", result)
    (place.work / "cove.yaml").write_text("policy:\n  files: { hide: [.npmrc] }\n")
    lines, _ = traced(place)
    control_fires(any(f"<{place.work}/cove.yaml>" in line for line in lines), "the trace sees what is opened")


@test(id="CFG-05")
def a_repository_can_only_narrow(place):
    canaries = Canaries()
    outside = canaries.plant(place.dir / "outside/token")
    canaries.plant(place.work / ".env")
    hide = ("--policy", policy_file(place, "files: { hide: [.env] }\nseccomp: strict\n"))
    for content in (f"policy:\n  files: {{ read: [{outside}] }}\n", f"policy:\n  volumes: ['{outside.parent}:/granted']\n", "policy:\n  files: { hide: [] }\n",
                    "policy:\n  seccomp: default\n", f"policy:\n  files: {{ write: [{outside.parent}] }}\n", "policy:\n  root: true\n", "policy:\n  tools: true\n"):
        (place.work / "cove.yaml").write_text(content)
        result = place.sh(f"cat {outside} /granted/token .env; ./probe sweep", options=hide)
        assert result.code in (0, 1, 125, 126, 127), repr(result)
        canaries.none_in(content, result)
    (place.work / "cove.yaml").unlink()
    control_fires(canaries.found_in(place.run("cat", outside, options=("--read", outside)).out), "what the owner grants is seen")


@test(id="CFG-06")
def dangerous_grants_are_refused_from_every_side(place):
    for key, value in (("volumes", "['/:/host']"), ("volumes", "['/run:/r']"), ("files", "{ read: [/proc] }"), ("files", "{ write: [/etc] }"), ("files", "{ read: [/dev/kmsg] }"),
                       ("image", "/")):
        refused(place.run("true", options=("--policy", policy_file(place, f"{key}: {value}\n"))), f"{key}: {value}")
    refused(place.run("true", options=("--image", "/")), "the machine as an image")
    refused(place.run("true", options=("--image", "/proc")), "/proc as an image")
    control_fires(place.run("true", options=("--policy", policy_file(place, "files: { read: [/etc/hostname] }\n"))).code == 0, "an ordinary one")


@test(id="CFG-07")
def helpers_are_found_by_absolute_paths(place):
    cold(place)  # a first start does more
    canaries = Canaries()
    hostile_workspace(place, canaries)
    env = {"PATH": f"{place.work}:.", "LD_LIBRARY_PATH": str(place.work), "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": "relative", "SHELL": str(place.work / "sh"), "TMPDIR": str(place.work)}
    lines, _ = traced(place, env=env)
    programs = re.findall(r'execve\("([^"]*)", \[[^\]]*\], (\S+) /\* (\d+) vars', "\n".join(lines))
    equal({path for path, _, _ in programs} - {COVE, "/usr/bin/newuidmap", "/usr/bin/newgidmap"}, set(), "programs")
    equal({int(count) for path, _, count in programs if path != COVE}, set() if len(programs) == 1 else {0}, "variables of helpers")
    assert not (place.dir / "sprung").exists()
    refused(place.run("true", env={"COVE_HOME": "relative/state"}), "a relative state directory", "absolute")
    assert not (place.work / "relative").exists()
    subprocess.run(["env", "-i", f"PATH={place.work}", "/bin/sh", "-c", "git"], cwd=place.work)
    control_fires((place.dir / "sprung").exists(), "a search by PATH falls into the trap")


@test(id="CFG-08")
def policy_and_state_that_others_can_write_are_refused(place):
    path = policy_file(place, HIDING)
    for mode in (0o620, 0o602, 0o666, 0o660):
        path.chmod(mode)
        refused(place.run("true", options=("--policy", path)), f"a policy with mode {mode:o}", "write")
    path.chmod(0o600)
    open_folder = place.dir / "open"
    open_folder.mkdir()
    shutil.copy(path, open_folder / "policy.yaml")
    for mode in (0o777, 0o775, 0o772):
        open_folder.chmod(mode)
        refused(place.run("true", options=("--policy", open_folder / "policy.yaml")), f"a policy in a directory with mode {mode:o}", "write")
    if IDENTITY == "root":
        os.chown(path, 1234, 1234)
        refused(place.run("true", options=("--policy", path)), "a policy of another user", "belongs")
        os.chown(path, 0, 0)
    state = place.dir / "loose-state"
    state.mkdir()
    for mode in (0o777, 0o770, 0o755, 0o711):
        state.chmod(mode)
        refused(place.run("true", env={"COVE_HOME": str(state)}), f"a state directory with mode {mode:o}", "chmod|open to|write")
    above = place.dir / "above"
    above.mkdir()
    above.chmod(0o777)
    refused(place.run("true", env={"COVE_HOME": str(above / "state")}), "a state directory in a place others can write to", "write")
    control_fires(place.run("true", options=("--policy", path)).code == 0, "an ordinary policy")


# --- a call that fails ------------------------------------------------------------------------------------

INJECTED = ("mount", "umount2", "pivot_root", "clone3", "openat2", "open_tree", "move_mount", "mount_setattr", "mkdirat", "seccomp", "prctl", "capset", "setresuid",
            "landlock_restrict_self", "landlock_add_rule", "memfd_create", "execveat", "dup2", "fork", "clone", "setns", "unshare", "close_range", "fchownat", "mknodat", "symlinkat",
            "flock", "pipe2", "socketpair")


def calls_of_a_start(place, log):
    """How often one process at most makes each call."""
    cove_with(place, ["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", f"trace={','.join(INJECTED)}"], "run", "--rm", "--", "./probe", "who")
    counts = {}
    for line in log.read_text(errors="replace").splitlines():
        found = re.match(r"(\d+) +(\w+)\(", line)
        if found:
            counts[found.groups()] = counts.get(found.groups(), 0) + 1
    return {call: max([n for (_, name), n in counts.items() if name == call] or [0]) for call in INJECTED}


def chosen(count, most):
    """All of them, or the first, the last and some between."""
    if count <= most:
        return range(1, count + 1)
    return sorted({1, 2, 3, count, *(1 + count * i // most for i in range(most))})


@test(id="CFG-09")
def a_call_that_fails_never_makes_a_weaker_sandbox(place):
    if not shutil.which("strace"):
        skip("strace is not installed")
    put_probe(place)
    log = place.dir / "log"
    _, reference = portrait(place)
    counts = calls_of_a_start(place, log)
    most = 6 if SOAK_SECONDS <= 5 else 1000
    refusals = runs = 0
    for call, count in counts.items():
        for number in chosen(count, most):
            what = f"{call} number {number} fails"
            prefix = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:error=EPERM:when={number}"]
            first = cove_with(place, prefix, "run", "--rm", "--", "./probe", "who", timeout=15)
            runs += 1
            if first.code == 125:
                refusals += 1
                assert len(error_lines(first)) >= 1 and not first.out, f"{what}: {first!r}"
                continue
            if not reference_rights(first, reference):
                full_or_none(place, reference, prefix, what)
    nothing_is_left(place, "failing calls", seconds=10)
    assert refusals > runs // 3, f"{refusals} of {runs} starts were refused"


@test(id="CFG-09")
def a_message_that_is_lost_does_not_hang_a_run(place):
    put_probe(place)
    for call in ("sendmsg", "recvmsg"):
        for number in range(1, 5):
            prefix = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", place.dir / "log", "-e", f"trace={call}", "-e", f"inject={call}:error=ETOOMANYREFS:when={number}"]
            result = cove_with(place, prefix, "run", "--rm", "--", "true", timeout=10)
            assert result.code in (0, 125), f"{call} {number}: {result!r}"
    nothing_is_left(place)


def strace_of_leaving(place, *more):
    """A start under strace, and its log; the child that unmounts the host's root is its only one that does."""
    if not shutil.which("strace"):
        skip("strace is not installed")
    log = place.dir / "log"
    result = cove_with(place, ["strace", "-f", "--seccomp-bpf", "-q", "-o", log, "-e", "trace=umount2,exit,exit_group,execve", *more], "run", "--rm", "--", "true", timeout=10)
    return result, log.read_text(errors="replace").splitlines()


@test(id="CFG-09")
def who_sets_the_sandbox_up_is_gone_before_a_command_is_there(place):
    """Also if its last step takes long; when it has told the keeper, a command is on its way."""
    result, lines = strace_of_leaving(place, "-e", "inject=exit,exit_group:delay_enter=300000")
    equal(result.code, 0, repr(result))
    leavers = {line.split()[0] for line in lines if "umount2(" in line and "MNT_DETACH" in line}
    equal(len(leavers), 1, "who unmounts the host's root")
    leaver = leavers.pop()
    control_fires(any(re.match(leaver + r" +exit(_group)?\(0", line) for line in lines), "it ends by a call that is delayed")
    ended = next(n for n, line in enumerate(lines) if re.match(leaver + r" +\+\+\+ exited with 0", line))
    began = next(n for n, line in enumerate(lines) if "execve(" in line and '/true"' in line and n > 1)
    assert ended < began, "the command began while it was there"


@test(id="CFG-09")
def who_sets_the_sandbox_up_and_is_killed_ends_the_start(place):
    result, lines = strace_of_leaving(place, "-e", "inject=umount2:signal=SIGKILL")
    control_fires(any("umount2(" in line for line in lines), lines)
    refused(result, "killed while it leaves the host's root", "assembles the root")
    nothing_is_left(place)


def reference_rights(result, reference):
    """Whether what the short probe shows is as it is otherwise."""
    assert result.code == 0 or result.code > 125, repr(result)
    rights = [line for line in result.text.splitlines() if re.match(r"SAY status (Cap|NoNew|Seccomp:|Uid|Gid|Groups)", line)]
    return bool(rights) and all(line in reference for line in rights)


@test(id="CFG-10")
def no_switch_turns_a_guard_off(place):
    canaries = Canaries()
    plain = attack(place, "status")
    names = ("seccomp", "capabilities", "landlock", "verify", "readonly", "session", "descriptors", "environment")
    env = {"COVE_UNSAFE_WITHOUT": ",".join(names), "COVE_UNSAFE": "1", "COVE_DEBUG": "1", "COVE_DISABLE": "all", "BWRAP": "0", "SECRET": canaries.token()}
    for word in names:
        (place.work / f".cove-without-{word}").write_text("")
    (place.work / ".coverc").write_text("seccomp: off\n")
    (place.work / "cove-unsafe").write_text("")
    report = attack(place, "status", env=env)
    for name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters"):
        equal(report.status(name), plain.status(name), name)
    canaries.none_in("the environment", attack(place, "environment", env=env))
    for word in ("--unsafe", "--unsafe-disable=seccomp", "--privileged", "--no-sandbox", "--seccomp=none", "--cap-add=ALL", "--without=seccomp"):
        refused(place.run("true", options=(word,)), word)
    assert b"COVE_UNSAFE" not in pathlib.Path(COVE).read_bytes(), "the release has a switch"
    control_fires(b"COVE_UNSAFE" in pathlib.Path(UNSAFE).read_bytes(), "the test build has one")
    control_fires(attack(place, "status", without="capabilities").status("CapEff") != plain.status("CapEff"), "and it works")


@test(id="CFG-11")
def in_other_sandboxes_it_is_full_strength_or_nothing(place):
    _, reference = portrait(place)
    shutil.copy(COVE, place.work / "cove-copy")
    inner = place.sh(f"COVE_HOME=/tmp/state ./cove-copy run --rm -- ./probe status", options=("-e", "HOME=/tmp"))
    equal(inner.code, 125, f"inside itself: {inner!r}")
    assert b"CapEff" not in inner.out, "the command ran"
    rights = [line for line in reference if re.match(r"SAY status (Cap|NoNew|Seccomp:)", line)]
    around = [["setpriv", "--no-new-privs"], ["unshare", "--user", "--map-root-user"], ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"],
              ["prlimit", "--nproc=50"], ["env", "-i"], ["timeout", "60"]]
    if shutil.which("bwrap"):
        around.append(["bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"])
        around.append(["bwrap", "--bind", "/", "/", "--unshare-user", "--unshare-ipc"])
    if IDENTITY == "root":
        around += [["setpriv", "--bounding-set=-all", "--inh-caps=-all"], ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]]
    strong = 0
    for prefix in around:
        result, got = portrait(place, prefix, options=())
        if result.code == 125:
            equal(len(error_lines(result)), 1, f"{prefix}: {result!r}")
            equal(got, [], f"{prefix}: the command ran nevertheless")
            continue
        equal(result.code, 0, f"{prefix}: {result!r}")
        equal([line for line in rights if line not in got], [], f"{prefix}: weaker rights")
        worked = [line for line in got if re.match(r"CHK (unshare|clone|io_uring|init:|setns|overwrite).* 0$", line) and line not in reference]
        equal(worked, [], f"{prefix}: attacks that work there")
        strong += 1
    control_fires(strong >= 2, "it does run in some of them")
    nothing_is_left(place)


main()
