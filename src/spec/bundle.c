#include "spec/bundle.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/rule_file.h"

#include <string.h>

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"

bool bundle_is_read(const char *ca)
{
    return text_starts(ca, BEGIN);
}

/* The certificates of a file, and nothing that stands between them. */
static char *certificates_of(const char *text)
{
    struct text out = TEXT_NONE;

    for (const char *begin = text; (begin = strstr(begin, BEGIN)) != NULL;) {
        const char *end = strstr(begin, END);

        if (!end)
            break;
        text_add_bytes(&out, begin, (size_t)(end - begin));
        text_add(&out, END "\n");
        begin = end;
    }
    return out.len ? text_steal(&out) : NULL;
}

static int keep_certificates(struct rule *rule, const char *file, const struct text *bytes, struct error *err)
{
    char *certificates;

    if (bytes->len > BUNDLE_MAX)
        return rule_file_complain(err, rule, "ca", file,
                                  "is larger than 64 KB: it should have the few certificates of one host");
    certificates = certificates_of(text_string(bytes));
    if (!certificates)
        return rule_file_complain(err, rule, "ca", file, "has no certificate in it (" BEGIN ")");
    free(rule->ca);
    rule->ca = certificates;
    return 0;
}

static int read_one(struct rule *rule, const char *policy, const struct form_context *context,
                    const struct file_rules *trusted, struct error *err)
{
    autotext struct text bytes = TEXT_NONE;
    autofree char *file = NULL;

    if (bundle_is_read(rule->ca)) {
        text_add(&bytes, rule->ca);
        return keep_certificates(rule, "as it stands there", &bytes, err);
    }
    if (rule_file_path(rule, "ca", rule->ca, policy, context, &file, err) < 0 ||
        rule_file_read(rule, "ca", file, trusted, &bytes, err) < 0)
        return -1;
    return keep_certificates(rule, file, &bytes, err);
}

int bundles_read(struct rule_list *rules, const char *policy, const struct form_context *context,
                 const struct file_rules *trusted, struct error *err)
{
    for (size_t i = 0; i < rules->len; i++)
        if (rules->items[i].ca && read_one(&rules->items[i], policy, context, trusted, err) < 0)
            return -1;
    return 0;
}

int bundles_check(const struct rule_list *rules, struct error *err)
{
    size_t sum = 0;

    for (size_t i = 0; i < rules->len; i++)
        sum += rules->items[i].ca ? strlen(rules->items[i].ca) : 0;
    return sum <= BUNDLES_MAX
               ? 0
               : error_set(err, ERROR_INVALID, "network.rules: their ca have more than 512 KB together");
}
