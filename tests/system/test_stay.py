"""Sandboxes that stay: cove create, exec, shell, attach, stop, start, rm."""
import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, PATIENCE, equal, main, test  # noqa: E402
from support.running import (adopt_orphans, at_once, descendants, digest, finish, name_of, nothing_left, one_error, read_until, reap, start,  # noqa: E402
                             stop, wait_for, write)
from support.staying import execute, inside_pid, keeper, pid_1, state, staying, steps  # noqa: E402


# One command after the other


@test
def a_sandbox_stays_with_its_files_until_it_is_removed(place):
    write(place.work / "file", "old\n")
    before = digest(place.work)
    with staying(place, "--name", "one", "--label", "a=b") as ident:
        equal(state(place, ident), "running")
        done = execute(place, "one", "echo new >file; echo tmp >/tmp/x; mkdir -p ~/d; cd sub 2>/dev/null || pwd; exit 3")
        equal((done.code, done.text, done.err), (3, f"{place.work}\n", b""), done)
        done = execute(place, ident[:5], "cat file /tmp/x; ls ~; echo err >&2")
        equal((done.code, done.text, done.errors), (0, "new\ntmp\nd\n", "err\n"), done)
        assert b"-old\n+new\n" in place.cove("diff", "one").out, "what it changed so far"
        equal(digest(place.work), before, "the host's own files")
    equal(json.loads(place.cove("ls", "--json").out), [], "gone")


@test
def the_end_of_a_command_is_told_as_by_a_shell(place):
    write(place.work / "plain", "no program\n")
    with staying(place) as ident:
        for script, code in (("exit 0", 0), ("exit 77", 77), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
            equal(execute(place, ident, script).code, code, script)
        one_error(place.cove("exec", ident, "--", "no-such-program"), "no-such-program", code=127)
        one_error(place.cove("exec", ident, "--", "./plain"), "./plain", code=126)
        one_error(place.cove("exec", "-w", "/nowhere", ident, "--", "true"), "/nowhere")
        done = execute(place, ident, "sleep 60", "--timeout", "200ms")
        equal((done.code, "time was up" in done.errors), (124, True), done)
        equal(execute(place, ident, "trap '' TERM; sleep 60", "--timeout", "100ms").code, 124, "one that ignores it")


@test
def input_and_output_are_exact(place):
    blob = random.Random(7).randbytes(3_000_000)
    with staying(place) as ident:
        done = place.cove("exec", ident, "--", "cat", input=blob)
        equal((done.code, done.err, done.out == blob), (0, b"", True))
        done = execute(place, ident, "head -c 2000000 /dev/zero; head -c 1000000 /dev/zero >&2")
        equal((len(done.out), len(done.err)), (2000000, 1000000))
        reader = subprocess.run(f"'{COVE}' exec {ident} -- yes | head -c 100000 | wc -c", shell=True, cwd=place.work, env=place.env,
                                stdout=subprocess.PIPE, timeout=60 * PATIENCE)
        equal(reader.stdout.strip(), b"100000", "a reader that goes away ends the writer")


@test
def a_command_gets_directory_variables_and_arguments_as_they_are_given(place):
    (place.work / "sub").mkdir()
    odd = "a b\n\t'\"$x\\\udc80\udcff"
    with staying(place, "-e", "FIRST=1", "-e", "BOTH=old") as ident:
        done = place.cove("exec", "-e", "BOTH=new", "-e", "OWN", "-w", "/tmp", ident, "--", "sh", "-c", 'pwd; echo $FIRST $BOTH $OWN; printf %s "$1"', "-", odd,
                          env={"OWN": "host's"})
        equal(done.out, b"/tmp\n1 new host's\n" + os.fsencode(odd), done)
        equal(place.cove("exec", "-w", str(place.work / "sub"), ident, "pwd").text, f"{place.work}/sub\n", "without --")
        many = [f"argument-{n:05}" for n in range(20000)]
        equal(place.cove("exec", ident, "--", "sh", "-c", "echo $#", "-", *many).text, "20000\n")


@test
def many_commands_run_at_once(place):
    with staying(place) as ident, concurrent.futures.ThreadPoolExecutor(30) as pool:
        done = list(pool.map(lambda n: execute(place, ident, f"echo {n}; sleep 0.2; exit {n}"), range(30)))
        equal([(d.code, d.text) for d in done], [(n, f"{n}\n") for n in range(30)])


@test
def what_a_command_leaves_running_can_be_ended_by_the_next(place):
    with staying(place) as ident:
        began = time.monotonic()
        pid = execute(place, ident, "sleep 1000 & echo $!").text.strip()
        assert time.monotonic() - began < 60, "the background does not hold its starter"
        equal(execute(place, ident, f"kill -0 {pid} && kill {pid} && echo ended").text, "ended\n")
        wait_for(lambda: execute(place, ident, f"kill -0 {pid} 2>/dev/null").code != 0, what="its end")


@test
def a_command_in_the_background_outlives_who_started_it(place):
    with staying(place) as ident:
        done = place.cove("exec", "-d", ident, "--", "sh", "-c", "sleep 0.3; echo done >result")
        equal((done.code, done.text, done.err), (0, "1\n", b""), done)
        wait_for(lambda: execute(place, ident, "cat result 2>/dev/null").text == "done\n", what="its result")


@test
def a_command_in_the_background_can_be_taken_over(place):
    with staying(place) as ident:
        equal(place.cove("exec", "-d", "-i", ident, "--", "sh", "-c", 'while read x; do echo "got $x"; [ "$x" = end ] && exit 5; done; exit 9').code, 0)
        first = start(place, "attach", ident, stdin=subprocess.PIPE)
        first.stdin.write(b"one\n")
        first.stdin.flush()
        read_until(first.stdout, b"got one\n")
        one_error(place.cove("attach", ident), "somebody waits")
        stop(first)

        def attached():
            """Somebody who was killed is noticed a moment later."""
            second = start(place, "attach", "--step", "1", ident, stdin=subprocess.PIPE)
            with contextlib.suppress(OSError, AssertionError):
                second.stdin.write(b"two\n")
                second.stdin.flush()
                read_until(second.stdout, b"got two\n")
                return second
            stop(second)
        second = wait_for(attached, what="to be alone with it")
        second.stdin.write(b"end\n")
        second.stdin.flush()
        done = finish(second)
        equal((done.code, done.out), (5, b"got end\n"), done)
        one_error(place.cove("attach", ident), "no command runs")


@test
def a_command_in_front_ends_with_who_asked_for_it(place):
    with staying(place) as ident:
        asked = start(place, "exec", ident, "--", "sh", "-c", "trap 'echo hung up >said; exit' HUP; echo $$; while :; do sleep 0.05; done", stdin=subprocess.PIPE)
        pid = read_until(asked.stdout, b"\n").strip().decode()
        stop(asked)
        wait_for(lambda: execute(place, ident, f"kill -0 {pid} 2>/dev/null").code != 0, what="its end")
        equal(execute(place, ident, "cat said").text, "hung up\n")


@test
def signals_reach_the_command(place):
    with staying(place) as ident:
        for number, code in ((signal.SIGTERM, 7), (signal.SIGINT, 7), (signal.SIGUSR1, 8)):
            asked = start(place, "exec", ident, "--", "sh", "-c", "trap 'exit 7' TERM INT; trap 'exit 8' USR1; echo ready; while :; do sleep 0.05; done")
            read_until(asked.stdout, b"ready\n")
            asked.send_signal(number)
            equal(finish(asked).code, code, number)


@test
def a_terminal_is_that_of_the_one_who_asks(place):
    with staying(place) as ident:
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(place.work)
            os.execve(COVE, [COVE, "shell", ident], dict(place.env, PS1="", TERM="vt220"))
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        time.sleep(0.3)
        os.write(fd, b"echo size $(stty size) $TERM; tty\n")
        got = read_until(fd, b"/dev/pts/")
        assert b"size 30 100 vt220" in got, got
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.kill(pid, signal.SIGWINCH)
        os.write(fd, b"sleep 0.3; echo now $(stty size)\n")
        read_until(fd, b"now 40 120")
        os.write(fd, b"sleep 100\n")
        time.sleep(0.3)
        os.write(fd, b"\x03")
        os.write(fd, b"echo interrupted $?; exit 6\n")
        read_until(fd, b"interrupted 130")
        with contextlib.suppress(OSError):
            while os.read(fd, 4096):
                pass
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 6)
        os.close(fd)


def own_memory(pid):
    """KiB of heap and stack that this process has touched and not given back."""
    total, counts = 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            counts = line.endswith(("[heap]", "[stack]"))
        elif counts and line.startswith("Anonymous:"):
            total += int(line.split()[1])
    return total


@test
def what_has_stopped_is_read_when_its_guard_is_done_with_it(place):
    """Who tidies up after a sandbox takes what a reader puts into its directory for remains."""
    with staying(place) as ident:
        equal(execute(place, ident, "echo one >one; echo two >two").code, 0)
        equal(place.cove("stop", ident).code, 0)
        fd = os.open(place.state / "sandboxes" / ident, os.O_RDONLY | os.O_DIRECTORY)
        wait_for(lambda: not blocked(fd), what="the guard's end")
        reading = start(place, "diff", "--name-only", ident)
        time.sleep(0.3)
        equal(reading.poll(), None, "it waits")
        os.close(fd)
        done = finish(reading)
        equal((done.code, done.text), (0, "one\ntwo\n"), done)
        done = place.cove("apply", "--yes", ident)
        equal((done.code, done.err), (0, b""), done)  # nobody else is at work on it


def blocked(fd):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@test
def who_waits_for_days_gives_back_what_it_needs_no_more(place):
    if "COVE_SANITIZED" in os.environ:
        return  # has a heap of its own
    with staying(place) as ident:
        pid = keeper(place, ident)
        (guard,) = [one for one in descendants(pid) if name_of(one) == "cove-guard"]  # others may be ending
        for again in range(2):
            wait_for(lambda: own_memory(pid) < 150, what="a small keeper")
            wait_for(lambda: own_memory(guard) < 24, what="a guard that sleeps")
            equal(execute(place, ident, "seq 100000 | wc -l").text, "100000\n", "it still works")


def guards(place, ident):
    return [pid for pid in descendants(keeper(place, ident)) if name_of(pid) == "cove-guard"]


def sleeps(pid):
    """Its program is not the keeper's any more."""
    try:
        return "memfd:cove-guard" in os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False


@test
def a_guard_that_sleeps_wakes_up_to_what_its_keeper_has_left(place):
    with staying(place) as ident:
        (guard,) = wait_for(lambda: guards(place, ident), what="a guard")
        wait_for(lambda: sleeps(guard), what="sleep")
        equal(execute(place, ident, "echo kept >kept").code, 0)
        pid_of_keeper = keeper(place, ident)
        os.kill(pid_of_keeper, signal.SIGKILL)
        reap()
        wait_for(lambda: not os.path.exists(f"/proc/{guard}") or reap(), what="the guard's end")
        record = json.loads((place.state / "sandboxes" / ident / "record.json").read_text())
        equal(record["state"], "killed", "nobody has looked at it: its guard has said so")
        equal([name for name in os.listdir(place.state / "sandboxes" / ident) if name[0] == "w"], [], "it has tidied up")
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat kept").text, "kept\n")
        (guard,) = wait_for(lambda: guards(place, ident), what="a guard")
        wait_for(lambda: sleeps(guard), what="sleep")
        equal(place.cove("stop", ident).code, 0)
        wait_for(lambda: not os.path.exists(f"/proc/{guard}") or reap(), what="the guard's end")
        equal(state(place, ident), "stopped", "what the keeper has said holds")


def has_stack(pid):
    """One that the kernel has made."""
    return "[stack]" in pathlib.Path(f"/proc/{pid}/maps").read_text()


@test
def a_guard_that_knows_too_much_for_its_page_wakes_up_too(place):
    """It keeps the stack that this lies in."""
    with staying(place) as ident:
        (guard,) = wait_for(lambda: guards(place, ident), what="a guard")
        wait_for(lambda: sleeps(guard) and not has_stack(guard), what="sleep in a page")
    deep = place.work.joinpath(*["d" * 200] * 11)
    deep.mkdir(parents=True)
    made = place.cove("create", cwd=deep)
    equal(made.code, 0, made.err)
    ident = made.text.strip()
    try:
        (guard,) = wait_for(lambda: guards(place, ident), what="a guard")
        wait_for(lambda: sleeps(guard), what="sleep")
        assert has_stack(guard), "there is no room for all that it knows"
        os.kill(keeper(place, ident), signal.SIGKILL)
        reap()
        wait_for(lambda: not os.path.exists(f"/proc/{guard}") or reap(), what="the guard's end")
        equal(state(place, ident), "killed", "its guard has said so")
    finally:
        place.cove("rm", "-f", ident)


@test(identities=("root",))  # nobody else may look at a PID 1
def sandboxes_share_the_program_of_pid_1_with_one_that_has_come_to_rest(place):
    def create():
        ident = place.cove("create").text.strip()
        equal(execute(place, ident, "true").code, 0)  # now its PID 1 is what it will be
        return ident

    def program(ident):
        return os.stat(f"/proc/{pid_1(place, ident)}/exe").st_ino

    with staying(place) as lender:
        equal(execute(place, lender, "true").code, 0)
        wait_for(lambda: os.path.lexists(place.state / "cove-init"), what="a program that is lent")
        one, two = create(), create()
        equal(len({program(lender), program(one), program(two)}), 2, "what one has made itself, and the shared one")
        equal(program(one), program(two))
        equal(place.cove("rm", "-f", lender).code, 0)
        equal(execute(place, one, "echo still here").text, "still here\n", "who lent it is gone")
        three = create()
        assert program(three) != program(one), "nobody lends it"
        equal(execute(place, three, "echo here").text, "here\n")
        place.cove("rm", "-f", one, two, three)


@test
def a_keeper_holds_nothing_of_commands_that_are_over(place):
    with staying(place) as ident:
        fds = pathlib.Path(f"/proc/{keeper(place, ident)}/fd")
        execute(place, ident, "true")
        time.sleep(0.5)  # what it does beside has its own
        before = len(list(fds.iterdir()))
        for _ in range(20):
            equal(execute(place, ident, "echo out; echo err >&2").code, 0)
        wait_for(lambda: len(list(fds.iterdir())) <= before, what="as few descriptors as before")


# Stop, start, crash


@test
def a_stop_lets_processes_end_in_good_order_and_kills_the_others(place):
    with staying(place) as ident:
        execute(place, ident, "(trap 'echo good >order; exit' TERM; echo 1 >up; while :; do sleep 0.02; done) >/dev/null 2>&1 & (trap '' TERM; echo 1 >up2; sleep 1000) >/dev/null 2>&1 &")
        wait_for(lambda: execute(place, ident, "cat up up2").text == "1\n1\n", what="both")
        done = place.cove("stop", "--timeout", "500ms", ident)
        equal((done.code, done.text.strip(), done.err), (0, ident, b""), done)
        equal(state(place, ident), "stopped")
        wait_for(lambda: not descendants(), what="the end of everything")
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat order").text, "good\n")


@test
def a_start_brings_the_files_back_exactly(place):
    write(place.work / "old", "old\n")
    look = "cd / && find tmp var/tmp \"$0\" ~ -printf '%p %y %m %U %G %s %T@ %l\\n' 2>/dev/null | sort; cat \"$0\"/f"
    with staying(place, "--name", "back") as ident:
        execute(place, ident, "rm old; echo x >f; ln -s f link; ln f hard; mkdir -m 750 dir; touch -d 2001-02-03 dir/aged; echo h >~/h; echo t >/tmp/t; mkfifo pipe; chmod 4755 f")
        before = place.cove("exec", ident, "--", "sh", "-c", look, str(place.work))
        for _ in range(3):
            equal(place.cove("stop", "back").code, 0)
            one_error(execute(place, "back", "true"), "does not run", "cove start")
            again = place.cove("stop", "back")
            equal((again.code, again.text, again.errors), (0, f"{ident}\n", "cove: sandbox back has stopped already\n"))
            equal(place.cove("start", "back").text.strip(), ident)
            one_error(place.cove("start", "back"), "is running")
        after = place.cove("exec", ident, "--", "sh", "-c", look, str(place.work))
        equal(after.text, before.text)
        assert "old" not in after.text.split("cat")[0].split(), after
        wait_for(lambda: len(list((place.state / "sandboxes").iterdir())) == 1, what="one directory")


@test
def a_keeper_that_is_killed_takes_everything_along_but_the_files(place):
    with staying(place) as ident:
        execute(place, ident, "echo kept >f; sync; sleep 1000 & setsid sleep 1000 &")
        asked = start(place, "exec", ident, "--", "sleep", "1000")
        wait_for(lambda: execute(place, ident, "pgrep -c sleep").text.strip() == "3", what="three sleepers")
        os.kill(keeper(place, ident), signal.SIGKILL)
        done = finish(asked)
        equal((done.code, "keeper" in done.errors), (125, True), done)
        wait_for(lambda: not descendants(), what="the end of everything")
        equal(state(place, ident), "killed")
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat f; pgrep -c sleep").text, "kept\n0\n")


@test
def a_keeper_is_killed_at_any_moment_and_nothing_is_lost(place):
    rounds, chance = 12 if PATIENCE == 1 else 3, random.Random(11)
    with staying(place) as ident:
        for turn in range(rounds):
            equal(execute(place, ident, f"echo {turn} >>log").code, 0)
            asked = [start(place, "exec", ident, "--", "sh", "-c", "echo x >noise; sleep 0.01") for _ in range(3)]
            time.sleep(chance.uniform(0, 0.03))
            killed = keeper(place, ident)
            os.kill(killed, signal.SIGKILL)
            for one in asked:
                finish(one)
            wait_for(lambda: killed not in descendants(), what="its death")
            done = place.cove("start", ident)
            equal(done.code, 0, done)
            equal(execute(place, ident, "cat log").text, "".join(f"{n}\n" for n in range(turn + 1)), "every step that was over")
            reap()


@test
def a_pid_1_that_dies_ends_the_sandbox_and_says_so(place):
    with staying(place) as ident:
        execute(place, ident, "echo kept >f")
        asked = start(place, "exec", ident, "--", "sleep", "1000")
        wait_for(lambda: execute(place, ident, "pgrep -c sleep").text.strip() == "1", what="it")
        (first,) = [pid for pid in descendants(keeper(place, ident)) if inside_pid(pid) == "1"]
        os.kill(first, signal.SIGKILL)
        equal(finish(asked).code, 125)
        wait_for(lambda: state(place, ident) != "running", what="the end")
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat f").text, "kept\n")


@test
def a_workspace_that_is_another_one_is_not_started_on(place):
    with staying(place) as ident:
        execute(place, ident, "echo x >f")
        place.cove("stop", ident)
        place.work.rename(place.dir / "aside")
        place.work.mkdir()
        one_error(place.cove("start", ident), "another directory")
        equal(state(place, ident), "stopped", "it is as it was")
        place.work.rmdir()
        (place.dir / "aside").rename(place.work)
        equal(place.cove("start", ident).code, 0)


@test
def a_private_copy_is_taken_once(place):
    write(place.work / "file", "first\n")
    with staying(place, "--workspace", "copy") as ident:
        write(place.work / "file", "second\n")
        equal(execute(place, ident, "cat file; echo mine >own").text, "first\n")
        place.cove("stop", ident)
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat file own").text, "first\nmine\n")


# Rest


def ticks(place, ident):
    return int(execute(place, ident, "cat /tmp/ticks 2>/dev/null || echo 0").text or 0)


@test
def a_paused_sandbox_does_nothing_until_it_goes_on(place):
    with staying(place) as ident:
        execute(place, ident, "(n=0; while :; do n=$((n+1)); echo $n >/tmp/t; mv /tmp/t /tmp/ticks; sleep 0.01; done) >/dev/null 2>&1 & (sleep 1000 & kill -STOP $!; echo $! >/tmp/stopped; until grep -q ') T ' /proc/$!/stat; do :; done) >/dev/null 2>&1")
        wait_for(lambda: ticks(place, ident) > 3, what="the clock")
        asked = start(place, "exec", "--timeout", f"{3 * PATIENCE}s", ident, "--", "sh", "-c", "echo begun; sleep 1; echo through")
        read_until(asked.stdout, b"begun\n")
        equal(place.cove("pause", ident).text.strip(), ident)
        equal(state(place, ident), "paused")
        upper = next((place.state / "sandboxes" / ident).glob("u*/tmp/ticks"))
        before = upper.read_text()
        time.sleep(3.2 * PATIENCE)
        equal(upper.read_text(), before, "nothing moves")
        one_error(execute(place, ident, "true"), "paused", "cove resume")
        one_error(place.cove("pause", ident), "already")
        one_error(place.cove("start", ident), "is running")
        equal(place.cove("resume", ident).code, 0)
        equal(state(place, ident), "running")
        done = finish(asked)
        equal((done.code, done.out), (0, b"through\n"), "its time did not run meanwhile")
        now = ticks(place, ident)
        wait_for(lambda: ticks(place, ident) > now, what="the clock")
        equal(execute(place, ident, "cut -d' ' -f3 /proc/$(cat /tmp/stopped)/stat").text, "T\n", "who was stopped before still is")
        one_error(place.cove("resume", ident), "not paused")


@test
def a_paused_sandbox_can_be_stopped_and_dies_with_its_keeper(place):
    with staying(place) as ident:
        execute(place, ident, "echo kept >f; sleep 1000 >/dev/null 2>&1 &")
        place.cove("pause", ident)
        equal(place.cove("stop", ident).code, 0)
        equal(state(place, ident), "stopped")
        equal(place.cove("start", ident).code, 0)
        execute(place, ident, "sleep 1000 >/dev/null 2>&1 &")
        place.cove("pause", ident)
        os.kill(keeper(place, ident), signal.SIGKILL)
        wait_for(lambda: not descendants(), what="the end of everything")
        equal(state(place, ident), "killed")


@test
def a_sandbox_that_nobody_needs_rests_by_itself(place):
    rests = {"stop": "stopped", "pause": "paused"}
    idents = {then: place.cove("create", "--idle", f"{1500 * PATIENCE}ms", "--then", then).text.strip() for then in rests}
    try:
        codes = at_once(lambda ident: execute(place, ident, f"sleep {2 * PATIENCE}").code, idents.values())
        equal(codes, [0, 0], "one with a command is not idle")
        for then, ident in idents.items():
            wait_for(lambda: state(place, ident) == rests[then], what=rests[then])
    finally:
        place.cove("rm", "-f", *idents.values())
        reap()
    nothing_left(place)
    done = place.cove("create", "--ttl", "200ms", "--then", "remove")
    wait_for(lambda: json.loads(place.cove("ls", "--json").out) == [], what="its end")
    nothing_left(place)
    one_error(place.cove("create", "--then", "explode"), "--then")
    one_error(place.cove("create", "--idle", "soon"), "--idle")


# Bounds and errors


@test
def a_limit_ends_a_sandbox_and_is_named(place):
    with staying(place, "--memory", "64M") as ident:
        done = place.cove("exec", ident, "--", "python3", "-c", "x = bytearray(300 << 20)\nimport time; time.sleep(20)")
        equal((done.code, "memory" in done.errors), (137, True), done)
        wait_for(lambda: state(place, ident) == "stopped", what="its end")
    with staying(place, "--disk", "5M") as ident:
        equal(execute(place, ident, "head -c 1000000 /dev/zero >fits").code, 0)
        done = execute(place, ident, "head -c 8000000 /dev/zero >large")  # quicker than anybody looks
        equal((done.code, "disk 5M" in done.errors), (137, True), done)
        wait_for(lambda: state(place, ident) == "stopped", what="its end")
        equal(steps(place, ident)[-1]["limit"], "disk")
        assert "disk 5M" in place.cove("show", ident).text, "it is shown why"
        one_error(execute(place, ident, "true"), "does not run", "disk 5M", "cove start")
        place.cove("start", ident)
        shown = place.cove("show", ident).text  # its files are as large as before, so it may have ended again by now
        assert "disk 5M" not in shown or "running" not in shown, f"while it runs there is nothing to tell: {shown}"
    with staying(place, "--output", "1M", "--processes", "20") as ident:
        done = execute(place, ident, "head -c 5000000 /dev/zero")
        equal((done.code, len(done.out), "output" in done.errors), (137, 1 << 20, True), done.errors)
        equal(execute(place, ident, "echo fine").text, "fine\n", "the next one has its own")
        assert b"ork" in execute(place, ident, "for i in $(seq 50); do sleep 5 & done").err, "no more processes than allowed"


@test
def all_of_them_are_removed_at_once(place):
    equal((place.cove("rm", "--all").code, place.cove("rm", "-fa").out), (0, b""), "where there is none")
    runs, stopped = place.cove("create").text.strip(), place.cove("create").text.strip()
    place.cove("stop", stopped)
    done = place.cove("rm", "--all")
    equal((done.code, done.text, runs[:12] in done.errors), (125, stopped + "\n", True), done)
    one_error(place.cove("rm", "--all", runs), "--all")
    equal(place.cove("rm", "-f", "--all").text, runs + "\n")
    nothing_left(place)


@test
def mistakes_get_one_clear_error(place):
    place.cove("run", "--name", "ran", "--", "sh", "-c", "echo x >f")
    one_error(place.cove("exec", "ran", "--", "true"), "cove run", "cove create")
    one_error(place.cove("start", "ran"), "cove run")
    one_error(place.cove("exec", "nobody", "--", "true"), "nobody")
    one_error(place.cove("exec", "ran"), "needs a sandbox and a command")
    one_error(place.cove("create", "true"), "runs no command")
    one_error(place.cove("create", "--workspace", "live"), "--workspace live")
    one_error(place.cove("create", "--rm"), "--rm")
    one_error(place.cove("create", "--name", "ran"), "has the name")
    one_error(place.cove("create", "-C", "/"), "workspace")
    equal([row["name"] for row in json.loads(place.cove("ls", "--json").out)], ["ran"], "nothing was made")
    place.cove("rm", "ran")
    with staying(place) as ident:
        one_error(place.cove("rm", ident), "is running", f"cove stop {ident[:12]}", f"cove rm -f {ident[:12]}")
    with staying(place, "--name", "stays") as ident:
        one_error(place.cove("rm", ident), "is running", "cove stop stays", "cove rm -f stays")
        one_error(place.cove("exec", "-u", "root:x", ident, "--", "true"), "root:x")
        one_error(place.cove("exec", "--timeout", "soon", ident, "--", "true"), "--timeout")
        one_error(place.cove("attach", "--step", "x", ident), "--step")
        equal(place.cove("prune", "--older", "1ms").code, 0)
        equal(state(place, ident), "running", "what runs is not pruned")


# Who may ask


def knock(place, ident, prefix=(), uid=None):
    """Somebody connects to the keeper and sends bytes; what comes back."""
    script = ("import os, socket, sys\n"
              "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(10)\n"
              "os.chdir(sys.argv[1])\n"
              "if sys.argv[2:]: os.setresuid(*[int(sys.argv[2])] * 3)\n"
              "s.connect('control')\n"
              "got = b''\n"
              "try: s.send(b'x' * 100)\n"
              "except BrokenPipeError: pass\n"
              "while not got:\n"
              "    try: got = s.recv(4096) or b'nothing'\n"
              "    except ConnectionResetError: pass  # told once, before what the other end had said\n"
              "print(got.replace(b'\\0', b''))\n")
    return subprocess.run([*prefix, "/usr/bin/python3", "-c", script, str(place.state / "sandboxes" / ident), *([str(uid)] if uid else [])],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 * PATIENCE).stdout


@test
def only_the_owner_outside_of_other_namespaces_is_answered(place):
    with staying(place) as ident:
        assert "wrong size" in knock(place, ident), "the owner is told what is wrong with the message"
        said = knock(place, ident, prefix=("unshare", "--user", "--map-current-user", "--"))
        assert "only the owner" in said, f"the same user, but in another user namespace: {said}"
        if os.geteuid() == 0:
            assert "Permission denied" in knock(place, ident, uid=12345), "the directory is closed"
            folder = place.state / "sandboxes" / ident
            folder.chmod(0o755)
            (folder / "control").chmod(0o777)
            said = knock(place, ident, uid=12345)
            folder.chmod(0o700)
            assert "only the owner" in said, f"another user, whom a mistake let through: {said}"
        equal(execute(place, ident, "echo fine").text, "fine\n")


@test
def what_is_no_message_harms_nobody(place):
    with staying(place) as ident:
        slow = start(place, "exec", ident, "--", "sh", "-c", "sleep 1; echo whole")
        os.chdir(place.state / "sandboxes" / ident)
        chance = random.Random(3)
        for turn in range(200):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one, contextlib.suppress(OSError):
                one.connect("control")
                one.send(chance.randbytes(chance.choice((0, 1, 100, 871, 872, 873, 2000))) if turn % 2 else b"")
                if turn % 3 == 0:
                    socket.send_fds(one, [chance.randbytes(64)], [0, 1, 2][: turn % 4])
        os.chdir("/")
        equal(finish(slow).out, b"whole\n", "who was there before")
        equal(execute(place, ident, "echo fine").text, "fine\n")


# What comes from inside


@test(identities=("user", "nested"))
def a_spawner_that_is_killed_or_stopped_from_inside_hurts_only_the_one_who_did_it(place):
    with staying(place) as ident:
        for what in ("KILL", "STOP"):
            execute(place, ident, f"kill -{what} 2; kill -{what} $(pgrep -o -f cove-init | grep -v '^1$') 2>/dev/null; true")
            for _ in range(2):
                last = execute(place, ident, "echo fine", timeout=120)
            equal(last.text, "fine\n", f"after SIG{what}: {last!r}")


@test
def a_command_that_kills_all_it_can_leaves_a_working_sandbox(place):
    with staying(place) as ident:
        execute(place, ident, "kill -9 -1")
        execute(place, ident, "kill -STOP -1", "--timeout", "100ms")
        wait_for(lambda: execute(place, ident, "echo fine", timeout=120).text == "fine\n", seconds=60, what="a working sandbox")


@test
def every_command_has_the_same_rights_and_view(place):
    look = ("grep -E '^(Cap|Seccomp:|NoNewPrivs|Uid|Gid)' /proc/self/status; for n in user mnt pid net ipc uts cgroup time; do readlink /proc/self/ns/$n; done; "
            "cut -d' ' -f2- /proc/self/mountinfo | sed 's/^[0-9]* [0-9:]* //'; ulimit -Ha; umask; ls /proc/self/fd | wc -l; cat /proc/sys/kernel/hostname")
    with staying(place) as ident:
        seen = {execute(place, ident, look).text for _ in range(3)}
        place.cove("exec", "-d", ident, "--", "sh", "-c", f"({look}) >/tmp/seen; echo 1 >/tmp/there")
        wait_for(lambda: execute(place, ident, "cat /tmp/there 2>/dev/null").text == "1\n", what="the one in the background")
        seen.add(execute(place, ident, "cat /tmp/seen").text)
        equal(len(seen), 1, "one view")
        (text,) = seen
        for line in ("CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "Seccomp:\t2", "NoNewPrivs:\t1"):
            assert line in text, f"{line} is not in: {text}"


adopt_orphans()
main()
