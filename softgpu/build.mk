# A CUDA device made of CPU: libcuda.so.1 on the PTX executor, and libcudart.so.13 on whatever libcuda.so.1 there is.
SOFTGPU_DRIVER_SOURCES = $(sort $(filter-out softgpu/rt_%.c softgpu/runtime_stubs.c,$(wildcard softgpu/*.c)))
SOFTGPU_RUNTIME_SOURCES = $(sort $(wildcard softgpu/rt_*.c) softgpu/runtime_stubs.c)
SOFTGPU_DRIVER_OBJECTS = $(SOFTGPU_DRIVER_SOURCES:%.c=$(B)/obj/%.o)
SOFTGPU_RUNTIME_OBJECTS = $(SOFTGPU_RUNTIME_SOURCES:%.c=$(B)/obj/%.o)
SOFTGPU = $(B)/softgpu/libcuda.so.1 $(B)/softgpu/libcudart.so.13
TARGETS += $(SOFTGPU)

# The runtime as one object in an archive, for programs linked with -cudart none; one object, because a weak stub would keep the
# linker from looking for the member with the real function.
SOFTGPU_RUNTIME_ARCHIVE = $(B)/softgpu/libcudart_static.a
TARGETS += $(SOFTGPU_RUNTIME_ARCHIVE)
$(SOFTGPU_RUNTIME_ARCHIVE): $(B)/obj/softgpu/traced_runtime.o $(B)/obj/common/map.o
	@mkdir -p $(@D)
	$(call say,AR,$@) ld -r -o $(B)/softgpu/runtime.o $^ && objcopy --localize-hidden $(B)/softgpu/runtime.o && \
	  rm -f $@ && ar rcs $@ $(B)/softgpu/runtime.o && rm $(B)/softgpu/runtime.o

# Lists made from the toolkit's headers.
SOFTGPU_NAMES = $(addprefix $(B)/gen/softgpu/,driver_names.h proc_table.h runtime_names.h)
$(B)/gen/softgpu/driver_names.h: SOFTGPU_KIND = driver
$(B)/gen/softgpu/proc_table.h: SOFTGPU_KIND = versions
$(B)/gen/softgpu/runtime_names.h: SOFTGPU_KIND = runtime
$(SOFTGPU_NAMES): softgpu/generate-names
	@mkdir -p $(@D)
	$(call say,GEN,$@) softgpu/generate-names $(SOFTGPU_KIND) $(CUDA_HOME)/include > $@.tmp && test -s $@.tmp && mv $@.tmp $@

# The exported functions as wrappers, and the functions themselves under another name (trace.h). procaddr.o keeps the exports.
SOFTGPU_CALLS = $(addprefix $(B)/gen/softgpu/,driver_calls.h runtime_calls.h)
$(SOFTGPU_CALLS): softgpu/generate-trace
	@mkdir -p $(@D)
	$(call say,GEN,$@) softgpu/generate-trace $(basename $(@F:_calls.h=)) $(CUDA_HOME)/include > $@.tmp && test -s $@.tmp && mv $@.tmp $@
SOFTGPU_NAMES += $(SOFTGPU_CALLS)
$(B)/obj/softgpu/traced_driver.o: $(B)/gen/softgpu/driver_calls.h $(B)/obj/softgpu/trace_driver.o \
  $(filter-out %/trace_driver.o %/procaddr.o,$(SOFTGPU_DRIVER_OBJECTS)) softgpu/link-traced
	$(call say,LD,$@) softgpu/link-traced $@ $(filter-out softgpu/link-traced,$^)
$(B)/obj/softgpu/traced_runtime.o: $(B)/gen/softgpu/runtime_calls.h $(B)/obj/softgpu/rt_trace.o \
  $(filter-out %/rt_trace.o,$(SOFTGPU_RUNTIME_OBJECTS)) softgpu/link-traced
	$(call say,LD,$@) softgpu/link-traced $@ $(filter-out softgpu/link-traced,$^)

$(SOFTGPU_DRIVER_OBJECTS) $(SOFTGPU_RUNTIME_OBJECTS): $(SOFTGPU_NAMES)
$(B)/obj/softgpu/%.o: EXTRA_CFLAGS = -I$(B)/gen

# -Bsymbolic: their own tables must not bind to a tool that is preloaded. nodelete: worker threads run in the library.
SOFTGPU_LDFLAGS = -shared -Wl,-Bsymbolic -Wl,-z,nodelete $(if $(SAN),,-Wl,-z,defs)

$(B)/softgpu/libcuda.so.1: $(B)/obj/softgpu/traced_driver.o $(B)/obj/softgpu/procaddr.o $(B)/lib/libopsptx.a $(B)/lib/libcommon.a softgpu/libcuda.map
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) $(SOFTGPU_LDFLAGS) -Wl,-soname,libcuda.so.1 -Wl,--version-script=softgpu/libcuda.map -o $@ \
	  $(filter %.o %.a,$^) $(COMMON_LIBS) -lm -lpthread && ln -sf libcuda.so.1 $(@D)/libcuda.so

$(B)/softgpu/libcudart.so.13: $(B)/obj/softgpu/traced_runtime.o $(B)/lib/libcommon.a softgpu/libcudart.map
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) $(SOFTGPU_LDFLAGS) -Wl,-soname,libcudart.so.13 -Wl,--version-script=softgpu/libcudart.map -o $@ \
	  $(filter %.o %.a,$^) -ldl -lpthread && ln -sf libcudart.so.13 $(@D)/libcudart.so

-include softgpu/blas/build.mk
-include softgpu/cupti/build.mk

tidy: $(SOFTGPU_NAMES)

# As RPATH, not RUNPATH: the runtime opens the driver by name.
SOFTGPU_RPATH = -Wl,--disable-new-dtags,-rpath,$(abspath $(B)/softgpu) -ldl
$(foreach t,memory stream entry settings print module fault texture memop batch managed context legacy devices ipc ipc_events forms stream_forms,$(eval $(call unit_test,softgpu_$(t),$(B)/softgpu/libcuda.so.1,$$(SOFTGPU_RPATH))))
SOFTGPU_RUNTIME_TESTS = runtime $(addprefix runtime_,array device host ipc)
# Each of these a second time as *_own: with the per-thread default stream, so that calls are those ending in _ptsz and _ptds.
SOFTGPU_RUNTIME_TESTS_TWICE = $(addprefix runtime_,copy stream pool managed launch graph)
$(B)/obj/tests/unit/test_softgpu_%_own.o: tests/unit/test_softgpu_%.c | $(SETUP_DEV)
	@mkdir -p $(@D)
	$(call say,CC,$< (own stream)) $(COMPILE) $@ -DCUDA_API_PER_THREAD_DEFAULT_STREAM $<
$(foreach t,$(SOFTGPU_RUNTIME_TESTS) $(SOFTGPU_RUNTIME_TESTS_TWICE) $(SOFTGPU_RUNTIME_TESTS_TWICE:%=%_own),\
  $(eval $(call unit_test,softgpu_$(t),$(B)/softgpu/libcudart.so.13,$$(SOFTGPU_RPATH)))\
  $(eval $(B)/tests/unit/test_softgpu_$(t): | $(B)/softgpu/libcuda.so.1))
$(B)/tests/unit/test_softgpu_runtime_device: $(B)/softgpu/libcuda.so.1
$(foreach t,graph graph_nodes graph_memory capture,$(eval $(call unit_test,softgpu_$(t),$(B)/softgpu/libcuda.so.1,$$(SOFTGPU_RPATH))))
$(B)/obj/tests/unit/test_softgpu_%.o: EXTRA_CFLAGS = -I$(B)/gen
$(B)/obj/tests/unit/test_softgpu_entry.o $(B)/obj/tests/unit/test_softgpu_runtime.o: $(SOFTGPU_NAMES)

BENCHES += $(B)/bench/bench_softgpu
$(B)/bench/bench_softgpu: $(B)/obj/bench/bench_softgpu.o $(BASELINES) $(PTX) $(B)/softgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -o $@ $^ $(SOFTGPU_RPATH) -lm -lpthread
