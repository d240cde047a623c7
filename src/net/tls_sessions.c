/* Sessions that servers outside have offered to resume.
 *
 * A session that is resumed shows no certificate: it stands for the one that was verified when it began.  So it
 * is found only by whoever would verify the same again (the id says by whom and for whom), and for a while
 * only: a certificate that is replaced or revoked is not believed for longer. */

#include "net/tls_inner.h"

#include "base/clock.h"

#include <string.h>

enum { TICKET_MAX = 4096 };

static const uint64_t believed_us = 600 * 1000000ULL; /* since its certificate was verified */

struct kept {
    unsigned char id[TLS_ID];
    SSL_SESSION *session; /* NULL: free */
    uint64_t verified;
};

/* `next` is the oldest, once there are so many. */
static struct {
    struct kept items[TLS_SESSIONS_MAX];
    size_t next;
} all;

static struct kept *find(const unsigned char id[TLS_ID])
{
    for (size_t i = 0; i < TLS_SESSIONS_MAX; i++)
        if (all.items[i].session && memcmp(all.items[i].id, id, TLS_ID) == 0)
            return &all.items[i];
    return NULL;
}

static void drop(struct kept *kept)
{
    SSL_SESSION_free(kept->session);
    *kept = (struct kept){ .session = NULL };
}

static bool is_good(const struct kept *kept)
{
    X509 *shown = SSL_SESSION_get0_peer(kept->session);

    return shown && X509_cmp_current_time(X509_get0_notAfter(shown)) > 0 &&
           clock_us() - kept->verified < believed_us && SSL_SESSION_is_resumable(kept->session);
}

SSL_SESSION *tls_sessions_find(const unsigned char id[TLS_ID], uint64_t *verified)
{
    struct kept *kept = find(id);

    if (kept && !is_good(kept)) {
        drop(kept);
        return NULL;
    }
    *verified = kept ? kept->verified : 0;
    return kept ? kept->session : NULL;
}

bool tls_sessions_keep(const unsigned char id[TLS_ID], SSL_SESSION *session, uint64_t verified)
{
    struct kept *kept = find(id);
    const unsigned char *ticket;
    size_t len;

    SSL_SESSION_get0_ticket(session, &ticket, &len);
    if (len > TICKET_MAX)
        return false;
    if (!kept) {
        kept = &all.items[all.next];
        all.next = (all.next + 1) % TLS_SESSIONS_MAX;
    }
    drop(kept);
    memcpy(kept->id, id, TLS_ID);
    kept->session = session;
    kept->verified = verified;
    return true;
}

void tls_sessions_forget(const unsigned char id[TLS_ID])
{
    struct kept *kept = find(id);

    if (kept)
        drop(kept);
}

size_t tls_sessions_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < TLS_SESSIONS_MAX; i++)
        count += all.items[i].session != NULL;
    return count;
}
