/* Theory of operation.  Everybody inside may connect, so everything that comes is hostile: one struct of a
 * fixed size a message, no descriptor kept, two messages a connection at most, and the number of a step is
 * ours, so nobody can end a step but the connection that has begun it.  How many connections there may be at a
 * time, and how many a second are accepted, has a bound; beyond it they wait in the socket inside, where the
 * program that is waiting goes on without.  Nothing here waits.
 *
 * What is believed: that somebody inside has said this at this time.  The record says so (`inside`). */

#include "keeper/marks.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/plan.h"
#include "init/mark.h"
#include "init/wire.h"
#include "inside/step_program.h"
#include "keeper/job_record.h"
#include "keeper/mark_words.h"
#include "keeper/stay.h"
#include "keeper/stay_inner.h"
#include "sys/sys.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    AT_A_TIME = 32,
    BURST = 64,
    REFILL_US = 100000, /* one more may come */
    TOTAL = 20000,      /* that one keeper records: they are lines of a file that only grows */
};

enum marking_phase { MARKING_NEW, MARKING_RUNS, MARKING_ENDED };

struct marking {
    struct marking *next;
    struct keeper *keeper;
    struct loop_source source;
    enum marking_phase phase;
    uint32_t step;
    uint64_t began; /* in microseconds */
};

/* A status that makes no sense, or none because it is gone, is an end that nobody has told. */
static void end_step(struct marking *marking, int status, const char *reason)
{
    struct result result = { .reason = RESULT_FAILED, .wall_us = clock_us() - marking->began };

    if (!reason && (WIFEXITED(status) || WIFSIGNALED(status))) {
        result_from_status(&result, status);
        reason = result_reason_name(result.reason);
    }
    job_record_said_end(&marking->keeper->jobs, marking->step, &result, reason ? reason : "unsaid");
    marking->phase = MARKING_ENDED;
}

/* --- connections --- */

static void marking_close(struct marking *marking)
{
    struct marks *marks = &marking->keeper->marks;
    struct marking **at = &marks->first;

    while (*at != marking)
        at = &(*at)->next;
    *at = marking->next;
    marks->len--;
    if (marking->phase == MARKING_RUNS)
        end_step(marking, 0, "unsaid");
    loop_remove(&marking->keeper->loop, &marking->source);
    close(marking->source.fd);
    free(marking);
}

static void answer(const struct marking *marking, uint32_t kind, const char *line)
{
    struct mark mark = { .version = MARK_VERSION, .kind = kind, .number = marking->step };

    if (line)
        memcpy(mark.text, line, strnlen(line, sizeof mark.text - 1));
    (void)wire_put(marking->source.fd, &mark, sizeof mark, NULL, 0); /* who does not read has nothing of it */
}

/* With a line for whoever runs the next command, once, if files were taken back meanwhile. */
static void answer_started(struct marking *marking)
{
    struct jobs *jobs = &marking->keeper->jobs;
    autofree char *line =
        jobs->undone ? text_format("cove: the files went back to before step %u", jobs->undone) : NULL;

    jobs->undone = 0;
    answer(marking, MARK_STARTED, line);
}

static bool take_begin(struct marking *marking, const struct mark *mark)
{
    struct marks *marks = &marking->keeper->marks;
    autowords struct words words = WORDS_NONE;
    struct error ignored;

    if (marking->phase != MARKING_NEW || !mark_words(mark, &words))
        return false;
    if (marks->total >= TOTAL || marking->keeper->phase != PHASE_READY ||
        job_record_said(&marking->keeper->jobs, &words, mark->left_out, &ignored) < 0) {
        answer(marking, MARK_REFUSED, NULL);
        return false;
    }
    marks->total++;
    marking->phase = MARKING_RUNS;
    marking->step = marking->keeper->jobs.steps;
    marking->began = clock_us();
    answer_started(marking);
    return true;
}

static bool take_end(struct marking *marking, const struct mark *mark)
{
    if (marking->phase != MARKING_RUNS)
        return false;
    end_step(marking, mark->status, NULL);
    return true;
}

static bool take(struct marking *marking, const struct mark *mark)
{
    if (mark->version != MARK_VERSION)
        return false;
    return mark->kind == MARK_BEGIN ? take_begin(marking, mark)
                                    : mark->kind == MARK_END && take_end(marking, mark);
}

/* Who was not accepted in time may be gone already, and its command runs unmarked. */
static void marking_ready(void *owner, short revents)
{
    struct marking *marking = owner;
    int fds[PROTOCOL_FDS_MAX];
    struct error ignored;
    struct mark mark;
    size_t count = 0;
    int got = marking->phase == MARKING_NEW && revents & POLLHUP
                  ? WIRE_CLOSED
                  : wire_take(marking->source.fd, &mark, sizeof mark, fds, &count, &ignored);

    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    if (got == WIRE_NOTHING)
        return;
    if (got != WIRE_MESSAGE || count || !take(marking, &mark))
        marking_close(marking);
}

/* --- the door --- */

static void refill(struct marks *marks)
{
    uint64_t now = clock_us(), more = (now - marks->refilled) / REFILL_US;

    if (!more)
        return;
    marks->refilled += more * REFILL_US;
    marks->tokens = more >= BURST - marks->tokens ? BURST : marks->tokens + (unsigned)more;
}

/* Only in test builds: how many come is not bounded, to show that the bound is what keeps us quiet. */
static bool is_unbounded(const struct keeper *keeper)
{
#ifdef COVE_UNSAFE
    return keeper->stay->plan->without && strstr(keeper->stay->plan->without, "marks");
#else
    (void)keeper;
    return false;
#endif
}

static void door_ready(void *owner, short revents)
{
    struct keeper *keeper = owner;
    struct marks *marks = &keeper->marks;
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    int fd = accept4(marks->door.fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct marking *marking;

    (void)revents;
    if (marks->tokens && !is_unbounded(keeper))
        marks->tokens--; /* also for a failure: that must not turn without pause */
    if (fd < 0)
        return;
    marking = memory_zero(sizeof *marking);
    *marking = (struct marking){ .next = marks->first,
                                 .keeper = keeper,
                                 .source = { fd, POLLIN, marking_ready, marking } };
    marks->first = marking;
    marks->len++;
    loop_add(&keeper->loop, &marking->source);
}

void marks_begin(struct keeper *keeper)
{
    struct message message = { .kind = MESSAGE_MARKS };
    autoclose int program = sys_sealed_memfd("cove-step", step_program, step_program_size);

    keeper->marks.asked = program >= 0 && wire_send(keeper->init.fd, &message, &program, 1) == 0;
}

bool marks_heard(struct keeper *keeper, const struct message *message, int *fds, size_t count)
{
    struct marks *marks = &keeper->marks;

    if (!marks->asked || count != (message->status ? 0U : 1U))
        return false;
    marks->asked = false;
    if (count) {
        marks->tokens = BURST;
        marks->refilled = clock_us();
        marks->door = (struct loop_source){ steal_fd(&fds[0]), POLLIN, door_ready, keeper };
        loop_add(&keeper->loop, &marks->door);
    }
    visitors_release(keeper);
    return true;
}

static void rest(struct marks *marks, bool rests)
{
    marks->door.events = 0;
    for (struct marking *marking = marks->first; marking; marking = marking->next)
        marking->source.events = rests ? 0 : POLLIN;
}

int marks_tend(struct keeper *keeper)
{
    struct marks *marks = &keeper->marks;

    if (marks->door.fd < 0)
        return -1;
    for (struct marking *marking = marks->first, *next; marking && !keeper->jobs.over.len; marking = next) {
        next = marking->next;
        if (marking->phase != MARKING_ENDED)
            continue;
        answer(marking, MARK_DONE, NULL);
        marking_close(marking);
    }
    refill(marks);
    if (midway_is_under_way(&keeper->checkpoints)) {
        rest(marks, true); /* what is said now belongs to after it */
        return -1;
    }
    rest(marks, false);
    marks->door.events = marks->tokens && marks->len < AT_A_TIME ? POLLIN : 0;
    return marks->tokens ? -1 : REFILL_US / 1000;
}

void marks_end(struct keeper *keeper)
{
    struct marks *marks = &keeper->marks;

    for (struct marking *marking = marks->first, *next; marking; marking = next) {
        next = marking->next;
        if (marking->phase == MARKING_RUNS)
            end_step(marking, 0, result_reason_name(RESULT_INTERRUPTED));
        marking_close(marking);
    }
    if (marks->door.fd < 0)
        return;
    loop_remove(&keeper->loop, &marks->door);
    close(steal_fd(&marks->door.fd));
}
