#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void chk(const char *step, long result)
{
    printf("CHK %s %d\n", step, result < 0 ? errno : 0);
    fflush(stdout);
}

void chkf(long result, const char *format, ...)
{
    int error = errno;
    char step[600];
    va_list args;

    va_start(args, format);
    vsnprintf(step, sizeof step, format, args);
    va_end(args);
    errno = error;
    chk(step, result);
}

void say(const char *key, const char *format, ...)
{
    va_list args;

    printf("SAY %s ", key);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

long call3(long number, long a, long b, long c)
{
    return syscall(number, a, b, c, 0L, 0L, 0L);
}

void say_file(const char *key, const char *path)
{
    FILE *file = fopen(path, "re");
    char line[8192];

    if (!file) {
        say(key, "errno %d", errno);
        return;
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        say(key, "%s", line);
    }
    fclose(file);
}

const char *role_of(int pid)
{
    static char role[64];

    snprintf(role, sizeof role, "%d", pid);
    return pid == 1 ? "init" : role;
}

void for_each_pid(void (*each)(int pid))
{
    DIR *proc = opendir("/proc");

    for (struct dirent *entry; proc && (entry = readdir(proc));)
        if (isdigit((unsigned char)entry->d_name[0]))
            each(atoi(entry->d_name));
    if (proc)
        closedir(proc);
}

int main(int argc, char **argv)
{
    static const struct attack *const groups[] = { ns_attacks,  proc_attacks, fs_attacks, sys_attacks,
                                                   ipc_attacks, fd_attacks,   res_attacks };

    for (size_t g = 0; argc > 1 && g < sizeof groups / sizeof *groups; g++)
        for (const struct attack *attack = groups[g]; attack->name; attack++)
            if (strcmp(attack->name, argv[1]) == 0)
                return attack->run(argc - 2, argv + 2);
    fprintf(stderr, "probe: no attack of that name\n");
    return 2;
}
