"""A network of a test's own: name servers, servers at public addresses, and a count of every packet.

`Land` forks a child into new namespaces (of an ordinary user in a user namespace, too) and asks it to run things there.  Its
loopback answers at all of 11.0.0.0/8 and 2a00::/16, which are nobody's own address and count as public, so that the gateway
needs no exception to reach them.  Every name server and server writes down who asked for what.
"""
import contextlib
import ctypes
import hashlib
import http.server
import json
import os
import pathlib
import selectors
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import time
import traceback
import urllib.parse

from support.harness import COVE, PATIENCE, UNSAFE, skip

ROOTS = "/etc/ssl/certs/ca-certificates.crt"


class Land:
    """`zone`: names to lists of addresses, or to lists of such lists, one after the other, or to lists of answers that a hostile
    name server makes up (see forge), of which it says one behind the other to each question."""

    def __init__(self, place, zone=None, hosts=""):
        if not shutil.which("ip"):
            skip("ip is not installed")
        (place.dir / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        (place.dir / "hosts").write_text("127.0.0.1 localhost\n" + hosts)
        roots = pathlib.Path(ROOTS)
        (place.dir / "roots.pem").write_bytes(roots.read_bytes() if roots.exists() else b"")
        self.place = place
        self.pid, self.asks, self.answers = begin(place.dir)
        self.ask(zone=zone or {})

    def ask(self, **request):
        print(json.dumps(request), file=self.asks, flush=True)
        line = self.answers.readline()
        assert line, "the land is gone"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer

    def serve(self, kind, address, port, name="", believed=False):
        """http, tls (a certificate for `name`, which the host believes or not), echo (says hello first), udp; reset, mute and deaf
        hear something, and then break off, end or do nothing; ports: a list of them, at which it only counts who comes."""
        self.ask(serve=kind, address=address, port=port, name=name, believed=believed)

    def run(self, *words, env=None, timeout=60):
        """Runs a program there: exit code, output, errors, and what the land has seen: names asked for, connections, packets."""
        return Seen(self.ask(run=list(map(str, words)), env=dict(self.place.env, **(env or {})), cwd=str(self.place.work), timeout=timeout * PATIENCE))

    def start(self, *words, env=None):
        return self.ask(start=list(map(str, words)), env=dict(self.place.env, **(env or {})), cwd=str(self.place.work))["pid"]

    def seen(self):
        """All visits since the last run() began."""
        return self.ask(seen=True)["visits"]

    def cove(self, *words, without=None, env=None, **kwargs):
        env = {**(env or {}), **({"COVE_UNSAFE_WITHOUT": without} if without else {})}
        return self.run(UNSAFE if without else COVE, *words, env=env, **kwargs)

    def box(self, *words, options=(), **kwargs):
        return self.cove("run", "--rm", *options, "--", *words, **kwargs)

    def sh(self, script, **kwargs):
        return self.box("sh", "-c", script, **kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.asks.close()
        with contextlib.suppress(ChildProcessError):  # a test that takes the dead has taken it
            os.waitpid(self.pid, 0)
        self.answers.close()


class Seen:
    def __init__(self, answer):
        self.code, self.text, self.errors = answer["code"], answer["out"], answer["err"]
        self.names, self.visits, self.packets = answer["names"], answer["visits"], answer["packets"]
        self.questions = answer["questions"]  # whole messages but for their ids, as hexadecimal text

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.text[-3000:]}\n--- stderr\n{self.errors[-3000:]}\n--- names {self.names}\n--- visits {self.visits}, packets {self.packets}"


def begin(place):
    """A child that is apart and does what it is asked: its number, and the files to ask it and to hear it by.  It is a fork, because
    an interpreter of its own took most of the time; of what is open here it keeps only its own ends, and what it prints is an error."""
    requests, asks = os.pipe()
    answers, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(2, 1)
            for fd in map(int, os.listdir("/proc/self/fd")):
                if fd > 2 and fd not in (requests, tells):
                    with contextlib.suppress(OSError):  # the directory's own
                        os.close(fd)
            go_apart()
            inside(place, os.fdopen(requests), os.fdopen(tells, "w"))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(requests)
    os.close(tells)
    return pid, os.fdopen(asks, "w"), os.fdopen(answers)


def can_be_root():
    """Not in a user namespace of one id."""
    return pathlib.Path("/proc/self/uid_map").read_text().split()[2] == "4294967295"


def policy(place, *rules):
    (place.dir / "rules.yaml").write_text("network:\n  rules:\n" + "".join(f"    - {rule}\n" for rule in rules))
    return "--policy", str(place.dir / "rules.yaml")


def paths(seen):
    """Those of the requests that arrived."""
    return [visit[4] for visit in seen.visits if visit[0] == "request"]


# --- inside ---------------------------------------------------------------------------------------

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)
ground = None  # the place of this land
names, questions, visits, zone = [], [], [], {}


def packets():
    """Everything that was sent in this network, by any protocol."""
    lines = [line.split(":") for line in open("/proc/net/dev") if ":" in line]
    return sum(int(counts.split()[9]) for _, counts in lines)


def read_name(message):
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin1"))
        at += 1 + message[at]
    return ".".join(labels), at + 5


def write_name(name):
    return b"".join(bytes([len(label)]) + label.encode("latin1") for label in name.split(".")) + b"\0"


def record(owner, data, ttl=0):
    """`data` is an address, or the name that `owner` is an alias of."""
    if ":" in data:
        kind, data = 28, socket.inet_pton(socket.AF_INET6, data)
    elif data[-1].isdigit():
        kind, data = 1, socket.inet_pton(socket.AF_INET, data)
    else:
        kind, data = 5, write_name(data)
    return write_name(owner) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def forge(message, end, said):
    """An answer as a hostile server makes it up.  `said`: records as [owner, data, ttl] in `answers`, `authorities`, `extra`; and what
    is not as it was asked: `id` (bits of it that differ), `flags`, `name`, `type`, `class`; `counts` and `raw` in place of records."""
    kind, family = struct.unpack("!HH", message[end - 4:end])
    sections = [[record(*one) for one in said.get(name, [])] for name in ("answers", "authorities", "extra")]
    body = bytes.fromhex(said["raw"]) if "raw" in said else b"".join(map(b"".join, sections))
    return (struct.pack("!HHHHHH", struct.unpack("!H", message[:2])[0] ^ said.get("id", 0), said.get("flags", 0x8180), 1, *said.get("counts", map(len, sections)))
            + (write_name(said["name"]) if "name" in said else message[12:end - 4]) + struct.pack("!HH", said.get("type", kind), said.get("class", family)) + body)


def answer_name(message):
    """Messages, each with the address that it comes from if that is not ours."""
    name, end = read_name(message)
    names.append(name)
    kind = struct.unpack("!H", message[end - 4:end - 2])[0]
    addresses = zone.get(name.lower(), [])
    if addresses and isinstance(addresses[0], dict):
        return [(forge(message, end, said), said.get("from")) for said in addresses]
    if addresses and isinstance(addresses[0], list):
        now = addresses[0]
        if kind == 28 and len(addresses) > 1:
            zone[name.lower()] = addresses[1:]
        addresses = now
    records = b""
    count = 0
    for address in addresses:
        family = 28 if ":" in address else 1
        if family == kind:
            data = socket.inet_pton(socket.AF_INET6 if family == 28 else socket.AF_INET, address)
            records += b"\xc0\x0c" + struct.pack("!HHIH", family, 1, 0, len(data)) + data
            count += 1
    code = 0 if name.lower() in zone else 3
    return [(message[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, count, 0, 0) + message[12:end] + records, None)]


def serve_names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    while True:
        message, peer = server.recvfrom(65536)
        questions.append(message[2:].hex())
        try:
            for answer, source in answer_name(message):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) if source else contextlib.nullcontext(server) as sender:
                    if source:
                        sender.bind(tuple(source))
                    sender.sendto(answer, peer)
        except (IndexError, struct.error):
            names.append("something that is no question")


def switch_protocol(handler):
    """Echoes what comes, in the way of a websocket as far as a gateway sees it."""
    if handler.headers.get("Upgrade") != "websocket":
        handler.send_error(426)
        return
    handler.wfile.write(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nfirst")
    while data := handler.request.recv(65536):
        handler.wfile.write(data)
    handler.close_connection = True


def send_events(handler):
    """A stream of events, each with the time it was sent at."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(20):
        event = b"data: %r\n\n" % time.time()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        time.sleep(0.05)
    handler.wfile.write(b"0\r\n\r\n")


def send_model(handler, seconds):
    """As a model answers: a piece of text every 20 ms, each as an event with the time it was sent at."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    began = time.monotonic()
    for number in range(int(seconds / 0.02)):
        event = b"event: content_block_delta\ndata: %s\n\n" % json.dumps({"delta": {"text": f" word{number}"}, "sent": time.time()}).encode()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        time.sleep(max(0, began + (number + 1) * 0.02 - time.monotonic()))
    handler.wfile.write(b"0\r\n\r\n")
    handler.close_connection = True


def send_on_and_on(handler):
    """Until nobody is there to take it."""
    handler.wfile.write(OK + b"Content-Length: %d\r\n\r\n" % (1 << 40))
    while True:
        handler.wfile.write(bytes(1 << 16))


def give_back(handler):
    """Each chunk as soon as it comes."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        size = handler.rfile.readline()
        chunk = handler.rfile.read(int(size, 16) + 2)
        handler.wfile.write(size + chunk)
        if not int(size, 16):
            break
    handler.close_connection = True


def say(answer):
    def raw(handler):
        handler.wfile.write(answer)
        handler.close_connection = b"200 stay" not in answer
    return raw


def many_fields(handler):
    """As many fields as are taken, no length, and a body without an end."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"".join(b"a%d: b\r\n" % i for i in range(128)) + b"\r\n")
    for _ in range(4000):
        handler.wfile.write(b"x" * 65536)
    time.sleep(1)
    handler.close_connection = True


def go_away(before):
    """Answers the first request of a connection; for a later one it only says this, and closes."""
    def answer_once(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nonce" if handler.times == 1 else before)
        handler.close_connection = handler.times > 1
    return answer_once


# Before the body is read.
UNREAD = {"/back": give_back, "/deaf": lambda handler: threading.Event().wait()}
OK = b"HTTP/1.1 200 OK\r\n"
SPECIAL = {
    "/away": go_away(b""), "/hinted": go_away(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
    "/fields": many_fields, "/ws": switch_protocol, "/events": send_events, "/endless": send_on_and_on,
    "/close": say(b"HTTP/1.0 200 OK\r\nServer: old\r\n\r\nuntil the end\n"),
    "/chunks": say(b"HTTP/1.1 200 stay\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;a=b\r\none\r\n4\r\n two\r\n0\r\nX: y\r\n\r\n"),
    "/hints": say(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 stay\r\nContent-Length: 5\r\n\r\nhints"),
    "/empty": say(b"HTTP/1.1 204 No Content 200 stay\r\n\r\n"),
    # What nobody may pass on: two lengths, odd codings, lines that end otherwise, another protocol, half an answer.
    "/bad/0": say(OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbehind"),
    "/bad/1": say(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nbehind"), "/bad/2": say(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\nbehind"),
    "/bad/3": say(OK + b"A: b\nContent-Length: 6\r\n\r\nbehind"), "/bad/4": say(OK + b" A: b\r\nContent-Length: 6\r\n\r\nbehind"),
    "/bad/5": say(b"HTTP/1.1 101 Now\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbehind"), "/bad/6": say(b"220 hello\r\n\r\nbehind"), "/bad/7": say(OK + b"A: b"),
    "/bad/8": say(OK + b"Content-Length : 6\r\n\r\nbehind"), "/bad/9": say(b""),
    "/flood": say(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100000 + OK + b"\r\nbehind"), "/bad/10": say(OK + b"A: " + b"b" * 10000000 + b"\r\n\r\nbehind"), "/bad/11": say(b"\r\n" + OK + b"\r\nbehind"),
    # And what is cut short or goes on behind its end: it is not used again.
    "/cut/0": say(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n"), "/cut/1": say(OK + b"Content-Length: 50\r\n\r\nshort"), "/cut/2": say(OK + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n"),
    "/cut/3": say(OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello"), "/cut/4": say(OK + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"e" * 100000 + b"\r\nhello\r\n0\r\n\r\n"), "/cut/5": say(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 100000 + b"\r\n"),
    "/more": say(b"HTTP/1.1 200 stay\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbehind"),
}


def page(place, host, path):
    """The file in which what a server of that name answers for that path is written; a test makes it."""
    return pathlib.Path(place) / "site" / host.split(":")[0] / urllib.parse.quote(path, safe="")


def site(host, path):
    try:
        return page(ground, host, path).read_bytes()
    except (OSError, ValueError):  # whatever else is asked for
        return None


class Web(socketserver.BaseRequestHandler):
    """Writes down every request that it can make out of what comes, as a server does that takes what it gets."""

    def handle(self):
        where = "%s:%d" % self.server.server_address[:2]
        visits.append(["connection", where])

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # an answer in two pieces would wait 40 ms for who heard the first
            times = 0
            def log_message(self, *_):
                pass
            def handle_any(self):
                self.times += 1
                if self.path in UNREAD:
                    visits.append(["request", where, self.command, self.headers.get("Host"), self.path, 0])
                    UNREAD[self.path](self)
                    return
                body = bytearray(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                if self.headers.get("Transfer-Encoding"):
                    while True:
                        size = int(self.rfile.readline(), 16)
                        body += self.rfile.read(size)
                        self.rfile.readline()
                        if not size:
                            break
                visits.append(["request", where, self.command, self.headers.get("Host"), self.path, len(body)])
                if (page := site(self.headers.get("Host", ""), self.path)) is not None:
                    kind = {b"<": "text/html", b"{": "application/json"}.get(page[:1], "application/octet-stream")
                    self.wfile.write(OK + b"Content-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind.encode(), len(page)) + page)
                    return
                if self.path in SPECIAL:
                    SPECIAL[self.path](self)
                    return
                if self.path.startswith("/to/"):  # /to/CODE/URL: look there
                    code, _, there = self.path[4:].partition("/")
                    self.wfile.write(f"HTTP/1.1 {code} There\r\nLocation: {there}\r\nRefresh: 0; url={there}\r\nContent-Length: 0\r\n\r\n".encode("latin1"))
                    return
                if self.path.startswith("/stream/"):
                    send_model(self, float(self.path[8:]))
                    return
                if self.path.startswith("/slow"):
                    self.send_response(200)
                    self.send_header("Content-Length", str(1 << 24))
                    self.end_headers()
                    for _ in range(1 << 12):
                        self.wfile.write(b"x" * 4096)
                        time.sleep(0.005)
                    return
                size = int(self.path[5:]) if self.path.startswith("/big/") else 0
                if self.path.startswith("/random/"):
                    answer = hashlib.shake_128(b"").digest(int(self.path[8:]))
                elif self.path == "/sum":
                    answer = hashlib.sha256(body).hexdigest().encode()
                else:
                    answer = b"z" * size if size else b"hello from %s\n" % self.headers.get("Host", "").encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer)
            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_OPTIONS = do_delete = handle_any
        try:
            Handler(self.request, self.client_address, self.server)
        except OSError:
            pass


class Hello(socketserver.BaseRequestHandler):
    def handle(self):
        visits.append(["connection", "%s:%d" % self.server.server_address[:2]])
        try:
            self.request.sendall(b"220 hello\r\n")
            while data := self.request.recv(65536):
                self.request.sendall(data)
        except OSError:
            pass


class Reset(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(1)
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.request.close()


class Mute(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(65536)


class Deaf(socketserver.BaseRequestHandler):
    def handle(self):
        threading.Event().wait()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 128

    def handle_error(self, *_):
        pass


class Server6(Server):
    address_family = socket.AF_INET6

    def server_bind(self):
        IPV6_FREEBIND = 78
        self.socket.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)  # the address is routed here, but nobody's own
        super().server_bind()


class TLS:
    tls = None

    def finish_request(self, request, client):
        try:
            super().finish_request(self.tls.wrap_socket(request, server_side=True), client)
        except OSError:
            pass


class TLSServer(TLS, Server):
    pass


def count_at(address, ports):
    """One thread for all of them."""
    ready = selectors.DefaultSelector()
    for port in ports:
        ready.register(socket.create_server((address, port)), selectors.EVENT_READ)

    def count():
        while True:
            for key, _ in ready.select():
                with key.fileobj.accept()[0] as visitor:
                    visits.append(["connection", "%s:%d" % visitor.getsockname()])
    threading.Thread(target=count, daemon=True).start()


def serve(place, request):
    address = (request["address"], request["port"])
    if request["serve"] == "ports":
        count_at(*address)
        return
    if request["serve"] == "udp":
        server = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(address)

        def hear():
            while True:
                server.recv(4096)
                visits.append(["datagram", "%s:%d" % address])
        threading.Thread(target=hear, daemon=True).start()
        return
    if request["serve"] == "tls":
        key, certificate = place / "key.pem", place / f"{request['name']}.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", f"/CN={request['name']}", "-addext", f"subjectAltName=DNS:{request['name']}"], check=True, capture_output=True)
        if request.get("believed"):
            with open(place / "roots.pem", "ab") as roots:
                roots.write(certificate.read_bytes())
        server = TLSServer(address, Web)
        server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.tls.load_cert_chain(certificate, key)
    else:
        kinds = {"http": Web, "echo": Hello, "reset": Reset, "mute": Mute, "deaf": Deaf}
        server = (Server6 if ":" in address[0] else Server)(address, kinds[request["serve"]])
    threading.Thread(target=server.serve_forever, daemon=True).start()


def rested():
    """How many there were when nobody sent any for a moment: connections of the run before may still be ending."""
    end = time.monotonic() + 2
    count, before = packets(), None
    while count != before and time.monotonic() < end:
        time.sleep(0.02)
        count, before = packets(), count
    return count


def run(request):
    before = rested()
    del names[:], questions[:], visits[:]
    done = subprocess.run(request["run"], env=request["env"], cwd=request["cwd"], timeout=request["timeout"], stdin=subprocess.DEVNULL, capture_output=True)
    return {"code": done.returncode, "out": done.stdout.decode(errors="replace"), "err": done.stderr.decode(errors="replace"), "names": list(names), "questions": list(questions),
            "visits": list(visits), "packets": packets() - before}


def done(result):
    """Of a call of libc's."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def go_apart():
    """Into a network and mounts of its own, as root of a user namespace for want of better."""
    uid, gid, above = os.geteuid(), os.getegid(), os.geteuid() == 0 and can_be_root()
    done(libc.unshare(CLONE_NEWNET | CLONE_NEWNS | (0 if above else CLONE_NEWUSER)))
    for name, text in () if above else (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        pathlib.Path(f"/proc/self/{name}").write_text(text)
    done(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


def bind(file, over):
    done(libc.mount(os.fsencode(file), os.fsencode(os.path.realpath(over)), None, MS_BIND, None))


def lay_network():
    lines = "link set lo up\nroute add local 11.0.0.0/8 dev lo src 127.0.0.1\nroute add local 2a00::/16 dev lo\n"
    subprocess.run(["ip", "-batch", "-"], input=lines.encode(), check=True)


def inside(place, requests, tells):
    global ground
    ground = place
    lay_network()
    bind(place / "resolv.conf", "/etc/resolv.conf")
    bind(place / "hosts", "/etc/hosts")
    if os.path.exists(ROOTS):
        bind(place / "roots.pem", ROOTS)
    threading.Thread(target=serve_names, daemon=True).start()
    started = []
    for line in requests:
        request, answer = json.loads(line), {}
        try:
            if "zone" in request:
                zone.clear()
                zone.update(request["zone"])
            elif "serve" in request:
                serve(place, request)
            elif "seen" in request:
                answer = {"visits": list(visits)}
            elif "start" in request:
                started.append(subprocess.Popen(request["start"], env=request["env"], cwd=request["cwd"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                answer = {"pid": started[-1].pid}
            else:
                answer = run(request)
        except Exception as error:  # told to who asked
            answer = {"error": repr(error)}
        print(json.dumps(answer), file=tells, flush=True)
    for process in started:
        process.kill()
        process.wait()

