"""cove doctor: what it says of a host, and whether cove run agrees.

A crippled host is made of this one: a system call that fails (without-call), a limit or a mount in namespaces of
its own.  Everywhere the same is asked: does the doctor name the cause and the fix, and does a run refuse exactly
where the doctor says so."""
import errno
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, IDENTITY, Result, equal, main, skip, test  # noqa: E402
from support.lacking import without  # noqa: E402
from support.running import adopt_orphans, cold, digest, finish, nothing_left, one_error, start, wait_for  # noqa: E402

RESULTS = {"ok", "fallback", "absent", "missing", "unknown"}
CALLS = ("clone3", "mount", "pivot_root", "umount2", "openat2", "open_tree", "move_mount", "mount_setattr", "memfd_create", "seccomp", "capset", "prctl", "landlock_create_ruleset",
         "landlock_add_rule", "landlock_restrict_self", "execveat", "close_range", "statx", "setns", "unshare", "ioctl", "mkdirat", "sethostname")
MOUNTS_OF_ITS_OWN = ["unshare", *([] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]), "--mount", "--propagation", "private"]
BOUND_USER = ["unshare", "--user", "--map-root-user"]


def prepared(script, *, within=None):
    """A host on which `script` was run first, as its own root or with its own mounts."""
    return [*(within or MOUNTS_OF_ITS_OWN), "sh", "-ec", f'{script}\nexec "$@"', "sh"]


def on(place, host, *args, env=None, cwd=None):
    done = subprocess.run([*map(str, host), COVE, *args], cwd=cwd or place.work, env={**place.env, **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120)
    return Result(done)


def examine(place, host=(), env=None):
    """The checks by name, after the doctor and a run have been asked on the same host."""
    asked = on(place, host, "doctor", "--json", env=env)
    assert asked.code in (0, 1) and not asked.err, asked
    told = json.loads(asked.out)
    checks = {check["name"]: check for check in told["checks"]}
    equal(len(checks), len(told["checks"]), "names")
    missing = [name for name, check in checks.items() if check["result"] == "missing"]
    equal((asked.code, told["works"]), (1, False) if missing else (0, True), missing)
    for check in checks.values():
        assert check["result"] in RESULTS and check["found"], check
        advice = check["result"] not in ("ok", "unknown")
        equal((bool(check.get("without")), bool(check.get("fix"))), (advice, advice), check)
    ran = on(place, host, "run", "--rm", "--", "true", env=env)
    equal(ran.code, 125 if missing else 0, f"the doctor says {missing}, but: {ran!r}")
    return checks


def finds(checks, name, result, found, fix=""):
    check = checks[name]
    equal(check["result"], result, check)
    assert re.search(found, check["found"]), check
    assert re.search(fix, check.get("fix", "")), check


# An ordinary host

@test
def this_host_can_run_sandboxes_and_nothing_is_left(place):
    cold(place)
    before = digest(place.dir)
    asked = on(place, (), "doctor", "--json")
    equal(asked.code, 0, asked)
    nothing_left(place)
    equal((digest(place.dir), os.listdir(place.home)), (before, []), "what is in the home and beside it")
    checks = examine(place)
    equal(checks["sandbox"]["result"], "ok")
    equal([name for name, check in checks.items() if check["result"] in ("missing", "unknown")], [])
    equal(("root" in checks["host"]["found"], "not the machine's" in checks["host"]["found"]), (IDENTITY == "root", IDENTITY == "nested"))
    before, later = set(os.listdir(place.state)), {"spare", "spare.new", "trust"}  # made for the next start by whoever ended the last
    examine(place)
    nothing_left(place)
    equal(set(os.listdir(place.state)) - later, before - later, "what is in the state directory")


@test
def who_interrupts_it_finds_nothing_left(place):
    cold(place)
    before = digest(place.dir)
    for pause in (0.02, 0.1, 0.5):
        asked = start(place, "doctor")
        time.sleep(pause)
        asked.send_signal(signal.SIGINT)
        assert finish(asked, 60).code in (0, -signal.SIGINT)
        nothing_left(place)
        equal((digest(place.dir), os.listdir(place.home)), (before, []), f"after {pause} s")


@test
def no_group_or_process_is_left(place):
    def groups():
        return {line for line in subprocess.run(["find", "/sys/fs/cgroup", "-name", "cove-doctor-*"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split()}
    equal(on(place, (), "doctor").code, 0)
    wait_for(lambda: not groups(), what="the end of all groups")


@test
def the_check_of_groups_agrees_with_the_plan(place):
    """A directory that only looks like a group is none."""
    looks = "groups=$(cut -d: -f3 /proc/self/cgroup)\nmount -t tmpfs none /sys/fs/cgroup\n" \
            "for one in memory cpu pids; do for group in $groups; do mkdir -p /sys/fs/cgroup/$one$group /sys/fs/cgroup$group; done; done"
    for host, bound in (((), False), (prepared(looks), True)):
        if bound and not os.path.exists("/sys/fs/cgroup"):
            continue
        plan = json.loads(on(place, host, "run", "--print-plan", "--json", "--memory", "1G", "--cpus", "1", "--processes", "9", "--", "true").out)
        hard = [step["source"] for step in plan["steps"] if step["kind"] == "limit" and step["source"].startswith("hard, cgroup")]
        finds(examine(place, host), "cgroup", "ok" if len(hard) == 3 else "fallback", "")
        assert not (bound and hard), hard


@test
def a_device_that_is_only_a_name_is_not_opened(place):
    """To open it would load its module.  Control: where it is listed it is tried."""
    listed = any(line.split()[-1] == "kvm" for line in open("/proc/misc"))
    found = examine(place)["kvm"]["found"]
    equal("not loaded" in found, not listed, found)
    hidden = "grep -v ' kvm$' /proc/misc >\"$HOME/misc\" || :\nmount --bind \"$HOME/misc\" /proc/misc"
    if IDENTITY == "root":  # for others a covered /proc ends all sandboxes
        told = json.loads(on(place, prepared(hidden), "doctor", "--json").out)
        assert "not loaded" in {check["name"]: check["found"] for check in told["checks"]}["kvm"], told


@test
def the_text_is_aligned_inert_and_says_the_same(place):
    asked = on(place, (), "doctor", env={"container": "\x1b[2Jevil\n"})
    told = {check["name"]: check for check in json.loads(on(place, (), "doctor", "--json").out)["checks"]}
    assert asked.code == 0 and asked.text.endswith("\ncove run works here\n") and "\x1b" not in asked.text, asked
    rows = re.findall(r"^(\w+) +([\w-]+) +\S", asked.text, re.M)
    equal({name: result for result, name in rows if result in RESULTS}, {name: check["result"] for name, check in told.items()})
    askew = [line for line in asked.text.splitlines()[:-2] if not re.match(r".{28}  \S", line)]
    equal(askew, [], "lines that are not aligned")


@test
def it_takes_no_words(place):
    one_error(place.cove("doctor", "now"), "no words")


# Hosts that lack something: calls

@test
def no_user_namespaces_for_want_of_the_call(place):
    for error, words in ((errno.ENOSYS, "not implemented"), (errno.EPERM, "not permitted")):
        checks = examine(place, without("clone3", error))
        finds(checks, "user-namespaces", "missing", words, "seccomp=unconfined")
        equal(checks["overlay"]["result"], "unknown")


@test
def no_landlock_is_a_fallback_and_half_of_it_is_refused(place):
    checks = examine(place, without("landlock_create_ruleset", errno.ENOSYS))
    finds(checks, "landlock", "fallback", "none", "lsm=")
    finds(examine(place, without("landlock_create_ruleset", errno.EOPNOTSUPP)), "landlock", "fallback", "none")
    finds(examine(place, without("landlock_restrict_self", errno.EPERM)), "landlock", "missing", "domain", "off as a whole")
    finds(examine(place, without("landlock_add_rule", errno.EPERM)), "landlock", "missing", "rule")


@test
def no_seccomp(place):
    for error in (errno.ENOSYS, errno.EINVAL):
        finds(examine(place, without("seccomp", error)), "seccomp", "missing", "seccomp filter", "CONFIG_SECCOMP_FILTER")


@test
def no_seccomp_listener_only_keeps_explain_from_working(place):
    host = without("seccomp", errno.EBUSY, 1, 8, 8)
    finds(examine(place, host), "seccomp-listener", "absent", "listener", "outside")
    equal(on(place, host, "run", "--rm", "--explain", "--", "true").code, 125)
    host = without("seccomp", errno.EINVAL, 1, 32, 32)  # before Linux 5.19
    finds(examine(place, host), "seccomp-listener", "ok", "without WAIT_KILLABLE_RECV")
    equal(on(place, host, "run", "--rm", "--explain", "--", "true").code, 0)


@test
def newer_calls_that_are_missing_are_named(place):
    for name in ("openat2", "open_tree", "move_mount", "mount_setattr", "close_range", "pivot_root"):
        asked = json.loads(on(place, without(name, errno.ENOSYS), "doctor", "--json").out)
        ran = on(place, without(name, errno.ENOSYS), "run", "--rm", "--", "true")
        named = [check["found"] for check in asked["checks"] if check["result"] == "missing"]
        equal(ran.code, 125 if named else 0, f"{name}: {named} {ran!r}")
        assert any(name in words for words in named), f"{name}: {named}"


@test
def doctor_and_run_agree_whichever_call_is_missing(place):
    refused = 0
    for number, name in enumerate(sorted(set(CALLS) - {"clone3", "landlock_create_ruleset", "landlock_restrict_self", "seccomp"})):
        error = (errno.EPERM, errno.ENOSPC, errno.ENOSYS)[number % 3]
        asked = on(place, without(name, error), "doctor", "--json")
        assert asked.code in (0, 1), f"{name} {error}: {asked!r}"
        ran = on(place, without(name, error), "run", "--rm", "--", "true")
        equal(ran.code, 125 if asked.code else 0, f"{name} answers {errno.errorcode[error]}: {asked.text} {ran!r}")
        refused += asked.code
    assert refused > 8, refused
    nothing_left(place)


@test
def no_overlay(place):
    host = without("mount", errno.ENODEV, 3, 0xffffffff, 6)  # MS_NOSUID | MS_NODEV, as overlays are mounted
    checks = examine(place, host)
    finds(checks, "overlay", "missing", "No such device", "modprobe overlay")
    finds(checks, "sandbox", "missing", "No such device")
    equal(checks["proc"]["result"], "ok", "what is not an overlay")


# Switches

@test(identities=("user", "nested"))
def user_namespaces_switched_off(place):
    host = prepared("echo 0 >/proc/sys/user/max_user_namespaces", within=BOUND_USER)
    finds(examine(place, host), "user-namespaces", "missing", r"user\.max_user_namespaces is 0", r"sysctl -w user\.max_user_namespaces=")


@test(identities=("user", "nested"))
def one_kind_of_namespace_switched_off(place):
    for kind, name in (("net", "network"), ("time", "time")):
        host = prepared(f"echo 0 >/proc/sys/user/max_{kind}_namespaces", within=BOUND_USER)
        finds(examine(place, host), "namespaces", "missing", f"no {name} namespace", rf"sysctl -w user\.max_{kind}_namespaces=")


@test(identities=("root",))
def programs_in_memory_switched_off(place):
    if not os.path.exists("/proc/sys/vm/memfd_noexec"):
        skip("kernel: no vm.memfd_noexec")
    within = ["unshare", "--pid", "--fork", "--mount-proc"]  # the switch is one of the pid namespace
    finds(examine(place, prepared("echo 1 >/proc/sys/vm/memfd_noexec", within=within)), "memfd", "ok", "sealed")
    finds(examine(place, prepared("echo 2 >/proc/sys/vm/memfd_noexec", within=within)), "memfd", "missing", "memfd", r"sysctl -w vm\.memfd_noexec=1")


@test(identities=("user", "nested"))
def the_restriction_of_ubuntu(place):
    """As a program without profile meets it: the switch is on, and nothing can be mounted in a user namespace."""
    (place.dir / "sys").mkdir()
    (place.dir / "sys/apparmor_restrict_unprivileged_userns").write_text("1\n")
    cover = prepared(f"mount --bind {place.dir}/sys /proc/sys/kernel")
    finds(examine(place, [*cover, *without("mount", errno.EACCES)]), "apparmor", "missing", "apparmor_restrict_unprivileged_userns is 1", "/etc/apparmor.d/cove")
    finds(examine(place, cover), "apparmor", "ok", "not for this program")


# Places

@test
def a_covered_proc_as_in_a_container(place):
    checks = examine(place, prepared("mount -t tmpfs none /proc/tty"))
    finds(checks, "proc", "missing", "covered here .*/proc/tty", "systempaths=unconfined.*procMount: Unmasked")


@test
def no_proc_at_all(place):
    if "COVE_SANITIZED" in os.environ:
        skip("kernel: a sanitizer does not start without /proc")
    asked = on(place, prepared("mount -t tmpfs none /proc"), "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(asked.out)["checks"]}
    equal(asked.code, 1)
    finds(checks, "host", "missing", "/proc")
    equal(on(place, prepared("mount -t tmpfs none /proc"), "run", "--rm", "--", "true").code, 125)


@test
def a_state_directory_that_cannot_be_written(place):
    place.state.mkdir(mode=0o700, exist_ok=True)
    host = prepared(f"mount --bind {place.state} {place.state}; mount -o remount,bind,ro {place.state}")
    finds(examine(place, host), "state-directory", "missing", "Read-only file system", "COVE_HOME")
    shut = place.dir / "file"
    shut.write_text("")
    finds(examine(place, env={"COVE_HOME": str(shut / "state")}), "host", "missing", "not a directory", "COVE_HOME")
    place.state.chmod(0o755)
    finds(examine(place), "state-directory", "missing", "open to other users", "mode 700")
    place.state.chmod(0o700)
    equal(examine(place)["state-directory"]["result"], "ok")


def overlay_as_state(place):
    """As in a container, whose root is an overlay."""
    for name in ("low", "up", "wd", "top"):
        (place.dir / name).mkdir()
    user = "" if IDENTITY == "root" else "userxattr,"
    return prepared(f"mount -t overlay -o {user}lowerdir={place.dir}/low,upperdir={place.dir}/up,workdir={place.dir}/wd overlay {place.dir}/top; mkdir -p -m 700 {place.dir}/top/state")


@test
def a_state_directory_on_an_overlay(place):
    checks = examine(place, overlay_as_state(place), env={"COVE_HOME": f"{place.dir}/top/state"})
    equal("overlayfs" in checks["state-directory"]["found"], True, checks["state-directory"])
    finds(checks, "overlay", "missing", "on overlayfs", "COVE_HOME.*volume or tmpfs")
    if IDENTITY == "root":
        finds(checks, "id-mapped-mounts", "missing", "overlayfs", "COVE_HOME")


@test
def a_state_directory_without_extended_attributes(place):
    host = prepared(f"mkdir -p {place.dir}/ram; mount -t ramfs none {place.dir}/ram; mkdir -m 700 {place.dir}/ram/state")
    checks = examine(place, host, env={"COVE_HOME": f"{place.dir}/ram/state"})
    assert checks["overlay-changes"]["result"] != "ok" or checks["overlay"]["result"] == "missing", checks
    assert "COVE_HOME" in (checks["overlay-changes"].get("fix") or checks["overlay"]["fix"]), checks


@test
def a_state_directory_from_which_nothing_can_be_executed_is_none_the_worse(place):
    host = prepared(f"mkdir -p {place.dir}/tmp; mount -t tmpfs -o noexec,nodev,nosuid none {place.dir}/tmp; mkdir -m 700 {place.dir}/tmp/state")
    checks = examine(place, host, env={"COVE_HOME": f"{place.dir}/tmp/state"})
    finds(checks, "state-directory", "ok", "tmpfs")
    equal(checks["overlay"]["result"], "ok")


@test
def inside_a_sandbox_of_cove(place):
    subprocess.run(["cp", COVE, place.work / "cove"], check=True)
    inner = place.sh("COVE_HOME=/tmp/state ./cove doctor --json; echo $?")
    told, code = inner.text.splitlines()
    checks = {check["name"]: check for check in json.loads(told)["checks"]}
    equal(code, "1")
    finds(checks, "place", "ok", "sandbox of Cove")
    finds(checks, "user-namespaces", "missing", ".", "leave the sandbox")


@test(identities=("root",))
def root_without_rights(place):
    finds(examine(place, ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]), "host", "missing", "uid 0 of the machine", "")


if __name__ == "__main__":
    adopt_orphans()
    main()
