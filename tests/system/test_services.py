"""Services: programs that a sandbox that stays starts by itself, waits for, and starts again."""
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import finish, nothing_left, one_error, reap, start, wait_for, write  # noqa: E402
from support.staying import execute, good, staying, steps  # noqa: E402

COUNTS = "echo up >>/tmp/log; echo begun; exec sleep 1000"
SLOW = "sleep 0.3; touch /run/up; exec sleep 1000"


def policy(place, *services):
    """A policy file of the owner with these services, each a mapping."""
    path = place.dir / "policy.yaml"
    path.write_text("services:\n" + "".join(f"- {json.dumps(service)}\n" for service in services))
    path.chmod(0o600)
    return "--policy", path


def states(place, ident):
    return json.loads(good(place.cove("show", "--json", ident)).out)["services"]


def running(place, ident, words):
    return execute(place, ident, f"pgrep -fc '{words}'").text.strip()


@test
def a_service_is_ready_before_the_first_command_and_again_after_start_rollback_and_fork(place):
    with staying(place, *policy(place, {"name": "slow", "run": SLOW, "ready": "test -e /run/up"})) as ident:
        equal(states(place, ident), {"slow": "ready"})
        good(execute(place, ident, "test -e /run/up && rm /run/up && echo 1 >one"))
        good(place.cove("stop", ident))
        equal(states(place, ident), {"slow": "stopped"})
        good(place.cove("start", ident))
        good(execute(place, ident, "test -e /run/up && rm /run/up"))
        good(place.cove("rollback", ident, "0"))
        good(execute(place, ident, "test -e /run/up && ! test -e one && rm /run/up"))
        equal(running(place, ident, "^sleep 1000"), "1", "one of it, not two")
        good(place.cove("stop", ident))
        forks = good(place.cove("fork", ident, "-n", "2")).text.split()
        for fork in forks:
            good(execute(place, fork, "test -e /run/up"))
            equal(states(place, fork), {"slow": "ready"})
            good(place.cove("rm", "-f", fork))


@test
def a_command_that_comes_while_services_start_waits_for_them(place):
    with staying(place, *policy(place, {"name": "slow", "run": f"sleep 1; {SLOW}", "ready": "test -e /run/up"})) as ident:
        good(place.cove("stop", ident))
        begun = start(place, "start", ident)
        wait_for(lambda: states(place, ident)["slow"] == "starting", what="the start of the service")
        good(execute(place, ident, "test -e /run/up"))
        equal(finish(begun).code, 0)


@test
def one_without_a_test_is_ready_when_it_has_run_a_moment_and_its_output_is_kept(place):
    with staying(place, "--service", COUNTS) as ident:
        equal(states(place, ident), {"echo": "ready"})
        equal(good(place.cove("logs", "--service", "echo", ident)).text, "begun\n")
        equal(execute(place, ident, "cat /tmp/log").text, "up\n")
        good(place.cove("rollback", ident, "0"))
        equal(execute(place, ident, "cat /tmp/log").text, "up\n", "its own files went back, too")
        equal([row["argv"] for row in steps(place, ident)], [["sh", "-c", "cat /tmp/log"]] * 2, "services are no steps")
        one_error(place.cove("logs", "--service", "other", ident), "no service other")


@test
def services_are_started_in_order_each_when_the_one_before_is_ready(place):
    rows = [{"name": "first", "run": "sleep 0.2; echo a >/run/a; exec sleep 1000", "ready": "test -e /run/a"},
            {"name": "second", "run": "cat /run/a; exec sleep 1000"}]
    with staying(place, *policy(place, *rows)) as ident:
        equal(good(place.cove("logs", "--service", "second", ident)).text, "a\n")


@test
def one_that_ends_or_is_never_ready_is_named_with_its_output_and_the_sandbox_stays(place):
    cases = [({"name": "db", "run": "echo no such file >&2; exit 3"}, "ended before it was ready (exit 3)", "ended (exit 3)", "no such file"),
             ({"name": "db", "run": "echo thinking; exec sleep 1000", "ready": "false", "within": "600ms"}, "was not ready in time", "not ready", "thinking"),
             ({"name": "db", "run": "echo hung; exec sleep 1000", "ready": "sleep 1000", "within": "600ms"}, "was not ready in time", "not ready", "hung")]
    for service, error, state, output in cases:
        done = place.cove("create", *policy(place, service, {"name": "behind", "run": "sleep 1000"}))
        (ident,) = done.text.split()
        try:
            equal((done.code, done.errors.count("\n")), (125, 1), done)
            assert f"service db {error}" in done.errors and output in done.errors, done
            assert done.errors.endswith(f"; all of it: cove logs --service db {ident[:12]}; the sandbox runs without it: look with cove exec {ident[:12]} -- sh, "
                                        f"remove it with cove rm -f {ident[:12]}\n"), done
            equal(states(place, ident), {"db": state, "behind": "waiting"})
            assert f"running, behind waiting, db {state}" in place.cove("ls").text, place.cove("ls")
            good(execute(place, ident, "echo 1 >one"))
            for again in (("stop", ident), ("start", ident)):
                done = place.cove(*again)
            equal(done.code, 125, done)
            equal(good(execute(place, ident, "cat one")).text, "1\n", "its files are safe")
            done = place.cove("rollback", ident, "0")
            equal((done.code, done.errors.count("\n")), (125, 1), done)
            assert f"service db {error}" in done.errors, done
            equal(execute(place, ident, "ls").text, "", "and it was rolled back")
            good(place.cove("stop", ident))
            done = place.cove("fork", ident)
            equal(done.code, 125, done)
            good(place.cove("rm", "-f", *done.text.split()))
        finally:
            place.cove("rm", "-f", ident)
            reap()


@test
def what_dies_later_is_told_truthfully(place):
    with staying(place, "--service", "exec sleep 1000") as ident:
        good(execute(place, ident, "pkill -KILL -x sleep"))
        wait_for(lambda: states(place, ident) == {"exec": "ended (signal 9)"}, what="the end of the service on record")
        assert "exec ended (signal 9)" in place.cove("ls").text, place.cove("ls")
        lines = [json.loads(line) for line in (place.state / "sandboxes" / ident / "trace.jsonl").read_text().splitlines()]
        equal([line["kind"] for line in lines if line["kind"].startswith("service.")],
              ["service.started", "service.ready", "service.ended"])
        good(place.cove("rollback", ident, "0"))
        equal(states(place, ident), {"exec": "ready"}, "a rollback brings it up again")


@test
def a_keeper_that_is_killed_leaves_no_service_that_seems_to_run(place):
    with staying(place, "--service", "exec sleep 1000") as ident:
        os.kill(json.loads((place.state / "sandboxes" / ident / "record.json").read_text())["keeper"], signal.SIGKILL)
        wait_for(lambda: states(place, ident) == {"exec": "stopped"}, what="the end of the keeper on record")


@test
def stopping_pausing_and_a_second_rollback_do_not_wait_for_services(place):
    begun = start(place, "create", "--name", "slow", *policy(place, {"name": "slow", "run": "exec sleep 1000", "ready": "test -e /tmp/go", "within": "40s"}))
    wait_for(lambda: b"starting" in place.cove("ls", "--json").out, what="the start of the service")
    good(place.cove("pause", "slow"))
    time.sleep(0.2)
    good(place.cove("resume", "slow"))
    waiting = start(place, "exec", "slow", "--", "true")
    time.sleep(0.2)
    turned = start(place, "rollback", "slow", "0")
    time.sleep(0.2)
    good(place.cove("stop", "--timeout", "1", "slow"))
    for process in (begun, waiting, turned):
        done = finish(process)
        assert done.code != 0 and done.errors.count("\n") == 1, done
    good(place.cove("rm", "slow"))
    nothing_left(place)


@test
def services_do_not_keep_a_sandbox_from_being_idle(place):
    done = place.cove("create", "--service", "exec sleep 1000", "--idle", "1s", "--then", "remove")
    equal(done.code, 0, done)
    wait_for(lambda: place.cove("ls", "-q").text == "", what="the end of a sandbox that nobody uses")
    reap()
    nothing_left(place)


@test
def a_service_is_as_contained_as_any_command(place):
    with staying(place, "--service", "grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status; exec sleep 1000") as ident:
        of_service = good(place.cove("logs", "--service", "grep", ident)).text
        of_command = good(execute(place, ident, "grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status")).text
        equal(of_service, of_command)
        assert "Seccomp:\t2" in of_service and "NoNewPrivs:\t1" in of_service, of_service


@test
def what_a_service_writes_is_bounded_and_cannot_hold_up_its_keeper(place):
    with staying(place, "--service", "exec yes") as ident:
        good(execute(place, ident, "sleep 1"))
        kept = sum(f.stat().st_size for f in (place.state / "sandboxes" / ident / "output").iterdir())
        assert kept < 6 << 20, kept
        begun = time.monotonic()
        good(execute(place, ident, "true"))
        assert time.monotonic() - begun < 5, "another command went through"


@test
def a_repository_starts_nothing_and_a_run_has_no_services(place):
    write(place.work / "cove.yaml", "wishes:\n  services: [{run: touch /tmp/started}]\n")
    with staying(place) as ident:
        equal(states(place, ident), {})
        equal(execute(place, ident, "test -e /tmp/started").code, 1)
    write(place.work / "cove.yaml", "policy:\n  services: [a]\n")
    one_error(place.cove("create"), "services", code=125)
    (place.work / "cove.yaml").unlink()
    one_error(place.cove("run", "--service", "true", "--", "true"), "--service", code=125)
    equal(place.run("pgrep", "-c", "sleep", options=policy(place, {"run": "exec sleep 1000"})).text, "0\n")


if __name__ == "__main__":
    main()
