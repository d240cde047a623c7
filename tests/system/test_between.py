"""What lies between two steps: cove diff A..B and --step, beside plain copies of the tree after each step."""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, equal, main, test  # noqa: E402
from support.running import adopt_orphans, nothing_left, one_error, reap, tool, wait_for, write  # noqa: E402

NAMES = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "d/e/f/a", "g", "g/a", "g/d"]


def good(done):
    equal((done.code, done.err), (0, b""), done)
    return done


def layers(place):
    found = place.state / "layers"
    return sorted(os.listdir(found)) if found.exists() else []


@contextlib.contextmanager
def staying(place, *options):
    (ident,) = good(place.cove("create", *options)).text.split()
    try:
        yield ident
    finally:
        place.cove("rm", "-f", ident)
        reap()
    nothing_left(place)
    wait_for(lambda: not layers(place), what="the end of its layers")


def execute(place, ident, script):
    return good(place.cove("exec", ident, "--", "sh", "-c", script))


def steps(place, ident):
    return json.loads(place.cove("steps", "--json", ident).out)["steps"]


def counted(place, ident):
    """All steps, when all are."""
    done = lambda row: row["added"] is not None and (not row["checkpoint"] or row["hashes_left_out"] is not None)  # noqa: E731
    wait_for(lambda: all(map(done, steps(place, ident))), what="what the steps changed")
    return steps(place, ident)


def tree(root):
    """Each path below it, with all that a diff tells of it."""
    found = {}
    for at, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(at, name)
            status = os.lstat(path)
            kind, content = stat.S_IFMT(status.st_mode), None
            if kind == stat.S_IFREG:
                content = pathlib.Path(path).read_bytes()
            elif kind == stat.S_IFLNK:
                content = os.readlink(path)
            found[os.path.relpath(path, root)] = kind, content, None if kind == stat.S_IFLNK else status.st_mode & 0o7777
    return found


def expected(old, new):
    """The kind of each change, by the two trees alone."""
    kinds = {}
    for path in old.keys() | new.keys():
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        if before is None or after is None:
            kinds[path] = "added" if before is None else "removed"
        elif before[0] != after[0]:
            kinds[path] = "retyped"
        else:
            kinds[path] = "changed" if before[1] != after[1] else "mode"
    return kinds


def told(place, *words):
    """The same as Cove tells it; a rename is a removal and an addition."""
    kinds = {}
    for change in json.loads(good(place.cove("diff", "--json", *words)).out)["changes"]:
        if change["kind"] == "renamed":
            kinds[change["from"]], kinds[change["path"]] = "removed", "added"
        else:
            kinds[change["path"]] = change["kind"]
    return kinds


def random_script(chance):
    lines = ["exec 2>/dev/null", "umask 022"]
    for _ in range(chance.randrange(1, 5)):
        one, other, word = chance.choice(NAMES), chance.choice(NAMES), chance.randrange(100)
        lines.append(chance.choice([
            f"echo {word} >{one}", f"echo {word} >>{one}", f"echo {word} >{one}; echo {word} >{other}", f"rm -rf {one}", f"mkdir -p {one}; echo {word} >{one}/n{word % 5}",
            f"rm -rf {one}; mkdir -p {one}", f"rm -f {one}; ln -s {word} {one}", f"chmod 755 {one}", f"chmod 700 {one}", f"mv {one} {other}", f"rm -rf {one}; cp -r {other} {one}",
            f"rm -rf {one}; echo {word} >{one}", f"rm -rf {one}; cp -p {other} {one}"]))
    return "; ".join(lines + ["true"])


class Life:
    """A sandbox, and a plain directory in which the same is done."""

    def __init__(self, place, ident, chance):
        self.place, self.ident, self.chance = place, ident, chance
        self.plain = place.work.parent / "plain"
        shutil.copytree(place.work, self.plain, symlinks=True)
        self.after = {0: tree(self.plain)}
        self.before = {}
        self.saved = place.work.parent / "saved"
        self.last = 0
        self.save(0)

    def save(self, number):
        shutil.copytree(self.plain, self.saved / str(number), symlinks=True)

    def step(self, script=None):
        script = script or random_script(self.chance)
        execute(self.place, self.ident, script)
        subprocess.run(["sh", "-c", script], cwd=self.plain, check=True, stdout=subprocess.DEVNULL)
        self.before[self.last + 1] = self.now
        self.last += 1
        self.after[self.last] = tree(self.plain)
        self.save(self.last)
        self.at = self.last

    @property
    def now(self):
        return getattr(self, "at", 0)

    def back(self, number):
        good(self.place.cove("rollback", self.ident, number))
        shutil.rmtree(self.plain)
        shutil.copytree(self.saved / str(number), self.plain, symlinks=True)
        self.at = number

    def check(self, one, other):
        equal(told(self.place, self.ident, f"{one}..{other}"), expected(self.after[one], self.after[other]), f"{one}..{other}")

    def check_record(self, row):
        """What the trace says of a step: numbers, files and hashes."""
        number, top = row["number"], str(self.place.work) + "/"
        kinds = expected(self.after[self.before[number]], self.after[number])
        wanted = {path: "changed" if kind in ("mode", "retyped") else kind for path, kind in kinds.items()}
        files = [file for file in row["files"] if file["path"].startswith(top)]
        equal({file["path"][len(top):]: file["how"] for file in files}, wanted, f"files of step {number}")
        equal(len(files), len(wanted), "each once")
        counts = [sum(how == kind for how in wanted.values()) for kind in ("added", "changed", "removed")]
        equal([row["added"], row["changed"], row["removed"]], counts, f"numbers of step {number}")
        for file in files:
            kind, content, _ = self.after[number].get(file["path"][len(top):], (None, None, None))
            hashed = (len(content), hashlib.sha256(content).hexdigest()) if kind == stat.S_IFREG else (None, None)
            equal((file["bytes"], file["sha256"]), hashed, file)

    def check_step(self, number):
        equal(told(self.place, "--step", number, self.ident), expected(self.after[self.before[number]], self.after[number]), f"step {number}")


def lay(place, chance):
    for name in ("a", "d/a", "d/e/a", "d/e/f/a", "g/a"):
        write(place.work / name, f"{chance.randrange(100)}\n")


def live(place, seed, steps, *options):
    chance = random.Random(seed)
    lay(place, chance)
    with staying(place, *options) as ident:
        life = Life(place, ident, chance)
        for _ in range(steps):
            if life.last and chance.random() < 0.15:
                life.back(chance.randrange(life.last + 1))
            life.step()
        for number in range(1, life.last + 1):
            life.check_step(number)
        for row in counted(place, ident):
            life.check_record(row)
        for _ in range(steps):
            life.check(chance.randrange(life.last + 1), chance.randrange(life.last + 1))
        good(place.cove("stop", ident))
        for _ in range(5):
            life.check(chance.randrange(life.last + 1), chance.randrange(life.last + 1))
        life.check(0, life.last)


@test
def any_two_steps_differ_as_plain_copies_do(place):
    live(place, 1, 24)


@test
def so_they_do_on_a_copy_of_the_workspace(place):
    live(place, 2, 12, "--workspace", "copy")


@test
def a_patch_between_two_steps_makes_the_second_of_the_first(place):
    chance = random.Random(3)
    lay(place, chance)
    with staying(place) as ident:
        life = Life(place, ident, chance)
        for _ in range(8):
            life.step()
        for one, other in ((0, 8), (8, 0), (3, 5), (6, 2)):
            patch = good(place.cove("diff", ident, f"{one}..{other}")).out
            target = life.saved / "patched"
            shutil.copytree(life.saved / str(one), target, symlinks=True)
            if patch:
                subprocess.run(["git", "apply", "--whitespace=nowarn", "--unsafe-paths", "-"], input=patch, cwd=target, check=True, env=dict(place.env, GIT_CEILING_DIRECTORIES=str(target.parent)))
            leaves = lambda found: {path: (kind, content) for path, (kind, content, _) in found.items() if kind != stat.S_IFDIR}  # noqa: E731
            equal(leaves(tree(target)), leaves(life.after[other]), f"{one}..{other}")
            shutil.rmtree(target)


@test
def what_a_step_changed_is_bounded_and_says_so(place):
    with staying(place) as ident:
        execute(place, ident, "for i in $(seq 1000); do echo $i >f$i; done; echo t >/tmp/t")
        execute(place, ident, "truncate -s 65M large; echo s >small; mkfifo pipe; ln -s f1 link")
        execute(place, ident, "rm -r f*")
        many, large, gone = counted(place, ident)
        equal((many["added"], len(many["files"]), many["files_left_out"], many["hashes_left_out"]), (1001, 256, 745, 745))
        equal(many["files"][0], {"path": f"{place.work}/f1", "how": "added", "bytes": 2, "sha256": hashlib.sha256(b"1\n").hexdigest()})
        equal((large["added"], large["hashes_left_out"]), (4, 1), "one is too large")
        equal({pathlib.Path(file["path"]).name: file["bytes"] for file in large["files"]}, {"large": None, "link": None, "pipe": None, "small": 2})
        equal((gone["removed"], gone["files_left_out"], gone["hashes_left_out"]), (1000, 744, 744))
        assert "+1001 ~0 -0" in place.cove("steps", ident).text


@test
def what_could_not_be_counted_is_counted_after_the_next_start(place):
    with staying(place) as ident:
        for number in range(6):
            execute(place, ident, f"echo {number} >f{number}")
            os.kill(json.loads((place.state / "sandboxes" / ident / "record.json").read_text())["keeper"], signal.SIGKILL)
            wait_for(lambda: place.cove("ls", "--json").text.count('"killed"') == 1, what="its end")
            good(place.cove("start", ident))
        rows = counted(place, ident)
        equal([[file["path"].rsplit("/")[-1] for file in row["files"]] for row in rows if row["checkpoint"]], [[f"f{row['number'] - 1}"] for row in rows if row["checkpoint"]])


@test
def a_stop_waits_for_what_is_being_counted(place):
    with staying(place) as ident:
        execute(place, ident, "echo 1 >one")
        good(place.cove("stop", ident))
        (row,) = steps(place, ident)
        equal((row["added"], row["files"][0]["sha256"]), (1, hashlib.sha256(b"1\n").hexdigest()))
        kinds = [json.loads(line)["kind"] for line in (place.state / "sandboxes" / ident / "trace.jsonl").read_text().splitlines()]
        equal(kinds[-3:], ["step.changed", "step.files", "sandbox.stopped"])


@test
def it_costs_the_changes_and_not_the_tree(place):
    for number in range(3000):
        write(place.work / f"d{number % 50}/f{number}", "x\n")
    with staying(place) as ident:
        execute(place, ident, "echo 1 >d1/new")
        execute(place, ident, "rm d2/f2; echo 2 >>d3/f3")
        equal(told(place, ident, "1..2"), {"d2/f2": "removed", "d3/f3": "changed"})
        equal(told(place, ident, "0..1"), {"d1/new": "added"})
        tool("strace")
        calls = place.work.parent / "calls"
        subprocess.run(["strace", "-f", "-qq", "-o", calls, COVE, "diff", "--json", ident, "1..2"], cwd=place.work, env=place.env, stdout=subprocess.DEVNULL, check=True)
        count = len(calls.read_text().splitlines())
        assert count < 2000, f"{count} system calls for two changes in 3000 files"


@test
def what_is_asked_for_has_the_forms_of_every_diff(place):
    write(place.work / "a", "1\n2\n")
    write(place.work / "d/b", "b\n")
    with staying(place) as ident:
        execute(place, ident, "echo 3 >>a; echo n >d/n")
        execute(place, ident, "true")
        execute(place, ident, "rm d/b; chmod 755 a")
        equal(place.cove("diff", ident, "0..1", "--name-only").text, "a\nd/n\n")
        equal(place.cove("diff", "0..1", "--name-only", "d").text, "d/n\n", "of the last sandbox here, and paths")
        equal(place.cove("diff", "--step", "1", "--name-only").text, "a\nd/n\n")
        equal(place.cove("diff", "--step", "1", "--name-only", ident, "a").text, "a\n")
        equal(good(place.cove("diff", "--step", "2", ident)).text, "", "a step that changed nothing")
        assert "1+      0-  a" in place.cove("diff", "--stat", ident, "0..1").text
        assert "+3\n" in place.cove("diff", ident, "0..1", "a").text
        known = json.loads(place.cove("diff", "--json", ident, "1..3").out)
        equal((known["from"], known["to"], known["id"], [row["path"] for row in known["changes"]]), ("1", "3", ident, ["a", "d/b"]))
        assert "digest" not in known and "commits" not in known, "nothing that is brought home"
        write(place.work / "1..2", "a path\n")
        equal(place.cove("diff", "--name-only", ident, "./1..2").code, 0, "a path that looks like two steps")


@test
def snapshots_are_compared_also_without_their_sandboxes(place):
    write(place.work / "a", "1\n")
    with staying(place) as ident:
        execute(place, ident, "echo 2 >>a")
        good(place.cove("snapshot", ident, "--name", "one"))
        (fork,) = good(place.cove("fork", ident)).text.split()
        execute(place, fork, "echo f >fork; rm a")
        good(place.cove("snapshot", fork, "--name", "fork"))
        execute(place, ident, "echo 3 >>a; echo n >new")
        good(place.cove("snapshot", ident, "--name", "two"))
        equal(told(place, ident, "one..two"), {"a": "changed", "new": "added"})
        equal(told(place, ident, "0..one"), {"a": "changed"})
        good(place.cove("rm", "-f", fork))
        good(place.cove("rm", "-f", ident))
        equal(told(place, "one..two"), {"a": "changed", "new": "added"})
        equal(told(place, "two..fork"), {"a": "removed", "fork": "added", "new": "removed"})
        one_error(place.cove("diff", "one..three"), "no snapshot 'three'")
        good(place.cove("snapshot", "rm", "one", "two", "fork"))


@test
def what_has_no_checkpoint_is_one_clear_error(place):
    with staying(place, "--live-bytes", "1K") as ident:
        execute(place, ident, "head -c 5000 /dev/zero >one; sleep 1000 >/dev/null 2>&1 & echo $! >/tmp/pid")
        one_error(place.cove("diff", ident, "0..1"), "step 1 has no checkpoint: processes were running")
        one_error(place.cove("diff", "--step", "1", ident), "step 1 has no checkpoint")
        one_error(place.cove("diff", ident, "0..7"), "no step 7")
        one_error(place.cove("diff", "--step", "0", ident), "--step 0")
        one_error(place.cove("diff", "--step", "x", ident), "--step x")
    with staying(place, "--no-checkpoints") as ident:
        execute(place, ident, "echo 1 >one")
        one_error(place.cove("diff", ident, "0..1"), "without checkpoints")


@test
def what_was_hidden_is_not_told(place):
    write(place.work / ".env", "SECRET=1\n")
    write(place.work / "d/.env", "SECRET=2\n")
    with staying(place, "--hide", "**/.env") as ident:
        execute(place, ident, "test ! -e .env; echo 1 >d/x")
        execute(place, ident, "echo own >.env; echo own >d/.env")
        for words in (("1..2",), ("2..1",), ("0..2",)):
            shown = place.cove("diff", "--json", ident, *words).text + place.cove("diff", ident, *words).text
            assert "SECRET" not in shown, shown
        equal(told(place, ident, "1..2"), {".env": "added", "d/.env": "added"})
        equal(told(place, ident, "2..1"), {".env": "removed", "d/.env": "removed"})


adopt_orphans()
main()
