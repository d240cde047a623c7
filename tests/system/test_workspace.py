"""The workspace and granted trees: what is visible, what can be changed, and that the host's own stay as they are."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, IDENTITY, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, digest, finish, nothing_left, one_error, read_until, start, stop, tool, write  # noqa: E402

GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
INSIDE = tuple(word for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
               for word in ("-e", f"{name}={GIT[name]}"))


def git(place, *args, cwd=None):
    done = subprocess.run(["git", *map(str, args)], cwd=cwd or place.work, env={**place.env, **GIT}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done
    return done.stdout.decode().strip()


def repository(place, path=None):
    """A repository with two commits."""
    path = path or place.work
    path.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main", path)
    write(path / "file", "one\n")
    write(path / "dir/sub/deep", "deep\n")
    git(place, "add", "-A", cwd=path)
    git(place, "commit", "-qm", "first", cwd=path)
    return path


# Which tree

@test
def the_work_tree_around_the_current_directory_is_shown(place):
    repository(place)
    done = place.sh("pwd; cat ../../file; git rev-parse --show-toplevel", cwd=place.work / "dir/sub")
    equal(done.text.split(), [str(place.work / "dir/sub"), "one", str(place.work)])


@test
def without_a_repository_only_the_directory_itself_is_shown(place):
    write(place.work / "below/file", "x")
    write(place.work / "beside", "y")
    done = place.sh("cat file; ls ..", cwd=place.work / "below")
    equal(done.text, "xbelow\n")


@test
def nothing_beside_the_workspace_is_shown(place):
    write(place.dir / "beside/secret", "s")
    done = place.sh(f"ls {place.dir}; cat {place.dir}/beside/secret")
    assert set(done.text.split()) <= {"work", "home"} and "work" in done.text, done  # an empty home is always there


@test
def a_work_tree_reached_through_a_link_is_shown_at_its_real_path(place):
    repository(place)
    (place.dir / "link").symlink_to(place.work)
    done = place.sh("pwd -P; cat file", options=("-C", place.dir / "link"))
    equal(done.text.split(), [str(place.work), "one"])


@test(identities=("root",))
def the_repository_of_another_user_around_the_directory_does_not_count(place):
    repository(place)
    inner = place.work / "inner"
    inner.mkdir()
    for path in (place.work, place.work / ".git"):
        os.chown(path, 12345, 12345)
    equal(place.sh("cat ../file 2>/dev/null; pwd", cwd=inner).text, f"{inner}\n")


# Copy on write

@test
def writes_renames_and_deletes_change_nothing_outside(place):
    repository(place)
    write(place.work / "mode", "x", 0o600)
    (place.work / "link").symlink_to("file")
    before = digest(place.work)
    done = place.sh("set -e; echo changed >file; echo more >>mode; chmod 755 mode; rm dir/sub/deep; rmdir dir/sub; mkdir new; "
                    "touch -d 2001-01-01 new; mv link link2; ln file hard; ln -s / root; mkfifo pipe; touch .git/index; "
                    "git status --short | wc -l; cat file")
    equal(done.code, 0, done)
    equal(done.text.splitlines()[-1], "changed")
    equal(digest(place.work), before)


@test
def a_second_run_starts_from_the_host_again(place):
    place.sh("echo x >made")
    assert place.run("ls").out == b""


@test
def everything_can_be_deleted_inside_and_nothing_outside_is(place):
    repository(place)
    before = digest(place.work)
    done = place.sh("rm -rf ./* .git; ls -A | wc -l; rm -rf /etc /home /tmp/* /var /opt 2>/dev/null; true")
    equal(done.text.strip(), "0")
    equal(digest(place.work), before)


@test
def git_commits_inside_stay_inside(place):
    repository(place)
    before = digest(place.work)
    done = place.sh("echo two >file && git add -A && git commit -qm second && git log --oneline | wc -l && git checkout -q HEAD~1 && cat file", options=INSIDE)
    equal((done.code, done.text.split()), (0, ["2", "one"]))
    equal(digest(place.work), before)


@test
def modes_owners_and_times_are_the_same_inside(place):
    write(place.work / "a", "x", 0o640)
    write(place.work / "b/c", "y", 0o755)
    os.utime(place.work / "a", ns=(10**18, 10**18))
    format = "%n %a %s %Y"
    outside = subprocess.run(["stat", "-c", format, "a", "b/c"], cwd=place.work, stdout=subprocess.PIPE, check=True).stdout
    equal(place.run("stat", "-c", format, "a", "b/c").out, outside)
    equal(place.run("stat", "-c", "%U", "a").text.strip(), place.run("id", "-un").text.strip())


@test
def a_file_closed_to_its_owner_is_closed_inside_also_to_root(place):
    write(place.work / "closed", "x", 0)
    done = place.run("cat", "closed")
    assert done.code != 0 and "Permission denied" in done.errors, done
    equal(place.sh("chmod 600 closed && cat closed").out, b"x")


@test
def host_edits_are_seen_until_the_file_was_changed_inside(place):
    write(place.work / "seen", "old\n")
    write(place.work / "changed", "old\n")
    process = start(place, "run", "--rm", "--", "sh", "-c", "echo inside >changed; echo ready; read x; cat changed; cat seen", stdin=subprocess.PIPE)
    try:
        read_until(process.stdout, b"ready\n")
        for name in ("seen", "changed"):
            write(place.work / name, "new\n")
        done_input = b"go\n"
        out, _ = process.communicate(done_input, timeout=10)
    finally:
        stop(process)
    equal(out.splitlines()[0], b"inside")
    assert out.splitlines()[1] in (b"new", b"old"), out  # the host's edit may or may not be seen; it never is a mixture
    equal((place.work / "changed").read_text(), "new\n")


# Git's other shapes

@test
def a_linked_worktree_works_and_changes_nothing_outside(place):
    repository(place, place.dir / "main")
    git(place, "worktree", "add", "-q", "-b", "other", place.dir / "linked", cwd=place.dir / "main")
    before = digest(place.dir / "main"), digest(place.dir / "linked")
    done = place.sh("git status --short; echo 2 >file; git commit -qam second && git log --oneline | wc -l && git branch --show-current; "
                    "ls ../main", cwd=place.dir / "linked", options=INSIDE)
    equal(done.text.split(), ["2", "other"], done)
    equal((digest(place.dir / "main"), digest(place.dir / "linked")), before)


@test
def a_submodule_works_inside_its_superproject_and_changes_nothing_outside(place):
    repository(place, place.dir / "library")
    repository(place)
    git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", place.dir / "library", "lib")
    git(place, "commit", "-qm", "with library")
    before = digest(place.work)
    done = place.sh("git status --short; echo 2 >file; git commit -qam second && git log --oneline | wc -l; cd .. && git status --short && cat file",
                    cwd=place.work / "lib", options=INSIDE)
    equal(done.text.split(), ["2", "M", "lib", "one"], done)
    equal(digest(place.work), before)


@test
def a_git_file_that_points_to_another_repository_shows_nothing_of_it(place):
    other = repository(place, place.dir / "other")
    git(place, "worktree", "add", "-q", place.dir / "real", cwd=other)
    for target in (other / ".git", other / ".git/worktrees/real", "../other/.git", place.home, "/etc", "/proc/self/root", "/"):
        write(place.work / ".git", f"gitdir: {target}\n")
        done = place.sh(f"ls {other} {other}/.git 2>/dev/null; git log --oneline 2>/dev/null; pwd")
        equal(done.text, f"{place.work}\n", str(target))


@test
def a_git_link_that_points_elsewhere_shows_nothing_of_it(place):
    other = repository(place, place.dir / "other")
    (place.work / ".git").symlink_to(other / ".git")
    equal(place.sh(f"ls {other} 2>/dev/null; pwd").text, f"{place.work}\n")


@test
def a_forged_commondir_shows_nothing_of_the_repository_it_names(place):
    other = repository(place, place.dir / "other")
    fake = place.work / "fake/worktrees/x"
    write(fake / "HEAD", "ref: refs/heads/main\n")
    write(fake / "commondir", f"{other}/.git\n")
    write(fake / "gitdir", f"{place.work}/.git\n")
    write(place.work / ".git", f"gitdir: {fake}\n")
    equal(place.sh(f"ls {other} 2>/dev/null; pwd").text, f"{place.work}\n")


# Refused workspaces

@test
def the_whole_machine_a_home_and_what_is_above_it_are_refused(place):
    home = place.home
    for path in ("/", home, *[p for p in home.parents][:-1], "/home", "/etc", "/usr", "/tmp", "/proc", "/dev", "/sys", "/run", "/var"):
        if os.path.isdir(path):
            line = one_error(place.run("true", options=("-C", path)), "cannot be a workspace", "mkdir")
            assert str(path) in line, line


@test(identities=("user", "nested"))
def a_directory_of_credentials_is_refused(place):
    home = place.home
    for name in (".ssh", ".aws", ".gnupg", ".config/gh", ".ssh/below"):
        (home / name).mkdir(parents=True, exist_ok=True)
        one_error(place.run("true", options=("-C", home / name)), "cannot be a workspace", "credentials")
    (home / "project").mkdir()
    equal(place.run("true", options=("-C", home / "project")).code, 0)


@test
def a_directory_that_looks_like_a_home_is_refused(place):
    write(place.work / ".ssh/id_ed25519", "key")
    one_error(place.run("true"), "SSH keys", ".ssh/id_*")


@test(identities=("user", "nested"))
def a_repository_of_dotfiles_in_the_home_is_not_taken_for_the_workspace(place):
    home = repository(place, place.home)
    write(home / "secret", "s")
    (home / "project").mkdir()
    equal(place.sh("cat ../secret 2>/dev/null; ls ..; pwd", cwd=home / "project").text, f"project\n{home}/project\n")


@test
def the_state_directory_is_refused_as_workspace_from_inside_and_outside(place):
    place.run("true")
    for path in (place.state, place.state / "sandboxes"):
        one_error(place.run("true", options=("-C", path)), "Cove", "cannot be a workspace")
    inner = place.work / "deep/state"
    one_error(place.run("true", env={"COVE_HOME": str(inner)}), "Cove", "cannot be a workspace")
    for option in ("--read", "--write"):
        one_error(place.run("true", options=(option, place.state)), "cannot be granted")


@test
def a_link_to_a_refused_place_is_refused(place):
    (place.work / "link").symlink_to("/")
    one_error(place.run("true", options=("-C", "link")), "the whole machine")
    one_error(place.run("true", options=("-C", "/proc/self/cwd")), "/proc/self/cwd")


# Names

STRANGE = [b"a:b", b"a,b", b"a\\b", b"a\\:b,c", b"with space", b"new\nline", b"\xff\xfe", "ümläut".encode(), b"-dash", b"$(id)",
           b"quote'\"", b"%s%n", b"n" * 200, b"lowerdir=x,upperdir=y", b"tab\there", b"#hash", b"~tilde", b"*?[x]"]


@test
def a_workspace_can_have_any_name(place):
    for name in STRANGE:
        path = os.path.join(os.fsencode(place.dir), name)
        os.mkdir(path)
        with open(os.path.join(path, b"file"), "wb") as file:
            file.write(b"content")
        done = place.sh("pwd; cat file; echo changed >file", cwd=os.fsdecode(path))
        equal((done.code, done.out), (0, path + b"\ncontent"), repr(name))
        equal(open(os.path.join(path, b"file"), "rb").read(), b"content")
    nothing_left(place)


@test
def a_file_and_a_grant_can_have_any_name(place):
    for name in STRANGE:
        path = os.path.join(os.fsencode(place.dir), b"g" + name)
        os.mkdir(path)
        with open(os.path.join(path, name), "wb") as file:
            file.write(name)
        done = place.run("cat", os.fsdecode(os.path.join(path, name)), options=("--read", os.fsdecode(path)))
        equal((done.code, done.out), (0, name), repr(name))


@test
def deep_paths_work(place):
    deep = place.work
    while len(str(deep)) < 2000:
        deep = deep / ("d" * 100)
        deep.mkdir()
    write(deep / "file", "deep")
    equal(place.sh("cat file; pwd", cwd=deep).text, f"deep{deep}\n")


# Trees that were there before

RENAME = "import os, sys\ntry:\n os.rename(sys.argv[1], sys.argv[2]); print('renamed')\nexcept OSError as e:\n print(os.strerror(e.errno))"


@test
def renaming_a_directory_of_the_host_is_told_as_another_device(place):
    # docs: overlays answer EXDEV, as Docker's; programs that copy then, cope.
    write(place.work / "node_modules/left-pad/index.js", "x")
    done = place.run("/usr/bin/python3", "-c", RENAME, "node_modules/left-pad", "node_modules/.left-pad-1")
    equal(done.text.strip(), "Invalid cross-device link")


@test
def renaming_a_file_or_a_new_directory_works_for_everybody(place):
    write(place.work / "dir/file", "x")
    for script in ("mkdir new && python3 - new new2", "python3 - dir/file dir/other", "mkdir dir/sub && python3 - dir/sub dir/sub2"):
        script = script.replace("python3 -", "/usr/bin/python3 -c \"$R\"")
        equal(place.sh(script, options=("-e", f"R={RENAME}")).text.strip(), "renamed", script)


@test
def mv_and_its_like_cope_with_directories_of_the_host(place):
    write(place.work / "target/debug/file", "x")
    (place.work / "target/link").symlink_to("debug/file")
    done = place.sh("mv target old && cat old/debug/file old/link && ls; mv old/debug . && cat debug/file")
    equal((done.code, done.text), (0, "xxold\nx"))
    done = place.run("/usr/bin/python3", "-c", "import shutil; shutil.move('target', 'old'); print(open('old/debug/file').read())")
    equal((done.code, done.text), (0, "x\n"))
    equal((place.work / "target/debug/file").read_text(), "x")


@test
def git_moves_files_of_the_host_but_not_directories(place):
    # The way out: mv dir new && git add -A, which git shows as the same rename.
    repository(place)
    done = place.sh("git mv dir moved && git status --short")
    assert done.code != 0 and "cross-device" in done.errors, done
    for script in ("git mv file moved && git status --short", "mv dir moved && git add -A && git status --short"):
        done = place.sh(script)
        assert done.code == 0 and done.text.startswith("R"), done


@test
def a_python_environment_made_before_works_and_can_be_changed(place):
    tool("python3")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place.work / ".venv"], check=True, env=place.env)
    done = place.sh(". .venv/bin/activate && python -c 'import sys; print(sys.prefix)' && echo 'x = 7' >$(python -c 'import site; print(site.getsitepackages()[0])')/m.py "
                    "&& python -c 'import m; print(m.x)'")
    equal((done.code, done.text), (0, f"{place.work}/.venv\n7\n"))
    done = place.sh("/usr/bin/python3 -m venv --without-pip --clear .venv && .venv/bin/python -c 'print(1)'")
    equal((done.code, done.text), (0, "1\n"))


def packed(place, name, version):
    """A package as a directory and as an archive."""
    source = place.work / f"pkg-{name}-{version}"
    write(source / "package.json", f'{{"name": "{name}", "version": "{version}", "main": "i.js"}}')
    write(source / "i.js", f"module.exports = '{version}'\n")
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", place.work, source], cwd=place.work, env={**place.env, "npm_config_cache": str(place.dir / "npm")},
                   check=True, stdout=subprocess.DEVNULL)
    return place.work / f"{name}-{version}.tgz"


@test(identities=("root", "user"))
def npm_updates_packages_that_were_installed_before(place):
    tool("npm", "node")
    one, two = packed(place, "thing", "1.0.0"), packed(place, "thing", "2.0.0")
    install = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", "--no-save"]
    write(place.work / "package.json", '{"name": "app", "version": "1.0.0"}')
    subprocess.run([*install, one], cwd=place.work, env={**place.env, "npm_config_cache": str(place.dir / "npm")}, check=True)
    before = digest(place.work / "node_modules")
    done = place.run(*install, two, options=("-e", "npm_config_cache=/tmp/npm"), timeout=120)
    done = done if done.code else place.sh(f"{' '.join(install)} {two} && node -p \"require('thing')\" && npm uninstall --offline --silent thing && ls node_modules",
                                           options=("-e", "npm_config_cache=/tmp/npm"), timeout=120)
    equal((done.code, done.text), (0, "2.0.0\n"), done)
    equal(digest(place.work / "node_modules"), before)


@test(identities=("root", "user"))
def cargo_builds_over_a_target_directory_that_was_there_before(place):
    if not os.access("/usr/bin/cargo", os.X_OK):
        skip("cargo is not installed")
    write(place.work / "Cargo.toml", '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n')
    write(place.work / "src/main.rs", 'fn main() { println!("one"); }\n')
    subprocess.run(["/usr/bin/cargo", "build", "-q", "--offline"], cwd=place.work, check=True, env={**place.env, "CARGO_HOME": str(place.dir / "cargo")})
    before = digest(place.work)
    done = place.sh("sed -i s/one/two/ src/main.rs && /usr/bin/cargo run -q --offline && /usr/bin/cargo clean -q && /usr/bin/cargo run -q --offline",
                    options=("-e", "CARGO_HOME=/tmp/cargo", "-e", "PATH=/usr/bin:/bin"), timeout=120)
    equal((done.code, done.text), (0, "two\ntwo\n"), done)
    equal(digest(place.work), before)


# Sub-mounts

@test
def a_file_system_mounted_below_the_workspace_is_shown_or_named_in_the_error(place):
    (place.work / "sub").mkdir()
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    script = f'mount -t tmpfs tmpfs {place.work}/sub && echo below >{place.work}/sub/file && shift && exec "$0" run --rm -- cat sub/file'
    done = subprocess.run(["unshare", *become, "--mount", "sh", "-c", script, COVE, "x"], cwd=place.work, env=place.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if b"mount: " in done.stderr or b"unshare: " in done.stderr:
        skip("kernel: this user cannot mount")
    if done.returncode == 0:
        equal(done.stdout, b"below\n")
    else:
        assert done.returncode == 125 and f"{place.work}/sub".encode() in done.stderr, done
        equal(len(done.stderr.splitlines()), 1, done.stderr)


# Grants

@test
def a_read_grant_shows_a_tree_that_cannot_be_written(place):
    write(place.dir / "data/file", "data\n")
    before = digest(place.dir / "data")
    for script in ("echo x >>file", "rm file", "mkdir new", "chmod 600 file", "mv file other", "ln -s a b"):
        done = place.sh(f"cd {place.dir}/data && cat file && {script}", options=("--read", place.dir / "data"))
        assert done.code != 0 and done.out == b"data\n" and "Read-only file system" in done.errors, (script, done)
    equal(digest(place.dir / "data"), before)


@test
def a_write_grant_shows_a_tree_that_is_copied_on_write(place):
    write(place.dir / "data/file", "data\n")
    done = place.sh(f"cd {place.dir}/data && echo new >file && mkdir d && cat file", options=("--write", place.dir / "data"))
    equal((done.code, done.text), (0, "new\n"))
    equal(((place.dir / "data/file").read_text(), os.listdir(place.dir / "data")), ("data\n", ["file"]))


@test
def a_single_file_can_be_granted(place):
    write(place.dir / "one", "1\n")
    write(place.dir / "two", "2\n")
    done = place.sh(f"cat {place.dir}/one; cat {place.dir}/two 2>/dev/null; echo x >{place.dir}/one", options=("--read", place.dir / "one"))
    equal(done.text, "1\n")
    assert done.code != 0 and (place.dir / "one").read_text() == "1\n", done
    done = place.sh(f"echo x >{place.dir}/one && cat {place.dir}/one", options=("--write", place.dir / "one"))
    equal((done.code, done.text, (place.dir / "one").read_text()), (0, "x\n", "1\n"))


@test
def a_volume_shows_a_tree_at_another_path(place):
    write(place.dir / "data/file", "data\n")
    source = place.dir / "data"
    done = place.sh("cat /mnt/a/file; echo x >/mnt/a/file && cat /mnt/a/file", options=("-v", f"{source}:/mnt/a"))
    equal((done.code, done.text), (0, "data\nx\n"))
    done = place.sh("cat /mnt/a/file; echo x >/mnt/a/file", options=("-v", f"{source}:/mnt/a:ro"))
    assert done.code != 0 and "Read-only" in done.errors, done
    equal(place.run("cat", "/mnt/a/b/c/file", options=("-v", f"{source}:/mnt/a/b/c:cow")).text, "data\n")
    equal((source / "file").read_text(), "data\n")


@test
def a_colon_in_a_volume_is_escaped(place):
    write(place.dir / "co:lon/file", "data\n")
    done = place.run("cat", "/mnt/x:y/file", options=("-v", f"{place.dir}/co\\:lon:/mnt/x\\:y:ro"))
    equal((done.code, done.text), (0, "data\n"))


@test
def a_bad_volume_is_one_error_that_says_what_is_allowed(place):
    write(place.dir / "data/file")
    source = place.dir / "data"
    one_error(place.run("true", options=("-v", f"{source}:/mnt/a:rw")), "ro", "cow", "rw")
    one_error(place.run("true", options=("-v", f"{source}")), "SRC:DST")
    one_error(place.run("true", options=("-v", f"{place.dir}/missing:/mnt/a")), "missing")
    for target in ("/", "/proc", "/proc/sys", "/dev", "/sys", "/dev/shm/x"):
        one_error(place.run("true", options=("-v", f"{source}:{target}")))
    one_error(place.run("true", options=("-v", f"{source}:/mnt/a", "-v", f"{place.work}:/mnt/a")), "/mnt/a")
    nothing_left(place)


@test
def sockets_pipes_devices_and_credentials_cannot_be_granted(place):
    os.mkfifo(place.dir / "pipe")
    for path in (place.dir / "pipe", "/dev/null", "/proc/self/environ", "/", "/run", "/etc", place.home):
        one_error(place.run("true", options=("--read", path)), "granted")


@test
def a_read_only_tree_does_not_lead_to_sockets_of_the_host(place):
    import socket
    (place.dir / "data").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place.dir / "data/s"))
    listener.listen()
    script = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{place.dir}/data/s'); print('connected')"
    for option in ("--read", "--write"):
        done = place.run("/usr/bin/python3", "-c", script, options=(option, place.dir / "data"))
        assert done.code != 0 and b"connected" not in done.out, done
    listener.close()


# Hiding

@test
def hidden_files_are_absent_at_any_depth(place):
    for name in (".env", "deep/er/.env", "key.pem", "deep/cert.pem", "deep/keep.txt", ".environment"):
        write(place.work / name, "secret\n")
    done = place.sh("find . -type f | sort; cat .env", options=("--hide", ".env", "--hide", "*.pem"))
    equal(done.text.split(), ["./.environment", "./deep/keep.txt"])
    assert "No such file" in done.errors, done


@test
def a_hidden_name_can_be_made_inside_and_the_host_file_stays(place):
    for name in (".env", "deep/.env"):
        write(place.work / name, "secret\n")
    before = digest(place.work)
    done = place.sh("for f in .env deep/.env; do echo mine >$f && cat $f && rm $f && ls $f; done", options=("--hide", ".env"))
    equal(done.text, "mine\nmine\n")
    equal(digest(place.work), before)


@test
def hidden_directories_are_absent_with_all_below_them(place):
    write(place.work / "private/key", "secret\n")
    write(place.work / "a/private/key", "secret\n")
    done = place.sh("find . | sort", options=("--hide", "private"))
    equal(done.text.split(), [".", "./a"])
    done = place.sh("find . -type f | sort", options=("--hide", "/a/private"))
    if done.code == 0:
        equal(done.text.split(), ["./private/key"])


@test
def files_are_hidden_in_granted_trees_too(place):
    write(place.dir / "data/x/.env", "secret\n")
    for option in ("--read", "--write"):
        done = place.sh(f"find {place.dir}/data -type f", options=(option, place.dir / "data", "--hide", ".env"))
        equal((done.code, done.out), (0, b""), done)


@test
def a_hidden_file_is_not_reached_by_another_name(place):
    write(place.work / ".env", "secret\n")
    (place.work / "link").symlink_to(".env")
    done = place.sh("cat link; cat ./.env; cat /proc/self/cwd/.env; cat ../work/.env; grep -r secret . ; mv .env x", options=("--hide", ".env"))
    assert "secret" not in done.text, done


@test
def hiding_a_name_that_is_not_there_is_no_error(place):
    equal(place.run("true", options=("--hide", ".env", "--hide", "*.pem")).code, 0)


@test
def a_link_in_the_workspace_leads_nowhere_outside(place):
    write(place.dir / "outside/secret", "secret\n")
    (place.work / "link").symlink_to(place.dir / "outside")
    (place.work / "up").symlink_to("../outside/secret")
    done = place.sh("cat link/secret; cat up; echo x >up")
    assert "secret" not in done.text, done
    equal((place.dir / "outside/secret").read_text(), "secret\n")


if __name__ == "__main__":
    adopt_orphans()
    main()
