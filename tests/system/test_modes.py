"""How the workspace is seen: cove run --workspace."""
import json
import os
import pathlib
import pty
import signal
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.disks import mount_small  # noqa: E402
from support.harness import COVE, IDENTITY, UNSAFE, equal, main, skip, test  # noqa: E402
from support.running import (adopt_orphans, descendants, digest, finish, nothing_left, one_error, read_until, start, stop, tool, wait_for, write)  # noqa: E402


def run(place, mode, script, *options, **kwargs):
    done = place.cove("run", "--workspace", mode, *options, "--", "sh", "-c", script, **kwargs)
    wait_for(lambda: not descendants(), what="the end of all guards")
    return done


def kept(place):
    return place.cove("ls", "-q").text.split()


# ro

@test
def read_only_means_that_nothing_is_written_and_nothing_kept(place):
    write(place.work / "f", "old\n")
    before = digest(place.work)
    done = run(place, "ro", "cat f; echo x >f; echo y >new; rm f; mkdir d; echo home >$HOME/ok && cat $HOME/ok")
    equal((done.code, done.text), (0, "old\nhome\n"), done)
    equal(digest(place.work), before, "the workspace")
    equal(kept(place), [], "kept sandboxes")
    assert "new" in run(place, "cow", "echo y >new && ls").text, "the same can be written copy on write"


# copy

def make_tree(work):
    write(work / "plain", "plain\n", 0o640)
    write(work / "d/run", "#!/bin/sh\n", 0o755)
    write(work / "secret.pem", "secret\n")
    os.link(work / "plain", work / "d/hard")
    (work / "link").symlink_to("d/run")
    (work / "out").symlink_to("/nonexistent/elsewhere")
    os.mkfifo(work / "fifo")
    with open(work / "sparse", "wb") as file:
        file.truncate(64 << 20)
        file.seek(32 << 20)
        file.write(b"data")
    (work / "empty").mkdir(mode=0o700)
    os.utime(work / "plain", ns=(1_500_000_000_123_456_789, 1_400_000_000_987_654_321))
    os.utime(work / "d", ns=(1, 1_300_000_000_000_000_007))


def shape(top, names):
    """What a copy must have of each name."""
    found = {}
    for name in names:
        status = os.lstat(top / name)
        found[name] = (stat.filemode(status.st_mode), status.st_mtime_ns, None if stat.S_ISDIR(status.st_mode) else status.st_nlink,
                       os.readlink(top / name) if stat.S_ISLNK(status.st_mode) else None)
    return found


@test
def a_copy_has_modes_times_links_and_holes_and_nothing_that_is_hidden(place):
    make_tree(place.work)
    names = ["plain", "d", "d/run", "d/hard", "link", "out", "sparse", "empty"]
    before = shape(place.work, names)
    done = run(place, "copy", "ls -A; echo new >new; test -e secret.pem && echo LEAK; test -e fifo && echo FIFO; true", "--hide", "*.pem")
    equal(done.code, 0, done)
    equal(done.text.split(), ["d", "empty", "link", "out", "plain", "sparse"])
    assert "fifo" in done.errors and "neither a file nor" in done.errors, done
    [copy] = [p for p in (place.state / "sandboxes" / kept(place)[0]).iterdir() if p.name.startswith("b")]
    equal(shape(copy, names), before)
    equal(os.stat(copy / "plain").st_ino, os.stat(copy / "d/hard").st_ino)
    assert os.stat(copy / "sparse").st_blocks * 512 < 1 << 20, "the hole was filled"
    equal((copy / "sparse").read_bytes(), (place.work / "sparse").read_bytes())
    assert not os.path.lexists(copy / "secret.pem")


@test
def a_run_on_a_copy_does_not_see_what_the_owner_writes_later(place):
    write(place.work / "f", "then\n")
    for mode, seen in (("copy", "then"), ("cow", "now")):
        write(place.work / "f", "then\n")
        process = start(place, "run", "--workspace", mode, "--rm", "--", "sh", "-c", "touch $HOME/x; echo ready; read x; cat f new 2>/dev/null; true",
                        stdin=-1)
        equal(process.stdout.readline(), b"ready\n")
        write(place.work / "f", "now\n")
        write(place.work / "new", "now\n")
        out, err = process.communicate(b"\n", timeout=20)
        equal(out.decode().split()[0], seen, (mode, err))
        equal(b"now" in out, mode == "cow", mode)
        os.unlink(place.work / "new")
    nothing_left(place)


@test
def diff_and_apply_go_by_the_copy(place):
    for name in ("mine", "both", "touched", "gone"):
        write(place.work / name, name + "\n")
    equal(run(place, "copy", "for f in both touched gone; do echo sandbox >$f; done; echo added >added; echo taken >taken").code, 0)
    equal(place.cove("show", "--json").text.count('"mode":"copy"'), 1)
    write(place.work / "mine", "owner\n")  # nobody else's: no conflict
    write(place.work / "both", "owner\n")
    os.utime(place.work / "touched")  # the same content
    os.unlink(place.work / "gone")
    write(place.work / "taken", "owner\n")
    flags = {c["path"]: c["flags"] for c in json.loads(place.cove("diff", "--json").out)["changes"]}
    equal({p: "base-changed" in f for p, f in flags.items()}, {"added": False, "both": True, "gone": True, "taken": True, "touched": False})
    assert "-both\n+sandbox" in place.cove("diff", "both").text, "it is compared with the copy"
    done = place.cove("apply", "--yes")
    equal(done.code, 1, done)
    equal({n: (place.work / n).read_text() for n in ("mine", "both", "touched", "added", "taken")},
          {"mine": "owner\n", "both": "owner\n", "touched": "sandbox\n", "added": "added\n", "taken": "owner\n"})
    assert not (place.work / "gone").exists()


@test
def a_copy_goes_with_its_sandbox(place):
    write(place.work / "f", "f\n")
    equal(run(place, "copy", "echo x >g").code, 0)
    [identity] = kept(place)
    sandbox = place.state / "sandboxes" / identity
    equal(sorted(p.name[0] for p in sandbox.iterdir() if p.name[0] not in "um"), ["b", "r", "s"], "what is kept")
    equal(place.cove("rm", identity).code, 0)
    assert not sandbox.exists()
    equal(run(place, "copy", "cat f").code, 0)
    equal(kept(place), [], "a run that changed nothing")
    nothing_left(place)


@test
def an_interrupted_copy_leaves_nothing(place):
    for i in range(40):
        write(place.work / f"d{i}/f", "x" * 100)
    with open(place.work / "big", "wb") as file:
        for _ in range(96):
            file.write(os.urandom(1 << 20))
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start(place, "run", "--workspace", "copy", "--", "sh", "-c", "echo started")
        wait_for(lambda: any(p.name.startswith("b") for s in (place.state / "sandboxes").glob("*") for p in s.iterdir())
                 or process.poll() is not None, what="the copy")
        process.send_signal(number)
        done = finish(process)
        if done.text:  # it was faster than we
            continue
        equal(done.code, -number, done)
        nothing_left(place)


@test(identities=("root",))
def a_full_disk_is_told_and_leaves_nothing(place):
    tool("mount", "unshare")
    write(place.work / "big", "x" * (8 << 20))
    small = place.dir / "small"
    small.mkdir()
    script = (f"{mount_small(small, 6)} && cp -a {place.state}/images {small}/ 2>/dev/null; cd {place.work}; "
              f"COVE_HOME={small} {COVE} run --workspace copy -- true; code=$?; ls {small}/sandboxes; exit $code")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=place.env, capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 125, done)
    assert "No space left" in done.stderr and "--workspace cow" in done.stderr, done
    equal(done.stdout.split(), [], "what is left")


@test
def a_long_copy_says_how_far_it_is_on_a_terminal_only(place):
    for i in range(40):
        write(place.work / f"f{i}", os.urandom(1 << 20).hex())
    master, slave = pty.openpty()
    process = start(place, "run", "--rm", "--no-tty", "-q", "--workspace", "copy", "--", "true", stderr=slave)
    os.close(slave)
    told = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:
            break
        if not part:
            break
        told += part
    equal(process.wait(20), 0, told)
    os.close(master)
    assert b"copying the workspace" in told or b"\x1b" not in told, told  # a fast disk has nothing to tell
    equal(run(place, "copy", "true", "--rm", "-q").errors, "")


# rw

PROTECTED = {".envrc": "export A=1\n", ".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".vscode/settings.json": "{}\n",
             "sub/.envrc": "export B=1\n", "AGENTS.md": "be good\n"}

ATTACK = """
for f in .envrc .git/config .git/hooks/pre-commit .vscode/settings.json sub/.envrc AGENTS.md; do
  echo evil >>$f; echo evil >$f; rm -f $f; mv $f moved; ln -f /etc/hostname $f; cp src/ok $f; ln -sf ok $f; chmod 777 $f; truncate -s 0 $f
done
mv .git git2; mv .vscode v2; rm -rf .git; rm -rf .vscode; mkdir t && mv t .git; mv -T src .vscode
ln .envrc alias && echo evil >>alias
exec 2>/dev/null
true
"""


def plant(place):
    for name, content in PROTECTED.items():
        write(place.work / name, content)
    (place.work / "CLAUDE.md").symlink_to("AGENTS.md")
    write(place.work / "src/ok", "ok\n")


def protected_now(place):
    return {name: (place.work / name).read_text() if (place.work / name).exists() else None for name in PROTECTED}


@test
def rw_writes_to_the_host_and_says_so_before_and_after(place):
    write(place.work / "src/ok", "ok\n")
    report = place.dir / "report.json"
    done = run(place, "rw", "echo changed >src/ok; echo new >new; mkdir d; rm -f gone", "--summary", "--report", report)
    equal(done.code, 0, done)
    equal(((place.work / "src/ok").read_text(), (place.work / "new").read_text(), (place.work / "d").is_dir()), ("changed\n", "new\n", True))
    lines = done.errors.splitlines()
    assert "--workspace rw" in lines[0] and str(place.work) in lines[0], lines
    assert any("went straight to the workspace" in line for line in lines), lines
    told = json.loads(report.read_text())
    equal((told["workspace_mode"], told["set_aside"], told["kept"]), ("rw", [], False))
    equal(os.stat(place.work / "new").st_uid, os.geteuid(), "whose the new file is")
    equal(kept(place), [])
    nothing_left(place)


@test
def in_rw_no_link_that_is_made_inside_leads_a_report_out(place):
    mine, report, elsewhere = place.dir / "mine", place.work / "report.json", place.dir / "elsewhere"
    write(mine, "owner's\n")
    elsewhere.mkdir()
    done = run(place, "rw", f"rm -f report.json; ln -s {mine} report.json", "--report", report)
    equal((done.code, mine.read_text()), (0, "owner's\n"), done)
    assert not report.is_symlink() and json.loads(report.read_text())["workspace_mode"] == "rw", "it takes its name"
    (place.work / "out").mkdir()
    done = run(place, "rw", f"mv out was; ln -s {elsewhere} out", "--report", place.work / "out/report.json")
    equal((done.code, list(elsewhere.iterdir())), (0, []), done)
    assert json.loads((place.work / "was/report.json").read_text())["workspace_mode"] == "rw", "where it was looked up"
    # The control: a link of the owner's own is followed.
    (place.work / "mine.json").symlink_to(mine)
    done = run(place, "rw", "true", "--report", place.work / "mine.json")
    assert done.code == 0 and '"workspace_mode":"rw"' in mine.read_text(), (done, mine.read_text())


@test
def in_rw_what_acts_by_merely_being_there_stays_as_it_is(place):
    plant(place)
    done = run(place, "rw", ATTACK)
    equal(done.code, 0, done)
    equal(protected_now(place), PROTECTED, "protected files")
    equal(os.readlink(place.work / "CLAUDE.md"), "AGENTS.md")
    assert not (place.work / "alias").exists()

    # The control: the same attack, with nothing mounted over them.
    control = run(place, "rw", ATTACK, binary=UNSAFE, env={"COVE_UNSAFE_WITHOUT": "protect"})
    changed = [name for name, content in protected_now(place).items() if content != PROTECTED[name]]
    assert {".envrc", ".git/config", "AGENTS.md"} <= set(changed), (changed, control)


@test
def what_is_made_of_that_kind_is_taken_out_and_asked_for(place):
    plant(place)
    script = """mkdir -p deep/er .idea; echo evil >deep/er/.envrc; echo x >.idea/workspace.xml; echo ordinary >deep/er/file; ln -s .git/hooks trick;
        git init -q --bare bare 2>/dev/null; touch suid; chmod 4755 suid; mkdir -m 0 closed"""
    done = run(place, "rw", script, "--report", place.dir / "report.json")
    equal(done.code, 0, done)
    aside = set(json.loads((place.dir / "report.json").read_text())["set_aside"])
    assert {"deep/er/.envrc", ".idea", "trick", "suid"} <= aside, aside
    for path in aside | {"closed"} if IDENTITY != "root" else aside:
        assert not os.path.lexists(place.work / path), path
        assert path in done.errors, path
    equal((place.work / "deep/er/file").read_text(), "ordinary\n")
    equal(protected_now(place), PROTECTED)

    paths = place.cove("diff", "--name-only").text.split("\n")
    assert {"deep/er/.envrc", ".idea/workspace.xml"} <= set(paths) and "deep/er/file" not in paths, paths
    done = place.cove("apply", "--yes")
    assert not (place.work / "deep/er/.envrc").exists(), done
    done = place.cove("apply", "--yes", "--allow-autorun", "deep/er/.envrc", "deep/er/.envrc")
    equal((place.work / "deep/er/.envrc").read_text(), "evil\n", done)


@test(identities=("root",))
def what_cannot_be_taken_out_is_in_the_report(place):
    report = place.dir / "report.json"
    process = start(place, "run", "--workspace", "rw", "--report", report, "--", "sh", "-c", "echo evil >.envrc; echo evil >.vimrc; echo here; read x", stdin=subprocess.PIPE)
    try:
        read_until(process.stdout, b"here")
        if subprocess.run(["chattr", "+i", place.work / ".envrc"], capture_output=True).returncode:
            skip("kernel: this file system knows no immutable files")
        process.stdin.write(b"\n")
        process.stdin.flush()
        done = finish(process)
    finally:
        subprocess.run(["chattr", "-i", place.work / ".envrc"], capture_output=True)
        stop(process)
    told = json.loads(report.read_text())
    equal((told["set_aside"], len(told["not_set_aside"])), ([".vimrc"], 1), told)
    assert told["not_set_aside"][0].startswith(".envrc (") and "could NOT be taken out" in done.errors, (told, done)


@test
def what_was_taken_out_is_kept_with_rm_too(place):
    done = run(place, "rw", "echo evil >.envrc; echo ok >ok", "--rm")
    equal(done.code, 0, done)
    equal(sorted(p.name for p in place.work.iterdir()), ["ok"])
    equal((len(kept(place)), place.cove("diff", "--name-only").text.split()), (1, [".envrc"]), "it may be the owner's")
    equal(place.cove("rm", *kept(place)).code, 0)
    equal(run(place, "rw", "echo ok >ok2; echo x >$HOME/x", "--rm").code, 0)
    nothing_left(place)


@test
def what_takes_the_place_of_something_protected_is_taken_out(place):
    write(place.work / "sub/.envrc", "owner\n")
    write(place.work / "other", "x\n")
    done = run(place, "rw", "mv sub sub2 && mkdir sub && echo evil >sub/.envrc && echo fine >sub/fine", "-q")
    equal((place.work / "sub2/.envrc").read_text(), "owner\n", done)
    equal(((place.work / "sub/.envrc").exists(), (place.work / "sub/fine").read_text()), (False, "fine\n"), done)
    assert "sub/.envrc" in place.cove("diff", "--name-only").text


@test
def a_workspace_does_not_become_a_repository(place):
    write(place.work / "f", "x\n")
    done = run(place, "rw", "mkdir objects refs; echo 'ref: refs/heads/main' >HEAD; printf '[core]\\n\\tbare = true\\n' >config; echo y >f", "-q")
    equal(sorted(path.name for path in place.work.iterdir()), ["f"], done)
    equal((place.work / "f").read_text(), "y\n")


@test
def a_closed_directory_keeps_nothing_from_being_taken_out(place):
    write(place.work / "f", "x\n")
    done = run(place, "rw", "echo evil >.envrc; mkdir d e; touch d/x; chmod 400 d; echo evil >e/.envrc; chmod 500 e", "-q")
    left = [str(path.relative_to(place.work)) for path in place.work.rglob(".envrc")]
    equal(left, [], done)
    for name in ("d", "e"):
        if (place.work / name).exists():
            (place.work / name).chmod(0o700)


@test
def hidden_files_cannot_be_read_or_written_in_rw(place):
    write(place.work / "key.pem", "secret\n")
    write(place.work / "private/x", "secret\n")
    done = run(place, "rw", "cat key.pem private/x; echo evil >key.pem; echo evil >private/x; rm -rf key.pem private; ls private", "--hide", "*.pem",
               "--hide", "private")
    assert "secret" not in done.text + done.errors, done
    equal(((place.work / "key.pem").read_text(), (place.work / "private/x").read_text()), ("secret\n", "secret\n"))


# which modes there are

@test
def an_unknown_mode_is_refused_and_the_known_ones_are_listed(place):
    one_error(place.cove("run", "--rm", "--workspace", "wild", "--", "true"), "wild", "rw, live, cow, copy, ro")


if __name__ == "__main__":
    adopt_orphans()
    main()
