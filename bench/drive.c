/* What a server does that keeps connections to keepers open, with a clock around it: a process that benchmarks
 * talk to.  Written in the language of the product, with its own messages: an interpreter's start of a process
 * costs as much as what is measured.
 *
 * Reads lines of words, separated by tabs, and answers each with one line: microseconds, then what came of it.
 *
 *   open DIRECTORY            connect to the keeper of the sandbox with this directory
 *   spawn PROGRAM WORD...     start it here, without any sandbox, and wait for its end: microseconds, exit
 * code, first line of output exec PROGRAM WORD...      the same in the sandbox checkpoint microseconds, layer
 *   rollback LAYER STEP       microseconds
 *   after PROGRAM WORD...     exec, and at once a checkpoint: microseconds of both, layer, step: how long
 * whoever comes next waits for the automatic one
 */

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/own.h"
#include "init/wire.h"
#include "keeper/control.h"
#include "keeper/words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 64, LINE_MAX = 64 << 10, OUTPUT_MAX = 4096 };

static int keeper = -1;

static _Noreturn void die(const char *what, const struct error *err)
{
    fprintf(stderr, "cove-drive: %s: %s\n", what, err ? err->text : strerror(errno));
    exit(1);
}

/* --- the keeper --- */

static struct control hear(int *fds, size_t *count)
{
    struct control message;
    struct error err;

    *count = 0;
    if (control_receive(keeper, &message, fds, count, &err) != WIRE_MESSAGE)
        die("the keeper is gone", &err);
    if (message.kind == CONTROL_FAILED)
        die("the keeper refuses", &message.error);
    return message;
}

static void ask(const struct control *request, const int *fds, size_t count)
{
    if (control_send(keeper, request, fds, count) < 0)
        die("ask the keeper", NULL);
}

static void ask_exec(char *const *argv)
{
    struct control request = CONTROL(CONTROL_EXEC);
    uint32_t counts[2];
    struct error err;
    autoclose int words = words_write("", (const char *const *)argv, NULL, counts, &err);

    if (words < 0)
        die("write the words of a command", &err);
    request.arguments = counts[0];
    request.variables = counts[1];
    ask(&request, &words, 1);
}

/* The first line of what a command wrote; more than a pipe holds would keep it waiting. */
static void read_line(int fd, char out[OUTPUT_MAX])
{
    ssize_t got = read(fd, out, OUTPUT_MAX - 1);

    out[got > 0 ? got : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

static struct control await_end(char output[OUTPUT_MAX])
{
    int fds[PROTOCOL_FDS_MAX], none[PROTOCOL_FDS_MAX];
    size_t count, more;

    *output = '\0';
    if (hear(fds, &count).kind != CONTROL_STARTED)
        die("a command did not start", NULL);
    if (count)
        close(fds[0]); /* its input */

    struct control ended = hear(none, &more);

    if (count > 1)
        read_line(fds[1], output);
    for (size_t i = 1; i < count; i++)
        close(fds[i]);
    return ended;
}

/* --- what can be asked for --- */

static void do_open(char *const *words)
{
    autoclose int dir = open(words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t began = clock_us();
    struct error err;

    if (dir < 0)
        die(words[0], NULL);
    own_close(&keeper);
    keeper = control_connect(dir, &err);
    if (keeper < 0)
        die(words[0], &err);
    printf("%" PRIu64 "\n", clock_us() - began);
}

/* As a shell does that wants its output. */
static pid_t start(char *const *words, int output)
{
    posix_spawn_file_actions_t actions;
    pid_t child;

    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) != 0 ||
        posix_spawnp(&child, words[0], &actions, NULL, words, environ) != 0)
        die(words[0], NULL);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static void do_spawn(char *const *words)
{
    uint64_t began = clock_us();
    char output[OUTPUT_MAX];
    int ends[2], status;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        die("make a pipe", NULL);
    child = start(words, ends[1]);
    close(ends[1]);
    read_line(ends[0], output);
    close(ends[0]);
    if (waitpid(child, &status, 0) < 0)
        die(words[0], NULL);
    printf("%" PRIu64 "\t%d\t%s\n", clock_us() - began, WIFEXITED(status) ? WEXITSTATUS(status) : -1, output);
}

static void do_exec(char *const *words)
{
    char output[OUTPUT_MAX];
    uint64_t began = clock_us();

    ask_exec(words);

    struct control ended = await_end(output);

    printf("%" PRIu64 "\t%d\t%s\n", clock_us() - began, ended.exit_code, output);
}

static struct control checkpoint(void)
{
    struct control request = CONTROL(CONTROL_CHECKPOINT);
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    ask(&request, NULL, 0);
    return hear(fds, &count);
}

static void do_checkpoint(char *const *words)
{
    uint64_t began = clock_us();
    struct control done = checkpoint();

    (void)words;
    printf("%" PRIu64 "\t%s\n", clock_us() - began, done.layer);
}

static void do_rollback(char *const *words)
{
    struct control request = CONTROL(CONTROL_ROLLBACK);
    int fds[PROTOCOL_FDS_MAX];
    size_t count;

    if (!words[1])
        die("rollback needs a layer and a step", NULL);
    snprintf(request.layer, sizeof request.layer, "%s", words[0]);
    request.step = strtoull(words[1], NULL, 10);

    uint64_t began = clock_us();

    ask(&request, NULL, 0);
    hear(fds, &count);
    printf("%" PRIu64 "\n", clock_us() - began);
}

static void do_after(char *const *words)
{
    char output[OUTPUT_MAX];
    uint64_t began = clock_us();

    ask_exec(words);

    struct control ended = await_end(output);
    uint64_t between = clock_us();
    struct control done = checkpoint();

    printf("%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu64 "\n", between - began, clock_us() - between, done.layer,
           ended.step);
}

static const struct verb {
    const char *name;
    int words; /* at least */
    void (*act)(char *const *words);
} verbs[] = {
    { "open", 1, do_open },         { "spawn", 1, do_spawn },
    { "exec", 1, do_exec },         { "checkpoint", 0, do_checkpoint },
    { "rollback", 1, do_rollback }, { "after", 1, do_after },
};

static void serve(char *line)
{
    char *words[WORDS_MAX + 1] = { NULL }, *rest;
    int count = 0;

    line[strcspn(line, "\n")] = '\0';
    for (char *word = strtok_r(line, "\t", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, "\t", &rest))
        words[count++] = word;
    for (size_t i = 0; count && i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, words[0]) == 0 && count > verbs[i].words) {
            verbs[i].act(words + 1);
            return;
        }
    die("this is not understood", NULL);
}

int main(void)
{
    static char line[LINE_MAX];

    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin))
        serve(line);
    return 0;
}
