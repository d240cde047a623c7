"""cove export: what a sandbox made, as a tar with a manifest."""
import base64
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, one_error, tool, wait_for, write  # noqa: E402

LONG = "n" * 150


def change(place, script, *options):
    equal(place.cove("run", "-q", *options, "--", "sh", "-ec", script).code, 0)
    wait_for(lambda: not descendants(), what="the end of all guards")


MAKE = f"""mkdir -p dist/sub empty '{LONG}'; seq 2000 >dist/a; printf x >dist/sub/b; : >dist/zero; chmod 755 dist/a; ln -s ../dist/a dist/sub/l
echo long >'{LONG}/{LONG}'; ln -s '{LONG}/{LONG}' longlink; echo changed >f; rm gone; mv old new; printf %512s x >block; printf 'bytes' >"$(printf 'odd\\376name')" """


def make(place):
    for name in ("f", "gone"):
        write(place.work / name, name + "\n")
    write(place.work / "old", "renamed\n" * 3)
    change(place, MAKE)


@test
def an_archive_has_what_was_made_and_tar_reads_it(place):
    tool("tar")
    make(place)
    before = digest(place.work)
    target = place.dir / "out.tar"
    equal(place.cove("export", "-o", target).code, 0)
    equal(digest(place.work), before, "the workspace")
    out = place.dir / "out"
    out.mkdir()
    done = subprocess.run(["tar", "--same-permissions", "--no-same-owner", "-xf", target, "-C", out], capture_output=True, text=True, check=False)
    equal((done.returncode, done.stderr), (0, ""))
    equal((out / "dist/a").read_text(), "".join(f"{i}\n" for i in range(1, 2001)))
    equal((out / LONG / LONG).read_text(), "long\n")
    equal(os.readlink(out / "longlink"), f"{LONG}/{LONG}")
    equal(os.readlink(out / "dist/sub/l"), "../dist/a")
    equal(((out / "dist/a").stat().st_mode & 0o777, (out / "empty").is_dir(), (out / "f").read_text(), (out / "new").read_text()),
          (0o755, True, "changed\n", "renamed\n" * 3))
    equal((out / os.fsdecode(b"odd\xfename")).read_text(), "bytes")

    with tarfile.open(target) as archive:
        members = archive.getmembers()
    equal(members[0].name, "MANIFEST.json")
    names = [os.fsencode(m.name) for m in members[1:]]
    equal(names, sorted(names), "the order")
    equal({(m.uid, m.gid, m.uname, m.gname) for m in members}, {(0, 0, "", "")})

    manifest = json.loads((out / "MANIFEST.json").read_text())
    equal(manifest["removed"], [{"path": "gone"}, {"path": "old"}])
    for member in manifest["members"]:
        if member["type"] == "file":
            name = base64.b64decode(member["path_bytes"]) if "path_bytes" in member else member["path"].encode()
            content = (out / os.fsdecode(name)).read_bytes()
            equal((member["size"], member["sha256"]), (len(content), hashlib.sha256(content).hexdigest()), member)
    equal(len(manifest["members"]), len(members) - 1)


@test
def the_same_sandbox_gives_the_same_bytes_and_paths_choose(place):
    make(place)
    first, second = place.cove("export"), place.cove("export", "-o", "-")
    equal((first.code, first.out == second.out), (0, True))
    with tarfile.open(fileobj=io.BytesIO(place.cove("export", "dist", "--exclude", "dist/sub").out)) as archive:
        equal(archive.getnames(), ["MANIFEST.json", "dist", "dist/a", "dist/zero"])
    equal(place.cove("apply", "--yes", "--exclude", LONG).code, 0, "nothing of it hinders apply")


@test
def what_is_home_already_is_exported_and_brought_elsewhere_all_the_same(place):
    for name in ("kept", "old", "gone"):
        write(place.work / name, "one\n")
    shutil.copytree(place.work, place.dir / "copy")
    change(place, "echo two >>old; mkdir d; echo new >d/new; rm gone; echo >>kept; truncate -s 4 kept")
    first = place.cove("export").out
    equal(place.cove("apply", "--yes").code, 0)
    equal(place.cove("diff").out, b"")
    done = place.cove("export")
    equal(done.code, 0, done)
    with tarfile.open(fileobj=io.BytesIO(first)) as before, tarfile.open(fileobj=io.BytesIO(done.out)) as after:
        equal(after.getnames(), before.getnames())
        equal(json.load(after.extractfile("MANIFEST.json")), json.load(before.extractfile("MANIFEST.json")))
    done = place.cove("apply", "--yes", "--to", place.dir / "copy")
    copy = place.dir / "copy"
    equal(((copy / "d/new").read_text(), done.code), ("new\n", 1), done)
    assert "CONFLICT old" in done.text and "CONFLICT gone" in done.text, done
    equal(((copy / "old").read_text(), (copy / "gone").read_text()), ("one\n", "one\n"), "nobody knows any more what these were")


@test
def what_leads_out_is_named_and_nothing_is_written(place):
    change(place, "mkdir d; echo ok >d/ok; ln -s ../../../etc/passwd d/out; ln -s $PWD/d/ok d/absolute; mkfifo d/fifo; echo m >MANIFEST.json")
    target = place.dir / "out.tar"
    write(target, "before")
    done = place.cove("export", "-o", target)
    equal((done.code, target.read_text()), (1, "before"), done)
    for name, why in (("d/out", "leads out"), ("d/absolute", "absolute"), ("d/fifo", "pipe"), ("MANIFEST.json", "manifest")):
        assert any(name in line and why in line for line in done.errors.splitlines()), (name, done.errors)
    equal([p.name for p in place.dir.glob("out.tar*")], ["out.tar"])
    equal(place.cove("export", "-o", target, "d/ok").code, 0)
    equal(tarfile.open(target).getnames(), ["MANIFEST.json", "d", "d/ok"])


@test
def set_id_bits_stay_here_and_what_is_not_there_is_an_error(place):
    change(place, "touch s; chmod 4755 s")
    with tarfile.open(fileobj=io.BytesIO(place.cove("export").out)) as archive:
        equal(archive.getmember("s").mode, 0o755)
    done = place.cove("export", "nothing")
    assert done.code == 125 and done.out == b"" and "neither a sandbox nor a path" in done.errors, done
    one_error(place.cove("export", "-o", place.dir / "no/such/dir"), "no/such/dir")


if __name__ == "__main__":
    adopt_orphans()
    main()
