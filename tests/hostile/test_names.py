"""DNS: names, and what becomes of them.  Inside, a name gets an address that stands for it; outside, only an allowed name is
asked for, when somebody connects to it, and in one form."""
import contextlib
import json
import os
import pathlib
import signal
import struct
import sys

from attack import control_fires, equal, main, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import Land, paths, policy, write_name  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402
from support.staying import let_through_to  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}


def question(name, kind=1, family=1, flags=0x0100, counts=(1, 0, 0, 0), more=b""):
    """A message that asks for a name, or what may be taken for one."""
    return struct.pack("!HHHHHH", 7, flags, *counts) + (name if isinstance(name, bytes) else write_name(name)) + struct.pack("!HH", kind, family) + more


def options(*list_of):
    """The record by which a question says more of itself, with options as pairs of a code and bytes."""
    data = b"".join(struct.pack("!HH", code, len(value)) + value for code, value in list_of)
    return b"\0" + struct.pack("!HHIH", 41, 4096, 0, len(data)) + data


def asked_for(name):
    """The two questions by which a gateway asks for a name, but for their ids.  Nothing else of what was said inside is in them."""
    more = b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0)
    return {question(name, kind, counts=(1, 0, 0, 1), more=more)[2:].hex() for kind in (1, 28)}


@contextlib.contextmanager
def staying(land, *words, **kwargs):
    """A sandbox that stays: `inside(script)` runs a script of Python in it."""
    ident = land.cove("create", *words, **kwargs).text.strip()
    try:
        def inside(script, *arguments):
            done = land.cove("exec", ident, "--", "python3", "-c", script, *arguments, timeout=120, **kwargs)
            equal(done.code, 0, done)
            return done
        inside.ident = ident
        yield inside
    finally:
        land.cove("rm", "-f", ident, **kwargs)


def requests(seen):
    """Whom requests that arrived were for, and where."""
    return {(visit[3], visit[1]) for visit in seen.visits if visit[0] == "request"}


# --- who asks --------------------------------------------------------------------------------------

# Of each kind of client the names begin with another word.
CLIENTS = """
import os, shutil, socket, struct, subprocess
zone = os.urandom(8).hex() + ".secret.example.org"
def run(*words, **env):
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env})
run("getent", "ahosts", "libc." + zone)
node, go = shutil.which("node"), shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
if node:  # c-ares
    run(node, "-e", "const d = require('dns'); for (const t of ['A', 'AAAA', 'TXT', 'SRV', 'MX', 'CNAME', 'ANY']) d.resolve('cares.%s', t, () => {});" % zone)
if go:  # its own resolver
    run(go, "mod", "download", "example.org/x@v1.0.0", GODEBUG="netdns=go", GOPROXY="http://go." + zone, GONOSUMDB="*", GOFLAGS="-mod=mod", GOPATH="/tmp/go", GOCACHE="/tmp/gocache", GOTOOLCHAIN="local")
servers = ["127.0.0.1", "::1", "192.0.2.2", "198.18.0.1", "8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "149.112.112.112", "208.67.222.222", "208.67.220.220", "94.140.14.14", "94.140.15.15",
           "76.76.2.0", "185.228.168.9", "64.6.64.6", "77.88.8.8", "114.114.114.114", "223.5.5.5", "11.1.1.1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2620:fe::fe"]
message = struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in ("hand." + zone).split(".")) + struct.pack("!BHH", 0, 16, 1)
for server in servers:
    for kind, say in ((socket.SOCK_DGRAM, message), (socket.SOCK_STREAM, struct.pack("!H", len(message)) + message)):
        try:
            with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, kind) as s:
                s.settimeout(1)
                s.connect((server, 53))
                s.send(say)
                if server in ("127.0.0.1", "8.8.8.8"):
                    s.recv(999)
        except OSError:
            pass
print("libc hand", "cares" * bool(node), "go" * bool(go))
"""


def secrets(seen):
    return {name.partition(".")[0] for name in seen.names if name.endswith(".secret.example.org")}


@test(id="DNS-01")
def no_client_s_own_resolver_asks_outside_for_a_name_that_is_not_allowed(place):
    with Land(place, ZONE) as land:
        for words in ([], ["-6"]):
            land.run("ip", *words, "route", "add", "local", "default", "dev", "lo")  # a packet to any of them would be counted
        for words in (("--allow", "web.example.org"), ()):
            done = land.box("python3", "-c", CLIENTS, options=words)
            equal((done.code, done.names, done.packets), (0, [], 0), done)
        control = land.box("python3", "-c", CLIENTS, options=("--allow", "web.example.org"), without="network")
        control_fires(secrets(control) == set(done.text.split()) and control.packets > 2 * 20, control)


UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
# Each to a name of its own, NAME: at the gateway as a proxy, at an allowed host, and at the name itself.
WEBSOCKETS = [f"GET http://NAME/ws HTTP/1.1\r\nHost: NAME\r\n{UPGRADE}", f"GET ws://NAME/ws HTTP/1.1\r\nHost: NAME\r\n{UPGRADE}", f"GET /ws HTTP/1.1\r\nHost: NAME\r\n{UPGRADE}",
              f"CONNECT NAME:80 HTTP/1.1\r\nHost: NAME:80\r\n\r\nGET /ws HTTP/1.1\r\nHost: NAME\r\n{UPGRADE}", f"GET http://u:p@NAME/ws HTTP/1.1\r\nHost: NAME\r\n{UPGRADE}"]
SAY_EACH = """
import json, os, socket, sys
from concurrent.futures import ThreadPoolExecutor
def say(row):
    number, to, text = row
    name = f"n{number}.{os.urandom(8).hex()}.secret.example.org"
    try:
        with socket.create_connection((to or name, 1019 if to == "127.0.0.1" else 80), 5) as s:
            s.sendall(text.replace("NAME", name).encode())
            if s.recv(9999).startswith(b"HTTP/1.1 200 Conn"):
                s.recv(9999)
    except OSError:
        pass
with ThreadPoolExecutor(15) as pool:
    list(pool.map(say, json.loads(sys.argv[1])))
"""


@test(id="DNS-02")
def no_name_that_is_not_allowed_is_asked_for_because_a_websocket_has_it(place):
    rows = [[f"{i}-{to.partition('.')[0] or 'itself'}", to, text] for i, text in enumerate(WEBSOCKETS) for to in ("127.0.0.1", "web.example.org", "")]
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        script = ("python3", "-c", SAY_EACH, json.dumps(rows))
        done = land.box(*script, options=("--allow", "web.example.org"))
        equal((done.code, secrets(done), paths(done)), (0, set(), []), done)
        control = land.box(*script, options=("--allow", "web.example.org"), without="rules")
        control_fires({"n0-127", "n2-itself", "n3-127", "n0-web"} <= secrets(control), control)
        control_fires(paths(land.box(*script, options=("--allow", "web.example.org"), without="agreement")), "an upgrade that is passed on")


# --- what is asked ---------------------------------------------------------------------------------

TUNNEL = "data.tunnel.example.org"  # a rule allows it
OTHER_TYPES = {"CNAME": 5, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "SRV": 33, "NAPTR": 35, "DS": 43, "SVCB": 64, "HTTPS": 65}
LONG = write_name(".".join(["a" * 63] * 5))
# What is sent, and the code of its answer (None: there is none).  With code 0 and an odd type there is no record in it.
ODD_QUESTIONS = {
    **{name: (question(TUNNEL, kind), 0) for name, kind in OTHER_TYPES.items()},
    **{name: (question(TUNNEL, kind), 5) for name, kind in (("IXFR", 251), ("AXFR", 252), ("MAILB", 253), ("ANY", 255))},
    "class CH": (question("version.bind", 16, 3), 5), "class ANY": (question(TUNNEL, 1, 255), 5), "class 0": (question(TUNNEL, 1, 0), 5),
    "status": (question(TUNNEL, flags=0x1000), 4), "notify": (question(TUNNEL, 6, flags=0x2400), 4), "update": (question(TUNNEL, 6, flags=0x2800), 4),
    "an answer": (question(TUNNEL, flags=0x8180), None), "0 questions": (question(TUNNEL, counts=(0, 0, 0, 0)), 1), "nothing": (b"", None), "half a head": (question(TUNNEL)[:7], None),
    "2 questions": (question(TUNNEL, counts=(2, 0, 0, 0), more=write_name("second.tunnel.example.org") + b"\0\1\0\1"), 1), "65535 questions": (question(TUNNEL, counts=(65535, 0, 0, 0)), 1),
    "half a name": (question(TUNNEL)[:20], 1), "no type": (question(TUNNEL)[:-4], 1),
    "a pointer to itself": (question(b"\xc0\x0c"), 1), "a pointer forwards": (question(b"\xc0\x20" + b"\0" * 30), 1), "two that lead to each other": (question(b"\xc0\x0e\xc0\x0c"), 1),
    "a label and a pointer to it": (question(b"\1a\xc0\x0c"), 1), "a pointer into the head": (question(b"\1a\xc0\x04"), 0), "a label of 64": (question(b"\x40" + b"a" * 64 + b"\0"), 1), "an odd label": (question(b"\x81a\0"), 1),
    "a long name": (question(LONG), 1), "a dot in a label": (question(b"\3a.b\7example\3org\0"), 1), "a zero in a label": (question(b"\3a\0b\7example\3org\0"), 1),
    "a blank": (question("a b.example.org"), 3), "an escape": (question("\x1b[2J.example.org"), 3), "no letters of ours": (question("b\xfccher.example.org"), 3), "an address": (question("11.1.1.1"), 3),
    "the root": (question(b"\0"), 3),
    # These are answered as usual, and what they bring along ends here.
    "an option": (question(TUNNEL, counts=(1, 0, 0, 1), more=options((65001, b"secret" * 20))), 0), "a subnet": (question(TUNNEL, counts=(1, 0, 0, 1), more=options((8, b"\0\1\x18\0\x0b\1\1"))), 0),
    "a cookie": (question(TUNNEL, counts=(1, 0, 0, 1), more=options((10, b"8 bytes."))), 0), "all flags": (question(TUNNEL, flags=0x07f0), 0), "more behind": (question(TUNNEL, more=b"secret" * 200), 0),
    "letters of both cases": (question("DaTA.tUnNEl.eXamPLe.oRg"), 0), "records": (question(TUNNEL, counts=(1, 1, 1, 0), more=b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x0b\6\6\6" * 2), 0),
    "4096 bytes": (question(TUNNEL, more=b"x" * (4096 - len(question(TUNNEL)))), 0), "60000 bytes": (question(TUNNEL, more=b"x" * 60000), 0),
}
ASK_EACH = """
import json, socket, struct, sys
with open("questions.json") as file:
    rows = {name: bytes.fromhex(text) for name, text in json.load(file).items()}
def ask(message, wait):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(wait)
        s.sendto(message, ("127.0.0.1", 53))
        return s.recv(9999)
def ask_by_tcp(message):
    with socket.create_connection(("127.0.0.1", 53), 5) as s:
        s.settimeout(0.5)
        s.sendall(struct.pack("!H", len(message)) + message)
        s.recv(9999)
said = {}
for name, message in rows.items():
    try:
        heard = ask(message, 0.2 if name in ("nothing", "an answer", "half a head") else float(sys.argv[1]))
        said[name] = heard[3] & 15, heard[7]
    except OSError as error:
        said[name] = None, str(error)
    try:
        ask_by_tcp(message)
    except OSError:
        pass
print(json.dumps(said))
"""
ONE_REQUEST = """
import socket, sys
for name in sys.argv[1:]:
    with socket.create_connection((name, 80), 10) as s:
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % name.encode())
        while s.recv(999):
            pass
"""


@test(id="DNS-03")
def a_question_of_any_kind_is_answered_inside_and_nothing_of_it_is_passed_on(place):
    """All of these names are allowed, so only that nobody connects to them is in the way."""
    (place.work / "questions.json").write_text(json.dumps({name: message.hex() for name, (message, _) in ODD_QUESTIONS.items()}))
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        with staying(land, "--allow", "*.example.org") as inside:
            inside("import socket; socket.gethostbyname('web.example.org')")
            before = gateways(place)
            done = inside(ASK_EACH, "5")
            equal((done.questions, done.packets), ([], 0), "what was asked outside")
            said = json.loads(done.text)
            equal({name: said[name][0] for name in said}, {name: code for name, (_, code) in ODD_QUESTIONS.items()}, "codes of the answers")
            equal([name for name in said if name in OTHER_TYPES and said[name][1]], [], "answers with records")
            equal((gateways(place), len(before)), (before, 1), "the gateway, which none of them ended")
            done = inside(ONE_REQUEST, "wEb.eXAMple.ORG")
            equal((set(done.questions), requests(done)), (asked_for("web.example.org"), {("web.example.org", "11.1.1.1:80")}), done)
        with staying(land, "--allow", "*.example.org", without="network") as inside:
            control = inside(ASK_EACH, "0.02")
            missing = [name for name, (message, _) in ODD_QUESTIONS.items() if message[2:].hex() not in control.questions]
            control_fires(not missing, f"these did not arrive: {missing}")


# --- how much is asked -----------------------------------------------------------------------------

# Labels as long as they may be, that nobody has seen before: looked up, and then dialled in three ways.
TRICKLE = """
import os, socket, struct
def names(count):
    return [".".join([os.urandom(30).hex()] * 3) + ".example.org" for _ in range(count)]
for name in names(300):
    socket.getaddrinfo(name, 80)
def hear(s):
    try:
        s.sendall(say.encode())
        s.recv(9999)
    except OSError:
        pass
for name in names(20):
    for to, say in ((name, f"GET / HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n"), ("127.0.0.1", f"GET http://a.{name}/ HTTP/1.1\\r\\nHost: a.{name}\\r\\n\\r\\n"), ("127.0.0.1", f"CONNECT b.{name}:443 HTTP/1.1\\r\\nHost: b.{name}:443\\r\\n\\r\\n")):
        with socket.create_connection((to, 1019 if to == "127.0.0.1" else 80), 10) as s:
            hear(s)
            if say.startswith("CONNECT"):
                say = f"GET / HTTP/1.1\\r\\nHost: b.{name}:443\\r\\n\\r\\n"
                hear(s)
"""
EACH_BOUND = {"connections": ("--network-connections", "8"), "requests": ("--network-requests", "8")}


@test(id="DNS-04")
def names_below_an_allowed_one_leave_one_by_one_within_the_budget_and_are_written_down(place):
    """300 names are only looked up, 60 are dialled."""
    bounds = {**{name: (*words, "--allow", "*.example.org") for name, words in EACH_BOUND.items()}, "rate": policy(place, "{ host: '*.example.org', rate: 8/min }")}
    with Land(place, ZONE) as land:
        for name, words in bounds.items():
            with staying(land, *words) as inside:
                done = inside(TRICKLE)
                equal(len(set(done.names)), 8, f"names that were asked for outside with a bound of {name}")
                equal(set(done.names) - let_through_to(place, inside.ident), set(), "of them not in the trace")
        with staying(land, "--allow", "*.example.org") as inside:
            control = inside(TRICKLE)
            control_fires(len(set(control.names)) == 60, control)
            equal(set(control.names) - let_through_to(place, inside.ident), set(), "without a bound: of them not in the trace")


# --- other ways to ask -----------------------------------------------------------------------------

OTHER_WAYS = """
import socket, ssl, struct
message = struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + b"\\6secret\\7example\\3net\\0\\0\\1\\0\\1"
blind = ssl._create_unverified_context()
for to in ("dns.example.net", "11.8.8.8", "2a00::8", "224.0.0.251", "ff02::fb%lo", "239.255.255.250"):
    for port in (443, 784, 853, 5300, 5353, 5355, 8853):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            try:
                family, _, _, _, address = socket.getaddrinfo(to, port, 0, kind)[0]
                with socket.socket(family, kind) as s:
                    s.settimeout(3)
                    s.connect(address)
                    if port == 443 and kind == socket.SOCK_STREAM:
                        with blind.wrap_socket(s, server_hostname="dns.example.net") as t:
                            t.sendall(b"POST /dns-query HTTP/1.1\\r\\nHost: dns.example.net\\r\\nContent-Type: application/dns-message\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n" % len(message) + message)
                            t.recv(999)
                    else:
                        s.send(struct.pack("!H", len(message)) * (kind == socket.SOCK_STREAM) + message)
                        if kind == socket.SOCK_STREAM:
                            s.recv(999)
            except OSError:
                pass
"""
OTHER_PORTS = (784, 853, 5300, 5353, 5355, 8853)


@test(id="DNS-05")
def a_name_server_by_tls_https_or_at_another_port_is_a_host_like_any_other(place):
    ask = ("python3", "-c", OTHER_WAYS)
    doh = ["request", "11.8.8.8:443", "POST", "dns.example.net", "/dns-query"]
    with Land(place, {**ZONE, "dns.example.net": ["11.8.8.8"]}) as land:
        land.run("ip", "route", "add", "multicast", "224.0.0.0/4", "dev", "lo")
        for port in OTHER_PORTS:
            land.serve("echo", "11.8.8.8", port)
        for port in (443, *OTHER_PORTS):
            land.serve("udp", "11.8.8.8", port)
        land.serve("tls", "11.8.8.8", 443, "dns.example.net")
        done = land.box(*ask, options=("--allow", "web.example.org"))
        equal((done.code, done.visits, done.names, done.packets), (0, [], [], 0), done)
        done = land.box(*ask, options=("--network", "open"))
        equal((done.code, [visit for visit in done.visits if visit[0] == "datagram"]), (0, []), "datagrams where the network is open")
        done = land.box(*ask, options=("--allow", "dns.example.net", "--allow", "dns.example.net:853"))
        equal((set(done.names), {tuple(visit[:5]) for visit in done.visits}), ({"dns.example.net"}, {("connection", "11.8.8.8:853"), ("connection", "11.8.8.8:443"), tuple(doh)}), "allowed as any host is")
        control = land.box(*ask, options=("--allow", "web.example.org"), without="network")
        wanted = {("datagram", f"11.8.8.8:{port}") for port in (443, *OTHER_PORTS)} | {("connection", f"11.8.8.8:{port}") for port in OTHER_PORTS}
        control_fires(wanted <= {tuple(visit[:2]) for visit in control.visits} and doh in [visit[:5] for visit in control.visits], control)


# --- who answers -----------------------------------------------------------------------------------

BAD, GOOD, FOREVER = "11.6.6.6", "11.1.1.1", 0xffffffff
CHAIN = [[f"c{i}.x", f"c{i + 1}.x", FOREVER] for i in range(100)]
# The first answer leads to the bad server but for one thing, the second one to the good server.  These are not taken for an answer:
FOREIGN = {"id": {"id": 1}, "all of the id": {"id": 0xffff}, "no answer": {"flags": 0x0100}, "another name": {"name": "web.example.org"}, "part of the name": {"name": "example.org"},
           "another type": {"type": 16}, "another class": {"class": 3}, "another port": {"from": ["127.0.0.1", 5353]}, "another machine": {"from": ["127.0.0.2", 53]}}
# And these have no address for whoever asked:
POINTER, ADDRESS = "c00c00010001ffffffff", "0b060606"  # a record of the name that was asked for, up to its length
SPOILT = {"refused": {"flags": 0x8185}, "cut": {"flags": 0x8380}, "counts": {"counts": [65535, 65535, 65535], "raw": ""}, "a name that leads to itself": {"counts": [1, 0, 0], "raw": "c023000100010000000000040b060606"},
          "a long record": {"counts": [1, 0, 0], "raw": POINTER + "ffff" + ADDRESS}, "a short one": {"counts": [1, 0, 0], "raw": POINTER + "00030b0606"}, "half of one": {"counts": [1, 0, 0], "raw": "00"},
          "a record of another class": {"counts": [1, 0, 0], "raw": "c00c00010003ffffffff0004" + ADDRESS}, "of another type": {"counts": [1, 0, 0], "raw": "c00c00100001ffffffff0004" + ADDRESS},
          "an alias of nothing": {"counts": [1, 0, 0], "raw": "c00c00050001000000000000"}, "much before it": {"counts": [301, 0, 0], "raw": "c00c00100001000000000000" * 300 + POINTER + "0004" + ADDRESS}}
PLAIN = {"true.example.org": {}, "bare.example.org": {"counts": [1, 0, 0], "raw": POINTER + "0004" + ADDRESS}}  # the same without a lie


def lie_name(number):
    return f"lie{number:02}.example.org"  # all as long: records begin at byte 35, which one of them points to


def hostile_zone():
    poison = [["web.example.org", BAD, FOREVER], ["web.example.org", "2a00::6", FOREVER], ["*.example.org", BAD, FOREVER], ["example.org", BAD, FOREVER]]
    def leads(name, where):
        return {"answers": [[name, where, 0]]}
    zone = {
        **ZONE,
        "extra.example.org": [{"answers": [*poison, ["extra.example.org", GOOD, FOREVER]], "authorities": poison, "extra": poison}],
        "alias.example.org": [{"answers": [["alias.example.org", "web.example.org", FOREVER], *poison], "extra": poison}],
        "chain.example.org": [{"answers": [["chain.example.org", "c0.x", FOREVER], *CHAIN, ["c100.x", BAD, FOREVER]]}],
        "short.example.org": [{"answers": [["short.example.org", "c95.x", FOREVER], *CHAIN[95:], ["c100.x", GOOD, FOREVER]]}],
        "ring.example.org": [{"answers": [["ring.example.org", "a.x", 0], ["a.x", "b.x", 0], ["b.x", "a.x", 0], ["c.x", BAD, 0]]}],
        "inner.example.org": [{"answers": [["inner.example.org", "db.corp", 0], ["db.corp", "10.1.1.1", 0]]}],
        "turn.example.org": [{"answers": [["turn.example.org", BAD, FOREVER]]}],
    }
    lies = {lie_name(i): said for i, said in enumerate([*FOREIGN.values(), *SPOILT.values()])}
    return {**zone, **{name: [{**leads(name, BAD), **said}, leads(name, GOOD)] for name, said in {**PLAIN, **lies}.items()}}


ASK_ALL = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def ask(name):
    try:
        with socket.create_connection((name, 80), 20) as s:
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % name.encode())
            while s.recv(999):
                pass
    except OSError:
        pass
with ThreadPoolExecutor(40) as pool:
    list(pool.map(ask, sys.argv[1:]))
"""


@test(id="DNS-06")
def what_a_hostile_name_server_says_is_believed_of_the_name_that_was_asked_for_and_in_one_sandbox(place):
    zone = hostile_zone()
    hostile = [name for name in zone if name not in ZONE]
    with Land(place, zone) as land:
        land.run("ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo")
        for address in (GOOD, BAD, "10.1.1.1", "11.1.1.2", "2a00::6"):
            land.serve("http", address, 80)
        with staying(land, "--allow", "*.example.org") as inside:
            inside(ASK_ALL, "other.example.org")  # known before
            before = gateways(place)
            done = inside(ASK_ALL, *hostile)
            at_bad = {host for host, where in requests(done) if where != f"{GOOD}:80"}
            equal(at_bad - set(PLAIN), {"alias.example.org", "turn.example.org"}, "who was led elsewhere, by what was said of it")
            control_fires(set(PLAIN) <= at_bad, "an answer without a lie is believed, also if another follows")
            at_good = {host for host, where in requests(done) if where == f"{GOOD}:80"}
            equal(at_good, {"short.example.org", "extra.example.org", *map(lie_name, range(len(FOREIGN)))}, "who was led where it should be")
            equal(set(done.names), set(hostile), "names that were asked for, and none that an answer has")
            done = inside(ASK_ALL, "web.example.org", "other.example.org")
            equal(requests(done), {("web.example.org", f"{GOOD}:80"), ("other.example.org", "11.1.1.2:80")}, "names that others told of")
            equal((gateways(place), len(before)), (before, 1), "the gateway, which none of them ended")
            land.ask(zone={name: [GOOD] for name in zone})
            with staying(land, "--allow", "*.example.org") as another:
                done = another(ASK_ALL, "turn.example.org", "web.example.org")
                equal(requests(done), {("turn.example.org", f"{GOOD}:80"), ("web.example.org", f"{GOOD}:80")}, "another sandbox asks by itself")
            control_fires(requests(inside(ASK_ALL, "turn.example.org")) == {("turn.example.org", f"{BAD}:80")}, "the first one keeps what it heard")


# --- addresses -------------------------------------------------------------------------------------

# An address that a name did not get from us, or that another one did; the path says which.
BY_ADDRESS = """
import socket, ssl, sys
blind = ssl._create_unverified_context()
web, other, closed = (socket.gethostbyname(name) for name in ("web.example.org", "other.example.org", "closed.example.org"))
web6 = socket.getaddrinfo("web.example.org", 80, socket.AF_INET6)[0][4][0]
count = 0
def say(to, port, host, good=False):
    global count
    path = "/good" if good else f"/bad{count}-{to}-{port}-{host}"
    count += 1
    try:
        with socket.create_connection((to, port), 3) as s:
            s = blind.wrap_socket(s, server_hostname=host) if port == 443 else s
            s.sendall(f"GET {path} HTTP/1.1\\r\\nHost: {host}{':8080' * (port == 8080)}\\r\\nConnection: close\\r\\n\\r\\n".encode())
            while s.recv(999):
                pass
    except (OSError, ValueError):
        pass
for port in (80, 443):
    say(web, port, "web.example.org", good=True)
say(web6, 80, "web.example.org", good=True)
for port in (80, 443, 8080):
    for host in ("web.example.org", "11.1.1.1", "closed.example.org"):
        for to in ("11.1.1.1", "11.1.1.3", "::ffff:11.1.1.1", "2a00::1"):  # where the names lead
            say(to, port, host)
    say(web, port, "other.example.org")
    say(other, port, "web.example.org")
    say(other, port, "other.example.org", good=port == 8080)
    say(web, port, "closed.example.org")
    say(closed, port, "web.example.org")
    say(closed, port, "closed.example.org")
    for near in (0, 1, 255, 4096 + 256, 65535):  # nobody's
        say(f"198.18.{near >> 8}.{near & 255}", port, "web.example.org")
        say(f"fd00:c0fe:0:1::{near:x}", port, "web.example.org")
    say("fd00:c0fe:0:1:0:0:1:100", port, "web.example.org")
say(web, 8080, "web.example.org")
"""


@test(id="DNS-09")
def an_address_is_dialled_only_as_the_name_that_it_was_given_for(place):
    zone = {"web.example.org": ["11.1.1.1", "2a00::1"], "other.example.org": ["11.1.1.1"], "closed.example.org": ["11.1.1.3"]}
    words = ("--allow", "web.example.org", "--allow", "other.example.org:8080")
    with Land(place, zone) as land:
        for address in ("11.1.1.1", "11.1.1.3", "2a00::1"):
            for port in (80, 8080):
                land.serve("http", address, port)
            if ":" not in address:
                land.serve("tls", address, 443, "web.example.org")
        done = land.box("python3", "-c", BY_ADDRESS, options=words)
        equal((done.code, set(done.names), sorted(paths(done))), (0, {"web.example.org", "other.example.org"}, ["/good"] * 4), done)
        equal(len([visit for visit in done.visits if visit[0] == "connection"]), 4, "connections")
        control = {path.partition("-")[2].replace("198.18.1.0", "web") for path in paths(land.box("python3", "-c", BY_ADDRESS, options=words, without="rules,agreement,upstream"))}
        control_fires({"11.1.1.1-80-web.example.org", "11.1.1.1-443-web.example.org", "11.1.1.3-80-web.example.org", "web-80-other.example.org", "web-443-closed.example.org"} <= control, control)


# Dials an address that was given earlier.
REMEMBER = "import socket; print(socket.gethostbyname('web.example.org'), socket.getaddrinfo('web.example.org', 80, socket.AF_INET6)[0][4][0])"
DIAL_AGAIN = """
import socket, sys
for to in sys.argv[1:]:
    try:
        with socket.create_connection((to, 80), 5) as s:
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: web.example.org\\r\\nConnection: close\\r\\n\\r\\n")
            s.recv(999)
    except OSError:
        pass
"""


@test(id="DNS-09")
def an_address_that_was_given_earlier_leads_where_the_name_does_now_or_nowhere(place):
    with Land(place, ZONE) as land:
        for address in ("11.1.1.1", "11.1.1.2"):
            land.serve("http", address, 80)
        with staying(land, "--allow", "web.example.org") as inside:
            given = inside(REMEMBER).text.split()
            def arrive():
                return [visit[1] for visit in inside(DIAL_AGAIN, *given).visits if visit[0] == "request"]
            control_fires(arrive() == ["11.1.1.1:80"] * 2, given)
            land.ask(zone={"web.example.org": ["11.1.1.2"]})
            inside("import time; time.sleep(2.1)")  # what was heard is kept for two seconds at least
            equal(arrive(), ["11.1.1.2:80"] * 2, "after the name has moved")
            land.cove("policy", "set", "--allow", "other.example.org", inside.ident)
            equal(arrive(), [], "after other rules")
            land.cove("policy", "set", "--allow", "web.example.org", inside.ident)
            equal(arrive(), [], "of a gateway that is gone")
            equal(inside(REMEMBER).text.split() != given, True, "it has another address now")
            before, given = gateways(place), inside(REMEMBER).text.split()
            control_fires(arrive() == ["11.1.1.2:80"] * 2, given)
            os.kill(before[0], signal.SIGKILL)
            wait_for(lambda: gateways(place) != before, 10, "its death")
            inside("import time; time.sleep(1.2)")
            inside(REMEMBER.replace("web.", "other."))  # which may get its place
            equal(arrive(), [], "after the gateway was killed")


# --- which names there are -------------------------------------------------------------------------

# Names that mean another machine everywhere, and spellings that mean none.
NEVER = ["db", "instance-data", "wpad", "printer.local", "a.b.local", "localhost", "localhost.", "LocalHost", "a.localhost", "a.b.localhost.", "metadata.google.internal", "METADATA.google.internal.",
         "b\u00fccher.example.org", "\uff57\uff45\uff42.example.org", "web\u3002example\u3002org", "we\u200bb.example.org", "example.or\u212a", "xn--.example.org", "xn--a-.example.org", "-a.example.org", "a_b.example.org", "a..example.org", ".example.org",
         "a" * 64 + ".example.org", ".".join(["a" * 60] * 5) + ".org", "web.example.org..", "web.example.org%00.example.net", "web.example.org\\.example.net", "web", "127.1", "0x7f.1", "1.2.3.4.5", "11.1.1.1."]
# Each is asked for in one form.
ASKED = {"WEB.Example.Org": "web.example.org", "web.example.org.": "web.example.org", "xn--bcher-kva.example.org": "xn--bcher-kva.example.org", "XN--BCHER-KVA.example.org": "xn--bcher-kva.example.org",
         "xn--0.example.org": "xn--0.example.org", "xn--99999999999.example.org": "xn--99999999999.example.org", "localhost.example.org": "localhost.example.org", "local.example.org": "local.example.org"}
# By libc and by hand, with each name as it is.  Then dialled, and named to the gateway as to a proxy.
NAME_EACH = """
import json, os, socket, struct, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
def say(to, text):
    try:
        with socket.create_connection(to, 5) as s:
            s.sendall(text.encode())
            s.recv(999)
    except (OSError, UnicodeError):
        pass
def by_hand(name):
    labels = [label.encode() for label in name.rstrip(".").split(".")]
    if all(0 < len(label) < 64 for label in labels):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(2)
            s.sendto(struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l for l in labels) + b"\\0\\0\\1\\0\\1", ("127.0.0.1", 53))
            try:
                s.recv(999)
            except OSError:
                pass
def each(name):
    by_hand(name)
    say((name.encode(), 80), f"GET /dialled HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n")
    say(("127.0.0.1", 1019), f"GET http://{name}/named HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n")
    say(("127.0.0.1", 1019), f"CONNECT {name}:80 HTTP/1.1\\r\\nHost: {name}:80\\r\\n\\r\\nGET /tunnelled HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n")
with open("names.json") as file, ThreadPoolExecutor(16) as pool:
    list(pool.map(each, json.load(file)))
"""


@test(id="DNS-10")
def a_name_has_one_form_and_those_of_no_machine_outside_are_never_asked_for(place):
    (place.work / "names.json").write_text(json.dumps([*NEVER, *ASKED]))
    ask = ("python3", "-c", NAME_EACH)
    zone = {name: ["11.1.1.1"] for name in {*ASKED.values(), *NEVER, "web.corp.example.org", "db.corp.example.org"}}
    with Land(place, zone) as land:
        (place.dir / "resolv.conf").write_text("search corp.example.org example.org\noptions ndots:5\nnameserver 127.0.0.1\n")
        for address in ("11.1.1.1", "127.0.0.1"):
            land.serve("http", address, 80)
        for words in (("--network", "open"), ("--audit",), ("--allow", "*.example.org")):
            done = land.box(*ask, options=words)
            equal((done.code, set(done.names)), (0, set(ASKED.values())), f"names that were asked for outside: {words}")
            equal(set(done.questions), set().union(*map(asked_for, ASKED.values())), "what else was said")
            equal(requests(done), {(name, "11.1.1.1:80") for name in ASKED.values()}, "who was visited")
        control = land.box(*ask, options=("--network", "open"), without="rules,upstream")
        control_fires({"db", "printer.local", "a.localhost", "metadata.google.internal"} <= set(control.names), control)
        control = land.box(*ask, options=("--network", "open"), without="network")
        control_fires({"b\u00fccher.example.org".encode().decode("latin1"), "localhost"} <= set(control.names), control)
        control_fires("web.corp.example.org" in land.run("getent", "ahosts", "web").names, "who searches")


main()
