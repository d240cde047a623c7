#include "prove/view.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

char *view_file(pid_t pid, const char *name)
{
    autofree char *path = text_format("/proc/%d/%s", (int)pid, name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct text content = TEXT_NONE;
    char part[4096];

    if (fd < 0)
        return NULL;
    for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;)
        text_add_bytes(&content, part, (size_t)got);
    return text_steal(&content);
}

/* "PID (name) state parent ...": a name can have anything in it, but the last bracket is the kernel's. */
static pid_t parent_of(pid_t pid)
{
    autofree char *stat = view_file(pid, "stat");
    const char *end = stat ? strrchr(stat, ')') : NULL;
    int parent = 0;

    return end && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0; /* NOLINT(cert-err34-c) */
}

void view_children(pid_t pid, void (*each)(void *owner, pid_t child), void *owner)
{
    autoclosedir DIR *all = opendir("/proc");
    const struct dirent *entry;

    while (all && (entry = readdir(all))) {
        pid_t other = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;

        if (other > 0 && parent_of(other) == pid)
            each(owner, other);
    }
}

static void take_child(void *owner, pid_t child)
{
    pid_t *youngest = owner;

    *youngest = child;
}

pid_t view_child(pid_t pid)
{
    pid_t youngest = 0;

    view_children(pid, take_child, &youngest);
    return youngest;
}

/* Its descriptors, or what they lead to, but for those in `except` by their number. */
static void list(pid_t pid, const struct strings *except, bool links, struct strings *out)
{
    autofree char *path = text_format("/proc/%d/fd", (int)pid);
    autoclosedir DIR *all = opendir(path);
    const struct dirent *entry;

    while (all && (entry = readdir(all))) {
        char link[PATH_MAX];
        ssize_t len =
            entry->d_name[0] == '.' ? -1 : readlinkat(dirfd(all), entry->d_name, link, sizeof link - 1);

        if (len < 0 || (except && strings_have(except, entry->d_name)))
            continue;
        link[len] = '\0';
        strings_add(out, links ? link : entry->d_name);
    }
}

void view_descriptors(pid_t pid, struct strings *out)
{
    list(pid, NULL, false, out);
}

void view_links(pid_t pid, const struct strings *except, struct strings *out)
{
    list(pid, except, true, out);
}

static void list_child(void *owner, pid_t child)
{
    list(child, NULL, true, owner);
}

void view_child_links(pid_t pid, struct strings *out)
{
    view_children(pid, list_child, out);
}

char *view_status(pid_t pid, const char *name)
{
    autofree char *status = view_file(pid, "status"), *wanted = text_format("\n%s:", name);
    const char *at = status ? strstr(status, wanted) : NULL;

    if (!at)
        return NULL;
    at += strlen(wanted);
    at += strspn(at, " \t");
    return text_format("%.*s", (int)strcspn(at, "\n"), at);
}

bool view_status_number(pid_t pid, const char *name, int base, uint64_t *out)
{
    autofree char *line = view_status(pid, name);

    if (!line || !*line)
        return false;
    *out = strtoull(line, NULL, base);
    return true;
}

char *view_namespace(pid_t pid, const char *kind)
{
    autofree char *path = text_format("/proc/%d/ns/%s", (int)pid, kind);
    char link[64];
    ssize_t len = readlink(path, link, sizeof link - 1);

    return len < 0 ? NULL : text_format("%.*s", (int)len, link);
}
