#include "keeper/repolicy.h"

#include "base/error.h"
#include "base/file.h"
#include "base/own.h"
#include "base/text.h"
#include "gateway/brief.h"
#include "gateway/rules.h"
#include "keeper/keep.h"
#include "keeper/stay.h"
#include "keeper/stay_inner.h"
#include "spec/fields.h"
#include "spec/node.h"
#include "spec/rule_forms.h"

#include <inttypes.h>
#include <stdlib.h>

static void add_bound(struct node *map, const char *key, uint64_t most)
{
    autofree char *text = text_format("%" PRIu64, most);

    if (most)
        node_add(map, key, NODE_NUMBER, text);
}

/* Besides rules: what bounds them all, and by whom they are reached, without the login. */
static void add_others(const struct rules *rules, struct node *data)
{
    const struct amounts *budget = &rules->budget;
    autofree char *proxy = text_format("%s port %u", rules->proxy.host.text, rules->proxy.port);

    if (budget->bytes || budget->requests || budget->connections) {
        struct node *map = node_add(data, "budget", NODE_MAP, NULL);

        add_bound(map, "bytes", budget->bytes);
        add_bound(map, "requests", budget->requests);
        add_bound(map, "connections", budget->connections);
    }
    if (*rules->proxy.host.text)
        node_add(data, "proxy", NODE_STRING, proxy);
}

static int write_down(struct keeper *keeper, const struct rules *rules, struct error *err)
{
    autonode struct node data = { .kind = NODE_MAP };
    struct node *list;

    node_add(&data, "mode", NODE_STRING, fields[FIELD_NETWORK].choices[rules->mode]);
    list = node_add(&data, "rules", NODE_LIST, NULL);
    for (size_t i = 0; i < rules->list.len; i++) {
        autotext struct text shown = TEXT_NONE;

        rule_show(&rules->list.items[i], &shown);
        node_add(list, NULL, NODE_STRING, text_string(&shown));
    }
    add_others(rules, &data);
    return trace_add(&keeper->trace, "policy", &data, err);
}

static int replace_spec(const struct keeper *keeper, const char *spec, struct error *err)
{
    const struct stay *stay = keeper->stay;
    autorecord struct record written = RECORD_NONE;

    if (keep_replace_spec(stay->dir->fd, stay->dir->id, spec, err) < 0 ||
        record_read(stay->dir->fd, stay->dir->id, &written, err) < 0)
        return -1;
    free(stay->record->spec_hash);
    stay->record->spec_hash = steal_ptr(&written.spec_hash);
    return 0;
}

int repolicy(struct keeper *keeper, int brief, int spec, struct error *err)
{
    enum { SPEC_MAX = 1 << 20 };
    autofree char *told = file_rest(brief, BRIEF_MAX), *json = file_rest(spec, SPEC_MAX);
    autorules struct rules rules = RULES_NONE;
    struct brief heard = { 0 };

    if (!keeper->outlet.loop)
        return error_set(err, ERROR_REFUSED, "this sandbox has no network that rules could be for");
    if (!told || !json)
        return error_set(err, ERROR_INVALID, "the rules cannot be read");
    int read = brief_read(told, &heard, &rules, err);

    free(heard.bytes);
    if (read < 0 || write_down(keeper, &rules, err) < 0 || replace_spec(keeper, json, err) < 0)
        return -1;
    outlet_change(&keeper->outlet, &rules);
    return 0;
}
