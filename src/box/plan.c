#include "box/plan.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hostname.h"
#include "base/own.h"
#include "base/text.h"
#include "box/closed.h"
#include "box/environment.h"
#include "box/gitconfig.h"
#include "box/grants.h"
#include "box/host.h"
#include "box/image_dir.h"
#include "box/mounts.h"
#include "box/workspace.h"
#include "init/protocol.h"
#include "limits/processes.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { GITCONFIG_MAX = 64 << 10 };

static struct step *add(struct plan *plan, enum step_kind kind, enum actor by, const char *guard)
{
    struct step *step = array_add(&plan->steps);

    step->kind = kind;
    step->by = by;
    step->guard = guard;
    step->layer = -1;
    return step;
}

static struct step *add_at(struct plan *plan, enum step_kind kind, const char *guard, const char *target,
                           const char *source)
{
    struct step *step = add(plan, kind, BY_CLONE, guard);

    step->target = text_copy(target);
    step->source = source ? text_copy(source) : NULL;
    return step;
}

/* Time has no offsets (they could only be written before the first process), but a fork of running
 * processes will need one of its own. */
const uint64_t plan_own_namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                                     CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME;

static void plan_namespaces(struct plan *plan)
{
    add(plan, STEP_NAMESPACES, BY_KEEPER, "namespaces");
    add(plan, STEP_IDS, BY_KEEPER, "ids");
    plan->namespaces = plan_own_namespaces;
}

static int plan_limits(struct plan *plan, const struct spec *spec, struct error *err)
{
    const struct limit_means means = { .many_users = plan->start_flags & START_ROOT,
                                       .blind = spec->limits[LIMIT_MEMORY].max && !processes_can_be_seen() };

    if (limits_choose(spec, &means, &plan->limits, err) < 0)
        return -1;
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_choice *choice = &plan->limits.items[i];
        autotext struct text shown = TEXT_NONE;

        if (!choice->max)
            continue;
        limit_show((enum limit_id)i, choice->max, &shown);
        add_at(plan, STEP_LIMIT, "limits", text_string(&shown), limit_way_words(choice->way))->by = BY_KEEPER;
    }
    return 0;
}

/* PID 1 counts too where it is the same user. */
uint64_t plan_process_rlimit(const struct plan *plan)
{
    const struct limit_choice *choice = &plan->limits.items[LIMIT_PROCESSES];

    if (choice->way != WAY_RLIMIT && choice->way != WAY_PER_USER)
        return 0;
    return choice->max + (plan->ids.init == plan->ids.uid);
}

/* The owner's name for commits, and nothing else of their configuration: it may name helpers that
 * hold passwords. */
static void plan_git_identity(struct plan *plan, const struct host *host, const char *home)
{
    autofree char *path = text_format("%s/.gitconfig", host->home),
                  *config = file_text(AT_FDCWD, path, GITCONFIG_MAX);
    autofree char *name = config ? gitconfig_value(config, "user", "name") : NULL;
    autofree char *email = config ? gitconfig_value(config, "user", "email") : NULL;
    autofree char *target = text_format("%s/.gitconfig", home);
    autotext struct text content = TEXT_NONE;

    if (!name || !email || strpbrk(name, "\"\\\n") || strpbrk(email, "\"\\\n"))
        return;
    text_addf(&content, "[user]\n\tname = \"%s\"\n\temail = \"%s\"\n", name, email);
    add_at(plan, STEP_TEXT, "home", target, text_string(&content))->by = BY_MOUNTER;
}

static const char *variable(const struct strings *env, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < env->len; i++)
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return env->items[i] + len + 1;
    return NULL;
}

/* What the image cannot know: where home is, who commits, and a host name of this run's own. */
static void plan_own_files(struct plan *plan, const struct host *host)
{
    const char *home = variable(&plan->env, "HOME");
    struct step *step = add_at(plan, STEP_DIRECTORY, "home", home ? home : "/root", NULL);

    step->by = BY_MOUNTER;
    step->mode = 0755;
    if (home)
        plan_git_identity(plan, host, home);
    /* Where changes of identity are answered without effect, apt would notice that its own had none. */
    if (plan->start_flags & START_FAKEROOT) {
        step =
            add_at(plan, STEP_TEXT, "fakeroot", "/etc/apt/apt.conf.d/99cove", "APT::Sandbox::User \"root\";\n");
        step->by = BY_MOUNTER;
        step->mode = STEP_MODE_OPTIONAL;
    }
    if (strcmp(plan->hostname, "cove") == 0)
        return;

    autofree char *hosts = text_format(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s\n", plan->hostname);
    autofree char *name = text_format("%s\n", plan->hostname);

    add_at(plan, STEP_TEXT, "hostname", "/etc/hosts", hosts)->by = BY_MOUNTER;
    add_at(plan, STEP_TEXT, "hostname", "/etc/hostname", name)->by = BY_MOUNTER;
}

/* A tmpfs of the mounter's.  Made with the host's rights it would belong to a user whom nobody
 * inside knows. */
static void plan_tmpfs(struct plan *plan, const char *guard, const char *target, const char *options,
                       uint64_t flags)
{
    const struct ids *ids = &plan->ids;
    autofree char *all =
        ids->shifted ? text_format("%s,uid=%u,gid=%u", options, ids->base, ids->base) : text_copy(options);
    struct step *step = add_at(plan, STEP_TMPFS, guard, target, all);

    step->by = BY_MOUNTER;
    step->flags = flags;
}

/* Enough of /sys for run-times that size themselves by it, and nothing about devices. */
static void plan_sys(struct plan *plan)
{
    static const char *const shown[] = { "/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage" };
    struct step *step;

    plan_tmpfs(plan, "sys", "/sys", "mode=755,size=64k", MS_NOSUID | MS_NODEV | MS_NOEXEC);
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        step = add_at(plan, STEP_SYSFS, "sys", shown[i], shown[i]);
        step->by = BY_MOUNTER;
        step->flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
        step->mode = STEP_MODE_OPTIONAL;
    }
    step = add_at(plan, STEP_READONLY, "sys", "/sys", NULL);
    step->by = BY_MOUNTER;
    step->flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
}

/* In a tree that is written through there is no layer to leave something out of, so it is mounted over.
 * What is mounted on cannot be removed or renamed either. */
static void plan_cover(struct plan *plan, size_t number, enum step_kind kind, const struct strings *paths)
{
    const struct tree *tree = &plan->trees.items[number];

    for (size_t i = 0; i < paths->len; i++) {
        autofree char *target = text_format("%s/%s", tree->target, paths->items[i]);
        struct step *step = add_at(plan, kind, "protect", target, NULL);

        step->by = BY_MOUNTER;
        step->tree = number;
        step->flags = MS_RDONLY | MS_NOSUID | MS_NODEV;
        step->mode = STEP_MODE_OPTIONAL;
    }
}

static const char *tree_guard(const struct tree *tree)
{
    static const char *const guards[] = {
        [TREE_RO] = "readonly", [TREE_COW] = "copy-on-write", [TREE_RW] = "written-through"
    };

    return guards[tree->mode];
}

static void plan_dev(struct plan *plan, enum actor by)
{
    static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };
    static const struct {
        const char *name, *to;
    } links[] = { { "/dev/fd", "/proc/self/fd" },
                  { "/dev/stdin", "/proc/self/fd/0" },
                  { "/dev/stdout", "/proc/self/fd/1" },
                  { "/dev/stderr", "/proc/self/fd/2" },
                  { "/dev/ptmx", "pts/ptmx" } };
    size_t first = plan->steps.len;

    add_at(plan, STEP_TMPFS, "dev", "/dev", "mode=755,size=1m")->flags = MS_NOSUID | MS_NOEXEC;
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
        autofree char *node = text_format("/dev/%s", nodes[i]);

        add_at(plan, STEP_DEVICE, "dev", node, node);
    }
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        add_at(plan, STEP_LINK, "dev", links[i].name, links[i].to);
    add_at(plan, STEP_DEVPTS, "dev", "/dev/pts", "newinstance,ptmxmode=0666,mode=620,max=256")->flags =
        MS_NOSUID | MS_NOEXEC;

    uint64_t memory = plan->limits.items[LIMIT_MEMORY].max;
    autofree char *shm = memory ? text_format("mode=1777,size=%llu", (unsigned long long)memory) : NULL;

    add_at(plan, STEP_TMPFS, "dev", "/dev/shm", shm ? shm : "mode=1777")->flags = MS_NOSUID | MS_NODEV;
    for (size_t i = first; i < plan->steps.len; i++)
        plan->steps.items[i].by = by;
}

/* With /dev, from which /proc gets its masks.  Root's mounter would have it belong to the host; an ordinary
 * user's has made it before the clone has a network. */
static void plan_hand(struct plan *plan)
{
    if (!plan->ids.shifted)
        plan_dev(plan, BY_MOUNTER);
    add_at(plan, STEP_HAND, "root", "/", NULL)->by = BY_MOUNTER;
}

/* The mounter's part: image, then the trees from the outside in, so that a tree inside another
 * one lies on top of it. */
static void plan_trees(struct plan *plan, const struct host *host)
{
    for (size_t i = 0; i < plan->trees.len; i++) {
        const struct tree *tree = &plan->trees.items[i];
        enum step_kind kind = i == 0 ? STEP_ROOT : tree->file ? STEP_FILE : STEP_TREE;
        struct step *step = add(plan, kind, BY_MOUNTER, tree_guard(tree));

        step->target = text_copy(tree->target);
        step->source = text_copy(tree->source);
        step->tree = i;
        step->flags = MS_NOSUID | MS_NODEV | (tree->mode == TREE_RO ? MS_RDONLY : 0);
        if (tree->mode != TREE_RO && !tree->file) /* of one that is written through: for what is set aside */
            step->layer = plan->layers++;
        if (i > 0)
            continue;
        plan_hand(plan);
        /* Before the trees: a disk below /run/media is one. */
        plan_tmpfs(plan, "run", "/run", "mode=755,size=64m", MS_NOSUID | MS_NODEV);
        plan_own_files(plan, host);
    }
    for (size_t i = 1; i < plan->trees.len; i++)
        if (plan->trees.items[i].mode == TREE_RW) {
            plan_cover(plan, i, STEP_PROTECT, &plan->trees.items[i].protect);
            plan_cover(plan, i, STEP_COVER, &plan->trees.items[i].hide);
        }
    plan_sys(plan);
    add(plan, STEP_PIVOT, BY_MOUNTER, "pivot");
}

/* A mount below a shown tree is a tree of its own, and never written through.  Only root can show it: in a user
 * namespace the kernel keeps what lies under a mount and what is mounted on it together. */
static int plan_submounts(struct plan *plan, const struct host *host, struct error *err)
{
    size_t known = plan->trees.len;

    for (size_t i = 1; host->root && i < known; i++) {
        autostrings struct strings below = STRINGS_NONE;
        struct tree tree = plan->trees.items[i];

        if (tree.file || strcmp(tree.why, "image") == 0)
            continue;
        mounts_below(tree.source, &below);
        for (size_t m = 0; m < below.len; m++) {
            autofree char *target = text_format("%s%s", tree.target, below.items[m] + strlen(tree.source));
            struct stat status;

            if (lstat(below.items[m], &status) < 0)
                return error_sys(err, "look at %s, which is mounted below %s", below.items[m], tree.source);
            if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
                return error_set(err, ERROR_REFUSED, "%s, mounted below %s, is neither a directory nor a file",
                                 below.items[m], tree.source);
            *array_add(&plan->trees) = (struct tree){ .source = text_copy(below.items[m]),
                                                      .target = text_copy(target),
                                                      .mode = tree.mode == TREE_RW ? TREE_COW : tree.mode,
                                                      .device = status.st_dev,
                                                      .inode = status.st_ino,
                                                      .file = !S_ISDIR(status.st_mode),
                                                      .why = tree.why };
        }
    }
    return 0;
}

/* What of the kernel's tables is the host's business.  Those that only the host's root may open
 * are closed by that already (its id is never mapped) and are passed over: a mount for each
 * would be a tenth of the start. */
static const char *const masked[] = {
    "/proc/acpi",          "/proc/asound",        "/proc/config.gz",
    "/proc/interrupts",    "/proc/iomem",         "/proc/ioports",
    "/proc/kallsyms",      "/proc/kcore",         "/proc/keys",
    "/proc/key-users",     "/proc/kmsg",          "/proc/latency_stats",
    "/proc/mtrr",          "/proc/schedstat",     "/proc/scsi",
    "/proc/slabinfo",      "/proc/softirqs",      "/proc/timer_list",
    "/proc/zoneinfo",      "/proc/diskstats",     "/proc/partitions",
    "/proc/driver",        "/proc/dynamic_debug", "/proc/vmallocinfo",
    "/proc/sysrq-trigger", "/proc/cmdline",       "/proc/fs",
};

static const char *const sealed[] = { "/proc/sys", "/proc/bus", "/proc/irq" };

/* Bounds of our own user namespace.  No user namespace can be made inside even if the filter were
 * gone, and without one nobody has the capability that the other kinds need.  Inotify instances
 * are counted per user over all namespaces, so a part is left to the owner's own programs. */
static const struct {
    const char *name, *value;
} knobs[] = {
    { "user/max_user_namespaces", "0" },
    { "user/max_inotify_instances", "96" },
};

static void plan_proc(struct plan *plan)
{
    add_at(plan, STEP_PROC, "proc", "/proc", NULL)->flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
        autofree char *target = text_format("/proc/sys/%s", knobs[i].name);

        add_at(plan, STEP_KNOB, "knobs", target, knobs[i].value)->mode = STEP_MODE_OPTIONAL;
    }
}

static void plan_proc_rest(struct plan *plan)
{
    for (size_t i = 0; i < ARRAY_LEN(masked); i++)
        add_at(plan, STEP_MASK, "masks", masked[i], NULL)->mode = STEP_MODE_OPTIONAL;
    for (size_t i = 0; i < ARRAY_LEN(sealed); i++) {
        struct step *step = add_at(plan, STEP_SEAL, "seals", sealed[i], NULL);

        step->flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
        step->mode = STEP_MODE_OPTIONAL;
    }
}

/* What needs no root comes first: the mounter is making it meanwhile.  What is mounted then has
 * nothing to do with its trees, so that both can go on beside each other. */
static void plan_clone(struct plan *plan)
{
    add_at(plan, STEP_LOOPBACK, "network", "lo", NULL);
    add_at(plan, STEP_HOSTNAME, "hostname", plan->hostname, NULL);
    add_at(plan, STEP_AWAIT, "root", "/", NULL);
    plan_proc(plan);
    if (plan->ids.shifted)
        plan_dev(plan, BY_CLONE);
    add(plan, STEP_PART, BY_CLONE, "root");
    plan_proc_rest(plan);
    add_at(plan, STEP_AWAIT, "root", "all trees", NULL);
    if (plan->landlock_abi > 0)
        add(plan, STEP_LANDLOCK, BY_CLONE, "landlock");
    add_at(plan, STEP_AWAIT, "root", "the host's root is gone", NULL);
    add(plan, STEP_VERIFY, BY_CLONE, "verify");
    add(plan, STEP_CAPABILITIES, BY_COMMAND, "capabilities");
    add(plan, STEP_FILTER, BY_COMMAND, "seccomp");
}

/* Landlock, the second wall: on the host image a command may write where its own things are and
 * nowhere else, whatever the mounts say.  An image of the user's is copy on write as a whole. */
static void plan_writable(struct plan *plan, const struct host *host)
{
    static const char *const places[] = { "/tmp", "/var/tmp", "/var/cache", "/var/log", "/run",
                                          "/dev", "/proc",    "/mnt",       "/srv",     "/media" };

    if (!plan->host_image || (plan->start_flags & START_ROOT)) {
        strings_add(&plan->writable, "/");
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        strings_add(&plan->writable, places[i]);
    strings_add(&plan->writable, variable(&plan->env, "HOME") ? variable(&plan->env, "HOME") : host->home);
    for (size_t i = 1; i < plan->trees.len; i++)
        if (plan->trees.items[i].mode != TREE_RO)
            strings_add(&plan->writable, plan->trees.items[i].target);
}

static int by_target(const void *a, const void *b)
{
    return strcmp(((const struct tree *)a)->target, ((const struct tree *)b)->target);
}

/* Parents first: a path sorts before everything below it. */
static void sort_trees(struct trees *trees)
{
    qsort(trees->items + 1, trees->len - 1, sizeof *trees->items, by_target);
}

/* System trees can be written to (copy on write) only by root in the box: everybody else starts
 * faster without those layers and could not use them.  Their ids are mapped then, so what only the
 * host's root may read is left out; /opt, which is other people's, stays as it is. */
static int plan_system_tree(struct plan *plan, struct tree *tree, struct error *err)
{
    bool writable = (plan->start_flags & START_ROOT) && strcmp(tree->source, "/opt") != 0;
    autoclose int fd = -1;

    tree->mode = writable ? TREE_COW : TREE_RO;
    if (!writable)
        return 0;
    fd = open(tree->source, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open %s", tree->source);
    return closed_find(fd, &tree->hide, err);
}

static int plan_image(struct plan *plan, const struct spec *spec, const struct host *host, struct error *err)
{
    plan->host_image = strcmp(spec->image, "host") == 0;
    if (!plan->host_image)
        return image_dir_trees(spec->image, host, &plan->trees, err);

    autofree char *root = NULL;

    if (image_host_root(host, &plan->image_check, &root, err) < 0)
        return error_while(err, "prepare the host image");
    if (image_dir_add(root, "image", host, &plan->trees, err) < 0 ||
        image_host_trees(host, &plan->trees, err) < 0)
        return error_while(err, "prepare the host image");

    for (size_t i = 1; i < plan->trees.len; i++)
        if (plan_system_tree(plan, &plan->trees.items[i], err) < 0)
            return -1;
    return 0;
}

static uint32_t start_flags(const struct spec *spec, const struct host *host, const struct ids *ids)
{
    uint32_t flags = spec->profile == PROFILE_STRICT ? START_STRICT : 0;
    bool root = spec->user && strcmp(spec->user, "root") == 0;

    (void)host;
    if (root)
        flags |= ids->shifted || ids->rows > 1 ? START_ROOT : START_FAKEROOT;
    return flags;
}

/* Names are reached by addresses of their own, and ports 80 and 443 lead to the gateway anyhow.  Loopback is
 * the sandbox's, but for services of the host that it is to have there. */
void plan_granted(const struct spec *spec, struct strings *out)
{
    for (size_t i = 0; i < spec->rules.len; i++) {
        const struct rule *rule = &spec->rules.items[i];
        struct hostname host;

        if ((rule->action == RULE_ALLOW || rule->action == RULE_MOCK) && rule->port &&
            !hostname_read(rule->host, strlen(rule->host), &host) && hostname_is_address(&host) &&
            address_class(&host.address) != ADDRESS_LOOPBACK)
            strings_take(out, text_format("%s %u", host.text, rule->port));
    }
    for (size_t i = 0; spec->network != NETWORK_NONE && i < spec->host_services.len; i++) {
        strings_take(out, text_format("127.0.0.1 %s", spec->host_services.items[i]));
        strings_take(out, text_format("::1 %s", spec->host_services.items[i]));
    }
    if (network_is_public(spec->network))
        strings_add(out, "*");
}

static void plan_command(struct plan *plan, const struct spec *spec, const struct host *host)
{
    environment_build(spec, host, &plan->env);
    if (spec->command.len)
        strings_copy(&plan->argv, &spec->command);
    else
        strings_add(&plan->argv, host->shell);
}

static void move_trees(struct trees *from, struct trees *to)
{
    for (size_t i = 0; i < from->len; i++)
        *array_add(to) = from->items[i];
    from->len = 0;
}

/* What the owner asked for, as far as the layers of policy allow it.  The repository of a linked work
 * tree has the same rules, but is never written through: it is all git's. */
static void plan_workspace(struct plan *plan, const struct spec *spec)
{
    static const enum tree_mode modes[] = { [WORKSPACE_RW] = TREE_RW,
                                            [WORKSPACE_LIVE] = TREE_COW,
                                            [WORKSPACE_COW] = TREE_COW,
                                            [WORKSPACE_COPY] = TREE_COW,
                                            [WORKSPACE_RO] = TREE_RO };

    plan->workspace_mode = spec->workspace;
    for (size_t i = 0; i < plan->trees.len; i++) {
        struct tree *tree = &plan->trees.items[i];

        if (strcmp(tree->why, TREE_WHY_WORKSPACE) == 0)
            tree->mode = modes[spec->workspace];
        else if (strcmp(tree->why, TREE_WHY_GIT) == 0)
            tree->mode = spec->workspace == WORKSPACE_RO ? TREE_RO : TREE_COW;
    }
}

int plan_build(const struct spec *spec, const struct host *host, const struct workspace *workspace,
               struct trees *trees, struct plan *plan, struct error *err)
{
    *plan = (struct plan){ .hostname = text_copy(spec->hostname),
                           .landlock_abi = sys_landlock_abi(),
                           .image_check = IMAGE_CHECK_NONE };
    if (ids_choose(spec, host, &plan->ids, err) < 0)
        return -1;
    plan->start_flags = start_flags(spec, host, &plan->ids);
    plan_namespaces(plan);
    if (plan_limits(plan, spec, err) < 0)
        return -1;
    if (plan_image(plan, spec, host, err) < 0)
        return -1;
    move_trees(trees, &plan->trees);
    plan_workspace(plan, spec);
    if (grants_add(spec, host, &plan->trees, err) < 0 || plan_submounts(plan, host, err) < 0 ||
        grants_hide(spec, host, &plan->trees, err) < 0)
        return -1;
    sort_trees(&plan->trees);
    plan->workspace = text_copy(workspace->root);
    plan->cwd = text_copy(workspace->cwd);
    plan_granted(spec, &plan->granted);
    plan_command(plan, spec, host);
    plan_trees(plan, host);
    plan_clone(plan);
    plan_writable(plan, host);
    return 0;
}

bool plan_holds(const struct plan *plan)
{
    return image_check_holds(&plan->image_check);
}

int plan_renew(struct plan *plan, const struct host *host, struct error *err)
{
    autofree char *root = NULL;
    struct trees fresh = TREES_NONE;
    struct tree old = plan->trees.items[0];

    image_check_free(&plan->image_check);
    if (image_host_root(host, NULL, &root, err) < 0 || image_dir_add(root, "image", host, &fresh, err) < 0)
        return error_while(err, "prepare the host image");
    plan->trees.items[0] = fresh.items[0];
    fresh.items[0] = old;
    trees_free(&fresh);
    for (size_t i = 0; i < plan->steps.len; i++)
        if (plan->steps.items[i].kind == STEP_ROOT) {
            free(plan->steps.items[i].source);
            plan->steps.items[i].source = text_copy(plan->trees.items[0].source);
        }
    return 0;
}

void plan_free(struct plan *plan)
{
    image_check_free(&plan->image_check);
    for (size_t i = 0; i < plan->steps.len; i++) {
        free(plan->steps.items[i].target);
        free(plan->steps.items[i].source);
    }
    free(plan->steps.items);
    trees_free(&plan->trees);
    strings_free(&plan->writable);
    strings_free(&plan->granted);
    strings_free(&plan->stack);
    strings_free(&plan->argv);
    strings_free(&plan->env);
    free(plan->cwd);
    free(plan->workspace);
    free(plan->hostname);
    limits_free(&plan->limits);
    *plan = (struct plan){ 0 };
}
