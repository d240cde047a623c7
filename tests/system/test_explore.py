"""cove explore: many tries from one state, their scores, the queue, and that nothing of it is left."""
import contextlib
import json
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, digest, finish, nothing_left, on_terminal, one_error, reap, start, wait_for, write  # noqa: E402

BASE = "base"


def layers(place):
    found = place.state / "layers"
    return sorted(os.listdir(found)) if found.exists() else []


@contextlib.contextmanager
def base(place, *options, prepare=None):
    """A sandbox to fork; afterwards, when it is gone as well, nothing is left, whatever was explored."""
    done = place.cove("create", "--name", BASE, *options)
    equal((done.code, done.err), (0, b""), done)
    if prepare:
        equal(place.cove("exec", BASE, "--", "sh", "-c", prepare).code, 0, "what is prepared")
    try:
        yield done.text.strip()
    finally:
        place.cove("rm", "-f", BASE)
        reap()
    nothing_left(place)
    wait_for(lambda: not layers(place), what="the end of the layers")
    for folder in ("snapshots", "explore"):
        found = place.state / folder
        equal(sorted(os.listdir(found)) if found.exists() else [], [], folder)


def explore(place, script, *options, code=0, **kwargs):
    """What it found, as JSON."""
    done = place.cove("explore", "--json", *options, BASE, "--", "sh", "-c", script, **kwargs)
    equal((done.code, done.err), (code, b""), done)
    return json.loads(done.out)


def ids(place):
    return sorted(row["id"] for row in json.loads(place.cove("ls", "--json").out))


def running(place):
    return [row["id"] for row in json.loads(place.cove("ls", "--json").out) if row["state"] == "running" and row.get("name") != BASE]


def remove(place, *names):
    done = place.cove("rm", "-f", *names)
    equal(done.code, 0, done)


def order(found):
    return [row["try"] for row in found["tries"]]


def lines(path):
    return path.read_bytes().splitlines(keepends=True)


# Ranking


@test
def the_best_try_stays_and_the_rest_goes(place):
    write(place.work / "file", "old\n")
    before = digest(place.work)
    with base(place) as ident:
        found = explore(place, "seq $COVE_TRY >out", "-n", "5", "-j", "3", "--score", "wc -l <out", "--name", "won")
        equal([(row["try"], row["score"], row["exit"], row["added"]) for row in found["tries"]],
              [(5, 5, 0, 5), (4, 4, 0, 4), (3, 3, 0, 3), (2, 2, 0, 2), (1, 1, 0, 1)])
        equal(ids(place), sorted([ident, found["best"]]), "what is there")
        equal(place.cove("diff", "--name-only", "won").text, "out\n")
        equal(digest(place.work), before, "the host's own files")
        equal(place.cove("apply", "-y", "won").code, 0)
        equal((place.work / "out").read_text(), "1\n2\n3\n4\n5\n")
        remove(place, "won")


@test
def of_equals_the_smaller_change_wins_and_then_the_earlier(place):
    with base(place):
        found = explore(place, 'case $COVE_TRY in 1) seq 9;; 2|3) seq 2;; 4) seq 5;; esac >out', "-n", "4", "--keep", "none", "--score", "true")
        equal(order(found), [2, 3, 4, 1])
        equal([row["kept"] for row in found["tries"]], [False] * 4)
        equal(found["best"], None)


@test
def without_a_score_the_exit_code_is_one(place):
    with base(place):
        found = explore(place, "exit $(test $COVE_TRY = 2; echo $?)", "-n", "3")
        equal([(row["try"], row["score"], row["exit"]) for row in found["tries"]], [(2, 1, 0), (1, 0, 1), (3, 0, 1)])
        remove(place, found["best"])
        found = explore(place, "exit 3", "-n", "2", code=1)
        equal((found["best"], order(found)), (None, [1, 2]), "none was good")


@test
def a_number_counts_only_if_it_is_the_whole_last_line(place):
    rows = {"echo 2; echo 0.5": 0.5, "echo -1e2": -100, "echo 3; exit 7": 3, "echo 3; echo": 3, "echo done 3": 1, "echo 0x10": 1, "echo nan; false": 0,
            "echo 5 >&2; false": 0, "echo 1e999": 1, "printf '  7 \\n'": 7}
    for script, wanted in rows.items():
        write(place.work / f"s/{len(list((place.work / 's').glob('*'))) if (place.work / 's').exists() else 0}", script + "\n")
    with base(place):
        found = explore(place, "true", "-n", str(len(rows)), "--keep", "none", "--score", "sh s/$((COVE_TRY-1))")
        got = {row["try"]: row["score"] for row in found["tries"]}
        equal([got[i + 1] for i in range(len(rows))], list(rows.values()))
        equal(order(found)[0], list(rows.values()).index(7) + 1)
        assert order(found)[-2:] == [7, 8], found  # failed, where only success counts


@test
def the_table_says_what_to_do_next(place):
    with base(place):
        done = place.cove("explore", "-n", "2", "--", "sh", "-c", "echo $COVE_TRY >f; exit $((COVE_TRY-1))")
        equal((done.code, done.err), (0, b""), done)
        heads, first, second, _, best, diff, apply = done.text.splitlines()
        equal(heads.split(), ["TRY", "SCORE", "EXIT", "TIME", "CHANGES", "REMARKS", "ID"])
        equal((first.split()[:3], second.split()[:3]), (["1", "1", "0"], ["2", "0", "1"]))
        ident = diff.split()[-1]
        assert first.split()[-1].startswith(ident) and second.split()[-1] == "-", done
        equal((best, diff.split()[:2], apply.split()), ("best: try 1", ["cove", "diff"], ["cove", "apply", ident]))
        assert b"+1" in place.cove("diff", ident).out
        code, out = on_terminal(place, "explore", "-n", "2", "--keep", "none", BASE, "--", "sleep", "0.3")
        assert code == 0 and b"exploring: 0 of 2 done" in out and b"SCORE" in out, out
        remove(place, ident)


@test
def what_each_try_changed_can_be_had_also_of_those_that_went(place):
    write(place.work / "f", "old\n")
    write(place.work / ".gitignore", "*.o\n")
    place.work.joinpath(".git").mkdir()
    write(place.work / ".git/HEAD", "ref: refs/heads/main\n")
    with base(place):
        found = explore(place, "echo $COVE_TRY >>f; seq 100 >x.o; rm -f .gitignore.not", "-n", "2", "--keep", "none", "--diffs", place.dir / "diffs")
        equal([(row["files"], row["added"], row["removed"]) for row in found["tries"]], [(1, 1, 0)] * 2, "without what git ignores")
        for number in (1, 2):
            patch = (place.dir / f"diffs/{number}.patch").read_text()
            assert f"+{number}\n" in patch and "x.o" not in patch and "a/f" in patch, patch


@test
def keep_all_keeps_all(place):
    with base(place) as ident:
        found = explore(place, "echo $COVE_TRY >f", "-n", "3", "--keep", "all")
        equal(ids(place), sorted([ident] + [row["id"] for row in found["tries"]]))
        for row in found["tries"]:
            equal(place.cove("exec", row["id"], "--", "true").code, 125, "they have stopped")
            remove(place, row["id"])


@test
def tries_that_failed_stay_too_if_all_are_kept(place):
    with base(place) as ident:
        done = place.cove("explore", BASE, "-n", "2", "--", "sh", "-c", "echo why >f; exit 3")
        equal((done.code, "--keep all" in done.text, ids(place)), (1, True, [ident]), done)
        done = place.cove("explore", BASE, "-n", "2", "--keep", "all", "--", "sh", "-c", "echo why >f; exit 3")
        equal((done.code, "--keep all" in done.text, len(ids(place))), (1, False, 3), done)
        for left in set(ids(place)) - {ident}:
            assert "+why" in place.cove("diff", left).text, "what it left"
            remove(place, left)


@test
def a_step_and_a_snapshot_can_be_explored_and_a_running_sandbox_goes_on(place):
    with base(place, prepare="echo 1 >f") as ident:
        equal(place.cove("exec", BASE, "--", "sh", "-c", "echo 2 >f").code, 0)
        equal(place.cove("snapshot", BASE, "--name", "two").code, 0)
        for source, wanted in ((f"{ident}@1", "1"), ("two", "2"), (BASE, "2")):
            done = place.cove("explore", "--json", "--keep", "none", source, "--", "cat", "f")
            equal(json.loads(done.out)["tries"][0]["output"], [wanted], done)
        equal(place.cove("exec", BASE, "--", "cat", "f").text, "2\n")
        equal(place.cove("snapshot", "rm", "two").code, 0)


@test
def tries_on_a_copy_do_not_see_what_the_owner_does_meanwhile(place):
    write(place.work / "f", "old\n")
    write(place.work / "tests/score.sh", "cat f | wc -l\n")
    with base(place, "--workspace", "copy"):
        write(place.work / "f", "new\nnew\n")
        found = explore(place, "cat f; seq $COVE_TRY >>f; echo 'echo 99' >tests/score.sh", "-n", "2", "--keep", "none", "--score", "sh tests/score.sh", "--score-files", "tests")
        equal([(row["try"], row["score"], row["output"], row["tampered"]) for row in found["tries"]], [(2, 3, ["old"], ["tests/score.sh"]), (1, 2, ["old"], ["tests/score.sh"])])


@test
def mistakes_are_told_before_anything_is_made(place):
    write(place.work / "t.jsonl", '{"a":1}\n[2]\n')
    (place.work / "link").symlink_to("/etc")
    rows = [(("base",), "needs a command"), (("-n", "0", "base", "--", "true"), "--count"), (("-j", "x", "base", "--", "true"), "--jobs"),
            (("--keep", "some", "base", "--", "true"), "--keep"), (("--score-files", "x", "base", "--", "true"), "--score"),
            (("--score", "x", "--score-files", "/etc/hostname", "base", "--", "true"), "workspace"), (("--score", "x", "--score-files", ".", "base", "--", "true"), "workspace"),
            (("--score", "x", "--score-files", "link/passwd", "base", "--", "true"), "link"), (("--score", "x", "--score-files", "test", "base", "--", "true"), "--score-files :test"),
            (("--score", "x", "--score-files", ":/etc/hostname", "base", "--", "true"), "workspace"), (("--score", "x", "--score-files", ":", "base", "--", "true"), "workspace"),
            (("--each", "t.jsonl", "base", "--", "true"), "line 2"), (("--each", "none", "base", "--", "true"), "none"), (("--name", "A B", "base", "--", "true"), "--name"), (("--name", "base", "base", "--", "true"), "has it already")]
    with base(place) as ident:
        for words, wanted in rows:
            one_error(place.cove("explore", *words), wanted)
        one_error(place.cove("explore", "nobody", "--", "true"), "nobody")
        equal(ids(place), [ident])


# The queue


@test
def fifty_tasks_go_through_the_queue(place):
    write(place.work / "tasks.jsonl", "".join(json.dumps({"id": f"t{i}", "n": i, "words": [1], "odd-key": 1, "text": "a\nb \u00fc"}) + "\n\n" for i in range(50)))
    results = place.dir / "results.jsonl"
    with base(place) as ident:
        found = explore(place, 'test "$COVE_TASK_TEXT" = "$(printf "a\\nb \\303\\274")" && echo "$COVE_TASK $COVE_TASK_ID $COVE_TASK_N $COVE_TRY"', "--each", "tasks.jsonl", "-j", "4", "--results", results)
        equal([(row["task"], row["try"], row["output"], row["score"]) for row in found["tries"]], [(i + 1, 1, [f"{i + 1} t{i} {i} 1"], 1) for i in range(50)])
        equal(ids(place), [ident])
        rows = [json.loads(line) for line in lines(results)]
        equal((rows[0]["explore"], sorted(row["task"] for row in rows[1:])), (1, list(range(1, 51))))


@test
def each_task_has_a_winner_if_they_are_kept(place):
    write(place.work / "tasks.jsonl", '{"want":2}\n{"want":3}\n')
    with base(place) as ident:
        found = explore(place, 'test $COVE_TRY = $COVE_TASK_WANT', "--each", "tasks.jsonl", "-n", "3", "--keep", "winner", "--name", "best")
        equal([(row["task"], row["try"]) for row in found["tries"] if row["kept"]], [(1, 2), (2, 3)])
        equal(len(ids(place)), 3)
        remove(place, "best-1", "best-2")
        equal(ids(place), [ident])


def killed(place, words, after, results):
    process = start(place, *words)
    wait_for(lambda: results.exists() and len(lines(results)) > after, seconds=20, what="a few results")
    process.kill()
    process.communicate()
    return lines(results)


@test
def after_a_kill_the_same_command_goes_on(place):
    results = place.dir / "results.jsonl"
    words = ["explore", "-q", "-n", "10", "-j", "3", "--json", "--results", str(results), "--score", "cat out", BASE, "--", "sh", "-c", "echo $((COVE_TRY % 4)) >out; sleep 0.1"]
    with base(place) as ident:
        known = killed(place, words, 2, results)
        with open(results, "ab") as file:
            file.write(b'{"try":9,"reas')  # as a kill in the middle of a write leaves it
        again = killed(place, words, len(known) + 1, results)
        equal(again[:len(known)], known, "lines that were there")
        done = place.cove(*words)
        equal((done.code, done.err), (0, b""), done)
        equal(lines(results)[:len(again)], again, "lines that were there")
        found = json.loads(done.out)
        equal((order(found), len(lines(results))), ([3, 7, 2, 6, 10, 1, 5, 9, 4, 8], 11))
        equal(ids(place), sorted([ident, found["best"]]))
        equal(place.cove("diff", "--stat", found["best"]).code, 0)
        mine = json.loads(place.cove(*words).out)
        equal((order(mine), mine["best"]), (order(found), found["best"]), "once more, and nothing is done")
        one_error(place.cove(*words[:-1], "other"), "another command")
        remove(place, found["best"])


@test
def results_from_another_state_are_not_mixed(place):
    results = place.dir / "results.jsonl"
    with base(place):
        explore(place, "true", "--keep", "none", "--results", results)
        equal(place.cove("exec", BASE, "--", "sh", "-c", "echo x >x").code, 0)
        one_error(place.cove("explore", "-n", "2", "--results", results, BASE, "--", "sh", "-c", "true"), "another state")


@test
def what_a_killed_one_left_goes_with_the_next(place):
    with base(place) as ident:
        process = start(place, "explore", "-n", "4", "-j", "4", BASE, "--", "sleep", "1000")
        wait_for(lambda: len(running(place)) >= 2, seconds=20, what="tries")
        process.kill()
        process.communicate()
        assert len(ids(place)) > 1
        explore(place, "true", "--keep", "none")
        equal(ids(place), [ident])


@test
def two_cannot_work_on_the_same_results(place):
    results = place.dir / "results.jsonl"
    words = ["explore", "--keep", "none", "--results", str(results), BASE, "--", "sleep", "1000"]
    with base(place):
        process = start(place, *words)
        wait_for(lambda: running(place), seconds=20, what="a try")
        one_error(place.cove(*words), "at work")
        process.send_signal(signal.SIGTERM)
        equal(finish(process).code, 143)


@test
def an_interrupt_cleans_up_and_says_what_is_there(place):
    results = place.dir / "results.jsonl"
    words = ["explore", "-n", "6", "-j", "2", "--results", str(results), BASE, "--", "sh", "-c", "trap '' INT TERM HUP; test $COVE_TRY = 1 || sleep 1000"]
    with base(place) as ident:
        process = start(place, *words)
        wait_for(lambda: results.exists() and len(lines(results)) > 1 and len(running(place)) == 2, seconds=20, what="tries")
        process.send_signal(signal.SIGINT)
        done = finish(process)
        equal(done.code, 130, done)
        assert "after 1 tries" in done.errors and "goes on" in done.errors and done.text.startswith("TRY"), done
        (kept,) = set(ids(place)) - {ident}
        assert done.text.splitlines()[1].endswith(kept), done
        remove(place, kept)


@test
def no_more_run_at_once_than_asked_for(place):
    with base(place):
        process = start(place, "explore", "-n", "6", "-j", "2", "--keep", "none", BASE, "--", "sleep", "0.5")
        most = 0
        while process.poll() is None:
            most = max(most, len(running(place)))
            time.sleep(0.02)
        equal((finish(process).code, most), (0, 2))


@test
def no_more_run_at_once_than_memory_admits(place):
    free = int(re.search(r"MemAvailable: +(\d+)", open("/proc/meminfo").read())[1])
    for limit, least, most in ((free * 7 // 10, 1, 1), (64 << 10, 2, 4)):  # the second shows that the first is no accident
        with base(place, "--memory", f"{limit}K"):
            process = start(place, "explore", "-n", "4", "-j", "4", "--keep", "none", BASE, "--", "sleep", "0.7")
            seen = 0
            while process.poll() is None:
                seen = max(seen, len(running(place)))
                time.sleep(0.02)
            equal(finish(process).code, 0)
            assert least <= seen <= most, (limit, seen)


@test
def tries_have_limits_and_what_reaches_them_is_told(place):
    with base(place, "--disk", "20M"):
        found = explore(place, "case $COVE_TRY in 1) head -c 60M /dev/zero >big; sleep 1000;; 2) sleep 1000;; 3) echo ok >f;; esac", "-n", "3", "--timeout", "5s", "--keep", "none", "--score", "cat f && echo 1")
        rows = {row["try"]: row for row in found["tries"]}
        equal({number: row["reason"] for number, row in rows.items()}, {1: "limit", 2: "timed-out", 3: "exited"})
        equal((order(found)[0], rows[2]["exit"], rows[3]["score"]), (3, 124, 1))


@test
def a_try_that_fails_is_begun_again_as_often_as_asked(place):
    with base(place):
        found = explore(place, "exit 4", "--retries", "2", code=1)
        equal([(row["attempts"], row["exit"]) for row in found["tries"]], [(3, 4)])
        equal(explore(place, "exit 4", code=1)["tries"][0]["attempts"], 1)


@test
def a_command_has_the_signals_of_any_other(place):
    with base(place):
        found = explore(place, "grep -E 'Sig(Ign|Blk)' /proc/self/status", "--keep", "none", "--score", "grep -E 'Sig(Ign|Blk)' /proc/self/status")
        row = found["tries"][0]
        wanted = place.cove("exec", BASE, "--", "grep", "-E", "Sig(Ign|Blk)", "/proc/self/status").text.split()
        equal((" ".join(row["output"]).replace("\\x09", " ").split(), " ".join(row["score_output"]).replace("\\x09", " ").split()), (wanted, wanted))


@test
def a_try_whose_process_dies_is_begun_again(place):
    with base(place):
        process = start(place, "explore", "--json", "--keep", "none", BASE, "--", "sleep", "1")
        wait_for(lambda: running(place), seconds=20, what="the try")
        (child,) = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
        os.kill(int(child), signal.SIGKILL)
        done = finish(process)
        equal((done.code, [(row["attempts"], row["exit"]) for row in json.loads(done.out)["tries"]]), (0, [(2, 0)]), done)


# Scores

SCORE = "sh tests/score.sh"


def project(place):
    """The work is to write 5 lines of `good`; the score counts them."""
    write(place.work / "work", "todo\n")
    write(place.work / "tests/score.sh", ". tests/lib/count.sh\ncount\n")
    write(place.work / "tests/lib/count.sh", "count() { if [ -e extra.sh ]; then . ./extra.sh; fi; grep -c good work || :; }\n")


HONEST = "printf 'good\\ngood\\n' >work"
CHEATS = {
    "the test itself": "echo 'echo 1000' >tests/score.sh",
    "what it includes": "echo 'count() { echo 1000; }' >tests/lib/count.sh",
    "a directory that is a link": "rm -rf tests; mkdir -p /tmp/t/lib; echo 'echo 1000' >/tmp/t/score.sh; ln -s /tmp/t tests",
    "a file that is a link out": "echo 'echo 1000' >/tmp/s; ln -sf /tmp/s tests/score.sh",
    "a file in the place of a directory": "rm -rf tests/lib; echo 'echo 1000' >tests/lib; echo 'echo 1000' >tests/score.sh",
    "a file beside that did not exist": "echo 'count() { :; }; grep() { echo 1000; }' >extra.sh",
    "directories that cannot be entered": "echo 'echo 1000' >tests/score.sh; chmod 0 tests/lib",
}


@test
def a_try_cannot_win_by_changing_what_decides(place):
    project(place)
    for what, cheat in CHEATS.items():
        script = f"if [ $COVE_TRY = 1 ]; then {HONEST}; else {cheat}; fi; echo 1000000"
        options = ("-n", "2", "--keep", "none", "--score", SCORE, "--score-files", "tests", "--score-files", ":extra.sh")
        with base(place):
            found = explore(place, script, *options)
            equal((order(found), found["tries"][0]["score"]), ([1, 2], 2), what)
            assert found["tries"][1]["score"] in (0, None) and found["tries"][1]["tampered"] and not found["tries"][0]["tampered"], (what, found)
            fooled = explore(place, script, *options, without="score-files")
            equal((order(fooled), fooled["tries"][0]["score"]), ([2, 1], 1000), f"control arm: {what}")


@test
def what_a_try_puts_into_its_home_or_path_does_not_judge_it(place):
    project(place)
    write(place.work / "judge.py", "print(open('work').read().count('good'))\n")
    path = f"{place.work}/bin:/usr/local/bin:/usr/bin:/bin"
    cheats = {"an interpreter": "mkdir bin; printf '#!/bin/sh\\necho 1000\\n' >bin/python3; chmod +x bin/python3",
              "a line that python runs": "d=$(python3 -c 'import site; print(site.getusersitepackages())'); mkdir -p $d; echo 'import os; print(1000, flush=True); os._exit(0)' >$d/x.pth"}
    for what, cheat in cheats.items():
        script = f"if [ $COVE_TRY = 1 ]; then {HONEST}; else {cheat}; fi"
        options = ("-n", "2", "--keep", "none", "--score", "python3 judge.py", "--score-files", "judge.py")
        with base(place, "-e", f"PATH={path}"):
            found = explore(place, script, *options)
            equal([(row["try"], row["score"]) for row in found["tries"]], [(1, 2), (2, 0)], what)
            fooled = explore(place, script, *options, without="score-place")
            equal((order(fooled), fooled["tries"][0]["score"]), ([2, 1], 1000), f"control arm: {what}")


@test
def the_score_s_files_are_read_only_and_hidden_ones_are_not_seen_before(place):
    project(place)
    write(place.dir / "secret/hidden.sh", "echo 3\n")
    score = "echo 'echo 9' >tests/score.sh || rm tests/score.sh || mv tests t || rm -f hidden/hidden.sh; sh hidden/hidden.sh"
    with base(place):
        found = explore(place, f"cat {place.dir}/secret/hidden.sh; ls hidden; find / -name hidden.sh 2>/dev/null; {HONEST}", "--keep", "none", "--score", score, "--score-files", "tests", "--score-files", f"{place.dir}/secret:hidden")
        row = found["tries"][0]
        equal((row["score"], row["tampered"]), (3, []), row)
        assert not any(line.endswith("hidden.sh") and line.startswith("/") for line in row["output"]), row
        assert any("Read-only" in line for line in row["score_output"]), row
        equal((place.work / "tests/score.sh").read_text(), ". tests/lib/count.sh\ncount\n")


@test
def nothing_of_the_try_runs_when_it_is_scored(place):
    project(place)
    live = "cd /; (while :; do date +%s%N >/dev/shm/beat; date +%s%N >/tmp/beat; sleep 0.02; done) </dev/null >/dev/null 2>&1 &"
    with base(place):
        score = "a=$(cat /tmp/beat); sleep 0.3; b=$(cat /tmp/beat); test ! -e /dev/shm/beat && test \"$a\" = \"$b\" && ls /proc | grep -c '^[0-9]' >&2"
        found = explore(place, f"{live} sleep 0.2", "--keep", "none", "--score", score)
        equal(found["tries"][0]["score"], 1, found)
        equal(place.cove("exec", BASE, "--", "sh", "-c", live).code, 0)
        equal(place.cove("exec", BASE, "--", "sh", "-c", score).code, 1, "control arm: in the sandbox itself it does")


@test
def a_score_that_does_not_end_is_none(place):
    with base(place):
        found = explore(place, "test $COVE_TRY = 1 || echo 'sleep 1000' >slow", "-n", "2", "--keep", "none", "--score", "test ! -e slow || . ./slow; echo -5", "--score-timeout", "1s")
        equal([(row["try"], row["score"]) for row in found["tries"]], [(1, -5), (2, None)])
        assert "did not end" in found["tries"][1]["error"], found


@test
def a_policy_that_forbids_the_score_s_files_ends_it(place):
    project(place)
    write(place.dir / "secret/hidden.sh", "echo 3\n")
    with base(place):
        write(place.work / "cove.yaml", "files:\n  read: []\n")
        found = explore(place, HONEST, "--keep", "none", "--score", "echo 5", "--score-files", f"{place.dir}/secret:hidden", code=1)
        equal(found["tries"][0]["score"], None)
        assert "policy" in found["tries"][0]["error"], found


adopt_orphans()
main()
