#!/usr/bin/python3
"""Projects that know nothing of Cove run their own tests inside and outside, with the same outcome test
by test.  Here is the quick part of each; tests/projects/run has the whole of them."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "projects"))
import suites  # noqa: E402
from support.harness import main, skip, test  # noqa: E402


def same(place, name):
    project, = [p for p in suites.PROJECTS if p.name == name]
    for program in project.needs:
        if not shutil.which(program, path=place.env["PATH"]):
            skip(f"{program} is not installed; tools/setup check installs it")
    if not suites.unpack(project, place.work):
        skip(f"{name} is not there; tests/projects/fetch fetches it")
    best, stubborn = suites.settle(place, project, fast=True, timeout=240)
    for where, seen, text in zip(("inside", "outside"), (best.inside, best.outside), best.texts):
        assert len(seen) >= project.fast_least, f"only {len(seen)} tests ran {where}:\n{text[-2000:]}"
    assert not stubborn, f"{name}: the outcome inside is another than outside: {stubborn}"
    print(f"# {name}: inside {best.count(best.inside)}, outside {best.count(best.outside)}, {best.seconds[0]:.0f} s and {best.seconds[1]:.0f} s")


@test(identities=("user",))
def mojolicious_tests_its_servers_on_loopback_with_the_same_result(place):
    same(place, "mojolicious")


@test(identities=("user",))
def python_tests_its_threads_and_sockets_with_the_same_result(place):
    same(place, "python")


@test(identities=("user",))
def an_npm_package_is_installed_and_tested_with_the_same_result(place):
    same(place, "qs")


@test(identities=("user",))
def a_crate_is_built_and_tested_with_the_same_result(place):
    same(place, "crossbeam")


if __name__ == "__main__":
    main()
