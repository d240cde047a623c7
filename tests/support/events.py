"""A model's stream of events through a gateway that looks into TLS, and beside it the same stream through a process that only passes bytes on.

Each event says when it was sent.  What comes late in the second stream too is the doing of a machine that has other work, not the gateway's."""
import json

from support.land import Land, policy

LATE = 0.005  # seconds
GAP = 0.02    # between two events

CLIENT = """
import json, socket, ssl, sys, time
trust = ssl.create_default_context(cafile=sys.argv[3] if len(sys.argv) > 3 else None)
s = trust.wrap_socket(socket.create_connection((sys.argv[1], 443), 30), server_hostname="model.example.org")
s.sendall(b"POST /stream/%s HTTP/1.1\\r\\nHost: model.example.org\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{}" % sys.argv[2].encode())
late, together, rest = [], 0, b""
while more := s.recv(65536):
    now = time.time()
    rest += more
    *events, rest = rest.split(b"\\n\\n")
    found = [now - json.loads(event[event.index(b"data: ") + 6:])["sent"] for event in events if b"data: " in event]
    together += max(0, len(found) - 1)
    late += found
print(json.dumps({"late": late, "together": together}))
"""

RELAY = """
import select, socket
server = socket.create_server(("11.1.1.9", 443))
there = socket.create_connection(("11.1.1.1", 443))
here, _ = server.accept()
other = {here: there, there: here}
for one in other:
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while True:
    for ready in select.select(list(other), [], [])[0]:
        bytes = ready.recv(65536)
        if not bytes:
            raise SystemExit
        other[ready].sendall(bytes)
"""


def stream(place, seconds):
    """Two readings of `late`, in seconds for each event, and `together`: events that did not come by themselves."""
    zone = {"model.example.org": ["11.1.1.1"]}
    beside = place.dir / "beside.json"
    (place.dir / "client.py").write_text(CLIENT)
    (place.work / "client.py").write_text(CLIENT)
    with Land(place, zone) as land:
        land.serve("tls", "11.1.1.1", 443, "model.example.org", believed=True)
        land.start("python3", "-c", RELAY)
        land.start("sh", "-c", f"sleep 1; exec python3 {place.dir}/client.py 11.1.1.9 {seconds} {place.dir}/model.example.org.pem >{beside}")
        done = land.box("python3", "client.py", "model.example.org", str(seconds), options=policy(place, "{ host: model.example.org, methods: [POST], paths: [/stream/**] }"),
                        timeout=seconds + 60)
        assert done.code == 0, done
        land.run("sh", "-c", f"until grep -q together {beside}; do sleep 0.1; done", timeout=30)
    return json.loads(done.text), json.loads(beside.read_text())


def summary(reading):
    late = sorted(reading["late"])
    return (f"{len(late)} events, {sum(one > LATE for one in late)} later than 5 ms, {reading['together']} together; middle {late[len(late) // 2] * 1000:.2f} ms, "
            f"99 of 100 {late[len(late) * 99 // 100] * 1000:.2f} ms, last {late[-1] * 1000:.1f} ms")


def held_back(inside, beside, seconds):
    """What speaks against the gateway, or nothing.  On a quiet machine one event of a hundred may be late, on another one twice what is beside:
    the gateway has more to do with each, and so waits more often for a processor."""
    wanted, odd = int(seconds / GAP), int(seconds / GAP) // 100
    if len(inside["late"]) != wanted or len(beside["late"]) != wanted:
        return "events are missing"
    if inside["together"] > beside["together"] + odd:
        return "events come together"
    if sum(one > LATE for one in inside["late"]) > 2 * sum(one > LATE for one in beside["late"]) + odd:
        return "events come later than 5 ms"
    return "" if sorted(inside["late"])[wanted // 2] < LATE else "most events come later than 5 ms"
