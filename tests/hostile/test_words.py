"""GW: what is said to a gateway: names, addresses, URLs, fields, and how slowly."""
import ast
import hashlib
import itertools
import json
import pathlib
import re
import shutil
import ssl
import sys
import time

from attack import PATIENCE, ROOT, control_fires, equal, main, memory_of, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import Land, page, paths, policy  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402
from support.staying import requested  # noqa: E402

GATE = ("127.0.0.1", 1019)

# Each row is a connection of its own: where to, and what is said there, piece by piece, each after an answer to the one before.
TALK = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def talk(row):
    heard = b""
    try:
        with socket.create_connection((row["to"][0].encode("latin1"), row["to"][1]), 5) as s:
            s.settimeout(5)
            for piece in row["say"]:
                s.sendall(piece.encode("latin1"))
                heard = s.recv(9999)
                if not heard:
                    break
    except (OSError, UnicodeError):
        pass
    return heard[9:12].decode("latin1") or "none"
with ThreadPoolExecutor(16) as pool:
    print(*pool.map(talk, json.load(open(sys.argv[1]))))
"""


def talk(place, rows, name="rows.json"):
    (place.work / name).write_text(json.dumps([{"to": to, "say": say} for to, say in rows]))
    return "python3", "-c", TALK, name


def wire(text):
    """As it is in JSON: a character for each byte."""
    return text.encode().decode("latin1")


def ask(path, at, more=""):
    return f"GET {path} HTTP/1.1\r\nHost: {at}\r\n{more}Connection: close\r\n\r\n"


def ways(host, port, mark):
    """Each way to ask a gateway for a host: as a proxy, by a tunnel, and dialled."""
    at = wire(f"[{host}]" if host.count(":") > 1 and host[0] != "[" else host) + f":{port}"
    return [(GATE, [ask(f"http://{at}/{mark}/url", at)]), (GATE, [f"CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n", ask(f"/{mark}/tunnel", at)]),
            ((wire(host.strip("[]")), port), [ask(f"/{mark}/dialled", at)])]


def marks(seen):
    """Row and way of what arrived."""
    return {path.strip("/") for path in paths(seen)}


def all_ways(numbers):
    return {f"{number}/{way}" for number in numbers for way in ("url", "tunnel", "dialled")}


def truth():
    """Rules to their rows: a number, host, port, verdict."""
    lines = re.findall(r'^\{ ("[^"]*"), ("[^"]*"), (\d+), (\w+) \},$', (ROOT / "tests/unit/gateway/truth.def").read_text(), re.MULTILINE)
    found = {}
    for number, (rules, host, port, verdict) in enumerate(lines):
        found.setdefault(ast.literal_eval(rules), []).append((number, ast.literal_eval(host), int(port), verdict))
    return found


def written(rules):
    """One set of rules of the table as a policy has it: "allow HOST[ PORT][ =ADDRESS]", a comma between two."""
    for rule in filter(None, rules.split(",")):
        action, host, *more = rule.split()
        more = [f"address: '{word[1:]}'" if word[0] == "=" else f"port: {word}" for word in more]
        yield "{ " + ", ".join([f"host: '{host}'", f"action: {action}", *more]) + " }"


def plain(host):
    return host.lower().removesuffix(".")


# Of these no policy is made, so there is no sandbox with them.
NO_RULES = {"allow *", "allow localhost", "allow *.localhost", "allow x.local", "allow db", "allow metadata.google.internal"}
EVERYBODYS = ("*", "*.com", "*.org", "*.co.uk", "*.com.au", "*.github.io", "*.amazonaws.com", "*.workers.dev", "*.example", "*.COM", "*.github.io.")


SERVERS = {"11.1.1.1": (22, 80, 443, 5432, 8443), "10.0.0.5": (5432, 5433), "10.0.0.6": (5432,), "2001:db8::1": (443,), "2001:db8::2": (443,), "1.2.3.4": (443,),
           "127.0.0.1": (443,), "::1": (443,)}


def land_of_the_table(place, table):
    land = Land(place, {plain(host): ["11.1.1.1"] for rows in table.values() for _, host, _, _ in rows})
    for net in ("1.2.3.0/24", "10.0.0.0/8", "2001:db8::/32"):
        land.run("ip", "-6" if ":" in net else "-4", "route", "add", "local", net, "dev", "lo")
    for address, ports in SERVERS.items():
        for port in ports:
            land.serve("http", address, port)
    return land


@test(id="GW-07")
def names_are_judged_from_inside_as_the_table_says(place):
    """The same rows as in the unit test of the rules, each asked for in three ways; outside nobody is asked for a name but those that are allowed."""
    table = truth()
    assert sum(map(len, table.values())) >= 60, "the table was read"
    with land_of_the_table(place, table) as land:
        for rules, rows in table.items():
            options = policy(place, *written(rules)) if rules else ()
            words = talk(place, [row for number, host, port, _ in rows for row in ways(host, port, number)])
            done = land.box(*words, options=options)
            allowed = [(number, host) for number, host, _, verdict in rows if verdict == "ALLOW"]
            equal((done.code, marks(done)), (125 if rules in NO_RULES else 0, all_ways(number for number, _ in allowed)), f"{rules}: {done!r}")
            assert set(done.names) <= {plain(host) for _, host in allowed}, f"{rules}: names asked for outside: {done.names}"
        everything = [row for rows in table.values() for row in rows]
        words = talk(place, [row for number, host, port, _ in everything for row in ways(host, port, number)])
        control = land.box(*words, options=policy(place, "example.com"), without="rules,upstream")
        readable = {f"{number}/{way}" for number, _, _, verdict in everything if verdict != "REJECT" for way in ("url", "tunnel")}
        control_fires(readable <= marks(control), f"what the rules hold back: {sorted(readable - marks(control))} {control!r}")
        control = land.run(*talk(place, [(("11.1.1.1", port), ways(host, port, number)[0][1]) for number, host, port, _ in everything]))
        control_fires(len(paths(control)) >= len(everything) - 4, f"a server that is careless takes these bytes: {control!r}")


@test(id="GW-07")
def what_policy_explain_tells_is_what_happens(place):
    """Where a host of the table is one of a URL, too."""
    for rules, rows in truth().items():
        options = policy(place, *written(rules)) if rules else ()
        for number, host, port, verdict in rows:
            if host and not set(host) & set("@#/ "):
                at = f"[{host}]:{port}" if host.count(":") > 1 and host[0] != "[" else f"{host}:{port}"
                code = place.cove("policy", "explain", *options, at).code
                equal(code, 125 if rules in NO_RULES or verdict == "REJECT" else 0 if verdict == "ALLOW" else 1, f"{number}: {rules}: {at}")


@test(id="GW-07")
def no_rule_allows_everybodys_names(place):
    with Land(place, {"web.github.io": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        words = talk(place, ways("web.github.io", 80, "x"))
        for pattern in EVERYBODYS:
            equal(place.cove("policy", "check", policy(place, f"'{pattern}'")[1]).code, 1, pattern)
            done = place.run("true", options=("--allow", pattern))
            equal((done.code, "everybody's names" in done.errors), (125, True), f"{pattern}: {done!r}")
        done = land.box(*words, options=("--allow", "*.github.io"))
        equal((done.code, done.visits), (125, []), done)
        equal(place.cove("policy", "check", policy(place, *(f"{{ host: '{pattern}', action: deny }}" for pattern in EVERYBODYS))[1]).code, 0, "they can be denied")
        control = land.box(*words, options=("--allow", "web.github.io"))
        control_fires(marks(control) == all_ways("x"), control)


# --- addresses ------------------------------------------------------------------------------------

def spellings(address):
    """Of an IPv4 address: the two of its forms that are taken, in four ways to write them, and all others that some program takes for it."""
    a, b, c, d = parts = [int(part) for part in address.split(".")]
    number, high, low = a << 24 | b << 16 | c << 8 | d, a << 8 | b, c << 8 | d
    wide = address.translate({ord(digit): chr(0xFF10 + int(digit)) for digit in "0123456789"})
    taken = [address, f"[::ffff:{address}]", f"[::ffff:{high:x}:{low:x}]", f"[0:0:0:0:0:FFFF:{high:X}:{low:04X}]"]
    short = [f"{a}.{b}.{low}", f"{a}.{number & 0xFFFFFF}", f"{number}", f"{number + (1 << 32)}", f"{a}.{b}.{c}.{d + 256}", f"{address}.", f"{address}..", f".{address}"]
    bases = [f"0x{number:x}", f"0X{number:X}", f"0{number:o}", ".".join(f"0{part:o}" for part in parts), ".".join(f"0x{part:x}" for part in parts),
             f"0x{a:x}.{b}.{c}.{d}", f"{a}.{b}.0{c:o}.{d}",
             ".".join(f"{part:03}" for part in parts), ".".join(f"{part:05}" for part in parts)]
    signs = [wide, address.replace(".", "\u3002"), address.replace(".", "\uff0e"), address.replace(".", "%2e"), address.replace("1", "%31"),
             address.replace("1", "\u2460"), f"+{address}", f"{address}\t", f"[{address}]", f"{address}%lo"]
    hidden = [f"[::{address}]", f"[64:ff9b::{high:x}:{low:x}]", f"[64:ff9b::{address}]", f"[64:ff9b:1::{high:x}:{low:x}]", f"[2002:{high:x}:{low:x}::]",
              f"[2002:{high:x}:{low:x}::1]", f"[::ffff:0:{high:x}:{low:x}]",
              f"[::ffff:{address}%lo]", f"[::ffff:{address}%25lo]", f"::ffff:{address}%x.example.org"]
    return taken, short + bases + signs + hidden


CLOSED = ("127.0.0.1", "169.254.169.254", "10.1.1.1", "11.7.7.7")
CLOSED_ALONE = ("localhost", "LOCALHOST", "localhost.", "a.localhost", "ip6-localhost", "127.255.255.254", "0.0.0.0", "0", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]",
                "[::1%lo]", "[fe80::1%lo]", "[fe80::1]",
                "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "metadata.google.internal")


@test(id="GW-06")
def an_address_is_taken_in_its_plain_form_only_and_a_closed_one_in_none(place):
    taken, others = spellings("11.1.1.1")
    assert len(others) >= 36, "spellings"
    closed = [host for address in CLOSED for host in sum(spellings(address), [])] + list(CLOSED_ALONE)
    everything = talk(place, [row for number, host in enumerate(closed) for row in ways(host, 80, number)], "closed.json")
    with Land(place, {"metadata.google.internal": ["169.254.169.254"]}) as land:
        for net in ("10.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "64:ff9b::/32", "2002::/16", "fd00:ec2::/32"):
            land.run("ip", "-6" if ":" in net else "-4", "route", "add", "local", net, "dev", "lo")
        land.run("ip", "address", "add", "11.7.7.7/32", "dev", "lo")  # a public address, but this machine's
        for address in ("11.1.1.1", *CLOSED, "::1", "100.100.100.200", "192.0.0.192", "64:ff9b::7f00:1", "2002:7f00:1::1", "fd00:ec2::254"):
            land.serve("http", address, 80)
        done = land.box(*everything, options=("--network", "open"), timeout=120)
        equal((done.code, len(done.text.split()), done.visits, done.names), (0, 3 * len(closed), [], []), done)
        control = land.box(*everything, options=("--network", "open"), without="rules,upstream", timeout=120)
        reached = {visit[1] for visit in control.visits}
        control_fires({f"{address}:80" for address in (*CLOSED, "::1", "64:ff9b::7f00:1", "2002:7f00:1::1", "fd00:ec2::254")} <= reached, f"only the rules hold them back: {reached}")
        open_one = [row for number, host in enumerate(taken + others) for row in ways(host, 80, number)]
        done = land.box(*talk(place, open_one), options=("--allow", "11.1.1.1:80"))
        equal((marks(done), {visit[3] for visit in done.visits if visit[0] == "request"}), (all_ways(range(len(taken))), {"11.1.1.1"}), done)
        control = land.run(*talk(place, [row for row in open_one if row[0] != GATE]))
        control_fires(len(paths(control)) >= 14, f"the host's own programs take more of them: {control!r}")


# --- URLs -----------------------------------------------------------------------------------------

A, B = "web.example.org", "other.example.org"
ZONE = {A: ["11.1.1.1"], B: ["11.1.1.2"]}

BETWEEN = ("@", ":80@", ":x@", "\\", "\\@", "#", "#@", "?", "?@", "%2f", "%40", "%00", "%20", "%23@", ",", ";", ";@", "&@", "|", "\t", "\0", "\x7f", "\xa0")
SCHEMES = ("http:", "http:/", "http:///", "http:\\\\", "http:\\", "://", "https://", "ftp://", "ws://", "file://", "javascript:", "view-source:http://", "http+unix://",
           "http://http://", f"http://{A}:", f"http://{A}:80:", "url:http://", "")

# Targets and hosts of a request: those that are for A whoever reads them, then those that some program reads otherwise.  N: where its number stands.
CLEAR = [(f"http://{A}/N", A), (f"HTTP://{A}/N", A), (f"hTtP://{A.upper()}/N", A), (f"http://{A}:80/N", A), (f"http://{A}/N", f"{A}:80"), (f"http://{A}/N", A.upper()),
         (f"http://{A}/N?//{B}/@{B}", A),
         (f"http://{A}/N/http://{B}/", A), (f"http://{A}//{B}/N", A)]
TWOFOLD = [(f"http://{A}/N", B), (f"http://{B}/N", A), (f"http://{B}/N", B), (f"HTTP://{B}/N", B), (f"http://{A}/N", f"{A}:81"), (f"http://{A}/N", f"{A}, {B}"),
           (f"http://{A}/N", f"{A} {B}"), (f"http://{A}/N", f"{A}\r\nHost: {B}"),
           (f"http://{A}/N", f"{A}\r\nHost: {A}"), (f"http://{B}/N", f"{A}\r\nHost: {B}"), (f"http://{A}/N", f"{A}@{B}"), (f"http://{A}/N", f"{A}/{B}"),
           (f"http://{A}/N", f"{A}\0{B}"), (f"http://{A}/N", ""),
           *((f"http://{left}{middle}{right}/N", host) for left, right in ((A, B), (B, A)) for middle in BETWEEN for host in (A, B)), *((f"{before}{B}/N", A) for before in SCHEMES),
           (f"https://{A}/N", A), (f"ftp://{A}/N", A), (f"file://{A}/N", A), (f"{A}/N", A), (f"{A}:80", A), (f"http:{A}/N", A), (f"http:/{A}/N", A),
           (f"http:///{A}/N", A), (f"http://{A}:/N", A), (f"http://{A}:65616/N", A),
           (f"http://{A}:0x50/N", A), (f"http://{A}:+80/N", A), (f"http://{A}:80 /N", A), (f"http://[{A}]/N", A), (f"http://{A}?/N", A), (f"http://{A}#/N", A),
           (f"http://@{A}/N", A), (f"http://u:p@{A}/N", A), (f"http:// {A}/N", A), ("*", A), ("?N", A), ("", A)]

OWN = [("/N", A), (f"//{B}/N", A), (f"///{B}/N", A), (f"/\\{B}/N", A), (f"/@{B}/N", A), (f"/N?http://{B}/", A)]  # paths, whatever stands in them


def numbered(rows, to):
    return [(to, [ask(target.replace("N", f"n{number}n"), host)]) for number, (target, host) in enumerate(rows)]


def numbers(seen):
    return {int(found[1]) for path in paths(seen) if (found := re.search("n([0-9]+)n", path))}


@test(id="GW-11")
def a_request_has_one_host_however_its_url_is_written(place):
    rows = CLEAR + TWOFOLD
    with Land(place, ZONE) as land:
        for address in ("11.1.1.1", "11.1.1.2"):
            land.serve("http", address, 80)
        for to, options in ((GATE, ("--allow", A)), ((A, 80), ("--allow", A)), ((B, 80), ("--allow", A)), (GATE, ("--allow", A, "--allow", B))):
            done = land.box(*talk(place, numbered(rows, to)), options=options)
            for_b = {number for number, (target, host) in enumerate(rows) if target.lower().startswith(f"http://{B}/") and host == B} if B in options else set()
            equal(numbers(done), {*range(len(CLEAR)), *for_b}, f"{to} {options}: {done!r}")
            wanted = {("11.1.1.1:80", A, "/"), *([("11.1.1.2:80", B, "/")] if for_b else [])}
            equal({(visit[1], visit[3], visit[4][0]) for visit in done.visits if visit[0] == "request"}, wanted, f"{to} {options}")
            equal(set(done.names), {A, B} if for_b else {A}, f"{to} {options}: names asked for outside")
            equal(set(done.text.split()) - {"200", "400", "403"}, set(), f"{to} {options}: answers")
        control_fires(for_b, "who is allowed is asked for by such URLs")
        done = land.box(*talk(place, numbered(OWN, (A, 80))), options=("--allow", A))
        equal((numbers(done), {(visit[1], visit[3]) for visit in done.visits if visit[0] == "request"}), (set(range(len(OWN))), {("11.1.1.1:80", A)}), done)
        control = land.run(*talk(place, numbered(rows, ("11.1.1.2", 80))))
        control_fires(len(paths(control)) > 100, f"a server that is careless takes these bytes: {control!r}")


# --- fields ---------------------------------------------------------------------------------------

PROXY_V2 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0b\1\1\2\x0b\1\1\2\x04\x00\0P"

# What proxies tell each other of who asks, and what comes before it on a connection.  NAME: another sandbox.
FORGED = ["Forwarded: for=NAME;host=other.example.org;proto=https", "Forwarded: for=127.0.0.1;by=192.0.2.1;host=other.example.org", "Via: 1.1 NAME",
          "X-Forwarded-For: 127.0.0.1", "X-Forwarded-For: NAME", "X-Forwarded-Host: other.example.org",
          "X-Forwarded-Server: other.example.org", "X-Forwarded-Port: 1019", "X-Host: other.example.org", "X-Real-IP: 127.0.0.1", "X-Client-IP: 127.0.0.1",
          "True-Client-IP: 127.0.0.1", "X-Cove: NAME", "X-Cove-Sandbox: NAME", "Cookie: sandbox=NAME",
          "Proxy-Authorization: Basic NAME", "Proxy-Authorization: Bearer NAME", "Proxy-Authenticate: Basic", "Authorization: Bearer NAME",
          "Proxy-Connection: keep-alive", "Connection: host", "Connection: close, host, forwarded", "Max-Forwards: 0"]
BEFORE = ["PROXY TCP4 127.0.0.1 11.1.1.2 1019 80\r\n", "PROXY TCP6 ::1 ::1 1 80\r\n", "PROXY UNKNOWN\r\n", PROXY_V2, PROXY_V2.replace("\x21", "\x20"), "\r\n",
          "\5\1\0", "\4\1\0P\x0b\1\1\2\0"]

# A relay that takes connections at one port and hands them on to another, and two of them in a row before the gateway.
RELAY = """
import contextlib, socket, threading
def pump(one, other):
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
def relay(listener, to):
    while True:
        client, server = listener.accept()[0], socket.create_connection(("127.0.0.1", to))
        for pair in ((client, server), (server, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()
for at, to in ((9001, 1019), (9002, 9001)):
    threading.Thread(target=relay, args=(socket.create_server(("127.0.0.1", at), backlog=128), to), daemon=True).start()
"""


INNER = ("127.0.0.1:1019", "localhost:1019", "192.0.2.2:1019", "[::1]:1019", "127.0.0.1:9001")


def forgeries(name):
    """Each by the gateway itself and by relays in front of it, for a host that is allowed here and one that is allowed to another sandbox."""
    for to in (GATE, ("127.0.0.1", 9001), ("127.0.0.1", 9002)):
        for host in (A, B):
            mark = f"{host}/{to[1]}"
            for number, field in enumerate(FORGED):
                yield to, [ask(f"http://{host}/field/{mark}/{number}", host, field.replace("NAME", name) + "\r\n")]
                yield to, [f"CONNECT {host}:80 HTTP/1.1\r\nHost: {host}:80\r\n{field.replace('NAME', name)}\r\n\r\n", ask(f"/tunnel/{mark}/{number}", host)]
            for number, before in enumerate(BEFORE):
                yield to, [before + ask(f"http://{host}/before/{mark}/{number}", host)]
            for inner in INNER:
                yield to, [f"CONNECT {inner} HTTP/1.1\r\nHost: {inner}\r\n\r\n", ask(f"http://{host}/again/{mark}/{inner}", host)]


def judged_as(host):
    """The paths of all that is said in a form that a gateway takes: it is the same verdict whatever stands in it."""
    return {f"/{kind}/{host}/{port}/{which}" for port in (1019, 9001, 9002)
            for kind, all_of_it in (("field", range(len(FORGED))), ("tunnel", range(len(FORGED))), ("again", INNER)) for which in all_of_it}


@test(id="GW-08")
def who_asks_is_told_by_the_sandbox_it_comes_from_and_by_no_word(place):
    """Two sandboxes say the same, each in the name of the other; what one is allowed is the control of the other."""
    with Land(place, ZONE) as land:
        for address in ("11.1.1.1", "11.1.1.2"):
            land.serve("http", address, 80)
        for name, allowed in (("one", A), ("two", B)):
            land.cove("create", "--name", name, "--allow", allowed)
        try:
            for name, other, allowed in (("one", "two", A), ("two", "one", B)):
                python, _, script, rows = talk(place, [*forgeries(other)])
                done = land.cove("exec", name, "--", python, "-c", RELAY + script, rows)
                equal((set(paths(done)), set(done.names)), (judged_as(allowed), {allowed}), f"{name}: {done!r}")
        finally:
            for name in ("one", "two"):
                land.cove("rm", "-f", name)


# --- answers that name somebody else ---------------------------------------------------------------

ELSEWHERE = (f"http://{B}/end", f"//{B}/end", f"https://{B}/end", "http://11.1.1.2/end", f"http://{A}:81/end", "http://127.0.0.1:80/end", "http://[::1]/end",
             "http://169.254.169.254/end", f"http://{A}/to/307/http://{B}/end",
             f"https://{A}/to/308/http://{A}/to/301/https://{B}/end")
FOLLOW = """
import shutil, subprocess, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor
def follow(url):
    subprocess.run(["curl", "-sSL", "-m", "5", "--proto-redir", "=all", "-o", "/dev/null", url], stderr=subprocess.DEVNULL)
    try:
        urllib.request.urlopen(url, timeout=5).read()
    except OSError:
        pass
with ThreadPoolExecutor(8) as pool:
    list(pool.map(follow, sys.argv[1:]))
if shutil.which("wget"):  # of these the one that follows what a page says
    subprocess.run(["wget", "-q", "-t", "1", "-T", "5", "-e", "robots=off", "-r", "-l", "2", "-H", "http://web.example.org/meta"])
subprocess.run(["curl", "-sS", "-o", "/dev/null", "http://web.example.org/to/302/http://web.example.org/by-nobody"])
print("tried")
"""


@test(id="GW-15")
def whoever_is_sent_elsewhere_asks_anew_and_is_judged_anew(place):
    """By nobody but its client, for which the gateway follows nothing; inside TLS that is looked into, too."""
    codes = itertools.cycle((301, 302, 303, 307, 308))
    urls = [f"http://{A}/to/{next(codes)}/{where}" for where in ELSEWHERE] + [f"https://{A}/to/{next(codes)}/{where}" for where in (*ELSEWHERE[:3], ELSEWHERE[-1])]
    file = page(place.dir, A, "/meta")
    file.parent.mkdir(parents=True)
    file.write_text(f'<html><head><meta http-equiv="refresh" content="0; url=http://{B}/end"></head><a href="http://{B}/end">x</a></html>')
    with Land(place, ZONE) as land:
        for address, port in (("11.1.1.1", 80), ("11.1.1.1", 81), ("11.1.1.2", 80), ("127.0.0.1", 80), ("::1", 80)):
            land.serve("http", address, port)
        land.serve("tls", "11.1.1.1", 443, A, believed=True)
        land.serve("tls", "11.1.1.2", 443, B, believed=True)
        done = land.box("python3", "-c", FOLLOW, *urls, options=policy(place, f"{{ host: {A}, methods: GET }}"))
        equal((done.text, {visit[1] for visit in done.visits}, set(done.names)), ("tried\n", {"11.1.1.1:80", "11.1.1.1:443"}, {A}), done)
        first = {url.split(A, 1)[1] for url in urls}
        assert first < set(paths(done)) and not {"/end", "/by-nobody"} & set(paths(done)), f"what was asked for: {sorted(set(paths(done)) - first)}"
        control = land.box("python3", "-c", FOLLOW, *urls, options=policy(place, f"{{ host: {A}, methods: GET }}", B, f"{A}:81", "11.1.1.2:80"))
        ends = [visit[1] for visit in control.visits if visit[0] == "request" and visit[4] == "/end"]
        control_fires(set(ends) == {"11.1.1.2:80", "11.1.1.2:443", "11.1.1.1:81"} and len(ends) >= 12, f"clients follow where they may: {control!r}")
        if shutil.which("wget"):
            control = land.box("wget", "-q", "-t", "1", "-r", "-l", "1", "-H", f"http://{A}/meta", options=("--allow", A, "--allow", B))
            control_fires(control.visits[-1][1] == "11.1.1.2:80", f"so does who reads the page: {control!r}")


# --- TLS that passes unread -------------------------------------------------------------------------

FRONTED = """
import hashlib, socket, ssl
def say(path, host, name, context=ssl._create_unverified_context()):
    try:
        with socket.create_connection(("web.example.org", 443), 5) as raw, context.wrap_socket(raw, server_hostname=name) as s:
            s.sendall(f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
            s.recv(999)
            return hashlib.sha256(s.getpeercert(True)).hexdigest()
    except OSError as error:
        return type(error).__name__
say("/named", "other.example.org", "other.example.org")
print(say("/fronted", "other.example.org", "web.example.org"), say("/verified", "web.example.org", "web.example.org", ssl.create_default_context()))
"""


def fronted(land, *options):
    """What a program says that fronts, what arrived of it, and what the trace says of it: protocol, host, method and verdict."""
    ident = land.cove("create", *options).text.strip()
    try:
        done = land.cove("exec", ident, "--", "python3", "-c", FRONTED)
        return done, {tuple(request.get(key) for key in ("protocol", "host", "method", "verdict")) for request in requested(land.place, ident)}
    finally:
        land.cove("rm", "-f", ident)


@test(id="GW-04")
def what_passes_unread_goes_to_the_host_of_the_rule_and_is_told_as_unread(place):
    """The documented limit: for whom a server of many hosts takes a request is not seen.  Where it must be, rules name methods."""
    with Land(place, ZONE) as land:
        land.serve("tls", "11.1.1.1", 443, "cdn.example.net")
        land.serve("tls", "11.1.1.2", 443, B)
        certificate = hashlib.sha256(ssl.PEM_cert_to_DER_cert((place.dir / "cdn.example.net.pem").read_text())).hexdigest()
        done, trace = fronted(land, "--allow", A)
        equal((paths(done), {visit[1] for visit in done.visits}, set(done.names)), (["/fronted"], {"11.1.1.1:443"}, {A}), done)
        equal(trace, {("tls", A, None, "allow"), ("tls", A, None, "deny")}, "the trace")
        equal(done.text.split(), [certificate, "SSLCertVerificationError"], "whom the client meets is the server itself, and to verify it is the client's")
        control, trace = fronted(land, *policy(place, f"{{ host: {A}, methods: GET }}"))
        control_fires(paths(control) == [] and ("http", A, "GET", "deny") in trace and certificate not in control.text, f"looked into, it is refused: {control!r} {trace}")


# --- slowly -----------------------------------------------------------------------------------------

# Each says its beginning at once and then a byte now and then, if there is one to say.  The last one drips to a server of its own, which waits for ever.
SLOW = """
import json, socket, time
from concurrent.futures import ThreadPoolExecutor
own = socket.create_server(("127.0.0.1", 9000))
def slow(row):
    to, first, rest = row
    began = time.monotonic()
    try:
        with socket.create_connection(tuple(to), 5) as s:
            s.sendall(first.encode("latin1"))
            s.settimeout(0.2)
            while time.monotonic() - began < 60 and len(alive) > 1:
                try:
                    if rest:
                        s.sendall(rest[0].encode("latin1"))
                        rest = rest[1:]
                    if not s.recv(9999):
                        break
                except TimeoutError:
                    pass
    except OSError:
        pass
    ended = time.monotonic()
    alive.discard(json.dumps(row))
    return ended - began, ended
rows = json.load(open("slow.json"))
alive = {json.dumps(row) for row in rows}
with ThreadPoolExecutor(len(rows)) as pool:
    print(json.dumps(list(pool.map(slow, rows))))
"""

def hello(name):
    """The first message of a client that wants TLS."""
    outgoing = ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read().decode("latin1")


# C: looked into.  What follows a hello is a record of 16 KB; what comes to port 53 a question of 256 bytes.
C = "looked.example.org"
FIELDS, RECORD = "A: b\r\n" * 200, "\x17\3\3\x40" + "\0" * 500
SLOWLY = [(to, first, "") for to in ((A, 80), GATE) for first in ("", "G", "GET ", f"GET /half HTTP/1.1\r\nHost: {A}\r\n")] + [((A, 443), "", ""), ((C, 443), "", ""),
          (("11.1.1.53", 53), "", "")]
SLOWLY += [(to, "", f"GET http://{A}/dripped HTTP/1.1\r\nHost: {A}\r\n{FIELDS}") for to in ((A, 80), GATE)]
SLOWLY += [((A, 80), f"GET /first HTTP/1.1\r\nHost: {A}\r\n\r\n", f"GET /second HTTP/1.1\r\nHost: {A}\r\n{FIELDS}")]
SLOWLY += [((host, 443), hello(host)[:50], hello(host)[50:60] + "\0" * 500) for host in (A, B, C)] + [((host, 443), hello(host), RECORD) for host in (B, C)]
SLOWLY += [(("11.1.1.53", 53), "", "\1" + "\0" * 500)]
SLOWLY += [(("127.0.0.1", 9000), "GET ", "x" * 999)]


@test(id="GW-19")
def who_says_nothing_or_a_byte_now_and_then_is_not_waited_for(place):
    """The last one is the control: it ends after every other, and only because they have."""
    (place.work / "slow.json").write_text(json.dumps(SLOWLY))
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box("python3", "-c", SLOW, options=policy(place, A, f"{{ host: {C}, methods: GET }}"), timeout=120)
        *waited, (_, own) = json.loads(done.text)
        assert all(seconds < 25 * PATIENCE for seconds, _ in waited), done
        equal(paths(done), ["/first"], "requests that arrived")
        control_fires(own > max(ended for _, ended in waited), f"who is waited for stays: {done!r}")


# Half a request on each of so many connections, and then nothing; more than there is room for, so that who is ended has a successor.
MANY = """
import os, resource, signal, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
address = socket.gethostbyname("web.example.org")
for _ in range(4):
    if os.fork() == 0:
        held = []
        with open(f"held.{os.getpid()}", "w"):
            pass
        while len(held) < int(sys.argv[1]) // 4:
            try:
                held.append(socket.create_connection((address, 80), 60))
                held[-1].sendall(b"GET /")
            except OSError:
                break
        signal.pause()
"""
# Connections at the gateway's end: those that wait, which have no file yet, and those that it has taken.
HELD = """awk '$2 ~ /:03FB$/ && $4 == "01" { n[$10 != 0]++ } END { print n[0] + 0, n[1] + 0 }' /proc/net/tcp"""
TEN = f"for i in 1 2 3 4 5 6 7 8 9 10; do curl -s -o /dev/null -w '%{{http_code}} ' -m $1 http://{A}/; done"


@test(id="GW-19")
def as_many_as_a_gateway_takes_hold_up_nobody_elses(place):
    """It has a bound, and what comes then waits in the kernel's queue, which has one too.  The control is the sandbox whose gateway that is."""
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        def inside(name, script, *words):
            return land.cove("exec", name, "--", "sh", "-c", script, "sh", *words).text.split()
        def settled():
            before, now = inside("one", HELD), inside("one", HELD)
            return before == now and int(now[0]) > 100 and now
        for name in ("one", "two"):
            land.cove("create", "--name", name, "--allow", A)
        try:
            land.cove("exec", "-d", "one", "--", "python3", "-c", MANY, 40000)
            _, taken = wait_for(settled, 60, "as many as it takes")
            assert 200 < int(taken) <= 8192, taken
            control_fires(inside("one", TEN, 0.1) == ["000"] * 10, "the sandbox itself is held up")
            began = time.monotonic()
            equal(inside("two", TEN, 20), ["200"] * 10, "another sandbox")
            assert time.monotonic() - began < 10 * PATIENCE, "another sandbox waits"
            assert sum(map(memory_of, gateways(place))) < 256 << 10, "memory"
            inside("one", "for i in held.*; do kill -9 ${i#held.}; done")
            equal(inside("one", TEN, 20), ["200"] * 10, "the sandbox itself, then")
        finally:
            for name in ("one", "two"):
                land.cove("rm", "-f", name)


if __name__ == "__main__":
    main()
