# Programs that mark themselves with NVTX; not built where the toolkit lacks its headers.
ifneq ($(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h),)
$(foreach v,ok tail_write,$(eval $(call cuda_program,nvtx,$(v),nvtx.cu,)))
endif
