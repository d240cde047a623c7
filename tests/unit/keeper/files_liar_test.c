/* A program inside that lies: each lie ends the session, none is believed, and nothing of it is put anywhere.
 */

#include "base/array.h"
#include "base/error.h"
#include "base/own.h"
#include "files_session.h"
#include "inside/protocol.h"
#include "keeper/files.h"
#include "keeper/files_tree.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a liar says to the first request, whatever it is: frames, in order. */
struct lie {
    const char *what;
    struct {
        uint32_t kind, id;
        struct files_entry entry;
        const char *strings; /* behind the entry */
        int raw;             /* 1: no entry, only the strings; 2: a length that is not kept; 3: a done */
    } frames[6];
};

static void say(int out, uint32_t kind, uint32_t id, const void *head, size_t head_len, const char *rest)
{
    struct frame_head start = { kind, id, head_len + strlen(rest) };

    (void)!write(out, &start, sizeof start);
    (void)!write(out, head, head_len);
    (void)!write(out, rest, strlen(rest));
}

static void tell_lie(int in, int out, const void *what)
{
    const struct lie *lie = what;
    char bytes[8192];

    (void)!read(in, bytes, sizeof bytes);
    for (size_t i = 0; i < ARRAY_LEN(lie->frames) && lie->frames[i].kind; i++) {
        uint32_t kind = lie->frames[i].kind, id = lie->frames[i].id ? lie->frames[i].id : 1;
        const char *strings = lie->frames[i].strings ? lie->frames[i].strings : "";

        if (lie->frames[i].raw == 1)
            say(out, kind, id, "", 0, strings);
        else if (lie->frames[i].raw == 2)
            (void)!write(out, &(struct frame_head){ kind, id, UINT64_MAX }, sizeof(struct frame_head));
        else if (lie->frames[i].raw == 3)
            say(out, kind, id, &(struct files_done){ 0 }, sizeof(struct files_done), strings);
        else
            say(out, kind, id, &lie->frames[i].entry, sizeof lie->frames[i].entry, strings);
    }
    while (read(in, bytes, sizeof bytes) > 0)
        continue;
}

#define NAMED(len)                                                                                             \
    {                                                                                                          \
        .mode = 0100644, .name_len = (len)                                                                     \
    }
#define OK                                                                                                     \
    {                                                                                                          \
        .kind = SAY_OK, .raw = 3                                                                               \
    }

static const struct lie lies[] = {
    { "a kind that there is not", { { .kind = 4711 } } },
    { "another request's answer", { { .kind = SAY_OK, .id = 7, .raw = 3 } } },
    { "a frame without end", { { .kind = TREE_DATA, .raw = 2 } } },
    { "OK without a tree", { OK } },
    { "OK that is too long", { { .kind = SAY_OK, .raw = 3, .strings = "xx" } } },
    { "a name that goes up", { { .kind = TREE_FILE, .entry = NAMED(2), .strings = ".." } } },
    { "a name with a slash", { { .kind = TREE_FILE, .entry = NAMED(3), .strings = "a/b" } } },
    { "an absolute name", { { .kind = TREE_DIR, .entry = NAMED(4), .strings = "/etc" } } },
    { "no name", { { .kind = TREE_DIR, .entry = NAMED(0) } } },
    { "a name longer than its frame", { { .kind = TREE_DIR, .entry = NAMED(400), .strings = "x" } } },
    { "lengths that overflow",
      { { .kind = TREE_LINK, .entry = { .name_len = 1, .target_len = UINT32_MAX }, .strings = "xy" } } },
    { "data without a file", { { .kind = TREE_DATA, .raw = 1, .strings = "x" } } },
    { "leaving what was not entered", { { .kind = TREE_LEAVE, .raw = 1 } } },
    { "more content than was said",
      { { .kind = TREE_FILE, .entry = NAMED(4), .strings = "file" },
        { .kind = TREE_DATA, .raw = 1, .strings = "x" } } },
    { "less content than was said",
      { { .kind = TREE_FILE, .entry = { .mode = 0644, .name_len = 4, .size = 5 }, .strings = "file" },
        { .kind = TREE_FILE_END, .raw = 3 } } },
    { "a file in a file",
      { { .kind = TREE_FILE, .entry = { .mode = 0644, .name_len = 4, .size = 5 }, .strings = "file" },
        { .kind = TREE_FILE, .entry = NAMED(4), .strings = "filf" } } },
    { "two trees",
      { { .kind = TREE_DIR, .entry = NAMED(1), .strings = "a" },
        { .kind = TREE_LEAVE, .raw = 1 },
        { .kind = TREE_DIR, .entry = NAMED(1), .strings = "b" } } },
    { "a tree that is not whole", { { .kind = TREE_DIR, .entry = NAMED(1), .strings = "a" }, OK } },
    { "another name of nothing",
      { { .kind = TREE_DIR, .entry = NAMED(1), .strings = "a" },
        { .kind = TREE_TWIN, .entry = { .twin = 1, .name_len = 1 }, .strings = "b" } } },
    { "a number out of order",
      { { .kind = TREE_FILE, .entry = { .twin = 9, .name_len = 1, .mode = 0644 }, .strings = "b" } } },
    { "a link that leads nowhere", { { .kind = TREE_LINK, .entry = NAMED(1), .strings = "b" } } },
    { "a time that is none",
      { { .kind = TREE_DIR, .entry = { .name_len = 1, .nsec = UINT32_MAX }, .strings = "b" } } },
    { "a size beyond all files",
      { { .kind = TREE_FILE, .entry = { .name_len = 1, .size = UINT64_MAX }, .strings = "b" } } },
    { "an event", { { .kind = SAY_EVENT, .raw = 3 } } },
    { "an error without a number", { { .kind = SAY_ERROR, .raw = 3, .strings = "path" } } },
};

static struct error error;

/* Whether only what the lie itself had made stays: directories, never a file or link. */
static void assert_no_files(int dir)
{
    autoclosedir DIR *entries = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

    for (const struct dirent *entry; (entry = readdir(entries));)
        assert_int_equal(entry->d_type, DT_DIR);
}

static void end(struct files *files, pid_t pid)
{
    files_close(files);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void no_lie_about_a_tree_is_believed(void **state)
{
    const struct unit_scratch *scratch = *state;

    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct files_copy copy = FILES_COPY_NONE;
        struct files_info info;
        pid_t pid;
        struct files *files = session_with_liar(tell_lie, &lies[i], &pid);

        if (files_fetch(files, "x", false, scratch->dir, "tree", &copy, &error) == 0)
            fail_msg("%s was believed", lies[i].what);
        if (!strstr(error.text, "not asked"))
            fail_msg("%s: %s", lies[i].what, error.text);
        if (files_stat(files, "x", false, &info, &error) == 0 || !strstr(error.text, "is over"))
            fail_msg("after %s the session goes on", lies[i].what);
        assert_no_files(scratch->dir);
        files_copy_free(&copy);
        end(files, pid);
    }
}

static bool each(void *owner, const char *name, const struct files_info *info)
{
    (void)owner, (void)name, (void)info;
    return true;
}

static int take(void *owner, const void *bytes, size_t len, struct error *err)
{
    (void)bytes, (void)err;
    *(size_t *)owner += len;
    return 0;
}

static int ask(struct files *files, int kind, const struct unit_scratch *scratch)
{
    struct files_copy copy = FILES_COPY_NONE;
    struct files_info info;
    size_t got = 0;
    bool more;
    int result;

    switch (kind) {
    case 0:
        return files_stat(files, "x", false, &info, &error);
    case 1:
        return files_list(files, "x", 3, each, NULL, &more, &error);
    case 2:
        result = files_read(files, "x", 0, 3, take, &got, &error);
        assert_true(got <= 3);
        return result;
    case 3:
        return files_remove(files, "x", true, &error);
    case 4:
        return files_watch(files, "x", true, &error);
    default:
        result = files_store(files, scratch->dir, ".", "x", false, &copy, &error);
        files_copy_free(&copy);
        return result;
    }
}

/* Some are a plain yes to another question; then nothing is believed but that. */
static void no_lie_to_any_request_does_more_than_end_the_session(void **state)
{
    for (int kind = 0; kind < 6; kind++)
        for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
            bool is_yes =
                lies[i].frames[0].kind == SAY_OK && !lies[i].frames[0].id && !lies[i].frames[0].strings;
            bool is_data = kind == 2 && lies[i].frames[0].kind == TREE_DATA;
            bool is_event = kind == 4 && lies[i].frames[0].kind == SAY_EVENT;
            pid_t pid;
            struct files *files = session_with_liar(tell_lie, &lies[i], &pid);

            files_be_patient(files, 300, NULL, NULL);
            if (ask(files, kind, *state) == 0 && !is_yes && !is_data && !is_event)
                fail_msg("%s was believed by %d", lies[i].what, kind);
            end(files, pid);
        }
}

static void be_silent(int in, int out, const void *what)
{
    (void)in, (void)out, (void)what;
    pause();
}

/* It neither reads nor writes: the wait has an end, both ways. */
static void a_program_that_says_nothing_is_not_waited_for(void **state)
{
    struct unit_scratch *scratch = *state;
    struct files_copy copy = FILES_COPY_NONE;
    autoclose int fd = openat(scratch->dir, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    pid_t pid;
    struct files *files = session_with_liar(be_silent, NULL, &pid);

    assert_int_equal(posix_fallocate(fd, 0, 4 << 20), 0);
    files_be_patient(files, 300, NULL, NULL);
    assert_int_equal(files_store(files, scratch->dir, "big", "x", false, &copy, &error), -1);
    assert_int_equal(error.sys_errno, ETIMEDOUT);
    end(files, pid);
    files = session_with_liar(be_silent, NULL, &pid);
    files_be_patient(files, 300, NULL, NULL);
    assert_int_equal(files_fetch(files, "x", false, scratch->dir, "x", &copy, &error), -1);
    assert_int_equal(error.sys_errno, ETIMEDOUT);
    end(files, pid);
}

/* A tree of names without end is bounded by depth, notes by their number. */
static void go_down(int in, int out, const void *what)
{
    struct files_entry entry = { .mode = 0755, .name_len = 1 };
    char bytes[8192];

    (void)what;
    (void)!read(in, bytes, sizeof bytes);
    for (;;)
        say(out, TREE_DIR, 1, &entry, sizeof entry, "d");
}

static void complain(int in, int out, const void *what)
{
    struct files_entry entry = { .mode = 0755, .name_len = 1 };
    struct files_note note = { 1, WHY_FAILED };
    char bytes[8192];

    (void)what;
    (void)!read(in, bytes, sizeof bytes);
    say(out, TREE_DIR, 1, &entry, sizeof entry, "d");
    for (int i = 0; i < 100000; i++)
        say(out, TREE_LEFT_OUT, 1, &note, sizeof note, "\x1b[2Jn");
    say(out, TREE_LEAVE, 1, "", 0, "");
    say(out, SAY_OK, 1, &(struct files_done){ 0 }, sizeof(struct files_done), "");
    pause();
}

static void what_a_liar_can_fill_has_a_bound(void **state)
{
    struct unit_scratch *scratch = *state;
    struct files_copy copy = FILES_COPY_NONE;
    pid_t pid;
    struct files *files = session_with_liar(go_down, NULL, &pid);

    assert_int_equal(files_fetch(files, "x", false, scratch->dir, "deep", &copy, &error), -1);
    assert_contains(error.text, "not asked");
    end(files, pid);
    files = session_with_liar(complain, NULL, &pid);
    assert_int_equal(files_fetch(files, "x", false, scratch->dir, "notes", &copy, &error), 0);
    assert_int_equal(copy.told, 100000);
    assert_int_equal(copy.notes.len, FILES_TOLD_MAX + 1);
    end(files, pid);
    files_copy_free(&copy);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(no_lie_about_a_tree_is_believed),
        ON_SCRATCH(no_lie_to_any_request_does_more_than_end_the_session),
        ON_SCRATCH(a_program_that_says_nothing_is_not_waited_for),
        ON_SCRATCH(what_a_liar_can_fill_has_a_bound),
    };

    session_program = argc > 1 ? argv[1] : "";
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
