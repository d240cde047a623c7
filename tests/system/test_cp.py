"""cove cp: files into a sandbox that stays, and out of it."""
import contextlib
import io
import json
import os
import pathlib
import stat
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, nothing_left, one_error, reap, start, stop, wait_for, write  # noqa: E402


@contextlib.contextmanager
def staying(place, *options):
    done = place.cove("create", "--name", "box", *options)
    equal((done.code, done.err), (0, b""), done)
    try:
        yield done.text.strip()
    finally:
        place.cove("rm", "-f", "box")
        reap()
    nothing_left(place)


def inside(place, script):
    done = place.cove("exec", "box", "--", "sh", "-c", script)
    equal((done.code, done.err), (0, b""), done)
    return done.text


def copy(place, *words, **kwargs):
    done = place.cove("cp", "-q", *words, **kwargs)
    equal((done.code, done.err), (0, b""), done)
    return done


def facts(top):
    """Names, kinds, modes, times, links and contents of a tree."""
    found = {}
    for path in [top, *sorted(top.rglob("*"))]:
        info = path.lstat()
        kind = stat.S_IFMT(info.st_mode)
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(top))] = (kind, path.is_symlink() or stat.S_IMODE(info.st_mode), path.is_symlink() or info.st_mtime_ns, content)
    return found


def example(top):
    write(top / "plain", "text\n", 0o640)
    write(top / "deep/er/tool", "#!/bin/sh\necho tool\n", 0o755)
    write(top / "odd \n\t'\udcff".encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"), b"\0\xff")
    (top / "empty").mkdir(mode=0o700)
    (top / "link").symlink_to("deep/er/tool")
    (top / "dangling").symlink_to("/no/such/file")
    for path in top.rglob("*"):
        os.utime(path, ns=(10**18, 10**18 + 123456789), follow_symlinks=False)
    return top


@test
def a_tree_goes_in_and_comes_out_the_same(place):
    tree = example(place.dir / "tree")
    with staying(place):
        copy(place, str(tree), "box:/tmp/in")
        equal(inside(place, "/tmp/in/link; cat /tmp/in/plain; readlink /tmp/in/dangling; stat -c %a /tmp/in/plain /tmp/in/empty"), "tool\ntext\n/no/such/file\n640\n700\n")
        copy(place, "box:/tmp/in", str(place.dir / "out"))
        before, after = facts(tree), facts(place.dir / "out")
        before.pop("."), after.pop(".")
        equal(after, before)
        equal(list(place.work.iterdir()), [], "the workspace of the host")


def steps(place):
    return json.loads(place.cove("steps", "--json", "box").out)["steps"]


@test
def what_is_copied_in_is_a_step_of_its_own(place):
    tree = example(place.dir / "tree")
    with staying(place):
        inside(place, "echo 1 >first")
        copy(place, str(tree), "box:in")
        copy(place, "box:in/plain", str(place.dir / "out"))  # which changes nothing
        inside(place, "echo 2 >second")
        wait_for(lambda: all(step["added"] is not None for step in steps(place)), what="the counts")
        told = [(step["kind"], step["argv"][0], step["exit"], step["added"] > 1) for step in steps(place)]
        equal(told, [(None, "sh", 0, False), ("cp", "cp", 0, True), (None, "sh", 0, False)])
        equal(steps(place)[1]["argv"], ["cp", str(tree), "in"])
        equal(steps(place)[1]["stdout_bytes"], 0, "what the two programs say to each other is nobody's output")
        equal(place.cove("undo", "box", "2").code, 0)
        equal(inside(place, "ls"), "first\n", "both are gone")
        write(place.work / "late", "late\n")
        copy(place, "late", "box:late")
        done = place.cove("exec", "box", "--", "cat", "late")
        assert done.text == "late\n", done


@test
def single_files_go_where_docker_would_put_them(place):
    write(place.work / "one", "1")
    with staying(place):
        copy(place, "one", "box:")
        copy(place, "one", "box:two")
        inside(place, "mkdir d")
        copy(place, "one", "box:d/")
        copy(place, str(place.work / "one"), f"box:{place.work}/d/three")
        equal(inside(place, "cat one two d/one d/three; rm one two d/one d/three; echo new >fresh"), "1111")
        copy(place, "box:fresh", str(place.dir / "taken"))
        copy(place, "box:fresh", str(place.dir))
        equal([(place.dir / name).read_text() for name in ("taken", "fresh")], ["new\n", "new\n"])


@test
def archives_go_through_pipes(place):
    tree = example(place.dir / "tree")
    packed = subprocess.run(["tar", "c", "-C", place.dir, "tree"], stdout=subprocess.PIPE, check=True).stdout
    with staying(place):
        copy(place, "-", "box:/tmp", input=packed)
        equal(inside(place, "/tmp/tree/link"), "tool\n")
        done = copy(place, "box:/tmp/tree", "-")
        with tarfile.open(fileobj=io.BytesIO(done.out)) as archive:
            names = {member.name for member in archive}
            equal(archive.extractfile("tree/plain").read(), b"text\n")
        assert {"tree/plain", "tree/deep/er/tool", "tree/link", "tree/empty"} <= names, names


@test
def a_hundred_megabytes_go_both_ways_and_are_exact(place):
    blob = place.dir / "blob"
    with open(blob, "wb") as file:
        for n in range(100):
            file.write(bytes([n]) * (1 << 20))
    with staying(place):
        copy(place, str(blob), "box:/tmp/blob")
        copy(place, "box:/tmp/blob", str(place.dir / "back"))
        assert subprocess.run(["cmp", blob, place.dir / "back"]).returncode == 0
        done = place.cove("cp", "--json", "box:/tmp/blob", str(place.dir / "again"))
        equal((json.loads(done.out)["files"], json.loads(done.out)["bytes"]), (1, 100 << 20), done)


@test
def mistakes_are_told(place):
    write(place.work / "file", "x")
    (place.work / "dir").mkdir()
    with staying(place):
        one_error(place.cove("cp", "-q", "box:/nowhere", "x"), "/nowhere")
        one_error(place.cove("cp", "-q", "nowhere", "box:/tmp"), "nowhere")
        one_error(place.cove("cp", "-q", "file", "box:/usr/bin/x"), "Read-only")
        one_error(place.cove("cp", "-q", "file", "box:/tmp/no/such/x"), "/tmp/no/such")
        one_error(place.cove("cp", "file", "dir"), "needs two paths")
        one_error(place.cove("cp", "-q", "file", "other:/tmp"), "there is no sandbox")
        place.cove("stop", "box")
        one_error(place.cove("cp", "-q", "file", "box:/tmp"), "does not run")
        place.cove("start", "box")
        equal(sorted(p.name for p in place.work.iterdir()), ["dir", "file"], "nothing came home")


@test(id="FS-05")
def links_inside_lead_a_copy_nowhere_outside(place):
    canary = write(place.dir / "canary", "secret of the host\n")
    with staying(place) as ident:
        inside(place, f"ln -s {canary} abs; ln -s /proc/self/root/{canary} magic; ln -s /proc/1/root proc; ln -s ../../../../../../../../{canary} up; mkdir d; ln -s {place.dir} d/out")
        for name in ("abs", "magic", "up", "proc/etc/hostname", f"d/out/{canary.name}"):
            for option in ((), ("-L",)):
                done = place.cove("cp", "-q", *option, f"box:{place.work}/{name}", str(place.dir / "taken"))
                taken = place.dir / "taken"
                content = taken.read_text() if taken.is_file() and not taken.is_symlink() else ""
                assert "secret" not in content, f"{name} {option}: {done!r}"
                if taken.is_symlink() or taken.exists():
                    taken.unlink()
        write(place.dir / "payload", "overwritten")
        for name in ("abs", "up", f"d/out/{canary.name}", "magic"):
            place.cove("cp", "-q", str(place.dir / "payload"), f"box:{place.work}/{name}")
        equal(canary.read_text(), "secret of the host\n", "the host's file")
        (link,) = [*(place.state / "sandboxes" / ident).glob("u*/d/out"), *place.state.glob("layers/*/u*/d/out")]
        assert "secret" in (link / canary.name).read_text(), "the control: who follows such a link outside is led there"


@test(id="FS-06")
def names_that_are_swapped_inside_lead_a_copy_nowhere_outside(place):
    write(place.dir / "host/canary", "secret of the host\n")
    swap = ("import os,sys\n"
            "import ctypes\n"
            "r = ctypes.CDLL(None).renameat2\n"
            "while True: r(-100, b'a', -100, b'b', 2)\n")
    with staying(place):
        inside(place, f"mkdir a; echo harmless >a/canary; ln -s {place.dir}/host b; echo '{swap}' >swap.py")
        racer = start(place, "exec", "box", "--", "python3", "swap.py")
        hits = 0
        for turn in range(60):
            target = place.dir / f"t{turn}"
            place.cove("cp", "-q", f"box:{place.work}/a/canary", str(target))
            hits += target.exists() and "secret" in target.read_text()
            place.cove("cp", "-q", str(place.dir / "host/canary"), f"box:{place.work}/a/planted")
        stop(racer)
        equal((hits, [p.name for p in (place.dir / "host").iterdir()]), (0, ["canary"]), "read from, or written to, the host")


adopt_orphans()
main()
