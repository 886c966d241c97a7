# libcupti, written from the toolkit's headers; without CUPTI's there is nothing to build it from.
ifneq ($(wildcard $(CUDA_HOME)/include/cupti.h),)
CUPTI_OBJECTS = $(patsubst %.c,$(B)/obj/%.o,$(sort $(wildcard softgpu/cupti/*.c)))
SOFTGPU_CUPTI = $(B)/softgpu/libcupti.so.13
CUPTI_NAMES = $(addprefix $(B)/gen/softgpu/,cupti_names.h cupti_cbids.h cupti_results.h)
TARGETS += $(SOFTGPU_CUPTI)
SOFTGPU_NAMES += $(CUPTI_NAMES)

$(B)/gen/softgpu/cupti_names.h: CUPTI_KIND = cupti
$(B)/gen/softgpu/cupti_cbids.h: CUPTI_KIND = cbids
$(B)/gen/softgpu/cupti_results.h: CUPTI_KIND = results
$(CUPTI_NAMES): softgpu/generate-trace
	@mkdir -p $(@D)
	$(call say,GEN,$@) softgpu/generate-trace $(CUPTI_KIND) $(CUDA_HOME)/include > $@.tmp && test -s $@.tmp && mv $@.tmp $@
$(CUPTI_OBJECTS): $(CUPTI_NAMES)

$(SOFTGPU_CUPTI): $(CUPTI_OBJECTS) $(B)/lib/libcommon.a softgpu/cupti/libcupti.map
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) $(SOFTGPU_LDFLAGS) -Wl,-soname,libcupti.so.13 -Wl,--version-script=softgpu/cupti/libcupti.map -o $@ \
	  $(filter %.o %.a,$^) -ldl -lpthread && ln -sf libcupti.so.13 $(@D)/libcupti.so

$(foreach t,cupti cupti_callback cupti_graph,$(eval $(call unit_test,softgpu_$(t),$(SOFTGPU_CUPTI) $(B)/softgpu/libcudart.so.13 $(B)/softgpu/libcuda.so.1,$$(SOFTGPU_RPATH))))
$(B)/tests/unit/test_softgpu_refused: | $(SOFTGPU_CUPTI) # it looks at every library
endif
