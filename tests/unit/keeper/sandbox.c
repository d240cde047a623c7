#include "tests/unit/keeper/sandbox.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "box/place.h"
#include "box/workspace.h"
#include "init/wire.h"
#include "keeper/keeper.h"
#include "keeper/start.h"
#include "sys/sys.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SOMEBODY = 54321 };

static bool write_line(const char *path, const char *line)
{
    return sys_write_file(AT_FDCWD, path, line) == 0;
}

static bool be_nested(void)
{
    autofree char *uids = text_format("%u %u 1", geteuid(), geteuid());
    autofree char *gids = text_format("%u %u 1", getegid(), getegid());

    return unshare(CLONE_NEWUSER) == 0 && write_line("/proc/self/setgroups", "deny") &&
           write_line("/proc/self/uid_map", uids) && write_line("/proc/self/gid_map", gids);
}

bool sandbox_become(const char *who)
{
    if (strcmp(who, "root") == 0)
        return geteuid() == 0;
    if (geteuid() == 0 &&
        (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 || setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0))
        return false;
    prctl(PR_SET_DUMPABLE, 1); /* who changed ids does not own its own /proc files until it says so */
    return strcmp(who, "nested") != 0 || be_nested();
}

static void fail_with(const struct error *err)
{
    fail_msg("%s", err->text);
}

/* Of each kind one, in each place where it makes a difference: in the root, in an overlay, in a tmpfs. */
static const struct grant {
    const char *source, *target; /* in the scratch directory, or absolute */
    enum tree_mode mode;
} grants[] = {
    { "tools", "work/tools", TREE_RO },       { "tools", "home/tools", TREE_RO },
    { "tools", "/run/tools", TREE_RO },       { "config", "home/config", TREE_RO },
    { "config", "work/config", TREE_RO },     { "config", "/run/config", TREE_RO },
    { "tools", "/tmp/above/tools", TREE_RO }, { "config", "home/written", TREE_COW },
    { "other", "work/other", TREE_COW },      { "other", "/run/other", TREE_COW },
};

static void add_grant(struct sandbox *sandbox, const struct grant *grant, struct trees *trees)
{
    autoplace struct place place = PLACE_NONE;
    const char *target =
        *grant->target == '/' ? grant->target : unit_scratch_path(sandbox->scratch, grant->target);

    assert_int_equal(place_open(sandbox->scratch->dir, grant->source, &place), 0);
    trees_add(trees, &place, target, grant->mode, TREE_WHY_GRANT);
}

struct sandbox_wish sandbox_wish = { NULL, WORKSPACE_COW };

static void make_plan(struct sandbox *sandbox)
{
    struct error err = { 0 };
    char work[512];
    struct trees trees = TREES_NONE;
    autoplace struct place place = PLACE_NONE;
    struct spec spec = { .image = text_copy("host"),
                         .directory = text_copy("/"),
                         .hostname = text_copy("cove"),
                         .terminal = TERMINAL_NO,
                         .user = sandbox_wish.user ? text_copy(sandbox_wish.user) : NULL,
                         .root = true,
                         .workspace = sandbox_wish.workspace };
    struct workspace workspace = { .root = work, .cwd = work };

    snprintf(work, sizeof work, "%s/work", sandbox->scratch->path);
    strings_add(&spec.command, "true");
    strings_add(&spec.hide, ".env");
    assert_int_equal(place_open(AT_FDCWD, work, &place), 0);
    trees_add(&trees, &place, work, TREE_COW, TREE_WHY_WORKSPACE);
    for (size_t i = 0; i < ARRAY_LEN(grants); i++)
        if (spec.workspace != WORKSPACE_RW ||
            !text_starts(grants[i].target, "work/")) /* they would be made there */
            add_grant(sandbox, &grants[i], &trees);
    if (plan_build(&spec, &sandbox->host, &workspace, &trees, &sandbox->plan, &err) < 0)
        fail_with(&err);
    trees_free(&trees);
    spec_free(&spec);
}

static void open_place(struct sandbox *sandbox)
{
    const struct ids *ids = &sandbox->plan.ids;
    struct error err = { 0 };

    sandbox->place = (struct stack_place){ layers_open(sandbox->host.state, &err), sandbox->dir.fd,
                                           sandbox->dir.id, ids->shifted ? ids->base : 0 };
    if (sandbox->place.layers < 0)
        fail_with(&err);
}

int sandbox_setup(void **state)
{
    struct sandbox *sandbox = memory_zero(sizeof *sandbox);
    struct error err = { 0 };

    *state = sandbox;
    sandbox->box = BOX_NONE;
    if (unit_scratch_setup((void **)&sandbox->scratch) < 0)
        return -1;
    chmod(sandbox->scratch->path, 0755);
    unit_scratch_dir(sandbox->scratch, "home", 0755);
    unit_scratch_dir(sandbox->scratch, "work", 0755);
    unit_scratch_dir(sandbox->scratch, "tools", 0755);
    unit_scratch_dir(sandbox->scratch, "other", 0755);
    unit_scratch_file(sandbox->scratch, "work/base", "base\n");
    unit_scratch_file(sandbox->scratch, "work/.env", "secret\n");
    unit_scratch_file(sandbox->scratch, "tools/tool", "tool\n");
    unit_scratch_file(sandbox->scratch, "other/file", "other\n");
    unit_scratch_file(sandbox->scratch, "config", "config\n");
    setenv("COVE_HOME", unit_scratch_path(sandbox->scratch, "state"), 1);
    setenv("HOME", unit_scratch_path(sandbox->scratch, "home"), 1);
    if (host_read(&sandbox->host, &err) < 0 || store_create(sandbox->host.state, &sandbox->dir, &err) < 0)
        fail_with(&err);
    make_plan(sandbox);
    open_place(sandbox);
    return 0;
}

void sandbox_fork(struct sandbox *sandbox, const char *lid, uint32_t id_base, struct sandbox *out)
{
    struct error err = { 0 };
    autostrings struct strings chain = STRINGS_NONE;

    *out = (struct sandbox){ .scratch = sandbox->scratch, .host = sandbox->host, .box = BOX_NONE };
    out->host.id_base = id_base;
    if (store_create(out->host.state, &out->dir, &err) < 0)
        fail_with(&err);
    make_plan(out);
    out->plan.resumed = true;
    open_place(out);
    if (stack_turn(&out->place, lid, &chain, &err) < 0)
        fail_with(&err);
}

void sandbox_fork_end(struct sandbox *fork)
{
    struct error err = { 0 };
    char id[ID_LENGTH + 1];

    memcpy(id, fork->dir.id, sizeof id);
    box_end(&fork->box);
    plan_free(&fork->plan);
    text_free(&fork->output);
    if (store_remove(&fork->dir, &err) < 0 || layers_release_all(fork->place.layers, id, &err) < 0)
        fail_with(&err);
    close(fork->place.layers);
}

int sandbox_teardown(void **state)
{
    struct sandbox *sandbox = *state;
    struct error err;

    box_end(&sandbox->box);
    plan_free(&sandbox->plan);
    assert_int_equal(store_remove(&sandbox->dir, &err), 0);
    assert_int_equal(store_remove_tree(sandbox->scratch->dir, "state", &err), 0);
    close(sandbox->place.layers);
    host_free(&sandbox->host);
    text_free(&sandbox->output);
    unit_scratch_teardown((void **)&sandbox->scratch);
    free(sandbox);
    return 0;
}

/* --- PID 1 --- */

static void receive(struct sandbox *sandbox, uint32_t kind, struct message *message, int *fds, size_t *count)
{
    struct error err = { 0 };

    if (wire_receive(sandbox->box.init_fd, message, fds, count, &err) != WIRE_MESSAGE)
        fail_msg("PID 1 is gone: %s", err.text);
    if (message->kind != kind)
        fail_msg("PID 1 said %u instead of %u: %s", message->kind, kind, message->error.text);
}

static int begin(struct sandbox *sandbox, struct error *err)
{
    struct plan *plan = &sandbox->plan;
    char top[ID_LENGTH + 1];

    strings_free(&plan->stack);
    if (stack_repair(&sandbox->place, err) < 0 || stack_top(sandbox->dir.fd, top, err) < 0 ||
        layers_chain(sandbox->place.layers, top, &plan->stack, err) < 0)
        return -1;
    return box_start(plan, &sandbox->host, sandbox->dir.id, &sandbox->box, err);
}

/* Root's mounter fails before box_start() is over. */
const char *sandbox_cannot_start(struct sandbox *sandbox)
{
    static struct error err;

    if (begin(sandbox, &err) == 0)
        fail_msg("it starts");
    return err.text;
}

void sandbox_start(struct sandbox *sandbox, int *list)
{
    struct plan *plan = &sandbox->plan;
    struct error err = { 0 };
    struct message message;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    if (begin(sandbox, &err) < 0)
        fail_with(&err);
    receive(sandbox, MESSAGE_MOUNTED, &message, fds, &count);
    if (list)
        *list = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
    if (box_verify(&sandbox->box, &message, fds, count, &err) < 0)
        fail_with(&err);
    plan->resumed = true;
}

void sandbox_stop(struct sandbox *sandbox)
{
    box_end(&sandbox->box);
    store_tidy(sandbox->dir.fd);
}

static int32_t start(struct sandbox *sandbox, const char *script, struct start_pipes *pipes)
{
    const struct plan *plan = &sandbox->plan;
    const char *argv[] = { "sh", "-c", script, NULL };
    struct keeper_run run = {
        .argv = argv,
        .envp = (const char *const *)plan->env.items,
        .cwd = plan->cwd,
        .uid = plan->ids.uid,
        .gid = plan->ids.gid,
        .flags = plan->start_flags,
        .pipe_owner = plan->ids.shifted ? plan->ids.base + plan->ids.uid : sandbox->host.uid,
    };
    struct start_order order = START_ORDER_NONE;
    struct error err = { 0 };
    struct message message;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    if (start_prepare(&run, &order, pipes, &err) < 0)
        fail_with(&err);
    order.message.flags &= ~(uint32_t)START_LAST;
    if (start_send(sandbox->box.init_fd, &order, &err) < 0)
        fail_with(&err);
    receive(sandbox, MESSAGE_STARTED, &message, fds, &count);
    return message.pid;
}

static void take_output(struct sandbox *sandbox, int fd)
{
    char bytes[4096];
    ssize_t got;

    fcntl(fd, F_SETFL, 0);
    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        text_add_bytes(&sandbox->output, bytes, (size_t)got);
    close(fd);
}

int sandbox_run(struct sandbox *sandbox, const char *script)
{
    struct start_pipes pipes;
    struct message message;
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    text_clear(&sandbox->output);
    start(sandbox, script, &pipes);
    close(pipes.in);
    take_output(sandbox, pipes.out);
    take_output(sandbox, pipes.err);
    receive(sandbox, MESSAGE_EXITED, &message, fds, &count);
    return WIFEXITED(message.status) ? WEXITSTATUS(message.status) : 128 + WTERMSIG(message.status);
}

void sandbox_expect(struct sandbox *sandbox, const char *script, const char *want)
{
    int code = sandbox_run(sandbox, script);

    if (code != 0 || strcmp(text_string(&sandbox->output), want) != 0)
        fail_msg("%s: wanted \"%s\", got %d and \"%s\"", script, want, code, text_string(&sandbox->output));
}

int32_t sandbox_begin(struct sandbox *sandbox, const char *script)
{
    struct start_pipes pipes;
    int32_t pid = start(sandbox, script, &pipes);
    char byte;

    close(pipes.in);
    fcntl(pipes.out, F_SETFL, 0);
    assert_int_equal(read(pipes.out, &byte, 1), 1); /* it says when it is ready */
    close(pipes.out);
    close(pipes.err);
    return pid;
}

void sandbox_end(struct sandbox *sandbox, int32_t pid)
{
    struct message message = { .kind = MESSAGE_SIGNAL, .pid = pid, .signal = SIGKILL };
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    assert_int_equal(wire_send(sandbox->box.init_fd, &message, NULL, 0), 0);
    receive(sandbox, MESSAGE_EXITED, &message, fds, &count);
}
