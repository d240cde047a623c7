#include "keeper/resume.h"

#include "base/error.h"
#include "base/own.h"
#include "box/host.h"
#include "box/plan.h"
#include "keeper/keep.h"
#include "store/bottom.h"

#include <string.h>

int resume_prepare(const struct host *host, const struct record *record, const struct sandbox_dir *dir,
                   struct plan *plan, struct error *err)
{
    autoclose int layers = layers_open(host->state, err);
    struct stack_place place = {
        .layers = layers, .sandbox = dir->fd, .id = dir->id, .ids = record->shifted ? (uint32_t)record->base : 0
    };
    char top[ID_LENGTH + 1], copy[ID_LENGTH + 1];

    if (layers < 0 || keep_adopt(record, plan, err) < 0 || stack_repair(&place, err) < 0 ||
        stack_top(dir->fd, top, err) < 0 || layers_chain(layers, top, &plan->stack, err) < 0 ||
        bottom_find(layers, top, copy, err) < 0)
        return -1;
    if (strcmp(copy, top) == 0) /* nothing was frozen yet */
        strings_free(&plan->stack);
    plan->resumed = true;
    return 0;
}
