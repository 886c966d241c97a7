# The program that profiles itself, and the profiler that is injected, where the toolkit has CUPTI's headers.
ifneq ($(wildcard $(CUDA_HOME)/include/cupti.h),)
PROGRAMS += $(B)/programs/profile
$(B)/programs/profile: $(PROGRAM_DIR)/profile/profile.cu | $(B)/softgpu/libcupti.so.13
	@mkdir -p $(@D)/obj
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -MD -MF $(@D)/obj/profile.d -o $@ $< -L$(B)/softgpu -lcupti

PROGRAMS += $(B)/programs/inject.so
$(B)/programs/inject.so: $(PROGRAM_DIR)/profile/inject.c | $(B)/softgpu/libcupti.so.13
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(PROGRAM_CFLAGS) -isystem $(CUDA_HOME)/include -fPIC -shared -o $@ $< -L$(B)/softgpu -lcupti
endif
