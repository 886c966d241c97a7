# Sound programs of an odd shape; each stands for a kind of program that the tool once got wrong.
ODD_NAMES := $(patsubst tests/programs/odd/%.cu,%,$(sort $(wildcard tests/programs/odd/*.cu)))
ODD := $(ODD_NAMES:%=$(B)/programs/odd/%)
PROGRAMS += $(ODD)

$(ODD): $(B)/programs/odd/%: tests/programs/odd/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -o $@ $< $(ODD_LINK)

# Two files, linked as device code.
$(B)/programs/odd/linked: tests/programs/odd/linked_part/part.cu tests/programs/odd/linked_part/part.h
$(B)/programs/odd/linked: ODD_LINK = -rdc=true tests/programs/odd/linked_part/part.cu -lcudadevrt
