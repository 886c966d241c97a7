# Pointers of the host in the arguments of kernels, followed or not.
HOST_PROGRAMS := $(B)/programs/host/host_pointer
PROGRAMS += $(HOST_PROGRAMS)

$(HOST_PROGRAMS): $(B)/programs/host/%: tests/programs/host/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -o $@ $<
