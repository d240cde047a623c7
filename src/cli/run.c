/* `cove run`: one command in a new sandbox.  The process is its sandbox's keeper. */

#include "cli/run.h"

#include "base/clock.h"
#include "base/delivery.h"
#include "base/error.h"
#include "base/text.h"
#include "box/box.h"
#include "box/environment.h"
#include "box/place.h"
#include "box/plan.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/copying.h"
#include "cli/exec.h"
#include "cli/goingon.h"
#include "cli/homing.h"
#include "cli/prove.h"
#include "cli/say.h"
#include "cli/through.h"
#include "gateway/rules.h"
#include "init/filters.h"
#include "init/protocol.h"
#include "keeper/audited.h"
#include "keeper/entrance.h"
#include "keeper/explain.h"
#include "keeper/guard.h"
#include "keeper/held.h"
#include "keeper/keep.h"
#include "keeper/keeper.h"
#include "keeper/live.h"
#include "keeper/outlet.h"
#include "keeper/reel.h"
#include "keeper/report.h"
#include "keeper/resume.h"
#include "store/store.h"
#include "sys/sys.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Everything one run holds, released in one place. */
struct run {
    struct context context;
    const struct run_on *on; /* a run for ourselves; or NULL */
    struct goingon goingon;  /* in a sandbox that was there before */
    struct plan plan;
    struct sandbox_dir dir;
    char id[ID_LENGTH + 1];
    struct box box;
    struct through through; /* of --workspace rw */
    struct live live;       /* of --workspace live ... */
    struct live_end home;   /* ... and what came of it */
    struct explain *explain;
    struct strings changes; /* trees whose files a command may have removed itself */
    struct timespec started;
    uint64_t began_at, planned_at, cloned_at; /* CLOCK_MONOTONIC in microseconds */
    struct rules rules;                       /* of the network ... */
    struct reel reel;                         /* ... what is recorded or served of it ... */
    struct outlet outlet;                     /* ... and what was asked of it */
    struct delivery report, policy;           /* where these go at the end */
    struct result result;
    struct record record; /* unless nothing is kept */
    int verdict;          /* to the guard */
    bool guarded, ran, kept;
};

/* That PID 1 ends is no matter of its word; nobody needs its layers any more. */
static void run_end(const struct run *run)
{
    if (run->box.pidfd >= 0)
        sys_pidfd_kill(run->box.pidfd, SIGKILL);
}

static void run_free(struct run *run)
{
    run_end(run);
    explain_free(run->explain);
    box_forget(&run->box);
    requests_free(&run->outlet.requests);
    rules_free(&run->rules);
    reel_close(&run->reel);
    delivery_close(&run->report);
    delivery_close(&run->policy);
    record_free(&run->record);
    through_free(&run->through);
    live_end_free(&run->home);
    strings_free(&run->changes);
    plan_free(&run->plan);
    context_free(&run->context);
    goingon_free(&run->goingon);
}

/* What the sandbox was before this run; NULL: it is new. */
static const struct record *old_record(const struct run *run)
{
    return run->goingon.kept ? &run->goingon.kept->record : NULL;
}

/* The workspace as it was found, with another tree in its place.  Policy has had its say by now; of how the
 * tree is seen only `ro` is left of it, for this one is nobody's. */
static int take_tree(struct context *context, const struct run_on *on, struct error *err)
{
    struct tree *tree = trees_at(&context->trees, on->workspace);
    autoplace struct place place = PLACE_NONE;

    if (!tree || strcmp(tree->why, TREE_WHY_WORKSPACE) != 0)
        return error_set(err, ERROR_REFUSED, "%.200s is not a work tree of its own any more", on->workspace);
    if (place_open(AT_FDCWD, on->tree, &place) < 0)
        return error_sys(err, "open %.200s", on->tree);
    free(tree->source);
    tree->source = text_copy(place.path);
    tree->device = place.stat.st_dev;
    tree->inode = place.stat.st_ino;
    if (context->spec.workspace != WORKSPACE_RO)
        context->spec.workspace = WORKSPACE_COW;
    return 0;
}

static int make_plan(struct run *run, struct error *err)
{
    struct context *context = &run->context;

    if (context_read(context, err) < 0 || (run->on && take_tree(context, run->on, err) < 0))
        return -1;
    if (old_record(run) && old_record(run)->shifted)
        context->host.id_base = (uint32_t)old_record(run)->base;
    if (context->spec.workspace == WORKSPACE_RW && through_prepare(&run->through, &context->trees, err) < 0)
        return -1;
    if (plan_build(&context->spec, &context->host, &context->workspace, &context->trees, &run->plan, err) < 0)
        return -1;
#ifdef COVE_UNSAFE
    unsafe_apply(&run->plan);
#endif
    return old_record(run) ? resume_prepare(&context->host, old_record(run), &run->dir, &run->plan, err) : 0;
}

static void print_plan(const struct run *run)
{
    autotext struct text text = TEXT_NONE;

    if (run->context.options.run.json)
        plan_json(&run->plan, &text);
    else
        plan_print(&run->plan, &text);
    fputs(text_string(&text), stdout);
}

/* With --rm too if files go home: the guard then waits until we are through with the layer, and keeps it if we
 * die before that.  What is taken out of a workspace that is written through may be the owner's own, too. */
static bool has_record(const struct run *run)
{
    enum workspace_mode mode = run->plan.workspace_mode;

    return !run->context.spec.remove || mode == WORKSPACE_RW || mode == WORKSPACE_LIVE;
}

/* Not earlier: until the command runs, every processor is better used by that. */
static int start_helpers(void *owner, struct error *err)
{
    struct run *run = owner;
    struct record *record = has_record(run) ? &run->record : NULL;

    if (run->plan.workspace_mode == WORKSPACE_LIVE &&
        live_start(&run->plan, run->dir.fd, run->started, &run->live, err) < 0)
        return -1;
    if (guard_start(&run->box, &run->plan, &run->dir, record, &run->verdict, err) < 0)
        return -1;
    run->guarded = true;
    return 0;
}

static struct keeper_run keeper_wishes(struct run *run)
{
    const struct plan *plan = &run->plan;
    const struct spec *spec = &run->context.spec;

    return (struct keeper_run){
        .argv = (const char *const *)plan->argv.items,
        .envp = (const char *const *)plan->env.items,
        .cwd = plan->cwd,
        .uid = plan->ids.uid,
        .gid = plan->ids.gid,
        .flags = plan->start_flags | (run->explain ? START_EXPLAIN : 0U),
        .tty = say_wants_terminal(spec->terminal),
        .timeout_ms = spec->timeout_ms,
        .limits = &plan->limits,
        .processes = plan_process_rlimit(plan),
        .layers = run->dir.fd,
        .started = start_helpers,
        .owner = run,
        .in = run->on ? -1 : STDIN_FILENO,
        .out = STDOUT_FILENO,
        .err = STDERR_FILENO,
        .pipe_owner = plan->ids.shifted ? plan->ids.base + plan->ids.uid : run->context.host.uid,
        .explain = run->explain,
        .outlet = &run->outlet,
        .rules = &run->rules,
        .reel = &run->reel,
    };
}

static void start_explaining(struct run *run)
{
    struct explain_view view = {
        .spec = &run->context.spec,
        .host = &run->context.host,
        .trees = &run->plan.trees,
        .workspace = run->plan.workspace,
        .changes = &run->changes,
        .writable = run->plan.landlock_abi > 0 ? &run->plan.writable : NULL,
        .filter = (run->plan.start_flags & START_STRICT ? FILTER_STRICT : 0U) |
                  (run->plan.start_flags & START_FAKEROOT ? FILTER_FAKEROOT : 0U),
    };

    if (!run->context.options.run.explain)
        return;
    for (size_t i = 1; i < run->plan.trees.len; i++)
        if (run->plan.trees.items[i].mode == TREE_COW)
            strings_add(&run->changes, run->plan.trees.items[i].target);
    run->explain = explain_new(&view);
}

/* Before the guard is there the directory is ours to remove. */
static void end_unguarded(struct run *run)
{
    struct error ignored;

    if (run->guarded)
        return;
    box_end(&run->box);
    if (old_record(run))
        (void)record_write(run->dir.fd, old_record(run), &ignored); /* it is as it was */
    else
        (void)store_remove(&run->dir, &ignored);
}

static int prepare(void *owner, struct sandbox_dir *dir, struct error *err)
{
    struct run *run = owner;

    memcpy(run->id, dir->id, sizeof run->id);
    if (run->plan.workspace_mode != WORKSPACE_COPY)
        return 0;
    if (old_record(run))
        return copying_use(&run->plan, run->context.host.state, dir, err);
    return copying_take(&run->plan, run->context.host.state, dir, false, err);
}

static int start_box(struct run *run, struct error *err)
{
    struct entrance entrance = { &run->context.host, &run->plan, prepare, run };

    return entrance_enter(&entrance, &run->dir, &run->box, err);
}

static struct keep_about about(const struct run *run)
{
    return (struct keep_about){ .plan = &run->plan,
                                .spec = &run->context.spec,
                                .name = run->context.options.run.name,
                                .labels = &run->context.options.run.labels,
                                .created = run->started };
}

/* So that another run can go on in it. */
static int write_spec(const struct run *run, struct error *err)
{
    autotext struct text json = TEXT_NONE;

    spec_json(&run->context.spec, &json);
    return store_write_file(run->dir.fd, STORE_SPEC, text_string(&json), json.len, err);
}

/* Also beside the set-up, and before the command can change anything. */
static int begin_record(struct run *run, struct error *err)
{
    struct keep_about subject = about(run);

    if (!has_record(run))
        return 0;
    if (write_spec(run, err) == 0 &&
        (old_record(run) ? keep_again(&subject, old_record(run), &run->dir, &run->record, err)
                         : keep_begin(&subject, &run->dir, &run->record, err)) == 0)
        return 0;
    end_unguarded(run);
    return -1;
}

static bool asks_for_audit(const struct spec_request *request)
{
    bool asked = false;

    for (size_t i = 0; i < request->len; i++) {
        const struct flag_use *use = &request->items[i];

        if (use->field == &fields[FIELD_NETWORK])
            asked = strcmp(use->value ? use->value : use->flag->fixed, "audit") == 0;
    }
    return asked;
}

/* Above the owner's own words there is an error if it may not be; below them a repository says no. */
static int check_audit(struct run *run, struct error *err)
{
    const char *policy = run->context.options.run.audit_policy;
    bool audits = run->rules.mode == NETWORK_AUDIT;

    if (policy && !audits) {
        error_set(err, ERROR_INVALID, "--audit-policy: nothing is audited here");
        return error_hint(
            err, "say --audit; if it was said, a repository's cove.yaml leaves less (cove policy show)");
    }
    if (!audits && asks_for_audit(&run->context.options.spec))
        say_warning("nothing is audited: the repository's cove.yaml leaves less (cove policy show)");
    return policy ? audited_open(policy, &run->plan.trees, &run->policy, err) : 0;
}

/* Beside the set-up, too. */
static int take_rules(struct run *run, struct error *err)
{
    if (context_rules(&run->context, &run->rules, err) == 0 &&
        context_reel(&run->context, &run->plan.trees, old_record(run) != NULL, &run->reel, err) == 0 &&
        check_audit(run, err) == 0) {
        environment_default(&run->plan.env, &run->rules.variables);
        return 0;
    }
    end_unguarded(run);
    return -1;
}

/* Before anybody is told that the run is over. */
static void end_through(struct run *run)
{
    if (!run->guarded || run->plan.workspace_mode != WORKSPACE_RW)
        return;
    through_finish(&run->through, &run->plan, run->dir.fd);
    through_tell(&run->through);
}

static void end_live(struct run *run)
{
    if (!run->guarded)
        live_drop(&run->live);
    if (!run->live.pid)
        return;
    run->record.home = live_finish(&run->live, &run->home);
    homing_tell(&run->home, run->context.spec.remove, run->context.options.run.quiet);
}

static void end_record(struct run *run)
{
    struct error err;

    if (!run->guarded || !has_record(run))
        return;

    bool wanted = !run->context.spec.remove || run->through.aside.len > 0;
    int kept = wanted ? keep_end(run->dir.fd, &run->record, &run->result, &err) : 0;

    if (!wanted)
        store_drop_record(run->dir.fd);
    if (kept < 0)
        say_warning("%s", err.text);
    run->kept = kept != 0;
    guard_tell(&run->verdict, run->kept ? GUARD_KEEP : GUARD_REMOVE);
}

static int contain(struct run *run, struct error *err)
{
    sigset_t old;

    held_begin(&old);
    clock_gettime(CLOCK_REALTIME, &run->started);
    if (start_box(run, err) < 0 || begin_record(run, err) < 0 || take_rules(run, err) < 0) {
        sigprocmask(SIG_SETMASK, &old, NULL); /* one that came meanwhile ends us, as it would have */
        return -1;
    }
    run->cloned_at = clock_us();
    if (run->plan.workspace_mode == WORKSPACE_RW)
        through_announce(&run->through, &run->plan);
    if (run->plan.workspace_mode == WORKSPACE_LIVE && !run->context.options.run.quiet)
        homing_announce(&run->plan);
    start_explaining(run);

    const struct registry_places registries = context_registries(&run->context);
    struct keeper_run wishes = keeper_wishes(run);

    wishes.registries = &registries;

    int result = keeper_run(&run->box, &wishes, &run->result, err);

    end_unguarded(run);
    end_through(run);
    end_live(run);
    end_record(run);
    sigprocmask(SIG_SETMASK, &old, NULL);
    run->ran = result == 0;
    return result;
}

static void list_protections(const struct plan *plan, const struct rules *rules, struct strings *out)
{
    static const char *const always[] = { "namespaces", "private-root", "no-new-privileges", "seccomp" };
    static const char *const networks[] = {
        [NETWORK_NONE] = "no-network",
        [NETWORK_RULES] = "network-rules",
        [NETWORK_AUDIT] = "network-public",
        [NETWORK_OPEN] = "network-public",
    };
    bool none = rules->mode == NETWORK_RULES && rules->list.len == 0;

    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        strings_add(out, always[i]);
    strings_add(out, networks[none ? NETWORK_NONE : rules->mode]);
    strings_add(out, plan->start_flags & START_ROOT ? "few-capabilities" : "no-capabilities");
    if (plan->landlock_abi > 0)
        strings_take(out, text_format("landlock-%d", plan->landlock_abi));
    if (plan->start_flags & START_STRICT)
        strings_add(out, "strict");
}

static void print_report(const struct report *report, const struct run_options *options)
{
    autotext struct text text = TEXT_NONE;
    bool colour = report_wants_colour(STDERR_FILENO);

    bool whole = options->summary || (!options->quiet && isatty(STDERR_FILENO));

    if (whole)
        report_summary(report, colour, &text);
    else if (!options->quiet)
        report_audit(report, colour, &text);
    if (!whole && report->findings)
        report_explained(report, colour, &text);
    if (!whole && !options->quiet && report->result->reason == RESULT_TIMED_OUT)
        text_add(&text, "cove: the time was up (--timeout), and everything was killed\n");
    if (text.len && report->result->midline && isatty(STDERR_FILENO))
        fputs("\n", stderr);
    fputs(text_string(&text), stderr);
}

static const char *describe_changes(const struct run *run)
{
    if (run->plan.workspace_mode == WORKSPACE_RW)
        return run->kept ? "went straight to the workspace (rw); what was taken out of it is kept"
                         : "went straight to the workspace (rw)";
    if (run->plan.workspace_mode == WORKSPACE_LIVE && run->guarded)
        return run->kept ? "went to the workspace (live); what is left is kept"
                         : "went to the workspace (live)";
    if (run->context.spec.remove)
        return "were discarded";
    return run->kept ? "are kept" : run->guarded ? "to the workspace: none" : NULL;
}

static uint64_t since(const struct run *run, uint64_t at)
{
    return at > run->began_at ? at - run->began_at : 0;
}

/* What happened, for the person who watches and for the program that reads the file. */
static int tell(const struct run *run, struct error *err)
{
    const struct context *context = &run->context;
    autostrings struct strings protections = STRINGS_NONE;
    struct findings findings = { 0 };
    const struct result *result = &run->result;
    struct phases phases = {
        .planned = since(run, run->planned_at),
        .cloned = since(run, run->cloned_at),
        .ready = since(run, result->ready_at),
        .started = since(run, result->started_at),
        .exited = since(run, result->exited_at),
        .empty = since(run, result->empty_at),
    };
    char hash[65] = "";
    struct report report = {
        .id = run->id,
        .spec_hash = hash,
        .name = run->record.name,
        .argv = (const char *const *)run->plan.argv.items,
        .workspace = run->plan.workspace,
        .mode = fields[FIELD_WORKSPACE].choices[run->plan.workspace_mode],
        .image = context->spec.image,
        .user = run->plan.ids.uid == 0 ? "root" : context->host.name,
        .started = run->started,
        .result = &run->result,
        .live = run->plan.workspace_mode == WORKSPACE_LIVE ? &run->home : NULL,
        .phases = &phases,
        .changes = describe_changes(run),
        .set_aside = &run->through.aside,
        .stuck = &run->through.stuck,
        .kept = run->kept,
        .limits = &run->plan.limits,
        .enforced = &protections,
        .findings = run->explain ? &findings : NULL,
        .requests = &run->outlet.requests,
        .record = context->spec.record,
        .replay = context->spec.replay,
        .audit = run->rules.mode == NETWORK_AUDIT,
        .audit_policy = context->options.run.audit_policy,
        .no_network = run->box.network.lacking.kind != ERROR_NONE ? run->box.network.lacking.text : NULL,
        .width = report_width(STDERR_FILENO),
    };
    int written = 0;

    if (context->options.run.report) /* the only one that shows it */
        spec_hash(&context->spec, hash);
    clock_gettime(CLOCK_REALTIME, &report.ended);
    list_protections(&run->plan, &run->rules, &protections);
    if (run->explain)
        explain_findings(run->explain, &findings);
    print_report(&report, &context->options.run);
    if (context->options.run.audit_policy)
        written = audited_write(&run->policy, &run->outlet.requests, err);
    if (context->options.run.report && report_write(&report, &run->report, err) < 0)
        written = -1;
    findings_free(&findings);
    return written;
}

/* If it does not work, it is tried again when the plan is there, and then the reason counts: what is
 * wrong with the plan is said first. */
static void open_early(struct run *run)
{
    struct error ignored;

    (void)box_open(plan_own_namespaces, geteuid() != 0, -1, &run->box, &ignored);
}

/* Instead of a run: what it would be. */
static int only_tell(struct run *run, struct error *err)
{
    const struct run_options *options = &run->context.options.run;

    if (!plan_holds(&run->plan) && plan_renew(&run->plan, &run->context.host, err) < 0)
        return -1;
    if (options->print_plan)
        print_plan(run);
    else
        puts(options->json ? "{\"ready\":true}" : "the sandbox can be set up");
    return 0;
}

/* Root inside is not the root that may write to everybody's files. */
static void warn_of_owner(const struct run *run)
{
    const struct plan *plan = &run->plan;
    struct stat info;

    if (run->context.options.run.quiet || run->context.host.uid != 0 || plan->start_flags & START_ROOT ||
        plan->workspace_mode == WORKSPACE_RO || stat(plan->workspace, &info) < 0 || info.st_uid == 0)
        return;
    say_warning(
        "%s belongs to uid %u, and the command cannot write to it: run cove as that user, or with --root",
        plan->workspace, (unsigned)info.st_uid);
}

/* Those of a policy file are for sandboxes that stay, and nobody asked for them here. */
static int check_services(const struct spec_request *request, struct error *err)
{
    for (size_t i = 0; i < request->len; i++)
        if (request->items[i].field == &fields[FIELD_SERVICES])
            return error_set(err, ERROR_INVALID, "--service is for `cove create`: a run has one command");
    return 0;
}

static int run_command(struct run *run, struct error *err)
{
    const struct run_options *options = &run->context.options.run;
    struct keep_about subject = about(run);

    if (check_services(&run->context.options.spec, err) < 0)
        return -1;
    if (options->report && delivery_open(options->report, &run->report, err) < 0)
        return error_while(err, "write the report");
    if (keep_check(&subject, err) < 0 || (options->prove && prove_first(&run->context.options, err) < 0))
        return -1;
    if (!options->print_plan && !options->dry_run)
        open_early(run);
    if (make_plan(run, err) < 0) {
        box_end(&run->box);
        return -1;
    }
    run->planned_at = clock_us();
    if (options->print_plan || options->dry_run)
        return only_tell(run, err);
    warn_of_owner(run);

    int result = contain(run, err);
    struct error ignored;

    if (run->ran || options->report)
        return tell(run, result < 0 ? &ignored : err) < 0 ? -1 : result;
    return result;
}

static void run_init(struct run *run)
{
    *run = (struct run){ .goingon = GOINGON_NONE,
                         .dir = SANDBOX_DIR_NONE,
                         .box = BOX_NONE,
                         .live = LIVE_NONE,
                         .rules = RULES_NONE,
                         .reel = REEL_NONE,
                         .report = DELIVERY_NONE,
                         .policy = DELIVERY_NONE,
                         .outlet = OUTLET_NONE,
                         .record = RECORD_NONE,
                         .verdict = -1,
                         .began_at = clock_us() };
}

static int run_words(struct run *run, const struct strings *words, struct error *err)
{
    if (options_parse(command_find("run"), (int)words->len, words->items, &run->context.options, err) < 0)
        return -1;
    return run_command(run, err);
}

int run_on(const struct run_on *wish, int *code, struct error *err)
{
    const char *const words[] = {
        "run",       "--rm",        "--quiet",       "--no-tty",  "--image",
        wish->image, "--directory", wish->workspace, "--timeout", wish->timeout ? wish->timeout : "none"
    };
    const char *const command[] = { "--", "sh", "-c", wish->command };
    autostrings struct strings argv = STRINGS_NONE;
    struct run run;

    for (size_t i = 0; i < ARRAY_LEN(words) - (wish->timeout ? 0 : 2); i++)
        strings_add(&argv, words[i]);
    for (size_t i = 0; i < ARRAY_LEN(command); i++)
        strings_add(&argv, command[i]);
    run_init(&run);
    run.on = wish;

    int result = run_words(&run, &argv, err);

    *code = run.result.exit_code;
    if (result == 0 && run.result.error.kind != ERROR_NONE) {
        *err = run.result.error;
        result = -1;
    }
    run_free(&run);
    return result;
}

/* In a sandbox that stays, it is one more command; in another one, a run that begins with what is there. */
static int go_on(struct run *run, bool *stays, struct error *err)
{
    struct options *options = &run->context.options;
    struct goingon *goingon = &run->goingon;

    if (goingon_find(options, goingon, err) < 0)
        return -1;
    if (!goingon->kept)
        return 0;
    *stays = goingon->kept->record.stays;
    if (*stays && goingon_check_staying(goingon, options, err) < 0)
        return -1;
    return *stays ? exec_once(&goingon->which, goingon->kept, &options->spec.command, err)
                  : goingon_take(goingon, options, &run->dir, err);
}

/* A run that ended may still have something to say: why its command was not started, or that its
 * output was lost. */
int cli_run(struct options *options, struct error *err)
{
    struct run run;

    run_init(&run);
    run.context.options = options_take(options);

    bool stays = false;
    int code = go_on(&run, &stays, err);

    if (code < 0)
        code = say_error(err);
    else if (!stays)
        code = run_command(&run, err) < 0 ? say_error(err) : run.result.exit_code;

    if (run.ran && run.result.error.kind != ERROR_NONE)
        say_error(&run.result.error);
#ifdef COVE_SANITIZED
    run_free(&run); /* so that what is lost on the way is noticed */
#else
    run_end(&run); /* all else goes with this process, and at once: the guard shares its memory by now */
#endif
    return code;
}
