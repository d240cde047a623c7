"""The package cache: files of registries come from outside once, and to whoever may have them."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.land import page, policy  # noqa: E402
from support.registries import CRATES, NPM, PIP, add_crate, add_npm, add_pip, fetched, integrity, kept, kept_name, land, put  # noqa: E402
from support.running import write  # noqa: E402

REGISTRIES = ("--registry", "npm", "--registry", "pip", "--registry", "cargo")


def get(*urls, more=""):
    """A client that prints what it got as hashes."""
    return " && ".join(f"curl -sS -f {more} https://{url} | sha256sum | cut -c1-16" for url in urls)


def network(place):
    return json.loads((place.dir / "report.json").read_text())["network"]


def reported(place):
    return ("--report", str(place.dir / "report.json"))


# By the tools themselves


@test
def a_second_npm_ci_in_a_new_sandbox_fetches_no_package_file_from_outside(place):
    if not shutil.which("npm", path=place.env["PATH"]):
        skip("npm is not installed")
    files = [add_npm(place, name, size=size) for name, size in (("left", 100), ("right", 300000), ("@some/scoped", 10))]
    lock = {f"node_modules/{path.split('/-/')[0][1:]}": {"version": "1.0.0", "resolved": f"https://{NPM}{path}", "integrity": integrity(content)} for path, content in files}
    wanted = {name.split("/", 1)[1]: "1.0.0" for name in lock}
    (place.work / "package.json").write_text(json.dumps({"name": "x", "version": "1.0.0", "dependencies": wanted}))
    (place.work / "package-lock.json").write_text(json.dumps(
        {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "x", "version": "1.0.0", "dependencies": wanted}, **lock}}))
    script = f"npm ci --registry https://{NPM}/ --cache /tmp/npm --no-audit --no-fund --loglevel error && find node_modules -name index.js | wc -l"
    with land(place) as here:
        first = here.sh(script, options=(*REGISTRIES, *reported(place)), timeout=120)
        equal((first.code, first.text.split()[-1:]), (0, ["3"]), first)
        equal(sorted(fetched(first)), sorted(path for path, _ in files), first)
        equal(network(place)["cached"], 0)
        equal(kept(place), {kept_name(content): True for _, content in files}, "what is kept")
        second = here.sh(script, options=(*REGISTRIES, *reported(place), "--summary"), timeout=120)
        equal((second.code, second.text.split()[-1:]), (0, ["3"]), second)
        equal(fetched(second), [], second)
        equal(network(place)["cached"], 3)
        assert "package files that came from the cache: 3" in second.errors, second
        cold = here.sh(script, options=(*REGISTRIES, "--no-package-cache"), timeout=120)
        equal((cold.code, len(fetched(cold))), (0, 3), cold)


@test
def a_second_pip_install_fetches_no_package_file_from_outside(place):
    pip = next((words for words in (["python3", "-m", "pip"],) if subprocess.run([*words, "--version"], env=place.env, capture_output=True).returncode == 0), None)
    if not pip:
        skip("pip is not installed")
    path, content = add_pip(place, "coveless")
    script = f"python3 -m pip --isolated --disable-pip-version-check download --no-cache-dir -q -d d -i https://{PIP}/simple coveless && ls d"
    with land(place) as here:
        for again in (False, True):
            done = here.sh(script, options=REGISTRIES, timeout=120)
            equal((done.code, done.text), (0, "coveless-1.0-py3-none-any.whl\n"), done)
            equal(fetched(done), [] if again else [path], done)
        equal(kept(place), {kept_name(content, "sha256"): True})


@test(identities=("root", "user"))  # where root has no number, npm's own files are nobody's, and not read for what its registry is
def packages_of_the_registries_that_tools_here_are_configured_with_come_from_outside_once(place):
    """By npm and the real registry, as far as it is reached from here."""
    if not shutil.which("npm", path=place.env["PATH"]):
        skip("npm is not installed")
    registry = subprocess.run(["npm", "config", "get", "registry"], env=place.env, capture_output=True, text=True, check=True).stdout.strip()
    host = urllib.parse.urlparse(registry).hostname
    try:
        urllib.request.urlopen(f"{registry}qs/6.11.0", timeout=20).read()
        address = socket.gethostbyname(host)
    except OSError as error:
        skip(f"THE REGISTRY OF NPM IS NOT REACHED FROM HERE, SO NOTHING IS SEEN OF REAL PACKAGES: {error}")
    (place.work / "package.json").write_text(json.dumps({"name": "x", "version": "1.0.0", "dependencies": {"qs": "6.11.0"}}))
    # In a user namespace without the host's root no file of the system is believed (decision 43): it is said by the owner.
    write(place.home / ".npmrc", f"registry={registry}\n", 0o600)
    # The name may lead to an address that is not public.
    rule = policy(place, f"{{ host: {host}, address: {address} }}")
    script = "npm install --cache /tmp/npm --no-audit --no-fund --loglevel error && node -e \"console.log(require('qs').parse('a=b').a)\" && ls node_modules | wc -l"
    for again in (False, True):
        done = place.sh(script, options=(*rule, "--registry", "npm", *reported(place)), timeout=180)
        equal((done.code, done.text.split()[-2:-1]), (0, ["b"]), done)
        files = len(kept(place))
        assert files > 1 and all(kept(place).values()), kept(place)
        equal(network(place)["cached"], files if again else 0, network(place))


# What is kept, and for whom


@test
def files_of_npm_pip_and_cargo_are_kept_by_their_hashes(place):
    files = [(NPM, *add_npm(place, "left"), "sha512"), (PIP, *add_pip(place, "coveless"), "sha256"), (CRATES, *add_crate(place, "serpent"), "sha256")]
    script = get(*(host + path for host, path, *_ in files))
    with land(place) as here:
        first, second = (here.sh(script, options=REGISTRIES) for _ in range(2))
        equal((first.code, second.code, second.text), (0, 0, first.text), second)
        equal((fetched(first), fetched(second)), ([path for _, path, *_ in files], []), second)
        equal(kept(place), {kept_name(content, kind): True for _, _, content, kind in files})
        for file in (place.state / "packages").iterdir():
            equal(file.stat().st_mode & 0o777, 0o400, file)
        equal((place.state / "packages").stat().st_mode & 0o777, 0o700, "the directory")
        by_http2 = here.sh(get(NPM + files[0][1], more="--http2") + f" && curl -sS -o /dev/null -w '%{{http_version}}' https://{NPM}{files[0][1]}", options=REGISTRIES)
        equal((by_http2.text[:17], by_http2.text[17:]), (first.text[:17], "2"), by_http2)
        equal(fetched(by_http2), [], by_http2)


@test
def large_files_come_whole_from_the_cache_also_to_who_reads_slowly(place):
    path, content = add_npm(place, "large", size=20000000)
    with land(place) as here:
        for script in (get(NPM + path), get(NPM + path, more="--limit-rate 20M"), get(NPM + path) + " & " + get(NPM + path) + " & wait"):
            done = here.sh(script, options=REGISTRIES, timeout=120)
            equal(set(done.text.split()), {kept_name(content, "sha256")[7:23]}, done)
        equal(fetched(done), [], done)


@test
def who_asks_for_a_part_or_in_their_own_name_is_answered_by_the_server(place):
    path, content = add_npm(place, "left")
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
        for more in ("-r 0-9", "-H 'If-None-Match: \"x\"'", "-H 'Authorization: Bearer x'", "-H 'Cookie: a=b'", "-X POST", "-I", "-G -d x=1"):
            done = here.sh(get(NPM + path, more=more), options=REGISTRIES)
            equal(len([visit for visit in done.visits if visit[0] == "request"]), 1, f"{more}: {done!r}")
        equal(fetched(here.sh(get(NPM + path), options=REGISTRIES)), [], "the control")


@test
def nobody_gets_a_kept_file_whose_policy_does_not_allow_its_host(place):
    path, _ = add_npm(place, "left")
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
        for words, rule in (((), None), (("--registry", "pip"), None), (REGISTRIES, f"{{ host: {NPM}, action: deny }}"), (REGISTRIES, f"{{ host: {NPM}, action: deny, paths: ['/left/**'] }}")):
            options = (*words, *(policy(place, rule) if rule else ()))
            done = here.sh(f"curl -sS https://{NPM}{path}", options=(*options, *reported(place)))
            assert "Cove refused this request" in done.text, done
            equal((done.visits, network(place)["cached"]), ([], 0), done)
        equal(fetched(here.sh(get(NPM + path), options=REGISTRIES)), [], "the control")


@test
def what_comes_from_the_cache_counts_for_the_budget(place):
    path, content = add_npm(place, "right", size=300000)
    whole = kept_name(content, "sha256")[7:23] + "\n"
    with land(place) as here:
        for options, wanted in (((), True), (("--network-bytes", "100K"), False), (("--network-bytes", "400K"), True)):
            done = here.sh(get(NPM + path), options=(*REGISTRIES, *options))
            equal(done.text == whole, wanted, done)
        equal(fetched(done), [], done)
        done = here.sh(f"curl -sS https://{NPM}{path}", options=(*REGISTRIES, "--network-requests", "1"))
        equal(len(fetched(done)), 1, "who may not ask the registry asks for the file")


@test
def the_cache_is_bounded_and_what_was_not_used_the_longest_goes(place):
    files = [add_npm(place, f"p{i}", size=400000) for i in range(4)]
    names = [kept_name(content) for _, content in files]
    options = (*REGISTRIES, "--package-cache-size", "1M")
    with land(place) as here:
        for path, _ in files[:2]:
            equal(here.sh(get(NPM + path), options=options).code, 0)
        equal(sorted(kept(place)), sorted(names[:2]))
        equal(fetched(here.sh(get(NPM + files[0][0]), options=options)), [], "it is used")
        equal(here.sh(get(NPM + files[2][0]), options=options).code, 0)
        equal(sorted(kept(place)), sorted([names[0], names[2]]), "the second was not used the longest")
        total = sum(file.stat().st_blocks * 512 for file in (place.state / "packages").iterdir())
        assert total <= 1 << 20, total


@test
def prune_says_what_is_kept_and_removes_it_when_asked(place):
    path, content = add_npm(place, "right", size=300000)
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
    equal(list(kept(place)), [kept_name(content)])
    said = place.cove("prune", "--packages", "--dry-run")
    assert "would remove 1 package file" in said.text and kept(place), said
    said = place.cove("prune", "--packages")
    assert said.code == 0 and "removed 1 package file" in said.text, said
    equal(kept(place), {})
    equal(place.cove("prune", "--packages").code, 0)


# TLS


@test
def without_a_cache_connections_to_registries_pass_unread(place):
    add_npm(place, "left")
    with land(place) as here:
        script = f"curl -sSv https://{NPM}/left 2>&1 >/dev/null | grep issuer"
        assert "Cove" in here.sh(script, options=REGISTRIES).text
        shutil.copy(place.dir / f"{NPM}.pem", place.work / "ca.pem")
        done = here.sh(script.replace("-sSv", "-sSv --cacert ca.pem"), options=(*REGISTRIES, "--no-package-cache"))
        assert f"CN={NPM}" in done.text and "Cove" not in done.text, done


@test
def a_client_that_believes_nobody_but_its_server_is_passed_on_unread_the_second_time(place):
    path, _ = add_npm(place, "left")
    with land(place) as here:
        shutil.copy(place.dir / f"{NPM}.pem", place.work / "ca.pem")
        once = f"curl -sS --cacert ca.pem --capath /none https://{NPM}{path} -o a; echo $?"
        done = here.sh(f"{once}; {once}; cat /run/cove/refused", options=REGISTRIES)
        equal(done.text[:5], "60\n0\n", done)
        assert "does not take the certificate" in done.text and "pass unread" in done.text, done


# When something is in the way


@test
def a_registry_that_says_nothing_of_hashes_is_passed_on(place):
    path, content = add_npm(place, "left")
    about = [b"", b"{}", b"no json", b'{"name":"left","version":"1.0.0","dist":{"shasum":"%s"}}' % (b"0" * 40), b'{"name":"other","version":"1.0.0","dist":{"tarball":"https://npm.example.org/left/-/left-1.0.0.tgz","integrity":"%s"}}' % integrity(content).encode(),
             b'{"name":"left","version":"1.0.0","dist":{"tarball":"https://npm.example.org/left/-/other-1.0.0.tgz","integrity":"%s"}}' % integrity(content).encode(), b"[" * 100000, b"x" * (9 << 20)]
    with land(place) as here:
        for text in about:
            put(place, NPM, "/left/1.0.0", text)
            done = here.sh(get(NPM + path), options=REGISTRIES)
            equal((done.text[:16], fetched(done)), (kept_name(content, "sha256")[7:23], [path]), done)
        equal(kept(place), {})


@test
def a_registry_that_answers_no_question_is_not_asked_for_ever(place):
    for i in range(24):
        path, _ = add_npm(place, f"p{i}")
        page(place.dir, NPM, f"/p{i}/1.0.0").unlink()
    with land(place) as here:
        done = here.sh("curl -sS " + " ".join(f"-o /dev/null https://{NPM}/p{i}/-/p{i}-1.0.0.tgz" for i in range(24)), options=REGISTRIES)
        asked = [visit[4] for visit in done.visits if visit[0] == "request" and visit[4].endswith("/1.0.0")]
        equal((len(fetched(done)), len(asked)), (24, 16), done)


@test
def the_trace_of_a_sandbox_that_stays_says_what_came_from_the_cache(place):
    path, content = add_npm(place, "left")
    with land(place) as here:
        equal(here.sh(get(NPM + path), options=REGISTRIES).code, 0)
        equal(here.cove("create", "--name", "keeps", *REGISTRIES).code, 0)
        equal(here.cove("exec", "keeps", "--", "sh", "-c", get(NPM + path)).code, 0)
        here.cove("stop", "keeps")
    trace = next((place.state / "sandboxes").glob("*/trace.jsonl")).read_text()
    lines = [json.loads(line) for line in trace.splitlines()]
    cached = [line["data"] for line in lines if line.get("kind") == "request" and line["data"].get("type") == "cache"]
    equal([(line["host"], line["verdict"], line["package"]) for line in cached], [(NPM, "allow", kept_name(content))], trace)
    before = [line["data"]["type"] for line in lines if line.get("kind") == "request"]
    equal(before, ["rule", "rule", "cache"], "the file is judged, then its registry asked, then it is given")


@test
def a_cache_that_cannot_be_had_is_none(place):
    path, content = add_npm(place, "left")
    with land(place) as here:
        equal(place.run("true").code, 0)
        (place.state / "packages").write_text("a file")
        done = here.sh(get(NPM + path), options=REGISTRIES)
        equal((done.text[:16], fetched(done)), (kept_name(content, "sha256")[7:23], [path]), done)


main()
