#include "spec/fields.h"

#include "spec/forms.h"

#include <string.h>

#define SPEC_AT(member) .at = offsetof(struct spec, member)
#define ALL_LAYERS (PLACE_ADMIN | PLACE_OWNER | PLACE_REPOSITORY | PLACE_SPEC)
#define OWNERS (PLACE_OWNER | PLACE_SPEC | PLACE_FLAG)

/* One row of a limit.  What may be hard for whom: limits/limits.c. */
#define LIMIT(id, word, kind, takes, from, to, usual, key_help, flag_help)                                     \
    .key = "limits." word, SPEC_AT(limits[id]), .type = (kind), .initial = (usual), .least = (from),           \
    .most = (to), .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_SMALLER, .help = (key_help),           \
    .flags = { { .name = (word), .argument = (takes), .help = (flag_help) } }

/* A bound on what is kept by itself, of a sandbox that stays. */
#define CHECKPOINTS(member, kind, takes, to, usual, key_help, flag, flag_help)                                 \
    .key = "checkpoints." #member, SPEC_AT(checkpoints.member), .type = (kind), .initial = (usual),            \
    .least = 1, .most = (to), .places = OWNERS, .combine = COMBINE_OWNER, .help = (key_help),                  \
    .flags = { { .name = (flag), .argument = (takes), .help = (flag_help) } }

/* A bound on what the network is used for, from the start of a sandbox to its end. */
#define BUDGET(member, kind, takes, to, key_help, flag_help)                                                   \
    .key = "network.budget." #member, SPEC_AT(budget.member), .type = (kind), .initial = "none", .least = 1,   \
    .most = (to), .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_SMALLER, .help = (key_help),           \
    .flags = { { .name = "network-" #member, .argument = (takes), .help = (flag_help) } }

#define PETABYTE (1ULL << 50)
#define STRING(number) STRING_(number)
#define STRING_(number) #number

#define YEAR_MS (366ULL * 24 * 3600 * 1000)

/* A new option is a new member of struct spec, a new name in enum field_id and a new row here.
 * What each column means stands at struct field. */
const struct field fields[FIELD_COUNT] = {
    [FIELD_COMMAND] = {
        .key = "command", SPEC_AT(command), .type = TYPE_STRINGS, .form = form_any,
        .places = PLACE_SPEC, .combine = COMBINE_OWNER,
        .help = "the command and its arguments; empty: the user's shell",
    },
    [FIELD_IMAGE] = {
        .key = "image", SPEC_AT(image), .type = TYPE_STRING, .form = form_image, .initial = "host",
        .places = OWNERS, .combine = COMBINE_IMAGE,
        .help = "the root file system: host (this machine's own programs, read-only) or a directory",
        .flags = { { .name = "image", .argument = "DIR|host",
                     .help = "Use DIR as the root file system, or host: this machine's own programs" } },
    },
    [FIELD_IMAGES] = {
        .key = "images", SPEC_AT(images), .type = TYPE_STRINGS, .form = form_image,
        .places = PLACE_ADMIN | PLACE_OWNER | PLACE_REPOSITORY, .combine = COMBINE_IMAGES,
        .help = "the images that may be used: host, and directories with all that lies below them",
    },
    [FIELD_DIRECTORY] = {
        .key = "directory", SPEC_AT(directory), .type = TYPE_STRING, .form = form_directory, .initial = ".",
        .places = PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_OWNER,
        .help = "the workspace is the work tree around this directory",
        .flags = { { .name = "directory", .letter = 'C', .argument = "DIR",
                     .help = "Take the work tree around DIR as the workspace, not the one around the current "
                             "directory" } },
    },
    [FIELD_WORKDIR] = {
        .key = "workdir", SPEC_AT(cwd), .type = TYPE_STRING, .form = form_word,
        .places = PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_OWNER,
        .help = "the directory inside in which the command starts",
        .flags = { { .name = "workdir", .letter = 'w', .argument = "DIR",
                     .help = "Start the command in DIR inside the sandbox" } },
    },
    [FIELD_WORKSPACE] = {
        .key = "workspace", SPEC_AT(workspace), .type = TYPE_CHOICE, .initial = "cow",
        .choices = { [WORKSPACE_RW] = "rw", [WORKSPACE_LIVE] = "live", [WORKSPACE_COW] = "cow",
                     [WORKSPACE_COPY] = "copy", [WORKSPACE_RO] = "ro" },
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_STRICTER,
        .help = "how the workspace is seen: rw (the host's own tree is written), live (ordinary changes reach "
                "it while the command runs), cow (copy on write), copy (the same on a private copy, taken "
                "first) or ro (read-only); each allows less than the one before",
        .flags = { { .name = "workspace", .argument = "MODE",
                     .help = "How the workspace is seen: rw, the host's own tree, writable but for files that act by "
                             "merely being there; live, ordinary changes reach the host's tree at once; cow, copy "
                             "on write; copy, the same on a private copy taken first; ro, read-only" } },
    },
    [FIELD_USER] = {
        .key = "user", SPEC_AT(user), .type = TYPE_STRING, .form = form_user,
        .places = OWNERS, .combine = COMBINE_OWNER,
        .help = "who the command is inside: root, NUMBER or NUMBER:NUMBER (user and group)",
        .flags = { { .name = "user", .letter = 'u', .argument = "USER",
                     .help = "Run as USER inside: root, NUMBER or NUMBER:NUMBER" },
                   { .name = "root", .fixed = "root",
                     .help = "Run as root inside, without any power outside (same as -u root)" } },
    },
    [FIELD_ROOT] = {
        .key = "root", SPEC_AT(root), .type = TYPE_BOOL, .initial = "true",
        .places = ALL_LAYERS, .combine = COMBINE_AND,
        .help = "whether the command may be root inside",
    },
    [FIELD_HOSTNAME] = {
        .key = "hostname", SPEC_AT(hostname), .type = TYPE_STRING, .form = form_hostname, .initial = "cove",
        .places = OWNERS, .combine = COMBINE_OWNER,
        .help = "the host name inside",
        .flags = { { .name = "hostname", .argument = "NAME", .help = "Set the host name inside" } },
    },
    [FIELD_SECCOMP] = {
        .key = "seccomp", SPEC_AT(profile), .type = TYPE_CHOICE, .initial = "default",
        .choices = { [PROFILE_DEFAULT] = "default", [PROFILE_STRICT] = "strict" },
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_STRICTER,
        .help = "which system calls the command may use; strict leaves out what debuggers and nested "
                "sandboxes need",
        .flags = { { .name = "seccomp", .argument = "PROFILE",
                     .help = "Filter system calls by PROFILE; strict leaves out what debuggers and nested "
                             "sandboxes need" } },
    },
    [FIELD_TTY] = {
        .key = "tty", SPEC_AT(terminal), .type = TYPE_CHOICE, .initial = "auto",
        .choices = { [TERMINAL_AUTO] = "auto", [TERMINAL_YES] = "yes", [TERMINAL_NO] = "no" },
        .places = PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_OWNER,
        .help = "whether the command gets a terminal of its own; auto: if input and output are one",
        .flags = { { .name = "tty", .letter = 't', .fixed = "yes",
                     .help = "Give the command a terminal (done by itself if input and output are one)" },
                   { .name = "no-tty", .fixed = "no", .help = "Give the command no terminal" } },
    },
    [FIELD_TIMEOUT] = {
        .key = "limits.timeout", SPEC_AT(timeout_ms), .type = TYPE_DURATION, .initial = "none",
        .least = 1, .most = YEAR_MS,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_SMALLER,
        .help = "the longest a command may run (30m, 1h30m, 500ms, plain seconds, or none)",
        .flags = { { .name = "timeout", .argument = "DURATION",
                     .help = "End the command after DURATION (30m, 1h30m, 500ms, plain seconds); exit code 124" } },
    },
    [FIELD_MEMORY] = { LIMIT(LIMIT_MEMORY, "memory", TYPE_BYTES, "SIZE", 8 << 20, PETABYTE, "none",
        "the most memory all processes have together (512M, 4G, or none); reaching it ends the run",
        "End the run when it uses more memory than SIZE (512M, 4G)") },
    [FIELD_CPUS] = { LIMIT(LIMIT_CPUS, "cpus", TYPE_CPUS, "NUMBER", 10, 1024000, "none",
        "how many processors the command may keep busy (2, 1.5, or none)",
        "Let the command have the time of NUMBER processors (2, 1.5)") },
    [FIELD_PROCESSES] = { LIMIT(LIMIT_PROCESSES, "processes", TYPE_NUMBER, "NUMBER", 4, (4 << 20) - 1,
        STRING(LIMIT_PROCESSES_USUAL),
        "the most processes and threads at a time, or none",
        "Let at most NUMBER processes and threads exist at a time") },
    [FIELD_OPEN_FILES] = { LIMIT(LIMIT_OPEN_FILES, "open-files", TYPE_NUMBER, "NUMBER", 16, 1 << 30, "none",
        "the most descriptors one process may have open, or none: as many as its owner's",
        "Let a process have at most NUMBER descriptors") },
    [FIELD_FILE_SIZE] = { LIMIT(LIMIT_FILE_SIZE, "file-size", TYPE_BYTES, "SIZE", 4096, PETABYTE, "none",
        "the largest file that may be written, or none",
        "Let no file grow larger than SIZE") },
    [FIELD_DISK] = { LIMIT(LIMIT_DISK, "disk", TYPE_BYTES, "SIZE", 1 << 20, PETABYTE, "none",
        "the most that the files it writes may take on disk, or none; reaching it ends the run",
        "End the run when what it wrote takes more than SIZE on disk") },
    [FIELD_INODES] = { LIMIT(LIMIT_INODES, "inodes", TYPE_NUMBER, "NUMBER", 64, 1 << 20, "none",
        "how many files and directories it may make, or none; reaching it ends the run",
        "End the run when it made more than NUMBER files and directories") },
    [FIELD_OUTPUT] = { LIMIT(LIMIT_OUTPUT, "output", TYPE_BYTES, "SIZE", 1, PETABYTE, "none",
        "the most that standard output and error may have together, or none; reaching it ends the run",
        "End the run when it has written SIZE to standard output and error") },
    [FIELD_ENFORCE] = {
        .key = "limits.enforce", SPEC_AT(enforce), .type = TYPE_CHOICE, .initial = "best",
        .choices = { [ENFORCE_BEST] = "best", [ENFORCE_HARD] = "hard" },
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_STRICTER,
        .help = "what to do where a limit cannot be hard: best takes the best kind there is, hard refuses to "
                "start; of one limit alone: { max: 4G, hard: true }",
        .flags = { { .name = "enforce", .argument = "KIND",
                     .help = "Take the best kind of each limit that you can have here, or only hard ones" } },
    },
    [FIELD_ENV] = {
        .key = "env", SPEC_AT(env), .type = TYPE_ENV, .form = form_env,
        .places = OWNERS, .combine = COMBINE_OWNER,
        .help = "variables of the environment; KEY alone takes the value it has outside",
        .flags = { { .name = "env", .letter = 'e', .argument = "KEY[=VALUE]",
                     .help = "Set a variable inside; KEY alone takes the value it has here" } },
    },
    [FIELD_READ] = {
        .key = "files.read", SPEC_AT(read), .type = TYPE_STRINGS, .form = form_path,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_GRANT,
        .help = "files and directories of the host that are visible inside, read-only",
        .flags = { { .name = "read", .argument = "PATH",
                     .help = "Make PATH of the host visible inside, read-only" } },
    },
    [FIELD_WRITE] = {
        .key = "files.write", SPEC_AT(write), .type = TYPE_STRINGS, .form = form_path,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_GRANT,
        .help = "files and directories of the host that are visible inside, copy on write: they can be "
                "changed inside, the host's own stay as they are",
        .flags = { { .name = "write", .argument = "PATH",
                     .help = "Make PATH of the host visible inside, copy on write: it can be changed inside, "
                             "the host's own stays as it is" } },
    },
    [FIELD_HIDE] = {
        .key = "files.hide", SPEC_AT(hide), .type = TYPE_STRINGS, .form = form_pattern,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_UNION,
        .help = "what is absent inside, in the workspace and in every granted tree: names at any depth "
                "(`*.pem`), paths from the top of each tree (`/config/*.key`), or paths of the host "
                "(`~/project/.env`, `./secret`, `/srv/data/keys`); `**` stands for any number of directories",
        .flags = { { .name = "hide", .argument = "PATTERN",
                     .help = "Leave files that match PATTERN out of the workspace and every granted tree: a name "
                             "(*.pem), a path from the top of a tree (/config/*.key), or a path of the host "
                             "(~/project/.env, ./secret)" } },
    },
    [FIELD_VOLUMES] = {
        .key = "volumes", SPEC_AT(volumes), .type = TYPE_VOLUMES,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_GRANT,
        .help = "directories of the host that are visible at another path: SRC:DST[:ro|cow]",
        .flags = { { .name = "volume", .letter = 'v', .argument = "SRC:DST[:ro|cow]",
                     .help = "Make SRC of the host visible at DST inside, read-only or, by default, copy on "
                             "write; \\: is a colon in a path" } },
    },
    [FIELD_SERVICES] = {
        .key = "services", SPEC_AT(services), .type = TYPE_SERVICES,
        .places = OWNERS, .combine = COMBINE_OWNER,
        .help = "programs that a sandbox that stays starts by itself, before its first command and again after "
                "each start, rollback and fork: a command for the shell, or { name, run, ready, within }; it is "
                "waited for until the command `ready` succeeds, at most `within` (1m)",
        .flags = { { .name = "service", .argument = "COMMAND",
                     .help = "Start COMMAND by itself in a sandbox that stays, before its first command and again after each "
                             "start, rollback and fork" } },
    },
    [FIELD_NETWORK] = {
        .key = "network.mode", SPEC_AT(network), .type = TYPE_CHOICE, .initial = "rules",
        .choices = { [NETWORK_NONE] = "none", [NETWORK_RULES] = "rules", [NETWORK_AUDIT] = "audit",
                     [NETWORK_OPEN] = "open" },
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_NETWORK,
        .help = "what can be reached: none, what rules allow, open: every public address that no rule denies, or audit: as "
                "open, and what no rule would have allowed is told",
        .flags = { { .name = "network", .argument = "MODE",
                     .help = "Reach nothing (none), what rules allow (rules), or every public address (open, audit)" },
                   { .name = "audit", .fixed = "audit",
                     .help = "Reach every public address, and tell what no rule would have allowed: --network audit" } },
    },
    [FIELD_RULES] = {
        .key = "network.rules", SPEC_AT(rules), .type = TYPE_RULES,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_NETWORK,
        .help = "hosts that can be reached, each HOST[:PORT] or { host, port, action, address, methods, paths, ca, "
                "mock, rate, bytes }: host is a name, *.NAME for all names below it, or an address; without port it is 80 and "
                "443; action is allow, mock, which answers by itself, or deny, which wins; address is the only one "
                "that is used for the name, and may be private; methods and paths are those of requests, rate (10/s, 600/min) and bytes bound "
                "them; ca is a "
                "file with the certificates by which its server is believed",
        .flags = { { .name = "allow", .argument = "HOST[:PORT]",
                     .help = "Let HOST be reached, at PORT or else at 80 and 443; *.NAME is all names below NAME" } },
    },
    [FIELD_HOST_SERVICES] = {
        .key = "network.host-services", SPEC_AT(host_services), .type = TYPE_STRINGS, .form = form_service_port,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_NETWORK,
        .help = "ports at which services of this machine's own loopback are reached inside, at 127.0.0.1 and ::1",
        .flags = { { .name = "host-service", .argument = "PORT",
                     .help = "Have the service at PORT of this machine's loopback at PORT of the loopback inside" } },
    },
    [FIELD_REGISTRIES] = {
        .key = "network.registries", SPEC_AT(registries), .type = TYPE_STRINGS, .form = form_registry,
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_NETWORK,
        .help = "package registries that can be reached: apt, cargo, go, npm, pip; which hosts these are is read "
                "from the configuration of those tools, never from the workspace",
        .flags = { { .name = "registry", .argument = "NAME",
                     .help = "Let the package registry of apt, cargo, go, npm or pip be reached" } },
    },
    [FIELD_REGISTRIES_FROM] = {
        .key = "network.registries-from", SPEC_AT(registries_from), .type = TYPE_CHOICE, .initial = "user",
        .choices = { [REGISTRIES_OF_USER] = "user", [REGISTRIES_OF_SYSTEM] = "system" },
        .places = ALL_LAYERS, .combine = COMBINE_NETWORK,
        .help = "whose configuration says which hosts registries are: the user's and the system's, or only the "
                "system's",
    },
    [FIELD_RECORD] = {
        .key = "network.record", SPEC_AT(record), .type = TYPE_STRING, .form = form_path,
        .places = PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_OWNER,
        .help = "a new file to which every exchange of HTTP is written, a line of JSON each; TLS to allowed hosts "
                "is looked into for that",
        .flags = { { .name = "record", .argument = "FILE",
                     .help = "Write every exchange of HTTP to the new file FILE; TLS to allowed hosts is looked "
                             "into for that" } },
    },
    [FIELD_RECORD_SECRETS] = {
        .key = "network.record-secrets", SPEC_AT(record_secrets), .type = TYPE_BOOL, .initial = "false",
        .places = PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_OWNER,
        .help = "whether a record has logins, cookies and keys as they are, and not as hashes",
        .flags = { { .name = "record-secrets", .fixed = "true",
                     .help = "With --record, write logins, cookies and keys as they are, not as hashes" } },
    },
    [FIELD_REPLAY] = {
        .key = "network.replay", SPEC_AT(replay), .type = TYPE_STRING, .form = form_path,
        .places = PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_OWNER,
        .help = "a file of --record that stands for the network: what is in it is answered from it, everything else "
                "is refused, and nothing leaves",
        .flags = { { .name = "replay", .argument = "FILE",
                     .help = "Answer requests from FILE, a record of --record, refuse all others, and let nothing "
                             "leave" } },
    },
    [FIELD_UPSTREAM_PROXY] = {
        .key = "network.upstream-proxy", SPEC_AT(upstream_proxy), .type = TYPE_STRING, .form = form_proxy, .initial = "none",
        .places = PLACE_ADMIN | PLACE_OWNER | PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_NETWORK,
        .help = "the proxy by which this machine reaches the world: none, environment (HTTPS_PROXY, HTTP_PROXY and NO_PROXY "
                "of who starts the sandbox) or http://[USER:PASSWORD@]HOST:PORT; names are then resolved there",
        .flags = { { .name = "upstream-proxy", .argument = "URL|environment",
                     .help = "Reach allowed hosts by the proxy at URL, or by the one that HTTPS_PROXY names here" } },
    },
    [FIELD_PACKAGES] = {
        .key = "network.package-cache", SPEC_AT(packages), .type = TYPE_BOOL, .initial = "true",
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_AND,
        .help = "whether package files of the registries npm, pip and cargo are kept by their hash and shared by your "
                "sandboxes; TLS to these hosts is looked into for that",
        .flags = { { .name = "no-package-cache", .fixed = "false",
                     .help = "Do not keep package files for other sandboxes, nor use those that are kept" } },
    },
    [FIELD_PACKAGES_SIZE] = {
        .key = "network.package-cache-size", SPEC_AT(packages_size), .type = TYPE_BYTES, .initial = "2G",
        .least = 1 << 20, .most = PETABYTE,
        .places = OWNERS, .combine = COMBINE_OWNER,
        .help = "how much the package files that are kept may take on disk, or none: any amount; those that were not "
                "used the longest go",
        .flags = { { .name = "package-cache-size", .argument = "SIZE",
                     .help = "Let the package files that are kept take SIZE on disk" } },
    },
    [FIELD_BUDGET_BYTES] = { BUDGET(bytes, TYPE_BYTES, "SIZE", PETABYTE,
        "how much may pass in all between the sandbox and servers, both ways",
        "Let SIZE pass in all between the sandbox and servers, and then nothing") },
    [FIELD_BUDGET_REQUESTS] = { BUDGET(requests, TYPE_NUMBER, "NUMBER", 1ULL << 50,
        "how many requests may be made in all; a connection that passes unread is one",
        "Let NUMBER requests be made in all, and then none") },
    [FIELD_BUDGET_CONNECTIONS] = { BUDGET(connections, TYPE_NUMBER, "NUMBER", 1ULL << 50,
        "how many connections may be made to servers in all",
        "Let NUMBER connections be made to servers in all, and then none") },
    [FIELD_TOOLS] = {
        .key = "tools", SPEC_AT(tools), .type = TYPE_BOOL, .initial = "true",
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_AND,
        .help = "whether tools installed in the home directory (such as ~/.nvm) are visible",
        .flags = { { .name = "no-tools", .fixed = "false",
                     .help = "Do not show the tools that are installed in the home directory" } },
    },
    [FIELD_CACHES] = {
        .key = "caches", SPEC_AT(caches), .type = TYPE_BOOL, .initial = "true",
        .places = ALL_LAYERS | PLACE_FLAG, .combine = COMBINE_AND,
        .help = "whether package caches of the home directory are visible, copy on write",
        .flags = { { .name = "no-caches", .fixed = "false",
                     .help = "Do not show the package caches of the home directory" } },
    },
    [FIELD_REMOVE] = {
        .key = "remove", SPEC_AT(remove), .type = TYPE_BOOL, .initial = "false",
        .places = PLACE_SPEC | PLACE_FLAG, .combine = COMBINE_OWNER,
        .help = "whether nothing of the sandbox is kept after the command",
        .flags = { { .name = "rm", .fixed = "true", .help = "Keep nothing of the sandbox afterwards" } },
    },
    [FIELD_CHECKPOINTS_KEEP] = { CHECKPOINTS(keep, TYPE_NUMBER, "NUMBER", 1 << 20, "200",
        "how many checkpoints of a sandbox that stays are kept, or none: all; what a snapshot or a fork holds "
        "does not go",
        "keep-checkpoints", "Of a sandbox that stays, keep the last NUMBER checkpoints") },
    [FIELD_CHECKPOINTS_SPACE] = { CHECKPOINTS(space, TYPE_BYTES, "SIZE", PETABYTE, "2G",
        "what they may take on disk beside the sandbox's own files, or none: the oldest go",
        "checkpoint-space", "Of a sandbox that stays, drop old checkpoints that take more than SIZE on disk") },
    [FIELD_LIVE_BYTES] = { CHECKPOINTS(live_bytes, TYPE_BYTES, "SIZE", PETABYTE, "64M",
        "how much is copied for a checkpoint by itself while processes are alive, or none: any amount",
        "live-bytes", "Make no checkpoint by itself when it had to copy more than SIZE, as processes are alive") },
    [FIELD_LIVE_FILES] = { CHECKPOINTS(live_files, TYPE_NUMBER, "NUMBER", 1 << 30, "5000",
        "how many files are copied for one, or none: any number",
        "live-files", "The same for more than NUMBER files") },
};

const struct flag source_flags[] = {
    { .name = "env-file",
      .argument = "FILE",
      .kind = FLAG_ENV_FILE,
      .help = "Set the variables that FILE has, one KEY=VALUE a line; # begins a comment" },
    { .name = "policy",
      .argument = "FILE",
      .kind = FLAG_POLICY,
      .help = "Read one more policy file; it may not be writable for others" },
    { .name = "spec",
      .argument = "FILE",
      .kind = FLAG_SPEC,
      .help = "Read a sandbox's description as JSON in place of your policy file" },
    { .name = "interactive",
      .letter = 'i',
      .kind = FLAG_IGNORED,
      .help = "Nothing: input is always connected" },
};

const size_t source_flags_len = ARRAY_LEN(source_flags);

const struct field *field_find(const char *key)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}
