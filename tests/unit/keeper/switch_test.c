/* Layers of a real sandbox: started on them, and switched under PID 1 while it lives.  The argument says as
 * whom: root, user or nested. */

#include "base/error.h"
#include "base/own.h"
#include "box/switch.h"
#include "tests/support/unit.h"
#include "tests/unit/keeper/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static void freeze(struct sandbox *sandbox, uint64_t step, char lid[ID_LENGTH + 1])
{
    autostrings struct strings chain = STRINGS_NONE;
    struct error err = { 0 };

    if (stack_freeze(&sandbox->place, step, &chain, &err) < 0)
        fail_msg("%s", err.text);
    snprintf(lid, ID_LENGTH + 1, "%s", chain.items[0]);
}

static void turn(struct sandbox *sandbox, const char *lid)
{
    autostrings struct strings chain = STRINGS_NONE;
    struct error err = { 0 };

    if (stack_turn(&sandbox->place, lid, &chain, &err) < 0)
        fail_msg("%s", err.text);
}

#define SHOW "cat base more 2>/dev/null; ls | grep -v -e config -e tools -e other; stat -c %a .; cat ~/.note"

/* --- starts --------------------------------------------------------------------------------- */

static void a_start_shows_what_was_frozen(void **state)
{
    struct sandbox *sandbox = *state;
    char one[ID_LENGTH + 1], two[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox,
                   "echo one >base; echo more >more; mkdir d; echo x >d/x; chmod 750 .; echo n >~/.note", "");
    sandbox_stop(sandbox);
    freeze(sandbox, 1, one);

    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox, SHOW, "one\nmore\nbase\nd\nmore\n750\nn\n");
    sandbox_expect(sandbox, "rm base d/x; echo two >>more; chmod 700 .; echo m >~/.note; echo y >d/y", "");
    sandbox_stop(sandbox);
    freeze(sandbox, 2, two);

    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox, SHOW, "more\ntwo\nd\nmore\n700\nm\n");
    sandbox_expect(sandbox, "ls d; rm -r d; mkdir d; ls d", "y\n");
    sandbox_stop(sandbox);

    turn(sandbox, one);
    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox, SHOW, "one\nmore\nbase\nd\nmore\n750\nn\n");
    sandbox_stop(sandbox);
}

/* --- switches --------------------------------------------------------------------------------- */

/* What is done while nothing is mounted: with `to` NULL freeze, else turn to it. */
struct exchange {
    struct sandbox *sandbox;
    const char *to;
    bool fail;
    uint64_t step, trees;
    char frozen[ID_LENGTH + 1];
};

static int do_exchange(void *owner, struct strings *stack, struct error *err)
{
    struct exchange *exchange = owner;
    struct stack_place place = exchange->sandbox->place;

    place.trees = exchange->trees;
    if (exchange->fail)
        return error_set(err, ERROR_REFUSED, "not now");
    if (exchange->to)
        return stack_turn(&place, exchange->to, stack, err);
    if (stack_freeze(&place, exchange->step, stack, err) < 0)
        return -1;
    snprintf(exchange->frozen, sizeof exchange->frozen, "%s", stack->items[0]);
    return 0;
}

static int try_switch(struct sandbox *sandbox, struct exchange *exchange, struct error *err)
{
    struct box_switch what = { .plan = &sandbox->plan,
                               .host = &sandbox->host,
                               .dir = &sandbox->dir,
                               .trees = exchange->trees,
                               .exchange = do_exchange,
                               .owner = exchange };

    exchange->sandbox = sandbox;
    return box_switch(&sandbox->box, &what, err);
}

static void must_switch(struct sandbox *sandbox, struct exchange *exchange)
{
    struct error err = { 0 };
    int result = try_switch(sandbox, exchange, &err);

    if (result != SWITCH_DONE)
        fail_msg("the switch gave %d: %s", result, err.text);
}

static void checkpoint(struct sandbox *sandbox, char lid[ID_LENGTH + 1])
{
    struct exchange exchange = { .step = 1 };

    must_switch(sandbox, &exchange);
    memcpy(lid, exchange.frozen, sizeof exchange.frozen);
}

static void roll_back(struct sandbox *sandbox, const char *lid)
{
    must_switch(sandbox, &(struct exchange){ .to = lid });
}

static void a_switch_keeps_what_was_written(void **state)
{
    struct sandbox *sandbox = *state;
    char zero[ID_LENGTH + 1], one[ID_LENGTH + 1], two[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    checkpoint(sandbox, zero);
    sandbox_expect(sandbox,
                   "echo one >base; echo more >more; mkdir d; echo x >d/x; chmod 750 .; echo n >~/.note", "");
    checkpoint(sandbox, one);
    sandbox_expect(sandbox, SHOW, "one\nmore\nbase\nd\nmore\n750\nn\n");
    sandbox_expect(sandbox, "rm base; echo two >>more; rm -r d; mkdir d; echo m >~/.note; chmod 700 .", "");
    checkpoint(sandbox, two);
    sandbox_expect(sandbox, SHOW "; ls d", "more\ntwo\nd\nmore\n700\nm\n");
    sandbox_expect(sandbox, "echo lost >lost", "");
    roll_back(sandbox, one);
    sandbox_expect(sandbox, SHOW "; cat d/x", "one\nmore\nbase\nd\nmore\n750\nn\nx\n");
    sandbox_expect(sandbox, "echo three >base", "");
    roll_back(sandbox, zero);
    sandbox_expect(sandbox, "cat base; ls -I config -I tools -I other; ls ~/.note 2>/dev/null || echo none",
                   "base\nbase\nnone\n");
    roll_back(sandbox, two);
    sandbox_expect(sandbox, SHOW, "more\ntwo\nd\nmore\n700\nm\n");
    sandbox_expect(sandbox,
                   "echo in | cat; cat /proc/self/comm; ls /dev/null; test -w /dev/shm && test -w /tmp",
                   "in\ncat\n/dev/null\n");
}

/* Without the ids, which change, in the order of paths. */
#define MOUNTS "cut -d' ' -f5- /proc/self/mountinfo | sed 's,/fd/[0-9]*,,g' | cut -d' ' -f1,2 | sort"

static void all_mounts_come_back(void **state)
{
    struct sandbox *sandbox = *state;
    static const char look[] =
        "cat tools/tool config ~/tools/tool ~/config ~/written /run/tools/tool /run/config other/file "
        "/run/other/file; ls -A | grep env; for f in tools/x ~/tools/x /run/tools/x config ~/config "
        "/run/config /etc/x /usr/x; do echo x 2>/dev/null >>$f && echo wrote $f; done; true";
    static const char found[] = "tool\nconfig\ntool\nconfig\nconfig\ntool\nconfig\nother\nother\n";
    autofree char *before = NULL;
    char one[ID_LENGTH + 1], two[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    sandbox_run(sandbox, MOUNTS);
    before = text_copy(text_string(&sandbox->output));
    sandbox_expect(sandbox, look, found);
    checkpoint(sandbox, one);
    sandbox_expect(sandbox, MOUNTS, before);
    sandbox_expect(sandbox, look, found);
    sandbox_expect(
        sandbox,
        "for d in . ~ other /run/other /tmp; do echo y >$d/y; done; echo z >>~/written; echo mine >.env", "");
    checkpoint(sandbox, two);
    sandbox_expect(sandbox, "cat y ~/y other/y /run/other/y /tmp/y ~/written .env",
                   "y\ny\ny\ny\ny\nconfig\nz\nmine\n");
    sandbox_expect(sandbox, MOUNTS, before);
    roll_back(sandbox, one);
    sandbox_expect(sandbox, MOUNTS, before);
    sandbox_expect(sandbox, look, found);
    sandbox_expect(sandbox, "ls y ~/y other/y /run/other/y /tmp/y .env 2>/dev/null | wc -l", "0\n");
    sandbox_stop(sandbox);
    sandbox_start(sandbox, NULL); /* the same again by a start */
    sandbox_expect(sandbox, look, found);
}

/* Ids too. */
static char *mount_ids(struct sandbox *sandbox, const char *without)
{
    autofree char *script =
        text_format("cut -d' ' -f1,5 /proc/self/mountinfo | sort | grep -v -e ' %s$'", without);

    sandbox_run(sandbox, script);
    return text_copy(text_string(&sandbox->output));
}

/* Freezes and goes back with only this tree; all others stay mounted, unless its own root has to go along. */
static void switch_alone(struct sandbox *sandbox, const struct step *step, const char *look, const char *found)
{
    const char *dir = step->target[1] ? step->target : "/tmp";
    autofree char *before = mount_ids(sandbox, step->target), *after = NULL,
                  *put = text_format("echo one >%s/part", dir), *show = text_format("cat %s/part", dir),
                  *change = text_format("echo two >%s/part; echo more >%s/more", dir, dir),
                  *all = text_format("cat %s/part %s/more 2>/dev/null", dir, dir);
    struct exchange one = { .trees = 1ULL << step->layer, .step = 1 }, two = one, back = one;

    sandbox_expect(sandbox, put, "");
    must_switch(sandbox, &one);
    sandbox_expect(sandbox, show, "one\n");
    after = mount_ids(sandbox, step->target);
    if (text_starts(dir, "/run/"))
        assert_string_equal(after, before);
    sandbox_expect(sandbox, change, "");
    must_switch(sandbox, &two);
    sandbox_expect(sandbox, all, "two\nmore\n");
    back.to = one.frozen;
    must_switch(sandbox, &back);
    sandbox_run(sandbox, all);
    assert_string_equal(text_string(&sandbox->output), "one\n");
    sandbox_expect(sandbox, look, found);
}

static void each_tree_can_be_switched_alone(void **state)
{
    struct sandbox *sandbox = *state;
    static const char look[] = "cat tools/tool config ~/tools/tool ~/config /run/tools/tool other/file "
                               "/run/other/file; for f in tools/x ~/config /usr/x; do echo x 2>/dev/null >>$f "
                               "&& echo wrote $f; done; true";
    static const char found[] = "tool\nconfig\ntool\nconfig\ntool\nother\nother\n";
    autofree char *before = NULL;
    char zero[ID_LENGTH + 1];
    int count = 0;

    sandbox_start(sandbox, NULL);
    checkpoint(sandbox, zero);
    sandbox_run(sandbox, MOUNTS);
    before = text_copy(text_string(&sandbox->output));
    for (size_t i = 0; i < sandbox->plan.steps.len; i++) {
        const struct step *step = &sandbox->plan.steps.items[i];

        if ((step->kind != STEP_ROOT && step->kind != STEP_TREE) || step->layer < 0)
            continue;
        switch_alone(sandbox, step, look, found);
        sandbox_expect(sandbox, MOUNTS, before);
        count++;
    }
    assert_true(count >= 4);
    sandbox_expect(sandbox, "cat part other/part /run/other/part /tmp/part", "one\none\none\none\n");
    sandbox_stop(sandbox);
    sandbox_start(sandbox, NULL); /* on layers of which none has all trees but the first */
    sandbox_expect(sandbox, "cat part other/part /run/other/part /tmp/part", "one\none\none\none\n");
    roll_back(sandbox, zero);
    sandbox_expect(sandbox, "ls part other/part /run/other/part /tmp/part 2>/dev/null | wc -l", "0\n");
    sandbox_expect(sandbox, look, found);
}

/* With --root the system's own trees are writable overlays too. */
static void root_in_the_box_goes_back_too(void **state)
{
    struct sandbox *sandbox = *state;
    autofree char *before = NULL;
    char one[ID_LENGTH + 1], two[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    sandbox_run(sandbox, MOUNTS);
    before = text_copy(text_string(&sandbox->output));
    sandbox_expect(
        sandbox, "id -u; echo a >/usr/a; chown 33:33 /usr/a; mkdir /opt/x 2>/dev/null; echo e >/etc/e", "0\n");
    checkpoint(sandbox, one);
    sandbox_expect(sandbox, MOUNTS, before);
    sandbox_expect(sandbox,
                   "cat /usr/a /etc/e; stat -c %u:%g:%a /usr/a /; rm /usr/a; rm /usr/bin/id; chmod 711 /",
                   "a\ne\n33:33:644\n0:0:755\n");
    checkpoint(sandbox, two);
    sandbox_expect(sandbox, "ls /usr/a /usr/bin/id 2>/dev/null; stat -c %a /", "711\n");
    roll_back(sandbox, one);
    sandbox_expect(sandbox, "id -u; cat /usr/a; stat -c %u:%g:%a /usr/a /", "0\na\n33:33:644\n0:0:755\n");
    sandbox_expect(sandbox, MOUNTS, before);
}

static int root_setup(void **state)
{
    sandbox_wish.user = "root";

    int result = sandbox_setup(state);

    sandbox_wish.user = NULL;
    return result;
}

/* What is written through stays as it is: it is the host's. */
static void a_workspace_that_is_written_through_stays(void **state)
{
    struct sandbox *sandbox = *state;
    autofree char *before = NULL;
    char one[ID_LENGTH + 1], two[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    sandbox_run(sandbox, MOUNTS);
    before = text_copy(text_string(&sandbox->output));
    checkpoint(sandbox, one);
    sandbox_expect(sandbox, "echo h >here; echo n >~/.note", "");
    checkpoint(sandbox, two);
    sandbox_expect(sandbox, MOUNTS, before);
    roll_back(sandbox, one);
    sandbox_expect(sandbox, "cat here; ls ~/.note 2>/dev/null || echo none", "h\nnone\n");
    sandbox_expect(sandbox, MOUNTS, before);
}

static int rw_setup(void **state)
{
    sandbox_wish.workspace = WORKSPACE_RW;

    int result = sandbox_setup(state);

    sandbox_wish.workspace = WORKSPACE_COW;
    return result;
}

static void forks_do_not_see_each_other(void **state)
{
    struct sandbox *sandbox = *state;
    uint32_t base = sandbox->place.ids;
    struct sandbox forks[2];
    char one[ID_LENGTH + 1], two[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox, "echo one >base; echo n >~/.note; mkdir d; echo x >d/x", "");
    checkpoint(sandbox, one);
    sandbox_expect(sandbox, "echo later >base", "");
    for (int i = 0; i < 2; i++) {
        sandbox_fork(sandbox, one, base, &forks[i]);
        sandbox_start(&forks[i], NULL);
        sandbox_expect(&forks[i], SHOW "; stat -c %u d/x | grep -cx $(id -u)", "one\nbase\nd\n755\nn\n1\n");
        sandbox_expect(&forks[i], i ? "echo b >base; rm -r d" : "echo a >base; echo y >d/y", "");
        checkpoint(&forks[i], two);
    }
    sandbox_expect(sandbox, "cat base; ls d", "later\nx\n");
    sandbox_expect(&forks[0], "cat base; ls d", "a\nx\ny\n");
    sandbox_expect(&forks[1], "cat base; ls d 2>/dev/null || echo none", "b\nnone\n");
    for (int i = 0; i < 2; i++)
        sandbox_fork_end(&forks[i]);
    sandbox_expect(sandbox, "cat base; ls d", "later\nx\n");
    assert_int_equal(faccessat(sandbox->place.layers, two, F_OK, 0), -1);
}

/* Layers of root's sandboxes are owned by a range of ids that no other sandbox has by chance. */
static void layers_with_other_ids_are_refused(void **state)
{
    struct sandbox *sandbox = *state, fork;
    char one[ID_LENGTH + 1];
    uint32_t other = sandbox->place.ids == 0x70000000 ? 0x70010000 : 0x70000000;

    sandbox_start(sandbox, NULL);
    checkpoint(sandbox, one);
    sandbox_fork(sandbox, one, other, &fork);
    assert_contains(sandbox_cannot_start(&fork), "of a sandbox with other ids");
    sandbox_fork_end(&fork);
}

static void must_be_busy(struct sandbox *sandbox, const char *why)
{
    struct exchange exchange = { .step = 1 };
    struct error err = { 0 };

    assert_int_equal(try_switch(sandbox, &exchange, &err), SWITCH_BUSY);
    assert_string_equal(exchange.frozen, "");
    assert_contains(err.text, why);
}

/* A shell that was killed leaves the sleep that it was waiting for. */
static void wait_until_alone(struct sandbox *sandbox)
{
    sandbox_run(sandbox, "while for p in /proc/[0-9]*; do read -r name <$p/comm && test \"$name\" = sleep && "
                         "break; done; do :; done 2>/dev/null");
}

static void a_process_is_never_disturbed(void **state)
{
    static const char *const habits[] = {
        "echo r; exec sleep 1000",
        "exec 9>>log; echo r; while :; do echo l >&9; sleep 0.01; done",
        "cd /tmp; echo r; while :; do echo l >>log; sleep 0.01; done",
    };
    struct sandbox *sandbox = *state;
    char lid[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    for (size_t i = 0; i < ARRAY_LEN(habits); i++) {
        int32_t pid = sandbox_begin(sandbox, habits[i]);

        must_be_busy(sandbox, "processes are running");
        if (i > 0)
            sandbox_expect(sandbox,
                           "while f=$(ls log /tmp/log 2>/dev/null | tail -1); test -z $f; do sleep 0.1; done;"
                           "a=$(wc -l <$f); i=0;"
                           "while test $(wc -l <$f) -le $a && test $i -lt 300; do sleep 0.1; i=$((i+1)); done;"
                           "test $i -lt 300 && echo grows",
                           "grows\n");
        sandbox_end(sandbox, pid);
        sandbox_run(sandbox, "rm -f log /tmp/log");
    }
    wait_until_alone(sandbox);
    checkpoint(sandbox, lid);
}

/* Somebody outside holds what PID 1 cannot know of: here the list of its mounts, which refers to its root. */
static void a_handle_from_outside_is_noticed(void **state)
{
    struct sandbox *sandbox = *state;
    autofree char *before = NULL;
    char lid[ID_LENGTH + 1];
    int list;

    sandbox_start(sandbox, &list);
    sandbox_run(sandbox, "echo w >w; " MOUNTS);
    before = text_copy(text_string(&sandbox->output));
    for (int i = 0; i < 3; i++) {
        must_be_busy(sandbox, "unmount /");
        sandbox_expect(sandbox, MOUNTS, before);
        sandbox_expect(sandbox, "cat w config ~/config", "w\nconfig\nconfig\n");
    }
    close(list);
    checkpoint(sandbox, lid);
    sandbox_expect(sandbox, "cat w", "w\n");
}

/* One that is replaced where it is, too.  Only root can reach into it from outside. */
static void a_handle_in_one_tree_is_noticed(void **state)
{
    struct sandbox *sandbox = *state;
    autofree char *path = NULL;
    struct exchange exchange = { .step = 1 };
    struct error err = { 0 };
    char zero[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    checkpoint(sandbox, zero);
    sandbox_expect(sandbox, "echo w >/run/other/w", "");
    for (size_t i = 0; i < sandbox->plan.steps.len; i++)
        if (sandbox->plan.steps.items[i].kind == STEP_TREE &&
            strcmp(sandbox->plan.steps.items[i].target, "/run/other") == 0)
            exchange.trees = 1ULL << sandbox->plan.steps.items[i].layer;
    assert_true(exchange.trees);
    path = text_format("/proc/%d/root/run/other/w", sandbox->box.pid);

    autoclose int held = open(path, O_RDWR | O_APPEND | O_CLOEXEC);

    if (geteuid() == 0) {
        assert_true(held >= 0);
        assert_int_equal(try_switch(sandbox, &exchange, &err), SWITCH_BUSY);
        assert_contains(err.text, "unmount /run/other");
        assert_int_equal(write(held, "x\n", 2), 2);
    }
    own_close(&held);
    must_switch(sandbox, &exchange);
    sandbox_expect(sandbox, "cat /run/other/w", geteuid() == 0 ? "w\nx\n" : "w\n");
}

static void a_moved_mount_is_noticed(void **state)
{
    struct sandbox *sandbox = *state;
    char lid[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox, "mv /tmp/above /tmp/moved", "");
    must_be_busy(sandbox, "find what was mounted at");
    sandbox_expect(sandbox, "cat /tmp/moved/tools/tool", "tool\n");
    sandbox_expect(sandbox, "mv /tmp/moved /tmp/above", "");
    checkpoint(sandbox, lid);
}

static void layers_that_cannot_be_exchanged_stay(void **state)
{
    struct sandbox *sandbox = *state;
    struct exchange exchange = { .fail = true };
    struct error err = { 0 };
    char lid[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox, "echo w >w", "");
    assert_int_equal(try_switch(sandbox, &exchange, &err), SWITCH_KEPT);
    assert_string_equal(err.text, "not now");
    sandbox_expect(sandbox, "cat w; echo x >>w", "w\n");
    checkpoint(sandbox, lid);
    sandbox_expect(sandbox, "cat w", "w\nx\n");
}

/* As deep as the kernel gets it, and not deeper. */
static void the_sixteenth_layer_is_the_last(void **state)
{
    struct sandbox *sandbox = *state;
    struct exchange exchange = { .step = 17 };
    struct error err = { 0 };
    char lid[ID_LENGTH + 1];

    sandbox_start(sandbox, NULL);
    for (int i = 0; i < LAYERS_DEPTH_MAX; i++) {
        sandbox_expect(sandbox, "echo l >>log", "");
        checkpoint(sandbox, lid);
    }
    sandbox_expect(sandbox, "echo l >>log; wc -l <log", "17\n");
    assert_int_equal(try_switch(sandbox, &exchange, &err), SWITCH_KEPT);
    assert_contains(err.text, "merge them first");
    sandbox_expect(sandbox, "echo l >>log; wc -l <log", "18\n");
    sandbox_stop(sandbox);
    sandbox_start(sandbox, NULL);
    sandbox_expect(sandbox, "wc -l <log", "18\n");
}

static size_t count_entries(const char *path)
{
    DIR *entries = opendir(path);
    size_t count = 0;

    if (!entries)
        return 0;
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

struct counts {
    size_t ours, its, directory, layers;
    char mounts[16];
};

static struct counts take_counts(struct sandbox *sandbox)
{
    autofree char *its = text_format("/proc/%d/fd", sandbox->box.pid); /* closed to ordinary users: 0 */
    autofree char *directory = text_format("%s/sandboxes/%s", sandbox->host.state, sandbox->dir.id);
    autofree char *layers = text_format("%s/layers", sandbox->host.state);
    struct counts counts;

    stack_clean(sandbox->dir.fd);
    sandbox_run(sandbox, "wc -l </proc/self/mountinfo");
    counts = (struct counts){ count_entries("/proc/self/fd"), count_entries(its), count_entries(directory),
                              count_entries(layers), "" };
    snprintf(counts.mounts, sizeof counts.mounts, "%s", text_string(&sandbox->output));
    return counts;
}

static void two_hundred_leave_nothing(void **state)
{
    struct sandbox *sandbox = *state;
    struct error err = { 0 };
    char zero[ID_LENGTH + 1], lids[8][ID_LENGTH + 1];
    struct counts before, after;

    sandbox_start(sandbox, NULL);
    checkpoint(sandbox, zero);
    before = take_counts(sandbox);
    for (int round = 0; round < 22; round++) {
        for (size_t i = 0; i < ARRAY_LEN(lids); i++) {
            sandbox_expect(sandbox, "echo l >>log; wc -l <log",
                           (const char *const[]){ "1\n", "2\n", "3\n", "4\n", "5\n", "6\n", "7\n", "8\n" }[i]);
            checkpoint(sandbox, lids[i]);
        }
        roll_back(sandbox, zero);
        for (size_t i = 0; i < ARRAY_LEN(lids); i++)
            assert_int_equal(layers_release(sandbox->place.layers, lids[i], sandbox->dir.id, &err), 0);
    }
    after = take_counts(sandbox);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_start_shows_what_was_frozen, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(a_switch_keeps_what_was_written, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(all_mounts_come_back, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(a_workspace_that_is_written_through_stays, rw_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(forks_do_not_see_each_other, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(a_process_is_never_disturbed, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(a_handle_from_outside_is_noticed, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(each_tree_can_be_switched_alone, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(a_handle_in_one_tree_is_noticed, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(a_moved_mount_is_noticed, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(layers_that_cannot_be_exchanged_stay, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(the_sixteenth_layer_is_the_last, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(two_hundred_leave_nothing, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(layers_with_other_ids_are_refused, sandbox_setup, sandbox_teardown),
        cmocka_unit_test_setup_teardown(root_in_the_box_goes_back_too, root_setup, sandbox_teardown),
    };

    if (argc != 2 || !sandbox_become(argv[1])) {
        printf("1..0 # SKIP cannot be %s here\n", argc > 1 ? argv[1] : "nobody");
        return 0;
    }
    /* An ordinary user has one id, and on the host image no --root. */
    return _cmocka_run_group_tests("tests", tests, ARRAY_LEN(tests) - (geteuid() == 0 ? 0 : 2), NULL, NULL);
}
