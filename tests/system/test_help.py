"""Help, completion, man pages and reference: all from the tables of the program, and all in step with it."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import ROOT, equal, main, skip, test  # noqa: E402
from support.running import adopt_orphans, cold, one_error, tool, write  # noqa: E402


def commands(place):
    section = place.cove("help").text.split("Commands:\n", 1)[1].split("\n\n")[0]
    return [line.split()[0] for line in section.splitlines()]


def options(place, command):
    return re.findall(r"^  (?:-\w, |    )--([\w-]+)", place.cove(command, "--help").text, re.M)


@test
def help_lists_the_commands(place):
    for args in (("help",), ("--help",), ("-h",), ()):
        done = place.cove(*args)
        equal((done.code, done.err), (0, b""), args)
        assert "Usage: cove" in done.text and "  run " in done.text, done
    assert {"run", "policy", "completion", "help", "version"} <= set(commands(place))


@test
def every_command_has_help(place):
    for name in commands(place):
        for args in ((name, "--help"), (name, "-h"), ("help", name)):
            done = place.cove(*args)
            equal((done.code, done.err), (0, b""), args)
            assert done.text.startswith(f"Usage: cove {name}"), done


@test
def help_fits_into_eighty_columns(place):
    for name in [None, *commands(place)]:
        for line in place.cove("help", *([name] if name else [])).text.splitlines():
            assert len(line) <= 80, line


@test
def help_wins_over_other_options_and_starts_nothing(place):
    cold(place)
    done = place.cove("run", "--timeout", "5s", "--help", "--", "touch", "made")
    assert done.code == 0 and done.text.startswith("Usage: cove run"), done
    assert not place.state.exists()


@test
def help_after_the_command_is_the_commands(place):
    equal(place.cove("run", "--rm", "--", "printf", "%s", "--help").out, b"--help")
    equal(place.cove("run", "--rm", "printf", "%s", "-h").out, b"-h")


@test
def help_about_an_unknown_command_is_one_error(place):
    one_error(place.cove("help", "rum"), "rum", "run")


@test
def the_version_is_told_as_text_and_json(place):
    done = place.cove("version")
    assert done.code == 0 and re.match(r"cove \d+\.\d+\S* ", done.text), done
    equal(place.cove("--version").out, done.out)
    assert json.loads(place.cove("version", "--json").out)["version"] in done.text


@test
def bash_completes_commands_options_and_values(place):
    tool("bash")
    script = place.cove("completion", "bash")
    equal((script.code, script.err), (0, b""))
    write(place.dir / "c.bash", script.out)

    def complete(*words):
        line = f"set -eu; . {place.dir}/c.bash; COMP_WORDS=({' '.join(words)}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); " \
               f"_cove cove '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(["bash", "--norc", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place.env)
        equal(done.stderr, b"", words)
        return done.stdout.decode().split()

    assert "run" in complete("cove", "ru") and complete("cove", "ru") == ["run"]
    assert {"--timeout", "--image", "--read"} <= set(complete("cove", "run", "--")), complete("cove", "run", "--")
    equal(complete("cove", "run", "--seccomp", "s"), ["strict"])
    equal(sorted(complete("cove", "completion", "''")), ["bash", "fish", "zsh"])


@test
def zsh_takes_the_completion_script(place):
    tool("zsh")
    write(place.dir / "_cove", place.cove("completion", "zsh").out)
    done = subprocess.run(["zsh", "-f", "-c", f"zsh -n {place.dir}/_cove && fpath=({place.dir} $fpath) && autoload -U compinit && "
                           f"compinit -u -D -d {place.dir}/dump && echo ${{_comps[cove]}}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place.env)
    equal((done.returncode, done.stderr, done.stdout), (0, b"", b"_cove\n"))


@test
def fish_takes_the_completion_script(place):
    tool("fish")
    write(place.dir / "cove.fish", place.cove("completion", "fish").out)
    done = subprocess.run(["fish", "--no-config", "-c", f"source {place.dir}/cove.fish; complete -C 'cove ru'; complete -C 'cove run --seccomp '"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=place.env)
    equal((done.returncode, done.stderr), (0, b""))
    assert b"run" in done.stdout and b"strict" in done.stdout, done


@test
def another_shell_is_one_error(place):
    one_error(place.cove("completion", "csh"), "csh", "bash")
    one_error(place.cove("completion"), "bash")


@test
def man_pages_build(place):
    tool("scdoc")
    names = [None, *(name for name in place.cove("docs", "commands").text.split())]
    for name in names:
        source = place.cove("docs", "man", *([name] if name else []))
        equal((source.code, source.err), (0, b""), name)
        done = subprocess.run(["scdoc"], input=source.out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal((done.returncode, done.stderr), (0, b""), name)
        assert b".TH" in done.stdout
    done = subprocess.run(["scdoc"], input=place.cove("docs", "man-policy").out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal((done.returncode, done.stderr), (0, b""))
    if shutil.which("man"):
        page = write(place.dir / "cove-policy.5", done.stdout)
        shown = subprocess.run(["man", "--warnings", "-l", page], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**place.env, "MANWIDTH": "80"})
        equal((shown.returncode, shown.stderr), (0, b""))


@test
def man_and_reference_name_every_option(place):
    reference, man = place.cove("docs", "reference").text, place.cove("docs", "man", "run").text
    for option in options(place, "run"):
        assert f"--{option}" in reference, f"--{option} is not in the reference"
        assert f"--{option}" in man.replace("\\", ""), f"--{option} is not in the man page"


@test
def the_documents_in_the_tree_are_up_to_date(place):
    stored = ROOT / "docs/reference.md"
    if not stored.exists():
        skip("docs/reference.md is not here")
    generated = place.cove("docs", "reference").text
    assert stored.read_text() == generated, "docs/reference.md is not what `cove docs reference` writes; run tools/gen-docs"


@test
def every_spec_option_of_run_is_an_option_of_policy_show(place):
    for option in ("timeout", "read", "hide", "image", "policy"):
        assert option in options(place, "policy"), option


if __name__ == "__main__":
    adopt_orphans()
    main()
