# A program on cuBLAS and cuBLASLt; not built where the toolkit lacks them.
ifneq ($(wildcard $(CUDA_HOME)/include/cublasLt.h),)
PROGRAMS += $(B)/programs/blas
$(B)/programs/blas: $(PROGRAM_DIR)/blas/blas.cu
	@mkdir -p $(@D)/obj
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -MD -MF $(@D)/obj/blas.d -o $@ $< -lcublas -lcublasLt
-include $(B)/programs/obj/blas.d
PROGRAMS += $(B)/programs/columns_ok $(B)/programs/columns_uninit
$(B)/programs/columns_ok $(B)/programs/columns_uninit: $(PROGRAM_DIR)/blas/columns.cu $(PROGRAM_DIR)/must.h
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) $(if $(findstring uninit,$@),-DFAULT_UNINIT) -o $@ $< -lcublas
endif
