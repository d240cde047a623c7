"""State of sandboxes that stay which is not what was written: truncated, emptied, zeroed, overwritten."""
import contextlib
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, test  # noqa: E402
from support.running import adopt_orphans, digest, one_error, wait_for  # noqa: E402
from support.staying import execute, staying  # noqa: E402

CHANCE = random.Random(5)
WAYS = {"empty": lambda old: b"", "half": lambda old: old[: len(old) // 2], "zeroed": lambda old: bytes(len(old)),
        "random": lambda old: CHANCE.randbytes(len(old)), "others": lambda old: b"{}\n", "word": lambda old: b"null\n",
        "deep": lambda old: b"[" * 100000}


@contextlib.contextmanager
def damaged(path, way):
    """The file is another one for a moment."""
    old = path.read_bytes()
    path.write_bytes(WAYS[way](old))
    try:
        yield
    finally:
        path.write_bytes(old)


def failed(done, what):
    """One clear line; 1: it is not there."""
    assert done.code in (1, 125), f"{what}: {done!r}"
    one_error(done, code=done.code)


def free(place):
    """The guard is done with it."""
    wait_for(lambda: not [path for name in ("control", "trust/t", "trust/trusted", "w0") for path in (place.state / "sandboxes").glob(f"*/{name}")], what="its end")


@test
def what_it_is_must_be_what_was_written(place):
    with staying(place, "--memory", "200M") as ident:
        execute(place, ident, "echo kept >f")
        place.cove("snapshot", ident, "--name", "snap")
        place.cove("stop", ident)
        for path, words in ((place.state / "sandboxes" / ident / "spec.json", [("start", ident), ("fork", ident)]),
                            (place.state / "snapshots/snap/spec.json", [("fork", "snap")])):
            for way in WAYS:
                with damaged(path, way):
                    for command in words:
                        one_error(place.cove(*command), "spec.json")
            path.rename(place.dir / "aside")
            for command in words:
                one_error(place.cove(*command), "spec.json")
            (place.dir / "aside").rename(path)
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat f").text, "kept\n")
        place.cove("snapshot", "rm", "snap")


@test
def a_record_that_cannot_be_read_is_one_error_and_touches_nothing(place):
    with staying(place) as ident:
        execute(place, ident, "echo kept >f")
        place.cove("stop", ident)
        free(place)
        folder = place.state / "sandboxes" / ident
        before = digest(folder)
        for way in WAYS:
            with damaged(folder / "record.json", way):
                for command in (("start", ident), ("exec", ident, "--", "true"), ("fork", ident), ("rollback", ident, "0"), ("diff", ident)):
                    failed(place.cove(*command), way)
                equal(place.cove("ls").code, 0, way)
                with staying_beside(place) as other:  # whose guard sweeps
                    equal(execute(place, other, "echo fine").text, "fine\n")
                assert (folder / "record.json").exists() and list(folder.glob("u0")), f"{way}: a sweep has taken it"
        free(place)
        assert digest(folder / "u0") and before
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat f").text, "kept\n")


@contextlib.contextmanager
def staying_beside(place):
    done = place.cove("create")
    equal(done.code, 0, done)
    try:
        yield done.text.strip()
    finally:
        place.cove("rm", "-f", done.text.strip())


@test
def a_record_of_steps_that_is_damaged_is_said_and_the_files_are_there(place):
    with staying(place) as ident:
        for n in range(3):
            execute(place, ident, f"echo {n} >f")
        place.cove("stop", ident)
        free(place)
        trace = place.state / "sandboxes" / ident / "trace.jsonl"
        for way in WAYS:
            with damaged(trace, way):
                place.cove("steps", ident)
                assert place.cove("verify", ident).code != 0 or way in ("empty",), way
                done = place.cove("start", ident)
                if done.code:
                    one_error(done)
                else:
                    equal(execute(place, ident, "cat f").text, "2\n", way)
                    place.cove("stop", ident)
                    free(place)
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat f").text, "2\n")


@test
def a_layer_that_is_damaged_or_gone_is_one_error(place):
    with staying(place) as ident:
        for n in range(3):
            execute(place, ident, f"echo {n} >f")
        place.cove("stop", ident)
        free(place)
        folder = place.state / "sandboxes" / ident
        top = (folder / "stack").readlink()
        layer = place.state / "layers" / top
        for way in WAYS:
            with damaged(layer / "layer.json", way):
                for command in (("start", ident), ("fork", ident), ("tree", ident)):
                    done = place.cove(*command)
                    assert done.code in (0, 125), done
                    if done.code:
                        one_error(done)
                    elif command[0] == "start":
                        raise AssertionError(f"{way}: it starts without its layer")
        for text in ("", "x", "../../../etc", "aaaaaaaaaaaaaaaaaaaa", "/etc"):
            (folder / "stack").unlink()
            if text:
                (folder / "stack").symlink_to(text)
            else:
                (folder / "stack").write_bytes(b"")
            done = place.cove("start", ident)
            failed(done, text)
            (folder / "stack").unlink()
            (folder / "stack").symlink_to(top)
        layer.rename(layer.with_name("aside"))
        failed(place.cove("start", ident), "no layer")
        layer.with_name("aside").rename(layer)
        equal(place.cove("start", ident).code, 0)
        equal(execute(place, ident, "cat f").text, "2\n")


adopt_orphans()
main()
