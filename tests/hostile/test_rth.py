"""RTH: what comes back to the host.  Rows 01 to 05 and 13, which are about git, have a file of their own."""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

from attack import COVE, IDENTITY, control_fires, cove_with, equal, fingerprint, main, run_with_home, skip, test, unchanged
from support.running import descendants, read_until, start, stop, wait_for
from home import apply, changes, layer, leave, names_below, on_host, outcome, sprung, trap, write


def copy_home(place):
    """The control of this group: bring everything home as a careless copy does."""
    for path in sorted(layer(place).rglob("*")):
        target = place.work / path.relative_to(layer(place))
        if path.is_dir() and not path.is_symlink():
            target.mkdir(exist_ok=True)
        elif path.is_symlink():
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(path))
        elif path.is_file():
            shutil.copy(path, target, follow_symlinks=False)


@test(id="RTH-06")
def a_buried_repository_does_not_come_to_life(place):
    if not shutil.which("git"):
        skip("git is not installed")
    trap(place, place.work / "tool")
    tops = ["/".join(f"d{n}" for n in range(1, depth + 1)) + "/" + name for depth in range(1, 9) for name in ("plain", "store")]
    script = "for top in %s; do mkdir -p $top/objects $top/refs $top/hooks; echo 'ref: refs/heads/main' >$top/HEAD; " \
             "printf '[core]\\n\\tbare = true\\n\\trepositoryformatversion = 0\\n\\tpager = %s/tool\\n[alias]\\n\\tgo = !%s/tool\\n' >$top/config; cp tool $top/hooks/post-update; " \
             "done; mkdir -p look/.GIT/hooks 'look2/.git /hooks' look3; cp tool look/.GIT/hooks/pre-commit; cp tool 'look2/.git /hooks/pre-commit'; echo 'gitdir: ../d1/plain' >look3/.git; echo ok >ordinary" \
             % (" ".join(tops), place.work, place.work)
    leave(place, script)
    place.cove("diff")
    found = apply(place)
    equal(found["ordinary"], "done")
    alive = [path for path, word in found.items() if re.search(r"/(HEAD|config|hooks/.|\.git.*)$", path, re.I) and word not in ("left", "REFUSED") and not re.search(r"(hooks|\.GIT|look2/\.git)$", path)]
    control_fires(len([path for path in found if path.endswith("/HEAD")]) == len(tops), found)
    equal(alive, [], "parts of a repository that came home without a question")
    for top in tops:
        on_host(place, "git", "go", cwd=place.work / top)
    assert not sprung(place), "a trap went off"
    copy_home(place)
    for top in tops[:2]:
        on_host(place, "git", "go", cwd=place.work / top)
    control_fires(sprung(place), "git takes such a directory for a repository, once it is home")


CLASS_A = """.git/hooks/post-checkout .git/config .git/config.worktree .git/info/attributes .git/modules/m/config .git/worktrees/w/gitdir .gitmodules .gitattributes .gitconfig
 .husky/pre-commit .envrc .env mise.toml .vscode/tasks.json .vscode/launch.json .vscode/settings.json .vscode/extensions.json .idea/workspace.xml
 x.code-workspace .devcontainer/devcontainer.json .clangd .nvimrc .exrc .vimrc .emacs.d/init.el .dir-locals.el .zed/tasks.json .ripgreprc .curlrc .wgetrc .netrc
 .bashrc .profile .zshrc .venv/bin/python pip.conf .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .cargo/config.toml rust-toolchain.toml sitecustomize.py site-packages/x.pth
 .mvn/extensions.xml cove.yaml""".split()
CLASS_B = """.github/workflows/ci.yml .gitlab-ci.yml Makefile justfile Taskfile.yml package.json build.rs setup.py conftest.py pyproject.toml .bazelrc WORKSPACE gradlew
 gradle/wrapper/gradle-wrapper.properties CMakePresets.json .pre-commit-config.yaml lefthook.yml .tool-versions gradle.properties .python-version .nvmrc""".split()
# What of a file counts is looked at: these contents do something.
CONTENT = {".gitattributes": "* filter=x diff=x", ".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = x\n\tupdate = !x', ".git/config": "[core]\n\tfsmonitor = x",
           ".git/config.worktree": "[core]\n\tfsmonitor = x", "package.json": '{"scripts": {"test": "x"}}', "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "x"',
           "site-packages/x.pth": "import x", ".tool-versions": "nodejs 1", "mise.toml": '[hooks]\nenter = "x"', ".gitconfig": "[core]\n\tpager = x", "pip.conf": "[global]\nindex-url = x"}


def make_each(paths):
    lines = [f"mkdir -p '{os.path.dirname(path) or '.'}'; printf '%s\\n' '{CONTENT.get(path, 'x')}' >'{path}'; chmod +x '{path}'" for path in paths]
    return "; ".join(lines)


def kept_out(place, paths, others=()):
    """None of these came home with --yes; each is named as what it is, and comes when it is named."""
    leave(place, make_each([*paths, *others]) + "; echo fine >fine")
    done = place.cove("apply", "--yes")
    found = outcome(done)
    never = [path for path in paths if path.startswith(".git/")]  # git's own: commits come home, files do not
    equal({path: found.get(path) for path in paths}, {path: "REFUSED" if path in never else "left" for path in paths}, "asked for one by one")
    equal([path for path in paths if (place.work / path).exists()], [], "at home without a question")
    equal(found["fine"], "done")
    unmarked = [path for path in [*paths, *others] if path not in never and not re.search(rf"^\w+ +{re.escape(path)}.* \[.+\]$", done.text, re.M)]
    equal(unmarked, [], "named without a reason")
    for path in others:
        equal(found.get(path), "done", path)
    place.cove("apply", "--yes", *[word for path in paths for word in ("--allow-autorun", path)])
    control_fires(all((place.work / path).exists() for path in paths if path not in never), "they come when they are named")


@test(id="RTH-07")
def each_file_that_acts_by_being_there_is_asked_for(place):
    kept_out(place, CLASS_A, CLASS_B)


@test(id="RTH-08")
def settings_of_package_managers_and_interpreters_are_asked_for(place):
    kept_out(place, """.npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs bunfig.toml pip.conf pip.ini .pip/pip.conf .pypirc uv.toml poetry.toml .condarc .cargo/config .cargo/config.toml .bundle/config
     .gemrc .mvn/jvm.config .m2/settings.xml .sbtopts NuGet.config .luarocks/config.lua .terraformrc sitecustomize.py usercustomize.py sub/deep/sitecustomize.py
     .venv/pyvenv.cfg venv/bin/activate .pythonrc .irbrc .gdbinit""".split())


@test(id="RTH-09")
def modes_types_and_programs_are_shown(place):
    for name in ("script", "text", "to-link", "data"):
        write(place.work / name, "one\ntwo\n")
    leave(place, "chmod +x script; printf '#!/bin/sh\\none\\ntwo\\n' >text; rm to-link; ln -s data to-link; cp /bin/true elf; chmod +x elf; ln -s script s")
    found = changes(place)
    equal({path: change["kind"] for path, change in found.items()}, {"script": "mode", "text": "changed", "to-link": "retyped", "elf": "added", "s": "added"})
    equal((found["script"]["old"]["mode"], found["script"]["new"]["mode"]), ("0644", "0755"))
    equal((found["to-link"]["old"]["type"], found["to-link"]["new"]["type"], found["elf"]["new"]["mode"]), ("file", "link", "0755"))
    patch = place.cove("diff").text
    for line in ("old mode 100644", "new mode 100755", "+#!/bin/sh", "new file mode 100755", "new file mode 120000"):
        assert line in patch, f"{line!r} is not shown: {patch}"
    assert re.search(r"^(GIT binary patch|Binary files .* differ)$", patch, re.M), patch
    done = place.cove("apply", "--yes")
    assert re.search(r"script.*\[.*be executed", done.text) and re.search(r"elf.*\[.*\]", done.text), done
    equal(changes(place), {}, "nothing is hidden")
    leave(place, "echo three >>text")
    control_fires("old mode" not in place.cove("diff").text, "a plain change shows no mode")


@test(id="RTH-10")
def no_link_leads_a_file_out(place):
    outside = write(place.dir / "outside/file", "of the host\n")
    write(place.work / "in/inner", "x")
    (place.work / "ext").symlink_to(place.dir / "outside")  # the owner's own
    before = fingerprint(place.dir / "outside")
    leave(place, f"ln -s {outside.parent} absolute; ln -s ../outside relative; ln -s in/../../outside behind; ln -s . here; ln -s here/../outside chain; mkdir d; ln -s .. d/up; ln -s d/up/../outside chain2;"
                 f"ln -s ext/../outside owners; ln -s ext/file through; ln -s {place.work}/../outside dots; ln -s in/inner fine; ln -s /proc/self/root{outside.parent} magic")
    found = apply(place)
    refused = {"absolute", "relative", "behind", "chain", "chain2", "owners", "through", "dots", "magic"}
    equal({path for path, word in found.items() if word == "REFUSED"}, refused)
    equal({path for path, word in found.items() if word == "done"}, {"here", "d", "d/up", "fine"})
    # Again, now with files below what was a link, and a link where the owner has a directory.
    leave(place, "for l in absolute relative chain through; do rm -f $l; mkdir $l; echo evil >$l/file; done; rm -rf in; ln -s ../outside in; echo evil >here/evil; rm d/up; mkdir d/up; echo evil >d/up/file")
    (place.work / "absolute").symlink_to(place.dir / "outside")  # and the owner, or an earlier apply, has the link
    found = apply(place)
    equal((found.get("absolute/file"), found.get("in")), ("CONFLICT", "REFUSED"), found)
    unchanged(before, fingerprint(place.dir / "outside"), "outside")
    for path in place.work.rglob("*"):
        if path.is_symlink() and path.name not in ("ext", "absolute"):
            assert str(path.resolve()).startswith(str(place.work)), f"{path} leads to {path.resolve()}"
    shutil.copyfile(layer(place) / "absolute/file", place.work / "absolute/file")
    control_fires(fingerprint(place.dir / "outside") != before, "a careless copy follows the link")


@test(id="RTH-11")
def programs_in_the_tree_are_not_taken_for_those_of_the_host(place):
    names = ("git", "ls", "sh", "env", "cat", "python3", "tar", "diff", "patch", "less", "newuidmap")
    trap(place, place.work / "seed")
    places = [*names, ".venv/bin/python", "node_modules/.bin/eslint", "venv/bin/activate"]
    leave(place, "".join(f"mkdir -p $(dirname {name}); cp seed {name}; " for name in places))
    environ = {"PATH": f".:{place.work}:{place.env['PATH']}", "PAGER": "less", "GIT_PAGER": "less"}
    shutil.copytree(layer(place), place.work, dirs_exist_ok=True)  # as if they were home already
    for words in (("ls",), ("show",), ("diff",), ("diff", "--stat"), ("apply", "--dry-run"), ("apply", "--yes"), ("run", "--rm", "--", "/bin/true")):
        place.cove(*words, env=environ)
    assert not sprung(place), "a program of the tree was run"
    subprocess.run(["sh", "-c", "ls"], cwd=place.work, env=dict(place.env, **environ), stdout=subprocess.DEVNULL)
    control_fires(sprung(place), "with this PATH a shell runs it")
    for path in place.work.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = place.cove("apply", "--dry-run").text
    equal([name for name in places if not re.search(rf"^\w+ +{re.escape(name)}.* \[.+\]$", found, re.M)], [], "not named as what can run")


AGENTS = """CLAUDE.md AGENTS.md GEMINI.md .claude/settings.json .claude/settings.local.json .claude/hooks/x.sh .claude/commands/x.md .cursor/rules/x.mdc .cursor/mcp.json .cursorrules .codex/config.toml
 .gemini/settings.json .mcp.json .continue/config.json .windsurf/rules.md .windsurfrules .github/copilot-instructions.md .clinerules .aider.conf.yml opencode.json .roo/rules/x.md sub/CLAUDE.md
 .amazonq/x.json .kiro/steering/x.md .junie/guidelines.md""".split()


@test(id="RTH-12")
def what_steers_an_agent_is_asked_for_also_when_it_goes(place):
    kept_out(place, AGENTS)
    # The owner's rules, removed or renamed away, hold nothing back any more.
    for name in (".claude/settings.json", "CLAUDE.md", "AGENTS.md", ".mcp.json"):
        write(place.work / name, f"the rules of {name}\n")
    leave(place, "rm .claude/settings.json CLAUDE.md; mv AGENTS.md notes.md; mv .mcp.json x.json; rm fine")
    found = apply(place)
    equal({path: found.get(path) for path in (".claude/settings.json", "CLAUDE.md", "notes.md", "x.json", "fine")},
          {".claude/settings.json": "left", "CLAUDE.md": "left", "notes.md": "left", "x.json": "left", "fine": "done"})
    for name in ("AGENTS.md", "CLAUDE.md", ".mcp.json", ".claude/settings.json"):
        assert (place.work / name).exists(), name
    apply(place, "--allow-autorun", "CLAUDE.md")
    control_fires(not (place.work / "CLAUDE.md").exists(), "it goes when it is named")


@test(id="RTH-14")
def consent_to_one_content_is_none_to_another(place):
    leave(place, "echo harmless >.envrc; echo a >a")
    equal(apply(place, "--allow-autorun", ".envrc")[".envrc"], "done")
    control_fires((place.work / ".envrc").read_text() == "harmless\n", "with consent it came home")
    leave(place, "echo harmful >.envrc; echo b >a")
    equal(apply(place), {".envrc": "left", "a": "done"})
    equal((place.work / ".envrc").read_text(), "harmless\n")
    reviewed = json.loads(place.cove("diff", "--json").out)["digest"]
    write(layer(place) / ".envrc", "worse\n")
    refused = place.cove("apply", "--yes", "--allow-autorun", ".envrc", "--reviewed", reviewed)
    assert refused.code == 125 and "reviewed" in refused.errors, refused
    equal((place.work / ".envrc").read_text(), "harmless\n")
    state = [path for path in names_below(place.state) if not re.match(r"(sandboxes|images|spare|lock|trust)", path)]
    equal(state, [], "nothing about consent is kept")


@test(id="RTH-15")
def caches_of_the_host_stay_as_they_are(place):
    files = (".npm/_cacache/x", ".cargo/registry/x", ".cache/pip/x", ".m2/repository/x", "go/pkg/mod/x", ".cache/uv/x", ".local/share/pnpm/x", ".rustup/toolchains/x", ".nvm/x", ".pyenv/x")
    for name in files:
        write(place.home / name, "of the host\n")
    before = fingerprint(place.home)
    home = "/root" if IDENTITY == "root" else place.home
    script = "; ".join(f"mkdir -p {home}/{os.path.dirname(name)}; echo poison >{home}/{name}; echo poison >{home}/{name}.new" for name in files) + "; echo x >made"
    prefix = run_with_home(place, place.home)
    done = cove_with(place, prefix, "run", "-q", "--", "sh", "-c", script)
    equal(done.code, 0, repr(done))
    done = cove_with(place, prefix, "apply", "--yes")
    equal((done.code, (place.work / "made").read_text()), (0, "x\n"), repr(done))

    def content(found):
        return {path: (entry[1], entry[8]) for path, entry in found.items() if "/.local/state" not in path}
    equal(content(fingerprint(place.home)), content(before), "the caches")
    write(place.home / files[0], "poison\n")
    control_fires(content(fingerprint(place.home)) != content(before), "the judge sees a write")


def on_terminal(place, *words):
    """What cove writes on a terminal."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(place.work)
        os.execve(COVE, [COVE, *words], place.env)
    got = b""
    with contextlib.suppress(OSError):
        while select.select([master], [], [], 20)[0]:
            part = os.read(master, 65536)
            if not part:
                break
            got += part
    os.close(master)
    os.waitpid(pid, 0)
    return got


# Name: content, and by which words each is told ("" for what is no trick).
TRICKS = {"escape": (b"\x1b[2J\x1b]0;owned\x07\x1b[31mred\n", "control"), "bidi": ("access = \u202e\u2066user\u2069\u2066 // admin\n".encode(), "bidi"),
          "zero": ("pass\u200bword\n".encode(), "invisible"), "tags": ("do\U000e0069\U000e0067 it\n".encode(), "invisible"), "joiner": ("pass\u2060word\n".encode(), "invisible"),
          "overwrite": (b"evil()\rgood()\n", "carriage-return"), "long": (b"x" * 200_000 + b"; evil()\n", "long-line"), "utf8": (b"\xff\xfe\xc0\x80\n", "no-utf8"), "c1": ("\x9b31m\n".encode(), "control"),
          "csi8": (b"\x9b2J\n", "no-utf8"), "nul": (b"a line\n" * 2000 + b"a\0b\n", "nul"), "cyrillic": ("p\u0430yload = 1\n".encode(), "mixed-scripts"),
          "crlf": (b"one\r\ntwo\r\n", ""), "plain": ("na\u00efve caf\u00e9 \u4e2d\u6587 \U0001f600\n".encode(), "")}
ODD_NAMES = ("new\nline", "esc\x1b[2Jape", "bidi\u202ename", "bad\udcff", "p\u0430ypal")
PLANT = """import os
for name, content in %r.items():
    open(name, 'wb').write(content)
for name in %r:
    open(os.fsencode(name), 'w').write('x\\n')
open('Plant.py', 'w').write('twin\\n')
open('script', 'wb').write(b'evil()\\n\\0\\n')
os.rename('kept', 'moved')
"""
UNSEEN = "[\x80-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"


def acting(shown):
    """What in the bytes on a terminal moves, hides or reorders something, apart from the colours of a diff."""
    plain = re.sub(rb"\x1b\[(?:1|3[1236])?m", b"", shown)
    found = re.findall(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)", plain)
    return found + re.findall(UNSEEN, plain.decode(errors="replace")) + re.findall("\ufffd", plain.decode(errors="replace"))


@test(id="RTH-16")
def a_diff_on_a_terminal_shows_all_and_is_inert(place):
    write(place.work / "plant.py", PLANT % ({name: content for name, (content, _) in TRICKS.items()}, ODD_NAMES))
    write(place.work / "kept", "a file of the owner\n" * 20)
    leave(place, "/usr/bin/python3 plant.py")
    told = {path: set(change.get("tricks") or ()) for path, change in changes(place).items()}
    equal({name: word for name, (_, word) in TRICKS.items() if (word not in told[name] if word else told[name])}, {}, f"tricks that were not told, or told of plain text: {told}")
    flags = {path: change["flags"] for path, change in changes(place).items()}
    equal(flags["Plant.py"], ["twin"], "a name that looks like another one")
    equal([path for path in flags if path not in TRICKS and path not in ("Plant.py", "moved", "kept", "script") and not {"odd-name", "twin"} & set(flags[path])], [], "names that are not told")
    for words in (("diff",), ("diff", "--stat"), ("diff", "--name-only"), ("apply", "--dry-run"), ("apply", "--yes")):
        shown = on_terminal(place, *words)
        equal(acting(shown), [], f"{words}: bytes that act")
        missing = [name for name in (*TRICKS, "Plant.py", "moved") if name not in shown.decode()]
        equal(missing, [], f"{words}: not shown")
        assert words != ("diff",) or re.search(r"script[^\n]*\n(.*\n){0,4}?[^\n]*(B|b)inary", shown.decode()), f"a script with a NUL is not shown as what it is taken for: {shown[-3000:]}"
        if words[-1] in ("diff", "--stat", "--dry-run"):
            unmarked = [name for name, (_, word) in TRICKS.items() if bool(word) != bool(re.search(rf"\b{name}\b[^\n]*Trojan Source", shown.decode()))]
            equal(unmarked, [], f"{words}: not marked, or marked without a reason")
    for name, (content, word) in TRICKS.items():
        equal((place.work / name).read_bytes(), content, f"{name} came home as it is")
        if word and name not in ("long", "cyrillic"):
            control_fires(acting(subprocess.run(["cat", name], cwd=place.work, stdout=subprocess.PIPE).stdout), f"the judge sees {name} where it is shown as it is")


def stopped_at(place, call, number, change, *options):
    """`cove apply` that is stopped at its NUMBER-th CALL; meanwhile `change` is called."""
    (place.dir / "trace").unlink(missing_ok=True)
    process = subprocess.Popen(["strace", "-qq", "-o", place.dir / "trace", "-e", f"trace={call}", "-e", f"inject={call}:signal=STOP:when={number}", COVE, "apply", "--yes", *options],
                               cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end, child = time.monotonic() + 20, None
    while time.monotonic() < end:
        children = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
        trace = place.dir / "trace"
        if children and trace.exists() and "stopped by SIGSTOP" in trace.read_text(errors="replace"):
            child = int(children[0])
            break
        time.sleep(0.01)
    assert child, f"it was not stopped: {process.communicate()}"
    change()
    os.kill(child, signal.SIGCONT)
    out, err = process.communicate(timeout=30)
    return outcome(type("Done", (), {"text": out.decode()})), (out, err)


@test(id="RTH-17")
def what_is_brought_home_is_what_was_looked_at(place):
    if not shutil.which("strace"):
        skip("strace is not installed")
    script = "echo reviewed >one; echo reviewed >two; ln -sfn one link"
    leave(place, script)
    digest = json.loads(place.cove("diff", "--json").out)["digest"]
    assert re.fullmatch("[0-9a-f]{64}", digest), digest
    assert digest.encode() in on_terminal(place, "diff").splitlines()[-1], "the last line of a diff on a terminal"
    equal(json.loads(place.cove("diff", "--json").out)["digest"], digest, "a second look")
    upper = layer(place)
    tricks = {"content": lambda: write(upper / "one", "reviewee\n"), "mode": lambda: (upper / "two").chmod(0o755), "more": lambda: write(upper / "three", ""),
              "less": lambda: (upper / "two").unlink(), "link": lambda: ((upper / "link").unlink(), (upper / "link").symlink_to("two"))}
    for name, change in tricks.items():
        saved = place.dir / "saved"
        subprocess.run(["cp", "-a", upper, saved], check=True)
        change()
        done = place.cove("apply", "--yes", "--reviewed", digest)
        assert done.code == 125 and "reviewed" in done.errors, f"{name}: {done!r}"
        equal(names_below(place.work), [], f"{name}: nothing came home")
        subprocess.run(["rm", "-rf", upper], check=True)
        saved.rename(upper)
    # Written to between judging and copying, as by a descriptor that somebody outside still holds.
    found, said = stopped_at(place, "symlinkat", 1, lambda: write(upper / "one", "changed!\n"), "--reviewed", digest)
    equal((found.get("one"), found.get("two")), ("REFUSED", "done"), said)
    assert not (place.work / "one").exists() and (place.work / "two").read_text() == "reviewed\n"
    write(upper / "one", "reviewed\n")
    # And the owner, who writes while it is exchanged, loses nothing.
    write(place.work / "owned", "old\n")
    leave(place, "echo agent >owned")
    found, said = stopped_at(place, "fchmod", 1, lambda: write(place.work / "owned", "the owner's\n"))
    equal((found.get("owned"), (place.work / "owned").read_text()), ("CONFLICT", "the owner's\n"), said)
    leave(place, "echo again >fresh")
    digest = json.loads(place.cove("diff", "--json").out)["digest"]
    found, said = stopped_at(place, "fchmod", 1, lambda: None, "--reviewed", digest)
    control_fires(found.get("fresh") == "done" and (place.work / "fresh").read_text() == "again\n", f"it comes home if nobody touches it: {said}")


SWAPS = """echo here; while :; do for n in 0 1 2 3 4 5 6 7; do
rm -rf x$n; ln -s %(secret)s x$n; rm x$n; mkdir x$n; ln -s %(secret)s x$n/below; rm -rf x$n; mkfifo x$n; rm x$n; echo plain >x$n; mkdir y; echo plain >y/below; mv y z$n; rm -rf z$n; ln -s %(outside)s z$n; rm z$n
done; done & while :; do echo more; done >grows"""


@test(id="RTH-18")
def a_diff_of_what_is_being_swapped_shows_nothing_from_outside(place):
    outside = place.dir / "outside"
    write(outside / "below", "SECRET of the host\n")
    process = start(place, "run", "-q", "--", "sh", "-c", SWAPS % {"secret": outside / "below", "outside": outside}, stdout=subprocess.PIPE)
    try:
        read_until(process.stdout, b"here")
        top, start_time, read, shown = layer(place), time.monotonic(), b"", b""
        # Until both were seen, and for some time.
        while (waited := time.monotonic() - start_time) < 4 or (waited < 60 and not (b"SECRET" in read and b"plain" in shown)):
            for words in ((), ("--json",), ("--stat",)):
                done = place.cove("diff", *words, timeout=20)
                equal(done.code, 0, done)
                shown += done.out.replace(str(outside).encode(), b"")
            for name in [f"x{n}" for n in range(8)] * 20 + [f"z{n}/below" for n in range(8)] * 20:
                with contextlib.suppress(OSError), open(os.open(top / name, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                    read += file.read(64)
        assert b"SECRET" not in shown, "bytes from outside of the workspace in a diff"
        control_fires(b"SECRET" in read and b"plain" in shown, "a reader that goes by names gets them")
    finally:
        stop(process)


@test(id="RTH-19")
def in_a_workspace_that_is_written_through_what_acts_stays_and_what_is_made_goes(place):
    tops = sorted({path.split("/")[0] for path in CLASS_A if "/" not in path and path not in (*CONTENT, "cove.yaml")})
    there, made = tops[::2], tops[1::2]
    script = "; ".join(["{ " + "; ".join(f"echo evil >{n}; rm -f {n}; mv {n} x-{n}; echo evil >new; mv new {n}" for n in there), "} 2>/dev/null", make_each(made),
                        "ls -A | tr '\\n' ' '", "true"])
    report = place.dir / "report.json"

    def attacked(**kwargs):
        for name in there:
            (place.work / name).unlink(missing_ok=True)
            write(place.work / name, "the owner's\n")
        done = place.cove("run", "-q", "--workspace", "rw", "--report", report, "--", "sh", "-c", script, **kwargs)
        wait_for(lambda: not descendants(), seconds=10, what="the end of all guards")
        return done, [name for name in there if not (place.work / name).is_file() or (place.work / name).read_text() != "the owner's\n"]

    done, changed = attacked()
    equal((done.code, changed), (0, []), done)
    control_fires(set(made) <= set(done.text.split()), "it did make them")
    equal([name for name in made if os.path.lexists(place.work / name)], [], "what was made is still there")
    told = json.loads(report.read_text())
    assert set(made) <= set(told["set_aside"]) and not told["not_set_aside"], told
    control_fires(attacked(without="protect")[1], "without what is mounted over them they change")


if __name__ == "__main__":
    main()
