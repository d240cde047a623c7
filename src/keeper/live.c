#include "keeper/live.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "keeper/apart.h"
#include "keeper/held.h"
#include "keeper/live_report.h"
#include "store/store.h"
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what the child says, in a file of its own --- */

static void write_end(int fd, const struct live_end *end)
{
    autotext struct text out = TEXT_NONE;

    live_report_add(end, &out);
    for (size_t done = 0; done < out.len;) {
        ssize_t put = write(fd, out.data + done, out.len - done);

        if (put <= 0)
            _exit(1);
        done += (size_t)put;
    }
}

static bool read_end(int fd, struct live_end *out)
{
    enum { REPORT_MAX = 4 << 20 };
    struct stat status;

    if (fstat(fd, &status) < 0 || status.st_size <= 0 || status.st_size > REPORT_MAX)
        return false;

    autofree char *bytes = memory_resize(NULL, (size_t)status.st_size);

    return pread(fd, bytes, (size_t)status.st_size, 0) == status.st_size &&
           live_report_parse(bytes, (size_t)status.st_size, out);
}

/* --- the child --- */

/* It reads what hostile programs wrote, and writes nowhere but in the workspace: the kernel sees to the
 * second.  Where there is no Landlock, it goes without. */
static void confine(int base)
{
    const uint64_t writing = ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1) &
                             ~(uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
    autoclose int ruleset = sys_landlock_create(&writing, sizeof writing);

    if (ruleset < 0 || sys_landlock_path(ruleset, base, writing & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE) < 0)
        return;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

static _Noreturn void child(struct live_sides sides, int prints, int control, int report)
{
    int *fds[] = { &sides.upper, &sides.base, &prints, &control, &report };
    struct live_end end = { 0 };

    apart("cove-live", fds, ARRAY_LEN(fds));
    confine(sides.base);
    if (live_main(&sides, control, prints, &end) == 0)
        write_end(report, &end);
    live_end_free(&end);
    _exit(0);
}

/* --- the keeper --- */

static const struct step *workspace_step(const struct plan *plan)
{
    for (size_t i = 0; i < plan->steps.len; i++) {
        const struct step *step = &plan->steps.items[i];

        if (step->layer >= 0 && strcmp(plan->trees.items[step->tree].target, plan->workspace) == 0)
            return step;
    }
    return NULL;
}

static int open_base(const struct tree *tree, struct error *err)
{
    autoclose int fd = sys_openat2(AT_FDCWD, tree->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                                   RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_sys(err, "open the workspace %.200s", tree->source);
    if (status.st_dev != tree->device || status.st_ino != tree->inode)
        return error_set(err, ERROR_REFUSED, "%.200s was replaced by something else during the start",
                         tree->source);
    return steal_fd(&fd);
}

static int start_child(const struct live_sides *sides, int prints, struct live *out, struct error *err)
{
    autoclose int report = memfd_create("cove-live", MFD_CLOEXEC);
    int ends[2];

    if (report < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_sys(err, "make what a child needs");
    autoclose int hear = ends[0], tell = ends[1];
    pid_t pid = fork();

    if (pid < 0)
        return error_sys(err, "fork");
    if (pid == 0)
        child(*sides, prints, hear, report);
    *out = (struct live){ pid, steal_fd(&tell), steal_fd(&report) };
    return 0;
}

int live_start(const struct plan *plan, int dir, struct timespec since, struct live *out, struct error *err)
{
    const struct step *step = workspace_step(plan);

    if (!step)
        return error_set(err, ERROR_UNSUPPORTED, "the workspace has no layer to bring changes from");

    const struct tree *tree = &plan->trees.items[step->tree];
    autofree char *name = text_format("u%d", step->layer);
    autoclose int upper = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), base = -1;
    autoclose int prints =
        openat(dir, STORE_PRINTS, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (upper < 0 || prints < 0)
        return error_sys(err, "open the writable layer of the workspace");
    base = open_base(tree, err);
    if (base < 0)
        return -1;

    struct live_sides sides = { .upper = upper,
                                .base = base,
                                .marks = plan->ids.shifted ? CHANGES_MARKS_TRUSTED : CHANGES_MARKS_USER,
                                .inside = tree->source, /* a link that comes home leads from there */
                                .hide = &tree->hide,
                                .shift = plan->ids.shifted ? plan->ids.base : 0,
                                .since = since };

    return start_child(&sides, prints, out, err) < 0 ? error_while(err, "start bringing changes home") : 0;
}

/* The child closes its end when it dies. */
static void wait_for_end(struct live *live)
{
    enum { LOOK_MS = 100, GIVE_UP_MS = 5000 };
    struct pollfd polled = { .fd = live->control, .events = POLLIN };
    int after = 0;

    while (poll(&polled, 1, LOOK_MS) <= 0) {
        if (!after && !held_waits())
            continue;
        shutdown(live->control, SHUT_WR);
        after += LOOK_MS;
        if (after >= GIVE_UP_MS)
            kill(live->pid, SIGKILL);
    }
}

static bool is_nothing_left(const struct live_end *end)
{
    for (size_t i = 0; i < BRING_KINDS; i++)
        if (end->counts[i])
            return false;
    return true;
}

bool live_finish(struct live *live, struct live_end *out)
{
    char word = LIVE_FINISH;
    bool told = false;
    int status = 0;

    *out = (struct live_end){ 0 };
    if (!live->pid)
        return false;
    if (send(live->control, &word, 1, MSG_NOSIGNAL) == 1)
        wait_for_end(live);
    while (waitpid(live->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        told = read_end(live->report, out);
    if (!told)
        error_set(&out->problem, ERROR_SYSTEM, "the process that brings changes home ended before its time");
    live->pid = 0;
    live_drop(live);
    return told && out->problem.kind == ERROR_NONE && is_nothing_left(out);
}

void live_drop(struct live *live)
{
    own_close(&live->control);
    own_close(&live->report);
    while (live->pid && waitpid(live->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *live = LIVE_NONE;
}
