"""Kernels that lack one system call: each command does all of it another way, or says in one line what is missing.
All calls: `tests/soak lacking`."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, Result, equal, main, test  # noqa: E402
from support.lacking import CALLS, without  # noqa: E402
from support.running import adopt_orphans, digest, nothing_left, one_error, write  # noqa: E402

# Feature by which a refusal names what is missing, unless it sends one to the doctor.
NEEDED = {"clone3": "user namespaces", "landlock_add_rule": "[Ll]andlock", "landlock_restrict_self": "[Ll]andlock", "seccomp": "seccomp", "pivot_root": "pivot_root", "setns": "namespace",
          "capset": "capabilit", "sethostname": "host name", "flock": "lock", "signalfd4": "signal", "mkdirat": "make the directory", "renameat2": "put it in its place|take it away"}
FEW = ("openat2", "clone3", "close_range", "landlock_create_ruleset", "landlock_restrict_self", "mount_setattr", "move_mount", "fsopen", "pidfd_open", "execveat", "memfd_create", "statx",
       "faccessat2", "copy_file_range", "renameat2", "process_madvise", "name_to_handle_at", "fchmodat2")
SCRIPT = "echo new >changed; mkdir -p d/e; echo x >d/e/x; rm gone; chmod 755 mode; mv moved d/moved; ln -s changed link; head -c 200000 /dev/zero >zeros"
RIGHTS = 'while read -r line; do case $line in Cap*|NoNewPrivs*|Seccomp:*) echo "$line";; esac; done </proc/self/status; echo x >file; echo $?; unshare -U true 2>/dev/null; echo $?; ls /dev | wc -l; cat /proc/self/limits'


def on(place, name, *words):
    return Result(subprocess.run([*(without(name) if name else ()), COVE, *map(str, words)], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=120))


def told(name, done, what):
    """One line that names the cause; nothing else was shown."""
    text = done.errors + (done.text if what == "apply" else "")
    assert done.code in ((125, 1) if what == "apply" else (125,)), f"{what} without {name}: {done!r}"
    assert "cove doctor" in text or re.search(NEEDED.get(name, "\0"), text), f"{what} without {name} does not say so: {done!r}"
    assert what == "apply" or (done.out == b"" and len(done.errors.splitlines()) == 1), f"{what} without {name}: {done!r}"


class Host:
    """A sandbox with changes of every kind, and what each command makes of it where nothing is lacking."""

    def __init__(self, place):
        self.place, self.pristine = place, place.dir / "pristine"
        for name in ("changed", "gone", "mode", "moved", "untouched"):
            write(place.work / name, f"{name}\n" * 30)
        shutil.copytree(place.work, self.pristine)
        equal(place.cove("run", "-q", "--name", "s", "--", "sh", "-ec", SCRIPT).code, 0)
        self.rights = on(place, None, "run", "--rm", "--", "sh", "-c", RIGHTS)
        assert b"Seccomp:\t2" in self.rights.out.replace(b" ", b"\t"), self.rights
        self.diff, self.archive = on(place, None, "diff", "s"), on(place, None, "export", "s")
        self.tree = self.apply(None)[1]
        assert self.diff.out and self.archive.out and self.tree["d/e/x"] == b"x\n" and "gone" not in self.tree, self.tree

    def apply(self, name):
        target = self.place.dir / "target"
        shutil.copytree(self.pristine, target)
        done = on(self.place, name, "apply", "--yes", "--to", target, "s")
        tree = {str(p.relative_to(target)): os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None for p in target.rglob("*")}
        shutil.rmtree(target)
        return done, tree

    def lacks(self, name):
        """How many of the four commands refused."""
        refused = 0
        before = digest(self.place.work)
        ran = on(self.place, name, "run", "--rm", "--", "sh", "-c", RIGHTS)
        if ran.code == 0:
            equal(ran.out, self.rights.out, f"the box without {name}")
        else:
            told(name, ran, "run")
            refused += 1
        for words, wanted in ((("diff", "s"), self.diff), (("export", "s"), self.archive)):
            done = on(self.place, name, *words)
            if done.code == 0:
                equal((done.out, done.err), (wanted.out, wanted.err), f"{words} without {name}")
            else:
                told(name, done, words[0])
                refused += 1
        done, tree = self.apply(name)
        if done.code == 0:
            equal(tree, self.tree, f"apply without {name}")
        else:
            told(name, done, "apply")
            assert all(tree.get(path) in (self.tree.get(path), (self.pristine / path).read_bytes() if (self.pristine / path).is_file() else None) for path in {*tree, *self.tree}), (name, tree)
            assert not [path for path in tree if ".cove-apply" in path], (name, tree)
            refused += 1
        equal(digest(self.place.work), before, f"the workspace without {name}")
        return refused


@test
def whichever_newer_call_is_missing_it_works_all_the_same_or_says_so(place):
    host, refused = Host(place), {}
    names = CALLS if float(os.environ.get("COVE_SOAK_SECONDS", "2")) > 5 else FEW
    for name in names:
        refused[name] = host.lacks(name)
    print("# refused where it is missing: " + " ".join(f"{name}:{count}" for name, count in refused.items() if count))
    assert refused["clone3"] >= 1 and refused["openat2"] == 4, f"a call that nothing works without is not missing: {refused}"
    equal([name for name in ("fsopen", "pidfd_open", "faccessat2", "copy_file_range", "process_madvise", "landlock_create_ruleset") if refused[name]], [], "what has another way")
    equal(place.cove("rm", "s").code, 0)
    nothing_left(place)


@test
def commits_come_home_also_where_files_are_copied_the_long_way(place):
    def git(*words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=place.work, env=place.env, check=True, stdout=subprocess.PIPE, text=True).stdout

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    equal(place.cove("run", "-q", "--name", "g", "--", "sh", "-ec", "head -c 100000 /dev/urandom >f; git add f; git -c user.name=b -c user.email=b@example.org commit -qm second").code, 0)
    done = on(place, "copy_file_range", "apply", "--yes", "--only-commits", "g")
    equal((done.code, done.err), (0, b""), repr(done))
    equal(git("log", "-1", "--format=%s", "cove/g/main"), "second\n")
    equal(git("cat-file", "-s", "cove/g/main:f"), "100000\n")
    equal(place.cove("rm", "g").code, 0)


@test(id="Z-23")
def without_random_bytes_nothing_starts(place):
    one_error(on(place, "getrandom", "run", "--rm", "--", "true"), "random")
    nothing_left(place)


if __name__ == "__main__":
    adopt_orphans()
    main()
