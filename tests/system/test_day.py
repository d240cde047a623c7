"""A day in the life of one sandbox: a clone, twenty steps, mistakes taken back, forks, an exploration, and home."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, digest, nothing_left, reap, tool, wait_for, write  # noqa: E402

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1"}
NAMES = ("add", "sub", "mul", "square", "negate")
RIGHT = {"add": "$1 + $2", "sub": "$1 - $2", "mul": "$1 * $2", "square": "$1 * $1", "negate": "0 - $1"}
MAKEFILE = """test: build/calc.sh
	@sh tests/run.sh
build/calc.sh: $(wildcard src/*.sh)
	@mkdir -p build && cat src/*.sh >$@
clean:
	@rm -rf build
"""
TESTS = """. build/calc.sh
passed=0
check() { if [ "$1" = "$2" ]; then passed=$((passed + 1)); else echo "got $1, wanted $2"; fi; }
check "$(add 2 3)" 5
check "$(sub 2 3)" -1
check "$(mul 2 3)" 6
check "$(square 4)" 16
check "$(negate 4)" -4
echo $passed
[ $passed = 5 ]
"""


def git(place, top, *words):
    done = subprocess.run(["git", *words], cwd=top, env=dict(place.env, **WHO), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done
    return done.stdout.decode()


def function(name, value):
    return f"{name}() {{ echo $(({value})); }}\n"


def clone(place):
    """The owner's work tree: a clone of a repository in which one function of five is right."""
    origin = place.dir / "origin"
    write(origin / "Makefile", MAKEFILE)
    write(origin / "tests/run.sh", TESTS)
    write(origin / ".gitignore", "build/\n")
    for name in NAMES:
        write(origin / f"src/{name}.sh", function(name, RIGHT[name] if name == "add" else "99"))
    git(place, origin, "init", "-q", "-b", "main")
    git(place, origin, "add", "-A")
    git(place, origin, "commit", "-qm", "first")
    place.work.rmdir()
    git(place, place.dir, "clone", "-q", str(origin), str(place.work))
    return origin


class Day:
    """Commands in the sandbox `day`, each a step."""

    def __init__(self, place):
        self.place, self.steps = place, 0

    def run(self, script, code=0):
        done = self.place.cove("exec", *[word for key, value in WHO.items() for word in ("-e", f"{key}={value}")], "day", "--", "sh", "-c", script)
        self.steps += 1
        equal(done.code, code, f"step {self.steps}, {script!r}: {done}")
        return done.text

    def passing(self, count):
        """make test: how many tests pass; it fails unless all do."""
        equal(self.run("make -s test", code=0 if count == 5 else 2).splitlines()[-1], str(count), "tests that pass")

    def fix(self, name, value=None):
        self.run(f"printf '%s\\n' '{function(name, value or RIGHT[name]).strip()}' >src/{name}.sh")

    def cove(self, *words, code=0):
        done = self.place.cove(*words)
        equal(done.code, code, done)
        return done.text


@test
def a_day_from_clone_to_home(place):
    tool("git", "make")
    origin = clone(place)
    before, upstream = digest(place.work), digest(origin)
    day = Day(place)
    day.cove("create", "--name", "day")
    day.passing(1)                                              # 1
    equal(day.run("git log --format=%s"), "first\n")            # 2
    day.fix("sub")                                              # 3
    day.passing(2)                                              # 4
    day.fix("mul", "$1 + $2")                                   # 5: wrong
    day.passing(2)                                              # 6
    day.fix("mul")                                              # 7
    day.passing(3)                                              # 8
    day.run("git commit -qam 'sub and mul'")                    # 9
    day.run("rm -rf src .git")                                  # 10: a mistake
    day.run("make -s clean test", code=2)                       # 11
    equal(day.cove("undo", "day", "2").strip(), "9")
    equal(day.run("git status --short"), "")                    # 12
    day.passing(3)                                              # 13
    day.run("sed -i s/99/0/ src/*.sh && echo junk >>Makefile")  # 14: a way that leads nowhere
    day.run("make -s test", code=2)                             # 15
    day.run("git commit -qam 'worse'")                          # 16
    day.cove("rollback", "day", "9")
    equal(day.run("git log --format=%s"), "sub and mul\nfirst\n")  # 17
    day.run("sleep 0.1 & echo note >/tmp/note; wait")           # 18
    equal(day.run("cat /tmp/note"), "note\n")                   # 19
    day.passing(3)                                              # 20
    equal((day.steps, len(json.loads(day.cove("steps", "--json", "day"))["steps"])), (20, 20))
    equal(digest(place.work), before, "the owner's tree all day long")

    # Three ways by hand: forks do not see each other, nor does the one that they are from.
    forks = day.cove("fork", "day", "-n", "3", "--name", "way").split()
    for number, fork in enumerate(forks, 1):
        equal(place.cove("exec", fork, "--", "sh", "-c", f"echo {number} >mine; ls mine; cat /tmp/note").text, "mine\nnote\n")
    equal([place.cove("exec", fork, "--", "cat", "mine").text for fork in forks], ["1\n", "2\n", "3\n"])
    equal(place.cove("exec", "day", "--", "cat", "mine").code, 1)
    day.cove("rm", "-f", "way-1", "way-2", "way-3")

    # Four tries of the rest: one does half of it, one all, one all with much noise, one cheats.
    half, rest = function("square", RIGHT["square"]), function("negate", RIGHT["negate"])
    tries = f"""case $COVE_TRY in
        1) echo '{half.strip()}' >src/square.sh;;
        2) echo '{half.strip()}' >src/square.sh; echo '{rest.strip()}' >src/negate.sh; seq 100 >NOTES;;
        3) echo '{half.strip()}' >src/square.sh; echo '{rest.strip()}' >src/negate.sh;;
        4) echo 'echo 1000' >tests/run.sh; printf 'test:\\n\\t@echo 1000\\n' >Makefile;;
        esac; make -s test"""
    found = json.loads(day.cove("explore", "day", "-n", "4", "--json", "--name", "won", "--score", "make -s clean; make -s test", "--score-files", "tests", "--score-files", "Makefile",
                                "--", "sh", "-c", tries))
    equal([(row["try"], row["score"]) for row in found["tries"]], [(3, 5), (2, 5), (1, 4), (4, 3)], "the order")
    equal(found["tries"][-1]["tampered"], ["Makefile", "tests/run.sh"])
    equal(sorted(row["name"] for row in json.loads(day.cove("ls", "--json"))), ["day", "won"])

    # Home.
    equal(day.cove("diff", "--name-only", "won").split(), [f"src/{name}.sh" for name in sorted(("mul", "negate", "square", "sub"))])
    day.cove("apply", "--yes", "--no-commits", "--verify", "make -s test", "won")
    equal(subprocess.run(["make", "-s", "clean", "test"], cwd=place.work, env=place.env, stdout=subprocess.PIPE).stdout, b"5\n")
    equal(git(place, place.work, "log", "--format=%s"), "first\n")
    equal(git(place, place.work, "diff", "--stat").splitlines()[-1].split(",")[0].strip(), "4 files changed")
    equal(digest(origin), upstream, "where it was cloned from")

    day.cove("rm", "-f", "won", "day")
    reap()
    nothing_left(place)
    wait_for(lambda: not os.listdir(place.state / "layers"), what="the end of the layers")
    equal((os.listdir(place.state / "snapshots"), (place.state / "explore").exists()), ([], False))


adopt_orphans()
main()
