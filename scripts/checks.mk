# The quality gates. Every test is a program that prints TAP ("ok 1 - name", "not ok ...", "# skip" for skipped); run-tests adds up.

SOURCES = $(shell git ls-files '*.c' '*.h' | grep -v '^tests/programs/')
FUZZ_SECONDS ?= 45

unit: $(UNIT_TESTS) ## unit tests (cmocka)
	@scripts/run-tests $(UNIT_TESTS)

e2e: $(TARGETS) $(PROGRAMS) $(PAIRS) | $(SETUP_CLIENTS) ## end-to-end tests on nvcc-built programs
	@B=$(B) scripts/run-tests $(sort $(wildcard tests/e2e/*.sh tests/gpu/*.sh))

fuzz: $(FUZZ_TARGETS) ## each fuzz target for FUZZ_SECONDS
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/run-fuzz $(FUZZ_TARGETS)

check: $(TARGETS) $(PROGRAMS) $(PAIRS) $(UNIT_TESTS) $(FUZZ_TARGETS) $(BENCHES) | $(SETUP_CLIENTS) ## all tests; ends with "N passed, N failed"
	@B=$(B) FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/run-tests $(UNIT_TESTS) $(sort $(wildcard tests/e2e/*.sh tests/gpu/*.sh)) --fuzz $(FUZZ_TARGETS)

# gcc 12's leak check dies of threads' dynamic TLS that it has intercepted.
asan: ## unit tests under AddressSanitizer
	ASAN_OPTIONS=intercept_tls_get_addr=0 $(MAKE) B=build/asan SAN="-fsanitize=address -fno-omit-frame-pointer" CFLAGS="-O1 -g" unit

ubsan: ## the same under UndefinedBehaviorSanitizer
	$(MAKE) B=build/ubsan SAN="-fsanitize=undefined -fno-sanitize-recover=undefined" CFLAGS="-O1 -g" unit

tsan: ## the same under ThreadSanitizer
	$(MAKE) B=build/tsan SAN="-fsanitize=thread" CFLAGS="-O1 -g -Wno-tsan" unit

tidy: ## clang-tidy, warnings are errors
	@scripts/run-tidy $(filter-out docs/%,$(filter %.c,$(SOURCES)))

.PHONY: docs
docs: $(TARGETS) $(PROGRAMS) $(UNIT_TESTS) ## write the generated pages of docs/
	@scripts/make-instruction-table >docs/ptx-instructions.md
	@scripts/make-compatibility-map $(B) $(CUDA_HOME)/include >docs/compatibility.md

format: ## rewrite the sources with clang-format
	@clang-format -i $(SOURCES)

format-check: ## fail when a source is not formatted
	@clang-format --dry-run -Werror $(SOURCES)
