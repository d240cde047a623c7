"""Sandboxes that stay, when their processes are killed or calls fail.  All of it: `tests/soak stay-kills stay-faults`."""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.disks import mount_small  # noqa: E402
from support.harness import COVE, IDENTITY, PATIENCE, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, descendants, reap, tool, wait_for  # noqa: E402
from support.staying import execute, state, staying  # noqa: E402
from support.stays import Stay, kills  # noqa: E402

FAULTS, KILLS = 40, 25


def dice():
    """Others each day."""
    return random.Random(os.environ.get("COVE_SEED", time.strftime("%Y%m%d")))


@test(id="LIFE-06")
def whoever_is_killed_at_any_moment_no_step_that_was_done_is_lost_and_nothing_is_left(place):
    early = kills(place, dice(), KILLS)
    assert early > 3, f"only {early} of {KILLS} came before the end"


@test
def whichever_call_fails_or_is_the_last_no_step_that_was_done_is_lost_and_nothing_is_left(place):
    tool("strace")
    chance = dice()
    stay = Stay(place, chance)
    faults = stay.faults()
    assert len(faults) > FAULTS, f"only {len(faults)} faults"
    for fault in chance.sample(faults, FAULTS):
        stay.disturb(*fault)
    stay.close()


@test
def who_cannot_be_answered_is_not_left_waiting(place):
    tool("strace")
    stay = Stay(place, dice())
    for operation in ("append", "pause", "snap"):
        for number in range(1, 4):
            stay.disturb(operation, "keeper", "sendmsg", number, "error=EIO")
    stay.close()


# A reboot


LOOK = "cd / && find tmp var/tmp \"$0\" ~ -printf '%p %y %m %U %G %s %T@ %l\\n' 2>/dev/null | sort; find \"$0\" ~ /tmp -type f -exec sha256sum {} + | sort"


def all_of(place, ident):
    done = place.cove("exec", ident, "--", "sh", "-c", LOOK, str(place.work))
    equal(done.code, 0, done)
    return done.text


@test(id="Z-05")
def after_a_reboot_a_start_brings_the_files_back_exactly(place):
    (place.work / "old").write_text("old\n")
    with staying(place, "--name", "it") as ident:
        execute(place, ident, "rm old; echo 1 >f; mkdir -m 750 d; ln -s f l; ln f hard; touch -d 2001-02-03 d/aged; echo h >~/h; echo t >/tmp/t; chmod 4755 f; echo r >/run/r 2>/dev/null; echo s >/dev/shm/s")
        execute(place, ident, "echo 2 >>f; rm -r d; mkdir d; echo new >d/x")
        (fork,) = place.cove("fork", ident).text.split()
        execute(place, fork, "echo fork >>f")
        equal(place.cove("snapshot", ident, "--name", "snap").code, 0)
        execute(place, ident, "echo 3 >>f; (while :; do echo x >/tmp/busy; mv /tmp/busy /tmp/busier; done) >/dev/null 2>&1 &")
        execute(place, ident, "pkill -f busier; sleep 0.1; rm -f /tmp/busy /tmp/busier; true")
        before, forked = all_of(place, ident), all_of(place, fork)
        # Everything that runs is gone at once, and with it all mounts; what is on the disk says that it runs, and by whom.
        everybody = descendants()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everybody:
                with contextlib.suppress(ProcessLookupError):  # one that counts is done by itself
                    os.kill(pid, number)
        wait_for(lambda: not descendants(), what="the end of everything")
        reap()
        for one in (ident, fork):
            path = place.state / "sandboxes" / one / "record.json"
            record = json.loads(path.read_text())
            equal(record["state"], "running")
            record["keeper"] = os.getpid()  # somebody else's number by now
            path.write_text(json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n")
            equal(state(place, one), "killed")
        for one, wanted in ((ident, before), (fork, forked)):
            equal(place.cove("start", one).code, 0)
            equal(all_of(place, one), wanted)
            equal(execute(place, one, "cat /run/r /dev/shm/s 2>/dev/null").text, "", "what is in memory begins empty")
        equal(place.cove("rollback", ident, "1").code, 0)
        equal(execute(place, ident, "cat f; cat d/x 2>/dev/null").text, "1\n")
        (again,) = place.cove("fork", "snap").text.split()
        equal(execute(place, again, "cat f").text, "1\n2\n", "a snapshot outlives it, too")
        for one in (fork, again):
            place.cove("rm", "-f", one)
        place.cove("snapshot", "rm", "snap")


@test
def a_keeper_that_cannot_read_how_far_it_was_gives_no_number_twice(place):
    tool("strace")
    with staying(place) as ident:
        for number in (1, 2):
            equal(execute(place, ident, f"echo {number}").code, 0)
        equal(place.cove("stop", ident).code, 0)
        trace = place.state / "sandboxes" / ident / "trace.jsonl"
        done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-P", trace, "-e", "trace=pread64", "-e", "inject=pread64:error=EIO:when=1", COVE, "start", ident],
                              cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60 * PATIENCE)
        assert done.returncode == 125 and "read the trace" in done.stderr, done
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "echo 3").text, "3\n")
        equal([row["number"] for row in json.loads(place.cove("steps", "--json", ident).out)["steps"]], [1, 2, 3])


# A disk that is full


def on_small_disk(place, mount, script):
    """A script with a state directory on a small disk of its own; "$0" is cove."""
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    (place.dir / "mnt").mkdir()
    done = subprocess.run(["unshare", *become, "--mount", "--propagation", "private", "sh", "-c",
                           f"MNT={place.dir}/mnt; export COVE_HOME=$MNT/state\n{mount}; mkdir -m 700 $MNT/state\n{script}", COVE], cwd=place.work,
                          env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120 * PATIENCE, text=True)
    if "mount: " in done.stderr or "unshare: " in done.stderr:
        skip(f"kernel: this user cannot mount: {done.stderr.strip()[:100]}")
    return done


FULL = """
id=$("$0" create); echo "create $?"
{ballast}
"$0" exec $id -- sh -c 'echo 1 >>log'; echo "step $?"
{fill}
for words in "exec $id -- sh -c 'echo 2 >>log'" "create" "fork $id" "snapshot $id --name s" "rollback $id 0" "exec $id -- cat log" "stop $id" "start $id" "fork $id"; do
    eval "\\"\$0\\" $words" >$MNT.out 2>$MNT.err; echo "$? $words: $(head -1 $MNT.err)" >>$MNT.said
    case $words in *">>log"*) if [ "$(tail -1 $MNT.said | cut -c1)" = 0 ]; then second=yes; fi;; rollback*) if [ "$(tail -1 $MNT.said | cut -c1)" = 0 ]; then first=no second=; fi;; esac
done
rm -rf $MNT/ballast
"$0" exec $id -- true 2>/dev/null || "$0" start $id >/dev/null; echo "goes on $?"
[ "$first" = no ] || {{ "$0" exec $id -- sh -c 'head -1 log'; }}; [ "$second" != yes ] || {{ "$0" exec $id -- sed -n 2p log; }}
echo "$first$second" >$MNT.flags
"$0" exec $id -- sh -c '{free}; echo 3 >>log; tail -1 log'; echo "step $?"
"$0" stop $id >/dev/null; echo "stop $?"; "$0" start $id >/dev/null; echo "start $?"
"$0" exec $id -- tail -1 log; echo "read $?"
"$0" snapshot rm s >/dev/null 2>&1; for i in $("$0" ls -q); do "$0" rm -f $i >/dev/null || echo "rm $i"; done
"$0" create >/dev/null; "$0" rm -f $("$0" ls -q) >/dev/null
for i in $(seq 100); do [ "$(ls $MNT/state/sandboxes $MNT/state/layers | grep -c '[a-z0-9]\\{{20\\}}$')" = 0 ] && break; sleep 0.1; done; ls $MNT/state/sandboxes $MNT/state/layers | grep '^[a-z0-9.]*$'
"""


def judge_full(place, done):
    """Whatever could not be done on a full disk was said, and nothing that was done before is lost."""
    flags = (place.dir / "mnt.flags").read_text().strip()
    wanted = ["create 0", "step 0", "goes on 0"] + (["1"] if "no" not in flags else []) + (["2"] if "yes" in flags else []) + ["3", "step 0", "stop 0", "start 0", "3", "read 0"]
    said = (place.dir / "mnt.said").read_text()
    equal([line for line in done.stdout.split("\n") if line], wanted, f"{said}\n{done.stderr}")
    for line in said.splitlines():
        assert line.startswith(("0 ", "1 ", "2 ")) or re.match(r"125 [^:]*: cove: ", line), said
    assert "125 " in said, f"the disk was not full: {said}"


@test(id="Z-06")
def a_disk_that_one_has_filled_loses_no_step_of_it(place):
    fill = "\"$0\" exec $id -- sh -c 'head -c 60M /dev/zero >big' 2>/dev/null"
    judge_full(place, on_small_disk(place, mount_small("$MNT", 24), FULL.format(fill=fill, free="rm -f big", ballast="head -c 8M /dev/zero >$MNT/ballast")))


@test(id="Z-07")
def inodes_that_one_has_used_up_lose_no_step_of_it(place):
    if IDENTITY == "root" and "size=" not in mount_small("x", 1):
        skip("kernel: root cannot shift the ids of a tmpfs before Linux 6.3")
    fill = "\"$0\" exec $id -- sh -c 'i=0; while true >f$i && [ $i -lt 5000 ]; do i=$((i + 1)); done; true' 2>/dev/null"
    judge_full(place, on_small_disk(place, "mount -t tmpfs -o size=60m,nr_inodes=2000,mode=700 small $MNT",
                                    FULL.format(fill=fill, free="true", ballast="mkdir $MNT/ballast; for i in $(seq 500); do : >$MNT/ballast/$i; done")))


if __name__ == "__main__":
    adopt_orphans()
    main()
