"""The terminal: private inside, as it was outside, and programs look the same in both."""
import fcntl
import os
import pathlib
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, PATIENCE, equal, main, test  # noqa: E402
from support.running import adopt_orphans, nothing_left, tool, wait_for, write  # noqa: E402


class Terminal:
    """A terminal of 24 x 80 with a program in it, and us in the place of the person."""

    def __init__(self, place, *command, rows=24, columns=80, env=None, pixels=0):
        self.pixels = pixels
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.screen = b""
        self.process = subprocess.Popen([os.fsencode(str(word)) for word in command], cwd=place.work, env=dict(place.env, **(env or {})),
                                        stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec_fn=self._control)
        os.set_blocking(self.master, False)

    @staticmethod
    def _control():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, columns * self.pixels, rows * self.pixels))

    def type(self, keys):
        os.write(self.master, keys)

    def read(self):
        try:
            self.screen += os.read(self.master, 65536)
        except (BlockingIOError, OSError):
            pass
        return self.screen

    def expect(self, wanted, seconds=10):
        """Waits for bytes after what was expected before, and gives what came up to them."""
        end = time.monotonic() + seconds * PATIENCE
        while wanted not in self.read():
            assert time.monotonic() < end, f"{wanted!r} did not come: {self.screen[-1500:]!r}"
            time.sleep(0.005)
        before, _, self.screen = self.screen.partition(wanted)
        return before

    def end(self, seconds=10):
        deadline = time.monotonic() + seconds * PATIENCE
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < deadline, f"it did not end: {self.screen[-1500:]!r}"
            time.sleep(0.005)
        self.read()
        return self.process.returncode

    def modes(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def cove(place, *args, **kwargs):
    return Terminal(place, COVE, "run", "--rm", "-q", *args, **kwargs)


# What the command has

@test
def the_command_has_a_terminal_of_its_own(place):
    with cove(place, "--", "sh", "-c", "tty; test -t 0 && test -t 1 && test -t 2 && echo all; ls /dev/pts; stat -c %t:%T $(tty); echo end >/dev/tty") as terminal:
        out = terminal.expect(b"end").decode().split()
        equal(terminal.end(), 0)
    assert out[0].startswith("/dev/pts/") and out[1] == "all", out
    equal(set(out[2:-1]), {"ptmx", out[0].rsplit("/", 1)[1]}, "nothing of the host's terminals is there")


@test
def the_terminal_outside_cannot_be_reached(place):
    with cove(place, "--", "/usr/bin/python3", "-c",
              "import os, fcntl, termios\n"
              "try: fcntl.ioctl(0, termios.TIOCSTI, b'x'); print('typed')\n"
              "except OSError: print('refused')\n"
              "print('session', os.getsid(0) == os.getpid())") as terminal:
        terminal.expect(b"refused")
        terminal.expect(b"session True")
        equal(terminal.end(), 0)


@test
def a_command_whose_input_is_a_pipe_has_no_terminal(place):
    equal(place.sh("test -t 0 || test -t 1 || test -t 2 || echo none").out, b"none\n")


@test
def a_terminal_can_be_asked_for_and_refused(place):
    equal(place.sh("test -t 0 && test -t 1 && echo yes", options=("-t",), input=b"").out.strip(), b"yes")
    with cove(place, "--no-tty", "--", "sh", "-c", "test -t 0 || test -t 1 || echo none") as terminal:
        terminal.expect(b"none")
        equal(terminal.end(), 0)


@test
def output_to_a_file_is_exact_though_input_is_a_terminal(place):
    out = place.dir / "out"
    with Terminal(place, "sh", "-c", f"{shlex.quote(COVE)} run --rm -- printf 'a\\nb\\n' >{out}") as terminal:
        equal(terminal.end(), 0)
    equal(out.read_bytes(), b"a\nb\n")


# Size

@test
def the_size_is_the_terminals_from_the_start(place):
    with cove(place, "--", "stty", "size", rows=37, columns=111) as terminal:
        terminal.expect(b"37 111")
        equal(terminal.end(), 0)


@test
def a_terminal_that_knows_its_pixels_is_not_resized_at_the_start(place):
    """A signal of its own at the start makes less, for one, draw another prompt than outside."""
    for _ in range(5):
        with cove(place, "--", "sh", "-c", "trap 'echo winch' WINCH; sleep 0.1; sleep 0.1; stty size; echo end", pixels=16) as terminal:
            before = terminal.expect(b"end")
            equal(terminal.end(), 0)
        assert b"winch" not in before and b"24 80" in before, before


@test
def a_change_of_size_reaches_the_command(place):
    # One after the other: a shell may take two signals for one.
    script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"
    with cove(place, "--", "bash", "-c", script) as terminal:
        terminal.expect(b"ready")
        for rows, columns in ((50, 132), (10, 20), (24, 80)):
            time.sleep(0.3)
            terminal.resize(rows, columns)
            terminal.expect(f"{rows} {columns}".encode())
        time.sleep(0.3)  # while stty still runs, bash leaves the key to it
        terminal.type(b"\x03")
        equal(terminal.end(), 130)


# Keys

@test
def keys_reach_the_command_and_its_echo_the_screen(place):
    with cove(place, "--", "sh", "-c", "read line; echo got:$line") as terminal:
        terminal.type(b"hello\r")
        terminal.expect(b"got:hello\r\n")
        equal(terminal.end(), 0)


@test
def echo_can_be_switched_off_inside(place):
    with cove(place, "--", "sh", "-c", "stty -echo; echo ready; read line; stty echo; echo got:$line") as terminal:
        terminal.expect(b"ready")
        terminal.type(b"secret\r")
        before = terminal.expect(b"got:secret")
        assert b"secret" not in before, before


@test
def control_c_interrupts_the_command_and_not_cove(place):
    with cove(place, "--", "sh", "-c", "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done") as terminal:
        terminal.expect(b"ready")
        terminal.type(b"\x03")
        terminal.expect(b"caught")
        equal(terminal.end(), 7)
    with cove(place, "--", "sleep", "60") as terminal:
        wait_for(lambda: not terminal.modes()[3] & termios.ICANON, what="raw mode")
        time.sleep(0.1)
        terminal.type(b"\x03")
        equal(terminal.end(), 130)
    nothing_left(place)


@test
def control_d_ends_the_input_and_control_backslash_quits(place):
    with cove(place, "--", "cat") as terminal:
        wait_for(lambda: not terminal.modes()[3] & termios.ICANON, what="raw mode")
        terminal.type(b"line\r\x04")
        equal(terminal.end(), 0)
        assert terminal.read().count(b"line") == 2, terminal.screen
    with cove(place, "--", "sh", "-c", "echo ready; exec sleep 60") as terminal:
        terminal.expect(b"ready")
        time.sleep(0.05)
        terminal.type(b"\x1c")
        equal(terminal.end(), 131)


@test
def a_shell_inside_has_job_control(place):
    with cove(place, "--", "bash", "--norc", "-i", env={"PS1": "> "}) as terminal:
        terminal.type(b"echo re''ady\r")
        terminal.expect(b"ready\r\n")
        terminal.type(b"sleep 60\r")
        time.sleep(0.3)
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.type(b"kill -9 %1; sleep 0.2; exit 5\r")
        equal(terminal.end(), 5)
        assert b"no job control" not in terminal.screen


@test
def control_z_is_the_commands_and_a_stop_signal_is_coves(place):
    """With a terminal the key goes inside, as every key does; kill -TSTP stops cove as a job of the outer shell."""
    with Terminal(place, "bash", "--norc", "-i", env={"PS1": "> "}) as terminal:
        terminal.type(f"{COVE} run --rm -q -- sh -c 'echo re\"\"ady; read x; echo go\"\"t:$x'\r".encode())
        terminal.expect(b"ready")
        keeper = wait_for(lambda: [pid for pid in children(terminal.process.pid) if name(pid) == "cove"], what="cove")[0]
        os.kill(keeper, signal.SIGTSTP)
        terminal.expect(b"Stopped")
        wait_for(lambda: terminal.modes()[3] & termios.ISIG, what="the shell's own terminal modes")
        terminal.type(b"fg\r")
        time.sleep(0.3)
        terminal.type(b"after\r")
        terminal.expect(b"got:after")
        terminal.expect(b"> ")
        terminal.type(b"exit 6\r")
        equal(terminal.end(), 6)


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if int(open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry))
            except OSError:
                pass
    return found


def name(pid):
    try:
        return open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        return ""


# The terminal is as it was

@test
def the_terminal_is_raw_during_and_as_it_was_afterwards(place):
    with cove(place, "--", "sh", "-c", "stty raw -echo; echo ready; read x; exit 3") as terminal:
        terminal.expect(b"ready")
        assert not terminal.modes()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
        terminal.type(b"x\n")
        equal(terminal.end(), 3)
        equal(terminal.modes(), terminal.before)


@test
def the_terminal_is_as_it_was_after_a_signal_a_time_out_and_an_error(place):
    with cove(place, "--timeout", "300ms", "--", "sleep", "60") as terminal:
        equal(terminal.end(), 124)
        equal(terminal.modes(), terminal.before)
    with cove(place, "--", "sh", "-c", "kill -9 $$") as terminal:
        equal(terminal.end(), 137)
        equal(terminal.modes(), terminal.before)
    with cove(place, "--", "no-such-program") as terminal:
        equal(terminal.end(), 127)
        equal(terminal.modes(), terminal.before)


@test
def the_terminal_is_as_it_was_after_cove_was_killed(place):
    with cove(place, "--", "sh", "-c", "echo ready; sleep 60") as terminal:
        terminal.expect(b"ready")
        wait_for(lambda: not terminal.modes()[3] & termios.ICANON, what="raw mode")
        os.kill(terminal.process.pid, signal.SIGKILL)
        equal(terminal.end(), -signal.SIGKILL)
        wait_for(lambda: terminal.modes() == terminal.before, 2, "the terminal's modes")
    nothing_left(place)


@test
def a_terminal_that_hangs_up_ends_the_run(place):
    terminal = cove(place, "--", "sh", "-c", "echo ready; sleep 60")
    terminal.expect(b"ready")
    os.close(terminal.master)
    os.close(terminal.slave)
    try:
        wait_for(lambda: terminal.process.poll() is not None, 12, "the end")
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait()
    nothing_left(place)


# What may not pass

DANGEROUS = {
    "the clipboard is set": rb"\033]52;c;aGVsbG8=\007",
    "the clipboard is asked for": rb"\033]52;c;?\007",
    "the title is set": rb"\033]0;title\007",
    "the title is reported": rb"\033[21t",
    "a notification": rb"\033]9;note\033\\",
    "a file is transferred": rb"\033]1337;File=name=eA==:eA==\007",
    "the answerback": rb"\005",
    "a print job": rb"\033[5i",
    "a device string": rb"\033P$qm\033\\",
    "a tmux passthrough": rb"\033Ptmux;\033\033]52;c;eA==\007\033\\",
}


@test
def what_acts_beyond_the_screen_is_removed(place):
    for what, sequence in DANGEROUS.items():
        with cove(place, "--", "printf", b"<%b>".decode(), sequence.decode()) as terminal:
            equal(terminal.end(), 0)
            left = terminal.read().replace(b"\033\\", b"")  # the end of a string that never began does nothing
            assert b"<>" in left, f"{what}: {terminal.screen!r}"


@test
def what_is_drawn_passes_unchanged(place):
    drawn = b"\033[1;31mred\033[0m \033[?25l\033[2J\033[10;20Hx\033[K\033[38;2;1;2;3mtrue\033[m \xe2\x94\x80\xf0\x9f\x98\x80"
    write(place.work / "drawn", drawn)
    with cove(place, "--", "cat", "drawn") as terminal:
        equal(terminal.end(), 0)
        assert drawn in terminal.read(), terminal.screen


@test
def what_goes_to_a_pipe_is_not_filtered(place):
    equal(place.run("printf", r"\033]52;c;eA==\007").out, b"\033]52;c;eA==\007")


# The summary

@test
def a_summary_is_given_on_a_terminal(place):
    with Terminal(place, COVE, "run", "--rm", "--", "sh", "-c", "exit 4") as terminal:
        equal(terminal.end(), 4)
        assert b"exit 4" in terminal.read(), terminal.screen
    with Terminal(place, COVE, "run", "--rm", "-q", "--", "true") as terminal:
        equal(terminal.end(), 0)
        equal(terminal.read(), b"")


@test
def a_summary_begins_in_a_line_of_its_own_and_fits_the_terminal(place):
    for script, before in (("printf hi", b"hi\r\n"), ("echo hi", b"hi\r\n"), ("printf '50%%\\r'", b"50%\r\r\n"), ("printf '\\303\\251'", b"\xc3\xa9\r\n"),
                           ("printf '\\033[?1049hhi\\033[?1049l'", b"\x1b[?1049hhi\x1b[?1049l"), ("true", b"")):
        with Terminal(place, COVE, "run", "--rm", "--", "sh", "-c", script, env={"NO_COLOR": "1", "LC_ALL": "C.UTF-8"}) as terminal:
            equal(terminal.end(), 0)
            equal(terminal.read().partition(b"cove: sh")[0], before, script)
    with Terminal(place, "sh", "-c", f"{COVE} run --summary --rm -- printf hi 2>../log") as terminal:
        equal((terminal.end(), terminal.read()), (0, b"hi"))
        assert (place.dir / "log").read_text().startswith("cove: printf hi\n"), "elsewhere there is no line to end"
    with Terminal(place, COVE, "run", "-q", "--rm", "--", "printf", "hi") as terminal:
        equal((terminal.end(), terminal.read()), (0, b"hi"), "where nothing is said, nothing is added")
    for columns, more in ((80, True), (200, False)):
        with Terminal(place, COVE, "run", "--", "touch", "made", columns=columns, env={"NO_COLOR": "1"}) as terminal:
            equal(terminal.end(), 0)
            lines = terminal.read().decode().splitlines()
        assert max(map(len, lines)) <= columns, lines
        equal(any(line.startswith("   ") for line in lines), more, f"{lines}")
        assert any(line.endswith("landlock-7") or "no-capabilities" in line for line in lines), lines


# Programs that draw

class Screen:
    """A program in tmux: what a person sees of it."""

    def __init__(self, place, command):
        self.place = place
        self.socket = place.dir / "tmux"
        self._tmux("new-session", "-d", "-x", "80", "-y", "24", command, cwd=place.work)

    def _tmux(self, *args, cwd=None):
        done = subprocess.run(["tmux", "-S", str(self.socket), "-f", "/dev/null", *args], cwd=cwd, env={**self.place.env, "TERM": "xterm-256color"},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.stdout

    def type(self, *keys):
        self._tmux("send-keys", *keys)

    def seen(self, colours=True):
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else [])).decode(errors="replace")

    def settle(self, wanted):
        """The screen once `wanted` is on it and it no longer changes."""
        wait_for(lambda: re.search(wanted, self.seen(False)), 10, wanted)
        last = None
        for _ in range(50):
            now = self.seen()
            if now == last:
                return now
            last = now
            time.sleep(0.1)
        return last

    def close(self):
        self._tmux("kill-server")
        wait_for(lambda: not self._tmux("list-sessions"), 5, "the end of tmux")


def compare(place, command, wanted, keys=()):
    tool("tmux", command.split()[0])
    seen = []
    for prefix in ("", f"{shlex.quote(COVE)} run --rm -q -- "):
        screen = Screen(place, prefix + command)
        try:
            screens = [screen.settle(wanted)]
            for step, after in keys:
                screen.type(*step)
                screens.append(screen.settle(after))
            seen.append(screens)
        finally:
            screen.close()
    for outside, inside in zip(*seen):
        assert outside == inside, f"outside:\n{outside}\ninside:\n{inside}"


@test
def vim_looks_as_outside(place):
    write(place.work / "text", "".join(f"line {i} \t ü\n" for i in range(100)))
    compare(place, "vim.tiny -u NONE -n text", r"line 0 ", [(("G",), r"line 99"), (("gg", "O", "typed", "Escape"), r"typed"), ((":q!",), r":q!")])


@test
def less_looks_as_outside(place):
    write(place.work / "text", "".join(f"line {i}\n" for i in range(100)))
    compare(place, "less text", r"line 0\b", [(("G",), r"\(END\)"), (("?line 50", "Enter"), r"line 50")])


@test
def a_shell_with_colours_looks_as_outside(place):
    write(place.work / "dir/file", "x")
    compare(place, "bash --norc -c 'tput setaf 3; echo yellow; tput sgr0; ls --color=always -A; tput cup 20 5; echo end; sleep 60'", "end")


@test
def htop_draws_its_screen(place):
    tool("tmux", "htop")
    screen = Screen(place, f"{shlex.quote(COVE)} run --rm -q -- htop")
    try:
        seen = screen.settle(r"Load average")
        assert "F10" in seen and "htop" in screen.seen(False), seen
    finally:
        screen.type("q")
        screen.close()


@test
def tmux_works_inside(place):
    tool("tmux")
    done = place.sh("tmux -f /dev/null new-session -d -x 80 -y 24 'echo inside; sleep 60' && sleep 0.5 && tmux capture-pane -p | head -1 && tmux kill-server")
    equal((done.code, done.text), (0, "inside\n"), done)


if __name__ == "__main__":
    adopt_orphans()
    main()
