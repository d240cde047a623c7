#include "spec/spec.h"

#include "base/sha256.h"
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
    unsigned char bytes[SHA256_BYTES];
    struct sha256 *sha256 = sha256_new();

    spec_json(spec, &json);
    sha256_add(sha256, json.data, json.len);
    sha256_end(sha256, bytes);
    sha256_text(bytes, out);
}
