"""Package registries: the real clients install from the real ones, with no variable set by anybody; mirrors that are configured work by themselves.

Which hosts these are is asked of the tools when the test runs.  Here they may lead to a mirror of this machine's network, at an address that is
not public: so they stand in the user's own configuration, as those of a company's mirror would."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.land import Land, paths  # noqa: E402
from support.running import write  # noqa: E402

# Inside a user namespace that has not the host's root, nobody can tell whose the system's files are: they are not believed.
BELIEVE_THE_SYSTEM = ("root", "user")


def ask(*words, **env):
    """What a tool says by itself, where nobody has configured anything."""
    if not shutil.which(words[0], path="/usr/local/bin:/usr/bin:/bin"):
        skip(f"{words[0]} is not installed; tools/setup check installs it")
    done = subprocess.run(words, cwd="/", env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", **env}, capture_output=True, text=True)
    return done.stdout.strip()


def reached(url):
    try:
        urllib.request.urlopen(url, timeout=20).close()
    except urllib.error.HTTPError:
        pass  # somebody answers
    except OSError as error:
        skip(f"a registry is not reached from here: {error}")
    return url


def npm(place):
    registry = reached(ask("npm", "config", "get", "registry", npm_config_userconfig="/dev/null"))
    write(place.home / ".npmrc", f"registry={registry}\n", 0o600)
    write(place.work / "package.json", '{"name": "app", "version": "1.0.0", "private": true}')
    return "npm install --no-audit --no-fund --no-update-notifier qs && node -p 'require(\"qs\").stringify({a: 1})'", "a=1"


def pip(place):
    index = reached(ask("python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"))
    write(place.home / ".config/pip/pip.conf", f"[global]\nindex-url = {index}\n", 0o600)
    return "python3 -m pip install --no-cache-dir --target lib six && PYTHONPATH=lib python3 -c 'import six; print(\"six\", six.__version__)'", "six 1."


def go(place):
    proxy, sums = ask("go", "env", "GOPROXY"), ask("go", "env", "GOSUMDB")
    reached(proxy.split(",")[0])
    write(place.home / ".config/go/env", f"GOPROXY={proxy}\nGOSUMDB={sums}\n", 0o600)
    write(place.work / "go.mod", "module x\n\ngo 1.17\n\nrequire golang.org/x/xerrors v0.0.0-20220907171357-04be3eba64a2\n")
    return "go mod download && ls ~/go/pkg/mod/golang.org/x", "xerrors@"


def cargo(place):
    program = shutil.which("cargo", path="/usr/local/bin:/usr/bin:/bin")
    found = re.search(rb"sparse\+(https://[a-z0-9.-]+/)", pathlib.Path(program).read_bytes()) if program else None
    if not found:
        skip("cargo is not installed; tools/setup check installs it")
    index = reached(found.group(1).decode())
    write(place.home / ".cargo/config.toml", f'[registries.own]\nindex = "sparse+{index}"\n', 0o600)
    write(place.work / "Cargo.toml", '[package]\nname = "c"\nversion = "0.1.0"\n[dependencies]\nitoa = { version = "1", registry = "own" }\n')
    write(place.work / "src/lib.rs", "")
    # Debian 12's cargo has that protocol, and wants to be asked for it.
    return "RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true cargo fetch && ls ~/.cargo/registry/src/*", "itoa-1"


def apt(place):
    """As it is on an image: its own lists of sources, here those of the host."""
    lists = [path for path in pathlib.Path("/etc/apt").glob("**/*") if path.parent.name in ("apt", "sources.list.d") and path.suffix in (".list", ".sources") and path.stat().st_size]
    if not lists or not shutil.which("apt-get"):
        skip("apt has no sources here")
    for path in lists:
        write(place.work / "apt/sources" / path.name, path.read_text())
    reached(re.search(r"https?://[^\s#]+", "\n".join(line for path in lists for line in path.read_text().splitlines() if not line.startswith("#"))).group())
    for path in ("apt/lists/partial", "apt/cache/archives/partial"):
        (place.work / path).mkdir(parents=True)
    return ("apt-get -o Dir::State=$PWD/apt -o Dir::State::lists=$PWD/apt/lists -o Dir::State::status=/dev/null -o Dir::Cache=$PWD/apt/cache -o Dir::Etc::sourcelist=/dev/null"
            " -o Dir::Etc::sourceparts=$PWD/apt/sources -o APT::Sandbox::User= -o Acquire::Languages=none update && ls apt/lists", "Packages")


def installs(place, tool, prepare):
    script, sign = prepare(place)
    done = place.sh(script, options=("--registry", tool), timeout=300)
    assert done.code == 0 and sign in done.text, done
    done = place.sh(script + "; cat /run/cove/refused", timeout=300)
    assert sign not in done.text and "no rule allows" in done.text, done
    assert f"to allow it: cove run --registry {tool}" in done.text, done
    done = place.sh("curl -sS https://elsewhere.example.org/", options=("--registry", tool))
    assert "no rule allows elsewhere.example.org at port 443" in done.text and "cove allow elsewhere.example.org" in done.text, done


@test
def npm_installs_from_its_registry(place):
    installs(place, "npm", npm)


@test(identities=BELIEVE_THE_SYSTEM)
def pip_installs_from_its_index(place):
    installs(place, "pip", pip)


@test
def go_downloads_modules_from_its_proxy(place):
    installs(place, "go", go)


@test
def cargo_fetches_from_its_index(place):
    installs(place, "cargo", cargo)


@test(identities=BELIEVE_THE_SYSTEM)
def apt_updates_from_its_sources(place):
    script, sign = apt(place)
    done = place.sh(script, options=("--registry", "apt"), timeout=300)
    if done.code != 0 and "only a rule with that address opens it" in done.errors + done.text:
        skip("the sources of apt lead to an address of this network, and are nobody's own configuration")
    assert done.code == 0 and sign in done.text, done
    done = place.sh(script + "; cat /run/cove/refused", timeout=300)
    assert sign not in done.text and "no rule allows" in done.text, done


# Mirrors

ZONE = {"mirror.corp.test": ["10.7.7.7"], "other.corp.test": ["10.7.7.7"], "meta.corp.test": ["169.254.169.254"], "self.corp.test": ["127.0.0.1"]}


def network(place, zone=ZONE):
    land = Land(place, zone)
    land.run("ip", "route", "add", "local", "10.7.0.0/16", "dev", "lo", "src", "127.0.0.1")
    land.run("ip", "route", "add", "local", "169.254.0.0/16", "dev", "lo")
    for address in ("10.7.7.7", "169.254.169.254", "127.0.0.1"):
        land.serve("http", address, 4873)
    return land


@test
def a_mirror_at_a_private_address_works_by_itself_and_is_recorded(place):
    write(place.home / ".npmrc", "registry=http://me:hidden@mirror.corp.test:4873/npm/\n//mirror.corp.test:4873/npm/:_authToken=hidden\n", 0o600)
    report = place.dir / "report.json"
    with network(place) as land:
        done = land.sh("curl -sS $npm_config_registry; npm config get registry; env", options=("--registry", "npm", "--report", report))
        equal(paths(done), ["/npm/"], done)
        if shutil.which("npm"):
            assert "\nhttp://mirror.corp.test:4873/npm/\n" in done.text, done
        assert "hidden" not in done.text, done
        assert f"registry npm of {place.home}/.npmrc allows mirror.corp.test at port 4873" in report.read_text(), report.read_text()
        done = land.sh("curl -sS $npm_config_registry", options=("--registry", "npm", "-e", "npm_config_registry=http://other.corp.test:4873/"))
        assert "no rule allows other.corp.test" in done.text and done.visits == [], done


@test
def only_the_mirror_that_is_configured_may_be_private(place):
    """The control arm is the test before: the same address and port, by the name that is configured."""
    write(place.home / ".npmrc", "registry=http://mirror.corp.test:4873/\n", 0o600)
    write(place.work / ".npmrc", "registry=http://other.corp.test:4873/\n")
    with network(place) as land:
        done = land.sh("curl -sS http://other.corp.test:4873/; curl -sS http://mirror.corp.test/; curl -sS http://10.7.7.7:4873/", options=("--registry", "npm"))
        equal(done.visits, [], done)
        done = land.sh("curl -sS http://mirror.corp.test:4873/", options=("--allow", "mirror.corp.test:4873"))
        assert "leads to 10.7.7.7" in done.text and done.visits == [], done
        for host in ("meta.corp.test", "self.corp.test"):
            write(place.home / ".npmrc", f"registry=http://{host}:4873/\n", 0o600)
            done = land.sh("curl -sS $npm_config_registry", options=("--registry", "npm"))
            assert f"{host} leads to " in done.text and done.visits == [], done


@test(identities=("root",))  # a land of an ordinary user is such a namespace, too
def what_a_tool_has_of_itself_stays_public(place):
    registry = ask("npm", "config", "get", "registry", npm_config_userconfig="/dev/null")
    host = registry.split("//")[1].split("/")[0]
    with Land(place, {host: ["10.7.7.7"]}) as land:
        land.run("ip", "route", "add", "local", "10.7.0.0/16", "dev", "lo", "src", "127.0.0.1")
        land.serve("http", "10.7.7.7", 443)
        done = land.sh(f"curl -sS {registry}; cat /run/cove/refused", options=("--registry", "npm"))
        assert f"{host} leads to 10.7.7.7" in done.text and done.visits == [], done


# Who obeys

GET = """
public class Get { public static void main(String[] a) throws Exception {
  var c = (java.net.HttpURLConnection) new java.net.URL(a[0]).openConnection();
  System.out.println(c.getResponseCode() + " " + c.getResponseMessage());
  var in = c.getErrorStream() != null ? c.getErrorStream() : c.getInputStream();
  System.out.println(new String(in.readAllBytes())); } }
"""
GO = """
package main
import ("fmt"; "io"; "net/http"; "os")
func main() { r, e := http.Get(os.Args[1]); if e != nil { fmt.Println(e); return }; b, _ := io.ReadAll(r.Body); fmt.Println(r.Status, string(b)) }
"""
# A client, and how it is asked for the body of a URL.
CLIENTS = {
    "curl": "curl -sS {}", "wget": "wget -nv -O - {}", "python3": "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"{}\").read())'",
    "node": "NODE_EXTRA_CA_CERTS=/etc/cove-ca/bundle.crt node -e 'fetch(\"{}\").then(async r => console.log(r.status, r.statusText, await r.text()))'", "git": "git ls-remote {}x.git",
    "java": "java Get.java {}", "go": "GOCACHE=/tmp/gocache GO111MODULE=off go run get.go {}",
}


@test
def every_client_obeys_and_an_allowed_https_server_is_reached(place):
    write(place.work / "Get.java", GET)
    write(place.work / "get.go", GO)
    clients = {name: line for name, line in CLIENTS.items() if shutil.which(name, path=place.env["PATH"])}
    with Land(place, {"web.example.org": ["11.1.1.1"], "closed.example.org": ["11.1.1.2"]}) as land:
        land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
        land.serve("tls", "11.1.1.2", 443, "closed.example.org", believed=True)
        for name, line in clients.items():
            done = land.sh(line.format("https://web.example.org/") + " 2>&1", options=("--allow", "web.example.org"), timeout=120)
            assert [visit for visit in done.visits if visit[0] == "request"], (name, done)
            assert name == "git" or "hello from web.example.org" in done.text, (name, done)
            done = land.sh(line.format("https://closed.example.org/") + " 2>&1; cat /run/cove/refused", options=("--allow", "web.example.org"), timeout=120)
            equal((done.visits, done.packets, done.names), ([], 0, []), (name, done))
            assert done.text.count("no rule allows closed.example.org at port 443") >= 2, (name, done)  # by the client, and in the file


if __name__ == "__main__":
    os.umask(0o022)
    main()
