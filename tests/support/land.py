"""A network of a test's own: name servers, servers at public addresses, and a count of every packet.

`Land` starts this file as a program in new namespaces (of an ordinary user in a user namespace, too) and asks it to run
things there.  Its loopback answers at all of 11.0.0.0/8 and 2a00::/16, which are nobody's own address and count as public, so
that the gateway needs no exception to reach them.  Every name server and server writes down who asked for what.
"""
import json
import os
import pathlib
import shutil
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


ROOTS = "/etc/ssl/certs/ca-certificates.crt"


class Land:
    """`zone`: names to lists of addresses, or to lists of such lists, one after the other."""

    def __init__(self, place, zone=None, hosts=""):
        if not shutil.which("ip") or not shutil.which("unshare"):
            from support.harness import skip
            skip("ip or unshare is not installed")
        prefix = ["unshare", "--net", "--mount"] if os.geteuid() == 0 and can_be_root() else ["unshare", "-r", "--net", "--mount"]
        (place.dir / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        (place.dir / "hosts").write_text("127.0.0.1 localhost\n" + hosts)
        roots = pathlib.Path(ROOTS)
        (place.dir / "roots.pem").write_bytes(roots.read_bytes() if roots.exists() else b"")
        self.place = place
        self.process = subprocess.Popen([*prefix, sys.executable, __file__, str(place.dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask(zone=zone or {})

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the land is gone"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer

    def serve(self, kind, address, port, name="", believed=False):
        """http, tls (a certificate for `name`, which the host believes or not), echo (says hello first), udp."""
        self.ask(serve=kind, address=address, port=port, name=name, believed=believed)

    def run(self, *words, env=None, timeout=60):
        """Runs a program there: exit code, output, errors, and what the land has seen: names asked for, connections, packets."""
        from support.harness import PATIENCE
        return Seen(self.ask(run=list(map(str, words)), env=dict(self.place.env, **(env or {})), cwd=str(self.place.work), timeout=timeout * PATIENCE))

    def start(self, *words, env=None):
        return self.ask(start=list(map(str, words)), env=dict(self.place.env, **(env or {})), cwd=str(self.place.work))["pid"]

    def seen(self):
        """All visits since the last run() began."""
        return self.ask(seen=True)["visits"]

    def cove(self, *words, without=None, **kwargs):
        from support.harness import COVE, UNSAFE
        env = {"COVE_UNSAFE_WITHOUT": without} if without else None
        return self.run(UNSAFE if without else COVE, *words, env=env, **kwargs)

    def box(self, *words, options=(), **kwargs):
        return self.cove("run", "--rm", *options, "--", *words, **kwargs)

    def sh(self, script, **kwargs):
        return self.box("sh", "-c", script, **kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


class Seen:
    def __init__(self, answer):
        self.code, self.text, self.errors = answer["code"], answer["out"], answer["err"]
        self.names, self.visits, self.packets = answer["names"], answer["visits"], answer["packets"]

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.text[-3000:]}\n--- stderr\n{self.errors[-3000:]}\n--- names {self.names}\n--- visits {self.visits}, packets {self.packets}"


def can_be_root():
    """Not in a user namespace of one id."""
    return pathlib.Path("/proc/self/uid_map").read_text().split()[2] == "4294967295"


# --- inside ---------------------------------------------------------------------------------------

names, visits, zone = [], [], {}


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


def answer_name(message):
    name, end = read_name(message)
    names.append(name.lower())
    kind = struct.unpack("!H", message[end - 4:end - 2])[0]
    addresses = zone.get(name.lower(), [])
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
    return message[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, count, 0, 0) + message[12:end] + records


def serve_names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    while True:
        message, peer = server.recvfrom(4096)
        try:
            server.sendto(answer_name(message), peer)
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
    import time
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(20):
        event = b"data: %r\n\n" % time.time()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        time.sleep(0.05)
    handler.wfile.write(b"0\r\n\r\n")


def say(answer):
    def raw(handler):
        handler.wfile.write(answer)
        handler.close_connection = b"200 stay" not in answer
    return raw


def go_away(before):
    """Answers the first request of a connection; for a later one it only says this, and closes."""
    def answer_once(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nonce" if handler.times == 1 else before)
        handler.close_connection = handler.times > 1
    return answer_once


OK = b"HTTP/1.1 200 OK\r\n"
SPECIAL = {
    "/away": go_away(b""), "/hinted": go_away(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
    "/ws": switch_protocol, "/events": send_events,
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


class Web(socketserver.BaseRequestHandler):
    """Writes down every request that it can make out of what comes, as a server does that takes what it gets."""

    def handle(self):
        import io
        from http.server import BaseHTTPRequestHandler
        where = "%s:%d" % self.server.server_address[:2]
        visits.append(["connection", where])

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            times = 0
            def log_message(self, *_):
                pass
            def handle_any(self):
                self.times += 1
                body = bytearray(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                if self.headers.get("Transfer-Encoding"):
                    while True:
                        size = int(self.rfile.readline(), 16)
                        body += self.rfile.read(size)
                        self.rfile.readline()
                        if not size:
                            break
                visits.append(["request", where, self.command, self.headers.get("Host"), self.path, len(body)])
                if self.path in SPECIAL:
                    SPECIAL[self.path](self)
                    return
                if self.path.startswith("/slow"):
                    import time
                    self.send_response(200)
                    self.send_header("Content-Length", str(1 << 24))
                    self.end_headers()
                    for _ in range(1 << 12):
                        self.wfile.write(b"x" * 4096)
                        time.sleep(0.005)
                    return
                size = int(self.path[5:]) if self.path.startswith("/big/") else 0
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


def serve(place, request):
    address = (request["address"], request["port"])
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
        server = (Server6 if ":" in address[0] else Server)(address, Hello if request["serve"] == "echo" else Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def run(request):
    del names[:], visits[:]
    before = packets()
    done = subprocess.run(request["run"], env=request["env"], cwd=request["cwd"], timeout=request["timeout"], stdin=subprocess.DEVNULL, capture_output=True)
    return {"code": done.returncode, "out": done.stdout.decode(errors="replace"), "err": done.stderr.decode(errors="replace"), "names": list(names), "visits": list(visits),
            "packets": packets() - before}


def inside(place):
    for words in (["ip", "link", "set", "lo", "up"], ["ip", "route", "add", "local", "11.0.0.0/8", "dev", "lo", "src", "127.0.0.1"], ["ip", "-6", "route", "add", "local", "2a00::/16", "dev", "lo"],
                  ["mount", "--make-rprivate", "/"], ["mount", "--bind", place / "resolv.conf", os.path.realpath("/etc/resolv.conf")], ["mount", "--bind", place / "hosts", "/etc/hosts"]):
        subprocess.run(words, check=True)
    if os.path.exists(ROOTS):
        subprocess.run(["mount", "--bind", place / "roots.pem", os.path.realpath(ROOTS)], check=True)
    threading.Thread(target=serve_names, daemon=True).start()
    started = []
    for line in sys.stdin:
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
        print(json.dumps(answer), flush=True)
    for process in started:
        process.kill()
        process.wait()


if __name__ == "__main__":
    inside(pathlib.Path(sys.argv[1]))
