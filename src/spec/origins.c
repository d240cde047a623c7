#include "spec/read.h"

#include "base/text.h"
#include "spec/node.h"
#include "spec/values.h"

#include <stdlib.h>

static const char *const layer_names[] = {
    [LAYER_ADMIN] = "administrator", [LAYER_OWNER] = "owner", [LAYER_REPOSITORY] = "repository"
};

static const struct {
    const char *name, *sentence;
} effects[] = {
    [ORIGIN_HOLDS] = { "holds", "" },
    [ORIGIN_CUT] = { "cut", ", cut to what the administrator allows" },
    [ORIGIN_CEILING] = { "ceiling", " at most" },
    [ORIGIN_NARROWS] = { "narrows", ", which narrows it" },
    [ORIGIN_NOTHING] = { "nothing", ", without effect: it may only narrow" },
};

void spec_origins_free(struct spec_origins *origins)
{
    for (size_t i = 0; i < origins->len; i++) {
        free(origins->items[i].place);
        free(origins->items[i].value);
    }
    free(origins->items);
    free(origins->home);
    strings_free(&origins->notes);
    *origins = SPEC_ORIGINS_NONE;
}

void spec_origins_show(const struct spec_origins *origins, const struct spec *spec, struct text *out)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (!(fields[i].places & PLACE_OWNER))
            continue;
        if (i != FIELD_IMAGES) {
            text_addf(out, "%s: ", fields[i].key);
            value_show(&fields[i], spec, out);
            text_add(out, "\n");
        } else {
            text_addf(out, "%s:\n", fields[i].key);
        }
        for (size_t j = 0; j < origins->len; j++) {
            const struct origin *origin = &origins->items[j];

            if (origin->field == i)
                text_addf(out, "  # %s: %s (%s%s)\n", origin->place, origin->value, layer_names[origin->layer],
                          effects[origin->effect].sentence);
        }
    }
    for (size_t i = 0; i < origins->notes.len; i++)
        text_addf(out, "# %s\n", origins->notes.items[i]);
}

void spec_origins_json(const struct spec_origins *origins, const struct spec *spec, struct text *out)
{
    autonode struct node root = { .kind = NODE_MAP };
    struct node *policy = node_add(&root, "policy", NODE_MAP, NULL);

    for (size_t i = 0; i < FIELD_COUNT; i++)
        if ((fields[i].places & PLACE_OWNER) && i != FIELD_IMAGES)
            value_write(&fields[i], spec, node_make(policy, fields[i].key));

    struct node *said = node_add(&root, "said", NODE_LIST, NULL);

    for (size_t i = 0; i < origins->len; i++) {
        const struct origin *origin = &origins->items[i];
        struct node *entry = node_add(said, NULL, NODE_MAP, NULL);

        node_add(entry, "key", NODE_STRING, fields[origin->field].key);
        node_add(entry, "layer", NODE_STRING, layer_names[origin->layer]);
        node_add(entry, "place", NODE_STRING, origin->place);
        node_add(entry, "value", NODE_STRING, origin->value);
        node_add(entry, "effect", NODE_STRING, effects[origin->effect].name);
    }

    struct node *notes = node_add(&root, "notes", NODE_LIST, NULL);

    for (size_t i = 0; i < origins->notes.len; i++)
        node_add(notes, NULL, NODE_STRING, origins->notes.items[i]);
    node_write_json(&root, out);
}
