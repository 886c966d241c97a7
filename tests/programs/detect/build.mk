# One memory error at a time, chosen by its arguments; docs/detection.md is the table made of it.
PROGRAMS += $(B)/programs/detect
$(B)/programs/detect: tests/programs/detect/detect.cu tests/programs/detect/detect_memory.cuh | $(B)/softgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -o $@ $< -L$(B)/softgpu -lcuda

# What the program can see of its memory: the same with and without the tool.
PROGRAMS += $(B)/programs/unnoticed
$(B)/programs/unnoticed: $(B)/programs/obj/detect/unnoticed.o | $(B)/softgpu/libcuda.so.1
	$(call say,LD,$@) $(CC) -o $@ $< -L$(B)/softgpu -lcuda
$(B)/programs/obj/detect/unnoticed.o: PROGRAM_CPPFLAGS = -isystem $(CUDA_HOME)/include

# Memory that is freed right after it was damaged, among many others.
PROGRAMS += $(B)/programs/crowded
$(B)/programs/crowded: $(B)/programs/obj/detect/crowded.o | $(B)/softgpu/libcuda.so.1
	$(call say,LD,$@) $(CC) -o $@ $< -L$(B)/softgpu -lcuda
$(B)/programs/obj/detect/crowded.o: PROGRAM_CPPFLAGS = -isystem $(CUDA_HOME)/include
