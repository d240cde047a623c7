"""For tests of sandboxes that stay."""
import contextlib
import json
import os

from support.harness import equal
from support.running import descendants, nothing_left, reap, wait_for


@contextlib.contextmanager
def staying(place, *options, **kwargs):
    """The id of a sandbox that stays; afterwards it is gone."""
    done = place.cove("create", *options, **kwargs)
    equal((done.code, done.err), (0, b""), done)
    (ident,) = done.text.split()
    try:
        yield ident
    finally:
        place.cove("rm", "-f", ident)
        reap()
    nothing_left(place)


def layers(place):
    found = place.state / "layers"
    return sorted(os.listdir(found)) if found.exists() else []


@contextlib.contextmanager
def staying_alone(place, *options):
    """The same of the only one there is: afterwards no layer is left either."""
    with staying(place, *options) as ident:
        yield ident
    wait_for(lambda: not layers(place), what="the end of its layers")


def execute(place, ident, script, *options, **kwargs):
    return place.cove("exec", *options, ident, "--", "sh", "-c", script, **kwargs)


def state(place, ident):
    (found,) = [row for row in json.loads(place.cove("ls", "--json").out) if row["id"] == ident]
    return found["state"]


def keeper(place, ident):
    return json.loads((place.state / "sandboxes" / ident / "record.json").read_text())["keeper"]


def inside_pid(pid):
    return open(f"/proc/{pid}/status").read().split("NSpid:")[1].splitlines()[0].split()[-1]


def pid_1(place, ident):
    """Its PID 1, as the host numbers it."""
    for pid in descendants(keeper(place, ident)):
        with contextlib.suppress(OSError, IndexError):  # others come and go
            if inside_pid(pid) == "1":
                return pid
    raise AssertionError("it has no PID 1")


def good(done):
    equal((done.code, done.err), (0, b""), done)
    return done


def requested(place, ident):
    """What its trace says of requests, one after the other."""
    lines = map(json.loads, (place.state / "sandboxes" / ident / "trace.jsonl").read_text().splitlines())
    return [line["data"] for line in lines if line["kind"] == "request"]


def let_through_to(place, ident):
    """The hosts, by its trace."""
    return {request["host"] for request in requested(place, ident) if request["verdict"] == "allow"}


def steps(place, ident):
    return json.loads(place.cove("steps", "--json", ident).out)["steps"]
