"""Whole test suites of other projects, run in a sandbox and outside of one, and compared test by test."""
import dataclasses
import os
import pathlib
import re
import subprocess
import time
import typing
import xml.etree.ElementTree

CACHE = pathlib.Path(__file__).resolve().parent / "cache"


# --- what the suites print, as {name: outcome} -------------------------------------------------

def tap(text):
    """TAP with subtests and, between lines "=== FILE", of several programs.  Names can carry ports and
    times, so a test is known by its file, depth and number."""
    seen, file, numbers = {}, "", {}
    for line in text.splitlines():
        if line.startswith("=== "):
            file, numbers = line[4:], {}
        found = re.match(r"( *)(not )?ok (\d+)(.*)", line)
        if found:
            depth = len(found[1]) // 4
            numbers = {d: n for d, n in numbers.items() if d <= depth}
            numbers[depth] = numbers.get(depth, 0) + 1
            where = ".".join(str(numbers.get(d, 0) + (d < depth)) for d in range(depth + 1))
            directive = re.search(r"# *(SKIP|TODO)", found[4], re.I)
            name = f"{file}:{where}" if file else found[4].split("#")[0].strip(" -") or where
            while name in seen:
                name += "'"
            seen[name] = directive[1].lower() if directive else "fail" if found[2] else "pass"
    return seen


def libtest(text):
    """What `cargo test` prints."""
    seen, binary = {}, ""
    for line in text.splitlines():
        found = re.match(r"\s+(?:Running|Doc-tests) (\S+(?: \S+\.rs)?)", line)
        binary = found[1] if found else binary
        found = re.match(r"test (.+?) \.\.\. (ok|FAILED|ignored)", line)
        if found:
            seen[f"{binary} {found[1]}"] = {"ok": "pass", "FAILED": "fail", "ignored": "skip"}[found[2]]
    return seen


def junit(text):
    """The XML that Python's own test runner writes."""
    seen = {}
    start = text.find("<testsuites")
    for case in xml.etree.ElementTree.fromstring(text[start:text.rindex("</testsuites>") + len("</testsuites>")]).iter("testcase"):
        kinds = {child.tag for child in case}
        name = case.get("name") or case.get("classname") or "a case without a name"
        outcome = "fail" if kinds & {"failure", "error"} else "skip" if "skipped" in kinds or case.get("result") == "skipped" else "pass"
        seen[name] = "fail" if seen.get(name) == "fail" else outcome
    return seen


def tcltest(text):
    outcome = {"PASSED": "pass", "FAILED": "fail", "SKIPPED": "skip"}
    return {name: outcome[word] for name, word in re.findall(r"^(?:\+\+\+\+|====) (\S+) .*?(PASSED|FAILED|SKIPPED)", text, re.M)}


# --- the projects ------------------------------------------------------------------------------

@dataclasses.dataclass
class Project:
    name: str
    about: str
    script: str                # what builds and runs it
    parse: typing.Callable
    needs: tuple = ()
    identities: tuple = ("root", "user")
    fast: str = None           # the same for `make check`
    least: int = 1             # fewer tests than this is a failure of its own
    fast_least: int = 1
    explained: dict = dataclasses.field(default_factory=dict)  # pattern of names: why it differs inside

    def why(self, name):
        """Why this test's outcome is another inside, None if there is no known reason."""
        return next((why for pattern, why in self.explained.items() if re.search(pattern, name)), None)


UV = "fs-poll idna inet random strscpy strtok threadpool timer uv-common uv-data-getter-setters version"
UV_UNIX = ("async core dl fs getaddrinfo getnameinfo linux-core linux-inotify linux-syscalls loop loop-watcher pipe poll process procfs-exepath "
           "proctitle random-devurandom random-getrandom random-sysctl-linux signal stream sysinfo-loadavg tcp thread tty udp epoll")
UV_SCRIPT = f"""
set -e
for f in {UV}; do echo src/$f.c; done > list; for f in {UV_UNIX}; do test ! -e src/unix/$f.c || echo src/unix/$f.c; done >> list
ls test/*.c | grep -v -e benchmark -e runner-win -e run-benchmarks >> list
mkdir -p o; xargs -P2 -n8 sh -c 'for f; do gcc -O1 -w -g0 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_LARGEFILE_SOURCE -Iinclude -Isrc -Itest -c $f -o o/$(echo $f | tr / _).o || exit 255; done' x < list
ar crs uv.a o/src_*.o; gcc -pthread -o uv_run_tests o/test_*.o uv.a -ldl -lrt -lm
ulimit -n 4096 2>/dev/null || true
"""
PERL = r"for f in {files}; do echo \"=== $f\"; timeout 120 perl -Ilib $f 2>&1 || true; done".replace('\\"', '"')
PYTHON = "PYTHONPATH=$PWD timeout 1500 /usr/bin/python3 -m test -j2 --timeout 120 -i test_4_daemon_threads --junit-xml $PWD/out.xml {tests} >log 2>&1 || true; cat out.xml || tail -50 log"
NPM_CI = "npm ci --offline --ignore-scripts --no-audit --no-fund --silent --cache $PWD/.npm-cache; "

# Root's command runs as uid 0 of the sandbox without any capability, unless --root is given; ids above
# 65,535 do not exist inside at all.
IDENTITY_INSIDE = {r"test_posix\.Posix(Groups)?Tester\.test_(initgroups|setgroups|chown|fchown|lchown)$":
                 "changes owner or groups: root inside has no capability, and not every id",
                 r"test_posix\.PosixTester\.test_getgrouplist$": "asks the password database for this user, who stands there inside but not always outside"}

PROJECTS = [
    Project("libuv", "Debian source package libuv1: event loop, loopback sockets, threads, child processes (C)",
            UV_SCRIPT + "timeout 900 ./uv_run_tests 2>&1 || true", tap, ("gcc",), least=350,
            identities=("user",),  # it refuses to run as root
            explained={r"^(fs_chown|spawn_setuid_fails|spawn_setgid_fails)$": "wants EPERM for becoming uid 0; that does not exist inside: EINVAL",
                       r"^(get_passwd|platform_output)$": "asks the password database for this user, who stands there inside but not always outside",
                       r"^tcp_(close_while_connecting|connect_timeout|connect6_error_fault)$": "connects to the internet; inside there is no network"}),
    Project("mojolicious", "Debian source package libmojolicious-perl: web server and clients on loopback (Perl)",
            PERL.format(files="$(find t -name '*.t' | sort)"), tap, ("perl",), least=3000,
            fast=PERL.format(files="t/mojo/ioloop.t t/mojo/websocket.t t/mojo/daemon.t t/mojo/reactor_poll.t t/mojo/subprocess.t t/mojo/file.t t/mojolicious/static_lite_app.t"),
            fast_least=300),
    Project("python", "Debian source package python3: its standard library's tests; threads, sockets, processes",
            PYTHON.format(tests="test_socket test_threading test_thread test_queue test_asyncio test_multiprocessing_fork test_concurrent_futures test_subprocess test_os "
                                "test_posix test_signal test_select test_selectors test_socketserver test_ssl test_httpservers test_urllib2_localnet test_ftplib "
                                "test_mmap test_fcntl test_tempfile test_shutil test_pathlib test_pty test_sqlite3 test_venv test_io test_zipfile test_tarfile "
                                "test_sched test_time test_resource test_pwd test_grp test_largefile test_epoll test_eintr test_faulthandler "
                                "test_gdb test_glob test_inspect test_json test_locale test_mailbox test_openpty test_poll test_posixpath test_re test_syslog test_uuid"),
            junit, ("python3",), least=4000,
            fast=PYTHON.format(tests="test_queue test_threading test_socketserver test_select test_posix test_pty test_mmap test_fcntl test_poll"),
            fast_least=400, explained=IDENTITY_INSIDE),
    Project("tcl", "Debian source package tcl8.6: its own 30,000 tests (C, sockets, threads)",
            "set -e; cd unix; ./configure -q --enable-threads >/dev/null; make -j2 -s tcltest >/dev/null 2>&1; cd ../tests; "
            "TCL_LIBRARY=$PWD/../library LD_LIBRARY_PATH=../unix timeout 900 ../unix/tcltest all.tcl -verbose pse 2>&1 || true",
            tcltest, ("gcc", "make"), least=20000),
    Project("qs", "npm package qs: installed by npm ci from a cache, tested by tape", NPM_CI + "npx --offline tape 'test/**/*.js' 2>&1 || true", tap, ("npm",),
            least=700, fast=NPM_CI + "npx --offline tape 'test/**/*.js' 2>&1 || true", fast_least=700),
    Project("fastify", "npm package fastify: its servers and clients on loopback (node --test)",
            NPM_CI + "node --test --test-concurrency=2 --test-reporter=tap test/ 2>&1 || true", tap, ("npm",), least=1000),
    Project("crossbeam", "crate crossbeam-channel: threads (cargo test --offline)", "cargo test --offline 2>&1 --no-fail-fast || true", libtest, ("cargo",), least=300,
            fast="cargo test --offline --no-fail-fast --test mpsc --test never --test same_channel --test iter 2>&1 || true", fast_least=30),
]


# --- inside against outside --------------------------------------------------------------------

@dataclasses.dataclass
class Comparison:
    project: Project
    inside: dict
    outside: dict
    seconds: tuple
    texts: tuple

    @staticmethod
    def count(seen):
        return {kind: sum(v == kind for v in seen.values()) for kind in sorted({"pass", "fail", "skip", *seen.values()})}

    @property
    def differences(self):
        names = {**self.inside, **self.outside}
        return {n: (self.outside.get(n, "absent"), self.inside.get(n, "absent")) for n in sorted(names) if self.inside.get(n) != self.outside.get(n)}

    @property
    def unexplained(self):
        return {n: d for n, d in self.differences.items() if not self.project.why(n)}


def unpack(project, directory):
    archive = CACHE / f"{project.name}.tar.gz"
    if not archive.exists():
        return False
    subprocess.run(["tar", "-xzf", archive, "--no-same-owner", "-C", directory], check=True)
    return True


def outside(place, script, timeout):
    done = subprocess.run(["sh", "-c", script], cwd=place.work, env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=timeout)
    return done.stdout.decode(errors="replace")


def inside(place, script, timeout):
    return place.run("sh", "-c", f"exec 2>&1\n{script}", timeout=timeout).text


def compare(place, project, fast=False, timeout=1800):
    """Runs it inside first: what happens there leaves the tree as it was unpacked."""
    script, seen, seconds, texts = project.fast if fast else project.script, [], [], []
    for where in (inside, outside):
        began = time.monotonic()
        texts.append(where(place, script, timeout))
        seconds.append(time.monotonic() - began)
        try:
            seen.append(project.parse(texts[-1]))
        except (ValueError, xml.etree.ElementTree.ParseError) as error:
            raise AssertionError(f"{project.name} {where.__name__}: {error}\n{texts[-1][-3000:]}") from error
    return Comparison(project, *seen, tuple(seconds), tuple(texts))


def settle(place, project, fast=False, rounds=3, timeout=1800):
    """Compares until there is no difference that chance explains: one that comes and goes between
    rounds is none of the sandbox's."""
    first = best = compare(place, project, fast, timeout)
    stubborn = set(first.unexplained)
    for _ in range(rounds - 1):
        if not stubborn:
            break
        again = compare(place, project, fast, timeout)
        stubborn &= set(again.unexplained)
        best = min(best, again, key=lambda c: len(c.unexplained))
    return best, {n: best.differences.get(n, first.differences[n]) for n in sorted(stubborn)}


def least(project, fast):
    return project.fast_least if fast else project.least


def load():
    return round(os.getloadavg()[0], 1)
