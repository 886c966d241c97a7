# Tests that need more than one folder's sources.

# The capture writer as it is, one store at a time, and the test that reads what it leaves.
comma := ,
WRITER = $(B)/stub/writer
$(WRITER): $(B)/obj/tests/stub/writer.o $(B)/obj/shim/capture_write.o $(B)/obj/shim/segment.o $(B)/obj/shim/intern.o $(B)/obj/shim/object.o $(B)/obj/shim/path.o $(B)/obj/shim/memory.o $(COMMON)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -o $@ $^ \
	  $(addprefix -Wl$(comma)--wrap=,posix_fallocate truncate mkdir unlink renameat2 open mmap munmap madvise) $(COMMON_LIBS) -lpthread
$(eval $(call unit_test,capture_crash,$(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,capture_rotate,$(B)/obj/tests/unit/shim_kit.o $(B)/obj/shim/rotate_carry.o $(ANALYZER),$(ANALYZER_LIBS)))
$(B)/tests/unit/test_capture_rotate: | $(SHIM) $(STUB) $(PROBES)
$(B)/tests/unit/test_capture_crash: | $(WRITER) $(SHIM) $(STUB) $(B)/programs/breakages/killed

# softgpu's runtime under the name that CUDA 12's has: what most programs were linked with.
CUDART12 = $(B)/stub/cudart12/libcudart.so.12
$(CUDART12): $(B)/obj/softgpu/traced_runtime.o $(B)/lib/libcommon.a softgpu/libcudart.map
	@mkdir -p $(@D)
	@sed 's/libcudart\.so\.13/libcudart.so.12/' softgpu/libcudart.map >$(@D)/libcudart.map
	$(call say,LD,$@) $(CC) $(SAN) $(SOFTGPU_LDFLAGS) -Wl,-soname,libcudart.so.12 -Wl,--version-script=$(@D)/libcudart.map -o $@ \
	  $(filter %.o %.a,$^) -ldl -lpthread && ln -sf libcudart.so.12 $(@D)/libcudart.so

# What the end-to-end tests of docs/breakages.md preload beside the shim. Never with sanitizers: they come before anything.
BREAKAGES_PRELOADS = $(addprefix $(B)/stub/,observer.so full_disk.so slow_disk.so allocator.so heap.so interposer_dlvsym.so)
PROGRAMS += $(BREAKAGES_PRELOADS) $(CUDART12) $(STUB) $(STUB_OLD) $(PROBES)
$(filter-out %/heap.so,$(BREAKAGES_PRELOADS)): $(B)/stub/%.so: tests/stub/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(PROGRAM_CFLAGS) -Wno-unused-parameter -D_GNU_SOURCE -fno-builtin -fPIC -shared -o $@ $< -lpthread
$(B)/stub/heap.so: tests/stub/allocator.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(PROGRAM_CFLAGS) -Wno-unused-parameter -D_GNU_SOURCE -fno-builtin -DWHOLE -fPIC -shared -o $@ $< -lpthread
