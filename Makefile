# ops-debug - build, test, demo. `make help` lists the targets; V=1 shows the commands.
#
# Every folder brings a build.mk. Output goes to $(B); a sanitizer build is the same rules with another B and SAN.

B ?= build
CC = gcc
CLANG ?= clang
SAN ?=
PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/^\#define ANALYZER_VERSION "\(.*\)"/\1/p' analyzer/version.h)

# The CUDA toolkit: CUDA_HOME, else ./toolkit (scripts/setup --toolkit), else beside nvcc.
ifeq ($(CUDA_HOME),)
CUDA_HOME := $(shell scripts/find-toolkit 2>/dev/null)
endif
NVCC = $(CUDA_HOME)/bin/nvcc

CPPFLAGS += -Iinclude -I. -D_GNU_SOURCE
CUDA_CPPFLAGS = -isystem $(CUDA_HOME)/include
# No contraction, ever: the executor's arithmetic is IEEE operation by operation.
CFLAGS ?= -O2 -g
OUR_CFLAGS = -std=gnu17 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter \
	-ffp-contract=off -fno-strict-aliasing -fvisibility=hidden -fPIC $(SAN) $(if $(SAN),-DLANES_PLAIN)
DEPFLAGS = -MMD -MP

ifeq ($(V),1)
Q :=
say =
else
Q := @
say = @printf '  %-7s %s\n' "$(1)" "$(2)";
endif

# All cores, unless the caller says how many jobs.
ifeq ($(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS)),0)
MAKEFLAGS += --jobs=$(shell nproc 2>/dev/null || echo 1)
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

# $(call archive,NAME,SOURCES): build $(B)/lib/NAME.a from C sources (paths from the root).
define archive
$(B)/lib/$(1).a: $$(patsubst %.c,$(B)/obj/%.o,$(2))
	@mkdir -p $$(@D)
	$$(call say,AR,$$@) rm -f $$@ && ar rcs $$@ $$^
endef

# $(call unit_test,NAME,OBJECTS AND ARCHIVES,LINK FLAGS): tests/unit/test_NAME.c becomes a cmocka test that `make unit` runs.
define unit_test
UNIT_TESTS += $(B)/tests/unit/test_$(1)
$(B)/tests/unit/test_$(1): $(B)/obj/tests/unit/test_$(1).o $(2)
	@mkdir -p $$(@D)
	$$(call say,LD,$$@) $$(CC) $$(SAN) -o $$@ $$^ $(3) -lcmocka -lm -lpthread
endef

# $(call fuzz_target,NAME,SOURCES,LINK FLAGS): tests/fuzz/fuzz_NAME.c with its sources, all instrumented by clang's libFuzzer.
# Seeds, where there are any, lie in tests/fuzz/corpus/NAME/. All sources in one command: no dependency file could list their headers.
FUZZ_HEADERS = $(wildcard */*.h */*.inc */*.def include/*/*.h)
define fuzz_target
FUZZ_TARGETS += $(B)/fuzz/fuzz_$(1)
$(B)/fuzz/fuzz_$(1): tests/fuzz/fuzz_$(1).c $(2) $$(FUZZ_HEADERS)
	@mkdir -p $$(@D)
	$$(call say,FUZZCC,$$@) $$(CLANG) -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -std=gnu17 -ffp-contract=off \
	  -fno-strict-aliasing -Wno-pass-failed $$(CPPFLAGS) -o $$@ tests/fuzz/fuzz_$(1).c $$(filter %.c,$(2)) $(3) -lm -lpthread
endef

UNIT_TESTS :=
FUZZ_TARGETS :=
PROGRAMS :=
PAIRS :=
TARGETS :=
BENCHES :=

-include common/build.mk
-include ptx/build.mk
-include softgpu/build.mk
-include shim/build.mk
-include reference/build.mk
-include analyzer/build.mk
-include tests/programs/build.mk
-include tests/programs/pairs/build.mk
-include tests/programs/odd/build.mk
-include tests/programs/endings/build.mk
-include tests/programs/order/build.mk
-include tests/programs/customs/build.mk
-include tests/programs/breakages/build.mk
-include tests/programs/hang/build.mk
-include tests/build.mk
-include bench/build.mk

# Packages first: both stamps are order-only, so that a fresh machine builds with one command (SETUP= switches this off).
SETUP ?= build/.packages
SETUP_DEV ?= build/.packages-dev
build/.packages: scripts/setup
	@scripts/setup && mkdir -p build && touch $@
build/.packages-dev: scripts/setup build/.packages # one after the other: apt takes a lock
	@scripts/setup --dev && mkdir -p build && touch $@
SETUP_CLIENTS ?= build/.packages-clients
build/.packages-clients: scripts/setup build/.packages-dev
	@scripts/setup --clients && mkdir -p build && touch $@
$(UNIT_TESTS) $(FUZZ_TARGETS): | $(SETUP_DEV)
$(PROGRAMS) $(PAIRS) $(SOFTGPU_NAMES) $(BLAS_NAMES) $(SHIM_GENERATED): | $(SETUP)

COMPILE = $(CC) $(CPPFLAGS) $(EXTRA_CPPFLAGS) $(CFLAGS) $(OUR_CFLAGS) $(EXTRA_CFLAGS) $(DEPFLAGS) -c -o
$(B)/obj/%.o: %.c | $(SETUP)
	@mkdir -p $(@D)
	$(call say,CC,$<) $(COMPILE) $@ $<
$(B)/obj/tests/%.o: tests/%.c | $(SETUP_DEV)
	@mkdir -p $(@D)
	$(call say,CC,$<) $(COMPILE) $@ $<

# The headers of the toolkit are needed in some folders only.
$(B)/obj/softgpu/%.o $(B)/obj/shim/%.o $(B)/obj/bench/%.o $(B)/obj/tests/%.o: EXTRA_CPPFLAGS = $(CUDA_CPPFLAGS)

.PHONY: all programs check unit e2e fuzz asan ubsan tsan tidy format format-check bench demo install clean help

all: $(TARGETS) ## build the tool and softgpu
programs: $(PROGRAMS) $(PAIRS) ## build the CUDA test programs (needs nvcc)

include scripts/checks.mk

clean: ## remove the build folder
	rm -rf build

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | awk -F'\t' '{printf "  %-14s %s\n", $$1, $$2}'

demo: $(TARGETS) $(B)/programs/block_tail_write ## the main job: a program with a planted fault, on softgpu, to the report
	@scripts/demo $(B)

bench: $(TARGETS) $(BENCHES) ## benchmarks: ratios against a named baseline in the same run
	@for bench in $(BENCHES); do $$bench || exit 1; done

install: $(TARGETS) ## install into PREFIX (default /usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/ops-debug/softgpu $(DESTDIR)$(PREFIX)/include/opsdebug
	install scripts/ops-debug $(DESTDIR)$(PREFIX)/bin/
	install $(B)/libopsdebug.so $(B)/ops-analyze $(DESTDIR)$(PREFIX)/lib/ops-debug/
	install -m 644 shim/options.def $(DESTDIR)$(PREFIX)/lib/ops-debug/
	cp -P $(B)/softgpu/lib*.so* $(DESTDIR)$(PREFIX)/lib/ops-debug/softgpu/
	install -m 644 include/opsdebug/*.h ptx/opsptx.h $(DESTDIR)$(PREFIX)/include/opsdebug/
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 $(B)/libopsptx.a $(DESTDIR)$(PREFIX)/lib/
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' ptx/opsptx.pc >$(DESTDIR)$(PREFIX)/lib/pkgconfig/opsptx.pc

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
