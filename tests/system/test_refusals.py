"""What each client prints when it is refused, for each kind of refusal: the table in docs/network.md, cell by cell."""
import functools
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.land import Land, policy  # noqa: E402
from support.running import write  # noqa: E402

JAVA = """
public class Get { public static void main(String[] a) throws Exception {
  if (a[0].equals("udp")) { var s = new java.net.DatagramSocket(); s.connect(java.net.InetAddress.getByName("11.1.1.1"), 9); s.send(new java.net.DatagramPacket(new byte[1], 1)); return; }
  System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }
"""
GO = """
package main
import ("fmt"; "io"; "net"; "net/http"; "os")
func main() {
  if os.Args[1] == "udp" { c, e := net.Dial("udp", "11.1.1.1:9"); if e == nil { _, e = c.Write([]byte("x")) }; fmt.Println(e); return }
  r, e := http.Get(os.Args[1]); if e != nil { fmt.Println(e); return }
  b, _ := io.ReadAll(r.Body); fmt.Println(r.Status, string(b)) }
"""
JVM = "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp ."
UDP = "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"11.1.1.1\", 9))'"
NODE_UDP = "node -e 'require(\"dgram\").createSocket(\"udp4\").send(\"x\", 9, \"11.1.1.1\", (e) => { console.log(String(e)); process.exit(); })'"

# How a client is asked, what it needs, and where the reason can be read then: "command" in its own output with the command that allows it, "why" in its
# output without that, "file" in /run/cove/refused only.
CLIENTS = {
    "curl": ("curl -sS {}", "curl", "command"),
    "wget": ("wget -O - {}", "wget", "command"),
    "git": ("git ls-remote {}x.git", "git", "command"),
    "python": ("python3 -c 'import urllib.request; urllib.request.urlopen(\"{}\")'", "python3", "command"),
    "requests": ("python3 -c 'from pip._vendor import requests; requests.get(\"{}\").raise_for_status()'", "pip", "command"),
    "node": ("node -e 'fetch(\"{}\").then(r => console.log(r.status, r.statusText))'", "node", "command"),
    "npm": ("npm view x --registry {} --fetch-retries 0", "npm", "command"),
    "pip": ("PIP_TRUSTED_HOST='web.example.org 11.1.1.1' python3 -m pip download --disable-pip-version-check --retries 0 --index-url {}simple x", "pip", "file"),
    "java": (f"{JVM} Get {{}}", "javac", "file"),
    "go": ("./get {}", "go", "command"),
    "go modules": ("cd module && GOPROXY={} GOFLAGS=-mod=mod GONOSUMDB=* GOPATH=/tmp/go go mod download", "go", "command"),
    "cargo": ("cd crate && CARGO_NET_RETRY=0 RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true CARGO_HOME=/tmp/c CARGO_REGISTRIES_OWN_INDEX=sparse+{} cargo fetch", "cargo", "command"),
}

# A kind of refusal: the URL, the rules, more options, and words of the reason.  Those without a simple command have none.
KINDS = {
    "name": ("https://closed.example.org/", ["web.example.org"], (), "no rule allows closed.example.org at port 443", "cove allow closed.example.org"),
    "port": ("http://web.example.org:8080/", ["web.example.org"], (), "allows web.example.org, but not at port 8080", "cove allow web.example.org:8080"),
    "method": ("https://web.example.org/", ["{ host: web.example.org, methods: [HEAD] }"], (), "allows web.example.org at port 443, but not GET", None),
    "literal": ("http://11.1.1.1/", ["web.example.org"], (), "no rule allows 11.1.1.1 at port 80", "cove allow 11.1.1.1:80"),
    "budget": ("http://web.example.org/", ["web.example.org"], ("--network-requests", "1"), "the budget of 1 request", None),
}


def there(place, need):
    if need == "pip":
        return any(pathlib.Path("/usr/lib/python3/dist-packages").glob(need))
    return shutil.which(need, path=place.env["PATH"])


@functools.cache
def compiled(path):
    """What is made of the programs above: once, and outside, as it is what they say that is looked at."""
    with tempfile.TemporaryDirectory() as where:
        where = pathlib.Path(where)
        write(where / "Get.java", JAVA)
        write(where / "get.go", GO)
        for words in (["javac", "Get.java"], ["go", "build", "get.go"]):
            if shutil.which(words[0], path=path):
                subprocess.run(words, cwd=where, env={"PATH": path, "HOME": str(where), "GO111MODULE": "off", "GOCACHE": str(where / "cache")}, check=True)
        return {name: (where / name).read_bytes() for name in ("Get.class", "get") if (where / name).exists()}


def lay(place):
    for name, content in compiled(place.env["PATH"]).items():
        write(place.work / name, content, 0o755)
    write(place.work / "module/go.mod", "module x\n\ngo 1.17\n\nrequire web.example.org/y v1.0.0\n")
    write(place.work / "crate/Cargo.toml", '[package]\nname = "c"\nversion = "0.1.0"\n[dependencies]\nitoa = { version = "1", registry = "own" }\n')
    write(place.work / "crate/src/lib.rs", "")


def land_of(place):
    land = Land(place, {"web.example.org": ["11.1.1.1"], "closed.example.org": ["11.1.1.2"]})
    for port in (80, 8080):
        land.serve("http", "11.1.1.1", port)
    land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
    return land


def told(land, place, line, kind):
    """Where the reason could be read: "command", "why", "file", or nowhere."""
    url, rules, options, why, command = KINDS[kind]
    spend = "curl -sS http://web.example.org/ >/dev/null; " if kind == "budget" else ""
    done = land.sh(spend + "(" + line.format(url) + ") 2>&1; echo; echo ======; cat /run/cove/refused", options=(*policy(place, *rules), *options), timeout=120)
    said, _, file = done.text.partition("======")
    assert why in file, (kind, done)
    said = " ".join(said.split())  # some break lines
    return ("command" if not command or command in said else "why") if why in said else "file", done


def check(place, kind):
    lay(place)
    clients = {name: row for name, row in CLIENTS.items() if there(place, row[1])}
    if len(clients) < 6:
        skip("clients are missing; tools/setup check installs them")
    with land_of(place) as land:
        got = {name: told(land, place, row[0], kind) for name, row in clients.items()}
    wrong = {name: one for name, one in got.items() if one[0] != CLIENTS[name][2]}
    assert not wrong, "\n".join(f"{name}: {where}, not {CLIENTS[name][2]}: {done}" for name, (where, done) in wrong.items())


@test
def a_name_that_no_rule_allows(place):
    check(place, "name")


@test
def a_port_that_no_rule_has(place):
    check(place, "port")


@test
def a_method_that_no_rule_has(place):
    check(place, "method")


@test
def an_address_in_place_of_a_name(place):
    check(place, "literal")


@test
def a_budget_that_is_spent(place):
    check(place, "budget")


@test
def a_datagram(place):
    """The kernel says it at once, and nothing of it is recorded."""
    lay(place)
    lines = {"python3": UDP, "node": NODE_UDP, "javac": f"{JVM} Get udp", "go": "./get udp"}
    with land_of(place) as land:
        for name, line in lines.items():
            if not there(place, name):
                continue
            done = land.sh(line + " 2>&1; cat /run/cove/refused", options=("--allow", "web.example.org"), timeout=120)
            equal((done.packets, done.visits), (0, []), (name, done))
            assert "not permitted" in done.text or "EPERM" in done.text or "refused" in done.text.lower() or "unreachable" in done.text.lower(), (name, done)
            print(f"# {name}: {done.text.strip().splitlines()[0][:120]}")


if __name__ == "__main__":
    main()
