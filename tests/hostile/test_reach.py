"""NET: what a program inside reaches by whatever tool and trick it has, and who reaches in."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from attack import IDENTITY, PROBES, control_fires, equal, main, put_probe, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import Land, paths  # noqa: E402
from support.running import tool, wait_for, write  # noqa: E402
from support.staying import let_through_to  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}
ALLOW = ("--allow", "web.example.org")
ALLOW_BOTH = (*ALLOW, "--allow", "other.example.org", "--allow", "11.1.1.2:80")


def places(seen):
    return {visit[1] for visit in seen.visits}


# --- whatever a program brings along (NET-11) -----------------------------------------------------

# Asks a name server of its own for HOST, and what that said for PATH.
RESOLVER = """
import socket, struct, sys
server, host, path = sys.argv[1:]
question = struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in host.split(".")) + struct.pack("!BHH", 0, 1, 1)
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.settimeout(1)
asker.sendto(question, (server, 53))
with socket.create_connection((socket.inet_ntoa(asker.recv(999)[-4:]), 80), 3) as s:
    s.sendall(b"GET %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (path.encode(), host.encode()))
    s.recv(999)
"""

CURL = "curl -s -m 3 http://{host}{path}"
# How a host is asked, and whether an allowed one is reached so.
WAYS = {
    "curl": (CURL, True),
    "no-variables": (f"env -i {CURL}", True),
    "no-proxy": (f"NO_PROXY='*' no_proxy='*' http_proxy= https_proxy= ALL_PROXY= {CURL}", True),
    "gateway-as-proxy": (f"http_proxy=http://127.0.0.1:1019 {CURL}", True),
    "proxy-of-theirs": (f"http_proxy=http://11.1.1.2:80 {CURL}", True),  # what is said to it is said to the gateway
    "proxy-at-its-port": (f"http_proxy=http://11.1.1.2:3128 {CURL}", False),
    "socks": (f"ALL_PROXY=socks5h://11.1.1.2:1080 {CURL}", False),
    "names-by-https": (f"{CURL} -k --doh-url https://11.1.1.2/dns-query", False),
    "given-address": (f"{CURL} --resolve {{host}}:80:11.1.1.2", False),
    "preloaded-resolver": (f"LD_PRELOAD=./resolver.so {CURL}", False),
    "own-resolver": ("python3 resolver.py 11.1.1.53 {host} {path} 2>/dev/null", True),
    "static": ("./probe fetch {host} 80 {path}", True),
}
# Only root can change the files of /etc inside; for others nothing is changed by it.
CHANGED = {
    "resolv-conf": ("printf 'nameserver 11.1.1.53\\noptions timeout:1 attempts:1\\n' >/etc/resolv.conf; ./probe fetch {host} 80 {path}; " + CURL, True),
    "hosts": (f"echo 11.1.1.2 web.example.org other.example.org >/etc/hosts; {CURL}", IDENTITY != "root"),
}
# The rest of what could answer there.
OTHERS = {"11.1.1.2:3128": "echo", "11.1.1.2:1080": "echo", "11.1.1.2:443": "echo", "11.1.1.53:53": "udp"}


def serve_all(land):
    for address in ("11.1.1.1", "11.1.1.2"):
        land.serve("http", address, 80)
    for where, kind in OTHERS.items():
        address, port = where.split(":")
        land.serve(kind, address, int(port))


def asks(ways):
    return "".join(line.format(host=f"{name}.example.org", path=f"/{name}/{way}") + ";\n" for way, (line, _) in ways.items() for name in ("web", "other"))


def are_judged_alike(land, ways, options=()):
    """By whatever way: the allowed host as it should be, and nothing else.  The control is an owner who allows the other too."""
    write(land.place.work / "ask.sh", asks(ways) + "echo tried\n")
    reach = {way for way, (_, reaches) in ways.items() if reaches}
    done = land.box("sh", "ask.sh", options=(*options, *ALLOW))
    assert done.text.endswith("tried\n"), done
    equal((set(paths(done)), places(done), set(done.names)), ({f"/web/{way}" for way in reach}, {"11.1.1.1:80"}, {"web.example.org"}), done)
    control = land.box("sh", "ask.sh", options=(*options, *ALLOW_BOTH))
    control_fires({f"/other/{way}" for way in reach} <= set(paths(control)), control)


@test(id="NET-11")
def a_program_is_judged_alike_whatever_it_uses_to_ask(place):
    put_probe(place)
    shutil.copy(PROBES / "resolver.so", place.work)
    write(place.work / "resolver.py", RESOLVER)
    with Land(place, ZONE) as land:
        serve_all(land)
        are_judged_alike(land, WAYS)
        control = land.box("sh", "ask.sh", options=ALLOW, without="network")
        control_fires({*OTHERS, "11.1.1.2:80"} <= places(control) and {f"/other/{way}" for way in ("curl", "given-address", "preloaded-resolver", "static")} <= set(paths(control)), control)
        are_judged_alike(land, CHANGED, ("--root",) if IDENTITY == "root" else ())
        if IDENTITY == "root":
            control = land.box("sh", "ask.sh", options=("--root", *ALLOW), without="network")
            control_fires("11.1.1.53:53" in places(control) and "/other/hosts" in paths(control), control)


GO = """
package main
import ("fmt"; "net"; "os")
func main() {
    c, err := net.Dial("tcp", os.Args[1] + ":80")
    if err == nil {
        fmt.Fprintf(c, "GET %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n", os.Args[2], os.Args[1])
        c.Read(make([]byte, 999))
    }
}
"""
# By the library, by the library without a proxy, and by a socket of its own; HOST PATH pairs.
JAVA = """
import java.net.*;
class Get {
    interface Way { void ask(String host, String path) throws Exception; }
    public static void main(String[] a) {
        Way[] ways = {
            (host, path) -> new URL("http://" + host + path + "-url").openStream().readAllBytes(),
            (host, path) -> new URL("http://" + host + path + "-direct").openConnection(Proxy.NO_PROXY).getInputStream().readAllBytes(),
            (host, path) -> {
                try (Socket s = new Socket(host, 80)) {
                    s.getOutputStream().write(("GET " + path + "-socket HTTP/1.1\\r\\nHost: " + host + "\\r\\n\\r\\n").getBytes());
                    s.getInputStream().read();
                }
            } };
        for (int i = 0; i < a.length; i += 2)
            for (Way way : ways)
                try { way.ask(a[i], a[i + 1]); } catch (Exception e) { }
    }
}
"""
JVM = "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp ."
COMPILED = f"""
for name in web other; do ./get $name.example.org /$name/go; done
{JVM} Get web.example.org /web/java other.example.org /other/java
{JVM} -Djdk.net.hosts.file=hosts Get web.example.org /web/hosts other.example.org /other/hosts
{JVM} -Dhttp.proxyHost=11.1.1.2 -Dhttp.proxyPort=3128 Get web.example.org /web/proxy other.example.org /other/proxy
echo tried
"""


def compile_clients(place):
    tool("go", "java", "javac")
    write(place.work / "get.go", GO)
    write(place.work / "Get.java", JAVA)
    write(place.work / "hosts", "11.1.1.2 web.example.org other.example.org\n")
    for words in (["go", "build", "get.go"], ["javac", "Get.java"]):  # without cgo a program of Go's is static
        subprocess.run(words, cwd=place.work, env={**place.env, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": str(place.dir / "gocache")}, check=True)


@test(id="NET-11")
def programs_of_go_and_java_are_judged_as_any_other(place):
    compile_clients(place)
    arrived = {"/go", "/java-url", "/java-direct", "/java-socket", "/proxy-direct", "/proxy-socket"}
    with Land(place, ZONE) as land:
        serve_all(land)
        done = land.sh(COMPILED, options=ALLOW)
        assert done.text.endswith("tried\n"), done
        equal((set(paths(done)), places(done), set(done.names)), ({"/web" + path for path in arrived}, {"11.1.1.1:80"}, {"web.example.org"}), done)
        control = land.sh(COMPILED, options=ALLOW, without="network")
        control_fires({"/other" + path for path in (*arrived, "/hosts-url", "/hosts-socket")} <= set(paths(control)) and "11.1.1.2:3128" in places(control), control)

# --- an allowed host, at ports that no rule names (NET-06) ------------------------------------------

RULED = (80, 443, 2222, 8443)
PORTS = sorted({*range(7, 65536, 131), 1, 22, 25, 81, 444, 3306, 5432, 6443, 8080, 65535, *RULED})
# Every port of every host, by the way that the host is for.
EVERY_PORT = """
import json, socket, struct, sys
from concurrent.futures import ThreadPoolExecutor
def request(host, port, whole=""):
    return f"GET {whole}/ HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode()
def connect(host, port):
    return f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode()
GATEWAY = ("127.0.0.1", 1019)
WAYS = {
    "name": lambda host, port: [(host, port), request(host, port)],
    "silent": lambda host, port: [(host, port)],
    "address": lambda host, port: [(sys.argv[2], port), request(host, port)],
    "connect": lambda host, port: [GATEWAY, connect(host, port), request(host, port)],
    "through": lambda host, port: [(host, 80), connect(host, port), request(host, port)],
    "url": lambda host, port: [GATEWAY, request(host, port, f"http://{host}:{port}")],
    "host": lambda host, port: [(host, 80), request(host, port)],
    "socks5": lambda host, port: [GATEWAY, b"\\5\\1\\0", b"\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack("!H", port)],
    "socks4": lambda host, port: [GATEWAY, b"\\4\\1" + struct.pack("!H", port) + b"\\0\\0\\0\\1\\0" + host.encode() + b"\\0"],
}
def ask(row):
    to, *says = WAYS[row[0]](row[0] + ".example.org", row[1])
    try:
        with socket.create_connection(to, 5) as s:
            for say in says or [b""]:
                s.sendall(say)
                s.settimeout(2)
                s.recv(999)
    except OSError:
        pass
with ThreadPoolExecutor(64) as pool:
    list(pool.map(ask, [(way, port) for way in WAYS for port in json.loads(sys.argv[1])]))
print("tried")
"""


# In the place of the gateway, where it is left out: who understands SOCKS would be asked rightly.
SOCKS = """
import socket, struct, threading
def serve(client):
    with client:
        said = client.recv(999)
        if said[0] == 5:
            client.sendall(b"\\5\\0")
            said = client.recv(999)
            name, port = said[5:-2], said[-2:]
        else:
            name, port = said[9:-1], said[2:4]
        socket.create_connection((name, *struct.unpack("!H", port)), 5).close()
threading.excepthook = lambda _: None  # others come too
listener = socket.create_server(("127.0.0.1", 1019), backlog=128)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
# What is reached so with the rules; without them, or for an address and by SOCKS without the gateway, all that is tried.
BY_WAY = {"name": RULED, "silent": (2222, 8443), "connect": RULED, "through": RULED, "url": RULED, "host": (80,), "address": (), "socks5": (), "socks4": ()}


@test(id="NET-06")
def an_allowed_host_is_reached_at_the_ports_that_rules_name_and_at_no_other(place):
    """At 80 and 443 a client speaks first; a SOCKS proxy nobody is."""
    zone = {f"{way}.example.org": [f"11.1.2.{number}"] for number, way in enumerate(BY_WAY)}
    options = sum((("--allow", f"*.example.org:{port}") for port in RULED), ())

    def ports(**kwargs):
        done = land.box("python3", "-c", EVERY_PORT, json.dumps(PORTS), zone["address.example.org"][0], options=options, **kwargs)
        assert done.text.endswith("tried\n"), done
        return {way: tuple(sorted({int(port) for address, port in (where.split(":") for where in places(done)) if [address] == zone[f"{way}.example.org"]})) for way in BY_WAY}

    with Land(place, zone) as land:
        land.serve("ports", "0.0.0.0", PORTS)
        equal(ports(), BY_WAY)
        without_rules = ports(without="rules")
        control_fires(all(len(without_rules[way]) > 500 for way in ("name", "silent", "connect", "through", "url")), without_rules)
        land.start("python3", "-c", SOCKS)
        wait_for(lambda: land.run("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 1019), 1)").code == 0, 60, "a SOCKS proxy")
        without_network = ports(without="network")
        control_fires(all(len(without_network[way]) > 500 for way in ("address", "socks5", "socks4")), without_network)


# --- a sandbox beside another, and who comes from outside (NET-10, NET-13) ---------------------------

# Takes whatever comes by any of these ways, and writes down by which.
LISTEN = """
import os, selectors, socket, struct
ready = selectors.DefaultSelector()
def hear(how, one):
    if one.type == socket.SOCK_STREAM:
        one.listen()
    ready.register(one, selectors.EVENT_READ, how)
def bound(family, kind, at):
    one = socket.socket(family, kind)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    one.bind(at)
    return one
for name, kind in (("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)):
    hear(name, bound(socket.AF_INET, kind, ("0.0.0.0", 7001)))
    hear(name + "6", bound(socket.AF_INET6, kind, ("::", 7001)))
hear("abstract", bound(socket.AF_UNIX, socket.SOCK_STREAM, "\\0reach"))
hear("path", bound(socket.AF_UNIX, socket.SOCK_STREAM, "/tmp/reach"))
group = bound(socket.AF_INET, socket.SOCK_DGRAM, ("224.0.0.251", 5353))
group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.0.0.251") + struct.pack("@4si", b"", 1))
hear("multicast", group)
with open("arrived", "w", buffering=1) as arrived:
    while True:
        for key, _ in ready.select():
            key.fileobj.accept()[0].close() if key.fileobj.type == socket.SOCK_STREAM else key.fileobj.recv(999)
            print(key.data, file=arrived)
"""
ALL_KINDS = {"tcp", "tcp6", "udp", "udp6", "abstract", "path", "multicast"}

# Tries every address and name that could be another's; the rest of the words are sockets with a path.
SEEK = """
import os, socket, sys
from concurrent.futures import ThreadPoolExecutor
HOSTS = ["127.0.0.1", "127.0.0.2", "192.0.2.2", "192.0.2.1", "192.0.2.3", "0.0.0.0", "10.9.0.1", "11.7.7.7", "198.18.0.1", "198.18.1.0", "::1", "fd00:c0fe::2", "fd00:c0fe::1", "fd00:c0fe::3", "::", "fe80::1%lo",
         "victim", "victim.local", "cove", "localhost", "victim.example.org", "host.docker.internal", "gateway"]
def dial(row):
    host, kind = row
    try:
        family, _, _, _, to = socket.getaddrinfo(host, 7001, 0, kind)[0]
        with socket.socket(family, kind) as s:
            s.settimeout(1)
            s.connect(to)
            s.send(b"x")
    except OSError:
        pass
def by_proxy(row):
    (at, host), form = row
    try:
        with socket.create_connection(at, 3) as s:
            s.sendall((form % (host, host)).encode())
            s.recv(999)
    except OSError:
        pass
def is_there(at):
    try:
        return socket.create_connection(at, 1).close() is None
    except OSError:
        return False
FORMS = ("CONNECT %s:7001 HTTP/1.1\\r\\nHost: %s:7001\\r\\n\\r\\n", "GET http://%s:7001/ HTTP/1.1\\r\\nHost: %s:7001\\r\\n\\r\\n")
with ThreadPoolExecutor(32) as pool:
    list(pool.map(dial, [(host, kind) for host in HOSTS for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]))
    proxies = filter(is_there, (("127.0.0.1", 1019), ("192.0.2.2", 1019), ("11.1.1.1", 80)))
    list(pool.map(by_proxy, [((at, f"[{host}]" if ":" in host else host), form) for at in proxies for host in HOSTS for form in FORMS]))
group = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    group.sendto(b"x", ("224.0.0.251", 5353))
except OSError:
    pass
for folder, name in (("/", "\\0reach"), ("/tmp", "reach"), *map(os.path.split, sys.argv[1:])):
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        try:
            os.chdir(folder)  # the whole path may be too long for a socket
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.connect(name)
                print("reached", folder)
        except OSError:
            pass
print("tried")
"""


class Two:
    """A victim that listens, and somebody else, of one user; both with as open a network as there is."""

    def __init__(self, land, without=None):
        self.land, self.without = land, without
        self.idents = {name: self.cove("create", "--name", name, "--network", "open").text.strip() for name in ("victim", "other")}
        self.cove("exec", "-d", "victim", "--", "python3", "-c", LISTEN)
        wait_for(lambda: self.cove("exec", "victim", "--", "test", "-e", "arrived").code == 0, 20, "the listener")

    def cove(self, *words):
        return self.land.cove(*words, without=self.without)

    def controls(self):
        return [str(self.land.place.state / "sandboxes" / ident / "control") for ident in self.idents.values()]

    def seek(self, name):
        done = self.cove("exec", name, "--", "python3", "-c", SEEK, *self.controls())
        assert done.text.endswith("tried\n"), done
        return done.text

    def arrived(self):
        return set(self.cove("exec", "victim", "--", "cat", "arrived").text.split())

    def is_reached_by(self, kinds):
        wait_for(lambda: self.arrived() == kinds, 10, f"the control does not fire: {kinds}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.idents:
            self.cove("rm", "-f", name)


@test(id="NET-10")
def nothing_of_a_sandbox_is_reached_from_another_of_the_same_user(place):
    with Land(place, {"victim.example.org": ["192.0.2.2"]}) as land:
        land.run("ip", "address", "add", "11.7.7.7/32", "dev", "lo")
        land.run("sh", "-c", "ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo")
        with Two(land) as two:
            equal((two.seek("other"), two.arrived()), ("tried\n", set()))
            control_fires(two.seek("victim").count("reached") == 2, "it reaches itself")
            two.is_reached_by(ALL_KINDS - {"multicast"})
            host = land.run("python3", "-c", SEEK, *two.controls())
            control_fires(host.text.count("reached") == 2, host)
        with Two(land, without="network,landlock") as two:  # abstract sockets have two guards
            two.seek("other")
            two.is_reached_by(ALL_KINDS - {"path"})


class Neighbour:
    """Another machine at a cable to this one, which has the address 10.9.0.1 there."""

    def __init__(self, land):
        self.land, self.pid = land, land.start("unshare", "--net", "sleep", "600")
        wait_for(lambda: os.readlink(f"/proc/{self.pid}/ns/net") != os.readlink(f"/proc/{land.pid}/ns/net"), 10, "its network")
        for line in (f"ip link add here type veth peer name there netns {self.pid}", "ip address add 10.9.0.1/24 dev here", "ip link set here up", "echo 1 >/proc/sys/net/ipv4/ip_forward"):
            equal(land.run("sh", "-c", line).code, 0, line)
        for line in ("ip address add 10.9.0.2/24 dev there", "ip link set there up", "ip link set lo up", "ip route add 192.0.2.0/24 via 10.9.0.1"):
            equal(self.run("sh", "-c", line).code, 0, line)

    def run(self, *words):
        return self.land.run("nsenter", "--net", "--target", self.pid, *words, env={"RES_OPTIONS": "timeout:1 attempts:1"})  # no name server is there


def listeners(land):
    """Of all that listens in the network of the host; a gateway dials, but nobody listens for it."""
    lines = land.run("cat", "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6").text.splitlines()
    return sorted(row[1] for row in (line.split() for line in lines) if row[3] in ("0A", "07"))


@test(id="NET-13")
def nobody_outside_reaches_a_port_inside(place):
    """Neither the host itself nor its neighbour; and a port that the host uses is the host's, whoever listens at it inside."""
    with Land(place, {"victim.example.org": ["192.0.2.2"]}) as land:
        land.serve("echo", "127.0.0.1", 7002)
        neighbour, before = Neighbour(land), listeners(land)
        with Two(land) as two:
            land.cove("exec", "-d", "victim", "--", "python3", "-c", "import socket, time; one = socket.create_server(('', 7002)); time.sleep(600)")
            for run in (land.run, neighbour.run):
                assert run("python3", "-c", SEEK).text == "tried\n"
            equal((two.arrived(), listeners(land)), (set(), before))
            control_fires(land.run("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 7002)).recv(9)").visits == [["connection", "127.0.0.1:7002"]], "the host's own port")
        with Two(land, without="network") as two:
            control_fires(set(listeners(land)) > set(before), listeners(land))
            neighbour.run("python3", "-c", SEEK)
            two.is_reached_by({"tcp", "udp"})
            land.run("python3", "-c", SEEK)
            two.is_reached_by({"tcp", "udp", "tcp6", "udp6", "abstract"})


# --- somebody else's addresses (NET-12) -------------------------------------------------------------

# Holds a connection from a port that is known; goes on when told to.
HOLD = """
import os, socket, time
with socket.socket() as held:
    held.bind(("192.0.2.2", 40000))
    held.connect(("web.example.org", 80))
    for path in ("first", "second"):
        held.sendall(f"GET /{path} HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n".encode())
        held.recv(999)
        open("peer", "w").write(held.getpeername()[0])
        while not os.path.exists("go"):
            time.sleep(0.05)
"""
# The same tuple, and others that could be the first one's; then what it may do itself.  First: what it asks for.
SPOOF = """
import socket, sys
host, peer = sys.argv[1:]
try:
    socket.getaddrinfo(host, 80)
except OSError:
    pass
for at in (("192.0.2.2", 40000), ("127.0.0.1", 40000), (peer, 40000), ("11.1.1.1", 40000), ("10.9.0.1", 0)):
    for to in ((peer, 80), ("11.1.1.1", 80), (host, 80), ("127.0.0.1", 1019)):
        with socket.socket() as s:
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")  # so that the next one can have it too
                s.settimeout(3)
                s.bind(at)
                s.connect(to)
                s.sendall(b"GET http://web.example.org/spoofed HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n")
                s.recv(999)
            except OSError:
                pass
for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 6), (socket.AF_INET, socket.SOCK_RAW, 255), (socket.AF_INET6, socket.SOCK_RAW, 6), (socket.AF_PACKET, socket.SOCK_RAW, 0x300)):
    try:
        socket.socket(family, kind, protocol)
        print("raw")
    except OSError:
        pass
with socket.create_connection(("other.example.org", 80), 3) as s:
    s.sendall(b"GET /own HTTP/1.1\\r\\nHost: other.example.org\\r\\n\\r\\n")
    s.recv(999)
print("tried")
"""


@test(id="NET-12")
def whoever_takes_the_addresses_of_another_sandbox_is_judged_and_noted_as_itself(place):
    other = ("--allow", "other.example.org")
    with Land(place, ZONE) as land:
        for address in ("11.1.1.1", "11.1.1.2"):
            land.serve("http", address, 80)
        names = {"first": ALLOW, "spoofer": other, "control": (*ALLOW, *other)}
        idents = {name: land.cove("create", "--name", name, *options).text.strip() for name, options in names.items()}
        try:
            land.cove("exec", "-d", "first", "--", "python3", "-c", HOLD)
            peer = wait_for(lambda: land.cove("exec", "first", "--", "cat", "peer").text, 20, "the connection")
            done = land.cove("exec", "spoofer", "--", "python3", "-c", SPOOF, "web.example.org", peer)
            equal((done.text, paths(done), set(done.names)), ("tried\n", ["/own"], {"other.example.org"}), done)
            equal([let_through_to(place, idents[name]) for name in ("first", "spoofer")], [{"web.example.org"}, {"other.example.org"}])
            control = land.cove("exec", "control", "--", "python3", "-c", SPOOF, "web.example.org", peer)
            control_fires(paths(control).count("/spoofed") > 5 and let_through_to(place, idents["control"]) == {"web.example.org", "other.example.org"}, control)
            equal(let_through_to(place, idents["first"]), {"web.example.org"})
            land.cove("exec", "first", "--", "touch", "go")
            wait_for(lambda: [visit[4] for visit in land.seen() if visit[0] == "request"] == ["/second"], 10, "the first one's second request")
        finally:
            for name in names:
                land.cove("rm", "-f", name)


# --- to all at once, and by other ways through the kernel (NET-05, NET-04) --------------------------

# What machines say to all that hear it (mDNS, LLMNR, SSDP, WS-Discovery, NetBIOS, DHCP, routers and others): to whom, at which port.
TO_ALL = ("224.0.0.251 5353 ff02::fb 5353 224.0.0.252 5355 ff02::1:3 5355 239.255.255.250 1900 ff05::c 1900 239.255.255.250 3702 255.255.255.255 137 10.9.0.255 138 "
          "255.255.255.255 67 ff02::1:2 547 224.0.0.2 520 ff02::2 521 224.0.0.1 9 ff02::1 9 ff0e::1 9").split()
SHOUT = """
import socket, struct, sys
devices = [number for number, _ in socket.if_nameindex()]
for to, port, device in ((to, int(port), device) for to, port in zip(sys.argv[1::2], sys.argv[2::2]) for device in devices):
    six, index = ":" in to, struct.pack("@i", device)
    level = socket.IPPROTO_IPV6 if six else socket.IPPROTO_IP
    join = socket.inet_pton(socket.AF_INET6, to) + index if six else socket.inet_aton(to) + bytes(4) + index
    with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM) as s:
        for change in ((), (socket.SOL_SOCKET, socket.SO_BROADCAST, 1), (level, socket.IPV6_JOIN_GROUP if six else socket.IP_ADD_MEMBERSHIP, join),
                       (level, socket.IPV6_MULTICAST_IF if six else socket.IP_MULTICAST_IF, index if six else bytes(8) + index), (level, socket.IPV6_MULTICAST_HOPS if six else socket.IP_MULTICAST_TTL, 64)):
            try:
                if change:
                    s.setsockopt(*change)
                s.sendto(b"is anybody there", (to, port, 0, device) if six else (to, port))
            except OSError:
                pass
print("tried")
"""
# Hears every frame, whoever it is for; writes down where these words were sent to.
OVERHEAR = """
import socket, struct
ear = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
with open("../overheard", "w", buffering=1) as out:
    while True:
        frame = ear.recv(9999)
        six = frame[0] >> 4 == 6
        if frame.endswith(b"is anybody there") and frame[6 if six else 9] == socket.IPPROTO_UDP:
            to = socket.inet_ntop(socket.AF_INET6, frame[24:40]) if six else socket.inet_ntoa(frame[16:20])
            print(to, *struct.unpack("!H", frame[42:44] if six else frame[22:24]), file=out)
"""


@test(id="NET-05")
def what_is_said_to_all_is_heard_by_nobody_outside(place):
    """A neighbour at a cable hears every frame.  That it heard nothing is known when it has heard what was said last."""
    def heard():
        return set((place.dir / "overheard").read_text().splitlines())

    with Land(place, ZONE) as land:
        neighbour = Neighbour(land)
        land.run("sh", "-c", "for net in 224.0.0.0/4 255.255.255.255; do ip route add $net dev here; done; ip address add fd09::1/64 dev here nodad")
        land.start("nsenter", "--net", "--target", neighbour.pid, "python3", "-c", OVERHEAR)
        wait_for(lambda: (place.dir / "overheard").exists(), 10, "its ear")
        for options in (ALLOW, ("--network", "open"), ("--audit",), *([("--root", "--network", "open")] if IDENTITY == "root" else [])):
            equal(land.box("python3", "-c", SHOUT, *TO_ALL, options=options).text, "tried\n", f"{options}")
        land.run("python3", "-c", SHOUT, "10.9.0.2", "1")
        wait_for(lambda: "10.9.0.2 1" in heard(), 10, "the last word")
        equal(heard(), {"10.9.0.2 1"})
        land.box("python3", "-c", SHOUT, *TO_ALL, without="network")
        wait_for(lambda: heard() >= {" ".join(one) for one in zip(TO_ALL[::2], TO_ALL[1::2])}, 10, "the control")


# What would lead packets elsewhere, or let others be overheard; the last one would end all of it.
CHANGES = ("ip route add default dev lo metric 5", "ip route add 11.1.1.2/32 dev lo", "ip -6 route add default dev lo metric 5", "ip address add 11.1.1.2/32 dev lo", "ip -6 address add 2a00::2/128 dev lo",
           "ip rule add from all lookup 99", "ip link set lo mtu 576", "ip link set lo promisc on", "ip link set lo arp on", "ip neigh replace 11.1.1.1 lladdr 02:00:00:00:00:01 dev lo nud permanent",
           "ip -6 neigh replace 2a00::1 lladdr 02:00:00:00:00:01 dev lo nud permanent", "ip link add v0 type veth peer name v1", "ip link set v0 promisc on", "ip -6 address add fd09::7/64 dev v0",
           "echo 1 >/proc/sys/net/ipv4/conf/all/accept_source_route", "echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet", "echo 1 >/proc/sys/net/ipv4/ip_forward", "ip link set lo down")
CHANGE = "".join(f"{line} 2>/dev/null && echo '{line}';\n" for line in CHANGES)
STATE = "ip address; ip route show table all; ip -6 route show table all; ip rule; ip neigh; ip -6 neigh; cat /proc/sys/net/ipv4/conf/all/accept_source_route /proc/sys/net/ipv4/conf/all/route_localnet /proc/sys/net/ipv4/ip_forward"

# Sockets that ask for another way or another name; what each sends goes to addresses that nobody allowed.
DETOUR = """
import socket, struct
V4, V6, ALL = socket.IPPROTO_IP, socket.IPPROTO_IPV6, socket.SOL_SOCKET
def hops(kind, *addresses):
    return bytes([1, kind, 3 + 4 * len(addresses), 4]) + b"".join(map(socket.inet_aton, addresses))
SO_BINDTOIFINDEX, IP_FREEBIND, IP_TRANSPARENT, IP_UNICAST_IF, IPV6_UNICAST_IF, IPV6_FREEBIND, LSRR, SSRR = 62, 15, 19, 50, 76, 78, 131, 137
OPTIONS = [[], *([(ALL, socket.SO_BINDTODEVICE, name)] for name in (b"lo", b"eth0", b"here")), *([(ALL, SO_BINDTOIFINDEX, number)] for number in (1, 2, 3)), [(ALL, socket.SO_DONTROUTE, 1)], [(ALL, socket.SO_MARK, 1)],
           [(V4, IP_FREEBIND, 1), "10.9.0.1"], [(V4, IP_TRANSPARENT, 1), "10.9.0.1"], [(V4, IP_FREEBIND, 1), "11.1.1.1"], [(V4, IP_FREEBIND, 1), "127.0.0.1"], [(V6, IPV6_FREEBIND, 1), "fd09::1"], [(V6, IPV6_FREEBIND, 1), "::1"],
           *([(V4, socket.IP_OPTIONS, hops(kind, *by))] for kind in (LSRR, SSRR) for by in (("127.0.0.1", "11.1.1.2"), ("11.1.1.1", "11.1.1.2"), ("192.0.2.2", "11.1.1.2"))),
           [(V4, IP_UNICAST_IF, struct.pack("!i", 1))], [(V6, IPV6_UNICAST_IF, struct.pack("!i", 1))], [(V4, 10, 3)], [(V6, 23, 3)], [(V4, socket.IP_TTL, 1)],
           [(V6, socket.IPV6_RTHDR, bytes([0, 2, 0, 1]) + bytes(4) + socket.inet_pton(socket.AF_INET6, "2a00::2"))]]
IPPROTO_MPTCP = 262
for options in OPTIONS:
    for kind, protocol in ((socket.SOCK_STREAM, 0), (socket.SOCK_DGRAM, 0), (socket.SOCK_STREAM, IPPROTO_MPTCP)):
        for to in ("11.1.1.2", "11.1.1.1", "10.9.0.2", "2a00::2", "fd09::2"):
            for port in (80, 81):
                try:
                    with socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET, kind, protocol) as s:
                        s.settimeout(0.5)
                        for option in options:
                            try:
                                s.bind((option, 0)) if isinstance(option, str) else s.setsockopt(*option)
                            except OSError:
                                pass
                        s.connect((to, port))
                        s.send(b"GET /detour HTTP/1.1\\r\\nHost: other.example.org\\r\\n\\r\\n")
                        s.recv(99)
                except OSError:
                    pass
print("tried")
"""


@test(id="NET-04")
def no_route_device_or_option_of_a_socket_leads_around_the_gateway(place):
    with Land(place, ZONE) as land:
        for address in ("11.1.1.1", "11.1.1.2"):
            land.serve("http", address, 80)
        for options in ((), *([("--root",)] if IDENTITY == "root" else [])):
            land.cove("create", "--name", "s", *options, *ALLOW)
            try:
                before = land.cove("exec", "s", "--", "sh", "-c", STATE).text
                assert "local default dev lo" in before, before
                changed = land.cove("exec", "s", "--", "sh", "-c", CHANGE)
                equal((changed.text, land.cove("exec", "s", "--", "sh", "-c", STATE).text), ("", before))
                done = land.cove("exec", "s", "--", "python3", "-c", DETOUR)
                equal((done.text, done.packets, done.visits, done.names), ("tried\n", 0, [], []), done)
                equal(paths(land.cove("exec", "s", "--", "curl", "-s", "http://web.example.org/still")), ["/still"], "what is allowed")
            finally:
                land.cove("rm", "-f", "s")
        control = land.box("python3", "-c", DETOUR, options=ALLOW, without="network")
        control_fires(control.packets > 100 and "/detour" in paths(control), control)
        control = land.run("unshare", "--net", "sh", "-c", f"ip link set lo up; {CHANGE}")
        control_fires(control.text.splitlines() == list(CHANGES), control)


if __name__ == "__main__":
    main()
