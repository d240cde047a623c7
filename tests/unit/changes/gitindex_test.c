#include "changes/gitindex.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "changes/scan.h"
#include "tests/support/unit.h"
#include "tests/support/unit_scratch.h"
#include "tests/unit/changes/world.h"

#include <stdlib.h>

static void write_down(void *owner, const struct gitindex_entry *entry)
{
    text_addf(owner, "%s%s%s\n", entry->path, entry->assumed ? " assumed" : "",
              entry->skipped ? " skipped" : "");
}

static int read_index(struct world *world, const char *path, struct text *out, struct gitindex *index)
{
    autotext struct text bytes = TEXT_NONE;

    assert_true(content_text(world->scratch->dir, path, GITINDEX_BYTES_MAX, &bytes));
    return gitindex_read(text_string(&bytes), bytes.len, write_down, out, index);
}

/* Every version and hash that git writes. */
static void an_index_is_read_as_git_wrote_it(void **state)
{
    static const char *const formats[] = { "sha1", "sha256" };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        for (int version = 2; version <= 4; version++) {
            autotext struct text got = TEXT_NONE;
            struct gitindex index = { 0 };

            world_run(
                world,
                "rm -rf base && git init -q --object-format=%s base && cd base && mkdir -p long/way/down && "
                "touch a long/b long/way/c long/way/down/d long/way/down/ddddddddd z && git add . && "
                "git update-index --index-version %d && git update-index --assume-unchanged a long/way/c && "
                "%s",
                formats[i], version, version > 2 ? "git update-index --skip-worktree z" : "true");
            assert_int_equal(read_index(world, "base/.git/index", &got, &index), 0);
            assert_string_equal(text_string(&got),
                                version > 2 ? "a assumed\nlong/b\nlong/way/c assumed\nlong/way/down/d\n"
                                              "long/way/down/ddddddddd\nz skipped\n"
                                            : "a assumed\nlong/b\nlong/way/c assumed\nlong/way/down/d\n"
                                              "long/way/down/ddddddddd\nz\n");
            assert_false(index.fsmonitor || index.split);
        }
}

static void what_stands_behind_the_entries_is_told(void **state)
{
    struct world *world = *state;
    autotext struct text got = TEXT_NONE;
    struct gitindex index = { 0 };

    world_run(world, "rm -rf base && git init -q base && cd base && touch a && git add . && "
                     "git -c core.fsmonitor=true update-index --fsmonitor 2>/dev/null; "
                     "git -c core.fsmonitor=false update-index --split-index");
    assert_int_equal(read_index(world, "base/.git/index", &got, &index), 0);
    assert_true(index.split);
}

static void what_is_cut_is_refused(void **state)
{
    struct world *world = *state;
    autotext struct text bytes = TEXT_NONE;

    world_run(world, "rm -rf base && git init -q base && cd base && touch a bb ccc && git add .");
    assert_true(content_text(world->scratch->dir, "base/.git/index", GITINDEX_BYTES_MAX, &bytes));
    for (size_t len = 0; len < bytes.len; len++) {
        autofree char *part = malloc(len + 1); /* of its own, so that a read behind it is found */
        autotext struct text got = TEXT_NONE;
        struct gitindex index;

        assert_non_null(part);
        memcpy(part, bytes.data, len);
        (void)gitindex_read(part, len, write_down, &got, &index);
    }
    bytes.data[7] = 9;
    assert_int_equal(gitindex_read(bytes.data, bytes.len, NULL, NULL, &(struct gitindex){ 0 }), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index_is_read_as_git_wrote_it, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_stands_behind_the_entries_is_told, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(what_is_cut_is_refused, world_setup, world_teardown),
    };

    return system("git --version >/dev/null 2>&1") == 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
