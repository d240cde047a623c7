#include "cli/doctor.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/own.h"
#include "base/text.h"
#include "cli/tryrun.h"
#include "doctor/doctor.h"
#include "keeper/held.h"
#include "spec/node.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

enum { EXIT_REFUSES = 1, WIDE = 18 };

const struct option_row options_of_doctor[] = {
    { "json", 0, NULL, "Print JSON", OPTION_BOOL, offsetof(struct run_options, json) },
    { NULL },
};

static const char *fix_of(const struct check *check, const struct finding *finding)
{
    return finding->fix.len ? text_string(&finding->fix) : check->fix;
}

/* There is something to say about it. */
static bool has_advice(const struct finding *finding)
{
    return finding->diagnosis != DOCTOR_OK && finding->diagnosis != DOCTOR_UNKNOWN;
}

static void add_line(struct text *out, const char *first, const char *second, const char *words)
{
    text_addf(out, "%-8s  %-*s  ", first, WIDE, second);
    text_add_inert(out, words);
    text_add(out, "\n");
}

static void add_text(const struct finding *findings, bool works, struct text *out)
{
    for (size_t i = 0; i < checks_len; i++) {
        const struct finding *finding = &findings[i];

        add_line(out, diagnosis_name(finding->diagnosis), checks[i].name, text_string(&finding->found));
        if (!has_advice(finding))
            continue;
        add_line(out, "", "  without it:", checks[i].without);
        add_line(out, "", "  fix:", fix_of(&checks[i], finding));
    }
    text_addf(out, "\n%s\n", works ? "cove run works here" : "cove run refuses here: see what is missing");
}

static void add_json(const struct finding *findings, bool works, struct text *out)
{
    autonode struct node all = { .kind = NODE_MAP };

    node_add(&all, "works", NODE_BOOL, works ? "true" : "false");

    struct node *list = node_add(&all, "checks", NODE_LIST, NULL);

    for (size_t i = 0; i < checks_len; i++) {
        struct node *row = node_add(list, NULL, NODE_MAP, NULL);

        node_add(row, "name", NODE_STRING, checks[i].name);
        node_add(row, "result", NODE_STRING, diagnosis_name(findings[i].diagnosis));
        node_add(row, "found", NODE_STRING, text_string(&findings[i].found));
        if (!has_advice(&findings[i]))
            continue;
        node_add(row, "without", NODE_STRING, checks[i].without);
        node_add(row, "fix", NODE_STRING, fix_of(&checks[i], &findings[i]));
    }
    node_write_json(&all, out);
    text_add(out, "\n");
}

static bool examine(bool json, struct text *out)
{
    autofree struct finding *findings = memory_zero(checks_len * sizeof *findings);
    struct patient patient = { .start = tryrun };
    sigset_t old;

    held_begin(&old); /* whoever interrupts us finds nothing left behind either */
    patient_admit(&patient);
    bool works = doctor_examine(&patient, findings);

    patient_release(&patient);
    sigprocmask(SIG_SETMASK, &old, NULL);
    (json ? add_json : add_text)(findings, works, out);
    findings_clear(findings);
    return works;
}

int cli_doctor(struct options *options, struct error *err)
{
    autotext struct text text = TEXT_NONE;

    if (options->words.len)
        return error_set(err, ERROR_INVALID, "`cove doctor` takes no words");

    bool works = examine(options->run.json, &text);

    fputs(text_string(&text), stdout);
    return works ? 0 : EXIT_REFUSES;
}
