#include "inside/untar.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* The header of 1988. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type;
    char target[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

_Static_assert(sizeof(struct header) == UNTAR_BLOCK, "a header is one block");

/* A member, with what extended headers said of it. */
struct member {
    char type;
    struct files_entry entry;
    char path[FILES_PATH_MAX + 1], target[FILES_PATH_MAX + 1];
};

static int wrong(void)
{
    errno = EBADMSG;
    return -1;
}

/* --- numbers and names --- */

/* GNU's form for what has too many digits: the first bit is set, the rest is binary. */
static bool read_binary(const unsigned char *field, size_t size, uint64_t *out)
{
    uint64_t value = field[0] & 0x7f;

    if (field[0] == 0xff) { /* a time before 1970 */
        *out = 0;
        return true;
    }
    for (size_t i = 1; i < size; i++) {
        if (value >> 55)
            return false;
        value = value << 8 | field[i];
    }
    *out = value;
    return true;
}

static bool read_octal(const char *field, size_t size, uint64_t *out)
{
    uint64_t value = 0;
    size_t i = 0;

    if (field[0] & 0x80)
        return read_binary((const unsigned char *)field, size, out);
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0'); /* 12 digits are 36 bits */
    if (i < size && field[i] != '\0' && field[i] != ' ')
        return false;
    *out = value;
    return true;
}

static bool read_decimal(const char **at, const char *end, uint64_t *out)
{
    const char *from = *at;
    uint64_t value = 0;

    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (uint64_t)(**at - '0');
    }
    *out = value;
    return *at > from;
}

/* "1700000000.25", "-5". */
static bool read_time(const char *at, const char *end, int64_t *seconds, uint32_t *nsec)
{
    bool minus = at < end && *at == '-';
    uint64_t whole;
    uint32_t unit = 100000000, part = 0;

    at += minus;
    if (!read_decimal(&at, end, &whole))
        return false;
    if (at < end && *at == '.')
        for (at++; at < end && *at >= '0' && *at <= '9'; at++, unit /= 10)
            part += unit * (uint32_t)(*at - '0');
    *seconds = minus ? 0 : (int64_t)whole;
    *nsec = minus ? 0 : part;
    return at == end;
}

static bool sum_is_right(const struct header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    const size_t from = offsetof(struct header, sum), to = from + sizeof header->sum;
    uint64_t sum = 0, said;

    for (size_t i = 0; i < sizeof *header; i++)
        sum += i >= from && i < to ? ' ' : bytes[i];
    return read_octal(header->sum, sizeof header->sum, &said) && said == sum;
}

static size_t field_length(const char *field, size_t size)
{
    const char *end = memchr(field, '\0', size);

    return end ? (size_t)(end - field) : size;
}

static void take_field(char *out, const char *field, size_t size)
{
    size_t len = field_length(field, size);

    memcpy(out, field, len);
    out[len] = '\0';
}

static void take_path(char *out, const struct header *header)
{
    size_t len = 0;

    if (memcmp(header->magic, "ustar", 6) == 0 && header->prefix[0]) {
        len = field_length(header->prefix, sizeof header->prefix);
        memcpy(out, header->prefix, len);
        out[len++] = '/';
    }
    take_field(out + len, header->name, sizeof header->name);
}

/* Without "." and doubled slashes.  0: it is below the directory; else why it is not taken. */
static enum files_why normalize(char *path)
{
    unsigned depth = 0;
    char *to = path;

    if (*path == '/')
        return WHY_NAME;
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");

        if (len == 2 && at[0] == '.' && at[1] == '.')
            return WHY_NAME;
        if (len > FILES_NAME_MAX)
            return WHY_NAME;
        if (len && !(len == 1 && *at == '.')) {
            if (to > path)
                *to++ = '/';
            memmove(to, at, len);
            to += len;
            depth++;
        }
        at += len + (at[len] == '/');
    }
    *to = '\0';
    return depth > FILES_DEPTH_MAX ? WHY_DEEP : 0;
}

/* --- extended headers --- */

static bool take_value(char *out, const char *value, size_t len)
{
    if (len == 0 || len > FILES_PATH_MAX || memchr(value, '\0', len))
        return false;
    memcpy(out, value, len);
    out[len] = '\0';
    return true;
}

static bool is_key(const char *key, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(key, wanted, len) == 0;
}

static bool take_pair(struct untar *untar, const char *key, size_t key_len, const char *value, const char *end)
{
    size_t len = (size_t)(end - value);

    if (is_key(key, key_len, "path"))
        return take_value(untar->path, value, len);
    if (is_key(key, key_len, "linkpath"))
        return take_value(untar->target, value, len);
    if (is_key(key, key_len, "size"))
        return (untar->has_size = read_decimal(&value, end, &untar->size)) && value == end;
    if (is_key(key, key_len, "mtime"))
        return (untar->has_mtime = read_time(value, end, &untar->mtime, &untar->nsec));
    return !(key_len > 10 && memcmp(key, "GNU.sparse", 10) == 0); /* its content would be no file's */
}

/* Records "LENGTH KEY=VALUE\n", where the length counts all of it. */
static int take_records(struct untar *untar)
{
    const char *at = untar->extended, *end = at + untar->extended_len;

    while (at < end) {
        const char *record = at;
        uint64_t len = 0;

        if (!read_decimal(&at, end, &len) || at == end || *at != ' ' || len > (uint64_t)(end - record) ||
            len <= (uint64_t)(at - record) + 1 || record[len - 1] != '\n')
            return wrong();

        const char *last = record + len - 1, *key = at + 1, *equals = memchr(key, '=', (size_t)(last - key));

        if (!equals || !take_pair(untar, key, (size_t)(equals - key), equals + 1, last))
            return wrong();
        at = last + 1;
    }
    return 0;
}

static int take_extended(struct untar *untar)
{
    size_t len = field_length(untar->extended, untar->extended_len);

    if (untar->kind == 'x')
        return take_records(untar);
    if (untar->kind == 'L')
        return take_value(untar->path, untar->extended, len) ? 0 : wrong();
    if (untar->kind == 'K')
        return take_value(untar->target, untar->extended, len) ? 0 : wrong();
    return 0; /* g: of all members, and nothing that we use */
}

static int begin_extended(struct untar *untar, char kind, uint64_t size)
{
    if (size > UNTAR_EXTENDED_MAX)
        return wrong();
    untar->kind = kind;
    untar->extended_len = 0;
    untar->left = size;
    untar->state = UNTAR_EXTENDED;
    return 0;
}

/* --- members --- */

static bool is_below(const char *path, const char *tree, size_t tree_len, bool or_same)
{
    if (strncmp(path, tree, tree_len) != 0)
        return false;
    return tree_len == 0 || path[tree_len] == '/' || (or_same && path[tree_len] == '\0');
}

static int enter(struct untar *untar, const char *name, size_t len, const struct files_entry *entry)
{
    char own[FILES_NAME_MAX + 1];
    struct tree_item item = { .entry = *entry, .name = own, .target = "" };

    memcpy(own, name, len);
    own[len] = '\0';
    return lay_sink.enter(&untar->lay, &item);
}

/* Goes to the directory that the member lies in, and gives its name there.  Archives go through a tree in
 * order, so the directories that are left here are hardly ever entered again. */
static int go_to(struct untar *untar, const struct member *member, const char **out_name)
{
    struct files_entry between = { .mode = 0755, .mtime = time(NULL) };
    struct lay *lay = &untar->lay;
    const char *at;

    while (lay->depth && !is_below(member->path, lay->path, lay->path_len, member->type == '5'))
        if (lay_sink.leave(lay) < 0)
            return -1;
    at = member->path + lay->path_len;
    at += *at == '/';
    for (const char *slash; (slash = strchr(at, '/')); at = slash + 1)
        if (enter(untar, at, (size_t)(slash - at), &between) < 0)
            return -1;
    *out_name = at;
    return 0;
}

static int put_directory(struct untar *untar, const char *name, const struct member *member)
{
    struct lay *lay = &untar->lay;

    if (*name)
        return enter(untar, name, strlen(name), &member->entry);
    if (lay->depth) { /* we are in it, because something in it came first */
        lay->levels[lay->depth - 1].mode = member->entry.mode & 0777;
        lay->levels[lay->depth - 1].mtime = (struct timespec){ member->entry.mtime, member->entry.nsec };
    }
    return 0;
}

static int put_hard_link(struct untar *untar, const char *name, struct member *member)
{
    enum files_why why = normalize(member->target);

    if (!why && *member->target)
        return lay_hard_link(&untar->lay, name, member->target);
    lay_note(&untar->lay, why ? why : WHY_NAME, 0, name);
    return 0;
}

static int put_member(struct untar *untar, struct member *member)
{
    struct tree_item item = { .entry = member->entry, .target = member->target };

    if (go_to(untar, member, &item.name) < 0)
        return -1;
    if (!*item.name && member->type != '5')
        return 0;
    switch (member->type) {
    case '0':
        untar->writes = true;
        return lay_sink.file(&untar->lay, &item);
    case '1':
        return put_hard_link(untar, item.name, member);
    case '2':
        return *item.target ? lay_sink.link(&untar->lay, &item) : wrong();
    case '5':
        return put_directory(untar, item.name, member);
    default:
        lay_note(&untar->lay, WHY_SPECIAL, 0, item.name);
        return 0;
    }
}

static void tell_name(struct untar *untar, const struct member *member, enum files_why why)
{
    struct files_note note = { .why = why };

    untar->lay.note(untar->lay.owner, &note, member->path);
}

/* What the headers together say; false if they do not make sense. */
static bool read_member(struct untar *untar, const struct header *header, struct member *out)
{
    uint64_t mode, size, mtime;

    if (!read_octal(header->mode, sizeof header->mode, &mode) ||
        !read_octal(header->size, sizeof header->size, &size) ||
        !read_octal(header->mtime, sizeof header->mtime, &mtime))
        return false;
    size = untar->has_size ? untar->size : size;
    out->type = (char)(header->type ? header->type : '0');
    if (out->type == '7')
        out->type = '0';
    out->entry = (struct files_entry){ .mode = (uint32_t)mode & 07777,
                                       .mtime = untar->has_mtime ? untar->mtime : (int64_t)mtime,
                                       .nsec = untar->has_mtime ? untar->nsec : 0,
                                       .size = size };
    if (*untar->path)
        memcpy(out->path, untar->path, sizeof out->path);
    else
        take_path(out->path, header);
    if (*untar->target)
        memcpy(out->target, untar->target, sizeof out->target);
    else
        take_field(out->target, header->target, sizeof header->target);

    size_t len = strlen(out->path);

    if (out->type == '0' && len && out->path[len - 1] == '/') /* as directories were written before 1988 */
        out->type = '5';
    return len && size <= INT64_MAX && (out->type == '0' || size == 0);
}

static void forget_extended(struct untar *untar)
{
    untar->path[0] = untar->target[0] = '\0';
    untar->has_size = untar->has_mtime = false;
}

static int take_member(struct untar *untar, const struct header *header)
{
    struct member member;

    if (!read_member(untar, header, &member))
        return wrong();
    forget_extended(untar);
    untar->left = member.entry.size;
    untar->padding = (UNTAR_BLOCK - untar->left % UNTAR_BLOCK) % UNTAR_BLOCK;
    untar->writes = false;
    untar->state = UNTAR_CONTENT;

    enum files_why why = normalize(member.path);

    if (!why)
        return put_member(untar, &member);
    tell_name(untar, &member, why);
    return 0;
}

static bool is_blank(const unsigned char *block)
{
    for (size_t i = 0; i < UNTAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

static bool has_known_form(const struct header *header)
{
    static const char blank[6];

    return memcmp(header->magic, "ustar", 6) == 0 || memcmp(header->magic, "ustar ", 6) == 0 ||
           memcmp(header->magic, blank, 6) == 0;
}

static int take_header(struct untar *untar)
{
    struct header header;
    uint64_t size;

    memcpy(&header, untar->block, sizeof header);
    if (is_blank(untar->block)) {
        untar->state = ++untar->blanks == 2 ? UNTAR_OVER : UNTAR_HEADER;
        return 0;
    }
    if (untar->blanks || !has_known_form(&header) || !sum_is_right(&header))
        return wrong();
    if (strchr("xLKg", header.type) && header.type) {
        if (!read_octal(header.size, sizeof header.size, &size))
            return wrong();
        untar->padding = (UNTAR_BLOCK - size % UNTAR_BLOCK) % UNTAR_BLOCK;
        return begin_extended(untar, header.type, size);
    }
    return strchr("01234567", header.type) ? take_member(untar, &header)
                                           : wrong(); /* and '\0', which ends it */
}

/* --- the bytes --- */

static size_t least(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* All of the content is there, or of the extended header. */
static int end_content(struct untar *untar)
{
    int result = 0;

    if (untar->state == UNTAR_EXTENDED)
        result = take_extended(untar);
    else if (untar->writes)
        result = lay_sink.file_end(&untar->lay, 0);
    untar->writes = false;
    untar->state = UNTAR_PADDING;
    return result;
}

static int take_content(struct untar *untar, const unsigned char *bytes, size_t len)
{
    if (untar->state == UNTAR_EXTENDED) {
        memcpy(untar->extended + untar->extended_len, bytes, len);
        untar->extended_len += len;
        return 0;
    }
    return untar->writes ? lay_sink.data(&untar->lay, bytes, len) : 0;
}

/* Takes some of the bytes, at least one unless the state changes. */
static int step(struct untar *untar, const unsigned char *bytes, size_t len, size_t *out_taken)
{
    size_t taken = 0;
    int result = 0;

    switch (untar->state) {
    case UNTAR_HEADER:
        taken = least(UNTAR_BLOCK - untar->block_len, len);
        memcpy(untar->block + untar->block_len, bytes, taken);
        untar->block_len += taken;
        if (untar->block_len == UNTAR_BLOCK) {
            untar->block_len = 0;
            result = take_header(untar);
        }
        break;
    case UNTAR_CONTENT:
    case UNTAR_EXTENDED:
        taken = least(untar->left, len);
        result = take_content(untar, bytes, taken);
        untar->left -= taken;
        if (result == 0 && untar->left == 0)
            result = end_content(untar);
        break;
    case UNTAR_PADDING:
        taken = least(untar->padding, len);
        untar->padding -= taken;
        if (untar->padding == 0)
            untar->state = UNTAR_HEADER;
        break;
    case UNTAR_OVER:
        taken = len;
        break;
    }
    *out_taken = taken;
    return result;
}

/* A member without content is over before the next byte comes. */
static bool is_due(const struct untar *untar)
{
    if (untar->state == UNTAR_CONTENT || untar->state == UNTAR_EXTENDED)
        return untar->left == 0;
    return untar->state == UNTAR_PADDING && untar->padding == 0;
}

int untar_bytes(struct untar *untar, const unsigned char *bytes, size_t len)
{
    while (len || is_due(untar)) {
        size_t taken;

        if (step(untar, bytes, len, &taken) < 0)
            return -1;
        bytes += taken;
        len -= taken;
    }
    return 0;
}

int untar_end(struct untar *untar)
{
    bool whole = untar->state == UNTAR_OVER ||
                 (untar->state == UNTAR_HEADER && !untar->block_len && (untar->lay.files || untar->blanks));

    if (!whole)
        return wrong();
    while (untar->lay.depth)
        if (lay_sink.leave(&untar->lay) < 0)
            return -1;
    return 0;
}
