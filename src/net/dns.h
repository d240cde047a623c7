#pragma once

/* Messages of the domain name system (RFC 1035), of which no byte is believed. */

#include "base/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DNS_NAME_SIZE = 256, /* of a name as text, with the zero; longer ones are refused */
    DNS_HEADER = 12,
    DNS_UDP_MAX = 1232,
    DNS_ADDRESSES_MAX = 16,
};

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };

enum dns_code {
    DNS_NOERROR = 0,
    DNS_FORMERR = 1,
    DNS_SERVFAIL = 2,
    DNS_NXDOMAIN = 3,
    DNS_NOTIMP = 4,
    DNS_REFUSED = 5
};

struct dns_question {
    uint16_t type;
    char name[DNS_NAME_SIZE]; /* labels with dots between them, without one at the end; bytes of any kind but
                                 zero and dots within a label: those are refused */
    size_t len;
    size_t end; /* of the question in the message */
};

/* What to do with a message that came to be answered. */
enum dns_read {
    DNS_IGNORE,  /* it cannot be answered */
    DNS_ANSWER,  /* `code` is the answer */
    DNS_QUESTION /* so is what `out` asks for */
};

enum dns_read dns_read_question(const unsigned char *bytes, size_t len, struct dns_question *out,
                                enum dns_code *code);

/* The answer to the message `asked`, of which `end` bytes are header and question (0: repeat no question), with
 * at most one address.  Gives its length; `out` has room for DNS_UDP_MAX. */
size_t dns_write_answer(const unsigned char *asked, size_t end, enum dns_code code,
                        const struct address *address, uint32_t ttl, unsigned char *out);

/* A question of our own; `name` is one of base/hostname.h.  Gives its length. */
size_t dns_write_question(uint16_t id, const char *name, enum dns_type type, unsigned char *out);

struct dns_addresses {
    struct address items[DNS_ADDRESSES_MAX];
    size_t len;
    uint32_t ttl; /* the least of all that led there; 0 with no address */
};

enum dns_heard {
    DNS_FOREIGN,   /* it does not answer this question */
    DNS_TRUNCATED, /* it does, but has to be asked again by TCP */
    DNS_FAILED,    /* it does: the server could or would not tell */
    DNS_HEARD,     /* it does: these are the addresses, maybe none */
};

/* What a server says to that question.  Records that the name does not lead to, by a chain of aliases in the
 * same message, do not count. */
enum dns_heard dns_read_answer(const unsigned char *bytes, size_t len, uint16_t id, const char *name,
                               enum dns_type type, struct dns_addresses *out);
