/* Frames from inside, whatever they are: the first byte says what the host had asked.  What is made stays below
 * the directory, and what is given keeps to its contract.  The same bytes as a request, as the program inside
 * takes it apart. */

#include "base/error.h"
#include "inside/ask.h"
#include "inside/tree_read.h"
#include "keeper/files.h"
#include "keeper/files_tree.h"
#include "tests/fuzz/fuzz_scratch.h"

#include <sys/mman.h>

static void try_request(const uint8_t *data, size_t size)
{
    static struct ask ask;
    struct frame frame = { .length = size, .bytes = data };

    if (size > FRAME_MAX || !ask_read(&frame, &ask))
        return;
    check(*ask.path && strlen(ask.path) == ask.request.path_len && strlen(ask.other) == ask.request.other_len);
}

static bool each(void *owner, const char *name, const struct files_info *info)
{
    uint64_t *count = owner;

    check(tree_is_name(name, strlen(name)) && strlen(info->target) <= FILES_PATH_MAX);
    check(++*count <= 5);
    return true;
}

static int take(void *owner, const void *bytes, size_t len, struct error *err)
{
    uint64_t *count = owner;

    (void)bytes, (void)err;
    check((*count += len) <= 1000);
    return 0;
}

static void fetch(struct files *files, bool as_tar)
{
    struct files_copy copy = FILES_COPY_NONE;
    struct error err;
    int top = fuzz_scratch_top(), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (as_tar)
        (void)files_fetch_tar(files, "x", false, false, null, &copy, &err);
    else
        (void)files_fetch(files, "x", false, top, "x", &copy, &err);
    check(copy.notes.len <= FILES_TOLD_MAX + 1);
    files_copy_free(&copy);
    close(null);
    fuzz_scratch_done(top);
}

static void store(struct files *files)
{
    struct files_copy copy = FILES_COPY_NONE;
    struct error err;
    int top = fuzz_scratch_top();

    (void)files_store(files, top, ".", "x", true, &copy, &err);
    check(copy.notes.len <= FILES_TOLD_MAX + 1);
    files_copy_free(&copy);
    fuzz_scratch_done(top);
}

static void watch(struct files *files)
{
    struct files_seen seen;
    struct error err;

    if (files_watch(files, "x", true, &err) < 0)
        return;
    while (files_watch_next(files, 0, &seen, &err) == 1)
        check(strlen(seen.path) <= FILES_PATH_MAX && !(seen.change & ~(uint32_t)CHANGE_FLAGS));
    (void)files_unwatch(files, &err);
}

static void ask(struct files *files, unsigned kind)
{
    struct files_info info;
    struct error err;
    uint64_t count = 0;
    bool more;

    switch (kind % 7) {
    case 0:
        if (files_stat(files, "x", false, &info, &err) == 0)
            check(strlen(info.target) <= FILES_PATH_MAX && info.mtime.tv_nsec < 1000000000);
        break;
    case 1:
        (void)files_list(files, "x", 5, each, &count, &more, &err);
        break;
    case 2:
        (void)files_read(files, "x", 0, 1000, take, &count, &err);
        break;
    case 3:
        watch(files);
        break;
    case 4:
        store(files);
        break;
    default:
        fetch(files, kind % 7 == 5);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;

    try_request(data, size);
    if (size < 1)
        return 0;
    int from = memfd_create("answers", MFD_CLOEXEC), to = open("/dev/null", O_WRONLY | O_CLOEXEC);

    check(write(from, data + 1, size - 1) == (ssize_t)(size - 1) && lseek(from, 0, SEEK_SET) == 0);
    struct files *files = files_open(to, from, &err);

    check(files != NULL);
    files_be_patient(files, 1000, NULL, NULL);
    ask(files, data[0]);
    files_close(files);
    return 0;
}
