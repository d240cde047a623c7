#include "prove/rows.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "init/protocol.h"
#include "limits/force.h"
#include "prove/mounted.h"
#include "prove/view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what the prober left ------------------------------------------------------------------- */

/* The line that the prober wrote about one attempt; NULL: none. */
static char *line_of(const struct arm *arm, const char *attempt)
{
    autofree char *all = text_format("\n%s", text_string(&arm->said)), *start = text_format("\n%s ", attempt);
    const char *at = strstr(all, start);

    return at ? text_format("%.*s", (int)strcspn(at + strlen(start), "\n"), at + strlen(start)) : NULL;
}

static char *seen_token(const struct judged *judged, const struct row *row)
{
    autofree char *line = line_of(judged->arm, row->attempt);

    return line && strstr(line, judged->arm->canaries.tokens[row->token]) ? text_copy("its secret came out")
                                                                          : NULL;
}

static char *find_link(const struct strings *links, const char *start)
{
    for (size_t i = 0; i < links->len; i++)
        if (text_starts(links->items[i], start))
            return text_format("it holds %s", links->items[i]);
    return NULL;
}

static char *seen_link(const struct judged *judged, const struct row *row)
{
    autostrings struct strings links = STRINGS_NONE;

    view_links(judged->arm->prober, &judged->arm->fds, &links);
    return find_link(&links, row->link);
}

static char *seen_child_link(const struct judged *judged, const struct row *row)
{
    autostrings struct strings links = STRINGS_NONE;

    view_child_links(judged->arm->prober, &links);
    return find_link(&links, row->link);
}

static char *seen_mount_api(const struct judged *judged, const struct row *row)
{
    autostrings struct strings links = STRINGS_NONE;

    (void)row;
    view_links(judged->arm->prober, &judged->arm->fds, &links);
    for (size_t i = 0; i < links.len; i++)
        if (strcmp(links.items[i], "/") == 0 || text_starts(links.items[i], "anon_inode:[fscontext]"))
            return text_format("it holds %s", links.items[i]);
    return NULL;
}

/* A path as the prober sees it, below its root. */
static bool exists_inside(const struct arm *arm, const char *path)
{
    autofree char *full = text_format("/proc/%d/root%s", (int)arm->prober, path);

    return faccessat(AT_FDCWD, full, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static char *marked(const struct arm *arm, const char *directory, const char *suffix)
{
    return text_format("%s/.cove-%s%s", directory, arm->canaries.tokens[TOKEN_MARK], suffix);
}

/* What should be in a layer lies in the owner's own tree; it is taken away again. */
static char *seen_workspace(const struct judged *judged, const struct row *row)
{
    const struct arm *arm = judged->arm;
    autofree char *path = marked(arm, arm->inside ? judged->plan->workspace : arm->canaries.path, "");

    (void)row;
    return rmdir(path) == 0 ? text_copy("what it made there is on the host") : NULL;
}

static char *seen_root(const struct judged *judged, const struct row *row)
{
    const struct arm *arm = judged->arm;
    autofree char *path = marked(arm, arm->inside ? "" : arm->canaries.path, "-root");

    (void)row;
    if (arm->inside && judged->plan->landlock_abi == 0)
        return text_copy("this kernel has no Landlock, or it is off");
    return exists_inside(arm, path) ? text_copy("it made a directory in the root") : NULL;
}

static char *seen_device(const struct judged *judged, const struct row *row)
{
    const struct arm *arm = judged->arm;
    autofree char *path = marked(arm, arm->inside ? "/tmp" : arm->canaries.path, "-device");

    (void)row;
    return exists_inside(arm, path) ? text_copy("it made a device") : NULL;
}

/* --- canaries ------------------------------------------------------------------------------- */

static char *seen_file_changed(const struct judged *judged, const struct row *row)
{
    (void)row;
    return canaries_file_changed(&judged->arm->canaries) ? text_copy("the file was changed") : NULL;
}

static char *connected(int listener)
{
    return canaries_connected(listener) ? text_copy("a connection came") : NULL;
}

static char *seen_abstract(const struct judged *judged, const struct row *row)
{
    (void)row;
    return connected(judged->arm->canaries.abstract);
}

static char *seen_path_socket(const struct judged *judged, const struct row *row)
{
    (void)row;
    return connected(judged->arm->canaries.socket);
}

static char *seen_tcp(const struct judged *judged, const struct row *row)
{
    (void)row;
    return connected(judged->arm->canaries.tcp);
}

static char *seen_udp(const struct judged *judged, const struct row *row)
{
    (void)row;
    return canaries_received(&judged->arm->canaries) ? text_copy("a message came") : NULL;
}

static char *seen_written(const struct judged *judged, const struct row *row)
{
    (void)row;
    return canaries_terminal_written(&judged->arm->canaries) ? text_copy("the terminal showed it") : NULL;
}

static char *seen_typed(const struct judged *judged, const struct row *row)
{
    (void)row;
    return canaries_terminal_typed(&judged->arm->canaries) ? text_copy("it waits to be read as typed") : NULL;
}

/* What cannot be looked at is not called held. */
static const char unreadable[] = "its state cannot be read; is /proc mounted with hidepid?";

static char *signalled(pid_t pid)
{
    uint64_t pending = 0, own = 0;

    if (!view_status_number(pid, "ShdPnd", 16, &pending) || !view_status_number(pid, "SigPnd", 16, &own))
        return text_copy(unreadable);
    return (pending | own) >> (SIGUSR1 - 1) & 1 ? text_copy("the signal arrived") : NULL;
}

static char *seen_signal(const struct judged *judged, const struct row *row)
{
    (void)row;
    return signalled(judged->arm->canaries.peer.pid);
}

static char *seen_signal_init(const struct judged *judged, const struct row *row)
{
    (void)row;
    return signalled(judged->arm->init);
}

static char *traced(pid_t pid)
{
    uint64_t tracer = 0;

    if (!view_status_number(pid, "TracerPid", 10, &tracer))
        return text_copy(unreadable);
    return tracer ? text_copy("it is traced") : NULL;
}

static char *seen_trace(const struct judged *judged, const struct row *row)
{
    (void)row;
    return traced(judged->arm->canaries.peer.pid);
}

static char *seen_trace_init(const struct judged *judged, const struct row *row)
{
    (void)row;
    return traced(judged->arm->init);
}

static char *seen_init_memory(const struct judged *judged, const struct row *row)
{
    autostrings struct strings links = STRINGS_NONE;

    (void)row;
    view_links(judged->arm->prober, &judged->arm->fds, &links);
    for (size_t i = 0; i < links.len; i++)
        if (text_ends(links.items[i], "/mem"))
            return text_copy("it holds the memory open");
    return NULL;
}

struct elsewhere {
    char *own;
    bool found;
};

static void compare_user_namespace(void *owner, pid_t child)
{
    struct elsewhere *elsewhere = owner;
    autofree char *its = view_namespace(child, "user");

    elsewhere->found = elsewhere->found || !its || !elsewhere->own || strcmp(its, elsewhere->own) != 0;
}

static char *seen_user_namespace(const struct judged *judged, const struct row *row)
{
    pid_t prober = judged->arm->prober;
    struct elsewhere elsewhere = { .own = view_namespace(prober, "user") };

    (void)row;
    view_children(prober, compare_user_namespace, &elsewhere);
    free(elsewhere.own);
    return elsewhere.found ? text_copy("a child of it is in a user namespace of its own") : NULL;
}

/* --- what the host reads -------------------------------------------------------------------- */

static char *same_namespaces(const struct judged *judged, const char *const *kinds)
{
    struct text same = TEXT_NONE;

    for (; *kinds; kinds++) {
        autofree char *its = view_namespace(judged->arm->prober, *kinds);
        autofree char *ours = view_namespace(getpid(), *kinds);

        if (!its || !ours || strcmp(its, ours) == 0)
            text_addf(&same, "%s %s", same.len ? "," : "it shares with the host:", *kinds);
    }
    return same.len ? text_steal(&same) : NULL;
}

static char *seen_namespaces(const struct judged *judged, const struct row *row)
{
    static const char *const kinds[] = { "user", "mnt", "pid", "ipc", "uts", "cgroup", "time", NULL };

    (void)row;
    return same_namespaces(judged, kinds);
}

/* Every line but the two of the heading is an interface. */
static char *seen_interfaces(const struct judged *judged, const struct row *row)
{
    static const char *const kinds[] = { "net", NULL };
    autofree char *list = view_file(judged->arm->prober, "net/dev"), *same = same_namespaces(judged, kinds);
    char *rest = NULL, *line = list ? strtok_r(list, "\n", &rest) : NULL;

    (void)row;
    if (same)
        return steal_ptr(&same);
    for (int number = 0; line; line = strtok_r(NULL, "\n", &rest), number++) {
        line += strspn(line, " ");
        if (number >= 2 && !text_starts(line, "lo:"))
            return text_format("it has the interface %.*s", (int)strcspn(line, ":"), line);
    }
    return list ? NULL : text_copy("its interfaces cannot be read");
}

/* Uid 0 of our own namespace counts only where that is the machine's. */
static bool maps_root(pid_t pid, const char *file)
{
    autofree char *map = view_file(pid, file);
    char *rest = NULL, *second;

    for (char *line = map ? strtok_r(map, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        (void)strtoul(line, &second, 10); /* "inside outside count" */
        if (strtoul(second, NULL, 10) == 0)
            return true;
    }
    return !map;
}

static char *seen_ids(const struct judged *judged, const struct row *row)
{
    static const char *const files[] = { "uid_map", "gid_map" };

    (void)row;
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (maps_root(getpid(), files[i]) && maps_root(judged->arm->prober, files[i]))
            return text_format("its %s has the host's root in it", files[i]);
    return NULL;
}

/* Said here once more, apart from what sets them (init/command.c). */
static uint64_t allowed_capabilities(const struct judged *judged)
{
    static const unsigned of_root[] = { CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                                        CAP_SETUID, CAP_SETGID,       CAP_KILL,   CAP_NET_BIND_SERVICE };
    uint64_t all = 0;

    if (judged->plan->start_flags & START_ROOT)
        for (size_t i = 0; i < ARRAY_LEN(of_root); i++)
            all |= 1ULL << of_root[i];
    return all;
}

static char *seen_capabilities(const struct judged *judged, const struct row *row)
{
    static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
    uint64_t allowed = allowed_capabilities(judged), has;

    (void)row;
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        if (!view_status_number(judged->arm->prober, sets[i], 16, &has))
            return text_format("%s cannot be read", sets[i]);
        if (has & ~allowed)
            return text_format("%s is %016llx", sets[i], (unsigned long long)has);
    }
    return NULL;
}

static char *seen_privileges(const struct judged *judged, const struct row *row)
{
    uint64_t set = 0;

    (void)row;
    return view_status_number(judged->arm->prober, "NoNewPrivs", 10, &set) && set == 1
               ? NULL
               : text_copy("programs can give it new rights");
}

/* PID 1's filter and its own, beside any that we are under ourselves.  Kernels before 5.9 do not count them. */
static char *seen_filter(const struct judged *judged, const struct row *row)
{
    enum { OF_SANDBOX = 2, MODE_FILTER = 2 };
    uint64_t mode = 0, has = 0, ours = 0;

    (void)row;
    if (!view_status_number(judged->arm->prober, "Seccomp", 10, &mode) || mode != MODE_FILTER)
        return text_copy("it has no filter");
    if (view_status_number(getpid(), "Seccomp_filters", 10, &ours) &&
        (!view_status_number(judged->arm->prober, "Seccomp_filters", 10, &has) || has < ours + OF_SANDBOX))
        return text_format("it has %llu filters, and we have %llu", (unsigned long long)has,
                           (unsigned long long)ours);
    return NULL;
}

static char *seen_mounts(const struct judged *judged, const struct row *row)
{
    (void)row;
    return mounted_wrong(judged->arm->prober, judged->plan);
}

static char *seen_unmasked(const struct judged *judged, const struct row *row)
{
    (void)row;
    return mounted_unmasked(judged->arm->prober, judged->plan);
}

static char *seen_host_root(const struct judged *judged, const struct row *row)
{
    autofree char *path = text_format("/proc/%d/root/.", (int)judged->arm->prober);
    struct stat its, ours;

    (void)row;
    if (stat(path, &its) < 0 || stat("/", &ours) < 0)
        return text_copy("its root cannot be looked at");
    return its.st_dev == ours.st_dev && its.st_ino == ours.st_ino ? text_copy("its root is the host's") : NULL;
}

static char *seen_state_path(const struct judged *judged, const struct row *row)
{
    autofree char *text = view_file(judged->arm->prober, "mountinfo");
    autofree char *state = text_format(
        "%.*s", (int)(strstr(judged->arm->canaries.path, "/sandboxes/") - judged->arm->canaries.path),
        judged->arm->canaries.path);

    (void)row;
    return text && !strstr(text, state) ? NULL : text_format("its list of mounts names %s", state);
}

static char *seen_descriptors(const struct judged *judged, const struct row *row)
{
    const struct strings *fds = &judged->arm->fds;

    (void)row;
    for (size_t i = 0; i < fds->len; i++)
        if (strlen(fds->items[i]) > 1 || fds->items[i][0] > '2')
            return text_format("it started with descriptor %s", fds->items[i]);
    return fds->len ? NULL : text_copy("its descriptors cannot be read");
}

/* The sixth and seventh field of stat: session and terminal. */
static char *seen_session(const struct judged *judged, const struct row *row)
{
    autofree char *stat = view_file(judged->arm->prober, "stat");
    const char *end = stat ? strrchr(stat, ')') : NULL;
    int session = 0, terminal = 0;

    (void)row;
    if (!end || sscanf(end, ") %*c %*d %*d %d %d", &session, &terminal) != 2) /* NOLINT(cert-err34-c) */
        return text_copy("its session cannot be read");
    if (session != judged->arm->prober)
        return text_copy("its session is not its own");
    return terminal ? text_copy("it has a terminal that nobody gave it") : NULL;
}

/* One byte, or none: either way the kernel starts no handler of the host's. */
static char *seen_core_limit(const struct judged *judged, const struct row *row)
{
    autofree char *limits = view_file(judged->arm->prober, "limits");
    const char *at = limits ? strstr(limits, "Max core file size") : NULL;
    char soft[24] = "", hard[24] = "";

    (void)row;
    if (!at || sscanf(at + strlen("Max core file size"), "%23s %23s", soft, hard) != 2)
        return text_copy("its limits cannot be read");
    return strcmp(hard, "0") == 0 || strcmp(hard, "1") == 0 ? NULL
                                                            : text_format("a core may have %s bytes", hard);
}

/* The bound is that of the reader's user namespace, so a child of ours enters it to read. */
static char *seen_namespace_bound(const struct judged *judged, const struct row *row)
{
    autofree char *path = text_format("/proc/%d/ns/user", (int)judged->arm->prober);
    int status = 0;
    pid_t child = fork();

    (void)row;
    if (child == 0) {
        int namespace = open(path, O_RDONLY | O_CLOEXEC);
        int bound = -1;
        char value[16] = "";

        if (namespace >= 0 && setns(namespace, CLONE_NEWUSER) == 0)
            bound = open("/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC);
        _exit(bound >= 0 && read(bound, value, sizeof value - 1) > 0 ? strtol(value, NULL, 10) != 0 : 2);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        return text_copy("the bound cannot be read");
    return WEXITSTATUS(status) == 0 ? NULL : text_copy("it may have user namespaces");
}

static bool has_limits(const struct judged *judged)
{
    return limits_of_the_kernel(judged->limits);
}

static char *seen_unlimited(const struct judged *judged, const struct row *row)
{
    struct error gap = { 0 };

    (void)row;
    return limits_in_force(judged->limits, judged->arm->prober, &gap) < 0 ? text_copy(gap.text) : NULL;
}

/* --- the table ------------------------------------------------------------------------------ */

#define BIT(layer) (1U << LAYER_##layer)

/* An attempt is also a row of prober.c.  An id may stand here more than once, and a check of the suite may need
 * more than what is tried here: this shows that a wall is there, the suite that it has no hole. */
const struct row rows[] = {
    { "NS-02", NULL, "has namespaces of its own", BIT(NAMESPACES), seen_namespaces },
    { "NET-01", NULL, "has a network of its own, and nothing in it but a loopback", BIT(NETWORK),
      seen_interfaces },
    { "FS-01", NULL, "has another root than the host", BIT(MOUNTS), seen_host_root },
    { "FS-01", NULL, "has the mounts of the plan with their flags, and no other", BIT(MOUNTS), seen_mounts },
    { "PROC-02", NULL, "sees nothing in the kernel's tables about the host", BIT(MOUNTS), seen_unmasked },
    { "PROC-03", NULL, "finds no path of the owner's state in its list of mounts", BIT(MOUNTS),
      seen_state_path },
    { "NS-01", NULL, "is under two seccomp filters", BIT(SECCOMP), seen_filter },
    { "NS-01", NULL, "has no capability that the policy does not give", BIT(RIGHTS), seen_capabilities },
    { "NS-01", NULL, "cannot get new rights from a program", BIT(RIGHTS), seen_privileges },
    { "NS-03", NULL, "has no id that is the host's root", BIT(RIGHTS), seen_ids },
    { "NS-04", NULL, "may have no user namespace, by the bound of its own", BIT(NAMESPACES),
      seen_namespace_bound },
    { "TTY-01", NULL, "has a session of its own, without a terminal", BIT(TERMINAL), seen_session },
    { "FD-01", NULL, "starts with three descriptors", BIT(START), seen_descriptors },
    { "PROC-05", NULL, "leaves no core, and starts no handler of one", BIT(START), seen_core_limit },
    { "RES-01", NULL, "is under the limits of the policy that the kernel keeps", BIT(LIMITS), seen_unlimited,
      .applies = has_limits, .absent = "the policy has none" },

    { "FS-02", "read-file", "reads a file of the owner's", BIT(NAMESPACES) | BIT(MOUNTS), seen_token,
      .token = TOKEN_FILE },
    { "FS-03", "write-file", "writes to a file of the owner's", BIT(NAMESPACES) | BIT(MOUNTS),
      seen_file_changed },
    { "FS-07", "write-workspace", "makes something in the workspace, on the host", BIT(MOUNTS), seen_workspace,
      .absent = "the policy lets it write there" },
    { "FS-20", "write-root", "makes a directory in the root", BIT(LANDLOCK), seen_root,
      .absent = "the policy lets it write anywhere in its own root" },
    { "FS-13", "make-device", "makes a device", BIT(SECCOMP) | BIT(RIGHTS) | BIT(LANDLOCK), seen_device },
    { "FS-14", "open-devices", "opens devices of the host", BIT(MOUNTS), seen_link, .link = "/dev/" },
    { "PROC-01", "open-kernel-settings", "opens settings of the kernel for writing", BIT(MOUNTS) | BIT(RIGHTS),
      seen_link, .link = "/proc/sys" },
    { "IPC-04", "signal-process", "signals a process of the owner's", BIT(NAMESPACES) | BIT(LANDLOCK),
      seen_signal, .scoped = true },
    { "PROC-11", "read-environment", "reads the environment of a process of the owner's",
      BIT(NAMESPACES) | BIT(LANDLOCK), seen_token, .token = TOKEN_ENVIRONMENT },
    { "NS-10", "read-memory", "reads the memory of a process of the owner's", BIT(NAMESPACES) | BIT(LANDLOCK),
      seen_token, .token = TOKEN_MEMORY },
    { "NS-10", "trace-process", "traces a process of the owner's", BIT(NAMESPACES) | BIT(LANDLOCK),
      seen_trace },
    { "IPC-04", "signal-init", "signals PID 1 of the sandbox", BIT(LANDLOCK), seen_signal_init,
      .absent = "PID 1 has another user here, or this Landlock does not scope signals" },
    { "NS-10", "open-init-memory", "opens the memory of PID 1 of the sandbox", BIT(LANDLOCK) | BIT(RIGHTS),
      seen_init_memory },
    { "NS-10", "trace-init", "traces PID 1 of the sandbox", BIT(LANDLOCK) | BIT(RIGHTS), seen_trace_init },
    { "IPC-01", "connect-abstract", "connects to an abstract socket of the owner's",
      BIT(NETWORK) | BIT(LANDLOCK), seen_abstract, .scoped = true },
    { "IPC-02", "connect-path", "connects to a socket of the owner's in a directory",
      BIT(NAMESPACES) | BIT(MOUNTS), seen_path_socket },
    { "NET-01", "connect-tcp", "connects to a port of the host's loopback", BIT(NETWORK), seen_tcp },
    { "NET-01", "send-udp", "sends to a port of the host's loopback", BIT(NETWORK), seen_udp },
    { "IPC-03", "attach-shared-memory", "attaches shared memory of the owner's", BIT(NAMESPACES), seen_token,
      .token = TOKEN_SHARED },
    { "IPC-03", "read-message-queue", "reads a message queue of the owner's", BIT(NAMESPACES) | BIT(LANDLOCK),
      seen_token, .token = TOKEN_QUEUE },
    { "FD-01", "read-descriptors", "reads a descriptor that was left open", BIT(START), seen_token,
      .token = TOKEN_DESCRIPTOR },
    { "FD-04", "read-variable", "reads a variable of the owner's environment", BIT(START), seen_token,
      .token = TOKEN_VARIABLE },
    { "SYS-06", "read-key", "reads a key of the owner's keyring", BIT(SECCOMP), seen_token,
      .token = TOKEN_KEY },
    { "TTY-02", "write-terminal", "writes to the owner's terminal", BIT(TERMINAL), seen_written },
    { "TTY-02", "type-on-terminal", "types on the owner's terminal", BIT(TERMINAL) | BIT(SECCOMP), seen_typed },
    { "SYS-02", "use-other-calls", "makes an io_uring by the calls of 32 bits", BIT(SECCOMP), seen_child_link,
      .link = "anon_inode:[io_uring]" },
    { "SYS-03", "make-io-uring", "makes an io_uring", BIT(SECCOMP), seen_link,
      .link = "anon_inode:[io_uring]" },
    { "SYS-04", "make-userfaultfd", "makes a userfaultfd", BIT(SECCOMP), seen_link,
      .link = "anon_inode:[userfaultfd]" },
    { "SYS-05", "make-bpf-map", "makes a BPF map", BIT(SECCOMP), seen_link, .link = "anon_inode:bpf-map" },
    { "SYS-05", "open-perf-event", "opens a performance counter", BIT(SECCOMP), seen_link,
      .link = "anon_inode:[perf_event]" },
    { "SYS-07", "make-sockets", "makes sockets of other families", BIT(SECCOMP), seen_link, .link = "socket:" },
    { "SYS-13", "make-fanotify", "makes a fanotify group", BIT(SECCOMP), seen_link,
      .link = "anon_inode:[fanotify]" },
    { "SYS-13", "open-mount-api", "uses the calls that mount", BIT(SECCOMP), seen_mount_api },
    { "NS-04", "make-user-namespace", "makes a user namespace", BIT(SECCOMP) | BIT(NAMESPACES),
      seen_user_namespace },
};

const size_t rows_len = ARRAY_LEN(rows);

unsigned row_layers(const struct row *row, int landlock_abi)
{
    enum { SCOPES = 6 };
    unsigned others = row->layers & ~BIT(LANDLOCK);

    return others && landlock_abi < (row->scoped ? SCOPES : 1) ? others : row->layers;
}

void rows_look(const struct judged *judged, struct showing *out)
{
    for (size_t i = 0; i < rows_len; i++) {
        autofree char *line = rows[i].attempt ? line_of(judged->arm, rows[i].attempt) : NULL;

        out[i] = (struct showing){ .tried = !rows[i].attempt || line,
                                   .error = line ? (int)strtol(line, NULL, 10)
                                            : rows[i].applies && !rows[i].applies(judged) ? ENODATA
                                                                                          : 0,
                                   .seen = rows[i].seen(judged, &rows[i]) };
    }
}

/* Why an attempt cannot be shown: what it met without any sandbox. */
static char *unshown(const struct showing *outside)
{
    if (!outside->tried)
        return text_copy("it could not be tried on the host");
    if (outside->error == 0)
        return text_copy("on the host it has no effect either");
    return text_format("on the host it fails as well: %s", strerror(outside->error));
}

static struct verdict judge(const struct row *row, const struct showing *inside, const struct showing *outside)
{
    if (inside->seen)
        return (struct verdict){ HELD_NOT, text_copy(inside->seen) };
    if (!inside->tried)
        return (struct verdict){ HELD_NOT, text_copy("it was not tried") };
    if (inside->error == ENODATA)
        return (struct verdict){ HELD_UNKNOWN,
                                 text_copy(row->absent ? row->absent : "its canary cannot be had here") };
    if (row->attempt && !outside->seen)
        return (struct verdict){ HELD_UNKNOWN, unshown(outside) };
    return (struct verdict){ HELD, NULL };
}

void rows_judge(const struct showing *inside, const struct showing *outside, struct verdict *out)
{
    for (size_t i = 0; i < rows_len; i++)
        out[i] = judge(&rows[i], &inside[i], &outside[i]);
}

void showings_free(struct showing *showings)
{
    for (size_t i = 0; i < rows_len; i++)
        free(showings[i].seen);
}

void verdicts_free(struct verdict *verdicts)
{
    for (size_t i = 0; i < rows_len; i++)
        free(verdicts[i].why);
}
