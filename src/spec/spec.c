#include "spec/spec.h"

#include "base/text.h"
#include "spec/fields.h"
#include "spec/node.h"
#include "spec/values.h"

#include <stdio.h>
#include <string.h>

/* The plain SHA-256 functions: EVP would link a megabyte of algorithms into every start. */
#define OPENSSL_API_COMPAT 0x10100000L
#include <openssl/sha.h>

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
    unsigned char digest[SHA256_DIGEST_LENGTH];
    autotext struct text json = TEXT_NONE;
    SHA256_CTX context;

    spec_json(spec, &json);
    SHA256_Init(&context);
    SHA256_Update(&context, json.data, json.len);
    SHA256_Final(digest, &context);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
