#include "gateway/settings.h"

#include "base/text.h"

#include <stdbool.h>
#include <string.h>

struct part {
    const char *at;
    size_t len;
};

struct reading {
    enum settings_form form;
    struct text section, key;
    settings_found *found;
    void *owner;
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static struct part trim(struct part part)
{
    while (part.len && is_blank(part.at[0])) {
        part.at++;
        part.len--;
    }
    while (part.len && is_blank(part.at[part.len - 1]))
        part.len--;
    return part;
}

static bool is_quote(char byte)
{
    return byte == '"' || byte == '\'';
}

static void add_key(struct text *out, struct part part)
{
    for (size_t i = 0; i < part.len; i++) {
        char byte = (char)(part.at[i] == '_' ? '-' : text_small(part.at[i]));

        if (byte && !is_quote(byte) && !is_blank(byte))
            text_add_bytes(out, &byte, 1);
    }
}

/* Every word is offered: which of them is the address of something is for others to say. */
static void give(struct reading *reading, struct part value)
{
    static const char between[] = " \t\r\"',|[]{}";

    while (value.len) {
        size_t len = 0;

        while (len < value.len && value.at[len] && !strchr(between, value.at[len]))
            len++;
        if (len) {
            autotext struct text word = TEXT_NONE;

            text_add_bytes(&word, value.at, len);
            reading->found(reading->owner, text_string(&reading->key), text_string(&word));
        }
        len += len < value.len;
        value.at += len;
        value.len -= len;
    }
}

static struct part without_comment(struct part line, enum settings_form form)
{
    for (size_t i = 0; i < line.len; i++)
        if ((line.at[i] == '#' || (line.at[i] == ';' && form == SETTINGS_EQUALS)) &&
            (i == 0 || is_blank(line.at[i - 1])))
            line.len = i;
    return line;
}

static void read_section(struct reading *reading, struct part line)
{
    struct part name = { line.at + 1, line.len - 1 };

    text_clear(&reading->section);
    text_clear(&reading->key);
    while (name.len && name.at[0] == '[') {
        name.at++;
        name.len--;
    }
    while (name.len && name.at[name.len - 1] == ']')
        name.len--;
    add_key(&reading->section, name);
    text_add(&reading->section, ".");
}

static void read_pair(struct reading *reading, struct part line)
{
    const char *sign = memchr(line.at, reading->form == SETTINGS_COLON ? ':' : '=', line.len);

    text_clear(&reading->key);
    if (!sign)
        return;
    text_add(&reading->key, text_string(&reading->section));
    add_key(&reading->key, trim((struct part){ line.at, (size_t)(sign - line.at) }));
    give(reading, (struct part){ sign + 1, line.len - (size_t)(sign + 1 - line.at) });
}

/* deb [signed-by=...] URI suite component... */
static void read_deb(struct reading *reading, struct part line)
{
    const char *end;
    size_t word = 0;

    while (word < line.len && !is_blank(line.at[word]))
        word++;
    text_clear(&reading->key);
    add_key(&reading->key, (struct part){ line.at, word });
    line = trim((struct part){ line.at + word, line.len - word });
    end = line.len && line.at[0] == '[' ? memchr(line.at, ']', line.len) : NULL;
    if (end)
        line = trim((struct part){ end + 1, line.len - (size_t)(end + 1 - line.at) });
    for (word = 0; word < line.len && !is_blank(line.at[word]);)
        word++;
    give(reading, (struct part){ line.at, word });
}

static void read_line(struct reading *reading, struct part raw)
{
    bool goes_on = raw.len && is_blank(raw.at[0]) && reading->form != SETTINGS_DEB && reading->key.len;
    struct part line = trim(without_comment(raw, reading->form));

    if (line.len == 0)
        return;
    if (reading->form == SETTINGS_DEB)
        read_deb(reading, line);
    else if (line.at[0] == '[' && reading->form == SETTINGS_EQUALS && !goes_on)
        read_section(reading, line);
    else if (goes_on && !memchr(line.at, '=', line.len))
        give(reading, line);
    else
        read_pair(reading, line);
}

void settings_read(const char *bytes, size_t len, enum settings_form form, settings_found *found, void *owner)
{
    struct reading reading = { .form = form, .found = found, .owner = owner };

    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t line = end ? (size_t)(end - bytes) : len;

        read_line(&reading, (struct part){ bytes, line });
        line += end != NULL;
        bytes += line;
        len -= line;
    }
    text_free(&reading.section);
    text_free(&reading.key);
}
