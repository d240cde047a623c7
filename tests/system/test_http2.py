"""HTTP/2 where the gateway ends TLS: the same verdicts, answers and refusals as by HTTP/1.1, stream by stream."""
import hashlib
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import equal, main, skip, test  # noqa: E402
from support.land import Land, policy  # noqa: E402

ZONE = {"web.example.org": ["11.1.1.1"], "other.example.org": ["11.1.1.2"], "nowhere.example.org": ["11.9.9.9"]}
HELLO = "hello from web.example.org\n"


def web(place):
    land = Land(place, ZONE)
    land.serve("tls", "11.1.1.1", 443, "web.example.org", believed=True)
    return land


def methods(place, *names):
    return policy(place, f"{{ host: web.example.org, methods: [{', '.join(names)}] }}")


def requests_of(seen):
    return [visit[2:] for visit in seen.visits if visit[0] == "request"]


def connections_of(seen):
    return len([visit for visit in seen.visits if visit[0] == "connection"])


def need(program):
    if not shutil.which(program):
        skip(f"{program} is not installed")


def node(land, script, *words, **kwargs):
    need("node")
    return land.box("node", "-e", "const http2 = require('http2'); const client = http2.connect('https://web.example.org');" + script, *words, **kwargs)


@test
def get_passes_and_post_is_refused_with_the_reason_by_either_protocol(place):
    with web(place) as land:
        for option, version in (("--http1.1", "1.1"), ("--http2", "2")):
            ask = f"curl -sSi {option} -w 'version %{{http_version}}\\n' https://web.example.org/a"
            done = land.sh(f"{ask}; {ask} -d x; cat /run/cove/refused", options=methods(place, "GET"))
            allowed, refused = done.text.split(f"version {version}\n")[:2]
            assert allowed.startswith(f"HTTP/{version} 200") and allowed.endswith(HELLO), done
            assert refused.startswith(f"HTTP/{version} 403"), done
            for where in (refused.split("\r\n\r\n")[0].lower(), refused.split("\r\n\r\n")[1], done.text.split(f"version {version}\n")[2]):
                assert "allows web.example.org at port 443, but not post /a" in where.lower(), done
            equal([row[0] for row in requests_of(done)], ["GET"], done)


@test
def a_client_that_offers_nothing_else_is_answered(place):
    need("nghttp")
    with web(place) as land:
        done = land.sh("nghttp https://web.example.org/a; nghttp -d /etc/hostname https://web.example.org/a; nghttp https://other.example.org/", options=methods(place, "GET"))
        assert done.text.startswith(HELLO) and "but not POST /a" in done.text, done
        done.text += land.sh("curl -sS --http2 -x 127.0.0.1:1019 -w '%{http_version}' https://web.example.org/ https://web.example.org/b", options=methods(place, "GET")).text
        assert done.text.endswith(f"{HELLO}2{HELLO}2"), done
        assert "no rule allows other.example.org at port 443" in done.text and "cove allow other.example.org" in done.text, done
        equal([row[0] for row in requests_of(done)], ["GET"], done)


@test
def streams_of_one_connection_are_judged_one_by_one(place):
    script = """
const rows = JSON.parse(process.argv[1]);
const next = () => {
    if (!rows.length)
        return client.close();
    const [method, path, body] = rows.shift(), stream = client.request({ ':method': method, ':path': path, ...(body && { 'content-length': body.length }) });
    let text = '', head = {};
    stream.on('response', (h) => { head = h; });
    stream.on('data', (data) => { text += data; });
    stream.on('end', () => { console.log(method, path, head[':status'], (head['x-cove'] || text).trim()); next(); });
    stream.end(body || undefined);
};
next();
"""
    rows = [["GET", "/v1/a", None], ["POST", "/v1/a", "x" * 1000], ["GET", "/v2", None], ["GET", "/v1/b", None], ["HEAD", "/v1/c", None], ["DELETE", "/v1/a", None], ["GET", "/v1/d", None]]
    with web(place) as land:
        done = node(land, script, json.dumps(rows), options=policy(place, "{ host: web.example.org, methods: [GET, HEAD], paths: [/v1/**] }"))
        lines = done.text.splitlines()
        equal([" ".join(line.split()[:3]) for line in lines], ["GET /v1/a 200", "POST /v1/a 403", "GET /v2 403", "GET /v1/b 200", "HEAD /v1/c 200", "DELETE /v1/a 403", "GET /v1/d 200"], done)
        assert "but not POST /v1/a" in lines[1] and "but not GET /v2" in lines[2], done
        equal([row[0] + " " + row[2] for row in requests_of(done)], ["GET /v1/a", "GET /v1/b", "HEAD /v1/c", "GET /v1/d"], done)
        equal(connections_of(done), 1, f"connections to the server: {done!r}")


@test
def answers_of_every_form_arrive_whole(place):
    with web(place) as land:
        done = land.sh("for p in chunks empty more hints cut/1; do curl -sS --http2 -w ' %{http_code}\\n' https://web.example.org/$p 2>&1; done; curl -sSI --http2 https://web.example.org/a | head -1;"
                       "curl -sSi --http2 https://web.example.org/hints | grep -c '^HTTP/2 103\\|hints'; curl -sS --http2 https://web.example.org/bad/0 https://nowhere.example.org/",
                       options=policy(place, "{ host: '*.example.org', methods: [GET, HEAD] }"))
        lines = done.text.splitlines()
        equal(lines[:4], ["one two 200", " 204", "hello 200", "hints 200"], done)
        assert lines[4].startswith("curl: (92)"), done
        assert "HTTP/2 200 \r\n2\nCove does not pass on what web.example.org answered: " in done.text, done
        assert "Cove could not reach nowhere.example.org: no address of it answers" in done.text, done


@test
def large_bodies_pass_both_ways_bit_by_bit(place):
    size = 30_000_000
    bits = hashlib.shake_128(b"").digest(size)
    (place.work / "f").write_bytes(bits)
    with web(place) as land:
        done = land.sh(f"set -e; curl -sS --http2 https://web.example.org/random/{size} | cmp - f; curl -sS --http2 -T f https://web.example.org/sum; echo; cat f | curl -sS --http2 -T - https://web.example.org/sum; echo;"
                       f"curl -sS --http2 --limit-rate 20M https://web.example.org/random/{size} | cmp - f", options=methods(place, "GET", "PUT"), timeout=120)
        equal((done.code, done.text), (0, (hashlib.sha256(bits).hexdigest() + "\n") * 2), done)


@test
def many_streams_at_once_are_all_answered(place):
    need("h2load")
    with web(place) as land:
        done = land.sh("h2load -n 1000 -c 2 -m 100 https://web.example.org/a; h2load -n 200 -c 1 -m 50 -d /etc/hostname https://web.example.org/a", options=methods(place, "GET"), timeout=120)
        assert "1000 succeeded, 0 failed, 0 errored, 0 timeout" in done.text and "status codes: 1000 2xx" in done.text, done
        assert "status codes: 0 2xx, 0 3xx, 200 4xx, 0 5xx" in done.text, done
        equal(len(requests_of(done)), 1000, done.text)
        assert connections_of(done) <= 200, connections_of(done)


@test
def events_arrive_one_by_one_as_they_are_sent(place):
    script = """
const late = [], stream = client.request({ ':path': '/events' });
stream.setEncoding('utf8');
stream.on('data', (text) => { for (const found of text.matchAll(/data: (\\S+)/g)) late.push(Date.now() / 1000 - found[1]); });
stream.on('end', () => { console.log(late.length, late.sort((a, b) => a - b)[10] < 0.02); client.close(); });
"""
    with web(place) as land:
        equal(node(land, script, options=methods(place, "GET")).text, "20 true\n")


@test
def a_stream_talks_both_ways_at_once(place):
    script = """
const stream = client.request({ ':method': 'POST', ':path': '/back' }), words = ['one', 'two', 'three'];
stream.setEncoding('utf8');
stream.write('zero');
stream.on('data', (text) => { console.log(text); words.length ? stream.write(words.shift()) : stream.end(); });
stream.on('end', () => client.close());
"""
    with web(place) as land:
        equal(node(land, script, options=methods(place, "POST")).text, "zero\none\ntwo\nthree\n")


@test
def a_stream_that_is_refused_or_given_up_leaves_the_others_alone(place):
    script = """
const slow = client.request({ ':path': '/slow' }), big = client.request({ ':method': 'POST', ':path': '/a' });
let heard = 0, status;
big.on('response', (head) => { status = head[':status']; });
big.on('error', () => {});
big.resume();
big.end(Buffer.alloc(5000000));
big.on('close', () => {
    const other = client.request({ ':path': '/a' });
    other.on('data', () => {});
    other.on('end', () => {
        const before = heard;
        slow.on('data', () => { if (heard > before && !slow.closed) { console.log(status); slow.close(http2.constants.NGHTTP2_CANCEL); } });
    });
});
slow.on('data', (data) => { heard += data.length; });
slow.on('close', () => {
    const last = client.request({ ':path': '/last' });
    last.on('data', (data) => process.stdout.write(data));
    last.on('end', () => client.close());
});
"""
    with web(place) as land:
        done = node(land, script, options=methods(place, "GET"))
        equal(done.text, "403\n" + HELLO, done)
        equal(sorted(row[0] + row[2] for row in requests_of(done)), ["GET/a", "GET/last", "GET/slow"], done)


if __name__ == "__main__":
    main()
