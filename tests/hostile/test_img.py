"""IMG: root file systems that were not made for the good of their user."""
import os
import shutil

from attack import IDENTITY, PROBE, Canaries, Report, control_fires, equal, fingerprint, main, nothing_is_left, test, unchanged


def image(place, name):
    """A root file system with one program in it."""
    top = place.dir / name
    top.mkdir()
    shutil.copy(PROBE, top / "probe")
    for folder in ("proc", "sys", "dev", "tmp", "etc", "run", "usr/bin"):
        (top / folder).mkdir(parents=True)
    return top


@test(id="IMG-11")
def links_in_an_image_lead_nowhere_outside(place):
    canaries = Canaries()
    outside = place.dir / "outside"
    for name in ("proc", "sys", "dev", "tmp", "etc", "run", "pts", "shm"):
        (outside / name).mkdir(parents=True)
    canaries.plant(outside / "etc/passwd")
    canaries.plant(outside / "dev/null")
    before = fingerprint(outside)
    started = 0
    for number, name in enumerate(("dev", "proc", "sys", "tmp", "etc", "run", "dev/null", "dev/pts", "dev/shm", "etc/resolv.conf", "etc/hosts", "home", "root",
                                   str(place.work).lstrip("/").split("/")[0], str(place.work).lstrip("/"))):
        for kind, target in (("absolute", outside / os.path.basename(name)), ("relative", "../" * 12 + str(outside).lstrip("/")), ("loop", os.path.basename(name)), ("file", None)):
            top = image(place, f"image-{number}-{kind}")
            place_of = top / name
            place_of.parent.mkdir(parents=True, exist_ok=True)
            if place_of.is_dir():
                place_of.rmdir()
            place_of.write_text("x") if target is None else place_of.symlink_to(target)
            result = place.run("/probe", "spill", "/etc/passwd", "/dev/null", f"/{name}/token", options=("--image", top), timeout=30)
            assert result.code in (0, 125, 126, 127), f"{name} as {kind}: {result!r}"
            canaries.none_in(f"{name} as {kind}", result)
            started += result.code == 0
            shutil.rmtree(top, ignore_errors=True)
    unchanged(before, fingerprint(outside), "what the links lead to")
    assert started > 5, f"only {started} of them started"
    nothing_is_left(place)
    plain = image(place, "plain")
    (plain / "token").write_text(canaries.token())
    control_fires(canaries.found_in(place.run("/probe", "spill", "/token", options=("--image", plain)).out), "what is in the image is read")


main()
