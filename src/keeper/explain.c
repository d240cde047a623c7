#include "keeper/explain.h"

#include "base/array.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/grants.h"
#include "box/tree.h"
#include "init/filters.h"
#include "keeper/look.h"
#include "spec/spec.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct explain {
    struct explain_view view;
    struct loop_source listener;
    struct map noted; /* "KIND HOW SUBJECT\nWHY" -> how often, see note_key() */
    struct seccomp_notif *call;
    struct seccomp_notif_resp *answer;
    struct seccomp_notif_sizes sizes;
};

/* --- noting --- */

enum noted {
    NOTED_CALL = 'c',
    NOTED_ABSENT = 'a',
    NOTED_READ_ONLY = 'r',
    NOTED_DENIED = 'd',
    NOTED_NETWORK = 'n',
};

/* The subject is last, because a path may hold any byte. */
static void note(struct explain *explain, enum noted kind, enum look_how how, const char *why,
                 const char *subject)
{
    autofree char *key = text_format("%c%d%s\n%s", (int)kind, (int)how, why, subject);

    map_add(&explain->noted, key, 1);
}

/* What a command may change inside may also be gone because it was removed there. */
static bool may_be_removed(const struct explain *explain, const char *path)
{
    const struct strings *changes = explain->view.changes;

    if (explain->view.workspace && path_within(path, explain->view.workspace))
        return true;
    for (size_t i = 0; changes && i < changes->len; i++)
        if (path_within(path, changes->items[i]))
            return true;
    return false;
}

static bool is_hidden(const struct explain *explain, const char *path)
{
    const struct strings *hide = &explain->view.spec->hide;

    for (size_t i = 0; i < hide->len; i++) {
        autofree char *anywhere = text_format("**/%s", hide->items[i]);
        enum glob_place place = glob_compare(strchr(hide->items[i], '/') ? hide->items[i] : anywhere, path);

        if (place == GLOB_YES || place == GLOB_BELOW)
            return true;
    }
    return false;
}

/* "ADDRESS port N": the gateway decides, and tells, about what a rule names. */
static bool is_granted_address(const struct explain *explain, const char *destination)
{
    const struct spec *spec = explain->view.spec;
    size_t len = strcspn(destination, " ");

    for (size_t i = 0; i < spec->rules.len; i++)
        if (strlen(spec->rules.items[i].host) == len &&
            strncmp(spec->rules.items[i].host, destination, len) == 0)
            return true;
    return network_is_public(spec->network);
}

static void note_path(void *owner, enum look_how how, enum look_found found, const char *path)
{
    struct explain *explain = owner;

    switch (found) {
    case LOOK_FINE:
        break;
    case LOOK_ABSENT:
        if (is_hidden(explain, path))
            note(explain, NOTED_ABSENT, how, "hidden", path);
        else if (!may_be_removed(explain, path))
            note(explain, NOTED_ABSENT, how, "absent", path);
        break;
    case LOOK_READ_ONLY:
        note(explain, NOTED_READ_ONLY, how, "read-only", path);
        break;
    case LOOK_DENIED:
        note(explain, NOTED_DENIED, how, "not permitted", path);
        break;
    case LOOK_NO_NETWORK:
        if (!is_granted_address(explain, path))
            note(explain, NOTED_NETWORK, how, "an address that no rule names", path);
        break;
    }
}

/* Calls whose meaning lies in one argument: shown with it, and counted apart by it. */
static const struct {
    int number, argument;
    const char *name;
} arguments[] = {
    { SYS_socket, 0, "domain" },       { SYS_socketpair, 0, "domain" }, { SYS_ioctl, 1, "request" },
    { SYS_prctl, 0, "option" },        { SYS_clone, 0, "flags" },       { SYS_unshare, 0, "flags" },
    { SYS_personality, 0, "persona" }, { SYS_setsockopt, 2, "option" }, { SYS_ptrace, 0, "request" },
};

static void note_call(struct explain *explain, const struct seccomp_data *data)
{
    autotext struct text subject = TEXT_NONE;

    text_add(&subject, filter_call_name(data->nr));
    if (strcmp(text_string(&subject), "unknown") == 0)
        text_addf(&subject, " %d", data->nr);
    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        if (arguments[i].number == data->nr)
            text_addf(&subject, "(%s=%#llx)", arguments[i].name,
                      data->args[arguments[i].argument] & 0xffffffff);
    note(explain, NOTED_CALL, LOOK_RUN, filter_reason(explain->view.filter, data), text_string(&subject));
}

/* --- listening --- */

static void judge(struct explain *explain)
{
    const struct seccomp_notif *call = explain->call;
    struct seccomp_notif_resp *answer = explain->answer;
    int verdict = filter_verdict(explain->view.filter, &call->data);

    answer->id = call->id;
    if (verdict == VERDICT_ALLOW) {
        look_at_call(call, &(struct look_view){ explain->view.writable, note_path, explain });
        answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        return;
    }
    answer->error = verdict == VERDICT_KILL ? -EPERM : -verdict;
    if (verdict != 0)
        note_call(explain, &call->data);
}

static void listener_ready(void *owner, short revents)
{
    struct explain *explain = owner;

    if (!(revents & POLLIN)) { /* no process has this filter any more */
        explain_unlisten(explain);
        return;
    }
    memset(explain->call, 0, explain->sizes.seccomp_notif);
    memset(explain->answer, 0, explain->sizes.seccomp_notif_resp);
    if (ioctl(explain->listener.fd, SECCOMP_IOCTL_NOTIF_RECV, explain->call) < 0) {
        /* ENOENT: the caller was killed meanwhile.  Anything else is no listener at all. */
        if (errno != ENOENT && errno != EINTR)
            explain_unlisten(explain);
        return;
    }
    judge(explain);
    (void)ioctl(explain->listener.fd, SECCOMP_IOCTL_NOTIF_SEND, explain->answer);
}

void explain_listen(struct explain *explain, struct loop *loop, int listener)
{
    explain->listener = (struct loop_source){ listener, POLLIN, listener_ready, explain };
    loop_add(loop, &explain->listener);
}

void explain_unlisten(struct explain *explain)
{
    own_close(&explain->listener.fd);
    explain->listener.fd = -1;
}

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

struct explain *explain_new(const struct explain_view *view)
{
    struct explain *explain = memory_zero(sizeof *explain);

    explain->view = *view;
    explain->listener.fd = -1;
    explain->noted.most = EXPLAIN_MAX;
    /* The kernel writes its own sizes, which may be larger than those we were built with. */
    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &explain->sizes) < 0)
        memset(&explain->sizes, 0, sizeof explain->sizes);
    explain->sizes.seccomp_notif = (__u16)larger(explain->sizes.seccomp_notif, sizeof *explain->call);
    explain->sizes.seccomp_notif_resp =
        (__u16)larger(explain->sizes.seccomp_notif_resp, sizeof *explain->answer);
    explain->call = memory_zero(explain->sizes.seccomp_notif);
    explain->answer = memory_zero(explain->sizes.seccomp_notif_resp);
    return explain;
}

void explain_free(struct explain *explain)
{
    if (!explain)
        return;
    explain_unlisten(explain);
    map_free(&explain->noted);
    free(explain->call);
    free(explain->answer);
    free(explain);
}

/* --- telling --- */

/* Places that no flag opens, or only one of them.  NULL: the usual flag. */
static const struct {
    const char *tree, *absent, *read_only;
} places[] = {
    { "/proc", "not grantable: the sandbox has a /proc of its own", "not grantable: kernel settings" },
    { "/sys", "not grantable: it shows the host's devices", "not grantable: kernel settings" },
    { "/dev", "not grantable: a device of the host", "not grantable: a device of the host" },
    { "/run", "not grantable: state of the host's services", NULL },
    { "/var/run", "not grantable: state of the host's services", NULL },
    { "/usr", NULL, "--image DIR" },
    { "/bin", NULL, "--image DIR" },
    { "/sbin", NULL, "--image DIR" },
    { "/lib", NULL, "--image DIR" },
    { "/lib64", NULL, "--image DIR" },
    { "/etc", NULL, "--image DIR" },
    { "/var", NULL, "--image DIR" },
};

/* People copy it into a shell, and the payload chose the path. */
static char *flag_text(const char *flag, const char *word)
{
    struct text text = TEXT_NONE;

    text_addf(&text, "%s ", flag);
    text_add_shell_word(&text, word);
    return text_steal(&text);
}

static char *grant_volume(const struct spec *spec, const char *path)
{
    for (size_t i = 0; i < spec->volumes.len; i++) {
        const struct volume *volume = &spec->volumes.items[i];

        if (volume->mode == TREE_RO && path_within(path, volume->target)) {
            autofree char *word = text_format("%s:%s:cow", volume->source, volume->target);

            return flag_text("-v", word);
        }
    }
    return NULL;
}

/* What stands where something would have to be granted, and the flag for it. */
static const struct {
    const char *why, *flag, *more;
} standing[] = {
    { TREE_WHY_IMAGE, "--image DIR", NULL },
    { TREE_WHY_GRANT, "--write", " in place of --read" },
};

static char *grant_standing(const struct tree *there)
{
    for (size_t i = 0; there && i < ARRAY_LEN(standing); i++) {
        if (strcmp(there->why, standing[i].why) != 0)
            continue;
        if (!standing[i].more)
            return text_copy(standing[i].flag);
        autofree char *flag = flag_text(standing[i].flag, there->target);

        return text_format("%s%s", flag, standing[i].more);
    }
    return NULL;
}

/* What is to be new cannot be granted before it is there, but the directory for it can. */
static char *grant_flag(const struct explain_view *view, bool writes, const char *path)
{
    struct stat info;
    bool missing = writes && lstat(path, &info) < 0;
    autofree char *named = missing ? look_above(path) : text_copy(path);
    char *there = writes && view->trees ? grant_standing(trees_at(view->trees, named)) : NULL;
    struct error err;

    if (there)
        return there;
    if (view->trees && grants_check(view->host, view->trees, named, writes ? TREE_COW : TREE_RO, &err) < 0)
        return text_format("not grantable: %s", err.text);
    return flag_text(writes ? "--write" : "--read", named);
}

static char *grant_path(const struct explain *explain, enum noted kind, enum look_how how, const char *path)
{
    const struct spec *spec = explain->view.spec;
    char *volume = kind == NOTED_READ_ONLY ? grant_volume(spec, path) : NULL;
    struct stat info;

    if (volume)
        return volume;
    if (kind == NOTED_READ_ONLY && explain->view.workspace && path_within(path, explain->view.workspace))
        return text_copy("--workspace cow");
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *only = kind == NOTED_READ_ONLY ? places[i].read_only : places[i].absent;

        if (only && path_within(path, places[i].tree))
            return text_copy(only);
    }
    if (lstat(path, &info) == 0 && (S_ISSOCK(info.st_mode) || S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)))
        return text_copy("not grantable: a socket or device of the host");
    if (kind == NOTED_DENIED)
        return text_copy("not grantable: the permissions of the file or of a directory above it");
    if (strcmp(spec->image, "host") != 0 && path_within(path, "/usr"))
        return text_copy("--image host, or install it in the image");
    return grant_flag(&explain->view, how == LOOK_WRITE, path);
}

static char *grant_call(const struct explain *explain, const char *subject)
{
    if (explain->view.spec->profile == PROFILE_STRICT && text_starts(subject, "ptrace"))
        return text_copy("--seccomp default");
    return text_copy("not grantable: refused by the seccomp filter");
}

static void tell(const struct explain *explain, const struct map_entry *entry, struct finding *out)
{
    static const char *const hows[] = { "read", "write", "run", "connect", "look up" };
    enum noted kind = (enum noted)entry->key[0];
    enum look_how how = (enum look_how)(entry->key[1] - '0');
    const char *why = entry->key + 2, *end = strchr(why, '\n');

    out->count = entry->count;
    out->subject = text_copy(end + 1);
    out->why = text_format("%.*s", (int)(end - why), why);
    out->how = kind == NOTED_CALL ? "call" : hows[how];
    if (kind == NOTED_CALL)
        out->grant = grant_call(explain, out->subject);
    else if (kind == NOTED_NETWORK)
        out->grant = text_copy("name the host it belongs to: --allow HOST[:PORT]");
    else if (strcmp(out->why, "hidden") == 0)
        out->grant = text_copy("take the pattern out of files.hide");
    else
        out->grant = grant_path(explain, kind, how, out->subject);
}

static int by_subject(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    int calls = (strcmp(a->how, "call") == 0) - (strcmp(b->how, "call") == 0);
    int subjects = strcmp(a->subject, b->subject);

    return calls ? calls : subjects ? subjects : strcmp(a->how, b->how);
}

void explain_findings(const struct explain *explain, struct findings *out)
{
    const struct map_entry *entry;
    size_t at = 0;

    while ((entry = map_next(&explain->noted, &at)))
        tell(explain, entry, array_add(out));
    out->left_out = explain->noted.refused;
    if (out->len > 0)
        qsort(out->items, out->len, sizeof *out->items, by_subject);
}

void findings_free(struct findings *findings)
{
    for (size_t i = 0; i < findings->len; i++) {
        free(findings->items[i].subject);
        free(findings->items[i].why);
        free(findings->items[i].grant);
    }
    free(findings->items);
    *findings = (struct findings){ 0 };
}
