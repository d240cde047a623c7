"""PROC: what the kernel's own file systems show and let change."""
import errno
import os
import pathlib
import resource
import subprocess
import time

from attack import (COVE, IDENTITY, SOAK_SECONDS, Canaries, Running, all_refused, attack, attack_host, control_fires, equal, fingerprint, main,
                    name_of, put_probe, skip, steps_are, test, unchanged)

NS10_LAYERS = "seccomp,landlock,capabilities,dumpable"


def settings():
    """Every file below /proc/sys with its value."""
    found = {}
    for top, _, files in os.walk("/proc/sys"):
        for name in files:
            path = f"{top}/{name}"
            try:
                if not os.stat(path).st_mode & 0o222:
                    continue  # nobody can set it: a counter, which others may move meanwhile
                with open(path, "rb", buffering=0) as file:
                    found[path] = file.read(4096)
            except OSError:
                pass
    return found


def steady_settings():
    """Those that do not change by themselves."""
    one = settings()
    time.sleep(0.05)
    two = settings()
    volatile = ("/random/", "nr_", "-nr", "inode-state", "dentry-state", "pty/nr", "/sched_domain", "nf_conntrack_count", "/kernel/ns_last_pid")
    return {path: value for path, value in one.items() if two.get(path) == value and not any(word in path for word in volatile)}


@test(id="PROC-01")
def no_setting_of_the_kernel_can_be_changed(place):
    before = steady_settings()
    report = attack(place, "writable-below", "/proc/sys")
    equal(report.say["walked"], ["yes"])
    equal(report.say.get("writable", []), [], "settings that open for writing")
    # Uid 0 inside, which only root's sandboxes have, owns /proc/1: it can offer its own sandbox to the OOM killer first.
    all_refused(attack(place, "knobs"), "settings", besides=("write:/proc/1/oom_score_adj",) if IDENTITY == "root" else ())
    after = settings()
    changed = [path for path, value in before.items() if after.get(path, value) != value]
    equal(changed, [], "settings of the host that changed")
    loose = attack(place, "writable-below", "/proc/sys", without="seals,capabilities,verify")
    control_fires(loose.say.get("writable"), loose)


MASKED = [f"/proc/{name}" for name in (
    "acpi", "asound", "config.gz", "interrupts", "iomem", "kallsyms", "kcore", "keys", "key-users", "kmsg", "sched_debug", "scsi",
    "slabinfo", "timer_list", "vmallocinfo", "modules", "diskstats", "partitions", "sysrq-trigger", "zoneinfo", "softirqs", "mtrr")]
ABSENT = ["/sys/firmware", "/sys/kernel/security", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/devices/virtual/powercap",
          "/sys/fs/pstore", "/sys/fs/bpf", "/sys/class", "/sys/block", "/sys/module", "/sys/fs/cgroup", "/sys/devices/virtual/dmi"]


@test(id="PROC-02")
def tables_of_the_host_are_hidden(place):
    report = attack(place, "readable", *MASKED, *ABSENT)
    equal(report.say["walked"], ["yes"])
    equal(report.say.get("readable", []), [], "tables that can be read")
    loose = attack(place, "readable", *MASKED, without="masks,verify")
    control_fires(len(loose.say.get("readable", [])) > 3, loose)


def host_paths_in(text, place):
    """Paths of the host that have no business in a sandbox.  The workspace's own is meant to be there."""
    without_workspace = text.replace(str(place.work), "")
    words = [str(place.state), str(place.home), "upperdir=/home", "upperdir=/var", os.path.dirname(COVE)]
    return [word for word in words if word in without_workspace]


@test(id="PROC-03")
def mount_tables_name_no_path_of_the_host(place):
    report = attack(place, "mounts")
    text = report.result.text
    assert len(report.say["mountinfo"]) > 20, text
    equal(host_paths_in(text, place), [], "host paths in mount tables")
    steps_are(report, ("statmount", "listmount"), (errno.ENOSYS,), "newer ways to ask")
    layers = {name: place.state / name for name in ("lower", "upper", "work", "merged")}
    for path in layers.values():
        path.mkdir(parents=True)
    script = 'mount -t overlay o -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4"; cat /proc/self/mountinfo'
    outside = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *map(str, layers.values())],
                             stdout=subprocess.PIPE, text=True)
    control_fires(host_paths_in(outside.stdout, place), "a plain overlay mount names its layers")


@test(id="PROC-04")
def links_of_processes_lead_nowhere_outside(place):
    with Running(place, "wait") as peer:
        report = attack(place, "links")
        peer_pids = set(peer.pids)
    links = report.say["link"]
    assert any("/exe -> " in link for link in links)
    equal(host_paths_in("\n".join(links), place), [], "host paths in links")
    ours = [f"/proc/{line.split()[0]}/" for line in report.say["role"] if line.endswith(" init")]
    equal(len(ours), 1, "init")
    equal([link for link in links if link.startswith(tuple(ours))], [], "links of init")
    visible = {int(pid) for pid in report.say["pid"]}
    assert len(visible) == 2 and not visible & (peer_pids - set(range(20))), f"processes of others are visible: {visible}"
    loose = attack(place, "links", without=NS10_LAYERS)
    control_fires([link for link in loose.say["link"] if "/proc/1/" in link], loose)
    outside = attack_host(place, "links")
    control_fires(host_paths_in("\n".join(outside.say["link"]).replace(str(place.work), ""), place) or len(outside.say["pid"]) > 5, "on the host")


@test(id="PROC-05")
def a_crash_leaves_nothing_on_the_host(place):
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    (place.work / "file").write_text("x")
    put_probe(place)
    before, top = fingerprint(place.work), set(os.listdir("/"))
    report = attack(place, "crash")
    equal(len(report.say["crash"]), 2)
    assert all(line.startswith("signal ") for line in report.say["crash"]), report.say["crash"]
    unchanged(before, fingerprint(place.work), "a crash")
    equal(set(os.listdir("/")) - top, set(), "new files at the root")
    if pattern.startswith("|"):
        equal([line.split()[-1] for line in report.say["crash"]], ["0", "0"], "cores that went to the host's handler")
    elif "/" not in pattern:
        outside = attack_host(place, "crash")
        written = [p for p in place.work.iterdir() if p.name.startswith("core")] if outside.say["crash"][0].endswith("core 1") else ["forbidden"]
        control_fires(written, outside)


def core_limits(place, **options):
    """What the host sees of a probe that has tried to change its limit in every way."""
    with Running(place, "core-limits", **options) as running:
        lines = pathlib.Path(f"/proc/{running.pid}/limits").read_text().splitlines()
        running.process.stdin.close()
        running.process.wait(20)
    return next(line.split()[4:6] for line in lines if line.startswith("Max core file size"))


@test(id="PROC-05")
def no_crash_can_start_the_handler_of_the_host(place):
    # The kernel starts a handler (core_pattern with a pipe) for every limit but one byte.
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        skip("kernel: the limit of cores is 0 for good here")
    equal(core_limits(place), ["1", "1"], "the limit of cores")
    control_fires(core_limits(place, without="seccomp")[0] == "0", "without the filter it can be changed")


PROC06_LAYERS = ("seccomp", "landlock", "capabilities")


@test(id="PROC-06")
def there_are_no_cgroups_to_write_to(place):
    report = attack(place, "cgroups")
    all_refused(report, "cgroups")
    equal(report.say.get("cgroup-file", []), [], "files of cgroups")
    equal([line for line in report.say["mountinfo"] if " - cgroup" in line], [], "cgroup mounts")
    equal([line for line in report.say["cgroup"] if not line.endswith(":/")], [], "the path of our cgroup on the host")
    for layer in PROC06_LAYERS:
        all_refused(attack(place, "cgroups", without=layer), f"cgroups without {layer}")
    loose = attack(place, "cgroups", without=",".join(PROC06_LAYERS))
    control_fires("mount:cgroup2" in loose.worked(), loose.chk)


@test(id="PROC-07")
def our_programs_cannot_be_opened_from_inside(place):
    before = pathlib.Path(COVE).read_bytes()
    report = attack(place, "programs", "200")
    assert "init:hold" in report.chk, report
    all_refused(report, "programs of init")
    # Whoever enters is looked at all the time, from a process that was there before.
    script = "./probe programs 3000 & w=$!; i=0; while [ $i -lt 100 ]; do ./probe pause-a-little; i=$((i+1)); done; kill $w 2>/dev/null; true"
    result = place.sh(script)
    equal(result.code, 0, repr(result))
    opened = [line for line in result.text.splitlines() if line.startswith("CHK init:") and line.endswith(" 0")]
    equal(opened, [], "programs opened")
    equal(pathlib.Path(COVE).read_bytes() == before, True, "our program is unchanged")
    loose = attack(place, "programs", without=NS10_LAYERS)
    control_fires("init:hold" in loose.worked(), loose.chk)
    equal([step for step in loose.worked() if "write" in step], [], "even without those guards PID 1's program is sealed")


@test(id="PROC-08")
def nothing_below_sys_can_be_written(place):
    report = attack(place, "writable-below", "/sys")
    equal(report.say["walked"], ["yes"])
    equal(report.say.get("writable", []), [], "files below /sys")
    (place.work / "tree").mkdir()
    (place.work / "tree/uevent_helper").write_text("")
    control_fires(attack(place, "writable-below", "tree").say.get("writable"), "a writable file is found")


@test(id="PROC-09")
def of_netlink_only_routes_can_be_asked(place):
    report = attack(place, "netlinks")
    equal(sorted(step for step in report.worked() if step.startswith("netlink:")), ["netlink:0:2", "netlink:0:3"], "netlink sockets")
    for step, number in report.chk.items():
        if step.startswith("netlink:") and not step.startswith("netlink:0:"):
            equal(number, errno.EPROTONOSUPPORT, step)
    loose = attack(place, "netlinks", without="seccomp")
    control_fires(len([step for step in loose.worked() if step.startswith("netlink:")]) > 4, loose.chk)


@test(id="PROC-10")
def the_log_of_the_kernel_is_closed(place):
    report = attack(place, "kernel-log")
    steps = [step for step in report.chk if step.startswith("syslog:")]
    steps_are(report, steps, (errno.EPERM,), "syslog")
    steps_are(report, ("kmsg-read", "kmsg-write"), (errno.ENOENT,), "/dev/kmsg")
    if IDENTITY == "root" or pathlib.Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() == "0":
        outside = attack_host(place, "kernel-log")
        control_fires("syslog:10" in outside.worked(), outside.chk)
    if os.path.exists("/dev/kmsg"):
        control_fires(attack_host(place, "kernel-log").chk["kmsg-read"] != errno.ENOENT, "the host has /dev/kmsg")


@test(id="PROC-11")
def no_variable_of_the_host_comes_in(place):
    canaries = Canaries()
    env = {"SECRET_TOKEN": canaries.token(), "AWS_SECRET_ACCESS_KEY": canaries.token(), "LC_SMUGGLED": canaries.token(),
           "SSH_AUTH_SOCK": "/" + canaries.token()}
    report = attack(place, "words", env=env)
    assert report.say["environ"], report
    canaries.none_in("variables", report)
    equal(host_paths_in("\n".join(report.say["environ"]).replace(f"HOME={place.home}", ""), place), [], "host paths in variables")
    control_fires(canaries.found_in(attack(place, "words", env=env, without="environment").result.out), "variables passed on")


@test(id="PROC-12")
def network_tables_show_only_the_own_network(place):
    report = attack(place, "network-tables")
    devices = [line.split(":")[0].strip() for line in report.say["/proc/net/dev"] if ":" in line]
    equal(devices, ["lo"], "network devices")
    for table in ("/proc/net/unix", "/proc/net/arp"):
        equal(len(report.say.get(table, ["head"])), 1, f"entries of {table}")
    for table in ("/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"):  # only where the gateway listens
        entries = [line.split()[1:4] for line in report.say.get(table, ["head"])[1:]]
        equal([entry for entry in entries if int(entry[0].split(":")[1], 16) != 1019 or int(entry[1].split(":")[1], 16)], [], f"entries of {table}")
    for table in ("/proc/diskstats", "/proc/partitions"):
        assert not report.say.get(table), f"{table}: {report.say[table]}"
    loose = attack(place, "network-tables", without="network,landlock")
    outside = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]
    control_fires([line.split(":")[0].strip() for line in loose.say["/proc/net/dev"] if ":" in line] == outside and
                  (outside != ["lo"] or len(loose.say["/proc/net/unix"]) > 1), loose)


main()
