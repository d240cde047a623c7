#include "git/parcel.h"

#include "base/error.h"
#include "base/own.h"
#include "base/text.h"
#include "git/land.h"
#include "git/repository.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PACK_BYTES_MAX (4ULL << 30)
#define INDEX_BYTES_MAX (1ULL << 30)

static const char pack_script[] = "{ echo $1; cat known; } |\n"
                                  "  git pack-objects --revs --stdout -q --threads=1 --delta-base-offset\n";

/* The owner's objects are all it may lean on. */
static const char check_script[] =
    "set -e\n"
    "git index-pack --strict --threads=1 objects/pack/pack-$2.pack >/dev/null\n"
    "[ \"$(git cat-file -t $1)\" = commit ] || { echo 'a branch that leads to no commit' >&2; exit 1; }\n"
    "{ echo $1; cat known; } | git rev-list --objects --quiet --stdin\n"
    "cat objects/pack/pack-$2.idx\n";

void parcel_free(struct parcel *parcel)
{
    own_close(&parcel->pack);
    own_close(&parcel->index);
    shadow_remove(&parcel->check);
}

/* A file of ours becomes one that git reads, whoever it runs as. */
static int give_name(const struct parcel *parcel, int fd, const char *from, const char *ending,
                     struct error *err)
{
    autofree char *name = text_format("git/objects/pack/pack-%s%s", parcel->name, ending);

    if (fchmod(fd, 0444) < 0 || renameat(parcel->check.dir.fd, from, parcel->check.dir.fd, name) < 0)
        return error_sys(err, "name the pack");
    return 0;
}

static int pack(const struct shadow *from, const char *tip, size_t digits, struct parcel *parcel,
                struct error *err)
{
    struct shadow_script script = {
        .doing = "packing the commits", .text = pack_script, .words = { tip }, .output_most = PACK_BYTES_MAX
    };

    parcel->pack = shadow_file(&parcel->check, "pack", err);
    script.out = parcel->pack;
    if (parcel->pack < 0 || shadow_run(from, &script, err) < 0 ||
        land_name_pack(parcel->pack, digits, parcel->name, err) < 0)
        return -1;
    return give_name(parcel, parcel->pack, "pack", ".pack", err);
}

static int check(const char *tip, struct parcel *parcel, struct error *err)
{
    struct shadow_script script = { .doing = "checking the commits",
                                    .text = check_script,
                                    .words = { tip, parcel->name },
                                    .output_most = INDEX_BYTES_MAX,
                                    .may_write = true };

    parcel->index = shadow_file(&parcel->check, "index", err);
    script.out = parcel->index;
    if (parcel->index < 0 || shadow_run(&parcel->check, &script, err) < 0)
        return -1;
    return give_name(parcel, parcel->index, "index", ".idx", err);
}

int parcel_make(const struct shadow *from, const struct repository *repository, const char *tip,
                const char *known, struct parcel *out, struct error *err)
{
    *out = PARCEL_NONE;
    if (shadow_write(from, "known", known, strlen(known), err) < 0 ||
        shadow_make(from->host, repository, &out->check, err) < 0 ||
        shadow_write(&out->check, "known", known, strlen(known), err) < 0)
        return -1;
    return pack(from, tip, repository->digits, out, err) < 0 || check(tip, out, err) < 0 ? -1 : 0;
}
