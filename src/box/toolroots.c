#include "box/toolroots.h"

/* Tools are copy on write where people install packages into them (`npm install -g`, `pip
 * install`, `cargo install`), because an agent does that too, and read-only where a sandbox has no
 * reason to write.  Caches are copy on write, so that what was downloaded before works without a
 * network and what is downloaded inside stays inside.
 *
 * A row shows everything below it except what it hides.  So a directory that mixes tools with
 * logins is not listed itself: ~/.claude holds both, ~/.claude/local only programs; ~/.local/share
 * holds keyrings, chats and mail beside pipx.  Hidden here is what the tools themselves write
 * tokens to. */
#define TOOL .kind = TOOLROOT_TOOL
#define CACHE .kind = TOOLROOT_CACHE
#define CONDA                                                                                                  \
    .hide = { "/.condarc",        "/condarc",          "/condarc.d",      "/pip.conf",                         \
              "/envs/*/pip.conf", "/envs/*/etc/npmrc", "/envs/*/.condarc" }

const struct toolroot toolroots[] = {
    /* the whole machine's */
    { "/nix/store", TREE_RO, TOOL },
    { "/nix/var/nix/profiles", TREE_RO, TOOL },
    { "/home/linuxbrew/.linuxbrew", TREE_RO, TOOL },
    { ".nix-profile", TREE_RO, TOOL },
    { ".local/state/nix/profiles", TREE_RO, TOOL },
    { ".linuxbrew", TREE_RO, TOOL },

    /* programs of the user */
    { ".local/bin", TREE_COW, TOOL },
    { ".local/lib", TREE_COW, TOOL }, /* pip install --user */
    { ".claude/local", TREE_RO, TOOL },
    { ".local/share/claude/versions", TREE_RO, TOOL },
    { ".local/share/cursor-agent/versions", TREE_RO, TOOL },
    { ".opencode/bin", TREE_RO, TOOL },
    { ".local/share/nvim/mason", TREE_RO, TOOL },

    /* several languages */
    { ".asdf", TREE_COW, TOOL,
      .hide = { "/.git/config", "/installs/nodejs/*/etc/npmrc", "/installs/python/*/pip.conf" } },
    { ".local/share/mise", TREE_COW, TOOL,
      .hide = { "/installs/node/*/etc/npmrc", "/installs/python/*/pip.conf" } },
    { ".local/share/rtx", TREE_COW, TOOL,
      .hide = { "/installs/node/*/etc/npmrc", "/installs/python/*/pip.conf" } },
    { ".proto", TREE_COW, TOOL, .hide = { "/tools/node/*/etc/npmrc" } },
    { ".pixi", TREE_COW, TOOL, .hide = { "/config.toml", "/envs/*/etc/npmrc", "/envs/*/pip.conf" } },

    /* JavaScript */
    { ".nvm", TREE_COW, TOOL, .hide = { "/.npmrc", "/.git/config", "/versions/node/*/etc/npmrc" } },
    { ".fnm", TREE_COW, TOOL, .hide = { "/node-versions/*/installation/etc/npmrc" } },
    { ".local/share/fnm", TREE_COW, TOOL, .hide = { "/node-versions/*/installation/etc/npmrc" } },
    { ".volta", TREE_COW, TOOL, .hide = { "/tools/image/node/*/etc/npmrc" } },
    { ".nodenv", TREE_COW, TOOL, .hide = { "/.git/config", "/versions/*/etc/npmrc" } },
    { ".npm-global", TREE_COW, TOOL, .hide = { "/etc/npmrc" } },
    { ".npm-packages", TREE_COW, TOOL, .hide = { "/etc/npmrc" } },
    { ".bun", TREE_COW, TOOL },
    { ".deno", TREE_COW, TOOL },
    { ".yarn", TREE_COW, TOOL },
    { ".config/yarn/global", TREE_COW, TOOL, .hide = { "/.npmrc", "/.yarnrc*" } },
    { ".local/share/pnpm", TREE_COW, TOOL, .hide = { "/rc", "/.npmrc" } },
    { ".npm/_cacache", TREE_COW, CACHE },
    { ".npm/_npx", TREE_COW, CACHE },
    { ".cache/yarn", TREE_COW, CACHE },
    { ".cache/pnpm", TREE_COW, CACHE },
    { ".pnpm-store", TREE_COW, CACHE },
    { ".cache/deno", TREE_COW, CACHE, .hide = { "/location_data", "/origin_data" } },
    { ".cache/node", TREE_COW, CACHE },
    { ".cache/node-gyp", TREE_COW, CACHE },
    { ".cache/electron", TREE_COW, CACHE },
    { ".cache/ms-playwright", TREE_COW, CACHE },
    { ".cache/puppeteer", TREE_COW, CACHE },
    { ".cache/Cypress", TREE_COW, CACHE },

    /* Python */
    { ".pyenv", TREE_COW, TOOL,
      .hide = { "/.git/config", "/versions/*/pip.conf", "/versions/*/envs/*/pip.conf" } },
    { ".local/share/pipx", TREE_COW, TOOL, .hide = { "/venvs/*/pip.conf" } },
    { ".local/share/uv", TREE_COW, TOOL, .hide = { "/credentials" } },
    { ".local/share/virtualenvs", TREE_COW, TOOL, .hide = { "/*/pip.conf" } },
    { ".local/share/pypoetry", TREE_COW, TOOL },
    { ".local/share/hatch", TREE_COW, TOOL },
    { ".virtualenvs", TREE_COW, TOOL, .hide = { "/*/pip.conf" } },
    { ".rye", TREE_COW, TOOL, .hide = { "/credentials", "/config.toml" } },
    { "miniconda3", TREE_COW, TOOL, CONDA },
    { "miniforge3", TREE_COW, TOOL, CONDA },
    { "mambaforge", TREE_COW, TOOL, CONDA },
    { "anaconda3", TREE_COW, TOOL, CONDA },
    { ".conda/envs", TREE_COW, TOOL, .hide = { "/*/pip.conf", "/*/etc/npmrc" } },
    { ".conda/pkgs", TREE_COW, CACHE },
    { ".cache/pip", TREE_COW, CACHE },
    { ".cache/uv", TREE_COW, CACHE },
    { ".cache/pypoetry", TREE_COW, CACHE },
    { ".cache/pdm", TREE_COW, CACHE },
    { ".cache/pre-commit", TREE_COW, CACHE, .hide = { "/*/.git/config" } },

    /* Rust, Go, C and others that compile */
    { ".rustup", TREE_RO, TOOL },
    { ".cargo", TREE_COW, TOOL, .hide = { "/credentials*", "/config" }, .suspect = "config.toml" },
    { "go/bin", TREE_COW, TOOL },
    { "sdk", TREE_RO, TOOL }, /* golang.org/dl */
    { "go/pkg/mod", TREE_COW, CACHE },
    { "go/pkg/sumdb", TREE_COW, CACHE },
    { ".cache/go-build", TREE_COW, CACHE },
    { ".goenv", TREE_COW, TOOL, .hide = { "/.git/config" } },
    { ".ccache", TREE_COW, CACHE, .suspect = "ccache.conf" },
    { ".cache/ccache", TREE_COW, CACHE },
    { ".cache/sccache", TREE_COW, CACHE },
    { ".cache/zig", TREE_COW, CACHE },
    { ".ghcup", TREE_RO, TOOL },
    { ".cabal/bin", TREE_COW, TOOL },
    { ".cabal/packages", TREE_COW, CACHE },
    { ".cabal/store", TREE_COW, CACHE },
    { ".stack", TREE_COW, CACHE, .suspect = "config.yaml" },
    { ".opam", TREE_COW, TOOL },
    { ".elan", TREE_RO, TOOL },
    { ".juliaup", TREE_RO, TOOL },
    { ".julia", TREE_COW, TOOL, .hide = { "/servers", "/logs", "/config" } },
    { ".nimble", TREE_COW, TOOL },
    { ".foundry/bin", TREE_RO, TOOL },
    { ".wasmtime/bin", TREE_RO, TOOL },
    { ".wasmer/bin", TREE_RO, TOOL },

    /* Java and .NET */
    { ".sdkman", TREE_RO, TOOL },
    { ".jenv", TREE_RO, TOOL, .hide = { "/.git/config" } },
    { ".jbang", TREE_COW, TOOL, .hide = { "/jbang.properties", "/trusted-sources.json" } },
    { ".local/share/coursier", TREE_COW, TOOL },
    { ".m2/repository", TREE_COW, CACHE },
    { ".m2/wrapper", TREE_COW, CACHE },
    { ".gradle/caches", TREE_COW, CACHE },
    { ".gradle/wrapper", TREE_COW, CACHE },
    { ".ivy2/cache", TREE_COW, CACHE },
    { ".ivy2/local", TREE_COW, CACHE },
    { ".sbt/boot", TREE_COW, CACHE },
    { ".cache/coursier", TREE_COW, CACHE },
    { "Android/Sdk", TREE_RO, TOOL },
    { ".dotnet", TREE_COW, TOOL, .hide = { "/corefx/cryptography" } },
    { ".nuget/packages", TREE_COW, CACHE },

    /* Ruby, PHP, Dart, Elixir */
    { ".rbenv", TREE_COW, TOOL, .hide = { "/.git/config" } },
    { ".rvm", TREE_COW, TOOL },
    { ".gem/ruby", TREE_COW, TOOL },
    { ".local/share/gem", TREE_COW, TOOL, .hide = { "/credentials" } },
    { ".bundle/cache", TREE_COW, CACHE },
    { ".composer/vendor", TREE_COW, TOOL },
    { ".config/composer/vendor", TREE_COW, TOOL },
    { ".cache/composer", TREE_COW, CACHE },
    { ".composer/cache", TREE_COW, CACHE },
    { ".pub-cache", TREE_COW, CACHE, .hide = { "/credentials.json" } },
    { ".mix", TREE_COW, TOOL },
    { ".hex/packages", TREE_COW, CACHE },
    { ".cache/rebar3", TREE_COW, CACHE },
};

const size_t toolroots_len = ARRAY_LEN(toolroots);
