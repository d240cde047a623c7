"""The files of the three layers of policy, where a test can write them."""
import os
import subprocess

from support.harness import COVE, Result, skip
from support.running import write


def owner(place, text, mode=0o600):
    """The owner's file, at a place that holds for every identity."""
    place.env["XDG_CONFIG_HOME"] = str(place.dir / "config")
    (place.dir / "config/cove").mkdir(parents=True, exist_ok=True)
    return write(place.dir / "config/cove/policy.yaml", text, mode)


def repository(place, text):
    return write(place.work / "cove.yaml", text)


def administered(place, text, *args, mode=0o644, uid=0):
    """cove ARGS on a machine whose /etc/cove/policy.yaml says `text`: in a mount namespace of our own."""
    etc = place.dir / "etc"
    write(etc / "upper/cove/policy.yaml", text, mode)
    os.chown(etc / "upper/cove/policy.yaml", uid, uid)
    (etc / "work").mkdir(exist_ok=True)
    etc.chmod(0o755)
    script = f"mount -t overlay -o lowerdir=/etc,upperdir={etc}/upper,workdir={etc}/work overlay /etc && exec \"$@\""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", COVE, *map(str, args)], cwd=place.work, env=place.env,
                          input=b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if b"mount: " in done.stderr:
        skip("kernel: no overlay can be mounted over /etc here")
    return Result(done)
