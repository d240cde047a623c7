/* A new kind of file is a row here and a case in tests/unit/changes/classify_test.c.  All rows of
 * class A stand before those of class B, so that the stronger class wins.  Rows of class NO exempt.
 *
 * A row is of class A if a tool acts on the file although nobody asked for that: by entering the
 * directory, opening the editor, starting the agent, asking git for the status.  If somebody has to
 * build, test, commit or start something, it is of class B.  Whoever doubts takes A for what
 * seldom changes, and B for what changes every day: a question that comes daily is not read. */

#include "changes/watchlist.h"

#define A CLASSIFY_AUTORUN
#define B CLASSIFY_BUILD
#define NO CLASSIFY_ORDINARY

/* --- which keys of a file run nothing -------------------------------------------------------- */

static const char gitmodules[] = "*.branch *.shallow *.ignore *.fetchrecursesubmodules";

/* Everything else names a program, a server, a directory or a file with more of it. */
static const char npmrc[] =
    "access audit audit-level auto-install-peers color commit-hooks description dedupe-peer-dependents "
    "depth engine-strict fund git-tag-version init-author-* init-license init-version init.author.* "
    "init.license init.version legacy-peer-deps link-workspace-packages lockfile lockfile-version "
    "loglevel long maxsockets message optional package-lock prefer-frozen-lockfile prefer-offline "
    "prefer-workspace-packages production progress provenance resolution-mode save save-bundle save-dev "
    "save-exact save-optional save-peer save-prefix save-prod save-workspace-protocol shamefully-hoist "
    "sign-git-tag strict-peer-dependencies strict-peer-deps tag tag-version-prefix timing unicode "
    "update-notifier workspaces-update";

static const char package_json[] =
    "name version description keywords homepage bugs license licenses author contributors maintainers "
    "funding repository files main module browser type types typings exports imports man unpkg jsdelivr "
    "sideEffects typesVersions private engines os cpu libc dependencies devDependencies peerDependencies "
    "peerDependenciesMeta optionalDependencies bundleDependencies bundledDependencies resolutions "
    "overrides browserslist $schema";

static const char composer_json[] =
    "name description version type keywords homepage readme time license authors support funding require "
    "require-dev conflict replace provide suggest minimum-stability prefer-stable abandoned archive "
    "_comment $schema";

static const char pyproject[] =
    "!project.scripts* !project.gui-scripts* !project.entry-points* !project.dynamic project.* "
    "dependency-groups.* tool.black.* tool.isort.* tool.ruff.* tool.codespell.* tool.coverage.report.* "
    "tool.towncrier.* tool.typos.* tool.poetry.name tool.poetry.version tool.poetry.description "
    "tool.poetry.license tool.poetry.authors tool.poetry.maintainers tool.poetry.readme "
    "tool.poetry.homepage tool.poetry.repository tool.poetry.documentation tool.poetry.keywords "
    "tool.poetry.classifiers tool.poetry.urls.* tool.poetry.dependencies.* tool.poetry.dev-dependencies.* "
    "tool.poetry.group.*.dependencies.* tool.poetry.extras.* tool.setuptools.package-data.* "
    "tool.setuptools.exclude-package-data.*";

static const char setup_cfg[] =
    "metadata.* options.install_requires options.python_requires options.zip_safe "
    "options.include_package_data options.packages options.py_modules options.extras_require.* "
    "options.package_data.* options.exclude_package_data.* options.packages.find.* bdist_wheel.* "
    "!flake8:* !flake8.*plugin* flake8.* pycodestyle.* pydocstyle.* pep8.* isort.* codespell.* "
    "coverage:report.*";

static const char cargo_toml[] =
    "!package.build !package.links !package.metadata* package.* workspace.package.* "
    "workspace.dependencies.* workspace.members workspace.exclude workspace.resolver workspace.lints.* "
    "dependencies.* dev-dependencies.* build-dependencies.* target.*.dependencies.* "
    "target.*.dev-dependencies.* target.*.build-dependencies.* features.* lints.* profile.*.opt-level "
    "profile.*.debug profile.*.lto profile.*.strip profile.*.codegen-units profile.*.panic badges.* "
    "lib.name lib.crate-type lib.doctest lib.test lib.bench bin.name bin.required-features test.name "
    "test.required-features bench.name bench.harness bench.required-features example.name "
    "example.required-features cargo-features";

static const char desktop_entry[] =
    "!*.exec* !*.tryexec* !*.url* !*.path* !*.type !*.dbusactivatable !*.implements *";
static const char gradle_properties[] = "!org.gradle.* !systemprop.* !kotlin.*jvm* *";
static const char mise_toml[] = "!tools.*.* tools.* min_version";
static const char rust_toolchain[] =
    "toolchain.channel toolchain.components toolchain.targets toolchain.profile stable* beta* nightly* [0-9]*";

/* Lines with one of these in them run something. */
static const char mise_words[] = "path: ref: prefix: {{ { exec(";
static const char odd_version[] = "/ \\ : {{";
static const char go_source[] = "//go:generate #cgo";
static const char go_mod[] = "toolchain => ^tool";
static const char pip_options[] = "^-";
static const char c_plugins[] = "\"plugins\" \"extends\" \"name\" \"transform\"";

#define BY_GIT "git reads it at every command, and it can name programs to run"
#define BY_AGENT "a coding agent takes instructions or settings from it"
#define BY_EDITOR "an editor reads it when the directory is opened"
#define BY_SHELL "a shell or session runs it when it starts"
#define BY_PYTHON "python runs it whenever it starts"
#define BY_VENV "it stands in for a program of the host"
#define BY_PACKAGES "a package manager takes its settings from it"
#define BY_ENTERING "it is run when you enter the directory"
#define BY_STARTING "a program runs it when it is started here"
#define BY_VIEWING "a file manager acts on it when the directory is shown"
#define BY_VCS "a version control system reads it at every command"
#define BY_BUILD "it runs when you build"
#define BY_TEST "it runs when you test"
#define BY_LINT "it runs when the code is checked or formatted"
#define BY_COMMIT "it runs when you commit"
#define BY_CI "it runs in CI"
#define BY_INSTALL "it runs when the package is built or installed"
#define BY_CONTAINER "it runs when a container is built or started"

/* clang-format off */
const struct watch_row watchlist[] = {
    /* What git writes for every commit, and only data.  (Not the index, refs and HEAD.) */
    { ".git/objects/[0-9a-f][0-9a-f]/[0-9a-f]*", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".git/objects/pack/pack-[0-9a-f]*.[pirbm][adeit]*", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".git/logs/", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".git/commit_editmsg", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".git/orig_head", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".git/fetch_head", NO, PART_PLAIN, KEYS_NONE, "" },

    /* Examples, which nothing reads. */
    { ".env.example", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".env.sample", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".env.template", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".env.dist", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".envrc.example", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".envrc.sample", NO, PART_PLAIN, KEYS_NONE, "" },
    { ".git/hooks/*.sample", NO, PART_WHOLE, KEYS_NONE, "" },

    /* git.  The last row takes all that is not listed; the others have a better reason. */
    { ".git", A, PART_WHOLE, KEYS_NONE, "it tells git where the repository is" },
    { ".git/hooks/", A, PART_WHOLE, KEYS_NONE, "git runs it" },
    { ".git/config", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { ".git/config.worktree", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { ".git/info/attributes", A, PART_WHOLE, KEYS_NONE, "it tells git which programs to run on files" },
    { ".git/info/", A, PART_WHOLE, KEYS_NONE, "it tells git what to leave out" },
    { ".git/modules/", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { ".git/worktrees/", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { ".git/objects/info/", A, PART_WHOLE, KEYS_NONE, "it tells git where to look for objects" },
    { ".git/commondir", A, PART_WHOLE, KEYS_NONE, "it tells git where the repository is" },
    { ".git/gitdir", A, PART_WHOLE, KEYS_NONE, "it tells git where the repository is" },
    { ".git/rebase-merge/", A, PART_WHOLE, KEYS_NONE, "git runs it when a rebase goes on" },
    { ".git/rebase-apply/", A, PART_WHOLE, KEYS_NONE, "git runs it when a rebase goes on" },
    { ".git/", A, PART_WHOLE, KEYS_NONE, "git trusts it" },
    { "*.git/hooks/", A, PART_WHOLE, KEYS_NONE, "git runs it" },
    { "*.git/config", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { "*.git/info/", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { ".gitmodules", A, PART_GITCONFIG, KEYS_GITMODULES, "git takes submodules and how to update them from it" },
    { ".gitattributes", A, PART_ATTRIBUTES, KEYS_NONE, "it tells git which programs to run on files" },
    { ".gitconfig", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { ".lfsconfig", A, PART_WHOLE, KEYS_NONE, "git lfs takes its settings from it" },
    { ".config/git/", A, PART_WHOLE, KEYS_NONE, BY_GIT },
    { ".githooks/", A, PART_WHOLE, KEYS_NONE, "git runs it where core.hooksPath says so" },
    { ".husky/", A, PART_WHOLE, KEYS_NONE, "git runs it where husky is set up" },
    { ".hg/", A, PART_WHOLE, KEYS_NONE, BY_VCS },
    { ".hgrc", A, PART_WHOLE, KEYS_NONE, BY_VCS },
    { ".jj/", A, PART_WHOLE, KEYS_NONE, BY_VCS },
    { ".sl/", A, PART_WHOLE, KEYS_NONE, BY_VCS },
    { ".svn/", A, PART_WHOLE, KEYS_NONE, BY_VCS },
    { ".bzr/", A, PART_WHOLE, KEYS_NONE, BY_VCS },
    { "_darcs/prefs/", A, PART_WHOLE, KEYS_NONE, BY_VCS },
    { ".arcconfig", A, PART_WHOLE, KEYS_NONE, BY_VCS },

    /* Cove's own.  It can only narrow, but what narrows can be taken out. */
    { "cove.yaml", A, PART_WHOLE, KEYS_NONE, "Cove reads it before each run" },

    /* Entering a directory. */
    { ".envrc", A, PART_WHOLE, KEYS_NONE, "direnv runs it when you enter the directory" },
    { ".envrc.*", A, PART_WHOLE, KEYS_NONE, "direnv runs it when you enter the directory" },
    { ".direnv/", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".env", A, PART_WHOLE, KEYS_NONE, "many programs take their environment from it without being asked" },
    { ".autoenv", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".autoenv.*", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".shadowenv.d/", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".rvmrc", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { "mise.toml", A, PART_TOML, KEYS_MISE_TOML, BY_ENTERING },
    { "mise.toml", A, PART_WORDS, KEYS_MISE_WORDS, BY_ENTERING },
    { ".mise.toml", A, PART_TOML, KEYS_MISE_TOML, BY_ENTERING },
    { ".mise.toml", A, PART_WORDS, KEYS_MISE_WORDS, BY_ENTERING },
    { "mise.*.toml", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".mise.*.toml", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".mise/", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { "mise/config.toml", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".config/mise/", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".rtx.toml", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".tool-versions", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { ".asdfrc", A, PART_WHOLE, KEYS_NONE, "a version manager takes its settings from it" },
    { ".python-version", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { ".ruby-version", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { ".node-version", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { ".nvmrc", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { ".java-version", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { ".perl-version", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { ".go-version", A, PART_WORDS, KEYS_ODD_VERSION, "a version manager starts what it names" },
    { "rust-toolchain", A, PART_TOML, KEYS_RUST_TOOLCHAIN, "rustup starts the compiler that it names" },
    { "rust-toolchain.toml", A, PART_TOML, KEYS_RUST_TOOLCHAIN, "rustup starts the compiler that it names" },
    { "flake.nix", A, PART_WHOLE, KEYS_NONE, "direnv and nix run it when you enter the directory" },
    { "shell.nix", A, PART_WHOLE, KEYS_NONE, "direnv and nix run it when you enter the directory" },
    { "devenv.nix", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { "devenv.yaml", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { ".devenv*", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },
    { "devbox.json", A, PART_WHOLE, KEYS_NONE, BY_ENTERING },

    /* Editors. */
    { ".vscode/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "*.code-workspace", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".vs/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".idea/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".run/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "*.iml", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "*.ipr", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "*.iws", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".fleet/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".zed/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".nova/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".atom/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".helix/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "*.sublime-project", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "*.sublime-workspace", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".project", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".cproject", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".settings/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".externaltoolbuilders/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".vim*", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".vim/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "_vimrc", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".gvimrc", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".lvimrc", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".local.vim", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".nvim*", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".nvim/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".config/nvim/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".exrc", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { "_exrc", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".nexrc", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".kakrc", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".dir-locals.el", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".dir-locals-2.el", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".emacs", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".emacs.d/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".projectile", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".ycm_extra_conf.py", A, PART_WHOLE, KEYS_NONE, "an editor runs it when a file is opened" },
    { ".clangd", A, PART_WHOLE, KEYS_NONE, "clangd starts the compiler that it names" },
    { ".ccls", A, PART_WHOLE, KEYS_NONE, "an editor's compiler takes its arguments from it" },
    { ".luarc.json", A, PART_WHOLE, KEYS_NONE, "an editor loads plugins that it names" },
    { ".luarc.jsonc", A, PART_WHOLE, KEYS_NONE, "an editor loads plugins that it names" },
    { ".devcontainer/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".devcontainer.json", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".gitpod.yml", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".gitpod.dockerfile", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".codesandbox/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".replit", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },
    { ".idx/", A, PART_WHOLE, KEYS_NONE, BY_EDITOR },

    /* Coding agents: settings, hooks, servers they start, and the rules they follow. */
    { "agents.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "agents.*.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "agent.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".agents/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".agent/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".agents.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "claude.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "claude.*.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".claude/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".claude.json", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".claude-plugin/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".mcp.json", A, PART_WHOLE, KEYS_NONE, "a coding agent starts the servers that it names" },
    { "mcp.json", A, PART_WHOLE, KEYS_NONE, "a coding agent starts the servers that it names" },
    { ".mcp/", A, PART_WHOLE, KEYS_NONE, "a coding agent starts the servers that it names" },
    { ".cursor/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".cursor*", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".github/copilot-instructions.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".github/instructions/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".github/prompts/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".github/chatmodes/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".github/agents/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".github/skills/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".github/hooks/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".copilot/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "gemini.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".gemini/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".geminiignore", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "qwen.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".qwen/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".codex/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".aider*", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".aider*/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".windsurf*", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".windsurf/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".continue/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".continuerc.json", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".continuerules", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".roo/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".roomodes", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".roorules*", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".rooignore", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".clinerules*", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".clinerules/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".clineignore", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".cline/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "opencode.json", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "opencode.jsonc", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".opencode/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".amazonq/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".kiro/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".kilocode/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".kilocodemodes", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".augment/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".augment-guidelines", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".junie/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".trae/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".goose/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".goosehints", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "crush.json", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".crush.json", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".crush/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "crush.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".factory/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".amp/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".openhands/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".openhands_instructions", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".sourcegraph/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".tabnine/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".serena/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".ruler/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".pi/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".devin/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".rules", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { "warp.md", A, PART_WHOLE, KEYS_NONE, BY_AGENT },
    { ".warp/", A, PART_WHOLE, KEYS_NONE, BY_AGENT },

    /* Python's start. */
    { ".venv/", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "venv/bin/", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "venv/scripts/", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "venv/lib*/", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "env/bin/", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "env/scripts/", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "bin/activate*", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "scripts/activate*", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "pyvenv.cfg", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "site-packages/*.pth", A, PART_WHOLE, KEYS_NONE, BY_PYTHON },
    { "dist-packages/*.pth", A, PART_WHOLE, KEYS_NONE, BY_PYTHON },
    { "*.pth", A, PART_PTH, KEYS_NONE, BY_PYTHON },
    { "sitecustomize.py", A, PART_WHOLE, KEYS_NONE, BY_PYTHON },
    { "usercustomize.py", A, PART_WHOLE, KEYS_NONE, BY_PYTHON },
    { "sitecustomize/__init__.py", A, PART_WHOLE, KEYS_NONE, BY_PYTHON },
    { "usercustomize/__init__.py", A, PART_WHOLE, KEYS_NONE, BY_PYTHON },
    { "python*._pth", A, PART_WHOLE, KEYS_NONE, BY_PYTHON },

    /* Package managers. */
    { ".npmrc", A, PART_PAIRS, KEYS_NPMRC, BY_PACKAGES },
    { ".yarnrc", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".yarnrc.*", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".yarn/releases/", A, PART_WHOLE, KEYS_NONE, "yarn runs it at every command" },
    { ".yarn/plugins/", A, PART_WHOLE, KEYS_NONE, "yarn runs it at every command" },
    { ".pnpmfile.cjs", A, PART_WHOLE, KEYS_NONE, "pnpm runs it at every install" },
    { ".pnpmfile.mjs", A, PART_WHOLE, KEYS_NONE, "pnpm runs it at every install" },
    { "pnpmfile.js", A, PART_WHOLE, KEYS_NONE, "pnpm runs it at every install" },
    { "bunfig.toml", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".bunfig.toml", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { "pip.conf", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { "pip.ini", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".pip/", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".pypirc", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".pydistutils.cfg", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { "uv.toml", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { "poetry.toml", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".condarc", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".cargo/", A, PART_WHOLE, KEYS_NONE, "cargo starts the programs that it names" },
    { ".bundle/", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".gemrc", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".mvn/", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".m2/", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { "gradle.properties", A, PART_PROPERTIES, KEYS_GRADLE_PROPERTIES, "gradle starts java with what it says" },
    { "init.gradle", A, PART_WHOLE, KEYS_NONE, "gradle runs it at every start" },
    { "init.gradle.kts", A, PART_WHOLE, KEYS_NONE, "gradle runs it at every start" },
    { "init.d/*.gradle", A, PART_WHOLE, KEYS_NONE, "gradle runs it at every start" },
    { "init.d/*.gradle.kts", A, PART_WHOLE, KEYS_NONE, "gradle runs it at every start" },
    { ".sbtopts", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".jvmopts", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".sbt/", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { "nuget.config", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".nuget/", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".luarocks/", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".cabal/config", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },
    { ".terraformrc", A, PART_WHOLE, KEYS_NONE, BY_PACKAGES },

    /* Shells and sessions. */
    { ".bashrc", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".bash_*", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".profile", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".zshrc", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".zshenv", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".zprofile", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".zlogin", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".zlogout", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".kshrc", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".cshrc", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".tcshrc", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".login", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".logout", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { "config.fish", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".config/fish/", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".inputrc", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".xinitrc", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".xprofile", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".xsession", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".pam_environment", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".config/environment.d/", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".config/systemd/", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".config/autostart/", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".local/share/applications/", A, PART_WHOLE, KEYS_NONE, BY_SHELL },
    { ".local/bin/", A, PART_WHOLE, KEYS_NONE, BY_VENV },

    /* Settings that a tool reads in the current directory or the home directory. */
    { ".ripgreprc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".curlrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".wgetrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".netrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { "_netrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".ackrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".lessfilter", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".lesskey", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".gdbinit", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".lldbinit", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".pdbrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".pdbrc.py", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".perldb", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".byebugrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".pryrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".irbrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".rprofile", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".renviron", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".rdata", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".ghci", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".ocamlinit", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".iex.exs", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".octaverc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".guile", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".sbclrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".tmux.conf", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".screenrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".psqlrc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".sqliterc", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".my.cnf", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".pythonrc*", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".ipython/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".jupyter/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { "jupyter_*config.py", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { "ipython_config.py", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".julia/config/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".ssh/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".gnupg/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".aws/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".kube/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },
    { ".docker/", A, PART_WHOLE, KEYS_NONE, BY_STARTING },

    /* Programs that Windows finds in the current directory before those of the system. */
    { "git.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "git.com", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "git.cmd", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "git.bat", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "node.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "npm.cmd", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "npx.cmd", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "python.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "rg.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "ssh.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "where.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "cmd.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },
    { "powershell.exe", A, PART_WHOLE, KEYS_NONE, BY_VENV },

    /* File managers. */
    { "desktop.ini", A, PART_WHOLE, KEYS_NONE, BY_VIEWING },
    { "autorun.inf", A, PART_WHOLE, KEYS_NONE, BY_VIEWING },
    { ".directory", A, PART_WHOLE, KEYS_NONE, BY_VIEWING },
    { "*.lnk", A, PART_WHOLE, KEYS_NONE, BY_VIEWING },
    { "*.scf", A, PART_WHOLE, KEYS_NONE, BY_VIEWING },
    { "*.library-ms", A, PART_WHOLE, KEYS_NONE, BY_VIEWING },
    { "*.searchconnector-ms", A, PART_WHOLE, KEYS_NONE, BY_VIEWING },

    /* ---- class B ---- */

    { "cmakelists.txt", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "meson_options.txt", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "requirements*.txt", B, PART_WORDS, KEYS_PIP_OPTIONS, "pip takes options from it" },
    { "constraints*.txt", B, PART_WORDS, KEYS_PIP_OPTIONS, "pip takes options from it" },

    /* Text for people, whatever else its name says. */
    { "*.md", NO, PART_PLAIN, KEYS_NONE, "" },
    { "*.rst", NO, PART_PLAIN, KEYS_NONE, "" },
    { "*.adoc", NO, PART_PLAIN, KEYS_NONE, "" },
    { "*.txt", NO, PART_PLAIN, KEYS_NONE, "" },
    { "*.html", NO, PART_PLAIN, KEYS_NONE, "" },
    { "*.png", NO, PART_PLAIN, KEYS_NONE, "" },
    { "*.svg", NO, PART_PLAIN, KEYS_NONE, "" },

    /* make and its relatives. */
    { "makefile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "makefile.*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "makefile-*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "gnumakefile*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "bsdmakefile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "makevars*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "kbuild", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.mk", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.mk.in", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.mak", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.make", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "justfile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".justfile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.just", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "taskfile.y*ml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "taskfile.*.y*ml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.cmake", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.cmake.in", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "cmakepresets.json", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "cmakeuserpresets.json", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "meson.build", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "meson.options", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.ninja", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "configure", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "configure.ac", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "configure.in", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.m4", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.am", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "wscript", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "waf", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "sconstruct", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "sconscript", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "site_scons/", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "jamfile*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "jamroot*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "premake*.lua", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "xmake.lua", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.pro", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.pri", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.gyp", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.gypi", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.gn", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.gni", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "build", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "build.bazel", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "workspace", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "workspace.bazel", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "workspace.bzlmod", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "module.bazel", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.bzl", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".bazelrc", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".bazeliskrc", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".bazelversion", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "tools/bazel", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".buckconfig", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "earthfile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "tiltfile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "snakefile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.smk", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.nix", B, PART_WHOLE, KEYS_NONE, BY_BUILD },

    /* Languages. */
    { "package.json", B, PART_JSON, KEYS_PACKAGE_JSON, "npm runs its scripts" },
    { "composer.json", B, PART_JSON, KEYS_COMPOSER_JSON, "composer runs its scripts" },
    { "deno.json", B, PART_WHOLE, KEYS_NONE, "deno runs its tasks" },
    { "deno.jsonc", B, PART_WHOLE, KEYS_NONE, "deno runs its tasks" },
    { "pnpm-workspace.yaml", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { ".pnp.*", B, PART_WHOLE, KEYS_NONE, "node runs it before everything else" },
    { "node_modules/", B, PART_WHOLE, KEYS_NONE, "node runs it instead of what was installed" },
    { "lerna.json", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "nx.json", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "turbo.json", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "tsconfig*.json", B, PART_WORDS, KEYS_C_PLUGINS, "the compiler loads plugins that it names" },
    { "jsconfig.json", B, PART_WORDS, KEYS_C_PLUGINS, "the compiler loads plugins that it names" },
    { "*.config.js", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.config.cjs", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.config.mjs", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.config.ts", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.config.cts", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.config.mts", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.conf.js", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".*rc.js", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".*rc.cjs", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".*rc.mjs", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".*rc.ts", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".eslintrc*", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".babelrc*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".postcssrc*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".stylelintrc*", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".prettierrc*", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".mocharc*", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { ".nycrc*", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { ".swcrc", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "vitest.workspace.*", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { "webpack*.js", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "webpack*.ts", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "gulpfile.*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "gruntfile.*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "jakefile*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "setup.py", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "setup.cfg", B, PART_INI, KEYS_SETUP_CFG, BY_INSTALL },
    { "pyproject.toml", B, PART_TOML, KEYS_PYPROJECT, BY_INSTALL },
    { "conftest.py", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { "pytest.ini", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { "tox.ini", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { "noxfile.py", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { ".coveragerc", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { ".pylintrc", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { "pylintrc", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".flake8", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { "mypy.ini", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".mypy.ini", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { "tasks.py", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "fabfile.py", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "dodo.py", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "hatch_build.py", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "hatch.toml", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.pyc", B, PART_WHOLE, KEYS_NONE, "python runs it instead of its source" },
    { "*.pyo", B, PART_WHOLE, KEYS_NONE, "python runs it instead of its source" },
    { "build.rs", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "cargo.toml", B, PART_TOML, KEYS_CARGO_TOML, BY_BUILD },
    { "nextest.toml", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { "makefile.toml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.go", B, PART_WORDS, KEYS_GO_SOURCE, "go generate and cgo run what it says" },
    { "go.mod", B, PART_WORDS, KEYS_GO_MOD, "go takes other tools or sources by it" },
    { "go.work", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "magefile.go", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "magefiles/", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".golangci.*", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".goreleaser.*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "gemfile*", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.gemfile", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "rakefile*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.rake", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.gemspec", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "extconf.rb", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "guardfile", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { "thorfile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "capfile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "dangerfile", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "fastfile", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "podfile", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.podspec", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "brewfile", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "vagrantfile", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },
    { ".rubocop.yml", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".rspec", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { ".solargraph.yml", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { "pom.xml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "build.xml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.gradle", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.gradle.kts", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "buildsrc/", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "gradlew", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "gradlew.bat", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "gradle/wrapper/", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "mvnw", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "mvnw.cmd", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.sbt", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "project/build.properties", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "build.sc", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "project.clj", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "deps.edn", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "bb.edn", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "nbproject/", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.xcodeproj/", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.xcworkspace/", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.xcconfig", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "package.swift", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.sln", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.*proj", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.*proj.user", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "directory.build.*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.targets", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.props", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "launchsettings.json", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "dotnet-tools.json", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "makefile.pl", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "build.pl", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "dist.ini", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "cpanfile", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "rebar.config*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "mix.exs", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "setup.hs", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "setup.lhs", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.cabal", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "cabal.project*", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "stack.yaml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "hie.yaml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "dune", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "dune-project", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.opam", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "myocamlbuild.ml", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "shard.yml", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "build.zig", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.nimble", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "config.nims", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { "*.rockspec", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.asd", B, PART_WHOLE, KEYS_NONE, BY_BUILD },
    { ".htaccess", B, PART_WHOLE, KEYS_NONE, "a web server reads it for each request" },
    { ".user.ini", B, PART_WHOLE, KEYS_NONE, "a web server reads it for each request" },

    /* Tests and commits. */
    { ".pre-commit-config.yaml", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".pre-commit-hooks.yaml", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { "lefthook*.y*ml", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".lefthook*", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".lefthook/", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".overcommit.yml", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".lintstagedrc*", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".huskyrc*", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".commitlintrc*", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".gitlint", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".gitreview", B, PART_WHOLE, KEYS_NONE, BY_COMMIT },
    { ".arclint", B, PART_WHOLE, KEYS_NONE, BY_LINT },
    { ".env.*", B, PART_WHOLE, KEYS_NONE, "programs that are started here take their environment from it" },

    /* CI. */
    { ".github/workflows/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".github/actions/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "action.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "action.yaml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".gitea/workflows/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".forgejo/workflows/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".gitlab-ci.y*ml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".gitlab-ci.d/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".gitlab/ci/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "*.gitlab-ci.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "salsa-ci.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "jenkinsfile*", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".circleci/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".travis.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".travis/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "appveyor.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".appveyor.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".appveyor/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "azure-pipelines*.y*ml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".azure-pipelines/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".cirrus.*", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".drone.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".woodpecker*", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".woodpecker/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".buildkite/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".builds/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".build.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".semaphore/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".teamcity/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "bitbucket-pipelines.yml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "cloudbuild.y*ml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".packit.y*ml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".copr/", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { ".readthedocs.y*ml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "netlify.toml", B, PART_WHOLE, KEYS_NONE, BY_CI },
    { "vercel.json", B, PART_WHOLE, KEYS_NONE, BY_CI },

    /* Packages and containers. */
    { "debian/rules", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "debian/tests/", B, PART_WHOLE, KEYS_NONE, BY_TEST },
    { "debian/*preinst", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "debian/*postinst", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "debian/*prerm", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "debian/*postrm", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.spec", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.spec.in", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "pkgbuild", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "apkbuild", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.ebuild", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "snapcraft.yaml", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.service", B, PART_WHOLE, KEYS_NONE, BY_INSTALL },
    { "*.desktop", B, PART_PAIRS, KEYS_DESKTOP_ENTRY, "a desktop starts what it names" },
    { "*.desktop.in", B, PART_PAIRS, KEYS_DESKTOP_ENTRY, "a desktop starts what it names" },
    { "dockerfile", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },
    { "dockerfile.*", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },
    { "*.dockerfile", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },
    { "containerfile*", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },
    { "docker-compose*.y*ml", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },
    { "compose*.y*ml", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },
    { "procfile*", B, PART_WHOLE, KEYS_NONE, BY_CONTAINER },

    /* Whatever can be started at all. */
    { "*.bat", B, PART_WHOLE, KEYS_NONE, "it is a program" },
    { "*.cmd", B, PART_WHOLE, KEYS_NONE, "it is a program" },
    { "*.ps1", B, PART_WHOLE, KEYS_NONE, "it is a program" },
    { "*.exe", B, PART_WHOLE, KEYS_NONE, "it is a program" },
    { "*", B, PART_EXECUTABLE, KEYS_NONE, "it is a program" },

    { .pattern = "" },
};
/* clang-format on */

/* --- what the numbers in a row stand for --- */

runpart_check *watchlist_check(const struct watch_row *row)
{
    static runpart_check *const checks[] = {
        [PART_ATTRIBUTES] = runpart_attributes,
        [PART_EXECUTABLE] = runpart_executable,
        [PART_GITCONFIG] = runpart_gitconfig,
        [PART_INI] = runpart_ini,
        [PART_JSON] = runpart_json,
        [PART_PAIRS] = runpart_pairs,
        [PART_PLAIN] = runpart_plain,
        [PART_PROPERTIES] = runpart_properties,
        [PART_PTH] = runpart_pth,
        [PART_TOML] = runpart_toml,
        [PART_WORDS] = runpart_words,
    };

    return checks[row->part];
}

const char *watchlist_keys(const struct watch_row *row)
{
    static const char *const keys[] = {
        [KEYS_GITMODULES] = gitmodules,
        [KEYS_MISE_TOML] = mise_toml,
        [KEYS_MISE_WORDS] = mise_words,
        [KEYS_ODD_VERSION] = odd_version,
        [KEYS_RUST_TOOLCHAIN] = rust_toolchain,
        [KEYS_NPMRC] = npmrc,
        [KEYS_GRADLE_PROPERTIES] = gradle_properties,
        [KEYS_PIP_OPTIONS] = pip_options,
        [KEYS_PACKAGE_JSON] = package_json,
        [KEYS_COMPOSER_JSON] = composer_json,
        [KEYS_C_PLUGINS] = c_plugins,
        [KEYS_SETUP_CFG] = setup_cfg,
        [KEYS_PYPROJECT] = pyproject,
        [KEYS_CARGO_TOML] = cargo_toml,
        [KEYS_GO_SOURCE] = go_source,
        [KEYS_GO_MOD] = go_mod,
        [KEYS_DESKTOP_ENTRY] = desktop_entry,
    };

    return keys[row->keys];
}
