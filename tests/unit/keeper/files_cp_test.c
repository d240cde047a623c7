/* Where a copy goes: a table, tried both ways against the real program. */

#include "keeper/files_cp.h"

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "files_session.h"
#include "keeper/files.h"
#include "keeper/files_tree.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct error error;

/* On the side that is copied from:  file, dir/inner, link -> file, dirlink -> dir.
 * On the other:  there/ (empty), old (a file), way -> there. */
static const struct row {
    const char *source, *target;
    bool follow;
    const char *made; /* a path that is there afterwards, on the other side; NULL: it fails with `number` */
    int number;
    mode_t type; /* of what was made */
} rows[] = {
    { "file", "new", false, "new", 0, S_IFREG },
    { "file", "old", false, "old", 0, S_IFREG },
    { "file", "there", false, "there/file", 0, S_IFREG },
    { "file", "there/", false, "there/file", 0, S_IFREG },
    { "file", "there/.", false, "there/file", 0, S_IFREG },
    { "file", "there/other", false, "there/other", 0, S_IFREG },
    { "file", ".", false, "file", 0, S_IFREG },
    { "file", "none/", false, NULL, ENOENT, 0 },
    { "file", "none/new", false, NULL, ENOENT, 0 },
    { "file", "old/", false, NULL, ENOTDIR, 0 },
    { "file/", "new", false, NULL, ENOTDIR, 0 },
    { "file/.", "new", false, NULL, ENOTDIR, 0 },
    { "none", "new", false, NULL, ENOENT, 0 },
    { "dir", "new", false, "new/inner", 0, S_IFREG },
    { "dir", "new/", false, "new/inner", 0, S_IFREG },
    { "dir/", "new", false, "new/inner", 0, S_IFREG },
    { "dir", "there", false, "there/dir/inner", 0, S_IFREG },
    { "dir/", "there", false, "there/dir/inner", 0, S_IFREG },
    { "dir/.", "there", false, "there/inner", 0, S_IFREG },
    { "dir/.", "new", false, "new/inner", 0, S_IFREG },
    { "dir", "old", false, NULL, ENOTDIR, 0 },
    { "dir/.", "old", false, NULL, ENOTDIR, 0 },
    { "dir", "none/new", false, NULL, ENOENT, 0 },
    { "link", "new", false, "new", 0, S_IFLNK },
    { "link", "new", true, "new", 0, S_IFREG },
    { "link", "there", true, "there/link", 0, S_IFREG },
    { "dirlink", "new", false, "new", 0, S_IFLNK },
    { "dirlink", "there", true, "there/dirlink/inner", 0, S_IFREG },
    { "dirlink/", "new", false, "new/inner", 0, S_IFREG },
    { "dirlink/.", "there", false, "there/inner", 0, S_IFREG },
};

static void make_file(int dir, const char *name, const char *content)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0 && write(fd, content, strlen(content)) >= 0);
    assert_int_equal(fchmod(fd, 0666), 0);
    close(fd);
}

static void make_directory(int dir, const char *name)
{
    assert_int_equal(mkdirat(dir, name, 0777), 0);
    assert_int_equal(fchmodat(dir, name, 0777, 0), 0);
}

static void plant(int from, int to)
{
    make_file(from, "file", "content");
    make_directory(from, "dir");
    make_file(from, "dir/inner", "inner");
    assert_int_equal(symlinkat("file", from, "link"), 0);
    assert_int_equal(symlinkat("dir", from, "dirlink"), 0);
    make_directory(to, "there");
    make_file(to, "old", "old");
    assert_int_equal(symlinkat("there", to, "way"), 0);
}

static int run(struct session *session, const struct row *row, bool out)
{
    struct files_copy copy = FILES_COPY_NONE;
    autofree char *host = text_format("%s/out/%s", session->scratch->path, out ? row->target : row->source);
    int result = out ? files_cp_out(session->files, row->source, host, row->follow, -1, &copy, &error)
                     : files_cp_in(session->files, host, row->target, row->follow, -1, &copy, &error);

    if (result == 0 && copy.told)
        fail_msg("%s to %s: %s", row->source, row->target, copy.notes.items[0]);
    files_copy_free(&copy);
    return result;
}

static void try_row(const struct row *row, bool out)
{
    void *state = NULL;

    assert_int_equal(session_setup(&state), 0);
    struct session *session = state;
    int to = out ? session->out : session->in;
    struct stat status;

    plant(out ? session->in : session->out, to);
    int result = run(session, row, out);

    if (row->made ? result != 0 : result != -1 || error.sys_errno != row->number)
        fail_msg("%s to %s, %s: %s", row->source, row->target, out ? "out" : "in", error.text);
    if (row->made &&
        (fstatat(to, row->made, &status, AT_SYMLINK_NOFOLLOW) < 0 || (status.st_mode & S_IFMT) != row->type))
        fail_msg("%s to %s, %s: %s is not there", row->source, row->target, out ? "out" : "in", row->made);
    assert_int_equal(session_teardown(&state), 0);
}

static void a_copy_comes_out_to_where_it_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        try_row(&rows[i], true);
}

static void a_copy_goes_in_to_where_it_should(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        try_row(&rows[i], false);
}

/* It may have been put there by whoever writes to the directory too. */
static void a_link_of_the_host_is_no_target(void **state)
{
    static const char *const targets[] = { "way", "way/", "way/.", "alias", "dangling" };
    struct session *session = *state;

    plant(session->in, session->out);
    assert_int_equal(symlinkat("old", session->out, "alias"), 0);
    assert_int_equal(symlinkat("nowhere", session->out, "dangling"), 0);
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        if (run(session, &(struct row){ "file", targets[i], false, NULL, 0, 0 }, true) == 0)
            fail_msg("a copy went to %s", targets[i]);
        assert_int_equal(error.kind, ERROR_REFUSED);
    }
    assert_int_equal(faccessat(session->out, "there/file", F_OK, 0), -1);
    assert_int_equal(faccessat(session->out, "nowhere", F_OK, 0), -1);
}

#define IN_SESSION(test) cmocka_unit_test_setup_teardown(test, session_setup, session_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_comes_out_to_where_it_should),
        cmocka_unit_test(a_copy_goes_in_to_where_it_should),
        IN_SESSION(a_link_of_the_host_is_no_target),
    };

    session_program = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
