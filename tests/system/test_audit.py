"""An audit: everything public passes, what the policy would have refused is told, and a policy is written that allows exactly that."""
import io
import json
import pathlib
import shutil
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.land import Land, paths, policy  # noqa: E402
from support.policies import administered, repository  # noqa: E402
from support.running import one_error, write  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"], "files.example.org": ["11.1.1.2"], "home.example.org": ["192.168.7.7"], "git.example.org": ["11.1.1.3"]}


def world(place):
    land = Land(place, ZONE)
    land.serve("http", "11.1.1.1", 80)
    land.serve("http", "11.1.1.1", 8080)
    land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
    land.serve("tls", "11.1.1.2", 443, "files.example.org", believed=True)
    land.serve("echo", "11.1.1.3", 2222)
    return land


def audited(place, name="audited.yaml"):
    return place.dir / name, ("--audit", "--audit-policy", str(place.dir / name))


# What it is for

FETCH = "curl -fsS https://files.example.org/random/5000 -o lib.bin && curl -fsS http://web.example.org:8080/random/300 -o more.bin"


def package(place):
    """One that fetches the rest of itself when it is installed."""
    out = io.BytesIO()
    content = json.dumps({"name": "fetcher", "version": "1.0.0", "scripts": {"install": FETCH}}).encode()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("package/package.json")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    (place.work / "fetcher.tgz").write_bytes(out.getvalue())
    write(place.work / "package.json", '{"name": "app", "version": "1.0.0", "private": true}')


@test
def after_an_npm_install_that_downloads_the_written_policy_lets_it_pass(place):
    if not shutil.which("npm"):
        skip("npm is not installed")
    package(place)
    install = "npm install --offline --no-audit --no-fund --foreground-scripts ./fetcher.tgz 2>&1 && wc -c node_modules/fetcher/*.bin"
    file, options = audited(place)
    with world(place) as land:
        done = land.sh(install, timeout=120)
        assert done.code != 0 and "403" in done.text, done
        equal(done.visits, [], "without audit and policy")
        done = land.sh(install, options=options, timeout=120)
        assert done.code == 0 and "5300 total" in done.text, done
        for words in ("let through by the audit", "no rule allows files.example.org at port 443", "cove allow files.example.org\n", "cove allow web.example.org:8080", str(file)):
            assert words in done.errors, (words, done)
        done = land.sh(install, options=("--policy", file), timeout=120)
        assert done.code == 0 and "5300 total" in done.text, (done, file.read_text())
        done = land.sh("curl -s http://web.example.org/other; curl -s https://web.example.org/", options=("--policy", file))
        assert "no rule" in done.text or "not at port" in done.text, done
        equal(done.visits, [], "beyond what was audited")


@test
def a_link_that_is_turned_inside_leads_the_policy_nowhere(place):
    first, second = place.dir / "first", place.dir / "second"
    for folder in (first, second):
        folder.mkdir()
    (place.work / "out").symlink_to(first)
    options = ("--workspace", "rw", "--audit", "--audit-policy", "out/policy.yaml")
    with world(place) as land:
        done = land.sh(f"curl -s http://web.example.org/; rm out; ln -s {second} out", options=options)
        equal((done.code, (place.work / "out").readlink()), (0, second), done)
    assert "web.example.org" in (first / "policy.yaml").read_text(), "where it was looked up"
    equal(list(second.iterdir()), [], "where the link leads now")


@test
def the_written_policy_names_exactly_what_was_asked_for(place):
    file, options = audited(place)
    with world(place) as land:
        done = land.sh("curl -s http://web.example.org/a; curl -s http://web.example.org/b; curl -sk https://files.example.org/; printf '' | timeout 2 curl -s telnet://git.example.org:2222; curl -s http://11.1.1.1:8080/",
                       options=options)
        assert paths(done) == ["/a", "/b", "/", "/"], done
    lines = [line.strip() for line in file.read_text().splitlines() if line.strip().startswith("- ")]
    equal(sorted(lines), sorted(['- { host: "web.example.org", port: 80 }', '- { host: "files.example.org", port: 443 }', '- { host: "git.example.org", port: 2222 }',
                                 '- { host: "11.1.1.1", port: 8080 }']))
    assert "http, 2 x: no rule allows web.example.org at port 80" in file.read_text()
    assert place.cove("policy", "check", str(file)).code == 0
    equal(file.stat().st_mode & 0o777, 0o600)


@test
def where_requests_are_judged_methods_and_paths_are_named(place):
    file, options = audited(place)
    rules = policy(place, "{ host: web.example.org, methods: [GET], paths: [/v1/**] }")
    script = "curl -s http://web.example.org/v1/x; curl -s -d x=1 'http://web.example.org/v1/users?token=hidden'; curl -s https://web.example.org/other; curl -s 'http://web.example.org/a/../b' --path-as-is"
    with world(place) as land:
        done = land.sh(script, options=(*rules, *options))
        equal(paths(done), ["/v1/x", "/v1/users?token=hidden", "/other", "/a/../b"], done)
        text = file.read_text()
        for line in ('- { host: "web.example.org", port: 80, methods: [POST], paths: ["/v1/users"] }', '- { host: "web.example.org", port: 443, methods: [GET], paths: ["/other"] }',
                     "# no rule says it: http, 1 x:"):
            assert line in text, text
        assert "hidden" not in text and text.count("- {") == 2, text
        done = land.sh(script + "; curl -s -d x http://web.example.org/v1/else", options=(*rules, "--policy", file))
        equal(paths(done), ["/v1/x", "/v1/users?token=hidden", "/other"], done)


@test
def nothing_to_report_is_said_and_written_too(place):
    file, options = audited(place)
    with world(place) as land:
        done = land.sh("curl -s http://web.example.org/", options=("--allow", "web.example.org", *options))
        assert "the audit let nothing through that the rules would have refused" in done.errors, done
        assert land.sh("true", options=("--policy", file)).code == 0, file.read_text()


@test
def the_report_tells_what_would_have_been(place):
    with world(place) as land:
        land.sh("curl -s http://web.example.org/; curl -s http://web.example.org:8080/", options=("--allow", "web.example.org:80", "--audit", "--quiet", "--report", place.dir / "report.json"))
    requests = json.loads((place.dir / "report.json").read_text())["network"]["requests"]
    equal([(one["port"], one["verdict"], one["reason"], one["without_audit"], one["grant"]) for one in requests],
          [(80, "allow", "rule", None, None), (8080, "allow", "audit", "port", "cove allow web.example.org:8080")])


@test
def a_sandbox_that_stays_has_it_in_its_trace(place):
    with world(place) as land:
        ident = land.cove("create", "--audit").text.strip()
        done = land.cove("exec", ident, "--", "curl", "-s", "http://web.example.org/")
        equal(done.text, "hello from web.example.org\n", done)
        [trace] = place.state.glob(f"sandboxes/{ident}*/trace.jsonl")
        [request] = [line["data"] for line in map(json.loads, trace.read_text().splitlines()) if line["kind"] == "request"]
        equal((request["verdict"], request["type"], request["reason"]), ("allow", "audit", "no rule allows web.example.org at port 80"))
        land.cove("rm", "-f", ident)


# What it is not for

@test
def a_rule_that_denies_denies_in_an_audit_too(place):
    file, options = audited(place)
    with world(place) as land:
        done = land.sh("curl -s http://web.example.org/; curl -s http://web.example.org:8080/x", options=(*policy(place, "{ host: web.example.org, action: deny }"), *options))
        equal(paths(done), ["/x"], done)
        assert "denies web.example.org at port 80" in done.text, done
    assert "# refused by the audit too: http, 1 x:" in file.read_text(), file.read_text()


@test
def budgets_hold(place):
    with world(place) as land:
        done = land.sh("for i in 1 2 3 4; do curl -s http://web.example.org/$i; done", options=("--audit", "--network-requests", "2"))
        equal(paths(done), ["/1", "/2"], done)
        assert "budget" in done.text, done


@test
def what_leads_to_a_private_address_makes_no_rule(place):
    file, options = audited(place)
    with world(place) as land:
        done = land.sh("curl -s http://home.example.org/", options=options)
        assert "192.168.7.7" in done.text and done.visits == [], done
    text = file.read_text()
    assert "- {" not in text and "# refused by the audit too: http, 1 x: home.example.org leads to 192.168.7.7" in text, text


@test
def the_file_is_new_and_lies_outside(place):
    old = write(place.dir / "old.yaml", "network: { mode: none }\n")
    one_error(place.run("true", options=("--audit", "--audit-policy", str(old))), "--audit-policy", "already")
    one_error(place.run("true", options=("--audit", "--audit-policy", str(place.work / "a.yaml"))), "--audit-policy", "seen inside")
    one_error(place.run("true", options=("--audit", "--audit-policy", "a.yaml")), "--audit-policy", "seen inside")
    one_error(place.run("true", options=("--audit-policy", str(place.dir / "a.yaml"))), "--audit-policy", "nothing is audited")
    equal(old.read_text(), "network: { mode: none }\n")
    assert not (place.dir / "a.yaml").exists()


@test
def a_repository_cannot_ask_for_it_and_can_forbid_it(place):
    repository(place, "policy: { network: { mode: audit } }\n")
    with world(place) as land:
        done = land.sh("curl -s http://web.example.org/")
        assert "no rule allows web.example.org" in done.text and done.visits == [], done
        repository(place, "policy: { network: { mode: rules } }\n")
        done = land.sh("curl -s http://web.example.org/", options=("--audit",))
        assert done.visits == [] and "nothing is audited: the repository's cove.yaml" in done.errors, done
        (place.work / "cove.yaml").unlink()
        equal(paths(land.sh("curl -s http://web.example.org/", options=("--audit",))), ["/"], "the control")


@test(identities=("root",))
def an_administrator_forbids_it_or_leaves_it_without_an_open_network(place):
    for ceiling in ("network: { mode: rules }\n", "network: { rules: [example.com] }\n", "network: { mode: none }\n"):
        one_error(administered(place, ceiling, "run", "--audit", "--", "true"), "audit", "/etc/cove/policy.yaml:1")
    equal(administered(place, "network: { mode: audit }\n", "run", "--rm", "--audit", "--", "true").code, 0)
    one_error(administered(place, "network: { mode: audit }\n", "run", "--network", "open", "--", "true"), "open", "/etc/cove/policy.yaml:1")
    equal(administered(place, "network: { mode: open }\n", "run", "--rm", "--audit", "--", "true").code, 0)


if __name__ == "__main__":
    main()
