# Communication between the ranks of one process, over a stub of NCCL (tests/stub/nccl_stub.c).
NCCL_STUB = $(B)/stub/nccl/libnccl.so.2
$(NCCL_STUB): tests/stub/nccl_stub.c shim/nccl_api.h | $(B)/softgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) -shared -fPIC $(PROGRAM_CFLAGS) -Wno-unused-parameter -I. -isystem $(CUDA_HOME)/include -o $@ $< \
	  -Wl,-soname,libnccl.so.2 -Wl,-Bsymbolic -L$(B)/softgpu -lcuda && ln -sf libnccl.so.2 $(@D)/libnccl.so
PROGRAMS += $(B)/programs/ranks_ok $(B)/programs/ranks_uninit
$(B)/programs/ranks_ok $(B)/programs/ranks_uninit: $(PROGRAM_DIR)/nccl/ranks.cu $(PROGRAM_DIR)/must.h shim/nccl_api.h | $(NCCL_STUB)
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -I. $(if $(findstring uninit,$@),-DFAULT_UNINIT) -o $@ $< \
	  -L$(B)/stub/nccl -lnccl -L$(B)/softgpu -lcuda
