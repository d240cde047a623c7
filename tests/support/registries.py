"""Package registries of a test's own, in its land: what they say is files, which a test can change."""
import base64
import hashlib
import io
import json
import os
import tarfile
import zipfile

from support.land import Land, page

NPM, PIP, CRATES = "npm.example.org", "py.example.org", "crates.example.org"


def put(place, host, path, content):
    file = page(place.dir, host, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


def tarball(name, version, size=0):
    """A package of npm, larger by so many bytes that cannot be packed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for file, content in (("package.json", json.dumps({"name": name, "version": version}).encode()), ("index.js", b"module.exports = 1\n"), ("data", hashlib.shake_128(name.encode()).digest(size))):
            info = tarfile.TarInfo("package/" + file)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def integrity(content):
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def kept_name(content, kind="sha512"):
    return f"{kind}-{hashlib.new(kind, content).hexdigest()}"


def add_npm(place, name, version="1.0.0", content=None, said=None, size=0):
    """`said`: what the registry gives the hash of, if that is not what it sends."""
    content = tarball(name, version, size) if content is None else content
    path = f"/{name}/-/{name.split('/')[-1]}-{version}.tgz"
    about = {"name": name, "version": version, "dist": {"tarball": f"https://{NPM}{path}", "integrity": integrity(content if said is None else said)}}
    put(place, NPM, path, content)
    put(place, NPM, f"/{name}/{version}", json.dumps(about))
    put(place, NPM, f"/{name}", json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: about}}))
    put(place, NPM, f"/{name.replace('/', '%2f')}", json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: about}}))
    return path, content


def add_pip(place, name, version="1.0"):
    wheel, out = f"{name}-{version}-py3-none-any.whl", io.BytesIO()
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(out, "w") as files:
        files.writestr(f"{name}.py", "x = 1\n")
        files.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        files.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    content, path = out.getvalue(), f"/packages/ab/{wheel}"
    put(place, PIP, path, content)
    put(place, PIP, f"/simple/{name}/", f'<!DOCTYPE html><html><body><a href="../../packages/ab/{wheel}#sha256={hashlib.sha256(content).hexdigest()}">{wheel}</a></body></html>')
    return path, content


def add_crate(place, name, version="1.0.0", content=b"a crate"):
    path = f"/crates/{name}/{version}/download"
    put(place, CRATES, path, content)
    put(place, CRATES, f"/index/{name[:2]}/{name[2:4]}/{name}", json.dumps({"name": name, "vers": "0.9.0", "cksum": "0" * 64}) + "\n"
        + json.dumps({"name": name, "vers": version, "deps": [], "cksum": hashlib.sha256(content).hexdigest()}) + "\n")
    return path, content


def land(place):
    """With all three, believed by the host, and configured as the user's."""
    for name, text in ((".npmrc", f"registry=https://{NPM}/\n"), (".config/pip/pip.conf", f"[global]\nindex-url = https://{PIP}/simple\n"),
                       (".cargo/config.toml", f'[registries.own]\nindex = "sparse+https://{CRATES}/index/"\n')):
        file = place.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.chmod(file, 0o644)
    here = Land(place, {NPM: ["11.1.1.1"], PIP: ["11.1.1.2"], CRATES: ["11.1.1.3"]})
    for host, address in ((NPM, "11.1.1.1"), (PIP, "11.1.1.2"), (CRATES, "11.1.1.3")):
        here.serve("tls", address, 443, host, believed=True)
    return here


def fetched(seen):
    """Package files that servers were asked for."""
    return [visit[4] for visit in seen.visits if visit[0] == "request" and visit[4].endswith((".tgz", ".whl", "/download"))]


def kept(place):
    """What lies in the cache, and that it is what it is called."""
    folder, found = place.state / "packages", {}
    for file in sorted(folder.iterdir()) if folder.exists() else ():
        kind, _, digits = file.name.partition("-")
        found[file.name] = hashlib.new(kind, file.read_bytes()).hexdigest() == digits
    return found
