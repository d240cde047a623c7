"""OVL: layers and diff."""
import os
import subprocess

from attack import COVE, IDENTITY, all_refused, attack, control_fires, equal, fingerprint, main, skip, test, unchanged
from home import apply, changes, descendants, layer, leave, names_below, wait_for, write
from support.disks import mount_small
from support.running import start


def special_bits(path):
    bits = path.lstat().st_mode & 0o7000
    names = [name for name in os.listxattr(path, follow_symlinks=False) if name == "security.capability"]
    return (bits, names)


@test(id="OVL-01")
def what_is_copied_up_has_no_rights_of_its_own(place):
    for name in ("suid", "plain"):
        write(place.work / name, "#!/bin/sh\n", 0o755)
    (place.work / "suid").chmod(0o6755)
    if IDENTITY == "root":
        os.setxattr(place.work / "suid", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
    control_fires(special_bits(place.work / "suid")[0] == 0o6000, "the judge sees the bits of the host's file")
    before = fingerprint(place.work / "suid")
    leave(place, "echo x >>suid; chmod 6755 plain; cp suid made; chmod 6755 made")
    equal(special_bits(layer(place) / "suid"), (0, []), "the copy that was written to")
    unchanged(before, fingerprint(place.work / "suid"), "the host's file")
    apply(place)
    for name in ("suid", "plain", "made"):
        equal(special_bits(place.work / name), (0, []), f"{name} at home")
    equal((place.work / "suid").read_text(), "#!/bin/sh\nx\n")


@test(id="OVL-02")
def a_layer_cannot_be_mounted_inside(place):
    layers = ("seccomp", "landlock", "capabilities")
    all_refused(attack(place, "remount"), "mounts")
    for guard in layers:
        all_refused(attack(place, "remount", without=guard), f"without {guard}")
    done = place.sh("mkdir l u w m; unshare -Urm sh -c 'mount -t overlay o -o lowerdir=l,upperdir=u,workdir=w m && echo mounted; mount -t tmpfs t m && echo mounted'")
    assert "mounted" not in done.text, done
    control_fires("mount-tmpfs" in attack(place, "remount", without=",".join(layers)).worked(), "all three removed")


FORGE = r"""
import os
def tried(call, *words):
    try:
        call(*words)
    except OSError:
        pass
for kind in ("user", "trusted"):
    for mark, value in (("opaque", b"y"), ("whiteout", b"y"), ("redirect", b"/secret"), ("metacopy", b""), ("origin", b"\0\xfb!\0")):
        for path in ("dir", "dir/kept", "empty"):
            tried(os.setxattr, path, f"{kind}.overlay.{mark}", value)
for name in ("null", "dir/kept2", ".wh.other", "dir/.wh.kept"):
    tried(os.mknod, name, 0o20666, 0)
for name in (".wh.dir", "dir/.wh..wh..opq", "dir/.wh.kept", "#1a2b", "work", "index", "dir/#3"):
    open(name, "w").write(name)
open("empty", "w").close()
"""


@test(id="OVL-03")
def marks_made_inside_are_plain_files_and_mean_nothing(place):
    for name in ("dir/kept", "other", "secret/s", "empty"):
        write(place.work / name, name)
    before = {name: (place.work / name).read_text() for name in ("dir/kept", "other", "secret/s")}
    write(place.work / "forge.py", FORGE)
    leave(place, "/usr/bin/python3 forge.py")
    found = changes(place)
    equal([path for path, change in found.items() if change["kind"] in ("removed", "renamed")], [], "removed by a forged mark")
    equal(sorted(found), ["#1a2b", ".wh.dir", "dir/#3", "dir/.wh..wh..opq", "dir/.wh.kept", "empty", "index", "work"], "what was made")
    equal(set(apply(place).values()), {"done"})
    for name, content in before.items():
        equal((place.work / name).read_text(), content, name)
    # The judge sees a mark that the kernel could have made.
    leave(place, "mkdir new; rm dir/kept; echo again >dir/again")
    control_fires(changes(place).get("dir/kept", {}).get("kind") == "removed", "a real removal")
    os.setxattr(layer(place) / "dir", ("trusted" if IDENTITY == "root" else "user") + ".overlay.opaque", b"y")
    control_fires({path for path, change in changes(place).items() if change["kind"] == "removed"} >= {"dir/#3", "dir/kept"}, "an opaque directory")


@test(id="OVL-04")
def what_the_owner_changes_meanwhile_is_a_conflict_and_stays(place):
    for name in ("edited", "replaced", "renamed", "deleted", "free", "dir/inner"):
        write(place.work / name, "old\n")
    process = start(place, "run", "-q", "--", "sh", "-ec", "for f in edited replaced renamed deleted free dir/inner; do echo agent >$f; done; echo agent >made; echo ready; read x || true",
                    stdin=subprocess.PIPE)
    equal(process.stdout.readline(), b"ready\n")
    write(place.work / "edited", "owner\n")
    write(place.work / "tmp", "owner\n")
    (place.work / "tmp").rename(place.work / "replaced")
    (place.work / "renamed").rename(place.work / "elsewhere")
    (place.work / "deleted").unlink()
    (place.work / "dir").rename(place.work / "dir2")
    write(place.work / "made", "owner\n")
    process.communicate(b"\n", timeout=20)
    wait_for(lambda: not descendants(), what="the end of the guard")
    flagged = {path for path, change in changes(place).items() if "base-changed" in change["flags"]}
    found = apply(place)
    for name in ("edited", "replaced", "renamed", "deleted", "made"):
        equal(found.get(name), "CONFLICT", name)
    assert {"edited", "replaced", "renamed", "deleted"} <= flagged, flagged
    for name, content in (("edited", "owner\n"), ("replaced", "owner\n"), ("elsewhere", "old\n"), ("made", "owner\n"), ("dir2/inner", "old\n"), ("free", "agent\n")):
        equal((place.work / name).read_text(), content, name)
    assert not (place.work / "deleted").exists() and not (place.work / "renamed").exists()
    control_fires(found.get("free") == "done", "a file that the owner left alone comes home")


def open_to_others(top):
    """Directories on the way to what sandboxes wrote that somebody else could enter."""
    return [str(path) for path in (top, top / "sandboxes", *top.glob("sandboxes/*")) if path.is_dir() and path.stat().st_mode & 0o077]


@test(id="OVL-05")
def layers_are_closed_to_everybody_else(place):
    write(place.work / "file", "old\n")
    leave(place, "echo secret-of-the-sandbox >file")
    upper = layer(place)
    equal((upper / "file").read_text(), "secret-of-the-sandbox\n")
    assert place.state in upper.parents and place.state.stat().st_mode & 0o077 == 0, oct(place.state.stat().st_mode)
    done = place.run("sh", "-c", f"cat {upper}/file; ls {place.state}; ls {upper.parent}")
    assert "secret-of-the-sandbox" not in done.text and "record" not in done.text, f"a peer: {done!r}"
    if IDENTITY == "root":
        place.dir.chmod(0o755)
        top = os.open(place.dir, os.O_RDONLY | os.O_DIRECTORY)  # what is above it is the test's own
        other = ["setpriv", "--reuid=54399", "--regid=54399", "--clear-groups", "cat", f"/proc/self/fd/{top}/{(upper / 'file').relative_to(place.dir)}"]
        refused = subprocess.run(other, pass_fds=[top], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert refused.returncode != 0 and b"Permission denied" in refused.stderr, refused
        for path in (place.state, place.state / "sandboxes", upper.parent, upper):
            path.chmod(0o755)
        (upper / "file").chmod(0o644)
        control_fires(b"secret" in subprocess.run(other, pass_fds=[top], stdout=subprocess.PIPE).stdout, "another user, with the directories opened")
        os.close(top)
    place.state.chmod(0o755)
    control_fires(str(place.state) in open_to_others(place.state), "the judge sees an open directory")


MANY = r"""
import os, random, sys, hashlib, mmap, shutil, stat
dice = random.Random(int(sys.argv[1]))
def path(): return "/".join(dice.choice("abcd") for _ in range(dice.randint(1, 3)))
def act():
    one, two = path(), path()
    kind = dice.randrange(14)
    if kind < 3: open(one, "w").write(dice.choice(("", "one", "two", "x" * 5000)))
    elif kind == 3: open(one, "a").write("more")
    elif kind == 4: os.chmod(one, dice.choice((0o644, 0o755, 0o600)) | (0o700 if os.path.isdir(one) else 0))
    elif kind == 5: os.unlink(one)
    elif kind == 6: shutil.rmtree(one)
    elif kind == 7: os.makedirs(one)
    elif kind == 8: os.rename(one, two)
    elif kind == 9: shutil.move(one, two)
    elif kind == 10: os.link(one, two)
    elif kind == 11: os.symlink(dice.choice("abcd"), one)
    elif kind == 12: os.truncate(one, 100000)
    else:
        with open(one, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory: memory[0:1] = b"M"
def listing(top="."):
    for folder, folders, files in os.walk(top):
        for name in sorted(folders + files):
            full = os.path.join(folder, name)
            status = os.lstat(full)
            content = os.readlink(full) if stat.S_ISLNK(status.st_mode) else hashlib.sha256(open(full, "rb").read()).hexdigest() if stat.S_ISREG(status.st_mode) else ""
            print(full, oct(status.st_mode & 0o170777), content)
if sys.argv[2] == "act":
    for _ in range(int(sys.argv[3])):
        try: act()
        except (OSError, shutil.Error, ValueError): pass
listing()
"""


@test(id="OVL-06")
def what_comes_home_is_what_was_inside_bit_for_bit(place):
    """A few whole ways through the program; thousands of sequences are tests/unit/changes/overlay_test.c (`make soak`: 5,000)."""
    def host(*words):
        return sorted(subprocess.run(["/usr/bin/python3", "-c", MANY, *words], cwd=place.work, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines())
    for seed in range(1, 7):
        host(str(seed), "act", "60")
        done = place.cove("run", "-q", "--", "/usr/bin/python3", "-c", MANY, seed + 1000, "act", 40)
        equal(done.code, 0, done)
        wait_for(lambda: not descendants(), what="the end of the guard")
        if any(place.state.glob("sandboxes/*/record.json")):
            equal([word for word in apply(place).values() if word not in ("done", "same")], [], f"seed {seed}")
            equal(changes(place), {}, f"seed {seed}: a second look")
            for record in place.state.glob("sandboxes/*/record.json"):
                place.cove("rm", record.parent.name)
        equal(host("0", "look"), sorted(done.text.splitlines()), f"seed {seed}")
    before = host("0", "look")
    write(place.work / "one-more", "x")
    control_fires(host("0", "look") != before, "the judge sees one more file")


@test(id="OVL-07")
def a_full_layer_is_felt_inside_only_and_comes_home(place):
    write(place.work / "old", "old\n")
    before = fingerprint(place.work / "old")
    (place.dir / "small").mkdir()
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    script = f"""{mount_small(place.dir / "small", 12)} && export COVE_HOME={place.dir}/small/state
"$0" run -q -- sh -c 'echo first >first; head -c 40000000 /dev/zero >big; echo "big $?"; echo late >late; echo "late $?"; rm -f big; echo again >again' ; echo "run $?"
cp -a old {place.dir}/kept; "$0" apply --yes; echo "apply $?" """
    done = subprocess.run(["unshare", *become, "--mount", "--propagation", "private", "sh", "-c", script, COVE], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if b"mount: " in done.stderr or b"unshare: " in done.stderr:
        skip("kernel: this user cannot mount")
    text = done.stdout.decode()
    control_fires("big 1" in text and b"No space left" in done.stderr, f"the layer was full: {done}")
    assert "apply 0" in text, done
    unchanged(before, fingerprint(place.work / "old"), "the host's file")
    equal((place.work / "first").read_text(), "first\n", str(done))
    equal((place.work / "again").read_text(), "again\n", str(done))
    equal([name for name in names_below(place.work) if name.startswith(".cove")], [])


if __name__ == "__main__":
    main()
