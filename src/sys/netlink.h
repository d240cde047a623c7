#pragma once

/* Messages for the kernel's netlink sockets, built by hand: no library, no program of others. */

#include <stddef.h>
#include <stdint.h>

enum { NETLINK_ROOM = 8192, NETLINK_DEPTH = 6 };

/* Several messages, one after the other.  `nested` are the places of attributes that are not yet at their end.
 */
struct netlink {
    size_t len, message; /* message: where the last one begins */
    size_t nested[NETLINK_DEPTH];
    unsigned depth, wanted, sequence; /* wanted: how many of them are answered */
    _Alignas(8) char bytes[NETLINK_ROOM];
};

/* Begins a message; with NLM_F_ACK in `flags` it is answered.  `header` is what follows the netlink header. */
void netlink_begin(struct netlink *all, uint16_t type, uint16_t flags, const void *header, size_t size);

/* Attributes of the message, or of the nested attribute, that was begun last.  What finds no room is a mistake
 * of ours, and ends the process. */
void netlink_put(struct netlink *all, uint16_t type, const void *bytes, size_t size);
void netlink_put_text(struct netlink *all, uint16_t type, const char *text);
void netlink_put_u32(struct netlink *all, uint16_t type, uint32_t value); /* in the network's order */
void netlink_nest(struct netlink *all, uint16_t type);
void netlink_end(struct netlink *all);

/* Sends them in one piece and hears the answers.  -1 and errno: the first that is an error. */
int netlink_exchange(int fd, struct netlink *all);

/* Sends a question whose answer has many parts, and counts those of `type`.  -1 and errno on failure. */
int netlink_count(int fd, struct netlink *question, uint16_t type);
