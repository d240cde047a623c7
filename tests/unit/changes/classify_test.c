#include "changes/classify.h"

#include "base/array.h"
#include "changes/plainname.h"
#include "changes/watchlist.h"
#include "tests/support/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define A CLASSIFY_AUTORUN
#define B CLASSIFY_BUILD
#define NO CLASSIFY_ORDINARY

enum { FILE_MODE = S_IFREG | 0644, PROGRAM_MODE = S_IFREG | 0755, LINK_MODE = S_IFLNK | 0777 };

static struct classify_side side(mode_t mode, const char *bytes)
{
    return (struct classify_side){ .mode = bytes ? mode : 0, .bytes = bytes, .len = bytes ? strlen(bytes) : 0 };
}

static struct classify_verdict judge(const char *path, struct classify_side old, struct classify_side new)
{
    struct classify_input in = { .path = path, .path_len = strlen(path), .old = old, .new = new };
    struct classify_verdict verdict;

    classify(&in, &verdict);
    return verdict;
}

static struct classify_verdict judge_text(const char *path, const char *old, const char *new)
{
    return judge(path, side(FILE_MODE, old), side(FILE_MODE, new));
}

static void expect(const char *path, struct classify_verdict verdict, enum classify_class want)
{
    if (verdict.class != want)
        fail_msg("%s is %s (%s; %s), not %s", path, classify_name(verdict.class), verdict.reason, verdict.part,
                 classify_name(want));
    assert_int_equal(*verdict.reason == '\0', want == NO);
}

/* A new file with a text that says nothing. */
static void the_path_of_a_new_file_decides(void **state)
{
    static const struct {
        const char *path;
        enum classify_class class;
    } cases[] = {
        /* git */
        { ".git", A },
        { ".git/config", A },
        { ".git/config.worktree", A },
        { ".git/hooks/pre-commit", A },
        { ".git/hooks/deeper/script", A },
        { ".git/hooks/pre-commit.sample", NO },
        { ".git/info/attributes", A },
        { ".git/info/exclude", A },
        { ".git/modules/sub/config", A },
        { ".git/modules/sub/hooks/update", A },
        { ".git/worktrees/w/commondir", A },
        { ".git/objects/info/alternates", A },
        { ".git/objects/4b/825dc642cb6eb9a060e54bf8d69288fbee4904", NO },
        { ".git/objects/pack/pack-01ab.pack", NO },
        { ".git/objects/pack/pack-01ab.idx", NO },
        { ".git/objects/pack/pack-01ab.bitmap", NO },
        { ".git/objects/pack/evil", A },
        { ".git/commondir", A },
        { ".git/index", A },
        { ".git/HEAD", A },
        { ".git/refs/heads/main", A },
        { ".git/rebase-merge/git-rebase-todo", A },
        { ".git/logs/HEAD", NO },
        { ".git/COMMIT_EDITMSG", NO },
        { "sub/.git/hooks/x", A },
        { "a/b/c/d/e/f/.git/config", A },
        { "fixtures/server.git/config", A },
        { "fixtures/server.git/hooks/post-update", A },
        { ".gitconfig", A },
        { ".lfsconfig", A },
        { ".githooks/pre-push", A },
        { ".husky/pre-commit", A },
        { ".hg/hgrc", A },
        { ".jj/repo/config.toml", A },
        { ".gitignore", NO },
        { ".gitkeep", NO },
        { ".mailmap", NO },
        { "src/git/config", NO },
        { "git/hooks.c", NO },
        { "src/.github", NO },
        { "gitconfig.c", NO },
        { "docs/git/HEAD", NO },
        { "cove.yaml", A },
        { "examples/cove.yml", NO },

        /* other spellings of the same name */
        { ".GIT/hooks/x", A },
        { ".Git/Config", A },
        { ".git./config", A },
        { ".git /config", A },
        { ".git. . /config", A },
        { ".git::$INDEX_ALLOCATION/config", A },
        { ".git:stream", A },
        { ".git/config::$DATA", A },
        { "git~1/config", A },
        { "GIT~1/hooks/x", A },
        { "git~12/config", A },
        { "gitmod~1", A },
        { "vscode~1/settings.json", A },
        { ".vscode/settin~1.jso", A },
        { "mcp~1.jso", A },
        { "envrc~1", A },
        { "git~x/config", NO },
        { "gitlab~1/config", NO },
        { "notes~1.md", NO },
        { ".g\xe2\x80\x8cit/config", A },     /* U+200C */
        { ".git\xef\xbb\xbf/config", A },     /* U+FEFF */
        { "\xe2\x80\xaa.git/config", A },     /* U+202A */
        { ".gi\xc2\xadt/config", A },         /* U+00AD */
        { ".git\xf3\xa0\x81\x81/config", A }, /* U+E0041 */
        { ".g\xe2\x80\x8cit.\xe2\x80\x8d/config", A },
        { ".v\xc5\xbf"
          "code/tasks.json",
          A }, /* long s */
        { "\xe2\x84\xaa"
          "build",
          B },                         /* the sign for Kelvin */
        { ".gitcon\xef\xac\x81g", A }, /* ligature fi */
        { "Make\xef\xac\x81le", B },
        { "sitecu\xef\xac\x86omize.py", A }, /* st */
        { ".\xc3\x9fhrc", NO },              /* sharp s; no name of ours */
        { ".g\xff"
          "it/config",
          NO },
        { ".git\\hooks\\x", A },
        { "sub\\.git/config", A },
        { "./.git//config", A },
        { "..gitx/config", NO },
        { "...", NO },
        { ". .", NO },
        { ":", NO },
        { "CLAUDE.MD", A },
        { "agents.md ", A },
        { "Claude.md.", A },

        /* entering a directory */
        { ".envrc", A },
        { "sub/.envrc", A },
        { ".envrc.local", A },
        { ".envrc.example", NO },
        { "my.envrc.txt", NO },
        { "envrc", NO },
        { ".env", A },
        { ".env.local", B },
        { ".env.example", NO },
        { "config.env", NO },
        { ".autoenv.zsh", A },
        { ".rvmrc", A },
        { "flake.nix", A },
        { "shell.nix", A },
        { "default.nix", B },
        { "flake.lock", NO },
        { "devenv.nix", A },
        { "devbox.json", A },
        { ".mise.local.toml", A },

        /* editors */
        { ".vscode/settings.json", A },
        { ".vscode/tasks.json", A },
        { ".vscode/launch.json", A },
        { ".vscode/extensions.json", A },
        { "packages/a/.vscode/mcp.json", A },
        { "project.code-workspace", A },
        { ".idea/workspace.xml", A },
        { ".idea/runConfigurations/x.xml", A },
        { "module.iml", A },
        { ".vimrc", A },
        { ".vimspector.json", A },
        { ".vim/ftplugin/c.vim", A },
        { ".nvimrc", A },
        { ".nvim.lua", A },
        { ".exrc", A },
        { ".dir-locals.el", A },
        { ".emacs.d/init.el", A },
        { ".zed/tasks.json", A },
        { ".fleet/run.json", A },
        { "x.sublime-project", A },
        { ".project", A },
        { ".clangd", A },
        { ".ycm_extra_conf.py", A },
        { ".devcontainer/devcontainer.json", A },
        { ".devcontainer.json", A },
        { ".gitpod.yml", A },
        { ".editorconfig", NO },
        { ".clang-format", NO },
        { "vscode/settings.json", NO },
        { "src/idea/workspace.xml", NO },
        { "vimrc.c", NO },
        { "settings.json", NO },
        { "docs/.vscode.md", NO },

        /* coding agents */
        { "AGENTS.md", A },
        { "sub/AGENTS.md", A },
        { "AGENTS.override.md", A },
        { "CLAUDE.md", A },
        { "CLAUDE.local.md", A },
        { ".claude/settings.json", A },
        { ".claude/commands/x.md", A },
        { ".mcp.json", A },
        { ".cursor/rules/x.mdc", A },
        { ".cursorrules", A },
        { ".github/copilot-instructions.md", A },
        { ".github/instructions/c.instructions.md", A },
        { "GEMINI.md", A },
        { ".gemini/settings.json", A },
        { ".codex/config.toml", A },
        { ".aider.conf.yml", A },
        { ".windsurfrules", A },
        { ".windsurf/rules/x.md", A },
        { ".continue/config.json", A },
        { ".roo/rules/a.md", A },
        { ".roomodes", A },
        { ".clinerules", A },
        { ".clinerules/a.md", A },
        { "opencode.json", A },
        { ".opencode/agent/x.md", A },
        { ".kiro/hooks/x.json", A },
        { ".amazonq/rules/x.md", A },
        { ".junie/guidelines.md", A },
        { ".goosehints", A },
        { "docs/agents.html", NO },
        { "claude.c", NO },
        { "src/agents/main.py", NO },
        { "README.md", NO },
        { "CONTRIBUTING.md", NO },

        /* python */
        { ".venv/bin/python", A },
        { ".venv/lib/python3.11/os.py", A },
        { "venv/bin/activate", A },
        { "tools/bin/activate.fish", A },
        { "pyvenv.cfg", A },
        { "lib/site-packages/evil.pth", A },
        { "evil.pth", A },
        { "sitecustomize.py", A },
        { "lib/usercustomize.py", A },
        { "Lib/venv/__init__.py", NO },
        { "venv.py", NO },
        { "customize.py", NO },

        /* package managers */
        { ".yarnrc.yml", A },
        { ".yarnrc", A },
        { ".yarn/releases/yarn-4.0.0.cjs", A },
        { ".yarn/plugins/x.cjs", A },
        { ".yarn/install-state.gz", NO },
        { ".pnpmfile.cjs", A },
        { "bunfig.toml", A },
        { "pip.conf", A },
        { ".pypirc", A },
        { ".cargo/config.toml", A },
        { ".cargo/config", A },
        { ".bundle/config", A },
        { ".mvn/jvm.config", A },
        { ".mvn/extensions.xml", A },
        { "init.gradle", A },
        { "NuGet.Config", A },
        { "yarn.lock", NO },
        { "package-lock.json", NO },
        { "Cargo.lock", NO },
        { "cargo/config.toml", NO },

        /* shells, tools, file managers */
        { ".bashrc", A },
        { ".bash_profile", A },
        { ".zshenv", A },
        { ".profile", A },
        { ".config/fish/config.fish", A },
        { ".config/systemd/user/x.service", A },
        { ".config/autostart/x.desktop", A },
        { ".config/other.ini", NO },
        { ".ripgreprc", A },
        { ".curlrc", A },
        { ".wgetrc", A },
        { ".netrc", A },
        { ".gdbinit", A },
        { ".Rprofile", A },
        { ".ssh/config", A },
        { "git.exe", A },
        { "desktop.ini", A },
        { "bashrc.md", NO },
        { "profile.c", NO },

        /* builds */
        { "Makefile", B },
        { "sub/Makefile.am", B },
        { "GNUmakefile", B },
        { "rules.mk", B },
        { "docs/Makefile.md", NO },
        { "Makefile.txt", NO },
        { "makefiles/a.c", NO },
        { "CMakeLists.txt", B },
        { "cmake/FindX.cmake", B },
        { "CMakePresets.json", B },
        { "meson.build", B },
        { "configure.ac", B },
        { "m4/ax.m4", B },
        { "build.rs", B },
        { "src/builder.rs", NO },
        { "justfile", B },
        { "Taskfile.yml", B },
        { "WORKSPACE", B },
        { ".bazelrc", B },
        { "rules/x.bzl", B },
        { "SConstruct", B },
        { "binding.gyp", B },
        { "setup.py", B },
        { "src/setup_test.py", NO },
        { "conftest.py", B },
        { "tests/conftest.py", B },
        { "tox.ini", B },
        { "noxfile.py", B },
        { "Gemfile", B },
        { "Rakefile", B },
        { "lib/tasks/x.rake", B },
        { "x.gemspec", B },
        { "build.gradle", B },
        { "app/build.gradle.kts", B },
        { "gradlew", B },
        { "gradle/wrapper/gradle-wrapper.jar", B },
        { "pom.xml", B },
        { "build.sbt", B },
        { "Dockerfile", B },
        { "docker/Dockerfile.dev", B },
        { "docker-compose.yml", B },
        { "compose.yaml", B },
        { "composer.lock", NO },
        { "eslint.config.js", B },
        { ".eslintrc.json", B },
        { "babel.config.js", B },
        { "jest.config.ts", B },
        { "vite.config.mts", B },
        { "webpack.config.js", B },
        { "webpack.prod.js", B },
        { "postcss.config.cjs", B },
        { "src/config.js", NO },
        { "node_modules/.bin/tsc", B },
        { "node_modules/x/index.js", B },
        { "__pycache__/x.cpython-311.pyc", B },
        { "go.work", B },
        { "mix.exs", B },
        { "Package.swift", B },
        { "build.zig", B },
        { "x.csproj", B },
        { "x.xcodeproj/project.pbxproj", B },
        { "debian/rules", B },
        { "debian/libx.postinst", B },
        { "debian/control", NO },
        { "debian/changelog", NO },
        { "x.spec", B },
        { "x.spec.ts", NO },

        /* commits and CI */
        { ".pre-commit-config.yaml", B },
        { "lefthook.yml", B },
        { ".github/workflows/ci.yml", B },
        { ".github/actions/x/action.yml", B },
        { ".github/CODEOWNERS", NO },
        { ".github/ISSUE_TEMPLATE/bug.yml", NO },
        { "github/workflows/ci.yml", NO },
        { ".gitlab-ci.yml", B },
        { "Jenkinsfile", B },
        { ".circleci/config.yml", B },
        { ".travis.yml", B },
        { "azure-pipelines.yml", B },

        /* nothing */
        { "src/main.c", NO },
        { "a", NO },
        { "run.sh", NO },
        { "LICENSE", NO },
        { "LC_MESSAGES/de.po", NO },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(cases[i].path, judge_text(cases[i].path, NULL, "something\n"), cases[i].class);
}

/* `part` NULL: the same text at the same path is ordinary. */
static void only_a_part_that_runs_counts(void **state)
{
    static const struct {
        const char *path, *old, *new;
        enum classify_class class;
        const char *part;
    } cases[] = {
        /* package.json */
        { "package.json", "{\"dependencies\":{}}", "{\"dependencies\":{\"left-pad\":\"1.0.0\"}}", NO, "" },
        { "package.json", "{\"version\":\"1\"}", "{\"version\":\"2\",\"license\":\"MIT\"}", NO, "" },
        { "package.json", "{\"scripts\":{\"test\":\"a\"}}", "{ \"scripts\" : { \"test\" : \"a\" } }\n", NO,
          "" },
        { "package.json", "{\"scripts\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"scripts\":{\"b\":\"2\",\"a\":\"1\"}}",
          NO, "" },
        { "package.json", "{\"scripts\":{\"test\":\"a\"}}",
          "{\"scripts\":{\"test\":\"a\",\"postinstall\":\"x\"}}", B, "scripts.postinstall changed" },
        { "package.json", "{\"scripts\":{\"test\":\"a\"}}", "{\"scripts\":{\"test\":\"b\"}}", B,
          "scripts.test changed" },
        { "package.json", "{\"scripts\":{\"test\":\"a\"}}", "{}", B, "scripts removed" },
        { "package.json", "{\"scripts\":{\"test\":\"a\"}}", "{\"scripts\":{}}", B, "scripts.test removed" },
        { "package.json", "{\"scripts\":{}}", "{\"scripts\":\"x\"}", B, "scripts changed" },
        { "package.json", NULL, "{\"name\":\"x\"}", NO, "" },
        { "package.json", NULL, "{\"scripts\":{\"test\":\"a\"}}", B, "scripts.test changed" },
        { "package.json", "{\"scripts\":{\"test\":\"a\"}}", NULL, B, "scripts removed" },
        { "package.json", "{}", "{\"bin\":\"./x.js\"}", B, "bin changed" },
        { "package.json", "{}", "{\"gypfile\":true}", B, "gypfile changed" },
        { "package.json", "{}", "{\"husky\":{\"hooks\":{\"pre-commit\":\"x\"}}}", B, "husky.hooks changed" },
        { "package.json", "{}", "{\"lint-staged\":{\"*.js\":\"x\"}}", B, "lint-staged.*.js changed" },
        { "package.json", "{}", "{\"packageManager\":\"yarn@4\"}", B, "packageManager changed" },
        { "package.json", "{}", "{\"trustedDependencies\":[\"x\"]}", B, "trustedDependencies changed" },
        { "package.json", "{}", "{\"name\":1,\"name\":2}", B, "is no plain JSON" },
        { "package.json", "{}", "{\"name\":1,}", B, "is no plain JSON" },
        { "package.json", "{}", "\xef\xbb\xbf{}", B, "is no plain JSON" },
        { "package.json", "{}", "[]", B, "is no plain JSON" },
        { "package.json", "{}", "{\"\x01\":1}", B, "is no plain JSON" },
        { "package.json", "{}", "{\"\\u0001\\u00e4\":1}", B, "??? changed" },
        { "sub/Package.JSON", "{}", "{\"scripts\":{\"x\":\"y\"}}", B, "scripts.x changed" },
        { "composer.json", "{}", "{\"require\":{\"a/b\":\"1\"}}", NO, "" },
        { "composer.json", "{}", "{\"scripts\":{\"post-install-cmd\":\"x\"}}", B,
          "scripts.post-install-cmd changed" },

        /* .npmrc */
        { ".npmrc", "", "save-exact=true\nfund = false\n; a comment\n", NO, "" },
        { ".npmrc", "", "script-shell=/tmp/x\n", A, "script-shell changed" },
        { ".npmrc", "ignore-scripts=true\n", "", A, "ignore-scripts removed" },
        { ".npmrc", "", "registry=https://example.org/\n", A, "registry changed" },
        { ".npmrc", "", "@scope:registry=https://example.org/\n", A, "@scope:registry changed" },
        { ".npmrc", "", "//example.org/:_authToken=${TOKEN}\n", A, "//example.org/:_authtoken changed" },
        { ".npmrc", "", "node-options=--require ./x.js\n", A, "node-options changed" },
        { ".npmrc", "", "fund=false\n  prefix = /x\n", A, "prefix changed" },
        { ".npmrc", "", "fund=false\rglobalconfig=x", A, "globalconfig changed" },
        { ".npmrc", "", "\"script\\u002dshell\"=x\n", A, "\"\"script\\u002dshell\"=x\" changed" },
        { ".npmrc", "registry=a\n", "fund=false\n  registry=a\n", NO, "" },
        { ".npmrc", "registry=a\nregistry=b\n", "registry=b\nregistry=a\n", A, "registry changed" },
        { ".npmrc", NULL, "fund=false\n", NO, "" },

        /* git */
        { ".gitmodules", NULL, "[submodule \"x\"]\n\tpath = x\n\turl = ../x\n", A, "submodulex.path changed" },
        { ".gitmodules", "[submodule \"x\"]\n\turl = a\n", "[submodule \"x\"]\n\turl = b\n", A,
          "submodulex.url changed" },
        { ".gitmodules", "[submodule \"x\"]\n", "[submodule \"x\"]\n\tupdate = !evil\n", A,
          "submodulex.update changed" },
        { ".gitmodules", "[submodule \"x\"]\n", "[submodule \"x\"]\n\tbranch = main\n\tshallow = true\n", NO,
          "" },
        { ".gitmodules", "[submodule \"x\"]\n", "[submodule \"x\"] update = !evil\n", A,
          "\"[submodule \"x\"] update = !evil\" changed" },
        { ".gitmodules", "[submodule \"x\"]\nurl = a\\\nb\n", "[submodule \"x\"]\nurl = a\\\nc\n", A,
          "\"c\" changed" },
        { ".gitmodules", "[submodule \"x\"]\nbranch = a ; \\\n",
          "[submodule \"x\"]\nbranch = a ; \\\nupdate = !evil\n", A, "\"update = !evil\" changed" },
        { ".gitmodules", "[submodule \"x\"]\n; \\\n", "[submodule \"x\"]\n; \\\nupdate = !evil\n", A,
          "submodulex.update changed" },
        { ".gitmodules", "[submodule \"x\"]\nurl=a\n", "[submodule \"x\"]\nurl=a\n# url=b\n", NO, "" },
        { ".gitattributes", NULL, "*.c text eol=lf\n*.png binary\n*.po -diff\n", NO, "" },
        { ".gitattributes", "", "*.c diff=cpp\n*.rs diff=rust\nNEWS merge=union\n", NO, "" },
        { ".gitattributes", "", "*.x ident export-ignore linguist-generated=true\n", NO, "" },
        { ".gitattributes", "", "*.bin filter=lfs\n", A, "\"*.bin filter=lfs\" changed" },
        { ".gitattributes", "", "*.doc diff=word\n", A, "\"*.doc diff=word\" changed" },
        { ".gitattributes", "", "*.x merge=ours\n", A, "\"*.x merge=ours\" changed" },
        { ".gitattributes", "", "  *.x   text\tfilter=y\n", A, "\"*.x   text?filter=y\" changed" },
        { ".gitattributes", "", "[attr]text filter=x\n", A, "\"[attr]text filter=x\" changed" },
        { ".gitattributes", "", "\"a b\" filter=x\n", A, "\"\"a b\" filter=x\" changed" },
        { ".gitattributes", "", "*.x mymacro\n", A, "\"*.x mymacro\" changed" },
        { ".gitattributes", "", "*.x -filter\n", A, "\"*.x -filter\" changed" },
        { ".gitattributes", "*.x filter=a\n", "*.x filter=a\n*.y text\n", NO, "" },
        { ".gitattributes", "*.x filter=a\n", "", A, "\"*.x filter=a\" removed" },
        { ".gitattributes", "[attr]text filter=x\n", "[attr]text filter=x\na.c text\n", A,
          "\"a.c text\" changed" },
        { "GITATT~1", "", "*.x filter=y\n", A, "\"*.x filter=y\" changed" },
        { "gi7d29~1", "", "*.x filter=y\n", A, "" },
        { "sub/.gitattributes", "", "# filter=x\n\n", NO, "" },

        /* TOML */
        { "pyproject.toml", "[project]\nname=\"a\"\n", "[project]\nname=\"a\"\ndependencies = [\n \"x\",\n]\n",
          NO, "" },
        { "pyproject.toml", "", "[build-system]\nrequires = [\"setuptools\"]\n", B,
          "build-system.requires changed" },
        { "pyproject.toml", "[build-system]\nrequires = [\n\"a\",\n]\n",
          "[build-system]\nrequires = [\n\"a\",\n\"b\"\n]\n", B, "build-system.requires changed" },
        { "pyproject.toml", "", "[ 'build-system' ]\nbuild-backend='x'\n", B,
          "build-system.build-backend changed" },
        { "pyproject.toml", "", "build-system.build-backend = 'x'\n", B, "build-system.build-backend changed" },
        { "pyproject.toml", "", "build-system = { build-backend = 'x' }\n", B, "build-system changed" },
        { "pyproject.toml", "", "[\"build\\u002dsystem\"]\nbuild-backend='x'\n", B,
          "\"build-backend='x'\" changed" },
        { "pyproject.toml", "", "[project.scripts]\nx = 'a:b'\n", B, "project.scripts.x changed" },
        { "pyproject.toml", "", "[project]\nscripts = { x = 'a:b' }\n", B, "project.scripts changed" },
        { "pyproject.toml", "", "[tool.hatch.build.hooks.custom]\npath='x'\n", B,
          "tool.hatch.build.hooks.custom.path changed" },
        { "pyproject.toml", "", "[tool.pytest.ini_options]\naddopts='-p x'\n", B,
          "tool.pytest.ini_options.addopts changed" },
        { "pyproject.toml", "", "[tool.black]\nline-length = 100\n[tool.ruff.lint]\nselect = ['E']\n", NO, "" },
        { "pyproject.toml", "", "[tool.poetry.dependencies]\nx = '1'\n[dependency-groups]\ndev = ['x']\n", NO,
          "" },
        { "pyproject.toml", "", "[project]\ndescription = \"\"\"\n[build-system]\nrequires=[]\n\"\"\"\n", NO,
          "" },
        { "pyproject.toml", "[build-system]\nrequires = [\n]\n",
          "[build-system]\nrequires = [\n[\"project\"]\n]\nname = 'x'\n", B, "build-system.requires changed" },
        { "pyproject.toml", "[build-system]\nx = '''\n[project]\n'''\ny = 1\n",
          "[build-system]\nx = '''\n[project]\n'''\ny = 2\n", B, "build-system.y changed" },
        { "pyproject.toml", "[build-system]\nx = 1 # [project\ny = 1\n",
          "[build-system]\nx = 1 # [project\ny = 2\n", B, "build-system.y changed" },
        { "Cargo.toml", "[dependencies]\n",
          "[dependencies]\nserde = { version = '1', features = ['derive'] }\n", NO, "" },
        { "Cargo.toml", "", "[target.'cfg(unix)'.dependencies]\nlibc = '0.2'\n", NO, "" },
        { "Cargo.toml", "[package]\nversion='1'\n", "[package]\nversion='2'\nbuild = 'evil.rs'\n", B,
          "package.build changed" },
        { "Cargo.toml", "", "[patch.crates-io]\nx = { path = 'x' }\n", B, "patch.crates-io.x changed" },
        { "Cargo.toml", "", "[[bin]]\nname = 'x'\n", NO, "" },
        { "rust-toolchain.toml", "", "[toolchain]\nchannel = '1.80'\n", NO, "" },
        { "rust-toolchain.toml", "", "[toolchain]\npath = './evil'\n", A, "toolchain.path changed" },
        { "rust-toolchain.toml", "", "toolchain = { path = './evil' }\n", A, "toolchain changed" },
        { "rust-toolchain", "stable\n", "1.80.0\n", NO, "" },
        { "mise.toml", "", "[tools]\nnode = '22'\n", NO, "" },
        { "mise.toml", "", "[env]\nPATH = 'x'\n", A, "env.path changed" },
        { ".mise.toml", "", "[hooks]\nenter = 'x'\n", A, "hooks.enter changed" },
        { ".mise.toml", "", "[tools]\nnode = 'path:./x'\n", A, "\"node = 'path:./x'\" changed" },
        { ".mise.toml", "", "[tools]\nnode = { version = '1', postinstall = 'x' }\n", A,
          "\"node = { version = '1', postinstall = 'x' }\" changed" },

        /* other lines */
        { "setup.cfg", "[metadata]\nname = x\n",
          "[metadata]\nname = y\n[options]\ninstall_requires =\n    a\n    b\n", NO, "" },
        { "setup.cfg", "", "[build_ext]\ninplace = 1\n", B, "build_ext.inplace changed" },
        { "setup.cfg", "[global]\nx =\n    a\n", "[global]\nx =\n    b\n", B, "global.x changed" },
        { "setup.cfg", "[metadata]\n", "[metadata]\n[global] x\ny = z\n", B, "\"[global] x\" changed" },
        { "setup.cfg", "[metadata]\n[global] x\n", "[metadata]\n[global] x\ny = z\n", B, "\"y = z\" changed" },
        { "setup.cfg", "", "  [metadata]\n  name = x\n  [global]\n  y = z\n", B, "global.y changed" },
        { ".tool-versions", "nodejs 20.0.0\n", "nodejs 22.0.0\n", NO, "" },
        { ".tool-versions", "nodejs 20.0.0\n", "nodejs path:/tmp/x\n", A, "\"nodejs path:/tmp/x\" changed" },
        { ".python-version", "3.11\n", "3.12\n", NO, "" },
        { ".python-version", "3.11\n", "../../evil\n", A, "\"../../evil\" changed" },
        { "gradle.properties", "version=1\n", "version=2\nkotlinVersion=2.0\n", NO, "" },
        { "gradle.properties", "", "org.gradle.jvmargs=-javaagent:x.jar\n", A, "org.gradle.jvmargs changed" },
        { "gradle.properties", "", "systemProp.http.proxyHost=x\n", A, "systemprop.http.proxyhost changed" },
        { "gradle.properties", "", "[x]\norg.gradle.java.home : /x\n", A, "org.gradle.java.home changed" },
        { "gradle.properties", "", "org\\u002egradle.jvmargs=x\n", A,
          "\"org\\u002egradle.jvmargs=x\" changed" },
        { "gradle.properties", "org.gradle.jvmargs=\\\n -Xmx1g\n", "org.gradle.jvmargs=\\\n -javaagent:x\n", A,
          "\"-javaagent:x\" changed" },
        { "gradle.properties", "a=b\n# \\\n", "a=b\n# \\\norg.gradle.jvmargs=x\n", A,
          "org.gradle.jvmargs changed" },
        { "gradle.properties", "org.gradle.x=\\\r\n -Xmx1g\r\n", "org.gradle.x=\\\r\n -javaagent:x\r\n", A,
          "\"-javaagent:x\" changed" },
        { "main.go", "package main\n", "package main\n\nfunc main() {}\n", NO, "" },
        { "main.go", "package main\n", "package main\n//go:generate sh -c x\n", B,
          "\"//go:generate sh -c x\" changed" },
        { "main.go", "package main\n", "// #cgo LDFLAGS: -lx\npackage main\n", B,
          "\"// #cgo LDFLAGS: -lx\" changed" },
        { "go.mod", "go 1.22\n", "go 1.23\nrequire x v1\n", NO, "" },
        { "go.mod", "go 1.22\n", "go 1.22\nreplace a => ../b\n", B, "\"replace a => ../b\" changed" },
        { "requirements.txt", "a==1\n", "a==2\nb\n", NO, "" },
        { "requirements-dev.txt", "a==1\n", "a==1\n--index-url https://example.org\n", B,
          "\"--index-url https://example.org\" changed" },
        { "tsconfig.json", "{}", "{ \"strict\": true }", NO, "" },
        { "tsconfig.json", "{}", "{\n\"plugins\": [\n]}", B, "\"\"plugins\": [\" changed" },
        { "x.desktop", "[Desktop Entry]\nName=a\n", "[Desktop Entry]\nName=b\nName[de]=c\n", NO, "" },
        { "x.desktop", "[Desktop Entry]\nExec=a\n", "[Desktop Entry]\nExec=b\n", B,
          "desktopentry.exec changed" },

        /* whole files */
        { "Makefile", "a\n", "b\n", B, "" },
        { "AGENTS.md", "a\n", "b\n", A, "" },
        { "AGENTS.md", "a\n", NULL, A, "" },
        { ".envrc", "a\n", NULL, A, "" },
        { "Makefile", "a\n", "a\n", NO, "" },
        { ".git/config", "a\n", "a\n", NO, "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct classify_verdict verdict = judge_text(cases[i].path, cases[i].old, cases[i].new);

        expect(cases[i].path, verdict, cases[i].class);
        if (strcmp(verdict.part, cases[i].part) != 0)
            fail_msg("%s, case %zu: \"%s\", not \"%s\"", cases[i].path, i, verdict.part, cases[i].part);
    }
}

static void what_was_not_read_counts_as_changed(void **state)
{
    static const struct {
        const char *path;
        enum classify_class class;
    } cases[] = {
        { "package.json", B }, { ".npmrc", A }, { "pyproject.toml", B }, { "x.go", B }, { "x.c", NO }
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct classify_side cut = { .mode = FILE_MODE, .bytes = "{}", .len = 2, .cut = true };
        struct classify_side unknown = { .mode = FILE_MODE, .cut = true };

        expect(cases[i].path, judge(cases[i].path, side(FILE_MODE, "{}"), cut), cases[i].class);
        expect(cases[i].path, judge(cases[i].path, unknown, side(FILE_MODE, "{}")), cases[i].class);
    }
}

static void a_model_is_no_python_path_file(void **state)
{
    static const char model[] = "PK\3\4\0\0data", planted[] = "PK\3\4\0\0\nimport os";
    struct classify_side data = { .mode = FILE_MODE, .bytes = model, .len = sizeof model, .cut = true };
    struct classify_side code = { .mode = FILE_MODE, .bytes = planted, .len = sizeof planted };

    (void)state;
    expect("out.pth", judge("out.pth", side(0, NULL), data), NO);
    expect("out.pth", judge("out.pth", side(0, NULL), code), A);
    expect("in site-packages", judge("x/site-packages/out.pth", side(0, NULL), data), A);
}

static void a_program_counts_while_it_can_be_executed(void **state)
{
    (void)state;
    expect("new", judge("x/run", side(0, NULL), side(PROGRAM_MODE, "#!/bin/sh\n")), B);
    expect("changed", judge("run.sh", side(PROGRAM_MODE, "a"), side(PROGRAM_MODE, "b")), B);
    expect("same", judge("run.sh", side(PROGRAM_MODE, "a"), side(PROGRAM_MODE, "a")), NO);
    expect("gone", judge("run.sh", side(PROGRAM_MODE, "a"), side(0, NULL)), NO);
    expect("no program", judge("run.sh", side(FILE_MODE, "a"), side(FILE_MODE, "b")), NO);
    expect("text that is one", judge("run.md", side(FILE_MODE, "a"), side(PROGRAM_MODE, "a")), B);
    expect("other rights", judge("Makefile", side(FILE_MODE, "a"), side(S_IFREG | 0600, "a")), NO);
    expect("an example that git brings",
           judge(".git/hooks/update.sample", side(0, NULL), side(PROGRAM_MODE, "a")), NO);
    expect("a hook that is switched on",
           judge(".git/hooks/update", side(FILE_MODE, "a"), side(PROGRAM_MODE, "a")), A);

    struct classify_verdict verdict = judge("run.sh", side(FILE_MODE, "a"), side(PROGRAM_MODE, "a"));

    expect("made one", verdict, B);
    assert_string_equal(verdict.part, "can be executed now");
}

static void a_link_counts_by_its_place_and_by_where_it_leads(void **state)
{
    static const struct {
        const char *path, *target;
        enum classify_class class;
    } cases[] = {
        { "notes", "README.md", NO },
        { "notes", "../other/x", NO },
        { "notes", ".git/hooks/pre-commit", A },
        { "notes", ".git/hooks", A },
        { "notes", ".git", A },
        { "notes", "./x/../.git/config", A },
        { "a/b/notes", "../../.vscode/settings.json", A },
        { "a/b/notes", "../../.vscode", A },
        { "a/.git/x", "hooks", A },
        { "notes", "/home/somebody/.bashrc", A },
        { "notes", ".GIT/config", A },
        { "notes", "git~1", A },
        { "notes", "Makefile", NO },
        { "notes", ".", NO },
        { "notes", "..", NO },
        { "notes", "", NO },
        { "notes", "/", NO },
        { ".vscode", "docs", A },
        { ".git", "docs", A },
        { ".github", "docs", A },
        { "sub/.claude", "docs", A },
        { "CLAUDE.md", "README.md", A },
        { ".npmrc", "x", A },
        { "package.json", "x", B },
        { "Makefile", "x", B },
        { "debian", "x", B },
        { "node_modules", "../node_modules", B },
        { ".git/objects/pack/pack-01.pack", "x", A },
        { ".envrc.example", "x", A },
        { "x.md", "y.md", NO },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct classify_side link = side(LINK_MODE, cases[i].target);

        expect(cases[i].path, judge(cases[i].path, side(0, NULL), link), cases[i].class);
        expect(cases[i].path, judge(cases[i].path, link, link), NO);
    }
    expect("a link with an unknown target",
           judge("x", side(0, NULL), (struct classify_side){ .mode = LINK_MODE, .cut = true }), A);
    expect("a link that becomes a file", judge(".npmrc", side(LINK_MODE, "x"), side(FILE_MODE, "")), A);
    expect("a link that becomes a program", judge("run", side(LINK_MODE, "x"), side(PROGRAM_MODE, "x")), B);
    expect("a program that becomes a link", judge("run", side(PROGRAM_MODE, "x"), side(LINK_MODE, "x")), NO);
    expect("a file that becomes a link", judge(".git/config", side(FILE_MODE, "x"), side(LINK_MODE, "x")), A);
}

static void directories_run_nothing(void **state)
{
    (void)state;
    expect("new", judge(".git", side(0, NULL), (struct classify_side){ .mode = S_IFDIR | 0755 }), NO);
    expect("was a file",
           judge(".git", side(FILE_MODE, "gitdir: x"), (struct classify_side){ .mode = S_IFDIR | 0755 }), A);
}

static void a_path_that_cannot_be_judged_is_asked_for(void **state)
{
    static char path[3 * PLAINNAME_MAX];
    struct classify_input in = { .path = path, .new = side(FILE_MODE, "x") };
    struct classify_verdict verdict;

    (void)state;
    memset(path, 'a', sizeof path);
    in.path_len = sizeof path;
    classify(&in, &verdict);
    assert_int_equal(verdict.class, A);

    in.path_len = 1000;
    classify(&in, &verdict);
    assert_int_equal(verdict.class, NO);

    in.path = "a\0b";
    in.path_len = 3;
    classify(&in, &verdict);
    assert_int_equal(verdict.class, A);
}

static void a_bare_repository_is_known_by_its_names(void **state)
{
    static const struct {
        const char *names[4];
        bool bare;
    } cases[] = {
        { { "HEAD", "objects", "refs", "config" }, true },
        { { "head", "Objects", "REFS", "x" }, true },
        { { "HEAD", "commondir", "a", "b" }, true },
        { { "HEAD", "objects", "config", "hooks" }, false },
        { { "objects", "refs", "config", "hooks" }, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(classify_bare_repository(cases[i].names, 4), cases[i].bare);
    assert_false(classify_bare_repository(NULL, 0));
}

static void what_lies_in_a_bare_repository_is_like_in_git(void **state)
{
    static const struct {
        const char *path;
        size_t below;
        enum classify_class class;
    } cases[] = {
        { "x/config", 2, A },         { "x/hooks/update", 2, A }, { "config", 0, A },
        { "x/objects/4b/82", 2, NO }, { "x/HEAD", 2, A },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *path = cases[i].path;
        struct classify_input in = { .path = path, .path_len = strlen(path), .new = side(FILE_MODE, "x") };
        struct classify_verdict verdict;

        classify(&in, &verdict);
        expect(path, verdict, NO);
        in.in_bare = path + cases[i].below;
        classify(&in, &verdict);
        expect(path, verdict, cases[i].class);
    }
}

/* A path that the pattern must match: stars become a letter, sets their first character. */
static void example_of(const char *pattern, char *out)
{
    for (; *pattern; pattern++) {
        if (*pattern == '[') {
            *out++ = pattern[1];
            pattern = strchr(pattern, ']');
        } else {
            *out++ = *pattern == '*' ? 'q' : *pattern;
        }
    }
    if (out[-1] == '/')
        *out++ = 'q';
    *out = '\0';
}

static void every_row_is_in_reach_and_in_order(void **state)
{
    static const char text[] =
        "runs = path:/x {{ } => \"plugins\"\n//go:generate #cgo filter=x\n-e x\norg.gradle.x=1\n"
        "[x]\nexec=x\n";
    bool in_b = false;
    char path[128];

    (void)state;
    for (const struct watch_row *row = watchlist; *row->pattern; row++) {
        bool executable = row->part == PART_EXECUTABLE;
        mode_t mode = executable ? PROGRAM_MODE : FILE_MODE;

        if (!memchr(row->pattern, '\0', sizeof row->pattern) || !memchr(row->reason, '\0', sizeof row->reason))
            fail_msg("%.*s is too long for its row", (int)sizeof row->pattern, row->pattern);
        in_b = in_b || row->class == B;
        if (in_b && row->class == A)
            fail_msg("%s stands behind rows of class B", row->pattern);
        example_of(row->pattern, path);

        struct classify_verdict verdict = judge(path, side(0, NULL), side(mode, text));

        if (verdict.class < row->class)
            fail_msg("%s, an example of %s, is %s", path, row->pattern, classify_name(verdict.class));
        for (const char *at = row->pattern; *at; at++)
            if (*at >= 'A' && *at <= 'Z')
                fail_msg("%s has a capital letter, so that nothing matches it", row->pattern);
        if (row->class != NO && !*row->reason)
            fail_msg("%s has no reason", row->pattern);
    }
    assert_true(in_b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_path_of_a_new_file_decides),
        cmocka_unit_test(only_a_part_that_runs_counts),
        cmocka_unit_test(what_was_not_read_counts_as_changed),
        cmocka_unit_test(a_model_is_no_python_path_file),
        cmocka_unit_test(a_program_counts_while_it_can_be_executed),
        cmocka_unit_test(a_link_counts_by_its_place_and_by_where_it_leads),
        cmocka_unit_test(directories_run_nothing),
        cmocka_unit_test(a_path_that_cannot_be_judged_is_asked_for),
        cmocka_unit_test(a_bare_repository_is_known_by_its_names),
        cmocka_unit_test(what_lies_in_a_bare_repository_is_like_in_git),
        cmocka_unit_test(every_row_is_in_reach_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
