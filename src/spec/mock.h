#pragma once

/* What a rule with `action: mock` answers, in place of its host. */

#include "base/array.h"
#include "base/text.h"

struct error;
struct file_rules;
struct form_context;
struct node;
struct rule_list;

enum {
    MOCK_STATUS_USUAL = 200,
    MOCK_HEADERS_MAX = 64,
    MOCKS_BYTES_MAX = 16 << 20, /* of the bodies of all rules together; of one: 1 MB, as of any file we read */
};

struct mock {
    unsigned status;
    struct strings headers; /* "Name: value", none that says where a body ends or what a connection does */
    struct text body;       /* bytes of any kind */
    char *file;             /* that has the body, which was not read yet; NULL: it is in `body` */
};

/* Status 200 and nothing else. */
struct mock *mock_new(void);
void mock_free(struct mock *mock);               /* NULL: nothing */
struct mock *mock_copy(const struct mock *mock); /* NULL: NULL */
int mock_compare(const struct mock *a, const struct mock *b);

/* { status, headers, body | base64 | file }.  NULL: `why` says what is allowed. */
struct mock *mock_read_node(const struct node *node, struct text *why);
void mock_write(const struct mock *mock, struct node *out);

/* Whether it names a file that is no whole path. */
bool mock_is_relative(const struct mock *mock);

/* Makes the names of files whole: they are relative to the directory of `policy`, itself relative to `context`.
 */
int mocks_place(struct rule_list *rules, const char *policy, const struct form_context *context,
                struct error *err);

/* Reads the files, which nobody but `trusted` may have written: from then on all is in `body`. */
int mocks_load(struct rule_list *rules, const struct file_rules *trusted, struct error *err);
