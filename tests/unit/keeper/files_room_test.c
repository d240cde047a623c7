/* The program for files in a real sandbox: as root, and as an ordinary user. */

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "keeper/confined.h"
#include "keeper/files.h"
#include "keeper/files_session.h"
#include "sys/sys.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 54321 };

static const char *who;
static struct error error;

/* Keeps the sandbox; its exit code is 0 if all went well. */
static _Noreturn void keep(const struct unit_scratch *scratch, int in, int out, int program)
{
    const char *const argv[] = { "cove-files", NULL };
    struct confined_tree tree = { AT_FDCWD, unit_scratch_path(scratch, "work"), "/mnt/work", TREE_COW };
    struct confined what = { .argv = argv,
                             .cwd = "/mnt/work",
                             .trees = &tree,
                             .tree_count = 1,
                             .in = in,
                             .out = out,
                             .err = STDERR_FILENO,
                             .program = program };
    struct host host = { 0 };
    struct result result = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1); /* as after an exec: /proc/self is our own again */
    error = (struct error){ 0 };
    setenv("COVE_HOME", unit_scratch_path(scratch, "state"), 1);
    if (host_read(&host, &error) < 0 || host_make_directory(&host, &error) < 0 ||
        confined_run(&host, &what, &result, &error) < 0 || result.reason != RESULT_EXITED) {
        fprintf(stderr, "# %s %s\n", error.text, result.error.text);
        _exit(125);
    }
    _exit(result.exit_code);
}

static struct files *start(const struct unit_scratch *scratch, int program, pid_t *out_pid)
{
    int to[2], from[2];

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    *out_pid = fork();
    if (*out_pid == 0) {
        close(to[1]);
        close(from[0]);
        if (strcmp(who, "user") == 0 && geteuid() == 0 &&
            (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
             setresuid(NOBODY, NOBODY, NOBODY) < 0))
            _exit(126);
        keep(scratch, to[0], from[1], program);
    }
    close(to[0]);
    close(from[1]);

    struct files *files = files_open(to[1], from[0], &error);

    files_be_patient(files, 60000, NULL, NULL);
    return files;
}

static int finish(struct files *files, pid_t pid)
{
    int status = -1;

    files_close(files);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void prepare(struct unit_scratch *scratch)
{
    unit_scratch_dir(scratch, "work", 0755);
    unit_scratch_file(scratch, "work/file", "outside");
    assert_int_equal(fchmodat(scratch->dir, "work/file", 0644, 0), 0);
    assert_int_equal(fchmod(scratch->dir, 0755), 0);
    if (strcmp(who, "user") == 0 && geteuid() == 0) {
        assert_int_equal(fchown(scratch->dir, NOBODY, NOBODY), 0);
        assert_int_equal(fchownat(scratch->dir, "work", NOBODY, NOBODY, 0), 0);
        assert_int_equal(fchownat(scratch->dir, "work/file", NOBODY, NOBODY, 0), 0);
    }
}

static int take(void *owner, const void *bytes, size_t len, struct error *err)
{
    (void)err;
    text_add_bytes(owner, bytes, len);
    return 0;
}

static ssize_t give_once(void *owner, void *bytes, size_t room, struct error *err)
{
    const char **content = owner;
    size_t len = strlen(*content);

    (void)room, (void)err;
    memcpy(bytes, *content, len);
    *content += len;
    return (ssize_t)len;
}

static void it_works_inside_and_has_no_more_rights_than_a_command(void **state)
{
    struct unit_scratch *scratch = *state;
    autotext struct text got = TEXT_NONE, status = TEXT_NONE;
    const char *content = "inside", *evil = "evil";
    struct files_info info;
    pid_t pid;

    prepare(scratch);
    autoclose int program = files_session_program(&error);
    struct files *files = start(scratch, program, &pid);

    assert_true(program >= 0);
    if (files_write(files, "file", 0, UINT32_MAX, give_once, &content, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(files_read(files, "/mnt/work/file", 0, 100, take, &got, &error), 0);
    assert_string_equal(text_string(&got), "inside");
    /* It is a command: filtered, without a capability, unable to write where a command cannot. */
    assert_int_equal(files_read(files, "/proc/self/status", 0, UINT64_MAX, take, &status, &error), 0);
    assert_contains(status.data, "\nSeccomp:\t2\n");
    assert_contains(status.data, "\nNoNewPrivs:\t1\n");
    assert_contains(status.data, "\nCapEff:\t0000000000000000\n");
    assert_int_equal(files_make(files, "/etc/made", 0755, false, &error), -1);
    assert_int_equal(files_stat(files, scratch->path, false, &info, &error), -1);
    assert_int_equal(error.sys_errno, ENOENT);
    /* Nor can anybody write to the program itself. */
    assert_int_equal(files_write(files, "/proc/self/exe", 0, UINT32_MAX, give_once, &evil, &error), -1);
    assert_int_equal(files_write(files, "/proc/self/exe", FILES_APPEND, UINT32_MAX, give_once, &evil, &error),
                     -1);
    assert_int_equal(finish(files, pid), 0);
    /* The host's file is what it was. */
    autoclose int fd = openat(scratch->dir, "work/file", O_RDONLY | O_CLOEXEC);
    char bytes[16] = "";

    assert_true(read(fd, bytes, sizeof bytes - 1) >= 0);
    assert_string_equal(bytes, "outside");
}

/* A memfd that could still be changed is not run. */
static void only_a_sealed_program_is_run(void **state)
{
    struct unit_scratch *scratch = *state;
    struct files_info info;
    pid_t pid;

    prepare(scratch);
    autoclose int sealed = files_session_program(&error), open = memfd_create("open", MFD_CLOEXEC);
    struct stat status;

    assert_int_equal(fstat(sealed, &status), 0);
    assert_int_equal(sendfile(open, sealed, &(off_t){ 0 }, (size_t)status.st_size), status.st_size);
    struct files *files = start(scratch, open, &pid);

    assert_int_equal(files_stat(files, ".", false, &info, &error), -1);
    assert_int_not_equal(finish(files, pid), 0);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, unit_scratch_setup, unit_scratch_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(it_works_inside_and_has_no_more_rights_than_a_command),
        ON_SCRATCH(only_a_sealed_program_is_run),
    };

    who = argc > 1 ? argv[1] : "user";
    if (strcmp(who, "root") == 0 && geteuid() != 0) {
        printf("1..0 # SKIP not root\n");
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
