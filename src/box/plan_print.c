#include "box/plan.h"

#include "base/text.h"

#include <string.h>
#include <sys/mount.h>

/* A kind's name, what it does in words, and what the host must have for it: the sentence that an
 * error ends with. */
static const struct {
    const char *name, *does, *needs;
} kinds[STEP_COUNT] = {
    [STEP_NAMESPACES] = { "namespaces", "clone into new namespaces",
                          "user namespaces for this user (sysctl user.max_user_namespaces, "
                          "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)" },
    [STEP_IDS] = { "ids", "map user and group ids",
                   "permission to map ids (newuidmap and /etc/subuid for a range)" },
    [STEP_LIMIT] = { "limit", "bound what it may use", "control groups" },
    [STEP_ROOT] = { "root", "lay a writable layer over the image",
                    "overlayfs, and a state directory whose file system can hold its upper layer "
                    "(not overlayfs, NFS or a read-only one; see COVE_HOME)" },
    [STEP_TREE] = { "tree", "show a host directory", "overlayfs, and no other mount below the directory" },
    [STEP_FILE] = { "file", "show a host file", "a bind mount of the file" },
    [STEP_TEXT] = { "text", "write a file of our own", "a writable layer" },
    [STEP_DIRECTORY] = { "directory", "make a directory", "a writable layer" },
    [STEP_LINK] = { "link", "make a symbolic link", "a writable layer" },
    [STEP_PROC] = { "proc", "mount a private /proc",
                    "an unmasked /proc (in a container: --security-opt systempaths=unconfined)" },
    [STEP_TMPFS] = { "tmpfs", "mount an empty tmpfs", "tmpfs" },
    [STEP_DEVPTS] = { "devpts", "mount private terminals", "devpts with newinstance" },
    [STEP_DEVICE] = { "device", "show a harmless device", "the device node on the host" },
    [STEP_SYSFS] = { "sysfs", "show a part of /sys", "sysfs" },
    [STEP_MASK] = { "mask", "hide a part of /proc", "bind mounts" },
    [STEP_SEAL] = { "seal", "make a part of /proc read-only", "bind mounts and mount_setattr" },
    [STEP_PROTECT] = { "protect", "keep a path of a written tree as it is", "mount_setattr" },
    [STEP_COVER] = { "cover", "hide a path of a written tree", "mount_setattr" },
    [STEP_READONLY] = { "readonly", "make a mount read-only", "mount_setattr" },
    [STEP_KNOB] = { "knob", "bound the user namespace", "/proc/sys/user" },
    [STEP_HAND] = { "hand", "hand the root to the clone", "overlayfs" },
    [STEP_PART] = { "part", "need the host's root no more", "overlayfs" },
    [STEP_AWAIT] = { "await", "wait for the mounter", "overlayfs" },
    [STEP_LOOPBACK] = { "loopback", "bring up loopback and nothing else", "network namespaces" },
    [STEP_HOSTNAME] = { "hostname", "set the host name", "UTS namespaces" },
    [STEP_PIVOT] = { "pivot", "leave the host's file system", "pivot_root" },
    [STEP_VERIFY] = { "verify", "compare the mounts with the plan", "/proc/self/mountinfo" },
    [STEP_LANDLOCK] = { "landlock", "make the second wall", "Landlock" },
    [STEP_FILTER] = { "seccomp", "filter system calls", "seccomp filters" },
    [STEP_CAPABILITIES] = { "capabilities", "give up every capability", "capabilities" },
};

static const char *const actors[] = { "keeper", "mounter", "clone", "command" };

const char *step_name(enum step_kind kind)
{
    return kinds[kind].name;
}

const char *step_needs(enum step_kind kind)
{
    return kinds[kind].needs;
}

static void add_details(const struct plan *plan, const struct step *step, struct text *out)
{
    static const char *const modes[] = {
        [TREE_RO] = "read-only", [TREE_COW] = "copy on write", [TREE_RW] = "the host's own, writable"
    };

    if (step->target) {
        text_add(out, "  ");
        text_add_inert(out, step->target);
    }
    if (step->source && (!step->target || strcmp(step->source, step->target) != 0)) {
        text_add(out, " <- ");
        text_add_inert(out, step->source);
    }
    if (step->kind == STEP_TREE || step->kind == STEP_ROOT || step->kind == STEP_FILE)
        text_addf(out, "  (%s, %s)", plan->trees.items[step->tree].why,
                  modes[plan->trees.items[step->tree].mode]);
    if (step->kind == STEP_IDS)
        for (size_t i = 0; i < plan->ids.rows; i++)
            text_addf(out, "  %u..%u are %u.. outside", plan->ids.uids[i].inside,
                      plan->ids.uids[i].inside + plan->ids.uids[i].count - 1, plan->ids.uids[i].outside);
}

void plan_print(const struct plan *plan, struct text *out)
{
    for (size_t i = 0; i < plan->steps.len; i++) {
        const struct step *step = &plan->steps.items[i];

        text_addf(out, "%3zu  %-8s %-12s %s", i + 1, actors[step->by], kinds[step->kind].name,
                  kinds[step->kind].does);
        add_details(plan, step, out);
        text_add(out, "\n");
    }
}

static void add_member(struct text *out, const char *key, const char *value)
{
    if (!value)
        return;
    text_addf(out, ",\"%s\":", key);
    text_add_json(out, value);
}

static void add_list(struct text *out, const char *key, const struct strings *list)
{
    text_addf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < list->len; i++) {
        text_add(out, i ? "," : "");
        text_add_json(out, list->items[i]);
    }
    text_add(out, "]");
}

void plan_json(const struct plan *plan, struct text *out)
{
    text_add(out, "{\"steps\":[");
    for (size_t i = 0; i < plan->steps.len; i++) {
        const struct step *step = &plan->steps.items[i];

        text_addf(out, "%s{\"n\":%zu,\"by\":\"%s\",\"kind\":\"%s\",\"guard\":\"%s\"", i ? "," : "", i + 1,
                  actors[step->by], kinds[step->kind].name, step->guard);
        add_member(out, "target", step->target);
        add_member(out, "source", step->source);
        if (step->layer >= 0)
            text_addf(out, ",\"layer\":%d", step->layer);
        text_addf(out, ",\"read_only\":%s}", step->flags & MS_RDONLY ? "true" : "false");
    }
    text_addf(out, "],\"landlock_abi\":%d,\"uid\":%u,\"gid\":%u", plan->landlock_abi, plan->ids.uid,
              plan->ids.gid);
    add_member(out, "cwd", plan->cwd);
    add_member(out, "workspace", plan->workspace);
    add_list(out, "argv", &plan->argv);
    add_list(out, "env", &plan->env);
    add_list(out, "writable", &plan->writable);
    text_add(out, "}\n");
}
