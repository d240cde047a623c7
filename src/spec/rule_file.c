#include "spec/rule_file.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "spec/file.h"
#include "spec/forms.h"

#include <string.h>

static const char *place_of(const struct rule *rule)
{
    return rule->place ? rule->place : "a rule";
}

int rule_file_complain(struct error *err, const struct rule *rule, const char *what, const char *file,
                       const char *why)
{
    autotext struct text shown = TEXT_NONE;

    text_add_inert(&shown, file);
    return error_set(err, ERROR_INVALID, "%s: network.rules: the %s of %s, %s, %s", place_of(rule), what,
                     rule->host, text_string(&shown), why);
}

int rule_file_path(const struct rule *rule, const char *what, const char *written, const char *policy,
                   const struct form_context *context, char **out, struct error *err)
{
    struct form_context beside = *context;
    autotext struct text why = TEXT_NONE, ignored = TEXT_NONE;
    autofree char *directory = NULL;

    if (form_path(context, policy, &directory, &ignored)) {
        *strrchr(directory, '/') = '\0';
        beside.cwd = directory;
    }
    return form_path(&beside, written, out, &why)
               ? 0
               : rule_file_complain(err, rule, what, written, text_string(&why));
}

int rule_file_read(const struct rule *rule, const char *what, const char *file,
                   const struct file_rules *trusted, struct text *out, struct error *err)
{
    int missing = file_read_trusted(file, trusted, out, err);

    if (missing > 0)
        return rule_file_complain(err, rule, what, file, "is not there");
    return missing < 0 ? error_while(err, "%s: network.rules: the %s of %s", place_of(rule), what, rule->host)
                       : 0;
}
