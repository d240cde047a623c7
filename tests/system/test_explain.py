"""cove run --explain: what a command asked for and did not get."""
import json
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import IDENTITY, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, tool, write  # noqa: E402


def explained(place, *command, options=()):
    """What was found, as the report has it, and what was said of it to people."""
    file = place.dir / "report.json"
    done = place.run(*command, options=("--explain", "--report", file, *options))
    return json.loads(file.read_bytes())["findings"], done


def tell(findings):
    return {(found["how"], found["subject"]): (found["why"], found["grant"]) for found in findings}


@test
def explain_lists_a_path_of_the_host_that_is_absent_inside(place):
    there = write(place.dir / "elsewhere/config", "secret")
    done = place.run("cat", there, options=("--explain",))
    assert done.code == 1, done
    lines = [line for line in done.errors.splitlines() if str(there) in line and "--read" in line]
    assert lines, done


@test
def explain_lists_a_system_call_that_was_refused(place):
    script = "import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.mount(b'a', b'/tmp', b'tmpfs', 0, None), l.unshare(0x10000000))"
    done = place.run("/usr/bin/python3", "-c", script, options=("--explain",))
    equal((done.code, done.out), (0, b"-1 -1\n"))
    assert "mount" in done.errors and "unshare" in done.errors, done


@test
def explain_says_that_nothing_was_refused(place):
    done = place.run("true", options=("--explain",))
    equal(done.code, 0)
    assert done.errors.strip(), "it says so, and that it is slower"


@test
def explain_lists_a_name_that_no_rule_allows(place):
    tool("curl")
    done = place.run("curl", "-s", "http://refused.example/", options=("--explain",))
    assert "no rule allows refused.example at port 80" in done.errors and "cove allow refused.example" in done.errors, done
    assert "was refused" not in done.errors, done


@test
def explain_is_in_the_report(place):
    there = write(place.dir / "elsewhere/config", "secret")
    file = place.dir / "report.json"
    place.run("cat", there, options=("--explain", "--report", file))
    found = [f for f in json.loads(file.read_bytes())["findings"] if f["subject"] == str(there)]
    assert found and "--read" in found[0]["grant"] and found[0]["count"] >= 1, file.read_text()


@test
def explain_does_not_change_what_a_command_sees(place):
    script = "ls /nonexistent; cat /etc/shadow; mkdir -p a/b && touch a/b/c && ls a/b; echo $?"
    plain, explained = place.sh(script), place.sh(script, options=("--explain",))
    equal((plain.code, plain.out), (explained.code, explained.out))


# Writes


def needs_landlock(place):
    file = place.dir / "enforced.json"
    place.run("true", options=("--report", file))
    if not any(wall.startswith("landlock") for wall in json.loads(file.read_bytes())["enforced"]):
        skip("kernel: it has no Landlock, so system directories can be written inside")


WRITING = 'for path; do (echo x >"$path") && echo "$path"; done; true'


def writing(place, *paths, options=()):
    """What was found when each was written to, and which worked."""
    found, done = explained(place, "sh", "-c", WRITING, "sh", *paths, options=options)
    return tell(found), done.out.decode().split()


@test
def explain_lists_writes_that_only_landlock_refuses(place):
    needs_landlock(place)
    paths = ("/var/lib/x", "/etc/y", "/etc/passwd", "/usr/x", "/x")
    found, worked = writing(place, *paths)
    equal((found, worked), ({("write", path): ("read-only", "--image DIR") for path in paths}, []))


@test
def explain_lists_changes_of_directories_that_only_landlock_refuses(place):
    needs_landlock(place)
    script = "mkdir /etc/made; rm -f /etc/passwd; mv /etc/hosts moved; ln -s x /etc/link; : >moved; ln -s /etc/passwd here; echo x >here"
    found, _ = explained(place, "sh", "-c", script)
    told = tell(found)
    for path in ("/etc/made", "/etc/passwd", "/etc/hosts", "/etc/link"):
        equal(told.pop(("write", path), None), ("read-only", "--image DIR"), path)
    equal(told, {})


@test
def explain_does_not_list_what_can_be_written_or_is_there_already(place):
    script = """
set -e
for path in "$HOME/x" /tmp/x /var/tmp/x /srv/x /dev/null /dev/shm/x new; do echo x >"$path"; done
ln -s /tmp/x link; echo x >link
echo x >closed; chmod 400 closed; rm -f closed
mkdir -p /var/tmp/a/b
! mkdir /etc 2>/dev/null
exec 3<>/tmp/x; echo x >/dev/fd/3; echo x >/proc/self/fd/3
mv new newer; rm newer link
"""
    found, done = explained(place, "sh", "-c", script)
    equal((done.code, found), (0, []), done)


@test
def explain_lists_writes_that_only_a_mode_refuses(place):
    for name in ("file", "closed/old"):
        write(place.work / name, "old")
    (place.work / "file").chmod(0o444)
    (place.work / "closed").chmod(0o555)
    found, worked = writing(place, "file", "closed/new", "closed/old")
    (place.work / "closed").chmod(0o755)
    why = ("not permitted", "not grantable: the permissions of the file or of a directory above it")
    equal((found, worked), ({("write", str(place.work / path)): why for path in ("file", "closed/new")}, ["closed/old"]))


@test
def explain_lists_writes_to_files_of_another_user(place):
    """Root's id inside is not the machine's, and files of others stay theirs."""
    if IDENTITY != "root":
        return
    os.chown(write(place.work / "theirs", "old"), 12345, 12345)
    found, worked = writing(place, "theirs")
    equal((found[("write", str(place.work / "theirs"))][0], worked), ("not permitted", []))
    found, worked = writing(place, "theirs", options=("--root",))
    equal((found, worked), ({}, ["theirs"]))


@test
def explain_gives_no_advice_that_is_refused(place):
    needs_landlock(place)
    write(place.dir / "elsewhere/old", "old")
    write(place.home / ".ssh/config")
    old, new, key = f"{place.dir}/elsewhere/old", f"{place.dir}/elsewhere/new", f"{place.home}/.ssh/new"
    found, worked = writing(place, old, new, key, "/home/x", "/opt/x", "/var/lib/x", "/boot/x")
    equal(worked, [])
    grants = {path: grant for (_, path), (_, grant) in found.items()}
    equal((grants[old], grants[new]), (f"--write {old}", f"--write {place.dir}/elsewhere"))
    assert grants[key].startswith("not grantable: ") and grants["/home/x"].startswith("not grantable: "), grants
    for grant in grants.values():
        if grant.startswith("--write "):
            equal(place.run("true", options=("--dry-run", *grant.split(" ", 1))).code, 0, grant)


@test
def explain_says_which_flag_stands_against_a_write(place):
    there = write(place.dir / "elsewhere/old", "old").parent
    found, _ = writing(place, f"{there}/new", options=("--read", there))
    equal(found, {("write", f"{there}/new"): ("read-only", f"--write {there} in place of --read")})
    found, _ = writing(place, "new", options=("--workspace", "ro"))
    equal(found, {("write", str(place.work / "new")): ("read-only", "--workspace cow")})


# Connections

NO_NETWORK = ("an address that no rule names", "name the host it belongs to: --allow HOST[:PORT]")


def connecting(*addresses):
    """Tries each of them: a pair of the socket's kind and its address."""
    return ("/usr/bin/python3", "-c", f"""
import socket
for kind, address in {addresses!r}:
    try:
        socket.socket(getattr(socket, kind)).connect(address)
    except OSError:
        pass
""")


@test
def explain_lists_connections_to_addresses_that_no_rule_names(place):
    script = "import socket; socket.create_connection(('93.184.216.34', 81), 3)"
    found, done = explained(place, "/usr/bin/python3", "-c", script)
    equal((done.code, tell(found)), (1, {("connect", "93.184.216.34 port 81"): NO_NETWORK}), done)
    assert "connect 93.184.216.34 port 81: an address that no rule names (1 x); " in done.errors, done

    found, done = explained(place, "bash", "-c", "for i in 1 2; do echo >/dev/tcp/198.51.100.1/80; done")
    equal(tell(found), {("connect", "198.51.100.1 port 80"): NO_NETWORK})
    equal(found[0]["count"], 2)

    found, _ = explained(place, *connecting(("AF_INET6", ("2001:db8::1", 443)), ("AF_INET6", ("::ffff:10.0.0.1", 8080))))
    equal(tell(found), {("connect", "2001:db8::1 port 443"): NO_NETWORK, ("connect", "10.0.0.1 port 8080"): NO_NETWORK})


@test
def explain_lists_a_packet_that_goes_nowhere(place):
    script = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.7', 123))"
    found, _ = explained(place, "/usr/bin/python3", "-c", script)
    equal(tell(found), {("connect", "192.0.2.7 port 123"): NO_NETWORK})


@test
def explain_leaves_names_to_the_gateway(place):
    found, done = explained(place, "/usr/bin/python3", "-c", "import urllib.request as u; u.urlopen('http://example.com/')")
    equal((done.code, tell(found)), (1, {}), done)
    assert "no rule allows example.com at port 80" in done.errors, done


@test
def explain_takes_loopback_for_the_sandbox_s_own(place):
    script = """
import socket
for kind, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.create_server((host, 0), family=kind)
    client = socket.create_connection(server.getsockname()[:2])
    client.send(b"hello")
    print(server.accept()[0].recv(5).decode())
    server.close()
    socket.socket(kind).connect_ex((host, 1))
one, other = socket.socketpair()
one.send(b"hello")
print(other.recv(5).decode())
"""
    found, done = explained(place, "/usr/bin/python3", "-c", script)
    equal((done.code, done.out, found), (0, b"hello\nhello\nhello\n", []), done)


@test
def explain_lists_a_socket_of_the_host(place):
    there = place.dir / "elsewhere/socket"
    there.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(there))
        found, _ = explained(place, *connecting(("AF_UNIX", str(there)), ("AF_UNIX", "\0abstract"), ("AF_UNIX", "/nowhere")))
    equal(tell(found), {("connect", str(there)): ("absent", "not grantable: a socket or device of the host")})


@test
def addresses_that_are_none_change_nothing(place):
    script = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
fd = socket.socket().fileno()
for bytes, len in ((b"", 0), (b"", -1), (b"\\2", 1), (b"\\2\\0\\0\\x50", 4), (b"\\1\\0" + b"\\x1b[2J" * 30, 110), (b"\\2\\0" + bytes(126), 128)):
    libc.connect(fd, bytes, len)
for address in (0, 1, 2**47, 2**63):
    libc.connect(fd, ctypes.c_void_p(address), 16)
    libc.sendto(fd, b"", 0, 0, ctypes.c_void_p(address), 16)
print("still here")
"""
    found, done = explained(place, "/usr/bin/python3", "-c", script)
    equal((done.code, done.out, found), (0, b"still here\n", []), done)


if __name__ == "__main__":
    adopt_orphans()
    main()
