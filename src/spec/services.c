#include "spec/services.h"

#include "base/own.h"
#include "base/text.h"
#include "spec/forms.h"
#include "spec/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

static bool refuse(struct text *why, const char *what)
{
    text_add(why, what);
    return false;
}

static void service_free(struct service *service)
{
    free(service->name);
    free(service->run);
    free(service->ready);
}

void services_free(struct services *services)
{
    for (size_t i = 0; i < services->len; i++)
        service_free(&services->items[i]);
    free(services->items);
    *services = (struct services){ 0 };
}

/* --- reading --- */

static bool is_name(const char *text)
{
    size_t len = strlen(text);

    return len && len <= SERVICE_NAME_MAX && strspn(text, name_letters) == len && *text != '-';
}

static bool check(const struct service *service, const struct services *into, struct text *why)
{
    if (!service->run || !*service->run || (service->ready && !*service->ready))
        return refuse(why, "must have a command to run, and none that is empty");
    if (strlen(service->run) > SERVICE_TEXT_MAX ||
        (service->ready && strlen(service->ready) > SERVICE_TEXT_MAX))
        return refuse(why, "is a command that is too long");
    if (service->name && !is_name(service->name))
        return refuse(why, "must have a name of at most 32 small letters, digits and -");
    if (into->len >= SERVICES_MAX)
        return refuse(why, "is one service too many: there may be 32");
    return true;
}

bool services_read_text(const char *in, struct services *into, struct text *why)
{
    struct service service = { .run = text_copy(in), .within_ms = SERVICE_WITHIN_MS };

    if (check(&service, into, why)) {
        *array_add(into) = service;
        return true;
    }
    service_free(&service);
    return false;
}

static bool read_within(const char *in, uint64_t *out, struct text *why)
{
    uint64_t value;

    if (!form_duration(in, &value, why))
        return false;
    if (!value || value > SERVICE_WITHIN_MOST_MS)
        return refuse(why, "must be ready within 1h at most");
    *out = value;
    return true;
}

static bool is_text(const struct node *node)
{
    return node->kind == NODE_STRING || node->kind == NODE_NUMBER;
}

static bool read_key(const struct node *node, struct service *into, struct text *why)
{
    const struct {
        const char *key;
        char **at;
    } texts[] = { { "name", &into->name }, { "run", &into->run }, { "ready", &into->ready } };

    if (strcmp(node->key, "ready") == 0 && node->kind == NODE_NULL)
        return true;
    if (strcmp(node->key, "within") == 0 && is_text(node))
        return read_within(node->text, &into->within_ms, why);
    for (size_t i = 0; i < ARRAY_LEN(texts) && is_text(node); i++)
        if (strcmp(node->key, texts[i].key) == 0) {
            free(*texts[i].at);
            *texts[i].at = text_copy(node->text);
            return true;
        }
    return refuse(why, "must have the key run, and may have name, ready and within, each a text, and no other");
}

static bool read_map(const struct node *node, const struct services *into, struct service *out,
                     struct text *why)
{
    for (size_t i = 0; i < node->len; i++)
        if (!read_key(&node->items[i], out, why))
            return false;
    return check(out, into, why);
}

bool services_read_node(const struct node *node, struct services *into, struct text *why)
{
    struct service service = { .within_ms = SERVICE_WITHIN_MS };

    if (node->kind != NODE_MAP)
        return is_text(node) ? services_read_text(node->text, into, why)
                             : refuse(why, "must be a text or a mapping");
    if (read_map(node, into, &service, why)) {
        *array_add(into) = service;
        return true;
    }
    service_free(&service);
    return false;
}

/* --- writing --- */

void services_write(const struct services *services, struct node *out)
{
    out->kind = NODE_LIST;
    for (size_t i = 0; i < services->len; i++) {
        const struct service *service = &services->items[i];
        struct node *map = node_add(out, NULL, NODE_MAP, NULL);
        autotext struct text within = TEXT_NONE;

        form_duration_show(service->within_ms, &within);
        if (service->name)
            node_add(map, "name", NODE_STRING, service->name);
        node_add(map, "ready", service->ready ? NODE_STRING : NODE_NULL, service->ready);
        node_add(map, "run", NODE_STRING, service->run);
        node_add(map, "within", NODE_STRING, text_string(&within));
    }
}

void services_show(const struct services *services, struct text *out)
{
    text_add(out, "[");
    for (size_t i = 0; i < services->len; i++) {
        const struct service *service = &services->items[i];

        text_addf(out, "%s%s%s", i ? ", " : "", service->name ? service->name : "", service->name ? ": " : "");
        text_add_inert(out, service->run);
        if (service->ready) {
            text_add(out, " (ready: ");
            text_add_inert(out, service->ready);
            text_add(out, ")");
        }
    }
    text_add(out, "]");
}

void services_move(struct services *from, struct services *into)
{
    for (size_t i = 0; i < from->len; i++)
        *array_add(into) = from->items[i];
    from->len = 0;
    services_free(from);
}

/* --- names --- */

int services_find(const struct services *services, const char *name)
{
    for (size_t i = 0; i < services->len; i++)
        if (services->items[i].name && strcmp(services->items[i].name, name) == 0)
            return (int)i;
    return -1;
}

static void drop(struct services *services, size_t at)
{
    service_free(&services->items[at]);
    memmove(&services->items[at], &services->items[at + 1], (services->len - at - 1) * sizeof *services->items);
    services->len--;
}

/* The last component of its first word, as far as its letters serve. */
static void name_of_command(const char *run, char out[SERVICE_NAME_MAX + 1])
{
    const char *word = run + strspn(run, " \t\n"), *slash = word;
    size_t end = strcspn(word, " \t\n;&|()<>"), len = 0;

    for (size_t i = 0; i < end; i++)
        if (word[i] == '/')
            slash = word + i + 1;
    for (const char *at = slash; at < word + end && len < SERVICE_NAME_MAX - 3; at++) {
        char small = text_small(*at);

        if (small && strchr(name_letters, small) && (len || small != '-'))
            out[len++] = small;
    }
    out[len] = '\0';
    if (!len)
        snprintf(out, SERVICE_NAME_MAX + 1, "service");
}

static void give_name(struct services *services, size_t at)
{
    char name[SERVICE_NAME_MAX + 1], numbered[SERVICE_NAME_MAX + 8];

    name_of_command(services->items[at].run, name);
    snprintf(numbered, sizeof numbered, "%s", name);
    for (unsigned number = 2; services_find(services, numbered) >= 0; number++)
        snprintf(numbered, sizeof numbered, "%s-%u", name, number);
    services->items[at].name = text_copy(numbered);
}

static bool has_later(const struct services *services, size_t at)
{
    const char *name = services->items[at].name;

    for (size_t i = at + 1; name && i < services->len; i++)
        if (services->items[i].name && strcmp(services->items[i].name, name) == 0)
            return true;
    return false;
}

void services_settle(struct services *services)
{
    for (size_t i = 0; i < services->len;) {
        if (has_later(services, i))
            drop(services, i);
        else
            i++;
    }
    for (size_t i = 0; i < services->len; i++)
        if (!services->items[i].name)
            give_name(services, i);
}
