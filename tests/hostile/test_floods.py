"""RES-11: one sandbox floods its gateway; whoever is beside it has its own, and notices nothing."""
import pathlib
import sys
import time

from attack import COVE, PATIENCE, control_fires, equal, main, memory_of, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import Land  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"]}
DESCRIPTORS = 1024  # of which its gateway has four for each connection

# For some seconds; how often, is written into a file.
FLOOD = """
import socket, struct, sys, time
kind, seconds = sys.argv[1], float(sys.argv[2])
web = socket.getaddrinfo("web.example.org", 80, socket.AF_INET)[0][4]
held, count = [], 0

def connections():  # that say nothing, many more than there may be
    if len(held) == 900:
        held.pop(0).close()
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(web)
    held.append(one)
    time.sleep(0.0005)

def half_open():  # gone before they are accepted
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.setblocking(False)
    one.connect_ex(web)
    one.close()

def names():
    resolver = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")][0]
    question = b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + b"\\7r%06d" % (count % 1000000) + b"\\7example\\3org\\0\\0\\1\\0\\1"
    datagram.sendto(question, (resolver, 53))

def datagrams():
    datagram.sendto(b"x" * 1000, ("11.1.1.1", 9))

datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagram.setblocking(False)
end = time.monotonic() + seconds
while time.monotonic() < end:
    try:
        globals()[kind]()
    except OSError:
        pass
    count += 1
open(kind, "w").write(str(count))
"""

# How long requests take, each with its question for the name; in milliseconds, the 99th of a hundred.
ASK = """
import socket, time
def ask():
    began = time.monotonic()
    with socket.create_connection(("web.example.org", 80), 5) as s:
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: web.example.org\\r\\nConnection: close\\r\\n\\r\\n")
        assert s.recv(12).endswith(b"200")
    return (time.monotonic() - began) * 1000
ask()
print(sorted(ask() for _ in range(60))[58])
"""


def slowest(land):
    return float(land.cove("exec", "beside", "--", "python3", "-c", ASK, timeout=60 * PATIENCE).text)


@test(judges_time=True, id="RES-11")
def a_flood_of_connections_names_or_datagrams_stays_with_the_gateway_of_who_makes_it(place):
    (place.work / "flood.py").write_text(FLOOD)
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        land.serve("udp", "11.1.1.1", 9)
        equal(land.cove("create", "--name", "beside", "--allow", "web.example.org").code, 0)
        equal(land.run("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", COVE, "create", "--name", "floods", "--allow", "web.example.org").code, 0)
        try:
            idle = slowest(land)
            for kind in ("connections", "half_open", "names", "datagrams"):
                land.cove("exec", "-d", "floods", "--", "python3", "flood.py", kind, "3")
                time.sleep(0.5)
                beside = slowest(land)
                if beside >= max(50, 3 * idle):  # or somebody else was at work just then
                    beside = min(beside, slowest(land))
                assert beside < max(50, 3 * idle) * PATIENCE, f"{kind}: beside it a request takes {beside:.1f} ms, at rest {idle:.1f} ms"
                assert sum(map(memory_of, gateways(place))) < 600 << 10, kind
                if kind == "connections":
                    # Until there are so many connections: on a busy machine that takes longer than the look beside it.
                    control_fires(any(land.cove("exec", "floods", "--", "curl", "-s", "-m", "1", "http://web.example.org/").code for _ in range(10)), "its own requests find no room")
                wait_for(lambda: land.cove("exec", "floods", "--", "test", "-s", kind).code == 0, 30, kind)
                count = int(land.cove("exec", "floods", "--", "cat", kind).text)
                control_fires(count > 1000, f"{kind}: {count}")
            equal([visit for visit in land.seen() if visit[0] == "datagram"], [])
            wait_for(lambda: land.cove("exec", "floods", "--", "curl", "-sf", "http://web.example.org/").code == 0, 30, "room again")
        finally:
            land.cove("rm", "-f", "beside", "floods")


if __name__ == "__main__":
    main()
