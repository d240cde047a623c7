/* A start must not wait for this: whoever ends a sandbox makes what the next one needs, or hands it on, and a
 * start only looks whether the host's files are still those that it was made from. */

#include "keeper/trust.h"

#include "base/array.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "box/environment.h"
#include "box/plan.h"
#include "gateway/gateway.h"
#include "keeper/program.h"
#include "keeper/trust_layer.h"
#include "store/authorities.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MINTED "minted" /* below a sandbox's directory, on its way to the stock */

enum { AUTHORITY_MAX = 8192 };

/* For programs that do not look there, or bring roots of their own. */
static const char *const variables[] = {
    "SSL_CERT_FILE=" TRUST_EVERYBODY,
    "CURL_CA_BUNDLE=" TRUST_EVERYBODY,
    "REQUESTS_CA_BUNDLE=" TRUST_EVERYBODY,
    "PIP_CERT=" TRUST_EVERYBODY,
    "GIT_SSL_CAINFO=" TRUST_EVERYBODY,
    "CARGO_HTTP_CAINFO=" TRUST_EVERYBODY,
    "NODE_EXTRA_CA_CERTS=" TRUST_OURS, /* in addition to node's own */
    "npm_config_cafile=" TRUST_EVERYBODY,
    "AWS_CA_BUNDLE=" TRUST_EVERYBODY,
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=" TRUST_EVERYBODY,
    "NIX_SSL_CERT_FILE=" TRUST_EVERYBODY,
    "DENO_CERT=" TRUST_EVERYBODY,
};

int trust_authority(int dir)
{
    autoclose int used = openat(dir, STORE_TRUST_USED, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    return used < 0 ? -1 : openat(dir, STORE_AUTHORITY, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* --- authorities --- */

static void wipe(char *pem)
{
    if (pem)
        explicit_bzero(pem, strlen(pem));
    free(pem);
}

/* Those that were made: texts one behind the other, and an empty one. */
struct minted {
    char bytes[AUTHORITIES_MAX * AUTHORITY_MAX + 2];
};

static void minted_free(struct minted **minted)
{
    if (*minted)
        explicit_bzero(*minted, sizeof **minted);
    free(*minted);
}

/* By the gateway's program (gateway/gateway.h); NULL: it could not. */
static struct minted *mint(size_t count)
{
    char number[24];
    const char *const argv[] = { GATEWAY_MINT, number, NULL };
    struct minted *minted = memory_zero(sizeof *minted);

    snprintf(number, sizeof number, "%zu", count);
    if (program_ask(argv, -1, minted->bytes, sizeof minted->bytes - 1) == 0)
        return minted;
    minted_free(&minted);
    return NULL;
}

static int open_trust(int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void stock_all(int dir, const char *at)
{
    struct error ignored;

    for (; *at; at += strlen(at) + 1) {
        autoclose int trust = open_trust(dir, MINTED);

        if (trust >= 0 && store_write_file(trust, TRUST_KEY, at, strlen(at), &ignored) == 0)
            authorities_add(dir, MINTED);
    }
}

void trust_stock(int dir)
{
    size_t wanted = authorities_wanted(dir);
    __attribute__((cleanup(minted_free))) struct minted *minted = wanted ? mint(wanted) : NULL;

    if (minted)
        stock_all(dir, minted->bytes);
}

/* The sandbox's own; NULL: it has none, or only a half, as when the machine stopped before all of it was on the
 * disk. */
static char *own_authority(int dir)
{
    char *pem = file_text(dir, STORE_AUTHORITY, AUTHORITY_MAX);

    if (pem && text_ends(pem, "-----END CERTIFICATE-----\n"))
        return pem;
    wipe(pem);
    return NULL;
}

/* One for now, and with it the stock's, as the first costs a process more than all that follow. */
static char *new_authority(int dir, int trust, struct error *err)
{
    __attribute__((cleanup(minted_free))) struct minted *minted = mint(AUTHORITIES_MAX);
    const char *own = minted ? minted->bytes : "";

    if (!*own) {
        error_set(err, ERROR_SYSTEM, "no certificate authority could be made");
        return NULL;
    }
    if (store_write_file(trust, TRUST_KEY, own, strlen(own), err) < 0)
        return NULL;
    stock_all(dir, own + strlen(own) + 1);
    return text_copy(own);
}

/* What a layer is made for. */
struct base {
    int image;
    bool host;
    struct text stamp;
};

static int make_all(int dir, const struct base *base, struct error *err)
{
    autoclose int trust = open_trust(dir, STORE_TRUST);
    char *authority = trust < 0 ? NULL : own_authority(dir);

    if (trust < 0)
        error_sys(err, "make a directory for certificates");
    else if (!authority)
        authority = new_authority(dir, trust, err);
    int result = authority ? trust_lay(trust, base->image, base->host, authority, &base->stamp, err) : -1;

    wipe(authority);
    return result < 0 ? error_while(err, "prepare the certificates inside") : 0;
}

static void await(pid_t child)
{
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* By a child: what the bundles take of memory goes with it, and a keeper may live for days. */
static int make_all_apart(int dir, const struct base *base, struct error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "prepare the certificates inside");
    pid_t child = fork();

    if (child == 0) {
        struct error why = { .kind = ERROR_NONE };

        (void)make_all(dir, base, &why);
        _exit(write(ends[1], &why, sizeof why) == (ssize_t)sizeof why ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = child < 0 ? -1 : read(ends[0], err, sizeof *err);

    close(ends[0]);
    await(child);
    if (got != (ssize_t)sizeof *err)
        return error_set(err, ERROR_SYSTEM, "the certificates inside could not be prepared");
    return err->kind == ERROR_NONE ? 0 : -1;
}

static void add_variables(struct plan *plan)
{
    autostrings struct strings ours = STRINGS_NONE;

    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        strings_add(&ours, variables[i]);
    environment_default(&plan->env, &ours);
}

/* What it has before, or one of the stock. */
static void take_authority(int dir)
{
    if (faccessat(dir, STORE_TRUST, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        (void)authorities_take(dir);
}

static _Noreturn void make_ahead(int dir)
{
    autoclose int image = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct base base = { image, true, TEXT_NONE };
    struct error ignored;

    take_authority(dir);
    trust_stamp(image, &base.stamp);
    if (!trust_is_current(dir, STORE_TRUSTED, &base.stamp))
        (void)make_all(dir, &base, &ignored);
    _exit(0);
}

void trust_ahead(int dir, struct trust_ahead *out)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    *out = (struct trust_ahead){ fork(), ends[0] };
    if (out->child == 0)
        make_ahead(dir);
    close(ends[1]); /* only the child has it */
}

void trust_heed(int done)
{
    char nothing;

    while (done >= 0 && read(done, &nothing, 1) < 0 && errno == EINTR)
        continue;
}

void trust_await(struct trust_ahead *ahead)
{
    await(ahead->child);
    own_close(&ahead->done);
    *ahead = TRUST_AHEAD_NONE;
}

int trust_prepare(struct plan *plan, const struct sandbox_dir *dir, struct error *err)
{
    const char *root = plan->host_image ? "/" : plan->trees.items[0].source;
    autoclose int image = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct base base = { image, plan->host_image, TEXT_NONE };

    if (image < 0)
        return error_sys(err, "open %s", root);
    take_authority(dir->fd);
    trust_stamp(image, &base.stamp);
    bool made = (base.host && trust_is_current(dir->fd, STORE_TRUSTED, &base.stamp)) ||
                make_all_apart(dir->fd, &base, err) == 0;

    text_free(&base.stamp);
    if (!made)
        return -1;
    plan->trust = true;
    add_variables(plan);
    return 0;
}
