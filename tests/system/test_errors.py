"""Bad input and bad surroundings: one clear line, exit 125, nothing left, nothing lost."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.disks import mount_small  # noqa: E402
from support.harness import COVE, IDENTITY, Result, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, cold, digest, nothing_left, one_error, write  # noqa: E402


def with_mount(place, mount, *args, state=None, after=""):
    """cove ARGS in a mount namespace of its own in which `mount` was run; MNT in it is an empty directory."""
    point = place.dir / "mnt"
    point.mkdir(exist_ok=True)
    become = [] if IDENTITY == "root" else ["--user", "--map-current-user", "--keep-caps"]
    script = f"set -e; MNT={point}; {mount}; {after}\nexec \"$@\""
    env = dict(place.env, COVE_HOME=str(state or point / "state"))
    done = subprocess.run(["unshare", *become, "--mount", "sh", "-c", script, "sh", COVE, *map(str, args)], cwd=place.work, env=env,
                          input=b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if b"mount: " in done.stderr or b"unshare: " in done.stderr:
        skip(f"kernel: this user cannot mount: {done.stderr.decode(errors='replace').strip()[:100]}")
    return Result(done)


# What was typed

@test
def a_workspace_that_is_missing_or_no_directory_is_one_error(place):
    write(place.dir / "file", "x")
    one_error(place.run("true", options=("-C", place.dir / "missing")), "missing", "-C")
    one_error(place.run("true", options=("-C", place.dir / "file")), "file", "not a directory")
    one_error(place.run("true", options=("-C", place.dir / "file/below")), "not a directory")
    one_error(place.run("true", options=("-C", "")), "directory")
    nothing_left(place)


@test
def a_current_directory_that_is_gone_is_one_error(place):
    gone = place.dir / "gone"
    gone.mkdir()
    done = subprocess.run(["sh", "-c", f'cd {gone} && rmdir {gone} && exec "$0" run -- true', COVE], env=place.env, input=b"",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    one_error(Result(done), "current directory")


@test(identities=("user", "nested"))
def a_workspace_that_cannot_be_read_is_one_error(place):
    closed = place.dir / "closed"
    (closed / "below").mkdir(parents=True)
    closed.chmod(0)
    one_error(place.run("true", options=("-C", closed / "below")), "closed/below", "Permission denied")
    closed.chmod(0o700)


@test
def an_unknown_option_is_one_error_with_a_suggestion(place):
    one_error(place.cove("run", "--timout", "5s", "--", "true"), "--timout", "--timeout")
    one_error(place.cove("run", "--nonsense-option"), "--nonsense-option", "--help")
    one_error(place.cove("run", "-Z"), "-Z", "--help")
    one_error(place.cove("run", "--rm=yes", "--", "true"), "--rm", "no value")
    one_error(place.cove("run", "--timeout"), "--timeout", "needs a value")
    one_error(place.cove("run", "-e"), "needs a value")


@test
def an_unknown_command_is_one_error_with_a_suggestion(place):
    one_error(place.cove("rum"), "rum", "cove run")
    one_error(place.cove("frobnicate"), "frobnicate", "cove help")
    one_error(place.cove("--frobnicate"), "--frobnicate")
    one_error(place.cove(""), "command")


@test
def what_was_typed_is_shown_inert(place):
    for args in (("\x1b]0;x\x07",), ("run", "--\x1b[2Jx"), ("run", "-C", "\x1b[2J/x", "--", "true"), ("run", "-e", "\x9b2J A=1"), ("run", "\x1b[2J")):
        done = place.cove(*args)
        assert done.code in (125, 127) and b"\x1b" not in done.err and b"\x07" not in done.err, done
        equal(len(done.err.splitlines()), 1, done)


@test
def bad_values_are_one_error(place):
    for options in (("--timeout", "soon"), ("--timeout", "-1"), ("--timeout", "0"), ("--timeout", "99999999999999999999h"), ("--seccomp", "lax"),
                    ("--image", ""), ("--image", place.dir / "missing"), ("--hide", ""), ("--hide", "/../x"), ("--read", ""),
                    ("--spec", place.dir / "missing"), ("--workdir", ""), ("-e", "--"), ("--env", "--rm")):
        one_error(place.run("true", options=options), options[0].lstrip("-").split("=")[0][:5])
    one_error(place.run("true", options=("--image", place.dir / "missing")), "missing", "root directory of an unpacked image")
    one_error(place.cove("snapshot", "one", "two"), "--name NAME ID")
    nothing_left(place)


@test
def a_path_that_is_too_long_is_one_error(place):
    one_error(place.run("true", options=("-C", "/" + "a" * 5000)))
    one_error(place.run("true", options=("-C", "/tmp/" + "a" * 300)))
    one_error(place.run("true", options=("--read", "/" + "/a" * 3000)))
    done = place.run("true", env={"COVE_HOME": "/tmp/" + "a" * 300})
    one_error(done, "state directory")


@test
def arguments_and_variables_up_to_the_kernels_limit_pass(place):
    big = "x" * 100_000
    equal(len(place.run("sh", "-c", 'printf %s "$1"', "sh", big).out), 100_000)
    equal(len(place.run("printenv", "BIG", options=("-e", f"BIG={big}")).out), 100_001)
    many = ["y" * 100] * 5000
    equal(place.run("sh", "-c", "echo $#", "sh", *many).text.strip(), "5000")


@test
def arguments_beyond_the_kernels_limit_are_one_error(place):
    # Variables that pass one by one outside are too many together inside.
    file = write(place.dir / "vars", "".join(f"V{i}={'z' * 4000}\n" for i in range(240)) * 1)
    more = write(place.dir / "more", "".join(f"W{i}={'z' * 120000}\n" for i in range(8)))
    options = ("--env-file", file, "--env-file", more, "--env-file", more)
    done = place.run("true", options=options)
    if done.code != 0:
        assert len(done.errors.splitlines()) == 1 and ("too long" in done.errors or "E2BIG" in done.errors), done
        assert done.code in (125, 126), done
    one = write(place.dir / "one", f"HUGE={'z' * 500000}\n")
    done = place.run("true", options=("--env-file", one))
    assert done.code in (125, 126) and len(done.errors.splitlines()) == 1, done
    assert "too long" in done.errors or "larger" in done.errors, done
    nothing_left(place)


# The state directory

@test
def a_relative_state_directory_is_one_error(place):
    one_error(place.run("true", env={"COVE_HOME": "relative"}), "COVE_HOME", "absolute")


@test
def a_state_directory_that_is_a_file_is_one_error(place):
    write(place.dir / "file", "x")
    one_error(place.run("true", env={"COVE_HOME": str(place.dir / "file")}), str(place.dir / "file"), "not a directory")
    one_error(place.run("true", env={"COVE_HOME": str(place.dir / "file/below")}), "not a directory")
    equal((place.dir / "file").read_text(), "x")


@test
def a_state_directory_open_to_others_is_one_error_and_not_touched(place):
    cold(place)
    for mode in (0o777, 0o755, 0o770):
        place.state.mkdir(exist_ok=True)
        place.state.chmod(mode)
        write(place.state / "precious", "x")
        before = digest(place.state)
        one_error(place.run("true"), str(place.state), "other")
        equal(digest(place.state), before)


@test
def a_state_directory_below_one_that_others_can_write_is_one_error(place):
    (place.dir / "open").mkdir()
    (place.dir / "open").chmod(0o777)
    one_error(place.run("true", env={"COVE_HOME": str(place.dir / "open/state")}), str(place.dir / "open"), "other")
    (place.dir / "open").chmod(0o1777)  # as /tmp
    equal(place.run("true", env={"COVE_HOME": str(place.dir / "open/state")}).code, 0)


@test
def a_state_directory_of_somebody_else_is_one_error(place):
    if IDENTITY == "root":
        cold(place)
        place.state.mkdir(mode=0o700)
        os.chown(place.state, 12345, 12345)
        one_error(place.run("true"), str(place.state), "12345")
    else:
        one_error(place.run("true", env={"COVE_HOME": "/var/lib/dpkg"}), "/var/lib/dpkg")
        one_error(place.run("true", env={"COVE_HOME": "/usr/cove-state"}), "/usr/cove-state", "Permission denied")


@test
def a_state_directory_on_a_read_only_file_system_is_one_error(place):
    done = with_mount(place, "mount -t tmpfs -o mode=700 tmpfs $MNT; mount -o remount,ro $MNT", "run", "--rm", "--", "true")
    one_error(done, "Read-only file system", str(place.dir / "mnt"))
    nothing_left(place)


@test(id="Z-06")
def a_full_disk_is_one_error_and_leaves_nothing(place):
    fill = "mkdir -m 700 $MNT/state; head -c 10M /dev/zero >$MNT/fill 2>/dev/null || true; i=0; while mkdir $MNT/d$i 2>/dev/null; do i=$((i+1)); done; true"
    done = with_mount(place, "mount -t tmpfs -o mode=700,size=64k,nr_inodes=24 tmpfs $MNT", "run", "--rm", "--", "true", after=fill)
    one_error(done, "No space left")


@test(id="Z-06")
def a_disk_that_fills_up_inside_is_told_to_the_command(place):
    done = with_mount(place, mount_small("$MNT", 4), "run", "--rm", "--", "sh", "-c",
                      "head -c 20M /dev/zero >big; echo $?; rm big; echo after >small && cat small")
    equal((done.code, done.text.split()), (0, ["1", "after"]), done)
    assert "No space left" in done.errors, done


@test
def a_file_system_that_cannot_hold_a_layer_is_one_error_that_says_so(place):
    prepare = "mkdir -p $MNT.l $MNT.u $MNT.w; mount -t overlay -o lowerdir=$MNT.l,upperdir=$MNT.u,workdir=$MNT.w overlay $MNT"
    if IDENTITY != "root":
        prepare = prepare.replace("-o ", "-o userxattr,")
    done = with_mount(place, prepare, "run", "--rm", "--", "true", after="chmod 700 $MNT")
    if done.code == 0:
        return  # it found a way: as good
    line = one_error(done, "overlay")
    assert str(place.dir / "mnt") in line or "state directory" in line or "COVE_HOME" in line, line


@test
def another_state_directory_is_a_way_out(place):
    equal(with_mount(place, mount_small("$MNT", 100), "run", "--rm", "--", "true").code, 0)


# Surroundings

@test(id="Z-11")
def few_descriptors_are_enough_or_one_error(place):
    import resource
    for limit in (1024, 64, 16, 8, 5, 4):
        done = place.run("echo", "ok", preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        if done.code == 0:
            equal(done.out, b"ok\n", limit)
        else:
            assert done.code in (125, 126, 127) and len(done.errors.splitlines()) <= 1, (limit, done)
    place.run("true")  # what could not be removed for want of descriptors goes with the next start
    nothing_left(place)


@test(identities=("user", "nested"))
def a_limit_on_processes_is_one_error(place):
    import resource
    done = place.run("echo", "ok", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)))
    one_error(done)
    nothing_left(place)


@test
def a_limit_on_file_size_is_no_reason_to_die_silently(place):
    import resource
    done = place.sh("echo ok; head -c 100000 /dev/zero >big", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert done.code != 0, done
    place.run("true")
    nothing_left(place)


@test
def variables_of_the_host_do_not_confuse_it(place):
    for name, value in (("HOME", ""), ("HOME", "relative"), ("HOME", "/missing"), ("XDG_STATE_HOME", "relative"), ("XDG_CONFIG_HOME", "relative"),
                        ("XDG_RUNTIME_DIR", "relative"), ("TERM", ""), ("PATH", ""), ("SHELL", "/missing"), ("TMPDIR", "/missing"), ("LANG", "xx_YY")):
        equal(place.run("/bin/echo", "ok", env={name: value}).out, b"ok\n", f"{name}={value}")


@test
def an_empty_environment_is_enough(place):
    done = subprocess.run([COVE, "run", "--rm", "--", "/bin/echo", "ok"], env={"COVE_HOME": str(place.state)}, cwd=place.work, input=b"",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal((done.returncode, done.stdout), (0, b"ok\n"), done)


if __name__ == "__main__":
    adopt_orphans()
    main()
