"""Whom programs inside believe: the host's roots and an authority of the sandbox's own, from the first command on."""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, wait_for, write  # noqa: E402
from support.staying import execute, good, staying  # noqa: E402

adopt_orphans()
OURS, BUNDLE, DEBIAN, JAVA = "/etc/cove-ca/ca.crt", "/etc/cove-ca/bundle.crt", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/java/cacerts"
VARIABLES = ("SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO CARGO_HTTP_CAINFO NODE_EXTRA_CA_CERTS npm_config_cafile AWS_CA_BUNDLE "
             "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH NIX_SSL_CERT_FILE DENO_CERT").split()
CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n")


def certificates(text):
    return CERTIFICATE.findall(text)


def stock(place):
    """Those for the next sandboxes, in the order in which they are taken; when whoever ended the last sandbox is done."""
    wait_for(lambda: not list((place.state / "sandboxes").glob("*")))
    return sorted((place.state / "trust").glob("*"), key=lambda one: int(one.name))


def openssl(*words, input=None):
    if not shutil.which("openssl"):
        skip("openssl is not installed")
    return subprocess.run(["openssl", *map(str, words)], input=input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def leaf(place, authority, name):
    """Key and certificate for `name`, signed by an authority: what a gateway would show."""
    pem, request, made = place.dir / "authority.pem", place.dir / "request", place.dir / "leaf"
    write(pem, authority)
    write(place.dir / "extensions", f"subjectAltName=DNS:{name}\nbasicConstraints=critical,CA:FALSE\n")
    equal(openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", place.dir / "key", "-subj", "/O=x", "-out", request).returncode, 0)
    done = openssl("x509", "-req", "-in", request, "-CA", pem, "-CAkey", pem, "-CAcreateserial", "-days", "2", "-extfile", place.dir / "extensions", "-out", made)
    equal(done.returncode, 0, done.stdout)
    return (place.dir / "key").read_text() + made.read_text()


@test
def every_sandbox_has_an_authority_of_its_own_beside_the_hosts_roots(place):
    seen = []
    for _ in range(3):  # made on the spot, then by whoever ended the one before
        # A refusal inside TLS is signed by it: no other sandbox may have it then.
        done = place.sh(f"cat {OURS}; echo; cat {BUNDLE}; cmp {BUNDLE} {DEBIAN}; curl -so /dev/null https://example.com; stat -c %a /etc /etc/ssl /etc/ssl/certs {OURS} {DEBIAN}", umask=0o077)
        equal((done.code, done.err), (0, b""), done)
        ours, *rest = certificates(done.text)
        equal(done.text.splitlines()[-5:], ["755", "755", "755", "644", "644"])
        equal(rest[0], ours)
        if os.path.exists(DEBIAN):
            equal(rest[1:], certificates(pathlib.Path(DEBIAN).read_text()))
        seen.append(ours)
        stock(place)
    equal(len(set(seen)), 3)
    done = openssl("x509", "-noout", "-subject", "-ext", "basicConstraints,keyUsage", input=seen[0])
    assert "Cove sandbox" in done.stdout and "CA:TRUE, pathlen:0" in done.stdout and "Certificate Sign" in done.stdout, done.stdout


@test
def what_was_left_for_the_next_sandbox_is_what_it_takes(place):
    for _ in range(2):  # the first makes keys, the second has the first of them and leaves a layer
        place.run("true")
        next, *_ = stock(place)
    equal(stat.S_IMODE(os.stat(next / "authority").st_mode), 0o600)
    equal(stat.S_IMODE(os.stat(next).st_mode), 0o700)
    left = (next / "t" / OURS[1:]).read_text()
    equal(place.run("cat", OURS).text, left)
    # No gateway has seen its key, so it is handed on; but only after that sandbox.
    next, *_ = stock(place)
    equal((next / "t" / OURS[1:]).read_text(), left)
    with staying(place) as ident:
        first = good(execute(place, ident, f"cat {OURS}")).text
        equal(first, left)
        assert place.run("cat", OURS).text != left
    # Without its last sign of being whole it is not trusted.
    next, *_ = stock(place)
    left = (next / "t" / OURS[1:]).read_text()
    (next / "trusted").unlink()
    (next / "t" / BUNDLE[1:]).write_text("")
    done = place.sh(f"cat {OURS}; cat {BUNDLE}")
    equal(certificates(done.text)[:2], [left, left])


@test
def variables_name_it_unless_they_are_set(place):
    names = " ".join(f'"${name}"' for name in VARIABLES)
    equal(place.sh(f"printf '%s\\n' {names}").text.split(), [OURS if name == "NODE_EXTRA_CA_CERTS" else BUNDLE for name in VARIABLES])
    done = place.sh("echo $SSL_CERT_FILE $PIP_CERT", options=["-e", "SSL_CERT_FILE=/mine"])
    equal(done.text.split(), ["/mine", BUNDLE])
    # What the host's shell has is the host's.
    equal(place.sh("echo $CURL_CA_BUNDLE", env={"CURL_CA_BUNDLE": "/host"}).text.split(), [BUNDLE])


@test
def java_has_it_too(place):
    if not shutil.which("keytool") or not os.path.exists(JAVA):
        skip("java is not installed")
    done = place.sh(f"keytool -list -rfc -keystore {JAVA} -storepass changeit 2>&1 </dev/null; cat {OURS}", timeout=120)
    inside = [re.sub(r"\s", "", one) for one in certificates(done.text)]
    equal(len(inside), len(certificates(pathlib.Path(DEBIAN).read_text())) + 2)
    equal(inside.count(inside[-1]), 2)


@test
def a_sandbox_that_stays_keeps_its_own_and_a_fork_has_another(place):
    with staying(place) as ident:
        first = good(execute(place, ident, f"cat {OURS}")).text
        equal(len(certificates(first)), 1)
        key = place.state / "sandboxes" / ident / "trust/authority"
        equal(stat.S_IMODE(key.stat().st_mode), 0o600)
        good(place.cove("stop", ident))
        equal(key.exists(), True)
        good(place.cove("start", ident))
        equal(good(execute(place, ident, f"cat {OURS}; cat {BUNDLE}")).text.startswith(first + first), True)
        # Other layers under it leave it there.
        good(execute(place, ident, "echo x >f; echo y >~/g"))
        good(place.cove("rollback", ident, "1"))
        equal(good(execute(place, ident, f"cat {OURS}; cat {DEBIAN}")).text.startswith(first + first), True)
        good(place.cove("stop", ident))
        forked = place.cove("fork", ident)
        equal(forked.code, 0, forked)
        other = forked.text.split()[0]
        try:
            place.cove("start", other)
            text = good(execute(place, other, f"cat {OURS}; cat {DEBIAN}")).text
            assert first not in text and len(certificates(text)) > 1, text
        finally:
            place.cove("rm", "-f", other)


SERVE = """
import http.server, ssl, sys
server = http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
JAVA_CLIENT = """
public class Get { public static void main(String[] a) throws Exception {
  System.out.println(((java.net.HttpURLConnection) new java.net.URL(a[0]).openConnection()).getResponseCode()); } }
"""
CLIENTS = {
    "curl": "curl -sS -o /dev/null {}", "wget": "wget -q -O /dev/null {}", "python3": "python3 -c 'import urllib.request; urllib.request.urlopen(\"{}\").read()'",
    "node": "node -e 'fetch(\"{}\").then(r => r.text(), e => {{ console.error(e.cause); process.exit(1) }})'",
    "git": "git ls-remote {}x 2>&1 | tee /dev/stderr | grep -q 'not found'", "java": "java /tmp/Get.java {}", "openssl": "openssl s_client -verify_return_error -connect localhost:{port} </dev/null",
}


def serve(place, ident, authority, port):
    """A server inside, whose certificate that authority signed."""
    good(execute(place, ident, f"cat >/tmp/{port}.pem", input=leaf(place, authority, "localhost").encode()))
    execute(place, ident, f"cd /tmp; python3 serve.py {port} {port}.pem >/dev/null 2>&1 &")
    good(execute(place, ident, f"for i in $(seq 200); do curl -skm1 -o /dev/null https://127.0.0.1:{port}/ && exit 0; sleep 0.1; done; exit 1"))


@test
def clients_believe_who_is_signed_by_it(place):
    clients = [name for name in CLIENTS if shutil.which(name, path="/usr/bin:/bin")]

    def get(ident, name, port, before=""):
        return execute(place, ident, before + CLIENTS[name].format(f"https://localhost:{port}/", port=port), timeout=120)

    with staying(place) as ident:
        good(execute(place, ident, "cat >/tmp/serve.py", input=SERVE.encode()))
        good(execute(place, ident, "cat >/tmp/Get.java", input=JAVA_CLIENT.encode()))
        serve(place, ident, (place.state / "sandboxes" / ident / "trust/authority").read_text(), 8443)
        for name in clients:
            done = get(ident, name, 8443)
            equal(done.code, 0, (name, done))
        # Whoever looks without variables finds it as well, but for programs that bring roots of their own.
        for name in sorted(set(clients) & {"wget", "git", "curl", "java", "python3", "openssl"}):
            equal(get(ident, name, 8443, "unset " + " ".join(VARIABLES) + "; ").code, 0, name)
        # And they do look: who is signed by another is believed by none.
        place.run("true")
        serve(place, ident, stranger(place), 8444)
        for name in clients:
            assert get(ident, name, 8444).code != 0, name


def stranger(place):
    """An authority of the stock, which is nobody's yet."""
    return (wait_for(lambda: list((place.state / "trust").glob("*")))[0] / "authority").read_text()


@test(identities=("root",))
def when_the_hosts_roots_change_the_next_sandbox_has_the_new_ones(place):
    if not os.path.exists(DEBIAN):
        skip("ca-certificates is not installed")
    place.run("true")
    stock(place)
    changed = place.dir / "changed.crt"
    changed.write_text("# changed\n" + pathlib.Path(DEBIAN).read_text())
    from support.harness import COVE
    words = f"mount --bind {changed} {DEBIAN} && exec {COVE} run --rm -- grep -c changed {BUNDLE} {DEBIAN}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", words], env=place.env, cwd=place.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal((done.returncode, done.stdout), (0, f"{BUNDLE}:1\n{DEBIAN}:1\n"), done)
    stock(place)
    equal(place.run("grep", "-c", "changed", BUNDLE).text, "0\n")


@test
def an_image_has_it_where_it_keeps_its_own(place):
    image = place.dir / "image"
    for folder in ("usr/bin", "etc/pki/tls/certs", "etc/ssl", "tmp", "proc", "dev", "sys", "run"):
        (image / folder).mkdir(parents=True)
    static = pathlib.Path(os.environ.get("COVE_BUSYBOX", "/bin/busybox"))
    if not static.exists():
        skip("busybox is not installed")
    shutil.copy(static, image / "usr/bin/busybox")
    (image / "bin").symlink_to("usr/bin")
    for name in ("sh", "cat", "ls", "readlink"):
        (image / "usr/bin" / name).symlink_to("busybox")
    write(image / "etc/pki/tls/certs/ca-bundle.crt", "old\n")
    write(image / "etc/pki/tls/certs/other.crt", "other\n")
    (image / "etc/ssl/certs").symlink_to("../pki/tls/certs")
    (image / "etc/ssl/cert.pem").symlink_to("/nowhere")
    done = place.run("sh", "-c", "cat /etc/pki/tls/certs/ca-bundle.crt; cat /etc/ssl/cert.pem; cat /etc/ssl/certs/other.crt; readlink /etc/ssl/certs; ls /etc/ssl/certs", options=["--image", str(image)])
    equal(done.code, 0, done)
    equal(done.text.splitlines()[-4:], ["other", "../pki/tls/certs", "ca-bundle.crt", "other.crt"], done)
    found = certificates(done.text)
    equal((len(found) % 2, found[0]), (0, found[len(found) // 2]))
    equal((image / "etc/pki/tls/certs/ca-bundle.crt").read_text(), "old\n")


main()
