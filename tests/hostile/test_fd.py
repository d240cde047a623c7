"""FD: descriptors, environment, helpers."""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import time

from attack import (COVE, IDENTITY, SOAK_SECONDS, Canaries, Report, Running, all_refused, attack, attack_host, cold, control_fires, cove_with, equal,
                    fingerprint, hostile_workspace, main, nothing_is_left, put_probe, refused, skip, test, traced, unchanged)


@test(id="FD-01")
def a_command_has_exactly_three_descriptors(place):
    leaked = [os.open("/etc/passwd", os.O_RDONLY) for _ in range(100)]
    leaked.append(os.open(place.dir, os.O_RDONLY | os.O_DIRECTORY))
    try:
        for options in ((), ("-t",), ("--explain",), ("--timeout", "60")):
            for kept in ((), leaked):
                report = attack(place, "descriptors", options=options, pass_fds=kept)
                equal([line.split()[0] for line in report.say["fd"]], ["0", "1", "2"], f"descriptors with {options}")
    finally:
        for fd in leaked:
            os.close(fd)
    control_fires(len(attack(place, "descriptors", without="descriptors").say["fd"]) > 3, "without closing them")
    control_fires(len(attack_host(place, "descriptors").say["fd"]) == 3, "the probe has none of its own")


@test(id="FD-02")
def a_command_starts_in_no_place_outside(place):
    outside = place.dir / "outside"
    outside.mkdir()
    (place.work / "link").symlink_to(outside)
    (place.work / "up").symlink_to("..")
    put_probe(place)
    for cwd in (*[f"/proc/self/fd/{n}" for n in range(0, 65, 4)], "/proc/1/cwd", "/proc/thread-self/root", "/proc/self/root", "/proc/1/root",
                "/dev/fd/3", place.work / "link", "/nowhere", "..", place.work / "..", "../outside", outside, "link"):
        refused(place.run("./probe", "overwrite", "started", options=("-w", cwd)), f"the working directory {cwd}")
    # Through a link that stays inside it is an ordinary directory, and not the host's.
    inside = place.run("pwd", options=("-w", place.work / "up"))
    assert inside.code == 125 or outside.name not in place.run("ls", options=("-w", place.work / "up")).text, repr(inside)
    gone = place.dir / "gone"
    gone.mkdir()
    result = subprocess.run(["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" run --rm -- true', "sh", gone, COVE], env=place.env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(result.returncode, 125, result.stderr)
    (place.work / "sub").mkdir()
    control_fires(place.run("pwd", options=("-w", place.work / "sub")).text.strip() == str(place.work / "sub"), "an ordinary directory")


@test(id="FD-03")
def input_and_output_are_pipes_of_our_own(place):
    put_probe(place)
    given, taken, errors = (place.dir / name for name in ("given", "taken", "errors"))
    given.write_text("input of the user\n")
    with open(given, "r+") as stdin, open(taken, "w+") as stdout, open(errors, "w+") as stderr:
        run = subprocess.run([COVE, "run", "--rm", "--", "./probe", "reopen"], cwd=place.work, env=place.env, stdin=stdin, stdout=stdout, stderr=stderr)
    text = errors.read_text()
    equal(run.returncode, 0, text)
    equal(given.read_text(), "input of the user\n", "the file that was the input")
    types = dict(re.findall(r"SAY type (\d) (\d+)", text))
    equal({number: stat.S_ISFIFO(int(kind, 8)) for number, kind in types.items()}, {"0": True, "1": True, "2": True}, "pipes")
    worked = re.findall(r"CHK (\w+:\d) 0$", text, re.M)
    equal([step for step in worked if not step.startswith("reopen")], [], "what worked on them")
    shutil.copy(given, place.dir / "again")
    with open(place.dir / "again", "r+") as stdin:
        subprocess.run([place.work / "probe", "reopen"], cwd=place.work, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    control_fires((place.dir / "again").read_text() == "", "on the host the input is emptied")


def passed_by_themselves():
    """The table of variables that pass, from the source it is written in."""
    text = pathlib.Path(os.environ.get("COVE_TESTS", pathlib.Path(__file__).parents[2]), "src/box/environment.c").read_text()
    table = text[text.index("passed[] = {"):]
    return set(re.findall(r'"(\w+)"', table[:table.index("};")]))


def say_whom_to_believe():
    """Those that lead clients to the sandbox's own certificates, and where to."""
    table = (pathlib.Path(os.environ["COVE_TESTS"]) / "src/keeper/trust.c").read_text().split("variables[] = {")[1]
    return set(re.findall(r'"(\w+)="', table[:table.index("};")]))


@test(id="FD-04")
def the_environment_is_the_list_and_nothing_else(place):
    canaries = Canaries()
    hostile = {name: canaries.token() for name in ("LD_PRELOAD_X", "LD_LIBRARY_PATH_X", "AWS_SECRET", "GITHUB_TOKEN", "OPENAI_API_KEY", "LC_TOKEN", "X",
                                                   "http_proxy", "NODE_OPTIONS_X", "BASH_ENV_X", "PYTHONPATH_X", "GIT_SSH_COMMAND", "TERMX", "a b")}
    report = attack(place, "environment", env={**hostile, "EDITOR": "vi", "LD_PRELOAD": ""})
    have = {line.partition("=")[0] for line in report.say["env"]}
    always = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "COVE_SANDBOX"}
    assert always <= have and "EDITOR" in have, have
    equal(have - always - passed_by_themselves() - say_whom_to_believe(), set(), "variables that are on no list")
    equal({line for line in report.say["env"] if line.partition("=")[0] in say_whom_to_believe() and "=/etc/cove-ca/" not in line}, set(), "certificates of the host's")
    canaries.none_in("variables", report)
    asked = attack(place, "environment", env=hostile, options=("-e", "GITHUB_TOKEN", "-e", "MINE=1"))
    assert "MINE=1" in asked.say["env"] and f"GITHUB_TOKEN={hostile['GITHUB_TOKEN']}" in asked.say["env"], "what is asked for passes"
    loose = attack(place, "environment", env=hostile, without="environment")
    control_fires(canaries.found_in(loose.result.out), "all variables")


@test(id="FD-05")
def no_name_of_the_host_stands_in_a_command_line(place):
    canaries = Canaries()
    decoy = subprocess.Popen(["sh", "-c", "read until_the_end; :", canaries.token()], stdin=subprocess.PIPE)
    try:
        with Running(place, "wait", canaries.token()):
            report = attack(place, "words", "unrelated")
        canaries.none_in("command lines", report)
        names = {line.partition(" ")[2] for line in report.say["cmdline"]}
        equal(names, {"cove-init", "./probe", "words", "unrelated"}, "words of all command lines")
        control_fires(canaries.tokens[0] in attack_host(place, "words").result.text, "on the host it is seen")
    finally:
        decoy.communicate()


@test(id="FD-06")
def nothing_of_an_entering_process_can_be_opened(place):
    canaries = Canaries()
    put_probe(place)
    # What is seen of a new process before its exec must be ours to see.
    script = "./probe programs 2000 & w=$!; i=0; while [ $i -lt 200 ]; do ./probe pause-a-little & i=$((i+1)); done; wait $w; wait; true"
    result = place.sh(script, env={"SECRET": canaries.token()})
    equal(result.code, 0, repr(result))
    canaries.none_in("entering processes", result)
    opened = [line for line in result.text.splitlines() if re.match(r"CHK init:.* 0$", line)]
    equal(opened, [], "programs of init")
    loose = place.sh("./probe programs 3", without="seccomp,landlock,capabilities,dumpable")
    control_fires(re.search(r"^CHK init:hold 0$", loose.text, re.M), loose)


@test(id="FD-07")
def nothing_of_the_workspace_runs_on_the_host(place):
    cold(place)  # a first start does more
    canaries = Canaries()
    hostile_workspace(place, canaries)
    env = {"PATH": f"{place.work}:.:/usr/bin:/bin", "GCONV_PATH": str(place.work), "NLSPATH": str(place.work / "%N"), "GIT_DIR": str(place.work / ".git"),
           "GIT_SSH": "./git", "BASH_ENV": str(place.work / ".bashrc"), "ENV": str(place.work / ".bashrc"), "PYTHONSTARTUP": "x",
           "NODE_OPTIONS": "--require ./git", "LOCPATH": str(place.work), "HOSTALIASES": str(place.work / ".env")}
    lines, result = traced(place, env=env)
    programs = re.findall(r'execve\("([^"]*)"', "\n".join(lines))
    allowed = {COVE, "/usr/bin/newuidmap", "/usr/bin/newgidmap"}
    equal(set(programs) - allowed, set(), "programs that were run on the host")
    libraries = [line for line in lines if re.search(rf" = \d+<{re.escape(str(place.work))}/.*\.so", line)]
    equal(libraries, [], "libraries of the workspace")
    assert not (place.dir / "sprung").exists(), "a trap was sprung"
    canaries.none_in("the workspace", result)
    subprocess.run(["git", "status"], cwd=place.work, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    control_fires((place.dir / "sprung").exists(), "another program falls into the trap")


@test(id="FD-08")
def closed_descriptors_confuse_nothing(place):
    cold(place)  # a first start does more
    (place.work / "file").write_text("content\n")
    before = fingerprint(place.work)
    for closing, redirected in (("<&-", ""), (">&-", ""), ("2>&-", ""), ("<&- >&-", ""), ("<&- >&- 2>&-", "")):
        result = subprocess.run(["sh", "-c", f'exec "$@" {closing}', "sh", COVE, "run", "--rm", "--", "sh", "-c", "cat file; exit 3"], cwd=place.work,
                                env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert result.returncode in (3, 125), f"{closing}: {result}"
        unchanged(before, fingerprint(place.work), f"the workspace with {closing}")
    for limit in (4, 5, 10, 20):  # with 3 the loader of libc itself gives up
        result = cove_with(place, ["prlimit", f"--nofile={limit}:{limit}"], "run", "--rm", "--", "sh", "-c", "exit 3")
        assert result.code in (3, 125), f"{limit} descriptors: {result!r}"
        assert result.code == 3 or result.errors.strip(), f"{limit} descriptors: no error"
    control_fires(cove_with(place, ["prlimit", "--nofile=64:64"], "run", "--rm", "--", "sh", "-c", "exit 3").code == 3, "enough descriptors")
    nothing_is_left(place)  # what a start with too few could not remove, the next one did


main()
