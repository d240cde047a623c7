/* /run/cove/step: runs a command and tells the keeper of its beginning and end, so that an agent that stays
 * alive in one command can have steps of its own.
 *
 *     step -- COMMAND ARGUMENT...     the command
 *     step LINE                       a line for a shell, as agents hand it to what they run their commands
 * with
 *
 * Should: be as if it were not there: input, output, signals and exit code are the command's; run the command
 * also when nobody answers; be small, because each sandbox that stays has it in memory.  Must not: have a right
 * that the command has not; wait without a bound; print by format, which would be a third of it. */

#include "init/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BEGIN_MS = 2000, /* it is run without a mark then */
    END_MS = 30000,  /* a checkpoint may take a while, and the next command should not change what it is of */
    OUR_ERROR = 125,
    NOT_EXECUTABLE = 126,
    NOT_FOUND = 127,
};

static volatile pid_t child;

/* One line, whole. */
static void say(const char *who, const char *what, const char *why)
{
    const char *const parts[] = { who, what, *why ? ": " : "", why, "\n" };
    struct iovec pieces[sizeof parts / sizeof *parts];

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        pieces[i] = (struct iovec){ (void *)(uintptr_t)parts[i], strlen(parts[i]) };
    (void)!writev(STDERR_FILENO, pieces, sizeof parts / sizeof *parts);
}

/* --- the keeper --- */

/* Never waits: who is not heard is not marked. */
static int meet_keeper(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = MARK_SOCKET };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* What could not be told now could be in a moment: the kernel is short of memory. */
static bool send_mark(int fd, const struct mark *mark)
{
    enum { TRIES = 1000 };

    for (int tries = 0; tries < TRIES; tries++) {
        if (send(fd, mark, sizeof *mark, MSG_NOSIGNAL) == (ssize_t)sizeof *mark)
            return true;
        if (errno != EINTR && errno != ENOBUFS && errno != ENOMEM)
            return false;
        if (errno != EINTR)
            poll(NULL, 0, 1);
    }
    return false;
}

/* Whole, and with nothing beside it; the kernel says once that the other end died, before it gives what that
 * had said. */
static bool take_mark(int fd, struct mark *mark)
{
    ssize_t got;

    do
        got = recv(fd, mark, sizeof *mark, MSG_TRUNC);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    return got == (ssize_t)sizeof *mark;
}

/* False: there is nobody to tell any more, and the connection is closed. */
static bool ask(int *fd, struct mark *mark, uint32_t wanted, int patience_ms)
{
    struct pollfd answer = { .fd = *fd, .events = POLLIN };

    if (*fd < 0)
        return false;
    if (send_mark(*fd, mark) && poll(&answer, 1, patience_ms) == 1 && take_mark(*fd, mark) &&
        mark->version == MARK_VERSION && mark->kind == wanted)
        return true;
    close(*fd);
    *fd = -1;
    return false;
}

/* As much of it as fits. */
static void add_word(struct mark *mark, const char *word)
{
    size_t len = strlen(word), room = sizeof mark->text - mark->length;

    if (room == 0) {
        mark->left_out += len + 1;
        return;
    }
    if (len > room - 1) {
        mark->left_out += len - (room - 1);
        len = room - 1;
    }
    memcpy(mark->text + mark->length, word, len);
    mark->length += (uint32_t)len + 1;
    mark->words++;
}

static void begin(int *fd, char *const *words)
{
    static struct mark mark;
    static char cwd[MARK_TEXT / 4];

    mark = (struct mark){ .version = MARK_VERSION, .kind = MARK_BEGIN };
    add_word(&mark, getcwd(cwd, sizeof cwd) ? cwd : "");
    for (; *words; words++)
        add_word(&mark, *words);
    if (!ask(fd, &mark, MARK_STARTED, BEGIN_MS))
        return;
    mark.text[sizeof mark.text - 1] = '\0';
    if (*mark.text)
        say("", mark.text, "");
}

static void end(int *fd, int status)
{
    static struct mark mark;

    mark = (struct mark){ .version = MARK_VERSION, .kind = MARK_END, .status = status };
    (void)ask(fd, &mark, MARK_DONE, END_MS);
}

/* --- the command --- */

static _Noreturn void become(char **words, bool line)
{
    static const char *const shells[] = { "/bin/bash", "/bin/sh" };

    for (size_t i = 0; line && i < sizeof shells / sizeof *shells; i++)
        execl(shells[i], shells[i], "-c", words[0], (char *)NULL);
    if (!line)
        execvp(words[0], words);

    int code = errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;

    say("cove-step: ", words[0], strerror(errno));
    _exit(code);
}

static void pass_on(int number)
{
    if (child > 0)
        kill(child, number);
}

/* What a terminal sends goes to the command as well; what is sent to us alone is passed on. */
static void watch_signals(void)
{
    static const int passed_on[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
    struct sigaction action = { .sa_handler = pass_on };

    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaction(passed_on[i], &action, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
}

static int run(char **words, bool line)
{
    sigset_t all, before;
    int status = 0;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        become(words, line);
    }
    if (child < 0) {
        say("cove-step: ", "fork", strerror(errno));
        _exit(OUR_ERROR);
    }
    watch_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    return status;
}

static _Noreturn void leave(int status)
{
    sigset_t none;

    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    sigemptyset(&none);
    signal(WTERMSIG(status), SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* `cove step ...`, with our directory in PATH. */
static bool is_cove(const char *name)
{
    const char *slash = strrchr(name, '/');

    return strcmp(slash ? slash + 1 : name, "cove") == 0;
}

int main(int argc, char **argv)
{
    char **words = argv + 1;
    bool line;
    int keeper, status;

    if (argc > 1 && is_cove(argv[0]) && strcmp(words[0], "step") == 0)
        words++;
    line = words[0] && !words[1];
    if (words[0] && strcmp(words[0], "--") == 0) {
        words++;
        line = false;
    }
    if (!words[0]) {
        say("cove-step: ", "a command is missing", "step -- COMMAND..., or step LINE");
        return OUR_ERROR;
    }
    keeper = meet_keeper();
    begin(&keeper, words);
    status = run(words, line);
    end(&keeper, status);
    leave(status);
}
