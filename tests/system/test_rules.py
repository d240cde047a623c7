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
    for word in (f"{bad}:3", "network.rules", "'ask'", "allow and deny"):
        assert word in done.errors, done
    assert str(good) in done.text


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
    for word, why in (("*.com", "everybody"), ("localhost", "address"), ("10.0.0.5", "port"), ("127.1:80", "odd spelling"), ("a.test:0", "65535"),
                      ("https://a.test", ""), ("a b", "characters"), ("a.test\n", "characters")):
        one_error(place.cove("allow", word), why)
    assert not file.exists()
    one_error(place.cove("allow"), "HOST[:PORT]")


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
