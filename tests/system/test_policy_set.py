"""`cove policy set`: other rules for the network of a sandbox that runs."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, equal, main, test  # noqa: E402
from support.land import Land, policy  # noqa: E402
from support.running import adopt_orphans, wait_for  # noqa: E402

adopt_orphans()
GET = ("curl", "-sS", "-m", "20")


class Sandbox:
    def __init__(self, place, *options):
        self.place, self.land = place, Land(place, {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]})
        self.land.serve("http", "11.1.1.1", 80)
        self.land.serve("http", "11.1.1.2", 80)
        self.ident = self.cove("create", *options).text.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.land.cove("rm", "-f", self.ident)
        self.land.__exit__()

    def cove(self, *words):
        done = self.land.cove(*words)
        equal(done.code, 0, done)
        return done

    def set_at(self, where, *options):
        """From there, as somebody who types it."""
        done = self.land.run("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", where, COVE, "policy", "set", *options, self.ident)
        equal(done.code, 0, done)

    def set(self, *options):
        return self.cove("policy", "set", *options, self.ident)

    def get(self, url):
        """Whether it was answered by the server."""
        done = self.land.cove("exec", self.ident, "--", *GET, url)
        if "To allow it" in done.text:
            assert f" && cove policy set {self.ident[:12]}\n" in done.text, done
        assert ("Cove refused" in done.text) != bool(done.visits), done
        return bool(done.visits)


@test
def what_is_allowed_follows_at_once_and_after_a_start(place):
    with Sandbox(place) as box:
        urls = ("http://web.example.org/", "http://other.example.org/")
        equal([box.get(url) for url in urls], [False, False])
        said = box.set("--allow", "web.example.org")
        equal(said.text, f"{box.ident[:12]}: 1 rule; its connections were cut\n")
        equal([box.get(url) for url in urls], [True, False])
        box.set(*policy(place, "{ host: other.example.org, methods: [POST] }"))
        equal([box.get(url) for url in urls], [False, False])
        box.set("--allow", "other.example.org")
        box.cove("stop", box.ident)
        box.cove("start", box.ident)
        equal([box.get(url) for url in urls], [False, True])
        box.set("--network", "none")
        equal([box.get(url) for url in urls], [False, False])
        # And it is what the owner's policy says by now, if nothing else is said.
        box.cove("allow", "web.example.org")
        equal([box.get(url) for url in urls], [False, False])
        box.set()
        equal([box.get(url) for url in urls], [True, False])


@test
def the_owner_s_files_are_those_where_it_is_typed_and_not_those_of_the_work_tree(place):
    """There a program inside may have put something of the same name."""
    mocked = "network: { rules: [web.example.org, { host: other.example.org, action: mock, mock: { file: body } }] }\n"
    here = place.dir / "here"
    here.mkdir()
    for where, rules, body in ((here, mocked, "from here"), (place.work, "network: { rules: [other.example.org] }\n", "from there")):
        (where / "rules.yaml").write_text(rules)
        (where / "body").write_text(body)
    with Sandbox(place) as box:
        box.set_at(here, "--policy", "rules.yaml")
        equal(box.get("http://web.example.org/"), True)
        done = box.land.cove("exec", box.ident, "--", *GET, "http://other.example.org/")
        equal((done.text, done.visits), ("from here", []), done)
        (place.work / "cove.yaml").write_text("policy: { network: { rules: [] } }\n")
        box.set_at(here, "--policy", "rules.yaml")
        equal(box.get("http://web.example.org/"), False)  # and the repository of the sandbox has its say


@test
def who_is_connected_is_cut_off(place):
    with Sandbox(place, "--allow", "web.example.org") as box:
        box.cove("exec", "-d", box.ident, "--", "sh", "-c", "curl -sS http://web.example.org/slow >/dev/null; echo $? >ended")
        wait_for(lambda: [visit for visit in box.land.seen() if visit[0] == "request"], 20, "the request")
        box.set("--allow", "other.example.org")
        ended = wait_for(lambda: box.land.cove("exec", box.ident, "--", "cat", "ended").text.strip(), 10, "the end of the connection")
        assert ended != "0", ended
        equal((box.get("http://web.example.org/"), box.get("http://other.example.org/")), (False, True))


@test
def each_change_is_written_down_in_the_chain(place):
    with Sandbox(place) as box:
        box.set("--allow", "web.example.org")
        box.set("--network-bytes", "1M", "--network-requests", "7", "--upstream-proxy", "http://me:s3cret@11.1.1.2:3128")
        box.set("--network", "none")
        lines = [json.loads(line) for line in (place.state / "sandboxes" / box.ident / "trace.jsonl").read_text().splitlines()]
        equal([line["data"] for line in lines if line["kind"] == "policy"], [{"mode": "rules", "rules": ["web.example.org"]},
              {"mode": "rules", "rules": [], "budget": {"bytes": 1 << 20, "requests": 7}, "proxy": "11.1.1.2 port 3128"}, {"mode": "none", "rules": []}])
        equal(box.cove("steps", box.ident).code, 0)


@test
def what_cannot_be_done_changes_nothing(place):
    with Sandbox(place, "--allow", "web.example.org") as box:
        for words, why in ((("--host-service", "5432", box.ident), "cannot be given a way to 127.0.0.1 5432"), (("--network", "open", box.ident), "every address"),
                           (("--allow", "a..b", box.ident), "a..b"), ((), "say which sandbox"), (("nosuch",), "no sandbox 'nosuch'")):
            done = box.land.cove("policy", "set", *words)
            assert done.code in (1, 125) and why in done.errors and len(done.errors.splitlines()) == 1, done
        equal((box.get("http://web.example.org/"), box.get("http://other.example.org/")), (True, False))
        box.cove("stop", box.ident)
        done = box.land.cove("policy", "set", box.ident)
        assert done.code == 125 and "does not run" in done.errors, done


main()
