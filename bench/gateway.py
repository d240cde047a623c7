#!/usr/bin/python3
"""The gateway between a client inside and a server on this machine's loopback, beside haproxy (TCP), nginx (which ends TLS
and begins it anew) and mitmproxy, all in front of the same server and with the same clients, in the same run.

    bench/gateway.py [--rounds 5] [--requests 3000] [--megabytes 256] [--connections 1000] [--only MEASURE ...] [--json]

    latency       one client, one request after the other on a connection that stays
    requests      32 at a time on connections that stay
    connections   32 at a time, each on a connection of its own
    throughput    one large file, by HTTP/1.1 and by HTTP/2
    memory        that the proxy takes for each of many open connections

`direct` is the client with the server and nobody between.  "passed" is TLS that the gateway does not look into, beside
haproxy; "looked into" is TLS that both ends of it are ours, beside nginx and mitmproxy.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

from staying import COVE, Disk

ORIGIN, HAPROXY, NGINX, MITMPROXY = 18441, 18442, 18443, 18444
PASSED, LOOKED = "passed.bench.example", "looked.bench.example"
SPEAK_H2 = ("nginx", "mitmproxy", "looked into")  # to the client
MEASURES = ("latency", "requests", "connections", "throughput", "memory")
BESIDE = {"passed": ("haproxy",), "looked into": ("nginx", "mitmproxy")}

NGINX_CONFIG = """
daemon off; worker_processes 1; pid {dir}/{name}.pid; error_log stderr crit;
events {{ worker_connections 8192; }}
http {{
    access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 10000000; keepalive_timeout 600s; client_body_temp_path {dir}/{name}.1;
    proxy_temp_path {dir}/{name}.2; fastcgi_temp_path {dir}/{name}.3; uwsgi_temp_path {dir}/{name}.4; scgi_temp_path {dir}/{name}.5;
    {body}
}}
"""
SERVER = "server {{ listen 127.0.0.1:{port} ssl http2 backlog=4096; ssl_certificate {dir}/leaf.pem; ssl_certificate_key {dir}/leaf.key; ssl_session_cache off; ssl_session_tickets off; {what} }}"
HAPROXY_CONFIG = """
global
    nbthread 1
    maxconn 4000
defaults
    mode tcp
    timeout connect 5s
    timeout client 600s
    timeout server 600s
listen one
    bind 127.0.0.1:{port} backlog 4096
    server origin 127.0.0.1:{origin}
"""


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificates(folder):
    """An authority, and a certificate for everybody here."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2, "-subj", "/CN=bench", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=origin", "-keyout", folder / "leaf.key", "-out", folder / "leaf.csr")
    (folder / "names").write_text(f"subjectAltName=DNS:{PASSED},DNS:{LOOKED},DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", folder / "leaf.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", 2, "-extfile", folder / "names", "-out", folder / "leaf.pem")


@contextlib.contextmanager
def running(port, *words):
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None:
                raise SystemExit(f"{words[0]} ended with {process.returncode}")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def nginx(stack, folder, name, port, what, before=""):
    config = folder / f"{name}.conf"
    config.write_text(NGINX_CONFIG.format(dir=folder, name=name, body=before + SERVER.format(port=port, dir=folder, what=what)))
    return stack.enter_context(running(port, "nginx", "-p", folder, "-e", folder / f"{name}.log", "-c", config))


class Way:
    """One way to the server: who is between, at which URL, and where its client runs."""

    def __init__(self, name, url, processes, before=()):
        self.name, self.url, self.processes, self.before = name, url, processes, list(before)

    def run(self, *words):
        done = subprocess.run([*self.before, *map(str, words)], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"{self.name}: {' '.join(map(str, words))}: {done.stdout[-500:]}")
        return done.stdout

    def requests(self, count, at_once):
        """On connections that stay: how many a second, and how long the middle and the 99th of a hundred took, in ms."""
        text = self.run("sh", "-c", f"f=$(mktemp) && h2load --h1 -c {at_once} -n {count} --log-file=$f {self.url}/small && echo times && cat $f; rm -f $f")
        summary, _, times = text.partition("times\n")
        if f"{count} succeeded, 0 failed" not in summary:
            raise SystemExit(f"{self.name}: {summary}")
        took = sorted(int(line.split()[2]) / 1000 for line in times.splitlines())
        return float(summary.partition("finished in ")[2].split()[1]), took[len(took) // 2], took[len(took) * 99 // 100]

    def connections(self, count, at_once):
        """How many a second, with a request in each."""
        text = self.run("ab", "-q", "-s", "60", "-c", at_once, "-n", count, self.url + "/small")
        if "Failed requests:        0" not in text or "Non-2xx" in text:
            raise SystemExit(f"{self.name}: {text[-1500:]}")
        return float(next(line for line in text.splitlines() if line.startswith("Requests per second")).split()[3])

    def speed(self, protocol):
        return float(self.run("curl", "-sk", protocol, "-o", "/dev/null", "-w", "%{speed_download}", self.url + "/large")) / 1e6

    def memory(self):
        return sum(int(line.split()[1]) for pid in self.processes() for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))


HOLD = """
import socket, ssl, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
context = ssl._create_unverified_context()
held = []
for _ in range(count):
    one = context.wrap_socket(socket.create_connection((host, port), 60), server_hostname=host if host != '127.0.0.1' else 'localhost')
    one.sendall(f'GET /small HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n'.encode())
    one.recv(4096)
    held.append(one)
print('held', flush=True)
sys.stdin.read()
"""


def memory_each(way, connections):
    """KiB for each of many connections that are open and idle."""
    host, port = way.url.removeprefix("https://").split(":")
    way.requests(10, 1)
    before = way.memory()
    prefix = list(way.before)
    if prefix:
        prefix.insert(prefix.index("exec") + 1, "-i")
    process = subprocess.Popen([*prefix, "python3", "-c", HOLD, host, port, str(connections)], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if process.stdout.readline() != b"held\n":
        raise SystemExit(f"{way.name}: connections could not be held")
    after = way.memory()
    process.stdin.close()
    process.wait()
    return (after - before) / connections


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gateway_of(disk, ident):
    """Its process, by the keeper that has the sandbox's directory."""
    for process in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if (process / "comm").read_text() == "cove-gateway\n":
                keeper = (process / "stat").read_text().rpartition(")")[2].split()[1]
                if os.fsencode(disk.env["COVE_HOME"]) in pathlib.Path(f"/proc/{keeper}/environ").read_bytes():
                    yield int(process.name)


@contextlib.contextmanager
def ways(disk, asked):
    folder = disk.dir / "bench"
    folder.mkdir(mode=0o755)
    for path in (disk.top, disk.dir):
        path.chmod(0o755)  # for nginx's workers, which are nobody
    certificates(folder)
    (folder / "small").write_bytes(b"x" * 1024)
    with open(folder / "large", "wb") as large:
        for _ in range(asked.megabytes):
            large.write(os.urandom(1 << 20))
    for path in folder.iterdir():
        path.chmod(0o644)
    with contextlib.ExitStack() as stack:
        nginx(stack, folder, "origin", ORIGIN, f"root {folder};")
        (folder / "haproxy.cfg").write_text(HAPROXY_CONFIG.format(port=HAPROXY, origin=ORIGIN))
        pids = {"haproxy": stack.enter_context(running(HAPROXY, "haproxy", "-db", "-q", "-f", folder / "haproxy.cfg"))}
        proxy = f"location / {{ proxy_pass https://origin; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_buffering on; proxy_ssl_verify on; proxy_ssl_trusted_certificate {folder}/ca.pem; proxy_ssl_name localhost; proxy_ssl_session_reuse on; }}"
        pids["nginx"] = nginx(stack, folder, "proxy", NGINX, proxy, f"upstream origin {{ server 127.0.0.1:{ORIGIN}; keepalive 64; keepalive_requests 10000000; }} ")
        if shutil.which("mitmdump"):
            pids["mitmproxy"] = stack.enter_context(running(MITMPROXY, "mitmdump", "-q", "--mode", f"reverse:https://localhost:{ORIGIN}", "--listen-host", "127.0.0.1", "-p", MITMPROXY,
                                                            "--set", f"ssl_verify_upstream_trusted_ca={folder}/ca.pem", "--set", f"confdir={folder}/mitm", "--set", "stream_large_bodies=1m"))
        (folder / "policy.yaml").write_text(f"""network:
  rules:
    - {{ host: {PASSED}, port: {ORIGIN}, address: 127.0.0.1 }}
    - {{ host: {LOOKED}, port: {ORIGIN}, address: 127.0.0.1, methods: [GET, HEAD], ca: ca.pem }}
""")
        ident = disk.cove("create", "--policy", str(folder / "policy.yaml"))
        inside = ["env", *(f"{key}={value}" for key, value in disk.env.items()), COVE, "exec", ident, "--"]
        found = {"direct": Way("direct", f"https://127.0.0.1:{ORIGIN}", lambda: [])}
        for name, port in (("haproxy", HAPROXY), ("nginx", NGINX), ("mitmproxy", MITMPROXY)):
            if name in pids:
                found[name] = Way(name, f"https://127.0.0.1:{port}", lambda pid=pids[name]: [pid, *children(pid)])
        found["passed"] = Way("passed", f"https://{PASSED}:{ORIGIN}", lambda: gateway_of(disk, ident), inside)
        found["looked into"] = Way("looked into", f"https://{LOOKED}:{ORIGIN}", lambda: gateway_of(disk, ident), inside)
        yield found


def measure(found, asked):
    """name of the way -> name of the measure -> middle of all rounds"""
    seen = {name: {} for name in found}

    def note(name, what, value):
        seen[name].setdefault(what, []).append(value)

    for turn in range(asked.rounds):
        order = list(found.items())
        for name, way in order[turn % len(order):] + order[:turn % len(order)]:
            if "latency" in asked.only:
                _, middle, late = way.requests(asked.requests, 1)
                note(name, "latency p50, ms", middle), note(name, "latency p99, ms", late)
            if "requests" in asked.only:
                note(name, "requests/s", way.requests(asked.requests * 3, 32)[0])
            if "connections" in asked.only and name != "mitmproxy":  # it ends TLS without a word, which ab takes for a failure
                note(name, "connections/s", way.connections(asked.requests // 3, 32))
            if "throughput" in asked.only:
                note(name, "MB/s", way.speed("--http1.1"))
                if name in SPEAK_H2:
                    note(name, "MB/s, HTTP/2", way.speed("--http2"))
    for name, way in found.items():
        if "memory" in asked.only and name != "direct":
            note(name, "KiB/connection", memory_each(way, asked.connections))
    return {name: {what: statistics.median(values) for what, values in rows.items()} for name, rows in seen.items()}


TARGETS = [("passed", "haproxy", "MB/s", "at least 1.0 x"), ("looked into", "nginx", "MB/s", "at least 1.0 x"), ("looked into", "nginx", "MB/s, HTTP/2", "at least 1.0 x")]


def show(seen):
    columns = ["latency p50, ms", "latency p99, ms", "requests/s", "connections/s", "MB/s", "MB/s, HTTP/2", "KiB/connection"]
    print(f"{'':14}" + "".join(f"{column:>18}" for column in columns))
    for name, rows in seen.items():
        print(f"{name:14}" + "".join(f"{rows[column]:18,.3f}" if column in rows else f"{'':18}" for column in columns))
    for ours, peers in BESIDE.items():
        for peer in peers:
            if seen.get(peer):
                print(f"{ours} beside {peer}: " + ", ".join(f"{column.removesuffix(', ms')} {seen[ours][column] / seen[peer][column]:.2f} x" for column in columns if column in seen[peer]))
        if "latency p50, ms" not in seen["direct"]:
            continue
        added = [seen[ours][f"latency {which}, ms"] - seen["direct"][f"latency {which}, ms"] for which in ("p50", "p99")]
        print(f"{ours}: adds {added[0]:.3f} ms in the middle, {added[1]:.3f} ms at the 99th of a hundred  [target: 0.3 and 1]")
    for ours, peer, what, target in TARGETS:
        if what in seen[ours]:
            print(f"{ours}, {what}: {seen[ours][what] / seen[peer][what]:.2f} x {peer}  [target: {target}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=MEASURES)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    for program in ("ab", "curl", "h2load", "haproxy", "nginx", "openssl"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed: tools/setup bench")
    disk = Disk()
    try:
        with ways(disk, asked) as found:
            seen = measure(found, asked)
    finally:
        disk.close()
    print(json.dumps(seen, indent=2)) if asked.json else show(seen)


main()
