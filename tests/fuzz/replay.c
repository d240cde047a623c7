/* Gives every file of the directories named on the command line to one fuzz target: what once
 * broke a parser is tried again with every test run, without a fuzzer. */

#include "base/own.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(int dir, const char *name)
{
    autotext struct text bytes = TEXT_NONE;
    autoclose int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    char buffer[4096];
    ssize_t got = -1;

    while (fd >= 0 && (got = read(fd, buffer, sizeof buffer)) > 0)
        text_add_bytes(&bytes, buffer, (size_t)got);
    if (got < 0) {
        perror(name);
        return -1;
    }

    /* A copy without the NUL behind it, so that a read past the end is seen by the sanitizers. */
    autofree uint8_t *exact = malloc(bytes.len ? bytes.len : 1);

    if (!exact)
        return -1;
    if (bytes.len)
        memcpy(exact, bytes.data, bytes.len);
    LLVMFuzzerTestOneInput(exact, bytes.len);
    return 0;
}

static int replay(const char *path)
{
    autoclosedir DIR *dir = opendir(path);
    unsigned files = 0;

    if (!dir) {
        perror(path);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        if (replay_file(dirfd(dir), entry->d_name) < 0)
            return 1;
        files++;
    }
    printf("%u files of %s\n", files, path);
    return files ? 0 : 1;
}

int main(int argc, char **argv)
{
    int result = argc < 2;

    for (int i = 1; i < argc; i++)
        result |= replay(argv[i]);
    return result;
}
