# A program on cuBLAS and cuBLASLt; not built where the toolkit lacks them.
ifneq ($(wildcard $(CUDA_HOME)/include/cublasLt.h),)
PROGRAMS += $(B)/programs/blas
$(B)/programs/blas: $(PROGRAM_DIR)/blas/blas.cu
	@mkdir -p $(@D)/obj
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -MD -MF $(@D)/obj/blas.d -o $@ $< -lcublas -lcublasLt
-include $(B)/programs/obj/blas.d
endif
