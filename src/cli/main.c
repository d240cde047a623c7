#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/allow.h"
#include "cli/apply.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/cp.h"
#include "cli/create.h"
#include "cli/diff.h"
#include "cli/doctor.h"
#include "cli/exec.h"
#include "cli/explore.h"
#include "cli/export.h"
#include "cli/family.h"
#include "cli/help.h"
#include "cli/logs.h"
#include "cli/ls.h"
#include "cli/mock.h"
#include "cli/pause.h"
#include "cli/policy.h"
#include "cli/processor.h"
#include "cli/prove.h"
#include "cli/prune.h"
#include "cli/rm.h"
#include "cli/rollback.h"
#include "cli/run.h"
#include "cli/say.h"
#include "cli/show.h"
#include "cli/snapshot.h"
#include "cli/start.h"
#include "cli/steps.h"
#include "cli/stop.h"
#include "cli/version.h"
#include "keeper/guard.h"
#include "keeper/keeper.h"
#include "keeper/upper.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* A command is a row here and a file of its own. */
const struct command commands[] = {
    { .name = "run",
      .summary = "run a command in a new sandbox",
      .usage = "[OPTIONS] [--] [COMMAND [ARG...]]",
      .description = "Runs COMMAND, or your shell, in a sandbox of its own: it sees this machine's programs, "
                     "the work tree around "
                     "the current directory, and nothing else of yours. It reaches no "
                     "network but what rules allow. What it writes goes "
                     "to a layer of its "
                     "own, the files outside stay as they are. If it changed something the sandbox is "
                     "kept until cove rm removes it, and with --rm it is not.\n\n"
                     "The exit code is the command's; 128+N if signal N ended it, 124 if --timeout did, 137 if "
                     "another limit did, 126 if "
                     "it could not be "
                     "run, 127 if it was not found, 125 if Cove itself failed.",
      .rows = options_of_run,
      .spec = true,
      .run = cli_run },
    { .name = "create",
      .summary = "make a sandbox that stays",
      .usage = "[OPTIONS]",
      .description =
          "Makes a sandbox of the work tree around the current directory, as cove run would, and prints its id "
          "when "
          "commands can be run in it. It stays, with its files and the processes that are left running in it, "
          "until "
          "cove stop ends it or cove rm removes it. A keeper of its own looks after it; there is no daemon.",
      .rows = options_of_create,
      .spec = true,
      .run = cli_create },
    { .name = "exec",
      .summary = "run a command in a sandbox that stays",
      .usage = "[OPTIONS] ID [--] COMMAND [ARG...]",
      .description = "Runs COMMAND in a sandbox that cove create has made, beside whatever runs there already. "
                     "Each is a step "
                     "with a number. Input, output and signals are passed on, and with a terminal its size. "
                     "What COMMAND leaves "
                     "in the background goes on. When cove exec itself is ended, COMMAND is hung up; with "
                     "--detach it goes on.\n\n"
                     "The exit code is the command's; 128+N if signal N ended it, 124 if --timeout did, 137 if "
                     "a limit did, 126 "
                     "if it could not be run, 127 if it was not found, 125 if Cove itself failed, "
                     "also if there is no such sandbox.",
      .rows = options_of_exec,
      .line = 1,
      .run = cli_exec },
    { .name = "shell",
      .summary = "open a shell in a sandbox that stays",
      .usage = "[OPTIONS] [ID]",
      .description =
          "Runs your shell in a sandbox that cove create has made. Without ID, the last sandbox of the work "
          "tree around the current directory is meant.",
      .rows = options_of_shell,
      .run = cli_shell },
    { .name = "attach",
      .summary = "take over a command that runs in the background",
      .usage = "[OPTIONS] [ID[@STEP]]",
      .description =
          "Connects to a command that cove exec --detach has started: its output from now on, its input if "
          "it was kept open (-i), its terminal if it has one, signals. When cove attach is ended the "
          "command goes on.",
      .rows = options_of_attach,
      .run = cli_attach },
    { .name = "start",
      .summary = "start sandboxes that have stopped",
      .usage = "ID...",
      .description = "Starts sandboxes of cove create again, with their files, and prints their ids. What an "
                     "administrator has forbidden since then is refused.",
      .rows = options_of_start,
      .run = cli_start },
    { .name = "stop",
      .summary = "stop sandboxes, and keep their files",
      .usage = "[OPTIONS] ID...",
      .description =
          "Ends everything that runs in sandboxes of cove create, and prints their ids when nothing is left "
          "and their files are on the disk. Processes are asked to end first (SIGTERM), and killed after "
          "--timeout. cove start goes on with them.",
      .rows = options_of_stop,
      .run = cli_stop },
    { .name = "pause",
      .summary = "stop the processes of sandboxes where they are",
      .usage = "ID...",
      .description =
          "Stops every process of sandboxes that stay, and prints their ids. They use no processor then, and "
          "time-outs of their commands do not run. cove resume lets them go on.",
      .rows = options_of_pause,
      .run = cli_pause },
    { .name = "resume",
      .summary = "let paused sandboxes go on",
      .usage = "ID...",
      .rows = options_of_pause,
      .run = cli_resume },
    { .name = "rollback",
      .summary = "bring a sandbox back to how it was after a step",
      .usage = "ID STEP|SNAPSHOT or ID@STEP",
      .description =
          "Ends every process of a sandbox of cove create and brings all its files back to how they were after "
          "STEP (0: before the first one), or in a SNAPSHOT of it. Steps keep their numbers, and those that "
          "came after it can still be gone to: nothing that has a checkpoint is lost. Works on sandboxes that "
          "run, and on those that have stopped.\n\n"
          "A step that changed nothing is as the one before it. One that ended while other processes were "
          "running, and had changed more than is copied by itself, has no checkpoint, and old ones are "
          "dropped; "
          "cove steps shows which.",
      .rows = options_of_rollback,
      .run = cli_rollback },
    { .name = "undo",
      .summary = "take back the last steps of a sandbox",
      .usage = "[ID] [N]",
      .description =
          "Brings the files of a sandbox back to how they were before its last step, or its last N ones, and "
          "prints the number of the step they are as after. Processes that run in it stay alive: files are "
          "replaced under them, and the next cove exec says so on standard error. Without ID, the last sandbox "
          "of the work tree around the current directory is meant.",
      .rows = options_of_rollback,
      .run = cli_undo },
    { .name = "snapshot",
      .summary = "name how a sandbox is now, to go back to or fork later",
      .usage = "[OPTIONS] [ID | ls | rm NAME...]",
      .description =
          "Keeps all files of a sandbox of cove create as they are now, under a name, and prints it. It takes "
          "milliseconds, whatever was written, and no space until something changes; while processes run in "
          "the "
          "sandbox they are stopped for a moment, and what changed is copied. A snapshot outlives its sandbox: "
          "cove rollback goes back to it, cove fork makes new "
          "sandboxes of it. cove snapshot ls lists them, cove snapshot rm removes them.",
      .rows = options_of_snapshot,
      .run = cli_snapshot },
    { .name = "fork",
      .summary = "make new sandboxes of one, with its files",
      .usage = "[OPTIONS] ID[@STEP]|SNAPSHOT",
      .description =
          "Makes and starts sandboxes that begin with all files of another one as they are now, after one of "
          "its "
          "steps, or in a snapshot, and prints their ids. They share what is there, and nothing that comes "
          "later: none sees what another one writes. What they changed is all that changed since the first "
          "sandbox was made.",
      .rows = options_of_fork,
      .run = cli_fork },
    { .name = "explore",
      .summary = "try one thing many times from one state, and keep the best",
      .usage = "[OPTIONS] [FROM] -- COMMAND [ARG...]",
      .description =
          "Runs COMMAND in several forks of one state, at most as many at once as -j and the memory that is "
          "free "
          "allow, and prints them in their order: the higher score first, then the smaller change, then the "
          "earlier try. FROM is a sandbox, ID@STEP or a snapshot; without it the last sandbox of the work tree "
          "around the current directory. One that runs goes on. The best try stays as a sandbox with a name, "
          "stopped, for cove diff and cove apply; the others are removed.\n\n"
          "COMMAND has the variables COVE_TRY (from 1), and with --each COVE_TASK (the number of the task), "
          "COVE_TASK_JSON (its line) and COVE_TASK_KEY for each KEY of the task, in upper case.\n\n"
          "The score command is run in a fresh fork of what the try left, in which nothing of the try runs and "
          "which has "
          "no "
          "network. A number that is all of the last line on its standard output is the score; otherwise it is "
          "1 "
          "if the exit code is 0, and else 0. Without --score the same holds of the exit code of COMMAND. What "
          "--score-files names comes from the host, read-only; what the try made of it is not seen, and is "
          "reported. With :DST there is nothing at DST.\n\n"
          "A try that failed for a reason of ours is begun again, twice at most. With --results the same "
          "command "
          "goes on after it was stopped or killed: what has a line in FILE is not run again, and what was left "
          "of the others is removed.\n\n"
          "The exit code is 0 if some try was good, 1 if none was, 125 if there is no such sandbox.",
      .rows = options_of_explore,
      .run = cli_explore },
    { .name = "tree",
      .summary = "show the checkpoints, snapshots and forks of a sandbox",
      .usage = "[OPTIONS] [ID]",
      .description =
          "Shows the family of a sandbox: from the first one that is still there, the checkpoint of each step "
          "that changed something with what it alone takes on the disk, where the sandbox is now, and the "
          "snapshots and forks that were made there. Without ID, the last sandbox of the work tree around the "
          "current directory is meant.",
      .rows = options_of_tree,
      .run = cli_tree },
    { .name = "ls",
      .summary = "list the sandboxes that are kept or run",
      .usage = "[OPTIONS]",
      .description = "Lists the sandboxes that run and those that are kept with what they changed, the newest "
                     "first. CHANGES is `applied` when all of it has come home.",
      .rows = options_of_ls,
      .run = cli_ls },
    { .name = "show",
      .summary = "tell about one sandbox",
      .usage = "[OPTIONS] [ID]",
      .description = "Tells all that is known of a sandbox. ID is its name or the beginning of its id, three "
                     "characters at least; without it, the last sandbox of the work tree around the current "
                     "directory is meant.\n\n"
                     "The exit code is 125 if there is no such sandbox.",
      .rows = options_of_show,
      .run = cli_show },
    { .name = "steps",
      .summary = "list the commands that ran in a sandbox",
      .usage = "[OPTIONS] [ID]",
      .description =
          "Lists the steps of a sandbox that stays: each command with when it began, how long it took, how it "
          "ended, processor time and memory, how many files it added (+), changed (~) and removed (-), and the "
          "checkpoint after it. A step is lost if Cove died before it could write down how it ended.\n\n"
          "The steps are lines of a record in which each vouches for the one before. If one was changed, or is "
          "missing, a warning says which, and every step from there on has a question mark.\n\n"
          "With --json, one object: steps, and chain with lines, records, hash (of the last record) and broken "
          "(null, or line, how and says).\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the work tree "
          "around the current directory is meant. The exit code is 1 if the "
          "record is broken, 125 if there is no such sandbox.",
      .rows = options_of_steps,
      .run = cli_steps },
    { .name = "logs",
      .summary = "print what a command in a sandbox wrote",
      .usage = "[OPTIONS] [ID[@STEP]]",
      .description =
          "Prints what the last step of a sandbox wrote, as far as it is kept: its standard output to standard "
          "output, its standard error to standard error. Of much output the beginning and the end are kept, "
          "and "
          "how many bytes were left out between them is said on standard error. A pipe or file gets the bytes "
          "as they are; on a terminal they cannot do more than be seen.\n\n"
          "With --json, one object a line: stream, time, and text, or bytes (base64) where it is no text; "
          "left_out where something was not kept.\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the work tree "
          "around the current directory is meant. The exit code is 125 if there is no such sandbox or step.",
      .rows = options_of_logs,
      .run = cli_logs },
    { .name = "diff",
      .summary = "show what a sandbox changed in its workspace",
      .usage = "[OPTIONS] [ID[@STEP]] [A..B] [PATH...]",
      .description =
          "Prints a patch, as git writes it, of what the sandbox changed: contents, modes, links and renames; "
          "git apply takes it. Of binary files above 64 KiB it says only that they differ, unless --binary "
          "asks for all bytes. What a patch cannot say, an empty directory for example, and "
          "what is odd about a change stands in lines that begin with #. On a terminal no byte of a file or "
          "name does anything but be seen.\n\n"
          "Marked are changes that can run something on your machine (class A by merely being there, class B "
          "when you build, test or commit), that make git look away (hides), whose text is not what it looks "
          "like (Trojan Source), and files that you changed too (base changed since). What git ignores by your "
          "rules is one line a directory, unless --ignored or a PATH asks for it.\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the "
          "work tree around the current directory is meant. PATHs are relative to the current directory.\n\n"
          "A..B shows what made the files after step B, or snapshot B, of those after A; 0 is before the first "
          "step. Snapshots need no ID: cove diff BEFORE..AFTER. ID@STEP, or --step N, shows what that step "
          "changed of what it began with. A path that looks so is written ./A..B or ./A@1.\n\n"
          "The exit code is 125 if there is no such sandbox, step or snapshot.",
      .rows = options_of_diff,
      .run = cli_diff },
    { .name = "apply",
      .summary = "bring what a sandbox changed home",
      .usage = "[OPTIONS] [ID] [PATH...]",
      .description =
          "Brings the changes of a sandbox, or those at and below the PATHs, into the workspace. Each file is "
          "replaced as a whole, and only if it is still what the sandbox saw: what you changed meanwhile is a "
          "conflict and stays. Both sides of a conflict are shown; --conflict says what to do about it. "
          "Devices, "
          "links that lead out of the workspace and files in the place of hidden ones are refused. What git "
          "ignores stays where it is unless --ignored or a PATH asks for it.\n\n"
          "Some files run or steer a tool merely by being there: .envrc, settings of editors and agents. "
          "They are asked for one by one, also with --yes; in a script --allow-autorun names them. Hooks and "
          "configuration of git itself never come home.\n\n"
          "With --verify the changes that were chosen, and no others, are laid on a fresh copy of the "
          "workspace, and COMMAND, one word for sh -c, runs there in a sandbox with the same image and "
          "policy, without network and input. Only if it exits with 0, and neither the sandbox nor the "
          "workspace (but .git) has changed meanwhile, they are brought home. What COMMAND writes is "
          "discarded.\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the work tree "
          "around the current directory is meant. The exit code is 1 if something was refused or "
          "in conflict, or if COMMAND failed, 125 if there is no such sandbox.",
      .rows = options_of_apply,
      .run = cli_apply },
    { .name = "export",
      .summary = "write what a sandbox made to an archive, or its commits as mails",
      .usage = "[OPTIONS] [ID] [PATH...]",
      .description =
          "Writes the files that the sandbox made or changed, or those at and below the PATHs, to a tar "
          "archive. "
          "Its first member, MANIFEST.json, has path, size, mode and SHA-256 of each. Nothing is brought into "
          "the "
          "workspace, and the archive of a sandbox is always the same. What cannot be part of it is named, and "
          "then nothing is written: devices, links that lead out of the workspace, absolute links, directories "
          "that were renamed.\n\n"
          "With --patch, writes the commits that were made in the sandbox as mails, one a commit, as git am "
          "takes "
          "them. git runs for that in a sandbox of its own, and nothing of the repository's configuration "
          "counts.\n\n"
          "ID is a sandbox's name or the beginning of its id; without it, the last sandbox of the work tree "
          "around the current directory is meant. The exit code is 1 if something cannot be part of "
          "the archive, 125 if there is no such sandbox.",
      .rows = options_of_export,
      .run = cli_export },
    { .name = "cp",
      .summary = "copy files into a sandbox that runs, or out of it",
      .usage = "[OPTIONS] SRC DST",
      .description =
          "Copies a file or a directory with all that is in it. One of SRC and DST is ID:PATH, where ID is a "
          "sandbox's name or the beginning of its id, and a relative PATH counts from the workspace. Into a "
          "directory that is there, SRC goes under its own name; if DST is not there SRC becomes it; of a "
          "directory written as DIR/. what is in it is copied. Directories above DST are not made. With - for "
          "SRC "
          "a tar archive is read from standard input, with - for DST one is written to standard output.\n\n"
          "Modes, times, links and hard links are kept; owners, set-user-ID bits and extended attributes are "
          "not. "
          "Links are copied as links and nothing is written through one. Devices, pipes and sockets are left "
          "out, "
          "as is what cannot be read, or what has the name of something of another kind; what was left out is "
          "named.\n\n"
          "With --json, one object: files, bytes, and skipped, a list of objects with what.\n\n"
          "The exit code is 1 if something was left out, 125 if there is no such sandbox.",
      .rows = options_of_cp,
      .run = cli_cp },
    { .name = "rm",
      .summary = "remove sandboxes, with what they changed",
      .usage = "[OPTIONS] ID...",
      .description = "Removes sandboxes that do not run, and prints their ids. ID is a name or the beginning "
                     "of an id, three characters at least. With --all every sandbox is meant: those that run "
                     "stay and are named as errors, unless -f stops them first.\n\n"
                     "The exit code is 125 if there is no such sandbox.",
      .rows = options_of_rm,
      .run = cli_rm },
    { .name = "prune",
      .summary = "remove old sandboxes, with what they changed",
      .usage = "[OPTIONS]",
      .description =
          "Removes the sandboxes that are over, with what they changed and did not bring home. Those "
          "that still run stay.",
      .rows = options_of_prune,
      .run = cli_prune },
    { .name = "policy",
      .summary = "show which policy holds here, who said so, and what it means",
      .usage = "[show|explain|check|set] [OPTIONS] [URL...|FILE...|SANDBOX]",
      .description =
          "show, which need not be said, shows the policy that a run here would have, and for each value that "
          "somebody set, who.\n\n"
          "explain tells of each URL, or HOST[:PORT], whether such a run could reach it, which rule and whose "
          "says "
          "so, and what would change it. What a rule allows only with some methods or paths is allowed in part "
          "as long as no method (-X) or path is said. Nothing is asked for or connected to. The exit code is 1 "
          "if one of them is refused.\n\n"
          "check reads policy files, with the files that their rules name, and tells the first mistake in "
          "each: as the repository's if its name is "
          "cove.yaml, as the administrator's if it is /etc/cove/policy.yaml, otherwise as the owner's. The "
          "exit "
          "code is 1 if there is one.\n\n"
          "set gives a sandbox that runs the network of a sandbox that would be made now, in its work tree and "
          "with these options: rules of the policy files as they are now, --allow and the like. It has it from "
          "then on, also after a start; every connection that it has is cut.",
      .rows = options_of_policy,
      .verbs = policy_verbs,
      .spec = true,
      .run = cli_policy },
    { .name = "allow",
      .summary = "let sandboxes reach a host from now on",
      .usage = "[OPTIONS] [HOST[:PORT]...]",
      .description =
          "Adds a rule to your own policy file, or with --remove takes it out again; its other lines stay as "
          "they are. HOST is a name, "
          "*.NAME for all "
          "names below it, or an address; without PORT it is 80 and 443. What the administrator "
          "does not let you "
          "allow is refused. Sandboxes that run already keep the policy they were started with, until "
          "`cove policy set SANDBOX`. A rule that says more than HOST and PORT is not taken out: delete its "
          "line in that file.",
      .rows = options_of_allow,
      .run = cli_allow },
    { .name = "mock",
      .summary = "make mocks of what was recorded",
      .usage = "[from-record] [OPTIONS] FILE",
      .description = "from-record, which need not be said, writes the exchanges of FILE, a record of cove run "
                     "--record, as rules "
                     "that mock them: to the file policy.yaml of a new directory, with bodies that are long or "
                     "no plain text as "
                     "files beside it, and prints its name. Change what you like in them, and use them by cove "
                     "run --policy "
                     "DIR/policy.yaml.\n\n"
                     "Rules know no query and no body of a request: of exchanges that differ in nothing else, "
                     "the last one "
                     "counts. What no rule can name is left out, and said.",
      .rows = options_of_mock,
      .verbs = mock_verbs,
      .run = cli_mock },
    { .name = "doctor",
      .summary = "tell what this machine can do for sandboxes, and how to mend it",
      .usage = "[OPTIONS]",
      .description =
          "Tries everything that a sandbox needs or could use, as the user who asks, and at last starts one. "
          "Nothing is left behind, and no right is needed. Each check is ok; fallback, if something else is "
          "used or less is done; absent, if only what must be asked for needs it; missing, if cove run "
          "refuses; or unknown, if it could not be tried for want of another. What is not ok comes with what "
          "does not work without it, and with how to mend it.\n\n"
          "With --json, one object: works, and checks with name, result, found, and without and fix for what "
          "is not ok.\n\n"
          "The exit code is 1 if cove run would refuse.",
      .rows = options_of_doctor,
      .run = cli_doctor },
    { .name = "prove",
      .summary = "try whether a sandbox holds on this machine",
      .usage = "[OPTIONS]",
      .description =
          "Starts a sandbox as cove run with the same options would, and tries from inside what must not work: "
          "to reach files, processes, sockets, shared memory, keys and the terminal of yours, and parts of the "
          "kernel that no tool needs. What is yours there are canaries, made for this and gone afterwards. "
          "Whether "
          "one was reached is judged from outside, and mounts, namespaces and rights are read back from there "
          "as "
          "well.\n\n"
          "The same is tried once without a sandbox. What does not even work then is no merit of the sandbox: "
          "it "
          "is listed as not to be shown here, with the reason.\n\n"
          "Prints a dated statement: each check, the walls any of which is enough for it, and the result. It "
          "holds "
          "for this machine, user and policy, and for that moment. The exit code is 1 if there is a gap, 125 "
          "if no "
          "sandbox could be started.",
      .rows = options_of_prove,
      .spec = true,
      .run = cli_prove },
    { .name = "completion",
      .summary = "print a completion script for bash, zsh or fish",
      .usage = "bash|zsh|fish",
      .run = completion_main },
    { .name = "help", .summary = "print help about a command", .usage = "[COMMAND]", .run = help_main },
    { .name = "version",
      .summary = "print the version",
      .usage = "[--json]",
      .rows = options_of_version,
      .run = cli_version },
    { .name = "docs",
      .summary = "write the generated documents",
      .usage = "WHAT",
      .hidden = true,
      .run = docs_main },
};
const size_t commands_len = ARRAY_LEN(commands);

int command_run(const struct command *command, int argc, char **argv, struct error *err)
{
    autooptions struct options options = OPTIONS_NONE;
    const char *const *verb = command->verbs;
    bool said;

    while (verb && *verb && !(argc > 1 && strcmp(argv[1], *verb) == 0))
        verb++;
    said = verb && *verb;
    if (options_parse(command, argc - said, argv + said, &options, err) < 0)
        return -1;
    options.verb = said ? *verb : command->verbs ? command->verbs[0] : NULL;
    if (options.run.help) {
        say_help(command);
        return 0;
    }

    int code = command->run(&options, err);

    upper_tidy();
    return code;
}

int main(int argc, char **argv)
{
    static const char *const spellings[][2] = { { "--help", "help" },
                                                { "-h", "help" },
                                                { "--version", "version" } };
    const char *name = argc > 1 ? argv[1] : "help";
    struct error err = { 0 };

    processor_ask_late();
    if (argc > 0 && guard_is(argv[0]))
        guard_awake();
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it reaps children that we wait for */
    if (keeper_stdio_guard(&err) < 0)
        return EXIT_OWN_ERROR;
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++)
        if (strcmp(name, spellings[i][0]) == 0)
            name = spellings[i][1];

    const struct command *command = command_find(name);
    int code = command ? command_run(command, argc - (argc > 1), argv + (argc > 1), &err)
                       : command_unknown(name, &err);

    return code < 0 ? say_error(&err) : code;
}
