#include "keeper/entrance.h"

#include "base/error.h"
#include "box/box.h"
#include "box/host.h"
#include "box/plan.h"
#include "keeper/trust.h"
#include "store/store.h"

#include <stdbool.h>

static void leave(bool existing, struct sandbox_dir *dir, struct box *box)
{
    struct error ignored;

    box_end(box);
    if (existing)
        store_tidy(dir->fd); /* work directories serve one overlay only */
    else if (dir->fd >= 0)
        (void)store_remove(dir, &ignored);
}

static int enter_once(const struct entrance *entrance, bool existing, struct sandbox_dir *dir, struct box *box,
                      struct error *err)
{
    if (!existing && store_create(entrance->host->state, dir, err) < 0)
        return -1;
    if ((!entrance->prepare || entrance->prepare(entrance->owner, dir, err) == 0) &&
        trust_prepare(entrance->plan, dir, err) == 0 &&
        box_start(entrance->plan, entrance->host, dir->id, box, err) == 0)
        return 0;
    leave(existing, dir, box);
    return -1;
}

int entrance_enter(const struct entrance *entrance, struct sandbox_dir *dir, struct box *box, struct error *err)
{
    bool existing = dir->fd >= 0;

    if (enter_once(entrance, existing, dir, box, err) < 0)
        return -1;
    if (plan_holds(entrance->plan))
        return 0;
    leave(existing, dir, box);
    if (plan_renew(entrance->plan, entrance->host, err) < 0)
        return -1;
    return enter_once(entrance, existing, dir, box, err);
}
