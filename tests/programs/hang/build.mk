# A program that never goes on, in many ways; it is run under the tool, looked at from outside, and killed.
PROGRAMS += $(B)/programs/hang
$(B)/programs/hang: tests/programs/hang/hang.cu | $(B)/softgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -o $@ $< -L$(B)/softgpu -lcuda
