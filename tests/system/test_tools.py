#!/usr/bin/python3
"""The tools that people and agents work with, inside: compilers, interpreters, package managers
without a network, debuggers, a browser.  Each test does a small piece of the tool's real work and
looks at what it made, not only at its exit code."""
import functools
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import textwrap
import threading
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402

GIT = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A",
       "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_CONFIG_NOSYSTEM": "1"}


def need(*programs, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
    for program in programs:
        if not shutil.which(program, path=path):
            skip(f"{program} is not installed; tools/setup check installs it")


def put(place, files):
    """Writes files into the workspace, without the indentation they have here."""
    for name, content in files.items():
        path = place.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content).lstrip("\n"))


def inside(place, script, timeout=180, options=(), **kwargs):
    """The script's standard output; it must succeed."""
    done = place.run("sh", "-euc", script, timeout=timeout, options=options, **kwargs)
    assert done.code == 0, done
    return done.text.strip()


def outside(place, *command, env=None, cwd=None):
    """The same user's ordinary command, not in a sandbox."""
    done = subprocess.run(command, cwd=cwd or place.work, env=dict(place.env, **(env or {})), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    assert done.returncode == 0, done.stdout.decode(errors="replace")
    return done.stdout.decode(errors="replace").strip()


class Served:
    """A directory on a loopback port of this machine, so that caches can be warmed without a network."""

    def __init__(self, directory):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(directory)))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()


HELLO_C = r"""
    #include <pthread.h>
    #include <stdio.h>
    static void *add(void *to) { for (int i = 0; i < 1000; i++) __atomic_add_fetch((int *)to, 1, __ATOMIC_SEQ_CST); return NULL; }
    int main(void)
    {
        pthread_t threads[8];
        int sum = 0;
        for (int i = 0; i < 8; i++) if (pthread_create(&threads[i], NULL, add, &sum)) return 1;
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
        printf("sum %d\n", sum);
        return sum != 8000;
    }
"""


# --- C ---------------------------------------------------------------------------------------

@test
def gcc_compiles_and_its_program_runs(place):
    need("gcc")
    put(place, {"a.c": HELLO_C})
    equal(inside(place, "gcc -O2 -Wall -pthread -o a a.c && ./a && gcc -static -pthread -o b a.c && ./b"), "sum 8000\nsum 8000")
    assert not (place.work / "a").exists(), "what was compiled inside is on the host"


@test
def gcc_compiles_cplusplus_and_sanitized_programs(place):
    need("g++")
    put(place, {"a.cc": r"""
        #include <filesystem>
        #include <future>
        #include <iostream>
        int main() { auto f = std::async(std::launch::async, [] { return 42; }); std::cout << f.get() << std::filesystem::exists("a.cc") << "\n"; }
    """, "leak.c": """
        #include <stdlib.h>
        int main(void) { volatile char *p = malloc(10); p[0] = 1; p = NULL; return 0; }
    """})
    equal(inside(place, "g++ -std=c++17 -pthread -o a a.cc && ./a"), "421")
    text = inside(place, "gcc -g -fsanitize=address -o leak leak.c && { ./leak 2>&1 || true; }")
    assert "LeakSanitizer: detected memory leaks" in text, text


@test
def make_builds_in_parallel_and_knows_what_is_up_to_date(place):
    need("make", "gcc")
    for i in range(8):
        put(place, {f"f{i}.c": f"int f{i}(void) {{ return {i}; }}\n"})
    put(place, {"main.c": "".join(f"int f{i}(void);\n" for i in range(8)) + f"int main(void) {{ return {'+'.join(f'f{i}()' for i in range(8))}; }}\n",
                "Makefile": "all: $(patsubst %.c,%.o,$(wildcard *.c))\n\tgcc -o all $^\n"})
    text = inside(place, "make -j4 >/dev/null; ./all || echo $?; make -q all || echo stale; touch f3.c; make -q all || echo stale")
    equal(text, "28\nstale")


@test
def time_zone_locale_and_iconv_are_there(place):
    need("iconv", "locale")
    equal(inside(place, "TZ=Europe/Paris date -d 2024-07-01T12:00Z +%H; printf 'gr\\374n' | iconv -f latin1 -t utf8; echo; locale charmap"), "14\ngrün\nUTF-8")


# --- Python ----------------------------------------------------------------------------------

PYTHON = r"""
    import asyncio, concurrent.futures, ctypes, json, multiprocessing, os, socket, sqlite3, ssl, subprocess, tempfile, threading
    from multiprocessing import shared_memory

    def square(n):
        return n * n

    async def echo():
        async def serve(reader, writer):
            writer.write(await reader.read(100)); await writer.drain(); writer.close()
        seen = []
        for host in ("127.0.0.1", "::1"):
            server = await asyncio.start_server(serve, host, 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            writer.write(b"hello"); seen.append((await reader.read(100)).decode()); writer.close(); server.close()
        process = await asyncio.create_subprocess_exec("echo", "child", stdout=subprocess.PIPE)
        seen.append((await process.communicate())[0].decode().strip())
        return seen

    def main():
        out = {}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            out["threads"] = sum(pool.map(square, range(100)))
        with multiprocessing.Pool(4) as pool:
            out["pool"] = sum(pool.map(square, range(100)))
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            out["spawn"] = sum(pool.map(square, range(10)))
        lock, queue = multiprocessing.Lock(), multiprocessing.Queue()
        child = multiprocessing.Process(target=queue.put, args=("queued",)); child.start(); out["queue"] = queue.get(timeout=20); child.join()
        block = shared_memory.SharedMemory(create=True, size=1 << 20); block.buf[:3] = b"shm"; out["shm"] = bytes(block.buf[:3]).decode(); block.close(); block.unlink()
        out["asyncio"] = asyncio.run(echo())
        base = sqlite3.connect("x.db"); base.execute("pragma journal_mode=wal"); base.execute("create table t(a)")
        base.executemany("insert into t values(?)", [(i,) for i in range(1000)]); base.commit()
        out["sqlite"] = base.execute("select sum(a) from t").fetchone()[0]
        a, b = socket.socketpair(); a.send(b"x"); out["pair"] = b.recv(1).decode()
        unix = socket.socket(socket.AF_UNIX); unix.bind("sock"); unix.listen(); client = socket.socket(socket.AF_UNIX); client.connect("sock"); out["unix"] = True
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 0)); udp.sendto(b"u", udp.getsockname()); out["udp"] = udp.recv(9).decode()
        out["name"] = socket.gethostbyname("localhost")
        out["tls"] = bool(ssl.create_default_context().get_ca_certs() or os.path.exists(ssl.get_default_verify_paths().openssl_cafile) or os.path.isdir(ssl.get_default_verify_paths().openssl_capath))
        out["cpus"] = os.cpu_count() > 0 and len(os.sched_getaffinity(0)) > 0
        out["libc"] = ctypes.CDLL(None).getpid() == os.getpid()
        out["tty"] = len(os.openpty())
        with tempfile.TemporaryDirectory() as d: out["tmp"] = os.path.isdir(d)
        print(json.dumps(out, sort_keys=True))

    if __name__ == "__main__":
        main()
"""

PYTHON_SEEN = {"threads": 328350, "pool": 328350, "spawn": 285, "queue": "queued", "shm": "shm", "asyncio": ["hello", "hello", "child"],
               "sqlite": 499500, "pair": "x", "unix": True, "udp": "u", "name": "127.0.0.1", "tls": True, "cpus": True, "libc": True,
               "tty": 2, "tmp": True}


@test
def python_has_threads_processes_asyncio_sqlite_and_loopback(place):
    put(place, {"a.py": PYTHON})
    equal(json.loads(inside(place, "/usr/bin/python3 a.py")), PYTHON_SEEN)


@test
def python_makes_a_virtual_environment_and_pip_installs_without_a_network(place):
    need("pip3")
    put(place, {"pkg/setup.py": "from setuptools import setup\nsetup(name='tiny-thing', version='1.2', py_modules=['tiny_thing'])\n",
                "pkg/tiny_thing.py": "answer = 42\n"})
    text = inside(place, """
        /usr/bin/python3 -m venv --system-site-packages .venv
        .venv/bin/pip --disable-pip-version-check install -q --no-index --no-build-isolation ./pkg
        .venv/bin/python -c 'import tiny_thing, sys; print(tiny_thing.answer, sys.prefix != sys.base_prefix)'
        .venv/bin/pip --disable-pip-version-check list 2>/dev/null | grep tiny
    """)
    assert text.startswith("42 True") and "1.2" in text, text


@test
def python_uses_a_virtual_environment_that_was_made_outside(place):
    need("pip3")
    outside(place, "/usr/bin/python3", "-m", "venv", "--system-site-packages", "--without-pip", ".venv")  # to unpack pip takes ten seconds
    put(place, {".venv/bin/pip": f"#!{place.work}/.venv/bin/python3\nfrom pip._internal.cli.main import main\nmain()\n"})
    (place.work / ".venv/bin/pip").chmod(0o755)
    equal(inside(place, ".venv/bin/python -c 'import sys; print(sys.prefix)'; .venv/bin/pip --version | cut -d' ' -f1"), f"{place.work}/.venv\npip")


@test
def pip_installs_from_the_wheels_it_was_given(place):
    need("pip3")
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("wheely.py", "answer = 7\n")
        archive.writestr("wheely-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: wheely\nVersion: 1.0\n")
        archive.writestr("wheely-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("wheely-1.0.dist-info/RECORD", "wheely.py,,\nwheely-1.0.dist-info/METADATA,,\nwheely-1.0.dist-info/WHEEL,,\nwheely-1.0.dist-info/RECORD,,\n")
    (place.work / "wheels").mkdir()
    (place.work / "wheels/wheely-1.0-py3-none-any.whl").write_bytes(wheel.getvalue())
    equal(inside(place, "/usr/bin/python3 -m pip --disable-pip-version-check install -q --no-index --find-links wheels --target lib wheely && PYTHONPATH=lib /usr/bin/python3 -c 'import wheely; print(wheely.answer)'"), "7")


# --- JavaScript ------------------------------------------------------------------------------

NODE = r"""
    const { Worker, isMainThread, parentPort } = require("worker_threads");
    const http = require("http"), fs = require("fs"), os = require("os"), path = require("path");
    const { execFileSync, fork } = require("child_process");
    if (!isMainThread) { parentPort.on("message", n => { parentPort.postMessage(n * n); process.exit(0); }); }
    else if (process.argv[2] === "child") { process.on("message", m => { process.send(m + "!", () => process.exit(0)); }); }
    else main();

    async function main() {
        const out = {};
        out.workers = (await Promise.all([1, 2, 3, 4].map(n => new Promise((ok, no) => {
            const w = new Worker(__filename); w.on("message", ok); w.on("error", no); w.postMessage(n); })))).join();
        out.http = [];
        for (const host of ["127.0.0.1", "::1"])
            out.http.push(await new Promise((ok, no) => {
                const server = http.createServer((q, a) => a.end("hello " + q.url)).listen(0, host, () =>
                    http.get({ host, port: server.address().port, path: "/x", agent: false }, r => {
                        let body = ""; r.on("data", d => body += d); r.on("end", () => { server.close(); ok(body); }); }).on("error", no)); }));
        out.watch = await new Promise((ok, no) => {
            const w = fs.watch(".", (e, name) => { if (name === "seen") { w.close(); ok(name); } });
            setTimeout(() => fs.writeFileSync("seen", "x"), 50); setTimeout(() => no(new Error("fs.watch saw nothing")), 10000).unref(); });
        out.fork = await new Promise(ok => { const c = fork(__filename, ["child"]); c.on("message", ok); c.send("hi"); });
        out.exec = execFileSync("echo", ["child"]).toString().trim();
        out.crypto = require("crypto").createHash("sha256").update("x").digest("hex").slice(0, 8);
        out.tmp = fs.existsSync(fs.mkdtempSync(path.join(os.tmpdir(), "t-")));
        out.home = os.homedir() === process.env.HOME;
        out.user = os.userInfo().uid === process.getuid();
        out.cpus = os.cpus().length > 0;
        out.interfaces = Object.keys(os.networkInterfaces()).includes("lo");
        out.wasm = WebAssembly.validate(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
        console.log(JSON.stringify(out));
        process.exit(0);
    }
"""

NODE_SEEN = {"workers": "1,4,9,16", "http": ["hello /x", "hello /x"], "watch": "seen", "fork": "hi!", "exec": "child", "crypto": "2d711642",
             "tmp": True, "home": True, "user": True, "cpus": True, "interfaces": True, "wasm": True}


@test
def node_has_workers_loopback_http_and_file_watching(place):
    need("node")
    put(place, {"a.js": NODE})
    equal(json.loads(inside(place, "node a.js")), NODE_SEEN)


def tarball(name, version, **more):
    """A registry package as npm packs them."""
    out = io.BytesIO()
    files = {"package.json": json.dumps({"name": name, "version": version, "main": "index.js", **more}),
             "index.js": f"module.exports = '{name} {version}';\n", "bin.js": f"#!/usr/bin/env node\nconsole.log('{name} ran');\n"}
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(f"package/{path}")
            info.size, info.mode = len(content), 0o755 if path == "bin.js" else 0o644
            archive.addfile(info, io.BytesIO(content.encode()))
    return out.getvalue()


@test
def npm_installs_a_tarball_and_a_directory_without_a_network(place):
    need("npm")
    (place.work / "dep-1.0.0.tgz").write_bytes(tarball("dep", "1.0.0", bin={"dep": "bin.js"}))
    put(place, {"local/package.json": '{"name": "local", "version": "2.0.0", "main": "i.js", "scripts": {"install": "node -e \\"require(\'fs\').writeFileSync(\'built\', \'yes\')\\""}}',
                "local/i.js": "module.exports = 'local ' + require('fs').readFileSync(__dirname + '/built');",
                "package.json": '{"name": "app", "version": "1.0.0", "private": true, "scripts": {"test": "dep && node -e \\"console.log(require(\'dep\'), require(\'local\'))\\""}}'})
    text = inside(place, "npm install --offline --no-audit --no-fund --silent ./dep-1.0.0.tgz file:./local && npm test --silent")
    equal(text, "dep ran\ndep 1.0.0 local yes")


@test
def npm_ci_works_offline_from_the_cache_that_was_filled_outside(place):
    need("npm")
    registry = place.dir / "registry"
    registry.mkdir()
    with Served(registry) as served:
        for name, more in (("leaf", {}), ("stem", {"dependencies": {"leaf": "^1.0.0"}, "bin": {"stem": "bin.js"}})):
            package = tarball(name, "1.0.0", **more)
            (registry / f"{name}-1.0.0.tgz").write_bytes(package)
            (registry / name).write_text(json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
                "name": name, "version": "1.0.0", "main": "index.js", **more,
                "dist": {"tarball": f"{served.url}/{name}-1.0.0.tgz", "shasum": hashlib.sha1(package).hexdigest()}}}}))
        put(place, {"package.json": '{"name": "app", "version": "1.0.0", "private": true, "dependencies": {"stem": "^1.0.0"}}'})
        (place.work / ".npmrc").write_text(f"registry={served.url}/\n")
        outside(place, "npm", "install", "--no-audit", "--no-fund")
    shutil.rmtree(place.work / "node_modules")
    assert (place.home / ".npm/_cacache").is_dir()
    check = "node -e \"console.log(require('stem'), require('leaf'))\"; npx --offline stem"
    equal(inside(place, f"npm ci --offline --no-audit --no-fund --silent; {check}"), "stem 1.0.0 leaf 1.0.0\nstem ran")
    assert not (place.work / "node_modules").exists()


@test
def npm_ci_replaces_the_node_modules_that_the_work_tree_already_has(place):
    need("npm")
    (place.work / "dep-1.0.0.tgz").write_bytes(tarball("dep", "1.0.0", bin={"dep": "bin.js"}))
    (place.work / "dep-2.0.0.tgz").write_bytes(tarball("dep", "2.0.0", bin={"dep": "bin.js"}))
    put(place, {"package.json": '{"name": "app", "version": "1.0.0", "private": true}'})
    outside(place, "npm", "install", "--offline", "--no-audit", "--no-fund", "./dep-1.0.0.tgz")
    text = inside(place, """
        npm ci --offline --no-audit --no-fund --silent; node -p "require('dep')"
        npm install --offline --no-audit --no-fund --silent ./dep-2.0.0.tgz; node -p "require('dep')"
        mv node_modules elsewhere; node -p "require('./elsewhere/dep')"
        rm -rf elsewhere; npm install --offline --no-audit --no-fund --silent; npx --offline dep
    """)
    equal(text, "dep 1.0.0\ndep 2.0.0\ndep 2.0.0\ndep ran")
    equal(json.loads((place.work / "node_modules/dep/package.json").read_text())["version"], "1.0.0", "on the host")


# --- git -------------------------------------------------------------------------------------

@test
def git_does_a_days_work(place):
    need("git")
    text = inside(place, """
        git init -q -b main . && echo one > a && git add a && git commit -qm one
        mkdir d && echo two > d/b && git add . && git commit -qm two && git mv d e && git commit -qm moved
        git checkout -qb side HEAD~1 && echo three > c && git add c && git commit -qm three
        git checkout -q main && git merge -q --no-edit side && git rebase -q HEAD~1 && git stash -q 2>/dev/null || true
        git gc -q --prune=now && git fsck --strict 2>&1
        git worktree add -q ../wt side 2>/dev/null || git worktree add -q wt side
        git clone -q "$PWD" copy && git -C copy log --oneline | wc -l && git clone -q "file://$PWD" copy2 && git -C copy2 status --short
        git tag v1 && git bundle create -q x.bundle --all && git bundle verify -q x.bundle && git status --short | sort && cat e/b c
    """, options=[o for k, v in GIT.items() for o in ("-e", f"{k}={v}")])
    assert text.endswith("two\nthree") and "?? copy/" in text, text
    assert not (place.work / ".git").exists()


@test
def git_works_on_a_repository_of_the_host_without_touching_it(place):
    need("git")
    git = functools.partial(outside, place, env=GIT)
    git("git", "init", "-q", "-b", "main", ".")
    for i in range(50):
        (place.work / f"d{i % 5}").mkdir(exist_ok=True)
        (place.work / f"d{i % 5}/f{i}").write_text(str(i))
    git("git", "add", ".")
    git("git", "commit", "-qm", "all")
    git("git", "gc", "-q")
    before = git("git", "rev-parse", "HEAD")
    text = inside(place, """
        git status --short; mv d0 moved; git mv d3/f3 d3/g3; git mv d3/g3 d3/f3; git rm -qr d1; echo new > d2/f2; git add -A; git commit -qm inside
        git gc -q --prune=now; git fsck; git worktree add -q wt HEAD~1; ls wt | wc -l; git clone -q . copy; git -C copy log --format=%s; git show --stat HEAD | tail -1
    """, options=[o for k, v in GIT.items() for o in ("-e", f"{k}={v}")])
    equal(text, "5\ninside\nall\n 21 files changed, 1 insertion(+), 11 deletions(-)")
    # A directory of the work tree cannot be renamed in place: mv copies, git mv does not.  What was made
    # inside can be renamed.
    done = place.sh("git mv d0 moved")
    assert done.code == 0 or "cross-device" in done.errors, done
    equal(git("git", "rev-parse", "HEAD"), before)
    equal(git("git", "status", "--short"), "")


# --- Java ------------------------------------------------------------------------------------

@test
def java_compiles_and_runs_threads_and_sockets(place):
    need("javac", "java")
    put(place, {"Hello.java": r"""
        import java.io.*; import java.net.*; import java.nio.file.*; import java.util.concurrent.*; import java.util.stream.*;
        public class Hello {
            public static void main(String[] a) throws Exception {
                ExecutorService pool = Executors.newFixedThreadPool(16);
                System.out.println(IntStream.range(0, 100).mapToObj(i -> pool.submit(() -> i * i)).mapToInt(f -> { try { return f.get(); } catch (Exception e) { throw new RuntimeException(e); } }).sum());
                pool.shutdown();
                System.out.println(IntStream.range(0, 100000).parallel().filter(i -> i % 7 == 0).count());
                try (ServerSocket s = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                    new Thread(() -> { try (Socket c = s.accept()) { c.getOutputStream().write("hello\n".getBytes()); } catch (IOException e) { } }).start();
                    try (Socket c = new Socket(InetAddress.getLoopbackAddress(), s.getLocalPort())) { System.out.println(new BufferedReader(new InputStreamReader(c.getInputStream())).readLine()); }
                }
                Path t = Files.createTempFile("x", "y"); Files.writeString(t, "z"); System.out.println(Files.readString(t));
                System.out.println(System.getProperty("user.home").equals(System.getenv("HOME")) + " " + System.getProperty("user.name").equals("?"));
                System.out.println(new ProcessBuilder("echo", "child").start().inputReader().readLine());
            }
        }
    """})
    text = inside(place, "javac Hello.java && java -Xmx256m Hello && jar cf x.jar Hello.class && java -Xmx128m -cp x.jar Hello | head -1")
    lines = text.splitlines()
    equal(lines[:4] + lines[5:], ["328350", "14286", "hello", "z", "child", "328350"])


# --- Rust ------------------------------------------------------------------------------------

CARGO = {"src/main.rs": r"""
    fn main() {
        let t: Vec<_> = (0..8).map(|i| std::thread::spawn(move || i * i)).collect();
        println!("{}", t.into_iter().map(|t| t.join().unwrap()).sum::<i32>());
    }
    #[test] fn adds() { assert_eq!(1 + 1, 2); }
    #[test] fn listens() { let l = std::net::TcpListener::bind("127.0.0.1:0").unwrap(); std::net::TcpStream::connect(l.local_addr().unwrap()).unwrap(); }
""", "Cargo.toml": '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n'}


@test
def cargo_builds_runs_and_tests_a_crate_offline(place):
    need("cargo")
    put(place, CARGO)
    text = inside(place, "cargo run -q --offline; cargo test -q --offline 2>&1 | grep 'test result'; cargo build -q --release --offline; ./target/release/tiny", timeout=300)
    assert text.startswith("140\ntest result: ok. 2 passed") and text.endswith("140"), text


def cargo_registry(place):
    """A registry as cargo knows them: an index in git, and one crate."""
    index, crates = place.dir / "index", place.dir / "crates"
    index.mkdir()
    crates.mkdir()
    crate = io.BytesIO()
    files = {"Cargo.toml": '[package]\nname = "leafcrate"\nversion = "1.0.0"\nedition = "2021"\n', "src/lib.rs": "pub fn answer() -> i32 { 42 }\n"}
    with tarfile.open(fileobj=crate, mode="w:gz") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(f"leafcrate-1.0.0/{path}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
    (crates / "leafcrate-1.0.0.crate").write_bytes(crate.getvalue())
    (index / "le/af").mkdir(parents=True)
    (index / "le/af/leafcrate").write_text(json.dumps({"name": "leafcrate", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
                                                       "cksum": hashlib.sha256(crate.getvalue()).hexdigest()}) + "\n")
    (index / "config.json").write_text(json.dumps({"dl": f"file://{crates}/{{crate}}-{{version}}.crate", "api": None}))
    for command in (["init", "-q", "-b", "master"], ["add", "."], ["commit", "-qm", "index"]):
        outside(place, "git", *command, cwd=index, env=GIT)
    return index


@test
def cargo_builds_offline_with_a_dependency_that_was_downloaded_outside(place):
    need("cargo", "git")
    index = cargo_registry(place)
    put(place, {"src/main.rs": 'fn main() { println!("{}", leafcrate::answer()); }\n',
                "Cargo.toml": CARGO["Cargo.toml"] + '\n[dependencies]\nleafcrate = "1"\n'})
    (place.home / ".cargo").mkdir()
    (place.home / ".cargo/config.toml").write_text(f'[source.crates-io]\nreplace-with = "mine"\n[source.mine]\nregistry = "file://{index}"\n')
    outside(place, "cargo", "fetch", "-q")
    shutil.rmtree(index)
    shutil.rmtree(place.dir / "crates")
    equal(inside(place, "cargo run -q --offline", timeout=300), "42")


# --- Go --------------------------------------------------------------------------------------

@test
def go_builds_and_tests(place):
    need("go")
    put(place, {"go.mod": "module example.com/tiny\n\ngo 1.19\n", "main.go": r"""
        package main

        import (
            "fmt"
            "io"
            "net"
            "os/user"
            "sync"
        )

        func Sum() int {
            var w sync.WaitGroup
            results := make(chan int, 100)
            for i := 0; i < 100; i++ { w.Add(1); go func(i int) { defer w.Done(); results <- i * i }(i) }
            w.Wait(); close(results)
            s := 0
            for r := range results { s += r }
            return s
        }

        func main() {
            server, err := net.Listen("tcp", "127.0.0.1:0")
            if err != nil { panic(err) }
            go func() { c, _ := server.Accept(); fmt.Fprint(c, "hello"); c.Close() }()
            a, err := net.Dial("tcp", server.Addr().String())
            if err != nil { panic(err) }
            b, _ := io.ReadAll(a)
            u, err := user.Current()
            fmt.Println(Sum(), string(b), u != nil && err == nil)
        }
    """, "main_test.go": 'package main\n\nimport "testing"\n\nfunc TestSum(t *testing.T) { if Sum() != 328350 { t.Fatal() } }\n'})
    text = inside(place, "go build -o tiny . && ./tiny && go vet . && go test . | cut -f1", timeout=400)
    equal(text, "328350 hello true\nok")


# --- debuggers -------------------------------------------------------------------------------

DEBUGGED_C = r"""
    #include <stdio.h>
    #include <unistd.h>
    int twice(int n) { return n * 2; }
    int main(int c, char **v)
    {
        volatile int spins = 0;
        printf("%d\n", twice(21));
        fflush(stdout);
        while (c > 1 && spins < 600) { usleep(100000); spins++; }
        return 0;
    }
"""


@test
def gdb_stops_at_a_breakpoint(place):
    need("gdb", "gcc")
    put(place, {"a.c": DEBUGGED_C})
    text = inside(place, "gcc -g -O0 -o a a.c; gdb -nx -q -batch -ex 'break twice' -ex run -ex 'print n' -ex bt -ex 'watch n' -ex continue -ex continue ./a 2>&1")
    assert "$1 = 21" in text and "#1 " in text and "main" in text and "exited normally" in text, text
    assert "Error disabling address space randomization" not in text, text


@test
def gdb_attaches_to_a_process_beside_it(place):
    need("gdb", "gcc")
    put(place, {"a.c": DEBUGGED_C})
    text = inside(place, "gcc -g -O0 -o a a.c; ./a wait >/dev/null & sleep 3; kill -0 $!; gdb -nx -q -batch -ex bt -ex 'up 10' -ex 'print c' -ex 'kill' -p $! 2>&1; ! wait $!")
    assert "main (c=2" in text, text


@test
def strace_follows_a_command_and_its_children(place):
    need("strace")
    text = inside(place, "strace -f -o t sh -c '/bin/echo x; /bin/true'; grep -c execve t; strace -c true 2>&1 | grep -c total; strace -f -e inject=getpid:error=EPERM true")
    first, second = text.split("\n")[1:3]
    assert int(first) >= 3 and second == "1", text


# --- the browser -----------------------------------------------------------------------------

PAGE = """
    <!doctype html><title>t</title><body><p id=p>before</p><canvas id=c width=50 height=50></canvas>
    <script>
      fetch('/data.json').then(r => r.json()).then(d => {
        const w = new Worker(URL.createObjectURL(new Blob(['postMessage(6*7)'])));
        w.onmessage = m => { document.getElementById('p').textContent = d.word + ' ' + m.data; document.title = 'done'; }; });
    </script>
"""
SERVE = "/usr/bin/python3 -m http.server --bind 127.0.0.1 8123 >/dev/null 2>&1 & sleep 1.5; "
CHROMIUM = "chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=4000 "


@test(identities=("root", "user"))
def chromium_dumps_a_page_that_is_served_inside(place):
    need("chromium")
    put(place, {"index.html": PAGE, "data.json": '{"word": "after"}'})
    text = inside(place, SERVE + CHROMIUM + "--dump-dom http://127.0.0.1:8123/ 2>err || { cat err >&2; exit 1; }")
    assert '<p id="p">after 42</p>' in text, text


@test(identities=("root", "user"))
def chromium_takes_a_screenshot(place):
    need("chromium")
    put(place, {"index.html": PAGE, "data.json": '{"word": "after"}'})
    text = inside(place, SERVE + CHROMIUM + "--screenshot=$PWD/shot.png --window-size=320,200 http://localhost:8123/ 2>err || { cat err >&2; exit 1; }; "
                  "/usr/bin/python3 -c \"import struct; d = open('shot.png', 'rb').read(); print(d[1:4].decode(), *struct.unpack('>II', d[16:24]), len(d) > 500)\"")
    assert text.splitlines()[-1] == "PNG 320 200 True", text


# --- tools of the home directory ---------------------------------------------------------------

def of_home(program, *below):
    """The program that this user's own PATH finds below the home directory, outside of any sandbox."""
    real = pathlib.Path(os.path.expanduser("~root" if os.geteuid() == 0 else "~"))
    for folder in below:
        if os.access(real / folder / program, os.X_OK):
            return real, real / folder
    skip(f"kernel: not about this machine: no {program} below {', '.join(below)} in the home directory")


@test(identities=("root",))
def rustup_toolchains_of_the_home_directory_work(place):
    home, folder = of_home("cargo", ".cargo/bin")
    put(place, CARGO)
    env = {"HOME": str(home), "PATH": f"{folder}:{place.env['PATH']}"}
    equal(inside(place, f"test \"$(command -v cargo)\" = {folder}/cargo; cargo run -q --offline", env=env, timeout=300), "140")


@test(identities=("root",))
def pyenv_versions_of_the_home_directory_work(place):
    home, folder = of_home("python3", ".pyenv/shims")
    put(place, {"a.py": PYTHON})
    env = {"HOME": str(home), "PATH": f"{folder}:{home}/.pyenv/bin:{place.env['PATH']}", "PYENV_ROOT": str(home / ".pyenv")}
    text = inside(place, "python3 -c 'import sys; print(sys.prefix)'; python3 a.py", env=env)
    prefix, seen = text.split("\n")
    assert prefix.startswith(f"{home}/.pyenv/versions/"), prefix
    equal(json.loads(seen), PYTHON_SEEN)


if __name__ == "__main__":
    main()
