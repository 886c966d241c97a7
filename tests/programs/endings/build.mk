# Programs that end in a way that leaves little time: at once when they saw a fault, or with a kernel that never ends.
ENDINGS_NAMES := $(patsubst tests/programs/endings/%.cu,%,$(sort $(wildcard tests/programs/endings/*.cu)))
ENDINGS := $(ENDINGS_NAMES:%=$(B)/programs/endings/%)
PROGRAMS += $(ENDINGS)

$(ENDINGS): $(B)/programs/endings/%: tests/programs/endings/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -o $@ $<
