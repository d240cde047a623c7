#include "cli/scorefiles.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/place.h"
#include "changes/changes.h"
#include "cli/changed.h"
#include "keeper/files.h"
#include "spec/node.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

void scorefiles_free(struct scorefiles *files)
{
    for (size_t i = 0; i < files->len; i++) {
        free(files->items[i].source);
        free(files->items[i].path);
    }
    free(files->items);
    free(files->workspace);
    *files = SCOREFILES_NONE;
}

/* --- what was named --- */

static int add(struct scorefiles *files, const char *word, const char *inside, char *source_take,
               struct error *err)
{
    const char *workspace = files->workspace;

    if (!path_within(inside, workspace) || strcmp(inside, workspace) == 0) {
        free(source_take);
        return error_set(err, ERROR_INVALID, "--score-files %.200s: must lie in the workspace %.200s", word,
                         workspace);
    }
    *array_add(files) = (struct scorefile){ source_take, text_copy(inside + strlen(workspace) + 1) };
    return 0;
}

static int check_kind(const char *word, const struct place *place, struct error *err)
{
    if (S_ISREG(place->stat.st_mode) || S_ISDIR(place->stat.st_mode))
        return 0;
    return error_set(err, ERROR_INVALID, "--score-files %.200s: is neither a file nor a directory", word);
}

static int add_path(struct scorefiles *files, const char *word, const char *path, struct error *err)
{
    autoplace struct place place = PLACE_NONE;

    if (place_open(AT_FDCWD, path, &place) < 0) {
        error_sys(err, "--score-files %.100s", word);
        return error_hint(err, "of what must not be there in the fork either: --score-files :%.100s", word);
    }
    if (strcmp(place.path, path) != 0) {
        error_set(err, ERROR_REFUSED, "--score-files %.200s: a link leads elsewhere from there", word);
        return error_hint(err, "name both ends: SRC:DST");
    }
    if (check_kind(word, &place, err) < 0)
        return -1;
    return add(files, word, path, text_copy(path), err);
}

/* :DST, nothing at all. */
static int add_nothing(struct scorefiles *files, const char *word, struct error *err)
{
    autofree char *target = changed_normal_path(files->workspace, word + 1);

    return add(files, word, target, NULL, err);
}

static int add_pair(struct scorefiles *files, const char *word, const char *cwd, struct error *err)
{
    const char *colon = strrchr(word, ':');
    autofree char *from = text_format("%.*s", (int)(colon - word), word);
    autofree char *source = changed_normal_path(cwd, from),
                  *target = changed_normal_path(files->workspace, colon + 1);
    autoplace struct place place = PLACE_NONE;

    if (place_open(AT_FDCWD, source, &place) < 0)
        return error_sys(err, "--score-files %.200s", word);
    if (check_kind(word, &place, err) < 0)
        return -1;
    return add(files, word, target, text_copy(place.path), err);
}

int scorefiles_read(const struct strings *words, const char *workspace, struct scorefiles *out,
                    struct error *err)
{
    autohost struct host host = { 0 };

    if (host_read(&host, err) < 0)
        return -1;
    out->workspace = text_copy(workspace);
    for (size_t i = 0; i < words->len; i++) {
        const char *word = words->items[i];
        autofree char *path = changed_normal_path(host.cwd, word);
        struct stat status;
        bool pair = strchr(word, ':') && lstat(path, &status) < 0;

        if ((*word == ':' ? add_nothing(out, word, err)
             : pair       ? add_pair(out, word, host.cwd, err)
                          : add_path(out, word, path, err)) < 0)
            return -1;
    }
    return 0;
}

/* --- what the try made of them --- */

static bool concerns(const struct scorefile *file, const struct change *change, const char *path)
{
    if (path_within(path, file->path))
        return true;
    return path_within(file->path, path) && change->new.type != SIDE_DIRECTORY;
}

void scorefiles_tampered(const struct scorefiles *files, const struct changes *changes, struct strings *out)
{
    for (size_t i = 0; i < changes->len; i++) {
        const struct change *change = &changes->items[i];
        bool theirs = false;

        for (size_t j = 0; j < files->len && !theirs; j++)
            theirs = concerns(&files->items[j], change, change->path) ||
                     (change->from && concerns(&files->items[j], change, change->from));
        if (theirs)
            strings_add(out, change->path);
    }
}

/* --- putting it right --- */

/* 1: the way ends before. */
static int clear_way(struct files *session, char *path, size_t from, struct error *err)
{
    for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct files_info info;
        int found;

        *slash = '\0';
        found = files_stat(session, path, false, &info, err);
        if (found == 0 && !S_ISDIR(info.mode))
            found = files_remove(session, path, false, err) < 0 ? -1 : 1;
        else if (found < 0 && err->sys_errno == ENOENT)
            found = 1;
        *slash = '/';
        if (found)
            return found;
    }
    return 0;
}

/* Nothing runs beside it, so what was looked at stays what it was. */
int scorefiles_clear(const struct scorefiles *files, struct files *session, struct error *err)
{
    for (size_t i = 0; i < files->len; i++) {
        autofree char *path = text_format("%s/%s", files->workspace, files->items[i].path);
        int way = clear_way(session, path, strlen(files->workspace) + 1, err);

        if (way == 0 && files_remove(session, path, true, err) < 0)
            way = err->sys_errno == ENOENT ? 0 : -1;
        if (way < 0)
            return error_while(err, "remove what the try left at %.200s", files->items[i].path);
    }
    return 0;
}

/* What judges a try must not ask anybody outside, nor be told by them. */
static void drop_network(struct node *root)
{
    struct node *network = node_get(root, "network");

    if (!network)
        network = node_add(root, "network", NODE_MAP, NULL);
    for (size_t i = 0; i < network->len; i++)
        node_free(&network->items[i]);
    network->len = 0;
    node_add(network, "mode", NODE_STRING, "none");
}

char *scorefiles_spec(const struct scorefiles *files, const char *spec, struct strings *readonly,
                      struct error *err)
{
    autonode struct node root = NODE_NONE;
    struct text out = TEXT_NONE;

    if (node_read_json(spec, strlen(spec), "spec.json", &root, err) < 0)
        return NULL;

    struct node *volumes = root.kind == NODE_MAP ? node_get(&root, "volumes") : NULL;

    if (!volumes || volumes->kind != NODE_LIST) {
        error_set(err, ERROR_INVALID, "spec.json: there are no volumes in it");
        return NULL;
    }
    drop_network(&root);
    volumes = node_get(&root, "volumes");
    for (size_t i = 0; i < files->len; i++) {
        autofree char *target = text_format("%s/%s", files->workspace, files->items[i].path);
        struct node *volume;

        if (!files->items[i].source)
            continue;
        volume = node_add(volumes, NULL, NODE_MAP, NULL);
        node_add(volume, "source", NODE_STRING, files->items[i].source);
        node_add(volume, "target", NODE_STRING, target);
        node_add(volume, "mode", NODE_STRING, "ro");
        strings_add(readonly, target);
    }
    node_write_json(&root, &out);
    return text_steal(&out);
}
