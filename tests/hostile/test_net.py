"""NET, DNS, GW: nothing leaves but what a rule lets out, for whom it says, and as it says."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from attack import COVE, IDENTITY, attack, control_fires, equal, main, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import Land, paths, policy  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402

def own_addresses():
    """Addresses by which this machine reaches itself."""
    found = ["127.0.0.1", "::1"]
    with contextlib.suppress(OSError):
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probe.connect(("192.0.2.1", 9))  # sends nothing; only asks which address would be used
        found.append(probe.getsockname()[0])
    return found


class Services:
    """A TCP and a UDP service on every own address, that count who comes."""

    def __init__(self):
        self.tcp, self.udp, self.targets = [], [], []
        for address in own_addresses():
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with contextlib.suppress(OSError):
                tcp, udp = socket.socket(family, socket.SOCK_STREAM), socket.socket(family, socket.SOCK_DGRAM)
                tcp.bind((address, 0))
                tcp.listen(16)
                udp.bind((address, tcp.getsockname()[1]))
                for one in (tcp, udp):
                    one.setblocking(False)
                self.tcp.append(tcp)
                self.udp.append(udp)
                self.targets += [address, str(tcp.getsockname()[1])]

    def count(self):
        arrived = 0
        for one in self.tcp + self.udp:
            with contextlib.suppress(BlockingIOError):
                while True:
                    one.accept()[0].close() if one in self.tcp else one.recv(100)
                    arrived += 1
        return arrived

    def close(self):
        for one in self.tcp + self.udp:
            one.close()


# Where a datagram or a connection could go.  What comes to the gateway is accepted and then refused; that nothing leaves is counted outside.
ELSEWHERE = "192.0.2.1 81 8.8.8.8 5353 169.254.169.254 8080 10.0.0.1 22 192.168.1.1 445 224.0.0.251 5353 255.255.255.255 67 2001:4860:4860::8888 853 fd00::1 22 ff02::fb 5353".split()

TRY_EVERYTHING = """
import socket
targets = [a for b in range(1, 20) for a in (f"11.1.1.{b}", f"10.0.0.{b}", f"2a00::{b}", f"64:ff9b::7f00:{b}", f"2002:7f00:{b}::", f"::ffff:11.1.1.{b}", f"fd00::{b}")]
targets += ["169.254.169.254", "127.0.0.53", "255.255.255.255", "224.0.0.251", "fe80::1%lo", "ff02::1", "0.0.0.0", "::"]
for target in targets:
    for port in (22, 25, 53, 80, 123, 443, 853, 5353, 8080):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                family, _, _, _, to = socket.getaddrinfo(target, port, 0, kind, 0, socket.AI_NUMERICHOST)[0]
                with socket.socket(family, kind) as s:
                    s.settimeout(0.2)
                    s.connect(to)
                    s.send(b"GET / HTTP/1.1\\r\\nHost: a.b\\r\\n\\r\\n")
            except OSError:
                pass
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_PACKET):
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_STREAM, 6):
        for protocol in (0, 1, 2, 33, 47, 58, 132, 136, 255):
            try:
                with socket.socket(family, kind, protocol) as s:
                    s.settimeout(0.1)
                    s.sendto(b"x" * 2000, ("11.1.1.1" if family == socket.AF_INET else "2a00::1", 443))
            except (OSError, TypeError):
                pass
for name in ("web.example.org", "a" * 50 + ".example.org", "localhost", "metadata.google.internal"):
    try:
        socket.getaddrinfo(name, 80)
    except OSError:
        pass
print("tried")
"""


def everything(place, name="everything.py"):
    (place.work / name).write_text(TRY_EVERYTHING)
    return "python3", name


@test(id="NET-01")
def with_no_rule_there_is_no_network(place):
    services = Services()
    try:
        for without in (None, "seccomp", "landlock", "capabilities"):
            report = attack(place, "network", *services.targets, *ELSEWHERE, without=without)
            reached = [step for step in report.worked() if not step.startswith(("2:127.0.0.1:", "2:::1:", "2:192.0.2.2:"))]  # a datagram to its own addresses goes nowhere
            equal(reached, [], f"addresses that answered without {without}")
            equal(services.count(), 0, f"arrivals without {without}")
        equal(place.run("cat", "/etc/resolv.conf").code, 0)
        control = attack(place, "network", *services.targets, without="network")
        control_fires(services.count() >= 2, control.chk)
    finally:
        services.close()


@test(id="NET-01")
def with_no_rule_no_packet_leaves_and_no_name_is_asked_for(place):
    (place.dir / "empty.yaml").write_text("network:\n  rules: []\n")
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        for options in ((), ("--network", "none"), ("--policy", place.dir / "empty.yaml"), *([("--root",)] if IDENTITY == "root" else [])):
            done = land.box(*everything(place), options=options)
            equal((done.text, done.packets, done.names), ("tried\n", 0, []), f"{options}")
        control = land.box(*everything(place), without="network")
        control_fires(control.packets > 100 and control.names, control)


@test(id="NET-02")
def with_a_rule_only_what_it_names_leaves(place):
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        done = land.box(*everything(place), options=("--allow", "web.example.org", "--allow", "11.1.1.200:80"))
        equal((done.text, done.packets, done.names), ("tried\n", 0, []), done)
        control_fires(land.box(*everything(place), without="network").packets > 100, "packets")


@test(id="NET-03")
def no_ipv6_address_goes_around_the_gateway(place):
    script = """
import socket
for to in ("2a00::1", "::ffff:11.1.1.1", "64:ff9b::b01:101", "2002:b01:101::1", "2001:0:b01:101::1", "fe80::1%lo", "fd00:ec2::254", "::11.1.1.1"):
    for port in (80, 443, 81):
        try:
            with socket.create_connection((to, port), 1) as s:
                s.sendall(b"GET / HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n")
                print(to, port, s.recv(100)[:12])
        except OSError as error:
            print(to, port, error.errno)
"""
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        for address in ("11.1.1.1", "2a00::1"):
            land.serve("http", address, 80)
        done = land.box("python3", "-c", script, options=("--allow", "web.example.org"))
        equal((done.code, done.packets, done.visits), (0, 0, []), done)
        control_fires(land.box("python3", "-c", script, options=("--allow", "web.example.org"), without="network").visits, "visits")


METADATA = {"a.meta.example.org": ["169.254.169.254"], "b.meta.example.org": ["fd00:ec2::254"], "c.meta.example.org": ["100.100.100.200"], "d.meta.example.org": ["::ffff:169.254.169.254"],
            "metadata.google.internal": ["169.254.169.254"], "instance-data": ["169.254.169.254"], "e.meta.example.org": ["64:ff9b::a9fe:a9fe"], "f.meta.example.org": ["192.0.0.192"]}


@test(id="NET-07")
def metadata_services_are_not_reached_even_with_an_open_network(place):
    with Land(place, METADATA) as land:
        for net in ("169.254.0.0/16", "100.64.0.0/10", "192.0.0.0/24"):
            land.run("ip", "route", "add", "local", net, "dev", "lo")
        for address in ("169.254.169.254", "100.100.100.200", "192.0.0.192"):
            land.serve("http", address, 80)
        script = "for n in %s 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 '[::ffff:a9fe:a9fe]' 100.100.100.200; do curl -sS -m 3 http://$n/latest/meta-data/; done; echo tried" % " ".join(METADATA)
        for mode in ("open", "audit"):
            done = land.sh(script, options=("--network", mode))
            assert done.text.endswith("tried\n"), done
            equal(done.visits, [], "who came")
            control = land.sh(script, options=("--network", mode), without="rules,upstream")
            control_fires(control.visits, control)


@test(id="NET-08")
def the_host_s_own_addresses_are_not_reached(place):
    zone = {"one.example.org": ["127.0.0.1"], "two.example.org": ["11.7.7.7"], "three.example.org": ["::1"], "four.example.org": ["0.0.0.0"]}
    with Land(place, zone, hosts="127.0.0.1 host.example.org\n") as land:
        land.run("ip", "address", "add", "11.7.7.7/32", "dev", "lo")  # a public address, but this machine's
        land.serve("http", "127.0.0.1", 80)
        land.serve("http", "11.7.7.7", 80)
        script = "for n in one two three four host; do curl -sS -m 3 http://$n.example.org/; done; curl -sS http://11.7.7.7/; curl -sS http://127.0.0.1/ http://192.0.2.2/; echo tried"
        for options in (("--network", "open"), ("--audit",), ("--allow", "*.example.org")):
            done = land.sh(script, options=options)
            assert done.text.endswith("tried\n"), done
            equal(done.visits, [], "who came")
            control_fires(land.sh(script, options=options, without="upstream,rules").visits, "visits")


@test(id="NET-08")
def an_address_that_the_host_gets_later_is_not_reached_either(place):
    script = "for n in one.example.org six.example.org 11.7.7.7; do curl -sS -m 3 http://$n/; done; echo tried"
    with Land(place, {"one.example.org": ["11.7.7.7"], "six.example.org": ["2a00:7::7"]}) as land:
        land.serve("http", "11.7.7.7", 80)
        land.serve("http", "2a00:7::7", 80)
        for without in (None, "upstream"):
            ident = land.cove("create", "--network", "open", without=without).text.strip()
            try:
                land.cove("exec", ident, "--", "getent", "hosts", "one.example.org", without=without)
                land.run("ip", "address", "add", "11.7.7.7/32", "dev", "lo")  # while the gateway is there
                land.run("ip", "address", "add", "2a00:7::7/128", "dev", "lo", "nodad")
                done = land.cove("exec", ident, "--", "sh", "-c", script, without=without)
                assert done.text.endswith("tried\n"), done
                if without:
                    control_fires(done.visits, done)
                else:
                    equal(done.visits, [], "who came")
            finally:
                land.cove("rm", "-f", ident, without=without)
                land.run("ip", "address", "del", "11.7.7.7/32", "dev", "lo")
                land.run("ip", "address", "del", "2a00:7::7/128", "dev", "lo")


# With one service of the host at loopback: every way to another one that could have been opened with it.
OTHER_SERVICE = """
import socket
for host in ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "192.0.2.2", "fd00:c0fe::2", "0.0.0.0", "::", "localhost"):
    for port in (7000, 5432 if host not in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", "0.0.0.0", "::") else 7000):
        try:
            with socket.create_connection((host, port), 5) as s:
                s.sendall(b"x")
                s.recv(9)
        except OSError:
            pass
for at in (("127.0.0.1", 1019), ("::1", 1019), ("127.0.0.1", 5432)):
    for target in ("127.0.0.1:7000", "localhost:7000", "[::1]:7000", "127.1:7000", "127.0.0.2:5432", "[::ffff:127.0.0.1]:7000"):
        for say in (f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n", f"GET http://{target}/ HTTP/1.1\\r\\nHost: {target}\\r\\nConnection: close\\r\\n\\r\\n"):
            try:
                with socket.create_connection(at, 5) as s:
                    s.sendall(say.encode())
                    s.shutdown(1)
                    while s.recv(999):
                        pass
            except OSError:
                pass
for port in (5432, 7000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.sendto(b"x", ("127.0.0.1", port))
    except OSError:
        pass
print("tried")
"""


@test(id="NET-08")
def a_service_of_the_host_opens_no_other(place):
    with Land(place, {}) as land:
        land.serve("echo", "127.0.0.1", 5432)
        for address in ("127.0.0.1", "::1"):
            land.serve("http", address, 7000)
        land.serve("http", "127.0.0.2", 5432)
        for port in (5432, 7000):
            land.serve("udp", "127.0.0.1", port)
        options = ("--host-service", "5432")
        done = land.box("python3", "-c", OTHER_SERVICE, options=options, timeout=120)
        assert done.text.endswith("tried\n"), done
        equal({tuple(visit[:2]) for visit in done.visits}, {("connection", "127.0.0.1:5432")}, "who came")
        control_fires(["connection", "127.0.0.1:7000"] in land.box("python3", "-c", OTHER_SERVICE, options=options, without="rules,upstream", timeout=120).visits, "rules")


@test(id="NET-09")
def the_gateway_is_no_proxy_to_the_host(place):
    script = """
import socket
for at in (("127.0.0.1", 1019), ("198.18.1.0", 80), ("11.1.1.1", 80)):
    for say in ("CONNECT 127.0.0.1:80 HTTP/1.1\\r\\nHost: 127.0.0.1:80\\r\\n\\r\\n", "GET http://127.0.0.1/ HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n",
                "GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n", "\\x05\\x01\\x00", "\\x04\\x01\\x00P\\x7f\\x00\\x00\\x01\\x00"):
        try:
            with socket.create_connection(at, 2) as s:
                s.sendall(say.encode("latin1"))
                print(s.recv(100)[:20])
        except OSError as error:
            print(error.errno)
print("tried")
"""
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "127.0.0.1", 80)
        done = land.box("python3", "-c", script, options=("--allow", "web.example.org"))
        assert done.text.endswith("tried\n"), done
        equal(done.visits, [], "who came")
        control_fires(land.run("curl", "-sS", "http://127.0.0.1/").visits, "the server is there")


@test(id="NET-14")
def a_gateway_that_is_killed_takes_its_connections_along_and_nothing_goes_around_it(place):
    (place.work / "go.sh").write_text("curl -sS http://web.example.org/slow >/dev/null; echo cut $?; curl -sS http://other.example.org/; sleep 1.2; "
                                      "curl -sS http://web.example.org/; curl -sS http://other.example.org/; echo end\n")
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        land.serve("http", "11.1.1.2", 80)
        land.start("sh", "-c", f"exec {COVE} run --rm --allow web.example.org -- sh go.sh >{place.dir}/done 2>&1")
        wait_for(lambda: gateways(place), 10, "a gateway")
        time.sleep(0.3)
        for gateway in gateways(place):
            os.kill(gateway, signal.SIGKILL)
        wait_for(lambda: "end\n" in (place.dir / "done").read_text(), 20, "the end of the run")
        lines = (place.dir / "done").read_text().splitlines()
        assert any(line.startswith("cut") and line != "cut 0" for line in lines), f"the download was cut: {lines}"
        assert "hello from web.example.org" in lines, lines
        assert "hello from other.example.org" not in lines, lines
        control_fires(land.run("curl", "-sS", "http://other.example.org/").visits, "the other server is there")


def is_alive(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@test(id="NET-14")
def a_gateway_that_does_nothing_any_more_does_not_outlive_its_keeper(place):
    with Land(place) as land:
        land.start("sh", "-c", f"exec {COVE} run --rm -- sh -c 'getent hosts web.example.org; sleep 60'")
        wait_for(lambda: gateways(place), 10, "a gateway")
        time.sleep(0.3)
        [gateway] = gateways(place)
        keeper = int(pathlib.Path(f"/proc/{gateway}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(gateway, signal.SIGSTOP)
        control_fires(is_alive(gateway), "the gateway is there, and stopped")
        os.kill(keeper, signal.SIGKILL)
        try:
            wait_for(lambda: not is_alive(gateway), 5, "the end of the gateway")
        finally:
            if is_alive(gateway):
                os.kill(gateway, signal.SIGKILL)


def rights_of(pid):
    """What the kernel says a process may do; of a process that hides, what only root sees is left out."""
    process = pathlib.Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    limits = re.search("Max data size +(\\S+)", (process / "limits").read_text())[1]
    seen = {name: status[name] for name in ("CapPrm", "CapEff", "NoNewPrivs", "Seccomp")} | {"data": limits}
    if IDENTITY == "root":
        seen |= {"variables": (process / "environ").read_bytes(), "uid": status["Uid"].split()[0], "root": os.listdir(process / "root"),
                 "files": sorted({re.sub("[0-9]+", "N", os.readlink(one)) for one in (process / "fd").iterdir()})}
    return seen


@test(id="NET-14")
def a_gateway_has_no_rights_no_files_and_nothing_of_its_keepers(place):
    nothing = "0" * 16
    wanted = {"CapPrm": nothing, "CapEff": nothing, "NoNewPrivs": "1", "Seccomp": "2", "data": str(512 << 20)}
    sanitized = bool(os.environ.get("COVE_SANITIZED"))
    if sanitized:
        wanted["data"] = "unlimited"  # its shadow counts
    if IDENTITY == "root":
        wanted |= {"variables": b"", "uid": "65534", "root": [], "files": ["/dev/null", "anon_inode:[eventpoll]", "socket:[N]"]}
    with Land(place) as land:
        land.start("sh", "-c", f"exec {COVE} run --rm -- sh -c 'getent hosts web.example.org; sleep 60'")
        [gateway] = wait_for(lambda: gateways(place), 10, "a gateway")
        wait_for(lambda: rights_of(gateway)["Seccomp"] == "2", 10, "its filter")
        keeper = int(pathlib.Path(f"/proc/{gateway}/stat").read_text().rpartition(")")[2].split()[1])
        try:
            seen = rights_of(gateway)
            for other in ("variables", "files") if sanitized else ():  # it is told how to report, and where
                seen[other] = wanted.get(other)
            equal({name: seen[name] for name in wanted}, wanted, "what a gateway has")
            control_fires(rights_of(keeper)["Seccomp"] == "0", "of its keeper other things are read")
        finally:
            os.kill(keeper, signal.SIGKILL)


@test(id="NET-14")
def nothing_is_passed_on_before_its_keeper_has_noted_it(place):
    """Also not a request on a connection that was let through before, plain or inside TLS."""
    (place.work / "go.py").write_text("""
import os, socket, ssl, time
plain = socket.create_connection(("web.example.org", 80), 60)
tls = ssl._create_unverified_context().wrap_socket(socket.create_connection(("web.example.org", 443), 60), server_hostname="web.example.org")
for path in ("first", "second"):
    while not os.path.exists("say-" + path):
        time.sleep(0.01)
    for one in (plain, tls):
        one.sendall(b"GET /%s HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n" % path.encode())
    open("said-" + path, "w")
    for one in (plain, tls):  # all of it: what is left would be taken for the next answer, and the command be over before that
        answer = b""
        while not answer.endswith(b"hello from web.example.org\\n"):
            piece = one.recv(9999)
            assert piece, answer
            answer += piece
""")
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
        land.start(COVE, "run", "--rm", "--workspace", "rw", *policy(place, "{ host: web.example.org, methods: GET }"), "--", "python3", "go.py")
        def arrived():
            return [visit[4] for visit in land.seen() if visit[0] == "request"]
        def has_said(path):
            (place.work / f"say-{path}").touch()
            wait_for((place.work / f"said-{path}").exists, 60, path)
        has_said("first")
        wait_for(lambda: arrived() == ["/first"] * 2, 60, "the first ones")
        [gateway] = gateways(place)
        keeper = int(pathlib.Path(f"/proc/{gateway}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(keeper, signal.SIGSTOP)
        try:
            has_said("second")
            time.sleep(2)
            equal(arrived(), ["/first"] * 2, "requests that arrived, also while the keeper was stopped")
        finally:
            os.kill(keeper, signal.SIGCONT)
        try:
            wait_for(lambda: arrived() == ["/first"] * 2 + ["/second"] * 2, 60, "the others, now that it goes on")
        except AssertionError:
            equal(arrived(), ["/first"] * 2 + ["/second"] * 2, "requests that arrived in the end")


LABELS = """
import os, socket, struct, subprocess
name = os.urandom(8).hex() + ".secret.example.org"
for ask in (lambda: socket.getaddrinfo(name, 80), lambda: subprocess.run(["getent", "hosts", name], stdout=subprocess.DEVNULL)):
    try:
        ask()
    except OSError:
        pass
question = struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0"
for server in ("127.0.0.1", "8.8.8.8", "1.1.1.1", "11.1.1.1", "192.0.2.2"):
    for kind in (1, 16, 28, 33, 65, 255):
        message = question + struct.pack("!HH", kind, 1)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(1)
        s.sendto(message, (server, 53))
        s.recv(999)
        t = socket.create_connection((server, 53), 2)
        t.sendall(struct.pack("!H", len(message)) + message)
        t.recv(999)
print("tried")
"""

THROUGH = """
import os, socket, subprocess
from concurrent.futures import ThreadPoolExecutor
name = os.urandom(8).hex() + ".secret.example.org"
says = (f"GET http://{name}/ HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n", f"GET / HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n", f"CONNECT {name}:443 HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n",
            f"GET / HTTP/1.1\\r\\nHost: u@{name}\\r\\n\\r\\n", f"\\5\\1\\0\\5\\1\\0\\3{chr(len(name))}{name}\\0P")
def ask(row):
    try:
        with socket.create_connection(row[1], 2) as s:
            s.sendall(row[0].encode())
            s.recv(999)
    except OSError:
        pass
with ThreadPoolExecutor(15) as pool:
    list(pool.map(ask, [(say, to) for say in says for to in (("web.example.org", 80), (name, 80), ("11.1.1.1", 80))]))
subprocess.run(["curl", "-sS", "-m", "3", f"https://{name}/"], stderr=subprocess.DEVNULL)
subprocess.run(["curl", "-sS", "-m", "3", "--connect-to", f"{name}:443:web.example.org:443", f"https://{name}/"], stderr=subprocess.DEVNULL)
print("tried")
"""


def asks_nobody(place, script):
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        for options in (("--allow", "web.example.org"), ()):
            done = land.box("python3", "-c", script, options=options)
            assert done.text.endswith("tried\n"), done
            equal([name for name in done.names if name.endswith(".secret.example.org")], [], "names asked for outside")
        return [land.box("python3", "-c", script, options=("--allow", "web.example.org"), without=guard) for guard in ("network", "rules")]


@test(id="DNS-01")
def no_name_that_is_not_allowed_is_asked_for_outside(place):
    without_network, _ = asks_nobody(place, LABELS)
    control_fires([name for name in without_network.names if name.endswith(".secret.example.org")], without_network)


@test(id="DNS-02")
def no_name_that_is_not_allowed_is_asked_for_because_a_request_has_it(place):
    _, without_rules = asks_nobody(place, THROUGH)
    control_fires([name for name in without_rules.names if name.endswith(".secret.example.org")], without_rules)


INNER = ("127.0.0.1 10.1.1.1 172.16.1.1 192.168.1.1 169.254.1.1 100.64.1.1 0.0.0.0 198.18.1.0 192.0.2.2 203.0.113.1 224.0.0.1 255.255.255.255 240.0.0.1 "
         "::1 :: ::ffff:127.0.0.1 ::ffff:10.1.1.1 fc00::1 fe80::1 64:ff9b::7f00:1 2002:7f00:1::1 2001:db8::1 ff02::1").split()


@test(id="DNS-07")
def an_allowed_name_that_leads_inside_is_refused_before_anybody_is_dialled(place):
    zone = {f"n{i}.example.org": [address] for i, address in enumerate(INNER)}
    with Land(place, zone) as land:
        for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10"):
            land.run("ip", "route", "add", "local", net, "dev", "lo")
        for address in INNER[:6]:
            land.serve("http", address, 80)
        script = "".join(f"curl -sS -m 3 http://{name}/;" for name in zone) + "cat /run/cove/refused"
        done = land.sh(script, options=("--allow", "*.example.org"))
        equal(done.visits, [], "who came")
        equal(done.text.count("Cove refused this request"), len(INNER), done)
        control_fires(len(land.sh(script, options=("--allow", "*.example.org"), without="upstream").visits) >= 6, "visits")


@test(id="DNS-08")
def a_name_that_changes_its_address_is_dialled_only_where_it_may_be(place):
    """What was found is kept for a second: of six names half lead inside at first, and the others then."""
    flips = {f"flip{i}.example.org": [["10.1.1.1" if i % 2 else "11.1.1.1"], ["11.1.1.1" if i % 2 else "10.1.1.1"]] * 50 for i in range(6)}
    zone = {**flips, "mixed.example.org": ["10.1.1.1", "11.1.1.1"], "six.example.org": ["11.1.1.1", "::1", "fc00::1"]}
    with Land(place, zone) as land:
        land.run("ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo")
        land.serve("http", "11.1.1.1", 80)
        land.serve("http", "10.1.1.1", 80)
        script = "for i in 1 2; do for n in flip0 flip1 flip2 flip3 flip4 flip5 mixed six; do curl -sS -m 3 http://$n.example.org/; done; sleep 1.1; done"
        done = land.sh(script, options=("--allow", "*.example.org"))
        places = {visit[1] for visit in done.visits}
        equal(places, {"11.1.1.1:80"}, "who was visited")
        control = land.sh(script, options=("--allow", "*.example.org"), without="upstream")
        control_fires("10.1.1.1:80" in {visit[1] for visit in control.visits}, control)


NAMES = """
import socket, ssl, sys
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
for name in (None, "other.example.org", "web.example.org.", "web.example.org.evil.test", "xweb.example.org", "11.1.1.1", "WEB.example.org"):
    try:
        with socket.create_connection(("web.example.org", 443), 3) as raw, context.wrap_socket(raw, server_hostname=name) as s:
            s.sendall(b"GET /%s HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n" % str(name).encode())
            s.recv(999)
    except (OSError, ValueError):
        pass
# A hello in pieces, of which the first say nothing.
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
tls = context.wrap_bio(incoming, outgoing, server_hostname="other.example.org")
try:
    tls.do_handshake()
except ssl.SSLWantReadError:
    pass
hello = outgoing.read()[5:]
with socket.create_connection(("web.example.org", 443), 3) as s:
    try:
        for i in range(0, len(hello), 50):
            s.sendall(b"\\x16\\3\\1\\0" + bytes([len(hello[i:i + 50])]) + hello[i:i + 50])
        s.recv(999)
    except OSError:
        pass
for say in (b"SSH-2.0-x\\r\\n", b"\\x16\\3\\1\\0\\5\\2\\0\\0\\1x", b"\\x80\\x2e\\1\\3\\1"):
    with socket.create_connection(("web.example.org", 443), 3) as s:
        try:
            s.sendall(say)
            s.recv(999)
        except OSError:
            pass
print("tried")
"""


@test(id="GW-01")
def tls_is_passed_on_only_for_the_name_that_was_dialled(place):
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}) as land:
        land.serve("tls", "11.1.1.1", 443, "web.example.org")
        done = land.box("python3", "-c", NAMES, options=("--allow", "*.example.org"))
        assert done.text.endswith("tried\n"), done
        paths = {visit[4] for visit in done.visits if visit[0] == "request"}
        assert paths <= {"/WEB.example.org", "/web.example.org."} and paths, f"requests that arrived: {done!r}"
        control = land.box("python3", "-c", NAMES, options=("--allow", "*.example.org"), without="agreement")
        control_fires("/other.example.org" in {visit[4] for visit in control.visits if visit[0] == "request"}, control)


def say_all(place, rows):
    """Says each of them over a connection of its own, and prints how each was answered."""
    (place.work / "rows.json").write_text(json.dumps(rows))
    (place.work / "say.py").write_text("""
import json, socket
for row in json.load(open("rows.json")):
    with socket.create_connection(("web.example.org", 80), 3) as s:
        s.settimeout(2)
        heard = b""
        try:
            s.sendall(row.encode("latin1"))
            s.shutdown(socket.SHUT_WR)
            while more := s.recv(9999):
                heard += more
        except OSError:
            pass
        print(heard[9:12].decode() or "none")
""")
    return "python3", "say.py"


@test(id="GW-02")
def a_request_is_passed_on_only_for_the_host_that_was_dialled(place):
    rows = ["GET /%d HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (i, host, more) for i, (host, more) in enumerate((
        ("web.example.org", ""), ("other.example.org", ""), ("web.example.org:81", ""), ("web.example.org.evil.test", ""), ("11.1.1.1", ""), ("web.example.org", "X-Forwarded-Host: other.example.org\r\n"),
        ("web.example.org\r\nHost: other.example.org", ""), ("[::1]", ""), ("localhost", "")))]
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box(*say_all(place, rows), options=("--allow", "*.example.org"))
        equal([(visit[3], visit[4]) for visit in done.visits if visit[0] == "request"], [("web.example.org", "/0"), ("web.example.org", "/5")], done)
        equal(done.text.split().count("403"), len(rows) - 2, done)
        control = land.box(*say_all(place, rows), options=("--allow", "*.example.org"), without="agreement")
        control_fires("/1" in {visit[4] for visit in control.visits if visit[0] == "request"}, control)


@test(id="GW-03")
def a_second_request_on_a_connection_is_judged_as_the_first(place):
    """Whatever is said behind a request: only what its rule allows arrives, also if a server would take the body of a GET for a request."""
    host = "Host: web.example.org\r\n"
    first, second = f"GET /v1/1 HTTP/1.1\r\n{host}\r\n", f"GET /v2/2 HTTP/1.1\r\n{host}\r\n"
    sizes = f"Content-Length: {len(second)}\r\n\r\n{second}"
    rows = [first + second, f"POST /v1/1 HTTP/1.1\r\n{host}Content-Length: 3\r\n\r\nabc{second}", f"POST /v1/1 HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n{second}",
            f"POST /v1/1 HTTP/1.1\r\n{host}{sizes}", f"GET /v1/1 HTTP/1.1\r\n{host}{sizes}", f"HEAD /v1/1 HTTP/1.1\r\n{host}{sizes}", f"GET /v1/1 HTTP/1.1\r\n{host}Upgrade: websocket\r\nConnection: upgrade\r\n\r\n{second}",
            f"GET /v1/1 HTTP/1.1\r\n{host}Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n{second}", f"POST /v1/1 HTTP/1.1\r\n{host}Expect: 100-continue\r\n{sizes}{second}",
            f"GET /v1/../v2/2 HTTP/1.1\r\n{host}\r\n", f"GET /v1/%2e%2e/v2/2 HTTP/1.1\r\n{host}\r\n", f"GET /v1//../v2/2 HTTP/1.1\r\n{host}\r\n", f"GET http://web.example.org/v2/2 HTTP/1.1\r\n{host}\r\n",
            f"CONNECT web.example.org:80 HTTP/1.1\r\n{host}\r\n{second}", first + f"CONNECT web.example.org:80 HTTP/1.1\r\n{host}\r\n{second}"]
    rule = policy(place, "{ host: web.example.org, paths: [/v1/**] }")
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box(*say_all(place, rows), options=rule)
        equal(done.code, 0, done)
        equal(set(paths(done)), {"/v1/1"}, done)
        equal(len(paths(done)), 10, done)
        control = land.box(*say_all(place, rows), options=rule, without="rules")
        control_fires("/v2/2" in paths(control), control)


@test(id="GW-03")
def a_second_request_on_a_connection_for_somebody_else_is_not_passed_on(place):
    first, second = "GET /1 HTTP/1.1\r\nHost: web.example.org\r\n\r\n", "GET /2 HTTP/1.1\r\nHost: other.example.org\r\n\r\n"
    rows = [first + second, first.replace("GET", "POST").replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc") + second,
            first.replace("GET", "POST").replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n") + second]
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box(*say_all(place, rows), options=("--allow", "*.example.org"))
        equal([visit[4] for visit in done.visits if visit[0] == "request"], ["/1"] * 3, done)
        # The server itself takes a second one.
        control = land.run("python3", "-c", "import socket; s=socket.create_connection(('11.1.1.1',80)); s.sendall(%r); s.shutdown(1); s.recv(99); import time; time.sleep(0.3)" % (first + second).encode())
        control_fires([visit[4] for visit in control.visits if visit[0] == "request"] == ["/1", "/2"], control)


@test(id="GW-02")
def a_port_that_a_rule_names_takes_requests_and_tls_for_its_host_only(place):
    """Also from a client that says nothing until it is let through, or has an empty line before its request."""
    script = """
import socket, ssl, time
from concurrent.futures import ThreadPoolExecutor
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
def plain(wait, say, host):
    with socket.create_connection(("web.example.org", 8080), 3) as s:
        time.sleep(wait)
        s.sendall((say % host).encode())
        s.recv(999)
def tls(host):
    with socket.create_connection(("web.example.org", 8443), 3) as raw:
        time.sleep(0.6)
        with context.wrap_socket(raw, server_hostname=host) as s:
            s.sendall(b"GET /tls HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % host.encode())
            s.recv(999)
with ThreadPoolExecutor(8) as pool:
    for wait, say in ((0, "GET /0 HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n"), (0.6, "GET /1 HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n"), (0, "\\r\\nGET /2 HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n")):
        for host in ("web.example.org:8080", "other.example.org:8080"):
            pool.submit(plain, wait, say, host)
    for host in ("web.example.org", "other.example.org"):
        pool.submit(tls, host)
print("tried")
"""
    options = ("--allow", "web.example.org:8080", "--allow", "web.example.org:8443")
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 8080)
        land.serve("tls", "11.1.1.1", 8443, "web.example.org")
        done = land.box("python3", "-c", script, options=options)
        equal(done.text, "tried\n", done)
        equal(sorted((visit[3].split(":")[0], visit[4]) for visit in done.visits if visit[0] == "request"), [("web.example.org", "/0"), ("web.example.org", "/1"), ("web.example.org", "/tls")], done)
        control = land.box("python3", "-c", script, options=options, without="agreement")
        control_fires(("other.example.org", "/tls") in {(visit[3], visit[4]) for visit in control.visits if visit[0] == "request"}, control)


@test(id="GW-05")
def a_host_is_taken_in_its_one_form_only(place):
    rows = ["GET /%d HTTP/1.1\r\nHost: web%s.example.org\r\n\r\n" % (byte, chr(byte)) for byte in range(256)]
    rows += ["GET /%d HTTP/1.1\r\nHost: web.example.org%s\r\n\r\n" % (1000 + byte, chr(byte)) for byte in range(256)]
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box(*say_all(place, rows), options=("--allow", "*.example.org"), timeout=200)
        arrived = {int(visit[4][1:]) for visit in done.visits if visit[0] == "request"}
        # White space at the end, and one dot, are no part of the name.
        equal(arrived, {1000 + ord(c) for c in "\t ."}, "requests that arrived")
        equal({visit[3] for visit in done.visits if visit[0] == "request"}, {"web.example.org"}, "as whose")
        control_fires(len(land.box(*say_all(place, rows), options=("--allow", "*.example.org"), without="agreement", timeout=200).visits) > 100, "visits")


G, H = "GET /%s HTTP/1.1\r\n", "Host: web.example.org\r\n"
FRAMES = [G + H + more + "\r\n" for more in ("A: b\n", "A: b\rC: d\r\n", "A: b\0\r\n", " A: b\r\n", "\tA: b\r\n", "A : b\r\n", ": b\r\n", "b\r\n", "A\0: b\r\n", "A: b\r\n c\r\n", "\x80: b\r\n",
                                            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
                                            "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n", "Content-Length: +5\r\n", "Content-Length: 05\r\n", "Content-Length: 0x5\r\n", "Content-Length: 5 5\r\n",
                                            "Content-Length: -0\r\n", "Content-Length: 18446744073709551616\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding : chunked\r\n",
                                            "Transfer-Encoding: identity\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding:\r\n chunked\r\n", "Transfer_Encoding: chunked\r\n", "content_length: 5\r\n",
                                            "X: " + "y" * 20000 + "\r\n", "X: y\r\n" * 200)]
FRAMES += [first + H + "\r\n" for first in ("GET /%s\r\n", "GET  /%s HTTP/1.1\r\n", "GET /%s HTTP/1.1 \r\n", "GET /%s HTTP/2.0\r\n", "GET /%s HTTP/1.10\r\n", "get\0 /%s HTTP/1.1\r\n", "GET /%s HTTP/1.1\n", "\r\nGET /%s HTTP/1.1\r\n",
                                           "GET /%s\r HTTP/1.1\r\n", "GET\t/%s HTTP/1.1\r\n", "GET http://other.example.org/%s HTTP/1.1\r\n", "GET http://web.example.org@other.example.org/%s HTTP/1.1\r\n", "GET //x/%s#@y HTTP/1.1\r\n")]
FRAMES += ["POST /%s HTTP/1.1\r\n" + H + "Transfer-Encoding: chunked\r\n\r\n" + body for body in ("5;e=1\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "-5\r\nhello\r\n",
                                                                                              "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "ffffffffffffffffff\r\nhello")]
BEHIND = "GET /behind HTTP/1.1\r\nHost: other.example.org\r\n\r\n"


@test(id="GW-09")
def what_can_be_framed_in_two_ways_is_not_passed_on(place):
    rows = [(frame % i if "%s" in frame else frame) + behind for i, frame in enumerate(FRAMES) for behind in ("", BEHIND)]
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box(*say_all(place, rows), options=("--allow", "*.example.org"), timeout=200)
        equal(done.code, 0, done)
        arrived = [visit for visit in done.visits if visit[0] == "request"]
        equal([visit for visit in arrived if visit[4] == "/behind"], [], "requests that came along behind others")
        equal(arrived, [], "requests that were passed on")
        control = land.run("python3", "-c", "import socket; s=socket.create_connection(('11.1.1.1',80)); s.sendall(%r); s.shutdown(1); s.recv(99); import time; time.sleep(0.3)" % rows[1].encode())
        control_fires(any(visit[0] == "request" for visit in control.visits), f"the server takes nearly everything: {control!r}")


# Looks for lines of PEM by their hashes, so that what is looked for is not brought along: in every file that is not the host's, in all that
# /proc tells of processes, and in the memory of its own.
SEARCH = """
import glob, hashlib, os, re, sys
wanted, found = set(sys.argv[1].split(",")), set()
line = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{64}(?![A-Za-z0-9+/=])")
def look(path, data):
    found.update((path, digest) for one in line.findall(data) if (digest := hashlib.sha256(one).hexdigest()) in wanted)
def files():
    for top, folders, names in os.walk("/"):
        if top == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "usr", "opt", "dev") and not os.path.islink("/" + name)]
        yield from (os.path.join(top, name) for name in names)
    for name in ("environ", "cmdline", "maps", "mountinfo"):
        yield from glob.glob("/proc/[0-9]*/" + name)
for path in files():
    try:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                look(path, file.read(1 << 24))
    except OSError:
        pass
for value in os.environb.values():
    look("environment", value)
for path, digest in sorted(found):
    print(path, digest)
"""


def lines_of(pem, kind):
    """Hashes of the lines of one block that are 64 bytes long."""
    import hashlib
    body = pem.split(f"-----BEGIN {kind}-----\n")[1].split("-----END")[0]
    lines = [line for line in body.split("\n") if len(line) == 64]
    assert lines, pem
    return [hashlib.sha256(line.encode()).hexdigest() for line in lines]


def trust_of_host():
    return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns, path.lstat().st_size) for top in ("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/local/share/ca-certificates")
            for path in sorted(pathlib.Path(top).rglob("*")) if os.access(path.parent, os.R_OK | os.X_OK)}


def is_believed(place, bundle, certificate):
    """Whether openssl believes a certificate by that bundle alone."""
    (place.dir / "bundle").write_text(bundle)
    (place.dir / "one").write_text(certificate)
    return subprocess.run(["openssl", "verify", "-no-CApath", "-CAfile", place.dir / "bundle", place.dir / "one"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


@test(id="GW-20")
def the_key_of_its_authority_is_nowhere_inside_and_no_other_sandbox_believes_it(place):
    before = trust_of_host()
    idents = [place.cove("create").text.strip() for _ in range(2)]
    try:
        authorities, bundles = [], []
        for ident in idents:
            file = place.state / "sandboxes" / ident / "trust/authority"
            equal((file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777), (0o600, 0o700), "who may read the key on the host")
            authorities.append(file.read_text())
            bundles.append(place.cove("exec", ident, "--", "cat", "/etc/ssl/certs/ca-certificates.crt").text)
        key, shown = lines_of(authorities[0], "PRIVATE KEY"), lines_of(authorities[0], "CERTIFICATE")
        done = place.cove("exec", idents[0], "--", "python3", "-c", SEARCH, ",".join(key + shown), timeout=200)
        equal(done.code, 0, done)
        control_fires(any(shown[0] in row and "/etc/cove-ca/" in row for row in done.text.splitlines()), f"the certificate is found: {done!r}")
        equal([row for row in done.text.splitlines() if row.split()[1] in key], [], "where the key is inside")
        place.cove("exec", idents[0], "--", "sh", "-c", "cat >/tmp/planted", input=authorities[0].encode())
        done = place.cove("exec", idents[0], "--", "python3", "-c", SEARCH, ",".join(key), timeout=200)
        control_fires({f"/tmp/planted {digest}" for digest in key} <= set(done.text.splitlines()), f"a key that is there is found: {done!r}")
        certificates = ["-----BEGIN CERTIFICATE" + one.split("-----BEGIN CERTIFICATE")[1] for one in authorities]
        control_fires(is_believed(place, bundles[0], certificates[0]), "its own sandbox believes it")
        equal(is_believed(place, bundles[1], certificates[0]), False, "whether the other one does")
        equal(is_believed(place, pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_text(), certificates[0]), False, "whether the host does")
    finally:
        for ident in idents:
            place.cove("rm", "-f", ident)
    equal(trust_of_host(), before, "what the host believes")


@test(id="GW-10")
def an_answer_that_can_be_read_in_two_ways_ends_at_the_gateway(place):
    script = '''
import socket
for path in ["/bad/%d" % i for i in range(12)] + ["/cut/%d" % i for i in range(6)] + ["/more", "/flood"]:
    with socket.create_connection(("web.example.org", 80), 3) as s:
        heard = bytearray()  # some of it is long
        try:
            s.sendall(b"GET %s HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\nGET /next HTTP/1.1\\r\\nHost: web.example.org\\r\\nConnection: close\\r\\n\\r\\n" % path.encode())
            while more := s.recv(9999):
                heard += more
        except OSError:
            heard += b" reset"
        print(path, heard[9:12].decode(), b"behind" in heard, heard.count(b"hello from web"), b"reset" in heard)
'''
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box("python3", "-c", script, options=("--allow", "web.example.org"))
        lines = done.text.splitlines()
        equal(lines[:12], [f"/bad/{i} 502 False 1 False" for i in range(12)], done)
        equal(lines[12:18], [f"/cut/{i} 200 False 0 True" for i in range(6)], done)
        equal(lines[18:], ["/more 200 False 1 False", "/flood 103 False 1 False"], done)
        control = land.run("python3", "-c", script.replace('"web.example.org", 80', '"11.1.1.1", 80'))
        control_fires(" True " in control.text.splitlines()[0], f"the server says more than one answer: {control!r}")


INSIDE = '''
import socket, ssl
from concurrent.futures import ThreadPoolExecutor
blind = ssl._create_unverified_context()
def dial():
    s = socket.create_connection(("web.example.org", 443), 3)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or a request waits 40 ms behind the end of its handshake
    return s
def say(name, say):
    try:
        with dial() as raw, blind.wrap_socket(raw, server_hostname=name) as s:
            s.sendall(say)
            heard = b""
            while more := s.recv(9999):
                heard += more
    except (OSError, ValueError):
        pass
h, more = b"Host: %s\\r\\nConnection: close\\r\\n\\r\\n", b"Host: %s\\r\\n\\r\\n"
for name in (None, "other.example.org", "web.example.org", "WEB.example.org", "web.example.org.", "x.web.example.org", "free.example.org"):
    for host in (b"web.example.org", b"other.example.org", b"free.example.org", b"web.example.org:80"):
        say(name, b"POST /post HTTP/1.1\\r\\nContent-Length: 0\\r\\n" + h % host)
        say(name, b"GET /get HTTP/1.1\\r\\n" + more % host + b"POST /behind HTTP/1.1\\r\\nContent-Length: 0\\r\\n" + h % host)
        say(name, b"CONNECT web.example.org:443 HTTP/1.1\\r\\n" + more % b"web.example.org" + b"POST /tunnel HTTP/1.1\\r\\n" + h % host)
        say(name, b"GET http://web.example.org/abs HTTP/1.1\\r\\n" + h % host)
# By a tunnel: what is inside is looked at all the same.
with socket.create_connection(("127.0.0.1", 1019), 3) as raw:
    raw.sendall(b"CONNECT web.example.org:443 HTTP/1.1\\r\\n" + h % b"web.example.org:443")
    raw.recv(999)
    with blind.wrap_socket(raw, server_hostname="web.example.org") as s:
        s.sendall(b"POST /tunnelled HTTP/1.1\\r\\nContent-Length: 0\\r\\n" + h % b"web.example.org")
        print(s.recv(99)[:12])
def say_other(say):  # which may be answered by nothing
    try:
        with dial() as raw, blind.wrap_socket(raw, server_hostname="web.example.org") as s:
            s.sendall(say)
            s.recv(99)
    except OSError:
        pass
with ThreadPoolExecutor() as pool:
    list(pool.map(say_other, (b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n", b"SSH-2.0-x\\r\\n", b"\\0" * 100)))
print("tried")
'''


@test(id="GW-13")
def tls_of_a_host_with_methods_cannot_be_passed_through(place):
    rules = policy(place, "{ host: web.example.org, methods: GET }", "free.example.org")
    with Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.1"], "free.example.org": ["11.1.1.2"]}) as land:
        land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
        done = land.box("python3", "-c", INSIDE, options=rules)
        equal(done.text, "b'HTTP/1.1 403'\ntried\n", done)
        seen = [visit[2:5] for visit in done.visits if visit[0] == "request"]
        equal({tuple(row) for row in seen}, {("GET", "web.example.org", "/get"), ("GET", "web.example.org", "/abs")}, "requests that arrived")
        control = land.box("python3", "-c", INSIDE, options=rules, without="inspection")
        control_fires("/post" in paths(control), control)


@test(id="GW-16")
def no_byte_more_is_uploaded_than_the_budget_has(place):
    upload = "head -c 5000000 /dev/zero >f; for i in 1 2 3 4; do curl -s -T f http://web.example.org/up; curl -sk -T f https://web.example.org/up; done"
    options = ("--allow", "web.example.org", "--network-bytes", "1M")
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        land.serve("tls", "11.1.1.1", 443, "web.example.org")
        done = land.sh(upload, options=options, timeout=120)
        arrived = sum(visit[5] for visit in done.visits if visit[0] == "request")
        assert arrived < 1 << 20, done
        done = land.sh(upload, options=options, without="budget", timeout=120)
        control_fires(sum(visit[5] for visit in done.visits if visit[0] == "request") > 5000000, "budget")


@test(id="GW-17")
def a_server_is_believed_only_with_a_certificate_for_the_name_that_was_dialled(place):
    zone = {"web.example.org": ["11.1.1.1"], "wrong.example.org": ["11.1.1.1"], "self.example.org": ["11.1.1.2"], "plain.example.org": ["11.1.1.3"]}
    script = "for n in web wrong self plain; do curl -sSk -o /dev/null -w '%{http_code}\\n' https://$n.example.org/$n; done; cat /run/cove/refused"
    rules = policy(place, "{ host: '*.example.org', methods: GET }")
    with Land(place, zone) as land:
        land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
        land.serve("tls", "11.1.1.2", 443, "self.example.org")
        land.serve("http", "11.1.1.3", 443)
        done = land.sh(script, options=rules)
        equal(done.text.split()[:4], ["200", "502", "502", "502"], done)
        equal(paths(done), ["/web"], done)
        control_fires(paths(land.run("curl", "-sSk", "--connect-to", "::11.1.1.2:443", "https://self.example.org/self")) == ["/self"], "the server is there, for who does not verify")


MANY = """
import socket
def ask(name):
    with socket.create_connection((name, 80), 20) as s:
        s.sendall(b"GET /x HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % name.encode())
        return s.recv(12).decode()[9:]
print({ask(f"r{i}.example.net") for i in range(1100)}, ask("web.example.org"))
"""


@test(id="GW-19")
def whoever_is_refused_a_thousand_hosts_does_not_close_those_that_are_allowed(place):
    """What is refused takes no room from what is allowed in the record of a sandbox that stays, and is answered all the same."""
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        ident = land.cove("create", "--allow", "web.example.org").text.strip()
        try:
            done = land.cove("exec", ident, "--", "python3", "-c", MANY, timeout=120)
            equal(done.text, "{'403'} 200\n", done)
            trace = (place.state / "sandboxes" / ident / "trace.jsonl").read_text()
            equal(("r1099.example.net" in trace, '"allow"' in trace and "web.example.org" in trace), (True, True), "what stands in the trace")
        finally:
            land.cove("rm", "-f", ident)


AGAIN = """
import socket
for method, path in (("GET", "/away"), ("HEAD", "/away"), ("OPTIONS", "/away"), ("DELETE", "/away"), ("POST", "/away"), ("GET", "/hinted")):
    with socket.create_connection(("web.example.org", 80), 3) as s:
        s.sendall(b"GET /first HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n")
        heard = b""
        while not heard.endswith(b"hello from web.example.org\\n"):
            heard += s.recv(9999)
        s.sendall(f"{method} {path} HTTP/1.1\\r\\nHost: web.example.org\\r\\nConnection: close\\r\\n\\r\\n".encode())
        heard = b""
        while more := s.recv(9999):
            heard += more
        print(method, path, [answer[:3].decode() for answer in heard.split(b"HTTP/1.1 ")[1:]][-1])
"""


@test(id="GW-03")
def only_what_may_be_repeated_is_said_again_to_a_server_that_went_away(place):
    """A server that closes a kept connection may have done what it was asked: a request that changes something is told as lost."""
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box("python3", "-c", AGAIN, options=("--allow", "web.example.org"))
        equal(done.text.splitlines(), ["GET /away 200", "HEAD /away 200", "OPTIONS /away 200", "DELETE /away 502", "POST /away 502", "GET /hinted 502"], done)
        seen = [(visit[2], visit[4]) for visit in done.visits if visit[0] == "request"]
        equal([seen.count((method, "/away")) for method in ("GET", "HEAD", "OPTIONS", "DELETE", "POST")], [2, 2, 2, 1, 1], "how often each arrived")
        equal(seen.count(("GET", "/hinted")), 1, "how often one that was partly answered arrived")


OVERRIDES = ["X-HTTP-Method-Override: DELETE", "X-HTTP-Method: DELETE", "X-Method-Override: DELETE", "x-http-method-override:DELETE", "X_HTTP_Method_Override: DELETE",
             "X-Original-URL: /v2/2", "X-Rewrite-URL: /v2/2", "X-Original-Uri: /v2/2"]


@test(id="GW-12")
def a_field_that_names_another_method_or_path_is_refused_where_rules_name_them(place):
    rows = [f"GET /v1/{i} HTTP/1.1\r\nHost: web.example.org\r\n{field}\r\n\r\n" for i, field in enumerate(OVERRIDES)]
    with Land(place, {"web.example.org": ["11.1.1.1"]}) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.box(*say_all(place, rows), options=policy(place, "{ host: web.example.org, methods: GET, paths: /v1/** }"))
        equal((done.code, paths(done)), (0, []), done)
        denied = ["GET /0 HTTP/1.1\r\nHost: web.example.org\r\nX-HTTP-Method-Override: DELETE\r\n\r\n", "GET /ok HTTP/1.1\r\nHost: web.example.org\r\n\r\ndelete /1 HTTP/1.1\r\nHost: web.example.org\r\n\r\n"]
        done = land.box(*say_all(place, denied), options=policy(place, "web.example.org", "{ host: web.example.org, methods: DELETE, action: deny }"))
        equal(paths(done), ["/ok"], "a method that is denied, in lower case or by a field")
        control_fires(len(paths(land.box(*say_all(place, rows), options=("--allow", "web.example.org")))) == len(rows), "without methods and paths they pass")
        control_fires(paths(land.box(*say_all(place, denied), options=("--allow", "web.example.org"))) == ["/0", "/ok", "/1"], "so does a method in lower case")


main()
