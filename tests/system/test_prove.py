"""cove prove: what it says holds, and what it says when a wall is missing."""
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import harness, running  # noqa: E402
from support.harness import IDENTITY, PROBES, ROOT, Result, equal, main, test  # noqa: E402
from support.running import adopt_orphans, digest, nothing_left  # noqa: E402

LAYERS = ["namespaces", "network", "mounts", "landlock", "seccomp", "rights", "terminal", "start", "limits"]

# What even an ordinary user can do without a sandbox, on any kernel we know.
SHOWN_ANYWHERE = {"reads a file of the owner's", "writes to a file of the owner's", "makes something in the workspace, on the host",
                  "makes a directory in the root", "signals a process of the owner's", "reads the environment of a process of the owner's",
                  "reads the memory of a process of the owner's", "traces a process of the owner's", "opens the memory of PID 1 of the sandbox",
                  "connects to an abstract socket of the owner's", "connects to a socket of the owner's in a directory",
                  "connects to a port of the host's loopback", "sends to a port of the host's loopback", "attaches shared memory of the owner's",
                  "reads a message queue of the owner's", "reads a descriptor that was left open", "reads a variable of the owner's environment",
                  "writes to the owner's terminal", "makes sockets of other families", "uses the calls that mount"}


def statement(place, *options, code=0, prefix=(), **kwargs):
    """cove prove --json OPTIONS, read and checked for its form."""
    done = prove(place, "--json", *options, prefix=prefix, **kwargs)
    equal(done.code, code, repr(done))
    return checked(done.text)


def prove(place, *options, prefix=(), without=None, **kwargs):
    if not prefix:
        return place.cove("prove", *options, without=without, **kwargs)
    done = subprocess.run([*map(str, prefix), harness.COVE, "prove", *options], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return Result(done)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def checked(text):
    """One canonical line whose hash is that of the document without it."""
    found = json.loads(text)
    equal(text, canonical(found) + "\n", "the form")
    bare = {key: value for key, value in found.items() if key != "sha256"}
    equal(found["sha256"], hashlib.sha256(canonical(bare).encode()).hexdigest(), "the hash")
    results = [row["result"] for row in found["rows"]]
    equal(found["summary"], {name: results.count(name) for name in ("gap", "held", "unknown")}, "the summary")
    for row in found["rows"]:
        equal(row["why"] is None, row["result"] == "held", f"a reason: {row}")
    return found


def rows(found, result):
    return [row for row in found["rows"] if row["result"] == result]


def layers(found):
    return {layer["name"]: layer["result"] for layer in found["layers"]}


# --- a sandbox that holds ----------------------------------------------------------------------------

@test
def every_wall_is_in_force_and_every_attempt_is_shown_to_work_without_them(place):
    found = statement(place)
    equal(rows(found, "gap"), [], "gaps")
    equal(layers(found), dict.fromkeys(LAYERS, "held"), "layers")
    unknown = {row["what"] for row in rows(found, "unknown")}
    assert not unknown & SHOWN_ANYWHERE, f"could not be shown: {rows(found, 'unknown')}"
    assert len(rows(found, "held")) >= 40, found["summary"]
    for row in rows(found, "unknown"):
        assert row["tried"] and row["why"], row
    nothing_left(place)


@test
def the_statement_says_what_it_holds_for(place):
    found = statement(place)
    system = os.uname()
    equal(found["host"], {"system": system.sysname, "release": system.release, "machine": system.machine}, "the host")
    equal(found["user"]["uid"], os.getuid(), "the user")
    equal(found["user"]["ids"], "shifted" if IDENTITY == "root" else "own", "ids")
    age = time.time() - time.mktime(time.strptime(found["date"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone
    assert -5 < age < 60, f"the date is {age} seconds off"
    equal(found["policy"]["sha256"], statement(place)["policy"]["sha256"], "the hash of one policy")
    strict = statement(place, "--seccomp", "strict")
    assert strict["policy"]["sha256"] != found["policy"]["sha256"], "another policy has another hash"
    equal(strict["policy"]["profile"], "strict", "profile")


@test
def its_rows_are_rows_of_the_check_suite(place):
    table = (ROOT / "tests/hostile/rows.tsv").read_text().splitlines()
    known = {line.split("\t")[0] for line in table}
    unknown = {row["id"] for row in statement(place)["rows"]} - known
    assert not unknown, unknown


@test
def people_get_a_table(place):
    done = prove(place)
    equal(done.code, 0, repr(done))
    assert re.search(r"^FS-02 +reads a file of the owner's +namespaces, mounts +held$", done.text, re.M), done.text
    assert re.search(r"^seccomp +in force ", done.text, re.M), done.text
    assert re.search(r"^\d+ held, 0 with a gap, \d+ cannot be shown here$", done.text, re.M), done.text
    assert all(character == "\n" or character.isprintable() for character in done.text), "it is inert"


@test
def it_can_be_written_to_a_file(place):
    file = place.dir / "statement.json"
    done = prove(place, "-o", file)
    equal(done.code, 0, repr(done))
    equal(file.stat().st_mode & 0o777, 0o600, "the mode")
    assert "held, 0 with a gap" in done.text, "the table is printed as well"
    checked(file.read_text())
    checked(prove(place, "--report=-").text)
    equal(prove(place, "-o", place.dir / "no/such/file").code, 125, "a file that cannot be made")


@test
def no_option_of_any_command_has_two_meanings(place):
    """prove takes those of a policy and its own: the first one of a name is found, the second never."""
    names = place.cove("docs", "commands").text.split()
    assert "prove" in names and "run" in names, names
    for name in names:
        options = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", place.cove(name, "--help").text, re.M)
        equal(sorted(set(options)), sorted(options), name)
        assert options or name not in ("prove", "run"), "nothing was read"


@test
def nothing_of_the_owner_changes_and_nothing_is_left(place):
    (place.work / "file").write_text("mine\n")
    before = digest(place.work)
    for options in ((), ("--workspace", "rw"), ("--workspace", "live"), ("--workspace", "copy"), ("--workspace", "ro")):
        found = statement(place, *options)
        equal(rows(found, "gap"), [], f"{options}")
        through = options[1:] in (("rw",), ("live",))
        equal([row["result"] for row in found["rows"] if row["id"] == "FS-07"], ["unknown" if through else "held"], f"{options}")
        equal(digest(place.work), before, f"the workspace with {options}")
    nothing_left(place)


@test(identities=("root",))
def no_shared_object_is_left(place):
    script = 'mount -t mqueue none "$HOME" && "$0" prove >/dev/null && cat /proc/sysvipc/shm && ls -A "$HOME"'
    done = subprocess.run(["unshare", "--ipc", "--mount", "sh", "-c", script, harness.COVE], cwd=place.work, env=place.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1, f"more than a heading: {done}"


@test(identities=("root",))
def no_shared_object_is_left_by_who_is_killed(place):
    """A message queue would stay until the next start of the machine.  That it was seen is the control."""
    script = 'mount -t mqueue none "$HOME" || exit 1\n"$0" prove >/dev/null & prove=$!\n' \
             'until ls "$HOME" | grep -q cove-; do sleep 0.001; done\nkill -9 $prove && echo seen\n' \
             'for _ in $(seq 100); do [ "$(ls -A "$HOME")" ] || exit 0; sleep 0.1; done\nls -A "$HOME"'
    done = subprocess.run(["unshare", "--ipc", "--mount", "sh", "-c", script, harness.COVE], cwd=place.work, env=place.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    equal((done.returncode, done.stdout), (0, "seen\n"), repr(done))


@test
def it_runs_no_command(place):
    done = prove(place, "--", "touch", "made")
    equal(done.code, 125, repr(done))
    assert "runs no command" in done.errors and not (place.work / "made").exists(), repr(done)


@test(judges_time=True)
def it_takes_less_than_a_second(place):
    took = []
    for _ in range(5):
        start = time.monotonic()
        equal(prove(place).code, 0, "prove")
        took.append(time.monotonic() - start)
    limit = 6 if "asan" in harness.COVE or os.environ.get("COVE_BUILD") == "build-asan" else 1
    assert min(took) < limit, f"the best of five took {min(took):.2f} s"


@test
def killed_in_the_middle_it_leaves_no_process(place):
    for delay in (0.02, 0.08, 0.2):
        process = running.start(place, "prove")
        time.sleep(delay)
        process.kill()
        process.wait()
    # Whoever dies with one of them still holds its directories: only when they are gone too is what they left nobody's.
    running.wait_for(lambda: not running.descendants(), seconds=10, what="the end of their processes")
    place.run("true")  # whose guard removes what they left on disk
    nothing_left(place)


@test
def a_signal_waits_until_the_canaries_are_gone(place):
    process = running.start(place, "prove")
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    done = running.finish(process)
    assert done.code in (0, -signal.SIGTERM), repr(done)
    nothing_left(place)


# --- limits ------------------------------------------------------------------------------------------

BOUNDED = ("--memory", "64M", "--processes", "200", "--open-files", "100", "--file-size", "1G", "--output", "1K", "--disk", "10G")


@test
def limits_are_named_with_what_keeps_them_and_read_back(place):
    found = statement(place, *BOUNDED)
    equal(rows(found, "gap"), [], "gaps")
    limits = {limit["name"]: limit for limit in found["limits"]}
    equal(sorted(limits), ["disk", "file-size", "memory", "open-files", "output", "processes"], "which limits")
    equal(limits["open-files"], {"name": "open-files", "max": 100, "hard": True, "kept_by": "rlimit"}, "one of them")
    assert not limits["disk"]["hard"], "the keeper looks"
    said = place.cove("prove", *BOUNDED).text
    assert "open-files 100 (hard, rlimit)" in said and "disk 10G (sampled" in said, said


@test
def where_the_policy_has_no_limit_nothing_is_said_to_hold(place):
    found = statement(place, "--processes", "none")
    equal([row["why"] for row in rows(found, "unknown") if row["what"] == LIMITED], ["the policy has none"], "why")
    equal((layers(found)["limits"], found["limits"]), ("unknown", []), "the layer")


# --- before a run ------------------------------------------------------------------------------------

@test
def a_run_can_ask_for_it_first(place):
    done = place.cove("run", "--rm", "--prove", "--", "sh", "-c", "env; exit 3")
    equal(done.code, 3, repr(done))
    equal(done.errors, "", "nothing is said")
    assert "COVE_PROVE_CANARY" not in done.text, "the canary is not the command's"
    nothing_left(place)


# --- one wall left out: the control of the proof itself ------------------------------------------------

LIMITED = "is under the limits of the policy that the kernel keeps"

# guards of the test build, the layer that is broken then, and a row that must show it
GUARDS = (("seccomp", "seccomp", "makes an io_uring"), ("capabilities", "rights", "has no capability that the policy does not give"),
          ("session", "terminal", "writes to the owner's terminal"), ("descriptors", "start", "starts with three descriptors"),
          ("network", "network", "connects to a port of the host's loopback"), ("ipc", "namespaces", "has namespaces of its own"),
          ("uts,hostname", "namespaces", "has namespaces of its own"), ("time", "namespaces", "has namespaces of its own"),
          ("cgroup", "namespaces", "has namespaces of its own"), ("environment", "start", "reads a variable of the owner's environment"),
          ("landlock", "landlock", "makes a directory in the root"), ("masks", "mounts", "sees nothing in the kernel's tables about the host"),
          ("seals", "mounts", "has the mounts of the plan with their flags, and no other"),
          ("readonly,verify", "mounts", "has the mounts of the plan with their flags, and no other"),
          ("copy-on-write", "mounts", "makes something in the workspace, on the host"),
          ("knobs", "namespaces", "may have no user namespace, by the bound of its own"),
          ("limits", "limits", LIMITED))


@test
def each_wall_that_is_left_out_is_a_gap_and_only_where_no_other_holds(place):
    for guard, layer, what in GUARDS:
        found = statement(place, code=1, without=guard)
        gaps = rows(found, "gap")
        assert what in [row["what"] for row in gaps], f"without {guard}: {gaps}"
        for row in gaps:
            equal(row["held_by"], [layer], f"without {guard} there is a gap where another wall should hold: {row}")
        equal(layers(found), {name: "gap" if name == layer else "held" for name in LAYERS}, f"layers without {guard}")
    nothing_left(place)


@test
def a_run_that_asks_for_it_is_refused_then(place):
    for guard, _, what in GUARDS:
        done = place.cove("run", "--rm", "--prove", "--", "touch", "/tmp/ran", without=guard)
        equal(done.code, 125, f"without {guard}: {done!r}")
        assert "gap" in done.errors and len(done.errors.splitlines()) == 1, f"without {guard}: {done!r}"
    equal(place.cove("run", "--rm", "--", "true", without="seccomp").code, 0, "and only then: it would have run")
    nothing_left(place)


# guards without which what several walls hold is open
TOGETHER = (("network,landlock", "connects to an abstract socket of the owner's"), ("seccomp,knobs", "makes a user namespace"),
            ("seccomp,landlock,capabilities,dumpable", "traces PID 1 of the sandbox"),
            ("seccomp,landlock,capabilities,dumpable", "opens the memory of PID 1 of the sandbox"))


@test
def where_two_walls_hold_it_takes_both(place):
    for guards, what in TOGETHER + ((("ipc,landlock", "reads a message queue of the owner's"),) if IDENTITY != "root" else ()):
        gaps = {row["what"]: row for row in rows(statement(place, code=1, without=guards), "gap")}
        assert what in gaps, f"without {guards}: {list(gaps)}"
        assert len(gaps[what]["held_by"]) > 1, gaps[what]


# --- a kernel that lacks something, or lies ------------------------------------------------------------

def without_call(number, error):
    return [PROBES / "without-call", number, error, "--"]


@test
def a_kernel_without_landlock_is_a_gap_that_is_named(place):
    for error in (38, 95):  # ENOSYS, EOPNOTSUPP
        found = statement(place, code=1, prefix=without_call(444, error))
        equal(layers(found)["landlock"], "gap", "the layer")
        equal([row["why"] for row in rows(found, "gap")], ["this kernel has no Landlock, or it is off"], "why")
        others = {layer for row in found["rows"] if len(row["held_by"]) > 1 for layer in row["held_by"]}
        assert "landlock" not in others, "no row counts on it any more"
        done = subprocess.run([*map(str, without_call(444, error)), harness.COVE, "run", "--rm", "--prove", "--", "true"], cwd=place.work,
                              env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 125 and b"no Landlock" in done.stderr, done


LIES = {"seccomp": 317, "landlock_restrict_self": 446, "prctl": 157, "setsid": 112, "close_range": 436, "mount_setattr": 442, "umount2": 166,
        "capset": 126, "mount": 165, "pivot_root": 155, "prlimit64": 302, "unshare": 272, "setns": 308}


@test
def a_call_that_says_yes_and_does_nothing_leads_to_a_refusal_or_a_gap(place):
    stated = {}
    for name, number in LIES.items():
        done = prove(place, "--json", prefix=without_call(number, 0))
        assert done.code in (1, 125), f"{name}: {done!r}"
        stated[name] = done.code
        if done.code == 1:
            assert rows(checked(done.text), "gap"), name
        else:
            said = done.errors.splitlines()
            if "COVE_SANITIZED" in os.environ:  # it is lied to as well, and warns of that
                said = [line for line in said if line.startswith("cove: ")]
            equal(len(said), 1, f"what is said when {name} lies: {done!r}")
    equal(stated["seccomp"], 125, "a filter that is not there is found before the command runs")
    equal(stated["prlimit64"], 125, "and so is a limit")
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:  # else, as in a session of sudo, what it would set holds already
        equal(prove(place, "--processes", "none", prefix=without_call(LIES["prlimit64"], 0)).code, 1, "what only the proof looks at")
    nothing_left(place)


@test
def what_does_not_work_without_a_sandbox_either_is_not_called_held(place):
    for number, what in ((425, "makes an io_uring"), (250, "reads a key of the owner's keyring"), (310, "reads the memory of a process of the owner's")):
        found = statement(place, prefix=without_call(number, 38))
        row = [row for row in found["rows"] if row["what"] == what]
        equal([(r["result"], r["why"]) for r in row], [("unknown", "on the host it fails as well: Function not implemented")], what)


@test
def where_no_sandbox_can_be_had_there_is_no_statement(place):
    done = prove(place, "--json", prefix=without_call(435, 1))  # clone3: EPERM
    equal(done.code, 125, repr(done))
    assert not done.text and "namespace" in done.errors, repr(done)
    nothing_left(place)


if __name__ == "__main__":
    adopt_orphans()
    main()
