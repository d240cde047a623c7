/* One process decides and writes; what takes time is done by children, one for each step of a try, which can be
 * killed at any moment: all that they leave is a sandbox with our label.  So there is one way to clean up,
 * after the end, after Ctrl-C and after our own death. */

#include "cli/exploring.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/forking.h"
#include "cli/rm.h"
#include "cli/which.h"
#include "explore/ranking.h"
#include "explore/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum { OUR_RETRIES = 2, BEAT_MS = 200 };

enum phase { PHASE_FREE, PHASE_TRY, PHASE_SCORE, PHASE_DROP };

/* One try that is under way. */
struct slot {
    enum phase phase;
    pid_t pid;
    int fd; /* what the child says */
    struct text said;
    struct tried tried;
    unsigned failures; /* of ours, in this phase */
    uint64_t retried;
    bool again; /* after PHASE_DROP: from the start */
    char id[ID_LENGTH + 1], score_id[ID_LENGTH + 1];
    struct strings drop; /* sandboxes to be removed */
};

struct queue {
    struct exploring *exploring;
    struct slot *slots;
    struct pollfd *polls;
    size_t running;
    uint64_t task, number; /* of the next one */
    uint64_t done, all;
};

/* --- a child --- */

typedef void work_function(const struct exploring *exploring, struct slot *slot, struct tried *out);

static void fill_variables(const struct exploring *exploring, const struct slot *slot, struct trying *out)
{
    const struct tried *tried = &slot->tried;

    *out = exploring->trying;
    strings_take(&out->variables, text_format("COVE_TRY=%llu", (unsigned long long)tried->number));
    if (tried->task)
        tasks_environment(tried->task, exploring->tasks.items[tried->task - 1], &out->variables);
}

static void work_try(const struct exploring *exploring, struct slot *slot, struct tried *out)
{
    struct trying trying;

    fill_variables(exploring, slot, &trying);
    trying_run(&trying, slot->id, out);
    strings_free(&trying.variables);
}

static void work_score(const struct exploring *exploring, struct slot *slot, struct tried *out)
{
    struct trying trying;

    fill_variables(exploring, slot, &trying);
    trying_score(&trying, slot->score_id, out);
    strings_free(&trying.variables);
}

static void work_drop(const struct exploring *exploring, struct slot *slot, struct tried *out)
{
    (void)exploring;
    tried_free(out); /* the child's own: what it says is only whether this was done */
    out->number = 1;
    out->reason = text_copy("dropped");
    for (size_t i = 0; i < slot->drop.len; i++) {
        struct error err;

        if (rm_forced(slot->drop.items[i], &err) < 0 && !out->error) {
            struct text why = TEXT_NONE;

            text_add_inert(&why, err.text);
            out->error = text_steal(&why);
        }
    }
}

static void tell(int fd, const struct tried *tried)
{
    autotext struct text line = TEXT_NONE;

    tried_json(tried, &line);
    for (size_t at = 0; at < line.len;) {
        ssize_t put = write(fd, line.data + at, line.len - at);

        if (put < 0 && errno != EINTR)
            return;
        at += put > 0 ? (size_t)put : 0;
    }
}

/* It is alone in its process group: Ctrl-C is for us. */
static _Noreturn void be_child(struct queue *queue, struct slot *slot, work_function *work, int fd,
                               pid_t parent)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0); /* we died before it could know */
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &queue->exploring->old_mask, NULL);
    for (int std = 0; std < 3 && null >= 0; std++)
        dup2(null, std);
    work(queue->exploring, slot, &slot->tried);
    tell(fd, &slot->tried);
    _exit(0);
}

static int begin_phase(struct queue *queue, struct slot *slot, enum phase phase, work_function *work,
                       struct error *err)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");

    pid_t parent = getpid(), pid = fork();

    if (pid == 0)
        be_child(queue, slot, work, pair[1], parent);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return error_sys(err, "fork");
    }
    text_clear(&slot->said);
    slot->phase = phase;
    slot->pid = pid;
    slot->fd = pair[0];
    return 0;
}

static void end_child(struct slot *slot)
{
    while (waitpid(slot->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(slot->fd);
    slot->fd = -1;
}

/* --- the life of a try --- */

static void free_slot(struct queue *queue, struct slot *slot)
{
    tried_free(&slot->tried);
    strings_free(&slot->drop);
    text_free(&slot->said);
    *slot = (struct slot){ .fd = -1 };
    queue->running--;
}

static void set_error(struct tried *tried, const struct error *err)
{
    struct text why = TEXT_NONE;

    text_add_inert(&why, err->text);
    free(tried->error);
    tried->error = text_steal(&why);
}

static void set_failed(struct tried *tried, const struct error *err)
{
    set_error(tried, err);
    free(tried->reason);
    tried->reason = text_copy("failed");
}

/* What is known before it begins. */
static void reset(struct slot *slot)
{
    struct tried fresh = { .task = slot->tried.task,
                           .number = slot->tried.number,
                           .attempts = slot->tried.attempts + 1,
                           .reason = text_copy("failed") };

    tried_free(&slot->tried);
    slot->tried = fresh;
}

static int begin_drop(struct queue *queue, struct slot *slot, struct error *err);
static int finish(struct queue *queue, struct slot *slot, struct error *err);

static int begin_try(struct queue *queue, struct slot *slot, struct error *err)
{
    struct error why;

    reset(slot);
    slot->again = false;
    *slot->id = '\0';
    if (forking_make(queue->exploring->from, queue->exploring->label, slot->id, &why) < 0) {
        set_failed(&slot->tried, &why);
        slot->again = slot->failures++ < OUR_RETRIES;
        return slot->again ? begin_drop(queue, slot, err) : finish(queue, slot, err);
    }
    slot->tried.id = text_copy(slot->id);
    return begin_phase(queue, slot, PHASE_TRY, work_try, err);
}

static int begin_drop(struct queue *queue, struct slot *slot, struct error *err)
{
    if (*slot->score_id)
        strings_add(&slot->drop, slot->score_id);
    *slot->score_id = '\0';
    if (slot->again && *slot->id)
        strings_add(&slot->drop, slot->id);
    return begin_phase(queue, slot, PHASE_DROP, work_drop, err);
}

static int begin_score(struct queue *queue, struct slot *slot, struct error *err)
{
    struct error why;

    if (forking_make(slot->id, queue->exploring->label, slot->score_id, &why) == 0)
        return begin_phase(queue, slot, PHASE_SCORE, work_score, err);
    set_error(&slot->tried, &why); /* it has no score */
    return finish(queue, slot, err);
}

static void drop_later(struct slot *slot, const struct tried *tried)
{
    if (tried && tried->id && *tried->id)
        strings_add(&slot->drop, tried->id);
}

/* Its line is on the disk before anything of it goes. */
static int finish(struct queue *queue, struct slot *slot, struct error *err)
{
    struct exploring *exploring = queue->exploring;
    struct results *results = &exploring->results;
    uint64_t task = slot->tried.task, number = slot->tried.number;
    const struct tried *best = exploring->keep == KEEP_WINNER ? ranking_best(results, task) : NULL;
    uint64_t best_number = best ? best->number : 0;

    if (slot->tried.peak_kib > exploring->admission.seen_kib)
        exploring->admission.seen_kib = slot->tried.peak_kib;
    if (results_add(exploring->results_fd, &slot->tried, err) < 0)
        return -1;
    (void)results_take(results, &slot->tried);
    queue->done++;

    const struct tried *mine = &results->items[results->len - 1];

    if (exploring->keep == KEEP_NONE)
        drop_later(slot, mine);
    if (exploring->keep == KEEP_WINNER) {
        const struct tried *now = ranking_best(results, task);

        if (!now || now->number != number)
            drop_later(slot, mine);
        for (size_t i = 0; best_number && now && now->number == number && i < results->len; i++)
            if (results->items[i].task == task && results->items[i].number == best_number)
                drop_later(slot, &results->items[i]);
    }
    return begin_drop(queue, slot, err);
}

static bool is_failed(const struct tried *tried)
{
    return strcmp(tried->reason, "failed") == 0;
}

static int after_try(struct queue *queue, struct slot *slot, struct tried *said, struct error *err)
{
    const struct exploring *exploring = queue->exploring;
    bool failed = is_failed(said), wrong = said->exit_code != 0 && slot->retried < exploring->retries;

    tried_free(&slot->tried);
    slot->tried = tried_take(said);
    slot->again = failed ? slot->failures++ < OUR_RETRIES : wrong;
    slot->retried += !failed && wrong;
    if (slot->again)
        return begin_drop(queue, slot, err);
    slot->failures = 0;
    if (!failed && exploring->trying.score)
        return begin_score(queue, slot, err);
    if (!exploring->trying.score)
        trying_score_by_exit(&slot->tried);
    return finish(queue, slot, err);
}

/* What could not be judged has no score. */
static int after_score(struct queue *queue, struct slot *slot, struct tried *said, struct error *err)
{
    if (!is_failed(said)) {
        tried_free(&slot->tried);
        slot->tried = tried_take(said);
    } else if (slot->failures++ < OUR_RETRIES) {
        strings_add(&slot->drop, slot->score_id); /* removed with the rest */
        return begin_score(queue, slot, err);
    } else {
        free(slot->tried.error);
        slot->tried.error = said->error ? text_copy(said->error) : NULL;
    }
    return finish(queue, slot, err);
}

static int after_drop(struct queue *queue, struct slot *slot, const struct tried *said, struct error *err)
{
    strings_free(&slot->drop);
    if (said->error)
        queue->exploring->untidy = true; /* it is tried once more at the end */
    if (slot->again)
        return begin_try(queue, slot, err);
    free_slot(queue, slot);
    return 0;
}

/* A child that died said nothing, or half of it. */
static int after_phase(struct queue *queue, struct slot *slot, struct error *err)
{
    autotried struct tried said = TRIED_NONE;
    struct error why;
    enum phase phase = slot->phase;

    end_child(slot);
    if (tried_read(text_string(&slot->said), slot->said.len, "try", &said, &why) < 0) {
        error_set(&why, ERROR_SYSTEM, "the process of this try died");
        said = (struct tried){ .task = slot->tried.task,
                               .number = slot->tried.number,
                               .attempts = slot->tried.attempts,
                               .id = text_copy(slot->id) };
        set_failed(&said, &why);
    }
    if (phase == PHASE_TRY)
        return after_try(queue, slot, &said, err);
    return phase == PHASE_SCORE ? after_score(queue, slot, &said, err) : after_drop(queue, slot, &said, err);
}

/* --- the queue --- */

static uint64_t tasks_of(const struct exploring *exploring)
{
    return exploring->tasks.len ? exploring->tasks.len : 1;
}

/* Steps to the next try that has no line yet; false: there is none. */
static bool next(struct queue *queue, uint64_t *task, uint64_t *number)
{
    const struct exploring *exploring = queue->exploring;

    while (queue->task < tasks_of(exploring)) {
        *task = exploring->tasks.len ? queue->task + 1 : 0;
        *number = ++queue->number;
        if (queue->number >= exploring->count) {
            queue->task++;
            queue->number = 0;
        }
        if (!results_have(&exploring->results, *task, *number))
            return true;
    }
    return false;
}

static uint64_t memory_free(void)
{
    char text[8192] = "";
    autoclose int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    return got < 0 ? UINT64_MAX : admit_read(text);
}

static int fill_slots(struct queue *queue, struct error *err)
{
    struct exploring *exploring = queue->exploring;

    for (size_t i = 0; i < exploring->jobs; i++) {
        struct slot *slot = &queue->slots[i];
        uint64_t available;

        if (slot->phase != PHASE_FREE || queue->task >= tasks_of(exploring))
            continue;
        available = memory_free();
        if (!queue->running)
            exploring->admission.first_kib = available;
        if (!admit_one_more(&exploring->admission, available, queue->running))
            return 0;
        if (!next(queue, &slot->tried.task, &slot->tried.number))
            return 0;
        queue->running++;
        if (begin_try(queue, slot, err) < 0)
            return -1;
    }
    return 0;
}

/* The end of what it says is its end. */
static int hear(struct queue *queue, struct slot *slot, struct error *err)
{
    char buffer[16 << 10];
    ssize_t got = read(slot->fd, buffer, sizeof buffer);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0 || slot->said.len > TRIED_LINE_MAX)
        return after_phase(queue, slot, err);
    text_add_bytes(&slot->said, buffer, (size_t)got);
    return 0;
}

static int turn(struct queue *queue, struct error *err)
{
    struct exploring *exploring = queue->exploring;
    struct signalfd_siginfo info;

    for (size_t i = 0; i < exploring->jobs; i++)
        queue->polls[i] = (struct pollfd){ .fd = queue->slots[i].fd, .events = POLLIN };
    queue->polls[exploring->jobs] = (struct pollfd){ .fd = exploring->signals, .events = POLLIN };
    if (poll(queue->polls, exploring->jobs + 1, BEAT_MS) < 0 && errno != EINTR)
        return error_sys(err, "wait");
    if (read(exploring->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        exploring->signal = (int)info.ssi_signo;
        return 0;
    }
    for (size_t i = 0; i < exploring->jobs; i++)
        if (queue->slots[i].fd >= 0 && queue->polls[i].fd == queue->slots[i].fd && queue->polls[i].revents &&
            hear(queue, &queue->slots[i], err) < 0)
            return -1;
    return 0;
}

static void show_progress(const struct queue *queue, bool last)
{
    if (!queue->exploring->progress)
        return;
    if (last)
        fputs("\r\033[K", stderr);
    else
        fprintf(stderr, "\rexploring: %llu of %llu done, %zu running\033[K", (unsigned long long)queue->done,
                (unsigned long long)queue->all, queue->running);
    fflush(stderr);
}

static int work_through(struct queue *queue, struct error *err)
{
    const struct exploring *exploring = queue->exploring;

    for (;;) {
        if (fill_slots(queue, err) < 0)
            return -1;
        if (!queue->running)
            return 0;
        show_progress(queue, false);
        if (turn(queue, err) < 0)
            return -1;
        if (exploring->signal)
            return 0;
    }
}

static void kill_children(struct queue *queue)
{
    for (size_t i = 0; i < queue->exploring->jobs; i++) {
        struct slot *slot = &queue->slots[i];

        if (slot->fd >= 0) {
            kill(slot->pid, SIGKILL);
            end_child(slot);
        }
        if (slot->phase != PHASE_FREE)
            free_slot(queue, slot);
    }
}

int exploring_listen(struct exploring *exploring, struct error *err)
{
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigprocmask(SIG_BLOCK, &ours, &exploring->old_mask);
    exploring->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return exploring->signals < 0 ? error_sys(err, "listen for signals") : 0;
}

int exploring_run(struct exploring *exploring, struct error *err)
{
    struct queue queue = { .exploring = exploring,
                           .done = exploring->results.len,
                           .all = tasks_of(exploring) * exploring->count };

    queue.slots = memory_zero(exploring->jobs * sizeof *queue.slots);
    queue.polls = memory_zero((exploring->jobs + 1) * sizeof *queue.polls);
    for (size_t i = 0; i < exploring->jobs; i++)
        queue.slots[i].fd = -1;

    int result = work_through(&queue, err);
    show_progress(&queue, true);
    kill_children(&queue);
    free(queue.slots);
    free(queue.polls);
    return result;
}

/* --- cleaning up --- */

static bool is_wanted(const struct results *results, enum explore_keep keep, const char *id)
{
    for (size_t i = 0; keep != KEEP_NONE && i < results->len; i++) {
        const struct tried *tried = &results->items[i];

        if (tried->id && strcmp(tried->id, id) == 0)
            return keep == KEEP_ALL || ranking_best(results, tried->task) == tried;
    }
    return false;
}

int exploring_sweep(const char *label, const struct results *results, enum explore_keep keep, struct error *err)
{
    autowhich struct which which = WHICH_NONE;
    int result = 0;

    if (which_read(&which, err) < 0)
        return -1;
    for (size_t i = 0; i < which.all.len; i++) {
        const struct kept *kept = &which.all.items[i];

        if (kept->state != KEPT_BROKEN && record_has_label(&kept->record, label) &&
            !is_wanted(results, keep, kept->id) && rm_forced(kept->id, err) < 0)
            result = -1;
    }
    return result;
}
