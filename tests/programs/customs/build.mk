# Sound programs with the customs of real ones; each has many cases (cases.h).
CUSTOMS_NAMES := $(patsubst tests/programs/customs/%.cu,%,$(sort $(wildcard tests/programs/customs/*.cu)))
CUSTOMS := $(CUSTOMS_NAMES:%=$(B)/programs/customs/%)
PROGRAMS += $(CUSTOMS)

# One of them calls the driver as well; the toolkit's stub of libcuda is not in every installation.
$(CUSTOMS): $(B)/programs/customs/%: tests/programs/customs/%.cu tests/programs/customs/cases.h | $(B)/softgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PROGRAM_NVCCFLAGS) -o $@ $< -L$(B)/softgpu -lcuda
