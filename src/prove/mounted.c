#include "prove/mounted.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "box/mounts.h"
#include "box/plan.h"
#include "prove/view.h"
#include "sys/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* One line of mountinfo. */
struct line {
    uint64_t id;
    char *place, *options;
    bool planned;
};

struct lines {
    struct line *items;
    size_t len, cap;
};

/* Steps that leave a mount at their target. */
static const bool mounts[STEP_COUNT] = {
    [STEP_ROOT] = true,  [STEP_TREE] = true,  [STEP_FILE] = true,     [STEP_PROC] = true,
    [STEP_MASK] = true,  [STEP_TMPFS] = true, [STEP_DEVPTS] = true,   [STEP_DEVICE] = true,
    [STEP_SEAL] = true,  [STEP_SYSFS] = true, [STEP_READONLY] = true, [STEP_PROTECT] = true,
    [STEP_COVER] = true,
};

/* "36 35 98:0 /root /place options ...", split in place. */
static void read_lines(char *text, struct lines *out)
{
    char *rest, *words;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct line *at = array_add(out);

        at->id = strtoull(line, NULL, 10);
        strtok_r(line, " ", &words);
        for (int i = 0; i < 3; i++)
            strtok_r(NULL, " ", &words);
        at->place = strtok_r(NULL, " ", &words);
        at->options = strtok_r(NULL, " ", &words);
    }
}

static struct line *line_of(const struct lines *lines, uint64_t id)
{
    for (size_t i = 0; i < lines->len; i++)
        if (lines->items[i].id == id && lines->items[i].options)
            return &lines->items[i];
    return NULL;
}

/* What one sees there must lie on a mount with these flags.  A step that may be passed over where there is
 * nothing has nothing to answer for then. */
static char *check_step(int root, const struct step *step, const struct lines *lines)
{
    autoclose int fd = sys_openat2(root, step->target[1] ? step->target + 1 : ".", O_PATH | O_NOFOLLOW,
                                   RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

    if (fd < 0)
        return step->mode & STEP_MODE_OPTIONAL ? NULL : text_format("nothing is at %s", step->target);

    struct line *line = line_of(lines, sys_mount_id(fd, ""));
    const char *flag = line ? mounts_lack(line->options, step->flags) : NULL;

    if (!line)
        return text_format("the mount at %s is not in its list", step->target);
    line->planned = true;
    return flag ? text_format("what is at %s is not %s", step->target, flag) : NULL;
}

static char *compare(int root, const struct plan *plan, const struct lines *lines)
{
    for (size_t i = 0; i < plan->steps.len; i++) {
        const struct step *step = &plan->steps.items[i];
        char *wrong = mounts[step->kind] ? check_step(root, step, lines) : NULL;

        if (wrong)
            return wrong;
    }
    for (size_t i = 0; i < lines->len; i++)
        if (!lines->items[i].planned)
            return text_format("a mount at %s is not in the plan", lines->items[i].place);
    return NULL;
}

static int open_root(pid_t pid)
{
    autofree char *path = text_format("/proc/%d/root", (int)pid);

    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

char *mounted_wrong(pid_t pid, const struct plan *plan)
{
    autofree char *text = view_file(pid, "mountinfo");
    autoclose int root = open_root(pid);
    struct lines lines = { 0 };

    if (!text || root < 0)
        return text_copy("its mounts cannot be read");
    read_lines(text, &lines);

    char *wrong = compare(root, plan, &lines);

    free(lines.items);
    return wrong;
}

static bool shows_something(int fd, mode_t mode)
{
    autofree char *path = text_copy(sys_fd_path(fd).text);
    char byte;

    if (S_ISDIR(mode)) {
        autoclosedir DIR *all = opendir(path);
        size_t count = 0;

        while (all && readdir(all))
            count++;
        return count > 2;
    }

    autoclose int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    return file >= 0 && read(file, &byte, 1) > 0;
}

char *mounted_unmasked(pid_t pid, const struct plan *plan)
{
    autoclose int root = open_root(pid);
    struct stat status;

    for (size_t i = 0; root >= 0 && i < plan->steps.len; i++) {
        const struct step *step = &plan->steps.items[i];
        autoclose int fd = step->kind != STEP_MASK ? -1
                                                   : sys_openat2(root, step->target + 1, O_PATH | O_NOFOLLOW,
                                                                 RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

        /* What only the host's root may open is closed to everybody inside. */
        if (fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & S_IRWXO) &&
            shows_something(fd, status.st_mode))
            return text_format("%s shows something", step->target);
    }
    return root < 0 ? text_copy("its root cannot be opened") : NULL;
}
