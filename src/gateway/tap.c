#include "gateway/tap.h"

#include "gateway/cached.h"
#include "gateway/take.h"

/* Of all bodies that pass at a time: whoever begins many exchanges gets less of each recorded, and no more
 * memory. */
enum { TAPS_BYTES_MAX = 64 << 20 };

static size_t taps_bytes, taps_most = TAPS_BYTES_MAX;

void taps_bound(uint64_t most)
{
    taps_most = most < TAPS_BYTES_MAX ? (size_t)most : TAPS_BYTES_MAX;
}

size_t taps_kept(void)
{
    return taps_bytes;
}

void tap_free(struct tap *tap)
{
    sha256_end(tap->hash, NULL);
    taps_bytes -= tap->kept.len;
    text_free(&tap->kept);
    *tap = (struct tap){ 0 };
}

void tap_begin(struct tap *tap, bool keep)
{
    tap_free(tap);
    tap->hash = sha256_new();
    tap->keep = keep;
}

void tap_add(struct tap *tap, const void *bytes, size_t len)
{
    if (tap->cached)
        cached_add(tap->cached, bytes, len);
    if (!tap->hash)
        return;
    sha256_add(tap->hash, bytes, len);
    tap->size += len;
    if (!tap->keep || tap->cut)
        return;
    tap->cut = tap->kept.len + len > TAKE_BODY_MAX || taps_bytes + len > taps_most;
    if (tap->cut)
        return;
    text_add_bytes(&tap->kept, bytes, len);
    taps_bytes += len;
}

void tap_end(struct tap *tap, char sha256[SHA256_TEXT])
{
    unsigned char sum[SHA256_BYTES];

    if (!tap->hash)
        tap->hash = sha256_new();
    sha256_end(tap->hash, sum);
    tap->hash = NULL;
    sha256_text(sum, sha256);
}
