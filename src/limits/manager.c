/* One call over the manager's private socket, in the D-Bus protocol: StartTransientUnit of a scope that has
 * the process, and the limits as properties.  The manager asks the system's one to move the process, which
 * we could not do.
 *
 * Numbers are little-endian and aligned to their size, counted from the start of the message; a string is its
 * length, its bytes and a zero; a variant its signature and its value. */

#include "limits/manager.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* As long as D-Bus programs wait. */
enum { PATIENCE_S = 25, REPLY_MAX = 1 << 14, HEADER = 16, MESSAGES_MAX = 1000 };
enum { CALL = 1, RETURN = 2, FAILURE = 3 };

/* --- writing --- */

static void align(struct text *out, size_t to)
{
    static const char zeros[8];

    text_add_bytes(out, zeros, (to - out->len % to) % to);
}

static void add_u32(struct text *out, uint32_t value)
{
    align(out, 4);
    text_add_bytes(out, &value, sizeof value);
}

static void add_u64(struct text *out, uint64_t value)
{
    align(out, 8);
    text_add_bytes(out, &value, sizeof value);
}

static void add_string(struct text *out, const char *value)
{
    add_u32(out, (uint32_t)strlen(value));
    text_add_bytes(out, value, strlen(value) + 1);
}

static void add_signature(struct text *out, const char *value)
{
    unsigned char len = (unsigned char)strlen(value);

    text_add_bytes(out, &len, 1);
    text_add_bytes(out, value, (size_t)len + 1);
}

/* The length of an array is known when it is there; elements begin at `to`. */
static size_t begin_array(struct text *out, size_t to, size_t *length_at)
{
    add_u32(out, 0);
    *length_at = out->len - 4;
    align(out, to);
    return out->len;
}

static void end_array(struct text *out, size_t began, size_t length_at)
{
    uint32_t len = (uint32_t)(out->len - began);

    memcpy(out->data + length_at, &len, sizeof len);
}

static void begin_property(struct text *out, const char *name, const char *signature)
{
    align(out, 8);
    add_string(out, name);
    add_signature(out, signature);
}

static void add_number(struct text *out, const char *name, uint64_t value)
{
    begin_property(out, name, "t");
    add_u64(out, value);
}

static uint64_t plain(uint64_t max)
{
    return max;
}

static uint64_t with_init(uint64_t max)
{
    return max + 1;
}

static uint64_t micros_per_second(uint64_t millis)
{
    return millis * 1000;
}

static uint64_t nothing(uint64_t max)
{
    (void)max;
    return 0;
}

static const struct {
    enum limit_id limit;
    const char *property;
    uint64_t (*value)(uint64_t max);
} properties[] = {
    { LIMIT_MEMORY, "MemoryMax", plain },
    { LIMIT_MEMORY, "MemorySwapMax", nothing },
    { LIMIT_PROCESSES, "TasksMax", with_init },
    { LIMIT_CPUS, "CPUQuotaPerSecUSec", micros_per_second },
};

static void add_body(const struct limits *limits, const char *id, pid_t pid, struct text *out)
{
    autofree char *name = text_format("cove-%s.scope", id);
    size_t length_at, pids_at, began, pids;

    add_string(out, name);
    add_string(out, "fail");
    began = begin_array(out, 8, &length_at);
    begin_property(out, "Description", "s");
    add_string(out, "a sandbox of Cove");
    begin_property(out, "CollectMode", "s");
    add_string(out, "inactive-or-failed");
    begin_property(out, "PIDs", "au");
    pids = begin_array(out, 4, &pids_at);
    add_u32(out, (uint32_t)pid);
    end_array(out, pids, pids_at);
    for (size_t i = 0; i < ARRAY_LEN(properties); i++)
        if (limits->items[properties[i].limit].way == WAY_MANAGER)
            add_number(out, properties[i].property,
                       properties[i].value(limits->items[properties[i].limit].max));
    end_array(out, began, length_at);
    began = begin_array(out, 8, &length_at); /* no units beside it */
    end_array(out, began, length_at);
}

static void add_field(struct text *out, char code, const char *signature, const char *value)
{
    align(out, 8);
    text_add_bytes(out, &code, 1);
    add_signature(out, signature);
    if (*signature == 'g')
        add_signature(out, value);
    else
        add_string(out, value);
}

void manager_call(const struct limits *limits, const char *id, pid_t pid, struct text *out)
{
    static const char start[4] = { 'l', CALL, 0, 1 };
    autotext struct text body = TEXT_NONE;
    size_t began, length_at;

    add_body(limits, id, pid, &body);
    text_add_bytes(out, start, sizeof start);
    add_u32(out, (uint32_t)body.len);
    add_u32(out, 1); /* its number */
    began = begin_array(out, 8, &length_at);
    add_field(out, 1, "o", "/org/freedesktop/systemd1");
    add_field(out, 2, "s", "org.freedesktop.systemd1.Manager");
    add_field(out, 3, "s", "StartTransientUnit");
    add_field(out, 6, "s", "org.freedesktop.systemd1");
    add_field(out, 8, "g", "ssa(sv)a(sa(sv))");
    end_array(out, began, length_at);
    align(out, 8);
    text_add_bytes(out, body.data, body.len);
}

/* --- talking --- */

/* Who began to listen there. */
static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == getuid();
}

static int dial(const char *path, struct error *err)
{
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return error_sys(err, "talk to the service manager at %s", path);
    if (!is_ours(fd))
        return error_set(err, ERROR_REFUSED, "the service manager at %s is another user's", path);
    return steal_fd(&fd);
}

static bool put(int fd, const void *bytes, size_t len)
{
    for (const char *at = bytes; len > 0;) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool get(int fd, void *to, size_t len)
{
    for (char *at = to; len > 0;) {
        ssize_t got = recv(fd, at, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    return true;
}

/* Who we are the kernel tells it; the words only say that it should look. */
static bool authenticate(int fd)
{
    char uid[16], line[128];
    autotext struct text hello = TEXT_NONE;
    size_t len = 0;

    snprintf(uid, sizeof uid, "%u", getuid());
    text_add_bytes(&hello, "", 1);
    text_add(&hello, "AUTH EXTERNAL ");
    for (const char *at = uid; *at; at++)
        text_addf(&hello, "%02x", (unsigned)*at);
    text_add(&hello, "\r\n");
    if (!put(fd, hello.data, hello.len))
        return false;
    while (len < sizeof line - 1 && get(fd, line + len, 1) && line[len++] != '\n')
        continue;
    line[len] = '\0';
    return text_starts(line, "OK") && put(fd, "BEGIN\r\n", 7);
}

static uint32_t u32_at(const unsigned char *bytes)
{
    uint32_t value;

    memcpy(&value, bytes, sizeof value);
    return value;
}

/* The answer, among signals that are for anybody.  A failure begins with its reason. */
int manager_answer(int fd, struct error *err)
{
    for (int i = 0; i < MESSAGES_MAX; i++) {
        unsigned char head[HEADER], rest[REPLY_MAX];
        size_t fields, body;

        errno = 0;
        if (!get(fd, head, sizeof head))
            return error_sys(err, "hear the service manager's answer");
        fields = ((size_t)u32_at(head + 12) + 7) & ~(size_t)7;
        body = u32_at(head + 4);
        if (head[0] != 'l' || fields > sizeof rest / 2 || body > sizeof rest / 2 ||
            !get(fd, rest, fields + body))
            return error_set(err, ERROR_SYSTEM, "the service manager's answer makes no sense");
        if (head[1] == RETURN)
            return 0;
        if (head[1] != FAILURE)
            continue;
        if (body > 4 && u32_at(rest + fields) < body - 4)
            return error_set(err, ERROR_SYSTEM, "the service manager says: %.*s", (int)u32_at(rest + fields),
                             (char *)rest + fields + 4);
        return error_set(err, ERROR_SYSTEM, "the service manager says no");
    }
    return error_set(err, ERROR_SYSTEM, "the service manager does not answer");
}

static int call(const struct limits *limits, const char *id, pid_t pid, struct error *err)
{
    autoclose int fd = dial(limits->place.dirs[0], err);
    autotext struct text message = TEXT_NONE;

    if (fd < 0)
        return -1;
    manager_call(limits, id, pid, &message);
    if (!authenticate(fd) || !put(fd, message.data, message.len))
        return error_set(err, ERROR_SYSTEM, "the service manager at %s does not let us in",
                         limits->place.dirs[0]);
    return manager_answer(fd, err);
}

/* The answer only says that it will be done. */
static int await_move(const char *id, pid_t pid, char **dir, struct error *err)
{
    autofree char *end = text_format("/cove-%s.scope", id);
    uint64_t until = clock_us() + PATIENCE_S * 1000000ULL;

    do {
        autofree char *now = cgroup_dir_of(pid, "");

        if (now && text_ends(now, end)) {
            *dir = steal_ptr(&now);
            return 0;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    } while (clock_us() < until);
    return error_set(err, ERROR_SYSTEM, "the service manager did not move the sandbox into its scope");
}

int manager_scope(const struct limits *limits, const char *id, pid_t pid, struct cgroup *out, struct error *err)
{
    struct cgroup made = { .kind = CGROUP_MANAGER, .have = limits->place.have };

    if (call(limits, id, pid, err) < 0 || await_move(id, pid, &made.dirs[0], err) < 0 ||
        cgroup_check(&made, limits, err) < 0) {
        cgroup_free(&made);
        return error_while(err, "set limits");
    }
    *out = made;
    return 0;
}
