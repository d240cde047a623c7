#include "trace/step.h"

#include "base/date.h"
#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
    [STEP_IS_RUNNING] = "running", [STEP_IS_OVER] = "over", [STEP_IS_LOST] = "lost"
};
static const char *const change_names[] = {
    [STEP_ADDED] = "added", [STEP_CHANGED] = "changed", [STEP_REMOVED] = "removed"
};

const char *step_state_name(enum step_state state)
{
    return state_names[state];
}

const char *step_change_name(enum step_change change)
{
    return change_names[change];
}

static void free_end(struct step_end *end)
{
    free(end->reason);
    free(end->limit);
    free(end->checkpoint);
    free(end->no_checkpoint);
    for (size_t i = 0; i < end->files.len; i++) {
        free(end->files.items[i].path);
        free(end->files.items[i].sha256);
    }
    free(end->files.items);
}

void step_free(struct step *step)
{
    strings_free(&step->argv);
    strings_free(&step->environment);
    free(step->cwd);
    free(step->kind);
    free(step->user);
    free_end(&step->end);
    *step = STEP_NONE;
}

/* --- what there is room for --- */

static size_t cost_of(const struct strings *strings)
{
    size_t cost = 0;

    for (size_t i = 0; i < strings->len; i++)
        cost += strlen(strings->items[i]) + STEP_WORD_COST;
    return cost;
}

/* As much of the word as fits; not in the middle of a letter. */
static size_t add_cut(struct strings *strings, const char *word, size_t room)
{
    size_t len = strlen(word), keep = len;

    if (len > room)
        for (keep = room; keep > 0 && room - keep < 4 && (word[keep] & 0xc0) == 0x80;)
            keep--;
    strings_take(strings, text_format("%.*s", (int)keep, word));
    return len - keep;
}

void step_set_argv(struct step *step, char *const *argv)
{
    size_t cost = 0;

    strings_free(&step->argv);
    step->argv_left_out = 0;
    for (; *argv; argv++) {
        if (cost + STEP_WORD_COST > STEP_ARGV_MAX) {
            step->argv_left_out += strlen(*argv) + 1;
            continue;
        }
        step->argv_left_out += add_cut(&step->argv, *argv, STEP_ARGV_MAX - STEP_WORD_COST - cost);
        cost += strlen(*argv) + STEP_WORD_COST;
    }
}

void step_add_variable(struct step *step, const char *name)
{
    if (cost_of(&step->environment) + strlen(name) + STEP_WORD_COST > STEP_ENVIRONMENT_MAX)
        step->environment_left_out++;
    else
        strings_add(&step->environment, name);
}

static size_t cost_of_files(const struct step_files *files)
{
    size_t cost = 0;

    for (size_t i = 0; i < files->len; i++)
        cost += strlen(files->items[i].path);
    return cost;
}

void step_add_file(struct step *step, enum step_change how, const char *path)
{
    struct step_end *end = &step->end;
    uint64_t *counts[] = {
        [STEP_ADDED] = &end->added, [STEP_CHANGED] = &end->changed, [STEP_REMOVED] = &end->removed
    };

    ++*counts[how];
    if (end->files.len >= STEP_FILES_MAX || cost_of_files(&end->files) + strlen(path) > STEP_PATHS_MAX)
        end->files_left_out++;
    else
        *array_add(&end->files) = (struct step_file){ .how = how, .path = text_copy(path) };
}

/* --- the lines: one table each, for both directions --- */

static bool read_change(const struct node *node, void *into)
{
    for (size_t i = 0; node->kind == NODE_STRING && i < ARRAY_LEN(change_names); i++)
        if (strcmp(node->text, change_names[i]) == 0) {
            *(enum step_change *)into = (enum step_change)i;
            return true;
        }
    return false;
}

static void write_change(const void *from, struct node *out)
{
    out->kind = NODE_STRING;
    out->text = text_copy(change_names[*(const enum step_change *)from]);
}

static const struct member_kind a_change = { "added, changed or removed", read_change, write_change };

static const struct member file_members[] = {
    { "how", &a_change, offsetof(struct step_file, how) },
    { "path", &member_text, offsetof(struct step_file, path) },
};

static bool read_files(const struct node *node, void *into)
{
    if (node->kind != NODE_LIST)
        return false;
    for (size_t i = 0; i < node->len; i++)
        if (node->items[i].kind != NODE_MAP ||
            members_read(file_members, ARRAY_LEN(file_members), &node->items[i],
                         array_add((struct step_files *)into)))
            return false;
    return true;
}

static void write_files(const void *from, struct node *out)
{
    const struct step_files *files = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < files->len; i++)
        members_write(file_members, ARRAY_LEN(file_members), &files->items[i],
                      node_add(out, NULL, NODE_MAP, NULL));
}

static const struct member_kind some_files = { "a list of files", read_files, write_files };

/* For programs: with what is known of them by the fourth line. */
static const struct member shown_file_members[] = {
    { "bytes", &member_number_or_null, offsetof(struct step_file, bytes) },
    { "how", &a_change, offsetof(struct step_file, how) },
    { "path", &member_text, offsetof(struct step_file, path) },
    { "sha256", &member_text_or_null, offsetof(struct step_file, sha256) },
};

static void show_files(const void *from, struct node *out)
{
    const struct step_files *files = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < files->len; i++) {
        struct step_file file = files->items[i];

        file.bytes = file.sha256 ? file.bytes : MEMBER_NO_NUMBER;
        members_write(shown_file_members, ARRAY_LEN(shown_file_members), &file,
                      node_add(out, NULL, NODE_MAP, NULL));
    }
}

static const struct member_kind shown_files = { "a list of files", NULL, show_files };

static const struct member hash_members[] = {
    { "bytes", &member_number, offsetof(struct step_hash, bytes) },
    { "path", &member_text, offsetof(struct step_hash, path) },
    { "sha256", &member_text, offsetof(struct step_hash, sha256) },
};

static bool read_hash_list(const struct node *node, void *into)
{
    if (node->kind != NODE_LIST || node->len > STEP_FILES_MAX)
        return false;
    for (size_t i = 0; i < node->len; i++)
        if (node->items[i].kind != NODE_MAP ||
            members_read(hash_members, ARRAY_LEN(hash_members), &node->items[i],
                         array_add((struct step_hash_list *)into)))
            return false;
    return true;
}

static void write_hash_list(const void *from, struct node *out)
{
    const struct step_hash_list *list = from;

    out->kind = NODE_LIST;
    for (size_t i = 0; i < list->len; i++)
        members_write(hash_members, ARRAY_LEN(hash_members), &list->items[i],
                      node_add(out, NULL, NODE_MAP, NULL));
}

static const struct member_kind some_hashes = { "a list of hashes", read_hash_list, write_hash_list };

static const struct member hashed_members[] = {
    { "files", &some_hashes, offsetof(struct step_hashes, files) },
    { "left_out", &member_number, offsetof(struct step_hashes, left_out) },
    { "number", &member_number, offsetof(struct step_hashes, number) },
};

#define AT(member) offsetof(struct step, member)

/* A new member is a row with `later`, and a line in docs/trace.md. */
static const struct member started_members[] = {
    { "argv", &member_list, AT(argv) },
    { "argv_left_out", &member_number, AT(argv_left_out) },
    { "cwd", &member_text_or_null, AT(cwd) },
    { "detached", &member_flag, AT(detached) },
    { "environment", &member_list, AT(environment) },
    { "environment_left_out", &member_number, AT(environment_left_out) },
    { "inside", &member_flag, AT(inside), .later = true },
    { "kind", &member_text_or_null, AT(kind), .later = true },
    { "number", &member_number, AT(number) },
    { "tty", &member_flag, AT(tty) },
    { "user", &member_text_or_null, AT(user) },
};

static const struct member ended_members[] = {
    { "exit", &member_number_or_null, AT(end.exit) },
    { "limit", &member_text_or_null, AT(end.limit) },
    { "number", &member_number, AT(number) },
    { "peak_kib", &member_number_or_null, AT(end.peak_kib) },
    { "reason", &member_text, AT(end.reason) },
    { "signal", &member_number_or_null, AT(end.signal) },
    { "stderr_bytes", &member_number, AT(end.stderr_bytes) },
    { "stderr_kept", &member_number, AT(end.stderr_kept) },
    { "stdout_bytes", &member_number, AT(end.stdout_bytes) },
    { "stdout_kept", &member_number, AT(end.stdout_kept) },
    { "system_us", &member_number_or_null, AT(end.system_us) },
    { "user_us", &member_number_or_null, AT(end.user_us) },
    { "wall_us", &member_number, AT(end.wall_us) },
};

static const struct member changed_members[] = {
    { "added", &member_number_or_null, AT(end.added) },
    { "changed", &member_number_or_null, AT(end.changed) },
    { "checkpoint", &member_text_or_null, AT(end.checkpoint) },
    { "files", &some_files, AT(end.files) },
    { "files_left_out", &member_number, AT(end.files_left_out) },
    { "no_checkpoint", &member_text_or_null, AT(end.no_checkpoint) },
    { "number", &member_number, AT(number) },
    { "removed", &member_number_or_null, AT(end.removed) },
};

int step_write_started(struct trace *trace, const struct step *step, struct error *err)
{
    autonode struct node data = NODE_NONE;

    members_write(started_members, ARRAY_LEN(started_members), step, &data);
    return trace_add(trace, STEP_STARTED, &data, err);
}

int step_write_ended(struct trace *trace, const struct step *step, struct error *err)
{
    autonode struct node data = NODE_NONE;

    members_write(ended_members, ARRAY_LEN(ended_members), step, &data);
    return trace_add(trace, STEP_ENDED, &data, err);
}

int step_write_changed(struct trace *trace, const struct step *step, struct error *err)
{
    autonode struct node data = NODE_NONE;

    step_changed_node(step, &data);
    return trace_add(trace, STEP_FILES, &data, err);
}

void step_changed_node(const struct step *step, struct node *out)
{
    members_write(changed_members, ARRAY_LEN(changed_members), step, out);
}

bool step_changed_read(const struct node *data, struct step *out)
{
    return !members_read(changed_members, ARRAY_LEN(changed_members), data, out);
}

void step_hashes_free(struct step_hashes *hashes)
{
    for (size_t i = 0; i < hashes->files.len; i++) {
        free(hashes->files.items[i].path);
        free(hashes->files.items[i].sha256);
    }
    free(hashes->files.items);
    *hashes = STEP_HASHES_NONE;
}

void step_hashes_node(const struct step_hashes *hashes, struct node *out)
{
    members_write(hashed_members, ARRAY_LEN(hashed_members), hashes, out);
}

bool step_hashes_read(const struct node *data, struct step_hashes *out)
{
    return !members_read(hashed_members, ARRAY_LEN(hashed_members), data, out);
}

int step_write_hashes(struct trace *trace, const struct step_hashes *hashes, struct error *err)
{
    autonode struct node data = NODE_NONE;

    step_hashes_node(hashes, &data);
    return trace_add(trace, STEP_HASHED, &data, err);
}

/* Instead of those of the same name, or beside them. */
static const struct member shown_members[] = {
    { "files", &shown_files, AT(end.files) },
    { "hashes_left_out", &member_number_or_null, AT(end.hashes_left_out) },
};

static void add_rows(const struct member *rows, size_t count, const struct step *step, struct node *out)
{
    for (size_t i = 0; i < count; i++)
        if (!node_get(out, rows[i].key))
            rows[i].kind->write((const char *)step + rows[i].at, node_add(out, rows[i].key, NODE_NULL, NULL));
}

static void add_date(struct node *out, const char *key, struct timespec time)
{
    char text[DATE_SIZE];

    date_write(time, text);
    node_add(out, key, NODE_STRING, text);
}

void step_node(const struct step *step, struct node *out)
{
    out->kind = NODE_MAP;
    add_rows(started_members, ARRAY_LEN(started_members), step, out);
    add_date(out, "started", step->started);
    if (step->state == STEP_IS_OVER) {
        add_rows(ended_members, ARRAY_LEN(ended_members), step, out);
        add_rows(shown_members, ARRAY_LEN(shown_members), step, out);
        add_rows(changed_members, ARRAY_LEN(changed_members), step, out);
        add_date(out, "ended", step->ended);
    }
    node_add(out, "state", NODE_STRING, state_names[step->state]);
    node_add(out, "verified", NODE_BOOL, step->verified ? "true" : "false");
}

/* --- the list --- */

void steps_free(struct steps *steps)
{
    for (size_t i = 0; i < steps->len; i++)
        step_free(&steps->items[i]);
    free(steps->items);
    *steps = STEPS_NONE;
}

static struct step *find(const struct steps *steps, uint64_t number)
{
    size_t low = 0, high = steps->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (steps->items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < steps->len && steps->items[low].number == number ? &steps->items[low] : NULL;
}

const struct step *steps_find(const struct steps *steps, uint64_t number)
{
    return find(steps, number);
}

/* Numbers rise, so what has another order was not written by a keeper. */
static bool take_started(struct steps *steps, const struct trace_line *line, bool verified)
{
    struct step step = STEP_NONE;

    if (members_read(started_members, ARRAY_LEN(started_members), &line->data, &step) ||
        (steps->len && step.number <= steps->items[steps->len - 1].number)) {
        step_free(&step);
        return false;
    }
    if (steps->len >= STEPS_MAX) {
        step_free(&step);
        steps->left_out++;
        return true;
    }
    step.started = line->time;
    step.verified = verified;
    *array_add(steps) = step;
    return true;
}

/* Reads into another one, so that a line that makes no sense leaves no trace in the step. */
static bool take_ended(struct steps *steps, const struct trace_line *line, bool verified)
{
    autostep struct step read = STEP_NONE;

    if (members_read(ended_members, ARRAY_LEN(ended_members), &line->data, &read))
        return false;

    struct step *step = find(steps, read.number);

    if (!step || step->state != STEP_IS_RUNNING)
        return !step && steps->left_out;
    step->end = read.end; /* which was empty */
    read.end = STEP_NONE.end;
    step->end.added = step->end.changed = step->end.removed = MEMBER_NO_NUMBER; /* the third line has them */
    step->state = STEP_IS_OVER;
    step->ended = line->time;
    step->verified = step->verified && verified;
    return true;
}

/* The end, which was there before, keeps what it says of the command itself. */
static bool take_changed(struct steps *steps, const struct trace_line *line, bool verified)
{
    autostep struct step read = STEP_NONE;

    if (members_read(changed_members, ARRAY_LEN(changed_members), &line->data, &read))
        return false;

    struct step *step = find(steps, read.number);

    if (!step || step->state != STEP_IS_OVER || step->looked)
        return !step && steps->left_out;
    step->looked = true;
    step->end.added = read.end.added;
    step->end.changed = read.end.changed;
    step->end.removed = read.end.removed;
    step->end.files = read.end.files;
    step->end.files_left_out = read.end.files_left_out;
    free(step->end.checkpoint);
    step->end.checkpoint = steal_ptr(&read.end.checkpoint);
    step->end.no_checkpoint = steal_ptr(&read.end.no_checkpoint);
    read.end.files = (struct step_files){ 0 };
    step->verified = step->verified && verified;
    return true;
}

/* Which files it is about is in the line before. */
static void give_hash(struct step *step, struct step_hash *hash)
{
    for (size_t i = 0; i < step->end.files.len; i++) {
        struct step_file *file = &step->end.files.items[i];

        if (file->sha256 || file->how == STEP_REMOVED || strcmp(file->path, hash->path) != 0)
            continue;
        file->sha256 = steal_ptr(&hash->sha256);
        file->bytes = hash->bytes;
        return;
    }
}

static bool take_hashed(struct steps *steps, const struct trace_line *line, bool verified)
{
    struct step_hashes read = STEP_HASHES_NONE;
    bool known = step_hashes_read(&line->data, &read);
    struct step *step = known ? find(steps, read.number) : NULL;

    if (step && step->looked && step->end.hashes_left_out == MEMBER_NO_NUMBER) {
        for (size_t i = 0; i < read.files.len; i++)
            give_hash(step, &read.files.items[i]);
        step->end.hashes_left_out = read.left_out;
        step->verified = step->verified && verified;
    } else if (known) {
        known = !step && steps->left_out;
    }
    step_hashes_free(&read);
    return known;
}

/* Until it is known what it changed, at least that it can be gone back to. */
static void take_checkpoint(struct steps *steps, const struct trace_line *line)
{
    const struct node *number = node_get(&line->data, "step"), *layer = node_get(&line->data, "layer");
    struct step *step = number && number->kind == NODE_NUMBER && layer && layer->kind == NODE_STRING
                            ? find(steps, strtoull(number->text, NULL, 10))
                            : NULL;

    if (!step || step->state != STEP_IS_OVER || step->looked || step->end.checkpoint)
        return;
    step->end.checkpoint = text_copy(layer->text);
}

static void lose(struct steps *steps)
{
    for (; steps->settled < steps->len; steps->settled++)
        if (steps->items[steps->settled].state == STEP_IS_RUNNING)
            steps->items[steps->settled].state = STEP_IS_LOST;
}

int steps_visit(void *owner, const struct trace_line *line, bool verified)
{
    struct steps *steps = owner;

    if (strcmp(line->kind, STEP_STARTED) == 0)
        steps->odd += !take_started(steps, line, verified);
    else if (strcmp(line->kind, STEP_ENDED) == 0)
        steps->odd += !take_ended(steps, line, verified);
    else if (strcmp(line->kind, STEP_FILES) == 0)
        steps->odd += !take_changed(steps, line, verified);
    else if (strcmp(line->kind, STEP_HASHED) == 0)
        steps->odd += !take_hashed(steps, line, verified);
    else if (strcmp(line->kind, STEP_CHECKPOINT) == 0)
        take_checkpoint(steps, line);
    else if (strcmp(line->kind, STEP_KEEPER) == 0 || strcmp(line->kind, TRACE_GAP) == 0)
        lose(steps);
    return 0;
}

int steps_read(int dir, bool held, struct steps *out, struct error *err)
{
    struct steps steps = STEPS_NONE;

    if (trace_read(dir, steps_visit, &steps, &steps.found, err) < 0) {
        steps_free(&steps);
        return -1;
    }
    if (!held)
        lose(&steps);
    *out = steps;
    return 0;
}
