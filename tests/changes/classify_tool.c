/* classify-tool PATH OLD NEW: the verdict on a change of PATH from the file OLD to the file NEW, as
 * one line of class, reason and part with tabs between them.  "-" stands for no file.  With
 * --lines, takes such triples from standard input, tabs between them.  For tests/changes/measure. */

#include "base/own.h"
#include "base/text.h"
#include "changes/classify.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CONTENT_MAX = 4 << 20 };

static void read_content(const char *file, struct text *out)
{
    autoclose int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char buffer[16384];

    for (ssize_t got; fd >= 0 && out->len <= CONTENT_MAX && (got = read(fd, buffer, sizeof buffer)) > 0;)
        text_add_bytes(out, buffer, (size_t)got);
}

static struct classify_side read_side(const char *file, struct text *content)
{
    char target[PATH_MAX];
    struct stat stat;

    text_clear(content);
    text_add(content, "");
    if (strcmp(file, "-") == 0 || lstat(file, &stat) < 0)
        return (struct classify_side){ 0 };
    if (S_ISREG(stat.st_mode))
        read_content(file, content);

    ssize_t got = S_ISLNK(stat.st_mode) ? readlink(file, target, sizeof target) : 0;

    if (got > 0)
        text_add_bytes(content, target, (size_t)got);
    return (struct classify_side){
        .mode = stat.st_mode, .bytes = content->data, .len = content->len, .cut = content->len > CONTENT_MAX
    };
}

static void judge(const char *path, const char *old, const char *new)
{
    autotext struct text before = TEXT_NONE, after = TEXT_NONE;
    struct classify_input in = {
        .path = path, .path_len = strlen(path), .old = read_side(old, &before), .new = read_side(new, &after)
    };
    struct classify_verdict verdict;

    classify(&in, &verdict);
    printf("%s\t%s\t%s\n", classify_name(verdict.class), verdict.reason, verdict.part);
}

static int judge_lines(void)
{
    autofree char *line = NULL;
    size_t size = 0;

    for (ssize_t len; (len = getline(&line, &size, stdin)) > 0;) {
        line[strcspn(line, "\n")] = '\0';

        char *rest = line;
        const char *path = strsep(&rest, "\t"), *old = strsep(&rest, "\t"), *new = strsep(&rest, "\t");

        if (!new)
            return 2;
        judge(path, old, new);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--lines") == 0)
        return judge_lines();
    if (argc != 4) {
        fprintf(stderr, "usage: classify-tool PATH OLD NEW\n");
        return 2;
    }
    judge(argv[1], argv[2], argv[3]);
    return 0;
}
