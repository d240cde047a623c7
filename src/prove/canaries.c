#include "prove/canaries.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

int token_make(char out[TOKEN_LENGTH + 1], struct error *err)
{
    unsigned char bytes[TOKEN_LENGTH / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_sys(err, "get random bytes");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* --- files ---------------------------------------------------------------------------------- */

static int make_file(int dir, const char *name, const char *content, struct error *err)
{
    autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, content, strlen(content)) != (ssize_t)strlen(content))
        return error_sys(err, "make the canary file %s", name);
    return 0;
}

static int make_files(struct canaries *canaries, int parent, const char *name, struct error *err)
{
    if (mkdirat(parent, name, 0700) < 0 ||
        (canaries->dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return error_sys(err, "make a directory for canaries");
    if (make_file(canaries->dir, "read", canaries->tokens[TOKEN_FILE], err) < 0 ||
        make_file(canaries->dir, "write", canaries->tokens[TOKEN_MARK], err) < 0)
        return -1;
    canaries->descriptor = memfd_create("cove-canary", MFD_CLOEXEC);
    if (canaries->descriptor >= 0)
        (void)!write(canaries->descriptor, canaries->tokens[TOKEN_DESCRIPTOR], TOKEN_LENGTH);
    return 0;
}

bool canaries_file_changed(const struct canaries *canaries)
{
    autoclose int fd = openat(canaries->dir, "write", O_RDONLY | O_CLOEXEC);
    char now[2 * TOKEN_LENGTH];

    return fd < 0 || read(fd, now, sizeof now) != TOKEN_LENGTH ||
           memcmp(now, canaries->tokens[TOKEN_MARK], TOKEN_LENGTH) != 0;
}

/* --- shared names --------------------------------------------------------------------------- */

static char *queue_name(const struct canaries *canaries)
{
    return text_format("/cove-%s", canaries->tokens[TOKEN_MARK]);
}

/* --- processes ------------------------------------------------------------------------------ */

static _Noreturn void be_process(const struct canaries *canaries, int prober, const int in[2], const int out[2])
{
    autofree char *environment = text_format("ENVIRONMENT=%s", canaries->tokens[TOKEN_ENVIRONMENT]);
    autofree char *memory = text_format("MEMORY=%s", canaries->tokens[TOKEN_MEMORY]);
    autofree char *queue = queue_name(canaries);
    char *argv[] = { (char *)(uintptr_t) "cove-canary", (char *)(uintptr_t) "wait", queue, NULL };
    char *envp[] = { environment, memory, NULL };

    if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
        fexecve(prober, argv, envp);
    _exit(127);
}

/* Its first line, whereupon it is ready: where in its memory the token is. */
static bool read_address(int fd, struct canary_process *out)
{
    ssize_t len = read(fd, out->address, sizeof out->address - 1);

    if (len <= 1 || out->address[len - 1] != '\n')
        return false;
    out->address[len - 1] = '\0';
    return true;
}

static int make_process(const struct canaries *canaries, int prober, struct canary_process *out,
                        struct error *err)
{
    int in[2] = { -1, -1 }, said[2] = { -1, -1 };
    bool ready = pipe2(in, O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0;
    pid_t pid = ready ? fork() : -1;

    if (pid == 0)
        be_process(canaries, prober, in, said);
    close(in[0]);
    close(said[1]);
    out->pid = pid > 0 ? pid : 0;
    out->hold = in[1];
    ready = pid > 0 && read_address(said[0], out);
    close(said[0]);
    return ready ? 0 : error_sys(err, "start a canary process");
}

static void end_process(struct canary_process *process)
{
    if (process->hold >= 0)
        close(process->hold);
    if (process->pid > 0) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    *process = (struct canary_process){ .hold = -1 };
}

/* --- sockets -------------------------------------------------------------------------------- */

static int listen_at(int family, int type, const void *address, socklen_t len)
{
    autoclose int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, address, len) < 0 || (type == SOCK_STREAM && listen(fd, 4) < 0))
        return -1;
    return steal_fd(&fd);
}

static int listen_unix(const char *name, bool abstract)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = strlen(name);

    if (len + 2 > sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path + abstract, name, len);
    return listen_at(AF_UNIX, SOCK_STREAM, &address,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1));
}

static int listen_loopback(int type, int *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    autoclose int fd = listen_at(AF_INET, type, &address, sizeof address);

    if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        return -1;
    *port = ntohs(address.sin_port);
    return steal_fd(&fd);
}

static void make_sockets(struct canaries *canaries)
{
    autofree char *path = text_format("%s/socket", canaries->path);
    autofree char *abstract = text_format("cove-%s", canaries->tokens[TOKEN_MARK]);

    canaries->abstract = listen_unix(abstract, true);
    canaries->socket = listen_unix(path, false);
    canaries->tcp = listen_loopback(SOCK_STREAM, &canaries->tcp_port);
    canaries->udp = listen_loopback(SOCK_DGRAM, &canaries->udp_port);
}

bool canaries_connected(int listener)
{
    struct sockaddr_storage who;
    socklen_t len = sizeof who;
    autoclose int peer = listener < 0 ? -1 : accept4(listener, (struct sockaddr *)&who, &len, SOCK_CLOEXEC);

    return peer >= 0;
}

bool canaries_received(const struct canaries *canaries)
{
    char message[2 * TOKEN_LENGTH];

    return canaries->udp >= 0 && recv(canaries->udp, message, sizeof message, MSG_DONTWAIT) == TOKEN_LENGTH &&
           memcmp(message, canaries->tokens[TOKEN_MARK], TOKEN_LENGTH) == 0;
}

/* --- shared objects ------------------------------------------------------------------------- */

enum { SHARED_SIZE = 4096 };

/* Marked for removal at once: it can be attached by its number as long as we are. */
static void make_shared_memory(struct canaries *canaries)
{
    int id = shmget(IPC_PRIVATE, SHARED_SIZE, IPC_CREAT | 0600);
    void *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
    if ((intptr_t)at == -1)
        return;
    memcpy(at, canaries->tokens[TOKEN_SHARED], TOKEN_LENGTH);
    canaries->shared = id;
    canaries->attached = at;
}

static void make_queue(struct canaries *canaries)
{
    struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = TOKEN_LENGTH };
    autofree char *name = queue_name(canaries);
    mqd_t queue = mq_open(name, O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK | O_CLOEXEC, 0600, &attributes);

    if (queue < 0)
        return;
    mq_send(queue, canaries->tokens[TOKEN_QUEUE], TOKEN_LENGTH, 0);
    mq_close(queue);
    canaries->queue = steal_ptr(&name);
}

/* --- terminal ------------------------------------------------------------------------------- */

/* Raw, so that what comes out at the one end is what went in at the other. */
static void make_terminal(struct canaries *canaries)
{
    struct termios raw;

    if (openpty(&canaries->master, &canaries->terminal, NULL, NULL, NULL) < 0) {
        canaries->master = canaries->terminal = -1;
        return;
    }
    fcntl(canaries->master, F_SETFD, FD_CLOEXEC);
    fcntl(canaries->terminal, F_SETFD, FD_CLOEXEC);
    fcntl(canaries->master, F_SETFL, O_NONBLOCK);
    tcgetattr(canaries->terminal, &raw);
    cfmakeraw(&raw);
    tcsetattr(canaries->terminal, TCSANOW, &raw);
}

bool canaries_terminal_written(const struct canaries *canaries)
{
    char shown[2 * TOKEN_LENGTH];

    return canaries->master >= 0 && read(canaries->master, shown, sizeof shown) >= TOKEN_LENGTH &&
           memcmp(shown, canaries->tokens[TOKEN_MARK], TOKEN_LENGTH) == 0;
}

bool canaries_terminal_typed(const struct canaries *canaries)
{
    int waiting = 0;

    return canaries->terminal >= 0 && ioctl(canaries->terminal, FIONREAD, &waiting) == 0 && waiting > 0;
}

/* --- all of them ---------------------------------------------------------------------------- */

int canaries_make(int parent, const char *above, const char *name, int prober, const char *variable,
                  struct canaries *out, struct error *err)
{
    *out = CANARIES_NONE;
    out->path = text_format("%s/%s", above, name);
    for (size_t i = 0; i < TOKEN_COUNT; i++)
        if (token_make(out->tokens[i], err) < 0)
            return -1;
    memcpy(out->tokens[TOKEN_VARIABLE], variable, TOKEN_LENGTH);
    if (make_files(out, parent, name, err) < 0 || make_process(out, prober, &out->peer, err) < 0 ||
        make_process(out, prober, &out->stand_in, err) < 0)
        return -1;
    make_sockets(out);
    make_shared_memory(out);
    make_queue(out);
    make_terminal(out);
    return 0;
}

void canaries_free(struct canaries *canaries)
{
    const int fds[] = { canaries->dir, canaries->abstract,   canaries->socket, canaries->tcp,
                        canaries->udp, canaries->descriptor, canaries->master, canaries->terminal };

    end_process(&canaries->peer);
    end_process(&canaries->stand_in);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (canaries->attached)
        shmdt(canaries->attached);
    if (canaries->queue)
        mq_unlink(canaries->queue);
    free(canaries->queue);
    free(canaries->path);
    *canaries = CANARIES_NONE;
}

static char *key_name(const struct canaries *canaries)
{
    return text_format("cove-%s", canaries->tokens[TOKEN_MARK]);
}

/* The key lies in a session keyring of this process and its children, which goes with them. */
void canaries_take_along(const struct canaries *canaries)
{
    enum { ABOVE = 40 };
    autofree char *key = key_name(canaries);

    setsid();
    if (canaries->terminal >= 0)
        ioctl(canaries->terminal, TIOCSCTTY, 0);
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
        (void)syscall(SYS_add_key, "user", key, canaries->tokens[TOKEN_KEY], TOKEN_LENGTH,
                      KEY_SPEC_SESSION_KEYRING);
    if (canaries->descriptor >= 0)
        (void)fcntl(canaries->descriptor, F_DUPFD, ABOVE); /* kept over exec, unlike all others */
}

static void add_number(struct strings *out, const char *key, int number)
{
    if (number >= 0)
        strings_take(out, text_format("%s=%d", key, number));
}

static void add_word(struct strings *out, const char *key, const char *value)
{
    strings_take(out, text_format("%s=%s", key, value));
}

void canaries_words(const struct canaries *canaries, const char *variable, struct strings *out)
{
    autofree char *key = key_name(canaries);

    strings_take(out, text_format("read=%s/read", canaries->path));
    strings_take(out, text_format("write=%s/write", canaries->path));
    add_number(out, "peer", canaries->peer.pid);
    add_word(out, "address", canaries->peer.address);
    if (canaries->abstract >= 0)
        add_word(out, "abstract", key);
    if (canaries->socket >= 0)
        strings_take(out, text_format("socket=%s/socket", canaries->path));
    add_number(out, "tcp", canaries->tcp < 0 ? -1 : canaries->tcp_port);
    add_number(out, "udp", canaries->udp < 0 ? -1 : canaries->udp_port);
    add_number(out, "shm", canaries->shared);
    if (canaries->queue)
        add_word(out, "queue", canaries->queue);
    add_word(out, "key", key);
    add_word(out, "variable", variable);
    add_word(out, "mark", canaries->tokens[TOKEN_MARK]);
}
