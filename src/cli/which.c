#include "cli/which.h"

#include "base/error.h"
#include "base/text.h"
#include "box/tree.h"
#include "box/workspace.h"
#include "cli/say.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int which_read(struct which *which, struct error *err)
{
    if (host_read(&which->host, err) < 0)
        return -1;
    return kept_read(which->host.state, &which->all, err);
}

int which_read_for(struct which *which, const char *word, struct error *err)
{
    if (host_read(&which->host, err) < 0)
        return -1;
    return word && kept_read_one(which->host.state, word, &which->all)
               ? 0
               : kept_read(which->host.state, &which->all, err);
}

void which_free(struct which *which)
{
    kept_free(&which->all);
    host_free(&which->host);
    *which = WHICH_NONE;
}

/* As `cove run` finds it, without any policy: that has no say in where a work tree begins. */
char *which_work_tree(const struct which *which, struct error *err)
{
    static char here[] = ".";
    struct spec spec = { .directory = here };
    struct workspace workspace = { 0 };
    struct trees trees = TREES_NONE;
    char *root = NULL;

    if (workspace_find(&spec, &which->host, &workspace, &trees, err) == 0)
        root = text_copy(workspace.root);
    workspace_free(&workspace);
    trees_free(&trees);
    return root;
}

const struct kept *which_sandbox(const struct which *which, const char *word, struct error *err)
{
    if (word) {
        const struct kept *named = kept_find(&which->all, word, err);

        if (!named && strchr(word, '@'))
            error_hint(err, "ID@STEP is for cove attach, diff, explore, fork, logs and rollback");
        return named;
    }

    char *root = which_work_tree(which, err);
    struct stat status = { 0 };
    const struct kept *found =
        root && stat(root, &status) == 0 ? kept_newest_of(&which->all, root, &status) : NULL;

    if (!root)
        error_hint(err, "or name a sandbox; `cove ls` lists them");
    else if (!found)
        error_set(err, ERROR_MISSING, "no sandbox of %.300s is kept; `cove ls` lists those of other work trees",
                  root);
    free(root);
    return found;
}

int which_each(const struct strings *words, const char *command,
               int (*act)(const char *word, const void *owner, struct error *err), const void *owner,
               struct error *err)
{
    int worst = 0;

    if (!words->len) {
        error_set(err, ERROR_INVALID, "`cove %s` needs a sandbox: cove %s ID...", command, command);
        return error_hint(err, "`cove ls` lists them");
    }
    for (size_t i = 0; i < words->len; i++) {
        int code = act(words->items[i], owner, err) < 0 ? say_error(err) : 0;

        worst = code > worst ? code : worst;
    }
    return worst;
}
