#include "git/barepaths.h"

#include "base/own.h"
#include "base/text.h"
#include "changes/classify.h"
#include "changes/plainname.h"

#include <string.h>
#include <strings.h>

enum { NAME_LENGTH_MAX = 40 }; /* of a name that some file system could take for one of those that tell */

void barepaths_free(struct barepaths *paths)
{
    map_free(&paths->directories);
    *paths = BAREPATHS_NONE;
}

/* Which of classify_telling it is, as a bit; 0: none. */
static uint64_t tells(const char *name, size_t len)
{
    struct plainname plain;

    plainname_clear(&plain);
    if (len > NAME_LENGTH_MAX || !plainname_add(&plain, name, len))
        return 0;
    for (size_t i = 0; i < CLASSIFY_TELLING; i++)
        if (strcasecmp(plain.text, classify_telling[i]) == 0)
            return 1U << i;
    return 0;
}

static bool is_bare(uint64_t bits)
{
    const char *names[CLASSIFY_TELLING];
    size_t len = 0;

    for (size_t i = 0; i < CLASSIFY_TELLING; i++)
        if (bits >> i & 1)
            names[len++] = classify_telling[i];
    return classify_bare_repository(names, len);
}

static void note(struct barepaths *paths, const char *path, size_t len, uint64_t bit)
{
    autofree char *directory = text_format("%.*s", (int)len, path);
    uint64_t bits = map_get(&paths->directories, directory);

    if (bits & bit)
        return;
    map_add(&paths->directories, directory, bit);
    paths->any = paths->any || is_bare(bits | bit);
}

/* Directories are called by what is before their slash: "" and "a", not "a/". */
void barepaths_add(struct barepaths *paths, const char *path)
{
    for (const char *name = path; *name;) {
        size_t len = strcspn(name, "/");
        uint64_t bit = tells(name, len);

        if (bit)
            note(paths, path, name == path ? 0 : (size_t)(name - path) - 1, bit);
        name += len + (name[len] == '/');
    }
}

const char *barepaths_below(const struct barepaths *paths, const char *path)
{
    autofree char *directory = paths->any ? text_copy(path) : NULL;

    while (directory) {
        char *slash = strrchr(directory, '/');

        *(slash ? slash : directory) = '\0';
        if (is_bare(map_get(&paths->directories, directory)))
            return path + strlen(directory) + (slash != NULL);
        if (!slash)
            break;
    }
    return NULL;
}
