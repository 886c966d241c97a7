# libcublas and libcublasLt on OpenBLAS. Its single-threaded build is linked in, invisible from outside: results do not depend
# on the number of cores, and a program's own BLAS stays as it is. Without cuBLAS's headers in the toolkit there is nothing to
# build them from.
ifneq ($(wildcard $(CUDA_HOME)/include/cublasLt.h),)
BLAS_API = $(sort $(wildcard softgpu/blas/api_*.c))
BLAS_LT = $(sort $(wildcard softgpu/blas/lt_*.c))
BLAS_COMMON = $(sort $(filter-out $(BLAS_API) $(BLAS_LT),$(wildcard softgpu/blas/*.c)))
BLAS_OBJECTS = $(patsubst %.c,$(B)/obj/%.o,$(BLAS_API) $(BLAS_LT) $(BLAS_COMMON))
BLAS_NAMES = $(addprefix $(B)/gen/softgpu/,blas_names.h blaslt_names.h)
SOFTGPU_BLAS = $(B)/softgpu/libcublas.so.13 $(B)/softgpu/libcublasLt.so.13
TARGETS += $(SOFTGPU_BLAS)
SOFTGPU_NAMES += $(BLAS_NAMES)

$(BLAS_NAMES): softgpu/generate-names
	@mkdir -p $(@D)
	$(call say,GEN,$@) softgpu/generate-names $(basename $(@F:_names.h=)) $(CUDA_HOME)/include > $@.tmp && test -s $@.tmp && mv $@.tmp $@
$(BLAS_OBJECTS): $(BLAS_NAMES)

MULTIARCH = $(shell $(CC) -print-multiarch)
OPENBLAS = /usr/lib/$(MULTIARCH)/openblas-serial/libopenblas.a
$(BLAS_OBJECTS): EXTRA_CFLAGS = -I$(B)/gen -isystem /usr/include/$(MULTIARCH)/openblas-serial -ffunction-sections
BLAS_LDFLAGS = $(SOFTGPU_LDFLAGS) -Wl,--gc-sections

$(B)/softgpu/libcublas.so.13: $(patsubst %.c,$(B)/obj/%.o,$(BLAS_API) $(BLAS_COMMON)) softgpu/blas/libcublas.map
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) $(BLAS_LDFLAGS) -Wl,-soname,libcublas.so.13 -Wl,--version-script=softgpu/blas/libcublas.map -o $@ \
	  $(filter %.o,$^) $(OPENBLAS) -ldl -lm -lpthread && ln -sf libcublas.so.13 $(@D)/libcublas.so

$(B)/softgpu/libcublasLt.so.13: $(patsubst %.c,$(B)/obj/%.o,$(BLAS_LT) $(BLAS_COMMON)) softgpu/blas/libcublasLt.map
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) $(BLAS_LDFLAGS) -Wl,-soname,libcublasLt.so.13 -Wl,--version-script=softgpu/blas/libcublasLt.map -o $@ \
	  $(filter %.o,$^) $(OPENBLAS) -ldl -lm -lpthread && ln -sf libcublasLt.so.13 $(@D)/libcublasLt.so

BLAS_TEST_OBJECTS = $(B)/obj/tests/unit/blas_kit.o $(SOFTGPU_BLAS) $(B)/softgpu/libcuda.so.1
$(eval $(call unit_test,softgpu_refused,,$$(SOFTGPU_RPATH) -ldl))
$(B)/tests/unit/test_softgpu_refused: | $(SOFTGPU) $(SOFTGPU_BLAS)
$(foreach t,$(patsubst tests/unit/test_softgpu_%.c,%,$(wildcard tests/unit/test_softgpu_cublas*.c)),$(eval $(call unit_test,softgpu_$(t),$(BLAS_TEST_OBJECTS),$$(SOFTGPU_RPATH))))
endif
