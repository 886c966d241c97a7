# The CUDA test programs: $(B)/programs/NAME, built as a user would build them, never with sanitizers.
#
# Every variant of a program is the same source with one -DFAULT_NAME; README.md says what each does. Which libcudart and
# libcuda they run on is decided by LD_LIBRARY_PATH, so there is no rpath to either.

PROGRAM_DIR := tests/programs
PROGRAM_CFLAGS = -std=gnu17 -O2 -g -Wall -Wextra -ffp-contract=off
PROGRAM_NVCCFLAGS = -O2 -g -lineinfo -cudart shared -Xcompiler -Wall,-Wextra,-ffp-contract=off
PROGRAM_FAULTS := tail_write far_write read uninit race nan uaf

upper = $(shell printf %s '$(1)' | tr a-z A-Z)

# $(call cuda_program,NAME,VARIANT,MAIN SOURCE,C SOURCES): NAME_VARIANT; VARIANT is `ok` or a fault.
define cuda_program
PROGRAMS += $(B)/programs/$(1)_$(2)
$(B)/programs/$(1)_$(2): $(PROGRAM_DIR)/$(1)/$(3) $(patsubst %.c,$(B)/programs/obj/$(1)/%.o,$(4))
	@mkdir -p $$(@D)/obj
	$$(call say,NVCC,$$@) $$(NVCC) $$(PROGRAM_NVCCFLAGS) $(if $(filter-out ok,$(2)),-DFAULT_$(call upper,$(2))) \
	  -MD -MF $$(@D)/obj/$(1)_$(2).d -o $$@ $(PROGRAM_DIR)/$(1)/$(3) $$(filter %.o,$$^) -lm
-include $(B)/programs/obj/$(1)_$(2).d
endef

$(B)/programs/obj/%.o: $(PROGRAM_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(PROGRAM_CFLAGS) -D_GNU_SOURCE $(PROGRAM_CPPFLAGS) -MMD -MP -c -o $@ $<

# Directed roundings are computed by switching the mode of the host.
$(B)/programs/obj/block/exact_host.o $(B)/programs/obj/ocean/bits_host.o: PROGRAM_CFLAGS += -frounding-math

$(foreach v,ok $(PROGRAM_FAULTS) gelu,$(eval $(call cuda_program,block,$(v),block.cu,block_host.c exact_host.c)))
$(foreach v,ok $(PROGRAM_FAULTS) approx,$(eval $(call cuda_program,ocean,$(v),ocean.cu,ocean_host.c bits_host.c)))

$(foreach v,ok strided,$(eval $(call cuda_program,stride,$(v),stride.cu,)))

$(foreach v,ok tail_write,$(eval $(call cuda_program,graphs,$(v),graphs.cu,)))
PROGRAMS += $(B)/programs/graphs_many
$(B)/programs/graphs_many: $(PROGRAM_DIR)/graphs/many.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -o $@ $<
# $(call graph_program,VARIANT): parts.cu
define graph_program
PROGRAMS += $(B)/programs/graphs_parts_$(1)
$(B)/programs/graphs_parts_$(1): $(PROGRAM_DIR)/graphs/parts.cu
	@mkdir -p $$(@D)
	$$(call say,NVCC,$$@) $$(NVCC) $$(PROGRAM_NVCCFLAGS) $(if $(filter-out ok,$(1)),-DFAULT_$(call upper,$(1))) -o $$@ $$<
endef
$(foreach v,ok captured_write explicit_write updated_write branch_write nan branch_race,$(eval $(call graph_program,$(v))))
$(addprefix $(B)/programs/graphs_,many loop $(addprefix parts_,ok captured_write explicit_write updated_write branch_write nan branch_race)): $(PROGRAM_DIR)/must.h
# Conditions are set by a function of the device's own runtime.
PROGRAMS += $(B)/programs/graphs_loop
$(B)/programs/graphs_loop: $(PROGRAM_DIR)/graphs/loop.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -rdc=true -o $@ $< -lcudadevrt

# $(call driver_program,VARIANT): one program for all variants, which loads the PTX beside it.
define driver_program
PROGRAMS += $(B)/programs/driver_$(1)
$(B)/programs/driver_$(1): $(B)/programs/obj/driver/driver_api.o $(B)/programs/driver_$(1).ptx | $(B)/softgpu/libcuda.so.1
	$$(call say,LD,$$@) $$(CC) -o $$@ $$< -L$(B)/softgpu -lcuda -lm
$(B)/programs/driver_$(1).ptx: $(PROGRAM_DIR)/driver/driver_kernel.cu
	@mkdir -p $$(@D)
	$$(call say,NVCC,$$@) $$(NVCC) -O2 -lineinfo -ptx $(if $(filter-out ok,$(1)),-DFAULT_$(call upper,$(1))) -o $$@ $$<
endef

$(foreach v,ok tail_write read,$(eval $(call driver_program,$(v))))

# Its PTX is inside the program.
PROGRAMS += $(B)/programs/unseen_ok
$(B)/programs/unseen_ok: $(B)/programs/obj/unseen/unseen.o | $(B)/softgpu/libcuda.so.1
	$(call say,LD,$@) $(CC) -o $@ $< -L$(B)/softgpu -lcuda
$(B)/programs/obj/unseen/unseen.o: PROGRAM_CPPFLAGS = -isystem $(CUDA_HOME)/include

# $(call nvrtc_program,VARIANT): the kernel's source is inside the program. The old kind of rpath, since NVRTC looks for its own
# second library through it; the toolkit's stub of libcuda is not in every installation, so softgpu's serves for linking.
define nvrtc_program
PROGRAMS += $(B)/programs/nvrtc_$(1)
$(B)/programs/nvrtc_$(1): $(PROGRAM_DIR)/nvrtc/nvrtc_api.c $(PROGRAM_DIR)/nvrtc/nvrtc_kernel.cu | $(B)/softgpu/libcuda.so.1
	@mkdir -p $$(@D)
	$$(call say,CC,$$@) $$(CC) $$(PROGRAM_CFLAGS) -isystem $$(CUDA_HOME)/include -Wa,-I$(PROGRAM_DIR)/nvrtc \
	  $(if $(filter-out ok,$(1)),-DFAULT_$(call upper,$(1))) -o $$@ $$< -L$$(CUDA_HOME)/lib64 -lnvrtc \
	  -Wl,--disable-new-dtags,-rpath,$$(CUDA_HOME)/lib64 -L$(B)/softgpu -lcuda
endef

$(foreach v,ok tail_write,$(eval $(call nvrtc_program,$(v))))

$(B)/programs/obj/driver/driver_api.o: PROGRAM_CPPFLAGS = -isystem $(CUDA_HOME)/include

PROGRAMS += $(B)/programs/plain
$(B)/programs/plain: $(B)/programs/obj/plain/plain.o
	$(call say,LD,$@) $(CC) -o $@ $< -lpthread -ldl

-include $(shell find $(B)/programs/obj -name '*.d' 2>/dev/null)

-include tests/programs/blas/build.mk
-include tests/programs/profile/build.mk
-include tests/programs/nvtx/build.mk
-include tests/programs/detect/build.mk
-include tests/programs/told/build.mk
-include tests/programs/host/build.mk
-include tests/programs/nccl/build.mk
