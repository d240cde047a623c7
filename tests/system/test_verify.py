"""cove apply --verify: changes that are tried before they come home."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, finish, one_error, start, wait_for, write  # noqa: E402


def change(place, script, *options):
    equal(place.cove("run", "-q", *options, "--", "sh", "-ec", script).code, 0)
    settle()


def settle():
    wait_for(lambda: not descendants(), what="the end of all guards")


def verify(place, command, *words, **kwargs):
    done = place.cove("apply", "--yes", "--verify", command, *words, **kwargs)
    settle()
    return done


def only_the_kept_one_is_there(place):
    ids = place.cove("ls", "-q").text.split()
    equal(sorted(p.name for p in (place.state / "sandboxes").iterdir() if not p.name.startswith(".")), sorted(ids), "directories of sandboxes")


@test
def only_exit_0_brings_changes_home(place):
    write(place.work / "f", "old\n")
    change(place, "echo new >f; echo added >g")
    before = digest(place.work)
    done = verify(place, "cat f g; exit 3")
    equal((done.code, done.text), (1, "new\nadded\n"), done)
    equal(done.errors, "cove: nothing was brought home: the command of --verify exited with 3\n")
    equal(digest(place.work), before, "the workspace")
    done = verify(place, "grep -q new f && grep -q added g")
    equal(done.code, 0, done)
    equal(((place.work / "f").read_text(), (place.work / "g").read_text()), ("new\n", "added\n"))
    only_the_kept_one_is_there(place)


@test
def the_command_sees_the_chosen_changes_alone_at_the_path_of_the_workspace(place):
    write(place.work / "f", "old\n")
    write(place.work / "sub/keep", "keep\n")
    write(place.work / "secret.pem", "secret\n")
    change(place, "echo new >f; echo a >a; echo b >b; rm sub/keep; echo run >.envrc", "--hide", "*.pem")
    write(place.work / "owner", "the owner's\n")
    done = verify(place, "pwd; ls -A; cat f owner; test ! -e secret.pem", "a", "sub")
    equal(done.code, 0, done)
    equal(done.text.splitlines()[:7], [str(place.work), "a", "f", "owner", "sub", "old", "the owner's"])
    equal(sorted(p.name for p in place.work.iterdir()), ["a", "f", "owner", "secret.pem", "sub"])


@test
def the_command_is_contained_and_what_it_writes_is_gone(place):
    change(place, "echo a >a")
    before = digest(place.work)
    script = f"echo junk >junk; echo evil >a; rm -f b; test ! -e {place.home}/nothing; cat /proc/net/dev | tail -n +3 | grep -v lo: && exit 9; read x && exit 8; exit 1"
    done = verify(place, script)
    equal(done.code, 1, done)
    one_error(done, "exited with 1", code=1)
    equal(digest(place.work), before, "the workspace")
    equal(verify(place, "echo evil >a; echo junk >junk").code, 0)
    equal({p.name: p.read_text() for p in place.work.iterdir()}, {"a": "a\n"})


@test
def what_changes_meanwhile_stops_it(place):
    write(place.work / "other", "old\n")
    change(place, "echo a >a")
    for touch in (lambda: write(place.work / "other", "new\n"), lambda: write(place.work / "more", ""), lambda: os.unlink(place.work / "more")):
        process = start(place, "apply", "--yes", "--verify", "echo ready; sleep 1")
        equal(process.stdout.readline(), b"ready\n")
        touch()
        done = finish(process)
        one_error(done, "workspace changed while", code=1)
        assert not (place.work / "a").exists()
    process = start(place, "apply", "--yes", "--verify", "echo ready; sleep 1")
    equal(process.stdout.readline(), b"ready\n")
    [upper] = [p for p in (place.state / "sandboxes").glob("*/u*/a")]
    upper.write_text("evil\n")
    one_error(finish(process), "sandbox changed while", code=1)
    assert not (place.work / "a").exists()
    equal(verify(place, "true").code, 0)
    settle()
    only_the_kept_one_is_there(place)


@test
def a_conflict_is_told_before_anything_runs(place):
    write(place.work / "f", "old\n")
    change(place, "echo new >f; echo a >a")
    write(place.work / "f", "owner\n")
    done = verify(place, "echo RAN")
    equal(done.code, 1, done)
    assert "RAN" not in done.text and "CONFLICT f" in done.text and "nothing was verified" in done.errors, done
    equal(((place.work / "f").read_text(), (place.work / "a").exists()), ("owner\n", False))
    equal(verify(place, "grep -q owner f", "a").code, 0, "without what is in conflict")


@test
def it_is_bounded_by_the_time_out_and_can_be_interrupted(place):
    change(place, "echo a >a")
    one_error(verify(place, "sleep 60", "--timeout", "300ms"), "exited with 124", code=1)
    process = start(place, "apply", "--yes", "--verify", "echo ready; sleep 60")
    equal(process.stdout.readline(), b"ready\n")
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    assert done.code != 0, done
    assert not (place.work / "a").exists()
    settle()
    only_the_kept_one_is_there(place)
    one_error(verify(place, "true", "--timeout", "soon"), "soon")


@test
def changes_on_a_copy_and_to_another_tree_are_verified_there(place):
    write(place.work / "f", "old\n")
    change(place, "echo new >f", "--workspace", "copy")
    other = place.dir / "other"
    write(other / "f", "old\n")
    os.utime(other / "f", ns=(0, os.stat(place.work / "f").st_mtime_ns))
    write(other / "only", "there\n")
    equal(verify(place, "cat only && grep -q new f", "--to", other).code, 0)
    equal(((other / "f").read_text(), (place.work / "f").read_text()), ("new\n", "old\n"))


if __name__ == "__main__":
    adopt_orphans()
    main()
