"""docs/promises.md from the rows of the check suite (rows.tsv) and the tests that carry their ids."""
import collections
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent

Row = collections.namedtuple("Row", "id first_wave tried seen status note")
Fault = collections.namedtuple("Fault", "id fault wanted rows status note")

INVARIANTS = (
    "no process, mount, control group or directory without an owner, or the next start removes it", "no packet leaves that the policy did not let out", "no limit is higher than was asked for",
    "no secret on disk, in core files or logs", "every file of the owner's is old or new, never mixed, and nothing outside the reviewed changes is touched",
    "the trace is whole, or says where it is not", "what was approved happens at most once", "what is told is true: nothing runs that is dead, nothing succeeded that failed",
    "the next start works without repair", "recovery is bounded in time and memory",
)

# Number, promise, what is not promised, rows that prove it (a prefix stands for its whole group).
PROMISES = (
    ("P1", "Code inside cannot run code on the host, as long as the kernel has no hole.", "protection from unknown holes of the kernel and the processor", "NS PROC SYS FD IPC VM"),
    ("P2", "Only declared files are visible inside; all else is absent, not merely forbidden.", "hiding how large and how busy the machine is", "FS PROC-03 PROC-04"),
    ("P3", "Nothing reaches the host's tree until an explicit apply, or an explicit `rw` or `live` grant, and applying runs nothing.",
     "the safety of code that its owner runs afterwards", "RTH OVL FS-05 FS-06 FS-07 FS-08 FS-09"),
    ("P4", "With no rule there is no network, not even a DNS query.", "that an allowed server keeps to itself what it is sent", "NET-01 DNS-01 DNS-02"),
    ("P5", "A connection leaves only if name, address, port and, when inspected, SNI and Host agree with one rule.", "what an allowed server does", "NET DNS GW"),
    ("P6", "Secrets never exist inside.", "hiding them from the server they are meant for", "SEC"),
    ("P7", "The host's loopback, the local network, metadata services, Cove itself and other sandboxes are unreachable.", "",
     "NET-07 NET-08 NET-09 NET-10 API PRV"),
    ("P8", "Every resource is bounded: hard where the kernel lets this user, else sampled and said so.", "fairness between the sandboxes of one user", "RES"),
    ("P9", "Kill ends every process and frees everything.", "", "LIFE"),
    ("P10", "A protection that cannot be set up means no start, never a silent weaker mode.", "", "CFG-01 CFG-02 CFG-03 CFG-04 CFG-09 CFG-11"),
    ("P11", "Bytes of a repository are never authority.", "", "CFG-05 CFG-06 CFG-07 CFG-08 API-07"),
    ("P12", "An approval binds one exact action.", "that the person judges well", "APR TTY-06"),
    ("P13", "The trace is written before the effect and shows any tampering or gap.", "against root of the machine, unless it is anchored elsewhere", "AUD"),
    ("P14", "A crash of any of our processes never widens access.", "", "NET-14 LIFE-04 LIFE-10"),
)

GROUPS = {
    "NS": "identity, namespaces, capabilities", "PROC": "the kernel's own file systems", "FS": "files, mounts, devices", "SYS": "system calls", "IPC": "sockets, signals, shared memory",
    "FD": "descriptors, environment, helpers", "TTY": "the terminal, and text shown to people", "IMG": "images, archives, uploads", "OVL": "layers and diff", "RTH": "what comes back to the host",
    "RES": "resources", "LIFE": "life and end", "NET": "reachability", "DNS": "names", "GW": "gateway, proxy, TLS", "SEC": "secrets", "API": "control over HTTP", "PRV": "previews",
    "APR": "approvals", "AUD": "the trace", "VM": "microVM", "CFG": "configuration and failure",
}


def rows():
    lines = (HERE / "rows.tsv").read_text().splitlines()[1:]
    return [Row(*line.split("\t")) for line in lines]


def faults():
    lines = (HERE / "faults.tsv").read_text().splitlines()[1:]
    return [Fault(*line.split("\t")) for line in lines]


def shown_by(fault, tests):
    """Names of the tests of a fault: its own, and those of the rows that it names."""
    return [name for row in (fault.id, *fault.rows.split()) for _, name in tests.get(row, [])]


def tests_by_row():
    """Row id to the names of its tests, as (file, sentence)."""
    found = {}
    for file in sorted(HERE.parent.glob("*/test_*.py")):
        for row, name in re.findall(r'^@test\([^)]*\bid="([A-Z]+-\d\d)"[^)]*\)\ndef (\w+)', file.read_text(), re.M):
            found.setdefault(row, []).append((f"{file.parent.name}/{file.name}", name.replace("_", " ")))
    return found


def not_seen_passing(tap):
    """Rows that say they pass although this TAP output does not show it: never ok, or not ok, or only skipped."""
    good, bad = set(), set()
    for verdict, row, rest in re.findall(r"^(ok|not ok) \d+ - ([A-Z]+-\d\d) (.*)$", tap, re.M):
        if verdict == "not ok":
            bad.add(row)
        elif "# SKIP" not in rest:
            good.add(row)
    return [row.id for row in (*rows(), *(fault for fault in faults() if not fault.rows)) if row.status.startswith("passes") and (row.id in bad or row.id not in good)]


def rows_of(promise, all_rows):
    wanted = promise[3].split()
    return [row for row in all_rows if row.id in wanted or row.id.split("-")[0] in wanted]


def passed(selection):
    return sum(row.status.startswith("passes") for row in selection)


def cell(text):
    return text.replace("|", "\\|")


HEAD = """# Promises, and what proves them

Cove runs commands that nobody has read in a place that they cannot leave. This page says what it promises, what it does not promise, and how each promise is checked.
It is made from `tests/hostile/rows.tsv` by `tools/gen-promises`; do not edit it.

A check is an attack. A small static program (`tests/hostile/probe`) tries something inside a sandbox of the released binary, and a judge outside decides: by the host's files before and
after, by sockets that count who arrives, by the process table, by random tokens that were planted where they must not be read. What the program inside says about itself counts for nothing.
Each check that expects a refusal has a **control**: the same attack with exactly that guard left out (a test build that is never installed can do this), or on the host against a decoy. A
control that does not succeed makes the check fail, because then it could not have noticed a hole. Rows marked "also with each other layer removed" show that there is more than one wall.

All checks run as root, as an ordinary user, and as an ordinary user inside another user namespace. `docs/testing.md` says how to run them; `SECURITY.md` says how to report a hole.

Status: **passes** means that a test with this id ran and passed; *in part* that it covers what exists of Cove today, and the note says what is missing; **fails** that the attack was tried
and the note says what came of it; **not yet** names the part of Cove that the row waits for: that part does not exist yet, so there is nothing to attack.

"""


def promise_table(all_rows):
    lines = ["| | promise | not promised | proved by | rows that pass |", "|---|---|---|---|---|"]
    for promise in PROMISES:
        selection = rows_of(promise, all_rows)
        lines.append(f"| {promise[0]} | {promise[1]} | {promise[2]} | {', '.join(promise[3].split())} | {passed(selection)} of {len(selection)} |")
    return lines


def row_tables(all_rows, tests):
    lines = []
    for group, title in GROUPS.items():
        selection = [row for row in all_rows if row.id.split("-")[0] == group]
        lines += ["", f"### {group}: {title} ({passed(selection)} of {len(selection)} pass)", "", "| row | what is tried | what must be seen | status |", "|---|---|---|---|"]
        for row in selection:
            status = row.status
            if row.id in tests:
                status += ": " + "; ".join(f"*{name}*" for _, name in tests.get(row.id, []))
            if row.note:
                status += (". " if row.id in tests else ": ") + row.note
            mark = " ①" if row.first_wave else ""
            lines.append(f"| {row.id}{mark} | {cell(row.tried)} | {cell(row.seen)} | {cell(status)} |")
    return lines


def fault_table(tests):
    lines = ["| fault | what goes wrong | what must happen | status |", "|---|---|---|---|"]
    for fault in faults():
        status, names = fault.status, shown_by(fault, tests)
        if names:
            status += ": " + "; ".join(f"*{name}*" for name in names)
        if fault.note:
            status += (". " if names else ": ") + fault.note
        lines.append(f"| {fault.id} | {cell(fault.fault)} | {cell(fault.wanted)} | {cell(status)} |")
    return lines


def document():
    all_rows, tests = rows(), tests_by_row()
    first = [row for row in all_rows if row.first_wave]
    lines = ["## Promises", "", *promise_table(all_rows), "", "## All checks", "",
             f"{passed(all_rows)} of {len(all_rows)} rows pass. ① marks the first wave, what must hold before anything is called a sandbox: {passed(first)} of {len(first)} pass, "
             "the others belong to parts that do not exist yet. In brackets stands who attacks, where it is not code inside: LocalUser another user of the machine, ApiUser a client, Repo the "
             "author of a repository, host somebody who watches from outside.", *row_tables(all_rows, tests), "", "## Faults", "",
             "What the machine, its owner or chance may do to Cove while it works. After each fault the same is asked, as far as the part it is about exists: "
             + "; ".join(f"(I{number}) {text}" for number, text in enumerate(INVARIANTS, 1)) + ".", "",
             f"{passed(faults())} of {len(faults())} pass, from `tests/hostile/faults.tsv`.", "", *fault_table(tests), ""]
    return HEAD + "\n".join(lines)
