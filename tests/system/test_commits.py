"""Commits come home as objects: cove diff, cove apply and cove export --patch on git repositories."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import IDENTITY, equal, main, test  # noqa: E402
from support.running import adopt_orphans, descendants, digest, nothing_left, start, tool, wait_for, write  # noqa: E402

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


PREPARE = "git config --global user.name Agent; git config --global user.email agent@example.org; git config --global --add safe.directory '*'; "


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


@test
def commits_of_a_submodule_land_in_its_repository(place):
    source = place.dir / "source"
    source.mkdir()
    make_repository(place, cwd=source)
    make_repository(place)
    git(place, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "libs/sub")
    git(place, "commit", "-qm", "submodule")
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
    assert done.code == 125 and "a branch called cove" in done.errors, done


@test
def a_repository_of_sha256_works_and_one_of_reftables_is_refused(place):
    make_repository(place, "--object-format=sha256")
    agent(place, "echo x >x; git add x; git commit -qm sha256")
    applied(place)
    equal(branches(place), {"cove/bot/main": ["sha256", "first"]})
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
    assert time.monotonic() - began < 10
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
