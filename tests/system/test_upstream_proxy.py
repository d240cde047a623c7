"""The host's own proxy: allowed hosts are reached by it, and nothing else is."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.land import Land  # noqa: E402
from support.running import wait_for  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"], "own.example.org": ["11.1.1.2"], "proxy.example.org": ["10.9.9.9"]}
ALLOW = ("--allow", "*.example.org")


class Proxied:
    """A land with mitmproxy's tunnels at 10.9.9.9:3128, for who knows the password, and servers."""

    def __init__(self, place, *options):
        if not shutil.which("mitmdump"):
            skip("mitmdump is not installed")
        self.place, self.land = place, Land(place, ZONE)
        self.land.run("ip", "route", "add", "local", "10.0.0.0/8", "dev", "lo")
        self.land.serve("http", "11.1.1.1", 80)
        self.land.serve("http", "11.1.1.2", 80)
        self.land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
        self.land.serve("echo", "11.1.1.1", 2222)
        self.log = place.dir / "proxy.log"
        self.land.start("sh", "-c", f"PYTHONUNBUFFERED=1 exec mitmdump --set confdir={place.dir}/mitm --listen-host 10.9.9.9 --listen-port 3128 --ignore-hosts . "
                        f"{' '.join(options)} >{self.log} 2>&1")
        wait_for(lambda: self.land.run("python3", "-c", "import socket; socket.create_connection(('10.9.9.9', 3128), 1)").code == 0, 60, "the proxy")

    def connects(self):
        return self.log.read_text().count(": server connect ")

    def __enter__(self):
        return self.land

    def __exit__(self, *_):
        self.land.__exit__()


PROXY = "http://proxy.example.org:3128"


@test
def allowed_hosts_are_reached_by_the_proxy_that_the_owner_s_environment_names(place):
    proxied = Proxied(place)
    with proxied as land:
        env = {"HTTPS_PROXY": PROXY, "NO_PROXY": "own.example.org"}
        ask = "curl -sS http://web.example.org/ https://web.example.org/ http://own.example.org/"
        done = land.sh(ask, options=[*ALLOW, "--upstream-proxy", "environment"], env=env)
        equal(done.text, "hello from web.example.org\nhello from web.example.org\nhello from own.example.org\n", done)
        equal(proxied.connects(), 2, proxied.log.read_text())
        done = land.sh(ask, options=ALLOW, env=env)
        equal(done.text.count("hello"), 3, done)
        equal(proxied.connects(), 2, "without network.upstream-proxy the variables mean nothing")


@test
def the_gateway_looks_inside_as_ever(place):
    (place.dir / "p.yaml").write_text(f"network: {{ upstream-proxy: '{PROXY}', rules: [{{ host: web.example.org, methods: GET }}, 'web.example.org:2222'] }}\n")
    proxied = Proxied(place)
    with proxied as land:
        done = land.sh("curl -sS https://web.example.org/; curl -sS -d x https://web.example.org/; curl -sS http://own.example.org/; "
                       "python3 -c \"import socket; print(socket.create_connection(('web.example.org', 2222)).recv(99))\"", options=("--policy", str(place.dir / "p.yaml")))
        assert "hello from web.example.org" in done.text and "but not POST /" in done.text and "no rule allows own.example.org" in done.text and "220 hello" in done.text, done
        equal(proxied.connects(), 2, proxied.log.read_text())


@test
def a_proxy_that_wants_a_password_gets_the_one_of_the_url(place):
    proxied = Proxied(place, "--proxyauth", "me:s3@cret")
    with proxied as land:
        done = land.sh("curl -sS http://web.example.org/", options=[*ALLOW, "--upstream-proxy", "http://me:s3%40cret@proxy.example.org:3128"])
        equal(done.text, "hello from web.example.org\n", done)
        done = land.sh("curl -sSi http://web.example.org/", options=[*ALLOW, "--upstream-proxy", PROXY])
        assert "502 Not reached" in done.text and "the proxy of this machine answers with 407" in done.text, done


@test
def a_proxy_that_is_not_there_is_not_gone_around(place):
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        done = land.sh("curl -sSi http://web.example.org/", options=[*ALLOW, "--upstream-proxy", "http://127.0.0.1:3128"])
        assert "502 Not reached" in done.text and "the proxy of this machine does not answer" in done.text, done
        equal(done.visits, [], done)


@test
def a_repository_neither_names_a_proxy_nor_takes_the_owner_s_away(place):
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        for options in (ALLOW, [*ALLOW, "--upstream-proxy", "http://127.0.0.1:3128"]):
            for said in ("http://127.0.0.1:3128", "http://127.0.0.1:3129", "none"):
                (place.work / "cove.yaml").write_text(f"policy: {{ network: {{ upstream-proxy: '{said}' }} }}\n")
                done = land.sh("curl -sS http://web.example.org/", options=options)
                assert done.code == 125 and "cannot be said here" in done.errors and not done.visits, done


@test
def a_proxy_that_cannot_be_used_is_no_start(place):
    """Nothing goes around it."""
    with Land(place, ZONE) as land:
        land.serve("http", "11.1.1.1", 80)
        for said, env in (("http://me:word@127.0.0.1:99999", {}), ("environment", {"HTTPS_PROXY": "https://127.0.0.1:3128"}), ("environment", {"HTTPS_PROXY": "nonsense"})):
            done = land.sh("curl -sS http://web.example.org/", options=[*ALLOW, "--upstream-proxy", said], env=env)
            assert done.code == 125 and "network.upstream-proxy: the proxy " in done.errors and "word" not in done.errors and not done.visits, done
            equal(land.box("true", options=["--network", "none", "--upstream-proxy", said], env=env).code, 0, "who reaches nobody needs none")


if __name__ == "__main__":
    main()
