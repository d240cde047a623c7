"""GW: a gateway between a hostile sandbox and hostile machines outside, of which one is the proxy."""
import json
import os
import pathlib
import signal
import sys

from attack import COVE, UNSAFE, control_fires, equal, main, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import Land, paths, policy  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"]}

# A proxy that opens every tunnel, and says something of its own before the server can.
PROXY = r"""
import socket, sys, threading
def pump(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass
def serve(client):
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(4096)
    server = socket.create_connection(("11.1.1.1", int(head.split()[1].rpartition(b":")[2])))
    client.sendall(b"HTTP/1.1 200 ok\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ninjected")
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    pump(server, client)
listener = socket.create_server(("127.0.0.1", 3128))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


# All heads first, so that all are judged while there is still room; then what they bring.
TOGETHER = r"""
import socket
big, all = b"x" * (4 << 20), []
for i in range(14):
    all.append(socket.create_connection(("web.example.org", 80)))
    all[-1].sendall(b"POST /%d HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: %d\r\n\r\n" % (i, len(big)))
for one in all:
    try:
        one.sendall(big)
        print(one.recv(12)[9:].decode())
    except OSError:
        print("reset")
"""


def exchanges(place, name, without=None):
    """What the server was asked for, and what of it stands in a record in which there was room for little more."""
    record, filled = place.dir / f"{name}.jsonl", 243 << 20
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80, "web.example.org")
        rule = policy(place, "{ host: web.example.org }")
        equal(land.cove("create", "--name", name, *rule, "--record", str(record), without=without).code, 0)
        equal(land.cove("stop", name, without=without).code, 0)
        os.truncate(record, filled - 1)
        with record.open("ab") as file:
            file.write(b"\n")
        equal(land.cove("start", name, without=without).code, 0)
        done = land.cove("exec", name, "--", "python3", "-c", TOGETHER, without=without, timeout=120)
        land.cove("stop", name, without=without)
    with record.open("rb") as file:
        file.seek(filled)
        written = [json.loads(line)["path"] for line in file if line.endswith(b"}\n")]
    return sorted(paths(done)), sorted(written), done


@test(id="GW-26")
def no_exchange_that_was_begun_with_others_is_missing_in_a_record_that_becomes_full(place):
    asked, written, done = exchanges(place, "full")
    equal(written, asked, done)
    assert 0 < len(asked) < 14 and "403" in done.text, f"the others were refused: {done}"
    asked, written, done = exchanges(place, "over", without="record-room")
    control_fires(len(asked) == 14 and len(written) < 14, (asked, written))


@test(id="GW-26")
def what_a_server_was_told_and_did_not_answer_is_in_the_record(place):
    """A server that never answers may have been told everything."""
    tell = "import socket; s = [socket.create_connection(('web.example.org', 80)) for _ in range(3)]; [one.sendall(b'POST /deaf HTTP/1.1\\r\\nHost: web.example.org\\r\\nContent-Length: 9\\r\\n\\r\\nsecret') for one in s]; s[0].recv(1)"
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80, "web.example.org")
        rule = policy(place, "{ host: web.example.org }")
        for name, unsafe in (("all", None), ("some", "record-sent")):
            land.run("true")
            pid = land.start(UNSAFE if unsafe else COVE, "run", "--rm", *rule, "--record", place.dir / name, "--", "python3", "-c", tell, env={"COVE_UNSAFE_WITHOUT": unsafe or ""})
            wait_for(lambda: sum(visit[0] == "request" for visit in land.seen()) == 3, seconds=30, what="the requests")
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not gateways(place), what="the end of the gateway")
        lines = [json.loads(line) for line in (place.dir / "all").read_text().splitlines()]
        equal([(line["path"], line["status"], line["response"]["cut"]) for line in lines], [("/deaf", 0, True)] * 3, lines)
        equal({line["request"]["body"] for line in lines}, {"secret"}, lines)
        control_fires((place.dir / "some").read_text() == "", "only answers are written down")
        done = land.box("curl", "-sS", "-X", "POST", "http://web.example.org/deaf", options=("--replay", str(place.dir / "all")))
        assert "was not recorded whole" in done.text, done


@test(id="GW-17")
def what_a_proxy_says_itself_is_no_answer_of_the_server_that_was_verified(place):
    (place.dir / "p.yaml").write_text("network: { upstream-proxy: 'http://127.0.0.1:3128', rules: [{ host: web.example.org, methods: GET }] }\n")
    options = ("--policy", str(place.dir / "p.yaml"))
    ask = "for how in --http1.1 --http2; do curl -sS $how https://web.example.org/; done; curl -sS http://web.example.org/"
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
        land.start("python3", "-c", PROXY)
        wait_for(lambda: land.run("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 3128), 1)").code == 0, 60, "the proxy")
        done = land.sh(ask, options=options)
        equal((done.text.count("says more than it was asked for"), "injected" in done.text), (3, False), done)
        control = land.sh(ask, options=options, without="early")
        control_fires(control.text.count("injected") == 3, control)


CODES = "for i in 1 2 3 4; do curl -s -m 20 -o /dev/null -w '%{http_code} ' http://web.example.org/; done"


def minute_of(land, options, **kwargs):
    """The answers before and after a sandbox's gateway died, in one minute."""
    land.cove("create", "--name", "c", *options, **kwargs)
    try:
        before = land.cove("exec", "c", "--", "sh", "-c", CODES, **kwargs).text.split()
        first = gateways(land.place)
        os.kill(first[0], signal.SIGKILL)
        wait_for(lambda: gateways(land.place) != first, 10, "its death")
        return before, land.cove("exec", "c", "--", "sh", "-c", "sleep 1.2;" + CODES, **kwargs).text.split()
    finally:
        land.cove("rm", "-f", "c", **kwargs)


@test(id="GW-19")
def who_has_its_gateway_die_gains_nothing_of_a_rate(place):
    """A program inside can make it use more memory than it has; here it is killed, which costs less."""
    (place.dir / "p.yaml").write_text("network: { rules: [{ host: web.example.org, rate: 2/min }] }\n")
    options = ("--policy", str(place.dir / "p.yaml"))
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        equal(minute_of(land, options), (["200", "200", "429", "429"], ["429"] * 4))
        control_fires(minute_of(land, options, without="rates") == (["200", "200", "429", "429"],) * 2, "rates")


@test(id="GW-18")
def rules_that_change_all_the_time_let_nothing_through_that_none_of_them_allows(place):
    loop = "while :; do for i in 1 2 3 4; do curl -s -m 2 http://other.example.org/ & done >/dev/null 2>&1; wait; done"
    sets = ("--allow web.example.org", "--network none", "--allow a..b", f"--policy {place.dir}/no.yaml", f"--policy {place.dir}/half.yaml", "--allow '*.web.example.org:2222'")
    all_sets = ";".join(f"'{COVE}' policy set {options} s >/dev/null 2>&1; printf $?" for options in sets)
    (place.dir / "half.yaml").write_text("network: { rules: [other.example.org")
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}) as land:
        land.serve("http", "11.1.1.2", 80)
        land.cove("create", "--name", "s", "--allow", "web.example.org")
        try:
            land.cove("exec", "-d", "s", "--", "sh", "-c", loop)
            done = land.run("sh", "-c", f"for i in $(seq 10); do {all_sets}; echo; done", timeout=120)
            equal((done.text, done.visits, done.names), ("001251251250\n" * 10, [], []), done)
            control_fires(land.cove("policy", "set", "--allow", "other.example.org", "s").code == 0 and wait_for(land.seen, 20, "a visit"), "the loop")
        finally:
            land.cove("rm", "-f", "s")


# Says what it hears at a service of the host: now, until it is cut, and again.
HELD = """
import socket
with open("heard", "w", buffering=1) as out:
    held = socket.create_connection(("127.0.0.1", 5432), 10)
    print(held.recv(11), file=out)
    for connect in (lambda: held, lambda: socket.create_connection(("127.0.0.1", 5432), 10), lambda: socket.create_connection(("::1", 5432), 10)):
        try:
            print(connect().recv(11) or "nothing", file=out)
        except OSError as error:
            print("nothing", file=out)
"""


@test(id="NET-08")
def a_service_of_the_host_that_is_taken_away_is_cut_off_and_not_reached_again(place):
    with Land(place) as land:
        land.serve("echo", "127.0.0.1", 5432)
        land.serve("echo", "::1", 5432)
        land.cove("create", "--name", "s", "--host-service", "5432")
        try:
            land.cove("exec", "-d", "s", "--", "python3", "-c", HELD)
            def heard():
                return land.cove("exec", "s", "--", "cat", "heard").text.splitlines()
            wait_for(heard, 20, "the service")
            control_fires(heard() == ["b'220 hello\\r\\n'"], heard())
            equal(land.cove("policy", "set", "s").code, 0)
            wait_for(lambda: len(heard()) == 4, 20, "the end")
            equal((heard()[1:], land.seen()), (["nothing"] * 3, []))
        finally:
            land.cove("rm", "-f", "s")


# Ask for much and take nothing; how much of it waits in the kernel, at the gateway's ends of all connections.
GREEDY = """
import socket, time
def waiting():
    rows = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}")]
    return sum(int(row[4].split(":")[0], 16) for row in rows if "03FB" in (row[1].rpartition(":")[2], row[2].rpartition(":")[2]))
clients = [socket.create_connection(("web.example.org", 80)) for _ in range(64)]
for client in clients:
    client.sendall(b"GET /endless HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n")
    client.recv(1000000)
before, now = None, waiting()
while before != now:
    time.sleep(1)
    before, now = now, waiting()
print(now)
"""


@test(id="GW-19")
def what_nobody_takes_waits_at_the_server_and_not_in_the_memory_that_all_share(place):
    """As many connections as a gateway has would take all that the kernel has for TCP.  Few have as much as they like; of
    64 the last ones a sixteenth, and all together less than 80 MB."""
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        options = ("--allow", "web.example.org")
        done = land.box("python3", "-c", GREEDY, options=options)
        assert 0 < int(done.text) < 80000000, done
        control = land.box("python3", "-c", GREEDY, options=options, without="queues")
        control_fires(int(control.text) > 130000000, control)


HOSTS = [f"h{i}.example.org" for i in range(6)]
GET_ALL = "for i in 0 1 2 3 4 5; do curl -s -o f$i -w '%{http_code} ' http://h$i.example.org/big/60000; done; cat f? | wc -c"


@test(id="GW-16")
def a_repository_has_no_more_of_a_bound_by_making_many_rules_of_one(place):
    """The control is an owner who writes as many."""
    (place.dir / "one.yaml").write_text("network: { rules: [{ host: '*.example.org', bytes: 100K }] }\n")
    (place.dir / "many.yaml").write_text("network: { rules: [" + ", ".join(f"{{ host: {host}, bytes: 100K }}" for host in HOSTS) + "] }\n")
    by_path = ", ".join(f"{{ host: '{host}', paths: [/big/60000], methods: [GET] }}" for host in HOSTS)
    with Land(place, {host: ["11.1.1.1"] for host in HOSTS}) as land:
        land.serve("http", "11.1.1.1", 80)
        for rules in (", ".join(HOSTS), by_path, ", ".join(f"{{ host: {host}, bytes: 100K }}" for host in HOSTS)):
            (place.work / "cove.yaml").write_text(f"policy: {{ network: {{ rules: [{rules}] }} }}\n")
            done = land.sh(GET_ALL, options=("--policy", str(place.dir / "one.yaml")))
            assert done.text.startswith("200 200 403 403 403 403 ") and int(done.text.split()[-1]) < 104000, done
            control = land.sh(GET_ALL, options=("--policy", str(place.dir / "many.yaml")))
            control_fires(control.text.split() == ["200"] * 6 + ["360000"], control)


if __name__ == "__main__":
    main()
