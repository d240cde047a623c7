#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A variable marked so owns what it holds and lets go of it when its scope ends.  Give it away
 * with steal_fd() or steal_ptr(), as in: *out = steal_fd(&fd); */
#define autofree __attribute__((cleanup(own_free)))
#define autoclose __attribute__((cleanup(own_close)))
#define autoclosedir __attribute__((cleanup(own_closedir)))
#define autofile __attribute__((cleanup(own_fclose)))

static inline void own_free(void *variable)
{
    free(*(void **)variable);
}

static inline void own_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void own_closedir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static inline void own_fclose(FILE **file)
{
    if (*file)
        fclose(*file);
}

static inline int steal_fd(int *fd)
{
    int held = *fd;

    *fd = -1;
    return held;
}

static inline void *own_steal(void *variable)
{
    void *held = *(void **)variable;

    *(void **)variable = NULL;
    return held;
}

/* Typed like its argument, so that a wrong hand-over does not compile silently. */
#define steal_ptr(pointer) ((__typeof__(*(pointer)))own_steal(pointer))
