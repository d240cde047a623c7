#pragma once

#include <stdint.h>
#include <time.h>

/* Microseconds of CLOCK_MONOTONIC: for durations, never for dates. */
static inline uint64_t clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The processor time of this process, in microseconds: what a thing costs, however busy the machine is. */
static inline uint64_t clock_spent_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}
