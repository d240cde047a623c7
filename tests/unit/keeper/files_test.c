/* One operation at a time, against the real program. */

#include "keeper/files.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "files_session.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

struct source {
    const char *bytes;
    size_t left;
    bool fails;
};

static ssize_t give(void *owner, void *bytes, size_t room, struct error *err)
{
    struct source *source = owner;
    size_t len = source->left < room ? source->left : room;

    if (!len && source->fails)
        return error_set(err, ERROR_INVALID, "no more");
    memcpy(bytes, source->bytes, len);
    source->bytes += len;
    source->left -= len;
    return (ssize_t)len;
}

static int take(void *owner, const void *bytes, size_t len, struct error *err)
{
    (void)err;
    text_add_bytes(owner, bytes, len);
    return 0;
}

static int put(const struct session *session, const char *path, uint32_t flags, const char *content)
{
    struct source source = { content, strlen(content), false };

    return files_write(session->files, path, flags, UINT32_MAX, give, &source, &session_error);
}

static const char *content_of(const struct session *session, const char *path)
{
    static struct text text;

    text_clear(&text);
    assert_works(files_read(session->files, path, 0, UINT64_MAX, take, &text, &session_error));
    return text_string(&text);
}

static void what_is_written_can_be_read(void **state)
{
    struct session *session = *state;
    autotext struct text part = TEXT_NONE;

    assert_works(put(session, "file", 0, "one two"));
    assert_string_equal(content_of(session, "file"), "one two");
    assert_works(put(session, "file", FILES_APPEND, " three"));
    assert_string_equal(content_of(session, "file"), "one two three");
    assert_works(files_read(session->files, "file", 4, 3, take, &part, &session_error));
    assert_string_equal(text_string(&part), "two");
    assert_works(put(session, "file", 0, "x"));
    assert_string_equal(content_of(session, "file"), "x");
    assert_works(put(session, "file", FILES_WHOLE, ""));
    assert_string_equal(content_of(session, "file"), "");
    assert_fails_with(EEXIST, put(session, "file", FILES_NEW, "y"));
    assert_fails_with(EEXIST, put(session, "file", FILES_NEW | FILES_WHOLE, "y"));
    assert_fails_with(ENOENT, put(session, "none/file", 0, "y"));
    assert_works(put(session, "end", 0, "after errors all goes on"));
}

static bool each(void *owner, const char *name, const struct files_info *info)
{
    struct text *text = owner;

    assert_true(info->mode != 0);
    text_add(text, name);
    text_add(text, " ");
    return true;
}

/* A write that its source gives up leaves the old file with FILES_WHOLE, and never a name of our own. */
static void a_write_that_fails_leaves_no_other_name(void **state)
{
    struct session *session = *state;
    struct source source = { "new", 3, true };
    autotext struct text names = TEXT_NONE;
    bool more = true;

    assert_works(put(session, "file", 0, "old"));
    assert_int_equal(files_write(session->files, "file", FILES_WHOLE, 0600, give, &source, &session_error), -1);
    assert_contains(session_error.text, "no more");
    assert_string_equal(content_of(session, "file"), "old");
    assert_works(files_list(session->files, ".", 100, each, &names, &more, &session_error));
    assert_string_equal(text_string(&names), "file ");
    assert_false(more);
}

static void names_are_bytes(void **state)
{
    static const char *const names[] = { "new\nline", "\xff\xfe", " ", "-rf", "\x1b[2J", "ü" };
    struct session *session = *state;
    struct files_info info;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_works(put(session, names[i], 0, names[i]));
        assert_string_equal(content_of(session, names[i]), names[i]);
        assert_works(files_stat(session->files, names[i], false, &info, &session_error));
        assert_int_equal(info.size, strlen(names[i]));
    }
}

static void lists_have_a_bound(void **state)
{
    struct session *session = *state;
    autotext struct text names = TEXT_NONE;
    bool more = false;

    for (int i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof name, "f%02d", i);
        assert_works(put(session, name, 0, ""));
    }
    assert_works(files_list(session->files, ".", 5, each, &names, &more, &session_error));
    assert_int_equal(names.len, 5 * 4);
    assert_true(more);
    assert_works(files_list(session->files, ".", 20, each, &names, &more, &session_error));
    assert_false(more);
    assert_fails_with(ENOTDIR, files_list(session->files, "f00", 5, each, &names, &more, &session_error));
}

static void links_are_told_and_followed_on_request(void **state)
{
    struct session *session = *state;
    struct files_info info;

    assert_works(put(session, "file", 0, "12345"));
    assert_works(files_symlink(session->files, "link", "file", &session_error));
    assert_works(files_stat(session->files, "link", false, &info, &session_error));
    assert_true(S_ISLNK(info.mode));
    assert_string_equal(info.target, "file");
    assert_works(files_stat(session->files, "link", true, &info, &session_error));
    assert_true(S_ISREG(info.mode));
    assert_int_equal(info.size, 5);
    assert_fails_with(ENOENT, files_stat(session->files, "none", false, &info, &session_error));
}

static void directories_are_made_moved_and_removed(void **state)
{
    struct session *session = *state;

    assert_fails_with(ENOENT, files_make(session->files, "a/b/c", 0700, false, &session_error));
    assert_works(files_make(session->files, "a/b/c", 0700, true, &session_error));
    assert_works(files_make(session->files, "a/b/c", 0711, true, &session_error));
    assert_int_equal(session_look(session->in, "a/b/c").st_mode & 07777, 0711);
    assert_fails_with(EEXIST, files_make(session->files, "a", 0700, false, &session_error));
    assert_works(put(session, "a/b/c/file", 0, "x"));
    assert_works(files_move(session->files, "a/b", "b", true, &session_error));
    assert_works(files_make(session->files, "c", 0700, false, &session_error));
    assert_fails_with(EEXIST, files_move(session->files, "b", "c", true, &session_error));
    assert_fails_with(ENOTEMPTY, files_remove(session->files, "b", false, &session_error));
    assert_works(files_remove(session->files, "b", true, &session_error));
    assert_false(session_has(session->in, "b"));
    assert_fails_with(ENOENT, files_remove(session->files, "b", true, &session_error));
}

static void mode_and_time_can_be_set(void **state)
{
    struct session *session = *state;
    struct stat status;

    assert_works(put(session, "file", 0, "x"));
    assert_works(files_chmod(session->files, "file", 0640, &session_error));
    assert_works(files_touch(session->files, "file", (struct timespec){ 1000, 5 }, false, &session_error));
    status = session_look(session->in, "file");
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(status.st_mtim.tv_sec, 1000);
    assert_int_equal(status.st_mtim.tv_nsec, 5);
}

/* Ten thousand directories in each other take two descriptors; what a link leads to stays. */
static void deep_trees_are_removed_and_links_are_not_followed(void **state)
{
    enum { DEEP = 10000 };
    struct session *session = *state;
    autoclose int at = -1;

    assert_works(files_make(session->files, "deep", 0777, false, &session_error));
    assert_works(files_chmod(session->files, "deep", 0777, &session_error));
    at = openat(session->in, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    umask(0);
    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(mkdirat(at, "d", 0777), 0);
        if (geteuid() == 0)
            assert_int_equal(fchownat(at, "d", 54321, 54321, 0), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        close(at);
        at = next;
    }
    umask(022);
    assert_int_equal(mkdirat(session->in, "kept", 0777), 0);
    close(openat(session->in, "kept/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    assert_int_equal(symlinkat("../kept", session->in, "deep/link"), 0);
    assert_works(files_remove(session->files, "deep", true, &session_error));
    assert_false(session_has(session->in, "deep"));
    assert_true(session_has(session->in, "kept/file"));
}

static void what_is_no_file_keeps_nobody_waiting(void **state)
{
    struct session *session = *state;
    autotext struct text text = TEXT_NONE;

    assert_int_equal(mkfifoat(session->in, "fifo", 0666), 0);
    assert_int_equal(fchmodat(session->in, "fifo", 0666, 0), 0);
    assert_fails_with(ESPIPE, files_read(session->files, "fifo", 0, 10, take, &text, &session_error));
    assert_fails_with(ENXIO, put(session, "fifo", 0, "x"));
    assert_fails_with(ESPIPE,
                      files_read(session->files, "/dev/zero", 0, UINT64_MAX, take, &text, &session_error));
    assert_fails_with(EISDIR, files_read(session->files, ".", 0, 10, take, &text, &session_error));
    assert_fails_with(EISDIR, put(session, ".", 0, "x"));
    /* A file of 8 EiB is read as far as was asked for. */
    autoclose int fd = openat(session->in, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    assert_int_equal(ftruncate(fd, (off_t)1 << 43), 0);
    assert_works(files_read(session->files, "sparse", (uint64_t)1 << 42, 100, take, &text, &session_error));
    assert_int_equal(text.len, 100);
    assert_works(files_read(session->files, "/proc/self/status", 0, UINT64_MAX, take, &text, &session_error));
    assert_contains(text.data + 100, "Name:");
}

static void expect(struct session *session, uint32_t change, const char *path)
{
    struct files_seen seen = { 0 };

    for (int i = 0; i < 20; i++) {
        int got = files_watch_next(session->files, 5000, &seen, &session_error);

        if (got != 1)
            fail_msg("%s: %s", path, got ? session_error.text : "nothing was seen");
        if (seen.change & change && strcmp(seen.path, path) == 0)
            return;
    }
    fail_msg("%s was not seen", path);
}

static void make_file(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    assert_true(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
}

static void changes_are_watched(void **state)
{
    struct session *session = *state;
    struct files_info info;
    struct files_seen seen;

    assert_int_equal(mkdirat(session->in, "top", 0777), 0);
    assert_int_equal(mkdirat(session->in, "top/sub", 0777), 0);
    assert_works(files_watch(session->files, "top", true, &session_error));
    make_file(session->in, "top/sub/file");
    expect(session, CHANGE_MADE, "sub/file");
    expect(session, CHANGE_WRITTEN, "sub/file");
    assert_int_equal(mkdirat(session->in, "top/new", 0777), 0);
    assert_int_equal(mkdirat(session->in, "top/new/inner", 0777), 0);
    expect(session, CHANGE_MADE, "new/inner");
    make_file(session->in, "top/new/inner/file");
    expect(session, CHANGE_MADE, "new/inner/file");
    assert_int_equal(renameat(session->in, "top/sub", session->in, "top/moved"), 0);
    expect(session, CHANGE_GONE, "sub");
    expect(session, CHANGE_MADE, "moved");
    make_file(session->in, "top/moved/again");
    expect(session, CHANGE_MADE, "moved/again");
    assert_int_equal(unlinkat(session->in, "top/moved/again", 0), 0);
    expect(session, CHANGE_GONE, "moved/again");
    assert_int_equal(files_stat(session->files, "top", false, &info, &session_error), -1); /* it is watching */
    assert_works(files_unwatch(session->files, &session_error));
    assert_works(files_stat(session->files, "top", false, &info, &session_error));
    assert_int_equal(files_watch_next(session->files, 0, &seen, &session_error), -1);
    assert_fails_with(ENOENT, files_watch(session->files, "none", false, &session_error));
    assert_works(files_stat(session->files, "top", false, &info, &session_error));
}

static void long_paths_are_refused_before_they_are_sent(void **state)
{
    struct session *session = *state;
    char path[FILES_PATH_MAX + 2];
    struct files_info info;

    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_fails_with(ENAMETOOLONG, files_stat(session->files, path, false, &info, &session_error));
    assert_int_equal(files_stat(session->files, "", false, &info, &session_error), -1);
    assert_works(files_stat(session->files, ".", false, &info, &session_error));
}

#define IN_SESSION(test) cmocka_unit_test_setup_teardown(test, session_setup, session_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_SESSION(what_is_written_can_be_read),
        IN_SESSION(a_write_that_fails_leaves_no_other_name),
        IN_SESSION(names_are_bytes),
        IN_SESSION(lists_have_a_bound),
        IN_SESSION(links_are_told_and_followed_on_request),
        IN_SESSION(directories_are_made_moved_and_removed),
        IN_SESSION(mode_and_time_can_be_set),
        IN_SESSION(deep_trees_are_removed_and_links_are_not_followed),
        IN_SESSION(what_is_no_file_keeps_nobody_waiting),
        IN_SESSION(changes_are_watched),
        IN_SESSION(long_paths_are_refused_before_they_are_sent),
    };

    session_program = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
