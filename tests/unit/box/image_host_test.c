#include "box/image_host.h"

#include "base/own.h"
#include "base/text.h"
#include "box/etcfiles.h"
#include "tests/support/unit.h"
#include "tests/unit/box/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *root_of(struct world *world)
{
    char *root = NULL;

    if (image_host_root(&world->host, NULL, &root, &world->err) < 0)
        fail_msg("%s", world->err.text);
    return root;
}

static bool exists(const char *root, const char *name)
{
    autofree char *path = text_format("%s/%s", root, name);
    struct stat found;

    return lstat(path, &found) == 0;
}

/* The first kilobytes of a file of the image; valid until the next call. */
static const char *content(const char *root, const char *name)
{
    static char buffer[4096];
    autofree char *path = text_format("%s/%s", root, name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, buffer, sizeof buffer - 1);

    assert_true(len >= 0);
    buffer[len] = '\0';
    return buffer;
}

static void the_image_has_places_to_mount_on_and_names_of_its_own(void **state)
{
    static const char *const names[] = { "usr",
                                         "proc",
                                         "sys",
                                         "dev",
                                         "run",
                                         "tmp",
                                         "var/tmp",
                                         "var/lib/dpkg",
                                         "root",
                                         "etc/mtab",
                                         "etc/nsswitch.conf",
                                         "etc/machine-id",
                                         "etc/resolv.conf" };
    struct world *world = *state;
    struct stat found;

    world->host.uid = 1234;
    world->host.gid = 1235;
    autofree char *root = root_of(world);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!exists(root, names[i]))
            fail_msg("%s is missing", names[i]);
    assert_contains(content(root, "etc/passwd"), "\ntester:x:1234:1235:");
    assert_contains(content(root, "etc/passwd"), "root:x:0:0:");
    assert_contains(content(root, "etc/group"), "tester:x:1235:");
    assert_contains(content(root, "etc/hosts"), "localhost cove");
    assert_string_equal(content(root, "etc/hostname"), "cove\n");

    autofree char *home = text_format("%s%s", root, world->host.home), *tmp = text_format("%s/tmp", root);
    assert_int_equal(stat(home, &found), 0);
    assert_int_equal(stat(tmp, &found), 0);
    assert_int_equal(found.st_mode & 07777, 01777);
}

static void the_image_holds_no_file_that_is_not_listed(void **state)
{
    static const char *const names[] = {
        "etc/shadow",      "etc/gshadow", "etc/sudoers",  "etc/sudoers.d",          "etc/ssh",
        "etc/fstab",       "etc/npmrc",   "etc/pip.conf", "etc/gitconfig",          "etc/environment",
        "etc/ssl/private", "etc/apt",     "etc/cron.d",   "etc/maven/settings.xml", "etc/cove"
    };
    struct world *world = *state;
    autofree char *root = root_of(world);

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (exists(root, names[i]))
            fail_msg("%s is there", names[i]);
    assert_true(exists(root, "etc/services") || !exists("/", "etc/services"));
    assert_true(exists(root, "etc/ld.so.cache") || !exists("/", "etc/ld.so.cache"));
}

static void names_that_would_break_a_table_are_replaced(void **state)
{
    struct world *world = *state;

    world->host.uid = 1234;
    free(world->host.name);
    free(world->host.home);
    world->host.name = text_copy("evil:x:0:0\nroot2");
    world->host.home = text_copy("/home/a:b\nc");
    autofree char *root = root_of(world);
    assert_contains(content(root, "etc/passwd"), "user:x:1234:");
    assert_null(strstr(content(root, "etc/passwd"), "root2"));
    assert_null(strstr(content(root, "etc/passwd"), "a:b"));
}

static void the_same_sources_give_the_same_image(void **state)
{
    struct world *world = *state;
    autofree char *first = root_of(world), *second = root_of(world);

    assert_string_equal(first, second);
}

static void another_user_gets_another_image(void **state)
{
    struct world *world = *state;
    autofree char *first = root_of(world);

    free(world->host.shell);
    world->host.shell = text_copy("/bin/zsh");
    autofree char *second = root_of(world);
    assert_string_not_equal(first, second);
}

/* The lock of this process is on one image only: the older one is free, and goes when it was not used for long.
 */
static void an_image_that_nobody_uses_is_removed(void **state)
{
    struct world *world = *state;
    autofree char *first = root_of(world), *second = NULL;

    world_run(world, "mkdir state/images/new-0123456789abcdef");
    free(world->host.shell);
    world->host.shell = text_copy("/bin/zsh");
    second = root_of(world);
    assert_true(exists(first, "") && exists(second, "")); /* still held while the second was made */
    world_run(world, "test ! -e state/images/new-0123456789abcdef");

    world_run(world, "touch -d '8 days ago' %s/../stamp", first);
    free(world->host.shell);
    world->host.shell = text_copy("/bin/fish");
    autofree char *third = root_of(world);
    assert_false(exists(first, ""));
    assert_true(exists(second, "") && exists(third, ""));
    world_run(world, "test $(ls -d state/images/for-* | wc -l) = 2");
}

static void many_at_once_make_one_whole_image(void **state)
{
    enum { STARTERS = 8 };
    struct world *world = *state;
    int failed = 0;

    fflush(NULL);
    for (int i = 0; i < STARTERS; i++)
        if (fork() == 0) {
            char *root = NULL;
            bool whole = image_host_root(&world->host, NULL, &root, &world->err) == 0 &&
                         exists(root, "etc/passwd") && exists(root, "etc/nsswitch.conf");
            _exit(whole ? 0 : 1);
        }
    for (int i = 0, status; i < STARTERS; i++)
        failed += wait(&status) < 0 || status != 0;
    assert_int_equal(failed, 0);
    world_run(world, "test $(ls -d state/images/host-* | wc -l) = 1 && ! ls -d state/images/new-*");
}

static void a_damaged_stamp_or_link_is_made_anew(void **state)
{
    struct world *world = *state;

    free(root_of(world));
    world_run(world, "for s in state/images/host-*/stamp; do head -c 100 $s >x; cat x >$s; done");
    free(root_of(world));
    world_run(world, "cd state/images && l=$(ls -d for-*) && rm $l && ln -s ../../home $l");
    free(root_of(world));
    world_run(world, "cd state/images && l=$(ls -d for-*) && rm $l && ln -s host-nowhere $l");
    free(root_of(world));
}

/* Reading what a sandbox made is done by programs with another home; neither start may cost the other one. */
static void each_home_has_its_image_while_it_is_used(void **state)
{
    struct world *world = *state;
    char *home = world->host.home, other[] = "/mnt/home";
    autofree char *first = root_of(world), *second = NULL, *again = NULL;

    world->host.home = other;
    second = root_of(world);
    world->host.home = home;
    assert_string_not_equal(first, second);
    world_run(world, "test $(ls -d state/images/host-* | wc -l) = 2");
    again = root_of(world);
    assert_string_equal(first, again);
    assert_true(exists(second, "etc/passwd"));
}

static void an_image_directory_of_somebody_else_is_refused(void **state)
{
    struct world *world = *state;
    char *root = NULL;

    world_run(world, "mkdir -m 0777 state/images");
    assert_int_equal(image_host_root(&world->host, NULL, &root, &world->err), -1);
    assert_contains(world->err.text, "not ours alone");
}

/* --- the files of /etc, with one of our own --------------------------------------------------------- */

struct scanned {
    struct etcfiles files;
    struct text stamp;
};

static bool has(const struct scanned *scanned, const char *path)
{
    for (size_t i = 0; i < scanned->files.len; i++)
        if (strcmp(scanned->files.items[i].path, path) == 0)
            return true;
    return false;
}

static int scan(struct world *world, struct scanned *out)
{
    int etc = open(world_path(world, "etc"), O_PATH | O_DIRECTORY | O_CLOEXEC);

    *out = (struct scanned){ ETCFILES_NONE, TEXT_NONE };
    assert_int_equal(etcfiles_scan(etc, &out->files, &out->stamp, &world->err), 0);
    return etc;
}

static void forget(struct scanned *scanned)
{
    etcfiles_free(&scanned->files);
    text_free(&scanned->stamp);
}

static void only_listed_files_that_everybody_may_read_are_found(void **state)
{
    struct world *world = *state;
    struct scanned found;

    world_run(world, "umask 022; mkdir -p etc/profile.d etc/ssl/certs etc/ssl/private etc/java-9/x "
                     "etc/pki/tls/private && cd etc && "
                     "touch services shadow profile.d/a.sh profile.d/proxy.sh profile.d/my-token.sh "
                     "ssl/certs/ca.pem ssl/certs/k.key "
                     "ssl/private/k java-9/x/y protocols rpc && chmod 0640 protocols && chmod 0700 java-9/x && "
                     "rm rpc && mkfifo rpc && "
                     "ln -s /etc/shadow localtime && head -c 9000000 /dev/zero >magic");
    close(scan(world, &found));
    assert_true(has(&found, "services") && has(&found, "profile.d/a.sh") && has(&found, "ssl/certs/ca.pem"));
    assert_true(has(&found, "localtime"));
    assert_false(has(&found, "shadow") || has(&found, "profile.d/proxy.sh") ||
                 has(&found, "profile.d/my-token.sh"));
    assert_false(has(&found, "ssl/certs/k.key") || has(&found, "ssl/private") ||
                 has(&found, "pki/tls/private"));
    assert_false(has(&found, "java-9/x") || has(&found, "java-9/x/y") || has(&found, "protocols") ||
                 has(&found, "rpc"));
    assert_false(has(&found, "magic"));
    forget(&found);
}

static void a_link_is_copied_as_a_link_and_never_followed(void **state)
{
    struct world *world = *state;
    struct scanned found;
    char target[64] = "";

    world_run(
        world,
        "umask 022; mkdir -p etc out && echo secret >s && ln -s ../s etc/localtime && echo x >etc/services");
    autoclose int etc = scan(world, &found),
                  into = open(world_path(world, "out"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Between scan and copy a file becomes a link. */
    world_run(world, "rm etc/services && ln -s ../s etc/services");
    assert_int_equal(etcfiles_copy(etc, &found.files, into, &world->err), 0);
    assert_int_equal(readlinkat(into, "localtime", target, sizeof target - 1), 4);
    assert_string_equal(target, "../s");
    world_run(world, "test ! -e out/services");
    forget(&found);
}

static void every_change_is_noticed(void **state)
{
    static const struct {
        const char *command;
        bool quick; /* also when only directories are looked at */
    } cases[] = {
        { "echo x >>services", false },
        { "chmod 0600 services", false },
        { "cp services t && mv t services", true },
        { "rm services", true },
        { "touch new", true },
        { "touch profile.d/new", true },
        { "chmod 0700 profile.d", true },
        { "ln -sfn /x localtime", true },
    };
    struct world *world = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scanned found;

        world_run(world, "umask 022; rm -rf etc && mkdir -p etc/profile.d && touch etc/services "
                         "etc/profile.d/a && ln -s /y etc/localtime");
        autoclose int etc = scan(world, &found);
        assert_true(etcfiles_unchanged(etc, found.stamp.data, found.stamp.len, true));
        usleep(10000); /* the kernel's clock for files ticks every few milliseconds */
        world_run(world, "cd etc && %s", cases[i].command);
        if (etcfiles_unchanged(etc, found.stamp.data, found.stamp.len, true))
            fail_msg("%s", cases[i].command);
        if (etcfiles_unchanged(etc, found.stamp.data, found.stamp.len, false) == cases[i].quick)
            fail_msg("quick: %s", cases[i].command);
        forget(&found);
    }
}

static void the_trees_of_the_machine_are_directories_and_not_links(void **state)
{
    struct world *world = *state;
    struct stat found;

    assert_int_equal(image_host_trees(&world->host, &world->trees, &world->err), 0);
    assert_non_null(trees_at(&world->trees, "/usr"));
    for (size_t i = 0; i < world->trees.len; i++) {
        assert_int_equal(lstat(world->trees.items[i].target, &found), 0);
        assert_true(S_ISDIR(found.st_mode));
        assert_int_equal(found.st_ino, world->trees.items[i].inode);
        assert_int_equal(world->trees.items[i].mode, TREE_RO);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_image_has_places_to_mount_on_and_names_of_its_own),
        TEST(the_image_holds_no_file_that_is_not_listed),
        TEST(names_that_would_break_a_table_are_replaced),
        TEST(the_same_sources_give_the_same_image),
        TEST(another_user_gets_another_image),
        TEST(an_image_that_nobody_uses_is_removed),
        TEST(many_at_once_make_one_whole_image),
        TEST(each_home_has_its_image_while_it_is_used),
        TEST(a_damaged_stamp_or_link_is_made_anew),
        TEST(an_image_directory_of_somebody_else_is_refused),
        TEST(only_listed_files_that_everybody_may_read_are_found),
        TEST(a_link_is_copied_as_a_link_and_never_followed),
        TEST(every_change_is_noticed),
        TEST(the_trees_of_the_machine_are_directories_and_not_links),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
