#include "keeper/guard_sleep.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "box/laid.h"
#include "box/lent.h"
#include "box/tree.h"
#include "keeper/guard_fds.h"
#include "keeper/sleeper_program.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- what it knows --- */

enum word {
    WORD_ID,
    WORD_USERS,
    WORD_WALL_AHEAD,
    WORD_GROUPS, /* their kind, then where they are */
    WORD_GROUP,
    WORD_FREEZER = WORD_GROUP + CONTROLLER_COUNT,
    WORD_FREEZER_V1,
    WORD_FREEZER_OWN,
    WORD_HOST_IMAGE,
    WORD_BASE,
    WORD_LAYERS,
    WORD_ROOT, /* of the image, outside, and the workspace inside */
    WORD_WORKSPACE,
    WORDS,
};

static void add(struct strings *out, enum word word, const char *value)
{
    strings_take(out, text_format("COVE_GUARD_%d=%s", (int)word, value ? value : ""));
}

static void add_number(struct strings *out, enum word word, long long value)
{
    strings_take(out, text_format("COVE_GUARD_%d=%lld", (int)word, value));
}

static void describe(const struct guarded *guarded, struct strings *out)
{
    const struct cgroup *cgroup = &guarded->box.cgroup;
    const struct freezer *freezer = &guarded->box.freezer;
    const struct plan *plan = guarded->plan;

    add(out, WORD_ID, guarded->dir.id);
    add_number(out, WORD_USERS, guarded->users >= 0);
    add_number(out, WORD_WALL_AHEAD, guarded->record->wall_ahead);
    add_number(out, WORD_GROUPS, cgroup->kind);
    for (size_t i = 0; i < CONTROLLER_COUNT; i++)
        add(out, (enum word)(WORD_GROUP + i), cgroup->dirs[i]);
    add(out, WORD_FREEZER, freezer->dir);
    add_number(out, WORD_FREEZER_V1, freezer->v1);
    add_number(out, WORD_FREEZER_OWN, freezer->own);
    add_number(out, WORD_HOST_IMAGE, plan->host_image);
    add_number(out, WORD_BASE, plan->ids.base);
    add_number(out, WORD_LAYERS, plan->layers);
    add(out, WORD_ROOT, plan->trees.items[0].source);
    add(out, WORD_WORKSPACE, laid_workspace(plan));
}

/* NULL: there is none. */
static char *recall(enum word word)
{
    autofree char *name = text_format("COVE_GUARD_%d", (int)word);
    const char *value = getenv(name);

    return value && *value ? text_copy(value) : NULL;
}

static long long recall_number(enum word word)
{
    autofree char *value = recall(word);

    return value ? strtoll(value, NULL, 10) : 0;
}

static void recall_plan(struct plan *out)
{
    autofree char *workspace = recall(WORD_WORKSPACE);

    out->host_image = recall_number(WORD_HOST_IMAGE);
    out->ids.base = (uint32_t)recall_number(WORD_BASE);
    out->layers = (int)recall_number(WORD_LAYERS);
    *(struct tree *)array_add(&out->trees) =
        (struct tree){ .source = recall(WORD_ROOT), .why = TREE_WHY_IMAGE };
    if (workspace)
        *(struct tree *)array_add(&out->trees) =
            (struct tree){ .target = steal_ptr(&workspace), .why = TREE_WHY_WORKSPACE };
}

bool guard_recall(struct guarded *out, struct plan *plan)
{
    autofree char *id = recall(WORD_ID);

    if (!id || strlen(id) != ID_LENGTH)
        return false;
    recall_plan(plan);
    *out = (struct guarded){ .box = BOX_NONE,
                             .plan = plan,
                             .dir = { GUARD_PARENT, GUARD_DIR, "" },
                             .verdict = GUARD_VERDICT,
                             .users = recall_number(WORD_USERS) ? GUARD_USERS : -1,
                             .woken = true,
                             .wall_ahead = (time_t)recall_number(WORD_WALL_AHEAD) };
    memcpy(out->dir.id, id, sizeof out->dir.id);
    out->box.pidfd = GUARD_PIDFD;
    out->box.cgroup.kind = (enum cgroup_kind)recall_number(WORD_GROUPS);
    for (size_t i = 0; i < CONTROLLER_COUNT; i++)
        out->box.cgroup.dirs[i] = recall((enum word)(WORD_GROUP + i));
    out->box.freezer = (struct freezer){ .dir = recall(WORD_FREEZER),
                                         .v1 = recall_number(WORD_FREEZER_V1),
                                         .own = recall_number(WORD_FREEZER_OWN) };
    (void)close_range(GUARD_FDS, ~0U, 0);
    return true;
}

/* --- to sleep --- */

/* Lent as PID 1's program is: the first of them lends its own, and keeps it open. */
static int take_program(const char *state)
{
    const struct lent shared = { GUARD_NAME, sleeper_program, sleeper_program_size };
    int fd = lent_take(state, &shared);

    if (fd >= 0)
        return fd;
    fd = lent_offer(state, &shared);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, 0);
    return fd;
}

void guard_sleep(const struct guarded *guarded)
{
    autostrings struct strings words = STRINGS_NONE;
    autofree char *state = text_format("%s/..", sys_fd_path(guarded->dir.parent).text);
    autoclose int image = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    char name[] = GUARD_NAME, heeds[] = GUARD_HEEDS_VERDICT, *argv[] = { name, NULL, NULL };
    char *variables[WORDS + 1] = { NULL };

    if (guarded->box.freezer.v1)
        argv[1] = heeds;
    if (image < 0 || (image != GUARD_IMAGE && dup2(image, GUARD_IMAGE) < 0) ||
        (image == GUARD_IMAGE && fcntl(steal_fd(&image), F_SETFD, 0) < 0))
        return;

    int program = take_program(state);

    describe(guarded, &words);
    for (size_t i = 0; i < words.len && i < WORDS; i++)
        variables[i] = words.items[i];
    if (program >= 0)
        syscall(SYS_execveat, program, "", argv, variables, AT_EMPTY_PATH);
    own_close(&program);
    close(GUARD_IMAGE);
}
