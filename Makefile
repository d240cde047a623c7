# A small front for meson.  `make help` lists what there is.
BUILD  ?= build
PREFIX ?= /usr/local

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet src/cli/cove
	@ln -sf src/cli/cove $(BUILD)/cove

help:
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

$(BUILD)/build.ninja:
	@tools/setup build
	meson setup $(BUILD) >/dev/null

build-unsafe/build.ninja:
	meson setup build-unsafe -Dunsafe=true >/dev/null
build-asan/build.ninja:
	meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false >/dev/null

quickstart: ## install what is needed, build, and show a contained run
	@tools/setup build
	@$(MAKE) --no-print-directory all
	@examples/quickstart

check: ## install what the tests need, build, run them all
	@tools/setup check
	@$(MAKE) --no-print-directory all build-unsafe/build.ninja
	@tests/run

check-asan: build-asan/build.ninja ## the suite under ASan and UBSan
	@COVE_BUILD=build-asan tests/run

check-guest: ## system and hostile tests on Debian's own kernel, emulated, with systemd and cgroup v2
	@tools/setup check
	@tools/setup guest
	@tests/guest/run

bench: all ## speed, with peers beside us in the same run
	@tools/setup bench
	@bench/run

lint: $(BUILD)/build.ninja ## format, static analysis, include directions
	@tools/setup lint
	@tools/lint

fuzz: ## every fuzzer for FUZZ_SECONDS (60) each
	@tools/setup lint
	@tests/fuzz/run

soak: all ## races, thousands of kills, load, long fuzzing
	@tools/setup check
	@tools/setup guest
	@ninja -C $(BUILD) --quiet
	@tests/soak

install: $(BUILD)/build.ninja ## install below PREFIX (/usr/local)
	@meson configure $(BUILD) -Dprefix=$(PREFIX) >/dev/null && ninja -C $(BUILD) build.ninja >/dev/null
	@ninja -C $(BUILD) --quiet installed
	@meson install -C $(BUILD) --no-rebuild --quiet
	@[ "$$(id -u)" != 0 ] || chown -R --reference=. $(BUILD) # with sudo: who owns the tree goes on building

uninstall: ## remove what make install has put there
	@ninja -C $(BUILD) --quiet uninstall

deb: ## a Debian package, in build-deb
	@tools/setup deb
	@tools/deb

check-deb: deb ## make the package, look into it, install it into a directory, run it
	@tests/deb/run

clean: ## remove what was built
	rm -rf build build-unsafe build-asan build-fuzz build-clang build-deb

.PHONY: all help quickstart check check-asan check-guest bench lint fuzz soak install uninstall deb check-deb clean
