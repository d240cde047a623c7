"""cove diff: complete, exact for programs, inert and telling for people."""
import base64
import io
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, equal, main, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, finish, on_terminal, one_error, read_until, start, stop, tool, wait_for, write  # noqa: E402


def change(place, script, *options, cwd=None):
    """A kept sandbox in which `script` ran; what it printed."""
    done = place.cove("run", "-q", *options, "--", "sh", "-ec", script, cwd=cwd)
    equal(done.code, 0, done)
    wait_for(lambda: not descendants(), what="the end of all guards")
    return done.out


def repository(place):
    tool("git")
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)


def commit(place):
    environ = dict(place.env, GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a")
    subprocess.run(["git", "add", "-A"], cwd=place.work, env=environ, check=True)
    subprocess.run(["git", "commit", "-qm", "x"], cwd=place.work, env=environ, check=True)


def listed(place, *words):
    """path -> what JSON says of it."""
    done = place.cove("diff", "--json", *words)
    equal(done.code, 0, done)
    return {base64.b64decode(c["path_bytes"]) if "path_bytes" in c else c["path"]: c for c in json.loads(done.out)["changes"]}


# A patch is complete

NAMES = ["a", "b", "c d", "tail ", "d/e", "d/f g", "d/h/i", "quote\"", "back\\slash", "tab\there", "é", "j/k", "j/l/m", "n", "-dash", "line\nbreak"]


def random_script(pick):
    """A shell script of random changes; none of its commands has to succeed."""
    lines = []
    for _ in range(pick.randint(2, 12)):
        one, other = (shlex.quote("./" + pick.choice(NAMES)) for _ in range(2))
        content = pick.choice(["x", "a\nb\nc\n", "no newline", "", "l\n" * 50, "crlf\r\n", "\\0\\1\\2bin", "a\nB\nc\n"])
        lines.append(pick.choice([
            f"mkdir -p $(dirname {one} | head -1); printf {shlex.quote(content)} >{one}",
            f"printf {shlex.quote(content)} >>{one}",
            f"head -c {pick.randint(0, 5000)} /dev/urandom >{one}",
            f"rm -f {one}", f"rm -rf {one}", f"mv {one} {other}", f"mv d d2", "mv j d", "mv d2/h j", "rm -rf d j", "mv j j2",
            f"chmod +x {one}", f"chmod 600 {one}", f"ln -sfn {other} {one}", f"cp -a {one} {other}", f"ln {one} {other}",
            f"rm -rf {one}; mkdir -p {one}; echo in >{one}/in", f"rm -rf d; echo file >d", f"sed -i 's/l/L/' {one}",
        ]))
    return "\n".join(f"{{ {line}\n}} 2>/dev/null || true" for line in lines)


def as_git_sees(files):
    return {name: what for name, what in files.items() if what[0] != "directory"}


def tree_of(top):
    found = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, os.fsencode(top))
            if shown.split(b"/")[0] == b".git":
                continue
            if os.path.islink(path):
                found[shown] = ("link", os.readlink(path))
            elif os.path.isdir(path):
                found[shown] = ("directory",)
            else:
                found[shown] = ("file", bool(os.lstat(path).st_mode & 0o100), open(path, "rb").read())
    return found


def tree_in_tar(data):
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as tar:
        for entry in tar:
            name = os.fsencode(os.path.normpath(entry.name))
            if name == b".":
                continue
            if entry.issym():
                found[name] = ("link", os.fsencode(entry.linkname))
            elif entry.isdir():
                found[name] = ("directory",)
            else:
                found[name] = ("file", bool(entry.mode & 0o100), tar.extractfile(entry).read())
    return found


def first_tree(place, pick):
    for name in NAMES:
        if pick.random() < 0.6:
            write(place.work / name, pick.choice([b"one\ntwo\nthree\n", b"", b"l\n" * 40, bytes(range(256)), b"no newline"]), pick.choice([0o644, 0o755]))
    if pick.random() < 0.5 and not (place.work / "n").exists():
        (place.work / "n").symlink_to("a")


@test
def without_any_sandbox_a_name_is_said_to_be_none(place):
    done = place.cove("diff", "nosuch")
    equal((done.code, done.out), (125, b""), done)
    assert "no sandbox is called 'nosuch'" in done.errors and f"no sandbox of {place.work} is kept" in done.errors, done


@test
def git_makes_of_a_diff_what_the_sandbox_saw(place):
    """A hundred random sequences of changes, and as many more as there are identities."""
    tool("git")
    shown = 0
    for number in range(100):
        pick = random.Random(number)
        shutil.rmtree(place.work)
        place.work.mkdir()
        first_tree(place, pick)
        before = tree_of(place.work)
        script = random_script(pick)
        seen = tree_in_tar(change(place, script + "\ntar cf - --hard-dereference ."))
        done = place.cove("diff")
        if done.code == 125:  # nothing was changed, and so nothing kept
            equal(as_git_sees(seen), as_git_sees(tree_of(place.work)), script)
            continue
        equal(done.code, 0, done)
        if b"diff --git" in done.out:
            subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
            applied = subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=place.work, input=done.out, stderr=subprocess.PIPE)
            equal((applied.returncode, applied.stderr), (0, b""), f"{number}: {script}\n{done.text}")
            shown += 1
        equal(as_git_sees(tree_of(place.work)), as_git_sees(seen), f"{number}: {script}\n{done.text}")
        for name in seen:  # what git cannot say is said
            if seen[name][0] == "directory" and before.get(name) != seen[name] and not any(other.startswith(name + b"/") for other in seen):
                assert b"# new directory" in done.out or b"# now directory" in done.out or b"# renamed directory" in done.out, (number, name, done)
        place.cove("rm", json.loads(place.cove("ls", "--json").out)[0]["id"])
    assert shown > 60, shown


@test
def a_patch_says_what_git_cannot(place):
    write(place.work / "mode", "x", 0o644)
    change(place, "mkdir empty; mkfifo pipe; chmod 600 mode; echo x >setid; chmod 4755 setid")
    text = place.cove("diff").text
    for wanted in ("# new directory empty (0755)", "# new special file pipe", "# mode of mode was 0644 and is 0600", "# mode of setid is 4755"):
        assert wanted in text, text
    sizes = place.cove("diff", "--stat").text
    assert re.search(r"A +1\+ +0-  setid \(setuid or setgid\)", sizes), sizes


@test
def binary_files_are_shown_by_size(place):
    write(place.work / "old", bytes(3000))
    change(place, "head -c 2048 /dev/zero >new; head -c 1024 /dev/zero >old")
    text = place.cove("diff", "--stat").text
    assert "0 B > 2.0 KiB  new" in text and "2.9 KiB > 1.0 KiB  old" in text, text
    code, out = on_terminal(place, "diff")
    assert code == 0 and b"# binary: 3000 bytes before, 1024 after" in out and b"literal" not in out, out


@test
def a_large_binary_file_is_in_a_patch_only_if_that_is_asked_for(place):
    subprocess.run(["git", "init", "-q", place.work], check=True)
    write(place.work / "with blank", bytes(300000))
    change(place, "head -c 100000 /dev/urandom >new; head -c 2048 /dev/urandom >little; head -c 70000 /dev/urandom >'with blank'; head -c 70000 /dev/zero | tr '\\0' a >text")
    short, whole = place.cove("diff"), place.cove("diff", "--binary")
    assert len(short.out) < 80000 and "# binary: 0 bytes before, 100000 after; --binary writes them\ndiff --git a/new b/new\n" in short.text and "\nBinary files /dev/null and b/new differ\n" in short.text, short
    assert "Binary files a/with blank and b/with blank differ\n" in short.text and short.text.count("GIT binary patch") == 1, short
    equal((whole.text.count("GIT binary patch"), "differ" in whole.text), (3, False))
    for name, patch, good in (("short", short, False), ("whole", whole, True)):
        (place.dir / name).write_bytes(patch.out)
        done = subprocess.run(["git", "-C", place.work, "apply", "--check", place.dir / name], capture_output=True, text=True)
        equal(done.returncode == 0, good, done)
    code, out = on_terminal(place, "diff", "--binary")
    assert code == 0 and b"literal" not in out, out


# What git ignores

@test
def what_git_ignores_is_one_line_a_directory(place):
    repository(place)
    write(place.work / ".gitignore", "node_modules/\n*.o\n!keep.o\n")
    write(place.work / ".git/info/exclude", "local/\n")
    write(place.work / "tracked.o", "old\n")
    subprocess.run(["git", "add", "-f", "tracked.o"], cwd=place.work, check=True)
    change(place, "mkdir -p node_modules/x local src; for i in $(seq 50); do head -c 1000 /dev/zero >node_modules/x/f$i; done; echo 1 >src/a.o; echo 1 >src/keep.o; "
                  "echo 2 >local/y; echo new >tracked.o; echo evil >node_modules/.envrc; echo 1 >src/a.c")
    names = place.cove("diff", "--name-only").text.split()
    equal(names, ["node_modules", "node_modules/.envrc", "src", "src/a.c", "src/keep.o", "tracked.o"], "what is shown")
    text = place.cove("diff").text
    for wanted in ("# node_modules/: 50 files, 48.8 KiB, ignored by git", "# src/: 1 file, 2 B", "# local/: 1 file"):
        assert wanted in text, text
    assert "node_modules/x" not in text, text
    found = json.loads(place.cove("diff", "--json").out)
    equal({f["directory"]: (f["files"], f["bytes"]) for f in found["ignored"]}, {"node_modules": (50, 50000), "src": (1, 2), "local": (1, 2)})
    assert "src/a.o" in place.cove("diff", "--ignored", "--name-only").text
    assert "node_modules/x/f7" in place.cove("diff", "--name-only", "node_modules/x").text, "what a PATH names is shown"
    assert "src/a.o" not in place.cove("diff", "--name-only", "src").text, "a directory around it does not name it"


@test
def what_git_ignores_comes_home_only_if_asked_for(place):
    repository(place)
    write(place.work / ".gitignore", "build/\n*.log\n")
    change(place, "mkdir build; echo 1 >build/out; echo 2 >build/more; echo 3 >x.log; echo 4 >fine")
    done = place.cove("apply", "--yes")
    equal((done.code, sorted(p.name for p in place.work.iterdir())), (0, [".git", ".gitignore", "fine"]), done)
    assert "left     build/: 2 files" in done.text, done
    equal(place.cove("apply", "--yes", "build/out").code, 0)
    equal(sorted(p.name for p in (place.work / "build").iterdir()), ["out"])
    equal(place.cove("apply", "--yes", "--ignored").code, 0)
    assert (place.work / "build/more").exists() and (place.work / "x.log").exists()


@test
def rules_of_the_sandbox_fold_nothing(place):
    repository(place)
    write(place.work / ".gitignore", "ours/\n")
    write(place.work / "plain", "x")
    commit(place)
    change(place, "echo '*.evil' >>.gitignore; echo 1 >a.evil; mkdir sub; echo '*' >sub/.gitignore; echo 2 >sub/b; mkdir -p ours; echo 3 >ours/x; echo z >>.git/info/exclude")
    found = listed(place)
    assert "unseen" in found["a.evil"]["flags"] and "unseen" in found["sub/b"]["flags"] and "ours/x" not in found, found
    assert "hides" in found[".gitignore"]["flags"] and "a.evil" in found[".gitignore"]["hides"], found[".gitignore"]
    assert "hides" in found["sub/.gitignore"]["flags"] and "hides" in found[".git/info/exclude"]["flags"], found
    assert "only by rules that the sandbox wrote" in place.cove("diff", "--stat", "a.evil").text
    # The control arm: the same rules, of the owner, do fold.
    write(place.work / ".gitignore", "ours/\n*.evil\n")
    assert "a.evil" not in listed(place)


@test
def rules_that_take_too_long_hide_nothing(place):
    """Both the owner's and the sandbox's: what they are about is shown, and it is said."""
    repository(place)
    costly = "\n".join(["hidden", *["*a*a*a*a*a*a*a*a*a*a*b"] * 15000]) + "\n"
    write(place.work / ".gitignore", "*.o\n")
    write(place.work / "owner/.gitignore", costly)
    write(place.work / "costly", costly)
    change(place, "mkdir agent owner/d; cp costly agent/.gitignore; for n in $(seq 40); do f=$(printf 'a%.0s' $(seq 200))$n; : >agent/$f; : >owner/d/$f; done; "
                  ": >owner/hidden; : >agent/hidden; : >x.o")
    began = time.monotonic()
    done = place.cove("diff", "--json")
    found = {c["path"]: c for c in json.loads(done.out)["changes"]}
    assert time.monotonic() - began < 15 and done.code == 0, "it took too long"
    assert "owner/hidden" in found and "agent/hidden" in found and "x.o" not in found, sorted(found)
    assert "take too long to follow" in found["agent/.gitignore"]["hides"] and "hides" in found["agent/.gitignore"]["flags"], found["agent/.gitignore"]
    assert "the rules of owner/.gitignore take too long to follow; what they ignore is shown" in done.errors, done.errors


@test
def what_is_moved_to_an_ignored_place_is_shown(place):
    repository(place)
    write(place.work / ".gitignore", "build/\n")
    write(place.work / "important.c", "int main;\n" * 20)
    commit(place)
    change(place, "mkdir build; mv important.c build/; echo 1 >build/other")
    found = listed(place)
    assert "build/other" not in found and found["build/important.c"]["from"] == "important.c", found


# What tries to hide

@test
def a_change_that_makes_git_look_away_is_flagged(place):
    repository(place)
    for name in ("a.py", "b.py", "c.py"):
        write(place.work / name, "x = 1\n")
    commit(place)
    subprocess.run(["git", "update-index", "--assume-unchanged", "c.py"], cwd=place.work, check=True)
    change(place, "echo '*.py -diff' >.gitattributes; git update-index --assume-unchanged a.py; git update-index --skip-worktree b.py; echo 2 >a.py")
    found = listed(place)
    equal(("hides" in found[".gitattributes"]["flags"], "hides" in found[".git/index"]["flags"]), (True, True), found)
    says = found[".git/index"]["hides"]
    assert "assume-unchanged of 1 file: a.py" in says and "skip-worktree of 1 file: b.py" in says and "c.py" not in says, says
    stat, patch = place.cove("diff", "--stat").text, place.cove("diff").text
    for text in (stat, patch):
        assert "[hides: attributes: *.py -diff]" in text and "[hides: the index says assume-unchanged" in text, text
    # The control arm: an index that git only refreshed, and attributes that hide nothing.
    change(place, "echo '*.py text' >.gitattributes; touch a.py; git status >/dev/null; git add -A")
    found = listed(place)
    equal([path for path, c in found.items() if "hides" in c["flags"]], [], found)


@test
def a_repository_without_its_name_is_flagged_at_any_depth(place):
    tool("git")
    write(place.work / "x", "x")
    for depth in (1, 4, 8):
        path = "/".join(f"d{i}" for i in range(depth))
        change(place, f"git init -q --bare {path}/lib; git --git-dir={path}/lib config core.fsmonitor ./evil; mkdir -p {path}/HEAD; echo no >{path}/HEAD/x")
        found = listed(place)
        equal((found[f"{path}/lib/config"]["class"], "repository" in found[f"{path}/lib/config"]["flags"]), ("autorun", True), found[f"{path}/lib/config"])
        equal((found[f"{path}/HEAD/x"]["class"], found[f"{path}/HEAD/x"]["flags"]), ("ordinary", []), "what is none")
        done = place.cove("apply", "--yes")
        assert not (place.work / path / "lib/config").exists(), done


TRICKS = {
    "bidi": (b"if x: \xe2\x80\xae } \xe2\x81\xa6 return\n", "bidi"), "zero": (b"ad\xe2\x80\x8bmin\n", "invisible"), "cr": (b"good\rbad\n", "carriage-return"),
    "escape": (b"\x1b]0;owned\x07\x1b[2J\n", "control"), "long": (b"x" * 5000 + b"\n", "long-line"), "nul": (b"a\n" * 5000 + b"\0\n", "nul"),
    "latin1": (b"\xe9t\xe9\n", "no-utf8"), "homoglyph": (b"\xd0\xb0dmin = 1\n", "mixed-scripts"),
}


@test
def content_that_is_not_what_it_looks_like_is_told(place):
    source = place.dir / "tricks"
    for name, (content, _) in TRICKS.items():
        write(source / name, content)
    write(place.work / "fine", "été\n")
    change(place, f"cp {source}/* .; printf 'ok\\r\\n' >crlf; echo more >>fine", "--read", source)
    found = listed(place)
    for name, (_, trick) in TRICKS.items():
        assert trick in found[name]["tricks"] and "trojan-source" in found[name]["flags"], (name, found[name])
    equal((found["crlf"]["tricks"], found["fine"]["tricks"]), ([], []))
    patch = place.cove("diff").out
    for name, (content, _) in TRICKS.items():
        assert b"+" + content.splitlines(keepends=True)[0].split(b"\r")[0] in patch, f"{name}: exact bytes through a pipe"
    assert b"# bidi [Trojan Source: characters that reorder the line]" in patch
    code, out = on_terminal(place, "diff")
    equal(code, 0)
    for raw in (b"\xe2\x80\xae", b"\xe2\x81\xa6", b"\xe2\x80\x8b", b"\x1b]", b"\x1b[2J", b"\0", b"\xe9t", b"\x07", b"good\rbad"):
        assert raw not in out, (raw, out)
    for shown in (b"<U+202E>", b"<U+200B>", b"\\x1b]0;owned\\x07", b"good\\x0dbad", b"and 3001 bytes more"):
        assert shown in out, (shown, out)


@test
def names_are_inert_on_a_terminal_and_exact_in_a_pipe(place):
    write(place.work / "x", "x")
    change(place, "printf x >\"$(printf 'e\\033[2Jsc')\"; printf x >\"$(printf 'rtl\\342\\200\\256')\"; printf x >\"$(printf 'line\\nbreak')\"; printf x >\"$(printf '\\320\\260dmin')\"; echo y >x")
    for words in (("diff",), ("diff", "--stat"), ("diff", "--name-only")):
        code, out = on_terminal(place, *words)
        equal(code, 0)
        assert b"\x1b[2J" not in out and b"\xe2\x80\xae" not in out and b"line\r\nbreak" not in out, (words, out)
    assert b"e\x1b[2Jsc\n" in place.cove("diff", "--name-only").out
    found = listed(place)
    for name in ("e\x1b[2Jsc", "rtl\u202e", "line\nbreak", "\u0430dmin"):
        assert "odd-name" in found[name]["flags"], (name, found)


@test
def names_that_are_no_text_are_exact_in_strict_json(place):
    write(place.work / "f", "x\n")
    change(place, "mkdir \"$(printf 'd\\377')\"; echo new >\"$(printf 'd\\377/n\\303')\"; ln -s \"$(printf 't\\200')\" link; mv f \"$(printf 'm\\351')\"; echo fine >'é'")

    def strict(*words):
        done = place.cove(*words)
        return done.code, json.loads(done.out.decode("utf-8", "strict"), object_pairs_hook=unique)

    def unique(pairs):
        equal(len(dict(pairs)), len(pairs), "no key twice")
        return dict(pairs)

    def bytes_of(item, key="path"):
        return base64.b64decode(item[key + "_bytes"], validate=True) if key + "_bytes" in item else item[key].encode()

    expected = [b"d\xff", b"d\xff/n\xc3", "é".encode(), b"link", b"m\xe9"]
    code, found = strict("diff", "--json")
    equal((code, sorted(map(bytes_of, found["changes"]))), (0, sorted(expected)), found)
    by = {bytes_of(item): item for item in found["changes"]}
    equal((by[b"d\xff/n\xc3"]["path"], bytes_of(by[b"link"]["new"], "target"), by[b"m\xe9"]["from"]), ("d\\xff/n\\xc3", b"t\x80", "f"))
    assert "path_bytes" not in by["é".encode()], "what is text stays text"
    archive = tarfile.open(fileobj=io.BytesIO(place.cove("export").out))
    manifest = json.loads(archive.extractfile("MANIFEST.json").read().decode("utf-8", "strict"), object_pairs_hook=unique)
    equal((sorted(map(bytes_of, manifest["members"])), manifest["removed"]), (sorted(expected), [{"path": "f"}]), manifest)
    code, found = strict("apply", "--yes", "--json")
    equal((code, sorted(map(bytes_of, found["changes"]))), (0, sorted(expected)), found)


@test
def colour_is_for_terminals_that_want_it(place):
    write(place.work / "x", "one\n")
    change(place, "echo two >x")
    assert b"\x1b[32m+two" in on_terminal(place, "diff")[1]
    assert b"\x1b" not in on_terminal(place, "diff", env={"NO_COLOR": "1"})[1]
    assert b"\x1b" not in on_terminal(place, "diff", env={"TERM": "dumb"})[1]
    assert b"\x1b" not in place.cove("diff").out


# Classes

@test
def what_can_run_is_marked_and_counted(place):
    write(place.work / "package.json", '{"scripts": {"test": "true"}}\n')
    change(place, "echo evil >.envrc; sed -i s/true/evil/ package.json; echo fine >fine")
    found = json.loads(place.cove("diff", "--json").out)
    equal((found["counts"]["autorun"], found["counts"]["build"]), (1, 1))
    by_path = {c["path"]: c for c in found["changes"]}
    equal((by_path[".envrc"]["class"], by_path["package.json"]["class"], by_path["fine"]["class"]), ("autorun", "build", "ordinary"))
    assert "scripts.test" in by_path["package.json"]["part"], by_path
    text = place.cove("diff").text
    assert "# .envrc [class A: " in text and "# package.json [class B: " in text, text
    said = on_terminal(place, "diff", "--stat")[1]
    assert b"1 change acts by merely being there (class A)\r\n" in said and b"1 change acts when you build" in said, said


# Paths

@test
def paths_are_those_of_the_current_directory(place):
    repository(place)
    write(place.work / "sub/deep/a", "1\n")
    write(place.work / "a", "1\n")
    change(place, "echo 2 >a; echo 2 >sub/deep/a; echo 2 >sub/b; mkdir -p sub/new/dir; echo 3 >sub/new/dir/f")
    sub = place.work / "sub"
    equal(place.cove("diff", "--name-only", "deep", cwd=sub).text.split(), ["sub/deep/a"])
    equal(place.cove("diff", "--name-only", "../a", cwd=sub).text.split(), ["a"])
    equal(place.cove("diff", "--name-only", ".", cwd=sub).text.split(), ["sub/b", "sub/deep/a", "sub/new", "sub/new/dir", "sub/new/dir/f"])
    equal(place.cove("diff", "--name-only", place.work / "a").text.split(), ["a"])
    one_error(place.cove("diff", "../../elsewhere", cwd=sub), "not in the workspace")
    done = place.cove("diff", "nothing-here")
    assert done.code == 125 and "'nothing-here' is neither" in done.errors, done
    equal(place.cove("apply", "--yes", "--exclude", "b", ".", cwd=sub).code, 0)
    equal(((sub / "deep/a").read_text(), (sub / "b").exists(), (place.work / "a").read_text(), (sub / "new/dir/f").read_text()), ("2\n", False, "1\n", "3\n"))


@test
def one_file_comes_home_with_the_new_directories_around_it(place):
    write(place.work / "x", "x")
    change(place, "mkdir -p n/m; echo 1 >n/m/f; echo 2 >n/g")
    done = place.cove("apply", "--yes", "n/m/f")
    equal((done.code, sorted(os.fsdecode(p) for p in tree_of(place.work))), (0, ["n", "n/m", "n/m/f", "x"]), done)


# The base moves

def both_changed(place):
    for name in ("both", "other", "gone"):
        write(place.work / name, "one\ntwo\n")
    change(place, "sed -i s/two/agent/ both; echo agent >>other; rm gone", "--name", "s1")
    time.sleep(0.05)
    write(place.work / "both", "one\nowner\n")
    write(place.work / "gone", "owner\n")


@test
def that_the_base_changed_since_is_said(place):
    both_changed(place)
    done = place.cove("diff")
    assert "base changed since the sandbox began: both, gone" in done.errors, done
    assert "# both (base changed since)" in done.text and "# other" not in done.text, done
    assert "base-changed" in listed(place)["both"]["flags"]
    done = place.cove("apply", "--yes", "--dry-run")
    assert "base changed since" in done.errors, done


@test
def a_conflict_shows_both_sides_and_loses_none(place):
    both_changed(place)
    done = place.cove("apply", "--yes")
    equal(done.code, 1, done)
    for wanted in ("conflict: both (what the sandbox began with is not known any more)", "--- host/both", "+++ sandbox/both", "-owner", "+agent",
                   "--conflict host", "--conflict both"):
        assert wanted in done.errors, done
    # The advice is about this sandbox, whichever is the last one when it is followed.
    name = json.loads(place.cove("ls", "--json").out)[0]["name"]
    assert f"cove apply --conflict sandbox {name} PATH" in done.errors, done
    equal(((place.work / "both").read_text(), (place.work / "gone").read_text()), ("one\nowner\n", "owner\n"))
    equal((place.work / "other").read_text(), "one\ntwo\nagent\n")


@test
def in_another_tree_all_three_sides_of_a_conflict_are_shown(place):
    write(place.work / "f", "one\ntwo\nthree\n")
    shutil.copytree(place.work, place.dir / "copy")
    change(place, "sed -i s/three/agent/ f")
    write(place.dir / "copy/f", "owner\ntwo\nthree\n")
    done = place.cove("apply", "--yes", "--to", place.dir / "copy")
    equal(done.code, 1, done)
    for wanted in ("--- before/f\n+++ host/f\n", "--- before/f\n+++ sandbox/f\n", "+owner", "+agent"):
        assert wanted in done.errors, done
    assert "not known" not in done.errors, done


@test
def each_way_out_of_a_conflict(place):
    both_changed(place)
    one_error(place.cove("apply", "--yes", "--conflict", "theirs"), "host, sandbox or both")
    one_error(place.cove("apply", "--yes", "--conflict", "sandbox"), "name the PATHs")
    done = place.cove("apply", "--yes", "--conflict", "both", "both")
    equal((done.code, (place.work / "both").read_text(), (place.work / "both.cove-s1").read_text()), (0, "one\nowner\n", "one\nagent\n"), done)
    assert "beside   both" in done.text, done
    equal(place.cove("apply", "--yes", "--conflict", "both", "both").code, 0, "again")
    write(place.work / "both.cove-s1", "edited\n")
    equal(place.cove("apply", "--yes", "--conflict", "both", "both").code, 1)
    equal((place.work / "both.cove-s1").read_text(), "edited\n", "what lies beside is not lost either")
    done = place.cove("apply", "--yes", "--conflict", "host", "both")
    equal((done.code, (place.work / "both").read_text()), (0, "one\nowner\n"), done)
    assert "yours    both" in done.text and "1 settled as yours" in done.text, done
    done = place.cove("apply", "--yes", "--conflict", "sandbox", "both", "gone")
    equal((done.code, (place.work / "both").read_text(), (place.work / "gone").exists()), (0, "one\nagent\n", False), done)


@test
def what_was_settled_for_the_host_stays_settled(place):
    both_changed(place)
    before = listed(place)
    place.cove("apply", "--yes", "--conflict", "host", "--dry-run")
    place.cove("apply", "--yes", "--conflict", "host", "--to", shutil.copytree(place.work, place.dir / "copy"))
    equal(listed(place), before, "nothing was settled here")
    done = place.cove("apply", "--yes", "--conflict", "host", "both")
    equal((done.code, "settled: cove diff and cove apply leave it out" in done.text), (0, True), done)
    equal(set(listed(place)), {"gone", "other"})
    assert "1 settled as yours" in place.cove("diff").text and "1 settled as yours" in place.cove("diff", "--stat").text
    equal(json.loads(place.cove("diff", "--json").out)["settled"], 1)
    equal(json.loads(place.cove("show", "--json").out)["settled"], ["both"])
    done = place.cove("apply", "--yes", "--conflict", "host")
    equal((done.code, set(listed(place)), (place.work / "both").read_text()), (0, set(), "one\nowner\n"), done)
    assert "+agent" in place.cove("diff", "both").text, "who names it sees it"
    equal(place.cove("apply", "--yes", "--conflict", "sandbox", "both").code, 0)
    equal((place.work / "both").read_text(), "one\nagent\n", "and can take it after all")


# The workspace moves

@test
def a_project_that_was_moved_keeps_its_sandboxes(place):
    repository(place)
    write(place.work / "f", "one\n")
    write(place.work / "sub/g", "one\n")
    commit(place)
    change(place, "echo agent >>f; echo new >sub/new; git -c user.name=a -c user.email=a commit -qam inside", "--name", "s1")
    moved = place.dir / "moved"
    place.work.rename(moved)
    one_error(place.cove("diff", "s1", cwd=place.dir), "not there any more", "cove apply --to DIR")
    place.work.mkdir()
    one_error(place.cove("apply", "--yes", "s1", cwd=place.dir), "replaced since", "cove apply --to DIR")
    for words in ((), ("s1",)):
        done = place.cove("diff", *words, cwd=moved)
        assert done.code == 0 and "+agent" in done.text and "1 commit" in done.text, done
    done = place.cove("diff", "--name-only", "new", cwd=moved / "sub")
    equal((done.code, done.text), (0, "sub/new\n"), done)
    equal(place.cove("export", "s1", "-o", place.dir / "out.tar", cwd=moved).code, 0)
    done = place.cove("apply", "--yes", "s1", "--to", moved, cwd=place.dir)
    equal((done.code, (moved / "f").read_text(), (moved / "sub/new").read_text()), (0, "one\nagent\n", "new\n"), done)
    done = place.cove("apply", "--yes", cwd=moved)
    assert done.code == 0 and "cove/s1/" in done.text, done
    equal(list(place.work.iterdir()), [], "nothing came to the directory that has the name now")


@test
def without_its_workspace_a_sandbox_comes_to_another_copy(place):
    write(place.work / "f", "one\n")
    change(place, "echo agent >>f; echo new >new; echo same >>same", "--name", "s1")
    time.sleep(0.05)
    shutil.copytree(place.work, place.dir / "copy")
    shutil.rmtree(place.work)
    done = place.cove("apply", "--yes", "s1", "--to", "copy", cwd=place.dir)
    assert done.code == 1 and "is compared with" in done.errors and "CONFLICT f" in done.text, done
    equal(((place.dir / "copy/f").read_text(), (place.dir / "copy/new").read_text()), ("one\n", "new\n"), "what is in doubt stays")
    one_error(place.cove("apply", "--yes", "s1", "--to", "absent", cwd=place.dir), "not there any more")


# While it runs

@test
def what_a_running_sandbox_has_changed_is_shown_and_not_taken(place):
    write(place.work / "f", "one\n")
    process = start(place, "run", "-q", "--name", "busy", "--", "sh", "-c", "echo two >>f; echo here; read x; rm f; echo three >g", stdin=subprocess.PIPE)
    try:
        read_until(process.stdout, b"here")
        done = place.cove("diff")
        assert done.code == 0 and "+two" in done.text and "still runs; this may change" in done.errors, done
        equal((json.loads(place.cove("diff", "--json").out)["running"], place.cove("diff", "--stat", "busy").code), (True, 0))
        for words in (("apply", "--yes"), ("apply", "--yes", "--dry-run"), ("export", "-o", place.dir / "x.tar")):
            one_error(place.cove(*words), "still runs", "cove diff")
        equal((place.work / "f").read_text(), "one\n")
        process.stdin.write(b"\n")
        process.stdin.flush()
        equal(finish(process).code, 0)
    finally:
        stop(process)
    wait_for(lambda: not descendants(), what="the end of all guards")
    equal({path: c["kind"] for path, c in listed(place).items()}, {"f": "removed", "g": "added"})
    equal(json.loads(place.cove("diff", "--json").out)["running"], False)


@test
def in_rw_there_is_nothing_to_show_while_it_runs(place):
    process = start(place, "run", "-q", "--workspace", "rw", "--", "sh", "-c", "echo here; read x", stdin=subprocess.PIPE)
    try:
        read_until(process.stdout, b"here")
        one_error(place.cove("diff"), "still runs, and writes to")
    finally:
        stop(process)
    wait_for(lambda: not descendants(), what="the end of all guards")


# Apply, for programs and people

@test
def apply_tells_programs_what_came_of_each_change(place):
    both_changed(place)
    change(place, "true >fine; ln -s /etc/passwd out; echo evil >.envrc")
    done = place.cove("apply", "--yes", "--json", "s1")
    found = json.loads(done.out)
    equal((done.code, {c["path"]: c["outcome"] for c in found["changes"]}), (1, {"both": "conflict", "gone": "conflict", "other": "done"}), done)
    assert "host" in found["changes"][0]["why"] and found["outcomes"]["conflict"] == 2, found
    found = json.loads(place.cove("apply", "--yes", "--json").out)
    equal({c["path"]: c["outcome"] for c in found["changes"]}, {"fine": "done", "out": "refused", ".envrc": "left"}, found)


@test
def who_asks_shows_what_it_is_about(place):
    write(place.work / "f", "one\ntwo\n")
    write(place.work / "g", "one\n")
    change(place, "echo three >>f; printf 'evil\\033[2J\\n' >.envrc; echo no >g")
    code, out = on_terminal(place, "apply", "-i", answers=(b"n" * 300 + b"y\n", b"y\n", b"n\n"))
    assert code == 0 and b"+three" in out and b"+evil\\x1b[2J" in out and b"\x1b[2J" not in out, out
    assert b"class A" in out and b"bring it home? [y/N/a/q/?]" in out, out
    equal(((place.work / "f").read_text(), (place.work / "g").read_text(), (place.work / ".envrc").exists()), ("one\ntwo\nthree\n", "one\n", False))


@test
def what_stands_for_no_answer_is_asked_again(place):
    repository(place)
    change(place, "echo x >f; echo x >g; git add f; git -c user.name=a -c user.email=a commit -qm f", "--name", "s1")
    code, out = on_terminal(place, "apply", "-i", "s1", answers=(b"x\n", b"d\n", b"y\n", b"q\n"))
    equal((code, out.count(b"bring it home?"), out.count(b"y  bring it home")), (0, 4, 2), out)
    equal(((place.work / "f").exists(), (place.work / "g").exists()), (True, False), out)
    assert b"commit" not in out.rpartition(b"bring it home?")[2], f"q ends it, commits are not asked for: {out}"


@test
def only_what_can_be_answered_is_explained(place):
    for script, prompt, all_others in (("echo x >.envrc", b"[y/N/q/?]", False), ("echo x >plain", b"[y/N/a/q/?]", True)):
        change(place, script, "--name", "asked")
        code, out = on_terminal(place, "apply", "-i", "asked", answers=(b"?\n", b"n\n"))
        equal((code, prompt in out, b"n  leave it" in out, b"a  bring it" in out), (0, True, True, all_others), f"{out}")
        equal(place.cove("rm", "asked").code, 0)


@test
def the_command_that_a_diff_offers_brings_home_what_it_showed(place):
    write(place.work / "a b", "one\n")
    write(place.work / "c", "one\n")
    change(place, "echo two >>'a b'; echo two >>c", "--name", "s1")
    for words in (("a b",), ("s1", "c")):
        offered = re.search(rb"# to bring home exactly this: cove (apply [^\r\x1b]*)", on_terminal(place, "diff", *words)[1]).group(1).decode()
        equal(place.cove(*shlex.split(offered), "--yes").code, 0, offered)
        equal((place.work / words[-1]).read_text(), "one\ntwo\n", offered)
        equal((place.work / "c").read_text(), "one\ntwo\n" if words[-1] == "c" else "one\n", offered)


@test
def a_mode_comes_home_to_one_name_of_several(place):
    write(place.work / "a", "one\n")
    os.link(place.work / "a", place.work / "b")
    change(place, "chmod 755 a")
    equal(place.cove("apply", "--yes").code, 0)
    equal([oct((place.work / name).stat().st_mode & 0o777) for name in "ab"], ["0o755", "0o644"], "as it was inside")
    equal([(place.work / name).read_text() for name in "ab"], ["one\n"] * 2)


@test
def what_was_changed_only_elsewhere_is_named(place):
    data = place.dir / "data"
    data.mkdir()
    write(data / "one", "1\n")
    change(place, "rm /data/one", "-v", f"{data}:/data")
    for words in (("diff",), ("apply", "--yes")):
        done = place.cove(*words)
        assert done.code == 0 and "changed nothing in the workspace; what it changed in /data stays in it" in done.errors, done
        equal(len(done.errors.splitlines()), 1, done)


@test
def answers_for_all_that_follow(place):
    for name in "abcd":
        write(place.work / name, "one\n")
    change(place, "for f in a b c d; do echo two >>$f; done; echo x >.envrc; echo x >cc.envrc", "--name", "s1")

    def answered(answers):
        code, out = on_terminal(place, "apply", "-i", "s1", answers=answers)
        return code, out, "".join(name for name in "abcd" if (place.work / name).read_text() != "one\n")

    code, out, taken = answered((b"n\n", b"n\n", b"y\n", b"q\n"))
    equal((code, taken, (place.work / ".envrc").exists()), (0, "b", False), out)
    code, out, taken = answered((b"?\n", b"n\n", b"y" * 100 + b"\n", b"q\n"))
    assert b"leave it and all that follow" in out, out
    equal((code, taken, (place.work / ".envrc").exists()), (0, "ab", False), "a long line is one answer")
    code, out, taken = answered((b"n\n", b"a\n"))
    equal((code, taken, (place.work / ".envrc").exists()), (0, "abcd", False), out)
    assert b".envrc" in out and out.count(b"bring it home?") == 2, out


@test
def a_diff_writes_nothing(place):
    repository(place)
    both_changed(place)
    before = digest(place.work)
    for words in ((), ("--stat",), ("--json",), ("--name-only",), ("--ignored",)):
        equal(place.cove("diff", *words).code, 0)
    equal(digest(place.work), before)


if __name__ == "__main__":
    adopt_orphans()
    main()
