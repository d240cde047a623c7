"""FS: files, mounts, devices."""
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import random
import re
import shutil
import socket
import stat
import subprocess
import threading
import time

from attack import (COVE, COW_OUT, IDENTITY, MOUNTS_OUT, PATIENCE, SOAK_SECONDS, Canaries, Report, Running, all_refused, attack, attack_host, cold, control_fires,
                    cove_with, equal, fingerprint, landlock_abi, libc, main, name_of, nothing_is_left, plain_tree, put_probe, refused, run_with_home,
                    skip, steps_are, test, unchanged)

from home import changes, layer, leave

HOST_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
DEVICE_LINKS = {"fd", "stdin", "stdout", "stderr", "ptmx", "core"}
DEVICE_FOLDERS = {"pts", "shm"}


def mount_points(pid):
    """Where something is mounted, as the host sees it."""
    return {line.split()[4].encode().decode("unicode_escape") for line in open(f"/proc/{pid}/mountinfo")}


@test(id="FS-01")
def the_tree_inside_is_the_one_that_was_planned(place):
    plan = json.loads(place.cove("run", "--print-plan", "--json", "--", "true").text)
    steps = [s for s in plan["steps"] if s.get("target")]
    mounting = ("root", "tree", "file", "proc", "tmpfs", "devpts", "device", "sysfs", "mask", "seal", "readonly")
    planned = {s["target"] for s in steps}

    def surprises(run):
        return mount_points(run.pid) - planned
    with Running(place, "wait") as run:
        equal(surprises(run), set(), "mounts that are not in the plan")
        missing = {s["target"] for s in steps if s["target"].startswith(("/proc", "/dev/", "/sys", "/run", "/usr"))} - mount_points(run.pid)
        links = {f"/dev/{name}" for name in DEVICE_LINKS}
        # A table that nobody but root of the machine can read needs no mask: that root is not inside.
        missing = {path for path in missing - links if os.path.exists(path) and os.stat(path).st_mode & 0o044 and "/proc/sys/" not in path}
        equal(missing, set(), "mounts that are missing")
    listing = attack(place, "list", "/").say["/"]
    allowed = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "var", "opt", "proc", "sys", "dev", "run", "tmp", "home",
               "root", "mnt", "srv", "media", "nix", "boot", str(place.dir).split("/")[1]}
    equal(set(listing) - allowed, set(), "unknown names at the root")
    special = attack(place, "special", "/etc", "/var", "/home", "/root", "/run", "/tmp", "/opt", "/srv", "/mnt")
    equal(special.say.get("entry", []), [], "sockets and devices outside of /dev")
    with Running(place, "wait", without="masks,verify") as run:
        control_fires("/proc/kcore" not in mount_points(run.pid) and "/proc/kcore" in planned, "a mask that is missing")


CREDENTIALS = """.ssh/id_ed25519 .ssh/config .aws/credentials .aws/config .config/gcloud/credentials.db .kube/config .docker/config.json .netrc
 .npmrc .pypirc .config/gh/hosts.yml .gnupg/private-keys-v1.d/key .cargo/credentials .cargo/credentials.toml .git-credentials .claude.json
 .claude/.credentials.json .codex/auth.json .config/opencode/auth.json .gemini/oauth_creds.json .config/op/config .vault-token .azure/token
 .config/hub .pgpass .my.cnf .bash_history .zsh_history .python_history .config/rclone/rclone.conf .terraform.d/credentials.tfrc.json
 .m2/settings.xml .gradle/gradle.properties .gem/credentials .composer/auth.json .mozilla/firefox/logins.json .config/google-chrome/Cookies
 .password-store/x.gpg .local/share/keyrings/login.keyring .local/share/amp/secrets.json .local/share/uv/credentials/x .config/cove/policy.yaml
 .cache/huggingface/token .rustup/token .local/state/x .bun/auth .deno/token notes.txt""".split()


@test(id="FS-02")
def no_credential_of_the_host_is_inside(place):
    canaries = Canaries()
    home = pathlib.Path("/root") if IDENTITY == "root" else place.home
    planted = [canaries.plant(place.home / name) for name in CREDENTIALS]
    (place.home / ".config/cove/policy.yaml").unlink()
    canaries.tokens = [t for t in canaries.tokens if any(t in p.read_text() for p in planted if p.exists())]
    shown = {place.home / name for name in (".rustup/token", ".bun/auth", ".deno/token")}  # tool roots are meant to be visible
    secret = [t for t in canaries.tokens if not any(t in p.read_text() for p in shown)]
    canaries.tokens = secret
    put_probe(place)
    prefix = run_with_home(place, place.home)
    places = [str(home / name) for name in CREDENTIALS]
    tricks = [f"/proc/1/root{p}" for p in places[:5]] + [f"/proc/self/root/..{p}" for p in places[:5]] + [f"/proc/self/cwd/../home/{n}" for n in CREDENTIALS[:5]]
    system = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key", "/root/.ssh/id_rsa", "/root/.bash_history"]
    direct = Report(cove_with(place, prefix, "run", "--rm", "--", "./probe", "spill", *places, *tricks, *system))
    equal(direct.result.code, 0, repr(direct))
    equal([step for step in direct.worked() if any(name in step for name in system)], [], "system secrets")
    canaries.none_in("by name", direct)
    walked = Report(cove_with(place, prefix, "run", "--rm", "--", "./probe", "spill-below", str(home), "/root", "/home", "/tmp", "/var/tmp", "/run",
                              "/srv", "/mnt", "/media", "/var/log", "/var/backups", "/var/mail", "/var/spool", "/dev/shm", "."))
    equal(walked.result.code, 0, repr(walked.result)[:500])
    canaries.none_in("by walking", walked)
    outside = attack_host(place, "spill", *[str(place.home / name) for name in CREDENTIALS])
    control_fires(len(set(canaries.found_in(outside.result.out))) == len(secret), "the scanner sees them on the host")
    for form in canaries.forms(secret[0]):
        control_fires(canaries.found_in(b"x" + form + b"y"), f"the form {form}")


CHANGES = ("chmod chown utimens setxattr fchmod open-write open-rdwr open-append truncate creat tmpfile mkdir mkfifo symlink link-within link-in "
           "link-out exchange mmap-write rename-out rename-in unlink rmdir").split()
NOT_SEEN_BY_LANDLOCK = ("chmod", "chown", "utimens", "setxattr", "fchmod", "setflags")


@test(id="FS-03")
def what_is_read_only_cannot_be_changed(place):
    decoy = plain_tree(place)
    before = fingerprint(decoy)
    grant = ("-v", f"{decoy}:/decoy:ro")
    for target, options in (("/decoy", grant), ("/usr", ()), ("/etc", ()), ("/sys", ()), ("/proc/sys", ())):
        for without in (None, "seccomp", "capabilities") if target == "/decoy" else (None,):
            report = attack(place, "change", target, "/tmp", options=options, without=without)
            steps_are(report, CHANGES, (errno.EROFS, errno.EACCES, errno.EXDEV, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EOPNOTSUPP,
                                        errno.ENOTEMPTY, errno.EBADF, errno.EISDIR), f"{target} without {without}")
    unchanged(before, fingerprint(decoy), "a read-only tree")
    attack(place, "change", "/decoy", "/tmp", options=grant, without="landlock")
    unchanged(before, fingerprint(decoy), "the mounts alone")
    loose = attack(place, "change", "/decoy", "/tmp", options=grant, without="landlock," + MOUNTS_OUT)
    control_fires({"chmod", "open-write", "creat", "mkdir", "unlink"} <= set(loose.worked()), loose.chk)
    control_fires(fingerprint(decoy) != before, "the host's tree changed")


@test(id="FS-20")
def landlock_alone_keeps_a_read_only_tree(place):
    decoy = plain_tree(place)
    grant = ("-v", f"{decoy}:/decoy:ro")
    sees_truncate = landlock_abi() >= 3  # since Linux 6.2; before that a file can be cut short
    besides = NOT_SEEN_BY_LANDLOCK if sees_truncate else (*NOT_SEEN_BY_LANDLOCK, "truncate")
    loose = attack(place, "change", "/decoy", "/tmp", options=grant, without=MOUNTS_OUT)
    all_refused(loose, "Landlock alone", besides=besides)
    for name in ("file", "other", "protected") if sees_truncate else ("other", "protected"):
        equal((decoy / name).read_text(), f"{name} of the host\n", name)
    equal(sorted(p.name for p in decoy.iterdir()), ["file", "other", "protected", "sub"], "names in the tree")
    control = attack(place, "change", "/decoy", "/tmp", options=grant, without="landlock," + MOUNTS_OUT)
    control_fires("unlink" in control.worked(), control.chk)


FS04_LAYERS = ("seccomp", "landlock", "capabilities")


@test(id="FS-04")
def mounts_cannot_be_changed(place):
    all_refused(attack(place, "remount"), "mounts")
    for layer in FS04_LAYERS:
        all_refused(attack(place, "remount", without=layer), f"mounts without {layer}")
    loose = attack(place, "remount", without=",".join(FS04_LAYERS))
    control_fires({"mount-tmpfs", "fsopen"} <= set(loose.worked()), loose.chk)


def plant_links(place, canary):
    """Links of every kind that lead from the workspace to a file outside of it."""
    outside, work = canary, place.work
    (work / "sub").mkdir(exist_ok=True)
    links = {"absolute": outside, "relative": os.path.relpath(outside, work), "sub/nested": os.path.relpath(outside, work / "sub"),
             "dir": outside.parent, "magic": f"/proc/self/root{outside}", "magic-cwd": f"/proc/self/cwd/../{os.path.relpath(outside, work.parent)}",
             "chain": "absolute", "loop": "loop", "dangling": "/nowhere", "init": f"/proc/1/root{outside}"}
    for name, target in links.items():
        (work / name).symlink_to(target)
    return [*links, f"dir/{outside.name}"]


@test(id="FS-05")
def links_in_the_workspace_lead_nowhere_outside(place):
    canaries = Canaries()
    outside = canaries.plant(place.dir / "outside/secret")
    names = plant_links(place, outside)
    put_probe(place)
    before = fingerprint(place.dir / "outside"), fingerprint(place.work)
    read = attack(place, "spill", *names)
    canaries.none_in("links", read)
    attack(place, "overwrite", *names)
    unchanged(before[0], fingerprint(place.dir / "outside"), "what links lead to")
    unchanged(before[1], fingerprint(place.work), "the workspace")
    for option in (("-C", place.work / "absolute"), ("-v", f"{place.work}/absolute:/x:ro", "-v", f"{place.work}/loop:/y")):
        result = place.run("./probe", "spill", "/x", options=option)
        assert result.code == 125 or "-v" in option, repr(result)
    control_fires(canaries.found_in(attack_host(place, "spill", *names).result.out), "on the host they lead there")


def exchange(one, two):
    """RENAME_EXCHANGE of two names."""
    return libc.renameat2(-100, os.fsencode(str(one)), -100, os.fsencode(str(two)), 2)


@contextlib.contextmanager
def swapping(one, two):
    """Swaps two names as fast as it can."""
    stop, count = threading.Event(), [0]

    def loop():
        while not stop.is_set():
            count[0] += exchange(one, two) == 0
    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


@test(id="FS-06")
def a_workspace_that_changes_during_the_start_shows_nothing_else(place):
    cold(place)  # a first start does more
    canaries = Canaries()
    secret = canaries.plant(place.dir / "outside/secret")
    put_probe(place)
    (place.work / "dir").mkdir()
    (place.work / "dir/secret").write_text("plain\n")
    (place.work / "link").symlink_to(place.dir / "outside")
    (place.work / "file").write_text("plain\n")
    (place.work / "file-link").symlink_to(secret)
    before = fingerprint(place.dir / "outside")
    deadline, runs = time.monotonic() + SOAK_SECONDS, 0
    with swapping(place.work / "dir", place.work / "link") as count, swapping(place.work / "file", place.work / "file-link"):
        while time.monotonic() < deadline:
            result = place.run("./probe", "spill", "dir/secret", "link/secret", "file", "file-link", options=("--hide", "dir/hidden"))
            assert result.code in (0, 125), repr(result)
            canaries.none_in("a changing workspace", result)
            place.run("./probe", "overwrite", "dir/secret", "link/secret", "file", "file-link")
            runs += 1
    assert runs and count[0] > 10, f"{runs} runs, {count[0]} swaps"
    unchanged(before, fingerprint(place.dir / "outside"), "what was swapped in")
    nothing_is_left(place)
    control_fires(canaries.found_in(attack_host(place, "spill", "dir/secret", "link/secret").result.out), "on the host it is read")


@test(id="FS-06")
def a_workspace_that_changes_while_work_comes_home_leads_nowhere_else(place):
    canaries = Canaries()
    canaries.plant(place.dir / "outside/secret")
    (place.dir / "outside/sub").mkdir()
    (place.work / "dir/sub").mkdir(parents=True)
    (place.work / "dir/secret").write_text("plain\n")
    (place.work / "link").symlink_to(place.dir / "outside")
    leave(place, "for n in 1 2 3 4 5 6 7 8; do echo x >dir/new$n; echo x >dir/sub/new$n; done; echo x >>dir/secret")
    before, deadline, runs = fingerprint(place.dir / "outside"), time.monotonic() + SOAK_SECONDS, 0
    with swapping(place.work / "dir", place.work / "link") as count:
        while time.monotonic() < deadline:
            for words in (("diff",), ("apply", "--yes"), ("export", "-o", "../out.tar")):
                done = place.cove(*words)
                assert done.code in (0, 1, 125), f"{words}: {done!r}"
                canaries.none_in(f"{words}", done)
            runs += 1
    assert runs and count[0] > 10, f"{runs} runs, {count[0]} swaps"
    unchanged(before, fingerprint(place.dir / "outside"), "what was swapped in")
    with swapping(place.work / "dir", place.work / "link"):
        for number in range(2000):
            with contextlib.suppress(OSError):
                (place.work / "dir/new1").write_text("careless\n")
    control_fires(fingerprint(place.dir / "outside") != before, "a careless writer is led out")


@test(id="FS-07")
def hard_links_do_not_reach_the_host(place):
    decoy = plain_tree(place)
    outside = place.dir / "outside"
    outside.write_text("outside\n")
    os.link(outside, place.work / "linked")
    put_probe(place)
    before = fingerprint(decoy), outside.read_text(), fingerprint(place.work)
    grant = ("-v", f"{decoy}:/decoy:ro")
    script = ("ln /decoy/file alias && echo x >> alias; ln /decoy/file /decoy/alias; ln probe /decoy/protected; ln -f probe /decoy/protected; "
              "ln /usr/bin/true alias2; ln linked again; echo attacked > again; echo attacked > linked; true")
    result = place.sh(script, options=grant)
    equal(result.code, 0, repr(result))
    unchanged(before[0], fingerprint(decoy), "a read-only tree")
    equal(outside.read_text(), before[1], "another name of the same file")
    unchanged(before[2], fingerprint(place.work), "the workspace")
    place.sh(script, options=grant, without=COW_OUT)
    control_fires(outside.read_text() == "attacked\n", "without copy on write the other name changes")


@test(id="FS-08")
def names_in_the_workspace_stay_where_they_are_on_the_host(place):
    (place.work / ".git/hooks").mkdir(parents=True)
    (place.work / ".git/config").write_text("[core]\n")
    (place.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (place.work / "sub/deep").mkdir(parents=True)
    (place.work / "sub/deep/file").write_text("x\n")
    put_probe(place)
    before = fingerprint(place.work), os.stat(place.work).st_ino
    moves = (".git/config", ".git/config2", ".git/hooks", "hooks2", ".git", "git2", "sub/deep", "deep2", "sub", "sub2", str(place.work),
             str(place.work) + "2")
    report = attack(place, "rename", *moves)
    equal(report.chk[f"rename:{place.work}"], errno.EBUSY, "the workspace itself")
    result = place.sh(f"rm -rf .git sub; mkdir .git; echo bad > .git/config; rm -rf {place.work}; mv {place.work} /tmp/w; mkdir -p {place.work}; true")
    equal(result.code, 0, repr(result))
    unchanged(before[0], fingerprint(place.work), "the workspace")
    place.sh("rm -rf .git", without=COW_OUT)
    control_fires(not (place.work / ".git").exists(), "without copy on write it is gone")


WATCHED = (".git/hooks/pre-commit", ".git/config", ".envrc", ".env", ".vscode/tasks.json", ".husky/pre-push", ".npmrc", "Makefile", ".mcp.json",
           ".claude/settings.json", "CLAUDE.md", ".cargo/config.toml", "sitecustomize.py", ".github/workflows/x.yml", ".idea/x.xml")


@test(id="FS-09")
def files_that_act_by_being_there_are_not_made_on_the_host(place):
    put_probe(place)
    before = fingerprint(place.work)
    report = attack(place, "plant", *WATCHED, options=("--hide", ".env", "--hide", ".npmrc"))
    assert report.chk["file:.git/hooks/pre-commit"] == 0, "inside it is only the sandbox's own copy"
    place.sh("(sleep 1; mkdir -p later/.git; echo x > later/.git/config) & wait", timeout=10)
    unchanged(before, fingerprint(place.work), "the workspace")
    attack(place, "plant", *WATCHED, without=COW_OUT)
    control_fires((place.work / ".envrc").exists(), "without copy on write they are there")


@test(id="FS-09")
def hidden_files_are_absent_and_their_content_cannot_be_had(place):
    canaries = Canaries()
    for name in (".env", "sub/.env", "key.pem", "sub/deep/other.pem"):
        canaries.plant(place.work / name)
    hide = ("--hide", ".env", "--hide", "*.pem")
    put_probe(place)
    before = fingerprint(place.work)
    names = (".env", "sub/.env", "key.pem", "sub/deep/other.pem", "./sub/../.env", "/proc/self/cwd/.env")
    reports = [attack(place, "spill", *names, options=hide), attack(place, "spill-below", ".", options=hide)]
    tricks = "rm -rf sub; mkdir sub; cat sub/.env; mv .env x; cat x; ln .env y; cat y; cp -r . /tmp/w; cat /tmp/w/.env; ls -la; git status; true"
    canaries.none_in("hidden files", *reports, place.sh(tricks, options=hide))
    equal(len([s for s in reports[0].chk if reports[0].chk[s] == errno.ENOENT]), len(names), "hidden names are absent")
    unchanged(before, fingerprint(place.work), "the workspace")
    control_fires(canaries.found_in(attack(place, "spill", *names).result.out), "without the rule they are read")


FOLDING = {"s": "\u017f", "k": "\u212a", "ss": "\u00df", "SS": "\u1e9e", "ff": "\ufb00", "fi": "\ufb01", "fl": "\ufb02", "st": "\ufb06"}
ACTING = (".git/hooks/pre-commit", ".envrc", ".vscode/tasks.json", ".npmrc", ".husky/pre-push", "CLAUDE.md", ".mcp.json", "sitecustomize.py", ".bashrc", ".profile", ".gitconfig", ".idea/workspace.xml", ".cursor/rules/x")
SHORT = {".git": "GIT~1", ".envrc": "ENVRC~1", ".vscode": "VSCODE~1", ".npmrc": "NPMRC~1", ".husky": "HUSKY~1", "sitecustomize.py": "SITECU~1.PY", ".bashrc": "BASHRC~2",
         ".idea": "IDEA~1", ".mcp.json": "MCP~1.JSO"}


def spellings(name):
    """Names that HFS+, APFS, NTFS, FAT or a folding ext4 take for this one, each component in turn."""
    parts = name.split("/")
    for place, part in enumerate(parts):
        forms = {part.upper(), part.title(), part.swapcase(), part + ".", part + " ", part + ". .", part + "::$INDEX_ALLOCATION", part + ":$DATA", SHORT.get(part, part),
                 *(part.replace(plain, letter) for plain, letter in FOLDING.items()), *(part[:2] + ignorable + part[2:] for ignorable in "\u200b\u200c\u200d\ufeff\u00ad\u2060\ufe0f\u206a\U000e0001")}
        for form in forms - {part}:
            yield "/".join((*parts[:place], form, *parts[place + 1:]))
    if len(parts) > 1:
        yield "\\".join(parts)
        yield name.replace("/", "/./", 1).upper()


@test(id="FS-10")
def other_spellings_of_a_name_have_its_verdict(place):
    others = ("envrc", ".envrcx", ".en-vrc", "vscode/tasks.json", "GITT~1/hooks/pre-commit", "CLAUDIA.md", "npmrc", "\u0435nvrc", "bashrc", "caf\u00e9")
    variants = {os.path.normpath(spelling): name for name in ACTING for spelling in (name, *spellings(name))}
    make = place.dir / "make.py"
    make.write_text("import os, sys, json\nfor name in json.load(open(sys.argv[1])):\n    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)\n    open(name, 'w').write('x\\n')\n")
    (place.dir / "names").write_text(json.dumps([*variants, *others]))
    done = place.cove("run", "-q", "--read", place.dir / "make.py", "--read", place.dir / "names", "--", "/usr/bin/python3", place.dir / "make.py", place.dir / "names")
    equal(done.code, 0, done)
    done = place.cove("apply", "--yes", "--json")
    found = {change["path"]: change["outcome"] for change in json.loads(done.out)["changes"]}
    home = {os.path.relpath(path, place.work) for path in place.work.rglob("*") if path.is_file()}
    equal(sorted(repr(name) for name in variants if name in home or found.get(name) not in ("left", "refused")), [], "spellings that came home without a question")
    assert len(variants) > 250, len(variants)
    equal({name: found[name] for name in ACTING[1:]}, {name: "left" for name in ACTING[1:]}, "the names themselves")
    control_fires(set(others) <= home, f"names that are no other spelling come home: {set(others) - home}")


@test(id="FS-10")
def a_name_that_is_another_one_elsewhere_is_told(place):
    for name in ("caf\u00e9", "Read me"):
        (place.work / name).write_text("of the owner\n")
    leave(place, "for f in 'cafe\u0301' 'READ ME' 'Read me ' 'other'; do echo x >\"$f\"; done")
    found = changes(place)
    twins = {path for path, change in found.items() if "twin" in change["flags"] or "odd-name" in change["flags"]}
    equal(twins, {"cafe\u0301", "READ ME", "Read me "}, "names that somebody takes for another")
    control_fires("other" in found and "other" not in twins, "an ordinary name")


@test(id="FS-11")
def a_grant_that_is_swapped_during_the_start_is_the_checked_one_or_none(place):
    canaries = Canaries()
    secret = place.dir / "secret"
    canaries.plant(secret / "inside/token")
    canaries.plant(secret / ".ssh/id_rsa")  # a directory that cannot be granted
    plain = place.dir / "way/plain"
    (plain / "inside").mkdir(parents=True)
    (plain / "inside/token").write_text("plain\n")
    (place.dir / "way/link").symlink_to(secret)
    put_probe(place)
    refused(place.run("true", options=("-v", f"{place.dir}/way/link:/granted:ro")), "the swapped-in directory by itself", "SSH")
    def granted(mode, without=None):
        return attack(place, "spill", "/granted/inside/token", "/granted/.ssh/id_rsa", works=False, options=("-v", f"{plain}:/granted:{mode}"), without=without)
    deadline, codes = time.monotonic() + SOAK_SECONDS, {}
    with swapping(plain, place.dir / "way/link") as count:
        while time.monotonic() < deadline or len(codes) < 1:
            for mode in ("ro", "cow"):
                report = granted(mode)
                canaries.none_in("a swapped grant", report)
                codes[report.result.code] = codes.get(report.result.code, 0) + 1
        assert set(codes) <= {0, 125} and count[0] > 10, f"{codes}, {count[0]} swaps"
        won = any(canaries.found_in(granted("ro", without="source").result.out) for _ in range(300))
    control_fires(won, "where the source is not looked at again, the race is won")
    nothing_is_left(place)


@test(id="FS-12")
def dangerous_places_cannot_be_granted(place):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place.dir / "service.sock"))
    (place.dir / "to-proc").symlink_to("/proc")
    (place.dir / "to-root").symlink_to("/")
    place.run("true")
    home = "/root" if IDENTITY == "root" else str(place.home)
    for source in ("/", "/proc", "/proc/self/root", "/sys", "/dev", "/dev/kvm", "/dev/null", "/etc", "/run", "/tmp", "/var/lib", "/home", home,
                   place.state, place.state / "sandboxes", place.dir / "service.sock", place.dir / "to-proc", place.dir / "to-root"):
        if os.path.exists(source):
            refused(place.run("true", options=("-v", f"{source}:/granted")), f"a grant of {source}")
            refused(place.run("true", options=("--read", source)), f"reading {source}")
    for target in ("/", "/proc", "/dev/x", "/sys/x", "/run/cove", "/proc/sys"):
        refused(place.run("true", options=("-v", f"{place.work}:{target}")), f"a grant at {target}")
    for workspace in ("/", "/etc", "/usr", home, "/tmp", place.state):
        refused(place.run("true", options=("-C", workspace)), f"the workspace {workspace}")
    decoy = plain_tree(place)
    control_fires(place.run("cat", "/granted/file", options=("-v", f"{decoy}:/granted")).code == 0, "an ordinary grant")


@test(id="FS-13")
def devices_can_neither_be_made_nor_opened(place):
    shipped = []
    if IDENTITY == "root":
        for name, kind, number in (("mem", stat.S_IFCHR, (1, 1)), ("disk", stat.S_IFBLK, (8, 0)), ("null", stat.S_IFCHR, (1, 3))):
            try:
                os.mknod(place.work / name, kind | 0o666, os.makedev(*number))
                shipped.append(name)
            except OSError:
                pass
    report = attack(place, "nodes", *shipped)
    all_refused(report, "devices")
    steps_are(report, [s for s in report.chk if s.startswith("mknod")], (errno.EPERM,), "made by the filter's answer")
    steps_are(report, [f"open:{name}" for name in shipped], (errno.EACCES, errno.ENXIO, errno.EPERM), "shipped devices")
    all_refused(attack(place, "nodes", *shipped, without="seccomp"), "Landlock alone")
    loose = attack(place, "nodes", without="seccomp,landlock")
    control_fires("mknod:c0:0" in loose.worked(), loose.chk)


def unexpected_devices(report):
    found = []
    for line in report.say["dev"]:
        name, kind, number, _ = line.split(" ", 3)
        kind = int(kind, 8)
        if name in HOST_DEVICES and stat.S_ISCHR(kind) and tuple(map(int, number.split(":"))) == HOST_DEVICES[name]:
            continue
        if (name in DEVICE_LINKS and stat.S_ISLNK(kind)) or (name in DEVICE_FOLDERS and stat.S_ISDIR(kind)):
            continue
        found.append(line)
    return found


@test(id="FS-14")
def dev_has_exactly_the_harmless_devices(place):
    report = attack(place, "devices")
    equal(unexpected_devices(report), [], "entries of /dev")
    equal({line.split()[0] for line in report.say["dev"]} - {"core"}, set(HOST_DEVICES) | (DEVICE_LINKS - {"core"}) | DEVICE_FOLDERS, "entries of /dev")
    equal(report.worked(), [], "ioctls that worked")
    equal(attack(place, "list", "/dev/pts").say.get("/dev/pts"), ["ptmx"], "terminals of others")
    control_fires(unexpected_devices(attack_host(place, "devices")), "the host's /dev")


@test(id="FS-15")
def files_cannot_be_opened_by_handle(place):
    report = attack(place, "handles")
    steps_are(report, ("bad-handle",), (errno.EPERM,), "the filter")
    equal(report.say["opened"], ["0"], "handles opened")
    loose = attack(place, "handles", without="seccomp")
    equal(loose.say["opened"], ["0"], "handles opened without the filter")
    if IDENTITY == "root":
        control_fires(int(attack_host(place, "handles").say["opened"][0]) > 0, "on the host they open")
    if loose.chk["bad-handle"] == errno.EPERM:  # before Linux 6.11
        skip("kernel: it asks for a capability before it looks at the handle, so nothing shows that the filter refused it first")
    control_fires(loose.chk["bad-handle"] == errno.EFAULT, loose.chk)


@test(id="FS-16")
def hostile_names_and_deep_trees_are_removed_completely(place):
    began = time.monotonic()
    report = attack(place, "names", "3000", "20000", timeout=60)
    equal(report.say["entries"], ["20000"])
    equal(report.say["depth"], ["3000"])
    nothing_is_left(place, "hostile names", seconds=30)
    assert time.monotonic() - began < 40 * PATIENCE, "took too long"
    equal(sorted(p.name for p in place.work.iterdir()), ["probe"], "names in the workspace")


HOSTILE_NAMES = ("new\nline", "esc\x1b[2J", "bad\udcff", "x" * 255, "-rf", "--", "..foo", "trailing ", "quote'\"", "$(touch owned)", "a b", "\u202ebidi", "nul\\0", "%s%n")


@test(id="FS-16")
def hostile_names_come_home_whole_and_are_shown_inert(place):
    script = "import os, sys\nfor name in sys.argv[1:]:\n    open(name, 'wb').write(os.fsencode(name))\nfor n in range(3000): open(f'many{n}', 'w').close()\nfor n in range(100):\n    os.mkdir('deep' * 5)\n    os.chdir('deep' * 5)\nopen('end', 'w').close()\n"
    done = place.cove("run", "-q", "--", "/usr/bin/python3", "-c", script, *HOSTILE_NAMES)
    equal(done.code, 0, done)
    outputs = {words: bounded_output(place, *words) for words in (("diff", "--stat"), ("diff",), ("export", "-o", "../out.tar"), ("apply", "--yes"))}
    for words, output in outputs.items():
        if words != ("diff",):  # through a pipe a patch has the bytes as they are
            equal(re.findall(rb"[\x1b\xff]|\xe2\x80\xae", output), [], f"{words}: bytes that act")
    control_fires(b"\x1b" in outputs["diff",], "where they are not made inert, they are seen")
    for name in HOSTILE_NAMES:
        equal((place.work / name).read_bytes(), os.fsencode(name), f"{name!r} at home")
    equal(len([p for p in place.work.iterdir() if p.name.startswith("many")]), 3000, "all of a large directory")
    equal(sorted(set(os.listdir(place.dir)) - {"work", "home", "state", "out.tar"}) + [n for n in os.listdir(place.work) if n == "owned"], [], "made by a name")
    assert (place.work / ("/".join(["deep" * 5] * 100)) / "end").exists(), "the deep tree at home"
    leave(place, "exec /usr/bin/python3 -c \"import os\nfor n in range(250):\n    os.mkdir('deeper' * 4)\n    os.chdir('deeper' * 4)\"")
    done = place.cove("diff", "--stat")
    assert done.code == 0 and "nested too deep to be brought home" in done.text, f"what is nested deeper than a path is long: {done!r}"


def bounded_output(place, *words):
    began = time.monotonic()
    done = place.cove(*words)
    assert done.code in (0, 1) and time.monotonic() - began < 30, f"{words}: {done!r}"
    return done.out + done.err


def marks_of_layers(layers):
    """Attributes by which overlayfs would be misled if it read them back from the sandbox's layers."""
    found = []
    for top, folders, files in os.walk(layers):
        for path in [os.path.join(top, name) for name in folders + files]:
            with contextlib.suppress(OSError):
                found += [f"{path} {name}" for name in os.listxattr(path, follow_symlinks=False)
                          if name in ("user.overlay.redirect", "trusted.overlay.redirect", "user.overlay.metacopy", "security.capability")]
    return found


@test(id="FS-17")
def attributes_that_mean_something_are_refused_or_mean_nothing(place):
    (place.work / "folder").mkdir()
    (place.work / "folder/file").write_text("x")
    put_probe(place)
    before = fingerprint(place.work)
    for path in ("folder", "folder/file"):
        with Running(place, "attributes", path) as run:
            marks = [mark for mark in marks_of_layers(place.state / "sandboxes") if IDENTITY != "root" or "user.overlay" not in mark]
            report = run.end()
        # The kernel stores user.overlay.X under another name, or refuses; SELinux without a policy takes any label.
        equal(marks, [], "marks that reached a layer")
        equal([s for s in report.worked() if not s.startswith(("user.overlay", "security.selinux"))], [], f"attributes of {path}")
    unchanged(before, fingerprint(place.work), "the workspace")
    # A tree that carries such marks already: its own content or an error, never something else.
    canaries = Canaries()
    canaries.plant(place.work / "hidden/token")
    (place.work / "folder/token").write_text("plain")
    for name, mark, value in (("folder", "redirect", b"/hidden"), ("folder/token", "redirect", b"/hidden/token"), ("folder/token", "metacopy", b"y")):
        os.setxattr(place.work / name, f"user.overlay.{mark}", value)
    canaries.none_in("a redirected directory", place.run("cat", "folder/token", "hidden/token", options=("--hide", "hidden")))
    control_fires(canaries.found_in(place.run("cat", "hidden/token").out), "what is not hidden is read")
    control_fires(marks_of_layers(place.work), "a mark is found")


READ_BY_US = ("cove.yaml", ".gitignore", ".gitattributes", ".gitmodules", ".git", "sub/.git", "sub/.gitignore", "package.json", "pyproject.toml", ".envrc", "plain")
IN_GIT = (".git/HEAD", ".git/config", ".git/index", ".git/info/exclude", ".git/packed-refs", ".git/commondir", ".git/objects/info/alternates", ".git/refs/heads/main")
OFFERS = r"""
import os, socket, sys
kind, names = sys.argv[1], sys.argv[2:]
for name in names:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    if kind == "fifo":
        os.mkfifo(name)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(name)
    elif kind == "link":
        os.symlink("/proc/kmsg", name)
    elif kind == "endless":
        os.symlink("/dev/zero", name)
    else:
        open(name, "w").close()
        for size in (2**63 - 1, 2**44 - 4096, 2**40):
            try:
                os.truncate(name, size)
                break
            except OSError:
                pass
"""
OF_LAYERS = (("diff",), ("diff", "--json"), ("diff", "--stat"), ("apply", "--yes"), ("export", "-o", "../out.tar"), ("show",))
OF_WORKSPACES = (("policy", "show"), ("run", "-q", "--rm", "--", "/bin/true"), ("run", "--print-plan", "--hide", "*.pem", "--", "/bin/true"), ("diff",))


def bounded(place, *words, seconds=20):
    """Runs cove to its end, in so many seconds and with little memory."""
    process = subprocess.Popen([COVE, *words], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    late = threading.Timer(seconds, process.kill)
    late.start()
    errors = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    late.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode >= 0, f"{words} took longer than {seconds} s, or crashed: {process.returncode} {errors}"
    assert usage.ru_maxrss < 200 << 10, f"{words} took {usage.ru_maxrss} KiB"
    return process.returncode, errors


def empty(top):
    for path in top.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def never_ends(path):
    """Whether a careless reader would wait for ever, or as long as it takes."""
    try:
        subprocess.run(["sha256sum", path], timeout=0.5, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return True
    return False


@test(id="FS-18")
def a_file_that_never_ends_keeps_nobody_waiting(place):
    offers = place.dir / "offers.py"
    offers.write_text(OFFERS)
    for kind in ("fifo", "socket", "link", "endless", "sparse"):
        for names in (READ_BY_US, IN_GIT) if kind in ("fifo", "sparse") else (READ_BY_US,):
            empty(place.work)
            done = place.cove("run", "-q", "--read", offers, "--", "/usr/bin/python3", offers, kind, *names)
            equal(done.code, 0, f"{kind}: {done!r}")
            codes = {words[0]: bounded(place, *words)[0] for words in OF_LAYERS}
            assert names != READ_BY_US or (codes["apply"], codes["export"] in (1, 125)) == (1, True), f"{kind}: not all can be brought home: {codes}"
            equal([name for name in names if (place.work / name).exists() and not (kind == "sparse" and (place.work / name).is_file())], [], f"{kind}: came home")
            # And where the owner's own tree has them, by an earlier command that was granted rw.
            empty(place.work)
            subprocess.run(["/usr/bin/python3", offers, kind, *names], cwd=place.work, check=True)
            for words in OF_WORKSPACES:
                bounded(place, *words)
            if kind in ("fifo", "endless", "sparse"):
                control_fires(never_ends(place.work / names[1]), f"a careless reader of a {kind} waits")
            for record in place.state.glob("sandboxes/*/record.json"):
                place.cove("rm", record.parent.name)


@test(id="FS-18")
def a_file_that_grows_while_it_is_read_has_an_end(place):
    leave(place, "for f in .gitignore package.json plain; do echo x >$f; done")
    stop = threading.Event()

    def grow(path):  # as by a descriptor that somebody outside still holds
        size = 1 << 20
        while not stop.wait(0.0005):
            size += 1 << 20
            os.truncate(path, size)
    growing = [threading.Thread(target=grow, args=(layer(place) / name,)) for name in (".gitignore", "package.json", "plain")]
    for thread in growing:
        thread.start()
    try:
        for words in (("diff", "--stat"), ("export", "-o", "../out.tar"), ("apply", "--yes")):
            bounded(place, *words)
    finally:
        stop.set()
        for thread in growing:
            thread.join()
    control_fires((layer(place) / "plain").stat().st_size > 4 << 20, "it grew")


@test(id="FS-19")
def predictable_paths_that_others_made_are_not_used(place):
    victim = place.dir / "victim"
    victim.mkdir()
    (victim / "file").write_text("x")

    def as_link(path):
        path.symlink_to(victim / "file")

    def as_socket(path):
        socket.socket(socket.AF_UNIX).bind(str(path))

    def open_to_all(path):
        path.mkdir()
        path.chmod(0o777)
    for number, make in enumerate((lambda p: p.write_text(""), lambda p: os.mkfifo(p), as_link, as_socket, open_to_all)):
        state = place.dir / f"state{number}"
        make(state)
        refused(place.run("true", env={"COVE_HOME": str(state)}), f"a state directory made by {make}")
    for name in ("sandboxes", "images"):
        state = place.dir / f"state-{name}"
        state.mkdir(mode=0o700)
        (state / name).symlink_to(victim)
        refused(place.run("true", env={"COVE_HOME": str(state)}), f"{name} is a link")
    (place.dir / "way").symlink_to(victim)
    place.run("true", env={"COVE_HOME": str(place.dir / "way/state")})
    equal((victim / "file").read_text(), "x", "the victim")
    equal({p.name for p in victim.iterdir()} - {"state"}, {"file"}, "names at the victim")  # "state" was asked for by its owner
    control_fires(place.run("true").code == 0, "an ordinary state directory")


PARTS = (("a", "a"), ("b", "b"), (".", "[.]"), ("*", "[^/]*"), ("?", "[^/]"), ("[ab]", "[ab]"), ("[!a]", "[^a/]"), ("\\*", "[*]"))
FOLDERS, LEAVES = ("a", "ab", ".b"), ("a", "b", "a.b", "*")


def random_pattern(dice):
    """A pattern and the regular expression that it means, over "/" and the path in its tree."""
    components = []
    for _ in range(dice.randint(1, 3)):
        pieces = [dice.choice(PARTS) for _ in range(dice.randint(1, 2))]
        if "".join(p[0] for p in pieces) in ("**", ".", ".."):  # these mean something else
            pieces = [PARTS[0]]
        components.append(("**", "(/[^/]+)*") if dice.random() < 0.15 and components else ("".join(p[0] for p in pieces), "/" + "".join(p[1] for p in pieces)))
    anchored = len(components) > 1 or dice.random() < 0.3
    glob = ("/" if anchored and len(components) == 1 else "") + "/".join(c[0] for c in components)
    return glob, re.compile(("" if anchored else "(/[^/]+)*") + "".join(c[1] for c in components))


def is_hidden(rules, path):
    """Deny wins: one pattern that has the path, or a directory around it, is enough."""
    around = [path[:at] for at in range(1, len(path) + 1) if at == len(path) or path[at] == "/"]
    return any(rule.fullmatch("/" + part) for rule in rules for part in around)


@test(id="FS-21")
def random_policies_show_what_the_model_says(place):
    """Live; tests/unit/box/hide_model_test.c compares 10,000 with a model of its own."""
    dice, trees = random.Random(21), {"work": place.work, "/ro": place.dir / "ro", "/cow": place.dir / "cow"}
    canaries, tokens = Canaries(), {}
    for name, top in trees.items():
        for path in (f"{one}/{two}/{leaf}" for one in FOLDERS for two in FOLDERS for leaf in LEAVES):
            canaries.plant(top / path)
            tokens[name, path] = canaries.tokens[-1]
    put_probe(place)
    asked = [path if name == "work" else f"{name}/{path}" for name, path in tokens]
    shown_ever, hidden_ever = 0, 0
    for number in range(200 // 4 if IDENTITY != "user" else 200):
        patterns = [random_pattern(dice) for _ in range(dice.randint(1, 4))]
        rules = [regex for _, regex in patterns]
        options = [("--hide", glob) for glob, _ in patterns] + [("-v", f"{trees['/ro']}:/ro:ro"), ("-v", f"{trees['/cow']}:/cow:cow"), ("--read", str(trees["/ro"] / "a"))]
        dice.shuffle(options)  # no order counts, and a grant undoes no --hide
        if is_hidden(rules, "probe"):
            continue
        seen = attack(place, "spill", *asked, options=[word for pair in options for word in pair]).result.out.decode()
        for (name, path), token in tokens.items():
            want = not is_hidden(rules, path)
            equal(token in seen, want, f"{name} {path} with {options}")
            shown_ever, hidden_ever = shown_ever + want, hidden_ever + (not want)
    control_fires(min(shown_ever, hidden_ever) > 500, f"both verdicts are common: {shown_ever} shown, {hidden_ever} hidden")


main()
