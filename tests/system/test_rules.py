"""The rules of the network from outside the program: explained, checked, added. Nothing here leaves the machine."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, equal, main, test  # noqa: E402
from support.policies import administered, owner, repository  # noqa: E402
from support.running import adopt_orphans, one_error, write  # noqa: E402


def policy_file(place):
    place.env["XDG_CONFIG_HOME"] = str(place.dir / "config")
    return place.dir / "config/cove/policy.yaml"


def explained(place, *args, code=None):
    done = place.cove("policy", "explain", "--json", *args)
    if code is not None:
        equal(done.code, code, done)
    return json.loads(done.out)


# Explain

@test
def without_a_rule_every_url_is_refused_with_the_command_that_allows_it(place):
    policy_file(place)
    done = place.cove("policy", "explain", "https://example.com/x")
    equal((done.code, done.err), (1, b""), done)
    for word in ("refused", "no rule allows example.com at port 443", "cove allow example.com"):
        assert word in done.text, done
    [one] = explained(place, "http://10.0.0.5:8080/", code=1)
    equal((one["reason"], one["command"]), ("no-rule", "cove allow 10.0.0.5:8080"))


@test
def an_allowed_url_names_the_line_that_allows_it(place):
    file = owner(place, "network:\n  rules:\n    - example.com\n    - { host: '*.example.org', port: 8443 }\n")
    one, two, three = explained(place, "https://EXAMPLE.com./x", "https://a.example.org:8443/", "https://example.org:8443/", code=1)
    equal((one["allowed"], one["host"], one["place"]), (True, "example.com", f"{file}:3"))
    equal((two["allowed"], two["place"]), (True, f"{file}:4"))
    equal(three["reason"], "no-rule")
    explained(place, "https://example.com/", code=0)


@test
def a_flag_is_a_rule_too(place):
    [one] = explained(place, "--allow", "example.com:22", "example.com:22", code=0)
    equal((one["allowed"], one["place"], one["port"]), (True, "--allow", 22))
    [one] = explained(place, "--allow", "example.com:22", "https://example.com/", code=1)
    equal((one["reason"], one["command"]), ("port", "cove allow example.com"))


@test
def what_is_denied_names_who_denies_it(place):
    owner(place, "network: { rules: ['*.example.com'] }\n")
    file = repository(place, "policy:\n  network:\n    rules:\n      - '*'\n      - { host: bad.example.com, action: deny }\n")
    bad, good = explained(place, "https://bad.example.com", "https://good.example.com", code=1)
    equal((bad["reason"], bad["place"], bad["command"]), ("denied", f"{file}:5", None))
    equal(good["allowed"], True)


@test
def a_repository_opens_nothing(place):
    policy_file(place)
    repository(place, "policy: { network: { mode: open, rules: [evil.test], registries: [npm] } }\n")
    [one] = explained(place, "https://evil.test", code=1)
    equal(one["reason"], "no-rule")


@test
def odd_spellings_are_one_error(place):
    for url in ("http://127.1/", "http://0x7f000001/", "http://a.test\\@b.test/", "http://a_b.test/", "ftp://a.test/", "http://a.test:0/", "http://exämple.com/"):
        one_error(place.cove("policy", "explain", url))


@test
def open_is_open_but_for_what_is_private(place):
    open_, private, meta, local = explained(place, "--network", "open", "https://example.com:22/", "http://192.168.1.1/", "http://169.254.169.254/", "http://localhost/", code=1)
    equal((open_["allowed"], private["allowed"], meta["allowed"], local["allowed"]), (True, False, False, False))
    equal((private["reason"], meta["reason"], local["reason"]), ("address", "address", "local"))


@test
def registries_come_from_the_users_own_files_and_never_from_the_workspace(place):
    home = place.dir / "registry-home"
    write(home / ".npmrc", "registry=http://mirror.corp.test:4873/\n//mirror.corp.test/:_authToken=hidden\n", 0o600)
    write(home / ".config/pip/pip.conf", "[global]\nindex-url = https://pip.corp.test/simple\n", 0o600)
    write(place.work / ".npmrc", "registry=https://evil.test/\n")
    place.env["HOME"] = str(home)
    names = ("--registry", "npm", "--registry", "pip")
    npm, pip, evil = explained(place, *names, "http://mirror.corp.test:4873/x", "https://pip.corp.test/simple/", "https://evil.test/", code=1)
    equal((npm["allowed"], pip["allowed"], evil["allowed"]), (True, True, False))
    assert npm["place"].endswith(".npmrc") and "npm" in npm["place"], npm
    assert b"hidden" not in place.cove("policy", "explain", *names, "http://mirror.corp.test:4873/").out


@test
def what_some_requests_may_is_allowed_in_part(place):
    file = owner(place, "network:\n  rules:\n    - { host: a.test, methods: [GET], paths: [/v1/**] }\n    - b.test\n")
    part, whole = explained(place, "a.test", "b.test", code=0)
    equal((part["allowed"], part["partly"], part["place"], whole["partly"]), (True, True, f"{file}:3", False))
    assert f"a.test: allowed in part: {file}:3 allows" in place.cove("policy", "explain", "a.test").text
    [one] = explained(place, "-X", "GET", "https://a.test/v1/x", code=0)
    equal((one["allowed"], one["partly"]), (True, False))
    [one] = explained(place, "-X", "POST", "https://a.test/v1/x", code=1)
    equal((one["reason"], one["why"]), ("method", f"{file}:3 allows a.test at port 443, but not POST /v1/x"))
    [one] = explained(place, "https://a.test/", code=1)
    equal((one["reason"], one["why"]), ("path", f"{file}:3 allows a.test at port 443, but not /"))


@test
def what_a_repository_leaves_out_is_laid_to_it(place):
    mine = owner(place, "network: { rules: [foo.test, bar.test] }\n")
    file = repository(place, "policy:\n  network:\n    rules: [bar.test]\n")
    foo, bar, other = explained(place, "foo.test", "bar.test", "other.test", code=1)
    equal((foo["command"], foo["why"]), (None, f"{file}:3 leaves it out ({mine}:1 allows foo.test at port 443)"))
    equal((bar["allowed"], other["why"], other["command"]), (True, "no rule allows other.test at port 443", "cove allow other.test"))


@test
def a_service_of_the_host_is_at_the_loopback(place):
    policy_file(place)
    for host in ("localhost:9081", "127.0.0.1:9081", "http://[::1]:9081/x"):
        [one] = explained(place, "--host-service", "9081", host, code=0)
        equal((one["reason"], one["place"]), ("rule", "network.host-services"), host)
        done = place.cove("policy", "explain", host)
        assert done.code == 1 and "to reach a service of this machine there: --host-service 9081\n" in done.text, done
    explained(place, "--host-service", "9081", "localhost:9082", code=1)


# Check

@test
def check_tells_the_first_mistake_of_each_file(place):
    good = write(place.dir / "good.yaml", "network: { rules: [example.com] }\n")
    bad = write(place.dir / "bad.yaml", "network:\n  rules:\n    - { host: a.test, action: ask }\n")
    repo = write(place.dir / "x/cove.yaml", "policy: { network: { mode: none } }\n")
    done = place.cove("policy", "check", good, repo)
    equal((done.code, done.err), (0, b""), done)
    assert f"{good}: can be read as the owner's" in done.text and f"{repo}: can be read as the repository's" in done.text, done
    done = place.cove("policy", "check", bad, good)
    equal(done.code, 1)
    for word in (f"{bad}:3", "network.rules", "'ask'", "allow, deny, mock and count"):
        assert word in done.errors, done
    assert str(good) in done.text


@test
def check_reads_the_files_that_rules_name(place):
    home = place.dir / "check-home"
    place.env["HOME"] = str(home)
    file = write(place.dir / "checked.yaml", "network:\n  rules:\n    - { host: a.test, action: mock, mock: { file: ~/body.txt } }\n    - { host: b.test, ca: own.pem }\n")
    body, pem = home / "body.txt", place.dir / "own.pem"
    write(body, "body\n")
    one_error(place.cove("policy", "check", file), f"{file}:4: network.rules: the ca of b.test, {pem}, is not there", code=1)
    write(pem, "nothing\n")
    one_error(place.cove("policy", "check", file), f"{pem}, has no certificate in it", code=1)
    write(pem, "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n")
    one_error(place.cove("policy", "check", file), "the ca of b.test", "certificate 1 cannot be read", code=1)
    write(file, file.read_text().replace(", ca: own.pem", ""))
    equal(place.cove("policy", "check", "checked.yaml", cwd=file.parent).code, 0)
    body.unlink()
    one_error(place.cove("policy", "check", file), f"{file}:3: network.rules: the mock of a.test, {body}, is not there", code=1)


@test
def what_comes_later_is_refused_at_the_start_of_a_run(place):
    for rule, word in (("{ host: a.test, action: stage }", "stage"), ("{ host: a.test, methods: [get] }", "upper case"), ("{ host: a.test, ca: x }", "ca"), ("{ host: a.test, secret: x }", "secret"),
                       ("{ host: '*.com' }", "*.com"), ("localhost", "localhost"), ("10.0.0.1", "10.0.0.1")):
        owner(place, f"network:\n  rules:\n    - {rule}\n")
        one_error(place.run("true"), "policy.yaml:3", "network.rules", word)


# Allow

@test
def allow_makes_the_file_and_says_where(place):
    file = policy_file(place)
    done = place.cove("allow", "example.com", "other.test:8443")
    equal((done.code, done.err), (0, b""), done)
    assert str(file) in done.text
    equal(file.stat().st_mode & 0o777, 0o600)
    equal([one["allowed"] for one in explained(place, "https://example.com", "https://other.test:8443", code=0)], [True, True])
    equal(place.cove("allow", "example.com").text, f"example.com: is already in {file}\n")


@test
def allow_keeps_every_line_that_is_there(place):
    texts = (
        "# mine\nhostname: a # b\n",
        "# mine\nhostname: a",
        "network:\n  # why\n  mode: rules # x\nhostname: a\n",
        "network:\n  rules:\n  - b.test # first\n  # last\n",
        "network:\n    rules:\n        - { host: b.test, port: 22 }\n\n\n",
        "network: { rules: [b.test], mode: rules } # x\n",
        "network:\n  rules: []\n",
        "network:\n  mode: rules\n  rules: [ b.test ]\nhostname: a\n",
    )
    for text in texts:
        file = owner(place, text)
        done = place.cove("allow", "new.test")
        equal(done.code, 0, done)
        after = file.read_text()
        equal(explained(place, "https://new.test", code=0)[0]["allowed"], True)
        kept = after.replace('"new.test", ', "").replace('"new.test"', "")
        for line in text.splitlines():
            assert line in kept, (text, after)


@test
def a_file_in_which_there_is_no_place_is_left_as_it_is(place):
    for text in ("{ hostname: a }\n", "network:\n  rules:\n    [ b.test,\n      c.test ]\n", "network: {}\n"):
        file = owner(place, text)
        one_error(place.cove("allow", "new.test"), str(file), '- "new.test"')
        equal(file.read_text(), text)
        equal(sorted(os.listdir(file.parent)), ["policy.yaml"])


@test
def allow_takes_no_more_than_a_rule_can_be(place):
    file = policy_file(place)
    for word, why in (("*.com", "everybody"), ("localhost:9081", "--host-service 9081"), ("127.0.0.1:9081", "--host-service 9081"), ("[::1]:9081", "--host-service 9081"), ("db", "cove allow NAME:PORT --address"), ("10.0.0.5", "port"), ("127.1:80", "odd spelling"), ("a.test:0", "65535"),
                      ("https://a.test", ""), ("a b", "characters"), ("a.test\n", "characters")):
        one_error(place.cove("allow", word), why)
    done = place.cove("allow", "a.test", "--address", "1.2.3")
    one_error(done, "--address: '1.2.3'", "192.0.2.1")
    assert "a.test" not in done.errors and not file.exists(), done
    one_error(place.cove("allow"), "HOST[:PORT]")
    one_error(place.run("true", options=("--allow", "db")), "--allow: 'db'", "cove allow NAME:PORT --address ADDRESS")


@test
def an_address_can_be_given_for_a_name(place):
    policy_file(place)
    equal(place.cove("allow", "db:5432", "--address", "10.0.0.5").code, 0)
    [one] = explained(place, "db:5432", code=0)
    equal(one["rule"], "db:5432 at 10.0.0.5")


@test
def allow_does_not_write_to_a_file_that_others_can_write(place):
    file = owner(place, "hostname: a\n", 0o666)
    one_error(place.cove("allow", "a.test"), str(file), "others can write")
    equal(file.read_text(), "hostname: a\n")


@test
def a_file_with_a_mistake_is_left_as_it_is(place):
    file = owner(place, "hostnaem: a\n")
    one_error(place.cove("allow", "a.test"), f"{file}:1", "hostnaem")
    equal(file.read_text(), "hostnaem: a\n")


@test
def remove_takes_out_what_allow_put_in_and_nothing_else(place):
    texts = (
        "# mine\nhostname: a # b\nnetwork:\n  rules: []\n",
        "network:\n  # why\n  mode: rules # x\n  rules: [] # none\nhostname: a\n",
        "network:\n  rules:\n  - b.test # first\n  - new.test:8443\n  - '*.new.test'\n  # last\n",
        "network:\n    rules:\n        - { host: new.test, methods: GET } # another\n\n\n",
        "network: { rules: [b.test, anew.test], mode: rules } # x\n",
        "network:\n  mode: rules\n  rules: [ b.test ]\nhostname: a\n",
    )
    for text in texts:
        file = owner(place, text)
        equal(place.cove("allow", "new.test").code, 0)
        done = place.cove("allow", "--remove", "new.test")
        equal((done.code, done.text, "all the same" in done.errors), (0, f"new.test: removed from {file}\n", "GET" in text), text)
        equal(file.read_text(), text)
        equal(sorted(os.listdir(file.parent)), ["policy.yaml"])
    for text, after in (("network:\n  rules: # mine\n    - new.test # this\n    # why\nhostname: a\n", "network:\n  rules: [] # mine\n    # why\nhostname: a\n"),
                        ("network:\n  rules: [ a.test, 'new.test' ]\n", "network:\n  rules: [ a.test ]\n"),
                        ("network: { rules: [new.test, x.test, \"new.test\"] }\n", "network: { rules: [x.test] }\n")):
        file = owner(place, text)
        equal(place.cove("allow", "--remove", "NEW.test").code, 0, text)
        equal(file.read_text(), after)


@test
def what_is_not_there_or_says_more_is_not_removed(place):
    text = "network:\n  rules:\n    - { host: new.test, methods: GET }\n    - new.test:22\n    - { host: new.test, action: deny }\n    - { host: a.test,\n        port: 99 }\n"
    file = owner(place, text)
    one_error(place.cove("allow", "--remove", "new.test"), "says just new.test", "cove allow --list")
    one_error(place.cove("allow", "--remove", "a.test:99"), f"{file}:6", "delete it there")
    equal(file.read_text(), text)
    done = place.cove("allow", "--list")
    equal([line.split()[-1] for line in done.text.splitlines()], [f"{file}:{n}" for n in (3, 4, 5, 6)])
    assert "new.test with GET " in done.text and "deny new.test " in done.text and "new.test:22 " in done.text, done
    file.unlink()
    equal((place.cove("allow", "--list").code, place.cove("allow", "--list").text), (0, ""))
    one_error(place.cove("allow", "--remove", "new.test"), "says just new.test")
    assert not file.exists()
    one_error(place.cove("allow", "--list", "a.test"), "takes no host")


@test
def a_rule_that_is_removed_and_allowed_by_another_is_told_of(place):
    file = owner(place, "network:\n  rules:\n    - '*.x.test'\n    - { host: db, port: 5432, address: 10.0.0.5 }\n")
    equal(place.cove("allow", "a.x.test").code, 0)
    done = place.cove("allow", "--remove", "a.x.test")
    assert done.code == 0 and "it is allowed all the same" in done.errors, done
    one_error(place.cove("allow", "--remove", "--address", "10.0.0.6", "db:5432"), "says just db:5432 at 10.0.0.6")
    equal((place.cove("allow", "--remove", "db:5432").code, file.read_text()), (0, "network:\n  rules:\n    - '*.x.test'\n"))
    equal(explained(place, "db:5432", code=1)[0]["allowed"], False)


@test
def a_rule_that_denies_is_told_of(place):
    owner(place, "network:\n  rules:\n    - { host: a.test, action: deny }\n")
    done = place.cove("allow", "a.test")
    equal(done.code, 0)
    assert "refused all the same" in done.errors and "policy.yaml:4" in done.errors, done


@test
def many_at_a_time_lose_nothing(place):
    file = policy_file(place)
    running = [subprocess.Popen([COVE, "allow", f"h{i}.test"], cwd=place.work, env=place.env, stdout=subprocess.DEVNULL) for i in range(12)]
    equal([one.wait() for one in running], [0] * 12)
    text = file.read_text()
    assert all(f'"h{i}.test"' in text for i in range(12)), text


# The administrator

@test(identities=("root",))
def allow_is_refused_above_the_ceiling(place):
    file = policy_file(place)
    ceiling = "network: { rules: ['*.corp.test', { host: bad.corp.test, action: deny }] }\n"
    one_error(administered(place, ceiling, "allow", "example.com"), "cove allow", "example.com", "/etc/cove/policy.yaml:1")
    one_error(administered(place, ceiling, "allow", "bad.corp.test"), "bad.corp.test", "/etc/cove/policy.yaml:1")
    one_error(administered(place, ceiling, "allow", "a.corp.test", "--address", "10.0.0.5"), "10.0.0.5", "/etc/cove/policy.yaml:1")
    assert not file.exists()
    equal(administered(place, ceiling, "allow", "a.corp.test").code, 0)
    one_error(administered(place, ceiling, "run", "--network", "open", "--", "true"), "open", "/etc/cove/policy.yaml:1")
    one_error(administered(place, ceiling, "run", "--registry", "npm", "--", "true"), "npm", "/etc/cove/policy.yaml:1")
    one_error(administered(place, ceiling, "run", "--allow", "example.com", "--", "true"), "example.com", "/etc/cove/policy.yaml:1")


if __name__ == "__main__":
    adopt_orphans()
    main()
