"""TTY: the terminal, and text that is shown to people."""
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from attack import (COVE, IDENTITY, PATIENCE, UNSAFE, Report, attack, control_fires, equal, main, put_probe, test)


class Terminal:
    """A terminal of the host with a program on it, as a person would have it."""

    def __init__(self, place, *words, env=None, own_output=True, **kwargs):
        put_probe(place)
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        streams = dict(stdin=self.slave, stdout=self.slave, stderr=self.slave) if own_output else dict(
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.process = subprocess.Popen([*map(str, words)], cwd=place.work, env=dict(place.env, **(env or {})), preexec_fn=own_terminal, **streams, **kwargs)
        self.output = b""

    def read(self, seconds=20, until=None):
        deadline = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.master], [], [], 0.05)
            if ready:
                try:
                    self.output += os.read(self.master, 65536)
                except OSError:
                    break
            elif self.process.poll() is not None:
                break
            if until and until in self.output:
                break
        return self.output

    def typed(self):
        """What waits to be read by the next program on this terminal."""
        return struct.unpack("i", fcntl.ioctl(self.slave, termios.FIONREAD, b"\0" * 4))[0]

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

    @property
    def report(self):
        class Done:
            returncode, stdout, stderr = self.process.wait(20), self.output, b""
        from support.harness import Result
        return Report(Result(Done))


def device_of(fd):
    status = os.fstat(fd)
    return f"{status.st_dev:x}:{status.st_ino}"


@test(id="TTY-01")
def a_command_has_a_terminal_of_its_own(place):
    with Terminal(place, COVE, "run", "--rm", "-q", "--", "./probe", "terminal") as terminal:
        terminal.read()
        report = terminal.report
        equal(report.chk["dev-tty"], 0, "its own /dev/tty opens")
        equal(report.say["ttyname"], ["/dev/pts/0"], "the name inside")
        assert report.say["stdin"][0].split()[1] != device_of(terminal.slave), "it is the host's terminal"
        assert report.say["session"][0].endswith("own 1"), report.say
    with Terminal(place, place.work / "probe", "terminal") as terminal:
        terminal.read()
        control_fires(terminal.report.say["stdin"][0].split()[1] == device_of(terminal.slave), "on the host it is")
    plain = attack(place, "terminal")
    equal(plain.chk["dev-tty"], errno.ENXIO, "without a terminal there is none")


@test(id="TTY-02")
def nothing_is_typed_into_the_terminal_of_the_host(place):
    for options in ((), ("-t",)):
        for without in (None, "seccomp", "session", "landlock"):
            env = {"COVE_UNSAFE_WITHOUT": without} if without else None
            command = (UNSAFE if without else COVE, "run", "--rm", "-q", *options, "--", "./probe", "terminal")
            with Terminal(place, *command, env=env, own_output=bool(options)) as terminal:
                terminal.read(10)
                terminal.process.wait(20)
                equal(terminal.typed(), 0, f"typed characters with {options} without {without}")
    with Terminal(place, UNSAFE, "run", "--rm", "-q", "--no-tty", "--", "./probe", "terminal", own_output=False,
                  env={"COVE_UNSAFE_WITHOUT": "session,seccomp,landlock,capabilities"}) as terminal:
        terminal.process.wait(20)
        if open("/proc/sys/dev/tty/legacy_tiocsti").read().strip() == "1" or IDENTITY == "root":
            control_fires(terminal.typed() > 0 or b"CHK dev-tty 0" in terminal.process.stdout.read(), "without a session of its own it reaches it")


CORPUS = {
    "clipboard": r"\x1b]52;c;b3duZWQ=\x07", "title": r"\x1b]0;owned\x07", "title2": r"\x1b]2;owned\x1b\x5c", "icon": r"\x1b]1;owned\x07",
    "directory": r"\x1b]7;file:///owned\x07", "notify9": r"\x1b]9;owned\x07", "notify777": r"\x1b]777;notify;owned;x\x07",
    "iterm": r"\x1b]1337;File=name=b3duZWQ=:owned\x07", "shell": r"\x1b]133;C;owned\x07", "dcs": r"\x1bP+q6f776e6564\x1b\x5c", "decrqss": r"\x1bP$qmowned\x1b\x5c",
    "apc": r"\x1b_Gowned\x1b\x5c", "pm": r"\x1b^owned\x1b\x5c", "sos": r"\x1bXowned\x1b\x5c", "screen-title": r"\x1bkowned\x1b\x5c",
    "c1-osc": r"\x9d52;c;owned\x07", "c1-utf8-osc": r"\xc2\x9d52;c;owned\x07", "c1-csi": r"\x9b21t", "answerback": r"\x05", "window": r"\x1b[21t",
    "print": r"\x1b[5i", "unterminated": r"\x1b]52;c;owned", "link": r"\x1b]8;;javascript:owned\x07",
}


def dangerous(output):
    """What acts beyond the screen."""
    signs = [rb"\x1b\](?!4;|5;|1[0-9];|8;|10[45]|11[0-9])", rb"\x1b[P_^X]", rb"\x1bk", rb"\x05", rb"[\x80-\x9f](?![\x80-\xbf])(?<![\xc0-\xff][\x80-\x9f])",
             rb"\xc2[\x80-\x9f]", rb"\x1b\[[0-9;]*(21t|5i)", rb"javascript"]
    return [sign for sign in signs if re.search(sign, output)]


@test(id="TTY-03")
def what_acts_beyond_the_screen_does_not_reach_the_terminal(place):
    text = "before" + r"\x0a".join(CORPUS.values()) + r"\x07\x0aafter\x1b[1mbold\x1b[0m"
    with Terminal(place, COVE, "run", "--rm", "-q", "--", "./probe", "print", text) as terminal:
        output = terminal.read()
        equal(dangerous(output), [], f"in {output!r}")
        assert b"before" in output and b"\x1b[1mbold" in output, f"harmless text got lost: {output!r}"
    for name, sequence in list(CORPUS.items())[:4]:
        with Terminal(place, COVE, "run", "--rm", "-q", "--", "./probe", "print", sequence) as terminal:
            equal(dangerous(terminal.read()), [], name)
    with Terminal(place, place.work / "probe", "print", text) as terminal:
        control_fires(len(dangerous(terminal.read())) > 4, "on the host they arrive")
    exact = place.run("./probe", "print", text)
    assert b"\x1b]52" in exact.out, "into a pipe output goes exactly as it is"


@test(id="TTY-04")
def names_are_shown_harmless(place):
    evil = "\x1b]52;c;b3duZWQ=\x07\x1b[31m\u202e\x9b21t"

    def inert(text, what):
        found = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u200b"]
        assert not found, f"{what}: {found} in {text!r}"
    for options, command in ((("-w", f"/{evil}"), "true"), (("-C", f"/{evil}"), "true"), ((), f"/{evil}"), (("-v", f"/{evil}:/x"), "true"), (("--hide", f"../{evil}"), "true"),
                             (("-u", evil), "true"), (("--hostname", evil), "true"), ((f"--{evil}",), "true"), (("--policy", f"/{evil}"), "true"),
                             (("-e", f"={evil}"), "true"), (("--timeout", evil), "true"), (("--image", f"/{evil}"), "true")):
        result = place.run(command, options=options)
        assert result.code in (125, 126, 127), f"{options}: {result!r}"
        inert(result.err.decode(errors="surrogateescape"), f"the error of {options}")
    folder = place.work / evil
    folder.mkdir()
    result = place.run("true", options=("-C", folder, "--print-plan"))
    inert(result.text, "the plan")
    result = place.run("sh", "-c", "exit 3", options=("-C", folder, "--summary"))
    inert(result.errors, "the summary")
    policy = place.dir / "policy.yaml"
    policy.write_text(f'"{evil.encode("unicode_escape").decode()}": 1\n')
    inert(place.run("true", options=("--policy", policy)).errors, "a message about a key")
    done = place.cove("run", "-q", "--label", f"why={evil}", "--", "sh", "-c", 'mkdir "$1"; echo x >"$1/made$1"; ln -s "$1" link; echo x >made', "sh", f"sub{evil}")
    equal(done.code, 0, done)
    for words in (("ls",), ("show",), ("diff", "--stat"), ("apply", "--dry-run"), ("apply", "--yes"), ("export", "-o", "../out.tar"), ("ls", f"{evil}"), ("show", f"{evil}"),
                  ("diff", f"{evil}"), ("rm", f"{evil}")):
        done = place.cove(*words)
        inert(done.text + done.errors, f"{words}")
    try:
        inert(evil, "the name itself")
    except AssertionError:
        return
    control_fires(False, "the judge takes anything")


@test(id="TTY-05")
def floods_are_bounded_and_the_terminal_comes_back(place):
    put_probe(place)
    for words in (("flood", "100"), ("flood", "0", "200000")):
        process = subprocess.Popen([COVE, "run", "--rm", "--", "./probe", *words], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        equal(process.returncode, 0)
        assert usage.ru_maxrss < 100 << 10, f"{words}: the keeper took {usage.ru_maxrss} KiB"
    with Terminal(place, COVE, "run", "--rm", "-q", "--", "sh", "-c", "stty raw -echo; ./probe print '\\x1b[?1049h\\x1b[?1000h'; ./probe flood 2; sleep 0.2") as terminal:
        for size in range(20, 120):
            fcntl.ioctl(terminal.slave, termios.TIOCSWINSZ, struct.pack("HHHH", size, size, 0, 0))
            terminal.read(0.01)
        terminal.read()
        equal(terminal.process.wait(20), 0)
        equal(termios.tcgetattr(terminal.slave), terminal.before, "the terminal's settings afterwards")
        tail = terminal.output[-400:]
        assert b"\x1b[?1049l" in tail and b"\x1b[?1000l" in tail, f"modes stay on: {tail!r}"
    with Terminal(place, COVE, "run", "--rm", "-q", "--", "./probe", "wait") as terminal:
        terminal.read(until=b"waiting")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.process.wait(20)
        equal(termios.tcgetattr(terminal.slave), terminal.before, "the settings after SIGTERM")


QUESTION = b"bring 1 change home? [y/N] "


def brought_home(place, script, *typed):
    """On one terminal of the host: a command that draws, then the real question.  `typed` are pairs: when this is
    seen so often, that is typed.  Whether the change came home."""
    (place.work / "made").unlink(missing_ok=True)
    command = f'"$0" run -q -- sh -c "echo x >made; {script}"; echo ENDED; sleep 0.5; "$0" apply; echo ASKED'
    with Terminal(place, "sh", "-c", command, COVE) as terminal:
        for sign, times, keys in typed:
            deadline = time.monotonic() + 20
            while terminal.output.count(sign) < times and time.monotonic() < deadline:
                terminal.read(0.1)
            assert terminal.output.count(sign) >= times, f"{sign} was not seen: {terminal.output!r}"
            os.write(terminal.master, keys)
        terminal.read(until=b"ASKED")
        assert b"ASKED" in terminal.output, terminal.output
        terminal.read(1)
        equal(terminal.typed(), 0, "left for the next program")
    for record in place.state.glob("sandboxes/*/record.json"):
        place.cove("rm", record.parent.name)
    return (place.work / "made").exists(), terminal.output


@test(id="TTY-06")
def an_answer_to_a_drawn_question_is_no_answer_to_a_real_one(place):
    draw = f"printf '{QUESTION.decode()}'"
    home, output = brought_home(place, f"{draw}; read answer; echo GOT-\\$answer", (QUESTION, 1, b"y\n"), (QUESTION, 2, b"n\n"))
    equal((home, b"GOT-y" in output), (False, True), f"it was typed into the sandbox: {output!r}")
    home, output = brought_home(place, draw, (b"ENDED", 1, b"y\ny\n"), (QUESTION, 2, b"n\n"))
    equal(home, False, f"typed before the question stood there: {output!r}")
    home, output = brought_home(place, draw, (b"ENDED", 1, b"y\n"), (QUESTION, 2, b"y\n"))
    control_fires(home, f"the answer to the real question: {output!r}")


@test(id="TTY-06")
def what_is_typed_at_a_drawn_prompt_of_a_shell_stays_inside(place):
    prompt, mark = b"me@host:~$ ", place.work / "owned"
    for words, seen in (((COVE, "run", "--rm", "-q", "--", "sh", "-c"), False), (("sh", "-c"), True)):
        with Terminal(place, *words, f"printf '{prompt.decode()}'; read line; eval \"$line\"; echo AFTER") as terminal:
            terminal.read(until=prompt)
            os.write(terminal.master, f"echo x >{mark}\n".encode())
            terminal.read(until=b"AFTER")
            assert b"AFTER" in terminal.output, terminal.output
        control_fires(mark.exists(), "on the host it would act") if seen else equal(mark.exists(), False, "the host's file")


main()
