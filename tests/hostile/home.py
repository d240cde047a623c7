"""What the groups OVL and RTH share: a sandbox that is kept, and bringing home what it did."""
import json
import os
import pathlib
import subprocess

from attack import equal
from support.running import descendants, wait_for, write  # noqa: F401


def leave(place, script, *options, **kwargs):
    """A kept sandbox in which a script ran."""
    done = place.cove("run", "-q", *options, "--", "sh", "-ec", script, **kwargs)
    equal(done.code, 0, done)
    wait_for(lambda: not descendants(), seconds=10, what="the end of all guards")
    return done


def changes(place, *words):
    """Path -> change, as `cove diff --json` has it."""
    done = place.cove("diff", "--json", *words)
    equal(done.code, 0, done)
    return {str(change["path"]): change for change in json.loads(done.out)["changes"]}  # a path that is no UTF-8 is no string


def outcome(done):
    """Path -> what `cove apply` says became of it."""
    found = {}
    for line in done.text.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("done", "same", "left", "CONFLICT", "REFUSED", "FAILED"):
            for end in (" (", " [", ": ", " <- "):
                rest = rest.partition(end)[0]
            found[rest.strip()] = word
    return found


def apply(place, *options, **kwargs):
    done = place.cove("apply", "--yes", *options, **kwargs)
    assert done.code in (0, 1), done
    return outcome(done)


def layer(place):
    """The upper directory of the workspace of the newest sandbox, as only tests look at it."""
    records = sorted(place.state.glob("sandboxes/*/record.json"), key=lambda file: json.loads(file.read_text())["created"])
    record = json.loads(records[-1].read_text())
    number = next(entry["layer"] for entry in record["layers"] if entry["why"] == "workspace")
    return records[-1].parent / f"u{number}"


def names_below(top):
    return sorted(str(path.relative_to(top)) for path in pathlib.Path(top).rglob("*"))


def trap(place, path, mode=0o755):
    """A program that leaves a mark on the host when it runs."""
    return write(path, f"#!/bin/sh\necho sprung >>{place.dir}/sprung\n", mode)


def sprung(place):
    """True if a trap went off; then it is set again."""
    mark = place.dir / "sprung"
    found = mark.exists()
    if found:
        mark.unlink()
    return found


def on_host(place, *words, cwd=None, path=None):
    environ = dict(place.env, GIT_CONFIG_NOSYSTEM="1", **({"PATH": path} if path else {}))
    return subprocess.run([*map(os.fsencode, map(str, words))], cwd=cwd or place.work, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
