"""The whole way of a day's work: a scripted agent in a real repository, and its owner."""
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, descendants, tool, wait_for, write  # noqa: E402

PACKAGES = ("email", "json", "http", "logging", "urllib", "xml", "html", "wsgiref", "unittest")
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1"}
TRAPS = {".git/hooks/post-checkout", ".git/config", "etc", ".envrc", ".vscode/tasks.json", ".profile"}


def git(place, *words, top=None):
    """The owner's git, which reads everything that a repository may tell it."""
    done = subprocess.run(["git", *words], cwd=top or place.work, env=dict(place.env, **WHO), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done
    return done.stdout.decode()


def repository(place):
    """Python's own library, as a project under version control."""
    source = pathlib.Path(sysconfig.get_path("stdlib", vars={"installed_base": "/usr"}))
    for name in PACKAGES:
        shutil.copytree(source / name, place.work / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy)
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "as packaged")
    files = sorted(str(path.relative_to(place.work)) for path in place.work.rglob("*.py") if ".git" not in path.parts)
    assert len(files) > 60, files
    return files


def agent(place, thirty):
    """Edits thirty files, commits twice, and plants six traps."""
    mark = place.dir / "sprung"
    lines = [f"edit() {{ for f in \"$@\"; do sed -i '1i # reviewed by the agent' \"$f\"; done; }}",
             "edit " + " ".join(thirty[:15]), "git commit -qam one", "edit " + " ".join(thirty[15:]), "git commit -qam two",
             f"printf '#!/bin/sh\\necho hook >>{mark}\\n' >.git/hooks/post-checkout", "chmod +x .git/hooks/post-checkout",
             f"printf '#!/bin/sh\\necho fsmonitor >>{mark}\\n' >helper.sh", "chmod +x helper.sh", "git config core.fsmonitor ./helper.sh",
             "ln -s /etc etc", f"echo 'echo envrc >>{mark}' >.envrc", "mkdir .vscode", "echo '{\"tasks\": [{\"runOptions\": {\"runOn\": \"folderOpen\"}}]}' >.vscode/tasks.json",
             f"echo 'echo profile >>{mark}' >notes.txt", "ln notes.txt .profile", "git log --format=%s | head -2 | tr '\\n' ' '"]
    write(place.work / "agent.sh", "set -e\n" + "\n".join(lines) + "\n")
    options = [word for key, value in WHO.items() for word in ("-e", f"{key}={value}")]
    done = place.cove("run", "-q", *options, "--", "sh", "agent.sh")
    equal((done.code, done.text), (0, "two one "), done)
    wait_for(lambda: not descendants(), what="the end of all guards")
    (place.work / "agent.sh").unlink()
    return mark


def upper_of(place):
    return next(path for path in place.state.glob("sandboxes/*/u*") if (path / "helper.sh").exists())


@test
def thirty_files_come_home_and_six_traps_do_not(place):
    tool("git")
    files = repository(place)
    thirty = files[::len(files) // 30][:30]
    before = {name: (place.work / name).read_text() for name in files}
    protected = {name: (place.work / name).read_bytes() for name in (".git/HEAD", ".git/config", ".git/index", ".git/refs/heads/main")}
    mark = agent(place, thirty)

    shown = place.cove("diff", "--name-only").text.splitlines()
    equal([name for name in [*thirty, *TRAPS, "notes.txt", "helper.sh"] if name not in shown], [], "not shown")
    patch = place.cove("diff").text
    assert patch.count("+# reviewed by the agent") == 30 and "leads out of the workspace" in patch and "hard link" in patch, patch[-3000:]

    done = place.cove("apply", "--yes")
    assert done.code == 1, done  # something was refused
    for name in files:
        equal((place.work / name).read_text(), ("# reviewed by the agent\n" if name in thirty else "") + before[name], name)
    for line in done.text.splitlines():
        word, _, rest = line.partition(" ")
        name = rest.strip().partition(" (")[0].partition(" [")[0].partition(": ")[0]
        if name in TRAPS:
            equal(word, "REFUSED" if name == "etc" or name.startswith(".git/") else "left", line)
    for name in TRAPS - {".git/config"}:
        assert not os.path.lexists(place.work / name), name
    equal({name: (place.work / name).read_bytes() for name in protected}, protected, "the owner's HEAD, configuration, index and branch")
    equal(((place.work / "notes.txt").stat().st_nlink, (place.work / "helper.sh").exists()), (1, True))

    status = git(place, "status", "--short")
    assert status.count(" M ") == 30, status
    equal(git(place, "log", "--format=%s", "main"), "as packaged\n")
    git(place, "diff", "--stat")
    git(place, "checkout", "-q", "-b", "other")
    assert not mark.exists(), f"the host ran {mark.read_text()}"
    if "export" in place.cove("help").text:  # commits come home as objects
        branches = git(place, "for-each-ref", "--format=%(refname)", "refs/heads/cove/").split()
        equal(len(branches), 1, done)
        equal(git(place, "log", "--format=%s", branches[0]), "two\none\nas packaged\n")
        git(place, "fsck", "--strict")
        equal(git(place, "diff", "--stat", branches[0], "--", *thirty), "", "the commits have what the files have")
    assert not mark.exists(), f"the host ran {mark.read_text()}"

    # The control: the same traps, brought home by a careless copy.
    copy = place.dir / "copy"
    shutil.copytree(place.work, copy, symlinks=True)
    for name in (".git/hooks/post-checkout", ".git/config", "helper.sh"):
        shutil.copy(upper_of(place) / name, copy / name)
    git(place, "status", "--short", top=copy)
    git(place, "checkout", "-q", "-b", "more", top=copy)
    equal(set(mark.read_text().split()), {"hook", "fsmonitor"}, "the control does not fire, so the check proves nothing")


if __name__ == "__main__":
    adopt_orphans()
    main()
