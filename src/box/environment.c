#include "box/environment.h"

#include "base/array.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "spec/spec.h"

#include <limits.h>
#include <string.h>

/* The host's variables that pass by themselves.  A name is here because programs look or behave
 * worse without it and its value is no secret.  Exact names only: a prefix such as LC_ would let
 * through what people smuggle over ssh as LC_MY_TOKEN.  Not here, and why: proxies (they carry
 * passwords), agents and buses (SSH_AUTH_SOCK, DBUS_*, GPG_*, XDG_RUNTIME_DIR, DISPLAY: doors to the
 * host), LD_*, *_TOKEN, *_KEY, *_SECRET, TMPDIR (a host path that is absent inside). */
static const char *const passed[] = {
    /* terminal and language */
    "TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "VTE_VERSION", "COLUMNS", "LINES", "COLORFGBG",
    "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LS_COLORS", "LSCOLORS", "GREP_COLORS",
    "GCC_COLORS", "LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION",
    "LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE",
    "LC_TIME", "TZ",
    /* habits */
    "EDITOR", "VISUAL", "PAGER", "LESS", "LESSCHARSET", "MANPAGER", "GIT_PAGER", "GIT_EDITOR",
    /* builds */
    "CI", "DEB_BUILD_OPTIONS", "SOURCE_DATE_EPOCH", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CC", "CXX",
    "RUSTFLAGS", "GOFLAGS", "GOTOOLCHAIN", "GO111MODULE", "CGO_ENABLED", "NODE_ENV", "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    /* where tools are */
    "NVM_DIR", "NVM_BIN", "NVM_INC", "FNM_DIR", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_INSTALL",
    "N_PREFIX", "PYENV_ROOT", "PYENV_SHELL", "PYENV_VERSION", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT",
    "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_EXE", "CONDA_PYTHON_EXE", "CONDA_SHLVL",
    "CONDA_PROMPT_MODIFIER", "MAMBA_ROOT_PREFIX", "MAMBA_EXE", "RBENV_ROOT", "RBENV_SHELL", "GEM_HOME",
    "GEM_PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "GOPATH", "GOROOT", "GOBIN", "GOMODCACHE",
    "JAVA_HOME", "JDK_HOME", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "SDKMAN_DIR", "SDKMAN_CANDIDATES_DIR",
    "SDKMAN_PLATFORM", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_SHELL", "MISE_DATA_DIR", "DOTNET_ROOT",
    "DOTNET_CLI_TELEMETRY_OPTOUT", "ANDROID_HOME", "ANDROID_SDK_ROOT", "HOMEBREW_PREFIX", "HOMEBREW_CELLAR",
    "HOMEBREW_REPOSITORY", "NIX_PROFILES", "OPAM_SWITCH_PREFIX", "MANPATH", "INFOPATH", "PKG_CONFIG_PATH"
};

#define STANDARD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The host's variable with this name as NAME=VALUE, NULL if there is none. */
static const char *find_variable(char *const *environ_of, const char *name, size_t len)
{
    for (char *const *at = environ_of; at && *at; at++)
        if (strncmp(*at, name, len) == 0 && (*at)[len] == '=')
            return *at;
    return NULL;
}

/* Sets NAME=VALUE, replacing an earlier one of that name. */
static void set_entry(struct strings *out, const char *entry)
{
    size_t len = strcspn(entry, "=");

    for (size_t i = 0; i < out->len; i++)
        if (strncmp(out->items[i], entry, len) == 0 && out->items[i][len] == '=') {
            free(out->items[i]);
            out->items[i] = text_copy(entry);
            return;
        }
    strings_add(out, entry);
}

static void set(struct strings *out, const char *name, const char *value)
{
    autofree char *entry = text_format("%s=%s", name, value);

    set_entry(out, entry);
}

/* Adds the absolute entries of a search path, each once.  An empty or relative one means "where I
 * happen to be": in a sandbox that is the repository, and it must not provide the commands. */
static void add_absolute(struct strings *entries, const char *path)
{
    for (size_t len; *path; path += len + (path[len] == ':')) {
        len = strcspn(path, ":");
        if (*path != '/' || len >= PATH_MAX)
            continue;
        autofree char *entry = text_format("%.*s", (int)len, path);
        if (!strings_have(entries, entry))
            strings_add(entries, entry);
    }
}

static void set_path(const struct spec *spec, const struct host *host, struct strings *out)
{
    const char *theirs = find_variable(host->environ, "PATH", strlen("PATH"));
    bool host_image = strcmp(spec->image, "host") == 0;
    autostrings struct strings entries = STRINGS_NONE;
    autotext struct text path = TEXT_NONE;

    if (theirs)
        add_absolute(&entries, theirs + strlen("PATH="));
    /* Another root file system has its programs in the standard places, wherever the host's are. */
    if (!entries.len || !host_image)
        add_absolute(&entries, STANDARD_PATH);
    for (size_t i = 0; i < entries.len; i++)
        text_addf(&path, "%s%s", i ? ":" : "", entries.items[i]);
    set(out, "PATH", text_string(&path));
}

/* Who the command is inside; only the uid matters here. */
static uid_t uid_inside(const struct spec *spec, const struct host *host)
{
    if (!spec->user)
        return host->root ? 0 : host->uid;
    return strcmp(spec->user, "root") == 0 ? 0 : (uid_t)strtoul(spec->user, NULL, 10);
}

static void set_identity(const struct spec *spec, const struct host *host, struct strings *out)
{
    uid_t uid = uid_inside(spec, host);
    autofree char *number = text_format("%u", (unsigned)uid);
    const char *name = number, *home = "/tmp"; /* somebody no database knows: at least it can be written to */

    if (!spec->user || uid == host->uid) {
        name = host->name;
        home = host->home;
    } else if (uid == 0) {
        name = "root";
        home = "/root";
    }
    set(out, "HOME", home);
    set(out, "USER", name);
    set(out, "LOGNAME", name);
}

/* A shell of the host that is not below /usr or /bin is not there inside. */
static const char *shell_inside(const struct spec *spec, const struct host *host)
{
    bool there = path_within(host->shell, "/usr") || path_within(host->shell, "/bin");

    return there && strcmp(spec->image, "host") == 0 ? host->shell : "/bin/sh";
}

void environment_build(const struct spec *spec, const struct host *host, struct strings *out)
{
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
        const char *entry = find_variable(host->environ, passed[i], strlen(passed[i]));

        if (entry)
            set_entry(out, entry);
    }
    set_path(spec, host, out);
    set_identity(spec, host, out);
    set(out, "SHELL", shell_inside(spec, host));
    set(out, "COVE_SANDBOX", "1");
    for (size_t i = 0; i < spec->env.len; i++)
        if (strchr(spec->env.items[i], '='))
            set_entry(out, spec->env.items[i]);
    strings_sort(out);
}

void environment_default(struct strings *env, const struct strings *defaults)
{
    struct strings both = STRINGS_NONE;

    environment_join(defaults, env, &both);
    strings_free(env);
    *env = both;
}

void environment_join(const struct strings *base, const struct strings *more, struct strings *out)
{
    strings_copy(out, base);
    for (size_t i = 0; i < more->len; i++)
        if (strchr(more->items[i], '='))
            set_entry(out, more->items[i]);
    strings_sort(out);
}
