#include "box/credentials.h"

#include "base/array.h"
#include "base/error.h"
#include "base/glob.h"
#include "base/own.h"
#include "base/text.h"
#include "box/host.h"
#include "box/place.h"

#include <fcntl.h>
#include <string.h>

/* What is refused: nothing at and below the place, only the place, or all of it. */
enum extent { FREE, ITSELF, ALL_BELOW };

/* The first row that fits a path decides; one with ITSELF fits nothing below its place.
 *   place      pattern of resolved paths
 *   workspace  how much of it cannot be a workspace
 *   grant      how much of it cannot be granted
 *   what       completes "... is" */
static const struct {
    const char *place;
    enum extent workspace, grant;
    const char *what;
} system_places[] = {
    { "/", ITSELF, ITSELF, "the whole machine" },
    { "/run/media", ITSELF, ITSELF, "where disks of all users are mounted" },
    { "/run/media/*", ITSELF, ITSELF, "where disks are mounted" },
    { "/run/media/*/*", FREE, FREE, "a disk" },
    { "/proc", ALL_BELOW, ALL_BELOW, "the kernel's; the sandbox has its own" },
    { "/sys", ALL_BELOW, ALL_BELOW, "the kernel's; the sandbox has its own" },
    { "/dev", ALL_BELOW, ALL_BELOW, "for devices; the sandbox has its own" },
    { "/run", ALL_BELOW, ALL_BELOW, "where services of the machine keep their sockets" },
    { "/boot", ALL_BELOW, ALL_BELOW, "a system directory" },
    { "/lost+found", ALL_BELOW, ALL_BELOW, "a system directory" },
    { "/etc", ALL_BELOW, ITSELF, "the machine's configuration" },
    { "/bin", ALL_BELOW, FREE, "a system directory" },
    { "/sbin", ALL_BELOW, FREE, "a system directory" },
    { "/lib", ALL_BELOW, FREE, "a system directory" },
    { "/lib[36x]*", ALL_BELOW, FREE, "a system directory" },
    { "/usr", ITSELF, FREE, "a system directory" },
    { "/usr/bin", ALL_BELOW, FREE, "a system directory" },
    { "/usr/sbin", ALL_BELOW, FREE, "a system directory" },
    { "/usr/lib*", ALL_BELOW, FREE, "a system directory" },
    { "/usr/share", ITSELF, FREE, "a system directory" },
    { "/usr/include", ITSELF, FREE, "a system directory" },
    { "/usr/src", ITSELF, FREE, "a system directory" },
    { "/usr/local", ITSELF, FREE, "a system directory" },
    { "/usr/local/*", ITSELF, FREE, "a system directory" },
    { "/opt", ITSELF, FREE, "a system directory" },
    { "/nix", ITSELF, FREE, "a system directory" },
    { "/nix/*", ALL_BELOW, FREE, "a system directory" },
    { "/snap", ALL_BELOW, FREE, "a system directory" },
    { "/tmp", ITSELF, ITSELF, "where programs of all users keep their files" },
    { "/var", ITSELF, ITSELF, "a system directory" },
    { "/var/tmp", ITSELF, ITSELF, "where programs of all users keep their files" },
    { "/var/lib", ITSELF, ITSELF, "where services of the machine keep their data" },
    { "/var/lib/docker", ALL_BELOW, ALL_BELOW, "where a container service keeps its data" },
    { "/var/lib/containerd", ALL_BELOW, ALL_BELOW, "where a container service keeps its data" },
    { "/var/lib/dpkg", ALL_BELOW, FREE, "a system directory" },
    { "/var/cache", ITSELF, FREE, "a system directory" },
    { "/var/log", ALL_BELOW, FREE, "a system directory" },
    { "/var/spool", ALL_BELOW, ITSELF, "a system directory" },
    { "/var/mail", ALL_BELOW, ALL_BELOW, "the users' mail" },
    { "/var/backups", ALL_BELOW, ALL_BELOW, "where copies of the password database are kept" },
    { "/mnt", ITSELF, ITSELF, "where disks are mounted" },
    { "/mnt/?", ITSELF, ITSELF, "a whole drive" }, /* of Windows, under WSL */
    { "/mnt/?/Users", ITSELF, ITSELF, "where home directories are" },
    { "/mnt/?/Users/*", ITSELF, ITSELF, "a home directory" },
    { "/media", ITSELF, ITSELF, "where disks are mounted" },
    { "/media/*", ITSELF, ITSELF, "where disks are mounted" },
    { "/root", ITSELF, ITSELF, "a home directory" },
    { "/home", ITSELF, ITSELF, "where home directories are" },
    { "/home/*", ITSELF, ITSELF, "a home directory" },
};

/* Where logins, keys and tokens are.
 *   place     a pattern; below the home directory unless it begins with a slash
 *   gives     what it opens, for the message
 *   anywhere  a directory that holds it is taken for somebody's home, wherever it is; only for
 *             names that do not also stand in ordinary projects (.npmrc, .claude do) */
static const struct credential {
    const char *place, *gives;
    bool anywhere;
} credentials[] = {
    { ".ssh", "SSH keys" },
    { ".ssh/id_*", "SSH keys", true },
    { ".ssh/authorized_keys", "SSH keys", true },
    { ".gnupg", "GnuPG keys", true },
    { ".aws", "AWS keys" },
    { ".aws/credentials", "AWS keys", true },
    { ".azure", "Azure logins" },
    { ".config/gcloud", "Google Cloud logins", true },
    { ".boto", "Google Cloud keys" },
    { ".oci", "Oracle Cloud keys" },
    { ".aliyun", "Alibaba Cloud keys" },
    { ".bluemix", "IBM Cloud logins" },
    { ".config/doctl", "DigitalOcean tokens" },
    { ".config/hcloud", "Hetzner tokens" },
    { ".config/.wrangler", "Cloudflare tokens" },
    { ".fly", "Fly.io tokens" },
    { ".config/netlify", "Netlify tokens" },
    { ".local/share/com.vercel.cli", "Vercel tokens" },
    { ".terraform.d", "Terraform tokens" },
    { ".terraformrc", "Terraform tokens" },
    { ".vault-token", "a Vault token", true },
    { ".kube", "Kubernetes logins" },
    { ".kube/config", "Kubernetes logins", true },
    { ".docker", "registry logins" },
    { ".docker/config.json", "registry logins", true },
    { ".config/containers/auth.json", "registry logins" },
    { ".config/helm", "Helm logins" },
    { ".netrc", "passwords", true },
    { ".authinfo*", "passwords", true },
    { ".git-credentials", "git passwords", true },
    { ".config/git/credentials", "git passwords" },
    { ".config/gh", "GitHub tokens" },
    { ".config/hub", "GitHub tokens" },
    { ".config/glab-cli", "GitLab tokens" },
    { ".config/github-copilot", "GitHub tokens" },
    { ".npmrc", "npm tokens" },
    { ".yarnrc.yml", "npm tokens" },
    { ".bunfig.toml", "npm tokens" },
    { ".pypirc", "PyPI tokens" },
    { ".config/pip", "index passwords" },
    { ".config/pypoetry", "PyPI tokens" },
    { ".local/share/uv/credentials", "index passwords" },
    { ".cargo/credentials*", "cargo tokens" },
    { ".gem/credentials", "RubyGems tokens" },
    { ".bundle/config", "gem server passwords" },
    { ".m2/settings*.xml", "Maven passwords" },
    { ".gradle/gradle.properties", "Gradle passwords" },
    { ".ivy2/.credentials", "repository passwords" },
    { ".sbt/.credentials", "repository passwords" },
    { ".nuget/NuGet", "NuGet tokens" },
    { ".composer/auth.json", "Composer tokens" },
    { ".config/composer/auth.json", "Composer tokens" },
    { ".hex", "Hex tokens" },
    { ".config/dart", "pub tokens" },
    { ".julia/servers", "Julia tokens" },
    { ".claude", "an agent's login" },
    { ".claude.json*", "an agent's login" },
    { ".codex", "an agent's login" },
    { ".gemini", "an agent's login" },
    { ".config/claude", "an agent's login" },
    { ".config/opencode", "an agent's login" },
    { ".local/share/opencode", "an agent's login" },
    { ".config/amp", "an agent's login" },
    { ".local/share/amp", "an agent's login" },
    { ".config/goose", "an agent's login" },
    { ".cursor", "an agent's login" },
    { ".aider.conf.yml", "model keys" },
    { ".cache/huggingface/token", "Hugging Face tokens" },
    { ".kaggle", "Kaggle tokens" },
    { ".pgpass", "database passwords", true },
    { ".my.cnf", "database passwords", true },
    { ".mylogin.cnf", "database passwords", true },
    { ".s3cfg", "S3 keys", true },
    { ".config/rclone", "storage logins" },
    { ".config/op", "1Password" },
    { ".config/sops", "age keys" },
    { ".config/age", "age keys" },
    { ".password-store", "passwords", true },
    { ".local/share/keyrings", "the keyring" },
    { ".local/share/kwalletd", "the keyring" },
    { ".pki", "certificates" },
    { ".mozilla", "a browser's passwords", true },
    { ".thunderbird", "mail passwords", true },
    { ".config/google-chrome", "a browser's passwords", true },
    { ".config/chromium", "a browser's passwords" },
    { ".config/BraveSoftware", "a browser's passwords" },
    { ".config/microsoft-edge", "a browser's passwords" },
    { ".bitcoin", "a wallet" },
    { ".ethereum", "a wallet" },
    { ".electrum", "a wallet" },
    { ".config/solana", "a wallet" },
    { ".foundry/keystores", "a wallet" },
    { ".config/cove", "Cove's own policy" },
    { "/etc/shadow*", "password hashes" },
    { "/etc/gshadow*", "password hashes" },
    { "/etc/sudoers*", "who may become root" },
    { "/etc/ssh", "the machine's keys" },
    { "/etc/ssl/private", "the machine's keys" },
    { "/etc/pki/tls/private", "the machine's keys" },
    { "/etc/letsencrypt", "the machine's keys" },
    { "/etc/krb5.keytab", "the machine's keys" },
    { "/etc/wireguard", "network keys" },
    { "/etc/openvpn", "network keys" },
    { "/etc/NetworkManager", "network passwords" },
    { "/etc/wpa_supplicant", "network passwords" },
    { "/etc/apt/auth.conf*", "package server passwords" },
    { "/etc/docker", "registry logins" },
    { "/etc/kubernetes", "Kubernetes logins" },
    { "/etc/rancher", "Kubernetes logins" },
    { "/etc/cove", "Cove's own policy" },
};

#define ADVICE "cd into a project directory, or make one: mkdir ~/work && cd ~/work"

static bool has_home(const struct host *host)
{
    return strcmp(host->home, "/") != 0;
}

/* Where `path` is as seen from this credential. */
static enum glob_place compare(const struct host *host, const struct credential *credential, const char *path)
{
    if (credential->place[0] == '/') /* NOLINT(clang-analyzer-core.NullDereference): no row is empty */
        return glob_compare(credential->place, path);
    if (!has_home(host))
        return GLOB_NO;
    if (!path_within(path, host->home))
        return path_within(host->home, path) ? GLOB_ABOVE : GLOB_NO;
    return glob_compare(credential->place, path + strlen(host->home));
}

const char *credentials_around(const struct host *host, const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(credentials); i++) {
        enum glob_place where = compare(host, &credentials[i], path);

        if (where == GLOB_YES || where == GLOB_BELOW)
            return credentials[i].place;
    }
    return NULL;
}

/* Whether something that matches `pattern` exists below the directory `fd`.  A pattern of the
 * table has its star in the last component only. */
static bool exists_below(int fd, const char *pattern)
{
    const char *last = strrchr(pattern, '/'); /* NOLINT(clang-analyzer-core.NonNullParamChecker) */
    struct stat found;

    last = last ? last + 1 : pattern;
    if (!strpbrk(last, "*?["))
        return fstatat(fd, pattern, &found, AT_SYMLINK_NOFOLLOW) == 0;

    autofree char *parent =
        last == pattern ? text_copy(".") : text_format("%.*s", (int)(last - pattern - 1), pattern);
    int dir = openat(fd, parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclosedir DIR *entries = dir < 0 ? NULL : fdopendir(dir);

    if (dir >= 0 && !entries)
        close(dir);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (glob_match(last, entry->d_name))
            return true;
    return false;
}

/* The part of the credential's place that lies below `path`, which is above it. */
static const char *below(const struct host *host, const struct credential *credential, const char *path)
{
    const char *at = credential->place;
    const char *from = path;

    if (at[0] != '/')
        from += strlen(host->home);
    while (*at == '/')
        at++;
    for (from += strspn(from, "/"); *from; from += strspn(from, "/")) { /* one component of each */
        from += strcspn(from, "/");
        at += strcspn(at, "/");
        at += strspn(at, "/");
    }
    return at;
}

/* The credential that the directory encloses, or that makes it look like somebody's home. */
static const struct credential *find_inside(const struct host *host, const struct place *place)
{
    for (size_t i = 0; i < ARRAY_LEN(credentials); i++) {
        const struct credential *credential = &credentials[i];

        if (credential->anywhere && exists_below(place->fd, credential->place))
            return credential;
        if (compare(host, credential, place->path) == GLOB_ABOVE &&
            (credential->place[0] == '/' || path_within(place->path, host->home)) &&
            exists_below(place->fd, below(host, credential, place->path)))
            return credential;
    }
    return NULL;
}

static const char *find_system(const char *path, bool workspace)
{
    for (size_t i = 0; i < ARRAY_LEN(system_places); i++) {
        enum extent extent = workspace ? system_places[i].workspace : system_places[i].grant;
        enum glob_place where = glob_compare(system_places[i].place, path);

        if (where == GLOB_YES || (where == GLOB_BELOW && extent != ITSELF))
            return extent == FREE ? NULL : system_places[i].what;
    }
    return NULL;
}

/* Homes and our own directories: what they are, or NULL. */
static const char *find_own(const struct host *host, const char *path)
{
    if (has_home(host) && strcmp(path, host->home) == 0)
        return "a home directory";
    if (has_home(host) && path_within(host->home, path))
        return "where your home directory is";
    if (path_within(path, host->state))
        return "where Cove keeps the state of sandboxes";
    if (path_within(host->state, path))
        return "a directory that holds the state of Cove's sandboxes";
    return NULL;
}

int credentials_check_workspace(const struct host *host, const struct place *place, struct error *err)
{
    const char *what = find_system(place->path, true);

    if (!what)
        what = find_own(host, place->path);
    if (what) {
        error_set(err, ERROR_REFUSED, "%.200s cannot be a workspace: it is %s", place->path, what);
        return error_hint(err, ADVICE);
    }

    const char *around = credentials_around(host, place->path);
    if (around) {
        error_set(err, ERROR_REFUSED, "%.200s cannot be a workspace: it lies where credentials are (%s)",
                  place->path, around);
        return error_hint(err, ADVICE);
    }

    const struct credential *inside = find_inside(host, place);
    if (inside) {
        error_set(err, ERROR_REFUSED,
                  "%.200s cannot be a workspace: it holds %s (%s), which would be visible inside", place->path,
                  inside->gives, inside->place);
        return error_hint(err, ADVICE);
    }
    return 0;
}

int credentials_check_grant(const struct host *host, const struct place *place, struct error *err)
{
    bool directory = S_ISDIR(place->stat.st_mode);
    const char *what = find_system(place->path, false);

    if (!what)
        what = find_own(host, place->path);
    if (what)
        return error_set(err, ERROR_REFUSED,
                         "%.200s cannot be granted: it is %s; grant only the files of yours that are needed",
                         place->path, what);
    if (!directory)
        return 0;

    const char *around = credentials_around(host, place->path);
    if (around)
        return error_set(
            err, ERROR_REFUSED,
            "%.200s cannot be granted: credentials are kept there (%s); grant the one file that is needed",
            place->path, around);

    const struct credential *inside = find_inside(host, place);
    if (inside)
        return error_set(err, ERROR_REFUSED,
                         "%.200s cannot be granted: it holds %s (%s); grant the part of it that is needed",
                         place->path, inside->gives, inside->place);
    return 0;
}
