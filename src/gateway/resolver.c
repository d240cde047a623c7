#include "gateway/resolver.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hostname.h"
#include "base/own.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
    FILE_MAX = 1 << 20,
    HOSTS_MAX = 65536,
    TRY_US = 1500000,
    TRIES = 4, /* each server in turn */
    KEPT_LONGEST_S = 60,
    KEPT_SHORTEST_S = 2,
};

/* A question of one type. */
struct asked {
    struct event_source source; /* the first member: what is told of it is of this */
    struct lookup *lookup;
    enum dns_type type;
    uint16_t id;
    bool over;
};

struct lookup {
    struct resolver *resolver;
    struct lookup *next; /* of those that have ended */
    char *name;
    lookup_done *done;
    void *owner;
    struct asked asked[2];
    struct address addresses[LOOKUP_ADDRESSES];
    size_t len, tries;
    uint32_t ttl;
    uint64_t again_at;
    bool ended;
};

static struct lookup *graveyard;

/* --- what the host says --- */

static void add_server(struct resolver *resolver, const char *word)
{
    struct sockaddr_in6 *six = &resolver->servers[resolver->servers_len];
    struct sockaddr_in *four = (struct sockaddr_in *)six;

    if (resolver->servers_len == RESOLVER_SERVERS)
        return;
    *six = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(53) };
    if (inet_pton(AF_INET6, word, &six->sin6_addr) == 1) {
        resolver->servers_len++;
        return;
    }
    *four = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(53) };
    if (inet_pton(AF_INET, word, &four->sin_addr) == 1)
        resolver->servers_len++;
}

static void add_host(struct resolver *resolver, const struct address *address, const char *word)
{
    struct hostname name;

    if (resolver->hosts_len >= HOSTS_MAX || hostname_read(word, strlen(word), &name) ||
        hostname_is_address(&name))
        return;

    struct {
        struct resolver_host *items;
        size_t len, cap;
    } list = { resolver->hosts, resolver->hosts_len, resolver->hosts_cap };

    *array_add(&list) = (struct resolver_host){ text_copy(name.text), *address };
    resolver->hosts = list.items;
    resolver->hosts_len = list.len;
    resolver->hosts_cap = list.cap;
}

static void read_server_line(struct resolver *resolver, char *line)
{
    char *rest = NULL;
    const char *word = strtok_r(line, " \t\r", &rest);

    if (word && strcmp(word, "nameserver") == 0 && (word = strtok_r(NULL, " \t\r", &rest)))
        add_server(resolver, word);
}

static void read_host_line(struct resolver *resolver, char *line)
{
    char *rest = NULL;
    struct address address;
    const char *word = strtok_r(line, " \t\r", &rest);

    if (!word || address_read(word, strlen(word), &address) != ADDRESS_PLAIN)
        return;
    while ((word = strtok_r(NULL, " \t\r", &rest)))
        add_host(resolver, &address, word);
}

/* A link is followed here: resolv.conf often is one. */
static void read_lines(struct resolver *resolver, const char *path,
                       void (*take)(struct resolver *resolver, char *line))
{
    autofree char *whole = realpath(path, NULL), *text = whole ? file_text(AT_FDCWD, whole, FILE_MAX) : NULL;
    char *rest = NULL;

    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, "#;")] = '\0';
        take(resolver, line);
    }
}

void resolver_init(struct resolver *resolver, int loop)
{
    *resolver = (struct resolver){ .loop = loop };
    read_lines(resolver, "/etc/resolv.conf", read_server_line);
    read_lines(resolver, "/etc/hosts", read_host_line);
    if (!resolver->servers_len)
        add_server(resolver, "127.0.0.1"); /* as everybody else does */
}

static size_t find_hosts(const struct resolver *resolver, const char *name, struct address *out)
{
    size_t len = 0;

    for (size_t i = 0; i < resolver->hosts_len && len < LOOKUP_ADDRESSES; i++)
        if (strcmp(resolver->hosts[i].name, name) == 0)
            out[len++] = resolver->hosts[i].address;
    return len;
}

/* --- what was heard lately --- */

static struct resolver_cached *cached_place(struct resolver *resolver, const char *name)
{
    size_t hash = 5381;

    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    return &resolver->cache[hash % RESOLVER_CACHE];
}

static void remember(struct resolver *resolver, const struct lookup *lookup)
{
    struct resolver_cached *place = cached_place(resolver, lookup->name);
    uint32_t seconds = lookup->ttl < KEPT_LONGEST_S ? lookup->ttl : KEPT_LONGEST_S;

    free(place->name);
    *place = (struct resolver_cached){ .name = text_copy(lookup->name), .len = lookup->len };
    memcpy(place->addresses, lookup->addresses, sizeof lookup->addresses);
    place->until = clock_us() + (seconds > KEPT_SHORTEST_S ? seconds : KEPT_SHORTEST_S) * 1000000ULL;
}

/* --- asking --- */

static void close_asked(struct lookup *lookup)
{
    for (size_t i = 0; i < ARRAY_LEN(lookup->asked); i++)
        events_close(&lookup->asked[i].source);
}

void lookup_end(struct lookup *lookup)
{
    if (!lookup || lookup->ended)
        return;
    lookup->ended = true;
    close_asked(lookup);
    lookup->next = graveyard;
    graveyard = lookup;
}

void lookups_bury(void)
{
    while (graveyard) {
        struct lookup *dead = graveyard;

        graveyard = dead->next;
        free(dead->name);
        free(dead);
    }
}

static void tell(struct lookup *lookup)
{
    if (lookup->len)
        remember(lookup->resolver, lookup);
    lookup_end(lookup);
    lookup->done(lookup->owner, lookup->addresses, lookup->len);
}

static void answer_ready(struct event_source *source, uint32_t events);

/* A socket of its own for each question: nobody knows where its answer is awaited. */
static bool ask(struct lookup *lookup, struct asked *asked)
{
    const struct resolver *resolver = lookup->resolver;
    const struct sockaddr_in6 *server = &resolver->servers[lookup->tries % resolver->servers_len];
    unsigned char question[DNS_UDP_MAX];

    events_close(&asked->source);
    asked->source =
        (struct event_source){ .fd = socket(server->sin6_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                               .ready = answer_ready };
    if (asked->source.fd < 0 || getrandom(&asked->id, sizeof asked->id, 0) != sizeof asked->id)
        return false;
    size_t len = dns_write_question(asked->id, lookup->name, asked->type, question);
    socklen_t size = server->sin6_family == AF_INET6 ? sizeof *server : sizeof(struct sockaddr_in);

    return connect(asked->source.fd, (const struct sockaddr *)server, size) == 0 &&
           send(asked->source.fd, question, len, 0) == (ssize_t)len &&
           events_add(resolver->loop, &asked->source, EPOLLIN) == 0;
}

/* False: nobody is left to be asked. */
static bool ask_again(struct lookup *lookup)
{
    while (lookup->tries < TRIES) {
        bool sent = false;

        for (size_t i = 0; i < ARRAY_LEN(lookup->asked); i++)
            if (!lookup->asked[i].over && ask(lookup, &lookup->asked[i]))
                sent = true;
        lookup->tries++;
        lookup->again_at = clock_us() + TRY_US;
        if (sent)
            return true;
    }
    return false;
}

bool lookup_tend(struct lookup *lookup, uint64_t now)
{
    if (!lookup || lookup->ended)
        return false;
    if (now < lookup->again_at || ask_again(lookup))
        return true;
    tell(lookup);
    return false;
}

static void take_answer(struct asked *asked, const struct dns_addresses *heard)
{
    struct lookup *lookup = asked->lookup;

    for (size_t i = 0; i < heard->len && lookup->len < LOOKUP_ADDRESSES; i++)
        lookup->addresses[lookup->len++] = heard->items[i];
    if (heard->len && heard->ttl < lookup->ttl)
        lookup->ttl = heard->ttl;
    asked->over = true;
    events_close(&asked->source);
    if (lookup->asked[0].over && lookup->asked[1].over)
        tell(lookup);
}

static void answer_ready(struct event_source *source, uint32_t events)
{
    struct asked *asked = (struct asked *)source;
    struct lookup *lookup = asked->lookup;
    unsigned char bytes[4096];
    struct dns_addresses heard;
    ssize_t got = recv(source->fd, bytes, sizeof bytes, 0);

    (void)events;
    if (lookup->ended)
        return;
    enum dns_heard how =
        got < 0 ? DNS_FAILED
                : dns_read_answer(bytes, (size_t)got, asked->id, lookup->name, asked->type, &heard);

    if (how == DNS_FOREIGN)
        return;
    if (how == DNS_HEARD)
        take_answer(asked, &heard);
    else if (!ask_again(lookup))
        tell(lookup);
}

struct lookup *lookup_begin(struct resolver *resolver, const char *name, lookup_done *done, void *owner)
{
    const struct resolver_cached *cached = cached_place(resolver, name);
    struct address known[LOOKUP_ADDRESSES];
    size_t len = find_hosts(resolver, name, known);

    if (len) {
        done(owner, known, len);
        return NULL;
    }
    if (cached->name && strcmp(cached->name, name) == 0 && cached->until > clock_us()) {
        done(owner, cached->addresses, cached->len);
        return NULL;
    }

    struct lookup *lookup = memory_zero(sizeof *lookup);

    *lookup = (struct lookup){ .resolver = resolver,
                               .name = text_copy(name),
                               .done = done,
                               .owner = owner,
                               .asked = { { .source.fd = -1, .lookup = lookup, .type = DNS_A },
                                          { .source.fd = -1, .lookup = lookup, .type = DNS_AAAA } },
                               .ttl = KEPT_LONGEST_S };
    if (ask_again(lookup))
        return lookup;
    tell(lookup);
    return NULL;
}
