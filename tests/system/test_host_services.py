"""Services of the host that a sandbox has at its own loopback."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.land import Land  # noqa: E402

# Connects to each HOST:PORT and prints the first bytes that come, or the error.
ASK = """
import errno, socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit(':', 1)
    try:
        with socket.create_connection((host, int(port)), 10) as s:
            s.sendall(b'ping')
            print(target, s.recv(11))
    except OSError as error:
        print(target, errno.errorcode.get(error.errno, error))
"""


def service(*ports):
    return [word for port in ports for word in ("--host-service", str(port))]


def ask(land, *targets, options=(), **kwargs):
    return land.box("python3", "-c", ASK, *targets, options=options, **kwargs)


@test
def a_service_of_the_host_is_at_the_same_port_inside(place):
    with Land(place) as land:
        land.serve("echo", "127.0.0.1", 5432)
        land.serve("http", "127.0.0.1", 8000)
        done = ask(land, "127.0.0.1:5432", "::1:5432", "localhost:5432", options=service(5432))
        equal(done.text, "".join(f"{host}:5432 b'220 hello\\r\\n'\n" for host in ("127.0.0.1", "::1", "localhost")), done)
        done = land.sh("curl -sS http://localhost:8000/ http://127.0.0.1:8000/", options=service(5432, 8000))
        equal(done.text, "hello from localhost:8000\nhello from 127.0.0.1:8000\n", done)


@test
def a_service_that_listens_at_ipv6_only_is_reached_as_well(place):
    with Land(place) as land:
        land.serve("echo", "::1", 5432)
        done = ask(land, "127.0.0.1:5432", "::1:5432", options=service(5432))
        equal(done.text.count("220 hello"), 2, done)


@test
def a_policy_names_services_and_a_repository_only_takes_them_away(place):
    (place.dir / "policy.yaml").write_text("network: { host-services: [5432, 6379] }\n")
    policy = ("--policy", str(place.dir / "policy.yaml"))
    with Land(place) as land:
        land.serve("echo", "127.0.0.1", 5432)
        land.serve("echo", "127.0.0.1", 6379)
        land.serve("echo", "127.0.0.1", 7000)
        done = ask(land, "127.0.0.1:5432", "127.0.0.1:6379", "127.0.0.1:7000", options=policy)
        equal([line.split()[1][:5] for line in done.text.splitlines()], ["b'220", "b'220", "ECONN"], done)
        (place.work / "cove.yaml").write_text("policy: { network: { host-services: [6379, 7000] } }\n")
        done = ask(land, "127.0.0.1:5432", "127.0.0.1:6379", "127.0.0.1:7000", options=policy)
        equal([line.split()[1] for line in done.text.splitlines()], ["ECONNREFUSED", "b'220", "ECONNREFUSED"], done)


@test
def a_service_that_is_not_there_is_a_connection_that_ends_at_once(place):
    with Land(place) as land:
        done = ask(land, "127.0.0.1:5432", options=service(5432))
        assert done.text in ("127.0.0.1:5432 ECONNRESET\n", "127.0.0.1:5432 ECONNREFUSED\n"), done


@test
def who_listens_there_inside_is_reached_at_the_other_addresses_only(place):
    """The host's service has 127.0.0.1 and ::1, whoever was first."""
    script = """
import socket
server = socket.socket()
server.bind(('0.0.0.0', 5432))
server.listen()
for host in ('127.0.0.1', '127.0.0.2', '192.0.2.2'):
    with socket.create_connection((host, 5432), 10) as s:
        if host != '127.0.0.1':
            server.settimeout(10)
            server.accept()[0].sendall(b'inside')
        print(host, s.recv(99))
"""
    with Land(place) as land:
        land.serve("echo", "127.0.0.1", 5432)
        done = land.box("python3", "-c", script, options=service(5432))
        equal(done.text, "127.0.0.1 b'220 hello\\r\\n'\n127.0.0.2 b'inside'\n192.0.2.2 b'inside'\n", done)


@test
def each_connection_is_recorded(place):
    with Land(place) as land:
        land.serve("echo", "127.0.0.1", 5432)
        report = place.dir / "report.json"
        done = ask(land, "127.0.0.1:5432", "::1:5432", options=[*service(5432), "--report", str(report)])
        equal(done.code, 0, done)
        rows = json.loads(report.read_text())["network"]["requests"]
        equal([(row["host"], row["port"], row["protocol"], row["verdict"], row["count"]) for row in rows], [("127.0.0.1", 5432, "tcp", "allow", 2)])
        assert "network.host-services" in rows[0]["why"], rows


@test
def a_port_at_which_nothing_listens_is_told(place):
    with Land(place) as land:
        done = ask(land, "127.0.0.1:5432", options=[*service(5432), "--summary"])
        assert "  allowed, and failed:\n    could not reach 127.0.0.1 at port 5432: no address of it answers (Connection refused) (1 x)\n" in done.errors, done


@test
def ports_of_the_gateway_and_none_at_all_are_refused(place):
    for port in ("53", "1019", "0", "070", "65536", "x", ""):
        done = place.cove("run", "--rm", "--host-service", port, "--", "true")
        equal(done.code, 125, f"{port}: {done!r}")
        assert "--host-service: " in done.errors, done


if __name__ == "__main__":
    main()
