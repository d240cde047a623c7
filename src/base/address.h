#pragma once

/* Addresses of the internet: one form for each, whatever its spelling, and what kind of place it leads to. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An IPv4-mapped IPv6 address is kept as the IPv4 address that it is. */
struct address {
    unsigned char bytes[16]; /* in the order of the network; what is not used is zero */
    unsigned char len;       /* 4 or 16; 0: none */
};

#define ADDRESS_NONE ((struct address){ 0 })

enum { ADDRESS_SIZE = 46 }; /* of its text, with the zero */

/* Anything but ADDRESS_PUBLIC is reached only by a grant of that one address. */
enum address_class {
    ADDRESS_PUBLIC,
    ADDRESS_UNSPECIFIED, /* 0.0.0.0 and ::, which most systems take for their own loopback */
    ADDRESS_LOOPBACK,
    ADDRESS_PRIVATE, /* networks of a house, a company, a provider */
    ADDRESS_LINK_LOCAL,
    ADDRESS_METADATA,   /* where clouds hand out the credentials of a machine */
    ADDRESS_MULTICAST,  /* and broadcast */
    ADDRESS_TRANSLATED, /* leads to an IPv4 address that stands inside it: NAT64, 6to4, Teredo */
    ADDRESS_RESERVED,   /* documentation, tests, future use */
};

/* How an address was written. */
enum address_spelling {
    ADDRESS_NOT,   /* as no address at all */
    ADDRESS_PLAIN, /* 192.0.2.1 or 2001:db8::1, also in brackets */
    ADDRESS_ODD,   /* in a way that programs read differently or that hides it: 127.1, 0x7f000001, 0177.0.0.1,
                    * 127.0.0.1., with a zone */
};

/* Reads `len` bytes, which may have zeros among them.  `out` is set for plain and, where it can be told which
 * address is meant, odd spellings; otherwise it is ADDRESS_NONE. */
enum address_spelling address_read(const char *bytes, size_t len, struct address *out);

/* From 4 or 16 bytes in the order of the network. */
struct address address_from(const void *bytes, size_t len);

void address_show(const struct address *address, char out[ADDRESS_SIZE]);
bool address_same(const struct address *a, const struct address *b);

enum address_class address_class(const struct address *address);

/* "a private address": for messages. */
const char *address_class_name(enum address_class class);
