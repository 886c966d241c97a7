# libopsdebug.so: the shim. Its only NEEDED is libc (a test looks); zstd and xxhash are linked in, hidden.
SHIM_SOURCES = $(wildcard shim/*.c) common/map.c common/hash.c common/fatbin.c common/buf.c
SHIM_OBJECTS = $(patsubst %.c,$(B)/obj/%.o,$(SHIM_SOURCES))
SHIM = $(B)/libopsdebug.so
TARGETS += $(SHIM)

# What is generated lies in $(B)/gen/shim and is included as shim/NAME.
SHIM_GENERATED = $(B)/gen/shim/cuda_names.inc $(B)/gen/shim/check_ptx.inc $(B)/gen/shim/scan_ptx.inc $(B)/gen/shim/libraries.inc
# Preloaded, so static TLS is there: no call of __tls_get_addr, which would also make the loader a NEEDED.
$(B)/obj/shim/%.o: EXTRA_CFLAGS += -I$(B)/gen -ftls-model=initial-exec -include shim/old_glibc.h $(SHIM_FRAMES)
# It runs in the program's threads, and a thread may have the smallest stack there is: shim/small_stack.h. Sanitizers make frames larger.
SHIM_FRAMES = $(if $(SAN),,-Wframe-larger-than=1024)
$(B)/obj/shim/doors.o $(B)/obj/shim/device_work.o: $(SHIM_GENERATED)

# The names that cuGetProcAddress knows: everything the header declares.
$(B)/gen/shim/cuda_names.inc: $(if $(CUDA_HOME),$(CUDA_HOME)/include/cuda.h) # without a toolkit scripts/setup is who says so
	@mkdir -p $(@D)
	$(call say,GEN,$@) grep -oE '\bcu[A-Z][A-Za-z0-9]*(_v[0-9]+)?\(' $< | tr -d '(' | LC_ALL=C sort -u | sed 's/.*/"&",/' >$@

# cuBLAS's functions from the toolkit's headers, where it has them; NCCL's from ours.
$(B)/gen/shim/libraries.inc: shim/generate-libraries shim/nccl_api.h $(wildcard $(CUDA_HOME)/include/cublas_api.h $(CUDA_HOME)/include/cublasLt.h)
	@mkdir -p $(@D)
	$(call say,GEN,$@) shim/generate-libraries $(CUDA_HOME)/include >$@.tmp && mv $@.tmp $@
$(B)/obj/shim/doors.o $(patsubst %.c,$(B)/obj/%.o,$(wildcard shim/library*.c)): $(B)/gen/shim/libraries.inc

$(B)/gen/shim/%_ptx.inc: shim/%.ptx
	@mkdir -p $(@D)
	$(call say,GEN,$@) od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' | sed '$$s/,$$//' >$@

# -z defs: a row of hooks.def without a wrapper fails here. -Bsymbolic: our own table means our own wrappers.
$(SHIM): $(SHIM_OBJECTS) shim/libopsdebug.map
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -shared -o $@ $(SHIM_OBJECTS) -Wl,--version-script=shim/libopsdebug.map -Wl,-soname,libopsdebug.so \
	  -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--gc-sections -l:libzstd.a -l:liblz4.a

# The doors answer before a sanitizer's run time is ready: it looks its own functions up through them.
$(B)/obj/shim/doors.o $(B)/obj/shim/libc_symbols.o $(B)/obj/tests/stub/interposer.o: override SAN =

# For tests and the bench: a driver that succeeds at once (-Bsymbolic: its own calls are its own), the program that is watched,
# a namesake and a second interposer.
STUB = $(B)/stub/libcuda.so.1
STUB_OLD = $(B)/stub/old/libcuda.so.1
PROBES = $(B)/stub/probe $(B)/stub/probe_direct $(B)/stub/namesake.so $(B)/stub/interposer.so

$(STUB): $(B)/obj/tests/stub/stub_driver.o
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -shared -o $@ $^ -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic
$(STUB_OLD): tests/stub/stub_driver.c shim/hooks.def
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) $(CUDA_CPPFLAGS) $(CFLAGS) $(OUR_CFLAGS) -DSTUB_WITHOUT_PROC_V2 -shared -o $@ $< \
	  -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic
$(B)/stub/probe: $(B)/obj/tests/stub/probe.o
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -o $@ $^ -lpthread
$(B)/stub/probe_direct: tests/stub/probe.c $(STUB)
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) $(CUDA_CPPFLAGS) $(CFLAGS) $(OUR_CFLAGS) -DPROBE_DIRECT -o $@ $< -Wl,--no-as-needed $(STUB) -lpthread
$(B)/stub/%.so: $(B)/obj/tests/stub/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) -shared -o $@ $^

# Tests that run the probe under the shim need all of that beside them.
SHIM_KIT = $(B)/obj/tests/unit/shim_kit.o $(COMMON)
SHIM_SAN_NAME = $(if $(findstring address,$(SAN)),asan,$(if $(findstring thread,$(SAN)),tsan))
SHIM_SAN_RUNTIME = $(if $(SHIM_SAN_NAME),$(shell $(CC) -print-file-name=lib$(SHIM_SAN_NAME).so))
KIT_DEFINES = -DKIT_BUILD='"$(abspath $(B))"' -DKIT_SANITIZER='"$(SHIM_SAN_RUNTIME)"' \
	-DKIT_SANITIZER_COLON='"$(if $(SHIM_SAN_RUNTIME),$(SHIM_SAN_RUNTIME):)"'
$(B)/obj/tests/unit/shim_kit.o $(B)/obj/tests/unit/test_shim_%.o $(B)/obj/tests/unit/test_capture_%.o: CPPFLAGS += $(KIT_DEFINES)
$(B)/obj/tests/unit/test_shim_doors.o: EXTRA_CFLAGS += -I$(B)/gen
$(B)/obj/tests/unit/test_shim_doors.o: $(B)/gen/shim/libraries.inc
$(eval $(call unit_test,shim_doors,$(SHIM_KIT)))
$(eval $(call unit_test,capture_write,$(SHIM_KIT)))
$(eval $(call unit_test,shim_device,$(SHIM_KIT)))
$(B)/tests/unit/test_shim_doors $(B)/tests/unit/test_shim_device $(B)/tests/unit/test_capture_write: | $(SHIM) $(STUB) $(STUB_OLD) $(PROBES) $(SOFTGPU)
$(eval $(call unit_test,shim_graph,$(SHIM_KIT)))
$(B)/tests/unit/test_shim_graph: | $(SHIM) $(STUB) $(STUB_OLD) $(PROBES) $(SOFTGPU)
$(eval $(call unit_test,shim_alloc_table,$(B)/obj/shim/alloc_table.o $(B)/obj/shim/memory.o $(B)/obj/common/map.o))
$(eval $(call unit_test,shim_memory,$(B)/obj/shim/memory.o $(B)/obj/common/map.o))
$(eval $(call unit_test,shim_ptx_scan,$(B)/obj/shim/ptx_scan.o))
$(eval $(call unit_test,shim_scan,$(B)/obj/shim/scan_judge.o))
$(eval $(call unit_test,shim_options,$(B)/obj/shim/options.o $(B)/obj/shim/options_record.o $(B)/obj/shim/guard_choice.o))
$(eval $(call unit_test,shim_budget,$(B)/obj/shim/budget_levels.o))
$(eval $(call unit_test,shim_guard,$(B)/obj/shim/options.o $(B)/obj/shim/guard_choice.o))

BENCHES += $(B)/bench/bench_shim $(B)/bench/bench_launches $(B)/bench/bench_threads
$(B)/bench/bench_launches: | $(B)/ops-analyze $(SOFTGPU)
$(B)/bench/bench_shim $(B)/bench/bench_launches $(B)/bench/bench_threads: $(B)/bench/%: bench/%.c $(STUB) | $(SHIM)
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) $(CUDA_CPPFLAGS) $(CFLAGS) $(OUR_CFLAGS) -DBENCH_BUILD='"$(abspath $(B))"' -o $@ $< \
	  -Wl,--no-as-needed $(STUB) -Wl,-rpath,$(abspath $(B))/stub

BENCHES += $(B)/bench/bench_redzones
$(B)/bench/bench_redzones: bench/bench_redzones.c $(B)/obj/shim/alloc_table.o $(B)/obj/shim/memory.o $(B)/obj/common/map.o | $(SHIM) $(SOFTGPU)
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) $(CUDA_CPPFLAGS) $(CFLAGS) $(OUR_CFLAGS) -DBENCH_BUILD='"$(abspath $(B))"' -o $@ $< \
	  $(B)/obj/shim/alloc_table.o $(B)/obj/shim/memory.o $(B)/obj/common/map.o -L$(B)/softgpu -lcuda -lpthread -Wl,-rpath,$(abspath $(B))/softgpu
