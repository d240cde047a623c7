/* Trees both ways, against the real program. */

#include "keeper/files_tree.h"

#include "base/array.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "files_session.h"
#include "keeper/files.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define autocopy __attribute__((cleanup(files_copy_free)))

static void make_file(int dir, const char *name, const char *content, mode_t mode)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void make_dir(int dir, const char *name, mode_t mode)
{
    assert_int_equal(mkdirat(dir, name, 0700), 0);
    assert_int_equal(fchmodat(dir, name, mode, 0), 0);
}

static void assert_content(int dir, const char *name, const char *content)
{
    autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char bytes[256] = "";

    if (fd < 0 || read(fd, bytes, sizeof bytes - 1) < 0)
        fail_msg("%s: %s", name, strerror(errno));
    assert_string_equal(bytes, content);
}

static void assert_names(int dir, size_t wanted)
{
    autoclosedir DIR *entries = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    size_t count = 0;

    for (const struct dirent *entry; (entry = readdir(entries));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    assert_int_equal(count, wanted);
}

static void assert_note(const struct files_copy *copy, const char *wanted)
{
    for (size_t i = 0; i < copy->notes.len; i++)
        if (strstr(copy->notes.items[i], wanted))
            return;
    fail_msg("no note says \"%s\"; the first of %zu is \"%s\"", wanted, copy->notes.len,
             copy->notes.len ? copy->notes.items[0] : "");
}

static const char *const kept_names[] = { "tree/file", "tree/dir/inner", "tree/dir", "tree/new\nline",
                                          "tree/\xff", "tree/link",      "tree" };

/* Everything that is kept, with times that a copy would not have by itself. */
static void plant(int dir)
{
    make_dir(dir, "tree", 0755);
    make_dir(dir, "tree/dir", 0755);
    make_dir(dir, "tree/empty", 0755);
    make_file(dir, "tree/file", "content", 0745);
    make_file(dir, "tree/dir/inner", "", 0644);
    make_file(dir, "tree/new\nline", "n", 0644);
    make_file(dir, "tree/\xff", "f", 0604);
    assert_int_equal(symlinkat("../../nowhere", dir, "tree/link"), 0);
    assert_int_equal(linkat(dir, "tree/file", dir, "tree/dir/twin", 0), 0);
    for (size_t i = 0; i < ARRAY_LEN(kept_names); i++) {
        const struct timespec times[2] = { { 1, 1 }, { 1000 + (time_t)i, 123456789 } };

        assert_int_equal(utimensat(dir, kept_names[i], times, AT_SYMLINK_NOFOLLOW), 0);
    }
    assert_int_equal(fchmodat(dir, "tree/empty", 0555, 0), 0);
}

static void assert_alike(int one, int other)
{
    char target[32];

    for (size_t i = 0; i < ARRAY_LEN(kept_names); i++) {
        struct stat a = session_look(one, kept_names[i]), b = session_look(other, kept_names[i]);

        assert_int_equal(a.st_mode, b.st_mode);
        assert_int_equal(a.st_mtim.tv_sec, b.st_mtim.tv_sec);
        assert_int_equal(a.st_mtim.tv_nsec, b.st_mtim.tv_nsec);
    }
    assert_int_equal(session_look(other, "tree/empty").st_mode & 0777, 0555);
    assert_int_equal(session_look(other, "tree/file").st_ino, session_look(other, "tree/dir/twin").st_ino);
    assert_content(other, "tree/file", "content");
    assert_content(other, "tree/dir/twin", "content");
    assert_int_equal(readlinkat(other, "tree/link", target, sizeof target), 13);
    assert_names(other, 1);
    assert_int_equal(fchmodat(other, "tree/empty", 0755, 0), 0); /* for the tear-down */
    assert_int_equal(fchmodat(one, "tree/empty", 0755, 0), 0);
}

static void what_comes_out_is_what_was_there(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;

    plant(session->in);
    assert_works(files_fetch(session->files, "tree", false, session->out, "tree", &copy, &session_error));
    assert_int_equal(copy.notes.len, 0);
    assert_int_equal(copy.files, 9);
    assert_int_equal(copy.bytes, 9);
    assert_alike(session->in, session->out);
}

static void what_goes_in_is_what_was_there(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;

    plant(session->out);
    assert_works(files_store(session->files, session->out, "tree", "tree", false, &copy, &session_error));
    assert_int_equal(copy.notes.len, 0);
    assert_int_equal(copy.files, 9);
    assert_alike(session->out, session->in);
}

static void twice_is_as_once_and_into_adds(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;

    plant(session->in);
    for (int i = 0; i < 2; i++)
        assert_works(files_fetch(session->files, "tree", false, session->out, "tree", &copy, &session_error));
    assert_int_equal(copy.notes.len, 0);
    assert_content(session->out, "tree/dir/twin", "content");
    assert_names(session->out, 1);
    for (int i = 0; i < 2; i++)
        assert_works(files_store(session->files, session->out, "tree", "again", false, &copy, &session_error));
    assert_int_equal(copy.notes.len, 0);
    assert_content(session->in, "again/dir/twin", "content");
    /* The content of a directory, into one that has something. */
    make_dir(session->out, "here", 0711);
    make_file(session->out, "here/own", "own", 0600);
    autoclose int here = openat(session->out, "here", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_works(files_fetch(session->files, "tree", false, here, NULL, &copy, &session_error));
    assert_content(here, "own", "own");
    assert_content(here, "file", "content");
    assert_int_equal(session_look(session->out, "here").st_mode & 0777, 0711);
    assert_int_equal(files_fetch(session->files, "tree/file", false, here, NULL, &copy, &session_error), -1);
    assert_int_equal(session_error.sys_errno, ENOTDIR);
}

static void one_file_can_have_another_name(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;

    plant(session->in);
    assert_works(files_fetch(session->files, "tree/file", false, session->out, "mine", &copy, &session_error));
    assert_content(session->out, "mine", "content");
    assert_works(files_fetch(session->files, "tree/link", false, session->out, "link", &copy, &session_error));
    assert_true(S_ISLNK(session_look(session->out, "link").st_mode));
    assert_int_equal(symlinkat("tree/file", session->in, "good"), 0);
    assert_works(files_fetch(session->files, "good", true, session->out, "followed", &copy, &session_error));
    assert_content(session->out, "followed", "content");
    assert_int_equal(files_fetch(session->files, "none", false, session->out, "x", &copy, &session_error), -1);
    assert_int_equal(session_error.sys_errno, ENOENT);
    assert_works(files_store(session->files, session->out, "mine", "theirs", false, &copy, &session_error));
    assert_content(session->in, "theirs", "content");
    assert_int_equal(
        files_store(session->files, session->out, "mine", "none/theirs", false, &copy, &session_error), -1);
    assert_int_equal(session_error.sys_errno, ENOENT);
    assert_works(files_store(session->files, session->out, "mine", "again", false, &copy, &session_error));
}

/* What is there of another kind stays, and nothing is written through it. */
static void nothing_is_written_through_a_link_or_in_the_place_of_another_kind(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;

    plant(session->in);
    make_dir(session->out, "outside", 0700);
    make_file(session->out, "outside/victim", "safe", 0600);
    make_dir(session->out, "tree", 0755);
    assert_int_equal(symlinkat("../outside/victim", session->out, "tree/file"), 0);
    assert_int_equal(symlinkat("../outside", session->out, "tree/dir"), 0);
    make_dir(session->out, "tree/link", 0755);
    assert_int_equal(mkfifoat(session->out, "tree/new\nline", 0600), 0);
    assert_works(files_fetch(session->files, "tree", false, session->out, "tree", &copy, &session_error));
    assert_content(session->out, "outside/victim", "safe");
    autoclose int outside = openat(session->out, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_names(outside, 1);
    assert_true(S_ISLNK(session_look(session->out, "tree/file").st_mode));
    assert_true(S_ISLNK(session_look(session->out, "tree/dir").st_mode));
    assert_true(S_ISDIR(session_look(session->out, "tree/link").st_mode));
    assert_true(S_ISFIFO(session_look(session->out, "tree/new\nline").st_mode));
    assert_content(session->out, "tree/\xff", "f");
    assert_note(&copy,
                "tree/file: "); /* or that its twin is not there: in which order they come, the disk says */
    assert_note(&copy, "tree/dir: something of another kind");
    assert_int_equal(copy.told, 4);
}

static void devices_pipes_and_special_bits_do_not_come(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    autoclose int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    make_dir(session->in, "tree", 0755);
    assert_int_equal(mkfifoat(session->in, "tree/fifo", 0666), 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%.60s/in/tree/sock", session->scratch->path);
    assert_int_equal(bind(socket_fd, (struct sockaddr *)&name, sizeof name), 0);
    make_file(session->in, "tree/suid", "s", 0644);
    assert_int_equal(fchmodat(session->in, "tree/suid", 06755, 0), 0);
    make_file(session->in, "tree/closed", "c", 0);
    if (geteuid() == 0)
        assert_int_equal(mknodat(session->in, "tree/null", S_IFCHR | 0666, 0x103), 0);
    assert_works(files_fetch(session->files, "tree", false, session->out, "tree", &copy, &session_error));
    assert_false(session_has(session->out, "tree/fifo"));
    assert_false(session_has(session->out, "tree/sock"));
    assert_false(session_has(session->out, "tree/null"));
    assert_int_equal(session_look(session->out, "tree/suid").st_mode & 07777, 0755);
    assert_note(&copy, "tree/fifo: is neither");
    assert_note(&copy, "tree/suid: came without");
    assert_note(&copy, "tree/closed: Permission denied");
    assert_works(
        files_fetch(session->files, "/proc/self/fd", false, session->out, "made-up", &copy, &session_error));
    assert_false(session_has(session->out, "made-up"));
    assert_works(files_fetch(session->files, "tree/fifo", false, session->out, "fifo", &copy, &session_error));
    assert_false(session_has(session->out, "fifo"));
}

/* Holes stay holes, whatever size they say; what grows has an end. */
static void a_sparse_file_takes_no_time_and_no_room(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    autoclose int fd = openat(session->in, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    const off_t size = (off_t)1 << 40;

    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(pwrite(fd, "middle", 6, size / 2), 6);
    assert_works(files_fetch(session->files, "sparse", false, session->out, "sparse", &copy, &session_error));
    assert_int_equal(session_look(session->out, "sparse").st_size, size);
    assert_true(session_look(session->out, "sparse").st_blocks < 1000);
    assert_true(copy.bytes < 1 << 20);
    autoclose int came = openat(session->out, "sparse", O_RDONLY | O_CLOEXEC), null = -1;
    char middle[6];

    assert_int_equal(pread(came, middle, 6, size / 2), 6);
    assert_memory_equal(middle, "middle", 6);
    /* A tar has no holes, so there it is refused. */
    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(files_fetch_tar(session->files, "sparse", false, false, null, &copy, &session_error), -1);
    assert_contains(session_error.text, "holes");
}

static pid_t grow(int dir, const char *name)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        static char bytes[1 << 16];
        int fd = openat(dir, name, O_WRONLY | O_APPEND | O_CLOEXEC);

        for (int i = 0; i < 1 << 12 && write(fd, bytes, sizeof bytes) > 0; i++)
            continue;
        pause();
    }
    return pid;
}

static void a_file_that_grows_has_an_end(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;

    make_file(session->in, "log", "begin", 0644);
    pid_t pid = grow(session->in, "log");

    for (int i = 0; i < 20; i++)
        assert_works(files_fetch(session->files, "log", false, session->out, "log", &copy, &session_error));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(copy.told, 0);
}

/* --- while names are swapped --- */

static pid_t swap(int dir, const char *one, const char *other, unsigned *count)
{
    pid_t pid = fork();

    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (pid == 0)
        *count += renameat2(dir, one, dir, other, RENAME_EXCHANGE) == 0;
    return pid;
}

enum { ROUNDS = 100 };

static void plant_victim(const struct session *session)
{
    make_dir(session->scratch->dir, "outside", 0755);
    make_file(session->scratch->dir, "outside/file", "secret", 0600);
    make_dir(session->scratch->dir, "outside/dir", 0755);
}

/* On the host: where a directory becomes a link and back, no name is made where the link leads to. */
static void swapped_directories_lead_nowhere(void **state)
{
    struct session *session = *state;
    unsigned *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    autoclose int outside = -1;

    plant(session->in);
    plant_victim(session);
    outside = openat(session->scratch->dir, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_dir(session->out, "tree", 0755);
    make_dir(session->out, "tree/dir", 0755);
    assert_int_equal(symlinkat("../../outside", session->out, "tree/other"), 0);
    make_file(session->out, "tree/file", "plain", 0600);
    assert_int_equal(symlinkat("../../outside/file", session->out, "tree/alias"), 0);
    pid_t one = swap(session->out, "tree/dir", "tree/other", count);
    pid_t two = swap(session->out, "tree/file", "tree/alias", count);

    for (int i = 0; i < ROUNDS || *count < 1000; i++) {
        autocopy struct files_copy copy = FILES_COPY_NONE;

        assert_works(files_fetch(session->files, "tree", false, session->out, "tree", &copy, &session_error));
    }
    kill(one, SIGKILL);
    kill(two, SIGKILL);
    waitpid(one, NULL, 0);
    waitpid(two, NULL, 0);
    assert_content(outside, "file", "secret");
    assert_names(outside, 2);
    munmap(count, sizeof *count);
}

/* ... and a careless writer is led out, which shows that the swaps are fast enough. */
static void a_careless_writer_is_led_out(void **state)
{
    struct session *session = *state;
    unsigned *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool led = false;

    plant_victim(session);
    make_dir(session->out, "dir", 0755);
    assert_int_equal(symlinkat("../outside", session->out, "other"), 0);
    pid_t pid = swap(session->out, "dir", "other", count);

    for (int i = 0; i < 100000 && !led; i++) {
        int fd = openat(session->out, "dir/made", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        if (fd >= 0)
            close(fd);
        led = session_has(session->scratch->dir, "outside/made");
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(led);
    munmap(count, sizeof *count);
}

/* When the host reads its own tree for sending: what a link leads to is not sent. */
static void swapped_sources_send_nothing_else(void **state)
{
    struct session *session = *state;
    unsigned *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    plant_victim(session);
    make_dir(session->out, "tree", 0755);
    make_dir(session->out, "tree/dir", 0755);
    make_file(session->out, "tree/dir/file", "plain", 0644);
    assert_int_equal(symlinkat("../../outside", session->out, "tree/other"), 0);
    pid_t pid = swap(session->out, "tree/dir", "tree/other", count);

    for (int i = 0; i < ROUNDS || *count < 1000; i++) {
        autocopy struct files_copy copy = FILES_COPY_NONE;

        assert_works(files_store(session->files, session->out, "tree", "tree", false, &copy, &session_error));
        for (int j = 0; j < 2; j++) {
            const char *dir = j ? "tree/dir" : "tree/other";
            autofree char *file = text_format("%s/file", dir);

            if (session_has(session->in, dir) && S_ISDIR(session_look(session->in, dir).st_mode) &&
                session_has(session->in, file))
                assert_content(session->in, file, "plain");
        }
        assert_works(files_remove(session->files, "tree", true, &session_error));
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    munmap(count, sizeof *count);
}

/* --- tar --- */

static int run(const char *const *argv)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execvp(argv[0], (char **)(uintptr_t)argv);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void a_tar_that_comes_out_is_read_by_tar(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    autoclose int fd = openat(session->scratch->dir, "tar", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const char *const argv[] = { "tar",
                                 "-C",
                                 unit_scratch_path(session->scratch, "out"),
                                 "-xpf",
                                 unit_scratch_path(session->scratch, "tar"),
                                 NULL };

    plant(session->in);
    assert_works(files_fetch_tar(session->files, "tree", false, false, fd, &copy, &session_error));
    assert_int_equal(run(argv), 0);
    assert_content(session->out, "tree/file", "content");
    assert_int_equal(session_look(session->out, "tree/file").st_ino,
                     session_look(session->out, "tree/dir/twin").st_ino);
    assert_int_equal(session_look(session->out, "tree/file").st_mtim.tv_sec, 1000);
    assert_true(S_ISLNK(session_look(session->out, "tree/link").st_mode));
    assert_int_equal(fchmodat(session->out, "tree/empty", 0755, 0), 0);
    assert_int_equal(fchmodat(session->in, "tree/empty", 0755, 0), 0);
}

static void tars_of_all_forms_go_in(void **state)
{
    static const char *const forms[] = { "v7", "ustar", "gnu", "oldgnu", "pax" };
    struct session *session = *state;

    plant(session->out);
    if (geteuid() == 0)
        assert_int_equal(fchmod(session->out, 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        autocopy struct files_copy copy = FILES_COPY_NONE;
        autofree char *format = text_format("--format=%s", forms[i]);
        const char *const argv[] = { "tar",  "-C",  unit_scratch_path(session->scratch, "out"),
                                     format, "-cf", unit_scratch_path(session->scratch, "tar"),
                                     "tree", NULL };

        assert_int_equal(run(argv), 0);
        autoclose int fd = openat(session->scratch->dir, "tar", O_RDONLY | O_CLOEXEC);

        assert_works(files_store_tar(session->files, fd, ".", &copy, &session_error));
        assert_int_equal(copy.told, 0);
        assert_content(session->in, "tree/file", "content");
        assert_int_equal(session_look(session->in, "tree/file").st_ino,
                         session_look(session->in, "tree/dir/twin").st_ino);
        assert_int_equal(session_look(session->in, "tree").st_mtim.tv_sec, 1006);
        assert_int_equal(session_look(session->in, "tree/dir").st_mtim.tv_sec, 1002);
        assert_int_equal(session_look(session->in, "tree/empty").st_mode & 0777, 0555);
        assert_works(files_remove(session->files, "tree", true, &session_error));
    }
    assert_int_equal(fchmodat(session->out, "tree/empty", 0755, 0), 0);
}

static void long_names_and_big_numbers_of_a_tar_are_read(void **state)
{
    static const char *const forms[] = { "gnu", "pax" };
    struct session *session = *state;
    char path[700] = "long";

    make_dir(session->out, "long", 0755);
    for (int i = 0; i < 5; i++) {
        snprintf(path + strlen(path), sizeof path - strlen(path), "/%0100d", i);
        make_dir(session->out, path, 0755);
    }
    strcat(path, "/file");
    make_file(session->out, path, "deep", 0644);
    assert_int_equal(symlinkat(path, session->out, "long/link"), 0);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        autocopy struct files_copy copy = FILES_COPY_NONE;
        autofree char *format = text_format("--format=%s", forms[i]);
        const char *const argv[] = { "tar",  "-C",  unit_scratch_path(session->scratch, "out"),
                                     format, "-cf", unit_scratch_path(session->scratch, "tar"),
                                     "long", NULL };
        char target[700];

        assert_int_equal(run(argv), 0);
        autoclose int fd = openat(session->scratch->dir, "tar", O_RDONLY | O_CLOEXEC);

        assert_works(files_store_tar(session->files, fd, ".", &copy, &session_error));
        assert_content(session->in, path, "deep");
        assert_int_equal(readlinkat(session->in, "long/link", target, sizeof target), strlen(path));
        assert_works(files_remove(session->files, "long", true, &session_error));
    }
}

static void a_tar_leads_nowhere_else(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    autofree char *absolute = text_format("s,^plain$,%s/in/absolute,", session->scratch->path);
    const char *const argv[] = { "tar",         "-P",
                                 "-C",          unit_scratch_path(session->scratch, "out"),
                                 "--transform", absolute,
                                 "--transform", "s,^up$,sub/../../up,S",
                                 "-cf",         unit_scratch_path(session->scratch, "tar"),
                                 "plain",       "up",
                                 "good",        NULL };

    make_file(session->out, "plain", "x", 0644);
    make_file(session->out, "up", "x", 0644);
    make_file(session->out, "good", "good", 0644);
    make_dir(session->in, "sub", 0777);
    assert_int_equal(run(argv), 0);
    autoclose int fd = openat(session->scratch->dir, "tar", O_RDONLY | O_CLOEXEC);

    assert_works(files_store_tar(session->files, fd, "sub", &copy, &session_error));
    assert_content(session->in, "sub/good", "good");
    assert_false(session_has(session->in, "absolute"));
    assert_false(session_has(session->in, "up"));
    assert_int_equal(copy.told, 2);
    assert_note(&copy, "would lead elsewhere");
}

static void what_is_no_tar_is_said_and_leaves_nothing_of_ours(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    struct files_copy again = FILES_COPY_NONE;

    make_file(session->scratch->dir, "tar", "this is no archive", 0600);
    autoclose int fd = openat(session->scratch->dir, "tar", O_RDONLY | O_CLOEXEC);

    assert_int_equal(files_store_tar(session->files, fd, ".", &copy, &session_error), -1);
    assert_contains(session_error.text, "no tar archive");
    /* Cut off in the middle of a file. */
    autoclose int big = openat(session->out, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0644), cut = -1;
    const char *const argv[] = { "tar",
                                 "-C",
                                 unit_scratch_path(session->scratch, "out"),
                                 "-cf",
                                 unit_scratch_path(session->scratch, "tar"),
                                 "big",
                                 NULL };

    assert_int_equal(posix_fallocate(big, 0, 100000), 0);
    assert_int_equal(run(argv), 0);
    assert_int_equal(truncate(argv[4], 50000), 0);
    cut = openat(session->scratch->dir, "tar", O_RDONLY | O_CLOEXEC);
    assert_int_equal(files_store_tar(session->files, cut, ".", &again, &session_error), -1);
    assert_contains(session_error.text, "not whole");
    assert_names(session->in, 0);
}

/* --- much --- */

static bool stop_soon(void *owner, uint64_t files, uint64_t bytes)
{
    (void)owner;
    (void)files;
    return bytes < 1 << 20;
}

static void what_is_interrupted_leaves_no_name_of_ours(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = { .go_on = stop_soon };
    autoclose int fd = openat(session->in, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    assert_int_equal(posix_fallocate(fd, 0, 64 << 20), 0);
    assert_int_equal(files_fetch(session->files, "big", false, session->out, "big", &copy, &session_error), -1);
    assert_int_equal(session_error.sys_errno, EINTR);
    assert_names(session->out, 0);
}

/* The other way round the program inside loses its host, and removes what it began. */
static void a_host_that_goes_away_leaves_no_name_inside(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = { .go_on = stop_soon };
    autoclose int fd = openat(session->out, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0666), null = -1;
    int status;

    assert_int_equal(posix_fallocate(fd, 0, 64 << 20), 0);
    assert_int_equal(files_store(session->files, session->out, "big", "big", false, &copy, &session_error), -1);
    files_close(session->files);
    waitpid(session->pid, &status, 0);
    assert_names(session->in, 0);
    null = open("/dev/null", O_RDWR | O_CLOEXEC); /* for the tear-down */
    session->files = files_open(dup(null), dup(null), &session_error);
    session->pid = fork();
    if (session->pid == 0)
        _exit(0);
}

static long peak_of(pid_t pid)
{
    autofree char *path = text_format("/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    char line[256];
    long peak = -1;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &peak) == 1)
            break;
    if (file)
        fclose(file);
    return peak;
}

static void a_gigabyte_takes_no_memory(void **state)
{
    enum { MIB = 1 << 20, COUNT = 1024 };
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    autoclose int fd = openat(session->in, "big", O_RDWR | O_CREAT | O_CLOEXEC, 0666), null = -1;
    long before = peak_of(getpid());

    assert_int_equal(posix_fallocate(fd, 0, (off_t)COUNT * MIB), 0);
    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_works(files_fetch_tar(session->files, "big", false, false, null, &copy, &session_error));
    assert_int_equal(copy.bytes, (uint64_t)COUNT * MIB);
    print_message("# peak: %ld KiB inside, %ld KiB more outside\n", peak_of(session->pid),
                  peak_of(getpid()) - before);
    assert_true(peak_of(session->pid) < 2048);
#ifndef COVE_SANITIZED
    assert_true(peak_of(getpid()) - before < 4096);
#endif
}

/* A hundred thousand of them in a soak. */
static void many_small_files_come(void **state)
{
    enum { A_DIRECTORY = 1000 };
    const int count = getenv("COVE_SOAK_SECONDS") ? 100000 : 10000;
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    char name[64];
    long before;

    make_dir(session->out, "many", 0755);
    for (int i = 0; i < count; i++) {
        if (i % A_DIRECTORY == 0) {
            snprintf(name, sizeof name, "many/%d", i / A_DIRECTORY);
            make_dir(session->out, name, 0755);
        }
        snprintf(name, sizeof name, "many/%d/%d", i / A_DIRECTORY, i);
        int fd = openat(session->out, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        assert_int_equal(write(fd, name, 9), 9);
        close(fd);
    }
    before = peak_of(getpid());
    assert_works(files_store(session->files, session->out, "many", "many", false, &copy, &session_error));
    assert_int_equal(copy.files, count + count / A_DIRECTORY + 1);
    assert_int_equal(copy.bytes, (uint64_t)count * 9);
    print_message("# peak: %ld KiB inside, %ld KiB more outside\n", peak_of(session->pid),
                  peak_of(getpid()) - before);
    assert_true(peak_of(session->pid) < 2048);
    assert_works(files_remove(session->files, "many", true, &session_error));
}

static void trees_that_are_too_deep_are_told(void **state)
{
    struct session *session = *state;
    autocopy struct files_copy copy = FILES_COPY_NONE;
    autoclose int at = dup(session->out);

    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        close(at);
        at = next;
    }
    assert_works(files_store(session->files, session->out, "d", "d", false, &copy, &session_error));
    assert_int_equal(copy.files, FILES_DEPTH_MAX);
    assert_note(&copy, "nested too deep");
    assert_works(files_remove(session->files, "d", true, &session_error));
}

#define IN_SESSION(test) cmocka_unit_test_setup_teardown(test, session_setup, session_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_SESSION(what_comes_out_is_what_was_there),
        IN_SESSION(what_goes_in_is_what_was_there),
        IN_SESSION(twice_is_as_once_and_into_adds),
        IN_SESSION(one_file_can_have_another_name),
        IN_SESSION(nothing_is_written_through_a_link_or_in_the_place_of_another_kind),
        IN_SESSION(devices_pipes_and_special_bits_do_not_come),
        IN_SESSION(a_sparse_file_takes_no_time_and_no_room),
        IN_SESSION(a_file_that_grows_has_an_end),
        IN_SESSION(swapped_directories_lead_nowhere),
        IN_SESSION(a_careless_writer_is_led_out),
        IN_SESSION(swapped_sources_send_nothing_else),
        IN_SESSION(a_tar_that_comes_out_is_read_by_tar),
        IN_SESSION(tars_of_all_forms_go_in),
        IN_SESSION(long_names_and_big_numbers_of_a_tar_are_read),
        IN_SESSION(a_tar_leads_nowhere_else),
        IN_SESSION(what_is_no_tar_is_said_and_leaves_nothing_of_ours),
        IN_SESSION(what_is_interrupted_leaves_no_name_of_ours),
        IN_SESSION(a_host_that_goes_away_leaves_no_name_inside),
        IN_SESSION(a_gigabyte_takes_no_memory),
        IN_SESSION(many_small_files_come),
        IN_SESSION(trees_that_are_too_deep_are_told),
    };

    session_program = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
