#include "cli/export.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/changed.h"
#include "cli/say.h"
#include "git/commits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLUG_MAX = 52, FRAME_MAX = 128, HASH_SHOWN = 12, WARNED_MAX = 10 };

/* --- mails ---------------------------------------------------------------------------------- */

/* Where the mails of one branch go. */
struct mailbox {
    const struct branch *branch;
    int in;  /* what commits_mail() wrote */
    int dir; /* -1: standard output */
    unsigned number;
    off_t at;
};

static const char *subject_of(const struct branch *branch, const char *hash)
{
    for (size_t i = 0; i < branch->commits.len; i++)
        if (strcmp(branch->commits.items[i].hash, hash) == 0)
            return branch->commits.items[i].subject;
    return "";
}

/* "0001-what-it-does.patch", of nothing but letters, digits and dashes. */
static char *file_name(const struct mailbox *box, const char *hash)
{
    struct text name = TEXT_NONE;
    bool dash = false;

    text_addf(&name, "%04u", box->number);
    for (const char *at = subject_of(box->branch, hash); *at && name.len < SLUG_MAX; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9');

        if (plain)
            text_addf(&name, "%s%c", dash || name.len == 4 ? "-" : "", *at);
        dash = !plain;
    }
    text_add(&name, ".patch");
    return text_steal(&name);
}

static int copy_part(struct mailbox *box, int out, size_t size)
{
    while (size > 0) {
        char chunk[16 << 10];
        ssize_t got = pread(box->in, chunk, size < sizeof chunk ? size : sizeof chunk, box->at);

        if (got <= 0 || write(out, chunk, (size_t)got) != got)
            return -1;
        box->at += got;
        size -= (size_t)got;
    }
    return 0;
}

/* On a terminal no byte of the sandbox does anything but be seen. */
static int show_part(struct mailbox *box, size_t size)
{
    autofree char *bytes = memory_zero(size + 1);
    autotext struct text shown = TEXT_NONE;
    char *rest = NULL;

    if (pread(box->in, bytes, size, box->at) != (ssize_t)size)
        return -1;
    box->at += (off_t)size;
    for (char *line = strtok_r(bytes, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        text_add_inert(&shown, line);
        text_add(&shown, "\n");
    }
    return fputs(text_string(&shown), stdout) < 0 ? -1 : 0;
}

static int write_mail(struct mailbox *box, const char *hash, size_t size, struct error *err)
{
    autofree char *name = file_name(box, hash);
    autoclose int fd = -1;

    if (box->dir < 0)
        return (isatty(STDOUT_FILENO) ? show_part(box, size) : copy_part(box, STDOUT_FILENO, size)) < 0
                   ? error_sys(err, "write the commits")
                   : 0;
    fd = openat(box->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || copy_part(box, fd, size) < 0)
        return error_sys(err, "write %s", name);
    puts(name);
    return 0;
}

/* What is not as the agent wrote it, so that it cannot act. */
static void warn_of_quotes(const char *hash, uint64_t quoted)
{
    if (quoted)
        say_warning("commit %.*s: lines of its message that git am or patch would act on begin with \"> \" now",
                    HASH_SHOWN, hash);
}

/* "HASH SIZE QUOTED": what follows is framed by its size, and no byte of it is looked at. */
static int read_frame(struct mailbox *box, char hash[HASH_MAX + 1], size_t *size, struct error *err)
{
    char line[FRAME_MAX + 1] = "";
    ssize_t got = pread(box->in, line, FRAME_MAX, box->at);
    char *newline = got > 0 ? memchr(line, '\n', (size_t)got) : NULL, *end = NULL;
    struct stat status;

    if (got == 0)
        return 0;
    size_t digits = strspn(line, "0123456789abcdef");

    if (!newline || fstat(box->in, &status) < 0 || digits > HASH_MAX || line[digits] != ' ')
        return error_set(err, ERROR_SYSTEM, "what git wrote is no series of mails");
    memcpy(hash, line, digits);
    hash[digits] = '\0';
    *size = strtoull(line + digits, &end, 10);
    warn_of_quotes(hash, strtoull(end, NULL, 10));
    box->at += newline - line + 1;
    if (*size > (size_t)(status.st_size - box->at))
        return error_set(err, ERROR_SYSTEM, "what git wrote is cut off");
    return 1;
}

static int write_mails(struct mailbox *box, struct error *err)
{
    char hash[HASH_MAX + 1] = "";
    size_t size = 0;

    for (int more; (more = read_frame(box, hash, &size, err)) != 0; box->number++)
        if (more < 0 || write_mail(box, hash, size, err) < 0)
            return -1;
    return 0;
}

/* --- branches ------------------------------------------------------------------------------- */

static int open_output(const char *path, struct error *err)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return error_sys(err, "make %.200s", path);

    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open %.200s", path) : fd;
}

/* Each branch gets a directory of its own if there are several. */
static int open_for_branch(int output, const struct branch *branch, bool alone, struct error *err)
{
    autofree char *name = text_copy(branch->names.items[0].home + strlen("cove/"));

    if (output < 0 || alone)
        return output < 0 ? -1 : fcntl(output, F_DUPFD_CLOEXEC, 0);
    for (char *at = name; *at; at++)
        if (*at == '/')
            *at = '-';
    if (mkdirat(output, name, 0777) < 0 && errno != EEXIST)
        return error_sys(err, "make %s", name);

    int fd = openat(output, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? error_sys(err, "open %s", name) : fd;
}

/* Nobody asks before `git am`: so it is said now. */
static void warn_of_autorun(const struct branch *branch)
{
    for (size_t i = 0; i < branch->carried.len && i < WARNED_MAX; i++) {
        autotext struct text path = TEXT_NONE;

        text_add_inert(&path, branch->carried.items[i].path);
        say_warning("the mails of %s bring %s, which acts by merely being there: %s",
                    branch->names.items[0].home, text_string(&path), branch->carried.items[i].verdict.reason);
    }
    if (branch->carried.len > WARNED_MAX)
        say_warning("and %zu more such files; `cove diff` lists them", branch->carried.len - WARNED_MAX);
}

static int export_branch(struct commits *commits, struct branch *branch, int output, struct error *err)
{
    autoclose int dir = open_for_branch(output, branch, commits->branches.len == 1, err), in = -1;

    if (output >= 0 && dir < 0)
        return -1;
    in = commits_mail(commits, branch, err);
    if (in < 0 || commits_judge(commits, branch, err) < 0)
        return -1;
    warn_of_autorun(branch);
    return write_mails(&(struct mailbox){ .branch = branch, .in = in, .dir = dir, .number = 1 }, err);
}

int export_patch(const struct changed *changed, const struct run_options *options, struct error *err)
{
    const struct which *which = &changed->which;
    autoclose int dir = kept_open(&which->all, changed->kept, err), output = -1;
    autocommits struct commits commits = COMMITS_NONE;

    if (dir < 0 || commits_find(&which->host, dir, &changed->kept->record, &commits, err) < 0)
        return -1;
    if (options->output && (output = open_output(options->output, err)) < 0)
        return -1;
    for (size_t i = 0; i < commits.branches.len; i++)
        if (export_branch(&commits, &commits.branches.items[i], output, err) < 0)
            return -1;
    if (!commits.branches.len)
        say_warning("the sandbox has no commit that you do not have");
    return 0;
}
