# A thin cover over Meson: every target works alone on a fresh clone.
# CC=clang builds with clang; BUILD names another build folder.

BUILD ?= build
SETUP_STAMP := build-setup.stamp
NINJA = ninja -C

.PHONY: all setup setup-extra build run test test-extra bench fuzz soak long-java long-nodejs format lint install deb static image dist clean
all: build

setup: $(SETUP_STAMP)

# Installs what is missing, asks nothing; a second call does nothing.
$(SETUP_STAMP): scripts/setup scripts/packages.txt
	scripts/setup scripts/packages.txt
	@touch $@

setup-extra: setup
	scripts/setup scripts/packages-extra.txt
	scripts/setup-web
	scripts/setup-sdks

build: $(BUILD)/build.ninja
	$(NINJA) $(BUILD)

$(BUILD)/build.ninja: | setup
	meson setup $(BUILD)

run: $(BUILD)/build.ninja
	$(NINJA) $(BUILD) hearth
	scripts/run

test: setup
	scripts/test

# PARTS="NAME..." runs these parts of tests/parts.toml; without it, those that do not hold for this tree.
test-extra: setup-extra
	scripts/test-extra $(PARTS)

bench: build
	tests/bench/bench.py $(BENCH)

# FUZZ_SECONDS for each target, one after the other.
fuzz: setup
	scripts/fuzz

# SOAK uploads, with a line of progress; Ctrl-C judges what was measured. make test-extra has 50,000.
SOAK ?= 1000000
soak: build
	tests/e2e/check_soak.py --uploads=$(SOAK)

# Each load on each JVM, or on those of JAVA="VERSION... LOAD...", at 99 and 997 Hz; goes on where it was broken off.
long-java: build
	tests/e2e/long_java.py $(JAVA)

# The same of Node.js: NODEJS="VERSION... LOAD...".
long-nodejs: build
	tests/e2e/long_nodejs.py $(NODEJS)

format: setup
	git ls-files '*.c' '*.h' | xargs clang-format -i

lint: build
	scripts/lint

install: build
	meson install -C $(BUILD)

# Debian packages of the last commit in build-deb/.
deb: setup
	scripts/deb

# One file without shared libraries: build-static/hearth.
static: setup
	scripts/static

# A container image from scratch, on the static file: build-image/hearth.tar, for docker load and others.
image: static
	scripts/image

# The source of the last commit, which builds without git: build-dist/hearth-VERSION.tar.gz.
dist:
	scripts/dist

clean:
	rm -rf build build-* tests/web/node_modules
