#include "cli/view.h"

#include "base/own.h"
#include "base/text.h"
#include "spec/node.h"
#include "store/layer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void view_read(const struct kept_list *list, const struct kept *kept, bool with_space, struct view *out)
{
    struct error ignored;
    autoclose int dir = kept_open(list, kept, &ignored);

    *out = (struct view){ 0 };
    if (dir < 0)
        return;
    out->changed = kept->state == KEPT_BROKEN || kept_is_changed(dir, &kept->record);
    out->space = with_space ? layer_space(dir) : 0;
}

void view_services(const struct kept *kept, struct strings *out)
{
    const struct strings *services = &kept->record.services;

    for (size_t i = 0; i < services->len; i++) {
        size_t name = strcspn(services->items[i], "=");

        if (kept_is_alive(kept) || text_starts(services->items[i] + name, "=ended"))
            strings_add(out, services->items[i]);
        else
            strings_take(out, text_format("%.*s=stopped", (int)name, services->items[i]));
    }
}

void view_state(const struct kept *kept, struct text *out)
{
    const struct strings *services = &kept->record.services;

    text_add(out, kept_state_name(kept->state));
    for (size_t i = 0; i < services->len && kept_is_alive(kept); i++) {
        size_t name = strcspn(services->items[i], "=");
        const char *state = services->items[i] + name + 1;

        if (strcmp(state, "ready") != 0)
            text_addf(out, ", %.*s %s", (int)name, services->items[i], state);
    }
}

static void set_services(const struct kept *kept, struct node *out)
{
    autostrings struct strings services = STRINGS_NONE;
    const struct node *map = node_get(out, "services");

    view_services(kept, &services);
    for (size_t i = 0; i < services.len; i++) {
        size_t name = strcspn(services.items[i], "=");
        autofree char *key = text_format("%.*s", (int)name, services.items[i]);
        struct node *said = node_get(map, key);

        free(said->text);
        said->text = text_copy(services.items[i] + name + 1);
    }
}

void view_node(const struct kept *kept, const struct view *view, struct node *out)
{
    const char *state = kept_state_name(kept->state);

    if (kept->state == KEPT_BROKEN) {
        out->kind = NODE_MAP;
        node_add(out, "id", NODE_STRING, kept->id);
        node_add(out, "state", NODE_STRING, state);
        node_add(out, "error", NODE_STRING, kept->problem.text);
        return;
    }
    record_node(&kept->record, out);

    struct node *said = node_get(out, "state");

    free(said->text);
    said->text = text_copy(state);
    set_services(kept, out);
    node_add(out, "changed", NODE_BOOL, view->changed ? "true" : "false");
}

void view_words(const struct strings *argv, size_t most, struct text *out)
{
    autotext struct text line = TEXT_NONE;

    for (size_t i = 0; i < argv->len && line.len <= most; i++) {
        text_add(&line, i ? " " : "");
        text_add_shell_word(&line, argv->items[i]);
    }
    if (line.len <= most) {
        text_add(out, text_string(&line));
        return;
    }
    while (most && (line.data[most] & 0xc0) == 0x80)
        most--; /* not in the middle of a letter */
    text_add_bytes(out, line.data, most);
    text_add(out, "...");
}

void view_command(const struct record *record, size_t most, struct text *out)
{
    view_words(&record->argv, most, out);
}

const char *view_changes(const struct kept *kept, const struct view *view)
{
    if (kept->state == KEPT_BROKEN)
        return "?";
    if (!view->changed)
        return "no";
    return kept->record.applied.tv_sec ? "applied" : "yes";
}

void view_age(struct timespec since, struct text *out)
{
    static const struct {
        time_t seconds;
        char unit;
    } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    time_t age = time(NULL) - since.tv_sec;

    if (!since.tv_sec)
        return;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (age >= units[i].seconds) {
            text_addf(out, "%lld%c", (long long)(age / units[i].seconds), units[i].unit);
            return;
        }
    text_add(out, "0s");
}

void view_took(uint64_t us, struct text *out)
{
    uint64_t seconds = us / 1000000;

    if (us < 1000)
        text_addf(out, "%" PRIu64 "us", us);
    else if (us < 1000000)
        text_addf(out, "%" PRIu64 ".%" PRIu64 "ms", us / 1000, us / 100 % 10);
    else if (seconds < 60)
        text_addf(out, "%" PRIu64 ".%" PRIu64 "s", seconds, us / 100000 % 10);
    else if (seconds < 3600)
        text_addf(out, "%" PRIu64 "m%02" PRIu64 "s", seconds / 60, seconds % 60);
    else
        text_addf(out, "%" PRIu64 "h%02" PRIu64 "m", seconds / 3600, seconds / 60 % 60);
}

void view_space(uint64_t bytes, struct text *out)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    uint64_t tenths = bytes * 10 / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        text_addf(out, "%" PRIu64 " B", bytes);
        return;
    }
    for (; tenths >= 10240 && unit + 1 < ARRAY_LEN(units); unit++)
        tenths /= 1024;
    text_addf(out, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]);
}
