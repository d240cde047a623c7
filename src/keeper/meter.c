/* How often to look.  With nothing to keep, rarely and ever more so: a peak is a nicety.  Memory is looked
 * at the more often the less of it is left, because a program can fill some gigabytes in a second.
 *
 * Disk.  Walking a layer costs as much as it has files, so it is done only when the file system has lost
 * as much room as would matter, whoever took it, or a long time has passed. */

#include "keeper/meter.h"

#include "base/clock.h"
#include "box/box.h"
#include "keeper/result.h"
#include "limits/cgroup.h"
#include "limits/disk.h"
#include "limits/processes.h"

enum {
    USUAL_US = 100000,      /* between two looks that matter */
    SHORT_US = 10000,       /* when memory is nearly full */
    LONG_US = 10000000,     /* at the most, when nothing depends on it */
    BYTES_PER_US = 4000,    /* how fast memory can be filled */
    WALK_ANYWAY_US = 500000 /* between two walks: others may have made room on the disk meanwhile */
};

static uint64_t most(const struct meter *meter, enum limit_id limit)
{
    const struct limit_choice *choice = &meter->limits->items[limit];

    return choice->way == WAY_SAMPLED ? choice->max : 0;
}

static void raise_to(uint64_t *peak, uint64_t now)
{
    *peak = now > *peak ? now : *peak;
}

static bool looks_at_disk(const struct meter *meter)
{
    return meter->layers >= 0 && (most(meter, LIMIT_DISK) || most(meter, LIMIT_INODES));
}

static void note_free(struct meter *meter)
{
    (void)disk_look(meter->layers, &meter->free);
}

void meter_begin(struct meter *meter, const struct limits *limits, const struct box *box, int layers)
{
    *meter = (struct meter){
        .limits = limits, .cgroup = &box->cgroup, .init = box->pid, .layers = layers, .began = clock_us()
    };
    meter->at = meter->began + USUAL_US;
    if (!looks_at_disk(meter))
        return;
    note_free(meter);
    meter->first = meter->free;
    meter->walk_anyway = meter->began + USUAL_US;
}

bool meter_keeps(const struct meter *meter)
{
    return looks_at_disk(meter) || most(meter, LIMIT_MEMORY);
}

void meter_add_frozen(struct meter *meter, int layer)
{
    struct disk walked = { 0 };

    if (!looks_at_disk(meter))
        return;
    disk_walk(layer, most(meter, LIMIT_DISK), most(meter, LIMIT_INODES), &walked);
    if (!walked.whole)
        disk_walk_inside(layer, meter->init, most(meter, LIMIT_DISK), most(meter, LIMIT_INODES), &walked);
    meter->frozen_bytes += walked.bytes;
    meter->frozen_files += walked.files;
}

void meter_add_copied(struct meter *meter, uint64_t bytes, uint64_t files)
{
    meter->frozen_bytes += bytes;
    meter->frozen_files += files;
}

int meter_patience(const struct meter *meter)
{
    uint64_t now = clock_us();

    return now >= meter->at ? 0 : (int)((meter->at - now) / 1000 + 1);
}

/* --- disk --- */

static uint64_t lost(uint64_t before, uint64_t now)
{
    return before > now ? before - now : 0;
}

static bool is_above(uint64_t value, uint64_t max)
{
    return max && value > max;
}

/* No walk can see files without a name, and it is not given the time for too many.  Where neither it nor the
 * descriptors tell all, what the disk has lost counts, whoever took it. */
static bool hides_bytes(const struct meter *meter, const struct disk *walked, uint64_t max)
{
    struct unlinked unlinked;

    if (!max)
        return false;
    processes_unlinked(meter->init, &unlinked);
    if (walked->bytes + unlinked.disk > max)
        return true;
    return lost(meter->first.bytes, meter->free.bytes) > max &&
           (!walked->whole || processes_hide_files(meter->init));
}

static bool hides_files(const struct meter *meter, const struct disk *walked, uint64_t max)
{
    return !walked->whole && is_above(lost(meter->first.files, meter->free.files), max);
}

static unsigned walk(struct meter *meter, uint64_t now)
{
    uint64_t bytes = most(meter, LIMIT_DISK), files = most(meter, LIMIT_INODES), took;
    struct disk walked = { 0 };

    note_free(meter);
    disk_walk(meter->layers, bytes, files, &walked);
    if (!walked.whole)
        disk_walk_inside(meter->layers, meter->init, bytes, files, &walked);
    walked.bytes += meter->frozen_bytes;
    walked.files += meter->frozen_files;
    took = clock_us() - now;
    meter->walk_again = now + 4 * took;
    meter->walk_anyway = now + (20 * took > WALK_ANYWAY_US ? 20 * took : WALK_ANYWAY_US);
    meter->used_bytes = walked.bytes;
    meter->used_files = walked.files;
    if (is_above(walked.files, files) || hides_files(meter, &walked, files))
        return LIMIT_INODES;
    return is_above(walked.bytes, bytes) || hides_bytes(meter, &walked, bytes) ? LIMIT_DISK : METER_NONE;
}

/* Whether the disk has lost so much since the last walk that it may have been us. */
static bool is_suspect(const struct meter *meter)
{
    struct disk_free room;

    return disk_look(meter->layers, &room) &&
           (is_above(meter->used_bytes + lost(meter->free.bytes, room.bytes), most(meter, LIMIT_DISK)) ||
            is_above(meter->used_files + lost(meter->free.files, room.files), most(meter, LIMIT_INODES)));
}

static unsigned look_at_disk(struct meter *meter, uint64_t now)
{
    if (!looks_at_disk(meter) || now < meter->walk_again)
        return METER_NONE;
    return is_suspect(meter) || now >= meter->walk_anyway ? walk(meter, now) : METER_NONE;
}

/* Others may have freed as much as we took, so that the disk seems to have lost nothing: that alone acquits
 * nobody. */
unsigned meter_look_at_disk(struct meter *meter)
{
    uint64_t now = clock_us();

    if (!looks_at_disk(meter) || (now < meter->walk_again && !is_suspect(meter)))
        return METER_NONE;
    return walk(meter, now);
}

/* --- processes --- */

static bool counts_processes(const struct meter *meter)
{
    return meter->cgroup->have >> CONTROLLER_PIDS & 1;
}

static bool counts_memory(const struct meter *meter)
{
    return meter->cgroup->have >> CONTROLLER_MEMORY & 1;
}

/* To ask for every descriptor costs more than the rest, so it is done less often. */
static uint64_t memory_in_files(struct meter *meter)
{
    uint64_t now = clock_us();
    struct unlinked unlinked;

    if (!most(meter, LIMIT_MEMORY) || now < meter->memory_files_at)
        return meter->memory_files;
    processes_unlinked(meter->init, &unlinked);
    meter->memory_files_at = clock_us() + USUAL_US;
    return meter->memory_files = unlinked.memory;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Pages that several have, as after a fork, count for each at first: only if that makes a difference is it
 * worth to know.  Those of a file without a name may be mapped or not, so the larger of the two is taken. */
static uint64_t memory_of(struct meter *meter, const struct processes *now, uint64_t max)
{
    uint64_t files = memory_in_files(meter), used = now->anonymous + larger(now->shared, files);
    struct processes exact;

    if (!is_above(used, max))
        return used;
    processes_look_closer(meter->init, &exact);
    return exact.anonymous + larger(exact.shared, files);
}

static unsigned look_at_processes(struct meter *meter)
{
    uint64_t max = most(meter, LIMIT_MEMORY), used;
    struct processes now;

    if (counts_processes(meter) && counts_memory(meter))
        return METER_NONE;
    processes_look(meter->init, &now);
    raise_to(&meter->processes_peak, now.count);
    used = memory_of(meter, &now, max);
    raise_to(&meter->memory_peak, used);
    return is_above(used, max) ? LIMIT_MEMORY : METER_NONE;
}

bool meter_killed(const struct meter *meter)
{
    struct cgroup_counts counts = { 0 };

    if (meter->cgroup && counts_memory(meter))
        cgroup_read(meter->cgroup, &counts);
    return counts.killed_for_memory > 0;
}

static bool has_work(const struct meter *meter)
{
    return looks_at_disk(meter) || most(meter, LIMIT_MEMORY) || counts_memory(meter);
}

static uint64_t next_look(const struct meter *meter, uint64_t now)
{
    uint64_t max = most(meter, LIMIT_MEMORY), pause = (now - meter->began) / 8;

    if (!has_work(meter))
        return now + (pause < USUAL_US ? USUAL_US : pause > LONG_US ? LONG_US : pause);
    pause = max ? (max - (meter->memory_peak < max ? meter->memory_peak : max)) / BYTES_PER_US : USUAL_US;
    return now + (pause < SHORT_US ? SHORT_US : pause > USUAL_US ? USUAL_US : pause);
}

unsigned meter_look(struct meter *meter)
{
    uint64_t now = clock_us();
    unsigned passed;

    if (now < meter->at)
        return METER_NONE;
    passed = meter_killed(meter) ? LIMIT_MEMORY : look_at_processes(meter);
    if (passed == METER_NONE)
        passed = look_at_disk(meter, now);
    meter->at = next_look(meter, clock_us());
    return passed;
}

/* --- the end --- */

unsigned meter_last_look(struct meter *meter)
{
    return looks_at_disk(meter) ? walk(meter, clock_us()) : METER_NONE;
}

static void take(uint64_t *value, const char **from, uint64_t counted, const char *by)
{
    if (!counted)
        return;
    *value = counted;
    *from = by;
}

void meter_end(const struct meter *meter, struct result *result)
{
    const char *by = limit_way_name(meter->cgroup->kind == CGROUP_V1 ? WAY_CGROUP1 : WAY_CGROUP2);
    struct cgroup_counts counts = { 0 };
    struct usage *usage = &result->usage;

    cgroup_read(meter->cgroup, &counts);
    if (meter->memory_peak / 1024 > usage->peak_kib)
        take(&usage->peak_kib, &usage->memory_from, meter->memory_peak / 1024, limit_way_name(WAY_SAMPLED));
    take(&usage->peak_kib, &usage->memory_from, counts.memory_peak / 1024, by);
    take(&usage->processes, &usage->processes_from, meter->processes_peak, limit_way_name(WAY_SAMPLED));
    if (counts.processes_peak > 1) /* without PID 1 */
        take(&usage->processes, &usage->processes_from, counts.processes_peak - 1, by);
    if (counts.user_us + counts.system_us) {
        usage->user_us = counts.user_us;
        take(&usage->system_us, &usage->cpu_from, counts.system_us, by);
    }
    result->reached |= (counts.killed_for_memory ? 1U << LIMIT_MEMORY : 0U) |
                       (counts.refused_forks ? 1U << LIMIT_PROCESSES : 0U) |
                       (counts.throttled ? 1U << LIMIT_CPUS : 0U);
}
