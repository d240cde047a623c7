#include "spec/network.h"

#include "base/text.h"
#include "spec/mock.h"

#include <stdlib.h>

const char *const registry_names[REGISTRY_COUNT] = {
    [REGISTRY_APT] = "apt", [REGISTRY_CARGO] = "cargo", [REGISTRY_GO] = "go",
    [REGISTRY_NPM] = "npm", [REGISTRY_PIP] = "pip",
};

void rule_free(struct rule *rule)
{
    free(rule->host);
    free(rule->address);
    free(rule->place);
    free(rule->ca);
    free(rule->index);
    mock_free(rule->mock);
    strings_free(&rule->methods);
    strings_free(&rule->paths);
    *rule = (struct rule){ 0 };
}

void rule_list_free(struct rule_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        rule_free(&list->items[i]);
    free(list->items);
    *list = RULE_LIST_NONE;
}

struct rule rule_copy(const struct rule *rule)
{
    struct rule copy = *rule;

    copy.host = rule->host ? text_copy(rule->host) : NULL;
    copy.address = rule->address ? text_copy(rule->address) : NULL;
    copy.place = rule->place ? text_copy(rule->place) : NULL;
    copy.ca = rule->ca ? text_copy(rule->ca) : NULL;
    copy.index = rule->index ? text_copy(rule->index) : NULL;
    copy.mock = mock_copy(rule->mock);
    copy.methods = STRINGS_NONE;
    copy.paths = STRINGS_NONE;
    strings_copy(&copy.methods, &rule->methods);
    strings_copy(&copy.paths, &rule->paths);
    return copy;
}
