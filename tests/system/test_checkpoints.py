"""Checkpoints: after each step of a sandbox that stays; rollback, undo, snapshots, forks, and what is left of them."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, digest, one_error, start, finish, wait_for, write  # noqa: E402
from support.staying import execute, good, layers, steps  # noqa: E402
from support.staying import staying_alone as staying  # noqa: E402

LOOK = "cd / && find \"$0\" ~ tmp -printf '%p %y %m %n %s %T@ %l\\n' 2>/dev/null | sort; find \"$0\" -type f -exec cat {} +"


def copies(place):
    """Of workspaces, that are layers."""
    return [lid for lid in layers(place) for name in os.listdir(place.state / "layers" / lid) if name.startswith("b")]


def look(place, ident):
    return good(place.cove("exec", ident, "--", "sh", "-c", LOOK, str(place.work))).text


def looked(place, ident, number):
    """The step, when what it changed is on record: that comes after its end was told."""
    trace = place.state / "sandboxes" / ident / "trace.jsonl"

    def known():
        lines = map(json.loads, trace.read_text().splitlines())
        return any(line["kind"] == "step.changed" and line["data"]["number"] == number for line in lines)
    wait_for(known, what=f"the checkpoint of step {number}")
    (found,) = [row for row in steps(place, ident) if row["number"] == number]
    return found


def keeper(place, ident):
    return json.loads((place.state / "sandboxes" / ident / "record.json").read_text())["keeper"]


# After each step


@test
def each_step_that_changes_something_has_a_checkpoint(place):
    write(place.work / "file", "old\n")
    before = digest(place.work)
    with staying(place) as ident:
        good(execute(place, ident, "echo 1 >one"))
        good(execute(place, ident, "cat one"))
        good(execute(place, ident, "rm file"))
        first, second, third = (looked(place, ident, number) for number in (1, 2, 3))
        assert first["checkpoint"] and third["checkpoint"] and first["checkpoint"] != third["checkpoint"], (first, third)
        equal(((first["added"], first["changed"], first["removed"]), (third["added"], third["changed"], third["removed"])), ((1, 0, 0), (0, 0, 1)), "what they changed")
        equal((second["checkpoint"], second["no_checkpoint"], second["added"]), (None, None, 0), "one that only reads")
        equal(execute(place, ident, "ls").text, "one\n")
        equal(digest(place.work), before, "the host's own files")


@test
def the_mode_of_the_workspace_alone_is_a_change(place):
    with staying(place) as ident:
        good(execute(place, ident, "chmod 750 ."))
        assert looked(place, ident, 1)["checkpoint"], "a checkpoint"
        equal(execute(place, ident, "stat -c %a .").text, "750\n")


@test
def without_checkpoints_there_are_none(place):
    with staying(place, "--no-checkpoints") as ident:
        good(execute(place, ident, "echo 1 >one"))
        equal(layers(place), [])
        good(place.cove("stop", ident))
        good(place.cove("start", ident))
        good(execute(place, ident, "echo 1 >>one; cat one"))
        equal((layers(place), steps(place, ident)[-1]["checkpoint"]), ([], None), "nor after a start")


@test
def a_start_on_layers_brings_the_files_back_exactly(place):
    write(place.work / "old", "old\n")
    write(place.work / "dir/below", "b\n")
    with staying(place, "--name", "back") as ident:
        for script in ("rm old; echo x >f; ln -s f link; ln f hard; mkdir -m 750 d2; touch -d 2001-02-03 d2/aged", "chmod 4755 f; mv d2 d3; echo h >~/h",
                       "rm -r dir; mkdir dir; echo t >/tmp/t; mkfifo pipe", "echo y >>hard; rm link; chmod 711 ."):
            good(execute(place, ident, script))
        before = look(place, ident)
        for _ in range(2):
            good(place.cove("stop", "back"))
            good(place.cove("start", "back"))
        equal(look(place, ident), before)
        assert "/old " not in before and "dir/below" not in before, before


@test
def many_steps_keep_the_stack_flat(place):
    with staying(place) as ident:
        for number in range(1, 31):
            good(execute(place, ident, f"echo {number} >f{number}; echo {number} >>all; rm -f f{number - 2}"))
        assert looked(place, ident, 30)["checkpoint"], "the last one, too"
        equal([row["no_checkpoint"] for row in steps(place, ident)], [None] * 30)
        expected = "".join(f"{n}\n" for n in range(1, 31)) + "all\nf29\nf30\n"
        equal(execute(place, ident, "cat all; ls").text, expected)
        good(place.cove("stop", ident))
        good(place.cove("start", ident))
        equal(execute(place, ident, "cat all; ls").text, expected, "after a start")


@test
def a_keeper_that_is_killed_loses_no_step_that_was_told(place):
    chance = random.Random(11)
    with staying(place) as ident:
        done = 0
        for _ in range(8):
            for number in range(chance.randrange(1, 4)):
                good(execute(place, ident, f"echo {done + 1} >>log; mkdir -p d{done % 3}; echo {done} >d{done % 3}/f"))
                done += 1
            time.sleep(chance.random() * 0.008)
            os.kill(keeper(place, ident), signal.SIGKILL)
            good(place.cove("start", ident))
            equal(execute(place, ident, "cat log").text, "".join(f"{n}\n" for n in range(1, done + 1)), "all of them")
            equal(execute(place, ident, "ls -d d? | wc -l; test -w .").text, f"{min(done, 3)}\n")


# Back


@test
def a_rollback_brings_the_files_back_exactly(place):
    for name in ("kept", "removed", "renamed", "dir/in", "mode"):
        write(place.work / name, f"{name}\n")
    before = digest(place.work)
    with staying(place) as ident:
        good(execute(place, ident, "echo 1 >new; ln -s new link; ln new hard; mkdir -m 700 d; touch -d 2001-02-03 d/aged; echo h >~/h; mkfifo d/p"))
        looked(place, ident, 1)
        first = look(place, ident)
        good(execute(place, ident, "rm removed link; mv renamed other; mv dir dir2 2>/dev/null || cp -r dir dir2; rm -rf dir; chmod 600 mode; echo 2 >>new; echo x >>kept; rm -r d; rm ~/h; chmod 711 ."))
        last = look(place, ident)
        assert first != last
        equal(good(place.cove("rollback", ident, "1")).text.strip(), ident)
        equal(look(place, ident), first, "after the first step")
        good(execute(place, ident, "echo other >later"))
        good(place.cove("rollback", ident, "0"))
        equal(execute(place, ident, "ls; cat kept removed mode; ls ~ | wc -l").text, "dir\nkept\nmode\nremoved\nrenamed\nkept\nremoved\nmode\n0\n")
        good(place.cove("rollback", ident, "3"))
        equal(look(place, ident), last, "what came later is still there")
        good(place.cove("stop", ident))
        good(place.cove("rollback", ident, "1"))
        good(place.cove("start", ident))
        equal(look(place, ident), first, "of one that has stopped")
        equal(digest(place.work), before, "the host's own files")


@test
def thirty_steps_can_all_be_gone_back_to(place):
    with staying(place) as ident:
        for number in range(1, 31):
            good(execute(place, ident, f"echo {number} >f{number}; echo {number} >>all; rm -f f{number - 2}"))
        for number in (30, 3, 17, 1, 12, 29):
            good(place.cove("rollback", ident, number))
            wanted = "".join(f"{n}\n" for n in range(1, number + 1)) + "all\n" + "".join(f"f{n}\n" for n in sorted((n for n in (number - 1, number) if n > 0), key=str))
            equal(execute(place, ident, "cat all; ls").text, wanted, number)
        for number in range(20):
            good(execute(place, ident, f"echo {number} >>more"))
        equal(execute(place, ident, "wc -l <more; wc -l <all").text, "20\n29\n", "and it goes on from there")


@test
def a_rollback_ends_what_runs(place):
    with staying(place) as ident:
        good(execute(place, ident, "echo 1 >one"))
        looked(place, ident, 1)
        good(execute(place, ident, "sleep 1000 >/dev/null 2>&1 & echo 2 >two"))
        front = start(place, "exec", ident, "--", "sh", "-c", "trap 'echo bye >said; exit 3' TERM; echo x >three; while :; do sleep 0.02; done")
        wait_for(lambda: execute(place, ident, "cat three").code == 0, what="its file")
        good(place.cove("rollback", ident, "1"))
        equal(finish(front).code, 3, "who waits hears of the end")
        equal(execute(place, ident, "ls; ps -e 2>/dev/null | grep -c sleep").text, "one\n0\n")
        good(place.cove("rollback", ident, "2"))
        equal(execute(place, ident, "ls").text, "one\ntwo\n", "what was copied while they ran")
        one_error(place.cove("rollback", ident, "99"), "no step 99")
        one_error(place.cove("rollback", ident, "nothing"), "no snapshot")
        equal(good(place.cove("rollback", f"{ident}@2")).text, f"{ident}\n", "as cove fork has it")
        for words, form in ((("rollback", ident), "cove rollback ID STEP"), (("rollback", f"{ident}@99"), "no step 99"), (("fork", ident, "3"), "ID@STEP"), (("undo", "3", ident), "cove undo ID 2"),
                            (("undo", f"{ident}@3"), "ID@STEP is for cove attach, diff, explore, fork, logs and rollback"), (("diff", f"{ident}@3", "--step", "1"), "--step too"), (("logs", ident, "3"), "cove logs ID@STEP"),
                            (("diff", f"{ident}@99"), "no step 99"), (("diff", f"{ident}@state"), "cove diff ID A..B"), (("attach", ident, "3"), "cove attach ID@STEP"), (("explore", ident, "3", "--", "true"), "ID@STEP")):
            assert form in place.cove(*words).errors, words


@test
def a_step_has_one_name_everywhere(place):
    write(place.work / "icon@1", "old\n")
    with staying(place, "--name", "one") as ident:
        for number in (1, 2):
            good(execute(place, ident, f"echo said {number}; echo {number} >f{number}; echo {number} | tee icon@1 one@1 >/dev/null"))
        for name in (ident, "one", ident[:5]):
            equal(good(place.cove("logs", f"{name}@1")).text, "said 1\n")
            equal(good(place.cove("diff", f"{name}@1")).out, good(place.cove("diff", "--step", "1", name)).out)
            equal(good(place.cove("diff", "--name-only", f"{name}@2", "f2")).text, "f2\n")
        for path in ("icon@1", "./icon@1", "./one@1"):
            equal(place.cove("diff", "--name-only", path).text, path.removeprefix("./") + "\n", "a path that looks so")
        equal(good(place.cove("exec", "-d", "-i", ident, "--", "sh", "-c", "read x; exit 7")).text, "3\n")
        one_error(place.cove("attach", f"{ident}@2"))
        front = start(place, "attach", "one@3", stdin=subprocess.PIPE)
        front.stdin.write(b"x\n")
        front.stdin.flush()
        equal(finish(front).code, 7)


@test
def undo_takes_back_the_last_steps(place):
    with staying(place) as ident:
        for number in (1, 2, 3):
            good(execute(place, ident, f"echo {number} >f{number}"))
        equal(good(place.cove("undo", ident)).text, "2\n")
        equal(execute(place, ident, "ls").text, "f1\nf2\n")
        looked(place, ident, 4)
        equal(good(place.cove("undo", ident)).text, "1\n", "a step that only looked is none to undo, nor is one that was undone")
        equal(execute(place, ident, "ls; echo 6 >f6").text, "f1\n")
        looked(place, ident, 5)
        equal(good(place.cove("rollback", ident, "3")).code, 0, "forward again")
        equal(execute(place, ident, "ls").text, "f1\nf2\nf3\n")
        looked(place, ident, 6)
        equal(good(place.cove("undo", ident, "2")).text, "1\n", "along the line it is on")
        equal(execute(place, ident, "ls").text, "f1\n")
        looked(place, ident, 7)
        equal(good(place.cove("undo", ident)).text, "0\n")
        equal(execute(place, ident, "ls").text, "")
        one_error(place.cove("undo", ident, "99"), "99 steps")


@test
def without_checkpoints_nothing_is_gone_back_to(place):
    with staying(place, "--no-checkpoints") as ident:
        good(execute(place, ident, "echo 1 >one"))
        one_error(place.cove("rollback", ident, "0"), "without checkpoints")
        one_error(place.cove("undo", ident), "without checkpoints")


# Snapshots and forks


@test
def forks_do_not_see_each_other(place):
    write(place.work / "base", "b\n")
    before = digest(place.work)
    with staying(place, "--name", "first") as ident:
        good(execute(place, ident, "echo 1 >one; echo h >~/h; rm base"))
        good(execute(place, ident, "echo 2 >two"))
        forks = good(place.cove("fork", "first", "-n", "3", "--name", "try")).text.split()
        equal(len(set(forks) | {ident}), 4)
        made = {row["id"]: row["created"] for row in json.loads(place.cove("ls", "--json").out)}
        equal(sorted(made, key=made.get), [ident, *forks], "each has its own age")
        try:
            for number, fork in enumerate(forks):
                equal(execute(place, fork, "cat one two ~/h").text, "1\n2\nh\n", "what was there")
                good(execute(place, fork, f"echo {number} >own; echo {number} >>one; rm two"))
            good(execute(place, ident, "echo mine >own"))
            for number, fork in enumerate(forks):
                equal(execute(place, f"try-{number + 1}", "cat own one; ls").text, f"{number}\n1\n{number}\none\nown\n")
            equal(execute(place, ident, "cat own one two").text, "mine\n1\n2\n")
            good(place.cove("stop", forks[0]))
            good(place.cove("start", forks[0]))
            equal(execute(place, forks[0], "cat own").text, "0\n")
            good(place.cove("rollback", forks[0], "0"))
            equal(execute(place, forks[0], "cat one two; ls").text, "1\n2\none\ntwo\n", "its own beginning")
            (early,) = good(place.cove("fork", f"{ident}@1")).text.split()
            forks.append(early)
            equal(execute(place, early, "ls").text, "one\n", "after the first step")
            one_error(place.cove("fork", "first", "--name", "try-1"), "already")
            tree = json.loads(good(place.cove("tree", forks[2], "--json")).out)
            equal((tree["id"], [point["step"] for point in tree["checkpoints"]][:3]), (ident, [0, 1, 2]), "from the first one on")
            equal([sorted(fork["id"] for fork in point["forks"]) for point in tree["checkpoints"]][:3], [[], [early], sorted(forks[:3])])
            shown = good(place.cove("tree", "first")).text
            assert "<- now" in shown and "try-2" in shown, shown
            good(place.cove("rm", "-f", ident))
            equal(execute(place, forks[1], "cat own one").text, "1\n1\n1\n", "without the first one")
            good(place.cove("stop", forks[1]))
            equal(sorted(place.cove("diff", "--name-only", forks[1]).text.split()), ["base", "one", "own"])
        finally:
            for fork in forks:
                place.cove("rm", "-f", fork)
        equal(digest(place.work), before, "the host's own files")


@test
def a_snapshot_outlives_its_sandbox(place):
    with staying(place) as ident:
        good(execute(place, ident, "echo 1 >one"))
        equal(good(place.cove("snapshot", ident, "--name", "good")).text, "good\n")
        one_error(place.cove("snapshot", ident, "--name", "good"), "already")
        one_error(place.cove("snapshot", ident, "--name", "12"), "no name")
        good(execute(place, ident, "rm one; echo 2 >two"))
        good(place.cove("rollback", ident, "good"))
        equal(execute(place, ident, "ls").text, "one\n")
        (row,) = json.loads(good(place.cove("snapshot", "ls", "--json")).out)
        equal((row["name"], row["sandbox"]), ("good", ident))
        assert "good" in place.cove("snapshot", "ls").text
        good(place.cove("rm", "-f", ident))
        assert layers(place), "it is held"
        (fork,) = good(place.cove("fork", "good")).text.split()
        try:
            equal(execute(place, fork, "cat one; ls").text, "1\none\n")
            good(place.cove("stop", fork))
            good(place.cove("snapshot", fork, "--name", "still"))
            equal(good(place.cove("snapshot", "rm", "good", "still")).text, "good\nstill\n")
        finally:
            place.cove("rm", "-f", fork)
        one_error(place.cove("snapshot", "rm", "good"), "no snapshot")
        one_error(place.cove("fork", "good"), "neither")


@test
def forks_share_the_copy_of_a_workspace_and_do_not_see_each_other(place):
    write(place.work / "base", "b\n")
    write(place.work / "dir/below", "d\n")
    write(place.work / "large", "x" * 2_000_000)
    with staying(place, "--workspace", "copy", "--name", "first") as ident:
        good(execute(place, ident, "echo 1 >one; echo more >>base"))
        equal(len(copies(place)), 1)
        forks = good(place.cove("fork", "first", "-n", "2")).text.split()
        try:
            write(place.work / "base", "mine\n")
            shutil.rmtree(place.work / "dir")
            equal(len(copies(place)), 1, "one for all")
            for number, fork in enumerate(forks):
                equal(execute(place, fork, "cat base one dir/below").text, "b\nmore\n1\nd\n", "as it was")
                good(execute(place, fork, f"echo {number} >own; rm large"))
            equal(execute(place, ident, "ls; cat base").text, "base\ndir\nlarge\none\nb\nmore\n")
            good(place.cove("rollback", ident, "0"))
            equal(execute(place, ident, "ls").text, "base\ndir\nlarge\n")
            for step in range(20):
                good(execute(place, forks[0], f"echo {step} >>own"))
            good(place.cove("stop", forks[0]))
            good(place.cove("rm", "-f", ident))
            good(place.cove("start", forks[0]))
            equal(execute(place, forks[0], "cat base one; wc -l <own").text, "b\nmore\n1\n21\n", "without the first one, merged and started again")
            good(place.cove("stop", forks[1]))
            equal(sorted(place.cove("diff", "--name-only", forks[1]).text.split()), ["base", "large", "one", "own"])
            assert "base changed since" in place.cove("diff", "--stat", forks[1]).text
        finally:
            for fork in forks:
                place.cove("rm", "-f", fork)
        equal((copies(place), layers(place)), ([], []), "with the last one it goes")


@test
def a_snapshot_of_a_copy_outlives_the_tree_of_its_owner(place):
    write(place.work / "base", "b\n")
    work = pathlib.Path(str(place.work))
    with staying(place, "--workspace", "copy") as ident:
        good(execute(place, ident, "echo 1 >one"))
        good(place.cove("snapshot", ident, "--name", "kept"))
        good(place.cove("rm", "-f", ident))
        aside = work.with_name("aside")
        work.rename(aside)
        try:
            (fork,) = good(place.cove("fork", "kept", cwd=work.parent)).text.split()
            try:
                equal(execute(place, fork, "pwd; cat base one; echo 2 >two", cwd=work.parent).text, f"{work}\nb\n1\n")
                work.mkdir()
                write(work / "other", "o\n")
                good(place.cove("stop", fork))
                good(place.cove("start", fork))
                equal(execute(place, fork, "ls").text, "base\none\ntwo\n", "another tree at that place is not taken for it")
                good(place.cove("stop", fork))
                one_error(place.cove("apply", fork, "--yes"), "replaced since")
                equal(os.listdir(work), ["other"])
                shutil.rmtree(work)
                equal(good(place.cove("apply", "--to", str(aside), fork, "--yes", cwd=work.parent)).code, 0)
                equal(sorted(os.listdir(aside)), ["base", "one", "two"])
            finally:
                place.cove("rm", "-f", fork, cwd=work.parent)
                place.cove("snapshot", "rm", "kept", cwd=work.parent)
        finally:
            if work.exists():
                shutil.rmtree(work)
            aside.rename(work)
    equal((copies(place), layers(place)), ([], []))


@test
def a_copy_that_could_not_be_taken_leaves_nothing(place):
    write(place.work / "base", "b\n")
    one_error(place.cove("create", "--workspace", "copy", "--name", "NO"), "--name")
    with staying(place, "--workspace", "copy", "--no-checkpoints") as ident:
        equal(execute(place, ident, "cat base").text, "b\n")
        equal(copies(place), [], "it has its own")
        one_error(place.cove("fork", ident), "without checkpoints")


# Home


@test
def diff_apply_and_export_see_one_set_of_changes(place):
    for name, text in (("changed", "old\n"), ("gone", "g\n"), ("dir/a", "a\n"), ("dir/b", "b\n"), ("again", "1\n")):
        write(place.work / name, text)
    with staying(place) as ident:
        for script in ("echo 1 >changed; echo n >new; rm gone", "echo 2 >>changed; rm -r dir; mkdir -p deep/er; echo d >deep/er/d", "mkdir dir; echo c >dir/c; rm again",
                       "echo back >again; chmod 755 new; rm deep/er/d; echo e >deep/er/e"):
            good(execute(place, ident, script))
        looked(place, ident, 4)
        running = place.cove("diff", "--name-only", ident).text
        good(place.cove("stop", ident))
        done = good(place.cove("diff", "--name-only", ident))
        equal(done.text, running, "the same while it ran")
        equal(sorted(line.split()[-1] for line in done.text.splitlines()), ["again", "changed", "deep", "deep/er", "deep/er/e", "dir/a", "dir/b", "dir/c", "gone", "new"])
        assert b"hard link" not in place.cove("diff", ident).out
        good(place.cove("export", ident, "--output", str(place.work.parent / "out.tar")))
        equal(place.cove("apply", ident, "--yes").code, 0)
        found = {str(file.relative_to(place.work)): file.read_text() for file in place.work.rglob("*") if file.is_file()}
        equal(found, {"changed": "1\n2\n", "new": "n\n", "dir/c": "c\n", "again": "back\n", "deep/er/e": "e\n"})
        equal(os.stat(place.work / "new").st_mode & 0o777, 0o755)


@test
def what_the_owner_removed_meanwhile_does_not_come_back(place):
    for name in ("changed", "dir/in", "stays", "again", "moved"):
        write(place.work / name, f"{name}\n")
    with staying(place) as ident:
        for number in range(1, 18):  # so many that they are merged
            good(execute(place, ident, f"echo {number} >>changed; echo {number} >>dir/in; echo {number} >>new; echo {number} >>stays; mkdir -p made; echo {number} >>made/by"))
        good(execute(place, ident, "rm again; echo x >>moved"))
        good(execute(place, ident, "echo mine >again; echo last >>changed; ln new hard"))
        good(place.cove("stop", ident))
        time.sleep(0.05)
        (place.work / "changed").unlink()
        shutil.rmtree(place.work / "dir")
        flags = {row["path"]: row["flags"] for row in json.loads(place.cove("diff", "--json", ident).out)["changes"]}
        wanted = {"changed": True, "dir": True, "dir/in": True, "new": False, "stays": False, "made": False, "made/by": False, "again": False, "moved": False, "hard": False}
        equal({path: "base-changed" in said for path, said in flags.items()}, wanted)
        equal({path for path, said in flags.items() if "hard-link" in said}, {"new", "hard"}, "two names of one file")
        equal(place.cove("apply", ident, "--yes").code, 1, "conflicts")
        equal((sorted(os.listdir(place.work)), (place.work / "new").read_text()), (["again", "hard", "made", "moved", "new", "stays"], "".join(f"{n}\n" for n in range(1, 18))))
        equal([name for name in os.listdir(place.state / "sandboxes" / ident) if "." in name and not name.endswith((".json", ".jsonl"))], [], "what was merged to be read is gone")


adopt_orphans()
main()
