"""What is known of steps: cove steps and cove logs, on a trace and output that are written here as docs/trace.md says."""
import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import ROOT, equal, main, test  # noqa: E402
from support.running import (adopt_orphans, descendants, finish, on_terminal, one_error, read_until, start, stop,  # noqa: E402
                             wait_for, write)
from support.staying import staying  # noqa: E402

BEGAN = 1769860800  # 2026-01-31T12:00:00Z


def sandbox(place):
    """The directory of a sandbox that is kept and no longer runs."""
    equal(place.cove("run", "--name", "it", "--", "sh", "-c", "echo x >made").code, 0)
    wait_for(lambda: not descendants(), what="the end of the guard")
    (folder,) = (place.state / "sandboxes").iterdir()
    return folder


@contextlib.contextmanager
def keeper(folder):
    """Somebody who holds the sandbox, as a keeper does."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(held)


class Trace:
    """The writer of the page."""

    def __init__(self, folder):
        self.file, self.seq, self.prev = folder / "trace.jsonl", 0, "0" * 64

    def add(self, kind, data=None):
        self.seq += 1
        stamp = datetime.datetime.fromtimestamp(BEGAN + self.seq, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        line = json.dumps({"seq": self.seq, "prev": self.prev, "time": stamp, "mono_us": self.seq, "kind": kind, "data": data or {}},
                          sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        self.prev = hashlib.sha256(line).hexdigest()
        with open(self.file, "ab") as file:
            file.write(line + b"\n")

    def started(self, number, *argv, **more):
        self.add("step.started", {"number": number, "argv": list(argv) or ["true"], "argv_left_out": 0, "cwd": "/w", "user": "1000",
                                  "environment": ["PATH"], "environment_left_out": 0, "detached": False, "tty": False, **more})

    def ended(self, number, **more):
        self.add("step.ended", {"number": number, "exit": 0, "signal": None, "reason": "exited", "limit": None, "wall_us": 1234567,
                                "user_us": 400000, "system_us": 100000, "peak_kib": 2048, "stdout_bytes": 0, "stdout_kept": 0,
                                "stderr_bytes": 0, "stderr_kept": 0, **more})

    def changed(self, number, **more):
        self.add("step.changed", {"number": number, "added": 0, "changed": 0, "removed": 0, "files": [], "files_left_out": 0, "checkpoint": None,
                                  "no_checkpoint": None, **more})


def head(step, segment=0, before=(0, 0)):
    return b"COVEOUT1" + struct.pack("<QQQQQ", step, segment, BEGAN * 1000000, *before)


def chunk(stream, content, after=0):
    return struct.pack("<BBHI", stream, 0xa5, len(content) - 1, after) + content


def output(folder, name, *parts):
    (folder / "output").mkdir(mode=0o700, exist_ok=True)
    with open(folder / "output" / name, "ab") as file:
        file.write(b"".join(parts))


def example(folder):
    trace = Trace(folder)
    trace.add("sandbox.started")
    trace.started(1, "make", "test me")
    trace.ended(1)
    trace.changed(1, added=3, changed=1, checkpoint="c1", files=[{"how": "added", "path": "a"}])
    trace.started(2, "sh", "-c", "printf '\x1b[2J'", {"=hex": "ff"})
    trace.ended(2, exit=None, signal=9, reason="signaled", user_us=None, peak_kib=None)
    trace.changed(2, no_checkpoint="too large")
    trace.started(3, "sleep", "60")
    return trace

# cove steps


@test
def steps_are_listed_for_people(place):
    folder = sandbox(place)
    example(folder)
    done = place.cove("steps")
    equal((done.code, done.err), (0, b""), done)
    rows = [re.split(r" {2,}", line) for line in done.text.splitlines()]
    equal(rows[0], ["STEP", "AGE", "TOOK", "END", "CPU", "MEMORY", "FILES", "CHECKPOINT", "COMMAND"])
    equal([rows[1][:1] + rows[1][2:]], [["1", "1.2s", "exit 0", "500.0ms", "2.0 MiB", "+3 ~1 -0", "c1", "make 'test me'"]])
    equal(rows[2][2:], ["1.2s", "signal 9", "-", "-", "-", "none: too large", r"sh -c 'printf '\''\x1b[2J'\''' '\xff'"])
    equal(rows[3][2:], ["-", "lost", "-", "-", "-", "-", "sleep 60"])
    with keeper(folder):
        assert "running" in place.cove("steps", "it").text
    code, out = on_terminal(place, "steps")
    assert code == 0 and b"\x1b" not in out, out


@test
def steps_are_told_to_programs(place):
    folder = sandbox(place)
    trace = example(folder)
    done = place.cove("steps", "--json", "it")
    equal((done.code, done.err), (0, b""), done)
    found = json.loads(done.out)
    equal(found["chain"], {"broken": None, "hash": trace.prev, "lines": 8, "records": 8, "torn": 0})
    first, second, third = found["steps"]
    equal((first["number"], first["state"], first["exit"], first["checkpoint"]), (1, "over", 0, "c1"))
    equal((first["started"], first["ended"]), ("2026-01-31T12:00:02.000Z", "2026-01-31T12:00:03.000Z"))
    equal((first["argv"], first["files"], first["verified"]), (["make", "test me"], [{"how": "added", "path": "a", "bytes": None, "sha256": None}], True))
    equal((second["signal"], second["no_checkpoint"], second["argv"][3]), (9, "too large", {"=hex": "ff"}))
    equal((third["state"], "exit" in third), ("lost", False))


@test
def a_sandbox_without_steps_has_none(place):
    sandbox(place)
    done = place.cove("steps")
    equal((done.code, done.text.split()), (0, ["STEP", "AGE", "TOOK", "END", "CPU", "MEMORY", "FILES", "CHECKPOINT", "COMMAND"]))
    assert "was made by `cove run`" in done.errors, done
    equal(place.cove("steps", "--json").errors, "")
    equal(json.loads(place.cove("steps", "--json").out)["steps"], [])
    one_error(place.cove("logs"), "was made by `cove run`", "is not kept")
    one_error(place.cove("logs", "--step", "1"), "was made by `cove run`", "is not kept")
    one_error(place.cove("steps", "nobody"), "there is no sandbox")
    one_error(place.cove("logs", "nobody"), "there is no sandbox")
    one_error(place.cove("steps", "it", "it"), "takes one sandbox")
    place.cove("rm", "it")
    with staying(place) as ident:
        one_error(place.cove("logs", ident), "nothing has run", ident[:12])
        equal(place.cove("steps", ident).errors, "")


@test
def a_trace_that_was_changed_is_told_with_exit_1(place):
    folder = sandbox(place)
    example(folder)
    whole = (folder / "trace.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for bytes_now, says in ((whole.replace(b"make", b"fake"), "line 3 does not continue the line before it: one of the two was changed"),
                            (b"".join(lines[:2] + lines[3:]), "line 3 does not continue the line before it: there were others"),
                            (b"".join(lines[:3] + lines[2:]), "line 4 is there twice"),
                            (b"".join(lines + lines[1:2]), "line 9 stands in the wrong place"),
                            (whole.replace(b'{"data":{"added":3', b'["data":{"added":3'), "line 4 is no record"),
                            (whole[:-1], "line 8 has no end")):
        (folder / "trace.jsonl").write_bytes(bytes_now)
        done = place.cove("steps")
        assert done.code == 1 and f"the record of this sandbox is broken: {says}" in done.errors, (says, done)
        found = json.loads(place.cove("steps", "--json").out)
        assert found["chain"]["broken"]["says"].startswith(says), found
        assert "sh -c" in done.text, "what is there is still shown"
    (folder / "trace.jsonl").write_bytes(whole.replace(b"make", b"fake"))
    equal([row.split()[0] for row in place.cove("steps").text.splitlines()[1:]], ["1?", "2?", "3?"])


@test
def what_the_page_says_verifies_what_we_write(place):
    """The script of docs/trace.md, on a whole trace, a torn one that went on, and a changed one."""
    folder = sandbox(place)
    page = (ROOT / "docs/trace.md").read_text()
    script = re.search(r"(    #!/usr/bin/python3\n(?:    .*\n|\n)+)", page).group(1).replace("\n    ", "\n")[4:]
    trace = example(folder)

    def verify():
        return subprocess.run([sys.executable, "-", trace.file], input=script.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(verify().stdout.decode(), f"8 records {trace.prev}\n")
    record = trace.file.read_bytes().splitlines()[-1]
    with open(trace.file, "ab") as file:
        file.write(b'{"torn\n\0half\n')
    trace.prev = hashlib.sha256(record + b'\n{"torn\n\0half').hexdigest()
    trace.add("gap", {"torn": 12, "why": "torn"})
    equal(verify().stdout.decode(), f"9 records {trace.prev}\n")
    found = json.loads(place.cove("steps", "--json").out)["chain"]
    equal((found["broken"], found["torn"], found["hash"]), (None, 12, trace.prev), "and so do we")
    write(trace.file, trace.file.read_bytes().replace(b"half", b"hole"))
    equal((verify().returncode, verify().stderr), (1, b"line 11 does not continue what stands before it\n"))
    equal(place.cove("steps").code, 1)

# cove logs


@test
def output_is_exact_in_pipes_and_by_stream(place):
    folder = sandbox(place)
    trace = example(folder)
    output(folder, "1.0", head(1), chunk(1, b"one\n"))
    output(folder, "3.0", head(3), chunk(1, b"out \x1b]0;title\x07\xff\0\n"), chunk(2, b"err\n"), chunk(1, b"more"))
    done = place.cove("logs")
    equal((done.code, done.out, done.err), (0, b"out \x1b]0;title\x07\xff\0\nmore", b"err\n"), "the last step")
    equal(place.cove("logs", "--step", "1", "it").out, b"one\n")
    equal(place.cove("logs", "--step", "2").out, b"", "it wrote nothing")
    one_error(place.cove("logs", "--step", "4"), "there is no step 4")
    one_error(place.cove("logs", "--step", "x"), "no number of a step")
    write(trace.file, trace.file.read_bytes().replace(b"make", b"fake"))
    done = place.cove("logs", "--step", "1")
    assert done.code == 0 and done.out == b"one\n" and "is broken" in done.errors, done


@test
def on_a_terminal_output_only_shows(place):
    folder = sandbox(place)
    example(folder)
    output(folder, "3.0", head(3), chunk(1, b"a\x1b]0;ti"), chunk(1, b"tle\x07b\x1b[31mred\x1b[0m\x1b]52;c;eA==\x07 \x9b5n"),
           chunk(2, b"\x1b[5;6;7t\x05c"))
    for words in (("logs",), ("logs", "--timestamps")):
        code, out = on_terminal(place, *words)
        equal(code, 0)
        assert b"b\x1b[31mred\x1b[0m" in out, out
        for evil in (b"title", b"]52;", b"\x9b", b"\x05", b"7t"):
            assert evil not in out, (evil, out)


@test
def times_stand_before_lines_and_in_json(place):
    folder = sandbox(place)
    example(folder)
    output(folder, "3.0", head(3), chunk(1, b"on", 1500), chunk(1, b"e\ntwo\n", 2000), chunk(2, b"\xfferr", 3000), chunk(1, b"\0", 4000))
    done = place.cove("logs", "--timestamps")
    equal(done.out, b"2026-01-31T12:00:01.500Z one\n2026-01-31T12:00:02.000Z two\n2026-01-31T12:00:04.000Z \0")
    equal(done.err, b"2026-01-31T12:00:03.000Z \xfferr")
    lines = [json.loads(line) for line in place.cove("logs", "--json").out.splitlines()]
    equal(lines, [{"stream": "stdout", "text": "on", "time": "2026-01-31T12:00:01.500Z"},
                  {"stream": "stdout", "text": "e\ntwo\n", "time": "2026-01-31T12:00:02.000Z"},
                  {"stream": "stderr", "bytes": "/2Vycg==", "time": "2026-01-31T12:00:03.000Z"},
                  {"stream": "stdout", "bytes": "AA==", "time": "2026-01-31T12:00:04.000Z"}])


@test
def what_is_left_out_is_said(place):
    folder = sandbox(place)
    trace = example(folder)
    output(folder, "3.0", head(3), chunk(1, b"first\n"))
    output(folder, "3.2", head(3, 5, (106, 7)), chunk(1, b"fifth\n"))
    output(folder, "3.3", head(3, 6, (112, 7)), chunk(1, b"sixth\n"), chunk(1, b"cut off")[:-3])
    done = place.cove("logs")
    equal((done.code, done.out), (0, b"first\nfifth\nsixth\n"))
    assert "100 bytes of standard output and 7 of standard error are left out" in done.errors, done
    assert "12 bytes of what was kept make no sense" in done.errors, done
    trace.ended(3, stdout_bytes=130)
    assert "12 bytes of standard output and 0 of standard error are left out" in place.cove("logs").errors
    lines = [json.loads(line) for line in place.cove("logs", "--json").out.splitlines()]
    equal([line["left_out"] for line in lines if "left_out" in line], [{"stdout": 100, "stderr": 7}, {"stdout": 12, "stderr": 0}])


def followed(place, folder):
    """cove logs -f that has printed what there is."""
    output(folder, "3.0", head(3), chunk(1, b"first\n"))
    process = start(place, "logs", "-f", "it")
    read_until(process.stdout, b"first\n")
    return process


@test
def following_shows_what_comes_until_the_step_has_ended(place):
    folder = sandbox(place)
    trace = example(folder)
    with keeper(folder):
        process = followed(place, folder)
        try:
            for part in (b"second\n", b"third\n"):
                output(folder, "3.0", chunk(1, part))
                read_until(process.stdout, part)
            output(folder, "3.1", head(3, 1, (19, 0)), chunk(1, b"fourth\n"))
            read_until(process.stdout, b"fourth\n")
            trace.started(4)
            trace.ended(4)
            output(folder, "3.1", chunk(1, b"unfinished")[:-4])
            time.sleep(0.2)
            assert process.poll() is None, "another step's end is not its own"
            output(folder, "3.1", chunk(1, b"unfinished")[-4:])
            trace.ended(3, stdout_bytes=36)
            done = finish(process, 5)
            equal((done.code, done.out, done.err), (0, b"unfinished", b""), done)
        finally:
            stop(process)


@test
def following_ends_with_the_keeper(place):
    folder = sandbox(place)
    example(folder)
    with keeper(folder):
        process = followed(place, folder)
    try:
        equal(finish(process, 5).code, 0)
    finally:
        stop(process)
    equal(place.cove("logs", "-f").out, b"first\n", "nothing runs, so there is nothing to wait for")


@test
def following_begins_before_the_first_byte(place):
    folder = sandbox(place)
    example(folder)
    with keeper(folder):
        process = start(place, "logs", "-f", "it")
        try:
            time.sleep(0.2)
            assert process.poll() is None
            output(folder, "3.0", head(3), chunk(2, b"now\n"))
            read_until(process.stderr, b"now\n")
        finally:
            stop(process)


@test
def trace_and_output_stay_when_a_sandbox_is_tidied_up_and_go_with_it(place):
    folder = sandbox(place)
    example(folder)
    output(folder, "1.0", head(1), chunk(1, b"one\n"))
    (folder / "w0").mkdir()  # as a keeper that was killed leaves it: the next end of a run tidies it up
    equal(place.cove("run", "--rm", "--", "true").code, 0)
    wait_for(lambda: not (folder / "w0").exists(), what="the guard's tidying")
    equal(place.cove("logs", "--step", "1", "it").out, b"one\n")
    equal(place.cove("rm", "it").code, 0)
    assert not folder.exists()


adopt_orphans()
main()
