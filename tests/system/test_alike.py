"""Two forks of one state start alike: what a program can ask about its surroundings has the same answer, but for a list (docs/alike.md)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.staying import execute, good, staying  # noqa: E402

QUESTIONS = {
    "host name": "hostname; cat /etc/hostname; uname -n",
    "own number": "echo $$",
    "parent, group, session": "cut -d' ' -f4-6 /proc/self/stat",
    "environment, with its order": "env",
    "machine id": "cat /etc/machine-id",
    "time zone": "date +%Z%z; readlink /etc/localtime",
    "umask": "umask",
    "user": "id",
    "processes": "echo /proc/[0-9]*",  # by the shell itself: of a pipeline's parts one may be there before the other is
    "limits": "ulimit -a",
    "arguments": "tr '\\0' ' ' </proc/self/cmdline",
    "open descriptors": "ls /proc/self/fd",
    "directory": "pwd; ls -la --time-style=+ . | tail -n +2",
    "mounts": "cut -d' ' -f4-6,8-9 /proc/self/mountinfo | sort",
    "network": "cat /proc/net/dev | cut -d: -f1; cat /proc/net/route",
    "files with their dates": "find . ~ /tmp -xdev -newer /etc/machine-id -printf '%p %y %m %s %T@ %l\\n' 2>/dev/null | grep -v cove- | sort",
    "next number": "sh -c 'echo $$' | cat",
    "locale": "locale 2>/dev/null",
    "processors": "nproc",
    "kernel": "uname -srm",
    "clock it counts from": "cat /proc/self/timens_offsets",
}

# What is not: docs/alike.md has the same list.
DIFFERENT = {"boot id that the kernel makes": "cat /proc/sys/kernel/random/uuid", "time": "date +%s%N", "random": "head -c 16 /dev/urandom | od -An -tx1"}


def answers(place, ident, questions):
    return {name: good(execute(place, ident, script)).text for name, script in questions.items()}


@test
def two_forks_of_one_state_start_alike(place):
    with staying(place, "-e", "SET=1", "--service", "exec sleep 1000") as ident:
        good(execute(place, ident, "mkdir d; echo 1 >d/one; echo x >~/.config-of-mine; echo t >/tmp/t"))
        good(place.cove("stop", ident))
        good(place.cove("snapshot", ident, "--name", "state"))
        forks = good(place.cove("fork", "state", "-n", "2")).text.split()
        try:
            first, second = (answers(place, fork, QUESTIONS) for fork in forks)
            for name in QUESTIONS:
                equal(second[name], first[name], name)
            assert first["own number"].strip().isdigit() and "SET=1" in first["environment, with its order"] and "d/one" in first["files with their dates"], first
            first, second = (answers(place, fork, DIFFERENT) for fork in forks)
            for name in DIFFERENT:
                assert first[name] != second[name], f"{name} can tell two apart, so the questions are asked of two"
            equal(good(place.cove("show", "--json", forks[0])).out.count(b'"services":{"exec":"ready"}'), 1)
        finally:
            place.cove("rm", "-f", *forks)
            place.cove("snapshot", "rm", "state")


@test
def a_restart_is_alike_too(place):
    asked = {name: QUESTIONS[name] for name in ("host name", "own number", "environment, with its order", "machine id", "umask", "processes", "limits", "mounts")}
    with staying(place) as ident:
        first = answers(place, ident, asked)
        good(place.cove("stop", ident))
        good(place.cove("start", ident))
        equal(answers(place, ident, asked), first)


if __name__ == "__main__":
    main()
