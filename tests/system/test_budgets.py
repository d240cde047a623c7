"""Bounds on what a sandbox uses of the network: of all, and of what a rule allows."""
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, equal, main, test  # noqa: E402
from support.land import Land  # noqa: E402
from support.running import gateways, wait_for  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"]}
CODES = "for i in $(seq %d); do curl -s -o /dev/null -w '%%{http_code} ' %s; done"


def web(place):
    land = Land(place, ZONE)
    land.serve("http", "11.1.1.1", 80)
    land.serve("http", "11.1.1.2", 80)
    land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
    return land


def policy(place, text):
    (place.dir / "budget.yaml").write_text(text)
    return "--policy", str(place.dir / "budget.yaml")


def rules(place, *rows):
    return policy(place, "network:\n  rules:\n" + "".join(f"    - {row}\n" for row in rows))


def requests_of(done):
    return [visit for visit in done.visits if visit[0] == "request"]


@test
def requests_are_counted_and_the_next_one_is_told_so(place):
    report = place.dir / "report.json"
    with web(place) as land:
        done = land.sh(CODES % (5, "http://web.example.org/") + "; curl -sS http://web.example.org/; cat /run/cove/refused",
                       options=[*policy(place, "network: { rules: [web.example.org], budget: { requests: 3 } }"), "--summary", "--report", str(report)])
        assert done.text.startswith("200 200 200 403 403 "), done
        assert "Cove refused this request: the budget of 3 requests is spent (network.budget.requests)." in done.text, done
        assert "web.example.org port 80 (http): the budget of 3 requests is spent" in done.text, done
        equal(len(requests_of(done)), 3, done)
        assert "the network's budget of 3 requests is spent" in done.errors, done
        network = json.loads(report.read_text())["network"]
        equal(network["budget"], {"requests": {"max": 3, "spent": 3}}, network)
        equal(sorted((row["verdict"], row["reason"], row["count"]) for row in network["requests"]), [("allow", "rule", 3), ("deny", "budget", 3)], network)


@test
def connections_are_counted_and_kept_ones_are_not(place):
    with web(place) as land:
        done = land.sh("curl -s -w '%{http_code} ' -o /dev/null http://web.example.org/a -o /dev/null http://web.example.org/b;" + CODES % (2, "http://web.example.org/"),
                       options=["--allow", "web.example.org", "--network-connections", "2"])
        equal(done.text, "200 200 200 403 ", done)


@test
def no_byte_passes_beyond_the_budget(place):
    report = place.dir / "report.json"
    with web(place) as land:
        done = land.sh("curl -s -o part http://web.example.org/big/3000000; echo $?; stat -c %s part; curl -s http://web.example.org/",
                       options=["--allow", "web.example.org", "--network-bytes", "1M", "--report", str(report), "--summary"])
        code, size, rest = done.text.split("\n", 2)
        assert code in ("18", "56") and int(size) < 1 << 20, done
        assert "the budget of 1M bytes is spent (network.budget.bytes)" in rest, done
        assert "the network's budget of 1048576 bytes is spent" in done.errors, done
        equal(json.loads(report.read_text())["network"]["budget"], {"bytes": {"max": 1 << 20, "spent": 1 << 20}})


@test
def what_passes_unread_is_counted_as_well(place):
    with web(place) as land:
        done = land.sh("curl -s -o part https://web.example.org/big/3000000; echo $?; stat -c %s part; curl -s https://web.example.org/",
                       options=["--allow", "web.example.org", "--network-bytes", "1M"])
        code, size, rest = done.text.split("\n", 2)
        assert code in ("18", "56") and int(size) < 1 << 20, done
        assert "Cove refused this request: the budget of 1M bytes is spent" in rest, done


@test
def an_upload_ends_where_the_budget_does(place):
    with web(place) as land:
        done = land.sh("head -c 3000000 /dev/zero >f; curl -sS -T f http://web.example.org/up; echo; curl -sS -T f http://other.example.org/up",
                       options=[*rules(place, "{ host: web.example.org, bytes: 1M }", "other.example.org")])
        came = {visit[3]: visit[5] for visit in requests_of(done)}
        assert came.pop("web.example.org", 0) < 1 << 20 and came == {"other.example.org": 3000000}, done
        assert "budget.yaml:3 allows 1M bytes to and from web.example.org, and they are spent" in done.text, done


@test
def a_rate_is_told_with_the_time_to_wait(place):
    """A minute, from the first request on, has 5."""
    with web(place) as land:
        for url in ("http://web.example.org/", "https://web.example.org/"):
            done = land.sh(CODES % (12, url) + f"; curl -si --http1.1 {url}", options=rules(place, "{ host: web.example.org, rate: 5/min }"))
            codes = done.text.split("HTTP/1.1")[0].split()
            equal(codes, ["200"] * 5 + ["429"] * 7, done)
            assert "HTTP/1.1 429 Refused by Cove: " in done.text and "allows 5 requests a minute to web.example.org, and there were more" in done.text, done
            wait = [line for line in done.text.splitlines() if line.startswith("Retry-After: ")]
            assert 1 <= int(wait[0].split()[1]) <= 60, done
            equal(len(requests_of(done)), codes.count("200"), done)


@test
def a_gateway_that_is_killed_takes_no_count_along(place):
    script = "curl -s -o /dev/null -w '%{http_code}\\n' http://web.example.org/big/600000"
    options = [*policy(place, "network: { rules: [{ host: web.example.org, bytes: 2M }], budget: { requests: 3 } }"), "--name", "b"]
    with web(place) as land:
        equal(land.cove("create", *options).code, 0)
        try:
            codes = []
            for _ in range(4):
                done = land.cove("exec", "b", "--", "sh", "-c", script + "|| true")
                codes += done.text.split()
                killed = gateways(place)
                equal(len(killed), 1, "gateways")
                os.kill(killed[0], signal.SIGKILL)
            equal(codes, ["200", "200", "200", "403"], "answers, with another gateway for each")
        finally:
            land.cove("rm", "-f", "b")


def killed_in_a_transfer(place, land, keeper_rests):
    """What came, by the client inside, and what was counted, by the report.  The transfer is endless, as a kill between two
    would be noticed by nobody."""
    report, sizes, now = place.dir / "report.json", place.work / "sizes", place.work / "now"
    report.unlink(missing_ok=True), now.unlink(missing_ok=True)
    script = "(sleep 1; touch now) & curl -s -o /dev/null -w '%{size_download}\\n' http://web.example.org/endless >sizes"
    land.start(COVE, "run", "--rm", "--workspace", "rw", "--allow", "web.example.org", "--network-bytes", "1T", "--report", str(report), "--", "sh", "-c", script)
    wait_for(now.exists, 60, "the transfer")
    (gateway,) = gateways(place)
    keeper = int(pathlib.Path(f"/proc/{gateway}/stat").read_text().rpartition(")")[2].split()[1])
    if keeper_rests:
        os.kill(keeper, signal.SIGSTOP)
        time.sleep(1)
    os.kill(gateway, signal.SIGKILL)
    os.kill(keeper, signal.SIGCONT)
    wait_for(lambda: report.exists() and report.read_text().endswith("}\n"), 60, "the end")
    return int(sizes.read_text()), json.loads(report.read_text())["network"]["budget"]["bytes"]["spent"]


@test
def a_gateway_that_is_killed_in_a_transfer_takes_nearly_no_byte_along(place):
    with web(place) as land:
        for keeper_rests in (False, True):  # then nothing passes of which it will not know
            came, spent = killed_in_a_transfer(place, land, keeper_rests)
            assert came > 1 << 20, came
            assert came - spent <= 1 << 17, (keeper_rests, came, spent, came - spent)


@test
def a_gateway_that_is_killed_leaves_nothing_of_a_rate(place):
    options = [*rules(place, "{ host: web.example.org, rate: 3/min }", "other.example.org"), "--name", "r"]
    ask = CODES % (2, "http://web.example.org/") + ";" + CODES % (1, "http://other.example.org/")
    with web(place) as land:
        equal(land.cove("create", *options).code, 0)
        try:
            before = land.cove("exec", "r", "--", "sh", "-c", ask).text.split()
            os.kill(gateways(place)[0], signal.SIGKILL)
            after = land.cove("exec", "r", "--", "sh", "-c", f"until curl -s http://other.example.org/; do :; done >/dev/null; {ask}").text.split()
            equal((before, after), (["200"] * 3, ["429", "429", "200"]), "answers before and after")
            land.cove("policy", "set", *options[:2], "r")  # which ends it too, and is no death
            equal(land.cove("exec", "r", "--", "sh", "-c", ask).text.split(), ["200"] * 3)
        finally:
            land.cove("rm", "-f", "r")


if __name__ == "__main__":
    main()
