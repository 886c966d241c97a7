# Sound programs of an odd shape; each stands for a kind of program that the tool once got wrong.
ODD_NAMES := $(patsubst tests/programs/odd/%.cu,%,$(sort $(wildcard tests/programs/odd/*.cu)))
ODD := $(ODD_NAMES:%=$(B)/programs/odd/%)
PROGRAMS += $(ODD)

$(ODD): $(B)/programs/odd/%: tests/programs/odd/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -o $@ $<
