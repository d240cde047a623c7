"""Steps that a program inside marks by itself, with /run/cove/step."""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import wait_for, write  # noqa: E402
from support.staying import execute, good, staying, steps  # noqa: E402


def marked(place, ident):
    return [row for row in steps(place, ident) if row["inside"]]


@test
def each_command_that_an_agent_runs_through_it_is_a_step_of_its_own(place):
    with staying(place) as ident:
        done = execute(place, ident, "cd /tmp; S=/run/cove/step; $S -- echo 'a b'; $S 'echo $0; exit 3'; echo $?; $S -- sh -c 'kill -9 $$' 2>/dev/null; echo $?; printf given | $S cat; $S -- printf x >&2")
        equal((done.code, done.text, done.errors), (0, "a b\n/bin/bash\n3\n137\ngiven", "x"), "input, output and ends are those of the commands")
        rows = steps(place, ident)
        equal([row["number"] for row in rows], [1, 2, 3, 4, 5, 6])
        equal([row["inside"] for row in rows], [False] + [True] * 5)
        equal([(row["argv"], row["exit"], row["signal"], row["cwd"]) for row in rows[1:4]],
              [(["echo", "a b"], 0, None, "/tmp"), (["echo $0; exit 3"], 3, None, "/tmp"), (["sh", "-c", "kill -9 $$"], 137, 9, "/tmp")])
        assert "exit 3 (said)" in place.cove("steps", ident).text, place.cove("steps", ident)
        good(execute(place, ident, "true"))
        equal([row["number"] for row in steps(place, ident)][-1], 7, "numbers go on")


@test
def it_serves_as_the_prefix_that_agents_take(place):
    """CLAUDE_CODE_SHELL_PREFIX and the like: the shell gets the prefix, and the whole line as one word behind it."""
    with staying(place) as ident:
        line = "cd / && x='it is' && echo \"$x $PWD\" | tr a-z A-Z"
        quoted = line.replace("'", "'\\''")
        equal(good(execute(place, ident, f"export P=/run/cove/step; bash -c \"$P '{quoted}'\"".replace('"$x $PWD"', '\\"\\$x \\$PWD\\"'))).text, "IT IS /\n")
        equal(marked(place, ident)[0]["argv"], [line])
        equal(good(execute(place, ident, "PATH=/run/cove:$PATH; cove step -- echo as a verb; cove step 'echo a line'")).text, "as a verb\na line\n")
        equal([row["argv"] for row in marked(place, ident)[1:]], [["echo", "as", "a", "verb"], ["echo a line"]])


@test
def its_end_is_recorded_before_it_returns_and_a_checkpoint_was_tried(place):
    with staying(place) as ident:
        good(execute(place, ident, "/run/cove/step 'echo 1 >one'; cp /dev/null two"))
        lines = [json.loads(line) for line in (place.state / "sandboxes" / ident / "trace.jsonl").read_text().splitlines()]
        kinds = [(line["kind"], line["data"].get("number", line["data"].get("step"))) for line in lines]
        begun = kinds.index(("step.started", 1))
        equal(kinds[begun:begun + 5], [("step.started", 1), ("step.started", 2), ("step.ended", 2), ("checkpoint", 2), ("step.ended", 1)])


@test
def who_marks_steps_is_told_once_that_files_went_back(place):
    with staying(place) as ident:
        script = "/run/cove/step 'echo 1 >one'; while ! test -e /tmp/go; do sleep 0.05; done; /run/cove/step 'ls' 2>&1; /run/cove/step 'ls' 2>&1"
        (step,) = good(place.cove("exec", "-d", ident, "--", "sh", "-c", script)).text.split()
        wait_for(lambda: any(row.get("checkpoint") for row in marked(place, ident)), what="its checkpoint")
        good(place.cove("undo", ident))
        write(place.dir / "go", "")
        equal(place.cove("cp", place.dir / "go", f"{ident}:/tmp/go").code, 0)
        wait_for(lambda: steps(place, ident)[int(step) - 1]["state"] == "over", what="the end of the agent")
        equal(place.cove("logs", "--step", step, ident).text, "cove: the files went back to before step 2\n")


@test
def one_that_is_killed_says_nothing_of_its_end_and_the_record_says_that(place):
    with staying(place) as ident:
        good(execute(place, ident, "/run/cove/step -- sleep 1000 & p=$!; sleep 0.5; kill -9 $p; pkill -x sleep; wait 2>/dev/null; true"))
        wait_for(lambda: marked(place, ident)[0]["state"] == "over", what="its end")
        equal((marked(place, ident)[0]["reason"], marked(place, ident)[0]["exit"]), ("unsaid", None))
        good(place.cove("exec", "-d", ident, "--", "/run/cove/step", "--", "sleep", "1000"))
        wait_for(lambda: len(marked(place, ident)) == 2, what="a second one")
        good(place.cove("rollback", ident, "0"))
        wait_for(lambda: marked(place, ident)[1]["state"] == "over", what="its end by a rollback")
        good(place.cove("exec", "-d", ident, "--", "/run/cove/step", "--", "sleep", "1000"))
        wait_for(lambda: len(marked(place, ident)) == 3, what="a third one")
        good(place.cove("stop", "--timeout", "10ms", ident))
        equal(marked(place, ident)[2]["state"], "over")
        good(place.cove("start", ident))
        good(execute(place, ident, "/run/cove/step true"))
        equal(marked(place, ident)[3]["exit"], 0, "and it works again")


@test
def signals_reach_the_command_and_end_both(place):
    with staying(place) as ident:
        done = execute(place, ident, "/run/cove/step \"trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done\" & p=$!; sleep 0.7; kill -TERM $p; wait $p; echo $?")
        equal((done.code, done.text), (0, "ready\ngot\n5\n"), done)
        equal(place.cove("exec", "--timeout", "500ms", ident, "--", "/run/cove/step", "sleep 1000").code, 124)
        wait_for(lambda: marked(place, ident)[1]["state"] == "over", what="its end")


@test
def long_commands_are_cut_and_odd_ones_are_shown_inert(place):
    with staying(place) as ident:
        good(execute(place, ident, "/run/cove/step -- true \"$(printf '\\033[2J')\" \"$(head -c 20000 /dev/zero | tr '\\0' x)\" behind"))
        (row,) = marked(place, ident)
        assert row["argv"][0] == "true" and row["argv_left_out"] > 16000 and len(row["argv"][2]) < 4100, row
        assert "\033" not in place.cove("steps", ident).text, "what it says moves no cursor"


@test(judges_time=True)
def every_user_inside_may_mark_and_without_an_answer_the_command_runs_all_the_same(place):
    with staying(place) as ident:
        if os.geteuid() == 0:
            equal(good(execute(place, ident, "/run/cove/step id -u; id -u", "-u", "1000")).text, "1000\n1000\n")
            equal(len(marked(place, ident)), 1)
        before = len(marked(place, ident))
        good(execute(place, ident, "cp /run/cove/step /tmp/step; mv /run/cove /run/gone 2>/dev/null || mv /run/cove/marks /run/cove/x"))
        begun = time.monotonic()
        equal(good(execute(place, ident, "/tmp/step echo runs")).text, "runs\n")
        assert time.monotonic() - begun < 3
        equal(len(marked(place, ident)), before)


@test
def a_run_has_no_such_place_and_starts_as_fast_as_ever(place):
    equal(place.sh("ls /run/cove/").text, "refused\n")


if __name__ == "__main__":
    main()
