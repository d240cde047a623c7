"""The three layers of policy, from outside the program: who may say what, and how mistakes are told."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import IDENTITY, equal, main, test  # noqa: E402
from support.policies import administered, owner, repository  # noqa: E402
from support.running import adopt_orphans, cold, nothing_left, one_error, write  # noqa: E402


def shown(place, *options):
    done = place.cove("policy", "show", "--json", *options)
    equal(done.code, 0, done)
    return json.loads(done.out)


# The owner's file

@test
def the_owners_file_holds(place):
    owner(place, "hostname: mine\nenv: { A: one }\nlimits: { timeout: 20s }\n")
    done = place.sh("hostname; echo $A")
    equal((done.code, done.text), (0, "mine\none\n"))


@test
def a_flag_of_the_owner_is_stronger_than_the_file(place):
    owner(place, "hostname: mine\n")
    equal(place.run("hostname", options=("--hostname", "other")).text.strip(), "other")


@test
def a_time_out_of_the_file_holds(place):
    owner(place, "limits: { timeout: 200ms }\n")
    equal(place.run("sleep", "30").code, 124)


@test
def files_that_the_owner_hides_or_grants_are_hidden_or_granted(place):
    write(place.dir / "data/file", "data\n")
    write(place.work / ".env", "secret\n")
    owner(place, f"files:\n  read: [{place.dir}/data]\n  hide: [.env]\n")
    done = place.sh(f"cat {place.dir}/data/file; ls -A")
    equal(done.text, "data\n")


@test
def one_more_file_can_be_named(place):
    owner(place, "hostname: mine\n")
    more = write(place.dir / "more.yaml", "env: { B: two }\n", 0o600)
    done = place.sh("hostname; echo $B", options=("--policy", more))
    equal((done.code, done.text), (0, "mine\ntwo\n"))


@test
def no_file_is_no_error(place):
    place.env["XDG_CONFIG_HOME"] = str(place.dir / "nowhere")
    equal(place.run("true").code, 0)


# Mistakes: file, line, key, value, and what is allowed

MISTAKES = [
    ("seccomp: lax\n", ("policy.yaml:1", "seccomp", "lax", "default", "strict")),
    ("env: {}\nlimits:\n  timeout: soon\n", ("policy.yaml:3", "limits.timeout", "soon", "30m")),
    ("tools: maybe\n", ("policy.yaml:1", "tools", "maybe", "true or false")),
    ("\nnonsense: 1\n", ("policy.yaml:2", "nonsense", "cove-policy(5) lists all")),
    ("files: { raed: [] }\n", ("policy.yaml:1", "raed", "files.read")),
    ("hostname: a b\n", ("policy.yaml:1", "hostname", "a b")),
    ("hostname: a\nhostname: b\n", ("policy.yaml:2", "hostname", "twice")),
    ("volumes: ['/a:/b:rw']\n", ("policy.yaml:1", "volumes", "rw", "ro")),
    ("user: somebody\n", ("policy.yaml:1", "user", "somebody")),
    ("files: [a]\n", ("policy.yaml:1", "files")),
    ("limits: { timeout: -5s }\n", ("policy.yaml:1", "limits.timeout", "-5s")),
    ("limits: { timeout: 400d }\n", ("policy.yaml:1", "limits.timeout")),
    ("a: [\n", ("policy.yaml:", "YAML")),
    ("\t- x\n", ("policy.yaml:", "YAML")),
    ("", ("policy.yaml", "empty")),
    ("- a\n", ("policy.yaml:1",)),
    ("just words\n", ("policy.yaml:1",)),
    ("env: &a { A: b }\nvolumes: *a\n", ("policy.yaml:",)),
    ("hostname: !!binary aGk=\n", ("policy.yaml:1",)),
    ("directory: /\n", ("policy.yaml:1", "directory")),
    ("--- {}\n--- {}\n", ("policy.yaml:",)),
]


@test
def every_mistake_names_file_line_key_value_and_what_is_allowed(place):
    for text, words in MISTAKES:
        owner(place, text)
        one_error(place.run("true"), *words)
    nothing_left(place)


@test
def a_mistake_is_told_without_the_bytes_that_a_terminal_would_obey(place):
    owner(place, 'hostname: "\\e]0;x\\a"\n')
    done = place.run("true")
    assert done.code == 125 and b"\x1b" not in done.err and b"\x07" not in done.err, done


@test
def a_file_that_is_too_large_is_refused(place):
    owner(place, "# " + "x" * 2_000_000 + "\n{}\n")
    one_error(place.run("true"), "policy.yaml", "1 MB")


@test
def bytes_that_are_no_text_are_refused(place):
    owner(place, "{}")
    (place.dir / "config/cove/policy.yaml").write_bytes(b"hostname: \xff\xfe\x00\n")
    one_error(place.run("true"), "policy.yaml")


@test
def nested_without_end_is_refused(place):
    owner(place, "[" * 5000 + "]" * 5000 + "\n")
    one_error(place.run("true"), "policy.yaml")
    owner(place, "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)},*{chr(97 + i)},*{chr(97 + i)}]\n" for i in range(20)))
    one_error(place.run("true"), "policy.yaml")


# Whose file

@test
def a_file_that_others_can_write_is_refused(place):
    for mode in (0o666, 0o620, 0o602):
        file = owner(place, "hostname: x\n", mode)
        one_error(place.run("true"), str(file), "others can write", "chmod")
    file.chmod(0o600)
    file.parent.chmod(0o777)
    one_error(place.run("true"), str(file.parent), "others can write")
    file.parent.chmod(0o700)
    equal(place.run("hostname").text, "x\n")


@test
def a_named_file_that_others_can_write_is_refused(place):
    file = write(place.dir / "p.yaml", "hostname: x\n", 0o666)
    one_error(place.run("true", options=("--policy", file)), str(file), "others can write")


@test(identities=("root",))
def a_file_of_somebody_else_is_refused(place):
    file = owner(place, "hostname: x\n")
    os.chown(file, 12345, 12345)
    one_error(place.run("true"), str(file), "12345")


@test
def a_link_is_refused_as_the_owners_file(place):
    file = owner(place, "hostname: x\n")
    file.rename(place.dir / "real.yaml")
    file.symlink_to(place.dir / "real.yaml")
    done = place.run("hostname")
    if done.code == 0:  # a link of the owner's own, to a file of the owner's own, would be as good
        equal(done.text, "x\n")
    else:
        one_error(done, str(file), "symbolic link")


@test
def a_directory_or_pipe_as_policy_is_one_error_and_does_not_hang(place):
    one_error(place.run("true", options=("--policy", place.work)), str(place.work))
    os.mkfifo(place.dir / "pipe")
    one_error(place.run("true", options=("--policy", place.dir / "pipe"), timeout=10), "pipe")


@test
def a_policy_that_cannot_be_read_is_one_error(place):
    if IDENTITY == "root":
        one_error(place.run("true", options=("--policy", place.dir / "missing.yaml")), "missing.yaml")
        return
    file = owner(place, "hostname: x\n", 0)
    one_error(place.run("true"), str(file), "Permission denied")


# The repository's file only narrows

@test
def the_repository_can_shorten_a_time_out_and_not_lengthen_it(place):
    repository(place, "policy: { limits: { timeout: 200ms } }\n")
    equal(place.run("sleep", "30").code, 124)
    repository(place, "policy: { limits: { timeout: 1h } }\n")
    equal(place.run("sleep", "30", options=("--timeout", "200ms")).code, 124)


@test
def a_flag_that_the_repository_narrows_is_named(place):
    repository(place, "policy: { limits: { open-files: 100 } }\n")
    warned = place.run("true", options=("--open-files", "200"))
    equal(warned.errors, f"cove: warning: {place.work}/cove.yaml:1 allows less than --open-files says (cove policy show)\n", warned)
    for options in (("--open-files", "50"), ("--output", "1M"), ()):
        equal(place.run("true", options=options).errors, "", options)


@test
def the_repository_can_hide_but_not_grant(place):
    secret = write(place.dir / "outside/secret", "s\n")
    write(place.work / "key.pem", "k\n")
    repository(place, f"policy:\n  files:\n    hide: ['*.pem']\n    read: [{secret.parent}]\n    write: [{secret.parent}]\n  volumes: ['{secret.parent}:/mnt/x']\n")
    done = place.sh(f"cat {secret}; ls /mnt/x; ls")
    equal(done.text, "cove.yaml\n", done)


@test
def a_grant_of_the_owner_is_narrowed_by_the_repository(place):
    write(place.dir / "data/a/file", "a\n")
    write(place.dir / "data/b/file", "b\n")
    owner(place, f"files: {{ read: [{place.dir}/data] }}\n")
    repository(place, f"policy: {{ files: {{ read: [{place.dir}/data/a] }} }}\n")
    equal(place.sh(f"cat {place.dir}/data/a/file; cat {place.dir}/data/b/file").text, "a\n")


@test
def the_repository_cannot_take_the_strict_filter_away(place):
    owner(place, "seccomp: strict\n")
    repository(place, "policy: { seccomp: default }\n")
    assert "seccomp: strict" in place.cove("policy", "show").text


@test
def what_only_the_owner_may_say_is_refused_to_the_repository(place):
    for text, key in (("policy: { env: { A: b } }\n", "env"), ("policy: { hostname: x }\n", "hostname"), ("policy: { image: / }\n", "image"),
                      ("policy: { user: root }\n", "user"), ("x: 1\n", "x")):
        repository(place, text)
        one_error(place.run("true"), "cove.yaml:1", key)


@test
def a_bad_file_of_the_repository_is_an_error_and_not_ignored(place):
    repository(place, "policy: [\n")
    one_error(place.run("true"), str(place.work / "cove.yaml"))
    (place.work / "cove.yaml").unlink()
    (place.work / "cove.yaml").symlink_to("/etc/passwd")
    line = one_error(place.run("true"), "cove.yaml")
    assert "root:" not in line, line
    (place.work / "cove.yaml").unlink()
    os.mkfifo(place.work / "cove.yaml")
    one_error(place.run("true", timeout=10), "cove.yaml")


@test
def a_file_in_a_directory_below_the_work_tree_says_nothing(place):
    subprocess.run(["git", "init", "-q", place.work], check=True, env=place.env)
    write(place.work / "below/cove.yaml", "x: 1\n")
    equal(place.run("true", cwd=place.work / "below").code, 0)


# The administrator's file is the ceiling

@test(identities=("root",))
def the_administrators_time_out_is_the_ceiling(place):
    text = "limits: { timeout: 300ms }\n"
    equal(administered(place, text, "run", "--rm", "--", "sleep", "30").code, 124)
    one_error(administered(place, text, "run", "--rm", "--timeout", "1h", "--", "true"), "1h", "300ms", "/etc/cove/policy.yaml:1")


@test(identities=("root",))
def the_administrator_can_forbid_root(place):
    one_error(administered(place, "root: false\n", "run", "--rm", "--root", "--", "true"), "root", "/etc/cove/policy.yaml")


@test(identities=("root",))
def the_administrator_can_forbid_that_the_host_is_written(place):
    for mode in ("rw", "live"):
        one_error(administered(place, "workspace: cow\n", "run", "--rm", "--workspace", mode, "--", "true"), mode, "cow", "/etc/cove/policy.yaml:1")
    owner(place, "workspace: rw\n")
    administered(place, "workspace: cow\n", "run", "--rm", "--", "touch", "new")
    assert not (place.work / "new").exists(), "a standing wish is cut"
    place.cove("run", "--rm", "--", "touch", "new")
    assert (place.work / "new").exists(), "which holds where nobody forbids it"


@test(identities=("root",))
def the_administrator_can_limit_the_images(place):
    (place.dir / "image/bin").mkdir(parents=True)
    one_error(administered(place, "images: [host]\n", "run", "--rm", "--image", place.dir / "image", "--", "true"), "image", "/etc/cove/policy.yaml")


@test(identities=("root",))
def the_administrator_can_limit_the_grants(place):
    write(place.dir / "data/file", "x\n")
    done = administered(place, "files: { read: [/nowhere] }\n", "run", "--rm", "--read", place.dir / "data", "--", "cat", place.dir / "data/file")
    assert done.code != 0 and b"x\n" not in done.out, done


@test(identities=("root",))
def the_administrators_file_must_be_roots_and_closed(place):
    args = ("run", "--rm", "--", "true")
    one_error(administered(place, "{}\n", *args, mode=0o666), "/etc/cove/policy.yaml", "others can write")
    one_error(administered(place, "{}\n", *args, uid=12345), "/etc/cove/policy.yaml", "12345")
    one_error(administered(place, "tools: maybe\n", *args), "/etc/cove/policy.yaml:1", "tools", "maybe")
    equal(administered(place, "{}\n", *args).code, 0)


# Looking at it

@test
def policy_show_tells_what_holds_and_who_said_it(place):
    file = owner(place, "limits: { timeout: 1h }\nhostname: mine\n")
    repo = repository(place, "policy: { limits: { timeout: 5m }, tools: false }\n")
    done = place.cove("policy", "show", "--hide", ".env")
    equal((done.code, done.err), (0, b""))
    for word in ("limits.timeout: 5m", f"{repo}:1", f"{file}:2", "hostname: mine", "tools: false", ".env"):
        assert word in done.text, f"{word} is not in {done.text}"


@test
def policy_show_is_json_when_asked_for(place):
    owner(place, "hostname: mine\n")
    found = shown(place, "--timeout", "90s")
    assert "mine" in json.dumps(found) and "timeout" in json.dumps(found), found


@test
def policy_show_starts_nothing(place):
    cold(place)
    place.cove("policy", "show")
    assert not (place.state / "sandboxes").exists()


@test
def an_unknown_verb_of_policy_is_one_error(place):
    one_error(place.cove("policy", "shew"), "show")


if __name__ == "__main__":
    adopt_orphans()
    main()
