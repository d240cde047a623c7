"""The list of rows says what the tests are, no more and no less."""
import os
import pathlib
import re

from attack import ROOT, control_fires, equal, main, test
import promises

MANDATORY_GROUPS = ("NS", "PROC", "FS", "SYS", "IPC", "FD", "TTY", "CFG")


@test
def a_row_passes_exactly_if_it_has_a_test(place):
    tests, rows = promises.tests_by_row(), promises.rows()
    control_fires(len(tests) > 80 and len(rows) > 250, "both lists were read")
    tried = {row.id for row in rows if row.status.startswith(("passes", "fails"))}
    equal(tried - set(tests), set(), "rows that say they were tried and have no test")
    equal({name for name in tests if not name.startswith("Z-")} - tried, set(), "tests whose row does not say so")
    equal(len({row.id for row in rows}), len(rows), "ids")


@test
def a_fault_passes_exactly_if_it_has_a_test(place):
    tests, faults = promises.tests_by_row(), promises.faults()
    equal([fault.id for fault in faults], [f"Z-{number:02}" for number in range(1, 35)])
    shown = {fault.id for fault in faults if promises.shown_by(fault, tests)}
    equal({fault.id for fault in faults if fault.status.startswith("passes")} ^ shown, set(), "faults that say they pass, or tests of them, but not both")
    for fault in faults:
        assert fault.status in ("passes", "passes (in part)", "not yet") and (fault.status == "passes" or fault.note), fault
        equal([row for row in fault.rows.split() if row not in tests], [], f"rows of {fault.id} without a test")


@test
def a_row_that_was_not_seen_passing_is_noticed(place):
    tap = "\n".join(f"ok 1 - {row.id} x" for row in (*promises.rows(), *promises.faults()))
    equal(promises.not_seen_passing(tap), [], "all of them passed")
    for change in (tap.replace("ok 1 - NS-01", "not ok 1 - NS-01"), tap.replace("- NS-01 x", "- NS-01 x # SKIP no"), tap.replace("- NS-01", "- NS-99")):
        control_fires(promises.not_seen_passing(change) == ["NS-01"], change[:40])


@test
def every_row_without_a_test_says_why(place):
    for row in promises.rows():
        assert row.status in ("passes", "passes (in part)", "fails", "not yet", "does not apply"), row
        assert row.status == "passes" or row.note, f"{row.id} gives no reason"


@test
def the_first_wave_of_these_groups_is_complete(place):
    missing = [row.id for row in promises.rows() if row.first_wave and row.id.split("-")[0] in MANDATORY_GROUPS and not row.status.startswith(("passes", "fails"))]
    equal(missing, [], "rows of the first wave")


@test
def every_test_of_a_row_runs_for_every_identity(place):
    """A row that leaves an identity out would claim more than was seen."""
    for file in sorted(pathlib.Path(promises.HERE).glob("test_*.py")):
        limited = re.findall(r"@test\([^)]*identities=[^)]*\)\ndef (\w+)", file.read_text())
        equal(limited, [], f"{file.name}: tests that leave out an identity")


@test
def the_page_of_promises_is_up_to_date(place):
    page = pathlib.Path(ROOT) / "docs/promises.md"
    assert page.exists() and page.read_text() == promises.document(), "run tools/gen-promises"


main()
