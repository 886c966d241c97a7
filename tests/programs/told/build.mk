# A program that speaks through include/opsdebug/opsdebug.h; told_nvtx_* tells of its regions through NVTX.
$(B)/programs/told_%: PROGRAM_NVCCFLAGS += -Iinclude
$(B)/programs/told_nvtx_%: PROGRAM_NVCCFLAGS += -DREGIONS_BY_NVTX
$(foreach v,ok nan neighbour,$(eval $(call cuda_program,told,$(v),told.cu,)))
ifneq ($(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExtMem.h),)
PROGRAMS += $(B)/programs/told_nvtx_ok $(B)/programs/told_nvtx_neighbour
$(B)/programs/told_nvtx_ok $(B)/programs/told_nvtx_neighbour: $(PROGRAM_DIR)/told/told.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) $(if $(findstring neighbour,$@),-DFAULT_NEIGHBOUR) -o $@ $<
endif
