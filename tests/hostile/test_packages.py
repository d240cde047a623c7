"""GW: nobody inside, and no server, decides what another sandbox gets from the package cache."""
import json
import os
import pathlib
import signal
import sys
import time

from attack import COVE, UNSAFE, control_fires, equal, main, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.land import policy  # noqa: E402
from support.registries import CRATES, NPM, PIP, add_crate, add_npm, add_pip, fetched, integrity, kept, kept_name, land, put, tarball  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402

REGISTRIES = ("--registry", "npm", "--registry", "pip", "--registry", "cargo")


def get(url):
    return f"curl -sS https://{url} | sha256sum | cut -c1-16"


def short(content):
    return kept_name(content, "sha256")[7:23]


@test(id="GW-21")
def a_file_that_is_not_what_its_registry_says_is_passed_on_and_never_kept(place):
    path, evil = add_npm(place, "left", content=tarball("evil", "1.0.0"), said=tarball("left", "1.0.0"))
    with land(place) as here:
        done = here.sh(get(NPM + path), options=(*REGISTRIES, "--report", str(place.dir / "r.json")))
        equal((done.text[:16], kept(place)), (short(evil), {}), done)
        notes = [row["why"] for row in json.loads((place.dir / "r.json").read_text())["network"]["requests"] if row["reason"] == "cache"]
        assert any("not what its registry says" in why for why in notes), notes
        equal(fetched(here.sh(get(NPM + path), options=REGISTRIES)), [path], "who comes next asks its server")
        here.sh(get(NPM + path), options=REGISTRIES, without="package-hash")
        control_fires(False in kept(place).values(), kept(place))


@test(id="GW-21")
def a_registry_that_changes_its_mind_is_asked_again_by_every_sandbox(place):
    path, old = add_npm(place, "left")
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).text[:16], short(old))
        _, new = add_npm(place, "left", content=tarball("left", "1.0.0", size=50))
        done = here.sh(get(NPM + path), options=REGISTRIES)
        equal((done.text[:16], fetched(done)), (short(new), [path]), "what the registry says now counts")
        add_npm(place, "left", content=old)
        done = here.sh(get(NPM + path), options=REGISTRIES)
        control_fires((done.text[:16], fetched(done)) == (short(old), []), "both are kept, each by its hash")


@test(id="GW-21")
def nothing_that_is_sent_from_inside_comes_into_the_cache(place):
    """Bytes, hashes, hosts and paths of the attacker's choice; a registry of their own inside."""
    path, content = add_npm(place, "left")
    evil = tarball("evil", "1.0.0", size=1000)
    (place.work / "evil.tgz").write_bytes(evil)
    said = f"-H 'Content-Location: https://{NPM}{path}' -H 'Digest: sha-512=x' -H 'X-Forwarded-Host: {NPM}'"
    tries = [f"curl -sS -X {method} --data-binary @evil.tgz {said} https://{NPM}{path}" for method in ("PUT", "POST", "GET", "DELETE")]
    tries += [f"curl -sS https://{NPM}{part}" for part in (f"{path}?x=1", "/left/-/../-/left-1.0.0.tgz", "//left/-/left-1.0.0.tgz", "/left/-/left-1.0.0.tgz%3f", "/left%2f-/left-1.0.0.tgz", "/left/-/left-.tgz", "/-/left-1.0.0.tgz",
                                                          "/left/-/evil-1.0.0.tgz", "/left/-/left-../../evil.tgz")]
    tries += [f"curl -sS --path-as-is https://{NPM}/left/-/../../../packages", f"curl -sS -H 'Host: {CRATES}' https://{NPM}{path}", f"curl -sS http://{NPM}{path}",
              f"curl -sS --resolve {NPM}:443:127.0.0.1 https://{NPM}{path}"]
    server = """python3 -c "
import http.server, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(open('evil.tgz', 'rb').read())
s = http.server.HTTPServer(('127.0.0.1', 8080), H); threading.Thread(target=s.serve_forever, daemon=True).start()
print(len(urllib.request.urlopen('http://127.0.0.1:8080/left/-/left-1.0.0.tgz').read()))"
"""
    with land(place) as here:
        done = here.sh("\n".join(f"{line} -m 10 -o /dev/null" for line in tries) + f"\n{server}", options=REGISTRIES, timeout=120)
        assert str(len(evil)) in done.text, done
        assert set(kept(place)) <= {kept_name(content)} and all(kept(place).values()), kept(place)
        done = here.sh(get(NPM + path), options=REGISTRIES)
        equal(done.text[:16], short(content), done)
        control_fires(kept(place) == {kept_name(content): True}, kept(place))


@test(id="GW-21")
def the_cache_is_not_there_for_who_is_inside(place):
    path, content = add_npm(place, "left")
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
        script = f"ls {place.state} {place.state}/packages; find / -xdev -name '{kept_name(content)[:40]}*' 2>/dev/null; find / -xdev -type d -name packages -path '*state*' 2>/dev/null; echo end"
        done = here.sh(script, options=REGISTRIES)
        equal(done.text, "end\n", done)
        control_fires((place.state / "packages" / kept_name(content)).exists(), "it is there outside")


@test(id="GW-22")
def a_kept_file_is_given_to_no_policy_that_does_not_allow_its_host(place):
    path, content = add_npm(place, "left")
    wheel, _ = add_pip(place, "coveless")
    crate, _ = add_crate(place, "serpent")
    with land(place) as here:
        done = here.sh("; ".join((get(NPM + path), get(PIP + wheel), get(CRATES + crate))), options=REGISTRIES)
        equal(done.code, 0, done)
        equal(len(kept(place)), 3)
        for words, rule in ((("--registry", "pip"), None), ((), f"{{ host: {PIP}, methods: [GET] }}"), ((), f"{{ host: {NPM}, paths: [/other/**] }}"), (REGISTRIES, f"{{ host: {NPM}, action: deny }}")):
            rules = (*words, *(policy(place, rule) if rule else ()))
            done = here.sh(f"curl -sS https://{NPM}{path}; curl -sS -H 'Host: {NPM}' https://{PIP}{path}; curl -sS --connect-to {NPM}:443:{PIP}:443 https://{NPM}{path}", options=rules)
            assert content[:20].decode("latin1") not in done.text and "refused" in done.text.lower(), (rule, done)
            equal(fetched(done), [], (rule, done))
        # Allowed, but not as a registry: the file comes from its server.
        here.sh(get(NPM + path), options=policy(place, f"{{ host: {NPM}, methods: [GET] }}"))
        done = here.sh(get(NPM + path), options=policy(place, f"{{ host: {NPM}, methods: [GET] }}"))
        equal((done.text[:16], fetched(done)), (short(content), [path]), done)
        control_fires(fetched(here.sh(get(NPM + path), options=REGISTRIES)) == [], "who may have it gets it")


@test(id="GW-22")
def what_is_fetched_in_somebodys_name_is_not_kept_for_others(place):
    """Whatever the registry's name for it is."""
    path, content = add_npm(place, "left")
    with land(place) as here:
        for name in ("Authorization", "Cookie", "Private-Token", "JOB_TOKEN", "X-Api-Key", "X-JFrog-Art-Api", "Proxy-Authorization"):
            done = here.sh(f"curl -sS -H '{name}: mine' https://{NPM}{path} | sha256sum | cut -c1-16", options=REGISTRIES)
            equal((done.text[:16], kept(place)), (short(content), {}), (name, done))
        done = here.sh(f"curl -sS -H 'npm-session: x' -H 'npm-auth-type: web' https://{NPM}{path} | sha256sum", options=REGISTRIES)
        control_fires(kept(place) == {kept_name(content): True}, "what npm itself says is kept")
        done = here.sh(f"curl -sS -H 'Private-Token: other' https://{NPM}{path} | sha256sum | cut -c1-16", options=REGISTRIES)
        equal((done.text[:16], fetched(done)), (short(content), [path]), "nor is it served from what is kept")


@test(id="GW-22")
def what_a_repository_mocks_says_nothing_of_package_files(place):
    """Its cove.yaml answers in the registry's place, and names the hash of a file that only another policy leads to."""
    crate, content = add_crate(place, "serpent", content=b"somebody else's" * 100)
    wheel, index = "/packages/ab/evil-1.0-py3-none-any.whl", "/simple/evil/"
    with land(place) as here:
        equal(here.sh(get(CRATES + crate), options=("--registry", "cargo")).text[:16], short(content))
        equal(kept(place), {kept_name(content, "sha256"): True})
        (place.work / "cove.yaml").write_text(f"""
policy:
  network:
    registries: [pip]
    rules:
      - host: {PIP}
        action: mock
        paths: [{index}]
        mock: {{ body: '<a href="{wheel}#{kept_name(content, "sha256").replace("-", "=")}">' }}
""")
        steal = f"curl -sS https://{PIP}{index} https://{PIP}{wheel}"
        done = here.sh(steal, options=("--registry", "pip"))
        assert content[:15].decode() not in done.text and "href" in done.text, done
        equal(fetched(done), [wheel], "the server is asked")
        done = here.sh(steal, options=("--registry", "pip"), without="package-mock")
        control_fires(content.decode() in done.text, done)


@test(id="GW-23")
def who_is_killed_while_a_file_comes_leaves_nothing_of_it(place):
    slow = b"x" * (1 << 24)  # what the land says at any path that begins with /slow, a part at a time
    put(place, NPM, "/slow/1.0.0", json.dumps({"name": "slow", "version": "1.0.0", "dist": {"tarball": f"https://{NPM}/slow/-/slow-1.0.0.tgz", "integrity": integrity(slow)}}))
    path, content = add_npm(place, "left")
    with land(place) as here:
        for victim in ("keeper", "gateway"):
            pid = here.start(COVE, "run", "--rm", *REGISTRIES, "--", "sh", "-c", f"curl -sS -m 60 https://{NPM}/slow/-/slow-1.0.0.tgz -o f")
            wait_for(lambda: any("/slow/-/" in str(visit) for visit in here.seen()), what="the request")
            time.sleep(0.5)
            who = [pid] if victim == "keeper" else gateways(place)
            assert who, victim
            for one in who:
                os.kill(one, signal.SIGKILL)
            if victim == "gateway":
                os.kill(pid, signal.SIGTERM)
            time.sleep(0.5)
            equal(kept(place), {}, victim)
            done = here.sh(get(NPM + path), options=REGISTRIES)
            equal((done.text[:16], kept(place)), (short(content), {kept_name(content): True}), done)
            (place.state / "packages" / kept_name(content)).unlink()
        control_fires(kept(place) == {}, "removed by us")


@test(id="GW-23")
def a_full_disk_keeps_no_half_file_and_nobody_from_their_packages(place):
    path, content = add_npm(place, "large", size=4000000)
    small, other = add_npm(place, "left")
    folder = place.state / "packages"
    with land(place) as here:
        equal(here.sh(get(NPM + small), options=REGISTRIES).code, 0)
        (folder / kept_name(other)).unlink()
        equal(here.run("sh", "-c", f"mount -t tmpfs -o size=2m,mode=700 small {folder}").code, 0)
        look = f"ls {folder}; cd {folder}; for f in *; do sha512sum $f | cut -c1-128; done"
        done = here.sh(get(NPM + path), options=REGISTRIES)
        equal((done.text[:16], here.run("sh", "-c", f"ls {folder}").text), (short(content), ""), done)
        done = here.sh(get(NPM + small), options=REGISTRIES)
        equal(done.text[:16], short(other), done)
        name, digits = here.run("sh", "-c", look).text.split()
        control_fires(name == kept_name(other) == f"sha512-{digits}", "what fits is kept")


@test(id="GW-24")
def a_kept_file_that_was_damaged_is_given_to_nobody_and_goes(place):
    path, content = add_npm(place, "right", size=300000)
    file = place.state / "packages" / kept_name(content)
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
        for damage in (content[:-1] + b"x", content[:1000], content + b"x", b"", b"x" + content[1:]):
            control_fires(fetched(here.sh(get(NPM + path), options=REGISTRIES)) == [], "it was kept")
            os.chmod(file, 0o600)
            file.write_bytes(damage)
            done = here.sh(f"curl -sS -f https://{NPM}{path} -o f; echo $?; sha256sum f | cut -c1-16", options=REGISTRIES)
            code, got = (done.text.split() + [""])[:2]
            assert (code, got) == ("0", short(content)) or (code != "0" and got != short(damage)), done
            wait_for(lambda: not file.exists() or kept(place) == {file.name: True}, what="the end of the damaged file")
            done = here.sh(get(NPM + path), options=REGISTRIES)
            equal((done.text[:16], kept(place)), (short(content), {file.name: True}), done)


def asked(here):
    """Paths that the server was asked for."""
    return [visit[4] for visit in here.seen() if visit[0] == "request"]


def attack_until(here, place, script, over, without=None):
    """A sandbox that runs this until `over` says that it has seen enough; what that says."""
    here.run("true")  # what was asked for before does not count
    pid = here.start(UNSAFE if without else COVE, "run", "--rm", *REGISTRIES, "--", "sh", "-c", script, env={"COVE_UNSAFE_WITHOUT": without or ""})
    wait_for(lambda: over(asked(here)), seconds=60, what="all requests")
    paths, inodes = asked(here), here.run("stat", "-f", "-c", "%c %d", place.state / "packages").text.split()
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not gateways(place), what="the end of the gateway")
    return paths, int(inodes[0]) - int(inodes[1]) - 1


@test(id="GW-25")
def files_that_come_slowly_take_no_more_disk_than_so_many(place):
    """Each of them is a file without a name that can become 256 MB."""
    path, content = add_npm(place, "left")
    put(place, NPM, "/slow/1.0.0", json.dumps({"name": "slow", "version": "1.0.0", "dist": {"tarball": f"https://{NPM}/slow/-/slow-1.0.0.tgz", "integrity": integrity(b"x")}}))
    script = f"for i in $(seq 60); do curl -sS -m 60 https://{NPM}/slow/-/slow-1.0.0.tgz -o /dev/null & done; wait"
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
        equal(here.run("sh", "-c", f"mount -t tmpfs -o mode=700 counted {place.state}/packages").code, 0)
        equal(attack_until(here, place, script, lambda paths: paths.count("/slow/-/slow-1.0.0.tgz") == 60)[1], 32, "files that a gateway may write to")
        control_fires(attack_until(here, place, script, lambda paths: paths.count("/slow/-/slow-1.0.0.tgz") == 60, without="package-count")[1] == 60, "nobody counts")
        done = here.sh(get(NPM + path), options=REGISTRIES)
        equal((done.text[:16], here.run("ls", place.state / "packages").text), (short(content), kept_name(content) + "\n"), done)


@test(id="GW-25")
def files_that_are_read_slowly_are_no_more_than_so_many(place):
    """Whatever goes from the cache meanwhile stays on the disk for who has it open."""
    path, _ = add_npm(place, "large", size=8000000)
    (place.work / "slow.py").write_text(f"""
import socket, ssl, time, urllib.request
held = []
for _ in range(100):
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("{NPM}", 443))
    held.append(ssl.create_default_context().wrap_socket(plain, server_hostname="{NPM}"))
    held[-1].sendall(b"GET {path} HTTP/1.1\\r\\nHost: {NPM}\\r\\n\\r\\n")
    assert held[-1].recv(5) == b"HTTP/"
urllib.request.urlopen("https://{NPM}/done")
time.sleep(60)
""")
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
        paths, _ = attack_until(here, place, "python3 slow.py", lambda paths: "/done" in paths)
        equal(paths.count(path), 36, "the server is asked for all but 64")
        paths, _ = attack_until(here, place, "python3 slow.py", lambda paths: "/done" in paths, without="package-count")
        control_fires(path not in paths, "nobody counts")
        equal(fetched(here.sh(get(NPM + path), options=REGISTRIES)), [], "who comes next gets it from the cache")


main()
