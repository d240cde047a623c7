"""cove run: exit codes, bytes, environment, signals, and what is left afterwards."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import time
import tty

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, IDENTITY, PATIENCE, equal, main, test  # noqa: E402
from support.running import (adopt_orphans, at_once, cold, descendants, finish, nothing_left, one_error, read_until, start,  # noqa: E402
                             stop, wait_for, write)

MEGABYTE = 1024 * 1024
SOAK = float(os.environ.get("COVE_SOAK_SECONDS", "0"))

# What the run before has laid out

def laid_out(place):
    """The layers in the spare directory that are for one workspace, once it is there."""
    spare = place.state / "spare"
    wait_for(spare.is_dir, what="the spare directory")
    return [path.name for path in spare.iterdir() if path.name.startswith("l")]


@test
def a_start_looks_the_same_whether_its_way_to_the_workspace_was_laid_out_or_not(place):
    deep = place.work / "a/b/c"
    deep.mkdir(parents=True)
    script = f"at={deep}; while [ \"$at\" != / ]; do stat -c '%n %A %u %g' \"$at\"; ls -A \"$at\"; at=$(dirname \"$at\"); done"
    shown = []
    for _ in range(2):
        shown.append(place.sh(script, options=("-C", deep)).text)
        equal(len(laid_out(place)), 1, "what is laid out for the next start")
    assert str(deep) in shown[0], shown
    equal(shown[1], shown[0], "what is seen")
    nothing_left(place)


@test
def what_is_laid_out_for_one_workspace_is_not_seen_in_another(place):
    first, second = place.dir / "first", place.dir / "second"
    first.mkdir()
    second.mkdir()
    assert "first" in place.sh(f"ls {place.dir}", options=("-C", first)).text
    equal(len(laid_out(place)), 1, "what is laid out")
    seen = place.sh(f"ls {place.dir}", options=("-C", second)).text.split()
    assert "second" in seen and "first" not in seen, seen


# Exit codes


@test
def the_exit_code_of_the_command_is_passed_on(place):
    for code in (0, 1, 2, 77, 124, 125, 126, 127, 255):
        equal(place.sh(f"exit {code}").code, code)


@test
def a_command_that_a_signal_ended_gives_128_plus_its_number(place):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE):
        equal(place.sh(f"kill -{int(number)} $$").code, 128 + number, number.name)


@test(judges_time=True)
def a_time_out_gives_124(place):
    began = time.monotonic()
    equal(place.run("sleep", "60", options=("--timeout", "200ms")).code, 124)
    assert time.monotonic() - began < 2 * PATIENCE
    nothing_left(place)


@test(judges_time=True)
def a_time_out_of_a_command_that_ignores_it_kills_and_gives_124(place):
    began = time.monotonic()
    done = place.sh("trap '' TERM; while :; do sleep 1; done", options=("--timeout", "200ms"))
    equal(done.code, 124)
    assert time.monotonic() - began < 4 * PATIENCE, "two seconds of grace, and no more"
    nothing_left(place)


@test
def a_command_that_ends_in_time_is_not_disturbed_by_a_time_out(place):
    done = place.sh("echo early; exit 3", options=("--timeout", "30s"))
    equal((done.code, done.out), (3, b"early\n"))


@test
def a_file_that_cannot_be_executed_gives_126_and_says_why(place):
    write(place.work / "plain", "no program\n", 0o644)
    for command in ("./plain", "/etc", str(place.work)):
        done = place.run(command)
        equal(done.code, 126, command)
        one_error(done, command, code=126)


@test
def a_command_that_is_not_there_gives_127_and_says_why(place):
    for command in ("there-is-no-such-program", "./missing", "/missing/program", ""):
        done = place.run(command)
        equal(done.code, 127, command)
        one_error(done, command, code=127)


@test
def a_script_whose_interpreter_is_missing_gives_127(place):
    write(place.work / "script", "#!/missing/interpreter\n", 0o755)
    done = place.run("./script")
    assert done.code in (126, 127), done
    assert len(done.errors.splitlines()) == 1, done


@test
def a_script_runs_also_without_the_name_of_its_interpreter(place):
    for first in ("#!/bin/sh\n", ""):
        write(place.work / "script", first + "echo \"$@\"\n", 0o755)
        equal(place.run("./script", "a b", "").out, b"a b \n")


@test
def arguments_arrive_exactly(place):
    words = ["", " ", "a b", "-x", "--", "*", "$HOME", "'", '"', "\\", "\n", "\t", "\x01\x7f", "ü", "%s%n"]
    done = place.run("printf", "[%s]", *words)
    equal(done.out.decode(), "".join(f"[{word}]" for word in words))
    done = place.run("printf", "%s", os.fsdecode(b"\xff\xfe"))
    equal(done.out, b"\xff\xfe")


@test
def options_end_at_the_first_word_that_is_none(place):
    equal(place.cove("run", "--rm", "echo", "--rm", "-e", "X").out, b"--rm -e X\n")


# Bytes

@test
def sixty_four_megabytes_go_in_and_out_unchanged(place):
    data = os.urandom(64 * MEGABYTE)
    done = place.run("cat", input=data)
    equal(done.code, 0)
    equal(hashlib.sha256(done.out).digest(), hashlib.sha256(data).digest())


@test
def the_command_gets_exactly_the_bytes_of_its_input(place):
    data = os.urandom(16 * MEGABYTE + 1)
    done = place.run("sha256sum", input=data)
    equal(done.text.split()[0], hashlib.sha256(data).hexdigest())


@test
def standard_error_is_as_exact_as_standard_output(place):
    data = os.urandom(8 * MEGABYTE)
    done = place.sh("tee /dev/stderr", input=data)
    assert done.out == data and done.err == data


@test
def every_byte_passes_unchanged(place):
    data = bytes(range(256)) * 16
    equal(place.run("cat", input=data).out, data)


@test
def the_end_of_input_reaches_the_command(place):
    equal(place.sh("cat; echo end", input=b"").out, b"end\n")
    equal(place.sh("cat; echo end", input=b"no newline").out, b"no newlineend\n")


@test
def input_can_stay_open_while_the_command_answers(place):
    process = start(place, "run", "--rm", "--", "cat", stdin=subprocess.PIPE)
    try:
        for word in (b"one\n", b"two\n", b"three\n"):
            process.stdin.write(word)
            process.stdin.flush()
            read_until(process.stdout, word)
        process.stdin.close()
        process.stdin = None
        equal(finish(process).code, 0)
    finally:
        stop(process)


@test
def a_command_that_does_not_read_its_input_is_not_waited_for(place):
    process = start(place, "run", "--rm", "--", "true", stdin=subprocess.PIPE)
    try:
        equal(process.wait(timeout=10), 0)
    finally:
        stop(process)
    done = place.sh("exec <&-; echo ok", input=os.urandom(4 * MEGABYTE))
    equal((done.code, done.out), (0, b"ok\n"))


@test
def what_the_command_does_not_read_is_left_for_the_next_one(place):
    (place.work / "input").write_bytes(b"x" * 100)
    with open(place.work / "input", "rb") as file:
        done = subprocess.run([COVE, "run", "--rm", "--", "true"], stdin=file, env=place.env, cwd=place.work,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(done.returncode, 0)


@test
def a_command_without_standard_descriptors_still_runs(place):
    for closed in ((0,), (1,), (2,), (0, 1), (0, 1, 2)):
        process = subprocess.Popen([COVE, "run", "--rm", "--", "sh", "-c", "echo out; echo err >&2; exit 5"],
                                   env=place.env, cwd=place.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, preexec_fn=lambda closed=closed: [os.close(fd) for fd in closed])
        out, err = process.communicate(timeout=20)
        equal(process.returncode, 5, f"closed {closed}")
        equal(out, b"" if 1 in closed else b"out\n", f"closed {closed}")
        equal(err, b"" if 2 in closed else b"err\n", f"closed {closed}")


@test
def no_descriptor_but_the_standard_three_reaches_the_command(place):
    reader, writer = os.pipe()
    with open(place.work / "open", "w") as file:
        done = place.run("sh", "-c", "cd /proc/self/fd && echo *", pass_fds=(reader, writer, file.fileno()))
    os.close(reader)
    os.close(writer)
    inside = set(done.text.split()) - {"10", "3", "255"}  # the shell's own directory
    equal(inside, {"0", "1", "2"})


@test
def output_goes_into_a_file(place):
    with open(place.dir / "out", "wb") as file:
        process = start(place, "run", "--rm", "--", "sh", "-c", "head -c 3000000 /dev/zero; echo err >&2", stdout=file)
        done = finish(process)
    equal((done.code, done.err, (place.dir / "out").stat().st_size), (0, b"err\n", 3000000))


@test
def output_is_appended_where_the_shell_says_so(place):
    (place.dir / "log").write_bytes(b"before\n")
    with open(place.dir / "log", "ab") as file:
        done = finish(start(place, "run", "--rm", "--", "sh", "-c", "echo one; echo two >&2", stdout=file, stderr=file))
    equal(done.code, 0)
    equal(sorted((place.dir / "log").read_bytes().splitlines()), [b"before", b"one", b"two"])


@test
def a_reader_that_goes_away_ends_a_command_that_writes_on(place):
    process = start(place, "run", "--rm", "--", "yes")
    try:
        read_until(process.stdout, b"y\n")
        process.stdout.close()
        process.stdout = None
        equal(process.wait(timeout=5), 128 + signal.SIGPIPE)
    finally:
        stop(process)
    nothing_left(place)


@test
def a_disk_that_is_full_is_told_and_not_silent(place):
    with open("/dev/full", "wb") as full:
        done = finish(start(place, "run", "--rm", "--", "sh", "-c", "echo lost", stdout=full))
    assert done.code != 0, done
    assert "No space left" in done.errors, done


@test
def many_small_writes_keep_their_order(place):
    script = "import os\nfor i in range(20000): os.write(1, b'%d\\n' % i)"
    done = place.run("/usr/bin/python3", "-c", script)
    equal(done.out, b"".join(b"%d\n" % i for i in range(20000)))


@test
def output_that_was_written_before_the_end_is_never_lost(place):
    for _ in range(20):
        done = place.sh("head -c 200000 /dev/zero; kill -9 $$")
        equal((done.code, len(done.out)), (137, 200000))


@test(judges_time=True)
def a_background_process_does_not_hold_the_run(place):
    began = time.monotonic()
    done = place.sh("sleep 60 & echo started")
    equal((done.code, done.out), (0, b"started\n"))
    assert time.monotonic() - began < 3 * PATIENCE
    nothing_left(place)


# What is run, and where

@test
def no_command_starts_the_shell(place):
    done = place.cove("run", "--rm", input=b"echo $((40 + 2)); exit 9\n")
    equal((done.code, done.out), (9, b"42\n"))


@test
def the_command_starts_where_the_user_is(place):
    (place.work / "a/b").mkdir(parents=True)
    equal(place.run("pwd", cwd=place.work / "a/b").text.strip(), str(place.work / "a/b"))


@test
def a_working_directory_can_be_named(place):
    (place.work / "a b").mkdir()
    equal(place.run("pwd", options=("-w", place.work / "a b")).text.strip(), str(place.work / "a b"))
    equal(place.run("pwd", options=("-w", "a b")).text.strip(), str(place.work / "a b"))
    equal(place.run("pwd", options=("--workdir=/tmp",)).text.strip(), "/tmp")


@test
def a_working_directory_that_is_not_there_is_one_error(place):
    one_error(place.run("true", options=("-w", "/no/such/directory")), "/no/such/directory")
    one_error(place.run("true", options=("-w", "/etc/passwd")), "/etc/passwd")
    one_error(place.run("true", options=("-w", "a/../../..")), "..")
    nothing_left(place)


@test
def another_directory_can_be_the_workspace(place):
    other = place.dir / "other"
    write(other / "file", "there\n")
    equal(place.run("cat", "file", options=("-C", other)).out, b"there\n")
    equal(place.run("pwd", options=("-C", "../other")).text.strip(), str(other))
    done = place.run("ls", place.work, options=("-C", other))
    assert done.code != 0, "the current directory is not shown then"


@test
def the_host_name_is_cove_or_what_was_asked_for(place):
    equal(place.run("hostname").text.strip(), "cove")
    equal(place.run("hostname", options=("--hostname", "box-1")).text.strip(), "box-1")
    assert "box-1" in place.run("cat", "/etc/hosts", options=("--hostname", "box-1")).text
    assert place.run("getent", "hosts", "box-1", options=("--hostname", "box-1")).code == 0
    for bad in ("", "a b", "-x", "a" * 65, "ü", "a\nb"):
        one_error(place.run("true", options=("--hostname", bad)), "hostname")


@test
def another_user_than_oneself_is_refused_to_an_ordinary_user(place):
    if IDENTITY == "root":
        equal(place.run("id", "-u", options=("-u", "1234")).text.strip(), "1234")
        equal(place.run("id", "-g", options=("-u", "1234:99")).text.strip(), "99")
    else:
        one_error(place.run("true", options=("-u", "1")), "themselves")
        one_error(place.run("true", options=("-u", f"{os.getuid()}:1")), "themselves")
        one_error(place.run("true", options=("-u", "root")), "--image", "sudo")
        equal(place.run("id", "-u", options=("-u", str(os.getuid()))).text.strip(), str(os.getuid()))
    for bad in ("", "-1", "a:b", "1:2:3", "99999999999", "4294967295", "1:"):
        one_error(place.run("true", options=("-u", bad)), "user")
    nothing_left(place)


# Environment

SET_INSIDE = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "COVE_SANDBOX"} | set(
    "SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO CARGO_HTTP_CAINFO NODE_EXTRA_CA_CERTS npm_config_cafile AWS_CA_BUNDLE "
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH NIX_SSL_CERT_FILE DENO_CERT".split())  # whom programs believe (test_trust.py)


def names_of(done):
    return {entry.split(b"=", 1)[0].decode() for entry in done.out.split(b"\0") if entry}


@test
def the_environment_is_the_documented_list_and_nothing_else(place):
    secrets = {"AWS_SECRET_ACCESS_KEY": "s", "GITHUB_TOKEN": "s", "SSH_AUTH_SOCK": "/s", "DBUS_SESSION_BUS_ADDRESS": "s",
               "LD_PRELOAD": "", "LD_LIBRARY_PATH": "/s", "HTTP_PROXY": "http://u:p@h", "LC_MY_TOKEN": "s", "XDG_RUNTIME_DIR": str(place.dir / "runtime"),
               "DISPLAY": ":0", "TMPDIR": "/s", "BASH_ENV": "/s", "ENV": "/s", "IFS": "x", "PYTHONPATH": "/s", "NODE_OPTIONS": "s",
               "GIT_DIR": "/s", "OLDPWD": "/s", "ANYTHING": "s", "COVE_HOME": place.env["COVE_HOME"]}
    passed = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC", "EDITOR": "vi", "NO_COLOR": "1", "CI": "1"}
    done = place.run("/usr/bin/env", "-0", env={**secrets, **passed})
    equal(names_of(done), SET_INSIDE | set(passed))


@test
def what_the_environment_says_about_the_user_is_true(place):
    done = place.sh('test "$(id -un)" = "$USER" && test "$USER" = "$LOGNAME" && test -d "$HOME" && test -w "$HOME" && '
                    'test -x "$SHELL" && test "$COVE_SANDBOX" = 1 && test ~ = "$HOME" && echo yes')
    equal(done.out, b"yes\n")


@test
def relative_parts_of_the_search_path_do_not_pass(place):
    write(place.work / "ls", "#!/bin/sh\necho planted\n", 0o755)
    done = place.run("ls", env={"PATH": ".::relative:/usr/bin:/bin:"})
    equal(done.out, b"ls\n")
    equal(place.run("/usr/bin/printenv", "PATH", env={"PATH": ".::relative:/usr/bin:/bin:"}).text.strip(), "/usr/bin:/bin")


@test
def a_variable_can_be_set_or_let_through(place):
    done = place.run("/usr/bin/env", "-0", options=("-e", "A=1", "-e", "B=a=b", "-e", "C=", "-e", "THERE", "-e", "MISSING", "-eD=x y"),
                     env={"THERE": "from outside"})
    entries = set(done.out.split(b"\0"))
    assert {b"A=1", b"B=a=b", b"C=", b"THERE=from outside", b"D=x y"} <= entries, done
    assert not any(entry.startswith(b"MISSING") for entry in entries), done


@test
def a_variable_that_is_set_replaces_ours(place):
    equal(place.run("/usr/bin/printenv", "HOME", options=("-e", "HOME=/tmp")).out, b"/tmp\n")
    equal(place.run("/usr/bin/printenv", "A", options=("-e", "A=1", "-e", "A=2")).out, b"2\n")


@test
def a_variable_without_a_proper_name_is_one_error(place):
    for bad in ("", "=x", "A B=1", "A\nB=1", "\x1b=1"):
        one_error(place.run("true", options=("-e", bad)), "env")


@test
def variables_can_come_from_a_file(place):
    file = write(place.dir / "vars", "# a comment\nA=1\n\nB=two words\nC=#no comment\nTHERE\n")
    done = place.run("/usr/bin/env", "-0", options=("--env-file", file), env={"THERE": "t"})
    entries = set(done.out.split(b"\0"))
    assert {b"A=1", b"B=two words", b"C=#no comment"} <= entries, done


@test
def a_bad_line_of_a_variables_file_is_named(place):
    file = write(place.dir / "vars", "A=1\nTWO WORDS=2\n")
    line = one_error(place.run("true", options=("--env-file", file)), str(file))
    assert "2" in line.replace(str(file), ""), line
    one_error(place.run("true", options=("--env-file", place.dir / "missing")), "missing")


# Signals

@test
def signals_are_passed_on(place):
    for name in ("TERM", "INT", "HUP", "USR1", "USR2", "QUIT"):
        process = start(place, "run", "--rm", "--", "sh", "-c", f"trap 'echo got; exit 42' {name}; echo ready; while :; do sleep 0.05; done")
        try:
            read_until(process.stdout, b"ready\n")
            process.send_signal(getattr(signal, "SIG" + name))
            done = finish(process, 5)
        finally:
            stop(process)
        equal((done.code, done.out), (42, b"got\n"), name)
    nothing_left(place)


@test
def a_signal_that_the_command_does_not_catch_ends_it(place):
    for name in ("TERM", "INT", "HUP"):
        process = start(place, "run", "--rm", "--", "sleep", "60")
        try:
            wait_for(lambda: any(command(pid) == b"sleep\x0060\0" for pid in descendants(process.pid)), what="the command")
            process.send_signal(getattr(signal, "SIG" + name))
            equal(finish(process, 5).code, 128 + getattr(signal, "SIG" + name), name)
        finally:
            stop(process)
    nothing_left(place)


def command(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        return b""


@test(judges_time=True)
def a_second_interrupt_kills_what_ignored_the_first(place):
    process = start(place, "run", "--rm", "--", "sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.05; done")
    try:
        read_until(process.stdout, b"ready\n")
        process.send_signal(signal.SIGINT)
        read_until(process.stdout, b"no\n")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        equal(finish(process, 5).code, 128 + signal.SIGINT)
        assert time.monotonic() - began < 1 * PATIENCE
    finally:
        stop(process)
    nothing_left(place)


@test
def a_signal_before_the_command_runs_is_not_lost(place):
    for delay in (0, 0.001, 0.002, 0.004, 0.006, 0.008, 0.012):
        process = start(place, "run", "--rm", "--", "sleep", "60")
        try:
            time.sleep(delay)
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=5)
        finally:
            stop(process)
        assert code in (143, -signal.SIGTERM), code
    nothing_left(place)


@test
def no_output_is_lost_at_the_end(place):
    """The last bytes are still in pipes when the command is dead; slow readers and small reads."""
    for size in (60_000, 300_000, 900_000):
        for _ in range(8):
            process = start(place, "run", "--rm", "--", "head", "-c", str(size), "/dev/zero")
            got = 0
            while piece := os.read(process.stdout.fileno(), 4096):
                got += len(piece)
            process.communicate()
            equal((process.returncode, got), (0, size))


@test
def no_output_to_a_terminal_is_lost_at_the_end(place):
    master, slave = pty.openpty()
    tty.setraw(slave)
    try:
        for _ in range(5):
            process = start(place, "run", "--rm", "--", "sh", "-c", "head -c 60000 /dev/zero | tr '\\0' x", stdout=slave)
            got = 0
            while got < 60000 and select.select([master], [], [], 10)[0]:
                got += os.read(master, 4096).count(b"x")
            process.communicate()
            equal((process.returncode, got), (0, 60000))
    finally:
        os.close(master)
        os.close(slave)


@test
def our_own_program_cannot_be_run_as_a_command(place):
    (place.work / "link").symlink_to("/proc/self/exe")
    for path in ("/proc/self/exe", "/proc/thread-self/exe", "./link"):
        equal(place.run(path, options=("--timeout", "5s")).code, 126, path)


@test
def a_caller_that_ignores_its_children_changes_nothing(place):
    process = start(place, "run", "--rm", "--", "sh", "-c", "sleep 0.1 & wait; exit 3", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    try:
        equal(finish(process, 10).code, 3)
    finally:
        stop(process)
    nothing_left(place)


@test
def a_command_that_asks_its_parent_to_trace_it_runs_on(place):
    script = ("import ctypes, os, signal; signal.signal(signal.SIGUSR1, lambda *_: print('got', flush=True)); "
              "print(ctypes.CDLL(None).ptrace(0, 0, 0, 0), flush=True); os.kill(os.getpid(), signal.SIGUSR1); os.kill(os.getpid(), signal.SIGTERM)")
    done = place.run("python3", "-c", script)
    equal((done.code, done.text.split()), (128 + signal.SIGTERM, ["0", "got"]), done)
    nothing_left(place)


@test
def a_reader_that_does_not_read_cannot_keep_a_run_that_is_over(place):
    def unread(options):
        reader, writer = os.pipe()
        process = start(place, "run", "--rm", "--timeout", "1s", *options, "--", "sh", "-c", "seq 1 60000; sleep 60", stdout=writer, start_new_session=True)
        os.close(writer)
        try:
            wait_for(lambda: process.poll() is not None, 10, f"the end with {options}")
            equal(process.returncode, 124, options)
        finally:
            stop(process)
            os.close(reader)
    at_once(unread, ((), ("-t",)))
    nothing_left(place)


@test
def the_umask_of_the_caller_changes_nothing_inside(place):
    for mask in (0o077, 0o777, 0o022):
        for _ in range(2):  # the second gets a directory that the first left
            done = place.run("stat", "-c", "%a", "/", ".", "/tmp", preexec_fn=lambda: os.umask(mask))
            equal((done.code, done.text.split()), (0, ["755", "755", "1777"]), f"umask {mask:o}: {done}")
            nothing_left(place)


@test
def an_ignored_signal_stays_ignored(place):
    process = start(place, "run", "--rm", "--", "sh", "-c", "echo ready; sleep 0.3; echo end",
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    try:
        read_until(process.stdout, b"ready\n")
        process.send_signal(signal.SIGHUP)
        done = finish(process, 5)
        equal((done.code, done.out), (0, b"end\n"))
    finally:
        stop(process)


@test
def the_command_starts_with_signals_as_they_should_be(place):
    done = place.run("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
    values = [int(line.split()[1], 16) for line in done.text.splitlines()]
    equal(values, [0, 0])


# What is left

FORKS = "setsid sh -c 'sleep 61 & exec sleep 61' >/dev/null 2>&1 & (sleep 61 & sleep 61 &) & "


@test
def a_time_out_kills_also_double_forked_children(place):
    done = place.sh(FORKS + "sleep 61", options=("--timeout", "300ms"))
    equal(done.code, 124)
    nothing_left(place, 1)


@test
def the_end_of_the_command_kills_also_double_forked_children(place):
    equal(place.sh(FORKS + "exit 3").code, 3)
    nothing_left(place, 1)


@test
def an_interrupt_kills_also_double_forked_children(place):
    # Without a trap dash forgets an interrupt that comes while it forks, here as outside.
    process = start(place, "run", "--rm", "--", "sh", "-c", FORKS + "trap 'exit 130' INT; echo ready; sleep 61 & wait")
    try:
        read_until(process.stdout, b"ready\n")
        process.send_signal(signal.SIGINT)
        wait_for(lambda: process.poll() is not None, 5, "the end")
    finally:
        stop(process)
    nothing_left(place, 1)


@test
def a_keeper_that_is_killed_leaves_nothing(place):
    for _ in range(3):
        process = start(place, "run", "--rm", "--", "sh", "-c", FORKS + "touch made; echo ready; sleep 61")
        try:
            read_until(process.stdout, b"ready\n")
            process.kill()
            process.wait()
            nothing_left(place, 1)
        finally:
            stop(process)


@test(id="Z-01")
def a_keeper_that_is_killed_at_any_moment_leaves_nothing(place):
    # The first run prepares the state directory.
    place.run("true")
    end = time.monotonic() + (SOAK or 1.5)
    delays = [i * 0.0005 for i in range(30)]
    turn = 0
    while time.monotonic() < end:
        process = start(place, "run", "--rm", "--", "sleep", "60", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delays[turn % len(delays)])
        turn += 1
        process.kill()
        process.wait()
        wait_for(lambda: not descendants(), 2, "the end of every process")
    # A directory whose keeper died before it had a guard is removed by the next start.
    place.run("true")
    nothing_left(place)


@test(id="Z-30")
def nothing_is_left_after_fifty_runs(place):
    cases = [("true",), ("false",), ("no-such-program",), ("sh", "-c", "kill -9 $$"), ("sh", "-c", "sleep 60 & mkdir -p d/e; chmod 0 d")]
    for i in range(50):
        place.run(*cases[i % len(cases)])
    nothing_left(place)


@test
def nothing_is_left_of_files_that_are_hard_to_remove(place):
    deep = "mkdir -p a && cd a && i=0; while [ $i -lt 300 ]; do mkdir d$i && cd d$i; i=$((i+1)); done"
    for script in (deep, "mkdir x; touch x/y; chmod 0 x", "mkfifo p; ln -s / l; ln -s nowhere m",
                   "touch \"$(printf 'a\\nb')\" \"$(printf '\\377')\"", "cd /tmp; mkdir t; touch t/f; chmod 0555 t"):
        equal(place.sh(script).code, 0, script)
    nothing_left(place)


@test(id="Z-31")
def twenty_runs_at_once_do_not_disturb_each_other(place):
    def one(i):
        return place.sh(f"echo {i}; echo {i} >own; sleep 0.1; cat own; hostname; exit {i}")

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for i, done in enumerate(pool.map(one, range(20))):
            equal((done.code, done.text), (i, f"{i}\n{i}\ncove\n"))
    nothing_left(place)
    equal(os.listdir(place.work), [])


def runs_under_load_all_give_the_right_answer(place):
    end = time.monotonic() + SOAK
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        while time.monotonic() < end:
            data = [os.urandom(100000) for _ in range(64)]
            for want, done in zip(data, pool.map(lambda d: place.run("cat", input=d), data)):
                assert done.code == 0 and done.out == want, done
    nothing_left(place)


if SOAK:
    test(runs_under_load_all_give_the_right_answer)

# Looking without running

@test
def a_plan_can_be_seen_and_changes_nothing(place):
    cold(place)
    write(place.work / "file", "x")
    done = place.cove("run", "--rm", "--print-plan", "--", "touch", "made")
    equal((done.code, done.err), (0, b""))
    for word in ("namespaces", str(place.work), "/proc", "seccomp", "capabilities"):
        assert word in done.text, f"{word} is not in the plan"
    equal(os.listdir(place.work), ["file"])
    assert not place.state.exists() or not (place.state / "sandboxes").exists(), "nothing was created"


@test
def a_plan_is_json_when_asked_for(place):
    done = place.cove("run", "--rm", "--print-plan", "--json", "--", "echo", "hé", '"')
    plan = json.loads(done.out)
    steps = plan["steps"] if isinstance(plan, dict) else plan
    assert len(steps) > 20, plan


@test(identities=("user", "nested"))
def the_same_request_gives_the_same_plan(place):
    first, second = (place.cove("run", "--print-plan", "--json", "--", "true").out for _ in range(2))
    equal(first, second)


@test
def a_dry_run_checks_and_starts_nothing(place):
    cold(place)
    done = place.cove("run", "--rm", "--dry-run", "--", "touch", place.work / "made")
    equal((done.code, os.listdir(place.work)), (0, []))
    equal(sorted(p.name for p in place.state.iterdir() if p.name != "run"), ["images"], "only the image is prepared")
    one_error(place.cove("run", "--dry-run", "-C", place.dir / "missing", "--", "true"), "missing")
    one_error(place.cove("run", "--dry-run", "--read", place.dir / "missing", "--", "true"), "missing")


@test
def the_first_run_of_a_user_prepares_what_it_needs(place):
    cold(place)
    equal(place.sh("echo ok").out, b"ok\n")
    equal(place.state.stat().st_mode & 0o777, 0o700)
    nothing_left(place)


@test
def first_runs_at_once_do_not_disturb_each_other(place):
    cold(place)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for done in pool.map(lambda _: place.sh("echo ok"), range(6)):
            equal((done.code, done.out), (0, b"ok\n"), done)
    equal([p.name for p in (place.state / "images").iterdir() if p.name.startswith("new-")], [])


@test
def a_refused_grant_is_refused_in_a_dry_run_too(place):
    one_error(place.cove("run", "--dry-run", "--read", "/proc", "--", "true"), "/proc")


# Telling what happened

@test
def a_report_says_all_that_happened(place):
    file = place.dir / "report.json"
    done = place.sh("echo hi; exit 7", options=("--report", file))
    equal((done.code, done.out, done.err), (7, b"hi\n", b""))
    report = json.loads(file.read_bytes())
    equal((report["exit_code"], report["reason"], report["timed_out"], report["argv"]), (7, "exited", False, ["sh", "-c", "echo hi; exit 7"]))
    equal(report["workspace"], str(place.work))
    assert len(report["id"]) == 20 and report["spec_hash"] and report["image"] == "host", report
    assert report["started"] <= report["ended"] and report["started"].endswith("Z"), report
    assert report["usage"]["wall_us"] > 0 and report["usage"]["peak_kib"] > 0, report
    assert "seccomp" in report["enforced"], report
    equal(file.stat().st_mode & 0o777, 0o600)


@test
def a_report_tells_signals_time_outs_and_failures(place):
    file = place.dir / "report.json"
    place.sh("kill -9 $$", options=("--report", file))
    report = json.loads(file.read_bytes())
    equal((report["exit_code"], report["signal"], report["reason"]), (137, 9, "signaled"))
    place.sh("sleep 60", options=("--report", file, "--timeout", "100ms"))
    report = json.loads(file.read_bytes())
    equal((report["exit_code"], report["timed_out"]), (124, True))
    place.run("no-such-program", options=("--report", file))
    report = json.loads(file.read_bytes())
    assert report["exit_code"] == 127 and "no-such-program" in report["error"], report


@test
def a_report_that_cannot_be_written_is_one_error(place):
    for where in (place.dir / "missing/report.json", place.dir):
        done = place.run("touch", "made", options=("--report", where, "--workspace", "rw"))
        one_error(done, str(where))
        assert not (place.work / "made").exists(), "it is known before the command has run"
    nothing_left(place)


@test
def that_the_time_was_up_is_said(place):
    done = place.run("sleep", "30", options=("--timeout", "200ms"))
    equal((done.code, done.errors), (124, "cove: the time was up (--timeout), and everything was killed\n"), done)
    equal(place.run("sleep", "30", options=("-q", "--timeout", "200ms")).errors, "")


@test
def who_is_root_in_the_tree_of_somebody_else_is_warned(place):
    if IDENTITY != "root":
        return
    os.chown(place.work, 12345, 12345)
    for options, warned in (((), True), (("--root",), False), (("--workspace", "ro"), False)):
        done = place.run("true", options=options)
        equal((done.code, "belongs to uid 12345" in done.errors), (0, warned), done)


@test
def a_report_can_go_to_a_pipe(place):
    reader, writer = os.pipe()
    done = place.run("true", options=("--report", f"/dev/fd/{writer}"), pass_fds=(writer,))
    os.close(writer)
    with open(reader, "rb") as stream:
        equal((done.code, json.loads(stream.read())["exit_code"]), (0, 0))


@test
def a_summary_is_given_when_asked_for_and_not_into_a_pipe(place):
    equal(place.run("true").err, b"")
    done = place.sh("exit 4", options=("--summary",))
    equal(done.code, 4)
    assert "exit 4" in done.errors and "\x1b" not in done.errors, done
    assert len(done.errors.splitlines()) < 12, done
    equal(place.run("true", options=("-q",)).err, b"")


@test
def a_summary_makes_what_came_from_inside_inert(place):
    done = place.run("sh", "-c", "exit 1", "\x1b]0;owned\x07", options=("--summary",))
    assert b"\x1b" not in done.err and b"\x07" not in done.err, done


if __name__ == "__main__":
    adopt_orphans()
    main()
