"""The Debian package on a Debian that runs: dpkg installs it, both kinds of user run it, nothing is left of it.

Only for the guest: it changes the machine."""
import gzip
import os
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.harness import ROOT, equal, main, test  # noqa: E402

PACKAGE = ROOT / "cove.deb"
PROFILE = pathlib.Path("/usr/share/cove/apparmor/cove")
LOADED = pathlib.Path("/sys/kernel/security/apparmor/profiles")


def must(*words):
    done = subprocess.run([*map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"})
    equal(done.returncode, 0, f"{words}: {done.stdout}")
    return done.stdout


def as_login(who, script):
    """In a session of their own, with the home and state that they really have."""
    return must("ssh", "-i", "/root/.ssh/id_ed25519", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", f"{who}@localhost",
                f"sh -c {shlex.quote(script)}")


def cove_works(wanted):
    for who in ("root", "dev"):
        said = as_login(who, "set -e; mkdir -p ~/project; cd ~/project; command -v cove; cove run --rm -- sh -c 'echo inside; cat /proc/self/attr/current'")
        equal(said.split("\n")[:3], ["/usr/bin/cove", "inside", wanted], f"{who}: {said}")


def profiles():
    return [line.split()[0] for line in LOADED.read_text().splitlines()]


@test(identities=("root",))
def it_installs_and_everybody_can_run_it(place):
    assert not os.path.exists("/usr/bin/cove")
    must("dpkg", "-i", PACKAGE)
    equal(must("dpkg-query", "-W", "-f", "${db:Status-Status}", "cove"), "installed")
    must("dpkg", "--verify", "cove")
    cove_works("unconfined")
    assert as_login("dev", "cove doctor").endswith("\ncove run works here\n")
    assert "cove" in gzip.open("/usr/share/man/man1/cove-run.1.gz", "rt").read()


@test(identities=("root",))
def a_parser_that_is_too_old_is_not_given_the_profile(place):
    """In /etc/apparmor.d it would keep that of all others from being loaded."""
    equal(pathlib.Path("/sys/module/apparmor/parameters/enabled").read_text(), "Y\n")
    assert PROFILE.exists() and not os.path.exists("/etc/apparmor.d/cove")
    must("systemctl", "restart", "apparmor.service")
    equal("cove" in profiles(), False)


@test(identities=("root",))
def the_kernel_takes_the_profile_and_cove_works_with_it(place):
    """Without the two lines that this AppArmor does not know."""
    text = PROFILE.read_text()
    assert "abi <abi/4.0>" in text and "  userns,\n" in text
    known = place.dir / "cove"
    known.write_text(text.replace("abi/4.0", "abi/3.0").replace("  userns,\n", ""))
    must("apparmor_parser", "--replace", "--skip-cache", known)
    try:
        equal("cove" in profiles(), True)
        cove_works("cove (unconfined)")
    finally:
        must("apparmor_parser", "--remove", known)


@test(identities=("root",))
def purging_leaves_nothing_but_what_users_made(place):
    listed = [path for path in must("dpkg", "-L", "cove").split() if not os.path.isdir(path)]
    assert "/usr/bin/cove" in listed, listed
    must("dpkg", "--purge", "cove")
    equal([path for path in listed if os.path.lexists(path)], [])
    equal(os.path.exists("/etc/apparmor.d/cove"), False)


if __name__ == "__main__":
    main()
