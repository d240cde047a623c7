"""Bringing work home when the sandbox made it hard, or the owner's tree does."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.disks import mount_small  # noqa: E402
from support.harness import COVE, IDENTITY, PATIENCE, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, one_error, tool, wait_for, write  # noqa: E402


def change(place, script, *options, program=("sh", "-ec")):
    done = place.cove("run", "-q", *options, "--", *program, script)
    equal(done.code, 0, done)
    wait_for(lambda: not descendants(), seconds=20, what="the end of all guards")


def python(place, script):
    change(place, script, program=("/usr/bin/python3", "-c"))


def words_of(done):
    """The first word of each line of `cove apply` -> how often."""
    found = {}
    for line in done.text.splitlines()[:-1]:
        found[line.split()[0]] = found.get(line.split()[0], 0) + 1
    return found


def beside_of(name):
    """The name that is used for a moment, as the program computes it."""
    total = 0xcbf29ce484222325
    for byte in os.fsencode(name):
        total = ((total ^ byte) * 0x100000001b3) % 2 ** 64
    return f".cove-apply-{total:016x}"


# What the sandbox may have made

@test
def names_of_any_bytes_come_home_as_they_are(place):
    names = [b"new\nline", b"esc\x1b[2J", b"-rf", b"--yes", b"bad\xff\xfe", b" blank ", b"x" * 255, "\u202egpj.exe".encode(), b"a\\b", b"'q\"", b"tab\t", b"..x", b"*?[", b"\x01"]
    write(place.work / "plant.py", f"import os\nfor i, name in enumerate({names!r}):\n    os.mkdir(b'd%d' % i)\n    open(b'd%d/' % i + name, 'wb').write(name)\n    open(name, 'wb').write(name)\n")
    change(place, "/usr/bin/python3 plant.py")
    equal(place.cove("apply", "--yes").code, 0)
    for i, name in enumerate(names):
        for path in (os.fsencode(place.work) + b"/" + name, os.fsencode(place.work) + b"/d%d/" % i + name):
            equal(open(path, "rb").read(), name)
    equal(place.cove("diff", "--name-only").out, b"")


@test
def deep_trees_come_home_and_what_no_call_can_name_is_said(place):
    python(place, "import os\nfor i in range(300):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').write('deep')")
    done = place.cove("apply", "--yes")
    equal((done.code, (place.work / ("d/" * 300) / "f").read_text()), (0, "deep"))
    python(place, "import os\nopen('seen', 'w')\nfor i in range(3000):\n    os.mkdir('e'); os.chdir('e')\nopen('f', 'w').write('deeper')")
    done = place.cove("diff", "--stat")
    assert done.code == 0 and done.text.count("too deep") == 1 and "seen" in done.text, done
    done = place.cove("apply", "--yes")
    assert done.code == 1 and "too deep" in done.text and "1 refused" in done.text and (place.work / "seen").exists(), done
    one_error(place.cove("export", "-o", place.dir / "x.tar"), "too deep", code=1)
    subprocess.run(["rm", "-rf", place.work / "e"], check=True)  # deeper than Python's own way goes
    equal(place.cove("rm", "--force", place.cove("ls", "-q").text.split()[0]).code, 0)


@test
def a_pipe_keeps_nobody_waiting(place):
    write(place.work / "file", "x\n")
    os.mkfifo(place.work / "owners-pipe")
    change(place, "mkfifo pipe; rm file; mkfifo file; rm owners-pipe; echo now >owners-pipe; mkdir d; mkfifo d/pipe")
    began = time.monotonic()
    place.cove("diff", timeout=10)
    done = place.cove("apply", "--yes", timeout=10)
    assert time.monotonic() - began < 8 * PATIENCE, "it waited"
    equal(words_of(done), {"REFUSED": 3, "done": 2}, done)
    equal(((place.work / "file").read_text(), (place.work / "owners-pipe").read_text()), ("x\n", "now\n"))


@test
def a_file_of_a_terabyte_without_data_comes_home_without_filling_the_disk(place):
    change(place, "truncate -s 1T hole; echo end >>hole; truncate -s 1T all")
    began = time.monotonic()
    place.cove("diff", timeout=30)
    equal(place.cove("apply", "--yes", timeout=30).code, 0)
    assert time.monotonic() - began < 20 * PATIENCE, f"{time.monotonic() - began} s"
    hole = (place.work / "hole").stat()
    equal((hole.st_size, (place.work / "all").stat().st_size), (2 ** 40 + 4, 2 ** 40))
    assert hole.st_blocks * 512 < 1 << 20, hole
    with open(place.work / "hole", "rb") as file:
        file.seek(2 ** 40)
        equal(file.read(), b"end\n")
    equal(place.cove("diff", "--name-only", timeout=30).out, b"")


@test
def what_nobody_may_read_is_refused_or_comes_home_whole(place):
    write(place.work / "closed-now", "old\n")
    change(place, "echo secret >f; chmod 0 f; mkdir d; echo x >d/x; chmod 0 d; chmod 0 closed-now; echo fine >fine; mkdir half; echo y >half/y; chmod 444 half")
    shown = place.cove("diff", "--name-only").text.split()
    equal([name for name in ("f", "d", "closed-now", "fine", "half") if name not in shown], [])
    done = place.cove("apply", "--yes")
    equal((place.work / "fine").read_text(), "fine\n")
    if IDENTITY == "root":
        equal((done.code, (place.work / "f").read_text(), (place.work / "d/x").read_text()), (0, "secret\n", "x\n"), done)
        equal([(place.work / name).stat().st_mode & 0o777 for name in ("f", "d", "half")], [0, 0, 0o444])
    else:
        assert done.code == 1 and "cannot be read" in done.text and not (place.work / "f").exists(), done


@test
def a_name_that_apply_uses_for_a_moment_cannot_be_planted(place):
    write(place.work / "target", "old\n")
    planted = beside_of("target")
    change(place, f"echo planted >{planted}; ln -s /etc/passwd {beside_of('other')}; echo new >target; echo new >other; mkdir {beside_of('third')}; echo x >{beside_of('third')}/x; echo new >third")
    done = place.cove("apply", "--yes")
    equal([(place.work / name).read_text() for name in ("target", "other", "third")], ["new\n"] * 3, done)
    equal(sorted(path.name for path in place.work.iterdir()), ["other", "target", "third"], done)


@test
def what_the_owner_has_under_such_a_name_is_not_removed(place):
    write(place.work / "target", "old\n")
    change(place, "echo new >target")
    mine = write(place.work / beside_of("target"), "the only copy\n")
    done = place.cove("apply", "--yes")
    assert done.code == 1 and "may be yours" in done.text, done
    equal((mine.read_text(), (place.work / "target").read_text()), ("the only copy\n", "old\n"))


@test
def twenty_thousand_files_take_seconds(place):
    python(place, "import os\nfor i in range(100):\n    os.mkdir(f'd{i}')\n    for k in range(200):\n        open(f'd{i}/{k}', 'w').write('x')")
    began = time.monotonic()
    equal(place.cove("apply", "--yes", timeout=120).code, 0)
    assert time.monotonic() - began < 60 * PATIENCE
    equal(len(list((place.work / "d99").iterdir())), 200)


# What the owner asks for

@test
def what_is_excluded_stays_also_as_a_directory_and_as_the_origin_of_a_rename(place):
    write(place.work / "keep/file", "old\n")
    write(place.work / "moved", "the owner's\n")
    change(place, "echo new >keep/file; echo new >keep/more; mv moved elsewhere; echo other >other")
    done = place.cove("apply", "--yes", "--exclude", "keep/", "--exclude", "./moved")
    equal(done.code, 0, done)
    equal(((place.work / "keep/file").read_text(), (place.work / "moved").read_text()), ("old\n", "the owner's\n"), done)
    equal(sorted(path.name for path in place.work.iterdir()), ["keep", "moved", "other"])


@test
def consent_to_all_of_a_tree_is_no_consent_to_what_acts_by_being_there(place):
    change(place, "echo x >.envrc; mkdir sub; echo x >sub/.envrc; echo y >ordinary")
    for all_of_it in (".", "./", "", "/"):
        place.cove("apply", "--yes", "--allow-autorun", all_of_it)
        equal(sorted(str(path.relative_to(place.work)) for path in place.work.rglob("*")), ["ordinary", "sub"], all_of_it)


@test
def the_last_piece_of_a_repository_is_asked_for_also_if_it_is_a_directory(place):
    change(place, "mkdir -p s/objects; echo 'ref: refs/heads/main' >s/HEAD; echo x >s/config; echo x >s/objects/keep")
    place.cove("apply", "--yes")
    change(place, "mkdir -p s/refs; echo fine >fine")
    done = place.cove("apply", "--yes")
    equal(((place.work / "s/refs").exists(), (place.work / "s/HEAD").exists(), (place.work / "fine").exists()), (False, True, True), done)
    place.cove("apply", "--yes", "--allow-autorun", "s/refs")
    assert (place.work / "s/refs").exists(), "it comes when it is named"


@test
def a_mode_does_not_go_through_a_hard_link(place):
    write(place.dir / "outside", "secret\n", 0o600)
    os.link(place.dir / "outside", place.work / "o")
    change(place, "chmod 666 o")
    done = place.cove("apply", "--yes")
    equal((place.dir / "outside").stat().st_mode & 0o777, 0o600, done)


# What the owner's tree may be

@test
def a_tree_that_cannot_be_written_stays_as_it_is(place):
    write(place.work / "shut/file", "old\n")
    write(place.work / "file", "old\n")
    change(place, "chmod u+w shut; echo new >shut/file; echo more >shut/more; echo new >file")
    (place.work / "shut").chmod(0o555)
    done = place.cove("apply", "--yes")
    equal((place.work / "file").read_text(), "new\n")
    if IDENTITY != "root":
        equal(((place.work / "shut/file").read_text(), done.code), ("old\n", 1), done)
        assert "Permission denied" in done.text, done
    (place.work / "shut").chmod(0o755)
    place.cove("apply", "--yes")
    equal(sorted(path.name for path in (place.work / "shut").iterdir()), ["file", "more"])


@test
def modes_of_directories_come_home_after_what_is_in_them(place):
    write(place.work / "was-open/file", "old\n")
    change(place, "mkdir shut; echo x >shut/x; chmod 555 shut; echo new >was-open/file; echo more >was-open/more; chmod 500 was-open")
    equal(place.cove("apply", "--yes").code, 0)
    equal([(place.work / name).stat().st_mode & 0o777 for name in ("shut", "was-open")], [0o555, 0o500])
    equal(((place.work / "shut/x").read_text(), (place.work / "was-open/more").read_text()), ("x\n", "more\n"))
    equal(place.cove("diff", "--name-only").out, b"")


@test
def owners_and_groups_of_the_tree_stay(place):
    write(place.work / "file", "old\n")
    (place.work / "shared").mkdir()
    (place.work / "shared").chmod(0o2775)
    if IDENTITY == "root":
        os.chown(place.work / "file", 1234, 2345)
        os.chown(place.work / "shared", 1234, 2345)
        (place.work / "shared").chmod(0o2777)  # to the sandbox these are somebody else's
        (place.work / "file").chmod(0o666)
    change(place, "echo new >file; echo x >shared/x; mkdir shared/d; echo y >shared/d/y")
    before = (place.work / "file").stat()
    equal(place.cove("apply", "--yes").code, 0)
    after = (place.work / "file").stat()
    equal((after.st_uid, after.st_gid), (before.st_uid, before.st_gid))
    equal((place.work / "shared/d").stat().st_mode & 0o7000, 0o2000, "a directory gives its group on")
    equal({(place.work / "shared" / name).stat().st_gid for name in ("x", "d", "d/y")}, {(place.work / "shared").stat().st_gid})


@test(id="Z-19")
def two_at_once_do_not_disturb_each_other(place):
    tool("strace")
    change(place, "for i in 1 2 3; do head -c 100000 /dev/zero | tr '\\0' n >f$i; done")
    trace = place.dir / "trace"
    first = subprocess.Popen(["strace", "-qq", "-o", trace, "-e", "trace=fchmod", "-e", "inject=fchmod:signal=STOP:when=2", COVE, "apply", "--yes"], cwd=place.work, env=place.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: trace.exists() and "stopped by" in trace.read_text(), seconds=20, what="the stop")
    one_error(place.cove("apply", "--yes"), "at work")
    os.kill(int(open(f"/proc/{first.pid}/task/{first.pid}/children").read()), signal.SIGCONT)
    equal((first.communicate(timeout=30)[1], first.returncode), (b"", 0))
    equal({path.name: path.read_bytes() for path in place.work.iterdir()}, {f"f{i}": b"n" * 100000 for i in (1, 2, 3)})
    equal(place.cove("apply", "--yes").code, 0)


@test
def what_does_not_fit_on_the_disk_is_refused_before_and_a_part_of_it_comes(place):
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    work = place.dir / "small"
    work.mkdir()
    script = f"""{mount_small(work, 3, "755")} && cd {work} && for i in 1 2 3 4; do head -c 400000 /dev/zero | tr '\\0' o >f$i; done
"$0" run -q -- sh -c 'for i in 1 2 3 4; do head -c 900000 /dev/zero | tr "\\0" n >f$i; done; echo ok >small'; echo "run $?"
"$0" apply --yes 2>&1; echo "apply $?"; sizes() {{ for f in f1 f2 f3 f4; do echo "$1 $(wc -c <$f) $(tr -d 'n\\n' <$f | wc -c)"; done; }}; sizes all
"$0" apply --yes f1 small; echo "apply $?"; sizes some; ls -A | grep cove-apply; true"""
    done = subprocess.run(["unshare", *become, "--mount", "--propagation", "private", "sh", "-c", script, COVE], cwd=place.dir, env=place.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if b"mount: " in done.stderr or b"unshare: " in done.stderr:
        skip("kernel: this user cannot mount")
    text = done.stdout.decode()
    assert "run 0" in text and "left on the disk" in text, done
    equal(re.findall(r"^apply (\d+)$", text, re.M), ["125", "0"], done)
    equal(re.findall(r"^all (\d+ \d+)$", text, re.M), ["400000 400000"] * 4, done)
    equal(re.findall(r"^some (\d+ \d+)$", text, re.M), ["900000 0"] + ["400000 400000"] * 3, done)
    assert "cove-apply" not in text, done


@test
def a_directory_that_is_a_mount_point_by_now_is_left_alone(place):
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    write(place.work / "sub/file", "old\n")
    change(place, "echo new >sub/file; echo fine >fine")
    before = digest(place.work / "sub")
    script = f'mount -t tmpfs t {place.work}/sub && echo other >{place.work}/sub/file && "$0" apply --yes; echo "apply $?"; cat {place.work}/sub/file; umount {place.work}/sub'
    done = subprocess.run(["unshare", *become, "--mount", "--propagation", "private", "sh", "-c", script, COVE], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if b"mount: " in done.stderr or b"unshare: " in done.stderr:
        skip("kernel: this user cannot mount")
    text = done.stdout.decode()
    assert "apply 1" in text and text.endswith("other\n"), done
    equal((digest(place.work / "sub"), (place.work / "fine").read_text()), (before, "fine\n"))


if __name__ == "__main__":
    adopt_orphans()
    main()
