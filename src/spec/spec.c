#include "spec/spec.h"

#include "base/digest.h"
#include "base/text.h"
#include "spec/fields.h"
#include "spec/node.h"
#include "spec/values.h"

void spec_free(struct spec *spec)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        value_free(&fields[i], spec);
    *spec = SPEC_NONE;
}

void spec_json(const struct spec *spec, struct text *out)
{
    autonode struct node root = { .kind = NODE_MAP };

    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (fields[i].places & PLACE_SPEC)
            value_write(&fields[i], spec, node_make(&root, fields[i].key));
    node_write_json(&root, out);
}

void spec_hash(const struct spec *spec, char out[65])
{
    autotext struct text json = TEXT_NONE;
    struct digest *digest = digest_new();

    spec_json(spec, &json);
    digest_add(digest, json.data, json.len);
    digest_end(digest, out);
}
