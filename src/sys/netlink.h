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
    unsigned depth, sequence; /* sequence: the number of messages */
    unsigned answered;        /* the last of them that is answered also when all is well; 0: none is */
    unsigned failed;          /* after an exchange: the first that is an error */
    _Alignas(8) char bytes[NETLINK_ROOM];
};

/* Begins a message.  `header` is what follows the netlink header.  The kernel answers in the order of the
 * messages, and errors always: with NLM_F_ACK in the `flags` of the last message that can fail, one answer
 * stands for all. */
void netlink_begin(struct netlink *all, uint16_t type, uint16_t flags, const void *header, size_t size);

/* Attributes of the message, or of the nested attribute, that was begun last.  What finds no room is a mistake
 * of ours, and ends the process. */
void netlink_put(struct netlink *all, uint16_t type, const void *bytes, size_t size);
void netlink_put_text(struct netlink *all, uint16_t type, const char *text);
void netlink_put_u32(struct netlink *all, uint16_t type, uint32_t value); /* in the network's order */
void netlink_nest(struct netlink *all, uint16_t type);
void netlink_end(struct netlink *all);

/* Sends them in one piece and hears the answers, up to that of the last with NLM_F_ACK.  -1 and errno: one,
 * `failed`, is an error; what comes after it was done or not. */
int netlink_exchange(int fd, struct netlink *all);

/* Sends a question whose answer has many parts, and counts those of `type`.  -1 and errno on failure. */
int netlink_count(int fd, struct netlink *question, uint16_t type);
