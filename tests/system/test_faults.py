"""`cove apply` when system calls fail, when it is killed, and when the disk is full.  All faults: `tests/soak apply-faults`."""
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.disks import root_shifts_memory  # noqa: E402
from support.faults import Scenario, in_memory  # noqa: E402
from support.harness import main, skip, test  # noqa: E402
from support.running import adopt_orphans, tool  # noqa: E402

FAULTS = 80  # for each file system and identity


def some_faults(where):
    """As many as there is time for, others each day."""
    tool("strace")
    scenario = Scenario(where)
    try:
        faults = scenario.faults()
        assert len(faults) > FAULTS, f"only {len(faults)} faults"
        for fault in random.Random(os.environ.get("COVE_SEED", time.strftime("%Y%m%d"))).sample(faults, FAULTS):
            scenario.try_fault(fault)
    finally:
        scenario.close()


@test(id="Z-29")
def whichever_call_fails_or_is_the_last_every_file_is_old_or_new_and_a_second_try_completes(place):
    some_faults(None)


@test(identities=("root",))  # nobody else can mount one and still be who they are
def the_same_on_a_file_system_in_memory(place):
    if not root_shifts_memory():
        skip("kernel: root cannot shift the ids of a tmpfs before Linux 6.3")
    with in_memory() as top:
        some_faults(top)


@test(id="Z-29")
def killed_at_a_random_moment_every_file_is_old_or_new_and_a_second_try_completes(place):
    scenario, dice = Scenario(), random.Random(os.environ.get("COVE_SEED", time.strftime("%Y%m%d")))
    try:
        caught = sum(scenario.try_kill(dice) for _ in range(40))
        assert caught > 5, f"only {caught} of 40 were killed before the end"
    finally:
        scenario.close()


if __name__ == "__main__":
    adopt_orphans()
    main()
