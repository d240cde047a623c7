"""Sandboxes that are kept: what stays after cove run, and cove ls, show, rm, prune."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, PATIENCE, equal, main, test  # noqa: E402
from support.running import (adopt_orphans, descendants, digest, finish, nothing_left, on_terminal, one_error, read_until, start,  # noqa: E402
                             stop, tool, wait_for, write)


def keep(place, script, *options, **kwargs):
    """cove run, without --rm."""
    return place.cove("run", *options, "--", "sh", "-c", script, **kwargs)


def settled(place):
    """Waits until no guard is at work any more."""
    wait_for(lambda: not descendants(), what="the end of all guards")


def sandboxes(place):
    settled(place)
    folder = place.state / "sandboxes"
    return sorted(folder.iterdir()) if folder.exists() else []


def records(place):
    done = place.cove("ls", "--json")
    equal((done.code, done.err), (0, b""), done)
    return json.loads(done.out)


def the_record(place):
    found = records(place)
    equal(len(found), 1, found)
    return found[0]


def commit(place):
    """The workspace as a repository, with a commit of what is in it."""
    tool("git")
    for words in (("init", "-q", "."), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty")):
        subprocess.run(["git", *words], cwd=place.work, env=place.env, check=True)

# What stays


@test
def a_run_that_changed_something_is_kept_with_its_layers(place):
    write(place.work / "file", "old\n")
    before = digest(place.work)
    done = keep(place, "echo new >file; mkdir made; exit 3")
    equal((done.code, done.out, done.err), (3, b"", b""))
    (folder,) = sandboxes(place)
    record = json.loads((folder / "record.json").read_bytes())
    equal(sorted(p.name for p in folder.iterdir() if p.name[0] != "u"), ["record.json", "spec.json"], "no work directories")
    equal((folder / "record.json").stat().st_mode & 0o7777, 0o600)
    equal((record["format"], record["state"], record["exit_code"], record["reason"]), (2, "stopped", 3, "exited"))
    equal((record["id"], record["workspace"], record["cwd"]), (folder.name, str(place.work), str(place.work)))
    equal((record["workspace_device"], record["workspace_inode"]), (str(place.work.stat().st_dev), str(place.work.stat().st_ino)))
    equal(record["argv"], ["sh", "-c", "echo new >file; mkdir made; exit 3"])
    equal((record["name"], record["labels"], record["image"], len(record["spec_hash"])), (None, {}, "host", 64))
    assert record["created"] <= record["ended"] and record["ended"].endswith("Z"), record
    (layer,) = [layer for layer in record["layers"] if layer["why"] == "workspace"]
    equal((layer["source"], layer["target"], layer["hide"]), (str(place.work), str(place.work), []))
    equal((folder / f"u{layer['layer']}" / "file").read_text(), "new\n")
    equal(record["shifted"], os.geteuid() == 0)
    equal(digest(place.work), before, "the host's own files")


@test
def the_record_is_canonical(place):
    keep(place, "touch a")
    (folder,) = sandboxes(place)
    text = (folder / "record.json").read_text()
    equal(text, json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")


@test
def a_run_that_changed_nothing_removes_itself(place):
    write(place.work / "d/file", "old\n")
    for script in ("true", "exit 5", "cat d/file", "echo x >d/gone; rm d/gone", "touch /tmp/x; mkdir ~/y",
                   "echo x >gone; rm gone; ls -R"):
        keep(place, script)
        nothing_left(place)


@test
def every_kind_of_change_is_kept(place):
    write(place.work / "d/file", "old\n")
    write(place.work / "d/sub/x", "x")
    for script in ("rm d/file", "rm -r d", "echo x >d/file", "ln -s / link", "mkfifo pipe", "mkdir empty", "chmod 600 d/file", "chmod 700 d/sub",
                   "rm -r d/sub; mkdir d/sub", "touch -d 2001-01-01 d/file", "mv d/file d/other"):
        done = keep(place, script)
        equal((done.code, done.err), (0, b""), script)
        assert the_record(place)["changed"], script
        equal(place.cove("rm", the_record(place)["id"]).code, 0, script)
        nothing_left(place)


@test
def with_rm_nothing_stays_and_no_record_is_written(place):
    process = start(place, "run", "--rm", "--name", "gone", "--", "sh", "-c", "echo x >file; echo here; sleep 60")
    try:
        read_until(process.stdout, b"here")
        (folder,) = (place.state / "sandboxes").iterdir()
        assert not (folder / "record.json").exists()
        equal(records(place), [])
    finally:
        stop(process)
    nothing_left(place)


@test
def a_run_that_did_not_start_leaves_nothing(place):
    equal(place.cove("run", "--", "there-is-no-such-program").code, 127)
    nothing_left(place)


@test
def a_change_in_the_repository_of_a_linked_worktree_is_kept(place):
    write(place.work / "file", "x")
    commit(place)
    linked = place.dir / "linked"
    subprocess.run(["git", "worktree", "add", "-q", str(linked)], cwd=place.work, env=place.env, check=True, stderr=subprocess.DEVNULL)
    done = keep(place, "git rev-parse HEAD >/dev/null && git tag made", cwd=linked)
    equal((done.code, done.err), (0, b""), done)
    record = the_record(place)
    equal((record["workspace"], record["changed"]), (str(linked), True))
    assert "git" in [layer["why"] for layer in record["layers"]], record


@test
def a_change_of_a_granted_directory_is_kept(place):
    write(place.dir / "data/one", "x")
    for option in (("--write", place.dir / "data"), ("-v", f"{place.dir}/data:/data")):
        keep(place, "true", *option)
        nothing_left(place)
        keep(place, "rm /data/one || rm ../data/one", *option)
        equal(the_record(place)["changed"], True)
        place.cove("rm", the_record(place)["id"])


@test
def hidden_paths_stand_in_the_record(place):
    write(place.work / ".env", "secret")
    keep(place, "test ! -e .env && touch a", "--hide", ".env")
    (layer,) = [layer for layer in the_record(place)["layers"] if layer["why"] == "workspace"]
    equal(layer["hide"], [".env"])


@test
def a_summary_and_a_report_say_that_it_was_kept(place):
    file = place.dir / "report.json"
    done = keep(place, "touch a", "--summary", "--report", file)
    report, record = json.loads(file.read_bytes()), the_record(place)
    equal((report["kept"], report["id"]), (True, record["id"]))
    equal(report["next"], [f"cove {command} {record['id']}" for command in ("diff", "apply", "rm")])
    assert f"cove diff {record['id'][:12]}" in done.errors and f"cove rm {record['id'][:12]}" in done.errors, done
    for command in report["next"]:
        equal(place.cove(*command.split()[1:], *(["--yes"] if " apply " in command else [])).code, 0, command)
    done = keep(place, "touch b", "--name", "called", "--summary")
    assert ": cove diff called, cove apply called, cove rm called\n" in done.errors, done
    done = keep(place, "true", "--summary", "--report", file)
    equal(json.loads(file.read_bytes())["kept"], False)
    assert "cove rm" not in done.errors and "none" in done.errors, done
    done = place.run("touch", "a", options=("--summary", "--report", file))
    equal(json.loads(file.read_bytes())["kept"], False)
    assert "discarded" in done.errors, done


@test
def a_list_says_when_all_of_it_was_applied(place):
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    keep(place, "echo a >a; echo b >b; git -c user.name=a -c user.email=a commit -q --allow-empty -m x", "--name", "s1")
    settled(place)

    def said():
        return place.cove("ls").text.splitlines()[1].split()[4]

    equal(said(), "yes")
    for words, then in ((("a", "--dry-run"), "yes"), (("a",), "yes"), (("--no-commits",), "yes"), ((), "applied")):
        equal(place.cove("apply", "--yes", *words).code, 0)
        equal(said(), then, words)
    record = the_record(place)
    assert record["applied"] and record["changed"] and "applied" in place.cove("show").text, record
    keep(place, "echo c >c", "--name", "s2")
    settled(place)
    equal(said(), "yes", "of the newest")


# Ends that nobody planned

@test
def a_running_sandbox_is_listed_and_not_removed(place):
    process = start(place, "run", "--name", "busy", "--", "sh", "-c", "echo x >file; echo here; read x; exit 4", stdin=subprocess.PIPE)
    try:
        read_until(process.stdout, b"here")
        record = the_record(place)
        equal((record["state"], record["keeper"], record["exit_code"], record["ended"]), ("running", process.pid, None, None))
        equal(record["keeper_started"], int(open(f"/proc/{process.pid}/stat").read().rpartition(")")[2].split()[19]))
        for words in (("rm", "busy"), ("rm", "-f", "busy")):
            one_error(place.cove(*words), "is running", str(process.pid))
        equal(place.cove("prune", "--older", "none").code, 0)
        equal(the_record(place)["state"], "running", "it is not pruned either")
        process.stdin.write(b"\n")
        process.stdin.flush()
        equal(finish(process).code, 4)
    finally:
        stop(process)
    equal((the_record(place)["state"], the_record(place)["exit_code"]), ("stopped", 4))
    equal(place.cove("rm", "busy").code, 0)
    nothing_left(place)


def kill(place, script, guard_too=False):
    """A run without --rm whose keeper is killed once `script` said "here", with its guard or without."""
    process = start(place, "run", "--", "sh", "-c", script)
    try:
        read_until(process.stdout, b"here")
        guard = wait_for(lambda: [pid for pid in descendants(process.pid) if open(f"/proc/{pid}/comm").read() == "cove-guard\n"], what="the guard")
        if guard_too:
            os.kill(guard[0], signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
    finally:
        stop(process)
    if guard_too:  # as long as it dies, it holds the sandbox
        wait_for(lambda: guard[0] not in descendants(), what="the end of the guard")


@test
def a_killed_keeper_leaves_a_sandbox_that_says_so(place):
    kill(place, "echo x >file; echo here; sleep 60")
    (folder,) = sandboxes(place)
    record = json.loads((folder / "record.json").read_bytes())
    equal((record["state"], record["exit_code"], record["reason"]), ("killed", None, None))
    assert record["ended"], record
    equal(sorted(p.name for p in folder.iterdir() if p.name[0] != "u"), ["record.json", "spec.json"])
    equal(the_record(place)["state"], "killed")
    keep(place, "true")
    settled(place)
    equal(the_record(place)["state"], "killed", "no later run sweeps it")


@test
def a_killed_keeper_of_a_run_that_changed_nothing_leaves_nothing(place):
    kill(place, "echo here; sleep 60")
    nothing_left(place)


@test
def with_keeper_and_guard_dead_the_next_run_finishes_the_record(place):
    kill(place, "echo x >file; echo here; sleep 60", guard_too=True)
    (folder,) = sandboxes(place)
    equal(json.loads((folder / "record.json").read_bytes())["state"], "running", "nobody was there to change it")
    equal(the_record(place)["state"], "killed", "but nobody holds its lock")
    place.sh("true")
    equal(sandboxes(place), [folder])
    equal(json.loads((folder / "record.json").read_bytes())["state"], "killed")
    equal(sorted(p.name for p in folder.iterdir() if p.name[0] != "u"), ["record.json", "spec.json"])
    equal(place.cove("rm", folder.name).code, 0)
    nothing_left(place)


@test
def with_keeper_and_guard_dead_and_nothing_changed_the_next_run_removes_it(place):
    kill(place, "echo here; sleep 60", guard_too=True)
    equal(len(sandboxes(place)), 1)
    place.sh("true")
    nothing_left(place)


@test
def a_kept_sandbox_without_its_guard_can_be_removed(place):
    kill(place, "echo x >file; echo here; sleep 60", guard_too=True)
    done = place.cove("rm", the_record(place)["id"])
    equal(done.code, 0, done)
    nothing_left(place)


@test
def a_time_out_and_a_signal_are_kept_as_the_reason(place):
    equal(keep(place, "touch a; sleep 600", "--timeout", f"{300 * PATIENCE}ms").code, 124)
    equal((the_record(place)["exit_code"], the_record(place)["reason"]), (124, "timed-out"))
    place.cove("rm", the_record(place)["id"])
    equal(keep(place, "touch a; kill -9 $$").code, 137)
    equal((the_record(place)["exit_code"], the_record(place)["reason"]), (137, "signaled"))


@test
def a_directory_without_a_record_is_swept_and_one_with_any_is_not(place):
    folder = place.state / "sandboxes"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (place.state, folder):
        path.chmod(0o700)
    (folder / ("d" * 20)).mkdir(mode=0o700)
    write(folder / ("b" * 20) / "record.json", "{")
    place.sh("true")
    settled(place)
    equal([p.name for p in sandboxes(place)], ["b" * 20])


@test
def what_a_hostile_command_leaves_can_be_listed_and_removed(place):
    script = """mkfifo pipe; ln -s / root; ln -s . loop; mkdir closed; touch closed/x; chmod 0 closed
                i=0; d=deep; while [ $i -lt 200 ]; do d=$d/x; i=$((i+1)); done; mkdir -p $d
                python3 -c 'import os; os.mkdir(b"\\x1b[2Jname\\n"); os.symlink(b"/" * 4000, "long")' || :"""
    keep(place, script)
    assert the_record(place)["changed"]
    equal(place.cove("show").code, 0)
    equal(place.cove("prune", "--older", "none", "--dry-run").code, 0)
    equal(place.cove("rm", the_record(place)["id"][:12]).code, 0)
    nothing_left(place)


# Names

@test
def a_sandbox_is_named_by_its_name_or_the_beginning_of_its_id(place):
    keep(place, "touch a", "--name", "first")
    identity = the_record(place)["id"]
    for word in ("first", identity, identity[:12], identity[:3]):
        done = place.cove("show", word, "--json")
        equal((done.code, json.loads(done.out)["id"]), (0, identity), word)
    for word in (identity[:2], ""):
        assert place.cove("show", word).code != 0
    one_error(place.cove("show", "zzz9"), "zzz9", "cove ls")


@test
def an_ambiguous_beginning_is_one_error_with_the_candidates(place):
    keep(place, "touch a")
    (folder,) = sandboxes(place)
    record = json.loads((folder / "record.json").read_bytes())
    record["id"] = folder.name[:5] + ("a" if folder.name[5] != "a" else "b") * 15
    write(folder.parent / record["id"] / "record.json", json.dumps(record))
    done = place.cove("show", folder.name[:4])
    one_error(done, folder.name[:12], record["id"][:12])
    equal(place.cove("show", folder.name[:6]).code, 0)


@test
def a_name_is_unique_and_has_a_form(place):
    keep(place, "touch a", "--name", "fix")
    one_error(place.cove("create", "--name", "fix"), "fix", "cove rm fix")
    running = start(place, "run", "--name", "busy", "--", "sh", "-c", "touch a; echo there; read x", stdin=subprocess.PIPE)
    read_until(running.stdout, b"there\n")
    one_error(keep(place, "touch a", "--name", "busy"), "still runs")
    running.stdin.close()
    running.wait()
    settled(place)
    equal(len(records(place)), 2)
    place.cove("rm", "busy")
    for name in ("", "Fix", "-x", ".x", "a/b", "a b", "x" * 64, "é"):
        one_error(keep(place, "touch a", "--name", name), "--name")
    place.cove("rm", "fix")
    equal(keep(place, "touch a", "--name", "fix").code, 0)
    equal(the_record(place)["name"], "fix")


@test
def a_run_goes_on_in_a_sandbox_that_is_there(place):
    write(place.work / "file", "old\n")
    equal(keep(place, "echo one >>log; echo h >~/h; echo t >/tmp/t; exit 3", "--name", "on", "-e", "KEPT=yes").code, 3)
    (before,) = sandboxes(place)
    done = keep(place, "echo two >>log; cat log ~/h /tmp/t; echo $KEPT", "--name", "on")
    equal((done.code, done.text), (0, "one\ntwo\nh\nt\nyes\n"), done)
    done = keep(place, "cat log; cat file; exit 4", "--continue")
    equal((done.code, done.text), (4, "one\ntwo\nold\n"), "the last one of this work tree")
    equal(sandboxes(place), [before], "the same one")
    record = the_record(place)
    equal((record["name"], record["exit_code"], record["argv"][2]), ("on", 4, "cat log; cat file; exit 4"))
    assert b"+one\n+two\n" in place.cove("diff").out
    one_error(keep(place, "true", "--continue", "--name", "nobody"), "nobody")
    one_error(keep(place, "true", "--continue", "--read", "/nowhere"), "/nowhere")
    equal(keep(place, "cat log", "--continue").text, "one\ntwo\n", "a start that failed took nothing")
    running = start(place, "run", "--continue", "--", "sh", "-c", "echo there; sleep 100")
    read_until(running.stdout, b"there\n")
    running.kill()
    finish(running)
    settled(place)
    equal(the_record(place)["state"], "killed")
    equal(keep(place, "cat log", "--continue").text, "one\ntwo\n", "nor did one that was killed")
    equal(place.cove("run", "--continue", "--rm", "--", "true").code, 0)
    equal(sandboxes(place), [], "with --rm it goes")


@test(id="Z-19")
def of_many_that_want_one_name_one_gets_it(place):
    processes = [start(place, "run", "--name", "one", "--", "sh", "-c", "touch a; sleep 0.3") for _ in range(6)]
    equal(sorted(finish(process).code for process in processes), [0] + [125] * 5)
    settled(place)
    equal([record["name"] for record in records(place)], ["one"])


@test
def labels_are_kept_and_wrong_ones_refused(place):
    keep(place, "touch a", "--label", "task=7", "--label", "agent", "--label", "task=8")
    equal(the_record(place)["labels"], {"task": "8", "agent": ""})
    for label in ("", "=x", "a b=c"):
        one_error(keep(place, "touch a", "--label", label), "--label")


@test
def without_a_word_the_last_sandbox_of_the_work_tree_is_meant(place):
    other = place.dir / "other"
    other.mkdir()
    (place.work / "sub").mkdir()
    commit(place)
    one_error(place.cove("show"), str(place.work), "cove ls")
    keep(place, "touch a", "--name", "first")
    keep(place, "touch a", "--name", "second")
    keep(place, "touch a", "--name", "elsewhere", cwd=other)
    for cwd, name in ((place.work, "second"), (place.work / "sub", "second"), (other, "elsewhere")):
        equal(json.loads(place.cove("show", "--json", cwd=cwd).out)["name"], name, cwd)
    one_error(place.cove("show", cwd=place.home), "home directory")


# Lists

@test
def nothing_is_listed_where_nothing_is_and_nothing_is_made(place):
    subprocess.run(["rm", "-rf", place.state], check=True)
    equal(place.cove("ls").text.split(), ["ID", "NAME", "STATE", "AGE", "CHANGES", "WORKSPACE", "COMMAND"])
    equal(place.cove("ls", "-q").out, b"")
    equal(place.cove("ls", "--json").out, b"[]\n")
    equal(place.cove("prune").code, 0)
    assert not place.state.exists()


@test
def a_list_is_a_table_ids_or_json(place):
    keep(place, "touch a", "--name", "old")
    keep(place, "touch b")
    by_name = {record["name"]: record["id"] for record in records(place)}
    head, *rows = place.cove("ls").text.splitlines()
    equal([row.split()[:3] for row in rows], [[by_name[None][:12], "-", "stopped"], [by_name["old"][:12], "old", "stopped"]])
    equal(rows[0].split()[4:6], ["yes", str(place.work)])
    assert rows[0].endswith("sh -c 'touch b'"), rows
    equal(rows[0].index("stopped"), head.index("STATE"))
    equal(place.cove("ls", "-q").text.split(), [by_name[None], by_name["old"]])


@test
def what_only_sandboxes_that_stay_can_do_is_refused_with_a_way(place):
    keep(place, "touch a", "--name", "ended")
    keep(place, "touch b")
    (ident,) = [record["id"] for record in records(place) if not record["name"]]
    settled(place)
    for words in (("exec", "ended", "--", "true"), ("shell", "ended"), ("attach", "ended"), ("pause", "ended"), ("cp", "ended:a", "./a"), ("start", "ended")):
        one_error(place.cove(*words), "was made by `cove run`", "cove run --name ended -- COMMAND")
    equal(place.cove("run", "--name", "ended", "--", "cat", "a").code, 0, "what is advised")
    assert "--name" not in one_error(place.cove("start", ident), "cove run --continue"), "it has none"
    for words in (("fork", "ended"), ("snapshot", "ended"), ("undo", "ended"), ("rollback", "ended", "1")):
        one_error(place.cove(*words), "was made by `cove run`", "`cove create`")


@test
def on_a_terminal_a_list_is_as_wide_as_that(place):
    keep(place, "touch a; : " + "x" * 100, "--name", "wide")
    home = {"HOME": str(place.work.parent)}
    code, out = on_terminal(place, "ls", env=home, columns=80)
    rows = out.decode().replace("\r", "").splitlines()
    equal((code, max(map(len, rows)) <= 80, rows[1].endswith("..."), f" ~/{place.work.name} " in rows[1]), (0, True, True, True), f"{rows}")
    assert f" {place.work} " in place.cove("ls", env=home).text, "whole where nobody looks"


@test
def nothing_from_a_record_moves_a_cursor(place):
    place.cove("run", "--label", "a=\x1b[2J", "--", "sh", "-c", "touch a", "\x1b]0;owned\x07", "\u202eevil")
    for words in (("ls",), ("show",), ("show", "--json"), ("ls", "--json"), ("prune", "--dry-run", "--older", "none")):
        out = place.cove(*words).out
        assert b"\x1b" not in out and b"\x07" not in out, words
    for words in (("ls",), ("show",)):
        assert "\u202e" not in place.cove(*words).text, words


@test(id="Z-20")
def a_broken_record_is_told_and_the_others_are_listed(place):
    keep(place, "touch a", "--name", "good")
    folder = place.state / "sandboxes"
    good = json.loads(place.cove("show", "good", "--json").out)["id"]
    cases = {"b": "{", "c": '{"format":1}', "d": "[]", "e": '{"format":2}', "f": " " * (2 << 20), "g": '{"format":"\\u001b[2J"}'}
    for letter, text in cases.items():
        write(place.dir / letter / "record.json", text)
        (place.dir / letter).rename(folder / (letter * 20))  # whole: a guard that still sweeps takes empty ones away
    done = place.cove("ls")
    equal(done.code, 0)
    assert b"\x1b" not in done.out + done.err, done
    equal(len(done.errors.splitlines()), len(cases), "one line each")
    equal([row.split()[2] for row in done.text.splitlines()[1:]], ["stopped"] + ["broken"] * len(cases))
    equal({record["id"]: record["state"] for record in json.loads(place.cove("ls", "--json").out)},
          {good: "stopped", **{letter * 20: "broken" for letter in cases}})
    equal(place.cove("show", "ccc").code, 0)
    assert "format" in place.cove("show", "ccc").text
    equal(place.cove("prune", "--older", "none").code, 0)
    equal(len(records(place)), len(cases), "a broken one is not pruned")
    equal(place.cove("rm", *(letter * 20 for letter in cases)).code, 0)
    nothing_left(place)


# Removing

@test
def rm_removes_all_that_are_named_and_says_which_were_not_there(place):
    for name in ("a", "b", "c"):
        keep(place, "touch x", "--name", f"the-{name}")
    done = place.cove("rm", "the-a", "nosuch", "the-b")
    equal((done.code, len(done.text.split()), len(done.errors.splitlines())), (125, 2, 1))
    equal([record["name"] for record in records(place)], ["the-c"])
    equal(place.cove("rm", "-f", "nosuch").code, 0)
    equal(place.cove("rm", "the-c", "the-c").code, 125, "the second time it is not there")
    one_error(place.cove("rm"), "cove rm ID")
    nothing_left(place)


@test
def rm_right_after_the_run_waits_for_its_guard(place):
    for _ in range(5):
        keep(place, "touch x", "--name", "quick")
        done = place.cove("rm", "quick")
        equal((done.code, done.err), (0, b""), done)
    nothing_left(place)


def age(place, name, days):
    """Makes a sandbox older than it is."""
    identity = json.loads(place.cove("show", name, "--json").out)["id"]
    file = place.state / "sandboxes" / identity / "record.json"
    record = json.loads(file.read_bytes())
    for key in ("created", "ended"):
        record[key] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - days * 86400))
    file.write_text(json.dumps(record))


@test
def prune_removes_what_is_old_and_says_how_much(place):
    for name, label in (("young", "task=1"), ("old", "task=1"), ("older", "task=2")):
        keep(place, "head -c 200000 /dev/zero >big", "--name", name, "--label", label)
    age(place, "old", 10)
    age(place, "older", 40)
    done = place.cove("prune", "--dry-run")
    assert "old" in done.text and "young" not in done.text and "would remove 2 sandboxes" in done.text and "KiB" in done.text, done
    equal(len(records(place)), 3)
    done = place.cove("prune", "--older", "30d")
    assert "removed 1 sandbox," in done.text and "older" in done.text, done
    equal(place.cove("prune", "--older", "none", "--label", "task=2").text, "removed 0 sandboxes, 0 B\n")
    equal(place.cove("prune", "--older", "1h", "--label", "task").code, 0)
    equal([record["name"] for record in records(place)], ["young"])
    one_error(place.cove("prune", "--older", "soon"), "--older")
    one_error(place.cove("prune", "young"), "cove rm")
    equal(place.cove("prune", "--older=none").code, 0)
    nothing_left(place)


@test(identities=("root",))
def what_is_mounted_below_a_dead_sandbox_is_not_removed_with_it(place):
    keep(place, "true")
    settled(place)
    precious = place.dir / "precious"
    (precious / "folder").mkdir(parents=True)
    (precious / "folder/file").write_text("mine")
    names = ("a" * 20, "b" * 20, "c" * 20)  # mounted in it; mounted on it; nothing is mounted
    for name in names:
        (place.state / "sandboxes" / name / "t0").mkdir(mode=0o700, parents=True)
    script = """cd "$COVE_HOME/sandboxes" && mount --bind "$1" aaaaaaaaaaaaaaaaaaaa/t0 && mount --bind "$1" bbbbbbbbbbbbbbbbbbbb &&
                cd "$2" && exec "$3" run --rm -- true"""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", precious, place.work, COVE], env=place.env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(done.returncode, 0, repr(done))
    settled(place)
    assert not (place.state / "sandboxes" / names[2]).exists(), "the sweep has been there"
    equal((precious / "folder/file").read_text(), "mine", "what is mounted in it or on it")


@test
def its_record_goes_to_the_disk_when_it_is_over_or_has_run_for_a_while(place):
    tool("strace")

    def traced(*words):
        calls = place.dir / f"calls-{len(list(place.dir.iterdir()))}"
        return calls, subprocess.Popen(["strace", "-f", "-y", "-qq", "-o", calls, "-e", "trace=sync_file_range", COVE, *words], cwd=place.work, env=place.env,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def synced(*words):
        began = time.monotonic()
        calls, process = traced(*words)
        process.communicate()
        return calls.read_text().count("/record.json>,"), time.monotonic() - began

    equal(synced("run", "--rm", "--", "sh", "-c", "echo 1 >f")[0], 0, "nothing is kept")
    times, seconds = synced("run", "--", "sh", "-c", "echo 1 >f")
    assert times == 1 or (times == 2 and seconds > 0.3), f"{times} times in {seconds:.2f} s"
    calls, process = traced("create")  # whose guard goes on, and so does who traces it
    ident = process.stdout.readline().decode().strip()
    try:
        wait_for(lambda: all(f"/{name}>," in calls.read_text() for name in ("record.json", "spec.json")), seconds=20, what="the record")
    finally:
        place.cove("rm", "-f", "--all")
        finish(process)
    nothing_left(place)


adopt_orphans()
main()
