"""GW, by HTTP/2: a stream is one request, for the host that was dialled, and nothing else to whoever is behind the gateway."""
import json
import os
import pathlib
import re
import shutil
import sys

from attack import COVE, control_fires, equal, main, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import Land, paths, policy  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402

FRAMES = pathlib.Path(__file__).resolve().parents[1] / "support/frames.py"


def web(place):
    land = Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]})
    land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
    return land


def parts(path, method="GET", authority="web.example.org", scheme="https"):
    return [[":method", method], [":scheme", scheme], [":authority", authority], [":path", path]]


def say(land, rows, **kwargs):
    """Each row a stream; what came of each."""
    shutil.copy(FRAMES, land.place.work / "frames.py")
    (land.place.work / "rows.json").write_text(json.dumps(rows))
    done = land.box("sh", "-c", 'python3 frames.py web.example.org "$(cat rows.json)"', timeout=200, **kwargs)
    return done, [json.loads(line) for line in done.text.splitlines()]


@test(id="GW-02")
def a_stream_is_passed_on_only_for_the_host_that_was_dialled(place):
    rows = [[parts("/0"), None], [parts("/1", authority="other.example.org"), None], [parts("/2", authority="web.example.org:444"), None], [parts("/3", authority="web.example.org.evil.test"), None],
            [parts("/4", authority="11.1.1.1"), None], [parts("/5") + [["host", "other.example.org"]], None], [parts("/6", authority="other.example.org") + [["host", "web.example.org"]], None],
            [[field for field in parts("/7") if field[0] != ":authority"], None], [[field for field in parts("/8") if field[0] != ":authority"] + [["host", "other.example.org"]], None],
            [parts("/9", authority="u@web.example.org"), None], [parts("/10", authority="WEB.example.org:443") + [["x-forwarded-host", "other.example.org"]], None], [parts("/11", authority="[::1]"), None],
            [[field for field in parts("/12") if field[0] != ":authority"] + [["host", "web.example.org"]], None]]
    rule = policy(place, "{ host: '*.example.org', methods: [GET] }")
    with web(place) as land:
        done, ends = say(land, rows, options=rule)
        equal([(visit[3], visit[4]) for visit in done.visits if visit[0] == "request"], [("web.example.org", path) for path in ("/0", "/10", "/12")], done)
        equal(["Cove refused this request" in end["data"] or end["end"] == "reset 1" for end in ends], [i not in (0, 10, 12) for i in range(len(rows))], done)
        control, _ = say(land, rows, options=rule, without="agreement")
        control_fires("/1" in paths(control), control)


@test(id="GW-03")
def each_stream_of_a_connection_is_judged(place):
    rows = [[parts("/v1/1"), None], [parts("/v2/2"), None], [parts("/v1/3", "POST"), "x"], [parts("/v1/4"), None], [parts("/v1/../v2/5"), None], [parts("/v1/%2e%2e/v2/6"), None], [parts("/v1/7", "get"), None],
            [parts("/v1/8") + [["x-http-method-override", "DELETE"]], None], [parts("/v1/9", "CONNECT"), None], [[[":method", "CONNECT"], [":authority", "web.example.org:443"]], None],
            [[*parts("/v1/10", "CONNECT"), [":protocol", "websocket"]], None], [parts("http://other.example.org/v1/11"), None], [parts("/v1/12"), None]]
    rule = policy(place, "{ host: web.example.org, methods: [GET], paths: [/v1/**] }")
    with web(place) as land:
        done, ends = say(land, rows, options=rule)
        equal(paths(done), ["/v1/1", "/v1/4", "/v1/12"], done)
        equal([end["end"] for end in ends if "hello" in end["data"]], ["whole"] * 3, done)
        control, _ = say(land, rows, options=rule, without="rules")
        control_fires("/v2/2" in paths(control), control)


@test(id="GW-14")
def no_stream_becomes_a_tunnel(place):
    rows = [[parts("/", "CONNECT"), "x"], [[[":method", "CONNECT"], [":authority", "web.example.org:443"]], "GET /in HTTP/1.1\r\n\r\n"], [[[":method", "CONNECT"], [":authority", "other.example.org:443"]], "x"],
            [[*parts("/ws", "CONNECT"), [":protocol", "websocket"]], "x"], [parts("/ws") + [["upgrade", "websocket"], ["connection", "upgrade"]], None], [parts("/ws") + [["upgrade", "websocket"]], None]]
    tunnel = "import socket; s = socket.create_connection(('127.0.0.1', 1019)); s.sendall(b'CONNECT web.example.org:443 HTTP/1.1\\r\\nHost: web.example.org:443\\r\\n\\r\\n'); print(s.recv(99)[9:12])"
    rule = policy(place, "{ host: web.example.org }", "{ host: web.example.org, paths: [/**], methods: [GET] }")
    with web(place) as land:
        done, ends = say(land, rows, options=rule)
        equal((len(ends), done.visits), (len(rows), []), done)
        control = land.box("python3", "-c", tunnel, options=rule)
        control_fires(control.text == "b'200'\n", control)


BEHIND = "GET /behind HTTP/1.1\r\nHost: web.example.org\r\n\r\n"
SMUGGLED = [parts("/%d") + more for more in (
    [["x", "a\r\n\r\n" + BEHIND.rstrip()]], [["x", "a\r\nx-other: b"]], [["x", "a\nb: c"]], [["x", "a\rb"]], [["x", "a\0b"]], [["x\r\ny", "a"]], [["x: y", "a"]], [["X", "a"]], [["x ", "a"]], [["", "a"]],
    [["host", "web.example.org\r\nx: y"]], [["cookie", "a=b\r\nx: y"]], [["connection", "close"]], [["connection", "host"]], [["keep-alive", "5"]], [["proxy-connection", "close"]], [["upgrade", "h2c"]],
    [["te", "chunked"]], [[":path", "/behind"]], [[":method", "POST"]], [[":status", "200"]], [["x", "y"], [":path", "/behind"]])]
SMUGGLED += [parts("/%d HTTP/1.1\r\nx: y"), parts("/%d /behind"), parts("/%d\t"), parts("/%d\0"), parts(" /%d"), parts("%d"), parts("*"), parts("//x/%d#@y"), parts("/%d", "GET /behind HTTP/1.1\r\n\r\nGET"),
             parts("/%d", "G T"), parts("/%d", ""), parts("", "GET"), parts("/%d", scheme="http"), parts("/%d", scheme="ftp"), parts("/%d", authority="web.example.org\r\nx: y"), parts("/%d", authority="")]
FRAMED = [parts("/%d", "POST") + more for more in (
    [["transfer-encoding", "chunked"]], [["transfer_encoding", "chunked"]], [["content-length", "5"], ["transfer-encoding", "chunked"]], [["content-length", "5"]], [["content-length", "500"]],
    [["content-length", "+77"]], [["content-length", "077"]], [["content-length", "0x4d"]], [["content-length", "77, 77"]], [["content-length", "77"], ["content-length", "78"]], [["content-length", "18446744073709551616"]],
    [["content_length", "5"]], [["content-length", "77\r\nx: y"]])]


def numbered(fields, i):
    return [[name, value.replace("%d", str(i))] for name, value in fields]


@test(id="GW-09")
def what_http_1_would_read_otherwise_is_not_passed_on(place):
    rows = [[numbered(fields, i), None] for i, fields in enumerate(SMUGGLED)] + [[numbered(fields, 1000 + i), "0\r\n\r\n" + BEHIND] for i, fields in enumerate(FRAMED)]
    rows.append([parts("/last", "POST"), "0\r\n\r\n" + BEHIND])  # a body is a body, whatever it looks like
    rule = policy(place, "{ host: web.example.org, methods: [GET, POST] }")
    with web(place) as land:
        done, ends = say(land, rows, options=rule)
        equal(len(ends), len(rows), done)
        # Of those whose body turns out to be longer or shorter than they said, the head had gone on; the server never gets a whole request that differs from it.
        arrived = [visit[2:] for visit in done.visits if visit[0] == "request" and visit[4] not in ("/1003", "/1004")]
        equal(arrived, [["POST", "web.example.org", "/last", len(BEHIND) + 5]], done)
        equal([i for i, end in enumerate(ends[:-1]) if "hello" in end["data"]], [], "streams that were answered by the server")
        # Even then each is judged by itself, but there are more of them than streams.
        control, _ = say(land, rows[:1] + [[parts("/next"), None]] * 20, options=rule, without="translation")
        control_fires("/behind" in paths(control), control)


FLOODS = """
import sys
from frames import *
def fields(path="/a", method="GET"):
    return [(":method", method), (":scheme", "https"), (":authority", "web.example.org"), (":path", path)]
def ask(stream, ended=True):
    return frame(HEADERS, END_HEADERS | ended, stream, block(fields(method="GET" if ended else "POST")))
floods = {
    "pings": lambda: frame(PING, 0, 0, b"12345678") * 20000,
    "settings": lambda: frame(SETTINGS, 0, 0) * 20000,
    "windows": lambda: frame(WINDOW_UPDATE, 0, 0, b"\\0\\0\\0\\1") * 20000,
    "priorities": lambda: frame(PRIORITY, 0, 3, b"\\0\\0\\0\\0\\1") * 20000,
    "nothing": lambda: ask(1, 0) + frame(DATA, 0, 1) * 20000,
    "resets": lambda: b"".join(ask(i) + frame(RST_STREAM, 0, i, b"\\0\\0\\0\\x08") for i in range(1, 1601, 2)),
    "continuations": lambda: frame(HEADERS, 1, 1, block(fields())) + frame(CONTINUATION, 0, 1, block([("x", "y" * 1000)])) * 1000,
}
for name in sys.argv[1:]:
    client = Client("web.example.org")
    client.say(floods[name]())
    client.ask(9999, fields("/" + name))
    print(name, client.wait(9999)[9999]["end"], flush=True)
client = Client("web.example.org")
bomb = b"\\x40" + string("x") + string("y" * 4000) + b"\\xbe" * 12000
client.say(frame(HEADERS, END_HEADERS | END_STREAM, 1, block(fields()) + bomb))
print("bomb", "its head is too long" in client.wait(1)[1]["data"])
client.ask(3, fields("/after"))
print("after", client.wait(3)[3]["end"])
"""


@test(id="GW-19")
def a_client_that_floods_is_cut_off_and_the_next_one_is_served(place):
    names = ["pings", "settings", "windows", "priorities", "nothing", "resets", "continuations"]
    shutil.copy(FRAMES, place.work / "frames.py")
    (place.work / "flood.py").write_text(FLOODS)
    rule = policy(place, "{ host: web.example.org, methods: [GET, POST] }")
    with web(place) as land:
        done = land.box("python3", "flood.py", *names, options=rule, timeout=200)
        equal(done.text.splitlines(), [f"{name} None" for name in names] + ["bomb True", "after whole"], done)
        equal(set(paths(done)) & {f"/{name}" for name in names}, set(), done)
        control = land.box("python3", "flood.py", "windows", "priorities", options=rule, without="floods", timeout=200)
        control_fires(control.text.startswith("windows whole\npriorities whole\n"), control)


STALLED = """
from frames import *
def fields(i):
    return [(":method", "GET"), (":scheme", "https"), (":authority", "web.example.org"), (":path", "/big/%d" % (10000000 + i))]
client, heard = Client("web.example.org"), 0
for i in range(60):
    client.ask(2 * i + 1, fields(i))
while heard < 65535:
    kind, flags, stream, payload = client.next()
    heard += len(payload) if kind == DATA else 0
client.say(frame(PING, 0, 0, b"12345678"))
while client.next()[0] != PING:
    pass
print("stalled", flush=True)
while client.next():
    pass
"""


@test(id="GW-19")
def answers_that_a_client_does_not_take_stay_outside(place):
    shutil.copy(FRAMES, place.work / "frames.py")
    (place.work / "stall.py").write_text(STALLED)
    rule = policy(place, "{ host: web.example.org, methods: [GET] }")
    with web(place) as land:
        (place.dir / "done").touch()
        land.start("sh", "-c", f"exec {COVE} run --rm --policy {rule[1]} -- python3 stall.py >{place.dir}/done 2>&1")
        wait_for(lambda: "stalled" in (place.dir / "done").read_text(), 30, "the client")
        wait_for(lambda: len([visit for visit in land.seen() if visit[0] == "request"]) == 60, 30, "all requests at the server")
        [gateway] = gateways(place)
        peak = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{gateway}/status").read_text())[1])
        assert peak < 100_000, f"the gateway took {peak} KiB for answers of 600 MB"
        control_fires(len([visit for visit in land.seen() if visit[0] == "request"]) == 60, "answers that were asked for")


UNHEARD = """
import time
from frames import *
client, sent, still = Client("web.example.org"), 0, 0
windows = {0: 65535, 1: 65535, 3: 65535, 5: 65535}
for stream in (1, 3, 5):
    client.ask(stream, [(":method", "POST"), (":scheme", "https"), (":authority", "web.example.org"), (":path", "/deaf")], ended=False)
while still < 100 and sent < 60000000:
    before = sent
    for stream in (1, 3, 5):
        while (size := min(windows[0], windows[stream], 16384)) > 0:
            client.say(frame(DATA, 0, stream, b"x" * size))
            windows[0], windows[stream], sent = windows[0] - size, windows[stream] - size, sent + size
    client.say(frame(PING, 0, 0, b"12345678"))
    while (found := client.next()) and found[0] != PING:
        if found[0] == WINDOW_UPDATE:
            windows[found[2]] += int.from_bytes(found[3], "big")
    still = still + 1 if sent == before else 0
    time.sleep(0.02 if still else 0)  # the server may have other work
print(sent < 60000000, windows[0] > 0, client.gone)
"""


@test(id="GW-19")
def what_a_server_does_not_take_closes_the_window_of_its_stream_and_no_other(place):
    shutil.copy(FRAMES, place.work / "frames.py")
    (place.work / "unheard.py").write_text(UNHEARD)
    with web(place) as land:
        done = land.box("python3", "unheard.py", options=policy(place, "{ host: web.example.org, methods: [POST] }"), timeout=120)
        equal(done.text, "True True False\n", done)
        control = land.box("python3", "-c", UNHEARD.replace("/deaf", "/sum"), options=policy(place, "{ host: web.example.org, methods: [POST] }"), timeout=120)
        control_fires(control.text.startswith("False"), control)  # a server that hears gets all of it


# --- what a client may cost -------------------------------------------------------------------------

ANSWER_OF_MANY_FIELDS = """
from frames import *
import time
client = Client("web.example.org")
client.ask(1, [(":method", "GET"), (":scheme", "https"), (":authority", "web.example.org"), (":path", "/fields")])
print("asked", flush=True)
client.socket.settimeout(20)
print("heard", len(client.wait(1)[1]["data"]), client.streams, flush=True)
time.sleep(600)
"""

UNREAD_RESETS = """
from frames import *
import time
fields = [(":method", "POST"), (":scheme", "https"), (":authority", "web.example.org"), (":path", "/deaf")]
client = Client("web.example.org")  # nothing is read from now on, and its settings are never acknowledged
client.say(b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, block(fields)) for i in range(100)))
client.socket.settimeout(5)  # that long nobody hears it
number = 201
for _ in range(200):
    client.say(b"".join(frame(HEADERS, END_HEADERS, number + 2 * i, b"\\x83\\x87\\x84\\x01" + string("web.example.org")) for i in range(10000)))
    number += 20000
    if client.gone:
        break
print("asked", number, client.gone, flush=True)
time.sleep(600)
"""

BOMBS = """
from frames import *
import time
fields = [(":method", "GET"), (":scheme", "https"), (":authority", "web.example.org"), (":path", "/a")]
client = Client("web.example.org")
table = b"\\x40" + string("x") + string("y" * 4000)
for i in range(10):
    client.say(frame(HEADERS, END_STREAM, 2 * i + 1, block(fields) + table + b"\\xbe" * 12000),
               *[frame(CONTINUATION, END_HEADERS if n == 7 else 0, 2 * i + 1, b"\\xbe" * 16384) for n in range(8)])
client.wait(19)
print("asked", [client.streams.get(2 * i + 1, {}).get("end") for i in range(10)], client.goaway, client.gone, flush=True)
time.sleep(600)
"""

RESETS_BY_US = """
from frames import *
import time
fields = [(":method", "POST"), (":scheme", "https"), (":authority", "web.example.org"), (":path", "/deaf")]
client, number, resets = Client("web.example.org"), 1, 0
while number < 40000 and not client.gone:
    batch = range(number, number + 100, 2)
    client.say(b"".join(frame(HEADERS, END_HEADERS, i, block(fields)) for i in batch))
    client.say(frame(PING, 0, 0, b"12345678"))
    while (found := client.next()) and found[0] != PING:
        pass
    client.say(b"".join(frame(HEADERS, END_HEADERS, i, block([("x", "y")])) for i in batch))
    while (resets % 50 or resets < (number // 100 + 1) * 50) and (found := client.next()):
        resets += found[0] == RST_STREAM
    number += 100
print("asked", resets, client.goaway, client.gone, flush=True)
time.sleep(600)
"""


def is_little(peak):
    """In KiB; a sanitizer's own memory is none of ours."""
    return peak < 100_000 or bool(os.environ.get("COVE_SANITIZED"))


def cost_of(place, script, rule="{ host: web.example.org, methods: [GET, POST] }"):
    """What a client of HTTP/2 has its gateway take: KiB at most, seconds, and whether it is still the same one."""
    shutil.copy(FRAMES, place.work / "frames.py")
    (place.work / "attack.py").write_text(script)
    said = place.dir / "done"
    with web(place) as land:
        said.touch()
        land.start("sh", "-c", f"exec {COVE} run --rm --policy {policy(place, rule)[1]} -- python3 attack.py >{said} 2>&1")
        wait_for(lambda: len(gateways(place)) == 1, 30, "the gateway")
        [gateway] = gateways(place)
        peaks = [0]

        def over():
            try:
                status = pathlib.Path(f"/proc/{gateway}/status").read_text()
                peaks.append(int(re.search(r"VmHWM:\s+(\d+)", status)[1]))
            except (OSError, TypeError):
                return True
            return "asked" in said.read_text() and ("/fields" not in script or "heard" in said.read_text())
        wait_for(over, 120, "the attack")
        try:
            ticks = pathlib.Path(f"/proc/{gateway}/stat").read_text().rsplit(")", 1)[1].split()
            seconds = (int(ticks[11]) + int(ticks[12])) / 100
        except OSError:
            seconds = -1
        visits = land.seen()
        return max(peaks), seconds, gateway in gateways(place), said.read_text(), len(visits)


@test(id="GW-19")
def an_answer_with_as_many_fields_as_there_may_be_is_held_back_like_any_other(place):
    peak, _, lives, said, _ = cost_of(place, ANSWER_OF_MANY_FIELDS)
    assert lives and is_little(peak), (peak, lives, said)


@test(id="GW-19")
def streams_beyond_the_bound_cost_a_client_that_does_not_read(place):
    peak, seconds, lives, said, _ = cost_of(place, UNREAD_RESETS)
    assert lives and is_little(peak), (peak, seconds, lives, said)


@test(id="GW-19")
def a_head_that_is_too_long_is_not_read_to_its_end(place):
    _, seconds, lives, said, _ = cost_of(place, BOMBS)
    assert lives and seconds < 0.5, (seconds, lives, said)


@test(id="GW-19")
def streams_that_a_client_has_us_reset_cost_as_those_that_it_resets(place):
    _, seconds, lives, said, visits = cost_of(place, RESETS_BY_US)
    asked, code, over = said.split()[1:4]
    assert over == "True" and int(asked) < 2000 and code in ("11", "None"), (seconds, lives, said, visits)


if __name__ == "__main__":
    main()
