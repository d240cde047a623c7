"""Images: a root directory of one's own, root inside it, packages, and hostile trees."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import COVE, IDENTITY, Result, equal, main, skip, test  # noqa: E402
from support.running import WarmPlace, adopt_orphans, digest, nothing_left, one_error, tool, write  # noqa: E402

PROGRAMS = ["sh", "ls", "cat", "id", "chown", "chmod", "stat", "touch", "mkdir", "rm", "mv", "ln", "cp", "env", "echo", "dpkg", "dpkg-deb",
            "dpkg-query", "dpkg-split", "dpkg-trigger", "tar", "gzip", "xz", "apt-get", "mknod", "install", "readlink", "true", "test", "printf", "setpriv", "diff"]


def copy_program(root, path):
    """A program of the host with its libraries, at the same paths."""
    listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    for file in [path, *re.findall(r"(/\S+) \(0x", listed)]:
        target = root / file.lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(file), target)


def make_image(place):
    """A Debian of a few programs, enough for dpkg and apt-get; made once, then as hard links: no test writes into a
    file that is there."""
    template = WarmPlace.shared / "image"
    if not template.exists():
        fill_image(template)
    subprocess.run(["cp", "-al", template, place.dir / "image"], check=True)
    return place.dir / "image"


def fill_image(root):
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "etc/apt", "tmp", "var/tmp", "root", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers",
                   "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt", "etc/apt/apt.conf.d", "etc/apt/preferences.d",
                   "etc/apt/sources.list.d", "etc/dpkg/dpkg.cfg.d", "usr/share", "home"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for link in ("bin", "sbin", "lib", "lib64"):
        (root / link).symlink_to(f"usr/{link}")
    for name in PROGRAMS:
        path = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
        if path:
            copy_program(root, path)
    for folder in ("/usr/lib/apt", "/usr/share/dpkg"):
        if os.path.isdir(folder):
            shutil.copytree(folder, root / folder.lstrip("/"), dirs_exist_ok=True)
            for file in (root / folder.lstrip("/")).rglob("*"):
                if file.is_file() and os.access(file, os.X_OK):
                    copy_program(root, "/" + str(file.relative_to(root)))
    for name in ("ldconfig", "start-stop-daemon"):
        write(root / "usr/sbin" / name, "#!/bin/sh\nexit 0\n", 0o755)
    write(root / "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\ndaemon:x:1:1::/:/bin/sh\n")
    write(root / "etc/group", "root:x:0:\nmail:x:8:\nnogroup:x:65534:\n")
    write(root / "var/lib/dpkg/status", "")
    write(root / "etc/os-release", "ID=test\n")


def make_package(place):
    """A package that does what packages do: owners, modes, scripts."""
    tree = place.dir / "package"
    write(tree / "usr/share/thing/file", "packaged\n")
    write(tree / "usr/bin/thing", "#!/bin/sh\necho thing works\n", 0o755)
    write(tree / "DEBIAN/control", "Package: thing\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <n@example.com>\nDescription: a test\n")
    write(tree / "DEBIAN/postinst", "#!/bin/sh\nset -e\nchown daemon:mail /usr/share/thing/file\nchmod 2755 /usr/bin/thing\ninstall -d -o daemon -g mail /var/lib/thing\n"
          "chown 0:0 /usr/share/thing\n", 0o755)
    for path in (tree, tree / "usr", tree / "DEBIAN"):
        path.chmod(0o755)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, place.work / "thing.deb"], check=True, stdout=subprocess.DEVNULL)


def in_image(place, root, script, *options, **kwargs):
    return place.sh(script, options=("--image", root, *options), **kwargs)


@test
def an_image_is_the_root_and_the_hosts_own_is_absent(place):
    root = make_image(place)
    write(root / "marker", "of the image\n")
    write(place.work / "file", "of the workspace\n")
    done = in_image(place, root, "cat /marker file; ls /usr/bin | wc -l >/dev/null 2>&1; test -e /usr/bin/python3 || echo no python; cat /etc/os-release")
    equal(done.text, "of the image\nof the workspace\nno python\nID=test\n", done)


@test
def an_image_is_copied_on_write(place):
    root = make_image(place)
    before = digest(root)
    done = in_image(place, root, "set -e; echo x >/marker; rm /etc/os-release; mkdir /new; echo y >/etc/passwd; mv /usr/bin/cat /usr/bin/cat2; ls /new", "--root")
    equal(done.code, 0, done)
    equal(digest(root), before)
    nothing_left(place)


@test
def root_inside_is_root_and_nobody_outside(place):
    root = make_image(place)
    done = in_image(place, root, "id -u; id -g; touch made; stat -c %u made; ls -ld /root >/dev/null && echo home", "--root")
    equal(done.text.split(), ["0", "0", "0", "home"], done)
    assert "Cap" not in done.errors


@test
def a_package_file_can_be_installed_with_dpkg(place):
    tool("dpkg-deb", "dpkg")
    root = make_image(place)
    make_package(place)
    before = digest(root)
    done = in_image(place, root, "dpkg -i --force-depends thing.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; thing; cat /usr/share/thing/file; "
                    "dpkg-query -W -f '${Status}\\n' thing", "--root")
    equal((done.code, done.text), (0, "thing works\npackaged\ninstall ok installed\n"), done)
    equal(digest(root), before)


@test
def a_package_file_can_be_installed_with_apt(place):
    tool("dpkg-deb", "apt-get")
    root = make_image(place)
    make_package(place)
    done = in_image(place, root, "apt-get install -y -q ./thing.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; thing; apt-get remove -y -q thing >/tmp/log 2>&1 || cat /tmp/log; "
                    "test -e /usr/bin/thing || echo removed", "--root", "-e", "DEBIAN_FRONTEND=noninteractive")
    equal((done.code, done.text), (0, "thing works\nremoved\n"), done)


@test
def owners_that_root_gives_are_kept_where_there_are_ids_for_them(place):
    root = make_image(place)
    done = in_image(place, root, "touch f && chown 1:8 f && stat -c %u:%g f", "--root")
    equal(done.code, 0, "changes of owner succeed, with or without effect")
    if IDENTITY == "root":
        equal(done.text.strip(), "1:8")


@test
def setuid_files_of_an_image_have_no_effect(place):
    root = make_image(place)
    shutil.copy(root / "usr/bin/id", root / "usr/bin/id2")
    if IDENTITY == "root":
        os.chown(root / "usr/bin/id2", 1, 1)
    (root / "usr/bin/id2").chmod(0o6755)
    plain = in_image(place, root, "id -u; id -g")
    equal(in_image(place, root, "id2 -u; id2 -g").text, plain.text)


@test(identities=("root",))
def a_link_in_etc_that_was_replaced_is_seen(place):
    for name in ("upper", "work-of-etc"):
        (place.dir / name).mkdir()
    script = (f"mount -t overlay overlay -o lowerdir=/etc,upperdir={place.dir}/upper,workdir={place.dir}/work-of-etc /etc && "
              "for zone in Japan Iceland Egypt; do ln -sfn /usr/share/zoneinfo/$zone /etc/localtime; \"$0\" run --rm -- readlink /etc/localtime || exit; done")
    done = Result(subprocess.run(["unshare", "--mount", "--propagation=private", "sh", "-c", script, COVE], env=place.env, cwd=place.work, timeout=60,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    equal((done.code, done.text.split()), (0, [f"/usr/share/zoneinfo/{zone}" for zone in ("Japan", "Iceland", "Egypt")]), done)


# Subordinate ids: a user whom only a private view of /etc knows

SUBUSER = 54321


def as_subuser(place, script, *options):
    """cove run as an ordinary user with 65,536 subordinate ids."""
    place.dir.parent.chmod(0o711)
    place.state = place.dir / "state-of-subuser"
    place.env["COVE_HOME"] = str(place.state)
    for path in (place.dir, place.work, place.home):
        os.chown(path, SUBUSER, SUBUSER)
    subprocess.run(["chown", "-hR", f"{SUBUSER}:{SUBUSER}", place.dir / "image", place.work], check=True)
    etc = {"passwd": f"root:x:0:0::/root:/bin/sh\nsubuser:x:{SUBUSER}:{SUBUSER}::{place.home}:/bin/sh\n", "group": f"root:x:0:\nsubuser:x:{SUBUSER}:\n",
           "subuid": "subuser:700000:65536\n", "subgid": "subuser:700000:65536\n"}
    binds = []
    for name, content in etc.items():
        write(place.dir / f"etc-{name}", content)
        pathlib.Path(f"/etc/{name}").exists() or skip(f"there is no /etc/{name} here")
        binds.append(f"mount --bind {place.dir}/etc-{name} /etc/{name}")
    words = [COVE, "run", "--rm", "--image", place.dir / "image", *options, "--", "sh", "-c", script]
    command = " && ".join([*binds, f'exec setpriv --reuid={SUBUSER} --regid={SUBUSER} --clear-groups -- "$@"'])
    return Result(subprocess.run(["unshare", "--mount", "--propagation=private", "sh", "-c", command, "sh", *words], env=place.env, cwd=place.work,
                                 timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))


@test(identities=("root",))
def with_subordinate_ids_root_of_an_image_gives_files_away(place):
    tool("newuidmap", "newgidmap", "dpkg-deb")
    make_image(place)
    make_package(place)
    done = as_subuser(place, "id -u; touch f && chown 1:8 f && stat -c %u:%g f; setpriv --reuid 7 --regid 8 --clear-groups id -u; cat /proc/self/uid_map; "
                      "dpkg -i --force-depends thing.deb >/tmp/log 2>&1 || cat /tmp/log; thing; stat -c %u:%g /usr/share/thing/file", "--root")
    equal(done.code, 0, done)
    lines = [" ".join(line.split()) for line in done.text.splitlines()]
    equal(lines[:3], ["0", "1:8", "7"], done)
    equal(lines[-2:], ["thing works", "1:8"], done)
    assert f"0 {SUBUSER} 1" in lines and any(line.startswith("1 700000 ") for line in lines), done
    assert all(os.lstat(p).st_uid == SUBUSER for p in (place.dir / "image/etc").rglob("*")), "the image is unchanged"
    nothing_left(place)


# Hostile images

@test
def system_directories_that_are_links_lead_nowhere_outside(place):
    root = make_image(place)
    canary = place.dir / "canary"
    for folder in ("dev", "proc", "sys", "run", "etc", "home", "tmp"):
        write(canary / folder / "file", "untouched\n")
    before = digest(canary)
    for target in (str(canary / "{}"), "../../../../../../../../../.." + str(canary / "{}"), "/proc/self/cwd", "/", ".", "{}"):
        for folder in ("dev", "proc", "sys", "run"):
            path = root / folder
            if path.is_symlink() or path.exists():
                path.unlink() if path.is_symlink() else shutil.rmtree(path)
            path.symlink_to(target.format(folder))
            done = in_image(place, root, "cat /dev/zero | { read -r x; }; test -c /dev/null && test -d /proc/self && echo safe; cat /dev/file /proc/file", timeout=20)
            assert "untouched" not in done.text, (folder, target, done)
            assert done.text == "safe\n" or (done.code == 125 and len(done.errors.splitlines()) == 1), (folder, target, done)
            path.unlink()
    equal(digest(canary), before)
    nothing_left(place)


@test
def files_that_are_links_to_the_outside_are_not_written(place):
    root = make_image(place)
    canary = write(place.dir / "canary/file", "untouched\n")
    for name in ("etc/resolv.conf", "etc/hosts", "etc/hostname", "etc/passwd", "etc/group", "etc/mtab"):
        path = root / name
        if path.exists():
            path.unlink()
        path.symlink_to(canary)
    shutil.rmtree(root / "home")
    (root / "home").symlink_to(canary.parent)
    shutil.rmtree(root / "tmp")
    (root / "tmp").symlink_to(canary.parent)
    before = digest(canary.parent)
    done = in_image(place, root, "cat /etc/passwd /etc/resolv.conf; echo x >/tmp/new; echo x >/home/new; echo x >/etc/hosts", "--root")
    assert "untouched" not in done.text, done
    equal(digest(canary.parent), before)


@test
def devices_and_masks_of_the_image_are_not_used(place):
    root = make_image(place)
    (root / "dev").mkdir()
    (root / "dev/null").symlink_to("/proc/sysrq-trigger")
    (root / "dev/ptmx").symlink_to(place.dir)
    write(root / "dev/zero", "no device\n")
    (root / "proc").mkdir()
    write(root / "proc/version", "fake\n")
    done = in_image(place, root, "test -c /dev/null && test -c /dev/zero && echo fresh; cat /proc/version; cat /proc/sysrq-trigger /proc/kcore | head -c 1")
    assert done.text.startswith("fresh\n") and "fake" not in done.text, done


@test
def a_workspace_whose_path_is_a_link_in_the_image_stays_in_the_image(place):
    root = make_image(place)
    canary = place.dir / "canary"
    canary.mkdir()
    first = place.work.parts[1]
    if (root / first).exists():
        shutil.rmtree(root / first)
    (root / first).symlink_to(canary)
    write(place.work / "file", "x")
    in_image(place, root, "echo y >made; pwd")
    equal((os.listdir(canary), sorted(os.listdir(place.work))), ([], ["file"]))


# Refusals

@test
def what_is_no_image_is_one_error(place):
    write(place.dir / "file", "x")
    (place.dir / "empty").mkdir()
    one_error(place.run("true", options=("--image", place.dir / "file")), "file", "not a directory")
    one_error(place.run("true", options=("--image", place.dir / "missing")), "missing")
    one_error(place.run("true", options=("--image", place.dir / "empty")), "neither /usr nor /bin")
    one_error(place.run("true", options=("--image", "/")), "your own files")
    one_error(place.run("true", options=("--image", place.dir)), "image")
    one_error(place.run("true", options=("--image", place.state)))
    one_error(place.run("true", options=("--image", "debian:12")), "image")
    nothing_left(place)


@test
def root_on_the_hosts_own_files_is_refused_to_an_ordinary_user(place):
    done = place.run("id", "-u", options=("--root",))
    if IDENTITY == "root":
        equal((done.code, done.text), (0, "0\n"))
    else:
        one_error(done, "--root", "--image", "sudo")


@test(identities=("root",))
def root_on_the_host_image_can_change_the_system_inside_only(place):
    before = sorted(os.listdir("/usr/bin"))
    done = place.sh("echo x >/usr/bin/cove-test-made && rm /usr/bin/less; echo y >/etc/cove-test-made; ls /usr/bin/cove-test-made", options=("--root",))
    equal((done.code, done.text), (0, "/usr/bin/cove-test-made\n"), done)
    equal(sorted(os.listdir("/usr/bin")), before)


def a_real_debian_takes_a_package(place):
    tool("debootstrap")
    root = place.dir / "debian"
    done = subprocess.run(["debootstrap", "--variant=minbase", "stable", root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        skip("no package mirror can be reached")
    make_package(place)
    result = in_image(place, root, "apt-get install -y -q ./thing.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }; thing; stat -c %U:%G /usr/share/thing/file", "--root", timeout=120)
    equal((result.code, result.text), (0, "thing works\ndaemon:mail\n"), result)


if os.environ.get("COVE_SOAK_SECONDS"):  # makes a Debian with debootstrap, which takes a minute
    test(identities=("root",))(a_real_debian_takes_a_package)

if __name__ == "__main__":
    adopt_orphans()
    main()
