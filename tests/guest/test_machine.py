"""What a machine as most users have it gives: cove doctor says so, and limits agree with it.

Only for the guest, where it is known what there is: Linux 6.1, systemd, cgroup v2, ext4, a login session."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import IDENTITY, equal, main, test  # noqa: E402
from support import running  # noqa: E402

# What Debian 12 on ext4 in an emulated machine does not have, and how `cove doctor` must call that.
LACKS = {"reflink": "fallback", "landlock": "fallback", "kvm": "absent", "criu": "absent"}

MANAGER, MANAGED = ("/run/systemd/private", "/system.slice/") if IDENTITY == "root" else (
    f"/run/user/{os.getuid()}/systemd/private", f"/user.slice/user-{os.getuid()}.slice/user@{os.getuid()}.service/")


def examined(place):
    asked = place.cove("doctor", "--json")
    equal((asked.code, asked.err), (0, b""), repr(asked))
    return {check["name"]: check for check in json.loads(asked.out)["checks"]}


@test(identities=("root", "user"))
def the_doctor_finds_all_there_that_this_machine_has(place):
    checks = examined(place)
    of_users = {"subordinate-ids"} if IDENTITY == "root" else {"id-mapped-mounts"}
    other = {name: check["result"] for name, check in checks.items() if check["result"] != "ok" and name not in of_users}
    equal(other, LACKS, json.dumps(checks, indent=1))
    assert "cove run works here" in place.cove("doctor").text


@test(identities=("root", "user"))
def limits_are_kept_where_the_doctor_says(place):
    told = examined(place)["cgroup"]
    equal(told["result"], "ok", told)
    for name in ("memory", "cpu", "pids"):
        assert name in told["found"], told
    assert "version 2" in told["found"] and f" {MANAGER}: " in told["found"], told
    options = ("--memory", "100M", "--cpus", "1.5", "--processes", "50")
    process = running.start(place, "run", "--rm", *options, "--enforce", "hard", "--", "sh", "-c", "echo up; sleep 900")
    try:
        running.read_until(process.stdout, b"up", 60)
        groups = {open(f"/proc/{pid}/cgroup").read().strip().partition("::")[2] for pid in running.descendants(process.pid)}
        inside = [group for group in groups if "cove-" in group]
        equal(len(inside), 1, groups)
        group = pathlib.Path(f"/sys/fs/cgroup{inside[0]}")
        kept = {name: (group / name).read_text().strip() for name in ("memory.max", "memory.swap.max", "cpu.max", "pids.max")}
    finally:
        running.stop(process)
    equal(kept, {"memory.max": str(100 << 20), "memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "51"})
    assert inside[0].startswith(MANAGED), inside
    running.wait_for(lambda: not group.exists(), 10, "the end of the group")


@test(identities=("root", "user"))
def the_service_manager_does_not_take_limits_away_again(place):
    """Whatever it does for others meanwhile, with the groups around ours."""
    process = running.start(place, "run", "--rm", "--memory", "100M", "--cpus", "0.5", "--processes", "50", "--", "sh", "-c", "echo up; sleep 900")
    try:
        running.read_until(process.stdout, b"up", 60)
        inside = {group for pid in running.descendants(process.pid) if "cove-" in (group := open(f"/proc/{pid}/cgroup").read().strip().partition("::")[2])}
        group = pathlib.Path(f"/sys/fs/cgroup{inside.pop()}")
        user = [] if IDENTITY == "root" else ["--user"]
        environ = {**place.env, "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}
        for command in (["systemctl", *user, "daemon-reload"], ["systemd-run", *user, "--quiet", "--wait", "-p", "CPUWeight=50", "true"],
                        ["systemd-run", *user, "--quiet", "--wait", "-p", "MemoryMax=1G", "true"]):
            done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            equal(done.returncode, 0, f"{command}: {done.stdout}")
        kept = {name: (group / name).read_text().strip() for name in ("memory.max", "cpu.max", "pids.max")}
    finally:
        running.stop(process)
    equal(kept, {"memory.max": str(100 << 20), "cpu.max": "50000 100000", "pids.max": "51"})


if __name__ == "__main__":
    running.adopt_orphans()
    main()
